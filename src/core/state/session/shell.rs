//! Commands that the user runs in a session.

use std::path::PathBuf;
use std::time::Instant;

use crate::core::{Session, TerminalView, Turn};
use crate::model::{ExitInfo, ItemId, TerminalId, ToolContent};

/// The user's commands of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserShell {
    /// Running commands in the order of their start.
    pub(in crate::core) running: Vec<TerminalId>,
    /// The number of the last command of this run of parlor.
    pub(in crate::core) last_number: u32,
    /// The folder of the next command, if it is not that of the session.
    pub folder: Option<PathBuf>,
    /// The terminal that keys are typed into. Remains for a moment after the command has ended.
    pub typing: Option<TerminalId>,
    /// Whether a full-screen program got the keys when it started, or a command that reads hidden input, and returns them
    /// at the end.
    pub(in crate::core) returns_keys: bool,
}

/// The output of a command in the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownOutput<'a> {
    pub command: &'a str,
    pub cwd: Option<&'a PathBuf>,
    /// `None`: it is running.
    pub exit: Option<ExitInfo>,
    pub output: &'a [u8],
    pub is_cut: bool,
}

impl<'a> KnownOutput<'a> {
    fn of(view: &'a TerminalView) -> Self {
        Self {
            command: view.command.as_deref().unwrap_or_default(),
            cwd: view.cwd.as_ref(),
            exit: view.exit.clone(),
            output: &view.output,
            is_cut: view.dropped_bytes > 0,
        }
    }
}

impl Session {
    pub fn is_users(&self, terminal: &TerminalId) -> bool {
        self.terminals.get(terminal).is_some_and(|view| view.number.is_some())
    }

    pub fn typing(&self) -> Option<&TerminalId> {
        self.shell.typing.as_ref()
    }

    /// The user's command that Escape stops: the last one, unless the running turn was started after it.
    pub fn command_to_stop(&self) -> Option<(&TerminalId, &TerminalView)> {
        let id = self.shell.running.last()?;
        let view = self.terminals.get(id)?;
        let turn: Option<Instant> = match self.turn {
            Turn::Running { since, .. } => Some(since),
            _ => None,
        };
        turn.is_none_or(|turn| turn <= view.began).then_some((id, view))
    }

    pub fn output_of(&self, number: u32) -> Option<KnownOutput<'_>> {
        let mut views = self.terminals.values().filter(|view| view.number == Some(number));
        views.next_back().map(KnownOutput::of)
    }

    /// The output of the last command in the transcript, of the user or of the agent.
    pub fn last_output(&self) -> Option<KnownOutput<'_>> {
        self.transcript.items().iter().rev().find_map(|item| {
            let call = self.tool_call(item.id)?;
            let terminal = call.content.iter().find_map(|content| match content {
                ToolContent::Terminal(id) => self.terminals.get(id),
                _ => None,
            })?;
            let known = KnownOutput::of(terminal);
            let command = if known.command.is_empty() { call.label() } else { known.command };
            Some(KnownOutput { command, ..known })
        })
    }

    pub(in crate::core) fn running_terminal(&self, item: ItemId) -> Option<TerminalId> {
        self.tool_call(item)?.content.iter().find_map(|content| match content {
            ToolContent::Terminal(id) => {
                let is_running = |view: &&TerminalView| view.is_ours && view.exit.is_none();
                self.terminals.get(id).filter(is_running).map(|_| id.clone())
            }
            _ => None,
        })
    }
}
