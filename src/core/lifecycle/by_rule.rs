//! Allows an open request by a rule that the user chooses, and with it later ones like it.

use super::{policy, questions, requests};
use crate::core::state::question::CLOSED;
use crate::core::{Cx, OpenRequest, OpenRequestKind, QuestionId, State, UserAnswer};
use crate::model::{
    Access, AskReason, Grant, GrantScope, Policy, RequestId, Rule, RuleAction, SessionKey, Subject,
    is_plain_environment, suggestions,
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

/// Adds rules that were suggested for an open request, and allows it.
pub fn allow_by_rules(
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
    let Some(position) = position else {
        return Err("The rule is added. This request cannot be allowed once: choose an answer.".to_owned());
    };
    questions::answer(state, QuestionId::Agent(id), UserAnswer::Option(position), cx).map_err(str::to_owned)
}
