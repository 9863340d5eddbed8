//! Rows with which somebody joined a query, and whose after-images the node has not handled.
//!
//! Whether anybody else has such a row is not known before its after-image comes, so that the row is
//! no member by itself: with its after-image the document enters the query for all who do not have
//! it, as it would have without those who joined. If a higher version comes first, those who joined
//! have the lower one and others may have none: both are told ([`crate::message::NodeEvent::Match`]).

use std::collections::VecDeque;
use std::sync::Arc;

use crate::message::AfterImage;
use crate::snapshot::PgSnapshot;

use super::incremental_map::{DocumentId, IncrementalMap};
use super::queries::QueryHandle;

/// Those who joined with one registration.
#[derive(Debug)]
struct JoinedMembers {
    number: u64,
    member: QueryHandle,
    /// What they have seen. A tick that covers it stands behind all after-images of their rows but
    /// those of which nobody knows the content.
    snapshot: PgSnapshot,
    documents: Vec<DocumentId>,
}

/// A document as one registration brought it.
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
    /// How many joined with such rows.
    count: u64,
}

impl UnconfirmedRows {
    /// Notes rows, by key and version, that a registration has ahead of the node.
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

    /// Takes an after-image that is handled now. Returns the queries that somebody joined with a
    /// lower version which was not.
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

    /// Forgets rows of registrations that `complete`, a tick's snapshot, covers, unless it has to be
    /// kept in mind that nobody else has them.
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
