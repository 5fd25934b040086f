//! Updates of the agent applied to one session, live or played from its record.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::model::{
    AgentTerminal, ItemId, ModeId, ModelId, Patch, Plan, PlanBody, PlanId, SessionUpdate, Setting,
    SubagentPatch,
};

use super::{diffs, messages, settings, terminals, tools};
use crate::core::state::texts;
use crate::core::{Cx, ItemBody, Part, Session};

/// Applies an update that affects only its session.
pub(in crate::core) fn apply_here(session: &mut Session, update: SessionUpdate, cx: &mut Cx) {
    session.grown_bytes += crate::model::weight::of_update(&update);
    match update {
        SessionUpdate::Chunk { role, message, text } => {
            messages::on_chunk(session, role, message, text, cx.now);
        }
        SessionUpdate::Block { role, message, block } => {
            messages::on_block(session, role, message, block, cx.now);
        }
        SessionUpdate::Message { role, message, content, more_content } => {
            messages::on_message(session, role, &message, content, cx.now);
            for block in more_content {
                messages::on_more(session, role, &message, block, cx.now);
            }
        }
        SessionUpdate::Terminal(news) => {
            if let AgentTerminal::About { id, can_cancel, .. } = &news {
                note_part(session, Part::Terminal(id.clone()), can_cancel);
            }
            terminals::on_agent_terminal(session, news, cx.now);
        }
        SessionUpdate::Tool(patch) => {
            note_part(session, Part::Tool(patch.id.clone()), &patch.can_cancel);
            let wants_positions = diffs::may_change_diffs(&patch);
            let item = tools::upsert(session, *patch, tools::Origin::Update, cx.now);
            if wants_positions {
                diffs::locate(session, item, cx);
            }
        }
        SessionUpdate::Plan(plan) => on_plan(session, plan),
        SessionUpdate::PlanRemoved(id) => remove_plan(session, Some(&id)),
        SessionUpdate::Commands(commands) => {
            session.commands = commands;
            session.outbox.expect_commands_until(None);
        }
        SessionUpdate::Mode(mode) => on_mode(session, mode),
        SessionUpdate::Model(model) => on_model(session, model),
        SessionUpdate::Options(options) => {
            session.options = options;
            settings::agree(session);
            settings::follow_options(session);
        }
        // A title set by the user is not replaced.
        SessionUpdate::Info { .. } if session.title_state.is_own() => {}
        SessionUpdate::Info { title, updated_at: _ } => title.apply(&mut session.title),
        SessionUpdate::Usage(mut usage) => {
            // Several agents report the cost at the end of a turn only.
            if usage.cost.is_none() {
                usage.cost = session.usage.take().and_then(|known| known.cost);
            }
            session.usage = Some(usage);
        }
        SessionUpdate::Notice { kind, severity, title, description } => {
            let body = ItemBody::Notice { kind, severity, title, detail: description };
            session.transcript.push(session.turn_count, body);
        }
        SessionUpdate::Compaction { id, status, summary, error } => {
            on_compaction(session, &id, Some(status), summary, error);
        }
        SessionUpdate::CompactionChunk { id, text } => on_compaction_chunk(session, &id, &text),
        SessionUpdate::Subagent(_) => {}
        SessionUpdate::Unknown { name, raw } => {
            session.transcript.push(session.turn_count, ItemBody::Raw { name, raw });
        }
    }
}

/// An agent replaces its plan each time; an empty one removes it.
pub(crate) fn on_plan(session: &mut Session, plan: Plan) {
    session.is_plan_abandoned = false;
    if matches!(&plan.body, PlanBody::Entries(entries) if entries.is_empty()) {
        remove_plan(session, plan.id.as_ref());
    } else if let Some(known) = session.plans.iter_mut().find(|known| known.id == plan.id) {
        *known = plan;
    } else {
        session.plans.push(plan);
    }
}

pub(in crate::core) fn remove_plan(session: &mut Session, id: Option<&PlanId>) {
    session.plans.retain(|plan| plan.id.as_ref() != id);
}

pub(in crate::core) fn on_mode(session: &mut Session, mode: ModeId) {
    settings::follow(session, Setting::Mode(mode.clone()));
    settings::set_option_of(session, "mode", mode.as_str());
    if let Some(modes) = &mut session.modes {
        modes.current = mode;
    }
}

pub(in crate::core) fn on_model(session: &mut Session, model: ModelId) {
    settings::follow(session, Setting::Model(model.clone()));
    settings::set_option_of(session, "model", model.as_str());
    if let Some(models) = &mut session.models {
        models.current = model;
    }
}

pub(in crate::core) fn on_compaction(
    session: &mut Session,
    id: &str,
    new_status: Option<String>,
    new_summary: Patch<String>,
    new_error: Patch<String>,
) {
    let position = compaction_position(session, id);
    session.transcript.edit(position, |item| {
        if let ItemBody::Compaction { status, summary, error, .. } = &mut item.body {
            if let Some(new_status) = new_status {
                *status = new_status;
            }
            new_summary.apply_or_default(summary);
            new_error.apply(error);
        }
    });
}

pub(in crate::core) fn on_compaction_chunk(session: &mut Session, id: &str, text: &str) {
    let position = compaction_position(session, id);
    session.transcript.edit(position, |item| {
        if let ItemBody::Compaction { summary, .. } = &mut item.body {
            summary.push_str(text);
        }
    });
}

/// The item stays where it first appeared. Source: ACP v1 `compaction_update`.
pub(in crate::core) fn compaction_position(session: &mut Session, id: &str) -> crate::model::ItemId {
    if let Some(position) = session.index.compaction(id) {
        return position;
    }
    let body = ItemBody::Compaction {
        id: id.to_owned(),
        status: texts::IN_PROGRESS.to_owned(),
        summary: String::new(),
        error: None,
    };
    let position = session.transcript.push(session.turn_count, body);
    session.index.add_compaction(id.to_owned(), position);
    position
}

/// Shows a child session, but does not open it. Returns its item.
pub(in crate::core) fn on_subagent(session: &mut Session, patch: SubagentPatch, now: Instant) -> ItemId {
    let position = if let Some(position) = session.index.subagent(&patch.session) {
        position
    } else {
        messages::close(session, now);
        let body = ItemBody::Subagent {
            session: patch.session.clone(),
            key: None,
            title: String::new(),
            description: None,
            state: None,
            calls: 0,
        };
        let position = session.transcript.push(session.turn_count, body);
        session.index.add_subagent(patch.session.clone(), position);
        position
    };
    session.transcript.edit(position, |item| {
        if let ItemBody::Subagent { title, description, state, .. } = &mut item.body {
            patch.title.apply_or_default(title);
            patch.description.apply(description);
            patch.state.apply(state);
        }
    });
    position
}

/// Notes whether a part can be cancelled, if reported.
pub(in crate::core) fn note_part(session: &mut Session, part: Part, can_cancel: &Patch<bool>) {
    let parts: &mut BTreeSet<Part> = &mut session.can_cancel;
    match can_cancel {
        Patch::Keep => {}
        Patch::Set(true) => {
            parts.insert(part);
        }
        Patch::Set(false) | Patch::Clear => {
            parts.remove(&part);
        }
    }
}
