//! Writes of several kinds in one group.

use std::sync::Arc;

use crate::group_support::{Write, Writes};
use rillbase_engine::vfs::FaultVfs;
use rillbase_engine::{
    Db, DbOptions, Durability, Error, Keyspace, KeyspaceOptions, Result, WriteBatch,
};

const SPACES: [&str; 3] = ["first", "second", "third"];

fn open(vfs: &FaultVfs) -> (Db, [Keyspace; 3]) {
    let options = SPACES.iter().fold(DbOptions::default(), |options, name| {
        options.keyspace(*name, KeyspaceOptions::default())
    });
    let options = DbOptions {
        vfs: Arc::new(vfs.clone()),
        background_threads: 0,
        ..options
    };
    let db = Db::open("/db", options).unwrap();
    let spaces = SPACES.map(|name| db.keyspace(name).unwrap());
    (db, spaces)
}

fn put(space: &Keyspace, key: &[u8]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(space, key, b"value");
    batch
}

fn has(db: &Db, space: &Keyspace, key: &[u8]) -> bool {
    db.get(space, key).unwrap().is_some()
}

fn codes<T>(results: &[Result<T>]) -> Vec<&str> {
    let code = |result: &Result<T>| result.as_ref().map_or_else(Error::code, |_| "");
    results.iter().map(code).collect()
}

#[test]
fn a_group_of_several_kinds_is_durable_by_one_sync_and_survives_a_loss_of_power() {
    let vfs = FaultVfs::new(1);
    let (db, spaces) = open(&vfs);
    let mut transaction = db.begin().unwrap();
    transaction.put(&spaces[2], b"c", b"value");
    let since = db.snapshot();
    let before = vfs.syncs();

    let done = Writes::new([
        Write::WithSnapshot(Some(put(&spaces[0], b"a")), &since),
        Write::Batch(Some(put(&spaces[1], b"b"))),
        Write::Commit(&transaction),
    ])
    .run(&db, Durability::Sync);

    assert_eq!(vfs.syncs() - before, 1);
    assert_eq!(codes(&done), ["", "", ""]);
    drop((since, transaction));
    vfs.crash();
    drop((db, spaces));
    let (db, spaces) = open(&vfs);
    for (space, key) in spaces.iter().zip([b"a", b"b", b"c"]) {
        assert!(has(&db, space, key));
    }
}

#[test]
fn a_member_that_fails_does_not_fail_the_others() {
    let vfs = FaultVfs::new(2);
    let (db, [space, ..]) = open(&vfs);
    let mut late = db.begin().unwrap();
    late.put(&space, b"a", b"other");
    let mut refused = put(&space, b"b");
    refused.put(&space, &vec![0; (64 << 10) + 1], b"");

    let done = Writes::new([
        Write::Batch(Some(put(&space, b"a"))),
        Write::Commit(&late),
        Write::Batch(Some(refused)),
        Write::Batch(Some(WriteBatch::new())),
        Write::Batch(Some(put(&space, b"c"))),
    ])
    .run(&db, Durability::Sync);

    let expected = ["", "conflict", "invalid_argument", "", ""];
    assert_eq!(codes(&done), expected);
    assert_eq!(&*db.get(&space, b"a").unwrap().unwrap(), b"value");
    assert!(!has(&db, &space, b"b"));
    assert!(has(&db, &space, b"c"));
}

#[test]
fn a_group_that_finds_no_room_fails_as_a_whole_and_a_later_one_is_taken() {
    let vfs = FaultVfs::new(3);
    let (db, [space, ..]) = open(&vfs);
    let write = |keys: &[&[u8]]| {
        let value = vec![7; 3 << 20];
        let batches = keys.iter().map(|key| {
            let mut batch = WriteBatch::new();
            batch.put(&space, key, &value);
            Write::Batch(Some(batch))
        });
        Writes::new(batches).run(&db, Durability::Sync)
    };
    vfs.fill_up();
    assert_eq!(
        codes(&write(&[b"a", b"b"])),
        ["storage_full", "storage_full"]
    );
    assert!(!has(&db, &space, b"a") && !has(&db, &space, b"b"));
    vfs.clear();
    assert_eq!(codes(&write(&[b"a", b"b"])), ["", ""]);
    assert!(has(&db, &space, b"a") && has(&db, &space, b"b"));
}
