//! The open connections; waits fairly for the next batch of any of them.

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use tokio::sync::mpsc::Receiver;

use crate::model::{Batch, ConnId};
use crate::store::Backlog;

/// A batch of events; `None`: the connection ended and was removed.
pub type ConnectionBatch = (ConnId, Option<Batch>);

/// The event channels of all open connections.
#[derive(Debug, Default)]
pub struct Agents {
    channels: Vec<(ConnId, Receiver<Batch>)>,
    /// The index at which the next poll starts, so that a flooding agent cannot starve others.
    next_index: usize,
    backlog: Backlog,
}

impl Agents {
    /// Without connections. While `backlog` is full, no batches are taken, so that the agents wait for the disk.
    pub fn new(backlog: Backlog) -> Self {
        Self { backlog, ..Self::default() }
    }

    pub fn add(&mut self, conn: ConnId, events: Receiver<Batch>) {
        self.channels.push((conn, events));
    }

    /// Whether there are no open connections.
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    pub async fn next(&mut self) -> ConnectionBatch {
        self.backlog.wait_for_room().await;
        poll_fn(|cx| self.poll(cx)).await
    }

    /// The next batch, if one is ready.
    pub fn try_next(&mut self) -> Option<ConnectionBatch> {
        if self.backlog.is_full() {
            return None;
        }
        match self.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(batch) => Some(batch),
            Poll::Pending => None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionBatch> {
        let count = self.channels.len();
        for offset in 0..count {
            let index = (self.next_index + offset) % count;
            let Some((conn, channel)) = self.channels.get_mut(index) else { continue };
            if let Poll::Ready(batch) = channel.poll_recv(cx) {
                let conn = *conn;
                if batch.is_none() {
                    self.channels.remove(index);
                }
                self.next_index = index + 1;
                return Poll::Ready((conn, batch));
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::model::AgentEvent;

    fn started() -> Batch {
        vec![AgentEvent::Started { pid: None }]
    }

    #[test]
    fn busy_agents_take_turns_and_ended_ones_are_removed() {
        let mut agents = Agents::default();
        let (one, events) = mpsc::channel(8);
        agents.add(ConnId(1), events);
        let (two, events) = mpsc::channel(8);
        agents.add(ConnId(2), events);
        for _ in 0..2 {
            one.try_send(started()).unwrap();
            two.try_send(started()).unwrap();
        }
        let order: Vec<u64> = std::iter::from_fn(|| agents.try_next()).map(|(conn, _)| conn.0).collect();
        assert_eq!(order, vec![1, 2, 1, 2]);
        drop(one);
        assert_eq!(agents.try_next(), Some((ConnId(1), None)));
        assert!(!agents.is_empty());
        drop(two);
        assert_eq!(agents.try_next(), Some((ConnId(2), None)));
        assert!(agents.is_empty());
    }
}
