//! Rules that the user adds while a request is open.

use super::rules::*;
use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

fn suggested(app: &TestCore) -> Result<Vec<Vec<String>>, String> {
    let session = app.session();
    rule_suggestions(&app.state, session.key, session.requests.front().unwrap())
}

/// Chooses suggested rules and how long they are valid. Returns the message, if they were not added.
fn allow(app: &mut TestCore, rules: &[&str], scope: GrantScope) -> Result<(), String> {
    let id = app.session().requests.front().unwrap().request_id;
    let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
    let wanted = Consequence::AllowByRules(id, rules.clone(), scope);
    app.flow(|state, cx| operations::ask_to_allow_by_rules(state, id, rules, cx));
    let question = app.state.questions.last().unwrap();
    let position = question.answers.iter().position(|answer| answer.consequence == wanted).unwrap();
    let question = question.id;
    app.state.flash = None;
    app.flow(|state, cx| operations::answer(state, question, UserAnswer::Option(position), cx).unwrap());
    app.state.flash.clone().map_or(Ok(()), Err)
}

#[test]
fn a_chosen_rule_allows_this_and_later_requests() {
    let mut app = ruled(&[]);
    app.ask(1, runs("cargo test --lib && git status"));
    let sets = suggested(&app).unwrap();
    assert_eq!(sets[0], ["allow run \"cargo test --lib\"", "allow run \"git status\""]);
    let wider = ["allow run \"cargo test *\"", "allow run \"git status *\""];
    assert!(sets.iter().any(|set| set == &wider) && sets.len() == 2, "`cargo *` would run code: {sets:?}");
    assert_eq!(allow(&mut app, &wider, GrantScope::Session), Ok(()));
    app.expect_sent("answer 1: selected once");
    app.ask(2, runs("cargo test --doc")).expect_sent("answer 2: selected once");
    app.ask(3, create(command("git status -s")))
        .expect_sent("terminal create 3 \"git status -s\" in /code/shop");
    app.ask(4, runs("cargo build")).expect_sent("");
    assert_eq!(app.session().requests.len(), 1);
    assert_eq!(granted(&app.state).len(), 2, "it can be revoked");
    let added = app.recorded().into_iter().find_map(|event| match event.record {
        Record::Notice { title, detail, .. } if title.starts_with("Rules added") => Some((title, detail)),
        _ => None,
    });
    let rules = "allow run \"cargo test *\"\nallow run \"git status *\"".to_owned();
    assert_eq!(added, Some(("Rules added for this session:".to_owned(), Some(rules))));
}

#[test]
fn the_question_shows_rules_whole_and_what_they_match() {
    let mut app = ruled(&[]);
    app.ask(1, runs("touch a; rm b"));
    let id = app.session().requests.front().unwrap().request_id;
    let rules = ["allow run \"touch *\"", "allow run \"rm *\""].map(str::to_owned).to_vec();
    app.flow(|state, cx| operations::ask_to_allow_by_rules(state, id, rules.clone(), cx));
    let body = |app: &TestCore| app.state.questions.last().unwrap().body.join("\n");
    assert!(body(&app).starts_with("allow run \"touch *\"\nallow run \"rm *\"\n"), "{}", body(&app));
    let job = app.fx.iter().find_map(|effect| match effect {
        Effect::MatchRules(job) => Some(job.clone()),
        _ => None,
    });
    let job = job.unwrap();
    assert_eq!((job.rules.clone(), job.agent.as_str()), (rules, "fake"));
    assert_eq!(job.folder, app.session().workspace.cwd);
    let other = MatchJob { rules: vec!["allow any".to_owned()], ..job.clone() };
    app.service(ServiceEvent::RulesMatched(other, Err("x".to_owned())));
    assert!(body(&app).ends_with("Searching the saved sessions…"), "{}", body(&app));
    let found = RuleMatches { all: 9, allowed: 2, examples: vec!["run rm c".to_owned()] };
    app.service(ServiceEvent::RulesMatched(job.clone(), Ok(found)));
    let expected = "These rules would have allowed 2 of 9 requests from this agent in this folder in the last 30 days: run rm c …";
    assert!(body(&app).ends_with(expected), "{}", body(&app));
    app.service(ServiceEvent::RulesMatched(job, Ok(RuleMatches::default())));
    assert!(body(&app).ends_with("No requests in the last 30 days to compare with."), "{}", body(&app));
}

#[test]
fn no_rule_is_offered_that_could_not_match() {
    for asked in [
        titled("`ls`"),
        runs("python3 -c 'x'; $X"),
        runs("if then"),
        edits("/code/shop/.git/config"),
        edits("/etc/passwd"),
    ] {
        let mut app = ruled(&[]);
        app.ask(1, asked.clone());
        assert!(suggested(&app).unwrap_err().starts_with("No rule can allow"), "{asked:?}");
    }
    let mut app = ruled(&["ask run \"git *\""]);
    app.ask(1, runs("git push"));
    let expected = "The rule `ask run \"git *\"` asks, whatever other rules allow.";
    assert_eq!(suggested(&app).unwrap_err(), expected);
}

#[test]
fn a_rule_is_not_added_for_a_request_that_has_changed() {
    let mut app = ruled(&[]);
    app.ask(1, runs("ls"));
    let refused = allow(&mut app, &["allow run \"rm *\""], GrantScope::Session);
    assert_eq!(refused.unwrap_err(), "The request has changed. Nothing was allowed.");
    assert!(granted(&app.state).is_empty());
    assert_eq!(app.session().requests.len(), 1);
}

#[test]
fn a_rule_for_the_folder_is_saved() {
    let mut app = ruled(&["deny run \"rm *\""]);
    app.ask(1, create(command("ls -l")));
    assert_eq!(allow(&mut app, &["allow run \"ls *\""], GrantScope::Folder), Ok(()));
    app.expect_sent("terminal create 1 \"ls -l\" in /code/shop");
    assert_eq!(app.state.grants[0].grant, Grant::Rule("allow run \"ls *\"".to_owned()));
    app.ask(2, create(command("ls; rm x"))).expect_sent("answer 2: error -32603");
}

#[test]
fn a_saved_rule_cannot_deny_or_ask() {
    let mut app = ruled(&[]);
    let key = app.session().key;
    let conn = app.session().conn.unwrap();
    let agent = crate::core::lifecycle::policy::agent_of(&app.state.conns[&conn].spec);
    let folder = app.session().workspace.cwd.clone();
    for rule in ["deny any", "not a rule"] {
        let grant = Grant::Rule(rule.to_owned());
        app.state.grants.push(StoredGrant { agent: agent.clone(), folder: folder.clone(), grant });
    }
    assert!(crate::core::lifecycle::policy::of(&app.state, conn, key).user_rules.is_empty());
}
