//! Decodes session updates through a JSON tree.
//!
//! Invariant: an update that no decoder accepts becomes `Unknown` with all of its JSON.

use serde_json::Value;

use crate::model::{
    AnomalyKind, ContentBlock, MessageId, Patch, Plan, PlanBody, PlanEntry, PlanId, Raw, Role, SessionId,
    SessionUpdate, Severity, SubagentPatch, ToolCallPatch, UNREADABLE, Usage,
};

use super::decoder::Decoder;
use super::names::{
    MESSAGE_CONTENT, MESSAGE_ID, PLAN_PRIORITY, PLAN_STATUS, SESSION_ID, TOOL_ID, UPDATE_KIND, UPDATES,
    is_result_of_call, official, session_id, take_modes,
};
use super::options::{CURRENT_MODE, CURRENT_MODEL};
use super::quirks::Quirk;
use super::value::{
    Object, fill, first, first_text, list, object_with, parse_object, raw, rename, take, take_text, typed,
};
use super::{content, options, strict, tools, v2, wrappers};

const COMPACTION_ID: &[&str] = &["compactionId", "compaction_id", "id"];

pub fn decode(text: &str, decoder: &mut Decoder) {
    if decoder.quirks.is_strict
        && let Err(why) = strict::update(text, decoder.is_v2)
    {
        return refuse(text, &why, decoder);
    }
    let Some(mut params) = parse_object(text) else {
        decoder.anomaly(AnomalyKind::BadMessage, "The agent sent an update that is not an object.");
        return show_unreadable(text, decoder);
    };
    let named = session_name(&params);
    let update = if let Some(Value::Object(update)) = take(&mut params, &["update"]) {
        update
    } else {
        // Some agents omit the wrapper.
        decoder.learn(Quirk::FLAT_UPDATES);
        take(&mut params, SESSION_ID);
        params
    };
    // The session inside a subagent's update is the child, not the sender.
    let tells_of_child = first_text(&update, UPDATE_KIND).as_deref() == Some("subagent_update");
    let named = named.or_else(|| session_name(&update).filter(|_| !tells_of_child));
    let session = if let Some(name) = named {
        decoder.session(&name)
    } else if let Some(session) = decoder.only_session() {
        decoder.learn(Quirk::NO_SESSION_ID);
        session
    } else {
        decoder.anomaly(AnomalyKind::BadMessage, "Ignored an update without a session.");
        return;
    };
    Update { session, decoder }.decode(update, text);
}

/// Shows a message that cannot be read as an item of the session in which something happens.
pub fn show_unreadable(text: &str, decoder: &mut Decoder) {
    const MAX_CHARS: usize = 64 << 10;
    let Some(session) = decoder.only_session() else { return };
    let raw = raw(&text.chars().take(MAX_CHARS).collect::<String>().into());
    decoder.push(&session, SessionUpdate::Unknown { name: UNREADABLE.to_owned(), raw });
}

fn refuse(text: &str, why: &str, decoder: &mut Decoder) {
    decoder.anomaly(AnomalyKind::BadMessage, format!("Invalid update: {why}."));
    let params = parse_object(text);
    let kind = |params: &Object| {
        let update = params.get("update").and_then(Value::as_object).unwrap_or(params);
        first_text(update, UPDATE_KIND)
    };
    let name = params.as_ref().and_then(kind).unwrap_or_else(|| "?".to_owned());
    let session = params.as_ref().and_then(session_name).map(|name| decoder.session(&name));
    if let Some(session) = session.or_else(|| decoder.only_session()) {
        tell_refused(&session, format!("Non-standard update: {name}"), why, decoder);
        decoder.push(&session, SessionUpdate::Unknown { name, raw: raw_update(text) });
    }
}

/// Reports an invalid message of a strict connection in the transcript.
pub fn tell_refused(session: &SessionId, title: String, why: &str, decoder: &mut Decoder) {
    let why = format!("{}. It may be supported without `strict`.", why.trim_end_matches('.'));
    push_notice(session, title, Some(why), decoder);
}

pub fn push_notice(session: &SessionId, title: String, description: Option<String>, decoder: &mut Decoder) {
    decoder.push(session, SessionUpdate::notice(Severity::Warning, title, description));
}

/// The original update. Parsed again, because the decoders consume it; this is rare.
fn raw_update(text: &str) -> Raw {
    let mut params = parse_object(text).unwrap_or_default();
    raw(&take(&mut params, &["update"]).unwrap_or(Value::Object(params)))
}

pub fn session_name(object: &Object) -> Option<String> {
    session_id(object, SESSION_ID)
}

struct Update<'a> {
    session: SessionId,
    decoder: &'a mut Decoder,
}

impl Update<'_> {
    fn decode(mut self, mut update: Object, text: &str) {
        let key = UPDATE_KIND.iter().find(|key| update.get(**key).is_some_and(Value::is_string));
        let spelled = key.and_then(|key| update.get(*key)?.as_str()).unwrap_or("?").to_owned();
        let name = official(UPDATES, &spelled);
        if name != spelled && name != "?" && !self.decoder.is_v2 {
            self.decoder.learn(Quirk::OWN_UPDATE_NAMES);
        }
        if !self.decoder.is_v2
            && matches!(spelled.as_str(), "agent_message" | "agent_thought" | "user_message")
            && first_text(&update, MESSAGE_ID).is_none()
        {
            // A complete message; later chunks must not be joined to it.
            update.insert("messageId".to_owned(), self.decoder.make_id("message").into());
        }
        let is_done = self.decoder.is_v2 && self.decode_v2(&spelled, &mut update).is_some();
        let mut is_known = true;
        if !is_done && self.decode_kind(&name, &mut update, &mut is_known).is_none() {
            if is_known {
                let text = format!("Could not decode an update `{spelled}`; shown unchanged.");
                self.decoder.anomaly(AnomalyKind::BadMessage, text);
            }
            self.push(SessionUpdate::Unknown { name: spelled, raw: raw_update(text) });
        }
    }

    fn push(&mut self, update: SessionUpdate) {
        self.decoder.push(&self.session, update);
    }

    /// Decodes updates that only version 2 has; `None`: decoded as in version 1.
    fn decode_v2(&mut self, name: &str, update: &mut Object) -> Option<()> {
        match name {
            "user_message" | "agent_message" | "agent_thought" => {
                let role = match name {
                    "user_message" => Role::User,
                    "agent_message" => Role::Agent,
                    _ => Role::Thought,
                };
                let message = MessageId::from(first_text(update, MESSAGE_ID)?);
                let content = patch(update, "content", |content| Some(content::decode_many(content)));
                self.push(SessionUpdate::Message { role, message, content, more_content: Vec::new() });
            }
            "state_update" => self.decoder.turn_news.push(v2::state(self.session.clone(), update)?),
            "tool_call_content_chunk" => {
                let mut patch = ToolCallPatch::new(first_text(update, TOOL_ID)?.into());
                patch.more_content = tools::decode_content(take(update, &["content"])?, self.decoder);
                self.push(SessionUpdate::Tool(Box::new(patch)));
            }
            "terminal_update" | "terminal_output_chunk" => {
                for news in v2::terminal(update, name == "terminal_update")? {
                    self.push(SessionUpdate::Terminal(news));
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Decodes an update by its official name; `None`: invalid or, with `is_known` cleared, there is no decoder for it.
    fn decode_kind(&mut self, name: &str, update: &mut Object, is_known: &mut bool) -> Option<()> {
        let update = match name {
            "user_message_chunk" => return self.message(Role::User, update),
            "agent_message_chunk" => return self.message(Role::Agent, update),
            "agent_thought_chunk" => return self.message(Role::Thought, update),
            "tool_call" => self.tool(std::mem::take(update), true)?,
            "tool_call_update" => self.tool(std::mem::take(update), false)?,
            "plan" => SessionUpdate::Plan(plan(update, self.decoder)?),
            "plan_update" => SessionUpdate::Plan(plan_update(update, self.decoder)?),
            "plan_removed" => SessionUpdate::PlanRemoved(first_text(update, PLAN_ID)?.into()),
            "available_commands_update" => {
                let items = take(update, &["availableCommands", "available_commands", "commands"])?;
                SessionUpdate::Commands(options::decode_commands(list(items), self.decoder))
            }
            "current_mode_update" => SessionUpdate::Mode(first_text(update, CURRENT_MODE)?.into()),
            "current_model_update" => SessionUpdate::Model(first_text(update, CURRENT_MODEL)?.into()),
            "config_option_update" => SessionUpdate::Options(options::decode_options(update, self.decoder)?),
            "session_info_update" => {
                self.info(update);
                return Some(());
            }
            "usage_update" => usage(update)?,
            "notice" => notice(update)?,
            "compaction_update" => self.compaction(update)?,
            "compaction_summary_chunk" => {
                let id = first_text(update, COMPACTION_ID)?;
                let text = self.text_of("content", take(update, MESSAGE_CONTENT)?);
                SessionUpdate::CompactionChunk { id, text }
            }
            "subagent_update" => self.subagent(update)?,
            "session_message" => return self.subagent_message(update, true),
            "session_message_chunk" => return self.subagent_message(update, false),
            _ => {
                *is_known = false;
                return None;
            }
        };
        self.push(update);
        Some(())
    }

    fn message(&mut self, role: Role, update: &mut Object) -> Option<()> {
        let content = take(update, MESSAGE_CONTENT)?;
        let message = take_text(update, MESSAGE_ID).map(|name| self.decoder.message(&name));
        // `delta: {text}` has no type, which blocks may omit too.
        self.blocks(role, message.as_ref(), content::decode_many(content));
        Some(())
    }

    fn blocks(&mut self, role: Role, message: Option<&MessageId>, blocks: Vec<ContentBlock>) {
        let total = blocks.len();
        let mut unknown = 0;
        for block in blocks {
            match block {
                // The result of a tool call, which is shown with the call. After a cancelled turn, gemini sends the calls
                // after all results, or only as text.
                ContentBlock::Text(text)
                    if role == Role::User && !self.decoder.quirks.is_strict && is_result_of_call(&text) =>
                {
                    self.decoder.learn(Quirk::REPLAYS_RESULTS);
                }
                ContentBlock::Text(text) => {
                    let mut text = text.into_string();
                    self.take_modes(role, &mut text);
                    self.decoder.push_text(self.session.clone(), role, message.cloned(), text.into());
                }
                block => {
                    unknown += usize::from(matches!(block, ContentBlock::Unknown(_)));
                    self.push(match message.cloned() {
                        Some(message) if self.decoder.is_v2 => SessionUpdate::Message {
                            role,
                            message,
                            content: Patch::Keep,
                            more_content: vec![block],
                        },
                        message => SessionUpdate::Block { role, message, block },
                    });
                }
            }
        }
        self.decoder.report_lost("content", unknown, total, true);
    }

    fn take_modes(&mut self, role: Role, text: &mut String) {
        if role == Role::User || !self.decoder.quirks.has(Quirk::MODE_IN_TEXT) {
            return;
        }
        for mode in take_modes(text) {
            let message = format!("Read the mode `{mode}` from the agent's text.");
            self.decoder.anomaly(AnomalyKind::Dialect, message);
            self.push(SessionUpdate::Mode(mode.as_str().into()));
        }
    }

    fn tool(&mut self, mut call: Object, is_announcement: bool) -> Option<SessionUpdate> {
        for key in UPDATE_KIND {
            call.shift_remove(*key);
        }
        let is_cleared = |value: &Value| self.decoder.is_v2 && value.is_null();
        let nulls = call.iter().filter(|(_, value)| is_cleared(value)).map(|(key, _)| key.clone());
        let nulls: Vec<String> = nulls.collect();
        let id = match first_text(&call, TOOL_ID) {
            Some(id) => id,
            None if is_announcement => self.decoder.make_id("tool"),
            // In an update, the id is required.
            None => return None,
        };
        let mut patch = tools::decode(call, is_announcement, id, self.decoder);
        v2::clear(&mut patch, &nulls);
        wrappers::take_off(&mut patch, self.decoder);
        Some(SessionUpdate::Tool(Box::new(patch)))
    }

    fn info(&mut self, update: &mut Object) {
        let title = patch_text(update, "title");
        rename(update, "updatedAt", &["updated_at"]);
        let updated_at = patch_text(update, "updatedAt");
        // Some agents send one only for its `_meta`.
        if title != Patch::Keep || updated_at != Patch::Keep {
            self.push(SessionUpdate::Info { title, updated_at });
        }
    }

    fn compaction(&mut self, update: &mut Object) -> Option<SessionUpdate> {
        let summary = patch(update, "summary", |summary| Some(self.text_of("summary", summary)));
        let id = first_text(update, COMPACTION_ID)?;
        let status = update.get("status")?.as_str()?.to_owned();
        let error = patch_text(update, "error");
        Some(SessionUpdate::Compaction { id, status, summary, error })
    }

    /// The Markdown of the text blocks; others are reported.
    fn text_of(&mut self, name: &str, content: Value) -> String {
        let texts = self.decoder.items(content::decode_many(content), name, |block| match block {
            ContentBlock::Text(text) => Some(text.into_string()),
            _ => None,
        });
        texts.concat()
    }

    fn subagent(&mut self, update: &mut Object) -> Option<SessionUpdate> {
        let session = SessionId::from(first_text(update, SESSION_ID)?);
        self.decoder.child(&session);
        let state = patch(update, "state", |state| first_text(state.as_object()?, &["state"]));
        let can_cancel = tools::can_cancel(update);
        let title = patch_text(update, "title");
        let description = patch_text(update, "description");
        Some(SessionUpdate::Subagent(SubagentPatch { session, title, description, state, can_cancel }))
    }

    /// Decodes a message between sessions. It is a user message or an own one in the child, and
    /// [`Role::SubagentMessage`] in the parent. A complete message repeats its chunks, so its content is used only if
    /// there were none.
    fn subagent_message(&mut self, update: &mut Object, is_whole: bool) -> Option<()> {
        let message = MessageId::from(first_text(update, MESSAGE_ID)?);
        let known = self.decoder.subagent_message.take().filter(|(id, ..)| *id == message);
        let sender = first_text(update, &["senderSessionId", "sender_session_id"]);
        let recipient = first_text(update, &["recipientSessionId", "recipient_session_id"]);
        let is_own = |name: &String| name == self.session.as_str();
        let names_child = |name: &String| !is_own(name) && self.decoder.is_child(name);
        let role = if sender.iter().chain(&recipient).any(names_child) {
            Role::SubagentMessage
        } else if recipient.as_ref().is_some_and(is_own) {
            Role::User
        } else if sender.as_ref().is_some_and(is_own) {
            Role::Agent
        } else {
            known.as_ref().map_or(Role::User, |(_, role, _)| *role)
        };
        let was_reported = known.is_some_and(|(.., was_reported)| was_reported);
        let content = take(update, MESSAGE_CONTENT);
        let has_content = content.is_some();
        if let Some(content) = content.filter(|_| !is_whole || !was_reported) {
            self.blocks(role, Some(&message), content::decode_many(content));
        }
        self.decoder.subagent_message = Some((message, role, was_reported || has_content));
        (is_whole || has_content).then_some(())
    }
}

/// The patch of a field; `null` clears it.
fn patch<T>(object: &mut Object, key: &str, read: impl FnOnce(Value) -> Option<T>) -> Patch<T> {
    match object.get_mut(key).map(Value::take) {
        None => Patch::Keep,
        Some(Value::Null) => Patch::Clear,
        Some(value) => Patch::from_option(read(value)),
    }
}

fn patch_text(object: &mut Object, key: &str) -> Patch<String> {
    patch(object, key, |value| super::value::text(&value))
}

fn usage(update: &mut Object) -> Option<SessionUpdate> {
    let used_tokens = first(update, &["used", "usedTokens", "used_tokens"])?.as_u64()?;
    let size = first(update, &["size", "sizeTokens", "size_tokens", "total", "limit"]);
    let size_tokens = size.map_or(Some(0), Value::as_u64)?;
    let cost = take(update, &["cost"]).and_then(|cost| typed(cost).ok());
    Some(SessionUpdate::Usage(Usage { used_tokens, size_tokens, cost }))
}

fn notice(update: &mut Object) -> Option<SessionUpdate> {
    let title = take_text(update, &["title", "message", "text"])?;
    let severity = take(update, &["severity"]).and_then(|word| typed(word).ok()).unwrap_or(Severity::Info);
    Some(SessionUpdate::notice(severity, title, take_text(update, &["description"])))
}

const STEP_TEXT: &[&str] = &["text", "title", "step", "description", "task", "name"];
const PLAN_ID: &[&str] = &["planId", "plan_id", "id"];

fn plan(update: &mut Object, decoder: &mut Decoder) -> Option<Plan> {
    let entries = take(update, &["entries", "steps", "items", "plan"])?;
    let id = take_text(update, &["planId", "plan_id"]).map(PlanId::from);
    Some(Plan { id, body: PlanBody::Entries(plan_entries(entries, decoder)) })
}

fn plan_update(update: &mut Object, decoder: &mut Decoder) -> Option<Plan> {
    let mut plan = match take(update, &["plan"]) {
        Some(Value::Object(plan)) => plan,
        _ => std::mem::take(update),
    };
    let id = take_text(&mut plan, PLAN_ID).map(PlanId::from);
    let body = if let Some(entries) = take(&mut plan, &["entries", "steps", "items"]) {
        PlanBody::Entries(plan_entries(entries, decoder))
    } else if let Some(content) = take_text(&mut plan, &["content", "markdown", "text"]) {
        PlanBody::Markdown(content)
    } else {
        PlanBody::File(take_text(&mut plan, &["uri", "path", "file"])?)
    };
    Some(Plan { id, body })
}

fn plan_entries(entries: Value, decoder: &mut Decoder) -> Vec<PlanEntry> {
    decoder.items(list(entries), "entries", |step| typed(plan_entry(step)?.into()).ok())
}

/// Converts an entry into the official shape, which is that of [`PlanEntry`]; unknown words become the default value.
fn plan_entry(step: Value) -> Option<Object> {
    let mut step = object_with(step, "content")?;
    rename(&mut step, "content", STEP_TEXT);
    for (key, table, known, neutral) in [
        ("priority", PLAN_PRIORITY, ["high", "medium", "low"], "medium"),
        ("status", PLAN_STATUS, ["pending", "in_progress", "completed"], "pending"),
    ] {
        if let Some(word) = step.get(key).and_then(Value::as_str) {
            let word = official(table, word);
            let word = if known.contains(&word.as_str()) { word } else { neutral.to_owned() };
            step.insert(key.to_owned(), word.into());
        }
        fill(&mut step, key, || neutral.into());
    }
    Some(step)
}
