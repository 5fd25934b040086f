//! A FIFO queue with limits on its items and bytes.
//!
//! The owner of the queue decides what happens at the limit: wait, drop the oldest item, or end the
//! connection.

use std::collections::VecDeque;

/// The limits of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    pub items: usize,
    /// Total size of all items. A single item may be larger.
    pub bytes: usize,
}

/// A queue with limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounded<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    capacity: Capacity,
}

impl<T> Bounded<T> {
    /// An empty queue with these limits.
    pub fn new(capacity: Capacity) -> Self {
        Self { items: VecDeque::new(), bytes: 0, capacity }
    }

    /// Appends an item of this size, or returns it if the queue is full. An empty queue accepts any item.
    pub fn push(&mut self, item: T, bytes: usize) -> Result<(), T> {
        let fits =
            self.items.len() < self.capacity.items && self.bytes.saturating_add(bytes) <= self.capacity.bytes;
        if !fits && !self.items.is_empty() {
            return Err(item);
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.items.push_back((item, bytes));
        Ok(())
    }

    /// Removes the oldest item.
    pub fn pop(&mut self) -> Option<T> {
        let (item, bytes) = self.items.pop_front()?;
        self.bytes -= bytes;
        Some(item)
    }

    /// Adds bytes to the newest item, if there is room and `grow` returns true.
    pub fn grow_last(&mut self, bytes: usize, grow: impl FnOnce(&mut T) -> bool) -> bool {
        let has_room = self.bytes.saturating_add(bytes) <= self.capacity.bytes;
        let Some((item, weight)) = self.items.back_mut().filter(|_| has_room) else { return false };
        if !grow(item) {
            return false;
        }
        *weight += bytes;
        self.bytes += bytes;
        true
    }

    /// Removes the items that match, in order.
    pub fn take_where(&mut self, mut fits: impl FnMut(&T) -> bool) -> Vec<T> {
        let (taken, left): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.items).into_iter().partition(|(item, _)| fits(item));
        self.bytes = left.iter().map(|(_, bytes)| bytes).sum();
        self.items = left;
        taken.into_iter().map(|(item, _)| item).collect()
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether the queue has no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Total size of all items.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAPACITY: Capacity = Capacity { items: 4, bytes: 100 };

    #[test]
    fn an_empty_queue_accepts_an_item_of_any_size() {
        let mut queue = Bounded::new(CAPACITY);
        assert_eq!(queue.push('a', 1000), Ok(()));
        assert_eq!(queue.push('b', 0), Err('b'));
        assert_eq!(queue.pop(), Some('a'));
        assert_eq!(queue.push('b', 0), Ok(()));
    }

    proptest! {
        #[test]
        fn queue_never_exceeds_its_capacity(weights in prop::collection::vec((0_usize..60, any::<bool>()), 0..60)) {
            let mut queue = Bounded::new(CAPACITY);
            let mut known: VecDeque<(usize, usize)> = VecDeque::new();
            for (number, (bytes, pops)) in weights.into_iter().enumerate() {
                if pops {
                    prop_assert_eq!(queue.pop(), known.pop_front().map(|(number, _)| number));
                } else if queue.push(number, bytes).is_ok() {
                    known.push_back((number, bytes));
                } else if queue.grow_last(bytes, |_| true) {
                    known.back_mut().unwrap().1 += bytes;
                }
                prop_assert_eq!(queue.bytes(), known.iter().map(|(_, bytes)| bytes).sum::<usize>());
                prop_assert_eq!(queue.len(), known.len());
                prop_assert!(queue.len() <= 4 && (queue.bytes() <= 100 || queue.len() == 1));
            }
            let even = queue.take_where(|number| number % 2 == 0);
            prop_assert!(even.iter().all(|number| number % 2 == 0));
            prop_assert_eq!(even.len() + queue.len(), known.len());
        }
    }
}
