//! `parlor worktrees`: lists, removes and merges the worktrees that parlor has made.

use std::path::PathBuf;

use anyhow::Error;
use clap::Subcommand;

use super::agents;
use super::output::print;
use crate::config::{self, Paths};
use crate::host::worktrees::Worktrees;
use crate::model::Worktree;
use crate::runtime::print::Printer;
use crate::ui::text::one_line;

/// Subcommands of `parlor worktrees`.
#[derive(Debug, Clone, Subcommand)]
pub enum WorktreesJob {
    /// Remove a worktree, with its branch and ignored files, unless that would lose changes or commits
    Remove {
        /// Name of the worktree
        name: String,
    },
    /// Merge the branch of a worktree into the main checkout
    Merge {
        /// Name of the worktree
        name: String,
    },
}

/// Runs a subcommand; without one, lists the worktrees.
pub fn run(job: Option<&WorktreesJob>, paths: &Paths, out: &mut Printer<'_>) -> anyhow::Result<()> {
    let worktrees = Worktrees::beside(&paths.data_dir, config::environment("HOME").map(PathBuf::from));
    let folder = std::env::current_dir()?.canonicalize()?;
    let text = match job {
        None => worktrees.list(&folder).map(|list| table(&list)),
        Some(WorktreesJob::Merge { name }) => worktrees.merge(&folder, name).map(|text| text + "\n"),
        Some(WorktreesJob::Remove { name }) => worktrees.remove(&folder, name).map(|text| text + "\n"),
    };
    print(out, &text.map_err(Error::msg)?)
}

fn table(list: &[Worktree]) -> String {
    let branch = |tree: &Worktree| one_line(tree.branch.as_deref().unwrap_or("detached"));
    let row = |tree: &Worktree| {
        [tree.name.clone(), tree.state(), branch(tree), one_line(&tree.folder.display().to_string())]
    };
    let rows: Vec<[String; 4]> = list.iter().map(row).collect();
    if rows.is_empty() {
        "parlor has made no worktrees in this repository.\n".to_owned()
    } else {
        agents::table(&rows)
    }
}
