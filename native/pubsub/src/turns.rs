//! Telling subscribers in the order of the operations that met them.
//!
//! Operations read side by side and finish in any order. What a publication met is handed on once
//! every operation before it has read, so that each subscription sees rising positions. An operation
//! that is still being written does not know its sequence; it is behind all that was visible when it
//! began, which is all that is assumed of it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::Mutex;
use rillbase_engine::Sequence;

use crate::record::{PublicationRecord, StoredRecord, SubscriptionRecord};

/// A publication that a subscription met which had been there before.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Who is told.
    pub subscription: StoredRecord<SubscriptionRecord>,
    /// What. Its sequence is the position within the subscription.
    pub publication: Arc<StoredRecord<PublicationRecord>>,
}

/// Takes deliveries. Called in the order of their positions, by one thread at a time, which must
/// not be kept waiting.
pub trait DeliverySink: Debug + Send + Sync {
    /// Takes the deliveries of one publication.
    fn deliver(&self, deliveries: Vec<Delivery>);
}

/// Operations that run, and what those that are done have met.
#[derive(Debug)]
pub(crate) struct OperationTurns {
    sink: Arc<dyn DeliverySink>,
    state: Mutex<TurnState>,
}

#[derive(Debug, Default)]
struct TurnState {
    next: u64,
    /// The least sequence that each running operation may have.
    running: BTreeMap<u64, Sequence>,
    waiting: BTreeMap<Sequence, Vec<Delivery>>,
}

/// An operation's place among those that run. Dropping it says that it has read, or failed.
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

    /// Begins an operation, whose sequence will be greater than `visible`.
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
    /// The operation has its sequence.
    pub(crate) fn written(&self, sequence: Sequence) {
        let mut state = self.turns.state.lock();
        state.running.insert(self.ticket, sequence);
    }

    /// What a publication met, to be handed on in its turn.
    pub(crate) fn met(&self, sequence: Sequence, deliveries: Vec<Delivery>) {
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
        // The lock is kept, so that nobody hands on what follows before this is done.
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
    fn what_was_met_waits_for_those_before_it() {
        let sink = Arc::new(Told::default());
        let turns = OperationTurns::new(Arc::clone(&sink) as Arc<dyn DeliverySink>);
        let slow = turns.begin(10);
        let quick = turns.begin(10);
        let late = turns.begin(11);
        slow.written(11);
        quick.written(12);
        quick.met(12, delivery(12));
        drop(quick);
        assert!(sink.0.lock().is_empty());
        slow.met(11, delivery(11));
        drop(slow);
        // `late` may still turn out to be 12.
        assert_eq!(*sink.0.lock(), [11]);
        late.written(13);
        late.met(13, delivery(13));
        drop(late);
        assert_eq!(*sink.0.lock(), [11, 12, 13]);
    }
}
