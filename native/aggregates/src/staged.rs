//! Events of a transaction: read and counted as they come, seen by the transaction's own queries,
//! and written when it commits. Deltas conflict with nothing; an event id that somebody else wrote
//! meanwhile, or another definition, is a conflict.

use std::collections::HashSet;
use std::sync::Arc;

use rillbase_engine::{DbTransaction, Error as EngineError, Sequence};

use crate::add::{Add, EventGroup};
use crate::catalog::{AggregateEntry, AggregateState};
use crate::deltas::Deltas;
use crate::error::{Error, Result};
use crate::store::Aggregates;

/// What a transaction will add.
#[derive(Debug, Default)]
pub struct Staged {
    group: EventGroup,
    read: Vec<AggregateRead>,
}

/// Whose events, and as what they were read.
type AggregateRead = (Arc<AggregateEntry>, Arc<AggregateState>);

impl Staged {
    /// What its events change.
    pub fn deltas(&self) -> &Deltas {
        &self.group.deltas
    }
}

fn conflict(what: &str) -> Error {
    Error::Engine(EngineError::Conflict { what: what.into() })
}

impl Aggregates {
    /// Takes events into a transaction; says which are new.
    pub fn stage(&self, staged: &mut Staged, add: &Add) -> Result<Vec<bool>> {
        let fresh = staged.group.take(add, self)?;
        staged.group.deltas.spread();
        staged
            .read
            .push((Arc::clone(&add.aggregate), Arc::clone(&add.shape)));
        Ok(fresh)
    }

    /// Commits a transaction with its events, unless somebody was faster.
    pub fn commit(&self, staged: Staged, transaction: DbTransaction) -> Result<Sequence> {
        let mut done = self.commit_each(vec![(staged, transaction)]);
        done.pop()
            .unwrap_or_else(|| Err(conflict("nothing was asked")))
    }

    /// Commits transactions with their events, durably together. What came of each is in its place.
    pub fn commit_each(&self, all: Vec<(Staged, DbTransaction)>) -> Vec<Result<Sequence>> {
        let _writing = self.gate.read();
        let ids = all.iter().flat_map(|(staged, _)| staged.group.ids.keys());
        let _claim = self.claims.claim(ids.cloned().collect());
        let mut taken = HashSet::new();
        let (mut ready, mut places) = (Vec::with_capacity(all.len()), Vec::new());
        for (mut staged, mut transaction) in all {
            let place = self.may_commit(&staged, &taken).map(|()| {
                taken.extend(staged.group.ids.keys().cloned());
                transaction.write_blindly(&staged.group.batch(self));
                ready.push(transaction);
                staged.read
            });
            places.push(place);
        }
        let mut committed = DbTransaction::commit_each(&ready, self.durability).into_iter();
        let outcome = |place: Result<Vec<AggregateRead>>| {
            let read = place?;
            let committed = committed.next();
            let sequence = committed.ok_or_else(|| conflict("it was not asked"))??;
            read.iter()
                .for_each(|(aggregate, _)| aggregate.note(sequence));
            Ok(sequence)
        };
        places.into_iter().map(outcome).collect()
    }

    /// Whether events may be written as they were read; `taken` are ids that others of the same
    /// group write.
    fn may_commit(&self, staged: &Staged, taken: &HashSet<Vec<u8>>) -> Result<()> {
        let has_changed = |(aggregate, shape): &AggregateRead| {
            aggregate.is_dropped() || !Arc::ptr_eq(shape, &aggregate.shape())
        };
        if staged.read.iter().any(has_changed) {
            return Err(conflict("an aggregate was defined anew"));
        }
        for key in staged.group.ids.keys() {
            if taken.contains(key) || self.db.get(&self.spaces.ids, key)?.is_some() {
                return Err(conflict("an event was added by somebody else"));
            }
        }
        Ok(())
    }
}
