//! The sessions dialog as data: open, stored and listed sessions in one list.
//!
//! Joins the three sources by agent and id, sorts and filters them. `lifecycle::archive` loads them,
//! `dialogs::sessions` handles keys. Rows are shared, so that joining thousands of them copies none.
//! Invariants: a session is listed once; `matches` is consistent with filter, scope and rows; `selected` is an index
//! into `matches` unless that is empty.

use std::path::Path;
use std::sync::Arc;

use crate::core::LineInput;
use crate::core::Session;
use crate::core::state::fuzzy::rank;
use crate::model::{ArchiveHit, ArchiveRow, ArchiveSearch, Nearness, SessionInfo, SessionKey};

/// Which sessions are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    #[default]
    Folder,
    /// Also those of all worktrees of its repository.
    Repository,
    All,
}

/// The group of sessions of earlier days without a reply of an agent.
const NO_REPLY: &str = "No reply";

/// The sort order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// Latest first.
    #[default]
    Time,
    Name,
    /// By agent, then latest first.
    Agent,
    /// By folder, then latest first.
    Folder,
}

/// The columns of the list that are not the same in each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Columns {
    pub agent: bool,
    pub folder: bool,
    pub branch: bool,
}

/// A session that is open in parlor, as a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRow {
    pub key: SessionKey,
    /// Title or first prompt.
    pub name: String,
    pub agent: String,
    pub branch: Option<String>,
    pub is_child: bool,
    /// Its activity, if relevant to the choice.
    pub state: &'static str,
    /// Whether its agent does not have the title set by the user.
    pub owes_title: bool,
}

/// A row of the list, with the sources that know the session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionEntry {
    /// Set if it is open.
    pub open: Option<OpenRow>,
    /// Set if it is stored.
    pub saved: Option<Arc<ArchiveRow>>,
    /// Set if the agent of the active session lists it.
    pub listed: Option<Arc<SessionInfo>>,
    pub(in crate::ui) lister: Arc<str>,
    pub(in crate::ui) folder: Arc<Path>,
    /// How its folder relates to the user's.
    pub nearness: Nearness,
    /// Unix milliseconds of the last change; 0 if unknown.
    pub updated_ms: i64,
}

/// The full-text search of the dialog.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TextSearch {
    /// Number of the current or last search.
    pub serial: u64,
    pub is_running: bool,
    /// The hits, best first.
    pub hits: Vec<ArchiveHit>,
    pub selected: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    pub uid: String,
    /// The end of the session; `None` while it is read, or if that failed.
    pub session: Option<Box<Session>>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionsDialog {
    /// Number of the list that is being read.
    pub serial: u64,
    /// The filter, or the full-text query.
    pub filter: LineInput,
    pub scope: Scope,
    pub sort: Sort,
    pub saved: Vec<Arc<ArchiveRow>>,
    /// Whether more rows will follow.
    pub is_loading: bool,
    /// The start of today in Unix milliseconds; 0 if unknown.
    pub today_ms: i64,
    /// The columns that differ between the shown rows.
    pub columns: Columns,
    /// Why the store's rows are missing.
    pub problem: Option<String>,
    pub rows: Vec<SessionEntry>,
    /// Indices into `rows` of the shown sessions, in order.
    pub matches: Vec<usize>,
    pub hidden_count: usize,
    pub hidden_matches: usize,
    /// The selected row, an index into `matches`.
    pub selected: usize,
    pub active: SessionKey,
    /// Whether the user selected the row; otherwise the first one that is not active is selected.
    pub is_chosen: bool,
    pub preview: Option<Preview>,
    /// The full-text search, if active.
    pub text: Option<TextSearch>,
}

impl SessionEntry {
    /// Title, otherwise the first prompt.
    pub fn name(&self) -> &str {
        let listed = self.listed.as_ref().and_then(|info| info.title.as_deref());
        let saved = self.saved.as_ref().map(|row| row.title.as_str());
        let open = self.open.as_ref().map(|open| open.name.as_str());
        let first = self.saved.as_ref().map(|row| row.first_prompt.as_str());
        let names = [open, saved, listed, first].into_iter().flatten();
        // The prompts of a session that only its agent has are not known.
        let nameless = if self.saved.is_some() { "No prompt yet" } else { "Untitled" };
        names.map(str::trim).find(|name| !name.is_empty()).unwrap_or(nameless)
    }

    pub fn agent(&self) -> &str {
        let open = self.open.as_ref().map(|open| open.agent.as_str());
        open.or(self.saved.as_ref().map(|row| row.agent.as_str())).unwrap_or(&self.lister)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The last known branch.
    pub fn branch(&self) -> &str {
        let open = self.open.as_ref().and_then(|open| open.branch.as_deref());
        open.or(self.saved.as_ref().and_then(|row| row.branch.as_deref())).unwrap_or_default()
    }

    /// Time of the last change, formatted.
    pub fn when(&self) -> String {
        let saved = self.saved.as_ref().map(|row| row.when.clone());
        let listed = || self.listed.as_ref()?.updated_at.as_deref().map(short_time);
        saved.or_else(listed).unwrap_or_default()
    }

    /// Whether it is from an earlier day, and no agent ever replied.
    pub(in crate::ui) fn is_unanswered(&self, today_ms: i64) -> bool {
        let is_older = self.updated_ms < today_ms && self.open.is_none() && self.listed.is_none();
        is_older && self.last_reply().trim().is_empty()
    }

    /// The group of the row: `Open`, the day of its last change, or `No reply`.
    pub fn group(&self, today_ms: i64) -> &str {
        const DAY_MS: i64 = 86_400_000;
        let date = || {
            let saved = self.saved.as_ref().map(|row| row.date.as_str());
            let listed = || self.listed.as_ref()?.updated_at.as_deref()?.split('T').next();
            saved.or_else(listed).filter(|date| !date.is_empty()).unwrap_or("Unknown date")
        };
        match self.updated_ms {
            _ if self.open.is_some() => "Open",
            _ if self.is_unanswered(today_ms) => NO_REPLY,
            at if today_ms > 0 && at >= today_ms => "Today",
            at if today_ms > 0 && at >= today_ms - DAY_MS => "Yesterday",
            _ => date(),
        }
    }

    /// The start of the agent's last reply.
    pub fn last_reply(&self) -> &str {
        self.saved.as_ref().map(|row| row.last_reply.as_str()).unwrap_or_default()
    }

    /// Whether its agent does not have the title set by the user.
    pub fn owes_title(&self) -> bool {
        let saved = || self.saved.as_ref().is_some_and(|row| row.owes_title);
        self.open.as_ref().map_or_else(saved, |open| open.owes_title)
    }

    pub fn is_archived(&self) -> bool {
        self.listed.as_ref().is_some_and(|info| info.is_archived)
    }

    /// Whether the agent has it in memory, for any client.
    pub fn is_live(&self) -> bool {
        self.listed.as_ref().is_some_and(|info| info.is_live == Some(true))
    }

    pub fn uid(&self) -> Option<&str> {
        self.saved.as_ref().map(|row| row.uid.as_str())
    }

    /// The text matched in addition to the name.
    fn detail(&self) -> String {
        let first = self.saved.as_ref().map(|row| row.first_prompt.as_str()).unwrap_or_default();
        format!("{} {} {} {first}", self.agent(), self.branch(), self.folder.display())
    }
}

impl SessionsDialog {
    pub fn marked(&self) -> Option<&SessionEntry> {
        self.matches.get(self.selected).and_then(|position| self.rows.get(*position))
    }

    pub fn has_kin(&self) -> bool {
        self.rows.iter().any(|row| row.nearness == Nearness::SameRepository)
    }

    /// The preview of the selected session, once it has been read.
    pub fn marked_preview(&self) -> Option<&Session> {
        let uid = self.marked()?.uid()?;
        self.preview.as_ref().filter(|preview| preview.uid == uid)?.session.as_deref()
    }

    /// The selected hit of the full-text search.
    pub fn marked_hit(&self) -> Option<&ArchiveHit> {
        self.text.as_ref().and_then(|text| text.hits.get(text.selected))
    }

    pub fn is_grouped(&self) -> bool {
        self.sort == Sort::Time && self.text.is_none() && self.filter.text.trim().is_empty()
    }

    /// Filters again; selects the first session that is not active.
    pub fn refilter(&mut self) {
        self.filter_rows();
        let shown = || self.matches.iter().filter_map(|position| self.rows.get(*position));
        self.columns = Columns {
            agent: differ(shown().map(SessionEntry::agent)),
            folder: differ(shown().map(|row| row.folder().to_str().unwrap_or_default())),
            branch: differ(shown().map(SessionEntry::branch)),
        };
    }

    fn filter_rows(&mut self) {
        let mut shown = Vec::with_capacity(self.rows.len());
        let mut hidden = Vec::new();
        for (position, row) in self.rows.iter().enumerate() {
            let is_near = match self.scope {
                Scope::Folder => row.nearness == Nearness::Here,
                Scope::Repository => row.nearness != Nearness::Elsewhere,
                Scope::All => true,
            };
            // Archived sessions are hidden except in the scope of all.
            let is_wanted = is_near && (self.scope == Scope::All || !row.is_archived());
            if is_wanted || row.open.is_some() {
                shown.push(position);
            } else {
                hidden.push(position);
            }
        }
        self.hidden_count = hidden.len();
        self.hidden_matches = 0;
        self.selected = 0;
        if self.filter.text.trim().is_empty() || self.text.is_some() {
            self.matches = shown;
            let is_other = |position: &usize| {
                let open = self.rows.get(*position).and_then(|row| row.open.as_ref());
                open.is_none_or(|open| open.key != self.active && !open.is_child)
            };
            self.selected = self.matches.iter().position(is_other).unwrap_or(0);
            return;
        }
        self.matches = self.ranked(&shown);
        if self.matches.is_empty() {
            self.hidden_matches = self.ranked(&hidden).len();
        }
    }

    /// The rows that match the filter, best first.
    fn ranked(&self, rows: &[usize]) -> Vec<usize> {
        let texts: Vec<(&str, String)> = rows
            .iter()
            .filter_map(|position| self.rows.get(*position))
            .map(|row| (row.name(), row.detail()))
            .collect();
        let ranked = rank(&self.filter.text, texts.iter().map(|(name, detail)| (*name, detail.as_str())));
        ranked.into_iter().filter_map(|position| rows.get(position).copied()).collect()
    }
}

/// Whether there are different texts, apart from empty ones.
fn differ<'a>(texts: impl Iterator<Item = &'a str>) -> bool {
    let mut texts = texts.filter(|text| !text.is_empty());
    texts.next().is_some_and(|first| texts.any(|text| text != first))
}

/// Formats `2026-11-20T14:03:22Z` as `2026-11-20 14:03`; other formats are returned unchanged.
fn short_time(text: &str) -> String {
    match text.split_once('T') {
        Some((date, time)) if date.len() == 10 => {
            format!("{date} {}", time.chars().take(5).collect::<String>())
        }
        _ => text.to_owned(),
    }
}

/// Shorter word prefixes match nearly everything.
const MIN_BEGINNING: usize = 3;

/// Parses a full-text query: words, and filters like `agent:claude`, `kind:edit`, `is:error`, `days:7`, `in:folder`.
/// `here` is the folder of `in:here`.
pub fn read_search(text: &str, here: &Path) -> ArchiveSearch {
    const KINDS: [&str; 8] = ["prompt", "answer", "thought", "edit", "command", "tool", "error", "notice"];
    let mut search = ArchiveSearch::default();
    let mut words: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        match word.split_once(':') {
            Some(("agent", name)) if !name.is_empty() => search.agent = Some(name.to_owned()),
            Some(("in", "here")) => search.folder = Some(here.to_owned()),
            Some(("in", folder)) if folder.starts_with('/') => search.folder = Some(folder.into()),
            Some(("days", number)) if number.parse::<u32>().is_ok() => search.days = number.parse().ok(),
            Some(("is", "error" | "failed")) => search.only_errors = true,
            Some(("kind", kind)) if KINDS.iter().any(|known| *known == kind.trim_end_matches('s')) => {
                let kind = kind.trim_end_matches('s');
                search.kinds.extend(KINDS.iter().find(|known| **known == kind));
            }
            _ => words.push(word),
        }
    }
    search.text = words.join(" ");
    // The word being typed is a prefix.
    let is_open = !text.ends_with(char::is_whitespace) && search.text.matches('"').count() % 2 == 0;
    let last = search.text.split_whitespace().next_back().unwrap_or_default();
    if is_open && last.ends_with(char::is_alphanumeric) && last.chars().count() >= MIN_BEGINNING {
        search.text.push('*');
    }
    search
}
