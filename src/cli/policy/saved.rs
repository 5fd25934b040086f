//! What agents asked for in saved sessions, and what rules decide about it.

use std::fmt::Write as _;

use crate::core::SavedRequest;
use crate::host::when;
use crate::model::{RuleAction, Rules};
use crate::runtime::saved_requests::{Source, shown};
use crate::store::StoreError;
use crate::ui::text::{counted, one_line};

/// All requests with their decisions.
pub fn log(source: &Source<'_>) -> Result<String, StoreError> {
    let mut text = String::new();
    source.each(|uid, _, request| {
        let _ = writeln!(text, "{}\n      {}", head(uid, request), one_line(&request.what.decision()));
    })?;
    Ok(if text.is_empty() { "No requests in this period.\n".to_owned() } else { text })
}

/// The requests about which a draft of rules decides differently than the rules do now, and their numbers.
pub fn test(source: &Source<'_>, now: &Rules, draft: &Rules) -> Result<String, StoreError> {
    let mut text = String::new();
    let (mut all, mut changed) = (0, 0);
    let mut counts = [0; 3];
    let asks = || (RuleAction::Ask, "no rule".to_owned());
    source.each(|uid, session, request| {
        let before = session.ruling(request, now).unwrap_or_else(asks);
        let after = session.ruling(request, draft).unwrap_or_else(asks);
        all += 1;
        counts[match after.0 {
            RuleAction::Allow => 0,
            RuleAction::Ask => 1,
            RuleAction::Deny => 2,
        }] += 1;
        if before.0 != after.0 {
            changed += 1;
            let (from, to) = (before.0.word(), after.0.word());
            let _ = writeln!(
                text,
                "{}\n      {from} → {to}: {}\n      was: {}",
                head(uid, request),
                one_line(&after.1),
                one_line(&request.what.decision())
            );
        }
    })?;
    let [allowed, asked, denied] = counts;
    let _ = writeln!(
        text,
        "{}: {allowed} allowed, {asked} asked, {denied} denied; {changed} changed by these rules",
        counted(all, "request", "requests")
    );
    Ok(text)
}

fn head(uid: &str, request: &SavedRequest) -> String {
    format!("{}  {uid}  {}", when::full(request.at_ms), shown(request))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::sessions::tests::Fixture;
    use crate::model::*;
    use crate::runtime::saved_requests::matches;
    use crate::store::ListFilter;

    /// A session in which this command was asked about and allowed by the user.
    fn saved(command: &str) -> Fixture {
        let fixture = Fixture::new();
        let mut tool = ToolCallPatch::new("t".into());
        tool.title = Patch::Set("A command\u{1b}[31m".to_owned());
        tool.kind = Patch::Set(ToolKind::Execute);
        tool.input = Patch::Set(ToolInput { command: Some(command.to_owned()), ..ToolInput::default() });
        let decided = Record::Decided {
            tool: "t".into(),
            option: Some("Yes".to_owned()),
            option_id: Some("yes".to_owned()),
            kind: Some(PermissionKind::AllowOnce),
            is_allow: true,
            by: Decider::User,
            rule: None,
        };
        let asked = Record::Asked { tool: Box::new(tool), options: Vec::new() };
        fixture.record_all("/w", "go", vec![asked, decided]);
        fixture
    }

    fn source(fixture: &Fixture) -> Source<'_> {
        let filter = ListFilter { with_children: true, ..ListFilter::default() };
        Source { store: &fixture.store, since_ms: 0, filter, home: None, own_folders: Vec::new() }
    }

    fn rules(rules: &[&str]) -> Rules {
        Rules::new(rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect())
    }

    #[test]
    fn requests_are_listed_with_their_decisions() {
        let fixture = saved("ls; rm -rf x");
        let text = log(&source(&fixture)).unwrap();
        assert!(text.contains("  run ls; rm -rf x\n      Allowed once by the user\n"), "{text}");
        let late = Source { since_ms: i64::MAX, ..source(&fixture) };
        assert_eq!(log(&late).unwrap(), "No requests in this period.\n");
    }

    #[test]
    fn rules_match_the_requests_of_an_agent_in_a_folder() {
        let fixture = saved("ls -l");
        let found = |folder: &str, agent: &str, rule: &str| {
            let job = MatchJob {
                request: RequestId(1),
                rules: vec![rule.to_owned()],
                agent: agent.to_owned(),
                folder: folder.into(),
                home: None,
                own_folders: Vec::new(),
            };
            matches(&fixture.store, &job).unwrap()
        };
        let examples = vec!["run ls -l".to_owned()];
        let expected = RuleMatches { all: 1, allowed: 1, examples };
        assert_eq!(found("/w", "fake", "allow run \"ls *\""), expected);
        assert_eq!(
            found("/w", "fake", "allow run \"rm *\""),
            RuleMatches { all: 1, ..RuleMatches::default() }
        );
        assert_eq!(found("/other", "fake", "allow run \"ls *\""), RuleMatches::default());
        assert_eq!(found("/w", "other", "allow run \"ls *\""), RuleMatches::default());
    }

    #[test]
    fn a_draft_shows_what_it_would_change() {
        let fixture = saved("ls; rm -rf x");
        let source = source(&fixture);
        let text = test(&source, &rules(&[]), &rules(&["deny run \"rm *\""])).unwrap();
        assert!(
            text.contains("ask → deny: deny run \"rm *\"\n      was: Allowed once by the user\n"),
            "{text}"
        );
        assert!(
            text.ends_with("1 request: 0 allowed, 0 asked, 1 denied; 1 changed by these rules\n"),
            "{text}"
        );
        let text = test(&source, &rules(&[]), &rules(&["allow run \"ls *\""])).unwrap();
        assert_eq!(text, "1 request: 0 allowed, 1 asked, 0 denied; 0 changed by these rules\n");
    }
}
