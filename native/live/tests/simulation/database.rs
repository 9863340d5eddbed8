//! PostgreSQL, reduced to what matters here: transactions that commit in any order, rows locked by
//! their writers, snapshots, access rules, and crashes that undo what was not committed.

use std::collections::BTreeMap;
use std::sync::Arc;

use rillbase_live::message::{AfterImage, ImageContent, ResultRow};
use rillbase_live::snapshot::PgSnapshot;
use rillbase_query::bson::{DocumentWriter, ValueRef};

use super::COLLECTION;

/// A committed version of a document; deleted without `n`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Version {
    pub(crate) version: u64,
    /// The transaction that wrote it.
    pub(crate) xid: u64,
    pub(crate) n: Option<i64>,
    /// The version of the access rules that its transaction read.
    pub(crate) rules: u64,
    pub(crate) at_us: u64,
    pub(crate) created_ms: i64,
    pub(crate) updated_ms: i64,
}

#[derive(Debug, Default)]
struct Open {
    writes: BTreeMap<u8, Option<i64>>,
    batch: bool,
    /// The rules in force when it first wrote.
    rules: u64,
}

/// The database.
#[derive(Debug)]
pub(crate) struct Database {
    next: u64,
    open: BTreeMap<u64, Open>,
    /// Committed versions by document, ascending.
    documents: BTreeMap<u8, Vec<Version>>,
    /// Documents and versions of atomic batches, by transaction.
    pub(crate) batches: BTreeMap<u64, Vec<(u8, u64)>>,
    /// The version of the access rules in force, from 1.
    pub(crate) rules: u64,
    pub(crate) rules_since_us: u64,
    /// Incremented at each crash.
    pub(crate) life: u8,
    /// Connections fail before this time.
    pub(crate) away_until_us: u64,
}

impl Database {
    pub(crate) fn new() -> Self {
        Self {
            next: 10,
            open: BTreeMap::new(),
            documents: BTreeMap::new(),
            batches: BTreeMap::new(),
            rules: 1,
            rules_since_us: 0,
            life: 1,
            away_until_us: 0,
        }
    }

    pub(crate) fn begin(&mut self, batch: bool) {
        let open = Open {
            batch,
            ..Open::default()
        };
        self.open.insert(self.next, open);
        self.next += 1;
    }

    pub(crate) fn open(&self) -> Vec<u64> {
        self.open.keys().copied().collect()
    }

    /// Writes to a document unless another transaction has it locked. An update may find nothing.
    pub(crate) fn write(&mut self, xid: u64, key: u8, n: Option<i64>) {
        let locked = self
            .open
            .iter()
            .any(|(other, open)| *other != xid && open.writes.contains_key(&key));
        let exists = self.latest(key).is_some_and(|latest| latest.n.is_some());
        if locked || (n.is_none() && !exists) {
            return;
        }
        let rules = self.rules;
        if let Some(open) = self.open.get_mut(&xid) {
            if open.writes.is_empty() {
                open.rules = rules;
            }
            open.writes.insert(key, n);
        }
    }

    /// Commits; the after-images are what a publisher would send.
    pub(crate) fn commit(&mut self, xid: u64, partitions: u16, now_us: u64) -> Vec<AfterImage> {
        let Some(open) = self.open.remove(&xid) else {
            return Vec::new();
        };
        let mut parts: Vec<u16> = Vec::new();
        if open.batch {
            let keys = open.writes.keys();
            parts = keys.map(|key| partition(*key, partitions)).collect();
            parts.sort_unstable();
            parts.dedup();
        }
        let parts: Arc<[u16]> = parts.into();
        // As in PostgreSQL, the time of a write is when its transaction began: later writes may
        // have lower times.
        let written_us = i64::try_from(now_us.saturating_sub(xid % 5 * 40_000)).unwrap_or(0);
        let updated_ms = written_us.div_euclid(1_000);
        let mut images = Vec::new();
        for (key, n) in open.writes {
            let versions = self.documents.entry(key).or_default();
            let version = versions.last().map_or(1, |last| last.version + 1);
            let existing = versions.last().filter(|last| last.n.is_some());
            let created_ms = existing.map_or(updated_ms, |last| last.created_ms);
            versions.push(Version {
                version,
                xid,
                n,
                rules: open.rules,
                at_us: now_us,
                created_ms,
                updated_ms,
            });
            images.push(AfterImage {
                xid,
                tenant: [1; 16],
                collection: COLLECTION,
                version,
                rules_version: open.rules,
                created_ms,
                written_us,
                key: name(key),
                content: content(key, n, version),
                parts: Arc::clone(&parts),
            });
        }
        if open.batch {
            let members = images
                .iter()
                .map(|image| (number(&image.key), image.version));
            self.batches.insert(xid, members.collect());
        }
        images
    }

    pub(crate) fn abort(&mut self, xid: u64) {
        self.open.remove(&xid);
    }

    /// Changes the access rules.
    pub(crate) fn change_rules(&mut self, now_us: u64) {
        self.rules += 1;
        self.rules_since_us = now_us;
    }

    /// All connections are lost, and uncommitted writes are undone. Transaction ids continue.
    pub(crate) fn crash(&mut self, until_us: u64) {
        self.open.clear();
        self.life += 1;
        self.away_until_us = until_us;
    }

    pub(crate) fn is_away(&self, now_us: u64) -> bool {
        now_us < self.away_until_us
    }

    pub(crate) fn snapshot(&self) -> PgSnapshot {
        PgSnapshot {
            xmin: self.open.keys().next().copied().unwrap_or(self.next),
            xmax: self.next,
            running: self.open.keys().copied().collect(),
        }
    }

    pub(crate) fn latest(&self, key: u8) -> Option<Version> {
        self.documents.get(&key)?.last().copied()
    }

    pub(crate) fn version(&self, key: u8, version: u64) -> Option<Version> {
        let mut versions = self.documents.get(&key)?.iter();
        versions.find(|one| one.version == version).copied()
    }

    /// The newest version of each document that ever existed.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u8, Version)> {
        let last = |(key, versions): (&u8, &Vec<Version>)| Some((*key, *versions.last()?));
        self.documents.iter().filter_map(last)
    }

    /// The current rows, with bodies.
    pub(crate) fn rows(&self) -> Vec<ResultRow> {
        let rows = self.all().filter(|(_, version)| version.n.is_some());
        rows.map(|(key, version)| ResultRow {
            key: name(key),
            version: version.version,
            created_ms: version.created_ms,
            updated_ms: version.updated_ms,
            body: body(key, version.n, version.version),
        })
        .collect()
    }
}

pub(crate) fn partition(key: u8, partitions: u16) -> u16 {
    let hash = rillbase_documents::id::key_hash(&name(key)).unsigned_abs();
    u16::try_from(hash % u32::from(partitions)).unwrap_or(0)
}

/// The key of a document.
pub(crate) fn name(number: u8) -> Arc<[u8]> {
    let key = rillbase_documents::id::key(ValueRef::Int32(number.into()));
    key.unwrap_or_else(|refusal| panic!("{refusal:?}")).into()
}

/// The document of a key.
pub(crate) fn number(key: &[u8]) -> u8 {
    let found = (0..=u8::MAX).find(|number| *name(*number) == *key);
    found.unwrap_or_else(|| panic!("{key:?} is no key"))
}

/// The body of a version of a document: `v` is its version.
fn body(key: u8, n: Option<i64>, version: u64) -> Arc<[u8]> {
    let mut writer = DocumentWriter::new();
    writer.append("_id", ValueRef::Int32(key.into()));
    if let Some(n) = n {
        writer.append("n", ValueRef::Int64(n));
        writer.append("v", ValueRef::Int64(i64::try_from(version).unwrap_or(0)));
    }
    writer.finish().into()
}

fn content(key: u8, n: Option<i64>, version: u64) -> ImageContent {
    match n {
        Some(_) => ImageContent::Document(body(key, n, version)),
        None => ImageContent::Deleted(body(key, None, version)),
    }
}
