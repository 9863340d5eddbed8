//! Changes that are coalesced for one subscription while it is throttled or reads too slowly.
//!
//! Every change that is not sent is recorded against the result that the client has. When sending
//! resumes, the difference between that result and the current one is sent instead.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::message::{Gone, Row};

use super::change::{Change, Leave, Listed, Rows, bytes_of, difference};
use super::memory::KEY_BYTES;

/// What has happened to one document since coalescing began.
#[derive(Debug)]
pub(super) struct CoalescedDocument {
    /// The version that the client has, or a later one. None: it does not have the document.
    base: Option<Arc<Row>>,
    /// Whether `base` is exactly the version that the client has.
    exact: bool,
    /// The version and the kind of the last removal.
    removal: Option<(u64, Gone)>,
}

/// See the module.
#[derive(Debug)]
pub(super) enum CoalescedChanges {
    /// Of an unsorted result, the documents that have changed, by key.
    Documents(BTreeMap<Arc<[u8]>, CoalescedDocument>),
    /// Of a sorted result, the whole window that the client has.
    Window(Arc<Listed>),
}

impl CoalescedChanges {
    /// Begins to coalesce for a client that has exactly these rows.
    pub(super) fn since(rows: &Rows) -> Self {
        if rows.is_window() {
            Self::Window(rows.list())
        } else {
            Self::Documents(BTreeMap::new())
        }
    }

    /// The bytes that it takes beyond what it shares with the query's result.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Documents(documents) => {
                let bases = documents.values().filter_map(|one| one.base.as_deref());
                KEY_BYTES * documents.len() + bases.map(bytes_of).sum::<usize>()
            }
            Self::Window(_) => 0,
        }
    }

    /// The window that it keeps, of a sorted result.
    pub(super) fn listed(&self) -> Option<&Arc<Listed>> {
        match self {
            Self::Documents(_) => None,
            Self::Window(listed) => Some(listed),
        }
    }

    /// Records changes that are not sent to the client.
    pub(super) fn record(&mut self, group: &[Change]) {
        let Self::Documents(documents) = self else {
            return;
        };
        for change in group {
            match change {
                Change::Add { row, .. } => {
                    let new = CoalescedDocument {
                        base: None,
                        exact: true,
                        removal: None,
                    };
                    documents.entry(Arc::clone(&row.key)).or_insert(new);
                }
                Change::Stay { row, .. } | Change::Move { row, .. } => {
                    let new = CoalescedDocument {
                        base: Some(Arc::clone(row)),
                        exact: false,
                        removal: None,
                    };
                    documents.entry(Arc::clone(&row.key)).or_insert(new);
                }
                Change::Remove {
                    row, version, gone, ..
                } => record_removal(documents, row, (*version, *gone)),
            }
        }
    }

    /// Returns the changes that lead from the client's result to the current one.
    pub(super) fn diff_to(self, rows: &Rows, leave: &Leave<'_>) -> Vec<Change> {
        match self {
            Self::Window(base) => difference(&base.rows, rows, leave),
            Self::Documents(documents) => documents
                .into_iter()
                .filter_map(|(key, document)| change(document, rows.get(&key)))
                .collect(),
        }
    }
}

fn record_removal(
    documents: &mut BTreeMap<Arc<[u8]>, CoalescedDocument>,
    row: &Arc<Row>,
    removal: (u64, Gone),
) {
    let new = || CoalescedDocument {
        base: Some(Arc::clone(row)),
        exact: true,
        removal: None,
    };
    let document = documents.entry(Arc::clone(&row.key)).or_insert_with(new);
    document.removal = Some(removal);
    if document.base.is_none() {
        // It was added and removed in between: the client sees no change.
        documents.remove(&row.key);
    }
}

fn change(document: CoalescedDocument, now: Option<&Arc<Row>>) -> Option<Change> {
    let index = None;
    match (document.base, now) {
        (None, None) => None,
        (None, Some(row)) => {
            let row = Arc::clone(row);
            Some(Change::Add { index, row })
        }
        (Some(base), Some(row)) => {
            let same = document.exact && base.version == row.version;
            let row = Arc::clone(row);
            (!same).then_some(Change::Stay { index, row })
        }
        (Some(row), None) => {
            let (version, gone) = document.removal.unwrap_or((row.version, Gone::Left));
            Some(Change::Remove {
                old_index: None,
                row,
                version,
                gone,
            })
        }
    }
}
