//! Checkpoints, backups, restores, bulk loads and dropped keyspaces.

use std::ops::Bound::Unbounded;
use std::path::Path;
use std::sync::Arc;

use rillbase_engine::vfs::{MemoryVfs, Vfs};
use rillbase_engine::{
    Db, DbOptions, Durability, Error, Keyspace, KeyspaceOptions, WriteBatch, restore, verify,
};

fn options(vfs: &Arc<dyn Vfs>) -> DbOptions {
    let space = KeyspaceOptions {
        memtable_bytes: 20_000,
        table_bytes: 10_000,
        ..KeyspaceOptions::default()
    };
    let options = DbOptions {
        vfs: Arc::clone(vfs),
        ..DbOptions::default()
    };
    options.keyspace("k", space)
}

fn memory() -> Arc<dyn Vfs> {
    Arc::new(MemoryVfs::new())
}

fn key(number: u32) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

fn fill(db: &Db, space: &Keyspace, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let mut batch = WriteBatch::new();
        batch.put(space, &key(number), &number.to_le_bytes());
        db.write(batch, Durability::Buffered).unwrap();
    }
}

fn count(db: &Db) -> usize {
    let space = db.keyspace("k").unwrap();
    let mut scan = db.scan(&space, Unbounded, Unbounded, None).unwrap();
    let mut count = 0;
    scan.first().unwrap();
    while scan.is_valid() {
        count += 1;
        scan.advance().unwrap();
    }
    count
}

#[test]
fn a_checkpoint_is_a_database_of_its_own() {
    let vfs = memory();
    let db = Db::open("/db", options(&vfs)).unwrap();
    let space = db.keyspace("k").unwrap();
    fill(&db, &space, 0..2000);
    db.checkpoint("/checkpoint").unwrap();
    fill(&db, &space, 2000..3000);
    db.compact(&space).unwrap();
    let copy = Db::open("/checkpoint", options(&vfs)).unwrap();
    assert_eq!(count(&copy), 2000);
    fill(&copy, &copy.keyspace("k").unwrap(), 5000..5010);
    assert_eq!((count(&db), count(&copy)), (3000, 2010));
    assert!(matches!(
        db.checkpoint("/checkpoint"),
        Err(Error::InvalidArgument { .. })
    ));
}

#[test]
fn a_checkpoint_under_load_holds_a_prefix_of_the_writes() {
    let vfs = memory();
    let db = Db::open("/db", options(&vfs)).unwrap();
    let space = db.keyspace("k").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| fill(&db, &space, 0..20_000));
        for number in 0..5 {
            let dir = format!("/checkpoint{number}");
            db.checkpoint(&dir).unwrap();
            let copy = Db::open(&dir, options(&vfs)).unwrap();
            let found = u32::try_from(count(&copy)).unwrap();
            let space = copy.keyspace("k").unwrap();
            if let Some(last) = found.checked_sub(1) {
                assert!(copy.get(&space, &key(last)).unwrap().is_some());
            }
        }
    });
}

#[test]
fn a_backup_restores_to_the_same_and_damage_to_it_is_noticed() {
    let vfs = memory();
    let db = Db::open("/db", options(&vfs)).unwrap();
    let space = db.keyspace("k").unwrap();
    fill(&db, &space, 0..3000);
    let mut told = Vec::new();
    let progress = &mut |done, total| told.push((done, total));
    let saved = db.backup("/backup", progress).unwrap();
    assert!(saved.tables > 0 && saved.log.is_some());
    assert!(told.is_sorted(), "{told:?}");
    let all = 2 * saved.table_bytes;
    assert_eq!(told.last(), Some(&(all, all)), "copied and checked");
    fill(&db, &space, 3000..3001);
    drop(db);
    restore(&vfs, Path::new("/backup"), Path::new("/again"), &mut |_| ()).unwrap();
    let again = Db::open("/again", options(&vfs)).unwrap();
    assert_eq!(count(&again), 3000);

    let names = vfs.list(Path::new("/backup")).unwrap();
    let name = names.iter().find(|name| name.contains(".table")).unwrap();
    let path = Path::new("/backup").join(name);
    let file = vfs.open_read(&path).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes[100] ^= 1;
    vfs.create(&path).unwrap().append(&bytes).unwrap();
    let to = Path::new("/third");
    let error = restore(&vfs, Path::new("/backup"), to, &mut |_| ()).unwrap_err();
    assert_eq!(error.code(), "corruption");
    assert!(error.to_string().contains(name.as_str()), "{error}");
}

#[test]
fn a_bulk_load_is_newer_than_what_was_written_before_and_older_than_what_comes_after() {
    let vfs = memory();
    let db = Db::open("/db", options(&vfs)).unwrap();
    let space = db.keyspace("k").unwrap();
    fill(&db, &space, 0..50);
    let before = db.snapshot();
    let loaded = (0..3000).map(|number| (key(number), b"loaded".to_vec()));
    let sequence = db.bulk_load(&space, loaded).unwrap().unwrap();
    assert!(sequence > before.sequence());
    fill(&db, &space, 10..11);
    let old = db.get_at(&space, &key(9), &before).unwrap().unwrap();
    assert_eq!(&*old, &9_u32.to_le_bytes());
    assert!(db.get_at(&space, &key(60), &before).unwrap().is_none());
    let unordered = [(key(2), vec![]), (key(1), vec![])];
    assert!(db.bulk_load(&space, unordered).is_err());
    let check = |db: &Db| {
        let space = db.keyspace("k").unwrap();
        let get = |number| db.get(&space, &key(number)).unwrap().unwrap();
        assert_eq!(
            (&*get(9), &*get(10)),
            (&b"loaded"[..], &10_u32.to_le_bytes()[..])
        );
        assert_eq!(count(db), 3000);
        db.compact(&space).unwrap();
    };
    (0..2).for_each(|_| check(&db));
    drop((before, space, db));
    let db = Db::open("/db", options(&vfs)).unwrap();
    (0..2).for_each(|_| check(&db));
}

#[test]
fn a_bulk_load_under_load_loses_nothing() {
    let vfs = memory();
    let db = Db::open("/db", options(&vfs)).unwrap();
    let space = db.keyspace("k").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| fill(&db, &space, 0..10_000));
        for part in 1..6_u32 {
            let loaded = (0..1000).map(|number| (key(100_000 * part + number), vec![]));
            db.bulk_load(&space, loaded).unwrap();
        }
    });
    assert_eq!(count(&db), 15_000);
}

#[test]
fn a_dropped_keyspace_disappears_and_its_name_can_be_reused() {
    let vfs = memory();
    let db = Db::open("/db", options(&vfs)).unwrap();
    let space = db.keyspace("k").unwrap();
    fill(&db, &space, 0..100);
    db.flush().unwrap();
    db.drop_keyspace(&space).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&space, b"a", b"");
    assert!(db.write(batch, Durability::Buffered).is_err());
    let fresh = db.create_keyspace("k", KeyspaceOptions::default()).unwrap();
    assert!(db.get(&fresh, &key(1)).unwrap().is_none());
    drop((db, space, fresh));
    let db = Db::open("/db", options(&vfs)).unwrap();
    assert_eq!(count(&db), 0);
    drop(db);
    assert_eq!(
        verify(&vfs, Path::new("/db"), &mut |_, _| ())
            .unwrap()
            .tables,
        0
    );
}
