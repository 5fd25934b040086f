//! The transcript: items in order of first sight, each upserted by its id.
//!
//! Every change goes through [`Transcript::push`] or [`Transcript::edit`], so no revision is forgotten.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{access, repeats};
use crate::model::{
    AccessRecord, ContentBlock, DiffChange, DiffPlace, ExitInfo, FaultKind, FileDiff, Gap, ItemId,
    LocatedDiff, Location, MessageId, Patch, Raw, Role, SessionId, SessionKey, Severity, StopReason,
    ToolCallId, ToolContent, ToolInput, ToolKind, ToolStatus, TurnUsage,
};

/// All items of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transcript {
    items: Vec<Item>,
    /// Bumped on each change of any item, so that a view knows at a glance whether to look.
    revision: u64,
    /// Revision that new items begin with: a drawing kept by (id, revision) is never taken for another item's.
    first_rev: u32,
    /// How many items were put in front of others so far: a view that kept places moves them by it.
    inserted: usize,
    /// How many items were taken away in front of others.
    removed: usize,
    /// Items that were added or changed since they were last asked for; `None`: nobody asks.
    touched: Option<BTreeSet<ItemId>>,
    edits: Edits,
}

/// Which items were edited last, so that a view of some of them need not look at all again.
#[derive(Debug, Clone, Default)]
struct Edits {
    /// Items with the revision of their last edit in a row, the latest last.
    last: VecDeque<(u64, ItemId)>,
    /// What was edited up to this revision is not known.
    forgotten: u64,
}

/// Edits that are remembered: what a turn with some agents beside it changes between two frames.
const EDITS_MAX: usize = 64;

impl PartialEq for Edits {
    /// Transcripts are alike, however they came to be so.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Edits {
    fn note(&mut self, revision: u64, id: ItemId) {
        match self.last.back_mut() {
            Some((last, same)) if *same == id => *last = revision,
            _ => self.last.push_back((revision, id)),
        }
        if self.last.len() > EDITS_MAX
            && let Some((revision, _)) = self.last.pop_front()
        {
            self.forgotten = revision;
        }
    }

    /// Items have other places now.
    fn forget(&mut self, revision: u64) {
        self.last.clear();
        self.forgotten = revision;
    }
}

/// One item.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its id; items are numbered from 0 in order, so it is also the index.
    pub id: ItemId,
    /// Bumped on each change; a cached drawing is good for one revision.
    pub rev: u32,
    /// The turn that it belongs to; 0 before the first.
    pub turn: u32,
    /// What the user chose; `None`: the rules of folding decide.
    pub is_open: Option<bool>,
    /// How often it came in a row; more than once only for notices.
    pub times: u32,
    /// Whether its changes are shown with all lines that did not change.
    pub shows_context: bool,
    /// Gaps of its changes that the user opened.
    pub open_gaps: Vec<Gap>,
    /// What it is.
    pub body: ItemBody,
}

/// What an item is.
#[derive(Debug, Clone, PartialEq)]
pub enum ItemBody {
    /// A message.
    Message(Message),
    /// A tool call.
    Tool(Box<ToolCall>),
    /// A turn ended in another way than well.
    TurnEnd(TurnEnd),
    /// A word of the agent or of parlor to the user.
    Notice {
        /// How bad.
        severity: Severity,
        /// The message.
        title: String,
        /// More of it; may have several lines.
        detail: Option<String>,
    },
    /// The context was compacted.
    Compaction {
        /// Its id.
        id: String,
        /// `in_progress`, `completed`, `failed`, `cancelled` or a word of the agent's own.
        status: String,
        /// Summary as Markdown.
        summary: String,
        /// Why it failed.
        error: Option<String>,
    },
    /// A child session.
    Subagent {
        /// Its id.
        session: SessionId,
        /// Its own transcript, once something came for it.
        key: Option<SessionKey>,
        /// Its title.
        title: String,
        /// What it is to do.
        description: Option<String>,
        /// `running`, `idle`, … in the agent's words.
        state: Option<String>,
    },
    /// A question of the agent that was answered.
    Answered {
        /// The question.
        question: String,
        /// `accepted`, `declined`, `cancelled`, with what was said.
        answer: String,
    },
    /// Something unknown, as it came.
    Raw {
        /// Its name.
        name: String,
        /// The whole.
        raw: Raw,
    },
}

/// A message: text and blocks in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// Which message, if the agent says it.
    pub message: Option<MessageId>,
    /// Its parts. Text only ever grows at the end of the last part, while the message is open.
    pub parts: Vec<MessagePart>,
    /// Whether more may come; a streamed text is rendered once more in whole when this turns false.
    pub is_open: bool,
    /// When it began.
    pub began: Instant,
    /// How long it took, once closed (shown for thoughts).
    pub took: Option<Duration>,
    /// For a user's message: sent by us just now, not told by the agent.
    pub is_local: bool,
}

impl Item {
    fn new(id: ItemId, rev: u32, turn: u32, body: ItemBody) -> Self {
        Self { id, rev, turn, is_open: None, shows_context: false, open_gaps: Vec::new(), times: 1, body }
    }

    /// Whether nothing is drawn for it: it stands with another call, or only a permission request made it.
    pub fn is_hidden(&self) -> bool {
        match &self.body {
            ItemBody::Tool(tool) if tool.is_own => tool.accesses.is_empty(),
            ItemBody::Tool(tool) => tool.from_ask_only && !access::is_worth_showing(tool),
            _ => false,
        }
    }
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum MessagePart {
    /// Markdown (plain text in a user's message).
    Text(String),
    /// Anything else.
    Block(ContentBlock),
}

/// A tool call with all that is known of it.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ToolCall {
    /// Its id, unique within its turn.
    pub id: ToolCallId,
    /// Title, in the agent's words.
    pub title: String,
    /// The tool's programmatic name.
    pub name: Option<String>,
    /// Kind.
    pub kind: ToolKind,
    /// Status.
    pub status: ToolStatus,
    /// Content.
    pub content: Vec<ToolContent>,
    /// Where its changes stand in their files, as far as that is known.
    pub places: Vec<LocatedDiff>,
    /// Locations.
    pub locations: Vec<Location>,
    /// Input as it came.
    pub raw_input: Option<Raw>,
    /// What was understood of the input.
    pub input: ToolInput,
    /// Output as it came.
    pub raw_output: Option<Raw>,
    /// The output's text.
    pub output_text: Option<String>,
    /// Exit code.
    pub exit_code: Option<i32>,
    /// The call that this one is a part of.
    pub parent: Option<ToolCallId>,
    /// `_meta` and unknown keys.
    pub extra: Option<Raw>,
    /// What was decided when the agent asked for permission.
    pub decision: Option<Decision>,
    /// Whether only a permission request made it so far.
    pub from_ask_only: bool,
    /// Whether it was approved under another id than the agent's own call, and stands with that.
    pub is_joined: bool,
    /// Changes that were approved under another id.
    pub approved: Vec<FileDiff>,
    /// Whether it is parlor's own item for what went through parlor.
    pub is_own: bool,
    /// What went through parlor for it.
    pub accesses: Vec<AccessRecord>,
    /// Whether the status is parlor's guess: the agent left the call open when its turn ended.
    pub is_status_assumed: bool,
    /// When it was first seen.
    pub began: Instant,
    /// How long it took, once final.
    pub took: Option<Duration>,
}

/// The outcome of a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The user, or a rule, chose this option (its name).
    Chosen {
        /// The option's name.
        name: String,
        /// Whether it allows.
        is_allow: bool,
    },
    /// Cancelled.
    Cancelled,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEnd {
    /// With a stop reason.
    Stopped {
        /// Why.
        reason: StopReason,
        /// Tokens.
        usage: Option<TurnUsage>,
        /// How long the turn was.
        took: Duration,
    },
    /// By an error.
    Failed {
        /// What the agent said, or what happened to it.
        error: String,
        /// Which part failed.
        fault: FaultKind,
    },
    /// By the end of the agent.
    AgentDied {
        /// Exit code or signal, in words.
        cause: String,
        /// The last lines of its stderr.
        stderr_tail: Vec<String>,
    },
}

/// A terminal whose output is shown: one that parlor runs, or one that the agent owns and tells about.
#[derive(Debug, Clone, PartialEq)]
pub struct TerminalView {
    /// The command line, if known.
    pub command: Option<String>,
    /// Where it runs.
    pub cwd: Option<PathBuf>,
    /// What it wrote, escape sequences and all; the front may have been dropped.
    pub output: Vec<u8>,
    /// How many bytes were dropped from the front.
    pub dropped_bytes: u64,
    /// How it ended.
    pub exit: Option<ExitInfo>,
    /// Whether parlor runs it (and can kill it).
    pub is_ours: bool,
    /// When it began.
    pub began: Instant,
    /// How long it ran, once ended.
    pub took: Option<Duration>,
}

/// Most bytes of output that a [`TerminalView`] keeps.
pub const TERMINAL_VIEW_BYTES: usize = 1 << 20;

/// Where tool calls of the running turn are, by id. Ids are reused across turns by some agents.
pub type ToolIndex = HashMap<ToolCallId, ItemId>;

impl Transcript {
    /// All items, in order.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Bumped on each change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The items that were edited after this revision; `None` when that is not known, as after a change of places.
    pub fn edited_since(&self, revision: u64) -> Option<impl Iterator<Item = ItemId>> {
        let edits = self.edits.last.iter().rev();
        let after = edits.take_while(move |(edit, _)| *edit > revision).map(|(_, id)| *id);
        (self.edits.forgotten <= revision).then_some(after)
    }

    /// The item of this id.
    pub fn get(&self, id: ItemId) -> Option<&Item> {
        usize::try_from(id.0).ok().and_then(|index| self.items.get(index))
    }

    /// Adds an item at the end. A notice that says the same as the one before it is counted there instead.
    pub fn push(&mut self, turn: u32, body: ItemBody) -> ItemId {
        if matches!(body, ItemBody::Notice { .. })
            && let Some(same) = self.items.last().filter(|last| last.body == body).map(|last| last.id)
        {
            self.edit(same, |item| item.times = item.times.saturating_add(1));
            return same;
        }
        let id = ItemId(self.items.len() as u64);
        self.revision += 1;
        if let Some(touched) = &mut self.touched {
            touched.insert(id);
        }
        self.items.push(Item::new(id, self.first_rev, turn, body));
        id
    }

    /// Puts items behind the first so many; those behind them get new ids. Their own ids are given by their places.
    pub(super) fn insert(&mut self, at: usize, items: Vec<Item>) {
        let at = at.min(self.items.len());
        self.inserted += items.len();
        self.revision += 1;
        let behind = self.items.split_off(at);
        // No drawing that was kept by place and revision may be taken for another item's.
        let highest = self.items.iter().chain(&behind).map(|item| item.rev).max().unwrap_or(self.first_rev);
        self.first_rev = highest.wrapping_add(1);
        let first_rev = self.first_rev;
        self.items.extend(items.into_iter().chain(behind).map(|item| Item { rev: first_rev, ..item }));
        self.number_from(at);
    }

    /// Takes items away that stand in front of others, perhaps for one in their place; those behind get new ids.
    pub(super) fn remove(&mut self, range: Range<usize>, instead: Option<ItemBody>) {
        let end = range.end.min(self.items.len());
        let start = range.start.min(end);
        let turn = self.items.get(start).map_or(0, |item| item.turn);
        let highest = self.items.iter().map(|item| item.rev).max().unwrap_or(self.first_rev);
        self.first_rev = highest.wrapping_add(1);
        self.revision += 1;
        self.removed += end - start - usize::from(instead.is_some()).min(end - start);
        let instead = instead.map(|body| Item::new(ItemId(0), 0, turn, body));
        drop(self.items.splice(start..end, instead));
        for item in self.items.iter_mut().skip(start) {
            item.rev = self.first_rev;
        }
        // What was let go is to be free for others.
        self.items.shrink_to_fit();
        self.number_from(start);
    }

    fn number_from(&mut self, start: usize) {
        for (place, item) in self.items.iter_mut().enumerate().skip(start) {
            item.id = ItemId(place as u64);
        }
        if let Some(touched) = &mut self.touched {
            touched.clear();
        }
        self.edits.forget(self.revision);
    }

    /// Takes the last item away; the next one at its place has a revision of its own.
    pub(super) fn drop_last(&mut self) {
        if let Some(last) = self.items.pop() {
            self.first_rev = self.first_rev.max(last.rev.wrapping_add(1));
            self.revision += 1;
            if let Some(touched) = &mut self.touched {
                touched.remove(&last.id);
            }
        }
    }

    /// A copy of all that belongs to the turns up to this one.
    #[must_use]
    pub(super) fn up_to_turn(&self, turn: u32) -> Self {
        let mut copy = self.clone();
        let end = copy.items.iter().position(|item| item.turn > turn).unwrap_or(copy.items.len());
        copy.items.truncate(end);
        copy.touched = None;
        copy
    }

    /// How many items were ever put in front of others.
    pub fn inserted(&self) -> usize {
        self.inserted
    }

    /// How many items were ever taken away in front of others.
    pub fn removed(&self) -> usize {
        self.removed
    }

    /// Changes an item; the only way to do so.
    pub fn edit(&mut self, id: ItemId, change: impl FnOnce(&mut Item)) {
        let Some(item) = usize::try_from(id.0).ok().and_then(|index| self.items.get_mut(index)) else {
            return;
        };
        change(item);
        item.rev = item.rev.wrapping_add(1);
        self.revision += 1;
        self.edits.note(self.revision, id);
        if let Some(touched) = &mut self.touched {
            touched.insert(id);
        }
    }

    /// From now on remembers which items change, or no longer does.
    pub fn watch(&mut self, is_wanted: bool) {
        self.touched = is_wanted.then(BTreeSet::new);
    }

    /// The items that were added or changed since this was last asked; none while nobody watches.
    pub fn take_touched(&mut self) -> BTreeSet<ItemId> {
        self.touched.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Forgets all items (before a history is replayed).
    pub fn clear(&mut self) {
        drop(self.take());
    }

    /// All items, given away.
    pub(super) fn into_items(self) -> Vec<Item> {
        self.items
    }

    /// Takes all items out, leaving an empty transcript in which no (id, revision) comes again.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let highest = self.items.iter().map(|item| item.rev).max().unwrap_or(self.first_rev);
        let items = std::mem::take(&mut self.items);
        let former = Self { items, touched: None, edits: Edits::default(), ..*self };
        self.first_rev = highest.wrapping_add(1);
        self.revision += 1;
        self.edits.forget(self.revision);
        former
    }

    /// Puts items back that were taken out; each counts as changed.
    pub fn restore(&mut self, former: Self) {
        self.clear();
        self.items = former.items;
        for item in &mut self.items {
            item.rev = self.first_rev;
        }
    }
}

impl ToolCall {
    /// A call of which only the id is known.
    pub fn new(id: ToolCallId, now: Instant) -> Self {
        Self {
            id,
            title: String::new(),
            name: None,
            kind: ToolKind::default(),
            status: ToolStatus::default(),
            content: Vec::new(),
            places: Vec::new(),
            locations: Vec::new(),
            raw_input: None,
            input: ToolInput::default(),
            raw_output: None,
            output_text: None,
            exit_code: None,
            parent: None,
            extra: None,
            decision: None,
            from_ask_only: false,
            is_joined: false,
            approved: Vec::new(),
            is_own: false,
            accesses: Vec::new(),
            is_status_assumed: false,
            began: now,
            took: None,
        }
    }

    /// Applies the plain fields of a patch; status is the caller's, because it has rules of its own.
    pub fn apply(&mut self, mut patch: crate::model::ToolCallPatch) {
        // An empty title tells nothing; the known one stays.
        if let Patch::Set(title) = patch.title
            && !title.is_empty()
        {
            self.title = title;
        }
        patch.name.apply(&mut self.name);
        patch.kind.apply_or_default(&mut self.kind);
        if let Patch::Set(content) = &mut patch.content {
            keep_diffs_once(content);
        }
        patch.content.apply_or_default(&mut self.content);
        self.content.append(&mut patch.more_content);
        patch.locations.apply_or_default(&mut self.locations);
        patch.raw_input.apply(&mut self.raw_input);
        patch.input.apply_or_default(&mut self.input);
        patch.raw_output.apply(&mut self.raw_output);
        patch.output_text.apply(&mut self.output_text);
        patch.exit_code.apply(&mut self.exit_code);
        if patch.parent.is_some() {
            self.parent = patch.parent;
        }
        Patch::from_option(patch.extra).apply(&mut self.extra);
    }

    /// Where one of its changes stands in its file, if that is known.
    pub fn place_of(&self, diff: &FileDiff) -> Option<&DiffPlace> {
        self.places.iter().find(|known| known.diff == *diff).map(|known| &known.place)
    }

    /// The changes of files that it shows: those that it tells, and what was written through parlor besides.
    pub fn diffs(&self) -> impl Iterator<Item = &FileDiff> {
        let made = self.accesses.iter().filter(|access| !access.is_told).filter_map(AccessRecord::diff);
        self.told_diffs().chain(made)
    }

    /// The changes of files that it tells: those of its content, else those of its input, else those that were approved.
    pub fn told_diffs(&self) -> impl Iterator<Item = &FileDiff> {
        let in_content = self.content.iter().filter_map(|content| match content {
            ToolContent::Diff(diff) => Some(diff),
            _ => None,
        });
        let has_any = in_content.clone().next().is_some();
        let has_input = has_any || !self.input.diffs.is_empty();
        let in_input = self.input.diffs.iter().filter(move |_| !has_any);
        in_content.chain(in_input).chain(self.approved.iter().filter(move |_| !has_input))
    }
}

/// Some agents list one diff twice in one content, or as texts and as a patch.
fn keep_diffs_once(content: &mut Vec<ToolContent>) {
    let mut index = 0;
    while index < content.len() {
        let (before, rest) = content.split_at(index);
        let is_repeated = match rest.first() {
            Some(piece @ ToolContent::Diff(_)) => before.contains(piece),
            _ => false,
        };
        if is_repeated {
            content.remove(index);
        } else {
            index += 1;
        }
    }
    let texts: Vec<FileDiff> = content.iter().filter_map(texts_of).cloned().collect();
    content.retain(|piece| match piece {
        ToolContent::Diff(FileDiff { path, change: DiffChange::Patch(text) }) => {
            let same_file = || texts.iter().filter(|diff| diff.path == *path);
            same_file().next().is_none() || !repeats::tells_again(text, same_file())
        }
        _ => true,
    });
}

fn texts_of(piece: &ToolContent) -> Option<&FileDiff> {
    match piece {
        ToolContent::Diff(diff) if matches!(diff.change, DiffChange::Texts { .. }) => Some(diff),
        _ => None,
    }
}
