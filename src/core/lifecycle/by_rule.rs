//! Allows an open request by a rule that the user chooses, and with it later ones like it.

use super::{call, policy, requests};
use crate::core::state::lookup;
use crate::core::state::question::CLOSED;
use crate::core::{Consequence, Cx, Effect, OpenRequest, OpenRequestKind, Question, State, UserAnswer};
use crate::model::{
    Access, AskReason, Grant, GrantScope, MATCH_DAYS, MatchJob, Policy, RequestId, Rule, RuleAction,
    RuleMatches, SessionKey, Severity, Subject, is_plain_environment, suggestions,
};

/// Sets of rules of which each would certainly allow an open request, the narrowest first. The error says why there is none.
pub fn rule_suggestions(
    state: &State,
    key: SessionKey,
    open: &OpenRequest,
) -> Result<Vec<Vec<String>>, String> {
    let none = || "No rule can allow this request: it is not certain what it does.".to_owned();
    let session = state.sessions.get(&key).ok_or_else(none)?;
    let policy = policy::of(state, open.conn, key);
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut add = |sets: Vec<Vec<String>>, is_allowed: &dyn Fn(Vec<Rule>) -> bool| {
        for set in sets {
            let rules: Option<Vec<Rule>> = set.iter().map(|text| Rule::parse(text).ok()).collect();
            if rules.is_some_and(is_allowed) && !found.contains(&set) {
                found.push(set);
            }
        }
    };
    match &open.kind {
        OpenRequestKind::Permission { tool, .. } => {
            let call = session.tool_call(*tool).ok_or_else(none)?;
            if let Some(rule) = &call.asking_rule {
                return Err(format!("The rule `{rule}` asks, whatever other rules allow."));
            }
            let is_plain = policy::protected_files(state, session, call).is_empty();
            if !is_plain {
                return Err("No rule can allow this request: it changes a protected file.".to_owned());
            }
            add(requests::suggested_for(session, call, &policy.context), &|rules| {
                let rules = policy.user_rules.with(rules);
                let ruling = requests::ruling_of(session, call, is_plain, (&rules, &policy.context));
                ruling.is_some_and(|(action, _)| action == RuleAction::Allow)
            });
        }
        OpenRequestKind::Access(request) => {
            let subject = match &request.access {
                Access::Run(command) if is_plain_environment(&command.env) => {
                    Subject::Run { line: &command.line, cwd: &command.cwd }
                }
                Access::Read { path } => Subject::Read(path),
                Access::Write { path } => Subject::Write(path),
                Access::Run(_) | Access::SignIn { .. } => return Err(none()),
            };
            if !matches!(request.why, AskReason::Command | AskReason::Write | AskReason::Outside) {
                return Err(format!("No rule can allow this request. {}", request.why.description()));
            }
            add(suggestions(subject, &policy.context), &|rules| {
                let policy = Policy { user_rules: policy.user_rules.with(rules), ..policy.clone() };
                policy.ruling(&request.access).is_some_and(|ruling| ruling.action == RuleAction::Allow)
            });
        }
        OpenRequestKind::Elicitation(_) => {}
    }
    if found.is_empty() { Err(none()) } else { Ok(found) }
}

/// Asks whether to add rules that were suggested for an open request. The question shows them whole, and what they would
/// have allowed before.
pub fn ask(state: &mut State, id: RequestId, rules: Vec<String>, cx: &mut Cx) {
    let Some((key, open)) = state.open_request(id) else { return call::flash(state, CLOSED, cx) };
    let agent = policy::context_of(state, open.conn, key).agent;
    let folder = state.sessions.get(&lookup::root_of(state, key)).map(|root| root.workspace.cwd.clone());
    let answers = [
        ("Allow for this session", Consequence::AllowByRules(id, rules.clone(), GrantScope::Session)),
        (
            "Always allow for this agent in this folder",
            Consequence::AllowByRules(id, rules.clone(), GrantScope::Folder),
        ),
        ("Cancel", Consequence::Close),
    ];
    state.withdraw(|consequence| matches!(consequence, Consequence::AllowByRules(of, ..) if *of == id));
    let mut body = rules.clone();
    body.extend(["", "Searching the saved sessions…"].map(str::to_owned));
    state.ask(key, Question::new("Add these rules?", body, answers));
    cx.effects.push(Effect::MatchRules(MatchJob {
        request: id,
        rules,
        agent,
        folder: folder.unwrap_or_default(),
        home: state.setup.home.clone(),
        own_folders: state.setup.own_folders.clone(),
    }));
}

/// Shows in the question what its rules would have allowed before.
pub(in crate::core) fn on_matched(state: &mut State, job: &MatchJob, found: Result<RuleMatches, String>) {
    let text = match found {
        Ok(RuleMatches { all: 0, .. }) => {
            format!("No requests in the last {MATCH_DAYS} days to compare with.")
        }
        Ok(RuleMatches { all, allowed, examples }) => {
            let mut text = format!(
                "These rules would have allowed {allowed} of {all} {} from this agent in this folder in the last \
                 {MATCH_DAYS} days",
                if all == 1 { "request" } else { "requests" }
            );
            text.push_str(if examples.is_empty() { "." } else { ": " });
            text + &examples.join(" · ") + if allowed > examples.len() { " …" } else { "" }
        }
        Err(why) => format!("Could not search the saved sessions: {why}"),
    };
    let is_it = |consequence: &Consequence| match consequence {
        Consequence::AllowByRules(id, rules, _) => (id, rules) == (&job.request, &job.rules),
        _ => false,
    };
    let mut questions = state.questions.iter_mut();
    let question =
        questions.find(|question| question.answers.iter().any(|answer| is_it(&answer.consequence)));
    if let Some(line) = question.and_then(|question| question.body.last_mut()) {
        *line = text;
    }
}

/// Adds rules that were suggested for an open request, and allows it.
pub(super) fn allow(state: &mut State, id: RequestId, chosen: (&[String], GrantScope), cx: &mut Cx) {
    if let Err(why) = try_to_allow(state, id, chosen, cx) {
        call::flash(state, why, cx);
    }
}

fn try_to_allow(
    state: &mut State,
    id: RequestId,
    (rules, scope): (&[String], GrantScope),
    cx: &mut Cx,
) -> Result<(), String> {
    let Some((key, open)) = state.open_request(id) else { return Err(CLOSED.to_owned()) };
    // It may have changed since the rules were suggested.
    if !rule_suggestions(state, key, open)?.iter().any(|set| set == rules) {
        return Err("The request has changed. Nothing was allowed.".to_owned());
    }
    let (conn, position) = match &open.kind {
        OpenRequestKind::Permission { request, .. } => (open.conn, requests::position_to_allow(request)),
        _ => (open.conn, Some(0)),
    };
    for rule in rules {
        policy::add_grant(state, conn, key, Grant::Rule(rule.clone()), scope, cx);
    }
    let lifetime = match scope {
        GrantScope::Session => "for this session",
        GrantScope::Folder => "for this agent in this folder",
    };
    let title = format!("Rules added {lifetime}:");
    call::notice(state, key, Severity::Info, title, Some(rules.join("\n")));
    let Some(position) = position else {
        return Err("The rule is added. This request cannot be allowed once: choose an answer.".to_owned());
    };
    requests::answer_by_user(state, id, UserAnswer::Option(position), cx).map_err(str::to_owned)
}
