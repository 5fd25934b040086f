//! Updates of sessions.
//!
//! Duty: to which session an update belongs, and what each kind of it changes.
//! Not its duty: how messages (`messages`), calls (`tools`) and terminals (`terminals`) grow.
//! An update may come before the session is known (then it waits), outside a turn, and after a cancel: all of
//! them count, and none opens or ends a turn.

use std::time::Instant;

use crate::model::{
    AgentTerminal, Bounded, Capacity, ConnId, ModeId, ModelId, Patch, Plan, PlanBody, PlanId, Record, Role,
    SessionId, SessionKey, SessionUpdate, Setting, Severity, SubagentPatch,
};

use super::{
    Early, Effect, Former, ItemBody, Part, Replay, Session, SessionPhase, State, Turn, call, choices, chosen,
    diffs, messages, paging, recorder, replay_reconcile, terminals, texts, tools, turn, unstable,
};

/// What waits for its session to be known, per connection; beyond it the oldest go.
const MOST_EARLY: Capacity = Capacity { items: 4_096, bytes: 16 << 20 };
/// What a waiting update takes beside its texts.
const EARLY_BYTES: usize = size_of::<(SessionId, SessionUpdate)>();
/// Most bytes of text that are joined into one waiting chunk.
const MOST_JOINED_BYTES: usize = 1 << 20;

/// An update of a session.
pub(super) fn on_update(
    state: &mut State,
    conn: ConnId,
    id: SessionId,
    update: SessionUpdate,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    match call::session_by_id(state, conn, &id) {
        Some(key) => apply(state, conn, key, update, now, fx),
        None => keep_early(state, conn, id, update),
    }
}

/// Some agents tell of a session before the answer that names it.
fn keep_early(state: &mut State, conn: ConnId, id: SessionId, update: SessionUpdate) {
    let Some(conn) = state.conns.get_mut(&conn).filter(|conn| conn.is_alive()) else {
        return;
    };
    let early = &mut conn.early;
    if let SessionUpdate::Chunk { role, message, text } = &update
        && early.updates.grow_last(text.len(), |(last, waiting)| match waiting {
            SessionUpdate::Chunk { role: of, message: in_message, text: all }
                if *last == id
                    && of == role
                    && in_message == message
                    && all.len() + text.len() <= MOST_JOINED_BYTES =>
            {
                all.push_str(text);
                true
            }
            _ => false,
        })
    {
        return;
    }
    let bytes = EARLY_BYTES + id.as_str().len() + paging::weight_of(&update);
    let mut waiting = Err((id, update));
    while let Err(update) = waiting {
        waiting = early.updates.push(update, bytes);
        if waiting.is_err() {
            early.updates.pop();
            early.dropped_count += 1;
        }
    }
}

impl Default for Early {
    fn default() -> Self {
        Self { updates: Bounded::new(MOST_EARLY), dropped_count: 0 }
    }
}

/// The session is known now: what came for it before is applied in order.
pub(super) fn replay_early(
    state: &mut State,
    conn: ConnId,
    key: SessionKey,
    id: &SessionId,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some(open) = state.conns.get_mut(&conn) else {
        return;
    };
    if open.early.updates.is_empty() {
        return;
    }
    let dropped_count = std::mem::take(&mut open.early.dropped_count);
    let mine = open.early.updates.take_where(|(of, _)| of == id);
    if dropped_count > 0 {
        let title = format!("{dropped_count} early updates were dropped.");
        call::notice(state, key, Severity::Warning, title, None);
    }
    for (_, update) in mine {
        apply(state, conn, key, update, now, fx);
    }
}

/// Applies an update to a known session.
pub(super) fn apply(
    state: &mut State,
    conn: ConnId,
    key: SessionKey,
    update: SessionUpdate,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    turn::note_news(state, key, now);
    let Some(session) = state.sessions.get_mut(&key) else {
        return;
    };
    let makes_items = makes_items(&update);
    let update = if session.turn.is_running() {
        update
    } else {
        match replay_reconcile::take(session, update, now, fx) {
            Some(update) => update,
            None => return,
        }
    };
    if makes_items && matches!(session.turn, Turn::Idle) {
        note_outside_turn(session, &update);
    }
    let Some(update) = paging::take_late(session, update) else { return };
    // What comes of an echo depends on the prompt, which may stand in an earlier page.
    let Some(update) = messages::without_echo(session, update) else { return };
    let record = Record::Update(update.clone());
    let next = session.transcript.next_id();
    match update {
        SessionUpdate::Subagent(patch) => {
            if !on_subagent(state, conn, key, patch, now, fx) {
                return;
            }
        }
        other => apply_here(session, other, now, fx),
    }
    // Behind it, because a message of a replayed history begins the turn that it is counted in.
    if let Some(session) = state.sessions.get_mut(&key) {
        if session.transcript.next_id() > next {
            paging::on_pushed(session, next);
        }
        recorder::note(session, record);
    }
}

/// Applies an update that changes nothing but its session.
pub(super) fn apply_here(session: &mut Session, update: SessionUpdate, now: Instant, fx: &mut Vec<Effect>) {
    match update {
        SessionUpdate::Chunk { role, message, text } => {
            messages::on_chunk(session, role, message, text, now);
        }
        SessionUpdate::Block { role, message, block } => {
            messages::on_block(session, role, message, block, now);
        }
        SessionUpdate::Message { role, message, content } => {
            messages::on_message(session, role, &message, content, now);
        }
        SessionUpdate::Terminal(news) => {
            if let AgentTerminal::About { id, can_cancel, .. } = &news {
                unstable::note_part(session, Part::Terminal(id.clone()), can_cancel);
            }
            terminals::on_told(session, news, now);
        }
        SessionUpdate::Tool(patch) => {
            unstable::note_part(session, Part::Tool(patch.id.clone()), &patch.can_cancel);
            let wants_places = diffs::tells_news(&patch);
            let item = tools::upsert(session, *patch, tools::Origin::Update, now);
            if wants_places {
                diffs::locate(session, item, fx);
            }
        }
        SessionUpdate::Plan(plan) => on_plan(session, plan),
        SessionUpdate::PlanRemoved(id) => remove_plan(session, Some(&id)),
        SessionUpdate::Commands(commands) => session.commands = commands,
        SessionUpdate::Mode(mode) => on_mode(session, mode),
        SessionUpdate::Model(model) => on_model(session, model),
        SessionUpdate::Options(options) => {
            session.options = options;
            choices::agree(session);
            chosen::follow_options(session);
        }
        // A title of the user's own stays.
        SessionUpdate::Info { .. } if session.ledger.has_own_title => {}
        SessionUpdate::Info { title, updated_at: _ } => title.apply(&mut session.title),
        SessionUpdate::Usage(usage) => session.usage = Some(usage),
        SessionUpdate::Notice { severity, title, description } => {
            let body = ItemBody::Notice { severity, title, detail: description };
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

/// Whether an update is a part of the history, not just a setting.
fn makes_items(update: &SessionUpdate) -> bool {
    matches!(
        update,
        SessionUpdate::Chunk { .. }
            | SessionUpdate::Block { .. }
            | SessionUpdate::Message { .. }
            | SessionUpdate::Tool(_)
            | SessionUpdate::Compaction { .. }
            | SessionUpdate::CompactionChunk { .. }
            | SessionUpdate::Subagent(_)
    )
}

/// Outside a turn something is either a replay of the history or news from the background.
fn note_outside_turn(session: &mut Session, update: &SessionUpdate) {
    let is_from_user = matches!(
        update,
        SessionUpdate::Chunk { role: Role::User, .. }
            | SessionUpdate::Block { role: Role::User, .. }
            | SessionUpdate::Message { role: Role::User, .. }
    );
    match &session.ledger.replay {
        Replay::Armed => begin_replay(session, true),
        // One agent answers first and replays then. What it says of itself after a load is no history, so
        // only a message of the user begins such a replay.
        Replay::Late if is_from_user => begin_replay(session, false),
        Replay::Running(_) | Replay::Aside(_) => {}
        Replay::None | Replay::Late => {
            let is_open = session.phase == SessionPhase::Ready && session.parent.is_none();
            session.has_background_news |= is_open && session.turn_count > 0;
        }
    }
}

/// The history replaces what is shown; until the replay has ended well, that is kept.
fn begin_replay(session: &mut Session, may_fail: bool) {
    let transcript = session.transcript.take();
    let earlier = session.ledger.earlier.take();
    let former = Former { transcript, book: session.pages.forget(), earlier };
    session.forget_places();
    session.terminals.retain(|_, view| view.is_ours);
    session.turn_count = 0;
    // What is kept under its name is this one: the store is to know before anything of it comes.
    session.ledger.goes_on = true;
    if may_fail {
        recorder::hold(session);
        session.ledger.replay = Replay::Running(Box::new(former));
    } else {
        recorder::note(session, Record::Replaced);
        session.ledger.replay = Replay::None;
    }
}

/// An agent replaces its plan each time; an empty one is none.
pub(super) fn on_plan(session: &mut Session, plan: Plan) {
    if matches!(&plan.body, PlanBody::Entries(entries) if entries.is_empty()) {
        remove_plan(session, plan.id.as_ref());
    } else if let Some(known) = session.plans.iter_mut().find(|known| known.id == plan.id) {
        *known = plan;
    } else {
        session.plans.push(plan);
    }
}

fn remove_plan(session: &mut Session, id: Option<&PlanId>) {
    session.plans.retain(|plan| plan.id.as_ref() != id);
}

fn on_mode(session: &mut Session, mode: ModeId) {
    chosen::follow(session, Setting::Mode(mode.clone()));
    choices::set_option_of(session, "mode", mode.as_str());
    if let Some(modes) = &mut session.modes {
        modes.current = mode;
    }
}

fn on_model(session: &mut Session, model: ModelId) {
    chosen::follow(session, Setting::Model(model.clone()));
    choices::set_option_of(session, "model", model.as_str());
    if let Some(models) = &mut session.models {
        models.current = model;
    }
}

fn on_compaction(
    session: &mut Session,
    id: &str,
    new_status: Option<String>,
    new_summary: Patch<String>,
    new_error: Patch<String>,
) {
    let place = compaction_place(session, id);
    session.transcript.edit(place, |item| {
        if let ItemBody::Compaction { status, summary, error, .. } = &mut item.body {
            if let Some(new_status) = new_status {
                *status = new_status;
            }
            new_summary.apply_or_default(summary);
            new_error.apply(error);
        }
    });
}

fn on_compaction_chunk(session: &mut Session, id: &str, text: &str) {
    let place = compaction_place(session, id);
    session.transcript.edit(place, |item| {
        if let ItemBody::Compaction { summary, .. } = &mut item.body {
            summary.push_str(text);
        }
    });
}

/// Its place is fixed by first sight. Source: ACP v1 `compaction_update`.
fn compaction_place(session: &mut Session, id: &str) -> crate::model::ItemId {
    if let Some(place) = session.ledger.compactions.get(id) {
        return *place;
    }
    let body = ItemBody::Compaction {
        id: id.to_owned(),
        status: texts::IN_PROGRESS.to_owned(),
        summary: String::new(),
        error: None,
    };
    let place = session.transcript.push(session.turn_count, body);
    session.ledger.compactions.insert(id.to_owned(), place);
    place
}

/// A child session: an item in its parent's transcript, and a session of its own for what it says. Returns whether it is
/// one.
fn on_subagent(
    state: &mut State,
    conn: ConnId,
    parent: SessionKey,
    patch: SubagentPatch,
    now: Instant,
    fx: &mut Vec<Effect>,
) -> bool {
    let id = patch.session.clone();
    let child = match call::session_by_id(state, conn, &id) {
        // A session that calls itself, or one above it, its own child is none.
        Some(known) if call::root_of(state, parent) == known || known == parent => return false,
        Some(known) => known,
        None => adopt(state, conn, parent, &id),
    };
    let Some(session) = state.sessions.get_mut(&parent) else {
        return false;
    };
    let place = if let Some(place) = session.ledger.subagents.get(&id) {
        *place
    } else {
        messages::close(session, now);
        let body = ItemBody::Subagent {
            session: id.clone(),
            key: Some(child),
            title: String::new(),
            description: None,
            state: None,
        };
        let place = session.transcript.push(session.turn_count, body);
        session.ledger.subagents.insert(id.clone(), place);
        place
    };
    unstable::note_part(session, Part::Child(id.clone()), &patch.can_cancel);
    let new_title = patch.title.clone();
    session.transcript.edit(place, |item| {
        if let ItemBody::Subagent { key, title, description, state, .. } = &mut item.body {
            *key = Some(child);
            patch.title.apply_or_default(title);
            patch.description.apply(description);
            patch.state.apply(state);
        }
    });
    if let Some(session) = state.sessions.get_mut(&child) {
        new_title.apply(&mut session.title);
    }
    replay_early(state, conn, child, &id, now, fx);
    true
}

/// The child's own session: the one from before a restart, or a new one.
fn adopt(state: &mut State, conn: ConnId, parent: SessionKey, id: &SessionId) -> SessionKey {
    let known = state
        .sessions
        .values()
        .find(|session| session.parent == Some(parent) && session.id.as_ref() == Some(id))
        .map(|session| session.key);
    let place = state.sessions.get(&parent).map(|session| session.place.clone());
    let key = known.unwrap_or_else(|| state.add_session());
    if let Some(session) = state.sessions.get_mut(&key) {
        session.parent = Some(parent);
        session.conn = Some(conn);
        session.id = Some(id.clone());
        session.phase = SessionPhase::Ready;
        session.place = place.unwrap_or_else(|| session.place.clone());
    }
    key
}
