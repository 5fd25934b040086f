//! Compares large changes on separate threads, one at a time.
//!
//! Takes the request of `ui::diff::cache` after a frame, and delivers the result before a later one. The loop never
//! waits for it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::Notify;

use crate::ui::diff::cache::{self, Compared};

/// The channel of results.
pub struct Comparer {
    sender: Sender<Option<Compared>>,
    receiver: Receiver<Option<Compared>>,
    repaint: Arc<Notify>,
}

/// Sends `None` if the comparison fails.
struct Answer {
    sender: Sender<Option<Compared>>,
    repaint: Arc<Notify>,
    compared: Option<Compared>,
}

impl Comparer {
    /// `repaint` is notified when a comparison has ended.
    pub fn new(repaint: &Arc<Notify>) -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver, repaint: Arc::clone(repaint) }
    }

    /// Delivers results. Call it before each frame.
    pub fn deliver(&mut self) {
        while let Ok(compared) = self.receiver.try_recv() {
            match compared {
                Some(compared) => cache::put(compared),
                None => cache::give_up(),
            }
        }
    }

    /// Starts the comparison requested by the last frame. Call it after each frame.
    pub fn work(&mut self) {
        let Some(wanted) = cache::take_wanted() else { return };
        let (sender, repaint) = (self.sender.clone(), Arc::clone(&self.repaint));
        tokio::task::spawn_blocking(move || {
            let mut answer = Answer { sender, repaint, compared: None };
            answer.compared = Some(wanted.compare());
        });
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // The loop may have ended meanwhile.
        let _ = self.sender.send(self.compared.take());
        self.repaint.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DiffChange, FileDiff};
    use crate::ui::diff::cache::{Shown, diffs};

    #[tokio::test]
    async fn a_large_change_comes_with_a_later_frame() {
        let text =
            |word: &str| (0..2000).map(|at| format!("{word} {at}\n")).collect::<Vec<_>>().concat().into();
        let change = DiffChange::Texts { old: Some(text("old")), new: text("new") };
        let change = FileDiff { path: "a.txt".into(), change };
        let ask = || diffs(&[(&change, None)], &Shown::default());
        let repaint = Arc::new(Notify::new());
        let mut comparer = Comparer::new(&repaint);
        assert!(ask().is_none());
        comparer.work();
        repaint.notified().await;
        comparer.deliver();
        assert_eq!(ask().unwrap()[0].added, 2000);
    }

    #[tokio::test]
    async fn an_order_that_fails_can_be_given_again() {
        let repaint = Arc::new(Notify::new());
        let mut comparer = Comparer::new(&repaint);
        let (sender, reported) = (comparer.sender.clone(), Arc::clone(&repaint));
        drop(Answer { sender, repaint: reported, compared: None });
        repaint.notified().await;
        assert_eq!(comparer.receiver.try_recv().map(|compared| compared.is_none()), Ok(true));
        comparer.deliver();
    }
}
