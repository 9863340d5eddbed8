//! Databases with merge operands, opened by a program that does not know the merge.

use std::collections::BTreeMap;
use std::ops::Bound::Unbounded;
use std::path::Path;
use std::sync::Arc;

use crate::merge_support::Append;
use rillbase_engine::vfs::{MemoryVfs, SeededRandom, Vfs};
use rillbase_engine::{
    Db, DbOptions, Durability, Expiry, KeyspaceOptions, ManualClock, WriteBatch, restore,
};

/// A database that is opened by the program that created it, and by a maintenance program.
struct World {
    vfs: Arc<dyn Vfs>,
    clock: Arc<ManualClock>,
}

impl World {
    fn new() -> Self {
        Self {
            vfs: Arc::new(MemoryVfs::new()),
            clock: Arc::new(ManualClock::new(1000)),
        }
    }

    fn options(&self) -> DbOptions {
        DbOptions {
            vfs: Arc::clone(&self.vfs),
            clock: Arc::clone(&self.clock) as Arc<_>,
            background_threads: 0,
            ..DbOptions::default()
        }
    }

    fn open(&self, dir: &str) -> Db {
        let space = KeyspaceOptions {
            merge: Some(Arc::new(Append)),
            expiry: Expiry::ByKey,
            memtable_bytes: 2000,
            table_bytes: 3000,
            base_bytes: 10_000,
            ..KeyspaceOptions::default()
        };
        let db = Db::open(dir, self.options().keyspace("space", space.clone())).unwrap();
        db.create_keyspace("space", space).unwrap();
        db
    }

    fn look_after(&self, dir: &str) -> Db {
        let options = DbOptions {
            unknown_merges: true,
            ..self.options()
        };
        Db::open(dir, options).unwrap()
    }
}

fn entries(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let space = db.keyspace("space").unwrap();
    let mut scan = db.scan(&space, Unbounded, Unbounded, None).unwrap();
    let mut entries = BTreeMap::new();
    scan.first().unwrap();
    while scan.is_valid() {
        entries.insert(scan.key().to_vec(), scan.value().to_vec());
        scan.advance().unwrap();
    }
    entries
}

/// Writes of all kinds to a few keys, some of them flushed or compacted.
fn work(db: &Db, random: &mut SeededRandom) {
    let space = db.keyspace("space").unwrap();
    for number in 0..150_u64 {
        let key = [b'k', u8::try_from(random.below(12)).unwrap()];
        let text = format!("{number},");
        let mut batch = WriteBatch::new();
        match random.below(12) {
            0 => batch.put(&space, &key, text.as_bytes()),
            1 => batch.delete(&space, &key),
            2 => batch.delete_range(&space, &key, b"k\x06"),
            // All versions of this key expire at the same time, before or after now.
            3 => batch.put_expiring(&space, b"k\x20", text.as_bytes(), 1500),
            4 => batch.put_expiring(&space, b"k\x21", text.as_bytes(), 2500),
            _ => batch.merge(&space, &key, text.as_bytes()),
        }
        db.write(batch, Durability::Buffered).unwrap();
    }
    if random.one_in(3) {
        db.compact(&space).unwrap();
    }
}

#[test]
fn compacting_without_the_merge_changes_no_answer() {
    for seed in 0..12 {
        let (world, mut random) = (World::new(), SeededRandom::new(seed));
        for round in 0..3 {
            let db = world.open("/db");
            work(&db, &mut random);
            world.clock.set(1000 + 500 * round);
            let expected = entries(&db);
            drop(db);
            let db = world.look_after("/db");
            db.flush().unwrap();
            db.compact(&db.keyspace("space").unwrap()).unwrap();
            drop(db);
            assert_eq!(entries(&world.open("/db")), expected, "seed {seed}");
        }
    }
}

#[test]
fn operands_cannot_be_read_without_their_merge_and_are_not_opened_unasked() {
    let world = World::new();
    let db = world.open("/db");
    let mut batch = WriteBatch::new();
    batch.merge(&db.keyspace("space").unwrap(), b"k", b"operand");
    batch.put(&db.keyspace("space").unwrap(), b"plain", b"value");
    db.write(batch, Durability::Sync).unwrap();
    drop(db);
    let refused = Db::open("/db", world.options()).unwrap_err();
    assert!(refused.to_string().contains("append"), "{refused}");
    let db = world.look_after("/db");
    let space = db.keyspace("space").unwrap();
    assert!(db.get(&space, b"k").is_err());
    assert_eq!(&*db.get(&space, b"plain").unwrap().unwrap(), b"value");
}

#[test]
fn a_backup_made_without_the_merge_keeps_its_name() {
    let world = World::new();
    let db = world.open("/db");
    work(&db, &mut SeededRandom::new(7));
    let expected = entries(&db);
    drop(db);
    world
        .look_after("/db")
        .backup("/backup", &mut |_, _| ())
        .unwrap();
    let (backup, copy) = (Path::new("/backup"), Path::new("/copy"));
    restore(&world.vfs, backup, copy, &mut |_| ()).unwrap();
    assert_eq!(entries(&world.open("/copy")), expected);
}
