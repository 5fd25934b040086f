//! The list of worktrees of the repository, and what can be done with one.

use std::path::PathBuf;

use crate::core::Cx;
use crate::core::lifecycle::operations;
use crate::model::{Worktree, WorktreeJob, WorktreeNews};
use crate::ui::App;

use super::layer::Flow;
use super::notice::notify;
use super::picker::{List, Picker, PickerRow};

#[derive(Debug)]
pub struct Worktrees;

#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    Worktree(Worktree),
    Open(PathBuf),
    Merge(String),
    Remove(String),
}

impl List for Worktrees {
    type Item = Choice;

    const SHOWS_VALUES: bool = true;
    const SHOWS_DETAIL: bool = true;

    fn pick(&mut self, choice: Choice, app: &mut App, cx: &mut Cx) -> Flow {
        match choice {
            Choice::Worktree(tree) => {
                let Worktree { name, folder, .. } = tree;
                let row =
                    |label: &str, detail: &str| PickerRow { detail: detail.into(), ..PickerRow::new(label) };
                let rows = vec![
                    (row("Open", "shows its session, or starts a new one"), Choice::Open(folder)),
                    (row("Merge", "into the main checkout"), Choice::Merge(name.clone())),
                    (row("Remove", "deletes the folder and the branch"), Choice::Remove(name.clone())),
                ];
                app.layers.open(Picker::new(Self, format!("Worktree {name}"), rows));
            }
            Choice::Open(folder) => operations::open_worktree(&mut app.state, folder, cx),
            Choice::Merge(name) => {
                notify(&mut app.state, format!("Merging {name}…"), cx);
                operations::worktree_job(&app.state, WorktreeJob::Merge(name), cx);
            }
            Choice::Remove(name) => operations::ask_to_remove_worktree(&mut app.state, &name),
        }
        Flow::Close
    }
}

/// Opens the list, which is read meanwhile.
pub fn open(app: &mut App, cx: &mut Cx) {
    app.layers.open(Picker::new(Worktrees, "Worktrees", Vec::new()).noting("Reading worktrees…".to_owned()));
    operations::worktree_job(&app.state, WorktreeJob::List, cx);
}

/// Shows the worktrees, or why they could not be read, in the open list.
pub fn on_worktrees(app: &mut App, news: &Result<WorktreeNews, String>) {
    let Some(list) = app.layers.find_mut::<Picker<Worktrees>>() else { return };
    let row = |tree: &Worktree| {
        let detail = tree.branch.clone().unwrap_or_else(|| "detached".to_owned());
        PickerRow { detail, right: tree.state(), ..PickerRow::new(tree.name.as_str()) }
    };
    match news {
        Ok(WorktreeNews::Listed(trees)) => {
            list.view.note =
                trees.is_empty().then(|| "parlor has made no worktrees in this repository.".to_owned());
            list.set_rows(trees.iter().map(|tree| (row(tree), Choice::Worktree(tree.clone()))).collect());
        }
        Err(why) => list.view.note = Some(why.clone()),
        Ok(_) => {}
    }
}
