//! A database with thousands of keyspaces.

use std::sync::Arc;

use rillbase_engine::vfs::{MemoryVfs, Vfs};
use rillbase_engine::wal::WalOptions;
use rillbase_engine::{Db, DbOptions, Durability, Keyspace, KeyspaceOptions, WriteBatch};

const LOG_BYTES: u64 = 1 << 20;

fn options(vfs: &Arc<MemoryVfs>) -> DbOptions {
    DbOptions {
        vfs: Arc::clone(vfs) as Arc<dyn Vfs>,
        log_bytes: LOG_BYTES,
        log: WalOptions {
            segment_bytes: LOG_BYTES / 8,
            ..WalOptions::default()
        },
        ..DbOptions::default()
    }
}

fn create(db: &Db, count: usize) -> Vec<Keyspace> {
    let create = |number| {
        let options = KeyspaceOptions::default();
        db.create_keyspace(&format!("space {number}"), options)
    };
    (0..count).map(|number| create(number).unwrap()).collect()
}

fn put(db: &Db, space: &Keyspace, number: usize) {
    let mut batch = WriteBatch::new();
    batch.put(space, &number.to_be_bytes(), &[7; 100]);
    db.write(batch, Durability::Buffered).unwrap();
}

#[test]
fn the_log_stays_within_twice_its_budget_while_all_keyspaces_are_written() {
    const COUNT: usize = 2000;
    let options = DbOptions {
        // Slower than the writes.
        write_rate: 6 << 20,
        ..options(&Arc::new(MemoryVfs::new()))
    };
    let db = Db::open("/db", options).unwrap();
    let spaces = create(&db, COUNT);
    for number in 0..60_000 {
        put(&db, &spaces[number % COUNT], number);
        if number % 100 == 0 {
            let stats = db.stats();
            // Budgets are checked once per MiB; a file may have a few bytes that are needed.
            let most = 2 * LOG_BYTES + (1 << 20) + LOG_BYTES / 4;
            assert!(stats.log_bytes <= most, "{}", stats.log_bytes);
        }
    }
}

#[test]
fn every_keyspace_has_its_entries_after_the_database_is_opened_again() {
    const COUNT: usize = 300;
    let vfs = Arc::new(MemoryVfs::new());
    let db = Db::open("/db", options(&vfs)).unwrap();
    let spaces = create(&db, COUNT);
    (0..20_000).for_each(|number| put(&db, &spaces[number % COUNT], number));
    assert!(db.stats().flushes > 100);
    drop(db);
    let db = Db::open("/db", options(&vfs)).unwrap();
    for number in 0..20_000 {
        let space = db.keyspace(spaces[number % COUNT].name()).unwrap();
        let value = db.get(&space, &number.to_be_bytes()).unwrap();
        assert_eq!(value.as_deref(), Some(&[7; 100][..]));
    }
}

#[test]
fn a_keyspace_that_is_dropped_while_it_is_flushed_and_compacted_is_gone() {
    let vfs = Arc::new(MemoryVfs::new());
    let small = KeyspaceOptions {
        memtable_bytes: 1000,
        compact_at_runs: 2,
        ..KeyspaceOptions::default()
    };
    let db = Db::open("/db", options(&vfs)).unwrap();
    for round in 0..200 {
        let name = format!("space {round}");
        let space = db.create_keyspace(&name, small.clone()).unwrap();
        (0..60).for_each(|number| put(&db, &space, number));
        db.drop_keyspace(&space).unwrap();
        assert!(db.keyspace(&name).is_none());
    }
    assert_eq!(db.why_poisoned(), None);
    drop(db);
    assert!(
        Db::open("/db", options(&vfs))
            .unwrap()
            .keyspaces()
            .is_empty()
    );
}
