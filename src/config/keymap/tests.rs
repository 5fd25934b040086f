//! Key bindings: table of actions, defaults, user configuration, help and palette.

use std::fs;
use std::path::Path;

use crossterm::event::{KeyCode, KeyEventKind, KeyModifiers};

use super::*;
use crate::config::{Paths, Problem, Surroundings, read};

fn key(text: &str) -> KeyEvent {
    let chord = Chord::parse(text).unwrap();
    KeyEvent::new(chord.code, chord.modifiers)
}

fn user(text: &str) -> (Keymap, Vec<Problem>) {
    let paths = Paths::find(Some("/etc/parlor/config.toml".into()), Some("/tmp".into())).unwrap();
    let (config, problems) = read(&paths, text, &Surroundings::default());
    (config.keymap, problems)
}

fn only(problems: &[Problem]) -> String {
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.first().unwrap().to_string()
}

#[test]
fn bindable_actions_have_a_kebab_case_name_and_a_help_text() {
    for info in all() {
        let debug = format!("{:?}", info.action);
        let mut kebab = String::new();
        for ch in debug.chars() {
            match ch {
                '(' => kebab.push('-'),
                ')' => {}
                _ if ch.is_uppercase() && !kebab.is_empty() => {
                    kebab.push('-');
                    kebab.extend(ch.to_lowercase());
                }
                _ => kebab.extend(ch.to_lowercase()),
            }
        }
        assert_eq!(info.name, kebab);
        assert_eq!(name_of(info.action), Some(info.name));
        assert_eq!(actions::by_name(info.name), Some(info.action));
        assert!(info.text.chars().next().is_some_and(char::is_uppercase), "{}", info.text);
        assert!(!info.text.ends_with('.') && !info.text.contains('!'), "{}", info.text);
    }
    assert_eq!(all().filter(|info| matches!(info.action, Action::Choose(_))).count(), 9);
    assert_eq!(name_of(Action::Choose(0)), None);
    assert_eq!(name_of(Action::Choose(10)), None);
    assert_eq!(name_of(Action::Scroll(3)), None, "it is an action of the mouse");
}

#[test]
fn defaults_have_no_problems_or_conflicts() {
    let (mut reader, table) = Reader::parse(Path::new("keymap.toml"), DEFAULTS);
    let mut keymap = Keymap { preset: "default", ..Keymap::default() };
    let keys = table.get_ref().get("keys").unwrap().get_ref().as_table().unwrap().clone();
    keymap.merge(&mut reader, &keys, |_| Origin::Default);
    assert_eq!(reader.problems, []);
    assert_eq!(keymap, Keymap::defaults());
    let rows: usize = keys.values().map(|table| table.get_ref().as_table().unwrap().len()).sum();
    assert_eq!(
        keymap.bindings.values().flatten().count() + keymap.edits.len(),
        rows,
        "two rows bind the same key"
    );
    let is_small =
        |context: &Context| matches!(context, Context::Line | Context::Terminal | Context::AfterYank);
    for context in Context::ALL.iter().filter(|context| !is_small(context)) {
        assert!(keymap.of(*context).len() > 2, "{context:?}");
    }
}

#[test]
fn default_keys_follow_conventions() {
    let keymap = Keymap::defaults();
    for (context, text, action) in [
        (Context::Main, "enter", Action::Submit),
        (Context::Main, "ctrl+j", Action::NewLine),
        (Context::Main, "alt+enter", Action::NewLine),
        (Context::Main, "shift+enter", Action::NewLine),
        (Context::Main, "esc", Action::Escape),
        (Context::Permission, "esc", Action::Escape),
        (Context::Main, "ctrl+c", Action::ClearOrQuit),
        (Context::Main, "ctrl+q", Action::Quit),
        (Context::Choice, "ctrl+q", Action::Quit),
        (Context::Choice, "y", Action::Yes),
        (Context::Main, "pageup", Action::ScrollPageUp),
        (Context::Main, "pagedown", Action::ScrollPageDown),
        (Context::Main, "ctrl+end", Action::ScrollEnd),
        (Context::Main, "ctrl+p", Action::OpenPalette),
        (Context::Composer, "ctrl+g", Action::EditDraft),
        (Context::Browse, "ctrl+g", Action::OpenLocation),
        (Context::Main, "ctrl+r", Action::OpenHistory),
        (Context::EmptyPrompt, "ctrl+d", Action::Quit),
        (Context::EmptyPrompt, "alt+d", Action::OpenChanges),
        (Context::Browse, "alt+d", Action::OpenChanges),
        (Context::Browse, "y", Action::CopyItem),
        (Context::Changes, "q", Action::Escape),
        (Context::Permission, "f12", Action::OpenLog),
        (Context::Main, "f1", Action::OpenHelp),
        (Context::EmptyPrompt, "?", Action::OpenHelp),
        (Context::EmptyPrompt, "enter", Action::Submit),
        (Context::Permission, "1", Action::Choose(1)),
        (Context::Permission, "9", Action::Choose(9)),
        (Context::Permission, "up", Action::Up),
        (Context::Permission, "enter", Action::Accept),
        (Context::Permission, "alt+f", Action::FullScreen),
    ] {
        assert_eq!(keymap.lookup(context, &key(text)), Some(action), "{text} in {context:?}");
    }
}

#[test]
fn typing_keys_are_unbound_in_text_contexts() {
    let keymap = Keymap::defaults();
    assert_eq!(keymap.lookup(Context::Main, &key("?")), None);
    for ch in "abcxyz0129?/ ".chars() {
        for context in [Context::Main, Context::List, Context::Text, Context::Line] {
            let event = KeyEvent::new(KeyCode::Char(ch), KeyModifiers::NONE);
            assert_eq!(keymap.lookup(context, &event), None, "{ch:?} in {context:?}");
        }
    }
}

#[test]
fn letters_start_a_prompt_beside_a_permission_request() {
    let keymap = Keymap::defaults();
    let bound = ('a'..='z').filter(|ch| {
        let event = KeyEvent::new(KeyCode::Char(*ch), KeyModifiers::NONE);
        keymap.lookup(Context::Permission, &event).is_some()
    });
    assert_eq!(bound.collect::<String>(), "ny");
}

#[test]
fn key_releases_have_no_action() {
    let mut event = key("enter");
    event.kind = KeyEventKind::Release;
    assert_eq!(Keymap::defaults().lookup(Context::Main, &event), None);
    assert_eq!(Keymap::defaults().edit(&event), None);
}

#[test]
fn text_fields_accept_typing_and_editing_keys() {
    let keymap = Keymap::defaults();
    assert_eq!(keymap.edit(&key("a")), Some(LineEdit::Insert("a".to_owned())));
    assert_eq!(keymap.edit(&key("G")), Some(LineEdit::Insert("G".to_owned())));
    assert_eq!(keymap.edit(&key("space")), Some(LineEdit::Insert(" ".to_owned())));
    assert_eq!(keymap.edit(&key("ctrl+w")), Some(LineEdit::DeleteWord));
    assert_eq!(keymap.edit(&key("backspace")), Some(LineEdit::Backspace));
    assert_eq!(keymap.edit(&key("alt+x")), None);
    assert_eq!(keymap.edit(&key("enter")), None);
}

#[test]
fn users_can_rebind_a_key() {
    let (keymap, problems) =
        user("[keys.main]\n\"Ctrl+P\" = \"open-models\"\n\"ctrl+x\" = \"open-palette\"\n");
    assert_eq!(problems, []);
    assert_eq!(keymap.lookup(Context::Main, &key("ctrl+p")), Some(Action::OpenModels));
    assert_eq!(keymap.keys_for(Context::Main, Action::OpenModels), ["Ctrl+P", "F2"]);
    assert_eq!(keymap.keys_for(Context::Main, Action::OpenPalette), ["Ctrl+X"]);
}

#[test]
fn users_can_replace_the_keys_of_an_action() {
    let (keymap, problems) =
        user("[keys.main]\nnew-line = [\"ctrl+n\"]\nopen-palette = [\"f11\", \"alt+enter\"]\n");
    assert_eq!(problems, []);
    assert_eq!(keymap.keys_for(Context::Main, Action::NewLine), ["Ctrl+N"]);
    assert_eq!(keymap.keys_for(Context::Main, Action::OpenPalette), ["F11", "Alt+Enter"]);
    assert_eq!(keymap.lookup(Context::Main, &key("ctrl+p")), None);
    assert_eq!(
        keymap.lookup(Context::List, &key("ctrl+p")),
        Some(Action::Up),
        "other contexts are unchanged"
    );
}

#[test]
fn none_unbinds_a_key_also_in_later_contexts() {
    let (keymap, problems) =
        user("[keys.main]\n\"ctrl+z\" = \"none\"\n[keys.global]\n\"ctrl+l\" = \"none\"\n");
    assert_eq!(problems, []);
    assert_eq!(keymap.lookup(Context::Main, &key("ctrl+z")), None);
    assert_eq!(keymap.lookup(Context::List, &key("ctrl+z")), Some(Action::Suspend));
    assert_eq!(keymap.lookup(Context::List, &key("ctrl+l")), None);
    assert!(keymap.keys_for(Context::Main, Action::Suspend).is_empty());
}

#[test]
fn conflicts_within_the_file_are_reported_with_both_actions() {
    let (keymap, problems) =
        user("[keys.main]\n\"ctrl+x\" = \"open-models\"\n\"control+X\" = \"open-modes\"\n");
    let text = only(&problems);
    assert!(text.starts_with("/etc/parlor/config.toml:3: "), "{text}");
    assert!(text.contains("both `open-models` (line 2) and `open-modes` (line 3)"), "{text}");
    assert_eq!(keymap.lookup(Context::Main, &key("ctrl+x")), Some(Action::OpenModels));
}

#[test]
fn key_lists_cannot_rebind_a_used_key() {
    let (keymap, problems) = user("[keys.main]\nopen-models = [\"ctrl+p\", \"f11\"]\n");
    let text = only(&problems);
    assert!(text.contains("already bound to `open-palette` and cannot be bound to `open-models`"), "{text}");
    assert_eq!(keymap.lookup(Context::Main, &key("ctrl+p")), Some(Action::OpenPalette));
    assert_eq!(keymap.lookup(Context::Main, &key("f11")), Some(Action::OpenModels));

    let (_, problems) = user("[keys.main]\nopen-models = [\"ctrl+q\"]\n");
    assert!(only(&problems).contains("already bound to `quit`"), "also in a later context");

    let (keymap, problems) = user("[keys.main]\nopen-models = [\"ctrl+p\"]\n\"ctrl+p\" = \"none\"\n");
    assert_eq!(problems, [], "the key was unbound explicitly");
    assert_eq!(keymap.lookup(Context::Main, &key("ctrl+p")), Some(Action::OpenModels));
}

#[test]
fn invalid_bindings_are_reported_and_do_not_affect_others() {
    for (line, wanted) in [
        ("\"crtl+x\" = \"open-models\"", "unknown modifier `crtl`; use ctrl, alt, shift or super"),
        ("\"ctrl+x\" = \"open-model\"", "unknown action `open-model`; did you mean `open-models` or"),
        (
            "\"ctrl+i\" = \"open-models\"",
            "most terminals send the same code for ctrl+i and tab; use another key",
        ),
        (
            "\"x\" = \"open-models\"",
            "types text in [keys.main] and cannot be bound to `open-models`; add a modifier",
        ),
        ("\"ctrl+x\" = 7", "invalid binding for `ctrl+x`; use"),
        ("open-modls = [\"f11\"]", "unknown action `open-modls`; did you mean `open-models` or"),
        ("open-models = [7]", "the keys of `open-models` must be strings; use open-models = [\"ctrl+x\"]"),
    ] {
        let (keymap, problems) = user(&format!("[keys.main]\n{line}\n\"f11\" = \"open-modes\"\n"));
        let text = only(&problems);
        assert!(text.contains(wanted), "{text}");
        assert!(text.contains(":2: "), "{text}");
        assert_eq!(keymap.lookup(Context::Main, &key("f11")), Some(Action::OpenModes));
    }
    let (_, problems) = user("[keys.mian]\n\"f11\" = \"open-modes\"\n");
    assert!(only(&problems).contains("did you mean `main`?"));
    let (_, problems) = user("[keys]\nmain = 1\n");
    assert!(only(&problems).contains("`keys.main` must be a table"));
    let (_, problems) = user("[keys]\nsubmit = [\"ctrl+s\"]\n");
    assert!(only(&problems).contains(":2: `submit` is not in a key section; move"));
    let (_, problems) = user("[keys.edit]\n\"ctrl+x\" = \"delete-wrod\"\n");
    assert!(only(&problems).contains("did you mean `delete-word`?"));
    let (_, problems) = user("[keys.edit]\n\"ctrl+x\" = \"delete-word\"\n\"Ctrl+x\" = \"delete-all\"\n");
    assert!(only(&problems).contains("is bound on line 2 and on line 3"));
}

#[test]
fn help_and_palette_show_the_configured_keys() {
    let (keymap, _) = user("[keys.main]\n\"ctrl+x\" = \"toggle-plan\"\n");
    let rows = keymap.help();
    let plan = rows.iter().find(|row| row.action == Action::TogglePlan).unwrap();
    assert_eq!(
        (plan.title, plan.keys.clone()),
        ("Transcript", vec!["Alt+P".to_owned(), "Ctrl+X".to_owned()])
    );
    let choice = rows.iter().find(|row| row.title == "Questions" && row.action == Action::Choose(1)).unwrap();
    assert_eq!(choice.keys, ["1…9"]);
    let palette = keymap.palette();
    let shown = |action| {
        let command = palette.iter().find(|command| command.action == action)?;
        Some((command.text.as_str(), command.keys.as_str()))
    };
    assert_eq!(shown(Action::OpenModels), Some(("Select model", "F2")));
    assert_eq!(shown(Action::SignOut), Some(("Sign out", "")));
    assert_eq!(shown(Action::Submit), None);
}

#[test]
fn every_action_has_a_key_or_a_palette_entry() {
    let keymap = Keymap::defaults();
    for info in all() {
        let has_key = keymap.bindings.values().flatten().any(|binding| binding.action == Some(info.action));
        assert!(has_key || info.group.is_some(), "{}", info.name);
    }
}

/// `PARLOR_KEYS=write cargo test --lib documented_keys_match_the_defaults` updates the table.
#[test]
fn documented_keys_match_the_defaults() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/keys.md");
    let text = fs::read_to_string(&file).unwrap();
    let (head, rest) = text.split_once("<!-- keys: begin -->\n").unwrap();
    let (table, tail) = rest.split_once("<!-- keys: end -->").unwrap();
    let wanted = Keymap::defaults().markdown();
    if std::env::var_os("PARLOR_KEYS").is_some_and(|value| value == "write") {
        let text = format!("{head}<!-- keys: begin -->\n{}\n<!-- keys: end -->{tail}", wanted.trim());
        fs::write(&file, text).unwrap();
        return;
    }
    assert!(
        table.trim() == wanted.trim(),
        "docs/keys.md is out of date; run PARLOR_KEYS=write cargo test --lib documented_keys_match_the_defaults"
    );
}

#[test]
fn every_key_context_is_documented() {
    let text = include_str!("../../../docs/configuration.md");
    for context in Context::ALL {
        assert!(text.contains(&format!("`{}`", context.name())), "{}", context.name());
    }
}

fn chords(text: &str) -> Vec<Chord> {
    Sequence::parse(text).unwrap().chords().to_vec()
}

#[test]
fn sequences_are_resolved_key_by_key() {
    let (keymap, problems) = user("[keys.browse]\n\"z a\" = \"open-gap\"\n\"z ctrl+b c\" = \"browse\"\n");
    assert_eq!(problems, []);
    for (keys, wanted) in [
        ("z", Lookup::Prefix),
        ("z a", Lookup::Action(Action::OpenGap)),
        ("z ctrl+b", Lookup::Prefix),
        ("z ctrl+b c", Lookup::Action(Action::Browse)),
        ("z b", Lookup::Unbound),
        ("z a a", Lookup::Unbound),
        ("ctrl+x", Lookup::Prefix),
        ("ctrl+x m", Lookup::Action(Action::OpenModels)),
    ] {
        assert_eq!(keymap.resolve(Context::Browse, &chords(keys)), wanted, "{keys}");
    }
    assert_eq!(keymap.resolve(Context::Main, &chords("z")), Lookup::Unbound);
    assert_eq!(keymap.keys_for(Context::Browse, Action::OpenGap), ["u", "z a", "Alt+U"]);
}

#[test]
fn a_key_cannot_be_bound_and_start_a_sequence() {
    let (keymap, problems) =
        user("[keys.main]\n\"f10\" = \"open-models\"\n\"f10 a\" = \"open-modes\"\n\"f11\" = \"open-log\"\n");
    let text = only(&problems);
    assert!(
        text.contains(":3: `f10` in [keys.main] is bound and also starts `f10 a` (lines 2 and 3)"),
        "{text}"
    );
    assert!(text.ends_with("remove one of them; `f10` is used"), "{text}");
    assert_eq!(keymap.resolve(Context::Main, &chords("f10")), Lookup::Action(Action::OpenModels));
    assert_eq!(keymap.resolve(Context::Main, &chords("f11")), Lookup::Action(Action::OpenLog));

    let (keymap, problems) = user("[keys.main]\n\"ctrl+p a\" = \"open-modes\"\n");
    let text = only(&problems);
    assert!(text.contains("`ctrl+p` in [keys.main] is bound to `open-palette` and cannot start"), "{text}");
    assert_eq!(keymap.resolve(Context::Main, &chords("ctrl+p")), Lookup::Action(Action::OpenPalette));

    let (keymap, problems) = user("[keys.main]\n\"ctrl+p a\" = \"open-modes\"\n\"ctrl+p\" = \"none\"\n");
    assert_eq!(problems, [], "the key was unbound explicitly");
    assert_eq!(keymap.resolve(Context::Main, &chords("ctrl+p a")), Lookup::Action(Action::OpenModes));
}

#[test]
fn a_key_of_the_user_replaces_default_sequences() {
    for value in ["\"ctrl+x\" = \"open-palette\"", "open-palette = [\"ctrl+x\"]"] {
        let (keymap, problems) = user(&format!("[keys.main]\n{value}\n"));
        assert_eq!(problems, []);
        assert_eq!(keymap.resolve(Context::Main, &chords("ctrl+x")), Lookup::Action(Action::OpenPalette));
        assert_eq!(keymap.keys_for(Context::Main, Action::Undo), ["Ctrl+_", "Ctrl+/", "Ctrl+7"]);
        assert_eq!(keymap.resolve(Context::List, &chords("ctrl+x")), Lookup::Prefix, "of [keys.global]");
    }
    let (keymap, problems) = user("[keys.main]\n\"ctrl+x\" = \"none\"\n");
    assert_eq!(problems, []);
    assert_eq!(keymap.resolve(Context::Main, &chords("ctrl+x")), Lookup::Unbound);
}

#[test]
fn sequences_start_with_text_only_where_no_text_is_typed() {
    for context in ["main", "composer", "empty-prompt", "list", "permission", "choice", "text", "global"] {
        let (_, problems) = user(&format!("[keys.{context}]\n\"z a\" = \"open-models\"\n"));
        assert!(only(&problems).contains("`z a` types text"), "{context}");
        let (_, problems) = user(&format!("[keys.{context}]\n\"f11 a\" = \"open-models\"\n"));
        assert_eq!(problems, [], "{context}");
    }
    for context in ["browse", "changes", "queue", "form"] {
        let (_, problems) = user(&format!("[keys.{context}]\n\"z a\" = \"open-models\"\n"));
        assert_eq!(problems, [], "{context}");
    }
    let (_, problems) = user("[keys.selection]\n\"f10 a\" = \"copy-selection\"\n");
    assert!(only(&problems).contains("does not support"));
}

#[test]
fn continuations_are_listed_once_and_digits_are_combined() {
    let (keymap, _) = user("[keys.main]\n\"ctrl+x m\" = \"open-modes\"\n\"ctrl+x v v\" = \"open-log\"\n");
    let next = keymap.continuations(Context::Main, &chords("ctrl+x"));
    let find =
        |key: &str| next.iter().filter(|next| next.key == key).map(|next| next.action).collect::<Vec<_>>();
    assert_eq!(find("m"), [Some(Action::OpenModes)]);
    assert_eq!(find("1…9"), [Some(Action::ShowTab(1))]);
    assert_eq!(find("Ctrl+E"), [Some(Action::EditDraft)]);
    assert_eq!(find("v"), [None], "more keys follow");
    assert_eq!(keymap.continuations(Context::Main, &chords("f10")), []);
}

#[test]
fn help_is_grouped_by_task() {
    let rows = Keymap::defaults().help();
    let mut titles: Vec<&str> = rows.iter().map(|row| row.title).collect();
    titles.dedup();
    let tasks = ["Prompt and turn", "Transcript", "Copy", "Session", "Agent", "Tabs", "Application"];
    assert_eq!(titles.get(..TASKS), Some(&tasks[..]));
    assert_eq!(titles.get(TASKS..TASKS + 2), Some(&["Empty prompt", "Prompt text"][..]));
    let mut once = titles.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), titles.len(), "each heading is shown once: {titles:?}");
    let find = |title: &str, action| {
        rows.iter().find(|row| row.title == title && row.action == action).map(|row| row.keys.join(" "))
    };
    assert_eq!(find("Tabs", Action::ShowTab(1)).as_deref(), Some("Alt+1…9 Ctrl+X 1…9"));
    assert_eq!(find("Prompt and turn", Action::EditDraft).as_deref(), Some("Ctrl+G Ctrl+X Ctrl+E Ctrl+X e"));
}

#[test]
fn presets_change_the_defaults_and_users_change_presets() {
    for (name, text) in PRESETS {
        let (mut reader, table) = Reader::parse(Path::new("preset.toml"), text);
        if let Some(keys) = table.get_ref().get("keys") {
            Keymap::defaults().merge(&mut reader, keys.get_ref().as_table().unwrap(), |_| Origin::Default);
        }
        assert_eq!(reader.problems, [], "{name}");
        let (keymap, problems) = user(&format!("[keys]\npreset = \"{name}\"\n"));
        assert_eq!((keymap.preset(), problems.as_slice()), (*name, &[][..]));
    }
    assert_eq!(user("[keys]\npreset = \"default\"\n").0, Keymap::defaults());

    let (keymap, problems) =
        user("[keys.browse]\n\"g g\" = \"open-log\"\n\"z z\" = \"browse\"\n[keys]\npreset = \"vim\"\n");
    assert_eq!(problems, [], "the order in the file does not matter");
    for (keys, wanted) in [
        ("g", Lookup::Prefix),
        ("g g", Lookup::Action(Action::OpenLog)),
        ("g t", Lookup::Action(Action::NextTab)),
        ("z z", Lookup::Action(Action::Browse)),
        ("j", Lookup::Action(Action::SelectNext)),
    ] {
        assert_eq!(keymap.resolve(Context::Browse, &chords(keys)), wanted, "{keys}");
    }

    let (keymap, _) = user("[keys]\npreset = \"emacs\"\n");
    assert_eq!(keymap.resolve(Context::Main, &chords("ctrl+x ctrl+c")), Lookup::Action(Action::Quit));
    assert_eq!(keymap.keys_for(Context::Main, Action::OpenPalette), ["Alt+X", "F10"]);

    let (_, problems) = user("[keys]\npreset = \"vi\"\n");
    assert!(only(&problems).contains("unknown preset `vi`; did you mean `vim`?"), "{problems:?}");
}
