//! Aligns the record of a session with the history that its agent replays.
//!
//! [`reconcile`] compares two lists of items, recorded and replayed, and finds for each item whether both have it or
//! only one of them. Turns are aligned first (`turns`), then the items within them (`items`). Ids are used where they
//! help, but not trusted alone: agents reuse them or create new ones for each process. Text is compared without white
//! space (`text`), because agents join, split and rewrap messages.
//! Invariants: each recorded item is in the result once, in order; a replay of what is recorded adds nothing; once the
//! result was inserted into the record, the same replay adds nothing more.

mod items;
pub(in crate::app) mod text;
mod turns;

use std::ops::Range;

use crate::app::{Item, ItemBody, MessagePart};
use crate::model::NoticeKind;

/// Minimum length of a text, without white space, that identifies a message or prompt within a longer one.
const MIN_PART_BYTES: usize = 12;

/// An item of the result.
#[derive(Debug, Clone, PartialEq)]
pub enum AlignedItem {
    /// A recorded item.
    Ours {
        item: usize,
        /// The replayed item that equals it, or the first of several.
        told: Option<usize>,
    },
    /// A replayed item, or a part of one, that is not recorded.
    Theirs {
        item: usize,
        /// The parts of the message that are not recorded; `None`: the whole item.
        parts: Option<Vec<MessagePart>>,
        /// Whether the record has a different text at this place.
        differs: bool,
    },
}

/// Adjacent recorded turns that the replay does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingTurns {
    /// The index of the item after them.
    pub behind: usize,
    /// Number of turns without a notice after them.
    pub turns: usize,
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reconciled {
    /// All recorded items, and between them those that only the replay has.
    pub pieces: Vec<AlignedItem>,
    /// Turns that only the record has.
    pub missing: Vec<MissingTurns>,
    /// Whether the replay has the last recorded turn completely.
    pub has_end: bool,
    /// What was not compared, because that part of the record was not given.
    pub unread: Option<Unread>,
}

/// The start of a replay, which belongs to earlier parts of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unread {
    /// Number of replayed items.
    pub theirs: usize,
    /// The first recorded item after them.
    pub behind: usize,
}

/// Compares recorded items with replayed ones. `is_whole`: the recorded items are the complete session; otherwise the
/// replay may begin with recorded items that are not given.
pub fn reconcile(ours: &[Item], theirs: &[Item], is_whole: bool) -> Reconciled {
    let (our_turns, their_turns) = (turns::of(ours), turns::of(theirs));
    let has_prompts = their_turns.iter().any(|turn| turn.prompt.is_some());
    let groups = if has_prompts {
        turns::align(&our_turns, &their_turns, is_whole)
    } else {
        // The agent does not replay prompts: its messages are searched in all turns.
        vec![turns::Group { ours: 0..our_turns.len(), theirs: 0..their_turns.len() }]
    };
    let mut found = Reconciled::default();
    let mut matcher = items::Matcher::new(ours, theirs);
    for group in &groups {
        let our_items = turns::items_of(&our_turns, &group.ours);
        let their_items = turns::items_of(&their_turns, &group.theirs);
        let is_only_ours = group.theirs.is_empty() && has_prompts;
        matcher.add(our_items.clone(), their_items, &mut found.pieces);
        if is_only_ours && let Some(turns) = unmarked(ours, &our_turns, &group.ours) {
            found.missing.push(MissingTurns { behind: our_items.end, turns });
        }
    }
    found.has_end = has_end(&our_turns, &groups, &matcher);
    if !is_whole && has_prompts {
        let is_common = |group: &&turns::Group| !group.ours.is_empty() && !group.theirs.is_empty();
        let (behind, count) = groups.iter().find(is_common).map_or((ours.len(), theirs.len()), |group| {
            (
                turns::items_of(&our_turns, &group.ours).start,
                turns::items_of(&their_turns, &group.theirs).start,
            )
        });
        found.unread = (count > 0).then_some(Unread { theirs: count, behind });
    }
    found
}

/// Number of these turns without a notice that they are not in the agent's history.
fn unmarked(ours: &[Item], turns: &[turns::Turn<'_>], range: &Range<usize>) -> Option<usize> {
    let mut count = 0;
    for turn in turns.get(range.clone()).unwrap_or_default() {
        count += usize::from(turn.prompt.is_some());
        let items = ours.get(turn.items.clone()).unwrap_or_default();
        if items.iter().any(|item| not_replayed(item).is_some()) {
            count = 0;
        }
    }
    (count > 0).then_some(count)
}

/// The number of turns above a notice that are not in the agent's history, if it is such a notice.
fn not_replayed(item: &Item) -> Option<usize> {
    match item.body {
        ItemBody::Notice { kind: NoticeKind::NotReplayed(turns), .. } => Some(turns),
        _ => None,
    }
}

/// Whether the last turn that the agent can be expected to have was replayed completely.
fn has_end(turns: &[turns::Turn<'_>], groups: &[turns::Group], matcher: &items::Matcher<'_>) -> bool {
    for group in groups.iter().rev() {
        for position in group.ours.clone().rev() {
            let Some(turn) = turns.get(position).filter(|turn| turn.prompt.is_some()) else { continue };
            if !group.theirs.is_empty() {
                return matcher.has_end(turn.items.clone());
            }
            // Some agents store nothing of a cancelled or failed turn.
            if !turn.has_bad_end && !turn.reply.is_empty() {
                return false;
            }
        }
    }
    true
}
