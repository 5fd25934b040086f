//! States to draw, and snapshots of the drawn screens.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Color;

use crate::config::keymap::Keymap;
use crate::core::*;
use crate::guard;
use crate::model::*;
use crate::ui::dialogs::{AgentItem, Agents, Purpose};
use crate::ui::dialogs::{FormState, Picker, PickerRow};
use crate::ui::theme::{ColorSupport, Theme, ThemeSet};
use crate::ui::{App, ViewState, dialogs, draw, start};

pub const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (120, 40)];

/// A state with the time of the frame.
pub struct Stage {
    pub app: App,
    pub now: Instant,
}

/// An earlier time.
pub fn ago(now: Instant, seconds: u64) -> Instant {
    now.checked_sub(Duration::from_secs(seconds)).expect("the fixtures start 100 s before `now`")
}

pub fn theme(name: &str) -> Theme {
    ThemeSet::built_in().load(name, ColorSupport::TrueColor).0
}

/// The state before an agent is chosen.
pub fn first_screen() -> Stage {
    let now = Instant::now();
    let setup = Setup { folder: PathBuf::from("/home/ada/code/shop"), ..Setup::default() };
    let (mut app, _) = start(setup, now);
    app.layers.clear();
    Stage { app, now: now + Duration::from_secs(100) }
}

/// A ready agent without messages.
pub fn ready() -> Stage {
    let mut stage = first_screen();
    let spec = AgentSpec { name: "claude".into(), command: "claude-acp".into(), ..AgentSpec::default() };
    let mut conn = Conn::new(ConnId(1), spec, stage.now);
    conn.phase = ConnPhase::Ready;
    conn.pid = Some(4711);
    conn.info = Some(AgentInfo {
        name: Some("claude-agent-acp".into()),
        title: Some("Claude Agent".into()),
        version: Some("0.100.0".into()),
        protocol_version: 1,
        capabilities: AgentCapabilities { can_load: true, can_resume: true, ..Default::default() },
        quirks: vec!["reuses ids of tool calls across turns".into()],
        ..AgentInfo::default()
    });
    stage.state.conns.insert(ConnId(1), conn);
    let mode = |id: &str, name: &str| Mode { id: id.into(), name: name.into(), description: None };
    let model = |id: &str, name: &str| Model { id: id.into(), name: name.into(), description: None };
    stage.session(|session| {
        session.conn = Some(ConnId(1));
        session.id = Some("s-1".into());
        session.phase = SessionPhase::Ready;
        session.modes =
            Some(Modes { current: "d".into(), available: vec![mode("d", "default"), mode("p", "plan")] });
        session.models = Some(Models { current: "o".into(), available: vec![model("o", "Opus 5")] });
        session.git = Some(GitInfo { branch: "main".into(), is_dirty: true });
        session.commands = ["compact", "cost", "review"]
            .map(|name| SlashCommand { name: name.into(), description: format!("Does {name}"), hint: None })
            .into();
    });
    stage
}

/// A running turn with a plan, a queue and a cost.
/// A complete message.
pub fn message(role: Role, text: &str, began: Instant) -> Message {
    Message {
        role,
        message: None,
        parts: vec![MessagePart::Text(text.to_owned().into())],
        is_open: false,
        began,
        took: None,
        is_local: false,
        pasted: Vec::new(),
    }
}

pub fn streaming() -> Stage {
    let mut stage = ready();
    let now = stage.now;
    stage.session(|session| {
        session.turn = Turn::Running { since: ago(now, 12), last_news: now };
        let message = |role, text: &str| {
            ItemBody::Message(Message { is_local: role == Role::User, ..message(role, text, now) })
        };
        session.transcript.push(1, message(Role::User, "fix the failing test in src/auth.rs"));
        session
            .transcript
            .push(1, message(Role::Agent, "I'll look at the test first, then at the code that it calls."));
        session.transcript.push(1, message(Role::Agent, "The check was off by the clock skew."));
        let step = |content: &str, status| PlanEntry {
            content: content.into(),
            priority: PlanPriority::Medium,
            status,
        };
        let entries = vec![
            step("read the test", PlanStatus::Completed),
            step("find the cause", PlanStatus::Completed),
            step("change the check", PlanStatus::InProgress),
            step("run all tests", PlanStatus::Pending),
        ];
        session.plans = vec![Plan { id: None, body: PlanBody::Entries(entries) }];
        session.outbox.enqueue("and add a test for the boundary".into());
        session.usage = Some(Usage {
            used_tokens: 34_200,
            size_tokens: 200_000,
            cost: Some(Cost { amount: 0.214, currency: "USD".into() }),
        });
        session.draft = "then look at session.rs".into();
    });
    stage.session(|session| session.anomaly_count = 1);
    // Only strict sessions show the count in the status line.
    for conn in stage.state.conns.values_mut() {
        conn.spec.wire.is_strict = true;
    }
    stage
}

/// A permission request beside a draft.
pub fn permission_beside_draft() -> Stage {
    let mut stage = permission();
    stage.session(|session| session.draft = "then look at session.rs".into());
    stage
}

/// A permission request for an edit, with another request queued.
pub fn permission() -> Stage {
    let mut stage = streaming();
    stage.session(|session| session.draft.clear());
    let now = stage.now;
    let mut tool = ToolCall::new("t-1".into(), now);
    tool.title = "Edit src/auth/token.rs".into();
    tool.kind = ToolKind::Edit;
    tool.input.path = Some("/home/ada/code/shop/src/auth/token.rs".into());
    let old: String =
        (1..=40).fold(String::new(), |all, line| all + &format!("    let line_{line} = {line};\n"));
    let new = old.replace("line_20 = 20", "line_20 = 20 + SKEW").replace("line_33 = 33", "line_33 = 34");
    tool.content = vec![ToolContent::Diff(FileDiff {
        path: "/home/ada/code/shop/src/auth/token.rs".into(),
        change: DiffChange::Texts { old: Some(old.into()), new: new.into() },
    })];
    let option = |id: &str, name: &str, kind| PermissionOption { id: id.into(), name: name.into(), kind };
    let request = PermissionRequest {
        session: None,
        tool: ToolCallPatch::new("t-1".into()),
        options: vec![
            option("a", "Yes, this once", PermissionKind::AllowOnce),
            option("b", "Yes, and don't ask again for this file", PermissionKind::AllowAlways),
            option("c", "No", PermissionKind::RejectOnce),
        ],
    };
    let mut requests = Vec::new();
    stage.session(|session| {
        let item = session.transcript.push(1, ItemBody::Tool(Box::new(tool)));
        for request_id in 1..=2 {
            let kind = OpenRequestKind::Permission { request: request.clone(), tool: item };
            requests.push(OpenRequest {
                conn: ConnId(1),
                request_id: RequestId(request_id),
                kind,
                since: now,
            });
        }
        session.requests.extend(requests);
    });
    show(&mut stage, now);
    stage
}

/// The question on top was shown for some seconds.
pub fn show(app: &mut App, now: Instant) {
    dialogs::refresh(app);
    dialogs::on_frame(app, true, ago(now, 5));
}

/// A form with every kind of field.
pub fn form() -> Stage {
    let mut stage = streaming();
    stage.session(|session| session.draft.clear());
    let now = stage.now;
    let field = |title: &str, is_required, kind| FormField {
        key: title.to_lowercase(),
        title: title.into(),
        description: Some(format!("What {} is for.", title.to_lowercase())),
        is_required,
        kind,
    };
    let choice = |value: &str| FieldChoice { value: value.into(), title: value.into(), description: None };
    let text = FieldKind::Text {
        min_chars: None,
        max_chars: None,
        pattern: None,
        format: Some("email".into()),
        default: None,
    };
    let fields = vec![
        field("Address", true, text),
        field(
            "Size",
            true,
            FieldKind::Choice {
                choices: vec![choice("small"), choice("large")],
                default: Some("large".into()),
            },
        ),
        field(
            "Colours",
            false,
            FieldKind::Choices {
                choices: vec![choice("red"), choice("blue")],
                min_items: None,
                max_items: None,
                default: vec!["blue".into()],
            },
        ),
        field(
            "Count",
            false,
            FieldKind::Number { is_integer: true, minimum: Some(1.0), maximum: Some(9.0), default: None },
        ),
        field("Gift", true, FieldKind::Boolean { default: Some(false) }),
    ];
    let form = FormState::new(&fields);
    stage.session(|session| {
        let elicitation = ElicitationRequest {
            session: None,
            tool: None,
            message: "I need a few facts before I can order the parts.".into(),
            mode: ElicitationMode::Form { title: Some("Order".into()), description: None, fields },
        };
        session.requests.push_back(OpenRequest {
            conn: ConnId(1),
            request_id: RequestId(7),
            kind: OpenRequestKind::Elicitation(elicitation),
            since: now,
        });
    });
    stage.request_view.form = Some(form);
    stage.request_view.request_id = Some(RequestId(7));
    show(&mut stage, now);
    stage.guard.on(guard::Input::Switch, guard::Facts { has_fields: true, ..guard::Facts::default() }, now);
    stage
}

/// A picker with groups.
pub fn picker(filter: &str) -> Stage {
    let mut stage = ready();
    let row = |group: &str, label: &str, detail: &str, is_current| {
        let row = PickerRow {
            detail: detail.into(),
            right: if is_current { "last used here".into() } else { String::new() },
            group: Some(group.into()),
            is_current,
            ..PickerRow::new(label)
        };
        (row, AgentItem::Agent(label.into()))
    };
    let rows = vec![
        row("Configured", "claude", "claude-agent-acp", true),
        row("Configured", "local", "ssh build.example agent --acp", false),
        row("Found on this machine", "codex", "codex-acp", false),
        row("Found on this machine", "gemini", "gemini --experimental-acp", false),
        row("Built in", "demo", "demo, no account needed", false),
    ];
    let note = "Others can be added to the configuration.".to_owned();
    let mut picker = Picker::new(Agents, "Select agent", rows).noting(note);
    if !filter.is_empty() {
        picker.set_filter(LineInput::new(filter));
    }
    stage.layers.push(picker);
    stage
}

/// What the line dialogs of tests are for.
#[derive(Debug)]
pub struct NoPurpose;

impl Purpose for NoPurpose {
    fn verb(&self) -> &'static str {
        "rename"
    }

    fn accept(&self, _text: &str, _app: &mut App, _cx: &mut Cx) -> Result<(), String> {
        Ok(())
    }
}

/// A question of parlor.
pub fn choice() -> Stage {
    let mut stage = streaming();
    let body = vec![
        "claude got a cancel 10 s ago and has not answered. It may still be busy with a command.".into(),
    ];
    let answers = ["Wait", "End the agent's process", "Start it again and resume"];
    let answers = answers.map(|label| (label, Consequence::Close));
    stage.app.state.ask(stage.state.active, Question::new("The agent does not answer", body, answers));
    crate::ui::dialogs::refresh(&mut stage);
    stage
}

impl Deref for Stage {
    type Target = App;

    fn deref(&self) -> &App {
        &self.app
    }
}

impl DerefMut for Stage {
    fn deref_mut(&mut self) -> &mut App {
        &mut self.app
    }
}

impl Stage {
    /// Changes the active session.
    pub fn session(&mut self, change: impl FnOnce(&mut Session)) {
        let key = self.state.active;
        change(self.state.sessions.get_mut(&key).expect("the session on the screen"));
    }

    /// A new view.
    pub fn view(&self) -> ViewState {
        let mut view = ViewState::new(&Keymap::defaults(), self.now);
        view.home = Some(PathBuf::from("/home/ada"));
        view
    }

    /// Draws a frame with this view.
    pub fn draw(&self, view: &mut ViewState, theme: &Theme, (cols, rows): (u16, u16)) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(cols, rows)).expect("a test terminal");
        view.set_now(self.now);
        terminal.draw(|frame| draw(&self.app, view, theme, frame)).expect("a frame").buffer.clone()
    }

    /// Draws in both themes and returns text and styles.
    pub fn digest(&self, prepare: impl Fn(&mut ViewState), size: (u16, u16)) -> String {
        let drawn = ["dark", "light"].map(|name| {
            let mut view = self.view();
            prepare(&mut view);
            self.draw(&mut view, &theme(name), size)
        });
        digest(&drawn[0], &drawn[1])
    }
}

/// The text of a buffer, row by row.
pub fn text(buffer: &Buffer) -> String {
    rows(buffer).fold(String::new(), |all, row| all + row.trim_end() + "\n")
}

fn rows(buffer: &Buffer) -> impl Iterator<Item = String> {
    let area = buffer.area;
    (area.top()..area.bottom()).map(move |y| {
        let mut row = String::new();
        let mut skip = 0;
        for x in area.left()..area.right() {
            let symbol = buffer[(x, y)].symbol();
            if skip == 0 {
                row.push_str(symbol);
            }
            skip = crate::ui::text::width(symbol).max(skip).saturating_sub(1);
        }
        row
    })
}

/// Text, then a letter per style, then the legend of the letters in both themes.
fn digest(dark: &Buffer, light: &Buffer) -> String {
    assert_eq!(text(dark), text(light), "a theme changes styles only");
    let mut letters: BTreeMap<String, char> = BTreeMap::new();
    let mut legend = String::new();
    let mut styles = String::new();
    let area = dark.area;
    for y in area.top()..area.bottom() {
        let mut row = String::new();
        for x in area.left()..area.right() {
            let key = format!("{}   {}", tell(&dark[(x, y)]), tell(&light[(x, y)]));
            let next = char::from(b'a' + u8::try_from(letters.len()).expect("few styles"));
            let ch = *letters.entry(key.clone()).or_insert_with(|| {
                writeln!(legend, "{next} {key}").expect("a string");
                next
            });
            row.push(ch);
        }
        writeln!(styles, "{row}").expect("a string");
    }
    format!("{}\n{styles}\n{legend}", text(dark))
}

fn tell(cell: &Cell) -> String {
    let color = |color: Color| match color {
        Color::Rgb(r, g, b) => format!("{r:02x}{g:02x}{b:02x}"),
        other => other.to_string(),
    };
    let modifier = format!("{:?}", cell.modifier).replace("NONE", "");
    format!("{} on {} {modifier}", color(cell.fg), color(cell.bg)).trim_end().to_owned()
}
