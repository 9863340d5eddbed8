//! Rows of one group, while they are read.
//!
//! Rows arrive in key order, which is usually the order of groups: then each belongs to the same
//! group as its neighbour or to a new one, and no lookup is needed. Otherwise a group may be
//! present several times until all are sorted.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::error::{AggregateErrorCode, Error, Result};
use crate::row_scan::MAX_ITEMS;
use crate::state::{RowState, SlotValue};

/// Values of items with their counts.
pub(crate) type Items = BTreeMap<Vec<u8>, i64>;

/// The number from which groups are sorted early, so that duplicates use no more memory than that.
const SORTED_FROM: usize = 65_536;

/// The rows of one group.
#[derive(Debug)]
pub(crate) struct RowGroup {
    key: Range<usize>,
    /// The first row, encoded: most groups have one row.
    first: Range<usize>,
    /// The sum of all rows, if there are several.
    sum: Option<Box<RowState>>,
    /// For each measure that is shown, if one has items.
    items: Option<Box<[Items]>>,
}

/// The merged rows of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergedGroup<'g> {
    pub(crate) row: &'g RowState,
    items: Option<&'g [Items]>,
}

/// A group, and the same group earlier: `None` if the query does not compare, `Some(None)` if there
/// was no such group.
pub(crate) type MergedPair<'g> = (MergedGroup<'g>, Option<Option<MergedGroup<'g>>>);

impl<'g> MergedGroup<'g> {
    /// The items of a measure that is shown.
    pub(crate) fn items(&self, index: usize) -> Option<&'g Items> {
        self.items?.get(index)
    }
}

/// All groups of a result.
#[derive(Debug, Default)]
pub(crate) struct RowGroups {
    /// The groups in the sortable encoding, and their first rows, concatenated.
    bytes: Vec<u8>,
    list: Vec<RowGroup>,
    is_mixed: bool,
    sort_at: usize,
}

fn slice<'b>(bytes: &'b [u8], range: &Range<usize>) -> &'b [u8] {
    bytes.get(range.clone()).unwrap_or_default()
}

/// Rejects a group with too many items.
pub(crate) fn check_count(items: &Items) -> Result<()> {
    if items.len() > MAX_ITEMS {
        let detail = "a group has more than 100,000 items";
        return Err(Error::new(AggregateErrorCode::TooExpensive, detail));
    }
    Ok(())
}

impl RowGroup {
    /// Whether it has any contributions.
    fn counts(&self, bytes: &[u8]) -> bool {
        let count = match &self.sum {
            Some(sum) => sum.0.first().cloned(),
            None => SlotValue::first(slice(bytes, &self.first)).ok(),
        };
        matches!(count, Some(SlotValue::Count(count)) if count > 0)
    }

    fn merge(&mut self, bytes: &[u8], row: &RowState, items: Option<&[Items]>) -> Result<()> {
        if let Some(sum) = &mut self.sum {
            sum.merge(row);
        } else {
            let first = RowState::from_bytes(slice(bytes, &self.first));
            let mut sum = Box::new(first?);
            sum.merge(row);
            self.sum = Some(sum);
        }
        let pairs = self
            .items
            .iter_mut()
            .flatten()
            .zip(items.into_iter().flatten());
        for (own, other) in pairs {
            for (item, count) in other {
                *own.entry(item.clone()).or_default() += count;
            }
            check_count(own)?;
        }
        Ok(())
    }
}

impl RowGroups {
    /// Adds an encoded row with its items.
    pub(crate) fn take(
        &mut self,
        key: &[u8],
        row: &[u8],
        items: Option<Box<[Items]>>,
    ) -> Result<()> {
        if let Some(last) = self.list.last_mut() {
            let order = slice(&self.bytes, &last.key).cmp(key);
            if order == Ordering::Equal {
                let row = RowState::from_bytes(row)?;
                return last.merge(&self.bytes, &row, items.as_deref());
            }
            self.is_mixed |= order == Ordering::Greater;
        }
        let (key, first) = (self.keep(key), self.keep(row));
        self.list.push(RowGroup {
            key,
            first,
            sum: None,
            items,
        });
        if self.is_mixed && self.list.len() >= self.sort_at.max(SORTED_FROM) {
            self.sort()?;
            self.sort_at = 2 * self.list.len();
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Sorts groups by key and merges duplicates.
    fn sort(&mut self) -> Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        let mut list = std::mem::take(&mut self.list);
        // Sorted runs are recognized, so comparisons are few.
        list.sort_by(|left, right| slice(&bytes, &left.key).cmp(slice(&bytes, &right.key)));
        self.is_mixed = false;
        for group in list {
            let (key, first) = (slice(&bytes, &group.key), slice(&bytes, &group.first));
            match group.sum {
                None => self.take(key, first, group.items)?,
                Some(sum) => self.take(key, &sum.to_bytes(), group.items)?,
            }
        }
        Ok(())
    }

    /// The groups with contributions, in key order.
    pub(crate) fn finish(mut self) -> Result<Self> {
        if self.is_mixed {
            self.sort()?;
        }
        let Self { bytes, list, .. } = &mut self;
        list.retain(|group| group.counts(bytes));
        Ok(self)
    }

    /// The group to which the last row was added.
    pub(crate) fn last(&self) -> Option<(&[u8], &RowGroup)> {
        let group = self.list.last()?;
        Some((slice(&self.bytes, &group.key), group))
    }

    /// Whether a group has any contributions.
    pub(crate) fn counts(&self, group: &RowGroup) -> bool {
        group.counts(&self.bytes)
    }

    /// Removes all groups, but keeps the capacity.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.list.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &RowGroup)> {
        self.list
            .iter()
            .map(|group| (slice(&self.bytes, &group.key), group))
    }

    /// The group with a key, once they are sorted.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&RowGroup> {
        let index = self
            .list
            .binary_search_by(|group| slice(&self.bytes, &group.key).cmp(key));
        self.list.get(index.ok()?)
    }

    /// The merged rows of a group; a single row is decoded into `scratch`.
    pub(crate) fn sum<'g>(
        &'g self,
        group: &'g RowGroup,
        scratch: &'g mut RowState,
    ) -> Result<MergedGroup<'g>> {
        let row = if let Some(sum) = &group.sum {
            sum
        } else {
            scratch.read(slice(&self.bytes, &group.first))?;
            &*scratch
        };
        let items = group.items.as_deref();
        Ok(MergedGroup { row, items })
    }
}
