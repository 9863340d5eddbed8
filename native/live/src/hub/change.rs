//! A query's current result, and how it changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::message::{Gone, Row, WindowChange};
use crate::sort_node::steps;

/// One change of a result. Indexes are those of windows, at the moment of the step.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Add {
        index: Option<u32>,
        row: Arc<Row>,
    },
    Stay {
        index: Option<u32>,
        row: Arc<Row>,
    },
    Move {
        old_index: u32,
        index: u32,
        row: Arc<Row>,
    },
    /// `row` is what was shown last: the event names its `_id`.
    Remove {
        old_index: Option<u32>,
        row: Arc<Row>,
        version: u64,
        gone: Gone,
    },
}

/// The rows of a result, in order.
#[derive(Debug, Clone)]
pub(super) enum Rows {
    /// By key, which is the order of `_id`.
    Keyed(BTreeMap<Arc<[u8]>, Arc<Row>>),
    /// A window, in the order of its sort.
    Window(Vec<Arc<Row>>),
}

impl Rows {
    /// The rows of a registration. `offset` and `limit` cut a window out of them.
    pub(super) fn new(rows: Vec<Row>, window: Option<(u32, Option<u32>)>) -> Self {
        let rows = rows.into_iter().map(Arc::new);
        match window {
            None => Self::Keyed(rows.map(|row| (Arc::clone(&row.key), row)).collect()),
            Some((offset, limit)) => {
                let most = limit.map_or(usize::MAX, |limit| limit as usize);
                Self::Window(rows.skip(offset as usize).take(most).collect())
            }
        }
    }

    pub(super) fn list(&self) -> Vec<Arc<Row>> {
        match self {
            Self::Keyed(rows) => rows.values().cloned().collect(),
            Self::Window(rows) => rows.clone(),
        }
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Arc<Row>> {
        match self {
            Self::Keyed(rows) => rows.get(key),
            Self::Window(rows) => rows.iter().find(|row| *row.key == *key),
        }
    }

    /// Takes a row of an unsorted result in.
    pub(super) fn put(&mut self, row: Row) -> Option<Change> {
        let Self::Keyed(rows) = self else {
            return None;
        };
        let row = Arc::new(row);
        let index = None;
        Some(match rows.insert(Arc::clone(&row.key), Arc::clone(&row)) {
            None => Change::Add { index, row },
            Some(_) => Change::Stay { index, row },
        })
    }

    /// Takes a row of an unsorted result out.
    pub(super) fn take(&mut self, key: &[u8], version: u64, gone: Gone) -> Option<Change> {
        let Self::Keyed(rows) = self else {
            return None;
        };
        rows.remove(key).map(|row| Change::Remove {
            old_index: None,
            row,
            version,
            gone,
        })
    }

    /// Takes a step of a window.
    pub(super) fn step(&mut self, step: WindowChange) -> Option<Change> {
        let Self::Window(rows) = self else {
            return None;
        };
        match step {
            WindowChange::Add { index, row } => {
                let row = Arc::new(row);
                let place = (index as usize).min(rows.len());
                rows.insert(place, Arc::clone(&row));
                let index = Some(index);
                Some(Change::Add { index, row })
            }
            WindowChange::Change { index, row } => {
                let row = Arc::new(row);
                *rows.get_mut(index as usize)? = Arc::clone(&row);
                let index = Some(index);
                Some(Change::Stay { index, row })
            }
            WindowChange::Move {
                old_index,
                index,
                row,
            } => {
                let row = Arc::new(row);
                remove(rows, old_index)?;
                let place = (index as usize).min(rows.len());
                rows.insert(place, Arc::clone(&row));
                Some(Change::Move {
                    old_index,
                    index,
                    row,
                })
            }
            WindowChange::Remove {
                old_index,
                version,
                gone,
                ..
            } => {
                let row = remove(rows, old_index)?;
                Some(Change::Remove {
                    old_index: Some(old_index),
                    row,
                    version,
                    gone,
                })
            }
        }
    }
}

fn remove(rows: &mut Vec<Arc<Row>>, index: u32) -> Option<Arc<Row>> {
    let index = index as usize;
    (index < rows.len()).then(|| rows.remove(index))
}

/// Why a row is no longer there: its version then, and whether it was deleted.
pub(super) type Leave<'l> = dyn Fn(&Row) -> (u64, Gone) + 'l;

/// The changes that lead from one result to another of the same query.
pub(super) fn difference(old: &[Arc<Row>], new: &Rows, leave: &Leave<'_>) -> Vec<Change> {
    match new {
        Rows::Keyed(new) => keyed(old, new, leave),
        Rows::Window(new) => {
            let mut rows = Rows::Window(old.to_vec());
            let steps = steps(old, new, leave);
            steps
                .into_iter()
                .filter_map(|step| rows.step(step))
                .collect()
        }
    }
}

fn keyed(old: &[Arc<Row>], new: &BTreeMap<Arc<[u8]>, Arc<Row>>, leave: &Leave<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    let before: BTreeMap<&[u8], u64> = old.iter().map(|row| (&*row.key, row.version)).collect();
    for row in old {
        if !new.contains_key(&row.key) {
            let (version, gone) = leave(row);
            changes.push(Change::Remove {
                old_index: None,
                row: Arc::clone(row),
                version,
                gone,
            });
        }
    }
    for row in new.values() {
        let (index, row) = (None, Arc::clone(row));
        match before.get(&*row.key) {
            None => changes.push(Change::Add { index, row }),
            Some(&version) if version != row.version => changes.push(Change::Stay { index, row }),
            Some(_) => {}
        }
    }
    changes
}
