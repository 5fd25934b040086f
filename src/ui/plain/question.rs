//! Questions as text: formats them with numbered answers, and parses the typed answer.
//!
//! Handles the top dialog or the first request. `runtime::plain` decides when a line may answer.

use std::fmt::Write as _;

use crate::config::keymap::Context;
use crate::config::keymap::actions;
use crate::core::state::url::inspect_url;
use crate::core::{
    self, ItemBody, OpenRequestKind, QuestionId, State, URL_OPTIONS, UserAnswer, protected_files,
};
use crate::model::{Access, Action, ElicitationMode, FieldKind, LineEdit, RequestId, Risk};
use crate::ui::Event;
use crate::ui::cells::{ToolBody, kind_word, title};
use crate::ui::dialogs::{self, FieldState, LineDialog, ListView, SessionsDialog, field_hint, shown_value};
use crate::ui::dialogs::{option_label, question_of, risk_texts, rule_note};
use crate::ui::render_context::RenderContext;
use crate::ui::text::{one_line, reveal_line, sanitize};
use crate::ui::{App, Layer, PlainPage, QuestionDialog};

use super::{COLS, agent_name};

/// The result of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Do(Vec<Event>),
    /// Not a valid answer; print this text.
    Say(String),
}

#[derive(Debug, Clone)]
pub struct Question {
    /// The lines with the numbered answers.
    pub text: String,
    /// The agent's request; `None` for a dialog of parlor.
    request_id: Option<RequestId>,
}

/// Ignores line numbers of a change, which are added after the file was read. Two requests with the same text
/// are different questions.
impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        let is_same_text = || self.text.lines().map(unnumbered).eq(other.text.lines().map(unnumbered));
        self.request_id == other.request_id
            && (self.text == other.text || self.request_id.is_some() && is_same_text())
    }
}

/// A line of a change without its line number.
fn unnumbered(line: &str) -> &str {
    // Only indented lines belong to a change; a form field may start with a digit.
    if line.starts_with("  ") {
        line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim()
    } else {
        line
    }
}

/// The current question; `None` if a line is a prompt.
pub fn question(app: &App, render: &RenderContext<'_>) -> Option<Question> {
    let mut out = String::new();
    let mut asked = None;
    if let Some(list) = app.layers.last().and_then(Layer::list) {
        ask_list(list, &mut out);
    } else if let Some(PlainPage { text, answers }) = app.layers.last().and_then(Layer::plain) {
        out.push_str(&text);
        number(&mut out, answers.iter().map(|(label, _)| label.as_str()));
    } else if let Some(dialog) = app.layers.top::<SessionsDialog>() {
        ask_sessions(dialog, &mut out);
    } else if let Some(dialog) = app.layers.top::<QuestionDialog>() {
        let question = app.state.question(dialog.id)?;
        let _ = writeln!(out, "{}", one_line(&question.title));
        for line in &question.body {
            let _ = writeln!(out, "{}", one_line(line));
        }
        number(&mut out, question.answers.iter().map(|answer| answer.label.as_str()));
    } else if let Some(dialog) = app.layers.top::<LineDialog>() {
        let _ = writeln!(out, "{}\n{}", one_line(&dialog.title), one_line(&dialog.help));
        if dialog.is_secret {
            out.push_str("Input is visible.\n");
        }
        if let Some(problem) = &dialog.problem {
            let _ = writeln!(out, "{problem}");
        }
        out.push_str("Type a value and press Enter, or :cancel.");
    } else if app.layers.is_empty() {
        ask_request(app, render, &mut out)?;
        asked = app.state.active_session().and_then(|session| session.requests.front());
    } else {
        return None;
    }
    Some(Question { text: out, request_id: asked.map(|request| request.request_id) })
}

/// Maximum number of listed sessions; others are found with the filter.
const MAX_SESSIONS: usize = 20;

fn ask_sessions(dialog: &SessionsDialog, out: &mut String) {
    if let Some(text) = &dialog.text {
        let _ = writeln!(out, "Search all sessions: {}", one_line(&dialog.filter.text));
        let hits = text.hits.iter().take(MAX_SESSIONS).map(|hit| {
            let snippet = hit.snippet.replace(['\u{2}', '\u{3}'], "");
            format!("{} · {} · {}", hit.name, hit.kind, snippet)
        });
        let hits: Vec<String> = hits.collect();
        number(out, hits.iter().map(String::as_str));
        out.push_str("\nType text to search.");
        return;
    }
    let shown = dialog.matches.iter().take(MAX_SESSIONS).filter_map(|position| dialog.rows.get(*position));
    let rows: Vec<String> = shown
        .map(|row| {
            let state = row.open.as_ref().map_or_else(|| row.when(), |open| open.state.to_owned());
            format!("{} · {} · {} · {state}", row.name(), row.agent(), row.folder().display())
        })
        .collect();
    let _ = writeln!(out, "Sessions");
    number(out, rows.iter().map(String::as_str));
    out.push_str("\nType text to filter.");
    let more = dialog.matches.len().saturating_sub(MAX_SESSIONS);
    if more > 0 {
        let _ = write!(out, " {more} more not listed.");
    }
    if dialog.hidden_count > 0 {
        let _ = write!(out, " {} in other folders: type :next-scope to show them.", dialog.hidden_count);
    }
}

fn ask_list(list: &ListView, out: &mut String) {
    let _ = writeln!(out, "{}", one_line(&list.title));
    if !list.filter.text.is_empty() {
        let _ = writeln!(out, "Matching \"{}\":", list.filter.text);
    }
    for (position, row) in list.matches.iter().filter_map(|row| list.rows.get(*row)).enumerate() {
        let _ = write!(out, "{}. {}", position + 1, one_line(&row.label));
        for more in [&row.detail, &row.right].into_iter().filter(|more| !more.is_empty()) {
            let _ = write!(out, ", {}", one_line(more));
        }
        out.push_str(if row.is_current { ", current\n" } else { "\n" });
    }
    if let Some(note) = &list.note {
        let _ = writeln!(out, "{note}");
    }
    out.push_str("Type a number and press Enter, text to filter, or :cancel.");
}

fn write_risks(out: &mut String, risks: &[Risk]) {
    for text in risk_texts(risks) {
        let _ = writeln!(out, "Risk: {text}");
    }
}

fn ask_request(app: &App, render: &RenderContext<'_>, out: &mut String) -> Option<()> {
    let session = app.state.active_session()?;
    let agent = agent_name(&app.state);
    let open = session.requests.front()?;
    let risks = core::risks(&app.state, open, session);
    match &open.kind {
        OpenRequestKind::Permission { request, tool } => {
            let tool = session.transcript.get(*tool).and_then(|item| match &item.body {
                ItemBody::Tool(tool) => Some(tool.as_ref()),
                _ => None,
            });
            let kind = tool.map_or_else(Default::default, |tool| tool.kind);
            let _ = write!(out, "{agent} asks: {}", question_of(tool));
            if let Some(tool) = tool {
                let _ = writeln!(out, " {} {}", kind_word(kind), title(tool, render, usize::from(COLS)));
                if let Some(rule) = &tool.asking_rule {
                    let _ = writeln!(out, "{}", rule_note(rule));
                }
                write_risks(out, &risks);
                for (path, why) in protected_files(&app.state, session, tool) {
                    let path = reveal_line(&path.to_string_lossy());
                    let _ = writeln!(out, "Protected file: {path}. {}", why.description());
                }
                let mut body = ToolBody::whole(tool, session, render, COLS);
                for line in body.lines(0..body.len(), render) {
                    let _ = writeln!(out, "  {}", line.to_string().trim_end());
                }
            } else {
                out.push('\n');
            }
            if request.options.is_empty() {
                out.push_str("No options. Type :cancel to reject.");
            } else {
                let labels: Vec<String> =
                    (0..request.options.len()).map(|position| option_label(request, position)).collect();
                number(out, labels.iter().map(String::as_str));
            }
        }
        OpenRequestKind::Access(access) => {
            let _ = writeln!(out, "{agent} asks: {}", access.why.heading(&access.access));
            if let Access::Read { path } | Access::Write { path } = &access.access {
                let _ = writeln!(out, "File: {}", reveal_line(&path.to_string_lossy()));
            }
            let _ = writeln!(out, "{}", access.why.description());
            if let Some(rule) = &access.rule {
                let _ = writeln!(out, "{}", rule_note(rule));
            }
            write_risks(out, &risks);
            let mut body = ToolBody::whole(&access.call, session, render, COLS);
            for line in body.lines(0..body.len(), render) {
                let _ = writeln!(out, "  {}", line.to_string().trim_end());
            }
            let labels = access.labels();
            number(out, labels.iter().map(String::as_str));
        }
        OpenRequestKind::Elicitation(access) => {
            if let ElicitationMode::Url { url, .. } = &access.mode {
                let facts = inspect_url(url);
                let _ = writeln!(out, "{agent} asks to open a page: {}", one_line(url));
                let _ = writeln!(out, "{}", sanitize(access.message.trim()));
                for warning in &facts.warnings {
                    let _ = writeln!(out, "Warning: {warning}");
                }
                number(out, URL_OPTIONS);
            } else {
                let message = access.message.trim();
                let _ = writeln!(out, "{agent} asks: {}", sanitize(message));
                ask_field(app, out);
            }
        }
    }
    Some(())
}

/// The current field of a form, or the review of all fields.
fn ask_field(app: &App, out: &mut String) {
    let Some(form) = &app.request_view.form else { return };
    if form.is_review {
        for field in &form.fields {
            let _ = writeln!(out, "{}: {}", one_line(&field.field.title), one_line(&shown_value(field)));
        }
        out.push_str("1. Send\n2. Edit\nType a number and press Enter, or :decline, or :cancel.");
        return;
    }
    let Some(entry) = form.fields.get(app.request_view.selected) else {
        out.push_str("Press Enter to send, or type :decline or :cancel.");
        return;
    };
    let field = &entry.field;
    let empty = if field.is_required { "" } else { " (optional)" };
    let _ = writeln!(out, "{}{empty}", one_line(&field.title));
    for more in field.description.iter().map(|text| one_line(text)).chain(field_hint(field)) {
        let _ = writeln!(out, "{more}");
    }
    match &field.kind {
        FieldKind::Choice { choices, .. } | FieldKind::Choices { choices, .. } => {
            for (position, choice) in choices.iter().enumerate() {
                let mark = if entry.checked.get(position) == Some(&true) { ", selected" } else { "" };
                let _ = writeln!(out, "{}. {}{mark}", position + 1, one_line(&choice.title));
            }
        }
        FieldKind::Boolean { .. } => out.push_str("1. Yes\n2. No\n"),
        FieldKind::Text { .. } | FieldKind::Number { .. } => {}
    }
    if entry.is_secret {
        out.push_str("Input is visible.\n");
    }
    let now = shown_value(entry);
    if !now.is_empty() {
        let _ = writeln!(out, "Current value: {}", one_line(&now));
    }
    if let Some(problem) = &entry.problem {
        let _ = writeln!(out, "{problem}");
    }
    out.push_str(match field.kind {
        FieldKind::Choices { .. } => {
            "Type numbers separated by spaces and press Enter; Enter alone leaves the field unchanged."
        }
        FieldKind::Choice { .. } | FieldKind::Boolean { .. } => {
            "Type a number and press Enter; Enter alone leaves the field unchanged."
        }
        FieldKind::Text { .. } | FieldKind::Number { .. } => {
            "Type a value and press Enter; Enter alone \
            leaves the field unchanged."
        }
    });
}

fn number<'a>(out: &mut String, options: impl IntoIterator<Item = &'a str>) {
    for (position, option) in options.into_iter().enumerate() {
        let _ = writeln!(out, "{}. {}", position + 1, one_line(option));
    }
    out.push_str("Type a number and press Enter, or :cancel.");
}

pub fn reply(app: &App, line: &str) -> Reply {
    if let Some(command) = line.trim().strip_prefix(':') {
        return command_reply(&app.state, command.trim());
    }
    let line = line.trim();
    if let Some(layer) = app.layers.last() {
        return reply_to_dialog(layer, app, line);
    }
    match dialogs::focus(app) {
        Context::Main => Reply::Do(vec![Event::Draft(line.to_owned()), Event::Act(Action::Submit)]),
        Context::Form => fill(app, line),
        // These have no plain-text form.
        Context::Browse | Context::Terminal | Context::Search => Reply::Do(vec![Event::Act(Action::Escape)]),
        _ => {
            let Some((_, open)) = app.shown_request() else { return no_number(0) };
            choose(QuestionId::Agent(open.request_id), line, open.kind.answers().len())
        }
    }
}

fn reply_to_dialog(layer: &dyn Layer, app: &App, line: &str) -> Reply {
    if let Some(list) = layer.list() {
        return pick(line, list.matches.len());
    }
    if let Some(PlainPage { answers, .. }) = layer.plain() {
        let position = position_of(line, answers.len()).map(|position| usize::from(position - 1));
        let actions = position.and_then(|position| answers.get(position)).map(|(_, actions)| actions);
        return match actions {
            Some(actions) => Reply::Do(actions.iter().copied().map(Event::Act).collect()),
            None => no_number(answers.len()),
        };
    }
    if let Some(dialog) = app.layers.top::<SessionsDialog>() {
        return pick(line, dialog.text.as_ref().map_or(dialog.matches.len(), |text| text.hits.len()));
    }
    if let Some(dialog) = app.layers.top::<QuestionDialog>() {
        let answers = app.state.question(dialog.id).map_or(0, |question| question.answers.len());
        return choose(dialog.id, line, answers);
    }
    Reply::Do(if app.layers.top::<LineDialog>().is_some() {
        let edits = [LineEdit::Clear, LineEdit::Insert(line.to_owned())];
        edits.into_iter().map(Event::Line).chain([Event::Act(Action::Accept)]).collect()
    } else {
        // The other dialogs have no plain-text form.
        vec![Event::Act(Action::Escape)]
    })
}

/// A number picks a row, other text is the filter.
fn pick(line: &str, count: usize) -> Reply {
    if line.parse::<usize>().is_err() {
        let filter = [LineEdit::Clear, LineEdit::Insert(line.to_owned())];
        return Reply::Do(filter.into_iter().map(Event::Line).collect());
    }
    match position_of(line, count) {
        Some(position) => Reply::Do(vec![Event::Act(Action::Mark(position - 1)), Event::Act(Action::Accept)]),
        None => no_number(count),
    }
}

fn position_of(line: &str, count: usize) -> Option<u16> {
    let position =
        line.parse::<u16>().ok().filter(|position| (1..=count).contains(&usize::from(*position)))?;
    // An answer is exact: `+1` or `01` may have been meant as a prompt.
    (position.to_string() == line).then_some(position)
}

fn no_number(count: usize) -> Reply {
    Reply::Say(match count {
        0 => "No options. Type :cancel to continue.".to_owned(),
        1 => "Type 1, or :cancel.".to_owned(),
        _ => format!("Type a number from 1 to {count}, or :cancel."),
    })
}

fn choose(id: QuestionId, line: &str, count: usize) -> Reply {
    match position_of(line, count) {
        Some(position) => {
            let answer = UserAnswer::Option(usize::from(position - 1));
            Reply::Do(vec![core::Event::Answer(id, answer).into()])
        }
        None => no_number(count),
    }
}

fn fill(app: &App, line: &str) -> Reply {
    let accept = Event::Act(Action::Accept);
    let Some(form) = &app.request_view.form else { return Reply::Do(vec![accept]) };
    if form.is_review {
        return match position_of(line, 2) {
            Some(1) => Reply::Do(vec![accept]),
            Some(_) => Reply::Do(vec![Event::Act(Action::Mark(0)), Event::Act(Action::Mark(0))]),
            None => no_number(2),
        };
    }
    let Some(field) = form.fields.get(app.request_view.selected) else { return Reply::Do(vec![accept]) };
    if line.is_empty() {
        return Reply::Do(vec![accept]);
    }
    let positions = match positions_for(field, line) {
        Ok(positions) => positions,
        Err(reply) => return reply,
    };
    let mut events: Vec<Event> = match positions {
        None => vec![Event::Line(LineEdit::Clear), Event::Line(LineEdit::Insert(line.to_owned()))],
        Some(positions) => {
            positions.into_iter().map(|position| Event::Act(Action::Choose(position))).collect()
        }
    };
    events.push(accept);
    Reply::Do(events)
}

/// The numbers that set a field to the value of the line; `None` if the line itself is the value.
fn positions_for(field: &FieldState, line: &str) -> Result<Option<Vec<u8>>, Reply> {
    let count = field.choice_count();
    let one = |count: usize| {
        position_of(line, count)
            .and_then(|position| u8::try_from(position).ok())
            .map(|position| Some(vec![position]))
            .ok_or_else(|| no_number(count))
    };
    match field.field.kind {
        FieldKind::Text { .. } | FieldKind::Number { .. } => Ok(None),
        FieldKind::Choice { .. } => one(count),
        FieldKind::Boolean { .. } => match line.to_lowercase().as_str() {
            "y" | "yes" => Ok(Some(vec![1])),
            "n" | "no" => Ok(Some(vec![2])),
            _ => one(2),
        },
        FieldKind::Choices { .. } => {
            let mut wanted = vec![false; count];
            for word in line.split([' ', ',']).filter(|word| !word.is_empty()) {
                let position = position_of(word, count).ok_or_else(|| no_number(count))?;
                if let Some(wanted) = wanted.get_mut(usize::from(position - 1)) {
                    *wanted = true;
                }
            }
            let differ =
                wanted.iter().zip(&field.checked).enumerate().filter(|(_, (wanted, is))| wanted != is);
            Ok(Some(differ.filter_map(|(position, _)| u8::try_from(position + 1).ok()).collect()))
        }
    }
}

fn command_reply(state: &State, name: &str) -> Reply {
    let act = |action| Reply::Do(vec![Event::Act(action)]);
    match name {
        "" | "help" => Reply::Say(help(state)),
        "cancel" => act(Action::Escape),
        "decline" => act(Action::Decline),
        _ => match actions::by_name(name).filter(|action| is_offered(*action)) {
            Some(action) => act(action),
            None => Reply::Say(format!("Unknown command :{}. Type :help for a list.", one_line(name))),
        },
    }
}

/// Commands that are useful without a screen.
fn is_offered(action: Action) -> bool {
    use Action as A;
    matches!(
        action,
        A::OpenAgents
            | A::OpenSessions
            | A::ContinueLast
            | A::SearchSessions
            | A::ReadSession
            | A::NextScope
            | A::Remove
            | A::HandOver
            | A::ExportSession
            | A::OpenModes
            | A::NextMode
            | A::OpenModels
            | A::OpenOptions
            | A::OpenSignIn
            | A::SignOut
            | A::NewSession
            | A::ForkSession
            | A::RenameSession
            | A::CloseSession
            | A::RestartAgent
            | A::ForceStop
            | A::KillCommand
            | A::UndoTurn
            | A::RedoTurn
            | A::ReviewChanges
            | A::ReviewHeld
            | A::Quit
    )
}

fn help(state: &State) -> String {
    let mut out = "Each line is a prompt. End a line with \\ to continue on the next. Answer questions by \
            number.\n:cancel  Cancel turn or reject request\n"
        .to_owned();
    let offered = state.setup.palette.iter().filter(|command| is_offered(command.action));
    for command in offered {
        if let Some(name) = actions::name_of(command.action) {
            let _ = writeln!(out, ":{name}  {}", command.text);
        }
    }
    out.push_str("Lines that start with / are agent commands.");
    out
}
