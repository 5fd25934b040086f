//! What can be written behind `parlor sessions`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

/// What can be done with sessions.
#[derive(Debug, Clone, Subcommand)]
pub enum SessionsJob {
    /// List the sessions of this folder, or of all
    List(ListArgs),
    /// Print a session; no agent is needed
    Show {
        /// The session's id, or its beginning
        id: String,
        /// As JSON, with every event
        #[arg(long)]
        json: bool,
    },
    /// Search everything that was said and done
    Search(SearchArgs),
    /// Write a session to a file
    Export {
        /// The session's id, or its beginning
        id: String,
        /// The form of the file
        #[arg(long, value_enum, default_value = "markdown")]
        format: Format,
        /// The file; without it, the export is printed
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace the file if it is there
        #[arg(long, requires = "output")]
        force: bool,
        /// What was written where, as JSON
        #[arg(long, requires = "output")]
        json: bool,
    },
    /// Take over sessions that were exported as JSON
    Import {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// What became of each file, as JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete sessions for good
    Delete {
        /// The sessions' ids, or their beginnings
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// What was deleted, as JSON; needs --yes, for nothing is asked then
        #[arg(long, requires = "yes")]
        json: bool,
    },
    /// Delete old sessions, after showing them
    Prune(PruneArgs),
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Markdown, to be read
    Markdown,
    /// All events, to be imported
    Json,
    /// One page that needs nothing else
    Html,
}

/// Which sessions to list.
#[derive(Debug, Clone, Default, Args)]
pub struct ListArgs {
    /// Of all folders
    #[arg(long, short)]
    pub all: bool,
    /// Of this folder
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    pub folder: Option<PathBuf>,
    /// Of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Also those of subagents
    #[arg(long)]
    pub subagents: bool,
    /// At most so many
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// What to search for.
#[derive(Debug, Clone, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct SearchArgs {
    /// Words that must all be there; "quoted ones" stand together, and word* is a beginning
    #[arg(required = true)]
    pub words: Vec<String>,
    /// Only this agent's sessions
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Only sessions of this folder, or below it
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Only from then on: 2026-01-31, or 7d for the last seven days (also h, w)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only before then
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only changes of files
    #[arg(long)]
    pub edits: bool,
    /// Only commands and what they printed
    #[arg(long)]
    pub commands: bool,
    /// Only your prompts
    #[arg(long)]
    pub prompts: bool,
    /// Only what failed
    #[arg(long)]
    pub errors: bool,
    /// At most so many places
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

impl SearchArgs {
    /// The kinds of places that are wanted; empty: all.
    pub fn kinds(&self) -> Vec<&'static str> {
        let wanted = [(self.edits, "edit"), (self.commands, "command"), (self.prompts, "prompt")];
        wanted.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, kind)| kind).collect()
    }
}

/// Which sessions may go.
#[derive(Debug, Clone, Args)]
pub struct PruneArgs {
    /// Those that nothing was said in since: 90d, 12w, 2026-01-31
    #[arg(long, value_name = "TIME")]
    pub older_than: Option<String>,
    /// All but the latest N
    #[arg(long, value_name = "N")]
    pub keep: Option<u32>,
    /// The oldest, until all kept sessions take no more than this: 500M, 2G
    #[arg(long, value_name = "SIZE")]
    pub down_to: Option<String>,
    /// Of this folder only
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Of this agent only
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// What was deleted, as JSON; needs --yes, for nothing is asked then
    #[arg(long, requires = "yes")]
    pub json: bool,
}
