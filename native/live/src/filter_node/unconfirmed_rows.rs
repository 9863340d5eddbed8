//! Rows that a subscriber brought when it joined a query, and whose after-images the node has not
//! handled.
//!
//! Whether other subscribers have such a row is unknown before its after-image arrives, so the row
//! alone does not make the document a member: with the after-image the document enters the query
//! for all who do not have it, as it would have without the new subscriber. If a higher version
//! arrives first, the new subscriber has the lower one and others may have none: both are notified
//! ([`crate::message::NodeEvent::Match`]).

use std::collections::VecDeque;
use std::sync::Arc;

use crate::message::AfterImage;
use crate::snapshot::PgSnapshot;

use super::incremental_map::{DocumentId, IncrementalMap};
use super::queries::QueryHandle;

/// The subscribers that joined with one registration.
#[derive(Debug)]
struct JoinedMembers {
    number: u64,
    member: QueryHandle,
    /// What they have seen. A tick that covers it follows all after-images of their rows except
    /// those with unknown content.
    snapshot: PgSnapshot,
    documents: Vec<DocumentId>,
}

/// A document as brought by one registration.
#[derive(Debug)]
struct RegisteredRow {
    joined: u64,
    member: QueryHandle,
    version: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UnconfirmedRows {
    rows: IncrementalMap<Vec<RegisteredRow>>,
    documents: usize,
    joined: VecDeque<JoinedMembers>,
    /// How many subscribers joined with such rows.
    count: u64,
}

impl UnconfirmedRows {
    /// Records rows, by key and version, in which a registration is ahead of the node.
    pub(super) fn join(
        &mut self,
        member: QueryHandle,
        collection: [u8; 16],
        snapshot: &PgSnapshot,
        rows: &[(Arc<[u8]>, u64)],
    ) {
        if rows.is_empty() {
            return;
        }
        self.count += 1;
        let mut documents = Vec::with_capacity(rows.len());
        for (key, version) in rows {
            let name = self.rows.name(collection, key);
            let known = self.rows.get_or_insert_with(name.clone(), Vec::new);
            self.documents += usize::from(known.is_empty());
            known.push(RegisteredRow {
                joined: self.count,
                member,
                version: *version,
            });
            documents.push(name);
        }
        self.joined.push_back(JoinedMembers {
            number: self.count,
            member,
            snapshot: snapshot.clone(),
            documents,
        });
    }

    /// Takes an after-image that is being handled. Returns the queries that a subscriber joined
    /// with a lower version that was not handled.
    pub(super) fn handled(&mut self, image: &AfterImage) -> Vec<QueryHandle> {
        if self.documents == 0 {
            return Vec::new();
        }
        let name = self.rows.name(image.collection, &image.key);
        let Some(rows) = self.rows.get_mut(&name) else {
            return Vec::new();
        };
        let passed = rows.iter().filter(|row| row.version < image.version);
        let mut passed: Vec<QueryHandle> = passed.map(|row| row.member).collect();
        passed.dedup();
        self.retain(&name, |row| row.version > image.version);
        passed
    }

    fn retain(&mut self, name: &DocumentId, stays: impl FnMut(&RegisteredRow) -> bool) {
        if let Some(rows) = self.rows.get_mut(name) {
            rows.retain(stays);
            if rows.is_empty() {
                self.rows.remove(name);
                self.documents -= 1;
            }
        }
    }

    /// Forgets rows of registrations that `complete`, a tick's snapshot, covers, unless the node
    /// must remember that other subscribers lack them.
    pub(super) fn release(
        &mut self,
        complete: &PgSnapshot,
        mut keeps: impl FnMut(&DocumentId, QueryHandle) -> bool,
    ) {
        for mut joined in std::mem::take(&mut self.joined) {
            if complete.covers(&joined.snapshot) {
                let (number, member) = (joined.number, joined.member);
                joined.documents.retain(|name| {
                    let keeps = keeps(name, member);
                    self.retain(name, |row| keeps || row.joined != number);
                    keeps && self.has(name, number)
                });
            }
            if !joined.documents.is_empty() {
                self.joined.push_back(joined);
            }
        }
    }

    fn has(&mut self, name: &DocumentId, number: u64) -> bool {
        let rows = self.rows.get_mut(name);
        rows.is_some_and(|rows| rows.iter().any(|row| row.joined == number))
    }
}
