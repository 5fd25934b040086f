//! Sessions and effects as readable text.

use std::fmt::Write as _;

use crate::core::*;
use crate::model::snapshot::SnapshotTask;
use crate::model::*;

/// The session as text, one line per item.
pub fn digest(session: &Session) -> String {
    let turn = match session.turn {
        Turn::Idle => "idle",
        Turn::Running { .. } => "running",
        Turn::Cancelling { is_overdue: false, .. } => "cancelling",
        Turn::Cancelling { is_overdue: true, .. } => "overdue",
    };
    let mut out = format!("{} · {turn}", phase_word(&session.phase));
    if !session.requests.is_empty() {
        let _ = write!(out, " · {} asks", session.requests.len());
    }
    let queue: Vec<&str> = session.outbox.queue().map(|prompt| prompt.text.as_str()).collect();
    if !queue.is_empty() {
        let _ = write!(out, " · queue {queue:?}");
    }
    for item in session.transcript.items() {
        let _ = write!(out, "\n{}", item_line(item));
    }
    out
}

fn phase_word(phase: &SessionPhase) -> &'static str {
    match phase {
        SessionPhase::NoAgent => "no agent",
        SessionPhase::Starting { .. } => "starting",
        SessionPhase::Opening { is_replay: false, .. } => "opening",
        SessionPhase::Opening { is_replay: true, .. } => "loading",
        SessionPhase::NeedsSignIn => "needs sign-in",
        SessionPhase::Ready => "ready",
        SessionPhase::Failed(_) => "failed",
        SessionPhase::Ended { .. } => "ended",
    }
}

fn item_line(item: &Item) -> String {
    let hidden = if item.is_hidden() { " (hidden)" } else { "" };
    match &item.body {
        ItemBody::Message(message) => {
            let who = match message.role {
                Role::User => "user",
                Role::Agent => "agent",
                Role::Thought => "thought",
                Role::SubagentMessage => "letter",
            };
            let parts: Vec<String> = message
                .parts
                .iter()
                .map(|part| match part {
                    MessagePart::Text(text) => format!("{text:?}"),
                    MessagePart::Block(_) => "<block>".into(),
                })
                .collect();
            let local = if message.is_local { "*" } else { "" };
            let open = if message.is_open { " …" } else { "" };
            format!("{who}{local} {}{open}", parts.join(" "))
        }
        ItemBody::Tool(tool) => {
            let decision = match &tool.decision {
                Some(Decision::Chosen { name, is_allow, .. }) => {
                    format!(" [{name}: {}]", if *is_allow { "allowed" } else { "refused" })
                }
                Some(Decision::Cancelled(_)) => " [cancelled]".into(),
                None => String::new(),
            };
            let assumed = if tool.is_status_assumed { "?" } else { "" };
            format!("tool {} {:?}{assumed} {:?}{decision}{hidden}", tool.id, tool.status, tool.title)
        }
        ItemBody::TurnEnd(TurnEnd::Stopped { reason, .. }) => format!("end {reason:?}"),
        ItemBody::TurnEnd(TurnEnd::Failed { error, .. }) => format!("end failed: {error}"),
        ItemBody::TurnEnd(TurnEnd::AgentDied { cause, stderr_tail }) => {
            format!("end died: {cause} {stderr_tail:?}")
        }
        ItemBody::Notice { severity, title, .. } => {
            let times = if item.times > 1 { format!(" ({} times)", item.times) } else { String::new() };
            format!("notice {severity:?}: {title}{times}")
        }
        ItemBody::Compaction { id, status, summary, .. } => format!("compaction {id} {status} {summary:?}"),
        ItemBody::Subagent { session, key, title, state, .. } => {
            format!("subagent {session} key {:?} {title:?} {state:?}", key.map(|key| key.0))
        }
        ItemBody::Answered { question, answer, .. } => format!("answered {question:?} {answer:?}"),
        ItemBody::Raw { name, .. } => format!("raw {name}"),
    }
}

pub fn effect_line(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::Connect { conn, delay, .. } => format!("connect {conn} after {} ms", delay.as_millis()),
        Effect::Disconnect { conn, force } => {
            format!("disconnect {conn}{}", if *force { " now" } else { "" })
        }
        Effect::Send(_, AgentCommand::Call(_, call)) => format!("call {}", call_text(call)),
        Effect::Send(_, AgentCommand::Cancel(id)) => format!("cancel {id}"),
        Effect::Send(_, AgentCommand::CancelCall(_)) => "cancel call".into(),
        Effect::Send(_, AgentCommand::Respond(request_id, answer)) => {
            format!("answer {request_id}: {}", answer_text(answer))
        }
        Effect::StopFiles { session, keeps_writes } => {
            format!("stop {} of {session}", if *keeps_writes { "reads" } else { "files" })
        }
        Effect::File(job) => format!("file {} {}", job.request_id, job.path.display()),
        Effect::Terminal(job) => format!("terminal {}", job_text(job)),
        Effect::Snapshot(job) => match &job.task {
            SnapshotTask::Capture { moment, .. } => format!("capture {moment:?}"),
            SnapshotTask::Plan { spans, .. } => format!("plan {}", spans.len()),
            SnapshotTask::Restore(_, parts) => {
                format!("restore {:?}", parts.iter().map(|part| &part.path).collect::<Vec<_>>())
            }
            SnapshotTask::Review { spans, accepted, .. } => {
                format!("review {} without {:?}", spans.len(), accepted.keys())
            }
            SnapshotTask::Apply { has_span, .. } => format!("apply, captured: {has_span}"),
            SnapshotTask::Accept { part, turn, .. } => {
                format!("accept {:?} {:?} through {turn}", part.path, part.hunks)
            }
        },
        Effect::OpenUrl(url) => format!("url {url}"),
        Effect::RunLogin { spec, .. } => format!("login {}", spec.command_line()),
        Effect::Quit => "quit".into(),
        Effect::View(ViewCommand::SetDraft(text) | ViewCommand::ShowDraft(_, text)) => {
            format!("draft {text:?}")
        }
        _ => return None,
    })
}

fn job_text(job: &TerminalJob) -> String {
    match job {
        TerminalJob::Create { request_id, command, .. } => {
            let cwd = command.cwd.clone().unwrap_or_default();
            format!("create {request_id} {:?} in {}", command.command, cwd.display())
        }
        TerminalJob::Output { request_id, terminal, .. } => format!("read {request_id} {terminal}"),
        TerminalJob::Kill(id) => format!("kill {id}"),
        TerminalJob::Release(id) => format!("release {id}"),
        TerminalJob::ReleaseAll(conn) => format!("release all of {conn}"),
        TerminalJob::Shell { number, line, folder, .. } => {
            format!("shell {number} {line:?} in {}", folder.display())
        }
        TerminalJob::Input(id, TerminalInput::Bytes(bytes)) => {
            format!("type {:?} into {id}", String::from_utf8_lossy(bytes))
        }
        TerminalJob::Input(id, _) => format!("type into {id}"),
        TerminalJob::Resize(id, size) => format!("resize {id} to {}x{}", size.cols, size.rows),
        TerminalJob::CloseShell(key) => format!("close shell {key}"),
    }
}

fn call_text(call: &Call) -> String {
    match call {
        Call::Authenticate { method_id, api_key } => {
            let key = api_key.as_ref().map(|key| format!(" key {}", key.reveal()));
            format!("authenticate {method_id}{}", key.unwrap_or_default())
        }
        Call::LogOut => "logout".into(),
        Call::NewSession(_) => "new".into(),
        Call::LoadSession(id, _) => format!("load {id}"),
        Call::ResumeSession(id, _) => format!("resume {id}"),
        Call::ForkSession(id, ..) => format!("fork {id}"),
        Call::ListSessions { cursor, .. } => format!("list {cursor:?}"),
        Call::DeleteSession(id) => format!("delete {id}"),
        Call::CloseSession(id) => format!("close {id}"),
        Call::Steer(_, blocks) => format!("steer {}", blocks_text(blocks)),
        Call::SetTitle(_, title) => format!("title {title:?}"),
        Call::Prompt(_, blocks) => format!("prompt {}", blocks_text(blocks)),
        Call::SetMode(_, mode) => format!("mode {mode}"),
        Call::SetOption(_, option, value) => format!("option {option} {value:?}"),
        Call::SetModel(_, model) => format!("model {model}"),
        Call::StopTool(_, tool) => format!("stop tool {tool}"),
        Call::StopTerminal(_, terminal) => format!("stop terminal {terminal}"),
        Call::Archive(id, is_away) => format!("archive {id} {is_away}"),
        Call::SessionStatus(id) => format!("status {id}"),
        Call::AuthStatus => "auth status".into(),
        Call::ListProviders => "providers".into(),
        Call::SetProvider(request) => format!("provider {}", request.id),
    }
}

fn answer_text(answer: &Response) -> String {
    match answer {
        Response::Selected(id) => format!("selected {id}"),
        Response::PermissionCancelled => "permission cancelled".into(),
        Response::FileContent(text) => format!("content {text:?}"),
        Response::Done => "done".into(),
        Response::TerminalCreated(id) => format!("created {id}"),
        Response::TerminalOutput { output, is_truncated, .. } => format!("output {output:?} {is_truncated}"),
        Response::TerminalExit(exit) => format!("exit {:?} {:?}", exit.code, exit.signal),
        Response::ElicitationAccepted(_) => "accepted".into(),
        Response::ElicitationDeclined => "declined".into(),
        Response::ElicitationCancelled => "elicitation cancelled".into(),
        Response::Error(error) => format!("error {}", error.code),
    }
}

fn blocks_text(blocks: &[ContentBlock]) -> String {
    match blocks {
        [ContentBlock::Text(text)] => format!("{text:?}"),
        other => format!("{other:?}"),
    }
}
