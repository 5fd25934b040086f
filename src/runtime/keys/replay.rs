//! The keys of the replay screen.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::core::ViewCommand;

/// The action of a key in a replay.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplayKey {
    Next,
    Toggle,
    View(ViewCommand),
    Quit,
}

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
