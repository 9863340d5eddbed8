//! The keyspaces that wait for a flush, or for a compaction: each once, first come, first served,
//! so that a busy keyspace does not hold back the others.

use std::collections::{HashSet, VecDeque};

use parking_lot::Mutex;

/// Numbers of keyspaces in the order in which they are served.
#[derive(Debug, Default)]
pub(crate) struct WorkQueue(Mutex<QueueState>);

#[derive(Debug, Default)]
struct QueueState {
    order: VecDeque<u64>,
    members: HashSet<u64>,
}

impl WorkQueue {
    /// Adds a keyspace at the end, unless it is in the queue.
    pub(crate) fn add(&self, keyspace: u64) {
        let mut entries = self.0.lock();
        if entries.members.insert(keyspace) {
            entries.order.push_back(keyspace);
        }
    }

    /// Takes the first one.
    pub(crate) fn take(&self) -> Option<u64> {
        let mut entries = self.0.lock();
        let first = entries.order.pop_front()?;
        entries.members.remove(&first);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyspace_that_is_added_again_is_served_last() {
        let queue = WorkQueue::default();
        for keyspace in [7, 3, 7, 5] {
            queue.add(keyspace);
        }
        assert_eq!(queue.take(), Some(7));
        queue.add(7);
        let rest = std::iter::from_fn(|| queue.take());
        assert_eq!(rest.collect::<Vec<u64>>(), [3, 5, 7]);
    }
}
