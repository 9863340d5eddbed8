//! How many items rows have, so that an event that would exceed the limit is rejected.
//!
//! The items of a row are not counted for each event. A row has no more items than events, and the
//! number of events is read once. Only a row with as many events as the limit on items is examined:
//! its items are counted, once, and from then on each event is checked for new items. The counts
//! belong to this process and are upper bounds: events that were read and then not written count,
//! too.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use rillbase_engine::{Db, Keyspace};

use crate::contribution::Contribution;
use crate::deltas::{AggregateGeneration, Deltas, ItemContribution, for_items};
use crate::error::{AggregateErrorCode, Error, Result};
use crate::row_scan::MAX_ITEMS;
use crate::state::{RowState, SlotValue};

/// The maximum number of known rows; beyond it all are forgotten.
const MAX_KNOWN: usize = 65_536;

#[derive(Debug, Clone, Copy)]
enum ItemCount {
    /// An upper bound.
    AtMost(usize),
    /// The counted number, with each new item since.
    Counted(usize),
}

/// How many items there are, by row and measure.
#[derive(Debug)]
pub(crate) struct ItemCounts {
    db: Arc<Db>,
    rows: Keyspace,
    items: Keyspace,
    known: Mutex<HashMap<Vec<u8>, ItemCount>>,
}

impl ItemCounts {
    pub(crate) fn new(db: &Arc<Db>, rows: &Keyspace, items: &Keyspace) -> Self {
        Self {
            db: Arc::clone(db),
            rows: rows.clone(),
            items: items.clone(),
            known: Mutex::default(),
        }
    }

    /// Rejects a contribution of an event that would give a row too many items. `coming` has what
    /// is written with it; `own` are the new items of the same call.
    pub(crate) fn make_room(
        &self,
        (generation, contribution): (&Arc<AggregateGeneration>, &Contribution),
        coming: &Deltas,
        own: &mut HashSet<Vec<u8>>,
    ) -> Result<()> {
        let mut outcome = Ok(());
        for_items(generation, contribution, &mut Vec::new(), &mut |item| {
            if outcome.is_ok() && !coming.has_item(item.key) && !own.contains(item.key) {
                outcome = self.make_room_for(item);
                own.insert(item.key.to_vec());
            }
        });
        outcome
    }

    fn make_room_for(&self, item: ItemContribution<'_>) -> Result<()> {
        let mut known = self.known.lock();
        let mut count_of_row = match known.get(item.group) {
            Some(count_of_row) => *count_of_row,
            None => ItemCount::AtMost(self.events_of(item.row)?),
        };
        if let ItemCount::AtMost(MAX_ITEMS..) = count_of_row {
            count_of_row = ItemCount::Counted(self.count_items(item.group)?);
        }
        let count_of_row = match count_of_row {
            ItemCount::AtMost(count) => ItemCount::AtMost(count + 1),
            ItemCount::Counted(count) if self.db.get(&self.items, item.key)?.is_some() => {
                ItemCount::Counted(count)
            }
            ItemCount::Counted(count) if count < MAX_ITEMS => ItemCount::Counted(count + 1),
            ItemCount::Counted(_) => {
                known.insert(item.group.to_vec(), count_of_row);
                return Err(full(item));
            }
        };
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(item.group.to_vec(), count_of_row);
        Ok(())
    }

    /// The number of events of a row.
    fn events_of(&self, row: &[u8]) -> Result<usize> {
        let Some(value) = self.db.get(&self.rows, row)? else {
            return Ok(0);
        };
        let row = RowState::from_bytes(&value)?;
        Ok(match row.0.first() {
            Some(SlotValue::Count(count)) => usize::try_from(*count).unwrap_or(0),
            _ => MAX_ITEMS,
        })
    }

    fn count_items(&self, group: &[u8]) -> Result<usize> {
        let now = self.db.snapshot();
        let mut scan = self.db.scan_prefix(&self.items, group, Some(&now))?;
        scan.first()?;
        let mut count = 0;
        while scan.is_valid() && count < MAX_ITEMS {
            count += 1;
            scan.advance()?;
        }
        Ok(count)
    }
}

fn full(item: ItemContribution<'_>) -> Error {
    let (name, pointer) = match item.measure.op.field() {
        Some(field) => (field.name.as_str(), field.pointer()),
        None => ("", String::new()),
    };
    let detail = format!("a row has 100,000 different values of '{name}', the maximum");
    Error::at(AggregateErrorCode::TooManyItems, pointer, detail)
}
