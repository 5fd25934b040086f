//! Builders for the tests of dialogs: a state with a ready session, and keys with a clock.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::core::{
    AccessRequest, AccessWork, AgentChoice, Conn, ConnPhase, Cx, Effect, OpenRequest, OpenRequestKind,
    RequestClass, Session, SessionPhase, Setup, ThemeInfo, ToolCall, Turn, ViewCommand,
};

use crate::model::{
    Access, Action, AgentCapabilities, AgentCommand, AgentInfo, AgentSpec, AskReason, ConnId,
    ElicitationMode, ElicitationRequest, FieldKind, FileJob, FileOp, FormField, Grant, ItemId, LineEdit,
    PaletteCommand, PermissionKind, PermissionOption, PermissionRequest, RequestId, Response, SessionId,
    SessionKey, ToolCallPatch,
};
use crate::ui::App;

use super::{
    is_closed, on_action, on_draft, on_frame, on_input, on_line, refresh, serve, takes_answers, takes_input,
};
use crate::guard::Input;
use crate::ui::dialogs::{Layer, ListView};

pub const CONN: ConnId = ConnId(71);

/// A state, and a clock that advances a second before each key by default.
pub struct Rig {
    pub app: App,
    pub now: Instant,
}

impl Deref for Rig {
    type Target = App;

    fn deref(&self) -> &App {
        &self.app
    }
}

impl DerefMut for Rig {
    fn deref_mut(&mut self) -> &mut App {
        &mut self.app
    }
}

impl Rig {
    /// A ready session with an agent that has all capabilities.
    pub fn new() -> Self {
        let now = Instant::now();
        let setup = Setup {
            folder: PathBuf::from("/home/u/shop"),
            agents: vec![agent("one", "configured"), agent("two", "found"), agent("demo", "built in")],
            themes: [("light", false), ("dark", true), ("paper", false)]
                .map(|(name, is_dark)| ThemeInfo { name: name.to_owned(), is_dark })
                .into(),
            auto_theme: "light".to_owned(),
            theme: "dark".to_owned(),
            ..Setup::default()
        };
        let (mut app, _) = crate::ui::start(setup, now);
        app.layers.clear();
        let mut conn = Conn::new(CONN, agent("one", "configured").spec, now);
        conn.phase = ConnPhase::Ready;
        conn.info = Some(AgentInfo {
            capabilities: AgentCapabilities {
                can_list: true,
                can_fork: true,
                can_set_title: true,
                can_log_out: true,
                ..AgentCapabilities::default()
            },
            ..AgentInfo::default()
        });
        app.state.conns.insert(CONN, conn);
        let mut rig = Self { app, now };
        let session = rig.session();
        session.conn = Some(CONN);
        session.id = Some(SessionId::from("s1"));
        session.phase = SessionPhase::Ready;
        session.templates.is_loaded = true;
        rig
    }

    pub fn session(&mut self) -> &mut Session {
        let active = self.state.active;
        self.state.sessions.get_mut(&active).expect("there is an active session")
    }

    /// The queued prompts of the active session.
    pub fn queue(&mut self) -> Vec<String> {
        self.session().outbox.queue().map(|prompt| prompt.text.clone()).collect()
    }

    /// The position of the queued prompt that is being edited.
    pub fn edited(&mut self) -> Option<usize> {
        self.session().outbox.queue().position(crate::core::Prompt::is_edited)
    }

    pub fn run_turn(&mut self) -> &mut Self {
        let now = self.now;
        self.session().turn = Turn::Running { since: now, last_news: now };
        self.session().turn_count = 1;
        self
    }

    /// Shows a frame, and lets time pass.
    pub fn wait(&mut self, ms: u64) -> &mut Self {
        refresh(&mut self.app);
        on_frame(&mut self.app, true, self.now);
        self.now += Duration::from_millis(ms);
        self
    }

    pub fn takes_answers(&self) -> bool {
        takes_input(&self.app) && takes_answers(&self.app, self.now)
    }

    /// A key after a pause of a second. A key that only marks an answer is followed by Enter.
    pub fn act(&mut self, action: Action) -> Vec<Effect> {
        self.wait(1001);
        let marks = is_closed(&self.app) && matches!(action, Action::Choose(_) | Action::Yes | Action::No);
        let mut fx = self.act_now(action);
        if marks {
            fx.extend(self.act_now(Action::Accept));
        }
        fx
    }

    /// The number of an answer and Enter, without a pause.
    pub fn answer_now(&mut self, position: u8) -> Vec<Effect> {
        let mut fx = self.act_now(Action::Choose(position));
        fx.extend(self.act_now(Action::Accept));
        fx
    }

    /// A key without a pause.
    pub fn act_now(&mut self, action: Action) -> Vec<Effect> {
        let mut cx = Cx::new(self.now);
        on_input(&mut self.app, None, &mut cx);
        on_action(&mut self.app, action, &mut cx);
        serve(&mut self.app, &mut cx);
        cx.effects
    }

    pub fn type_draft(&mut self, text: &str) -> Vec<Effect> {
        let mut cx = Cx::new(self.now);
        on_input(&mut self.app, Some(Input::Paste), &mut cx);
        on_draft(&mut self.app, text.to_owned(), &mut cx);
        serve(&mut self.app, &mut cx);
        cx.effects
    }

    /// Types text into the top input, after a pause of a second.
    pub fn type_line(&mut self, text: &str) -> Vec<Effect> {
        self.edit_line(LineEdit::Insert(text.to_owned()))
    }

    pub fn edit_line(&mut self, edit: LineEdit) -> Vec<Effect> {
        let mut cx = Cx::new(self.now);
        self.wait(1001);
        on_input(&mut self.app, Some(Input::Look), &mut cx);
        on_line(&mut self.app, edit, &mut cx);
        serve(&mut self.app, &mut cx);
        cx.effects
    }

    pub fn ask(&mut self, number: u64, kind: OpenRequestKind) {
        let since = self.now;
        let class = match &kind {
            OpenRequestKind::Permission { .. } => RequestClass::Permission,
            OpenRequestKind::Elicitation(_) => RequestClass::Elicitation,
            OpenRequestKind::Access(_) => RequestClass::File(self.state.active),
        };
        let conn = self.state.conns.get_mut(&CONN).expect("the connection is there");
        conn.open_requests.insert(RequestId(number), class);
        self.session().requests.push_back(OpenRequest {
            conn: CONN,
            request_id: RequestId(number),
            kind,
            since,
        });
        refresh(&mut self.app);
    }

    pub fn ask_permission(&mut self, number: u64, kinds: &[PermissionKind]) {
        self.ask(number, permission(kinds));
    }

    pub fn request_form(&mut self, fields: Vec<FormField>) {
        let mode = ElicitationMode::Form { title: None, description: None, fields };
        self.ask(1, elicitation(mode));
        // Its fields get keys once the user has moved there.
        self.act(Action::AnswerRequest);
    }

    pub fn ask_url(&mut self, url: &str) {
        self.ask(1, elicitation(ElicitationMode::Url { id: "e1".to_owned(), url: url.to_owned() }));
    }

    /// The list on top.
    pub fn picker(&self) -> &ListView {
        let list = self.layers.last().and_then(Layer::list);
        list.unwrap_or_else(|| panic!("no list is on top: {:?}", self.layers))
    }

    /// Labels of the rows that match the filter.
    pub fn shown(&self) -> Vec<&str> {
        let picker = self.picker();
        picker.matches.iter().map(|row| picker.rows[*row].label.as_str()).collect()
    }

    pub fn marked(&self) -> &str {
        self.shown()[self.picker().selected]
    }

    pub fn is_cancelling(&mut self) -> bool {
        matches!(self.session().turn, Turn::Cancelling { .. })
    }

    pub fn open_requests(&mut self) -> Vec<u64> {
        self.session().requests.iter().map(|open| open.request_id.0).collect()
    }
}

pub fn commands(entries: &[(Action, &str)]) -> Vec<PaletteCommand> {
    let all = crate::config::keymap::Keymap::defaults().palette();
    let of = |(action, text): &(Action, &str)| {
        let known = all.iter().find(|command| command.action == *action).expect("in the palette");
        PaletteCommand { text: (*text).to_owned(), keys: String::new(), ..known.clone() }
    };
    entries.iter().map(of).collect()
}

pub fn agent(name: &str, source: &str) -> AgentChoice {
    AgentChoice {
        spec: AgentSpec { name: name.to_owned(), command: format!("{name}-acp"), ..AgentSpec::default() },
        title: format!("Agent {name}"),
        source: source.to_owned(),
        ..AgentChoice::default()
    }
}

pub fn permission(kinds: &[PermissionKind]) -> OpenRequestKind {
    let option = |(position, kind): (usize, &PermissionKind)| PermissionOption {
        id: format!("option-{position}"),
        name: format!("{kind:?}"),
        kind: *kind,
    };
    let request = PermissionRequest {
        session: Some(SessionId::from("s1")),
        tool: ToolCallPatch::new("call".into()),
        options: kinds.iter().enumerate().map(option).collect(),
    };
    OpenRequestKind::Permission { request, tool: ItemId(0) }
}

pub fn outside_file(request_id: u64) -> OpenRequestKind {
    let job = FileJob {
        conn: CONN,
        request_id: RequestId(request_id),
        session: SessionKey::default(),
        path: PathBuf::from("/etc/hosts"),
        roots: vec![PathBuf::from("/home/u/shop")],
        policy: std::sync::Arc::default(),
        allowed: None,
        missing_reads_empty: false,
        holding: crate::model::held::Holding::default(),
        op: FileOp::Read { line: None, limit: None },
    };
    let access = Access::Read { path: PathBuf::from("/etc/hosts") };
    OpenRequestKind::Access(Box::new(AccessRequest {
        work: AccessWork::File(job),
        grant: Grant::of(&access, AskReason::Outside, None),
        access,
        why: AskReason::Outside,
        rule: None,
        change: None,
        call: Box::new(ToolCall::new("parlor:read".into(), std::time::Instant::now())),
        offers_all_commands: false,
        agent: "fake".to_owned(),
    }))
}

pub fn elicitation(mode: ElicitationMode) -> OpenRequestKind {
    let session = Some(SessionId::from("s1"));
    OpenRequestKind::Elicitation(ElicitationRequest {
        session,
        tool: None,
        message: "Please say".to_owned(),
        mode,
    })
}

pub fn field(key: &str, is_required: bool, kind: FieldKind) -> FormField {
    FormField { key: key.to_owned(), title: key.to_owned(), description: None, is_required, kind }
}

pub fn text_kind(default: Option<&str>) -> FieldKind {
    FieldKind::Text {
        min_chars: None,
        max_chars: None,
        pattern: None,
        format: None,
        default: default.map(str::to_owned),
    }
}

pub fn answers(fx: &[Effect]) -> Vec<(u64, Response)> {
    let answer = |effect: &Effect| match effect {
        Effect::Send(CONN, AgentCommand::Respond(request_id, answer)) => Some((request_id.0, answer.clone())),
        _ => None,
    };
    fx.iter().filter_map(answer).collect()
}

pub fn selected(option: &str) -> Response {
    Response::Selected(option.to_owned())
}

pub fn views(fx: &[Effect]) -> Vec<ViewCommand> {
    let view = |effect: &Effect| match effect {
        Effect::View(command) => Some(command.clone()),
        _ => None,
    };
    fx.iter().filter_map(view).collect()
}

pub fn has_cancel(fx: &[Effect]) -> bool {
    fx.iter().any(|effect| matches!(effect, Effect::Send(CONN, AgentCommand::Cancel(_))))
}
