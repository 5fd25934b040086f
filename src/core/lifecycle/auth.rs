//! Signing in and out.
//!
//! Runs sign-in methods, and retries the failed call afterwards. A method of kind `terminal` is a command of the agent,
//! run in the foreground; it is never passed to `authenticate`. Variables are set by restarting the agent. Source: ACP
//! v1 authentication.
//! Invariant: a command of a method runs only after the user has seen it completely and confirmed it; its program is
//! the one of the agent's configuration.

use crate::core::UiRequest;
use std::time::Instant;

use crate::escape::visible;
use crate::model::{
    Access, AccessOutcome, AccessRecord, AgentCommand, AgentInfo, AgentSpec, AllowedBy, AuthKind, AuthMethod,
    Call, CallError, ConnId, CopyContent, CopyJob, Facts, Purpose, Reply, Secret, SessionKey, Severity,
    SignInCommand, SignInRefusal, Verdict, check_variables, decide,
};

use super::{call, conn, open, policy, tabs, turn};
use crate::core::session::access;
use crate::core::state::url::inspect_url;
use crate::core::state::{lookup, texts};
use crate::core::{ConnPhase, Consequence, Cx, Effect, Question, SessionPhase, SignInTry, State};

const SIGN_IN_FAILED: &str = "Sign-in failed.";

/// Number of lines of a sign-in that are kept.
const MAX_PRINTED: usize = 8;

/// Number of pages that a sign-in may ask to open.
const MAX_PAGES: usize = 4;

/// The agent requires a sign-in before it continues with this session.
pub(crate) fn need_sign_in(state: &mut State, conn: ConnId, key: SessionKey, text: &str, cx: &mut Cx) {
    let is_known = state
        .sessions
        .values()
        .any(|session| session.conn == Some(conn) && session.phase == SessionPhase::NeedsSignIn);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.phase = SessionPhase::NeedsSignIn;
    session.start.require_sign_in(cx.now);
    let has_prompt = session.outbox.unsent().is_some() || session.outbox.queue_len() > 0;
    if running_sign_in(state, conn).is_some() {
        return;
    }
    let Some(open) = state.conns.get_mut(&conn) else { return };
    let methods = open.info.as_ref().map(|info| info.auth_methods.as_slice()).unwrap_or_default();
    let attempt = open.sign_in.take();
    if let Some(SignInTry { to_authenticate: Some(id), .. }) = &attempt
        && let Some(method) = methods.iter().find(|method| method.id == *id).cloned()
    {
        // The agent read its variables at its start, but still wants to be told which method applies.
        authenticate(state, conn, &method, None, cx);
        return;
    }
    let has_methods = !methods.is_empty();
    let advice = match (has_methods, has_prompt) {
        (false, _) => {
            "The agent has no sign-in method for this client. Sign in with its own command, then restart it."
        }
        (true, true) => "Select a sign-in method. Your prompt is sent after sign-in.",
        (true, false) => "Select a sign-in method.",
    };
    let (severity, title, text) = match attempt {
        Some(attempt) => {
            let text = format!(
                "The agent still requires sign-in after \"{}\". Check the key or the account. {text}",
                attempt.name
            );
            (Severity::Error, SIGN_IN_FAILED, text)
        }
        None => (Severity::Warning, texts::SIGN_IN_REQUIRED, text.to_owned()),
    };
    call::notice(state, key, severity, title, Some(format!("{text}\n{advice}")));
    // One picker for all sessions of the connection.
    if has_methods && !is_known {
        cx.requests.push(UiRequest::SignIn { conn, session: Some(key) });
        tabs::announce(state, key, "sign-in required.", cx);
    }
}

/// Signs in with a method of the agent; for `env_var` methods `vars` holds the values.
pub fn sign_in(state: &mut State, conn: ConnId, method_id: &str, vars: Vec<(String, String)>, cx: &mut Cx) {
    let Some(open) = state.conns.get(&conn).filter(|conn| conn.phase == ConnPhase::Ready) else {
        call::flash(state, crate::core::state::texts::NOT_READY, cx);
        return;
    };
    let method = open
        .info
        .as_ref()
        .and_then(|info| info.auth_methods.iter().find(|method| method.id == method_id))
        .cloned();
    let spec = open.spec.clone();
    let Some(method) = method else {
        call::flash(state, "The agent does not support this sign-in method.", cx);
        return;
    };
    match method.kind {
        AuthKind::Agent => {
            authenticate(state, conn, &method, None, cx);
            call::flash(state, "Signing in. A page may open in your browser.", cx);
        }
        AuthKind::ApiKey => {
            let key = vars.into_iter().next().map(|(_, key)| Secret::new(key));
            authenticate(state, conn, &method, key, cx);
        }
        AuthKind::Terminal(command) => confirm(state, conn, &spec, &command, cx),
        AuthKind::EnvVar { .. } => {
            if let Err(refusal) = refuse_variables(&spec, vars.iter().map(|(name, _)| name.as_str())) {
                report_refusal(state, conn, &refusal, None, cx);
                return;
            }
            let attempt =
                SignInTry { name: method.name, to_authenticate: Some(method.id), ..SignInTry::default() };
            restart(state, conn, with_env(spec, vars), attempt, cx);
        }
    }
}

/// Calls `authenticate` with a method of the agent.
fn authenticate(state: &mut State, conn: ConnId, method: &AuthMethod, api_key: Option<Secret>, cx: &mut Cx) {
    if let Some(open) = state.conns.get_mut(&conn) {
        open.sign_in = Some(SignInTry { name: method.name.clone(), ..SignInTry::default() });
    }
    let request = Call::Authenticate { method_id: method.id.clone(), api_key };
    call::call(state, conn, Purpose::Authenticate, request, cx);
}

/// Starts the agent again after a sign-in that it reads at its start.
fn restart(state: &mut State, conn: ConnId, spec: AgentSpec, attempt: SignInTry, cx: &mut Cx) {
    let fresh = conn::reconnect(state, conn, spec, cx);
    if let Some(open) = fresh.and_then(|fresh| state.conns.get_mut(&fresh)) {
        open.sign_in = Some(attempt);
    }
}

/// Why the variables of a method are not requested from the user; `None`: they may be set.
pub fn variables_refused(state: &State, conn: ConnId, method: &AuthMethod) -> Option<SignInRefusal> {
    let AuthKind::EnvVar { vars, .. } = &method.kind else { return None };
    let spec = &state.conns.get(&conn)?.spec;
    refuse_variables(spec, vars.iter().map(|var| var.name.as_str())).err()
}

fn refuse_variables<'a>(
    spec: &AgentSpec,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<(), SignInRefusal> {
    // Variables cannot be set for an agent that parlor does not start.
    if spec.remote.is_some() {
        return Err(SignInRefusal::Remote);
    }
    check_variables(names)
}

/// Reports why a sign-in is not executed, with the command to run manually.
pub(crate) fn report_refusal(
    state: &mut State,
    conn: ConnId,
    refusal: &SignInRefusal,
    by_hand: Option<String>,
    cx: &mut Cx,
) {
    let reason = refusal.reason();
    let detail = by_hand.map(|line| {
        format!(
            "{reason}\nThe agent requested this command:\n{line}\nRun it yourself only if you trust \
            it."
        )
    });
    for key in lookup::sessions_of(state, conn, false) {
        call::notice(
            state,
            key,
            Severity::Warning,
            "The sign-in command was not run.",
            Some(detail.clone().unwrap_or_else(|| reason.clone())),
        );
    }
    call::flash(state, reason, cx);
}

/// Shows the complete command of a sign-in, and asks whether to run it.
fn confirm(state: &mut State, conn: ConnId, spec: &AgentSpec, command: &SignInCommand, cx: &mut Cx) {
    let runs = match command.spec_for(spec) {
        Ok(runs) => runs,
        Err(refusal) => {
            let by_hand = (refusal != SignInRefusal::Remote).then(|| command.as_text(spec));
            report_refusal(state, conn, &refusal, by_hand, cx);
            return;
        }
    };
    let cwd = runs.cwd.clone().or_else(|| folder_of(state, conn));
    let runs = AgentSpec { cwd, ..runs };
    let first = lookup::sessions_of(state, conn, false).first().copied();
    // The local policy does not apply to commands on an SSH host; there the user is always asked.
    if let Some(key) = first.filter(|_| runs.ssh.is_none())
        && let Verdict::Refuse(by) = decide(
            &policy::of(state, conn, key),
            &Access::SignIn { line: runs.command_line() },
            &Facts::default(),
        )
    {
        call::flash(state, by.description(), cx);
        return;
    }
    let mut body = vec![
        "The agent signs in with this command. It runs with your permissions in this terminal:".to_owned(),
    ];
    let parts = std::iter::once(&runs.command).chain(&runs.args).map(String::as_str);
    body.push(visible(&shell_words::join(parts)).into_owned());
    if let Some(ssh) = &runs.ssh {
        body.push(format!("Host: {} (SSH)", visible(&ssh.host)));
    }
    if let Some(folder) = &runs.cwd {
        body.push(format!("Folder: {}", visible(&folder.to_string_lossy())));
    }
    if !command.env.is_empty() {
        body.push("Environment variables set by the agent:".to_owned());
        let lines = command.env.iter().map(|(name, value)| visible(&format!("{name}={value}")).into_owned());
        body.extend(lines);
    }
    let run = Consequence::RunLogin(conn, Box::new(runs), command.env.clone());
    let answers = [("Do not run", Consequence::Close), ("Run", run)];
    let question = Question::new("Run this command to sign in?", body, answers).asked_at(cx.now);
    state.ask(first.unwrap_or(state.active), question);
}

/// Runs a sign-in command that the user has seen and allowed, if its agent still exists.
pub fn run_login(state: &mut State, conn: ConnId, spec: &AgentSpec, env: &[(String, String)], cx: &mut Cx) {
    if let Some(open) = state.conns.get_mut(&conn).filter(|conn| conn.phase == ConnPhase::Ready) {
        open.login_line = Some(spec.command_line());
        cx.effects.push(Effect::RunLogin { conn, spec: spec.clone(), env: env.to_vec() });
    } else {
        call::flash(state, crate::core::state::texts::NOT_READY, cx);
    }
}

/// The agent has printed lines during `authenticate`, such as the address of a page.
pub(in crate::core) fn on_output(state: &mut State, conn: ConnId, lines: &[String], now: Instant) {
    if running_sign_in(state, conn).is_none() {
        return;
    }
    let Some(attempt) = state.conns.get_mut(&conn).and_then(|open| open.sign_in.as_mut()) else { return };
    let is_first = |url: &&str, printed: &[String]| !printed.iter().any(|line| line.contains(*url));
    let mut page = None;
    for line in lines.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty()) {
        page = page.or(address_in(line).filter(|url| is_first(url, &attempt.printed)));
        attempt.printed.push(line.to_owned());
    }
    let surplus = attempt.printed.len().saturating_sub(MAX_PRINTED);
    attempt.printed.drain(..surplus);
    let printed = attempt.printed.clone();
    let page = page.filter(|_| attempt.page_count < MAX_PAGES);
    attempt.page_count += usize::from(page.is_some());
    if let (Some(url), Some(session)) = (page, lookup::sessions_of(state, conn, false).first().copied()) {
        let url = url.to_owned();
        ask_for_page(state, session, url, &printed, now);
    }
}

/// Shows a page that an agent names while it signs in.
fn ask_for_page(state: &mut State, session: SessionKey, url: String, printed: &[String], now: Instant) {
    let facts = inspect_url(&url);
    let shown = |line: &str| visible(line).into_owned();
    let mut body = vec!["The agent has printed this address while it signs in:".to_owned(), shown(&url)];
    body.extend(facts.warnings);
    body.extend(printed.iter().map(|line| shown(line)).filter(|line| *line != url));
    let copy = CopyJob { what: "the address".to_owned(), content: CopyContent::Text(url.clone()) };
    let open = ("Open in browser", Consequence::effect(Effect::OpenUrl(url)));
    let others =
        [("Copy the address", Consequence::effect(Effect::Copy(copy))), ("Not now", Consequence::Close)];
    let answers = facts.can_open.then_some(open).into_iter().chain(others);
    let question = Question::new("Open this page to sign in?", body, answers).marking_last().asked_at(now);
    state.ask(session, question);
}

/// The first web address in a line.
fn address_in(line: &str) -> Option<&str> {
    let start = ["https://", "http://"].iter().filter_map(|scheme| line.find(scheme)).min()?;
    let rest = line.get(start..)?;
    let end = rest.find(|sign: char| sign.is_whitespace() || sign.is_control() || "\"'<>`".contains(sign));
    rest.get(..end.unwrap_or(rest.len())).map(|url| url.trim_end_matches(['.', ',', ')']))
}

/// The call number of a pending `authenticate`; it may take minutes.
pub fn running_sign_in(state: &State, conn: ConnId) -> Option<u64> {
    let calls = &state.conns.get(&conn)?.open_calls;
    calls.iter().find(|(_, tag)| tag.purpose == Purpose::Authenticate).map(|(number, _)| *number)
}

/// Cancels a pending sign-in. Source: ACP v1, `$/cancel_request`.
pub fn cancel_sign_in(state: &mut State, conn: ConnId, cx: &mut Cx) {
    let Some(number) = running_sign_in(state, conn) else { return };
    let tag = state.conns.get_mut(&conn).and_then(|open| open.open_calls.remove(&number));
    if let Some(tag) = tag {
        cx.effects.push(Effect::Send(conn, AgentCommand::CancelCall(tag)));
        call::flash(state, "Sign-in cancelled. Select a sign-in method to try again.", cx);
    }
}

fn folder_of(state: &State, conn: ConnId) -> Option<std::path::PathBuf> {
    let key = lookup::sessions_of(state, conn, false).first().copied()?;
    state.sessions.get(&key).map(|session| session.workspace.folder().to_owned())
}

fn with_env(mut spec: AgentSpec, vars: Vec<(String, String)>) -> AgentSpec {
    for (name, value) in vars {
        spec.env.retain(|(known, _)| *known != name);
        spec.env.push((name, value));
    }
    spec
}

/// The response to `authenticate`: retries what failed without a sign-in.
pub(in crate::core) fn on_authenticated(
    state: &mut State,
    conn: ConnId,
    result: Result<Reply, CallError>,
    cx: &mut Cx,
) {
    if let Err(error) = result {
        let mut text = texts::error_text(&error);
        let open = state.conns.get(&conn);
        let printed = open.and_then(|open| open.sign_in.as_ref()).map(|attempt| attempt.printed.as_slice());
        if printed.into_iter().flatten().chain([&text]).any(|line| is_about_browser(line)) {
            text.push('\n');
            text.push_str(&without_browser(open.and_then(|open| open.info.as_ref())));
        }
        report_failure(state, conn, &text, cx);
        return;
    }
    for key in lookup::sessions_of(state, conn, false) {
        let Some(session) = state.sessions.get_mut(&key) else { continue };
        if session.phase != SessionPhase::NeedsSignIn {
            continue;
        }
        if session.outbox.unsent().is_some() && session.id.is_some() {
            session.phase = SessionPhase::Ready;
            turn::send_next(state, key, cx);
        } else {
            open::open(state, key, cx);
        }
    }
}

/// The agent's login command ended. The agent is restarted, because it reads its account at the start.
pub(crate) fn on_login_done(state: &mut State, conn: ConnId, result: Result<(), String>, cx: &mut Cx) {
    let line = state.conns.get_mut(&conn).and_then(|open| open.login_line.take());
    let first = lookup::sessions_of(state, conn, false).first().copied();
    if let (Some(line), Some(session)) = (line, first.and_then(|key| state.sessions.get_mut(&key))) {
        let outcome = AccessOutcome::Allowed(AllowedBy::You);
        let mut record = AccessRecord::new(Access::SignIn { line }, outcome);
        // The notice below has the rest.
        record.error = result.as_ref().err().and_then(|text| text.lines().next()).map(str::to_owned);
        access::add(session, record, cx.now);
    }
    match result {
        Ok(()) => {
            if let Some(spec) = state.conns.get(&conn).map(|conn| conn.spec.clone()) {
                let attempt = SignInTry { name: "the command".to_owned(), ..SignInTry::default() };
                restart(state, conn, spec, attempt, cx);
            }
        }
        Err(text) => report_failure(state, conn, &text, cx),
    }
}

/// Whether a line says that no browser could be opened.
fn is_about_browser(line: &str) -> bool {
    let line = line.to_lowercase();
    line.contains("xdg-open") || line.contains("browser")
}

/// What to do where no browser can be opened.
fn without_browser(info: Option<&AgentInfo>) -> String {
    let needs_none = |method: &&AuthMethod| {
        let is_by_code = [&method.id, &method.name].iter().any(|text| text.to_lowercase().contains("device"));
        is_by_code || !matches!(method.kind, AuthKind::Agent)
    };
    let methods = info.into_iter().flat_map(|info| &info.auth_methods);
    let names: Vec<String> =
        methods.filter(needs_none).map(|method| format!("\"{}\"", method.name)).collect();
    if names.is_empty() {
        return "This method needs a browser on this machine.".to_owned();
    }
    format!("This method needs a browser on this machine. Without one: {}.", names.join(", "))
}

fn report_failure(state: &mut State, conn: ConnId, text: &str, cx: &mut Cx) {
    if let Some(open) = state.conns.get_mut(&conn) {
        open.sign_in = None;
    }
    for key in lookup::sessions_of(state, conn, false) {
        let is_waiting =
            state.sessions.get(&key).is_some_and(|session| session.phase == SessionPhase::NeedsSignIn);
        if is_waiting || text.contains('\n') {
            let detail = format!("{text}\nTry again, or select another sign-in method.");
            call::notice(state, key, Severity::Error, SIGN_IN_FAILED, Some(detail));
        }
    }
    let first = text.lines().next().unwrap_or_default();
    call::flash(state, format!("Sign-in failed: {first}"), cx);
}

/// A session of the connection is open, or has processed a prompt: a sign-in before it has worked.
pub(in crate::core) fn on_proof(state: &mut State, conn: ConnId, cx: &mut Cx) {
    let attempt = state.conns.get_mut(&conn).and_then(|open| open.sign_in.take());
    if attempt.is_some() {
        call::flash(state, "Signed in.", cx);
    }
}

/// Signs out, if the agent supports that.
pub fn sign_out(state: &mut State, conn: ConnId, cx: &mut Cx) {
    let Some(open) = state.conns.get(&conn).filter(|conn| conn.phase == ConnPhase::Ready) else {
        call::flash(state, crate::core::state::texts::NOT_READY, cx);
        return;
    };
    if open.capabilities().can_log_out {
        call::call(state, conn, Purpose::LogOut, Call::LogOut, cx);
    } else {
        call::flash(state, "This agent does not support signing out.", cx);
    }
}

/// The response to `logout`.
pub(in crate::core) fn on_signed_out(state: &mut State, result: Result<Reply, CallError>, cx: &mut Cx) {
    match result {
        Ok(_) => call::flash(state, "Signed out. The next session requires sign-in.", cx),
        Err(error) => {
            call::flash(state, format!("Sign-out failed: {}", texts::error_text(&error)), cx);
        }
    }
}
