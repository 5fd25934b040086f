//! The keys of a replay.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::app::ViewCommand;

/// What a key does in a replay.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplayKey {
    /// Play the next message.
    Next,
    /// Play or pause.
    Toggle,
    /// Scroll.
    View(ViewCommand),
    /// Leave.
    Quit,
}

/// What an event of the terminal means.
pub fn read(event: &Event) -> Option<ReplayKey> {
    let Event::Key(KeyEvent { code, modifiers, kind, .. }) = event else { return None };
    if *kind == KeyEventKind::Release {
        return None;
    }
    let has_control = modifiers.contains(KeyModifiers::CONTROL);
    Some(match code {
        KeyCode::Char('c') if has_control => ReplayKey::Quit,
        KeyCode::Char('q') | KeyCode::Esc => ReplayKey::Quit,
        KeyCode::Char('n') | KeyCode::Right | KeyCode::Enter => ReplayKey::Next,
        KeyCode::Char(' ') => ReplayKey::Toggle,
        KeyCode::PageUp => ReplayKey::View(ViewCommand::ScrollPages(-1)),
        KeyCode::PageDown => ReplayKey::View(ViewCommand::ScrollPages(1)),
        KeyCode::Up => ReplayKey::View(ViewCommand::ScrollLines(-1)),
        KeyCode::Down => ReplayKey::View(ViewCommand::ScrollLines(1)),
        KeyCode::Home => ReplayKey::View(ViewCommand::ScrollTop),
        KeyCode::End => ReplayKey::View(ViewCommand::ScrollEnd),
        _ => return None,
    })
}
