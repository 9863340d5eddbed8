//! An engine and its model.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use proptest::prelude::*;
use rillbase_engine::vfs::{MemoryVfs, Vfs};
use rillbase_engine::{
    Clock, Compression, Db, DbOptions, DbSnapshot, Durability, Expiry, Keyspace, KeyspaceOptions,
    ManualClock, Merge, Scan, Sequence, Strategy as Compaction, WriteBatch,
};

use crate::group_support::write_with_snapshot;

/// Appends operands to the value.
#[derive(Debug)]
struct Append;

impl Merge for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn full(&self, _key: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
        let mut value = below.unwrap_or_default().to_vec();
        for operand in operands {
            value.extend_from_slice(operand);
        }
        value
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(self.full(key, None, operands))
    }
}

/// Keyspace 0 has expiring puts, keyspace 1 has merges, keyspace 2 has keys that end with the
/// sequence of their write, which expire with all their versions.
const SPACES: usize = 3;
const NAMED: usize = 2;

/// One write.
#[derive(Debug, Clone)]
pub(crate) enum Write {
    Put(usize, u8, u8),
    Expiring(u8, u8, u8),
    Merge(u8, u8),
    Delete(usize, u8),
    DeleteRange(usize, u8, u8),
    Named(u8, u8, Option<u8>),
    /// Deletes one of the existing named entries.
    DeleteNamed(u8),
}

#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Batch(Vec<Write>),
    /// Writes, and keeps a snapshot directly after the write, in which nothing expires that had not
    /// expired before the clock advanced.
    Look(Vec<Write>, u8),
    Advance(u8),
    Snapshot,
    Release(u8),
    Flush,
    CompactDue,
    CompactAll,
    Reopen(Tuning),
    Get(usize, u8),
    Scan(usize, u8, u8),
    ScanExpired(usize),
    Walk(usize, u8, Vec<bool>),
    CheckSnapshot(u8),
}

/// Options that must not change results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    strategy: u8,
    block_bytes: usize,
    compression: u8,
    cache_bytes: usize,
    filter_bits: usize,
    memtable_bytes: usize,
    sub_compactions: usize,
}

pub(crate) fn tuning() -> impl Strategy<Value = Tuning> {
    let sizes = (
        prop::sample::select(vec![64_usize, 300, 4096]),
        prop::sample::select(vec![0_usize, 20_000, 1 << 20]),
        prop::sample::select(vec![600_usize, 3000, 20_000]),
    );
    (
        0..4_u8,
        sizes,
        0..3_u8,
        prop::sample::select(vec![0_usize, 10]),
        1..4_usize,
    )
        .prop_map(
            |(
                strategy,
                (block_bytes, cache_bytes, memtable_bytes),
                compression,
                filter_bits,
                sub_compactions,
            )| {
                Tuning {
                    strategy,
                    block_bytes,
                    compression,
                    cache_bytes,
                    filter_bits,
                    memtable_bytes,
                    sub_compactions,
                }
            },
        )
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        6 => (0..2_usize, any::<u8>(), any::<u8>()).prop_map(|(k, key, v)| Write::Put(k, key, v)),
        2 => (any::<u8>(), any::<u8>(), 0..40_u8).prop_map(|(key, v, t)| Write::Expiring(key, v, t)),
        4 => (any::<u8>(), any::<u8>()).prop_map(|(key, v)| Write::Merge(key, v)),
        3 => (0..2_usize, any::<u8>()).prop_map(|(k, key)| Write::Delete(k, key)),
        1 => (0..SPACES, any::<u8>(), any::<u8>())
            .prop_map(|(k, start, end)| Write::DeleteRange(k, start, end)),
        4 => (any::<u8>(), any::<u8>(), prop::option::of(0..40_u8))
            .prop_map(|(key, v, t)| Write::Named(key, v, t)),
        2 => any::<u8>().prop_map(Write::DeleteNamed),
    ]
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        30 => prop::collection::vec(write(), 1..6).prop_map(Operation::Batch),
        4 => (prop::collection::vec(write(), 1..6), 0..10_u8)
            .prop_map(|(writes, by)| Operation::Look(writes, by)),
        3 => (0..20_u8).prop_map(Operation::Advance),
        3 => Just(Operation::Snapshot),
        2 => any::<u8>().prop_map(Operation::Release),
        3 => Just(Operation::Flush),
        2 => Just(Operation::CompactDue),
        1 => Just(Operation::CompactAll),
        1 => tuning().prop_map(Operation::Reopen),
        6 => (0..2_usize, any::<u8>()).prop_map(|(k, key)| Operation::Get(k, key)),
        3 => (0..SPACES, any::<u8>(), any::<u8>()).prop_map(|(k, a, b)| Operation::Scan(k, a, b)),
        1 => (0..SPACES).prop_map(Operation::ScanExpired),
        2 => (0..SPACES, any::<u8>(), prop::collection::vec(any::<bool>(), 1..12))
            .prop_map(|(k, key, steps)| Operation::Walk(k, key, steps)),
        2 => any::<u8>().prop_map(Operation::CheckSnapshot),
    ]
}

/// One of a few keys, some of them prefixes of others, so that they are written repeatedly.
fn key(byte: u8) -> Vec<u8> {
    let number = byte % 48;
    let mut key = format!("k{:02}", number / 3).into_bytes();
    key.extend(std::iter::repeat_n(b'x', usize::from(number % 3) * 5));
    key
}

fn value(byte: u8) -> Vec<u8> {
    vec![byte; usize::from(byte % 40)]
}

type Map = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

/// The key of an entry that is named by its sequence.
fn named(prefix: u8, sequence: Sequence) -> Vec<u8> {
    let mut key = key(prefix);
    key.extend_from_slice(&(!sequence).to_be_bytes());
    key
}

/// The contents of the keyspaces at one time.
#[derive(Debug, Clone, Default)]
struct Model {
    maps: [Map; SPACES],
}

impl Model {
    /// The named entry that a number selects, if there is one.
    fn pick_named(&self, which: u8) -> Option<Vec<u8>> {
        let count = self.maps[NAMED].len();
        let at = usize::from(which).checked_rem(count)?;
        self.maps[NAMED].keys().nth(at).cloned()
    }

    fn apply(&mut self, write: &Write, now: u64, sequence: Sequence) {
        match *write {
            Write::Put(keyspace, at, byte) => {
                self.maps[keyspace].insert(key(at), (value(byte), None));
            }
            Write::Expiring(at, byte, ttl) => {
                self.maps[0].insert(key(at), (value(byte), Some(now + u64::from(ttl))));
            }
            Write::Merge(at, byte) => {
                let entry = self.maps[1].entry(key(at)).or_default();
                entry.0.extend_from_slice(&value(byte));
            }
            Write::Delete(keyspace, at) => {
                self.maps[keyspace].remove(&key(at));
            }
            Write::DeleteRange(keyspace, start, end) => {
                let (start, end) = (key(start), key(end));
                self.maps[keyspace].retain(|key, _| *key < start || *key >= end);
            }
            Write::Named(prefix, byte, ttl) => {
                let expiry = ttl.map(|ttl| now + u64::from(ttl));
                self.maps[NAMED].insert(named(prefix, sequence), (value(byte), expiry));
            }
            // Its target depends on the contents before its batch.
            Write::DeleteNamed(_) => {}
        }
    }

    fn live(&self, keyspace: usize, now: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
        let entries = self.maps[keyspace].iter();
        let live = entries.filter(|(_, (_, expiry))| expiry.is_none_or(|at| at > now));
        live.map(|(key, (value, _))| (key.clone(), value.clone()))
            .collect()
    }
}

/// The engine and its model.
pub(crate) struct World {
    vfs: Arc<MemoryVfs>,
    clock: Arc<ManualClock>,
    db: Option<Db>,
    spaces: Vec<Keyspace>,
    model: Model,
    snapshots: Vec<(DbSnapshot, Model)>,
}

impl World {
    pub(crate) fn new(tuning: Tuning) -> Self {
        let mut world = Self {
            vfs: Arc::new(MemoryVfs::new()),
            clock: Arc::new(ManualClock::new(1000)),
            db: None,
            spaces: Vec::new(),
            model: Model::default(),
            snapshots: Vec::new(),
        };
        world.reopen(tuning);
        world
    }

    pub(crate) fn reopen(&mut self, tuning: Tuning) {
        self.snapshots.clear();
        self.spaces.clear();
        if let Some(db) = self.db.take() {
            db.close().unwrap();
        }
        let strategy = match tuning.strategy {
            0 => Compaction::Leveled { fanout: 3 },
            1 => Compaction::SizeTiered { runs: 3 },
            2 => Compaction::LazyLeveled { runs: 3 },
            _ => Compaction::TimeWindow {
                window: 16,
                runs: 3,
            },
        };
        let compression = match tuning.compression {
            0 => vec![Compression::None],
            1 => vec![Compression::Lz4, Compression::None],
            _ => vec![Compression::Lz4, Compression::Zstd(1)],
        };
        let plain = KeyspaceOptions {
            strategy,
            compression,
            block_bytes: tuning.block_bytes,
            memtable_bytes: tuning.memtable_bytes,
            filter_bits: tuning.filter_bits,
            table_bytes: 900,
            base_bytes: 3000,
            compact_at_runs: 3,
            restart_interval: 4,
            ..KeyspaceOptions::default()
        };
        let merged = KeyspaceOptions {
            merge: Some(Arc::new(Append)),
            ..plain.clone()
        };
        let named = KeyspaceOptions {
            expiry: Expiry::ByKey,
            ..plain.clone()
        };
        let options = DbOptions {
            vfs: Arc::clone(&self.vfs) as Arc<dyn Vfs>,
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            cache_bytes: tuning.cache_bytes,
            background_threads: 0,
            sub_compactions: tuning.sub_compactions,
            ..DbOptions::default()
        };
        let options = options
            .keyspace("plain", plain)
            .keyspace("merged", merged)
            .keyspace("named", named);
        let db = Db::open("/db", options).unwrap();
        self.spaces = ["plain", "merged", "named"]
            .map(|name| db.keyspace(name).unwrap())
            .to_vec();
        self.db = Some(db);
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    pub(crate) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Batch(writes) => {
                let batch = self.batch(writes);
                let last = self.db().write(batch, Durability::Buffered).unwrap();
                self.wrote(writes, last);
            }
            Operation::Look(writes, advance) => {
                let since = self.db().snapshot();
                self.clock.advance(u64::from(*advance));
                let batch = self.batch(writes);
                let db = self.db();
                if batch.is_empty() {
                    assert!(write_with_snapshot(db, batch, &since).is_err());
                    return;
                }
                let behind = write_with_snapshot(db, batch, &since).unwrap();
                assert_eq!(behind.time(), since.time());
                self.wrote(writes, behind.sequence());
                self.snapshots.push((behind, self.model.clone()));
            }
            Operation::Advance(by) => self.clock.advance(u64::from(*by)),
            Operation::Snapshot => {
                self.snapshots
                    .push((self.db().snapshot(), self.model.clone()));
            }
            Operation::Release(which) => {
                if !self.snapshots.is_empty() {
                    let at = usize::from(*which) % self.snapshots.len();
                    self.snapshots.remove(at);
                }
            }
            Operation::Flush => self.db().flush().unwrap(),
            Operation::CompactDue => {
                for space in &self.spaces {
                    self.db().compact_due(space).unwrap();
                }
            }
            Operation::CompactAll => {
                for space in &self.spaces {
                    self.db().compact(space).unwrap();
                }
            }
            Operation::Reopen(tuning) => self.reopen(*tuning),
            Operation::Get(keyspace, at) => {
                let found = self.db().get(&self.spaces[*keyspace], &key(*at)).unwrap();
                let live = self.model.live(*keyspace, self.clock.now());
                let expected = live.into_iter().find(|(found, _)| *found == key(*at));
                assert_eq!(
                    found.map(|value| value.to_vec()),
                    expected.map(|(_, value)| value)
                );
            }
            Operation::Scan(keyspace, start, end) => self.check_range(*keyspace, *start, *end),
            Operation::ScanExpired(keyspace) => self.check_expired(*keyspace),
            Operation::Walk(keyspace, at, steps) => self.walk(*keyspace, *at, steps),
            Operation::CheckSnapshot(which) => {
                if !self.snapshots.is_empty() {
                    self.check_snapshot(usize::from(*which) % self.snapshots.len());
                }
            }
        }
    }

    /// The batch of some writes. A delete selects an entry of the model before the batch.
    fn batch(&self, writes: &[Write]) -> WriteBatch {
        let now = self.clock.now();
        let mut batch = WriteBatch::new();
        for write in writes {
            match *write {
                Write::Put(space, at, byte) => {
                    batch.put(&self.spaces[space], &key(at), &value(byte));
                }
                Write::Expiring(at, byte, ttl) => {
                    let expiry = now + u64::from(ttl);
                    batch.put_expiring(&self.spaces[0], &key(at), &value(byte), expiry);
                }
                Write::Merge(at, byte) => batch.merge(&self.spaces[1], &key(at), &value(byte)),
                Write::Delete(space, at) => batch.delete(&self.spaces[space], &key(at)),
                Write::DeleteRange(space, start, end) => {
                    batch.delete_range(&self.spaces[space], &key(start), &key(end));
                }
                Write::Named(prefix, byte, ttl) => {
                    let expiry = ttl.map(|ttl| now + u64::from(ttl));
                    batch.put_sequenced(&self.spaces[NAMED], &key(prefix), &value(byte), expiry);
                }
                Write::DeleteNamed(which) => {
                    if let Some(key) = self.model.pick_named(which) {
                        batch.delete(&self.spaces[NAMED], &key);
                    }
                }
            }
        }
        batch
    }

    /// Applies a batch, whose last write has this sequence, to the model.
    fn wrote(&mut self, writes: &[Write], last: Sequence) {
        let now = self.clock.now();
        let before = self.model.clone();
        let wrote = |write: &&Write| match write {
            Write::DeleteNamed(which) => before.pick_named(*which).is_some(),
            _ => true,
        };
        let writes: Vec<&Write> = writes.iter().filter(wrote).collect();
        let first = last + 1 - writes.len() as u64;
        for (write, sequence) in writes.into_iter().zip(first..) {
            if let Write::DeleteNamed(which) = *write
                && let Some(key) = before.pick_named(which)
            {
                self.model.maps[NAMED].remove(&key);
                continue;
            }
            self.model.apply(write, now, sequence);
        }
    }

    /// Checks that a scan with expired entries shows all live entries, and none that never existed.
    fn check_expired(&self, keyspace: usize) {
        let space = &self.spaces[keyspace];
        let all = Bound::Unbounded;
        let scan = self.db().scan(space, all, all, None).unwrap();
        let mut scan = scan.show_expired();
        let mut found = BTreeMap::new();
        scan.first().unwrap();
        while scan.is_valid() {
            found.insert(scan.key().to_vec(), scan.value().to_vec());
            scan.advance().unwrap();
        }
        for (key, value) in &found {
            assert_eq!(
                self.model.maps[keyspace].get(key).map(|(value, _)| value),
                Some(value)
            );
        }
        for (key, _) in self.model.live(keyspace, self.clock.now()) {
            assert!(found.contains_key(&key), "a live entry is not shown");
        }
    }

    fn check_range(&self, keyspace: usize, start: u8, end: u8) {
        let (start, end) = (key(start), key(end));
        let bounds = (
            Bound::Included(start.as_slice()),
            Bound::Excluded(end.as_slice()),
        );
        let mut expected = self.model.live(keyspace, self.clock.now());
        expected.retain(|(key, _)| *key >= start && *key < end);
        self.check_scan(keyspace, bounds, None, expected);
    }

    fn check_snapshot(&self, which: usize) {
        let (snapshot, model) = &self.snapshots[which];
        self.check_model(model, Some(snapshot), snapshot.time());
    }

    pub(crate) fn check_everything(&self) {
        self.check_model(&self.model, None, self.clock.now());
        for (snapshot, model) in &self.snapshots {
            self.check_model(model, Some(snapshot), snapshot.time());
        }
    }

    fn check_model(&self, model: &Model, snapshot: Option<&DbSnapshot>, time: u64) {
        for keyspace in 0..SPACES {
            let live = model.live(keyspace, time);
            let mut keys: Vec<Vec<u8>> = (0..48).map(key).collect();
            keys.extend(model.maps[keyspace].keys().cloned());
            let space = &self.spaces[keyspace];
            let asked = keys.iter().map(Vec::as_slice);
            let values = self.db().multi_get(space, asked, snapshot).unwrap();
            let found: BTreeMap<Vec<u8>, Vec<u8>> = keys
                .into_iter()
                .zip(values)
                .filter_map(|(key, value)| Some((key, value?.to_vec())))
                .collect();
            assert_eq!(found, live.iter().cloned().collect());
            let all = (Bound::Unbounded, Bound::Unbounded);
            self.check_scan(keyspace, all, snapshot, live);
        }
    }

    /// Checks that a scan returns the expected entries in both directions.
    fn check_scan(
        &self,
        keyspace: usize,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        snapshot: Option<&DbSnapshot>,
        mut expected: Vec<(Vec<u8>, Vec<u8>)>,
    ) {
        let space = &self.spaces[keyspace];
        let mut scan = self.db().scan(space, lower, upper, snapshot).unwrap();
        let mut found = Vec::new();
        scan.first().unwrap();
        while scan.is_valid() {
            self.check_sequence(&scan, keyspace, snapshot);
            found.push((scan.key().to_vec(), scan.value().to_vec()));
            scan.advance().unwrap();
        }
        assert_eq!(found, expected);
        found.clear();
        scan.last().unwrap();
        while scan.is_valid() {
            self.check_sequence(&scan, keyspace, snapshot);
            found.push((scan.key().to_vec(), scan.value().to_vec()));
            scan.retreat().unwrap();
        }
        expected.reverse();
        assert_eq!(found, expected);
    }

    /// Checks that a scan and a lookup agree about the sequence of an entry, which may be in its
    /// key.
    fn check_sequence(&self, scan: &Scan, keyspace: usize, snapshot: Option<&DbSnapshot>) {
        let space = &self.spaces[keyspace];
        let entry = self.db().get_with_sequence(space, scan.key(), snapshot);
        let (sequence, value) = entry.unwrap().unwrap();
        assert_eq!((sequence, &*value), (scan.sequence(), scan.value()));
        if keyspace == NAMED {
            assert!(scan.key().ends_with(&(!sequence).to_be_bytes()));
        }
    }

    /// Steps forward and backward from a key, with changes of direction.
    fn walk(&self, keyspace: usize, at: u8, steps: &[bool]) {
        let live = self.model.live(keyspace, self.clock.now());
        let space = &self.spaces[keyspace];
        let all = Bound::Unbounded;
        let mut scan = self.db().scan(space, all, all, None).unwrap();
        let start = key(at);
        scan.seek(&start).unwrap();
        let mut expected = live.iter().position(|(key, _)| *key >= start);
        for forward in steps {
            let shown = scan
                .is_valid()
                .then(|| (scan.key().to_vec(), scan.value().to_vec()));
            assert_eq!(shown, expected.map(|at| live[at].clone()));
            if *forward {
                scan.advance().unwrap();
                expected = expected.map(|at| at + 1).filter(|at| *at < live.len());
            } else {
                scan.retreat().unwrap();
                expected = expected.and_then(|at| at.checked_sub(1));
            }
        }
    }
}
