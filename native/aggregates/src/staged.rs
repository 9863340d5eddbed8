//! Events of a transaction: parsed and counted as they arrive, visible to the transaction's own
//! queries, and written when it commits. Deltas never conflict; an event id written by another
//! writer meanwhile, or a changed definition, is a conflict.

use std::collections::HashSet;
use std::sync::Arc;

use rillbase_engine::Error as EngineError;

use crate::add::{Add, EventGroup};
use crate::catalog::{AggregateEntry, AggregateState};
use crate::deltas::Deltas;
use crate::error::{Error, Result};
use crate::store::Aggregates;

/// What a transaction will add.
#[derive(Debug, Default)]
pub struct Staged {
    pub(crate) group: EventGroup,
    pub(crate) read: Vec<AggregateRead>,
}

/// An aggregate, and the state with which its events were parsed.
pub(crate) type AggregateRead = (Arc<AggregateEntry>, Arc<AggregateState>);

impl Staged {
    /// The changes of its events.
    pub fn deltas(&self) -> &Deltas {
        &self.group.deltas
    }
}

pub(crate) fn conflict(what: &str) -> Error {
    Error::Engine(EngineError::Conflict { what: what.into() })
}

impl Aggregates {
    /// Adds events to a transaction; returns which are new.
    pub fn stage(&self, staged: &mut Staged, add: &Add) -> Result<Vec<bool>> {
        let fresh = staged.group.take(add, self)?;
        staged.group.deltas.spread();
        staged
            .read
            .push((Arc::clone(&add.aggregate), Arc::clone(&add.shape)));
        Ok(fresh)
    }

    /// Whether events may be written as they were parsed; `taken` are ids that others in the same
    /// group write.
    pub(crate) fn may_commit(&self, staged: &Staged, taken: &HashSet<Vec<u8>>) -> Result<()> {
        let has_changed = |(aggregate, shape): &AggregateRead| {
            aggregate.is_dropped() || !Arc::ptr_eq(shape, &aggregate.shape())
        };
        if staged.read.iter().any(has_changed) {
            return Err(conflict("an aggregate was redefined"));
        }
        for key in staged.group.ids.keys() {
            if taken.contains(key) || self.db.get(&self.spaces.ids, key)?.is_some() {
                return Err(conflict("an event was added by another transaction"));
            }
        }
        Ok(())
    }
}
