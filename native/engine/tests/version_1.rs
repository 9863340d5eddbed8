//! A database whose log has version 1, which was written until 2026.
//!
//! `version_1/database` was written by such a program and never closed: keyspaces `plain` and
//! `merged`, some of it in tables, the rest in three segments of the log. The logs beside it are
//! for `wal_crash`.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::merge_support::Append;
use rillbase_engine::vfs::{MemoryVfs, Vfs};
use rillbase_engine::{
    Db, DbOptions, Durability, Keyspace, KeyspaceOptions, ManualClock, WriteBatch, dump, verify,
};

const DIR: &str = "/db";

/// A disk with the files of the old database.
fn old_database() -> MemoryVfs {
    fn copy(from: &Path, to: &Path, vfs: &MemoryVfs) {
        vfs.create_dir_all(to).unwrap();
        for file in std::fs::read_dir(from).unwrap() {
            let from = file.unwrap().path();
            let to = to.join(from.file_name().unwrap());
            if from.is_dir() {
                copy(&from, &to, vfs);
            } else {
                let bytes = std::fs::read(&from).unwrap();
                vfs.create(&to).unwrap().append(&bytes).unwrap();
            }
        }
    }
    let vfs = MemoryVfs::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/version_1/database");
    copy(&from, Path::new(DIR), &vfs);
    vfs
}

fn open(vfs: &MemoryVfs, now: u64) -> Db {
    let merged = KeyspaceOptions {
        merge: Some(Arc::new(Append)),
        ..KeyspaceOptions::default()
    };
    let options = DbOptions {
        vfs: Arc::new(vfs.clone()),
        clock: Arc::new(ManualClock::new(now)),
        background_threads: 0,
        ..DbOptions::default()
    };
    Db::open(DIR, options.keyspace("merged", merged)).unwrap()
}

fn space(db: &Db, name: &str) -> Keyspace {
    db.keyspace(name).unwrap()
}

fn entries(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let plain = space(db, "plain");
    let mut scan = db
        .scan(&plain, Bound::Unbounded, Bound::Unbounded, None)
        .unwrap();
    let mut entries = BTreeMap::new();
    scan.first().unwrap();
    while scan.is_valid() {
        entries.insert(scan.key().to_vec(), scan.value().to_vec());
        scan.advance().unwrap();
    }
    entries
}

/// The entries that were written: puts in tables and in the log, a delete, a range delete, an entry
/// that expires at 2000, and one that is named by its sequence.
fn expected(now: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let numbers = (0..20_u8).filter(|number| ![3, 5, 6, 7].contains(number));
    let mut entries: BTreeMap<_, _> = numbers
        .map(|number| {
            let size = if number < 10 { 40 } else { 100 };
            (vec![b'k', number], vec![number; size])
        })
        .collect();
    if now < 2000 {
        entries.insert(b"passes".to_vec(), b"soon".to_vec());
    }
    let sequence = 11_u64 + 10 + 6;
    let name = [&b"s"[..], &(!sequence).to_be_bytes()].concat();
    entries.insert(name, b"named".to_vec());
    entries
}

/// The version in the header of each segment of the log.
fn versions(vfs: &MemoryVfs) -> Vec<u8> {
    let dir = PathBuf::from(DIR).join("log");
    let mut names = vfs.list(&dir).unwrap();
    names.retain(|name| {
        Path::new(name)
            .extension()
            .is_some_and(|kind| kind == "wal")
    });
    names.sort();
    let read = |name: &String| {
        let mut header = [0; 5];
        let file = vfs.open_read(&dir.join(name)).unwrap();
        file.read_exact_at(0, &mut header).unwrap();
        header[4]
    };
    names.iter().map(read).collect()
}

#[test]
fn an_old_log_is_read_completely_and_continues_in_the_new_version() {
    let vfs = old_database();
    assert_eq!(versions(&vfs), [1, 1, 1]);
    for now in [1500, 2500] {
        let db = open(&vfs, now);
        assert_eq!(entries(&db), expected(now));
        let list = db.get(&space(&db, "merged"), b"list").unwrap().unwrap();
        assert_eq!(&*list, b"one two three");
    }
    let db = open(&vfs, 2500);
    let mut batch = WriteBatch::new();
    batch.put(&space(&db, "plain"), b"k\x00", b"newer");
    db.write(batch, Durability::Sync).unwrap();
    drop(db);
    let both = versions(&vfs);
    assert!(both.starts_with(&[1, 1, 1, 2]), "{both:?}");
    let db = open(&vfs, 2500);
    let mut newer = expected(2500);
    newer.insert(b"k\x00".to_vec(), b"newer".to_vec());
    assert_eq!(entries(&db), newer);
    db.flush().unwrap();
    db.close().unwrap();
    let shared: Arc<dyn Vfs> = Arc::new(vfs);
    let found = verify(&shared, Path::new(DIR), &mut |_, _| ()).unwrap();
    assert_eq!(found.log.unwrap().records, 0, "all of it is in tables");
}

#[test]
fn an_old_log_is_verified_and_shown() {
    let vfs = old_database();
    let shared: Arc<dyn Vfs> = Arc::new(vfs.clone());
    let found = verify(&shared, Path::new(DIR), &mut |_, _| ()).unwrap();
    assert_eq!(found.log.unwrap().records, 11);
    let mut text = String::new();
    for number in 1..=3 {
        let path = PathBuf::from(format!("{DIR}/log/{number:020}.wal"));
        dump(&vfs, &path, &mut |line| text += &(line + "\n")).unwrap();
    }
    for shown in [
        "record 11: 1 writes at 1000",
        "Merge \"list\" = \"three\"",
        "PutExpiring \"passes\" until 2000 = \"soon\"",
    ] {
        assert!(text.contains(shown), "{shown} is missing in:\n{text}");
    }
}
