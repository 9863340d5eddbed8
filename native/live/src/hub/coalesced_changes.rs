//! Changes that are coalesced for one subscription while it is throttled or reads too slowly.
//!
//! Every change that is not sent is recorded against the result that the client has. When sending
//! resumes, the difference between that result and the current one is sent instead.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::message::{RemovalReason, ResultRow};

use super::change::{Leave, ResultChange, ResultList, ResultRows, difference};
use super::sizes::{KEY_BYTES, row_bytes};

/// What has happened to one document since coalescing began.
#[derive(Debug)]
pub(super) struct CoalescedDocument {
    /// The version that the client has, or a later one. None: it does not have the document.
    base: Option<Arc<ResultRow>>,
    /// Whether `base` is exactly the version that the client has.
    exact: bool,
    /// The version and the kind of the last removal.
    removal: Option<(u64, RemovalReason)>,
}

/// See the module.
#[derive(Debug)]
pub(super) enum CoalescedChanges {
    /// Of an unsorted result, the documents that have changed, by key.
    Documents(BTreeMap<Arc<[u8]>, CoalescedDocument>),
    /// Of a sorted result, the whole window that the client has.
    Window(Arc<ResultList>),
}

impl CoalescedChanges {
    /// Begins to coalesce for a client that has exactly these rows.
    pub(super) fn since(rows: &ResultRows) -> Self {
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
                KEY_BYTES * documents.len() + bases.map(row_bytes).sum::<usize>()
            }
            Self::Window(_) => 0,
        }
    }

    /// The window that it keeps, of a sorted result.
    pub(super) fn listed(&self) -> Option<&Arc<ResultList>> {
        match self {
            Self::Documents(_) => None,
            Self::Window(listed) => Some(listed),
        }
    }

    /// Records changes that are not sent to the client.
    pub(super) fn record(&mut self, group: &[ResultChange]) {
        let Self::Documents(documents) = self else {
            return;
        };
        for change in group {
            match change {
                ResultChange::Add { row, .. } => {
                    let new = CoalescedDocument {
                        base: None,
                        exact: true,
                        removal: None,
                    };
                    documents.entry(Arc::clone(&row.key)).or_insert(new);
                }
                ResultChange::Stay { row, .. } | ResultChange::Move { row, .. } => {
                    let new = CoalescedDocument {
                        base: Some(Arc::clone(row)),
                        exact: false,
                        removal: None,
                    };
                    documents.entry(Arc::clone(&row.key)).or_insert(new);
                }
                ResultChange::Remove {
                    row,
                    version,
                    reason,
                    ..
                } => record_removal(documents, row, (*version, *reason)),
            }
        }
    }

    /// Returns the changes that lead from the client's result to the current one.
    pub(super) fn diff_to(self, rows: &ResultRows, leave: &Leave<'_>) -> Vec<ResultChange> {
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
    row: &Arc<ResultRow>,
    removal: (u64, RemovalReason),
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

fn change(document: CoalescedDocument, now: Option<&Arc<ResultRow>>) -> Option<ResultChange> {
    let index = None;
    match (document.base, now) {
        (None, None) => None,
        (None, Some(row)) => {
            let row = Arc::clone(row);
            Some(ResultChange::Add { index, row })
        }
        (Some(base), Some(row)) => {
            let same = document.exact && base.version == row.version;
            let row = Arc::clone(row);
            (!same).then_some(ResultChange::Stay { index, row })
        }
        (Some(row), None) => {
            let (version, reason) = document
                .removal
                .unwrap_or((row.version, RemovalReason::Left));
            Some(ResultChange::Remove {
                old_index: None,
                row,
                version,
                reason,
            })
        }
    }
}
