//! Rules of the user about permission requests: a rule that denies or allows answers with an option of the agent.
//!
//! What a call shows may deny it or have it asked about; only what is certain allows it: the command of its input, or the
//! paths of its input and changes, never a title.

use std::path::{Path, PathBuf};

use super::{note_decision, policy};
use crate::core::lifecycle::{approve_all, call};
use crate::core::session::access;
use crate::core::state::changes::plain;
use crate::core::state::lookup;
use crate::core::{
    ApproveAll, Cx, Decision, ItemBody, OpenRequest, OpenRequestKind, Session, State, ToolCall,
};
use crate::model::{
    Access, ConnId, Decider, PermissionKind, PermissionRequest, Policy, RequestId, Response, Risk,
    RuleAction, RuleContext, Rules, SessionKey, Severity, Subject, ToolKind, approved_lines,
    is_shown_in_full, risks_of, suggestions,
};

/// What a call does: the requests that it consists of, and whether these are certain and all.
fn subjects_of(folder: &Path, call: &ToolCall) -> (Vec<Asked>, bool) {
    let input = &call.input;
    let cwd = plain(&input.cwd.as_ref().map_or_else(|| folder.to_owned(), |cwd| folder.join(cwd)));
    let mut subjects = Vec::new();
    let lines = match &input.command {
        Some(command) => vec![command.clone()],
        None => approved_lines(call.kind, &call.title, &call.content, input),
    };
    let has_commands = !lines.is_empty();
    subjects.extend(lines.into_iter().map(|line| Asked::Run { line, cwd: cwd.clone() }));
    let changes = matches!(call.kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move);
    let written: Vec<PathBuf> = call.reported_diffs().map(|diff| plain(&folder.join(&diff.path))).collect();
    let named = access::named_paths(folder, call);
    let has_paths = !written.is_empty() || input.path.is_some();
    subjects.extend(written.into_iter().map(Asked::Write));
    if changes {
        subjects.extend(named.into_iter().map(Asked::Write));
    } else if !has_commands {
        subjects.extend(named.into_iter().map(Asked::Read));
    }
    subjects.extend(input.url.clone().map(Asked::Fetch));
    let tool = call.name.as_deref().unwrap_or(&call.title).strip_prefix("mcp__");
    subjects.extend(
        tool.and_then(|tool| tool.split_once("__"))
            .map(|(server, tool)| Asked::Mcp(format!("{server}/{tool}"))),
    );
    let sets_variables = call.raw_input.as_ref().is_some_and(|raw| raw.0.contains("\"env\""));
    let is_certain = match call.kind {
        ToolKind::Execute => {
            input.command.as_deref().is_some_and(is_shown_in_full) && subjects.len() == 1 && !sets_variables
        }
        ToolKind::Edit => has_paths && !has_commands && input.url.is_none(),
        ToolKind::Read => input.path.is_some() && !has_commands && input.url.is_none(),
        ToolKind::Fetch => subjects.len() == 1 && input.url.is_some(),
        _ => false,
    };
    (subjects, is_certain)
}

enum Asked {
    Run { line: String, cwd: PathBuf },
    Read(PathBuf),
    Write(PathBuf),
    Fetch(String),
    Mcp(String),
}

impl Asked {
    /// Its file, or the folder in which it runs.
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Run { cwd: path, .. } | Self::Read(path) | Self::Write(path) => Some(path),
            Self::Fetch(_) | Self::Mcp(_) => None,
        }
    }

    fn subject(&self) -> Subject<'_> {
        match self {
            Self::Run { line, cwd } => Subject::Run { line, cwd },
            Self::Read(path) => Subject::Read(path),
            Self::Write(path) => Subject::Write(path),
            Self::Fetch(url) => Subject::Fetch(url),
            Self::Mcp(tool) => Subject::Mcp(tool),
        }
    }
}

/// Sets of rules that may allow a call, from narrow to wide.
pub(in crate::core) fn suggested_for(
    session: &Session,
    call: &ToolCall,
    context: &RuleContext,
) -> Vec<Vec<String>> {
    let (asked, _) = subjects_of(session.workspace.folder(), call);
    let of_each: Vec<_> = asked.iter().map(|asked| suggestions(asked.subject(), context)).collect();
    let levels = of_each.iter().map(Vec::len).max().unwrap_or(0);
    let at = |level: usize| {
        let sets = of_each.iter().map(|sets| sets.get(level).or(sets.last()).cloned());
        let mut rules: Vec<String> = sets.collect::<Option<Vec<_>>>()?.concat();
        rules.dedup();
        Some(rules)
    };
    (0..levels).filter_map(at).collect()
}

/// The risks of the commands of an open request.
pub fn risks(state: &State, open: &OpenRequest, session: &Session) -> Vec<Risk> {
    let context = policy::context_of(state, open.conn, session.key);
    let lines: Vec<(String, PathBuf)> = match &open.kind {
        OpenRequestKind::Permission { tool, .. } => {
            let asked = session.tool_call(*tool).map(|call| subjects_of(session.workspace.folder(), call).0);
            let run = |asked| match asked {
                Asked::Run { line, cwd } => Some((line, cwd)),
                _ => None,
            };
            asked.into_iter().flatten().filter_map(run).collect()
        }
        OpenRequestKind::Access(request) => match &request.access {
            Access::Run(command) => vec![(command.line.clone(), command.cwd.clone())],
            _ => Vec::new(),
        },
        OpenRequestKind::Elicitation(_) => Vec::new(),
    };
    // The last line is the one inside `sh -c`.
    lines.last().map(|(line, cwd)| risks_of(line, cwd, &context)).unwrap_or_default()
}

/// The decision about a call, with the rule.
fn decide(state: &State, conn: ConnId, key: SessionKey, call: &ToolCall) -> Option<(RuleAction, String)> {
    let session = state.sessions.get(&key)?;
    let policy = policy::of(state, conn, key);
    let is_plain = policy::protected_files(state, session, call).is_empty();
    let found = ruling_of(session, call, is_plain, (&policy.user_rules, &policy.context));
    let root = state.sessions.get(&lookup::root_of(state, key))?;
    let scope = root.permissions.approves_all(conn).filter(|_| found.is_none());
    let Some(scope) = scope else { return found };
    let (asked, _) = subjects_of(session.workspace.folder(), call);
    let is_inside = asked.iter().filter_map(Asked::path).all(|path| policy::is_inside(session, path));
    let is_approved = call.kind != ToolKind::SwitchMode && is_inside && is_plain;
    let rule = match scope {
        ApproveAll::Sandbox if !is_confined(call.kind, &asked, &policy) => return None,
        ApproveAll::Sandbox => approve_all::RULE_IN_SANDBOX,
        ApproveAll::Turn | ApproveAll::Session => approve_all::RULE,
    };
    is_approved.then(|| (RuleAction::Allow, rule.to_owned()))
}

/// Whether the sandbox of the agent confines all that a call in the session's folders does, and no rule may be against it.
fn is_confined(kind: ToolKind, asked: &[Asked], policy: &Policy) -> bool {
    let is_known = match kind {
        ToolKind::Execute => asked.iter().any(|asked| matches!(asked, Asked::Run { .. })),
        ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move => !asked.is_empty(),
        _ => false,
    };
    let judge = |asked: &Asked| policy.user_rules.judge(asked.subject(), &policy.context);
    let is_free = |asked| judge(asked).is_none_or(|ruling| !ruling.is_doubtful);
    is_known && asked.iter().all(|asked| asked.path().is_some() && is_free(asked))
}

/// The decision of rules about a call of a session, with the rule. `is_plain`: it changes no protected file.
pub(in crate::core) fn ruling_of(
    session: &Session,
    call: &ToolCall,
    is_plain: bool,
    (rules, context): (&Rules, &RuleContext),
) -> Option<(RuleAction, String)> {
    let (asked, is_certain) = subjects_of(session.workspace.folder(), call);
    let subjects: Vec<Subject<'_>> = asked.iter().map(Asked::subject).chain([Subject::Other]).collect();
    let rulings: Vec<_> = subjects.iter().map(|subject| rules.judge(*subject, context)).collect();
    for action in [RuleAction::Deny, RuleAction::Ask] {
        let found =
            rulings.iter().flatten().filter(|ruling| ruling.action == action).find_map(|it| it.rule.clone());
        if let Some(rule) = found {
            return Some((action, rule));
        }
    }
    let is_inside = asked.iter().all(|asked| match asked {
        Asked::Run { cwd, .. } => policy::is_inside(session, cwd),
        _ => true,
    });
    let (_, of_call) = rulings.split_last()?;
    let allowed = of_call.iter().map(|ruling| ruling.as_ref().filter(|it| it.action == RuleAction::Allow));
    let rules: Vec<String> = allowed.map(|it| it?.rule.clone()).collect::<Option<_>>()?;
    let rule = rules.into_iter().next().filter(|_| is_certain && is_inside && is_plain)?;
    Some((RuleAction::Allow, rule))
}

/// Answers a permission request as a rule decides. If one asks, it is shown with the request. Whether it was answered.
pub(super) fn answer_by_rule(
    state: &mut State,
    (conn, request_id): (ConnId, RequestId),
    (asking, key): (SessionKey, SessionKey),
    kind: &OpenRequestKind,
    cx: &mut Cx,
) -> bool {
    let OpenRequestKind::Permission { request, tool } = kind else { return false };
    let call = state.sessions.get(&key).and_then(|session| session.tool_call(*tool)).cloned();
    let Some((action, rule)) = call.and_then(|call| decide(state, conn, asking, &call)) else { return false };
    let title =
        format!("{} by the rule `{rule}`", if action == RuleAction::Deny { "Rejected" } else { "Allowed" });
    let position = match action {
        RuleAction::Deny => request.refusal(),
        RuleAction::Allow => match position_to_allow(request) {
            Some(position) => Some(position),
            None => return false,
        },
        RuleAction::Ask => {
            if let Some(session) = state.sessions.get_mut(&key) {
                session.transcript.edit(*tool, |item| {
                    if let ItemBody::Tool(call) = &mut item.body {
                        call.asking_rule = Some(rule);
                    }
                });
            }
            return false;
        }
    };
    let chosen = position.and_then(|position| request.options.get(position));
    let (decision, reply) = match chosen {
        Some(option) => (
            Decision::Chosen {
                name: option.name.clone(),
                kind: Some(option.kind),
                is_allow: option.kind.is_allow(),
                rule: Some(rule),
            },
            Response::Selected(option.id.clone()),
        ),
        None => (Decision::Cancelled(Decider::Policy), Response::PermissionCancelled),
    };
    note_decision(state, key, kind, &decision, cx.now);
    if action == RuleAction::Deny {
        call::notice(state, key, Severity::Info, title, None);
    }
    call::respond(state, conn, request_id, reply, cx);
    true
}

/// The agent's option that allows only this request.
pub(in crate::core) fn position_to_allow(request: &PermissionRequest) -> Option<usize> {
    let once =
        |(_, option): &(usize, &crate::model::PermissionOption)| option.kind == PermissionKind::AllowOnce;
    let mut all = request.options.iter().enumerate().filter(once);
    all.find(|(position, _)| !request.is_ambiguous(*position)).map(|(position, _)| position)
}
