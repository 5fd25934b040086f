//! Asks before a prompt with a secret is sent: its text, the files that it mentions, and a conversation that is handed over.
//!
//! Invariant: only hashes of secrets are remembered.

use std::collections::BTreeSet;

use super::prompt;
use crate::core::state::session::SecretAnswer;
use crate::core::{Consequence, Cx, Question, Release, State};
use crate::model::{ContentBlock, PreparedPrompt, PromptId, ResourceBody, SessionKey, content_hash};
use crate::redact::{Found, find, masked};

/// Maximum number of secrets that a question lists.
const MAX_LISTED: usize = 5;

/// Maximum number of characters of a secret that a question shows. It never shows more than a quarter.
const SHOWN_CHARS: usize = 4;

/// Hides the secrets that the user chose to hide. If there are others, puts the prompt on hold and asks; returns whether
/// it did.
pub(super) fn stops_prompt(
    state: &mut State,
    key: SessionKey,
    id: PromptId,
    prepared: &mut PreparedPrompt,
    cx: &mut Cx,
) -> bool {
    if !state.setup.policy.check_secrets {
        return false;
    }
    let Some(session) = state.sessions.get_mut(&key) else { return false };
    let (mut new, mut lines) = (BTreeSet::new(), Vec::new());
    let mut check = |place: &str, text: &str| {
        let answers = &session.secret_answers;
        let mut hidden = Vec::new();
        for secret in find(text) {
            let hash = hash_of(text, &secret);
            match answers.get(&hash) {
                Some(SecretAnswer::Hide) => hidden.push(secret),
                None if new.insert(hash) && lines.len() < MAX_LISTED => {
                    lines.push(description(place, text, &secret));
                }
                Some(_) | None => {}
            }
        }
        (!hidden.is_empty()).then(|| masked(text, &hidden))
    };
    if let Some(text) = check("the prompt", &prepared.text) {
        prepared.text = text;
    }
    for block in &mut prepared.blocks {
        let (place, text) = match block {
            ContentBlock::Text(text) => ("an attachment".to_owned(), text),
            ContentBlock::Resource { uri, body: ResourceBody::Text(text), .. } => (name_of(uri), text),
            _ => continue,
        };
        if let Some(changed) = check(&place, text.as_str()) {
            *text = changed.into();
        }
    }
    let handover = session.resume.handover().map(|handover| (handover.text.clone(), handover.agent.clone()));
    if let Some((text, agent)) = handover
        && let Some(text) = check("the conversation that is handed over", &text)
    {
        session.resume.hand_over(text, agent);
    }
    if new.is_empty() {
        return false;
    }
    session.outbox.give_back(id);
    ask(state, (key, id), lines, &new.into_iter().collect::<Vec<_>>(), cx);
    true
}

/// Asks about secrets with these hashes, of which the first ones are described.
fn ask(
    state: &mut State,
    (key, id): (SessionKey, PromptId),
    mut body: Vec<String>,
    hashes: &[String],
    cx: &mut Cx,
) {
    state.withdraw(|consequence| matches!(consequence, Consequence::Secrets(of, ..) if *of == key));
    let more = hashes.len().saturating_sub(body.len());
    body.extend((more > 0).then(|| format!("{more} more")));
    body.push("The prompt was not sent. It is in the queue, on hold.".to_owned());
    let consequence = |answer| Consequence::Secrets(key, id, answer, hashes.to_vec());
    let answers = [
        ("Edit the prompt", consequence(SecretAnswer::Edit)),
        ("Hide them with * and send", consequence(SecretAnswer::Hide)),
        ("Send them, and do not ask about these again in this session", consequence(SecretAnswer::Send)),
    ];
    state
        .ask(key, Question::new("Send what looks like a secret?".to_owned(), body, answers).asked_at(cx.now));
}

/// Carries out the answer. A prompt that is sent is the next one of the queue.
pub(in crate::core) fn decide(
    state: &mut State,
    key: SessionKey,
    id: PromptId,
    (answer, hashes): (SecretAnswer, Vec<String>),
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get_mut(&key).filter(|it| it.outbox.position(id).is_some()) else {
        return;
    };
    if answer == SecretAnswer::Edit {
        return prompt::give_back(state, key, id, cx);
    }
    session.secret_answers.extend(hashes.into_iter().map(|hash| (hash, answer)));
    session.outbox.put_first(id, Release::InOrder);
}

fn hash_of(text: &str, secret: &Found) -> String {
    content_hash(text.get(secret.range.clone()).unwrap_or_default().as_bytes())
}

/// What and where a secret is, with its first characters: `GitHub token in src/a.rs, line 3: ghp_… (40 characters)`.
fn description(place: &str, text: &str, secret: &Found) -> String {
    let value = text.get(secret.range.clone()).unwrap_or_default();
    let count = value.chars().count();
    let start: String = value.chars().take(SHOWN_CHARS.min(count / 4)).collect();
    let line = text.get(..secret.range.start).unwrap_or_default().matches('\n').count() + 1;
    format!("{} in {place}, line {line}: {start}… ({count} characters)", secret.kind)
}

/// The name of a file by its address.
fn name_of(uri: &str) -> String {
    uri.rsplit('/').next().unwrap_or(uri).to_owned()
}
