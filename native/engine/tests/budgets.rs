//! Memory, log and compaction debt stay within their bounds.

use std::sync::Arc;

use rillbase_engine::vfs::MemoryVfs;
use rillbase_engine::{
    Compression, Db, DbOptions, Durability, Keyspace, KeyspaceOptions, WriteBatch,
};

fn options() -> DbOptions {
    DbOptions {
        vfs: Arc::new(MemoryVfs::new()),
        ..DbOptions::default()
    }
}

fn put(db: &Db, space: &Keyspace, number: u32, bytes: usize) {
    let mut batch = WriteBatch::new();
    batch.put(space, &number.to_be_bytes(), &vec![7; bytes]);
    db.write(batch, Durability::Buffered).unwrap();
}

#[test]
fn writers_are_slowed_and_not_stopped_when_a_few_runs_wait_for_a_compaction() {
    let space = KeyspaceOptions {
        memtable_bytes: 20_000,
        compact_at_runs: 1000,
        slow_at_runs: 2,
        stop_at_runs: 1000,
        ..KeyspaceOptions::default()
    };
    let db = Db::open("/db", options().keyspace("k", space)).unwrap();
    let space = db.keyspace("k").unwrap();
    (0..400).for_each(|number| put(&db, &space, number, 1000));
    db.flush().unwrap();
    (0..400).for_each(|number| put(&db, &space, number, 1000));
    let stats = db.stats();
    assert!(
        stats.slowed_micros > 0 && stats.stopped_micros == 0,
        "{stats:?}"
    );
}

#[test]
fn writers_are_stopped_until_a_compaction_has_caught_up() {
    let space = KeyspaceOptions {
        memtable_bytes: 10_000,
        compact_at_runs: 2,
        slow_at_runs: 3,
        stop_at_runs: 3,
        ..KeyspaceOptions::default()
    };
    let db = Db::open("/db", options().keyspace("k", space)).unwrap();
    let space = db.keyspace("k").unwrap();
    for number in 0..2000 {
        put(&db, &space, number, 1000);
        let stats = db.stats();
        let runs = stats
            .keyspaces
            .iter()
            .map(|space| space.levels.first().unwrap().runs);
        // Runs that were flushed while this write was admitted are counted on top.
        assert!(runs.sum::<usize>() <= 6);
    }
}

#[test]
fn all_memtables_together_stay_within_their_budget() {
    let mut options = DbOptions {
        memtables_bytes: 4 << 20,
        ..options()
    };
    for name in ["a", "b", "c", "d"] {
        options = options.keyspace(name, KeyspaceOptions::default());
    }
    let db = Db::open("/db", options).unwrap();
    let spaces = db.keyspaces();
    for number in 0..4000 {
        for space in &spaces {
            put(&db, space, number, 1000);
        }
        let held = |space: &rillbase_engine::KeyspaceStats| space.memtable_bytes;
        if number % 100 == 0 {
            let total: usize = db.stats().keyspaces.iter().map(held).sum();
            assert!(total < 10 << 20, "{total}");
        }
    }
    assert!(db.stats().flushes > 2);
}

#[test]
fn one_budget_bounds_memtables_cache_and_open_tables_together() {
    const BUDGET: usize = 4 << 20;
    let space = KeyspaceOptions {
        table_bytes: 100_000,
        compression: vec![Compression::None],
        ..KeyspaceOptions::default()
    };
    let options = options().within(BUDGET).keyspace("k", space);
    let db = Db::open("/db", options).unwrap();
    let space = db.keyspace("k").unwrap();
    for number in 0..10_000 {
        put(&db, &space, number, 1000);
        let earlier = number.wrapping_mul(0x9e37_79b9) % (number + 1);
        assert!(db.get(&space, &earlier.to_be_bytes()).unwrap().is_some());
        if number % 100 == 0 {
            let stats = db.stats();
            let held = |space: &rillbase_engine::KeyspaceStats| space.memtable_bytes;
            let memtables: usize = stats.keyspaces.iter().map(held).sum();
            let total = memtables + stats.cache_bytes + stats.open_table_bytes;
            // A memtable allocates memory in pieces.
            assert!(total <= BUDGET + (1 << 20), "{total}");
        }
    }
    let stats = db.stats();
    assert!(
        stats.cache_misses > 0 && stats.cache_bytes > BUDGET / 4,
        "{stats:?}"
    );
}

#[test]
fn a_keyspace_that_is_seldom_written_does_not_hold_the_log() {
    let options = DbOptions {
        log_bytes: 40 << 20,
        ..options()
    };
    let busy = KeyspaceOptions {
        memtable_bytes: 1 << 20,
        ..KeyspaceOptions::default()
    };
    let options = options
        .keyspace("busy", busy)
        .keyspace("idle", KeyspaceOptions::default());
    let db = Db::open("/db", options).unwrap();
    put(&db, &db.keyspace("idle").unwrap(), 1, 10);
    let busy = db.keyspace("busy").unwrap();
    (0..2500).for_each(|number| put(&db, &busy, number % 50, 50_000));
    db.flush().unwrap();
    let stats = db.stats();
    assert!(
        stats.log_bytes < 60 << 20,
        "{} bytes of log",
        stats.log_bytes
    );
}
