//! Search of earlier prompts: those of recorded sessions, and those of folders whose session is not recorded.
//!
//! All prompts are read once, and searched in memory until the list is closed.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use memchr::memmem::Finder;
use nucleo_matcher::chars::{normalize, to_lower_case};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use rusqlite::Connection;

use super::fault::StoreError;
use super::handle::Store;
use super::support::unix_ms;
use super::{format, rows};
use crate::host::when;
use crate::lock::lock;
use crate::model::{Attachment, AttachmentKind, FoundPrompt, PromptQuery, PromptSource, Record, with_labels};

/// Maximum number of results, and of bytes in their texts.
const MAX_FOUND: usize = 200;
const MAX_FOUND_BYTES: usize = 8 << 20;
/// Maximum size of all texts in memory; the oldest prompts are left out.
const MAX_BYTES: usize = 32 << 20;
/// Maximum number of characters of a prompt that are searched.
const MAX_CHARS: usize = 2_000;
/// Maximum number of texts, the latest, and of characters of each, in which letters are searched, which is slow.
const MAX_SIMILAR: usize = 20_000;
const MAX_SIMILAR_CHARS: usize = 200;

/// A single line that was pasted has a label only from this size on.
const MIN_PASTED_BYTES: usize = 2_000;

/// The prompts of all folders, latest first; each once per folder.
#[derive(Debug)]
pub(super) struct PromptIndex {
    prompts: Vec<Prompt>,
    texts: Vec<PromptText>,
    sessions: HashMap<i64, SessionName>,
}

#[derive(Debug)]
struct PromptText {
    text: Arc<str>,
    /// Its start without case and accents.
    folded: Box<str>,
    letters: u64,
}

#[derive(Debug)]
struct Prompt {
    text: usize,
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

/// The numbers of texts and prompts while they are read.
#[derive(Default)]
struct Known {
    texts: HashMap<Arc<str>, usize>,
    prompts: HashMap<(Arc<str>, usize), usize>,
}

impl Store {
    /// Searches the prompts, latest first where they contain the words; otherwise those with their letters, best first.
    /// Returns at most 200, and how many match.
    pub fn search_prompts(&self, query: &PromptQuery) -> Result<(Vec<FoundPrompt>, usize), StoreError> {
        let mut index = lock(&self.inner.prompts);
        if query.is_new || index.is_none() {
            *index = Some(self.with(|conn| PromptIndex::read(conn))?);
        }
        Ok(index.as_ref().map(|index| index.find(query)).unwrap_or_default())
    }

    pub fn forget_prompts(&self) {
        *lock(&self.inner.prompts) = None;
    }
}

impl PromptIndex {
    fn read(conn: &Connection) -> rusqlite::Result<Self> {
        let mut folders: HashMap<String, Arc<str>> = HashMap::new();
        let mut shared =
            |folder: String| Arc::clone(folders.entry(folder).or_insert_with_key(|it| it.as_str().into()));
        let sessions = sessions(conn, &mut shared)?;
        let mut all = Self { prompts: Vec::new(), texts: Vec::new(), sessions };
        let mut known = Known::default();
        let label = format!("[{} #", AttachmentKind::Text.name());
        let sql = "SELECT text FROM prompts WHERE instr(text, ?1) > 0";
        let (labelled, _) = rows::readable(conn, sql, [&label], |row| row.get::<_, String>(0))?;
        let labelled: HashSet<_> = labelled.into_iter().collect();
        let mut bytes = 0;
        let mut query = conn.prepare_cached(
            "SELECT d.text, d.at, d.session, d.seq, l.body FROM docs d LEFT JOIN log l USING (session, seq)
                WHERE d.kind = 'prompt' ORDER BY d.at DESC",
        )?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()?
            && bytes < MAX_BYTES
        {
            let (Ok(session), Ok(seq), Ok(at_ms), Ok(text)) =
                (row.get(2), row.get(3), row.get(1), row.get(0))
            else {
                continue;
            };
            let Some(folder) = all.sessions.get(&session).map(|it| Arc::clone(&it.folder)) else { continue };
            let text = match row.get_ref(4)?.as_str().ok().and_then(format::decode) {
                Some(Record::Answered { .. }) => continue,
                // The contents of labels are kept with the prompts of folders.
                Some(Record::Prompt { typed: Some(typed), .. })
                    if !typed.contains(&label) || labelled.contains(&typed) =>
                {
                    typed
                }
                // The search texts hold only the start of a long prompt.
                Some(Record::Prompt { text, pasted, .. }) => as_typed(text, &pasted, &labelled),
                _ => text,
            };
            bytes += text.len();
            all.add(&mut known, text.into(), folder, at_ms, Some((session, seq)));
        }
        let mut query = conn.prepare_cached("SELECT text, at, folder FROM prompts ORDER BY id DESC")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()?
            && bytes < 2 * MAX_BYTES
        {
            let (Ok(text), Ok(at_ms), Ok(folder)) = (row.get::<_, String>(0), row.get(1), row.get(2)) else {
                continue;
            };
            bytes += text.len();
            all.add(&mut known, text.into(), shared(folder), at_ms, None);
        }
        all.prompts.sort_by_key(|prompt| std::cmp::Reverse(prompt.at_ms));
        Ok(all)
    }

    /// Adds a prompt, or the later time of a known one.
    fn add(
        &mut self,
        known: &mut Known,
        text: Arc<str>,
        folder: Arc<str>,
        at_ms: i64,
        source: Option<(i64, i64)>,
    ) {
        let position = *known.texts.entry(Arc::clone(&text)).or_insert(self.texts.len());
        if position == self.texts.len() {
            let folded = folded(&text);
            self.texts.push(PromptText { text, letters: letters(&folded), folded });
        }
        let text = position;
        let position = *known.prompts.entry((Arc::clone(&folder), text)).or_insert(self.prompts.len());
        match self.prompts.get_mut(position) {
            Some(prompt) => prompt.at_ms = prompt.at_ms.max(at_ms),
            None => self.prompts.push(Prompt { text, folder, at_ms, source }),
        }
    }

    fn find(&self, query: &PromptQuery) -> (Vec<FoundPrompt>, usize) {
        let folder = query.folder.as_ref().map(|folder| folder.to_string_lossy());
        let is_wanted = |prompt: &&Prompt| folder.as_ref().is_none_or(|folder| **folder == *prompt.folder);
        // A text is listed once, at its latest time.
        let mut seen = vec![false; self.texts.len()];
        let mut is_new =
            |text: usize| seen.get_mut(text).is_some_and(|is_seen| !std::mem::replace(is_seen, true));
        let wanted = self.prompts.iter().filter(is_wanted).filter(|prompt| is_new(prompt.text));
        let all: Vec<(&Prompt, &PromptText)> =
            wanted.filter_map(|prompt| Some((prompt, self.texts.get(prompt.text)?))).collect();
        let folded = folded(&query.text);
        let words: Vec<Finder<'_>> = folded.split_whitespace().map(Finder::new).collect();
        let has_words =
            |text: &PromptText| words.iter().all(|word| word.find(text.folded.as_bytes()).is_some());
        let mut found: Vec<_> = all.iter().copied().filter(|(_, text)| has_words(text)).collect();
        if found.is_empty() {
            found = similar(&all, &folded);
        }
        let (now_ms, mut bytes) = (unix_ms(), 0);
        let shown: Vec<_> = found
            .iter()
            .take(MAX_FOUND)
            .take_while(|(_, text)| {
                bytes += text.text.len();
                bytes <= MAX_FOUND_BYTES || bytes == text.text.len()
            })
            .collect();
        // The latest session that a text was sent in.
        let mut origins: HashMap<usize, Option<&Prompt>> =
            shown.iter().map(|(prompt, _)| (prompt.text, None)).collect();
        for prompt in self.prompts.iter().filter(is_wanted).filter(|prompt| prompt.source.is_some()) {
            if let Some(origin) = origins.get_mut(&prompt.text) {
                origin.get_or_insert(prompt);
            }
        }
        let origin = |prompt: &Prompt| origins.get(&prompt.text).copied().flatten();
        let shown = shown
            .iter()
            .map(|(prompt, text)| self.found(prompt, text, origin(prompt).unwrap_or(prompt), now_ms));
        (shown.collect(), found.len())
    }

    /// A prompt with its time, and the folder and session of the same text.
    fn found(&self, prompt: &Prompt, text: &PromptText, origin: &Prompt, now_ms: i64) -> FoundPrompt {
        let source = origin.source.and_then(|(session, seq)| {
            let of = self.sessions.get(&session)?;
            let (uid, agent, name) = (of.uid.clone(), of.agent.clone(), of.name.clone());
            Some(PromptSource { uid, agent, name, seq })
        });
        FoundPrompt {
            text: text.text.to_string(),
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
    let sql = "SELECT id, uid, agent, folder, coalesce(nullif(trim(title), ''), first_prompt, '') AS name
        FROM listed WHERE NOT is_child";
    let (found, _) = rows::readable(conn, sql, [], |row| {
        let (uid, agent, folder, name) = (row.get(1)?, row.get(2)?, shared(row.get(3)?), row.get(4)?);
        Ok((row.get(0)?, SessionName { uid, agent, name, folder }))
    })?;
    Ok(found.into_iter().collect())
}

/// The text of a prompt as it was typed, with labels of pasted texts, if it was typed so in a folder: else it would
/// be listed twice. For prompts that were recorded without the typed text.
fn as_typed(text: String, pasted: &[Range<usize>], labelled: &HashSet<String>) -> String {
    if labelled.is_empty() || (!text.contains('\n') && text.len() < MIN_PASTED_BYTES) {
        return text;
    }
    let typed = with_labels(&text, pasted, |text| Attachment::of_text(text).label());
    if labelled.contains(&typed) { typed } else { text }
}

/// The latest texts that start with the letters of each word in order, best first.
fn similar<'a>(all: &[(&'a Prompt, &'a PromptText)], words: &str) -> Vec<(&'a Prompt, &'a PromptText)> {
    let mut matcher = Matcher::new(Config::DEFAULT);
    let (mut text_chars, mut word_chars) = (Vec::new(), Vec::new());
    let wanted = letters(words);
    let mut score = |text: &PromptText| {
        let end = text.folded.char_indices().nth(MAX_SIMILAR_CHARS).map(|(end, _)| end);
        let head = text.folded.get(..end.unwrap_or(text.folded.len())).unwrap_or_default();
        let head = Utf32Str::new(head, &mut text_chars);
        words.split_whitespace().try_fold(0, |sum, word| {
            Some(sum + u32::from(matcher.fuzzy_match_greedy(head, Utf32Str::new(word, &mut word_chars))?))
        })
    };
    let mut found: Vec<_> = all
        .iter()
        .take(MAX_SIMILAR)
        .filter(|(_, text)| text.letters & wanted == wanted)
        .filter_map(|found| Some((score(found.1)?, *found)))
        .collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().map(|(_, found)| found).collect()
}

/// The start of a text without case and accents.
fn folded(text: &str) -> Box<str> {
    let fold = |ch: char| {
        if ch.is_ascii() { ch.to_ascii_lowercase() } else { to_lower_case(normalize(ch)) }
    };
    text.chars().take(MAX_CHARS).map(fold).collect::<String>().into()
}

/// A set of bits that contains one for each byte of the words in a text, to exclude most texts at once.
fn letters(text: &str) -> u64 {
    text.split_whitespace().flat_map(str::bytes).fold(0, |letters, byte| letters | 1 << (byte & 63))
}
