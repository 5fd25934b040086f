//! Tests of arguments that name a session.

use super::*;

#[test]
fn a_session_is_named_by_number_id_or_part_of_its_title() {
    let fixture = Fixture::new();
    let old = fixture.record("/here", "Fix the parser", "done");
    let elsewhere = fixture.record("/there", "Speed up the parser", "done");
    let new = fixture.record("/here", "Write the manual", "done");
    let find = |text: &str| find(&fixture.store, Path::new("/here"), text).map(|row| row.uid);
    assert_eq!(find("1").unwrap(), new);
    assert_eq!(find("2").unwrap(), old);
    assert_eq!(find("3").unwrap_err().to_string(), "no session 3 in this folder; see `parlor sessions list`");
    assert_eq!(find(&elsewhere).unwrap(), elsewhere);
    assert_eq!(find("PARSER").unwrap(), old, "titles in the folder take precedence");
    assert_eq!(find("speed").unwrap(), elsewhere);
    let error = find("the").unwrap_err().to_string();
    assert!(error.starts_with("2 sessions match \"the\"; pass an id or more of the title:\n"), "{error}");
    assert!(error.contains(&old) && error.contains(&new) && !error.contains(&elsewhere), "{error}");
    assert!(find("nothing").unwrap_err().to_string().starts_with("Session nothing not found."));
    assert!(find("").is_err() && find(" ").is_err());
    // The numbers are those of the list.
    let list = fixture.run(&["list"]);
    assert!(list.lines().next().is_some_and(|line| line.starts_with(&format!("  1  {new}"))), "{list}");
}

#[test]
fn rename_sets_the_title_and_refuses_numbers() {
    let fixture = Fixture::new();
    let uid = fixture.record("/here", "Fix the parser", "done");
    let reported = fixture.run(&["rename", "parser", " Parser,\nfixed "]);
    assert_eq!(reported, format!("Renamed {uid} to \"Parser, fixed\".\n"));
    assert_eq!(fixture.store.find(&uid).unwrap().name(), "Parser, fixed");
    for args in [["rename", "1", "x"], ["delete", "1", "--yes"]] {
        let error = fixture.try_run(&args, Some(true)).unwrap_err().to_string();
        assert!(error.starts_with("numbers change while sessions are used; pass an id"), "{error}");
    }
    assert!(fixture.try_run(&["rename", &uid, "  "], None).is_err());
}

#[test]
fn an_imported_session_is_never_named_like_a_number() {
    let fixture = Fixture::new();
    let latest = fixture.record("/here", "Fix the parser", "done");
    let row = SessionRow { uid: "1".to_owned(), folder: "/here".into(), ..SessionRow::default() };
    let imported = fixture.store.import(&row, &[]).unwrap().uid;
    assert_ne!(imported, "1");
    assert_eq!(find(&fixture.store, Path::new("/here"), "1").unwrap().uid, latest);
    assert_eq!(find(&fixture.store, Path::new("/here"), &imported).unwrap().uid, imported);
}
