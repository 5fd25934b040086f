//! Translators between the protocol and the dialects of five systems; each file has one of them.
//!
//! A translator sits between `peer` and the agent: it changes the requests of parlor into those of the dialect, and the
//! agent's messages into those of the protocol. `peer` and `codec` handle the protocol only.
//! Invariants: for any other agent and for a strict connection, nothing is translated; a message that a translator does not
//! change passes without a copy.

mod activecontext;
mod banjo;
mod dialect;
pub mod elephant;
pub mod openoxide;
#[cfg(test)]
mod tests;
pub mod zeptoclaw;

use super::codec::quirks::{is_known, words};
use super::codec::value::{first_text, parse_object};
use crate::model::{AgentSpec, Profile};

use dialect::Official;
pub(super) use dialect::{Dialect, Method, Translation};

/// Names of the systems: of their programs and packages, and those that they report.
const NAMES: &[(&str, Profile)] = &[
    ("openoxide", Profile::OpenOxide),
    ("alex", Profile::Elephant),
    ("elephant", Profile::Elephant),
    ("elephant.ai", Profile::Elephant),
    ("zeptoclaw", Profile::ZeptoClaw),
    ("activecontext", Profile::ActiveContext),
    ("banjo", Profile::Banjo),
    ("banjo-duet", Profile::Banjo),
    ("Banjo Duet", Profile::Banjo),
];

fn profile_of_name(name: &str) -> Option<Profile> {
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, profile)| *profile)
}

/// The system of an agent, from its configuration or its command.
pub(crate) fn profile_of(spec: &AgentSpec) -> Option<Profile> {
    if spec.wire.is_strict {
        return None;
    }
    spec.wire.profile.or_else(|| words(spec).find_map(profile_of_name))
}

/// The names in a command that say how parlor speaks with its agent.
pub(super) fn telling_names(spec: &AgentSpec) -> Vec<String> {
    let names = words(spec).filter(|name| profile_of_name(name).is_some() || is_known(name));
    names.map(str::to_owned).collect()
}

/// The translator of an agent that is known before its start.
pub(super) fn before_start(spec: &AgentSpec) -> Box<dyn Dialect> {
    profile_of(spec).and_then(|profile| of(profile, spec, true)).unwrap_or_else(|| Box::new(Official))
}

/// The translator of an agent by its response to `initialize`.
pub(super) fn recognized(result: &str, spec: &AgentSpec) -> Option<Box<dyn Dialect>> {
    if spec.wire.is_strict || spec.wire.profile.is_some() {
        return None;
    }
    let result = parse_object(result)?;
    let profile = if openoxide::is_spoken_in(&result) {
        Profile::OpenOxide
    } else {
        let info =
            ["agentInfo", "serverInfo", "agent_info"].iter().find_map(|key| result.get(*key)?.as_object())?;
        profile_of_name(&first_text(info, &["name"])?)?
    };
    of(profile, spec, false)
}

/// `is_early`: the agent was known before its start.
fn of(profile: Profile, spec: &AgentSpec, is_early: bool) -> Option<Box<dyn Dialect>> {
    let is_remote = spec.remote.is_some();
    Some(match profile {
        Profile::Official => return None,
        Profile::OpenOxide => Box::new(openoxide::OpenOxide::new(&spec.wire, is_early, is_remote)),
        Profile::Elephant => Box::new(elephant::Elephant::default()),
        Profile::ZeptoClaw => Box::new(zeptoclaw::ZeptoClaw::new(is_remote)),
        Profile::ActiveContext => Box::new(activecontext::ActiveContext::default()),
        Profile::Banjo => Box::new(banjo::Banjo::new(is_early, is_remote)),
    })
}
