//! Events of a transaction: read and counted as they come, seen by the transaction's own queries,
//! and written when it commits. Deltas conflict with nothing; an event id that somebody else wrote
//! meanwhile, or another definition, is a conflict.

use std::collections::HashSet;
use std::sync::Arc;

use rillbase_engine::{Error as EngineError, Sequence, Transaction};

use crate::add::{Add, Group};
use crate::catalog::{Aggregate, Shape};
use crate::deltas::Deltas;
use crate::error::{Error, Result};
use crate::store::Aggregates;

/// What a transaction will add.
#[derive(Debug, Default)]
pub struct Staged {
    group: Group,
    /// Whose events, and as what they were read.
    read: Vec<(Arc<Aggregate>, Arc<Shape>)>,
}

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
        let known = |key: &[u8]| Ok(self.db.get(&self.spaces.ids, key)?.is_some());
        let fresh = staged.group.take(add, &known, self.db.now())?;
        staged
            .read
            .push((Arc::clone(&add.aggregate), Arc::clone(&add.shape)));
        Ok(fresh)
    }

    /// Commits a transaction with its events, unless somebody was faster.
    pub fn commit(&self, staged: &Staged, mut transaction: Transaction) -> Result<Sequence> {
        let _writing = self.gate.read();
        let ids: HashSet<Vec<u8>> = staged.group.ids.keys().cloned().collect();
        let _claim = self.claims.claim(ids);
        let has_changed = |(aggregate, shape): &(Arc<Aggregate>, Arc<Shape>)| {
            aggregate.is_dropped() || !Arc::ptr_eq(shape, &aggregate.shape())
        };
        if staged.read.iter().any(has_changed) {
            return Err(conflict("an aggregate was defined anew"));
        }
        for key in staged.group.ids.keys() {
            if self.db.get(&self.spaces.ids, key)?.is_some() {
                return Err(conflict("an event was added by somebody else"));
            }
        }
        transaction.write_blindly(&staged.group.batch(self));
        let sequence = transaction.commit(self.durability)?;
        staged
            .read
            .iter()
            .for_each(|(aggregate, _)| aggregate.note(sequence));
        Ok(sequence)
    }
}
