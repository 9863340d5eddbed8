//! Delivering to subscribers in the order of the matching operations.
//!
//! Operations read concurrently and finish in any order. The matches of a publication are delivered
//! once every earlier operation has read, so that each subscription sees increasing positions. The
//! sequence of an operation that is still being written is unknown; it is only certain to be above
//! everything that was visible when the operation started.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::Mutex;
use rillbase_engine::Sequence;

use crate::record::{PublicationRecord, StoredRecord, SubscriptionRecord};

/// A publication that matched an existing subscription.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The subscription.
    pub subscription: StoredRecord<SubscriptionRecord>,
    /// The publication. Its sequence is the position within the subscription.
    pub publication: Arc<StoredRecord<PublicationRecord>>,
}

/// Receives deliveries. Called in the order of their positions, by one thread at a time, and must
/// not block.
pub trait DeliverySink: Debug + Send + Sync {
    /// Receives the deliveries of one publication.
    fn deliver(&self, deliveries: Vec<Delivery>);
}

/// Running operations, and the matches of finished ones.
#[derive(Debug)]
pub(crate) struct OperationTurns {
    sink: Arc<dyn DeliverySink>,
    state: Mutex<TurnState>,
}

#[derive(Debug, Default)]
struct TurnState {
    next: u64,
    /// The lower bound of each running operation's sequence.
    running: BTreeMap<u64, Sequence>,
    waiting: BTreeMap<Sequence, Vec<Delivery>>,
}

/// The registration of a running operation. Dropping it marks it as finished or failed.
#[derive(Debug)]
pub(crate) struct OperationTurn<'a> {
    turns: &'a OperationTurns,
    ticket: u64,
}

impl OperationTurns {
    pub(crate) fn new(sink: Arc<dyn DeliverySink>) -> Self {
        Self {
            sink,
            state: Mutex::default(),
        }
    }

    /// Starts an operation, whose sequence will be greater than `visible`.
    pub(crate) fn begin(&self, visible: Sequence) -> OperationTurn<'_> {
        let mut state = self.state.lock();
        let ticket = state.next;
        state.next += 1;
        state.running.insert(ticket, visible + 1);
        OperationTurn {
            turns: self,
            ticket,
        }
    }
}

impl OperationTurn<'_> {
    /// The operation has been assigned its sequence.
    pub(crate) fn written(&self, sequence: Sequence) {
        let mut state = self.turns.state.lock();
        state.running.insert(self.ticket, sequence);
    }

    /// Queues the matches of a publication for delivery in order.
    pub(crate) fn matched(&self, sequence: Sequence, deliveries: Vec<Delivery>) {
        if !deliveries.is_empty() {
            let mut state = self.turns.state.lock();
            state.waiting.insert(sequence, deliveries);
        }
    }
}

impl Drop for OperationTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        state.running.remove(&self.ticket);
        let open = state.running.values().min().copied();
        let open = open.unwrap_or(Sequence::MAX);
        // The lock is held, so that later matches are not delivered before this is done.
        while let Some(first) = state.waiting.first_entry() {
            if *first.key() >= open {
                return;
            }
            self.turns.sink.deliver(first.remove());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::DeweyId;
    use crate::place::TopicExtent;

    #[derive(Debug, Default)]
    struct Told(Mutex<Vec<Sequence>>);

    impl DeliverySink for Told {
        fn deliver(&self, deliveries: Vec<Delivery>) {
            let positions = deliveries
                .iter()
                .map(|delivery| delivery.publication.sequence);
            self.0.lock().extend(positions);
        }
    }

    fn stored<T: Default>(sequence: Sequence) -> StoredRecord<T> {
        StoredRecord {
            sequence,
            received: 0,
            extent: TopicExtent::Id(DeweyId::root()),
            record: T::default(),
        }
    }

    fn delivery(sequence: Sequence) -> Vec<Delivery> {
        vec![Delivery {
            subscription: stored(1),
            publication: Arc::new(stored(sequence)),
        }]
    }

    #[test]
    fn matches_wait_for_earlier_operations() {
        let sink = Arc::new(Told::default());
        let turns = OperationTurns::new(Arc::clone(&sink) as Arc<dyn DeliverySink>);
        let slow = turns.begin(10);
        let quick = turns.begin(10);
        let late = turns.begin(11);
        slow.written(11);
        quick.written(12);
        quick.matched(12, delivery(12));
        drop(quick);
        assert!(sink.0.lock().is_empty());
        slow.matched(11, delivery(11));
        drop(slow);
        // The sequence of `late` may still be 12.
        assert_eq!(*sink.0.lock(), [11]);
        late.written(13);
        late.matched(13, delivery(13));
        drop(late);
        assert_eq!(*sink.0.lock(), [11, 12, 13]);
    }
}
