//! `--continue` and `--resume`: which kept session is gone on with, where, and with which agent.
//!
//! Duty: takes the session from the store, so that no other parlor can have it, and says what is different now.
//! Not its duty: showing it (`app::restore`), asking its agent for it (`app`).

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::sessions;
use crate::app::{AgentChoice, unknown_agent};
use crate::model::{AgentSpec, Callbacks, FolderOffer, Nearness, RecordedSession};
use crate::runtime::print::Printer;
use crate::services::folder_relocation::Kin;
use crate::services::store::{ListFilter, Store};

/// How many sessions are offered at once.
const MAX_OFFERED: u32 = 20;

/// How many sessions are looked at for one of a related folder.
const MAX_RELATIVES: u32 = 500;

/// How long nobody minds that nothing is on the screen.
const UNNOTICED: Duration = Duration::from_millis(100);

/// What to go on with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ResumeRequest {
    /// Nothing: a new session.
    #[default]
    New,
    /// The last session of the folder.
    Last,
    /// The user chooses in a list.
    Choose,
    /// The session whose id begins like this.
    Id(String),
}

/// A session to go on with.
#[derive(Debug)]
pub struct Found {
    /// As it was kept.
    pub kept: RecordedSession,
    /// Where it works now.
    pub folder: PathBuf,
    /// If its folder is gone: where it may go on.
    pub offers: Vec<FolderOffer>,
}

/// Takes the session that is wished for. Fails, with what to do next, if there is none or another parlor has it.
pub fn find(store: &Store, wish: &ResumeRequest, folder: &Path) -> anyhow::Result<Option<Found>> {
    match wish {
        ResumeRequest::New => Ok(None),
        ResumeRequest::Choose => {
            let uid = choose(store, folder)?;
            telling_a_wait(|| take(store, &ResumeRequest::Id(uid), folder), tell_wait).map(Some)
        }
        ResumeRequest::Last | ResumeRequest::Id(_) => {
            telling_a_wait(|| take(store, wish, folder), tell_wait).map(Some)
        }
    }
}

fn tell_wait() {
    let words = "Waiting for the kept sessions: their disk is slow, or another process writes to them.\n";
    let _ = Printer::stderr().print(words);
}

/// Does what may wait for a disk or another process, and tells once if it takes longer than one notices.
fn telling_a_wait<T>(work: impl FnOnce() -> T, tell: impl FnOnce() + Send) -> T {
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(UNNOTICED) == Err(mpsc::RecvTimeoutError::Timeout) {
                tell();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

fn take(store: &Store, wish: &ResumeRequest, folder: &Path) -> anyhow::Result<Found> {
    let row = match wish {
        ResumeRequest::Id(id) => store.find(id)?,
        _ => match store.last_of(folder)? {
            Some(row) => row,
            None => bail!("{}", no_session(store, folder)),
        },
    };
    let offers = store.folder_offers(&row, folder);
    // One without a folder is only read until the user has said where it goes on.
    let kept = if offers.is_empty() { store.reopen(&row.uid)? } else { store.peek(&row.uid, None)?.1 };
    let folder = if offers.is_empty() { row.folder } else { folder.to_owned() };
    Ok(Found { kept, folder, offers })
}

/// What to do where a folder has no session: perhaps it was renamed, or the session is in another worktree.
fn no_session(store: &Store, folder: &Path) -> String {
    let mut kin = Kin::new(folder);
    let rows = store.list_page(None, MAX_RELATIVES).map(|(rows, _)| rows).unwrap_or_default();
    let shown = folder.display();
    if let Some(row) = store.moved_here(folder) {
        return format!(
            "no session of {shown} was kept, but one of {}, which is the same folder under its old name; go on with \
             it by `parlor --resume {}`",
            row.folder.display(),
            row.uid
        );
    }
    let mut near =
        rows.iter().filter(|row| kin.of(&row.folder, row.folder_mark.as_ref()).0 != Nearness::Elsewhere);
    if let Some(row) = near.next() {
        return format!(
            "no session of {shown} was kept, but one of {}, which belongs to the same repository; go on with it by \
             `parlor --resume {}`",
            row.folder.display(),
            row.uid
        );
    }
    format!("no session of {shown} was kept; start one with `parlor`, or see `parlor sessions list --all`")
}

/// The agent to go on with where the command line names none: that of the session. Where it is not known here, no other
/// one takes its place before the user has chosen it, and what to do comes as words.
pub fn agent_for(
    kept: &RecordedSession,
    choices: &[AgentChoice],
    default: Option<AgentSpec>,
    callbacks: Callbacks,
) -> (Option<AgentSpec>, Option<String>) {
    if kept.head.agent.is_empty() {
        return (default, None);
    }
    let known = agent_of(kept, choices, callbacks);
    let uid = kept.head.kept_as.as_deref().unwrap_or_default();
    let problem = known.is_none().then(|| unknown_agent(&kept.head.agent, uid));
    (known, problem)
}

/// The agent of a kept session: the one of that name here, else what was started here then. An imported one names no
/// program.
fn agent_of(kept: &RecordedSession, choices: &[AgentChoice], callbacks: Callbacks) -> Option<AgentSpec> {
    let head = &kept.head;
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

/// Lets the user choose on the terminal: the folder's sessions, or all if it has none.
fn choose(store: &Store, folder: &Path) -> anyhow::Result<String> {
    if !std::io::stdin().is_terminal() {
        bail!("nobody can be asked here; write the id behind --resume, `parlor sessions list` shows it");
    }
    let of_folder =
        ListFilter { folder: Some(folder.to_owned()), limit: Some(MAX_OFFERED), ..ListFilter::default() };
    let mut rows = store.list(&of_folder)?;
    if rows.is_empty() {
        rows = store.list(&ListFilter { folder: None, ..of_folder })?;
    }
    if rows.is_empty() {
        bail!("no session was kept yet; start one with `parlor`");
    }
    let is_of_folder = rows.first().is_some_and(|row| row.folder == folder);
    let mut question = String::new();
    for (number, line) in sessions::table(&rows, !is_of_folder).lines().enumerate() {
        let _ = writeln!(question, "{:>3}  {line}", number + 1);
    }
    if is_of_folder {
        let hidden = store.count()?.saturating_sub(rows.len() as u64);
        if hidden > 0 {
            let _ = writeln!(question, "\n     {hidden} more: `parlor sessions list --all`");
        }
    }
    question.push_str("Which one? [1] ");
    Printer::stderr().print(&question)?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("cannot read the answer")?;
    let number = match line.trim() {
        "" => Some(1),
        text => text.parse::<usize>().ok(),
    };
    let chosen = number.and_then(|number| rows.get(number.checked_sub(1)?));
    chosen.map(|row| row.uid.clone()).context("no session has this number; try again")
}

#[cfg(test)]
mod tests;
