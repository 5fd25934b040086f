//! The version of the protocol that an agent is offered: version 1, unless another one is configured, or the agent spoke
//! the draft of version 2 when it was last started. `conn` offers version 2 to an agent that refuses version 1.

use crate::core::{Cx, Effect, State};
use crate::model::{AgentSpec, ConnId};

/// The draft that is offered to agents that refuse version 1.
pub(super) const DRAFT: u16 = 2;

pub(super) fn with_known(state: &State, mut spec: AgentSpec) -> AgentSpec {
    if spec.wire.protocol == 0 && state.setup.draft_agents.contains(&spec.command_line()) {
        spec.wire.protocol = DRAFT;
    }
    spec
}

/// Remembers the version that an agent speaks, if that changes what it is offered next.
pub(super) fn remember(state: &mut State, conn: ConnId, version: u16, cx: &mut Cx) {
    let Some(agent) = state.conns.get(&conn).map(|conn| conn.spec.command_line()) else { return };
    let (known, is_draft) = (&mut state.setup.draft_agents, version == DRAFT);
    let has_changed = if is_draft { known.insert(agent.clone()) } else { known.remove(&agent) };
    if has_changed {
        cx.effects.push(Effect::SaveDraftAgent { agent, is_draft });
    }
}
