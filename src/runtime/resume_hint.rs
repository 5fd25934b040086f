//! The commands that resume the open sessions, printed after parlor has left the screen.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use tokio::sync::mpsc::UnboundedReceiver;

use super::print::Printer;
use crate::core::state::tab;
use crate::core::{self, Session, State, session_title};
use crate::model::ServiceEvent;
use crate::ui::text;
use crate::ui::{App, update};

/// Maximum width of an agent and a title: the line fits into 80 columns.
const TITLE_COLS: usize = 48;

/// Prints how to resume the sessions, after the store has saved them.
pub fn print(app: &mut App, services: &mut UnboundedReceiver<ServiceEvent>) {
    // Sessions that were saved only now have their ids in these events.
    while let Ok(event) = services.try_recv() {
        update(app, core::Event::Service(event), Instant::now());
    }
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
    // Standard output may be closed together with the terminal.
    let _ = Printer::stdout().print(&resume_hint(&app.state, &here));
}

/// How to resume the sessions of the tabs; empty if nothing was saved. `here` is the folder of the shell.
fn resume_hint(state: &State, here: &Path) -> String {
    let saved: Vec<(&Session, &str)> =
        tab::tabs(state).filter_map(|session| Some((session, session.recorder.saved_as()?))).collect();
    let mut lines = String::new();
    match saved.as_slice() {
        [] => {}
        [(_, uid)] => {
            let _ = writeln!(lines, "Resume this session with `parlor --resume {uid}`.");
        }
        tabs => {
            // In another folder, `--continue` would resume other sessions.
            let is_here = tabs.iter().any(|(session, _)| session.workspace.cwd == here);
            let all = is_here
                .then(|| format!("Reopen all {} tabs with `parlor --continue`, or one of them:", tabs.len()));
            let _ = writeln!(lines, "{}", all.as_deref().unwrap_or("Resume one of these sessions:"));
            for (session, uid) in tabs {
                let running = state.conn_of(session.key).map(|conn| &conn.spec.name);
                let agent = running.or(session.recorder.agent().map(|(name, ..)| name));
                let agent = agent.map(|name| format!("{name}: ")).unwrap_or_default();
                let title = agent + &session_title(session);
                let title = text::truncate(&text::one_line(&title), TITLE_COLS);
                let _ = writeln!(lines, "  parlor --resume {uid}  # {title}");
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{RecorderState, Setup};
    use crate::model::{SessionHead, SessionKey};

    /// A state with these saved sessions, each in a tab.
    fn state(uids: &[Option<&str>]) -> State {
        let mut state = State::new(Setup { folder: "/code/shop".into(), ..Setup::default() });
        for uid in uids {
            let key = state.add_session();
            let session = state.sessions.get_mut(&key).unwrap();
            session.title = Some(format!("Fix \u{1b}[31m{} {}", uid.unwrap_or_default(), "tests ".repeat(9)));
            let saved_as = uid.map(str::to_owned);
            let head = SessionHead { saved_as, agent: "claude".into(), ..SessionHead::default() };
            session.recorder = RecorderState::of_saved(head, "", Vec::new(), &[]);
        }
        state.active = SessionKey(1);
        state
    }

    #[test]
    fn saved_sessions_are_listed_with_the_command_that_resumes_them() {
        let here = Path::new("/code/shop");
        assert_eq!(resume_hint(&state(&[None]), here), "");
        let one = "Resume this session with `parlor --resume k1`.\n";
        assert_eq!(resume_hint(&state(&[Some("k1")]), here), one);
        assert_eq!(resume_hint(&state(&[None, Some("k1")]), here), one);
        let hint = resume_hint(&state(&[Some("k1"), Some("k2")]), here);
        let lines: Vec<&str> = hint.lines().collect();
        assert_eq!(lines[0], "Reopen all 2 tabs with `parlor --continue`, or one of them:");
        assert!(lines[1].starts_with("  parlor --resume k1  # claude: Fix "), "{hint}");
        assert!(lines.iter().all(|line| text::width(line) <= 80), "{hint}");
        assert!(!hint.contains('\u{1b}'));
        let elsewhere = resume_hint(&state(&[Some("k1"), Some("k2")]), Path::new("/"));
        assert!(!elsewhere.contains("--continue") && elsewhere.contains("--resume k2"), "{elsewhere}");
    }
}
