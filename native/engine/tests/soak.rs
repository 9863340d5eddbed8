//! Memory usage under a long mixed load. It is the only test of its program, because it measures
//! the process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::Bound::{Included, Unbounded};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rillbase_engine::vfs::SeededRandom;
use rillbase_engine::{
    Db, DbOptions, Durability, KeyHead, Keyspace, KeyspaceOptions, ListFilter, Merge, WriteBatch,
};
use rillbase_engine::{DbSnapshot, ElementTimes};

const MIB: usize = 1 << 20;
const MEMTABLES: usize = 16 * MIB;
const CACHE: usize = 16 * MIB;
const TABLES: usize = 8 * MIB;
/// The additional memory of flushes, compactions, threads, the program itself and the allocator.
const BESIDE: usize = 72 * MIB;
const KEYS: u64 = 400_000;
const THREADS: u64 = 3;
const STEPS: u64 = 200_000;

/// Adds numbers of eight bytes.
#[derive(Debug)]
struct Sum;

impl Merge for Sum {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn full(&self, _key: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let operands = operands.iter().map(|operand| number(operand));
        let sum = operands.fold(below.map_or(0, number), u64::wrapping_add);
        sum.to_le_bytes().to_vec()
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(self.full(key, None, operands))
    }
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

struct Load {
    db: Db,
    plain: Keyspace,
    sums: Keyspace,
    lists: Keyspace,
    most: AtomicUsize,
}

fn open(dir: &std::path::Path) -> Load {
    let plain = KeyspaceOptions {
        memtable_bytes: 4 * MIB,
        table_bytes: 4 * MIB as u64,
        base_bytes: 16 * MIB as u64,
        ..KeyspaceOptions::default()
    };
    let sums = KeyspaceOptions {
        merge: Some(Arc::new(Sum)),
        ..plain.clone()
    };
    let lists = KeyspaceOptions {
        extractor: Some(Arc::new(ElementTimes)),
        head: KeyHead::FixedTail(8),
        ..plain.clone()
    };
    let options = DbOptions {
        cache_bytes: CACHE,
        table_cache_bytes: TABLES,
        memtables_bytes: MEMTABLES,
        log_bytes: 64 * MIB as u64,
        sub_compactions: 2,
        ..DbOptions::default()
    };
    let named = [("plain", plain), ("sums", sums), ("lists", lists)];
    let options = named
        .into_iter()
        .fold(options, |all, (name, own)| all.keyspace(name, own));
    let db = Db::open(dir, options).unwrap();
    let space = |name| db.keyspace(name).unwrap();
    Load {
        plain: space("plain"),
        sums: space("sums"),
        lists: space("lists"),
        db,
        most: AtomicUsize::new(0),
    }
}

/// The resident memory of the process; `None` except on Linux.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

impl Load {
    fn write(&self, random: &mut SeededRandom) {
        let key = random.below(KEYS).to_be_bytes();
        let mut batch = WriteBatch::new();
        match random.below(10) {
            0..=4 => batch.put(&self.plain, &key, &[7; 200]),
            5 => {
                let expiry = self.db.now() + random.below(2000);
                batch.put_expiring(&self.plain, &key, &[8; 200], expiry);
            }
            6 => batch.delete(&self.plain, &key),
            8 if random.below(200) == 0 => {
                let end = (u64::from_be_bytes(key) + 20).to_be_bytes();
                batch.delete_range(&self.sums, &key, &end);
            }
            7 | 8 => batch.merge(&self.sums, &key, &1_u64.to_le_bytes()),
            _ => {
                let list = (random.below(500)).to_be_bytes();
                let now = self.db.now();
                let element = (now, now + 1000, &[9_u8; 60][..]);
                batch.append(&self.lists, &list, 1, element, Some(now + 3000));
            }
        }
        self.db.write(batch, Durability::Buffered).unwrap();
    }

    fn read(&self, random: &mut SeededRandom, held: &mut Vec<DbSnapshot>) {
        let key = random.below(KEYS).to_be_bytes();
        match random.below(12) {
            0..=6 => drop(self.db.get(&self.plain, &key).unwrap()),
            7 => drop(self.db.get(&self.sums, &key).unwrap()),
            8 | 9 => {
                let scan = self
                    .db
                    .scan(&self.plain, Included(&key), Unbounded, held.first());
                let mut scan = scan.unwrap();
                scan.first().unwrap();
                for _ in 0..20 {
                    scan.advance().unwrap();
                }
            }
            10 => {
                let list = random.below(500).to_be_bytes();
                let scan = self.db.list(&self.lists, &list, 1, ListFilter::ALL, None);
                let mut scan = scan.unwrap();
                for _ in 0..20 {
                    scan.next_element().unwrap();
                }
            }
            _ if held.len() > 2 => held.clear(),
            _ => held.push(self.db.snapshot()),
        }
    }

    fn look(&self) {
        if let Some(resident) = resident() {
            self.most.fetch_max(resident, Ordering::Relaxed);
        }
        let stats = self.db.stats();
        assert!(
            stats.cache_bytes <= CACHE + MIB,
            "{} in the cache",
            stats.cache_bytes
        );
        let tables = stats.open_table_bytes;
        assert!(tables <= TABLES + MIB, "{tables} in open tables");
    }

    fn run(&self, seed: u64) {
        let mut random = SeededRandom::new(seed);
        let mut held = Vec::new();
        for step in 0..STEPS {
            self.write(&mut random);
            self.read(&mut random, &mut held);
            if step % 5000 == 0 {
                self.look();
            }
        }
    }
}

#[test]
#[ignore = "takes minutes: the long suite runs it"]
fn memory_stays_within_its_budget_under_a_long_mixed_load() {
    let name = format!("rillbase-soak-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    let load = open(&folder.0);
    std::thread::scope(|scope| {
        for seed in 0..THREADS {
            let load = &load;
            scope.spawn(move || load.run(seed + 1));
        }
    });
    let most = load.most.load(Ordering::Relaxed);
    let budget = MEMTABLES + CACHE + TABLES;
    assert!(most <= budget + BESIDE, "{} MiB at most", most / MIB);
    load.db.close().unwrap();
}
