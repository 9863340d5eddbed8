//! What a client holds, once all that waits has been sent, while changes are put together for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::message::{Gone, Row};

use super::change::{Change, Leave, Listed, Rows, bytes_of, difference};
use super::memory::KEY_BYTES;

/// What happened to a document meanwhile.
#[derive(Debug)]
pub(super) struct Touched {
    /// What the client holds of it, or a later version; none: nothing.
    held: Option<Arc<Row>>,
    /// Whether `held` is exactly what the client holds.
    exact: bool,
    /// The last removal.
    left: Option<(u64, Gone)>,
}

/// See the module.
#[derive(Debug)]
pub(super) enum Held {
    /// Of an unsorted result, what differs: by key.
    Touched(BTreeMap<Arc<[u8]>, Touched>),
    /// Of a sorted one, the whole window.
    Window(Arc<Listed>),
}

impl Held {
    /// The client holds all of this.
    pub(super) fn all(rows: &Rows) -> Self {
        if rows.is_window() {
            Self::Window(rows.list())
        } else {
            Self::Touched(BTreeMap::new())
        }
    }

    /// What it takes by itself, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Touched(touched) => {
                let held = touched.values().filter_map(|one| one.held.as_deref());
                KEY_BYTES * touched.len() + held.map(bytes_of).sum::<usize>()
            }
            Self::Window(_) => 0,
        }
    }

    /// The rows that it holds as they were at one moment.
    pub(super) fn listed(&self) -> Option<&Arc<Listed>> {
        match self {
            Self::Touched(_) => None,
            Self::Window(listed) => Some(listed),
        }
    }

    /// Keeps in mind what changes without the client being told.
    pub(super) fn miss(&mut self, group: &[Change]) {
        let Self::Touched(touched) = self else {
            return;
        };
        for change in group {
            match change {
                Change::Add { row, .. } => {
                    let new = Touched {
                        held: None,
                        exact: true,
                        left: None,
                    };
                    touched.entry(Arc::clone(&row.key)).or_insert(new);
                }
                Change::Stay { row, .. } | Change::Move { row, .. } => {
                    let new = Touched {
                        held: Some(Arc::clone(row)),
                        exact: false,
                        left: None,
                    };
                    touched.entry(Arc::clone(&row.key)).or_insert(new);
                }
                Change::Remove {
                    row, version, gone, ..
                } => remove(touched, row, (*version, *gone)),
            }
        }
    }

    /// What leads from here to the current result.
    pub(super) fn until(self, rows: &Rows, leave: &Leave<'_>) -> Vec<Change> {
        match self {
            Self::Window(held) => difference(&held.rows, rows, leave),
            Self::Touched(touched) => touched
                .into_iter()
                .filter_map(|(key, document)| change(document, rows.get(&key)))
                .collect(),
        }
    }
}

fn remove(touched: &mut BTreeMap<Arc<[u8]>, Touched>, row: &Arc<Row>, left: (u64, Gone)) {
    let new = || Touched {
        held: Some(Arc::clone(row)),
        exact: true,
        left: None,
    };
    let known = touched.entry(Arc::clone(&row.key)).or_insert_with(new);
    known.left = Some(left);
    if known.held.is_none() {
        // It came and went: as if nothing had been.
        touched.remove(&row.key);
    }
}

fn change(document: Touched, now: Option<&Arc<Row>>) -> Option<Change> {
    let index = None;
    match (document.held, now) {
        (None, None) => None,
        (None, Some(row)) => {
            let row = Arc::clone(row);
            Some(Change::Add { index, row })
        }
        (Some(held), Some(row)) => {
            let same = document.exact && held.version == row.version;
            let row = Arc::clone(row);
            (!same).then_some(Change::Stay { index, row })
        }
        (Some(row), None) => {
            let (version, gone) = document.left.unwrap_or((row.version, Gone::Left));
            Some(Change::Remove {
                old_index: None,
                row,
                version,
                gone,
            })
        }
    }
}
