//! Writes that become durable together, whichever connections they came by.

use std::sync::Arc;
use std::time::Instant;

use rillbase_aggregates::{Add, Apply};
use rillbase_engine::{Error, Millis, WriteBatch};
use rillbase_pubsub::{StoreAnswer, TopicOperation, TopicSpec, TopicStore};

use crate::acks::Ack;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::topic::TopicEntry;
use crate::transactions::{OpenTransaction, Under};

/// A write that a command asks for.
#[derive(Debug)]
pub(crate) enum GroupWrite {
    /// Publishing or subscribing.
    Operation {
        topic: Arc<TopicEntry>,
        operation: Box<TopicOperation>,
        /// Whether pushes are to follow.
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
    /// The end of a transaction.
    Commit(Arc<OpenTransaction>),
}

/// What came of a write.
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
}

impl NodeCore {
    /// Does all writes, and returns once all are durable. What came of each is in its place.
    pub(crate) fn commit(&self, writes: &[&GroupWrite]) -> Vec<Result<GroupOutcome>> {
        let started = Instant::now();
        let mut answers = self.run_operations(writes).into_iter();
        let mut acked = self.run_acks(writes).into_iter();
        let set = self.run_sets(writes);
        let mut added = self.run_adds(writes).into_iter();
        let mut applied = self.run_applies(writes).into_iter();
        let mut committed = self.run_commits(writes).into_iter();
        let outcomes = writes.iter().map(|write| {
            let next = match write {
                GroupWrite::Operation { .. } => answers.next(),
                GroupWrite::Ack(_) => acked.next(),
                GroupWrite::Set { .. } => Some(set.clone().map(|()| GroupOutcome::Set)),
                GroupWrite::Add(_) => added.next(),
                GroupWrite::Apply(_) => applied.next(),
                GroupWrite::Commit(_) => committed.next(),
            };
            next.unwrap_or_else(|| Err(without_outcome()))
        });
        let outcomes = outcomes.collect();
        let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.metrics.commit_groups.add(1);
        self.metrics.commit_group_writes.add(writes.len() as u64);
        self.metrics.commit_micros.add(micros);
        outcomes
    }

    fn run_operations(&self, writes: &[&GroupWrite]) -> Vec<Result<GroupOutcome>> {
        let asked = writes.iter().filter_map(|write| match write {
            GroupWrite::Operation {
                topic, operation, ..
            } => Some((topic.topic(), &**operation)),
            _ => None,
        });
        let asked: Vec<(TopicSpec, &TopicOperation)> = asked.collect();
        if asked.is_empty() {
            return Vec::new();
        }
        let each: Vec<_> = asked
            .iter()
            .map(|(topic, operation)| (topic, *operation))
            .collect();
        match self.store.run_each(&each) {
            Ok(answers) => {
                self.count(&answers, &each);
                let outcome = |answer| Ok(GroupOutcome::Answer(Box::new(answer)));
                answers.into_iter().map(outcome).collect()
            }
            Err(error) => repeat(&error.into(), each.len()),
        }
    }

    fn count(&self, answers: &[StoreAnswer], each: &[(&TopicSpec, &TopicOperation)]) {
        let (mut published, mut subscribed, mut matches) = (0, 0, 0);
        for (answer, (_, operation)) in answers.iter().zip(each) {
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
        self.metrics.publications.add(published);
        self.metrics.subscriptions.add(subscribed);
        self.metrics.matches.add(matches as u64);
    }

    fn run_acks(&self, writes: &[&GroupWrite]) -> Vec<Result<GroupOutcome>> {
        let asked = writes.iter().filter_map(|write| match write {
            GroupWrite::Ack(ack) => Some(ack.clone()),
            _ => None,
        });
        let acks: Vec<Ack> = asked.collect();
        if acks.is_empty() {
            return Vec::new();
        }
        self.metrics.acks.add(acks.len() as u64);
        match self.acks.note(&acks, self.options.durability) {
            Ok(news) => news
                .into_iter()
                .map(|new| Ok(GroupOutcome::Acked(new)))
                .collect(),
            Err(refusal) => repeat(&refusal, acks.len()),
        }
    }

    fn run_adds(&self, writes: &[&GroupWrite]) -> Vec<Result<GroupOutcome>> {
        let asked = writes.iter().filter_map(|write| match write {
            GroupWrite::Add(add) => Some(add),
            _ => None,
        });
        let adds: Vec<&Add> = asked.collect();
        if adds.is_empty() {
            return Vec::new();
        }
        let added = self.aggregates.add(&adds).into_iter();
        let outcome = |fresh: rillbase_aggregates::Result<Vec<bool>>| {
            let fresh = fresh?;
            self.metrics.events.add(fresh.len() as u64);
            Ok(GroupOutcome::Added(fresh))
        };
        added.map(outcome).collect()
    }

    fn run_applies(&self, writes: &[&GroupWrite]) -> Vec<Result<GroupOutcome>> {
        let asked = writes.iter().filter_map(|write| match write {
            GroupWrite::Apply(apply) => Some(apply),
            _ => None,
        });
        let applies: Vec<&Apply> = asked.collect();
        if applies.is_empty() {
            return Vec::new();
        }
        let outcomes = self.aggregates.apply(&applies).into_iter();
        outcomes
            .map(|new| Ok(GroupOutcome::Applied(new?)))
            .collect()
    }

    fn run_commits(&self, writes: &[&GroupWrite]) -> Vec<Result<GroupOutcome>> {
        let (mut writing, mut places) = (Vec::new(), Vec::new());
        for write in writes {
            let GroupWrite::Commit(open) = write else {
                continue;
            };
            places.push(match open.end() {
                Under::Writing(transaction, staged) => {
                    writing.push((*staged, *transaction));
                    None
                }
                Under::Reading(_) => Some(Ok(GroupOutcome::Set)),
                Under::Ended => Some(Err(CommandRefusal::new(
                    "NOTX",
                    "there is no such transaction (any more)",
                ))),
            });
        }
        let mut committed = self.aggregates.commit_each(writing).into_iter();
        let outcome = |place: Option<Result<GroupOutcome>>| match place {
            Some(done) => done,
            None => match committed.next() {
                // The engine would name its own key.
                Some(Err(rillbase_aggregates::Error::Engine(Error::Conflict { .. }))) => Err(
                    CommandRefusal::new("CONFLICT", "somebody else was faster: begin again"),
                ),
                Some(Err(other)) => Err(other.into()),
                Some(Ok(_)) => Ok(GroupOutcome::Set),
                None => Err(without_outcome()),
            },
        };
        places.into_iter().map(outcome).collect()
    }

    fn run_sets(&self, writes: &[&GroupWrite]) -> Result<()> {
        let mut batch = WriteBatch::new();
        for write in writes {
            match write {
                GroupWrite::Set {
                    key,
                    value,
                    expiry: None,
                } => batch.put(&self.values, key, value),
                GroupWrite::Set {
                    key,
                    value,
                    expiry: Some(expiry),
                } => {
                    batch.put_expiring(&self.values, key, value, *expiry);
                }
                _ => {}
            }
        }
        if !batch.is_empty() {
            self.db.write(batch, self.options.durability)?;
        }
        Ok(())
    }
}

fn without_outcome() -> CommandRefusal {
    CommandRefusal::new("ERR", "the write has no outcome")
}

fn repeat(refusal: &CommandRefusal, times: usize) -> Vec<Result<GroupOutcome>> {
    (0..times).map(|_| Err(refusal.clone())).collect()
}
