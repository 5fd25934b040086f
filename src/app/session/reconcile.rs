//! Aligns the record of a session with the history that its agent replays.
//!
//! [`reconcile`] compares two lists of items, the recorded ones and the replayed ones, and says for each item whether
//! both have it or only one of them. Turns are aligned first (`turns`), then the items within them (`items`). Ids are
//! used where they help, but never trusted alone: agents reuse them or make new ones for each process. Text is compared
//! without white space (`text`), because agents join, split and wrap messages anew.
//! Invariants: each recorded item stands in the result once, in its order; a replay of what is recorded adds nothing;
//! once the result was put into the record, the same replay adds nothing more.

mod items;
pub(in crate::app) mod text;
mod turns;

use std::ops::Range;

use crate::app::{Item, ItemBody, MessagePart};
use crate::model::NoticeKind;

/// The least length of a text, without white space, that tells a message or prompt again within a longer one.
const MIN_PART_BYTES: usize = 12;

/// One place of the result.
#[derive(Debug, Clone, PartialEq)]
pub enum AlignedItem {
    /// A recorded item.
    Ours {
        /// Its index.
        item: usize,
        /// The replayed item that tells it again, or the first of several.
        told: Option<usize>,
    },
    /// A replayed item, or a part of one, that is not recorded.
    Theirs {
        /// Its index.
        item: usize,
        /// The parts of the message that are not recorded; `None`: the whole item.
        parts: Option<Vec<MessagePart>>,
        /// Whether the record has another text in its place.
        differs: bool,
    },
}

/// Adjacent recorded turns that the replay does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingTurns {
    /// The index of the item behind them.
    pub behind: usize,
    /// How many of them no notice stands behind.
    pub turns: usize,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reconciled {
    /// All recorded items, and between them what only the replay has.
    pub pieces: Vec<AlignedItem>,
    /// Turns that only the record has.
    pub untold: Vec<MissingTurns>,
    /// Whether the replay has the last turn of the record to its end.
    pub has_end: bool,
    /// What was not compared, because the record's part of it was not given.
    pub unread: Option<Unread>,
}

/// The beginning of a replay, which belongs to earlier parts of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unread {
    /// The number of replayed items.
    pub theirs: usize,
    /// The first recorded item behind them.
    pub behind: usize,
}

/// Compares the recorded items with the replayed ones. `is_whole`: the recorded items are all of the session; else the
/// replay may begin with items that are recorded, but not given here.
pub fn reconcile(ours: &[Item], theirs: &[Item], is_whole: bool) -> Reconciled {
    let (our_turns, their_turns) = (turns::of(ours), turns::of(theirs));
    let has_prompts = their_turns.iter().any(|turn| turn.prompt.is_some());
    let groups = if has_prompts {
        turns::align(&our_turns, &their_turns, is_whole)
    } else {
        // An agent that does not replay prompts: its messages are looked for in all turns.
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
            found.untold.push(MissingTurns { behind: our_items.end, turns });
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

/// How many of these turns no notice stands behind that says that they are not in the agent's history.
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

/// How many turns above this notice are not in the agent's history, if it is such a notice.
fn not_replayed(item: &Item) -> Option<usize> {
    match item.body {
        ItemBody::Notice { kind: NoticeKind::NotReplayed(turns), .. } => Some(turns),
        _ => None,
    }
}

/// Whether the last turn that the agent can be expected to have was told to its end.
fn has_end(turns: &[turns::Turn<'_>], groups: &[turns::Group], matcher: &items::Matcher<'_>) -> bool {
    for group in groups.iter().rev() {
        for place in group.ours.clone().rev() {
            let Some(turn) = turns.get(place).filter(|turn| turn.prompt.is_some()) else { continue };
            if !group.theirs.is_empty() {
                return matcher.has_end(turn.items.clone());
            }
            // Some agents keep nothing of a turn that was cancelled or has failed.
            if !turn.has_bad_end && !turn.reply.is_empty() {
                return false;
            }
        }
    }
    true
}
