//! Writes that become durable together with one sync, across connections.
//!
//! The writes of each kind are one [`GroupWrite`].

use std::sync::Arc;
use std::time::Instant;
use std::vec::IntoIter;

use rillbase_aggregates::{self as aggregates, Add, AggregateOutcomes, AggregateWrites, Apply};
use rillbase_collections::{CollectionWrite, WrittenResult};
use rillbase_engine::{
    Error, GroupResults, GroupTicket, GroupWrite, Millis, Sequence, WriteBatch, WriteGroup,
};
use rillbase_pubsub::{StoreAnswer, TopicOperation, TopicSpec};

use crate::acks::Ack;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::topic::TopicEntry;
use crate::transactions::{OpenTransaction, TransactionState};

/// A write requested by a command.
#[derive(Debug)]
pub(crate) enum CommandWrite {
    /// Publishing or subscribing.
    Operation {
        topic: Arc<TopicEntry>,
        operation: Box<TopicOperation>,
        /// Whether pushes follow.
        follow: bool,
    },
    Ack(Ack),
    Set {
        key: Vec<u8>,
        value: Vec<u8>,
        expiry: Option<Millis>,
    },
    /// Events of an aggregate.
    Add(Add),
    /// Changes of a view.
    Apply(Apply),
    /// Changes of documents.
    Collections(Box<CollectionWrite>),
    /// The end of a transaction.
    Commit(Arc<OpenTransaction>),
}

/// The outcome of a write.
#[derive(Debug)]
pub(crate) enum GroupOutcome {
    Answer(Box<StoreAnswer>),
    /// Whether the position was new.
    Acked(bool),
    Set,
    /// Which events were new.
    Added(Vec<bool>),
    /// Whether the position was new.
    Applied(bool),
    Written(WrittenResult),
}

/// The writes of a group by kind, in order within each kind.
#[derive(Default)]
struct WritesByKind<'a> {
    topics: Vec<TopicSpec>,
    operations: Vec<&'a TopicOperation>,
    acks: Vec<&'a Ack>,
    values: StagedValues,
    aggregates: Option<AggregateWrites<'a>>,
    collections: Vec<CollectionWrite>,
    /// For each end of a transaction: its outcome, or `None` if it writes.
    ends: Vec<Option<Result<GroupOutcome>>>,
}

impl<'a> WritesByKind<'a> {
    fn sort(node: &NodeCore, writes: &[&'a CommandWrite]) -> Self {
        let mut kinds = Self::default();
        for write in writes {
            match write {
                CommandWrite::Operation {
                    topic, operation, ..
                } => {
                    kinds.topics.push(topic.topic());
                    kinds.operations.push(operation);
                }
                CommandWrite::Ack(ack) => kinds.acks.push(ack),
                CommandWrite::Set { key, value, expiry } => {
                    kinds.values.set(node, (key, value), *expiry);
                }
                CommandWrite::Add(add) => kinds.aggregates().adds.push(add),
                CommandWrite::Apply(apply) => kinds.aggregates().applies.push(apply),
                CommandWrite::Collections(write) => {
                    kinds.collections.push(CollectionWrite::clone(write));
                }
                CommandWrite::Commit(open) => kinds.end(open),
            }
        }
        kinds
    }

    fn aggregates(&mut self) -> &mut AggregateWrites<'a> {
        self.aggregates.get_or_insert_default()
    }

    fn end(&mut self, open: &OpenTransaction) {
        let end = match open.end() {
            TransactionState::Writing(transaction, staged) => {
                self.aggregates().commits.push((*staged, *transaction));
                None
            }
            TransactionState::Reading(_) => Some(Ok(GroupOutcome::Set)),
            TransactionState::Ended => Some(Err(CommandRefusal::new(
                "NOTX",
                "the transaction does not exist (any more)",
            ))),
        };
        self.ends.push(end);
    }
}

/// Values that are set together.
#[derive(Debug, Default)]
struct StagedValues {
    batch: Option<WriteBatch>,
    ticket: Option<GroupTicket>,
}

impl StagedValues {
    fn set(&mut self, node: &NodeCore, (key, value): (&[u8], &[u8]), expiry: Option<Millis>) {
        let batch = self.batch.get_or_insert_default();
        match expiry {
            None => batch.put(&node.values, key, value),
            Some(expiry) => batch.put_expiring(&node.values, key, value, expiry),
        }
    }
}

impl GroupWrite for StagedValues {
    type Outcome = Result<()>;

    fn contribute<'g>(&'g mut self, group: &mut WriteGroup<'g>) {
        self.ticket = self.batch.take().map(|batch| group.write(batch));
    }

    fn complete(self, results: &mut GroupResults) -> Result<()> {
        if let Some(ticket) = self.ticket {
            results.take(ticket)?;
        }
        Ok(())
    }
}

/// The outcomes of the writes of each kind, in order.
struct OutcomesByKind {
    answers: IntoIter<Result<GroupOutcome>>,
    acked: IntoIter<Result<GroupOutcome>>,
    set: Result<()>,
    added: IntoIter<Result<GroupOutcome>>,
    applied: IntoIter<Result<GroupOutcome>>,
    written: IntoIter<Result<GroupOutcome>>,
    ended: IntoIter<Result<GroupOutcome>>,
}

impl OutcomesByKind {
    /// The outcome of the next write.
    fn of(&mut self, write: &CommandWrite) -> Result<GroupOutcome> {
        let next = match write {
            CommandWrite::Operation { .. } => self.answers.next(),
            CommandWrite::Ack(_) => self.acked.next(),
            CommandWrite::Set { .. } => Some(self.set.clone().map(|()| GroupOutcome::Set)),
            CommandWrite::Add(_) => self.added.next(),
            CommandWrite::Apply(_) => self.applied.next(),
            CommandWrite::Collections(_) => self.written.next(),
            CommandWrite::Commit(_) => self.ended.next(),
        };
        next.unwrap_or_else(|| Err(missing_outcome()))
    }
}

impl NodeCore {
    /// Commits all writes, and returns once all are durable. Outcomes are in the order of the
    /// writes.
    pub(crate) fn commit(&self, writes: &[&CommandWrite]) -> Vec<Result<GroupOutcome>> {
        let started = Instant::now();
        let mut outcomes = self.write(WritesByKind::sort(self, writes));
        let outcomes = writes.iter().map(|write| outcomes.of(write)).collect();
        let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.metrics.commit_groups.add(1);
        self.metrics.commit_group_writes.add(writes.len() as u64);
        self.metrics.commit_micros.add(micros);
        outcomes
    }

    fn write(&self, kinds: WritesByKind<'_>) -> OutcomesByKind {
        let operations = kinds.topics.iter().zip(kinds.operations);
        let operations: Vec<(&TopicSpec, &TopicOperation)> = operations.collect();
        let acks = kinds.acks;
        // Every group locks in this order, which prevents deadlocks. Writes of collections wait
        // for earlier ones, so they come first, when nothing else is locked yet.
        let collections = kinds.collections;
        let mut documents = (!collections.is_empty()).then(|| self.collections.stage(collections));
        let mut topics = (!operations.is_empty()).then(|| self.store.stage(&operations));
        let mut positions = (!acks.is_empty()).then(|| self.acks.stage(&acks));
        let mut values = kinds.values;
        let mut aggregates = kinds
            .aggregates
            .map(|writes| self.aggregates.stage_writes(writes));
        let parts: &mut [&mut dyn GroupWrite] = &mut [
            &mut documents,
            &mut topics,
            &mut positions,
            &mut values,
            &mut aggregates,
        ];
        let mut results = self.db.write_group(parts, self.options.durability);
        // Matching operations takes the longest: the others have released their locks by then.
        let written = documents.complete(&mut results).unwrap_or_default();
        let aggregates = aggregates.complete(&mut results).unwrap_or_default();
        let set = values.complete(&mut results);
        let acked = positions.complete(&mut results);
        let answers = topics.complete(&mut results);
        let answers = answers.map_or(Ok(Vec::new()), |staged| Ok(staged??));
        self.measure(&answers, &operations, &acks, &aggregates);
        let answer = |answer| GroupOutcome::Answer(Box::new(answer));
        let acked = acked.map_or(Ok(Vec::new()), |staged| staged?);
        OutcomesByKind {
            answers: of_all(answers, operations.len(), answer),
            acked: of_all(acked, acks.len(), GroupOutcome::Acked),
            set,
            added: of_each(aggregates.added, GroupOutcome::Added),
            applied: of_each(aggregates.applied, GroupOutcome::Applied),
            written: of_each(written, GroupOutcome::Written),
            ended: ended(kinds.ends, aggregates.committed),
        }
    }

    fn measure(
        &self,
        answers: &Result<Vec<StoreAnswer>>,
        operations: &[(&TopicSpec, &TopicOperation)],
        acks: &[&Ack],
        aggregates: &AggregateOutcomes,
    ) {
        let (mut published, mut subscribed, mut matches) = (0, 0, 0);
        for (answer, (_, operation)) in answers.iter().flatten().zip(operations) {
            match operation {
                TopicOperation::Publish { .. } => {
                    published += u64::from(!answer.is_repeated);
                    matches += answer.subscriptions.len();
                }
                TopicOperation::Subscribe { .. } => {
                    subscribed += 1;
                    matches += answer.publications.len();
                }
            }
        }
        let events = aggregates.added.iter().flatten().map(Vec::len);
        self.metrics.publications.add(published);
        self.metrics.subscriptions.add(subscribed);
        self.metrics.matches.add(matches as u64);
        self.metrics.acks.add(acks.len() as u64);
        self.metrics.events.add(events.sum::<usize>() as u64);
    }
}

/// For writes that succeed or fail together.
fn of_all<T>(
    results: Result<Vec<T>>,
    count: usize,
    outcome: impl Fn(T) -> GroupOutcome,
) -> IntoIter<Result<GroupOutcome>> {
    match results {
        Ok(results) => results.into_iter().map(|one| Ok(outcome(one))).collect(),
        Err(refusal) => vec![refusal; count]
            .into_iter()
            .map(Err)
            .collect::<Vec<_>>(),
    }
    .into_iter()
}

/// For writes that succeed or fail independently.
fn of_each<T, E: Into<CommandRefusal>>(
    results: Vec<std::result::Result<T, E>>,
    outcome: impl Fn(T) -> GroupOutcome,
) -> IntoIter<Result<GroupOutcome>> {
    let outcomes = results
        .into_iter()
        .map(|one| one.map(&outcome).map_err(Into::into));
    outcomes.collect::<Vec<_>>().into_iter()
}

/// For ends of transactions: the outcomes of those that wrote replace each `None`.
fn ended(
    ends: Vec<Option<Result<GroupOutcome>>>,
    committed: Vec<aggregates::Result<Sequence>>,
) -> IntoIter<Result<GroupOutcome>> {
    let mut committed = committed.into_iter();
    let mut written = || match committed.next() {
        // The engine's error would show its internal key.
        Some(Err(aggregates::Error::Engine(Error::Conflict { .. }))) => {
            let text = "another write conflicts: begin again";
            Err(CommandRefusal::new("CONFLICT", text))
        }
        Some(Err(other)) => Err(other.into()),
        Some(Ok(_)) => Ok(GroupOutcome::Set),
        None => Err(missing_outcome()),
    };
    let outcomes = ends.into_iter().map(|end| end.unwrap_or_else(&mut written));
    outcomes.collect::<Vec<_>>().into_iter()
}

pub(crate) fn missing_outcome() -> CommandRefusal {
    CommandRefusal::new("ERR", "the write has no outcome")
}
