//! Arguments of `parlor sessions`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

/// Subcommands of `parlor sessions`.
#[derive(Debug, Clone, Subcommand)]
pub enum SessionsJob {
    /// List the sessions of the current folder
    #[command(alias = "ls")]
    List(ListArgs),
    /// Print a session
    Show {
        /// Id or its first characters, number in the list of this folder, or part of the title
        #[arg(value_name = "SESSION")]
        id: String,
        /// Print JSON with all events
        #[arg(long)]
        json: bool,
    },
    /// Search the transcripts
    Search(SearchArgs),
    /// Export a session
    Export {
        /// Id or its first characters, number in the list of this folder, or part of the title
        #[arg(value_name = "SESSION")]
        id: String,
        /// Format of the export
        #[arg(long, value_enum, default_value = "markdown")]
        format: Format,
        /// Replace what looks like a key or password by `*`; not for JSON
        #[arg(long)]
        redact: bool,
        /// File to write [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Overwrite an existing file
        #[arg(long, requires = "output")]
        force: bool,
        /// Print the result as JSON
        #[arg(long, requires = "output")]
        json: bool,
    },
    /// Change the title of a session
    Rename {
        /// Id or its first characters, or part of the title
        #[arg(value_name = "SESSION")]
        id: String,
        /// The new title
        title: String,
    },
    /// Import sessions from JSON exports
    Import {
        /// Files to import
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print the results as JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete sessions permanently
    #[command(aliases = ["rm", "remove"])]
    Delete {
        /// Ids or their first characters, or parts of titles
        #[arg(required = true, value_name = "SESSION")]
        ids: Vec<String>,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
        /// Print the result as JSON; requires --yes
        #[arg(long, requires = "yes")]
        json: bool,
    },
    /// Delete old sessions after confirmation
    Prune(PruneArgs),
    /// Remove a text, such as a password, from all sessions or from one
    ///
    /// The text is read from standard input, so that it is not in the history of the shell. In a terminal, it is not
    /// shown while you type it.
    Redact {
        /// Id or its first characters, or part of the title [default: all sessions]
        #[arg(value_name = "SESSION")]
        id: Option<String>,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Delete turns of a session permanently
    DeleteTurns {
        /// Id or its first characters, or part of the title
        #[arg(value_name = "SESSION")]
        id: String,
        /// A number or a range, such as 3 or 3-5 [default: only list the turns]
        turns: Option<String>,
        /// Do not ask for confirmation
        #[arg(long, requires = "turns")]
        yes: bool,
    },
    /// Delete the database of an earlier version, whose sessions were converted
    DeleteOldDatabase {
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

/// Format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Markdown, for reading
    #[value(alias = "md")]
    Markdown,
    /// JSON with all events, for import
    Json,
    /// Self-contained HTML page
    Html,
}

/// Arguments of `parlor sessions list`.
#[derive(Debug, Clone, Default, Args)]
pub struct ListArgs {
    /// List the sessions of all folders
    #[arg(long, short)]
    pub all: bool,
    /// List the sessions of a folder
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    pub folder: Option<PathBuf>,
    /// List only sessions of an agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Include the sessions of subagents
    #[arg(long)]
    pub subagents: bool,
    /// Maximum number of sessions
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `parlor sessions search`.
#[derive(Debug, Clone, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct SearchArgs {
    /// Words that must all match; use "quotes" for a phrase and word* for a prefix
    #[arg(required = true)]
    pub words: Vec<String>,
    /// Search only sessions of an agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Search only sessions in or below a folder
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Earliest time: 2026-01-31, or 7d for the last seven days (also h, w)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Latest time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Search only file changes
    #[arg(long)]
    pub edits: bool,
    /// Search only commands and their output
    #[arg(long)]
    pub commands: bool,
    /// Search only prompts
    #[arg(long)]
    pub prompts: bool,
    /// Search only failures
    #[arg(long)]
    pub errors: bool,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl SearchArgs {
    /// The kinds to search; empty for all.
    pub fn kinds(&self) -> Vec<&'static str> {
        let wanted = [(self.edits, "edit"), (self.commands, "command"), (self.prompts, "prompt")];
        wanted.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, kind)| kind).collect()
    }
}

/// Arguments of `parlor sessions prune`.
#[derive(Debug, Clone, Args)]
pub struct PruneArgs {
    /// Delete sessions without activity since: 90d, 12w, 2026-01-31
    #[arg(long, value_name = "TIME")]
    pub older_than: Option<String>,
    /// Keep the latest N sessions
    #[arg(long, value_name = "N")]
    pub keep: Option<u32>,
    /// Delete the oldest until the total size is at most: 500M, 2G
    #[arg(long, value_name = "SIZE")]
    pub down_to: Option<String>,
    /// Delete only sessions of a folder
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Delete only sessions of an agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
    /// Print the result as JSON; requires --yes
    #[arg(long, requires = "yes")]
    pub json: bool,
}
