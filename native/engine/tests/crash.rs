//! The whole database with power losses, failing disks and full disks.
//!
//! After a crash it must have one of its earlier states, with batches complete across all
//! keyspaces, and none older than the last one that was acknowledged as durable.

use std::sync::Arc;

use crate::crash_support::{History, World, work};
use rillbase_engine::vfs::{Fault, FaultVfs, SeededRandom};
use rillbase_engine::{Clock, Db, DbOptions, Durability, Error, ManualClock, WriteBatch};

/// Runs a database three times, each time until a power loss or a crash of the process at a random
/// operation.
fn survives(seed: u64) {
    let vfs = FaultVfs::new(seed);
    let clock = Arc::new(ManualClock::new(1000));
    let mut random = SeededRandom::new(seed ^ 0x5EED);
    let mut history = History::new();
    for round in 0..3 {
        let most = if random.one_in(2) { 100 } else { 1500 };
        vfs.fail_at(vfs.sites() + random.below(most), Fault::Stop);
        let worked = work(&vfs, &clock, &mut history, &mut random, 60);
        assert_eq!(worked.is_err(), vfs.is_stopped(), "seed {seed}: {worked:?}");
        let power = random.one_in(2);
        if power {
            vfs.crash();
        } else {
            vfs.kill();
        }
        let context = format!("seed {seed}, life {round}, power {power}");
        let world = World::open(&vfs, &clock);
        let world = world.unwrap_or_else(|error| panic!("{context}: {error}"));
        let found = world.read(None);
        let found = found.unwrap_or_else(|error| panic!("{context}: {error}"));
        let oldest = if power { history.durable } else { history.done };
        history.resume(&found, oldest, clock.now(), &context);
    }
}

#[test]
fn acknowledged_writes_survive_and_batches_are_atomic() {
    (0..300).for_each(survives);
}

#[test]
#[ignore = "takes minutes: the long suite runs it"]
fn acknowledged_writes_survive_many_more_crashes() {
    (1_000..11_000).for_each(survives);
}

/// Injects a fault at one I/O operation of a fixed workload. Returns whether it was reached.
fn fails_soundly(seed: u64, site: u64, fault: Fault, power: bool) -> bool {
    let context = format!("seed {seed}, {fault:?} at {site}, power {power}");
    let vfs = FaultVfs::new(seed);
    let clock = Arc::new(ManualClock::new(1000));
    let mut history = History::new();
    vfs.fail_at(site, fault);
    let worked = work(&vfs, &clock, &mut history, &mut SeededRandom::new(seed), 30);
    let reached = vfs.sites() > site;
    if let Err(error) = worked {
        let expected = ["io_error", "poisoned", "storage_full"];
        assert!(expected.contains(&error.code()), "{context}: {error}");
    }
    vfs.clear();
    if power {
        vfs.crash();
    }
    let world = World::open(&vfs, &clock).unwrap_or_else(|error| panic!("{context}: {error}"));
    let found = world
        .read(None)
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    let oldest = if power { history.durable } else { history.done };
    history.resume(&found, oldest, clock.now(), &context);
    drop(world);
    work(
        &vfs,
        &clock,
        &mut history,
        &mut SeededRandom::new(seed + 1),
        5,
    )
    .unwrap_or_else(|error| panic!("{context}: {error}"));
    reached
}

fn fails_soundly_everywhere(seed: u64, step: usize) {
    for fault in [Fault::Error, Fault::NoSpace] {
        for power in [false, true] {
            let mut sites = (seed..).step_by(step);
            let reached = sites
                .by_ref()
                .take_while(|site| fails_soundly(seed, *site, fault, power));
            assert!(reached.count() > 200 / step, "there are too few sites");
        }
    }
}

#[test]
fn a_fault_at_many_io_operations_leaves_a_sound_database() {
    fails_soundly_everywhere(0, 7);
}

#[test]
#[ignore = "takes minutes: the long suite runs it"]
fn a_fault_at_each_io_operation_leaves_a_sound_database() {
    (1..5).for_each(|seed| fails_soundly_everywhere(seed, 1));
}

fn put(db: &Db, value: &[u8], durability: Durability) -> Result<(), Error> {
    let keyspace = db.keyspace("space").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&keyspace, b"key", value);
    db.write(batch, durability).map(drop)
}

#[test]
fn a_failed_sync_poisons_the_database_until_it_is_opened_again() {
    let vfs = FaultVfs::new(1);
    let open = || {
        let options = DbOptions {
            vfs: Arc::new(vfs.clone()),
            ..DbOptions::default()
        };
        Db::open(
            "/db",
            options.keyspace("space", rillbase_engine::KeyspaceOptions::default()),
        )
    };
    let db = open().unwrap();
    put(&db, b"kept", Durability::Sync).unwrap();
    put(&db, b"known", Durability::Buffered).unwrap();
    vfs.fail_at(vfs.sites(), Fault::Error);
    assert_eq!(db.sync().unwrap_err().code(), "io_error");

    for durability in [Durability::Buffered, Durability::Sync] {
        let error = put(&db, b"refused", durability).unwrap_err();
        assert_eq!(error.code(), "poisoned");
        assert!(error.to_string().contains("sync failed"), "{error}");
    }
    assert!(db.why_poisoned().is_some());
    let space = db.keyspace("space").unwrap();
    let value = db.get(&space, b"key").unwrap().unwrap();
    assert_eq!(&*value, b"known", "reads go on");
    drop(db);

    vfs.crash();
    let db = open().unwrap();
    let space = db.keyspace("space").unwrap();
    let value = db.get(&space, b"key").unwrap().unwrap();
    assert!(*value == *b"kept" || *value == *b"known");
    put(&db, b"goes on", Durability::Sync).unwrap();
}
