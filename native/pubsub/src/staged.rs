//! Operations from their preparation until they are answered.

use std::sync::Arc;

use rillbase_engine::{
    DbSnapshot, GroupResults, GroupTicket, GroupWrite, Millis, WriteBatch, WriteGroup,
};

use crate::error::Result;
use crate::instant::{Instant, ReadMoment};
use crate::keys::{self, PUBLICATIONS, SUBSCRIPTIONS};
use crate::once::{self, BatchMark, PublicationClaim, Repeats};
use crate::place::TopicPlace;
use crate::record::{self, PublicationRecord, StoredRecord, SubscriptionRecord, TimedRecord};
use crate::store::{StoreAnswer, TopicOperation, TopicSpec};
use crate::subscription_history;
use crate::turns::{Delivery, OperationTurn};

/// Prepared operations, which are answered once they are written.
#[derive(Debug)]
pub struct StagedOperations<'a> {
    store: &'a Instant,
    operations: &'a [(&'a TopicSpec, &'a TopicOperation)],
    /// The outcome of each.
    marks: Vec<BatchMark>,
    /// `None` if there is nothing to write, or once it is in its group.
    batch: Option<WriteBatch>,
    /// The number of writes in the batch.
    writes: u64,
    ticket: Option<GroupTicket>,
    names: PublicationClaim<'a>,
    since: DbSnapshot,
    turn: Option<OperationTurn<'a>>,
}

impl GroupWrite for StagedOperations<'_> {
    type Outcome = Result<Vec<StoreAnswer>>;

    fn contribute<'g>(&'g mut self, group: &mut WriteGroup<'g>) {
        let batch = self.batch.take();
        self.ticket = batch.map(|batch| group.write_with_snapshot(batch, &self.since));
    }

    fn complete(self, results: &mut GroupResults) -> Result<Vec<StoreAnswer>> {
        let (snapshot, first) = match self.ticket {
            None => {
                let first = self.since.sequence() + 1;
                (self.since, first)
            }
            Some(ticket) => {
                let snapshot = results.take_snapshot(ticket)?;
                let first = snapshot.sequence() + 1 - self.writes;
                drop(self.since);
                (snapshot, first)
            }
        };
        drop(self.names);
        if let Some(turn) = &self.turn {
            turn.written(first);
        }
        let each = self.operations.iter().zip(self.marks);
        each.map(|((topic, operation), mark)| {
            let moment = ReadMoment {
                topic,
                snapshot: &snapshot,
                before: mark.sequence(first),
            };
            let mut answer = self.store.answer(&moment, operation)?;
            if let BatchMark::Repeats(first) = mark {
                answer.is_repeated = true;
                answer.is_different = first.differs_from(operation);
            }
            if let (false, Some(turn)) = (answer.is_repeated, &self.turn) {
                deliver_in_order(turn, &moment, operation, &answer);
            }
            Ok(answer)
        })
        .collect()
    }
}

impl Instant {
    pub(crate) fn run(
        &self,
        operations: &[(&TopicSpec, &TopicOperation)],
    ) -> Result<Vec<StoreAnswer>> {
        let mut staged = self.stage(operations)?;
        let durability = self.options.durability;
        let mut results = self.db.write_group(&mut [&mut staged], durability);
        staged.complete(&mut results)
    }

    /// Prepares operations that become durable together with other writes.
    pub(crate) fn stage<'a>(
        &'a self,
        operations: &'a [(&'a TopicSpec, &'a TopicOperation)],
    ) -> Result<StagedOperations<'a>> {
        operations
            .iter()
            .try_for_each(|(topic, operation)| self.check(topic, operation))?;
        // Held until everything is visible, so that operations waiting for it find it.
        let names = self.once.claim(operations);
        let since = self.db.snapshot();
        let turn = self
            .turns
            .as_ref()
            .map(|turns| turns.begin(since.sequence()));
        let mut batch = WriteBatch::new();
        let mut marks = Vec::with_capacity(operations.len());
        let mut seen = Repeats::default();
        for (topic, operation) in operations {
            let space = (&*self.db, &self.spaces.publications, topic.number);
            let mark = match seen.find(space, operation, batch.len() as u64)? {
                Some(first) => BatchMark::Repeats(first),
                None => BatchMark::Writes(batch.len() as u64),
            };
            if let BatchMark::Writes(_) = mark {
                self.put(&mut batch, topic, operation, since.time());
            }
            marks.push(mark);
        }
        Ok(StagedOperations {
            store: self,
            operations,
            marks,
            writes: batch.len() as u64,
            batch: Some(batch).filter(|batch| !batch.is_empty()),
            ticket: None,
            names,
            since,
            turn,
        })
    }

    /// Adds the writes of an operation to a batch.
    fn put(
        &self,
        batch: &mut WriteBatch,
        topic: &TopicSpec,
        operation: &TopicOperation,
        now: Millis,
    ) {
        match operation {
            TopicOperation::Publish {
                place,
                publication,
                once,
                ..
            } => {
                self.put_record(batch, topic, (place, publication, PUBLICATIONS), now);
                if *once {
                    let space = (&self.spaces.publications, topic.number);
                    once::remember(batch, space, (place, publication), now);
                }
            }
            TopicOperation::Subscribe {
                place,
                subscription,
                ..
            } => {
                self.put_record(batch, topic, (place, subscription, SUBSCRIPTIONS), now);
                if subscription.unseen_only {
                    let space = (&self.spaces.subscriptions, topic);
                    subscription_history::begin(batch, space, (place, subscription), now);
                }
            }
        }
    }

    fn put_record<T: TimedRecord>(
        &self,
        batch: &mut WriteBatch,
        topic: &TopicSpec,
        (place, record, kind): (&TopicPlace, &T, u8),
        now: Millis,
    ) {
        let keyspace = self.spaces.of(kind);
        let topic = keys::topic(topic.number);
        let several = place.ids().len() > 1;
        for (part, id) in record::parts(place) {
            let under = (!several).then_some(id);
            let value = record::encode(record, part, now, (place.extent(), under));
            let key = keys::at(&topic, id.as_bytes(), kind, record.time());
            batch.put_sequenced(keyspace, &key, &value, Some(record.expiry()));
        }
    }
}

/// Delivers the matches of a publication in the order of operations.
fn deliver_in_order(
    turn: &OperationTurn<'_>,
    moment: &ReadMoment<'_>,
    operation: &TopicOperation,
    answer: &StoreAnswer,
) {
    if let TopicOperation::Publish {
        place, publication, ..
    } = operation
        && !answer.subscriptions.is_empty()
    {
        let stored = moment.side(place, publication).stored();
        turn.matched(answer.sequence, deliveries(answer, stored));
    }
}

fn deliveries(answer: &StoreAnswer, stored: StoredRecord<PublicationRecord>) -> Vec<Delivery> {
    let publication = Arc::new(stored);
    let delivery = |subscription: &StoredRecord<SubscriptionRecord>| Delivery {
        subscription: subscription.clone(),
        publication: Arc::clone(&publication),
    };
    answer.subscriptions.iter().map(delivery).collect()
}
