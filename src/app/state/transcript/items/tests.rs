//! Tests of item ids: an id denotes one item or none, whatever is added or removed.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::model::Raw;

#[derive(Debug, Clone)]
enum Step {
    Push,
    Head,
    PageOut(usize),
    PageIn(usize),
    Insert(usize),
    InsertInPage(usize, usize),
    Remove(usize),
    Edit(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => Just(Step::Push),
        1 => Just(Step::Head),
        2 => (0_usize..12).prop_map(Step::PageOut),
        2 => (0_usize..8).prop_map(Step::PageIn),
        6 => any::<usize>().prop_map(Step::Insert),
        1 => (1_usize..8, any::<usize>()).prop_map(|(count, at)| Step::InsertInPage(count, at)),
        2 => any::<usize>().prop_map(Step::Remove),
        3 => any::<usize>().prop_map(Step::Edit),
    ];
    prop::collection::vec(step, 0..80)
}

fn body(tag: u64) -> ItemBody {
    ItemBody::Raw { name: tag.to_string(), raw: Raw("{}".into()) }
}

fn tag_of(item: &Item) -> Option<u64> {
    match &item.body {
        ItemBody::Raw { name, .. } => name.parse().ok(),
        _ => None,
    }
}

/// A transcript with the expected items and ids.
#[derive(Default)]
struct Twin {
    transcript: Transcript,
    order: Vec<(ItemId, u64)>,
    /// All ids that were ever assigned.
    held: BTreeMap<ItemId, u64>,
    tags: u64,
}

impl Twin {
    fn tag(&mut self) -> u64 {
        self.tags += 1;
        self.tags
    }

    fn hold(&mut self, at: usize, id: ItemId, tag: u64) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.held.insert(id, tag), None, "an id was used again");
        self.order.insert(at, (id, tag));
        Ok(())
    }

    fn play(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let count = self.order.len();
        match step {
            Step::Push => {
                let tag = self.tag();
                let id = self.transcript.push(1, body(tag));
                self.hold(count, id, tag)?;
            }
            Step::Head => self.transcript.set_head("more above".into()),
            Step::PageOut(upto) => {
                let upto = (*upto).min(count);
                let next = self.transcript.next_id();
                self.transcript.remove_before(self.order.get(upto).map_or(next, |(id, _)| *id));
                self.order.drain(..upto);
            }
            Step::PageIn(_) | Step::InsertInPage(..) => {
                let mut page = Transcript::default();
                let items = match step {
                    Step::PageIn(items) | Step::InsertInPage(items, _) => *items,
                    _ => 0,
                };
                for _ in 0..items {
                    let tag = self.tag();
                    page.push(1, body(tag));
                }
                if let Step::InsertInPage(_, at) = step
                    && let Some(before) = page.items().get(at % items.max(1)).map(|item| item.id)
                {
                    let tag = self.tag();
                    page.insert_before(before, 1, body(tag));
                }
                let of_page: Vec<(ItemId, Option<u64>)> =
                    page.items().iter().map(|item| (item.id, tag_of(item))).collect();
                let offset = self.transcript.prepend(page);
                for (at, (id, tag)) in of_page.into_iter().enumerate() {
                    self.hold(at, ItemId(id.0 + offset), tag.unwrap_or_default())?;
                }
            }
            Step::Insert(at) if count > 0 => {
                let tag = self.tag();
                let id = self.transcript.insert_before(self.order[at % count].0, 1, body(tag));
                self.hold(at % count, id, tag)?;
            }
            Step::Remove(at) if count > 0 => {
                let (id, _) = self.order.remove(at % count);
                self.transcript.remove(id);
            }
            Step::Edit(at) if count > 0 => {
                let id = self.order[at % count].0;
                self.transcript.edit(id, |item| item.times += 1);
            }
            Step::Insert(_) | Step::Remove(_) | Step::Edit(_) => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let items = self.transcript.items();
        let shown: Vec<(ItemId, u64)> =
            items.iter().filter_map(|item| Some((item.id, tag_of(item)?))).collect();
        prop_assert_eq!(&shown, &self.order);
        prop_assert!(items.is_sorted_by_key(|item| self.transcript.rank(item.id)));
        let here: BTreeMap<ItemId, u64> = self.order.iter().copied().collect();
        for id in self.held.keys() {
            let found = self.transcript.get(*id).and_then(tag_of);
            prop_assert_eq!(found, here.get(id).copied(), "{}", id);
        }
        for (index, item) in items.iter().enumerate() {
            prop_assert_eq!(self.transcript.index_of(item.id), Some(index));
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn a_saved_id_denotes_the_same_item_or_none(steps in steps()) {
        let mut twin = Twin::default();
        for step in &steps {
            twin.play(step)?;
            twin.check()?;
        }
    }
}

#[test]
fn ids_are_not_reused_after_a_history_is_replaced_or_restored() {
    let mut transcript = Transcript::default();
    let first = transcript.push(1, body(1));
    let former = transcript.take();
    let second = transcript.push(1, body(2));
    assert_eq!((transcript.get(first), transcript.items().len()), (None, 1));
    transcript.restore(former);
    assert_eq!(transcript.get(first).and_then(tag_of), Some(1));
    assert_eq!(transcript.get(second), None);
    let third = transcript.push(1, body(3));
    assert!(third > second && second > first);
    assert_eq!(transcript.index_of(third), Some(1));
}

#[test]
fn the_index_of_a_removed_item_is_that_of_the_next_one() {
    let mut transcript = Transcript::default();
    let ids: Vec<ItemId> = (0..4).map(|tag| transcript.push(1, body(tag))).collect();
    transcript.remove(ids[1]);
    assert_eq!(transcript.index_from(ids[1]), 1);
    transcript.remove_before(ids[3]);
    assert_eq!((transcript.index_from(ids[0]), transcript.index_of(ids[0])), (0, None));
    assert_eq!(transcript.index_from(transcript.next_id()), 1);
}
