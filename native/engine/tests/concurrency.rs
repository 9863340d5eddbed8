//! Many threads at once, with flushes and compactions under them.

use std::ops::Bound::Unbounded;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rillbase_engine::vfs::MemoryVfs;
use rillbase_engine::{
    Db, DbOptions, DbSnapshot, Durability, Keyspace, KeyspaceOptions, Strategy, WriteBatch,
};

const KEYS: u32 = 40;
const ROUNDS: u32 = 1500;

fn contents(db: &Db, space: &Keyspace, snapshot: &DbSnapshot) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut scan = db
        .scan(space, Unbounded, Unbounded, Some(snapshot))
        .unwrap();
    let mut found = Vec::new();
    scan.first().unwrap();
    while scan.is_valid() {
        found.push((scan.key().to_vec(), scan.value().to_vec()));
        scan.advance().unwrap();
    }
    found
}

/// Every batch writes the same to both keyspaces, so that they are equal at any time.
fn write(db: &Db, spaces: &[Keyspace], writer: u32) {
    for round in 0..ROUNDS {
        let key = ((round * 7 + writer * 13) % KEYS).to_be_bytes();
        let mut batch = WriteBatch::new();
        for space in spaces {
            match round % 11 {
                3 => batch.delete(space, &key),
                8 => batch.delete_range(space, &key, &(KEYS / 2).to_be_bytes()),
                _ => batch.put(
                    space,
                    &key,
                    format!("{writer}-{round}").repeat(5).as_bytes(),
                ),
            }
        }
        let sync = round % 50 == 0;
        let durability = if sync {
            Durability::Sync
        } else {
            Durability::Buffered
        };
        db.write(batch, durability).unwrap();
    }
}

fn check(db: &Db, spaces: &[Keyspace], done: &AtomicBool) {
    let [left, right] = spaces else {
        return;
    };
    while !done.load(Ordering::Acquire) {
        let snapshot = db.snapshot();
        let found = contents(db, left, &snapshot);
        assert_eq!(found, contents(db, right, &snapshot));
        for (key, value) in &found {
            let read = db.get_at(right, key, &snapshot).unwrap();
            assert_eq!(read.as_deref(), Some(value.as_slice()));
        }
        assert_eq!(
            found,
            contents(db, left, &snapshot),
            "a snapshot stays as it is"
        );
    }
}

#[test]
fn batches_are_seen_whole_by_every_snapshot_while_tables_come_and_go() {
    for strategy in [
        Strategy::Leveled { fanout: 4 },
        Strategy::SizeTiered { runs: 3 },
        Strategy::LazyLeveled { runs: 3 },
    ] {
        let small = KeyspaceOptions {
            strategy,
            memtable_bytes: 8_000,
            table_bytes: 4_000,
            base_bytes: 10_000,
            block_bytes: 256,
            ..KeyspaceOptions::default()
        };
        let options = DbOptions {
            vfs: Arc::new(MemoryVfs::new()),
            cache_bytes: 100_000,
            table_cache_bytes: 5_000,
            background_threads: 3,
            ..DbOptions::default()
        };
        let options = options
            .keyspace("left", small.clone())
            .keyspace("right", small);
        let db = Db::open("/db", options).unwrap();
        let spaces = db.keyspaces();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (db, spaces, done) = (&db, &spaces, &done);
            let reader = scope.spawn(move || check(db, spaces, done));
            let writers: Vec<_> = (0..3)
                .map(|writer| scope.spawn(move || write(db, spaces, writer)))
                .collect();
            for writer in writers {
                writer.join().unwrap();
            }
            done.store(true, Ordering::Release);
            reader.join().unwrap();
        });
        let stats = db.stats();
        assert!(stats.flushes > 5 && stats.compactions > 1, "{stats:?}");
        db.close().unwrap();
    }
}
