//! Serves store jobs of the app.
//!
//! Each job gets one response; lists are sent in pages, and errors are full sentences. Blocks on the disk and runs on
//! its own thread.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::fault::StoreError;
use super::handle::Store;
use super::read::ListFilter;
use super::rows::{self, SessionRow, SessionState};
use super::support::unix_ms;
use crate::host::folder_relocation::{self, Kin};
use crate::host::os::files;
use crate::host::when;
use crate::model::{
    ArchiveOpening, ArchiveRow, ExportForm, FolderOffer, FolderReason, MentionedSession, StoreJob, StoreNews,
};

/// Writes a session to a new file in a folder, and returns its path. The file format is implemented by the caller.
pub type Export = fn(&Store, &str, ExportForm, &Path) -> Result<PathBuf, String>;

/// Formats a session as Markdown. Implemented by the caller.
pub type Transcript = fn(&Store, &str) -> Result<String, String>;

/// Number of rows of the first page, which is shown immediately, and of further pages.
const FIRST_PAGE: u32 = 100;
const PAGE: u32 = 500;

/// Number of sessions of a folder that are checked for one that no other parlor has open.
const MAX_LAST: u32 = 20;

/// Maximum number of sessions that are listed for mentions.
const MAX_MENTIONABLE: u32 = 200;

/// Maximum number of search results.
const MAX_HITS: u32 = 200;

/// Maximum number of folders of other sessions that are searched for a missing folder.
const MAX_KNOWN_FOLDERS: usize = 300;

const DAY_MS: i64 = 86_400_000;

impl Store {
    /// Executes a job and sends the response to `report`.
    pub fn serve(&self, job: StoreJob, export: Export, report: &mut dyn FnMut(StoreNews)) {
        match job {
            StoreJob::Folder { folder, wants_session } => self.serve_folder(&folder, wants_session, report),
            StoreJob::UsedToday => {
                let day_ms = when::day_start(unix_ms());
                if let Some(used) = self.value_or_report(self.used_since(day_ms)) {
                    report(StoreNews::UsedToday { day_ms, used });
                }
            }
            StoreJob::List { serial, folder } => self.serve_list(serial, &folder, report),
            StoreJob::Preview { uid } => {
                report(StoreNews::Previewed { saved: self.glance(&uid).map(Box::new).map_err(message), uid });
            }
            StoreJob::Open { uid, takes, at, folder } => {
                report(StoreNews::Opened(Box::new(self.serve_open(uid, takes, at, &folder))));
            }
            StoreJob::OpenListed { conn, agent, info, folder } => {
                let found = self.with(|conn| rows::by_agent_id(conn, &agent, info.id.as_str()));
                // If the record cannot be read, the session is opened from the agent, as if it was not recorded.
                report(match found.ok().flatten().filter(|(_, row)| !row.is_child) {
                    Some((_, row)) => {
                        StoreNews::Opened(Box::new(self.serve_open(row.uid, true, None, &folder)))
                    }
                    None => StoreNews::NotSaved(conn, info),
                });
            }
            StoreJob::Take { key, uid } => {
                report(StoreNews::Taken { key, saved: self.reopen(&uid).map(Box::new).map_err(message) });
            }
            StoreJob::Load { key, uid, before, at } => self.load(&uid, before, at, &mut |page| {
                report(StoreNews::Loaded { key, page: page.map_err(message) });
            }),
            StoreJob::Around { key, uid, at } => {
                report(StoreNews::Around { key, page: self.around(&uid, at).map_err(message) });
            }
            StoreJob::ReadSpool { key, uid, from } => {
                report(StoreNews::SpoolRead { key, from, events: self.spool(&uid, from).map_err(message) });
            }
            StoreJob::ForgetTurns { key, uid, turns } => {
                let result = self.forget_turns(&uid, turns.clone()).map_err(message);
                report(StoreNews::Forgotten { key, turns, result });
            }
            StoreJob::Rename { uid, title } => {
                let result = self.rename(&uid, &title).map_err(message);
                report(StoreNews::Renamed { uid, title, result });
            }
            StoreJob::TitleKnown { uid, title } => {
                let result = self.note_title_known(&uid, &title).map_err(message);
                report(StoreNews::TitleKnown { uid, result });
            }
            StoreJob::MoveFolder { from, to } => {
                self.value_or_report(self.move_folder(&from, &to));
            }
            StoreJob::Delete { uid } => {
                report(StoreNews::Deleted { result: self.delete(&uid).map_err(message), uid });
            }
            StoreJob::Export { uid, form, folder } => {
                report(StoreNews::Exported(export(self, &uid, form, &folder)));
            }
            // Each typed character starts a search; obsolete ones are skipped.
            StoreJob::Search { serial, .. } if serial < self.inner.newest_search.load(Ordering::Relaxed) => {
                report(StoreNews::Found { serial, hits: Ok(Vec::new()) });
            }
            StoreJob::Search { serial, mut search } => {
                search.since_ms = search.days.map(|days| unix_ms() - i64::from(days) * DAY_MS);
                search.limit = MAX_HITS;
                let hits = self.search(&search).map_err(message);
                report(StoreNews::Found { serial, hits });
            }
            StoreJob::Prompts(query) => {
                let serial = query.serial;
                let is_newest = serial >= self.inner.newest_search.load(Ordering::Relaxed);
                // The prompts are read with the first search of a list, even if the user types on.
                let found = if is_newest || query.is_new {
                    self.search_prompts(&query)
                } else {
                    Ok(Default::default())
                };
                report(StoreNews::Prompts { serial, found: found.map_err(message) });
            }
            StoreJob::ForgetPrompts => self.forget_prompts(),
            StoreJob::Mentionable { folder } => {
                let sessions = self.value_or_report(self.mentionable(&folder)).unwrap_or_default();
                report(StoreNews::Mentionable { folder, sessions });
            }
        }
    }

    /// The agents are sent first, because closing the sessions of dead parlors may wait for a lock.
    fn serve_folder(&self, folder: &Path, wants_session: bool, report: &mut dyn FnMut(StoreNews)) {
        report(StoreNews::UsedAgents { here: self.agent_for(folder), all: self.used_agents() });
        let of_folder =
            ListFilter { folder: Some(folder.to_owned()), limit: Some(MAX_LAST), ..ListFilter::default() };
        if !wants_session {
            return;
        }
        let Some(rows) = self.value_or_report(self.list(&of_folder)) else { return };
        let last = rows.into_iter().find(|row| self.open_in(row).is_none());
        if let Some(row) = last.or_else(|| self.moved_here(folder)) {
            let mut row = self.saved_row(row, &mut Kin::new(folder), unix_ms());
            // The offer stays on the screen, where an age would become wrong.
            row.when = when::full(row.updated_ms);
            report(StoreNews::FolderSession(Box::new(row)));
        }
    }

    /// The latest sessions of a folder that have a prompt.
    fn mentionable(&self, folder: &Path) -> Result<Vec<MentionedSession>, StoreError> {
        let of_folder = ListFilter {
            folder: Some(folder.to_owned()),
            limit: Some(MAX_MENTIONABLE),
            ..ListFilter::default()
        };
        let (rows, now_ms) = (self.list(&of_folder)?, unix_ms());
        let sessions = rows.into_iter().filter(|row| row.turn_count > 0).map(|row| MentionedSession {
            name: row.name().to_owned(),
            uid: row.uid,
            agent: row.agent,
            when: when::ago(row.updated_ms, now_ms),
        });
        Ok(sessions.collect())
    }

    /// The last session of this folder under a previous path.
    pub fn moved_here(&self, folder: &Path) -> Option<SessionRow> {
        let here = files::identity(folder)?;
        let (rows, _) = self.list_page(None, PAGE).ok()?;
        rows.into_iter().find(|row| {
            let mark = row.folder_mark.as_ref();
            mark.is_some_and(|mark| (mark.device, mark.inode) == here && mark.is_of(folder))
                && !row.folder.is_dir()
        })
    }

    fn serve_list(&self, serial: u64, folder: &Path, report: &mut dyn FnMut(StoreNews)) {
        let mut kin = Kin::new(folder);
        let (now_ms, mut after) = (unix_ms(), None);
        // Closes the sessions of dead parlors, so that the rows are current.
        let mut closed = self.list(&ListFilter { limit: Some(0), ..ListFilter::default() }).map(drop);
        loop {
            let limit = if after.is_none() { FIRST_PAGE } else { PAGE };
            let page = std::mem::replace(&mut closed, Ok(())).and_then(|()| self.list_page(after, limit));
            after = page.as_ref().ok().and_then(|(_, next)| *next);
            let rows = page.map_err(message).map(|(rows, _)| {
                let replies = self.value_or_report(self.last_replies(&rows)).unwrap_or_default();
                let replies = replies.into_iter().chain(std::iter::repeat_with(String::new));
                let listed = rows.into_iter().zip(replies).map(|(row, last_reply)| ArchiveRow {
                    last_reply,
                    ..self.saved_row(row, &mut kin, now_ms)
                });
                listed.collect()
            });
            let is_last = after.is_none();
            report(StoreNews::Listed { serial, rows, is_last, today_ms: when::day_start(now_ms) });
            if is_last {
                return;
            }
        }
    }

    fn saved_row(&self, row: SessionRow, kin: &mut Kin, now_ms: i64) -> ArchiveRow {
        let (nearness, is_folder_gone) = kin.of(&row.folder, row.folder_mark.as_ref());
        let open_in = self.open_in(&row);
        let first_prompt = row.first_words().unwrap_or_default().to_owned();
        let command = std::iter::once(row.command).chain(row.args).collect::<Vec<_>>().join(" ");
        ArchiveRow {
            uid: row.uid,
            agent: row.agent,
            command,
            agent_session: row.agent_session.as_deref().map(Into::into),
            folder: row.folder,
            branch: row.branch,
            title: row.title.unwrap_or_default(),
            first_prompt,
            owes_title: row.owes_title,
            updated_ms: row.updated_ms,
            when: when::ago(row.updated_ms, now_ms),
            date: when::date(row.updated_ms),
            last_reply: String::new(),
            turn_count: row.turn_count,
            was_cut: row.state == SessionState::Cut,
            open_in,
            came_from: row.came_from,
            nearness,
            is_folder_gone,
        }
    }

    fn serve_open(&self, uid: String, takes: bool, at: Option<i64>, folder: &Path) -> ArchiveOpening {
        let offers = self.row(&uid).ok().map(|row| self.folder_offers(&row, folder));
        let offers = offers.filter(|offers| !offers.is_empty());
        // A session without a folder is read-only until the user selects a folder.
        let takes = takes && offers.is_none();
        let saved = if takes { self.reopen(&uid) } else { self.peek(&uid).map(|(_, saved)| saved) };
        ArchiveOpening { uid, takes, at, saved: saved.map_err(message), offers }
    }

    /// Candidates for a session whose folder is missing, or only named by an imported file: best first; empty if the
    /// session continues in its own folder.
    pub fn folder_offers(&self, row: &SessionRow, current: &Path) -> Vec<FolderOffer> {
        if row.folder.is_dir() && (!row.is_imported || row.folder == current) {
            return Vec::new();
        }
        if row.folder.is_dir() {
            let all = [(row.folder.as_path(), FolderReason::Imported), (current, FolderReason::Current)];
            return all.map(|(folder, why)| FolderOffer { folder: folder.to_owned(), why, others: 0 }).into();
        }
        let known = self.known_folders();
        let mut offers = folder_relocation::offers(&row.folder, row.folder_mark.as_ref(), current, &known);
        for offer in offers.iter_mut().filter(|offer| offer.why == FolderReason::Moved) {
            offer.others = self.movable(&row.folder).unwrap_or_default().saturating_sub(1);
        }
        offers
    }

    /// Folders of the latest sessions.
    fn known_folders(&self) -> Vec<PathBuf> {
        let rows = self.list_page(None, PAGE).map(|(rows, _)| rows).unwrap_or_default();
        let mut seen = std::collections::HashSet::new();
        let folders = rows.into_iter().map(|row| row.folder).filter(|folder| seen.insert(folder.clone()));
        folders.take(MAX_KNOWN_FOLDERS).collect()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn message(error: StoreError) -> String {
    error.to_string()
}
