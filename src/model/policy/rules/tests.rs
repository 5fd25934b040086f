use super::*;

fn rules(texts: &[&str]) -> Rules {
    Rules::new(
        texts.iter().map(|text| Rule::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))).collect(),
    )
}

fn context() -> RuleContext {
    RuleContext {
        agent: "claude".into(),
        mode: "default".into(),
        folder: "/w".into(),
        home: Some("/home/u".into()),
        is_remote: false,
    }
}

fn judge(rules: &Rules, line: &str) -> Ruling {
    let subject = Subject::Run { line, cwd: Path::new("/w") };
    rules.judge(subject, &context()).unwrap_or_else(|| Ruling::unruled("no rule matches", line.to_owned()))
}

/// The corpus: lines `# rules`, then the rules, then `verdict | line`, with `\n` and `\t` escaped by `⏎` and `⇥`.
fn corpus() -> Vec<(Rules, RuleAction, String)> {
    let (mut found, mut texts, mut is_in_rules) = (Vec::new(), Vec::new(), false);
    for line in include_str!("corpus.txt").lines().filter(|line| !line.is_empty() && !line.starts_with("//"))
    {
        if line == "# rules" {
            (texts, is_in_rules) = (Vec::new(), true);
        } else if line == "# lines" {
            is_in_rules = false;
        } else if is_in_rules {
            texts.push(line);
        } else {
            let (verdict, line) = line.split_once(" | ").unwrap_or_else(|| panic!("{line}"));
            let action = match verdict.trim() {
                "allow" => RuleAction::Allow,
                "ask" => RuleAction::Ask,
                "deny" => RuleAction::Deny,
                other => panic!("{other}"),
            };
            found.push((rules(&texts), action, line.replace('⏎', "\n").replace('⇥', "\t")));
        }
    }
    found
}

#[test]
fn hostile_lines_get_the_expected_verdict() {
    let all = corpus();
    let wrong: Vec<String> = all
        .iter()
        .filter_map(|(rules, expected, line)| {
            let ruling = judge(rules, line);
            (ruling.action != *expected).then(|| format!("{line:?}: {expected:?}, not {ruling:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

const POOL: [&str; 16] = [
    "allow run \"ls *\"",
    "allow run \"cat *\"",
    "allow run \"git status *\"",
    "allow run \"git log --oneline\"",
    "allow run \"cargo test *\"",
    "allow run \"find *\"",
    "allow write \"**\"",
    "ask run \"git *\"",
    "ask run \"*\" mode=plan",
    "ask read \"*.pem\"",
    "ask any agent=other",
    "deny run \"rm *\"",
    "deny run \"git push *\"",
    "deny read \".env\"",
    "deny write \"secrets\"",
    "deny run \"cat x\"",
];

mod properties {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use proptest::sample::{Index, subsequence};

    use super::*;

    fn lines() -> &'static [String] {
        static LINES: LazyLock<Vec<String>> =
            LazyLock::new(|| corpus().into_iter().map(|(_, _, line)| line).collect());
        &LINES
    }

    proptest! {
        #[test]
        fn more_narrowing_rules_never_allow_more(
            some in subsequence(POOL.to_vec(), 0..=POOL.len()),
            added in subsequence(POOL[7..].to_vec(), 1..=3),
            at in any::<Index>(),
        ) {
            let lines = lines();
            let line = at.get(lines);
            let more: Vec<&str> = some.iter().chain(&added).copied().collect();
            prop_assert!(judge(&rules(&more), line).action >= judge(&rules(&some), line).action, "{}", line);
        }

        #[test]
        fn the_order_of_rules_does_not_matter(
            some in subsequence(POOL.to_vec(), 0..=POOL.len()),
            turn in any::<Index>(),
            at in any::<Index>(),
        ) {
            let lines = lines();
            let line = at.get(lines);
            let mut other = some.clone();
            other.reverse();
            if !other.is_empty() {
                let middle = turn.index(other.len());
                other.rotate_left(middle);
            }
            prop_assert_eq!(judge(&rules(&some), line).action, judge(&rules(&other), line).action);
        }

        #[test]
        fn a_rule_that_denies_wins(some in subsequence(POOL.to_vec(), 0..=POOL.len()), at in any::<Index>()) {
            let lines = lines();
            let line = at.get(lines);
            let denied = judge(&rules(&["deny any"]), line).action == RuleAction::Deny;
            let more: Vec<&str> = some.iter().copied().chain(["deny any"]).collect();
            prop_assert!(denied && judge(&rules(&more), line).action == RuleAction::Deny);
        }

        #[test]
        fn a_narrower_pattern_never_allows_more(
            words in proptest::collection::vec("[a-c]{1,2}", 1..4),
            line in "([a-c]{1,2} ){0,4}(\\$x|\"\\$x\"|\\*|[a-c]{1,2})",
        ) {
            let narrow = format!("allow run \"{}\"", words.join(" "));
            let wide = format!("allow run \"{} *\"", words.join(" "));
            let wider = format!("allow run \"{} *\"", words[0]);
            let [narrow, wide, wider] = [narrow, wide, wider].map(|rule| judge(&rules(&[&rule]), &line).action);
            prop_assert!(narrow >= wide && wide >= wider);
        }

        #[test]
        fn any_text_is_judged(line in "[\\PC\n\t]{0,200}") {
            let ruling = judge(&rules(&POOL), &line);
            prop_assert!(ruling.action != RuleAction::Allow || !line.trim().is_empty());
        }

        #[test]
        fn shell_fragments_never_hide_a_denied_command(
            before in proptest::collection::vec(fragment(), 0..6),
            after in proptest::collection::vec(fragment(), 0..6),
        ) {
            // Where the grammar finds a command of its own, it is denied; otherwise the line is not allowed, or it is text.
            let line = format!("{}\nrm x\n{}", before.concat(), after.concat());
            let only_rm = judge(&rules(&["allow run \"ls *\"", "allow run \"echo *\""]), &line);
            let is_text = line.contains(['\'', '"', '#']) || line.contains("<<") || line.contains("\\\n");
            prop_assert!(only_rm.action != RuleAction::Allow || is_text, "{}", line);
        }
    }

    fn fragment() -> impl Strategy<Value = String> {
        prop::sample::select(vec![
            "ls ",
            "echo ",
            ";",
            "&&",
            "|",
            "&",
            "(",
            ")",
            "{ ",
            "}",
            "\"",
            "'",
            "`",
            "$(",
            "$x",
            "\\",
            "\n",
            "<",
            ">",
            "<<E\n",
            "E\n",
            "#",
            "if ",
            "then ",
            "fi ",
            "do ",
            "done ",
            "for x in ",
            "while ",
            "!",
            "$'",
            "*",
            "~",
            "=",
        ])
        .prop_map(str::to_owned)
    }
}

#[test]
fn long_and_deep_lines_are_asked_about_quickly() {
    let rules = rules(&["allow run \"echo *\"", "deny run \"rm *\""]);
    let started = std::time::Instant::now();
    for open in [
        "(",
        "{ ",
        "$(",
        "`",
        "\"$(",
        "if ",
        "${a:-",
        "$((",
        "<(",
        "case a in a) ",
        "[[ ( ",
        "cat <<A\n",
        "a=(",
        "! ",
    ] {
        let line = open.repeat(shell::LINE_MAX_BYTES / open.len());
        assert_eq!(judge(&rules, &line).action, RuleAction::Ask, "{open}");
    }
    assert!(started.elapsed().as_secs() < 20);
    let line = format!("echo {}", "a ".repeat(4_000));
    assert_eq!(judge(&rules, &line).action, RuleAction::Allow);
    let line = format!("echo {}", "a ".repeat(5_000));
    assert_eq!(judge(&rules, &line).reason, "it is longer than 10000 bytes");
}

#[test]
fn control_characters_are_asked_about() {
    let rules = rules(&["allow run \"ls *\""]);
    for line in ["ls \0", "ls \r; id", "ls \u{1b}[2K", "ls\u{a0}x", "ls \u{202e}x", "ls \u{200b}"] {
        assert_eq!(judge(&rules, line).action, RuleAction::Ask, "{line:?}");
    }
}

#[test]
fn rules_that_cannot_be_meant_are_refused() {
    for (text, why) in [
        ("permit run x", "must start with"),
        ("allow", "the kind must be"),
        ("allow run", "a pattern in quotes"),
        ("allow run \"x", "a quote is not closed"),
        ("allow run \"*\"", "must have a name"),
        ("allow run \"* x\"", "cannot have `*`"),
        ("allow run \"A=1 *\"", "must have a name"),
        ("allow run \"python3 *\"", "would stand for code"),
        ("allow run \"git *\"", "would stand for code"),
        ("allow run \"sed -n *\"", "would stand for code"),
        ("allow run \"sudo *\"", "with all its words"),
        ("allow run \"eval *\"", "with all its words"),
        ("allow write \"../x\"", "cannot have `..`"),
        ("allow write \"a**\"", "of its own"),
        ("allow any", "not a rule"),
        ("allow mcp \"github/*\"", "cannot be allowed"),
        ("allow run ls when=now", "not a condition"),
        ("deny run ls in=sub", "not a condition"),
    ] {
        let error = Rule::parse(text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn rules_are_about_paths_hosts_tools_and_conditions() {
    let judge = |texts: &[&str], subject, context: &RuleContext| {
        rules(texts).judge(subject, context).map(|ruling| ruling.action)
    };
    let here = context();
    let read = |path| Subject::Read(Path::new(path));
    assert_eq!(judge(&["allow read \"*.rs\""], read("/w/src/a.rs"), &here), Some(RuleAction::Allow));
    assert_eq!(judge(&["allow read \"*.rs\""], read("/x/a.rs"), &here), None);
    assert_eq!(judge(&["allow read \"/x/**\""], read("/x/a/b"), &here), Some(RuleAction::Allow));
    assert_eq!(judge(&["allow read \"~/docs/*\""], read("/home/u/docs/a"), &here), Some(RuleAction::Allow));
    assert_eq!(judge(&["allow read \"~/docs/*\""], read("/home/u/docs/a/b"), &here), None);
    assert_eq!(judge(&["deny read \".env\""], read("/x/.Env"), &here), Some(RuleAction::Deny));
    assert_eq!(judge(&["deny read \"secrets/\""], read("/w/a/secrets/b"), &here), Some(RuleAction::Deny));
    assert_eq!(judge(&["deny write \".env\""], read("/w/.env"), &here), None);
    let fetch = Subject::Fetch("https://docs.rs:443/x?y");
    assert_eq!(judge(&["allow fetch \"*.rs\""], fetch, &here), Some(RuleAction::Allow));
    let fetch = Subject::Fetch("https://docs.rs@evil.com/");
    assert_eq!(judge(&["allow fetch \"docs.rs\""], fetch, &here), None);
    let tool = Subject::Mcp("github/create_issue");
    assert_eq!(judge(&["deny mcp \"github/*\""], tool, &here), Some(RuleAction::Deny));
    let remote = RuleContext { is_remote: true, ..context() };
    assert_eq!(judge(&["allow read \"*.rs\""], read("/w/a.rs"), &remote), None);
    assert_eq!(judge(&["allow read \"*.rs\" remote"], read("/w/a.rs"), &remote), Some(RuleAction::Allow));
    assert_eq!(judge(&["deny read \"*.rs\" agent=Cl*"], read("/w/a.rs"), &here), Some(RuleAction::Deny));
    assert_eq!(judge(&["deny read \"*.rs\" in=/v"], read("/w/a.rs"), &here), None);
    assert_eq!(judge(&["deny any mode=default"], Subject::Other, &here), Some(RuleAction::Deny));
}

#[test]
fn a_project_only_narrows() {
    let user = rules(&["allow run \"ls *\""]);
    let project = rules(&["allow run \"cat *\"", "deny run \"ls x\""]);
    let both = user.narrowed_by(&project);
    assert_eq!(judge(&both, "cat x").action, RuleAction::Ask);
    assert_eq!(judge(&both, "ls x").action, RuleAction::Deny);
    assert_eq!(judge(&both, "ls y").action, RuleAction::Allow);
    assert!(both.is_narrower_than(&user) && !user.is_narrower_than(&both));
}

#[test]
fn the_decision_names_rules_part_by_part() {
    let rules = rules(&["allow run \"ls *\"", "deny run \"rm *\""]);
    let ruling = judge(&rules, "ls a | sort; timeout 5 rm b");
    assert_eq!((ruling.action, ruling.rule.as_deref()), (RuleAction::Deny, Some("deny run \"rm *\"")));
    let parts: Vec<(&str, RuleAction)> =
        ruling.parts.iter().map(|part| (part.text.as_str(), part.action)).collect();
    let expected = [
        ("ls a", RuleAction::Allow),
        ("sort", RuleAction::Ask),
        ("timeout 5 rm b", RuleAction::Allow),
        ("rm b", RuleAction::Deny),
    ];
    assert_eq!(parts, expected);
}
