//! A session as a document: the parts that all export formats share.
//!
//! Selects the parts of the transcript that belong in a document; `export` and `html` format them.

use std::fmt::Write as _;
use std::time::Instant;

use crate::core::{Decision, Item, ItemBody, Message, MessagePart, Session, ToolCall, TurnEnd};
use crate::model::{
    AccessRecord, Body, ContentBlock, Decider, DiffChange, FileDiff, RecordedEvent, Role, SessionKey,
    SessionWorkspace, Severity, ToolContent, ToolStatus,
};

/// Maximum number of output lines per tool call.
const MAX_OUTPUT_LINES: usize = 200;

/// A part of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Section {
    /// A prompt of the user: plain text.
    Prompt(String),
    /// A message of the agent: Markdown.
    Answer(String),
    /// A thought of the agent: Markdown.
    Thought(String),
    /// An image of the user or the agent.
    Picture(Picture),
    Call(Call),
    /// A notice of parlor or the agent, or the end of a turn.
    Notice {
        is_error: bool,
        text: String,
    },
}

impl Section {
    /// Replaces each text by that of a function, but no image.
    pub fn map_texts(&mut self, change: impl Fn(&str) -> String) {
        let texts: Vec<&mut String> = match self {
            Self::Prompt(text) | Self::Answer(text) | Self::Thought(text) | Self::Notice { text, .. } => {
                vec![text]
            }
            Self::Picture(picture) => vec![&mut picture.alt],
            Self::Call(Call { title, status: _, command, diffs, notes, output, pictures }) => {
                let diffs = diffs.iter_mut().flat_map(|(path, diff)| [path, diff]);
                let pictures = pictures.iter_mut().map(|picture| &mut picture.alt);
                [title, output].into_iter().chain(command).chain(diffs).chain(notes).chain(pictures).collect()
            }
        };
        for text in texts {
            *text = change(text);
        }
    }
}

/// An image as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// MIME type as sent.
    pub mime_type: String,
    /// Base64 data.
    pub data: Body,
    /// The description where it cannot be shown.
    pub alt: String,
}

/// A tool call with its result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Call {
    pub title: String,
    /// The status, unless the call completed normally.
    pub status: Option<&'static str>,
    pub command: Option<String>,
    /// Changes: path and diff.
    pub diffs: Vec<(String, String)>,
    /// Who allowed accesses through parlor, and where they ran.
    pub notes: Vec<String>,
    /// Output or search results.
    pub output: String,
    /// Images in the result.
    pub pictures: Vec<Picture>,
}

/// The sections of a session's events.
pub fn pieces(events: Vec<RecordedEvent>) -> Vec<Section> {
    let mut session = Session::new(SessionKey(0), SessionWorkspace::default());
    crate::core::play(&mut session, events, Instant::now());
    session
        .transcript
        .items()
        .iter()
        .filter(|item| !item.is_hidden() || is_decided(item))
        .flat_map(|item| match &item.body {
            ItemBody::Message(message) => message_pieces(message),
            _ => piece(&session, item).into_iter().collect(),
        })
        .collect()
}

/// Whether this is a decision that no other item shows.
fn is_decided(item: &Item) -> bool {
    matches!(&item.body, ItemBody::Tool(tool) if tool.decision.is_some() && !tool.is_joined)
}

fn piece(session: &Session, item: &Item) -> Option<Section> {
    let notice = |is_error, text: String| Some(Section::Notice { is_error, text });
    match &item.body {
        ItemBody::Message(_) => None,
        ItemBody::Tool(tool) => Some(Section::Call(call(session, tool))),
        ItemBody::TurnEnd(TurnEnd::Stopped { reason, .. }) => {
            notice(false, format!("{}.", reason.description()))
        }
        ItemBody::TurnEnd(TurnEnd::Failed { error, fault }) => {
            notice(true, format!("{}: {error}", fault.heading()))
        }
        ItemBody::TurnEnd(TurnEnd::AgentDied { cause, stderr_tail }) => {
            notice(true, [std::slice::from_ref(cause), stderr_tail].concat().join("\n"))
        }
        ItemBody::Notice { severity, title, detail, kind: _ } => {
            let detail = detail.as_ref().map(|detail| format!("\n{detail}")).unwrap_or_default();
            notice(*severity == Severity::Error, format!("{title}{detail}"))
        }
        ItemBody::Compaction { summary, .. } => {
            notice(false, format!("The context was compacted.\n{summary}"))
        }
        ItemBody::Subagent { title, description, .. } => {
            let description = description.as_ref().map(|text| format!("\n{text}")).unwrap_or_default();
            notice(false, format!("Subagent: {title}{description}"))
        }
        ItemBody::Answered { question, answer, by } => {
            let by = if *by == Decider::User { " (by the user)" } else { "" };
            notice(false, format!("{question}\n{answer}{by}"))
        }
        ItemBody::Raw { name, raw } => notice(false, format!("{name}: {}", raw.0)),
    }
}

/// The texts of a message and the images between them, in order.
fn message_pieces(message: &Message) -> Vec<Section> {
    let section = |texts: &mut Vec<String>| {
        let text = std::mem::take(texts).join("\n\n");
        match message.role {
            Role::User => Section::Prompt(text),
            Role::Agent | Role::SubagentMessage => Section::Answer(text),
            Role::Thought => Section::Thought(text),
        }
    };
    let (mut pieces, mut texts) = (Vec::new(), Vec::new());
    for part in &message.parts {
        match part {
            MessagePart::Text(text) => texts.push(text.to_string()),
            MessagePart::Block(block) => match picture(block) {
                Some(picture) => {
                    pieces.extend((!texts.is_empty()).then(|| section(&mut texts)));
                    pieces.push(Section::Picture(picture));
                }
                None => texts.push(block.description()),
            },
        }
    }
    pieces.extend((!texts.is_empty()).then(|| section(&mut texts)));
    pieces
}

fn picture(block: &ContentBlock) -> Option<Picture> {
    let ContentBlock::Image { data, mime_type, .. } = block else { return None };
    Some(Picture { mime_type: mime_type.clone(), data: data.clone(), alt: block.description() })
}

fn call(session: &Session, tool: &ToolCall) -> Call {
    let mut output: Vec<String> = Vec::new();
    let mut pictures = Vec::new();
    for piece in &tool.content {
        match piece {
            ToolContent::Block(block @ ContentBlock::Image { .. }) => pictures.extend(picture(block)),
            ToolContent::Block(block) => output.push(block.description()),
            ToolContent::Terminal(id) => {
                if let Some(view) = session.terminals.get(id) {
                    output
                        .push(crate::ui::text::sanitize(&String::from_utf8_lossy(&view.output)).into_owned());
                }
            }
            ToolContent::Unknown(raw) => output.push(raw.0.to_string()),
            ToolContent::Diff(_) => {}
        }
    }
    if output.is_empty() {
        output.extend(tool.output_text.as_deref().map(str::to_owned));
    }
    Call {
        title: if tool.title.is_empty() { tool.id.to_string() } else { tool.title.clone() },
        status: match tool.status {
            _ if tool.accesses.iter().any(AccessRecord::is_refused) => Some("refused"),
            ToolStatus::Failed => Some("failed"),
            ToolStatus::Cancelled => Some("cancelled"),
            ToolStatus::Pending | ToolStatus::InProgress | ToolStatus::Completed => None,
        },
        command: tool.input.command.clone(),
        diffs: tool.diffs().map(|diff| (diff.path.to_string_lossy().into_owned(), diff_text(diff))).collect(),
        notes: (tool.decision.iter().map(decision_note))
            .chain(tool.accesses.iter().map(|access| note(tool, access)))
            .collect(),
        output: shortened(&output.join("\n")),
        pictures,
    }
}

/// Who decided, with the agent's name of the option.
fn decision_note(decision: &Decision) -> String {
    match decision {
        Decision::Chosen { name, .. } => format!("{}: {name}", decision.description()),
        Decision::Cancelled(_) => decision.description(),
    }
}

fn note(tool: &ToolCall, access: &AccessRecord) -> String {
    let mut text = access.description();
    if let Some(command) = access.command() {
        if tool.input.command.as_ref() != Some(&command.line) {
            text.insert_str(0, &format!("$ {}\n", command.line));
        }
        let _ = write!(text, ", in {}", command.cwd.display());
        for (name, value) in &command.env {
            let _ = write!(text, ", {name}={value}");
        }
    }
    text
}

fn diff_text(diff: &FileDiff) -> String {
    match &diff.change {
        DiffChange::Patch(patch) => patch.to_string(),
        DiffChange::Texts { old, new } => {
            let old = old.as_deref().unwrap_or_default();
            similar::TextDiff::from_lines(old, new.as_str()).unified_diff().context_radius(3).to_string()
        }
    }
}

fn shortened(text: &str) -> String {
    let count = text.lines().count();
    if count <= MAX_OUTPUT_LINES {
        return text.trim_end().to_owned();
    }
    let half = MAX_OUTPUT_LINES / 2;
    let mut short: String = text.lines().take(half).flat_map(|line| [line, "\n"]).collect();
    let _ = writeln!(short, "… {} lines omitted …", count - 2 * half);
    short.extend(text.lines().skip(count - half).flat_map(|line| [line, "\n"]));
    short.trim_end().to_owned()
}
