//! The first rows of a sorted query, in order.

use std::collections::HashMap;
use std::sync::Arc;

use crate::message::ResultRow;

use crate::sort_order::SortPosition;

#[derive(Debug)]
struct SortedRow {
    place: SortPosition,
    row: Arc<ResultRow>,
}

/// The first rows, as far as they are known. Their sort positions are all different: each ends with
/// the `_id`.
#[derive(Debug)]
pub(super) struct SortedRows {
    in_order: Vec<SortedRow>,
    by_key: HashMap<Arc<[u8]>, SortPosition>,
    /// Whether there are no others.
    complete: bool,
    /// How many are kept.
    capacity: usize,
}

impl SortedRows {
    /// The first `capacity` of the rows; `complete` says whether there are no others.
    pub(super) fn new(
        rows: Vec<(SortPosition, ResultRow)>,
        complete: bool,
        capacity: usize,
    ) -> Self {
        let mut in_order: Vec<_> = rows
            .into_iter()
            .map(|(place, row)| SortedRow {
                place,
                row: Arc::new(row),
            })
            .collect();
        in_order.sort_by(|a, b| a.place.cmp(&b.place));
        let complete = complete && in_order.len() <= capacity;
        in_order.truncate(capacity);
        let by_key = in_order.iter().map(|placed| {
            let key = Arc::clone(&placed.row.key);
            (key, Arc::clone(&placed.place))
        });
        Self {
            by_key: by_key.collect(),
            in_order,
            complete,
            capacity,
        }
    }

    /// The version of a row, if it is kept.
    pub(super) fn version(&self, key: &[u8]) -> Option<u64> {
        Some(self.at(self.index(key)?)?.version)
    }

    /// The index of a row, if it is kept.
    pub(super) fn index(&self, key: &[u8]) -> Option<usize> {
        self.find(self.by_key.get(key)?).ok()
    }

    /// The row at an index.
    pub(super) fn at(&self, index: usize) -> Option<&Arc<ResultRow>> {
        self.in_order.get(index).map(|placed| &placed.row)
    }

    fn find(&self, place: &SortPosition) -> Result<usize, usize> {
        self.in_order
            .binary_search_by(|placed| placed.place.cmp(place))
    }

    pub(super) fn remove(&mut self, key: &[u8]) {
        if let Some(place) = self.by_key.remove(key)
            && let Ok(index) = self.find(&place)
        {
            self.in_order.remove(index);
        }
    }

    /// Inserts a row of which no other version is kept. Returns the row that no longer fits, or
    /// that is after the last known one.
    pub(super) fn insert(&mut self, place: SortPosition, row: ResultRow) -> Option<Arc<ResultRow>> {
        let row = Arc::new(row);
        let index = match self.find(&place) {
            Ok(index) | Err(index) => index,
        };
        if index == self.in_order.len() && !self.complete {
            return Some(row);
        }
        self.by_key.insert(Arc::clone(&row.key), Arc::clone(&place));
        self.in_order.insert(index, SortedRow { place, row });
        if self.in_order.len() <= self.capacity {
            return None;
        }
        self.complete = false;
        let last = self.in_order.pop()?;
        self.by_key.remove(&last.row.key);
        Some(last.row)
    }

    /// Shows something else in a row's place; returns how many bytes that showed before.
    pub(super) fn show(&mut self, key: &[u8], row: ResultRow) -> usize {
        let index = self.index(key);
        let Some(placed) = index.and_then(|index| self.in_order.get_mut(index)) else {
            return row.body.len();
        };
        let bytes = placed.row.body.len();
        if placed.row.version != row.version {
            placed.row = Arc::new(row);
        }
        bytes
    }

    /// At most `limit` rows from `offset` on.
    pub(super) fn window(&self, offset: usize, limit: usize) -> Vec<Arc<ResultRow>> {
        let rows = self.in_order.iter().skip(offset).take(limit);
        rows.map(|placed| Arc::clone(&placed.row)).collect()
    }

    /// Whether the first `count` rows are known, or all.
    pub(super) fn reaches(&self, count: usize) -> bool {
        self.complete || self.in_order.len() >= count
    }

    pub(super) fn len(&self) -> usize {
        self.in_order.len()
    }
}
