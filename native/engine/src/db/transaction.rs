//! Transactions: the first to commit wins.
//!
//! A transaction reads from a snapshot and buffers its writes. It commits unless one of the keys
//! that it wrote, or read for update, was written by another writer since. Merges never conflict. A
//! transaction older than ten seconds cannot commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::snapshots::DbSnapshot;
use super::{CommitState, DbCore, Keyspace};
use crate::db::batch::WriteBatch;
use crate::error::{Error, Result};
use crate::key::{Millis, Sequence};
use crate::value::ValueBytes;
use crate::wal::Durability;

/// The maximum duration of a transaction, in milliseconds.
const LONGEST_TRANSACTION: Millis = 10_000;

/// What a transaction did to a key, in order; only merges depend on the previous value.
#[derive(Debug)]
struct KeyChange {
    base: Base,
    operands: Vec<Vec<u8>>,
}

/// The base of a transaction's operands for a key.
#[derive(Debug)]
enum Base {
    /// The previous value.
    Unchanged,
    Put(Vec<u8>),
    Deleted,
}

/// Reads and writes that are committed together, or not at all.
#[derive(Debug)]
pub struct DbTransaction {
    core: Arc<DbCore>,
    snapshot: DbSnapshot,
    /// The sequence from which conflicts are detected.
    begun_at: Sequence,
    until: Millis,
    changes: BTreeMap<(u64, Vec<u8>), (Keyspace, KeyChange)>,
    /// Keys that must not be written by others.
    guarded: BTreeSet<(u64, Vec<u8>)>,
    /// Written with the rest, and invisible until then.
    blind: WriteBatch,
}

impl DbTransaction {
    pub(crate) fn begin(core: &Arc<DbCore>) -> Result<Self> {
        let begun_at = {
            let mut commit = core.commit.lock();
            let at = commit.stalled_behind.unwrap_or(commit.next_sequence - 1);
            commit.recent.begin(at);
            at
        };
        // From here on all writes are recorded, and earlier ones are waited for.
        if core.publisher.wait_for(begun_at).is_err() {
            core.commit.lock().recent.end(begun_at);
            return Err(core.poisoned());
        }
        let snapshot = DbSnapshot::new(core);
        Ok(Self {
            until: snapshot.time().saturating_add(LONGEST_TRANSACTION),
            core: Arc::clone(core),
            snapshot,
            begun_at,
            changes: BTreeMap::new(),
            guarded: BTreeSet::new(),
            blind: WriteBatch::new(),
        })
    }

    /// The snapshot that it reads from.
    pub fn snapshot(&self) -> &DbSnapshot {
        &self.snapshot
    }

    /// The value of a key, with this transaction's changes.
    pub fn get(&self, keyspace: &Keyspace, key: &[u8]) -> Result<Option<ValueBytes>> {
        let change = self
            .changes
            .get(&(keyspace.id(), key.to_vec()))
            .map(|(_, change)| change);
        let Some(change) = change else {
            return self.core.get(keyspace, key, Some(&self.snapshot));
        };
        let below = match &change.base {
            Base::Put(value) => Some(ValueBytes::from(value.clone())),
            Base::Deleted => None,
            Base::Unchanged => self.core.get(keyspace, key, Some(&self.snapshot))?,
        };
        if change.operands.is_empty() {
            return Ok(below);
        }
        let merge = super::point_lookup::merge_of(keyspace.options())?;
        let operands: Vec<&[u8]> = change.operands.iter().map(Vec::as_slice).collect();
        Ok(Some(merge.full(key, below.as_deref(), &operands).into()))
    }

    /// The value of a key, which must not be written by others before the commit.
    pub fn get_for_update(
        &mut self,
        keyspace: &Keyspace,
        key: &[u8],
    ) -> Result<Option<ValueBytes>> {
        self.guarded.insert((keyspace.id(), key.to_vec()));
        self.get(keyspace, key)
    }

    /// Sets a key to a value.
    pub fn put(&mut self, keyspace: &Keyspace, key: &[u8], value: &[u8]) {
        self.replace(keyspace, key, Base::Put(value.to_vec()));
    }

    /// Deletes a key.
    pub fn delete(&mut self, keyspace: &Keyspace, key: &[u8]) {
        self.replace(keyspace, key, Base::Deleted);
    }

    /// Adds a merge operand to a key. This never conflicts.
    pub fn merge(&mut self, keyspace: &Keyspace, key: &[u8], operand: &[u8]) {
        self.change(keyspace, key).operands.push(operand.to_vec());
    }

    /// Adds writes that never conflict, and that its own reads do not see.
    pub fn write_blindly(&mut self, batch: &WriteBatch) {
        self.blind.extend(batch);
    }

    fn replace(&mut self, keyspace: &Keyspace, key: &[u8], base: Base) {
        self.guarded.insert((keyspace.id(), key.to_vec()));
        let change = self.change(keyspace, key);
        change.base = base;
        change.operands.clear();
    }

    fn change(&mut self, keyspace: &Keyspace, key: &[u8]) -> &mut KeyChange {
        let empty = || {
            let change = KeyChange {
                base: Base::Unchanged,
                operands: Vec::new(),
            };
            (keyspace.clone(), change)
        };
        &mut self
            .changes
            .entry((keyspace.id(), key.to_vec()))
            .or_insert_with(empty)
            .1
    }

    /// Writes all changes, unless there is a conflict; returns the last sequence.
    pub fn commit(self, durability: Durability) -> Result<Sequence> {
        let batch = self.prepare()?;
        if batch.is_empty() {
            return self.commit_nothing();
        }
        self.core
            .write(batch, durability, |commit| self.check(commit))
    }

    /// Its writes, if it has not taken too long.
    pub(super) fn prepare(&self) -> Result<WriteBatch> {
        if self.core.time.now() > self.until {
            return Err(Error::Conflict {
                what: "the transaction took longer than ten seconds".into(),
            });
        }
        Ok(self.batch())
    }

    /// Commits a transaction without writes.
    pub(super) fn commit_nothing(&self) -> Result<Sequence> {
        let commit = self.core.commit.lock();
        self.check(&commit)?;
        Ok(self.snapshot.sequence())
    }

    fn batch(&self) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for ((_, key), (keyspace, change)) in &self.changes {
            match &change.base {
                Base::Put(value) => batch.put(keyspace, key, value),
                Base::Deleted => batch.delete(keyspace, key),
                Base::Unchanged => {}
            }
            for operand in &change.operands {
                batch.merge(keyspace, key, operand);
            }
        }
        batch.extend(&self.blind);
        batch
    }

    pub(super) fn check(&self, commit: &CommitState) -> Result<()> {
        let since = self.snapshot.sequence();
        let lost = self
            .guarded
            .iter()
            .find(|(keyspace, key)| commit.recent.wrote(*keyspace, key, since));
        match lost {
            None => Ok(()),
            Some((_, key)) => Err(Error::Conflict {
                what: format!(
                    "key {:?} was written by another transaction",
                    key.escape_ascii().to_string()
                ),
            }),
        }
    }
}

impl Drop for DbTransaction {
    fn drop(&mut self) {
        self.core.commit.lock().recent.end(self.begun_at);
    }
}
