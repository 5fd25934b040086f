//! Finds the transcript items that events refer to.

use std::collections::{BTreeMap, HashMap};

use crate::model::{ItemId, SessionId, TerminalId, ToolCallId};

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
    pub(in crate::core) fn tool(&self, id: &ToolCallId) -> Option<ItemId> {
        self.current_tool(id).or_else(|| self.former_tool(id))
    }

    /// The tool call with this id in the running or last turn.
    pub(in crate::core) fn current_tool(&self, id: &ToolCallId) -> Option<ItemId> {
        self.tools.get(id).copied()
    }

    /// The last tool call with this id in the turns before.
    pub(in crate::core) fn former_tool(&self, id: &ToolCallId) -> Option<ItemId> {
        self.former_tools.get(id).copied()
    }

    /// The tool calls of the running or last turn, unordered.
    pub(in crate::core) fn current_tools(&self) -> impl Iterator<Item = ItemId> {
        self.tools.values().copied()
    }

    pub(in crate::core) fn add_tool(&mut self, id: ToolCallId, item: ItemId) {
        self.tools.insert(id, item);
    }

    /// A turn begins: its tool calls may have the ids of earlier ones.
    pub(in crate::core) fn begin_turn(&mut self) {
        self.former_tools.extend(self.tools.drain());
    }

    pub(in crate::core) fn terminal(&self, id: &TerminalId) -> Option<ItemId> {
        self.terminals.get(id).copied()
    }

    pub(in crate::core) fn move_terminal(&mut self, id: TerminalId, item: ItemId) {
        self.terminals.insert(id, item);
    }

    /// Sets the item that shows the terminal, unless another one already does.
    pub(in crate::core) fn add_terminal(&mut self, id: TerminalId, item: ItemId) {
        self.terminals.entry(id).or_insert(item);
    }

    pub(in crate::core) fn compaction(&self, id: &str) -> Option<ItemId> {
        self.compactions.get(id).copied()
    }

    pub(in crate::core) fn add_compaction(&mut self, id: String, item: ItemId) {
        self.compactions.insert(id, item);
    }

    pub(in crate::core) fn subagent(&self, id: &SessionId) -> Option<ItemId> {
        self.subagents.get(id).copied()
    }

    pub(in crate::core) fn add_subagent(&mut self, id: SessionId, item: ItemId) {
        self.subagents.insert(id, item);
    }

    pub(in crate::core) fn forget_subagents(&mut self) {
        self.subagents.clear();
    }

    /// Removes the entries of all items for which the condition does not hold.
    pub(in crate::core) fn retain(&mut self, stays: impl Fn(ItemId) -> bool) {
        self.tools.retain(|_, item| stays(*item));
        self.former_tools.retain(|_, item| stays(*item));
        self.compactions.retain(|_, item| stays(*item));
        self.subagents.retain(|_, item| stays(*item));
        self.terminals.retain(|_, item| stays(*item));
    }

    /// Adds the entries of earlier items; later items take precedence. `is_current`: whether an item belongs to the
    /// running or last turn.
    pub(in crate::core) fn add_earlier(&mut self, earlier: Self, is_current: impl Fn(ItemId) -> bool) {
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
    pub(in crate::core) fn moved(mut self, here: impl Fn(ItemId) -> ItemId) -> Self {
        let tools = self.tools.values_mut().chain(self.former_tools.values_mut());
        let others = self.terminals.values_mut().chain(self.compactions.values_mut());
        for item in tools.chain(others).chain(self.subagents.values_mut()) {
            *item = here(*item);
        }
        self
    }

    pub(in crate::core) fn clear(&mut self) {
        *self = Self::default();
    }
}
