//! Writes to aggregates, from their preparation until they are durable together.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::{MutexGuard, RwLockReadGuard};
use rillbase_engine::{
    DbTransaction, GroupResults, GroupTicket, GroupWrite, Sequence, WriteBatch, WriteGroup,
};

use crate::add::{Add, EventGroup};
use crate::apply::Apply;
use crate::catalog::AggregateEntry;
use crate::claims::EventIdClaim;
use crate::error::Result;
use crate::staged::{AggregateRead, Staged, conflict};
use crate::store::Aggregates;

/// The writes.
#[derive(Debug, Default)]
pub struct AggregateWrites<'a> {
    /// Events, each call all or nothing.
    pub adds: Vec<&'a Add>,
    /// Changes of views.
    pub applies: Vec<&'a Apply>,
    /// Transactions with their events.
    pub commits: Vec<(Staged, DbTransaction)>,
}

/// The outcome of each write, in order.
#[derive(Debug, Default)]
pub struct AggregateOutcomes {
    /// Which events of each call were new.
    pub added: Vec<Result<Vec<bool>>>,
    /// Whether each position was new.
    pub applied: Vec<Result<bool>>,
    /// The sequence of each transaction; a conflict if another writer was first.
    pub committed: Vec<Result<Sequence>>,
}

/// Prepared writes. The state on which they are based does not change before they are written.
#[derive(Debug)]
pub struct StagedWrites<'a> {
    adds: Calls<'a, Vec<bool>>,
    applies: Calls<'a, bool>,
    commits: Vec<Result<Commit>>,
    _claim: EventIdClaim<'a>,
    _applying: Option<MutexGuard<'a, ()>>,
    _writing: RwLockReadGuard<'a, ()>,
}

/// Calls whose changes form one batch.
#[derive(Debug)]
struct Calls<'a, T> {
    aggregates: Vec<&'a Arc<AggregateEntry>>,
    outcomes: Vec<Result<T>>,
    /// `None` if nothing changes, or once it is in its group.
    batch: Option<WriteBatch>,
    ticket: Option<GroupTicket>,
}

impl<'a, T> Calls<'a, T> {
    fn new(
        aggregates: impl Iterator<Item = &'a Arc<AggregateEntry>>,
        prepare: impl FnOnce(&mut WriteBatch) -> Vec<Result<T>>,
    ) -> Self {
        let aggregates: Vec<_> = aggregates.collect();
        let mut calls = Self {
            aggregates,
            outcomes: Vec::new(),
            batch: None,
            ticket: None,
        };
        if !calls.aggregates.is_empty() {
            let mut batch = WriteBatch::new();
            calls.outcomes = prepare(&mut batch);
            calls.batch = Some(batch).filter(|batch| !batch.is_empty());
        }
        calls
    }

    fn contribute(&mut self, group: &mut WriteGroup<'_>) {
        self.ticket = self.batch.take().map(|batch| group.write(batch));
    }

    fn complete(self, results: &mut GroupResults) -> Vec<Result<T>> {
        let Some(ticket) = self.ticket else {
            return self.outcomes;
        };
        match results.take(ticket) {
            Ok(sequence) => {
                self.aggregates.iter().for_each(|one| one.note(sequence));
                self.outcomes
            }
            Err(error) => {
                let failed = |outcome: Result<T>| outcome.and(Err(error.clone().into()));
                self.outcomes.into_iter().map(failed).collect()
            }
        }
    }
}

/// A transaction that may commit.
#[derive(Debug)]
struct Commit {
    transaction: DbTransaction,
    read: Vec<AggregateRead>,
    ticket: Option<GroupTicket>,
}

impl Commit {
    fn complete(self, results: &mut GroupResults) -> Result<Sequence> {
        let ticket = self
            .ticket
            .ok_or_else(|| conflict("its writes were not checked"))?;
        let sequence = results.take(ticket)?;
        self.read
            .iter()
            .for_each(|(aggregate, _)| aggregate.note(sequence));
        Ok(sequence)
    }
}

impl Aggregates {
    /// Prepares writes that become durable together with others.
    pub fn stage_writes<'a>(&'a self, writes: AggregateWrites<'a>) -> StagedWrites<'a> {
        let writing = self.gate.read();
        // The state from which changes of views are prepared must not change before they are
        // written.
        let applying = (!writes.applies.is_empty()).then(|| self.applying.lock());
        let claim = self.claims.claim(ids(&writes));
        let AggregateWrites {
            adds,
            applies,
            commits,
        } = writes;
        let mut events = EventGroup::default();
        let of_adds = adds.iter().copied().map(|add| &add.aggregate);
        let of_applies = applies.iter().copied().map(|apply| &apply.aggregate);
        StagedWrites {
            adds: Calls::new(of_adds, |batch| {
                let outcomes = self.take_each(&mut events, &adds);
                events.write(batch, self);
                outcomes
            }),
            applies: Calls::new(of_applies, |batch| self.apply_each(batch, &applies)),
            commits: self.stage_commits(commits, events.ids.into_keys().collect()),
            _claim: claim,
            _applying: applying,
            _writing: writing,
        }
    }

    /// Prepares transactions; `taken` are the ids of earlier events in the group.
    fn stage_commits(
        &self,
        commits: Vec<(Staged, DbTransaction)>,
        mut taken: HashSet<Vec<u8>>,
    ) -> Vec<Result<Commit>> {
        let stage = |(mut staged, mut transaction): (Staged, DbTransaction)| {
            self.may_commit(&staged, &taken)?;
            taken.extend(staged.group.ids.keys().cloned());
            let mut batch = WriteBatch::new();
            staged.group.write(&mut batch, self);
            transaction.write_blindly(&batch);
            Ok(Commit {
                transaction,
                read: staged.read,
                ticket: None,
            })
        };
        commits.into_iter().map(stage).collect()
    }
}

/// The keys of all ids that are written.
fn ids(writes: &AggregateWrites<'_>) -> HashSet<Vec<u8>> {
    let added = writes.adds.iter().flat_map(|add| add.id_keys());
    let commits = writes.commits.iter();
    let committed = commits.flat_map(|(staged, _)| staged.group.ids.keys());
    added.chain(committed).cloned().collect()
}

impl GroupWrite for StagedWrites<'_> {
    type Outcome = AggregateOutcomes;

    fn contribute<'g>(&'g mut self, group: &mut WriteGroup<'g>) {
        self.adds.contribute(group);
        self.applies.contribute(group);
        for commit in self.commits.iter_mut().flatten() {
            commit.ticket = Some(group.commit(&commit.transaction));
        }
    }

    fn complete(self, results: &mut GroupResults) -> AggregateOutcomes {
        let commits = self.commits.into_iter();
        AggregateOutcomes {
            added: self.adds.complete(results),
            applied: self.applies.complete(results),
            committed: commits.map(|commit| commit?.complete(results)).collect(),
        }
    }
}
