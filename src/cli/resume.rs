//! `--continue` and `--resume`: which kept session is gone on with, where, and with which agent.
//!
//! Duty: takes the session from the store, so that no other parlor can have it, and says what is different now.
//! Not its duty: showing it (`app::restore`), asking its agent for it (`app`).

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::sessions;
use crate::app::AgentChoice;
use crate::model::{AgentSpec, Callbacks, KeptSession};
use crate::services::store::{ListFilter, Store};

/// How many sessions are offered at once.
const MAX_OFFERED: u32 = 20;

/// What to go on with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Wish {
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
    pub kept: KeptSession,
    /// Where it works now.
    pub folder: PathBuf,
    /// What is different, for the user.
    pub notes: Vec<String>,
}

/// Takes the session that is wished for. Fails, with what to do next, if there is none or another parlor has it.
pub fn find(store: &Store, wish: &Wish, folder: &Path) -> anyhow::Result<Option<Found>> {
    let uid = match wish {
        Wish::New => return Ok(None),
        Wish::Last => match store.last_of(folder)? {
            Some(row) => row.uid,
            None => bail!(
                "no session of {} was kept; start one with `parlor`, or see `parlor sessions list --all`",
                folder.display()
            ),
        },
        Wish::Choose => choose(store, folder)?,
        Wish::Id(id) => store.find(id)?.uid,
    };
    let kept = store.reopen(&uid)?;
    let before = &kept.head.place.cwd;
    let mut notes = Vec::new();
    let folder = if before.is_dir() {
        before.clone()
    } else {
        notes.push(format!(
            "The folder of this session, {}, is gone. It goes on in {}.",
            before.display(),
            folder.display()
        ));
        folder.to_owned()
    };
    Ok(Some(Found { kept, folder, notes }))
}

/// The agent of a kept session: the one of that name here, else what was started then.
pub fn agent_of(kept: &KeptSession, choices: &[AgentChoice], callbacks: Callbacks) -> Option<AgentSpec> {
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
#[expect(clippy::print_stderr, reason = "a question, before parlor takes the screen")]
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
    for (number, line) in sessions::table(&rows, !is_of_folder).lines().enumerate() {
        eprintln!("{:>3}  {line}", number + 1);
    }
    if is_of_folder {
        let hidden = store.count()?.saturating_sub(rows.len() as u64);
        if hidden > 0 {
            eprintln!("\n     {hidden} more: `parlor sessions list --all`");
        }
    }
    eprint!("Which one? [1] ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("cannot read the answer")?;
    let number = match line.trim() {
        "" => Some(1),
        text => text.parse::<usize>().ok(),
    };
    let chosen = number.and_then(|number| rows.get(number.checked_sub(1)?));
    chosen.map(|row| row.uid.clone()).context("no session has this number; try again")
}
