//! The commit queue: groups of writes of a collection, one after another.
//!
//! A group reads the rows that its writes may affect, decides all of them in memory, and becomes
//! one batch. It occupies the collection's queue until the batch is visible. So nothing changes
//! between reading and writing, no write is retried, and a key of a unique index that nobody had
//! when the group looked still has no owner when it is written.

use std::collections::{BTreeMap, HashMap, HashSet};

use parking_lot::MutexGuard;
use rillbase_documents::changes::{ChangedDocument, GroupChanges};
use rillbase_documents::columns::row_us;
use rillbase_documents::outcome::WriteResult;
use rillbase_documents::plan::{WriteCollection, WritePlan, WriteRequest};
use rillbase_documents::stage::{LockedRow, LockedRows};
use rillbase_documents::unique::{OwnedKey, OwnedKeys};
use rillbase_engine::{GroupResults, GroupTicket, GroupWrite, Millis, WriteBatch, WriteGroup};
use rillbase_query::bson::Document;

use crate::counters::encode_pair;
use crate::error::{Error, Result};
use crate::format::{
    DocumentHead, EntryForm, decode_document, document_key, encode_document, entry_key,
};
use crate::store::{Collections, InstalledCollection};

/// How long the version of a deleted document is stored with its key.
const TOMBSTONE_MS: Millis = 24 * 3_600_000;

/// A write of one collection.
#[derive(Debug, Clone)]
pub struct CollectionWrite {
    /// The collection's number.
    pub collection: u64,
    /// The version of the definition with which the request was made.
    pub write_version: u64,
    /// The operations. Their targets are the collection with number 0.
    pub request: WriteRequest,
}

/// The outcome of a write: refusals of its operations are part of the result.
pub type WriteOutcome = Result<WriteResult>;

/// The writes of one collection in a group of the engine.
#[derive(Debug)]
struct CollectionGroup {
    /// The positions of its writes.
    positions: Vec<usize>,
    batch: Option<WriteBatch>,
    ticket: Option<GroupTicket>,
    outcomes: Vec<WriteOutcome>,
}

/// Writes that were decided and occupy their collections' commit queues.
#[derive(Debug)]
pub struct StagedWrites<'a> {
    groups: Vec<CollectionGroup>,
    count: usize,
    _queues: Vec<MutexGuard<'a, ()>>,
}

impl GroupWrite for StagedWrites<'_> {
    type Outcome = Vec<WriteOutcome>;

    fn contribute<'g>(&'g mut self, group: &mut WriteGroup<'g>) {
        for own in &mut self.groups {
            own.ticket = own.batch.take().map(|batch| group.write(batch));
        }
    }

    /// The outcomes in the order of the writes.
    fn complete(self, results: &mut GroupResults) -> Vec<WriteOutcome> {
        let mut outcomes: Vec<WriteOutcome> = Vec::new();
        outcomes.resize_with(self.count, || Err(Error::NoCollection));
        for own in self.groups {
            let written = own.ticket.map(|ticket| results.take(ticket));
            let failure = written.and_then(std::result::Result::err);
            for (position, outcome) in own.positions.into_iter().zip(own.outcomes) {
                let slot = outcomes.get_mut(position);
                if let Some(slot) = slot {
                    *slot = match &failure {
                        // Nothing of the batch was written.
                        Some(error) if outcome.is_ok() => Err(error.clone().into()),
                        _ => outcome,
                    };
                }
            }
        }
        outcomes
    }
}

impl Collections {
    /// Decides writes. They are written by the group of the engine that they contribute to, and
    /// other writes of their collections wait until then.
    pub fn stage(&self, writes: Vec<CollectionWrite>) -> StagedWrites<'_> {
        let count = writes.len();
        let mut by_collection: BTreeMap<u64, Vec<(usize, CollectionWrite)>> = BTreeMap::new();
        for (position, write) in writes.into_iter().enumerate() {
            let of_collection = by_collection.entry(write.collection).or_default();
            of_collection.push((position, write));
        }
        let mut queues: Vec<usize> = by_collection
            .keys()
            .map(|one| self.queue_of(*one))
            .collect();
        queues.sort_unstable();
        queues.dedup();
        let locks = queues
            .into_iter()
            .filter_map(|queue| self.lock_queue(queue));
        let locks = locks.collect();
        let groups = by_collection.into_iter();
        StagedWrites {
            groups: groups
                .map(|(number, writes)| self.group(number, writes))
                .collect(),
            count,
            _queues: locks,
        }
    }

    fn group(&self, number: u64, writes: Vec<(usize, CollectionWrite)>) -> CollectionGroup {
        let positions: Vec<usize> = writes.iter().map(|(position, _)| *position).collect();
        let writes: Vec<CollectionWrite> = writes.into_iter().map(|(_, write)| write).collect();
        let count = writes.len();
        let decided = self.decide(number, writes);
        let (batch, outcomes) = decided
            .unwrap_or_else(|error| (None, (0..count).map(|_| Err(error.clone())).collect()));
        CollectionGroup {
            positions,
            batch,
            ticket: None,
            outcomes,
        }
    }

    fn decide(
        &self,
        number: u64,
        writes: Vec<CollectionWrite>,
    ) -> Result<(Option<WriteBatch>, Vec<WriteOutcome>)> {
        let installed = self.installed(number)?;
        let version = installed.definition.write_version;
        let stale = writes.iter().map(|write| write.write_version != version);
        let stale: Vec<bool> = stale.collect();
        let requests = writes.into_iter().zip(&stale);
        let requests = requests.filter(|(_, stale)| !**stale);
        let plan = WritePlan {
            collections: vec![WriteCollection {
                id: id_of(number),
                definition: installed.compiled.clone(),
            }],
            writes: requests.map(|(write, _)| write.request).collect(),
        };
        let now = self.db.now();
        let locked = self.rows(number, &plan, now)?;
        let changes = self.decided(&installed, &plan, &locked)?;
        let batch = self.batch(&installed, &locked, &changes, now);
        let mut decided = changes.ended.into_iter();
        let outcomes = stale.into_iter().map(|stale| {
            if stale {
                return Err(Error::Stale { installed: version });
            }
            let result = decided.next().flatten();
            result.ok_or(Error::Malformed("the outcome of a write"))
        });
        let outcomes = outcomes.collect();
        Ok(((!batch.is_empty()).then_some(batch), outcomes))
    }

    /// The rows that a plan may affect.
    fn rows(&self, number: u64, plan: &WritePlan, now: Millis) -> Result<LockedRows> {
        let documents = plan.keys(0, true);
        let keys: Vec<Vec<u8>> = documents
            .iter()
            .map(|document| document_key(number, document))
            .collect();
        let stored = self
            .db
            .multi_get(&self.entries, keys.iter().map(Vec::as_slice), None)?;
        let mut rows = HashMap::new();
        for (document, value) in documents.into_iter().zip(stored) {
            if let Some(value) = value {
                let (head, body) = decode_document(&value)?;
                let row = LockedRow {
                    version: head.version,
                    body: (!head.is_tombstone).then(|| body.to_vec()),
                    created_us: row_us(head.created_ms),
                };
                rows.insert(document.to_vec(), row);
            }
        }
        Ok(LockedRows {
            rows: vec![rows],
            floors: vec![self.floor(number, now)?],
            now_ms: millis(now),
        })
    }

    /// Decides a plan. If documents would get keys of unique indexes that others have, it is decided
    /// again with these, until no further ones are found.
    fn decided(
        &self,
        installed: &InstalledCollection,
        plan: &WritePlan,
        locked: &LockedRows,
    ) -> Result<GroupChanges> {
        if !installed.definition.has_unique() {
            return Ok(plan.apply(locked, &[], None));
        }
        let names = installed.definition.indexes.iter();
        let names = names.map(|index| (i64::from(index.number), index.name.clone()));
        let mut owned = OwnedKeys {
            names: names.collect(),
            keys: Vec::new(),
        };
        let mut looked_up = HashSet::new();
        loop {
            let changes = plan.apply(locked, &[], Some(&owned));
            let place = (installed.number, plan, locked.now_ms);
            if !self.look_up(place, &changes, (&mut owned, &mut looked_up))? {
                return Ok(changes);
            }
        }
    }

    /// Looks up the owners of keys that documents of a group were to get, each once. Returns whether one of them is
    /// another document.
    fn look_up(
        &self,
        (number, plan, now_ms): (u64, &WritePlan, i64),
        changes: &GroupChanges,
        (owned, looked_up): (&mut OwnedKeys, &mut HashSet<(i64, Vec<u8>)>),
    ) -> Result<bool> {
        let mut is_disputed = false;
        for requested in &changes.requested {
            let name = (requested.index, requested.key.clone());
            if !looked_up.insert(name) {
                continue;
            }
            let index = u32::try_from(requested.index).unwrap_or(0);
            let key = entry_key((number, index), EntryForm::Unique, &requested.key, &[]);
            let Some(owner) = self.db.get(&self.entries, &key)? else {
                continue;
            };
            is_disputed |= *owner != *requested.document;
            owned.keys.push(OwnedKey {
                index: requested.index,
                key: requested.key.clone(),
                collection: 0,
                hidden_from: self.hidden_from(number, plan, now_ms, &owner)?,
                document: owner.to_vec(),
            });
        }
        Ok(is_disputed)
    }

    /// The writes whose callers may not read a document.
    fn hidden_from(
        &self,
        number: u64,
        plan: &WritePlan,
        now_ms: i64,
        document: &[u8],
    ) -> Result<Vec<usize>> {
        let value = self
            .db
            .get(&self.entries, &document_key(number, document))?;
        let Some(value) = value else {
            return Ok(Vec::new());
        };
        let (_, body) = decode_document(&value)?;
        Ok(plan.hidden_from(0, Document::trusted(body), now_ms))
    }

    /// The batch of a group's changes. Entries are removed before others are added: a document may
    /// take a key that another one of the group gives up.
    fn batch(
        &self,
        installed: &InstalledCollection,
        locked: &LockedRows,
        changes: &GroupChanges,
        now: Millis,
    ) -> WriteBatch {
        let mut batch = WriteBatch::new();
        let documents: Vec<&ChangedDocument> = changes.documents.iter().flatten().collect();
        for changed in &documents {
            for entry in changed.removed() {
                if let Some((key, _)) = self.entry(installed, changed, entry) {
                    batch.delete(&self.entries, &key);
                }
            }
        }
        for changed in &documents {
            for entry in changed.added() {
                if let Some((key, value)) = self.entry(installed, changed, entry) {
                    batch.put(&self.entries, &key, &value);
                }
            }
        }
        let rows = locked.rows.first();
        let mut size = (0_i64, 0_i64);
        for changed in documents {
            let row = rows.and_then(|rows| rows.get(&changed.key));
            let before = row.and_then(|row| row.body.as_ref()).map(Vec::len);
            let after = changed.body.as_ref().map(|body| body.as_bytes().len());
            size = (
                size.0 + i64::from(after.is_some()) - i64::from(before.is_some()),
                size.1 + length(after) - length(before),
            );
            self.put_document(&mut batch, installed, changed, (changes, now));
        }
        if size != (0, 0) {
            let key = installed.number.to_be_bytes();
            batch.merge(&self.counts, &key, &encode_pair(size));
        }
        batch
    }

    /// The key and value of an entry.
    fn entry(
        &self,
        installed: &InstalledCollection,
        changed: &ChangedDocument,
        entry: &rillbase_documents::entry::IndexEntry,
    ) -> Option<(Vec<u8>, Vec<u8>)> {
        let number = u32::try_from(entry.index).ok()?;
        let form = installed.definition.index(number)?.form(entry.enforced);
        let place = (installed.number, number);
        let key = entry_key(place, form, &entry.key, &changed.key);
        let value = match form {
            EntryForm::Unique => changed.key.clone(),
            EntryForm::Composite => vec![u8::from(entry.ordering)],
        };
        Some((key, value))
    }

    fn put_document(
        &self,
        batch: &mut WriteBatch,
        installed: &InstalledCollection,
        changed: &ChangedDocument,
        (changes, now): (&GroupChanges, Millis),
    ) {
        let head = DocumentHead {
            is_tombstone: changed.body.is_none(),
            version: changed.version,
            rules_version: installed.definition.rules_version,
            created_ms: changes.created_ms(changed),
            updated_ms: changes.now_ms,
            ordinal: u32::try_from(batch.len()).unwrap_or(u32::MAX),
        };
        let key = document_key(installed.number, &changed.key);
        match &changed.body {
            Some(body) => {
                let value = encode_document(&head, body.as_bytes());
                batch.put(&self.entries, &key, &value);
            }
            None => {
                let id = changed.deleted_id.as_deref().unwrap_or_default();
                let value = encode_document(&head, id);
                let expiry = now.saturating_add(TOMBSTONE_MS);
                batch.put_expiring(&self.entries, &key, &value, expiry);
                self.raise_floor(batch, installed.number, (changed.version, expiry));
            }
        }
    }
}

fn length(body: Option<usize>) -> i64 {
    body.map_or(0, |length| i64::try_from(length).unwrap_or(i64::MAX))
}

fn millis(now: Millis) -> i64 {
    i64::try_from(now).unwrap_or(i64::MAX)
}

/// The collection's number as an id.
fn id_of(number: u64) -> [u8; 16] {
    let mut id = [0; 16];
    let (_, tail) = id.split_at_mut(8);
    tail.copy_from_slice(&number.to_be_bytes());
    id
}
