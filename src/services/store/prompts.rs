//! Search of earlier prompts: those of recorded sessions, and those of folders whose session is not recorded.
//!
//! All prompts are read once, and searched in memory until the list is closed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use rusqlite::{Connection, params};

use super::search::MAX_TEXT_BYTES;
use super::{Store, StoreError, format, locked, unix_ms};
use crate::model::{FoundPrompt, PromptQuery, PromptSource, Record};
use crate::services::when;

/// Maximum number of results, and of bytes in their texts.
const MAX_FOUND: usize = 200;
const MAX_FOUND_BYTES: usize = 8 << 20;
/// Maximum size of all texts in memory; the oldest prompts are left out.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of characters of a prompt that are matched.
const MAX_CHARS: usize = 2_000;

/// The prompts of all folders, latest first; each once per folder.
#[derive(Debug)]
pub(super) struct PromptIndex {
    prompts: Vec<Prompt>,
    sessions: HashMap<i64, SessionName>,
}

#[derive(Debug)]
struct Prompt {
    text: Arc<str>,
    folder: Arc<str>,
    at_ms: i64,
    /// Number of the session's row, and of the event.
    source: Option<(i64, i64)>,
}

#[derive(Debug)]
struct SessionName {
    uid: String,
    agent: String,
    name: String,
    folder: Arc<str>,
}

impl Store {
    /// Searches the prompts, latest first where they contain the words; otherwise those with their letters, best first.
    /// Returns at most 200, and how many match.
    pub fn search_prompts(&self, query: &PromptQuery) -> Result<(Vec<FoundPrompt>, usize), StoreError> {
        let mut index = locked(&self.inner.prompts);
        if query.is_new || index.is_none() {
            *index = Some(self.with(|conn| PromptIndex::read(conn))?);
        }
        Ok(index.as_ref().map(|index| index.find(query)).unwrap_or_default())
    }

    /// Frees the prompts in memory.
    pub fn forget_prompts(&self) {
        *locked(&self.inner.prompts) = None;
    }
}

impl PromptIndex {
    fn read(conn: &Connection) -> rusqlite::Result<Self> {
        let mut folders: HashMap<String, Arc<str>> = HashMap::new();
        let mut shared =
            |folder: String| Arc::clone(folders.entry(folder).or_insert_with_key(|it| it.as_str().into()));
        let sessions = sessions(conn, &mut shared)?;
        let mut all = Self { prompts: Vec::new(), sessions };
        let mut known: HashMap<(Arc<str>, Arc<str>), usize> = HashMap::new();
        let mut bytes = 0;
        let mut query = conn.prepare_cached(
            "SELECT text, at, session, seq FROM docs
                WHERE kind = 'prompt' AND NOT EXISTS (SELECT 1 FROM events
                    WHERE events.session = docs.session AND events.seq = docs.seq AND events.kind = 'answered')
                ORDER BY at DESC",
        )?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()?
            && bytes < MAX_BYTES
        {
            let (session, seq): (i64, i64) = (row.get(2)?, row.get(3)?);
            let Some(folder) = all.sessions.get(&session).map(|it| Arc::clone(&it.folder)) else { continue };
            let text = whole_text(conn, row.get(0)?, session, seq)?;
            bytes += text.len();
            all.add(&mut known, text.into(), folder, row.get(1)?, Some((session, seq)));
        }
        let mut query = conn.prepare_cached("SELECT text, at, folder FROM prompts ORDER BY id DESC")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()?
            && bytes < 2 * MAX_BYTES
        {
            let text: String = row.get(0)?;
            bytes += text.len();
            all.add(&mut known, text.into(), shared(row.get(2)?), row.get(1)?, None);
        }
        all.prompts.sort_by_key(|prompt| std::cmp::Reverse(prompt.at_ms));
        Ok(all)
    }

    /// Adds a prompt, or the later time of a known one.
    fn add(
        &mut self,
        known: &mut HashMap<(Arc<str>, Arc<str>), usize>,
        text: Arc<str>,
        folder: Arc<str>,
        at_ms: i64,
        source: Option<(i64, i64)>,
    ) {
        let position = *known.entry((Arc::clone(&folder), Arc::clone(&text))).or_insert(self.prompts.len());
        match self.prompts.get_mut(position) {
            Some(prompt) => prompt.at_ms = prompt.at_ms.max(at_ms),
            None => self.prompts.push(Prompt { text, folder, at_ms, source }),
        }
    }

    fn find(&self, query: &PromptQuery) -> (Vec<FoundPrompt>, usize) {
        let folder = query.folder.as_ref().map(|folder| folder.to_string_lossy());
        let is_wanted = |prompt: &&Prompt| folder.as_ref().is_none_or(|folder| **folder == *prompt.folder);
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut positions = Vec::new();
        let mut found: Vec<(u32, &Prompt)> = Vec::new();
        for kind in [AtomKind::Substring, AtomKind::Fuzzy] {
            let pattern = Pattern::new(&query.text, CaseMatching::Ignore, Normalization::Smart, kind);
            found = self
                .prompts
                .iter()
                .filter(is_wanted)
                .filter_map(|prompt| {
                    let text = Utf32Str::new(head(&prompt.text), &mut positions);
                    Some((pattern.score(text, &mut matcher)?, prompt))
                })
                .collect();
            if kind == AtomKind::Fuzzy {
                found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
            }
            if !found.is_empty() {
                break;
            }
        }
        // A text is listed once, with the latest session that it was sent in.
        let mut sent: HashMap<&str, &Prompt> = HashMap::new();
        for (_, prompt) in found.iter().filter(|(_, prompt)| prompt.source.is_some()) {
            sent.entry(&prompt.text).or_insert(prompt);
        }
        let mut seen = std::collections::HashSet::new();
        found.retain(|(_, prompt)| seen.insert(&prompt.text));
        let (now_ms, mut bytes) = (unix_ms(), 0);
        let shown = found.iter().take(MAX_FOUND).take_while(|(_, prompt)| {
            bytes += prompt.text.len();
            bytes <= MAX_FOUND_BYTES || bytes == prompt.text.len()
        });
        let origin = |prompt: &Prompt| sent.get(&*prompt.text).copied();
        let shown =
            shown.map(|(_, prompt)| self.found(prompt, origin(prompt).unwrap_or(prompt), now_ms)).collect();
        (shown, found.len())
    }

    /// A prompt with its time, and the folder and session of the same text.
    fn found(&self, prompt: &Prompt, origin: &Prompt, now_ms: i64) -> FoundPrompt {
        let source = origin.source.and_then(|(session, seq)| {
            let of = self.sessions.get(&session)?;
            let (uid, agent, name) = (of.uid.clone(), of.agent.clone(), of.name.clone());
            Some(PromptSource { uid, agent, name, seq })
        });
        FoundPrompt {
            text: prompt.text.to_string(),
            folder: PathBuf::from(&*origin.folder),
            when: when::ago(prompt.at_ms, now_ms),
            source,
        }
    }
}

/// The sessions by their row, without those of subagents.
fn sessions(
    conn: &Connection,
    shared: &mut impl FnMut(String) -> Arc<str>,
) -> rusqlite::Result<HashMap<i64, SessionName>> {
    let mut query = conn.prepare_cached(
        "SELECT id, uid, agent, folder, coalesce(nullif(trim(title), ''), first_prompt, '') AS name
            FROM sessions WHERE NOT is_child",
    )?;
    let mut rows = query.query([])?;
    let mut sessions = HashMap::new();
    while let Some(row) = rows.next()? {
        let session = SessionName {
            uid: row.get(1)?,
            agent: row.get(2)?,
            folder: shared(row.get(3)?),
            name: row.get(4)?,
        };
        sessions.insert(row.get(0)?, session);
    }
    Ok(sessions)
}

/// The text of a prompt; the search texts hold only the start of a long one.
fn whole_text(conn: &Connection, text: String, session: i64, seq: i64) -> rusqlite::Result<String> {
    if text.len() + 4 < MAX_TEXT_BYTES {
        return Ok(text);
    }
    let mut query = conn.prepare_cached("SELECT body FROM events WHERE session = ?1 AND seq = ?2")?;
    let body: Option<String> = query.query_row(params![session, seq], |row| row.get(0)).ok();
    Ok(match body.as_deref().and_then(format::decode) {
        Some(Record::Prompt { text, .. }) => text,
        _ => text,
    })
}

/// The start of a text.
fn head(text: &str) -> &str {
    text.char_indices().nth(MAX_CHARS).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}
