//! A query's current result, and how it changes.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Weak};

use crate::message::{RemovalReason, ResultRow, WindowChange};
use crate::sort_node::steps;

use super::sizes::row_bytes;

/// One change of a result. Indexes are those of the window at that step.
#[derive(Debug, Clone)]
pub(super) enum ResultChange {
    Add {
        index: Option<u32>,
        row: Arc<ResultRow>,
    },
    Stay {
        index: Option<u32>,
        row: Arc<ResultRow>,
    },
    Move {
        old_index: u32,
        index: u32,
        row: Arc<ResultRow>,
    },
    /// `row` is the row that was shown last: the event contains its `_id`.
    Remove {
        old_index: Option<u32>,
        row: Arc<ResultRow>,
        version: u64,
        reason: RemovalReason,
    },
}

/// The rows of a result in order, as they were at one time.
#[derive(Debug)]
pub(super) struct ResultList {
    pub(super) rows: Vec<Arc<ResultRow>>,
    pub(super) bytes: usize,
}

/// The rows of a result, and how many bytes they take.
#[derive(Debug, Clone)]
pub(super) struct ResultRows {
    order: ResultOrder,
    bytes: usize,
    thin: MissingBodies,
    /// The last list, while nothing has changed and it is still in use.
    listed: RefCell<Weak<ResultList>>,
}

/// Which rows have only their `_id` left.
#[derive(Debug, Clone)]
enum MissingBodies {
    /// None.
    No,
    /// Possibly any.
    Yes,
    /// These: other versions of them were read. Their writes are on their way.
    But(HashSet<Arc<[u8]>>),
}

#[derive(Debug, Clone)]
enum ResultOrder {
    /// By key, which is the order of `_id`.
    Keyed(BTreeMap<Arc<[u8]>, Arc<ResultRow>>),
    /// A window, in the order of its sort.
    Window(Vec<Arc<ResultRow>>),
}

impl ResultRows {
    /// The rows of a registration. `offset` and `limit` select a window of them.
    pub(super) fn new(rows: Vec<ResultRow>, window: Option<(u32, Option<u32>)>) -> Self {
        let rows = rows.into_iter().map(Arc::new);
        match window {
            None => Self::keyed(rows.map(|row| (Arc::clone(&row.key), row)).collect()),
            Some((offset, limit)) => {
                let most = limit.map_or(usize::MAX, |limit| limit as usize);
                Self::window(rows.skip(offset as usize).take(most).collect())
            }
        }
    }

    pub(super) fn keyed(rows: BTreeMap<Arc<[u8]>, Arc<ResultRow>>) -> Self {
        let bytes = rows.values().map(|row| row_bytes(row)).sum();
        Self::of(ResultOrder::Keyed(rows), bytes)
    }

    pub(super) fn window(rows: Vec<Arc<ResultRow>>) -> Self {
        let bytes = rows.iter().map(|row| row_bytes(row)).sum();
        Self::of(ResultOrder::Window(rows), bytes)
    }

    fn of(order: ResultOrder, bytes: usize) -> Self {
        Self {
            order,
            bytes,
            thin: MissingBodies::No,
            listed: RefCell::default(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether some rows have lost their bodies, so that the whole result cannot be sent.
    pub(super) fn has_missing_bodies(&self) -> bool {
        !matches!(self.thin, MissingBodies::No)
    }

    /// Whether there is an order other than that of `_id`.
    pub(super) fn is_window(&self) -> bool {
        matches!(self.order, ResultOrder::Window(_))
    }

    /// Whether this is how the rows are now.
    pub(super) fn is_listed_as(&self, listed: &Arc<ResultList>) -> bool {
        std::ptr::eq(self.listed.borrow().as_ptr(), Arc::as_ptr(listed))
    }

    /// Drops bodies. Keys, versions and `_id`s stay, which is all that changes need.
    pub(super) fn drop_bodies(&mut self) {
        let strip = |row: &mut Arc<ResultRow>| {
            if let Some(short) = without_body(row) {
                *row = Arc::new(short);
            }
        };
        match &mut self.order {
            ResultOrder::Keyed(rows) => rows.values_mut().for_each(strip),
            ResultOrder::Window(rows) => rows.iter_mut().for_each(strip),
        }
        self.thin = MissingBodies::Yes;
        self.bytes = self.iter().map(|row| row_bytes(row)).sum();
        self.changed();
    }

    /// Restores the bodies of rows that were read again. Rows with another version stay as they
    /// are.
    pub(super) fn fill(&mut self, read: &[ResultRow]) {
        let read: HashMap<&[u8], &ResultRow> = read.iter().map(|row| (&*row.key, row)).collect();
        let mut missing = HashSet::new();
        let mut fill = |row: &mut Arc<ResultRow>| match read.get(&*row.key) {
            Some(whole) if whole.version == row.version => *row = Arc::new(ResultRow::clone(whole)),
            _ => {
                missing.insert(Arc::clone(&row.key));
            }
        };
        match &mut self.order {
            ResultOrder::Keyed(rows) => rows.values_mut().for_each(&mut fill),
            ResultOrder::Window(rows) => rows.iter_mut().for_each(&mut fill),
        }
        self.thin = if missing.is_empty() {
            MissingBodies::No
        } else {
            MissingBodies::But(missing)
        };
        self.bytes = self.iter().map(|row| row_bytes(row)).sum();
        self.changed();
    }

    /// A row has changed or was removed.
    fn touched(&mut self, key: &[u8]) {
        if let MissingBodies::But(missing) = &mut self.thin
            && missing.remove(key)
            && missing.is_empty()
        {
            self.thin = MissingBodies::No;
        }
        self.changed();
    }

    fn iter(&self) -> Box<dyn Iterator<Item = &Arc<ResultRow>> + '_> {
        match &self.order {
            ResultOrder::Keyed(rows) => Box::new(rows.values()),
            ResultOrder::Window(rows) => Box::new(rows.iter()),
        }
    }

    fn changed(&mut self) {
        *self.listed.get_mut() = Weak::new();
    }

    /// All rows. While nothing changes, all callers share the same list.
    pub(super) fn list(&self) -> Arc<ResultList> {
        if let Some(known) = self.listed.borrow().upgrade() {
            return known;
        }
        let listed = Arc::new(ResultList {
            rows: self.iter().cloned().collect(),
            bytes: self.bytes,
        });
        *self.listed.borrow_mut() = Arc::downgrade(&listed);
        listed
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Arc<ResultRow>> {
        match &self.order {
            ResultOrder::Keyed(rows) => rows.get(key),
            ResultOrder::Window(rows) => rows.iter().find(|row| *row.key == *key),
        }
    }

    /// The same rows without those whose key satisfies `goes`, and with `instead` added. Only for an
    /// unsorted result; `None` for a window.
    pub(super) fn with(
        &self,
        goes: impl Fn(&[u8]) -> bool,
        instead: impl Iterator<Item = Arc<ResultRow>>,
    ) -> Option<Self> {
        let ResultOrder::Keyed(rows) = &self.order else {
            return None;
        };
        let mut after = rows.clone();
        after.retain(|key, _| !goes(key));
        after.extend(instead.map(|row| (Arc::clone(&row.key), row)));
        let thin = self.thin.clone();
        Some(Self {
            thin,
            ..Self::keyed(after)
        })
    }

    /// Inserts a row into an unsorted result.
    pub(super) fn put(&mut self, row: ResultRow) -> Option<ResultChange> {
        let ResultOrder::Keyed(rows) = &mut self.order else {
            return None;
        };
        let row = Arc::new(row);
        self.bytes += row_bytes(&row);
        let index = None;
        let key = Arc::clone(&row.key);
        let change = match rows.insert(Arc::clone(&row.key), Arc::clone(&row)) {
            None => ResultChange::Add { index, row },
            Some(old) => {
                self.bytes -= row_bytes(&old);
                ResultChange::Stay { index, row }
            }
        };
        self.touched(&key);
        Some(change)
    }

    /// Removes a row from an unsorted result.
    pub(super) fn take(
        &mut self,
        key: &[u8],
        version: u64,
        reason: RemovalReason,
    ) -> Option<ResultChange> {
        let ResultOrder::Keyed(rows) = &mut self.order else {
            return None;
        };
        let row = rows.remove(key)?;
        self.bytes -= row_bytes(&row);
        self.touched(key);
        Some(ResultChange::Remove {
            old_index: None,
            row,
            version,
            reason,
        })
    }

    /// Applies a step to a window.
    pub(super) fn step(&mut self, step: WindowChange) -> Option<ResultChange> {
        let ResultOrder::Window(rows) = &mut self.order else {
            return None;
        };
        let (change, less) = stepped(rows, step)?;
        let (row, more) = match &change {
            ResultChange::Add { row, .. }
            | ResultChange::Stay { row, .. }
            | ResultChange::Move { row, .. } => (row, row_bytes(row)),
            ResultChange::Remove { row, .. } => (row, 0),
        };
        self.bytes = (self.bytes + more).saturating_sub(less);
        self.touched(&row.key);
        Some(change)
    }
}

/// Applies a step to a window; returns the change and the bytes of the previous row.
fn stepped(rows: &mut Vec<Arc<ResultRow>>, step: WindowChange) -> Option<(ResultChange, usize)> {
    Some(match step {
        WindowChange::Add { index, row } => {
            let row = Arc::new(row);
            let place = (index as usize).min(rows.len());
            rows.insert(place, Arc::clone(&row));
            let index = Some(index);
            (ResultChange::Add { index, row }, 0)
        }
        WindowChange::Change { index, row } => {
            let row = Arc::new(row);
            let old = std::mem::replace(rows.get_mut(index as usize)?, Arc::clone(&row));
            let index = Some(index);
            (ResultChange::Stay { index, row }, row_bytes(&old))
        }
        WindowChange::Move {
            old_index,
            index,
            row,
        } => {
            let row = Arc::new(row);
            let old = remove(rows, old_index)?;
            let place = (index as usize).min(rows.len());
            rows.insert(place, Arc::clone(&row));
            let change = ResultChange::Move {
                old_index,
                index,
                row,
            };
            (change, row_bytes(&old))
        }
        WindowChange::Remove {
            old_index,
            version,
            reason,
            ..
        } => {
            let row = remove(rows, old_index)?;
            let bytes = row_bytes(&row);
            let change = ResultChange::Remove {
                old_index: Some(old_index),
                row,
                version,
                reason,
            };
            (change, bytes)
        }
    })
}

/// The row with only its `_id`; `None` if that saves little.
fn without_body(row: &ResultRow) -> Option<ResultRow> {
    let body = row.id();
    (body.len() < row.body.len()).then(|| ResultRow {
        body,
        key: Arc::clone(&row.key),
        ..*row
    })
}

fn remove(rows: &mut Vec<Arc<ResultRow>>, index: u32) -> Option<Arc<ResultRow>> {
    let index = index as usize;
    (index < rows.len()).then(|| rows.remove(index))
}

/// Why a row is no longer there: its version then, and whether it was deleted.
pub(super) type Leave<'l> = dyn Fn(&ResultRow) -> (u64, RemovalReason) + 'l;

/// The changes that lead from one result to another of the same query.
pub(super) fn difference(
    old: &[Arc<ResultRow>],
    new: &ResultRows,
    leave: &Leave<'_>,
) -> Vec<ResultChange> {
    match &new.order {
        ResultOrder::Keyed(new) => keyed(old, new, leave),
        ResultOrder::Window(new) => {
            let mut rows = ResultRows::window(old.to_vec());
            let steps = steps(old, new, leave);
            steps
                .into_iter()
                .filter_map(|step| rows.step(step))
                .collect()
        }
    }
}

fn keyed(
    old: &[Arc<ResultRow>],
    new: &BTreeMap<Arc<[u8]>, Arc<ResultRow>>,
    leave: &Leave<'_>,
) -> Vec<ResultChange> {
    let mut changes = Vec::new();
    let before: BTreeMap<&[u8], u64> = old.iter().map(|row| (&*row.key, row.version)).collect();
    for row in old {
        if !new.contains_key(&row.key) {
            let (version, reason) = leave(row);
            changes.push(ResultChange::Remove {
                old_index: None,
                row: Arc::clone(row),
                version,
                reason,
            });
        }
    }
    for row in new.values() {
        let (index, row) = (None, Arc::clone(row));
        match before.get(&*row.key) {
            None => changes.push(ResultChange::Add { index, row }),
            Some(&version) if version != row.version => {
                changes.push(ResultChange::Stay { index, row });
            }
            Some(_) => {}
        }
    }
    changes
}
