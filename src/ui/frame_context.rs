//! The data that all parts of a frame share: the state, the style, and common texts such as the names of
//! agent, model and mode, key hints and short numbers.
//!
//! Invariants: every text of an agent that is returned here was sanitised by `text`.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use ratatui::style::Style;

use crate::config::keymap::{Context, Keymap};
use crate::core::state::{lookup, tab};
use crate::core::{Session, State};
use crate::model::{Action, ConfigKind, RequestId};
use crate::ui::dialogs::RequestView;
use crate::ui::screen::DiffRoom;
use crate::ui::session_view::{SessionView, Views};
use crate::ui::text::{Line, Span, short_count};

use super::diff::{Diff, Layout};
use super::render_context::{Glyphs, Marks, RenderContext, duration};
use super::text;
use super::theme::Role;

/// After this time without a response, a start is shown as slow; most agents need up to 25 s.
const SLOW_START: Duration = Duration::from_secs(30);

/// What keys, clicks and the mouse do at the time of a frame, as `ui::focus` finds out.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct KeyFacts {
    /// The context of what gets the keys.
    pub context: Context,
    /// The same without dialogs and requests.
    pub base: Context,
    /// Whether a dialog or a request gets the keys.
    pub is_in_dialog: bool,
    pub has_dialog: bool,
    /// The context of the dialog below the top one.
    pub below: Option<Context>,
    pub is_browsing: bool,
    pub is_in_inbox: bool,
    /// The shown request of an agent, also while it is being rejected with a reason.
    pub request: Option<RequestId>,
    /// Whether the question on top was not opened by the user, so that [`crate::guard`] decides when it is answered.
    pub is_guarded: bool,
    /// Whether such a question is shown and the keys go elsewhere.
    pub is_beside_draft: bool,
    /// Whether such a question has the keys, but its text fields do not get them yet.
    pub is_closed: bool,
    pub takes_answers: bool,
    /// Whether answers count once the end of the question was shown.
    pub waits_for_end: bool,
    pub is_full_screen: bool,
    /// Whether the user gave the mouse to the terminal.
    pub is_mouse_off: bool,
}

pub struct FrameContext<'a> {
    /// That of `core`.
    pub state: &'a State,
    pub session: &'a Session,
    /// That of the session.
    pub view: &'a SessionView,
    pub views: &'a Views,
    pub request_view: &'a RequestView,
    pub keys: KeyFacts,
    pub render: RenderContext<'a>,
    pub keymap: &'a Keymap,
    /// The keys of the started sequence, for display.
    pub pending: Option<&'a str>,
    pub lists_keys: bool,
    pub home: Option<&'a Path>,
    pub marks: Marks,
    /// When the first of the times that were drawn changes; `None`: none was.
    pub until: Cell<Option<Instant>>,
    pub diff_room: Cell<DiffRoom>,
}

impl<'a> FrameContext<'a> {
    /// The other way to show these diffs; also notes whether there is room for both.
    pub fn other_layout(&self, cols: u16, diffs: &[Diff]) -> &'static str {
        let has = |setting| match diffs {
            // They are being computed.
            [] => Layout::choose(setting, cols) == Layout::SideBySide,
            diffs => diffs.iter().any(|diff| diff.layout(setting, cols) == Layout::SideBySide),
        };
        self.diff_room.set(DiffRoom::of(has));
        if has(self.render.diff_layout) { "unified" } else { "side by side" }
    }

    pub fn style(&self, role: Role) -> Style {
        self.render.theme.style(role)
    }

    pub fn span(&self, role: Role, text: impl Into<String>) -> Span<'static> {
        Span::styled(text.into(), self.style(role))
    }

    /// The number of irregular messages on the connections of the active tab, if there are any.
    pub fn protocol_warnings(&self) -> Option<String> {
        let root = self.state.sessions.get(&tab::front(self.state)).unwrap_or(self.session);
        match root.anomaly_count {
            0 => None,
            1 => Some("1 protocol warning".to_owned()),
            count => Some(format!("{} protocol warnings", short_count(count))),
        }
    }

    pub fn agent(&self) -> String {
        let conn = self.state.conn_of(self.session.key);
        let name = conn.map(|conn| {
            let title = conn.info.as_ref().and_then(|info| info.title.as_deref().or(info.name.as_deref()));
            if conn.spec.name.is_empty() { title.unwrap_or("the agent") } else { conn.spec.shown_name() }
        });
        let saved = self.session.recorder.agent().map(|(name, ..)| name.as_str());
        text::one_line(name.or(saved).filter(|name| !name.is_empty()).unwrap_or("the agent"))
    }

    /// Whether parlor connects to the agent instead of starting it, so that its state is unknown.
    pub fn is_reached(&self) -> bool {
        self.state.conn_of(self.session.key).is_some_and(|conn| conn.spec.remote.is_some())
    }

    pub fn model(&self) -> Option<String> {
        let listed = || {
            let models = self.session.models.as_ref()?;
            let known = models.available.iter().find(|model| model.id == models.current);
            Some(known.map_or(models.current.as_str(), |model| model.name.as_str()))
        };
        // An agent that has both updates only the option.
        self.option_of("model").or_else(listed).map(text::one_line).filter(|name| !name.is_empty())
    }

    pub fn mode(&self) -> Option<String> {
        let listed = || {
            let modes = self.session.modes.as_ref()?;
            let known = modes.available.iter().find(|mode| mode.id == modes.current);
            Some(known.map_or(modes.current.as_str(), |mode| mode.name.as_str()))
        };
        self.option_of("mode").or_else(listed).map(text::one_line).filter(|name| !name.is_empty())
    }

    fn option_of(&self, category: &str) -> Option<&'a str> {
        let option =
            self.session.options.iter().find(|option| option.category.as_deref() == Some(category))?;
        let ConfigKind::Select { current, choices } = &option.kind else { return None };
        let known = choices.iter().find(|choice| choice.value == *current);
        Some(known.map_or(current.as_str(), |choice| choice.name.as_str()))
    }

    /// The first key of an action, as shown in hints.
    pub fn key(&self, context: Context, action: Action) -> Option<String> {
        self.keymap.keys_for(context, action).first().map(|key| self.key_name(key))
    }

    /// A hint such as `Esc stop`, if the action has a key.
    pub fn hint(&self, context: Context, action: Action, does: &str) -> Option<(String, String)> {
        Some((self.key(context, action)?, does.to_owned()))
    }

    /// The hint for both arrow keys.
    pub fn updown(&self, does: &str) -> (String, String) {
        (self.marks.updown.to_owned(), does.to_owned())
    }

    /// The name of a key in hints: that of the key bindings, or an arrow.
    pub fn key_name(&self, key: &str) -> String {
        let arrow = match key {
            "Up" => "↑",
            "Down" => "↓",
            "Left" => "←",
            "Right" => "→",
            _ => key,
        };
        if self.render.glyphs == Glyphs::plain() { key.to_owned() } else { arrow.to_owned() }
    }

    pub fn of<'b>(&self, session: &'b Session) -> FrameContext<'b>
    where
        'a: 'b,
    {
        FrameContext {
            session,
            view: self.views.get(session.key),
            render: RenderContext { folder: &session.workspace.cwd, ..self.render },
            until: self.until.clone(),
            diff_room: self.diff_room.clone(),
            ..*self
        }
    }

    /// Hints in a row, as many as fit: `Esc stop · F1 help`.
    pub fn hints(&self, hints: &[(String, String)], cols: usize) -> Line<'static> {
        let dot = format!(" {} ", self.render.glyphs.dot);
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut used = 0;
        for (key, does) in hints {
            let apart = if spans.is_empty() { 0 } else { text::width(&dot) };
            let cost = apart + text::width(key) + 1 + text::width(does);
            if used + cost > cols {
                continue;
            }
            if apart > 0 {
                spans.push(self.span(Role::TextDim, dot.clone()));
            }
            spans.push(self.span(Role::KeyHint, key.clone()));
            spans.push(self.span(Role::TextDim, format!(" {does}")));
            used += cost;
        }
        Line::from(spans)
    }

    /// The elapsed time, for display.
    pub fn since(&self, begin: Instant) -> String {
        let time = self.render.now.saturating_duration_since(begin);
        self.changes_at(begin + Duration::from_secs(time.as_secs() + 1));
        duration(Duration::from_secs(time.as_secs()).max(Duration::from_secs(1)))
    }

    /// The time that the turn took so far, without that of the user's answers.
    pub fn worked(&self, begin: Instant) -> String {
        let waited = self.session.wait.total(self.render.now);
        self.since(begin.checked_add(waited).unwrap_or(begin))
    }

    /// Whether a start that began at this time is slow.
    pub fn is_slow(&self, begin: Instant) -> bool {
        let is_slow = self.render.now.saturating_duration_since(begin) >= SLOW_START;
        if !is_slow {
            self.changes_at(begin + SLOW_START);
        }
        is_slow
    }

    /// What is drawn shows another time from then on.
    fn changes_at(&self, at: Instant) {
        let first = self.until.get().map_or(at, |until| until.min(at));
        self.until.set(Some(first));
    }

    /// The session's folder; with the host if it is on another machine.
    pub fn folder(&self) -> String {
        let position = &self.session.workspace;
        match &position.remote {
            Some(remote) => text::one_line(&format!("{}:{}", remote.host, remote.folder.display())),
            None => match lookup::worktree_of(self.state, &position.cwd).as_deref().and_then(Path::file_name)
            {
                Some(name) => format!("worktree {}", text::one_line(&name.to_string_lossy())),
                None => self.path(&position.cwd),
            },
        }
    }

    /// A path with `~` for the home folder.
    pub fn path(&self, path: &Path) -> String {
        let short = self.home.and_then(|home| path.strip_prefix(home).ok()).map(|rest| {
            if rest.as_os_str().is_empty() { "~".to_owned() } else { format!("~/{}", rest.display()) }
        });
        text::reveal_line(&short.unwrap_or_else(|| path.display().to_string()))
    }
}
