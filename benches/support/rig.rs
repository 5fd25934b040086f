//! Helpers of the frame benchmarks: messages, and a transcript that is drawn into a buffer.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use parlor::core::{ItemBody, Message, MessagePart, Session};
use parlor::model::Role;
use parlor::ui::Canvas;
use parlor::ui::render_context::RenderContext;
use parlor::ui::session_view::SessionView;
use parlor::ui::theme::Theme;
use parlor::ui::transcript::{self, TranscriptView};
use ratatui::layout::Rect;

/// A complete message.
pub fn message(role: Role, text: &str) -> ItemBody {
    ItemBody::Message(Message {
        role,
        message: None,
        parts: vec![MessagePart::Text(text.to_owned().into())],
        is_open: false,
        began: Instant::now(),
        took: None,
        is_local: false,
        pasted: Vec::new(),
    })
}

/// The default render context; tables can be scrolled horizontally.
pub fn render(theme: &Theme) -> RenderContext<'_> {
    RenderContext { sideways: Some(0), ..RenderContext::new(theme, Path::new("/"), Instant::now()) }
}

/// A transcript view with its buffer.
pub struct Rig {
    pub theme: Theme,
    pub shown: SessionView,
    pub view: TranscriptView,
    pub buf: Canvas,
}

impl Rig {
    /// Creates a buffer for frames of this size.
    pub fn new(area: Rect) -> Self {
        Self {
            theme: Theme::plain(),
            shown: SessionView::default(),
            view: TranscriptView::default(),
            buf: Canvas::new(area.width, area.height),
        }
    }

    /// Draws one frame into an empty buffer.
    pub fn frame(&mut self, session: &Session, area: Rect) {
        let render = render(&self.theme);
        self.buf.reset();
        transcript::draw(session, &self.shown, &mut self.view, &render, area, &mut self.buf);
        black_box(&self.buf);
    }

    /// Scrolls a page up, or from the start back to the end.
    pub fn page_up(&mut self, session: &Session, area: Rect) {
        self.view.scroll_pages(-1);
        self.frame(session, area);
        if self.view.visible().is_some_and(|(first, _)| first.0 == 0) {
            self.view.scroll_end();
        }
    }
}
