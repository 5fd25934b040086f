//! `--continue` and `--resume`: selects the session to resume, its folder and its agent.
//!
//! The session is opened in the store, so that no other parlor can open it. `core::restore` shows it.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::sessions;
use crate::core::{AgentChoice, OtherTab, unknown_agent};
use crate::escape;
use crate::host::folder_relocation::Kin;
use crate::model::{AgentSpec, Callbacks, FolderOffer, Nearness, RecordedSession};
use crate::runtime::print::Printer;
use crate::store::{ListFilter, SessionRow, Store};

const MAX_OFFERED: u32 = 20;

/// Number of sessions that are searched for a related folder.
const MAX_RELATIVES: u32 = 500;

/// Delay before the user is told about a slow disk.
const UNNOTICED: Duration = Duration::from_millis(100);

/// Which session to resume.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ResumeRequest {
    /// None: a new session.
    #[default]
    New,
    /// The last session of the folder.
    Last,
    /// The one that the user chooses.
    Choose,
    /// The session that this text names, see [`sessions::find`].
    Named(String),
}

/// A session to resume.
#[derive(Debug)]
pub struct Found {
    /// The saved session.
    pub saved: RecordedSession,
    /// Its current folder.
    pub folder: PathBuf,
    /// Alternatives for a missing folder.
    pub offers: Vec<FolderOffer>,
    /// The other tabs that were open together with it.
    pub tabs: Vec<OtherTab>,
    /// Why tabs could not be opened, each in one sentence.
    pub problems: Vec<String>,
}

/// Opens the requested session. Fails if there is none or it is open in another parlor.
pub fn find(store: &Store, request: &ResumeRequest, folder: &Path) -> anyhow::Result<Option<Found>> {
    match request {
        ResumeRequest::New => Ok(None),
        ResumeRequest::Choose => {
            let uid = choose(store, folder)?;
            with_wait_notice(|| take(store, &ResumeRequest::Named(uid), folder), tell_wait).map(Some)
        }
        ResumeRequest::Last | ResumeRequest::Named(_) => {
            if *request == ResumeRequest::Last && std::io::stdin().is_terminal() {
                move_sessions_here(store, folder, &mut sessions::ask)?;
            }
            with_wait_notice(|| take(store, request, folder), tell_wait).map(Some)
        }
    }
}

fn tell_wait() {
    let message = "Waiting for the saved sessions: the disk is slow, or another process is writing.\n";
    let _ = Printer::stderr().print(message);
}

/// Runs a function that may block on the disk, and prints a notice if it is slow.
pub(super) fn with_wait_notice<T>(work: impl FnOnce() -> T, report: impl FnOnce() + Send) -> T {
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(UNNOTICED) == Err(mpsc::RecvTimeoutError::Timeout) {
                report();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// If the folder was renamed, and has no sessions under its new path, offers to move those of the former path.
fn move_sessions_here(store: &Store, folder: &Path, ask: &mut dyn FnMut(&str) -> bool) -> anyhow::Result<()> {
    let (rows, skipped) = store.last_of(folder)?;
    if rows.is_empty()
        && skipped.is_empty()
        && let Some(row) = store.moved_here(folder)
    {
        let count = sessions::counted(store.movable(&row.folder)? as u64);
        let from = escape::visible(&row.folder.to_string_lossy()).into_owned();
        if ask(&format!("This folder was renamed from {from}. Move its {count} here?")) {
            store.move_folder(&row.folder, folder)?;
        }
    }
    Ok(())
}

fn take(store: &Store, request: &ResumeRequest, folder: &Path) -> anyhow::Result<Found> {
    let (mut rows, skipped) = match request {
        ResumeRequest::Named(text) => (vec![sessions::find(store, folder, text)?], Vec::new()),
        _ => store.last_of(folder)?,
    };
    if rows.is_empty() {
        if skipped.is_empty() {
            bail!("{}", no_session(store, folder));
        }
        bail!(
            "every saved session in {} is open in another parlor; start a new one with `parlor --new`",
            folder.display()
        );
    }
    // The tab that was active, unless only others are in this folder.
    let is_here = |row: &SessionRow| row.folder == folder;
    let front = rows
        .iter()
        .position(|row| row.is_front && is_here(row))
        .or_else(|| rows.iter().position(is_here))
        .unwrap_or_default();
    let row = rows.remove(front);
    let offers = store.folder_offers(&row, folder);
    // A session without a folder is read-only until the user chooses one.
    let saved = if offers.is_empty() { store.reopen(&row.uid)? } else { store.peek(&row.uid)?.1 };
    let mut found =
        Found { saved, folder: folder.to_owned(), offers, tabs: Vec::new(), problems: Vec::new() };
    found.problems.extend(skipped.iter().map(|other| {
        format!("A session was skipped because it is open in another parlor: {}.", other.name())
    }));
    for (location, other) in rows.into_iter().enumerate() {
        let opened = if store.folder_offers(&other, folder).is_empty() {
            store.reopen(&other.uid).map_err(|error| error.to_string())
        } else {
            Err(format!("Its folder {} no longer exists.", other.folder.display()))
        };
        match opened {
            Ok(saved) => found.tabs.push(OtherTab {
                saved: Box::new(saved),
                is_before: location < front,
                is_view: false,
            }),
            Err(why) => found.problems.push(format!(
                "A tab was not reopened: {}: {why} Resume it with `parlor --resume {}`.",
                other.name(),
                other.uid
            )),
        }
    }
    if *request == ResumeRequest::Last {
        for uid in &found.saved.head.views {
            let is_open = |tab: &OtherTab| tab.saved.head.saved_as.as_ref() == Some(uid);
            // Skips those that were deleted in the meantime.
            if let Ok((_, saved)) = store.peek(uid)
                && !found.tabs.iter().any(is_open)
            {
                found.tabs.push(OtherTab { saved: Box::new(saved), is_before: false, is_view: true });
            }
        }
    }
    if found.offers.is_empty() {
        found.folder = row.folder;
    }
    Ok(found)
}

/// The error for a folder without sessions; suggests the session of a renamed folder or another worktree.
fn no_session(store: &Store, folder: &Path) -> String {
    let mut kin = Kin::new(folder);
    let rows = store.list_page(None, MAX_RELATIVES).map(|(rows, _)| rows).unwrap_or_default();
    let shown = folder.display();
    if let Some(row) = store.moved_here(folder) {
        return format!(
            "no saved session in {shown}, but the folder was renamed from {}; resume its last session with \
             `parlor --resume {}`",
            row.folder.display(),
            row.uid
        );
    }
    let mut near =
        rows.iter().filter(|row| kin.of(&row.folder, row.folder_mark.as_ref()).0 != Nearness::Elsewhere);
    if let Some(row) = near.next() {
        return format!(
            "no saved session in {shown}, but in {} of the same repository; resume it with `parlor --resume \
             {}`",
            row.folder.display(),
            row.uid
        );
    }
    format!("no saved session in {shown}; start one with `parlor`, or see `parlor sessions list --all`")
}

/// The agent of a resumed session if the command line names none. For an unknown agent, returns a message, and the
/// user chooses another one.
pub fn agent_for(
    saved: &RecordedSession,
    choices: &[AgentChoice],
    default: Option<AgentSpec>,
    callbacks: Callbacks,
) -> (Option<AgentSpec>, Option<String>) {
    if saved.head.agent.is_empty() {
        return (default, None);
    }
    let known = agent_of(saved, choices, callbacks);
    let uid = saved.head.saved_as.as_deref().unwrap_or_default();
    let problem = known.is_none().then(|| unknown_agent(&saved.head.agent, uid));
    (known, problem)
}

/// The agent of a saved session: the one with that name, or the recorded command. An imported session has no command.
fn agent_of(saved: &RecordedSession, choices: &[AgentChoice], callbacks: Callbacks) -> Option<AgentSpec> {
    let head = &saved.head;
    let known =
        choices.iter().find(|choice| choice.spec.name == head.agent).map(|choice| choice.spec.clone());
    known.or_else(|| {
        (!head.command.is_empty()).then(|| AgentSpec {
            name: head.agent.clone(),
            command: head.command.clone(),
            args: head.args.clone(),
            callbacks,
            ..AgentSpec::default()
        })
    })
}

/// Lets the user choose from the folder's sessions, or from all if it has none.
fn choose(store: &Store, folder: &Path) -> anyhow::Result<String> {
    if !std::io::stdin().is_terminal() {
        bail!("not a terminal; pass an id to --resume (see `parlor sessions list`)");
    }
    let of_folder =
        ListFilter { folder: Some(folder.to_owned()), limit: Some(MAX_OFFERED), ..ListFilter::default() };
    let mut rows = store.list(&of_folder)?;
    if rows.is_empty() {
        rows = store.list(&ListFilter { folder: None, ..of_folder })?;
    }
    if rows.is_empty() {
        bail!("no saved sessions; start one with `parlor`");
    }
    let is_of_folder = rows.first().is_some_and(|row| row.folder == folder);
    let mut question = sessions::numbered(&rows, !is_of_folder);
    if is_of_folder {
        let hidden = store.count()?.saturating_sub(rows.len() as u64);
        if hidden > 0 {
            let _ = writeln!(question, "\n     {hidden} more: `parlor sessions list --all`");
        }
    }
    question.push_str("Session number [1]: ");
    Printer::stderr().print(&question)?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("cannot read the answer")?;
    let number = match line.trim() {
        "" => Some(1),
        text => text.parse::<usize>().ok(),
    };
    let chosen = number.and_then(|number| rows.get(number.checked_sub(1)?));
    chosen.map(|row| row.uid.clone()).context("no session with this number; try again")
}

#[cfg(test)]
mod tests;
