//! How much of a tool call is shown unless the user said otherwise, as the configuration has it.

use super::ToolKind;

/// How much of a call is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// Its head line.
    Closed,
    /// The first lines of its changes, the last lines of its output.
    Preview,
    Open,
}

/// Rules of folding, by kind, result and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldRules {
    /// By kind, in the order of [`FoldRules::KINDS`]; `None`: as parlor thinks best.
    pub kinds: [Option<Fold>; FoldRules::KINDS.len()],
    /// Calls that tell changes of files, unless their kind has a rule.
    pub changes: Fold,
    /// Calls that failed, whatever their kind.
    pub failed: Fold,
    /// Results of at most so many lines are open; 0: none.
    pub open_up_to_lines: u32,
    /// Results of more lines are closed; 0: none.
    pub closed_above_lines: u32,
    /// Whether runs of reads and of searches stand on one line.
    pub groups: bool,
}

impl FoldRules {
    /// The kinds, by the names that the configuration has for them.
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

    /// The rule for a kind, if there is one.
    pub fn of_kind(&self, kind: ToolKind) -> Option<Fold> {
        let place = Self::KINDS.iter().position(|(_, known)| *known == kind)?;
        self.kinds.get(place).copied().flatten()
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

/// Unchanged lines that a change leaves out, by where they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gap {
    /// Which of the changes that a call tells, from 0.
    pub change: u32,
    /// The first line that is left out, in the new text from 0.
    pub line: u32,
}
