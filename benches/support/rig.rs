//! What benches of frames share: messages, and a transcript drawn into cells.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use parlor::app::{ItemBody, Message, MessagePart, Session};
use parlor::model::Role;
use parlor::ui::RowCache;
use parlor::ui::render_context::RenderContext;
use parlor::ui::theme::Theme;
use parlor::ui::transcript::{self, TranscriptView};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// A message that is over.
pub fn message(role: Role, text: &str) -> ItemBody {
    ItemBody::Message(Message {
        role,
        message: None,
        parts: vec![MessagePart::Text(text.to_owned())],
        is_open: false,
        began: Instant::now(),
        took: None,
        is_local: false,
    })
}

/// Everything as it is at first; tables can be moved sideways.
pub fn look(theme: &Theme) -> RenderContext<'_> {
    RenderContext { sideways: Some(0), ..RenderContext::new(theme, Path::new("/"), Instant::now()) }
}

/// A transcript's place on a screen.
pub struct Rig {
    pub theme: Theme,
    pub view: TranscriptView,
    pub buf: Buffer,
}

impl Rig {
    /// Room for frames of so many cells.
    pub fn new(area: Rect) -> Self {
        Self { theme: Theme::plain(), view: TranscriptView::default(), buf: Buffer::empty(area) }
    }

    /// Draws one frame on nothing.
    pub fn frame(&mut self, session: &Session, area: Rect) {
        let look = look(&self.theme);
        self.buf.reset();
        transcript::draw(session, &mut self.view, &look, area, &mut self.buf, &mut RowCache::default());
        black_box(&self.buf);
    }

    /// Goes a page up, or back to the end from the beginning.
    pub fn page_up(&mut self, session: &Session, area: Rect) {
        self.view.scroll_pages(-1);
        self.frame(session, area);
        if self.view.visible().is_some_and(|(first, _)| first.0 == 0) {
            self.view.scroll_end();
        }
    }
}
