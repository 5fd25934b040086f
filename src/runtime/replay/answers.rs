//! Responses of parlor in a log: decisions of the user, files and commands.

use std::time::Instant;

use super::{Job, Replay};
use crate::core::{self, AccessChoice, OpenRequest, OpenRequestKind, QuestionId, UserAnswer};
use crate::model::{
    Access, AllowedBy, ExitInfo, FileOp, PermissionOption, RequestId, Response, ServedFile, ServiceEvent,
    TerminalId, TerminalJob, WriteChange, shell_line,
};

impl Replay {
    /// Responds to a request of the agent as the log does.
    pub(super) fn answer(&mut self, request_id: RequestId, answer: Response, now: Instant) {
        let open = self.app.state.open_request(request_id).map(|(_, open)| open.clone());
        if let Some(open) = open {
            self.decide(&open, &answer, now);
        }
        if let Response::TerminalExit(exit) = &answer {
            let mut waits = self.app.state.sessions.values().flat_map(|session| &session.terminal_waits);
            let terminal =
                waits.find(|(_, own, _)| *own == request_id).map(|(_, _, terminal)| terminal.clone());
            if let Some(terminal) = terminal {
                self.end_terminal(terminal, exit.clone(), now);
            }
        }
        match self.jobs.remove(&request_id) {
            Some(Job::File(job)) => {
                let path = job.path;
                let served = match &job.op {
                    FileOp::Write { content } => Some(Box::new(ServedFile {
                        access: Access::Write { path },
                        allowed: job.allowed.unwrap_or_else(|| AllowedBy::InsideRoots.into()),
                        change: Some(WriteChange {
                            size_bytes: content.len() as u64,
                            ..WriteChange::default()
                        }),
                        held: None,
                    })),
                    FileOp::Read { .. } => None,
                };
                let result = match answer {
                    Response::FileContent(text) => Ok(Some(text)),
                    Response::Done => Ok(None),
                    Response::Error(error) => Err(error),
                    _ => return,
                };
                self.serve(ServiceEvent::FileDone { conn: job.conn, request_id, result, served }, now);
            }
            Some(Job::Terminal(TerminalJob::Create { conn, session, command, .. })) => {
                let result = match answer {
                    Response::TerminalCreated(id) => Ok(id),
                    Response::Error(error) => Err(error),
                    _ => return,
                };
                let command = shell_line(&command);
                self.serve(ServiceEvent::TerminalStarted { conn, request_id, session, command, result }, now);
            }
            Some(Job::Terminal(TerminalJob::Output { conn, terminal, .. })) => {
                let result = match answer {
                    Response::TerminalOutput { output, is_truncated, exit } => {
                        self.show_output(&terminal, &output, now);
                        if let Some(exit) = &exit {
                            self.end_terminal(terminal, exit.clone(), now);
                        }
                        Ok((output, is_truncated, exit))
                    }
                    Response::Error(error) => Err(error),
                    _ => return,
                };
                self.serve(ServiceEvent::TerminalRead { conn, request_id, result }, now);
            }
            Some(Job::Terminal(_)) | None => {}
        }
    }

    fn decide(&mut self, open: &OpenRequest, answer: &Response, now: Instant) {
        let by_position = |position: Option<usize>| position.map_or(UserAnswer::Dismiss, UserAnswer::Option);
        let answer = match (&open.kind, answer) {
            (OpenRequestKind::Permission { .. }, Response::Error(_)) => return,
            (OpenRequestKind::Permission { request, .. }, answer) => {
                let is_it =
                    |option: &PermissionOption| matches!(answer, Response::Selected(id) if *id == option.id);
                by_position(request.options.iter().position(is_it))
            }
            // parlor's own dialog about a command: it was allowed if the command was started.
            (OpenRequestKind::Access(access), answer) => {
                let is_refused = matches!(answer, Response::Error(_));
                let choice = if is_refused { AccessChoice::Refuse } else { AccessChoice::Once };
                by_position(access.choices().iter().position(|known| *known == choice))
            }
            (OpenRequestKind::Elicitation(_), Response::ElicitationAccepted(Some(values))) => {
                UserAnswer::Values(values.clone())
            }
            (OpenRequestKind::Elicitation(_), Response::ElicitationAccepted(None)) => UserAnswer::Option(0),
            (OpenRequestKind::Elicitation(_), Response::ElicitationDeclined) => UserAnswer::Decline,
            (OpenRequestKind::Elicitation(_), _) => UserAnswer::Dismiss,
        };
        self.apply(core::Event::Answer(QuestionId::Agent(open.request_id), answer), now);
        self.deliver(now);
    }

    /// Appends the output of a command that the agent received.
    fn show_output(&mut self, terminal: &TerminalId, output: &str, now: Instant) {
        let mut all = self.app.state.sessions.values();
        let known =
            all.find_map(|session| session.terminals.get(terminal)).map_or(0, |view| view.output.len());
        // The agent received lines without the returns of the terminal.
        let output = output.replace("\r\n", "\n").replace('\n', "\r\n");
        let more = output.as_bytes().get(known..).unwrap_or_default().to_vec();
        if !more.is_empty() {
            self.serve(ServiceEvent::TerminalOutput { terminal: terminal.clone(), bytes: more }, now);
        }
    }

    fn end_terminal(&mut self, terminal: TerminalId, exit: ExitInfo, now: Instant) {
        self.serve(ServiceEvent::TerminalEnded { terminal, exit }, now);
    }

    fn serve(&mut self, event: ServiceEvent, now: Instant) {
        self.apply(core::Event::Service(event), now);
        self.deliver(now);
    }
}
