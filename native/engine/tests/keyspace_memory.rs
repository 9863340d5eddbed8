//! The memory of keyspaces without or with few entries, in a process of its own.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use rillbase_engine::vfs::MemoryVfs;
use rillbase_engine::{Db, DbOptions, Durability, Keyspace, KeyspaceOptions, WriteBatch};

const COUNT: usize = 2000;

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.unwrap().trim().strip_suffix(" kB").unwrap();
    kibibytes.parse::<usize>().unwrap() * 1024
}

fn create(db: &Db, number: usize) -> Keyspace {
    let options = KeyspaceOptions::default();
    db.create_keyspace(&format!("space {number}"), options)
        .unwrap()
}

/// One test, so that no other one allocates meanwhile.
#[test]
fn a_keyspace_takes_at_most_four_kibibytes_while_idle_and_eight_more_with_a_few_entries() {
    let options = DbOptions {
        vfs: Arc::new(MemoryVfs::new()),
        ..DbOptions::default()
    };
    let db = Db::open("/db", options).unwrap();
    let before = resident_bytes();
    let spaces: Vec<Keyspace> = (0..COUNT).map(|number| create(&db, number)).collect();
    let idle = resident_bytes();
    assert!(idle - before <= 4096 * COUNT, "{}", (idle - before) / COUNT);
    for number in 0..2 * COUNT {
        let mut batch = WriteBatch::new();
        batch.put(&spaces[number % COUNT], &number.to_be_bytes(), &[7; 100]);
        db.write(batch, Durability::Buffered).unwrap();
    }
    let filled = resident_bytes();
    assert!(filled - idle <= 8192 * COUNT, "{}", (filled - idle) / COUNT);
}
