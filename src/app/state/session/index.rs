//! Finds the transcript item that an event refers to.

use std::collections::{BTreeMap, HashMap};

use crate::model::{
    AgentTerminal, ItemId, MessageId, Record, Role, SessionId, SessionUpdate, TerminalId, ToolCallId,
};

/// The subject of an event.
#[derive(Debug)]
pub(in crate::app) enum Key<'a> {
    Tool(&'a ToolCallId),
    Compaction(&'a str),
    Subagent(&'a SessionId),
    Terminal(&'a TerminalId),
    /// A terminal that has not ended.
    OpenTerminal(&'a TerminalId),
    Message(Role, &'a MessageId),
}

impl<'a> Key<'a> {
    /// The subject of a record that other records may change.
    pub fn of(record: &'a Record) -> Option<Self> {
        match record {
            Record::Update(update) => Self::of_update(update),
            Record::Asked(patch) => Some(Self::Tool(&patch.id)),
            Record::Decided { tool, .. } | Record::Located { tool, .. } => Some(Self::Tool(tool)),
            Record::Command { terminal, .. } => Some(Self::Terminal(terminal)),
            _ => None,
        }
    }

    /// The subject of an update that other updates may change.
    pub fn of_update(update: &'a SessionUpdate) -> Option<Self> {
        match update {
            SessionUpdate::Tool(patch) => Some(Self::Tool(&patch.id)),
            SessionUpdate::Terminal(update) => Some(Self::of_terminal(update)),
            SessionUpdate::Compaction { id, .. } | SessionUpdate::CompactionChunk { id, .. } => {
                Some(Self::Compaction(id))
            }
            SessionUpdate::Subagent(patch) => Some(Self::Subagent(&patch.session)),
            SessionUpdate::Message { role, message, .. } => Some(Self::Message(*role, message)),
            _ => None,
        }
    }

    /// The subject of an update of an agent's terminal. A terminal announced again is a new one, unless the previous
    /// one is still running.
    pub fn of_terminal(update: &'a AgentTerminal) -> Self {
        match update {
            AgentTerminal::Info { id, .. } => Self::OpenTerminal(id),
            other => Self::Terminal(other.id()),
        }
    }

    /// A hash, because the id may be long. It is saved with the pages, so it must stay the same (FNV-1a).
    pub fn hash(&self) -> u64 {
        let (kind, id) = match self {
            Self::Tool(id) => (0, id.as_str()),
            Self::Compaction(id) => (1, *id),
            Self::Subagent(id) => (2, id.as_str()),
            Self::Terminal(id) => (3, id.as_str()),
            Self::OpenTerminal(id) => (4, id.as_str()),
            Self::Message(Role::User, id) => (5, id.as_str()),
            Self::Message(Role::Agent, id) => (6, id.as_str()),
            Self::Message(Role::Thought, id) => (7, id.as_str()),
            Self::Message(Role::Letter, id) => (8, id.as_str()),
        };
        std::iter::once(kind)
            .chain(id.bytes())
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

/// The items of tool calls, terminals, compactions and subagents by their ids.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ItemIndex {
    /// Tool calls of the running or last turn.
    tools: HashMap<ToolCallId, ItemId>,
    /// The latest tool call of each id in earlier turns, for late updates.
    former_tools: HashMap<ToolCallId, ItemId>,
    /// The tool calls that show a terminal.
    terminals: BTreeMap<TerminalId, ItemId>,
    compactions: BTreeMap<String, ItemId>,
    subagents: BTreeMap<SessionId, ItemId>,
}

impl ItemIndex {
    /// The last tool call with this id.
    pub(in crate::app) fn tool(&self, id: &ToolCallId) -> Option<ItemId> {
        self.current_tool(id).or_else(|| self.former_tool(id))
    }

    /// The tool call with this id in the running or last turn.
    pub(in crate::app) fn current_tool(&self, id: &ToolCallId) -> Option<ItemId> {
        self.tools.get(id).copied()
    }

    /// The last tool call with this id in the turns before.
    pub(in crate::app) fn former_tool(&self, id: &ToolCallId) -> Option<ItemId> {
        self.former_tools.get(id).copied()
    }

    /// The tool calls of the running or last turn, unordered.
    pub(in crate::app) fn current_tools(&self) -> impl Iterator<Item = ItemId> {
        self.tools.values().copied()
    }

    pub(in crate::app) fn add_tool(&mut self, id: ToolCallId, item: ItemId) {
        self.tools.insert(id, item);
    }

    /// A turn begins: its tool calls may have the ids of earlier ones.
    pub(in crate::app) fn begin_turn(&mut self) {
        self.former_tools.extend(self.tools.drain());
    }

    pub(in crate::app) fn terminal(&self, id: &TerminalId) -> Option<ItemId> {
        self.terminals.get(id).copied()
    }

    pub(in crate::app) fn terminals(&self) -> impl Iterator<Item = (&TerminalId, ItemId)> {
        self.terminals.iter().map(|(id, item)| (id, *item))
    }

    /// Sets the item that shows the terminal.
    pub(in crate::app) fn move_terminal(&mut self, id: TerminalId, item: ItemId) {
        self.terminals.insert(id, item);
    }

    /// Sets the item that shows the terminal, unless another one already does.
    pub(in crate::app) fn add_terminal(&mut self, id: TerminalId, item: ItemId) {
        self.terminals.entry(id).or_insert(item);
    }

    pub(in crate::app) fn compaction(&self, id: &str) -> Option<ItemId> {
        self.compactions.get(id).copied()
    }

    pub(in crate::app) fn add_compaction(&mut self, id: String, item: ItemId) {
        self.compactions.insert(id, item);
    }

    pub(in crate::app) fn subagent(&self, id: &SessionId) -> Option<ItemId> {
        self.subagents.get(id).copied()
    }

    pub(in crate::app) fn add_subagent(&mut self, id: SessionId, item: ItemId) {
        self.subagents.insert(id, item);
    }

    pub(in crate::app) fn forget_subagents(&mut self) {
        self.subagents.clear();
    }

    /// All entries.
    pub(in crate::app) fn entries(&self) -> impl Iterator<Item = (Key<'_>, ItemId)> {
        let tools = self.former_tools.iter().chain(&self.tools).map(|(id, item)| (Key::Tool(id), *item));
        let terminals = self.terminals().map(|(id, item)| (Key::Terminal(id), item));
        let compactions = self.compactions.iter().map(|(id, item)| (Key::Compaction(id), *item));
        let subagents = self.subagents.iter().map(|(id, item)| (Key::Subagent(id), *item));
        tools.chain(terminals).chain(compactions).chain(subagents)
    }

    /// Removes all entries for which the condition does not hold.
    pub(in crate::app) fn retain(&mut self, mut stays: impl FnMut(Key<'_>, ItemId) -> bool) {
        for tools in [&mut self.tools, &mut self.former_tools] {
            tools.retain(|id, item| stays(Key::Tool(id), *item));
            tools.shrink_to_fit();
        }
        self.compactions.retain(|id, item| stays(Key::Compaction(id), *item));
        self.subagents.retain(|id, item| stays(Key::Subagent(id), *item));
        self.terminals.retain(|id, item| stays(Key::Terminal(id), *item));
    }

    /// Adds the entries of earlier items; later items take precedence. `is_current`: whether an item belongs to the
    /// running or last turn.
    pub(in crate::app) fn add_earlier(&mut self, earlier: Self, is_current: impl Fn(ItemId) -> bool) {
        for (id, item) in earlier.tools.into_iter().chain(earlier.former_tools) {
            if !self.tools.contains_key(&id) {
                let tools = if is_current(item) { &mut self.tools } else { &mut self.former_tools };
                tools.entry(id).or_insert(item);
            }
        }
        for (id, item) in earlier.terminals {
            self.add_terminal(id, item);
        }
        for (id, item) in earlier.compactions {
            self.compactions.entry(id).or_insert(item);
        }
        for (id, item) in earlier.subagents {
            self.subagents.entry(id).or_insert(item);
        }
    }

    /// The same entries with updated item ids.
    pub(in crate::app) fn moved(mut self, here: impl Fn(ItemId) -> ItemId) -> Self {
        let tools = self.tools.values_mut().chain(self.former_tools.values_mut());
        let others = self.terminals.values_mut().chain(self.compactions.values_mut());
        for item in tools.chain(others).chain(self.subagents.values_mut()) {
            *item = here(*item);
        }
        self
    }

    pub(in crate::app) fn clear(&mut self) {
        *self = Self::default();
    }
}
