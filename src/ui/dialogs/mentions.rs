//! Mentions in the draft, and paths as arguments of slash commands: the list of files, symbols, sessions, outputs and
//! changes, and inserting one.
//!
//! Symbols and sessions are listed below the first files if they match, and alone after `symbol:` and `session:`.

mod list;

use std::ops::Range;
use std::path::Path;

use super::completion::{Completion, CompletionKind};
use crate::core::state::fuzzy;
use crate::core::state::session::KnownOutput;
use crate::core::{Cx, Effect, Session, ViewCommand};
use crate::model::{
    CHANGES, FileQuery, FoundFile, FoundSymbol, LAST_OUTPUT, MentionedSession, SESSIONS, SYMBOLS,
    SessionAttachJob, SessionKey, StoreJob, argument_text, byte_size, mention_text, mentions, output_name,
    output_number, symbol_name, typed_argument, typed_mention,
};
use crate::ui::App;

pub use list::MentionList;

/// Number of files that are offered before anything else while the query is short.
const FILES_BEFORE_OTHERS: usize = 3;

/// Maximum number of symbols and of sessions that are offered below files.
const SYMBOLS_BELOW_FILES: usize = 3;
const SESSIONS_BELOW_FILES: usize = 2;

/// Maximum number of outputs that are offered by number.
const MAX_OUTPUTS: usize = 20;

/// Number of earlier prompts that are searched for mentions.
const RECENT_PROMPTS: usize = 50;

/// A mention is being typed: its bytes in the draft, and the path so far; `None` if none is.
pub fn on_mention(app: &mut App, typed: Option<(Range<usize>, String)>, cx: &mut Cx) {
    look_up(app, typed, false, cx);
}

/// An argument of a slash command is to be completed as a path: its bytes in the draft, and the path so far.
pub fn on_argument(app: &mut App, typed: (Range<usize>, String), cx: &mut Cx) {
    look_up(app, Some(typed), true, cx);
}

fn look_up(app: &mut App, typed: Option<(Range<usize>, String)>, is_argument: bool, cx: &mut Cx) {
    let former = app.user.mention.take();
    let Some(session) =
        app.state.sessions.get_mut(&app.state.active).filter(|session| session.parent.is_none())
    else {
        return;
    };
    // A listed file that was typed completely counts as chosen.
    if let Some(list) = former.as_ref().filter(|list| list.session == session.key)
        && list.found.iter().any(|file| file.path == list.query)
    {
        session.listed_files.add(&list.query);
    }
    let Some((range, query)) = typed else { return };
    let list = former.filter(|list| list.session == session.key && list.is_argument == is_argument);
    let is_new = list.is_none();
    let list = list.unwrap_or_else(|| MentionList {
        is_argument,
        session: session.key,
        recent: recent(session),
        ..MentionList::default()
    });
    // Files of another machine cannot be listed.
    if session.workspace.remote.is_none() {
        cx.effects.push(Effect::FindFiles(FileQuery {
            session: session.key,
            folder: session.workspace.cwd.clone(),
            roots: session.workspace.roots(),
            query: query.clone(),
            recent: list.recent.clone(),
        }));
    }
    if is_new && !is_argument {
        cx.effects.push(Effect::Store(StoreJob::Mentionable { folder: session.workspace.cwd.clone() }));
    }
    // Typing goes on with the list that the key has opened.
    let is_completing = is_new && is_argument;
    app.user.mention = Some(MentionList { is_completing, range, query, ..list });
    app.user.completion = 0;
}

/// Files were found for the mention. The only one completes an argument. `is_complete`: no others will be found.
pub fn on_found(
    app: &mut App,
    session: SessionKey,
    query: String,
    files: Vec<FoundFile>,
    is_complete: bool,
    cx: &mut Cx,
) {
    let Some(list) = app.user.mention.as_mut().filter(|list| list.query == query) else { return };
    if app.state.active != session {
        return;
    }
    let is_only = list.is_completing && is_complete && files.len() == 1;
    (list.found, list.found_for) = (files, query);
    if is_only && let Some(chosen) = completions(app).and_then(|offers| offers.into_iter().next()) {
        insert(app, chosen, cx);
    }
}

pub fn on_symbols_found(
    app: &mut App,
    session: SessionKey,
    query: String,
    symbols: Vec<FoundSymbol>,
    has_tags: bool,
) {
    if app.state.active == session
        && let Some(list) = &mut app.user.mention
        && list.query == query
    {
        (list.symbols, list.symbols_for, list.has_tags) = (symbols, query, has_tags);
    }
}

/// The saved sessions of a folder were listed. The session of the draft is left out.
pub fn on_mentionable(app: &mut App, folder: &Path, mut sessions: Vec<MentionedSession>) {
    let Some(session) =
        app.state.sessions.get(&app.state.active).filter(|session| session.workspace.cwd == folder)
    else {
        return;
    };
    if let Some(list) = &mut app.user.mention {
        let own = session.recorder.saved_as();
        sessions.retain(|saved| Some(saved.uid.as_str()) != own);
        list.sessions = sessions;
    }
}

/// The mention that is being typed, if the draft still has it.
pub fn current(app: &App) -> Option<&MentionList> {
    let session = app.state.active_session()?;
    let is_current = |list: &&MentionList| {
        let typed = if list.is_argument { typed_argument } else { typed_mention };
        list.session == session.key
            && typed(&session.draft, list.range.end)
                .is_some_and(|(range, path)| range == list.range && path == list.query)
    };
    app.user.mention.as_ref().filter(is_current)
}

/// The files that match the mention, best first, with everything else that does.
pub fn completions(app: &App) -> Option<Vec<Completion>> {
    let list = current(app)?;
    let session = app.state.active_session()?;
    let offer = |file: &FoundFile| {
        let name = &file.path;
        let name = if is_reserved(name) && !list.is_argument { format!("./{name}") } else { name.clone() };
        Completion::new(name, String::new(), CompletionKind::File)
    };
    let mut offered: Vec<Completion> = if list.found_for == list.query {
        // A folder that was chosen is not offered again among its files.
        let is_open = |file: &&FoundFile| file.path == list.query && file.path.ends_with('/');
        list.found.iter().filter(|file| !is_open(file)).map(offer).collect()
    } else {
        // Until the answer is there, the former files are filtered.
        let rows = list.found.iter().map(|file| (file.path.as_str(), ""));
        let positions = fuzzy::rank(&list.query, rows);
        positions.into_iter().filter_map(|position| list.found.get(position)).map(offer).collect()
    };
    if list.is_argument {
        return Some(offered);
    }
    if let Some(words) = list.query.strip_prefix(SESSIONS) {
        let rows = list.sessions.iter().map(|saved| (saved.name.as_str(), ""));
        let ranked = fuzzy::rank(words, rows).into_iter().filter_map(|at| list.sessions.get(at));
        return Some(ranked.map(session_offer).collect());
    }
    let mut symbols = symbols(list);
    if list.query.starts_with(SYMBOLS) {
        return Some(symbols.collect());
    }
    let first = offered.len().min(FILES_BEFORE_OTHERS);
    let best = symbols.by_ref().take(SYMBOLS_BELOW_FILES);
    let below: Vec<Completion> = best.chain(sessions_below(list)).chain(groups(list)).collect();
    offered.extend(symbols);
    offered.splice(first..first, below);
    // Short queries are for files.
    let at = if list.query.len() < 2 { first } else { 0 };
    offered.splice(at..at, others(session, &list.query));
    Some(offered)
}

/// The symbols that match the mention, best first. Until the answer is there, the former ones are filtered.
fn symbols(list: &MentionList) -> impl Iterator<Item = Completion> {
    let name = symbol_name(&list.query).unwrap_or_default();
    let is_answer = list.symbols_for == list.query;
    let rows = list.symbols.iter().map(|symbol| (symbol.name.as_str(), ""));
    let ranked = if is_answer { (0..list.symbols.len()).collect() } else { fuzzy::rank(name, rows) };
    ranked.into_iter().filter_map(|at| list.symbols.get(at)).map(|symbol| {
        let mut location = symbol.path.clone();
        let mut mention = mention_text(&symbol.path);
        if let Some(lines) = &symbol.lines {
            let (first, last) = (lines.start(), lines.end());
            let range = if first == last { format!(":{first}") } else { format!(":{first}-{last}") };
            location.extend([":", &first.to_string()]);
            mention.push_str(&range);
        }
        let kind = if symbol.kind.is_empty() { "symbol" } else { &symbol.kind };
        let offer =
            Completion::new(symbol.name.clone(), format!("{kind}  {location}"), CompletionKind::Symbol);
        Completion { target: mention, ..offer }
    })
}

/// The sessions whose title contains the query; none for a short query.
fn sessions_below(list: &MentionList) -> impl Iterator<Item = Completion> {
    let words = list.query.to_lowercase();
    let is_match =
        move |saved: &&MentionedSession| words.len() > 2 && saved.name.to_lowercase().contains(&words);
    list.sessions.iter().filter(is_match).take(SESSIONS_BELOW_FILES).map(session_offer)
}

fn session_offer(saved: &MentionedSession) -> Completion {
    let description = format!("session  {}, {}", saved.when, saved.agent);
    let offer = Completion::new(saved.name.clone(), description, CompletionKind::Session);
    Completion { target: saved.uid.clone(), ..offer }
}

/// The prefixes that list sessions or symbols, if there are any.
fn groups(list: &MentionList) -> impl Iterator<Item = Completion> {
    let all = [
        (SYMBOLS, "a symbol of the tags file", list.has_tags),
        (SESSIONS, "another session of this folder", !list.sessions.is_empty()),
    ];
    let offered = all.into_iter().filter(|(name, _, has_any)| *has_any && name.starts_with(&list.query));
    offered.map(|(name, about, _)| Completion::new(name.to_owned(), about.to_owned(), CompletionKind::Group))
}

/// What can be mentioned besides files and symbols: outputs of commands, and the changes since the last commit.
fn others(session: &Session, query: &str) -> Vec<Completion> {
    let output = |name: String, known: &KnownOutput<'_>| {
        let state = if known.exit.is_none() { "running, " } else { "" };
        let size = byte_size(known.output.len() as u64);
        let description = format!("output of {} ({state}{size})", known.command);
        Completion::new(name, description, CompletionKind::Output)
    };
    let last = session.last_output().map(|known| output(LAST_OUTPUT.to_owned(), &known));
    let changes = session.git.as_ref().filter(|_| session.workspace.remote.is_none()).map(|_| {
        let description = "changes since the last commit".to_owned();
        Completion::new(CHANGES.to_owned(), description, CompletionKind::Output)
    });
    let numbered = query.starts_with('!').then(|| {
        let mut numbers: Vec<u32> = session.terminals.values().filter_map(|view| view.number).collect();
        numbers.sort_unstable();
        let numbers = numbers.into_iter().rev().take(MAX_OUTPUTS);
        numbers.filter_map(|number| Some(output(output_name(number), &session.output_of(number)?)))
    });
    let all = last.into_iter().chain(changes).chain(numbered.into_iter().flatten());
    all.filter(|offer| offer.name.starts_with(query)).collect()
}

/// Replaces the typed mention by the chosen one. A folder stays open for its files, and a group for its entries. The
/// transcript of a session is read first.
pub fn insert(app: &mut App, chosen: Completion, cx: &mut Cx) {
    let Some(list) = current(app) else { return };
    let (range, is_argument) = (list.range.clone(), list.is_argument);
    let Some(session) = app.state.sessions.get_mut(&app.state.active) else { return };
    let Completion { name: path, target, kind, .. } = chosen;
    if kind == CompletionKind::Session {
        let text = session.draft.get(range.clone()).unwrap_or_default().to_owned();
        let job = SessionAttachJob { session: session.key, text, at: range.start, uid: target, name: path };
        app.user.attaching = Some(session.key);
        app.user.mention = None;
        return cx.effects.push(Effect::AttachSession(job));
    }
    let is_folder = path.ends_with('/');
    let stays_open = is_folder || kind == CompletionKind::Group;
    let mut text = match kind {
        CompletionKind::Group => format!("@{path}"),
        CompletionKind::Symbol => target,
        _ if is_argument => argument_text(&path),
        _ => mention_text(&path),
    };
    if is_folder && text.ends_with('"') {
        text.pop();
    }
    let rest = session.draft.get(range.end..).unwrap_or_default();
    if !stays_open && !rest.starts_with(char::is_whitespace) {
        text.push(' ');
    }
    session.draft.replace_range(range.clone(), &text);
    session.listed_files.add_mentions(&text);
    cx.effects.push(Effect::View(ViewCommand::ReplaceInDraft(range.clone(), text.clone())));
    let typed = stays_open.then(|| (range.start..range.start + text.len(), path));
    look_up(app, typed, is_argument, cx);
}

/// Whether a mention of this path is not that of a file.
fn is_reserved(path: &str) -> bool {
    path == LAST_OUTPUT || path == CHANGES || output_number(path).is_some()
}

/// The paths that earlier prompts mention, latest first.
fn recent(session: &Session) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for text in session.history.iter().rev().take(RECENT_PROMPTS) {
        for (_, mention) in mentions(text) {
            if !paths.contains(&mention.path) && !is_reserved(&mention.path) {
                paths.push(mention.path);
            }
        }
    }
    paths
}
