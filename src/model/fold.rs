//! Default folding of tool calls, from the configuration.

use super::ToolKind;

/// How much of a call is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    Closed,
    /// The first lines of changes, the last lines of output.
    Preview,
    Open,
}

/// Folding rules by kind, result and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldRules {
    /// By kind, in the order of [`FoldRules::KINDS`]; `None` uses parlor's default.
    pub kinds: [Option<Fold>; FoldRules::KINDS.len()],
    /// Calls with file changes, unless their kind has a rule.
    pub changes: Fold,
    pub failed: Fold,
    /// Results up to this number of lines are expanded; 0 disables the rule.
    pub open_up_to_lines: u32,
    /// Results with more lines are closed; 0 disables the rule.
    pub closed_above_lines: u32,
    /// Whether consecutive reads and searches are grouped on one line.
    pub groups: bool,
}

impl FoldRules {
    /// The kinds with their names in the configuration.
    pub const KINDS: [(&'static str, ToolKind); 10] = [
        ("read", ToolKind::Read),
        ("edit", ToolKind::Edit),
        ("delete", ToolKind::Delete),
        ("move", ToolKind::Move),
        ("search", ToolKind::Search),
        ("run", ToolKind::Execute),
        ("think", ToolKind::Think),
        ("fetch", ToolKind::Fetch),
        ("mode", ToolKind::SwitchMode),
        ("tool", ToolKind::Other),
    ];

    pub fn of_kind(&self, kind: ToolKind) -> Option<Fold> {
        let position = Self::KINDS.iter().position(|(_, known)| *known == kind)?;
        self.kinds.get(position).copied().flatten()
    }
}

impl Default for FoldRules {
    fn default() -> Self {
        Self {
            kinds: [None; Self::KINDS.len()],
            changes: Fold::Preview,
            failed: Fold::Preview,
            open_up_to_lines: 0,
            closed_above_lines: 0,
            groups: true,
        }
    }
}

/// Hidden unchanged lines of a change, by their first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gap {
    pub change: u32,
    /// Index of the first hidden line in the new text.
    pub line: u32,
}
