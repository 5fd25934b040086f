//! Line breaks by a backslash before Enter, for terminals that do not report Shift+Enter.

use tui_textarea::DataCursor;

use super::Composer;

impl Composer {
    /// Replaces the backslash before the cursor with a line break. Returns whether there was one.
    pub(in crate::ui) fn break_at_backslash(&mut self) -> bool {
        let DataCursor(row, col) = self.area.cursor();
        let line = self.area.lines().get(row).map(String::as_str).unwrap_or_default();
        if col.checked_sub(1).and_then(|before| line.chars().nth(before)) != Some('\\') {
            return false;
        }
        self.erase(-1);
        self.new_line();
        true
    }
}
