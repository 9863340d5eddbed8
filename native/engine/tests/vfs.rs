//! Real and simulated file systems satisfy the contract of the trait.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rillbase_engine::vfs::{
    AppendFile, DirectVfs, Fault, FaultVfs, MemoryVfs, RealVfs, SeededRandom, Vfs,
};
use rillbase_engine::{Db, DbOptions, Durability, Error, KeyspaceOptions, WriteBatch};

/// A directory for one test, removed when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rillbase-vfs-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn for_each_vfs(name: &str, test: impl Fn(&dyn Vfs, &Path)) {
    let folder = Folder::new(name);
    test(&RealVfs, &folder.0.join("db"));
    test(&DirectVfs::new(), &folder.0.join("direct"));
    test(&MemoryVfs::new(), Path::new("/db"));
    test(&FaultVfs::new(1), Path::new("/db"));
}

#[test]
fn created_files_are_private_to_their_account() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = Folder::new("modes");
    for (name, vfs) in [
        ("real", &RealVfs as &dyn Vfs),
        ("direct", &DirectVfs::new() as &dyn Vfs),
    ] {
        let top = folder.0.join(name);
        let (inner, file, log, lock) = (
            top.join("inner"),
            top.join("file"),
            top.join("log"),
            top.join("lock"),
        );
        vfs.create_dir_all(&inner).unwrap();
        drop(vfs.create(&file).unwrap());
        drop(vfs.open_log(&log).unwrap());
        drop(vfs.lock(&lock).unwrap());
        for path in [top, inner, file, log, lock] {
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{} is {mode:o}", path.display());
        }
    }
}

fn read(vfs: &dyn Vfs, path: &Path) -> Vec<u8> {
    let file = vfs.open_read(path).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes
}

fn write(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) -> Box<dyn AppendFile> {
    let mut file = vfs.create(path).unwrap();
    file.append(bytes).unwrap();
    file
}

#[test]
fn files_are_appended_to_read_renamed_linked_listed_and_removed() {
    for_each_vfs("all", |vfs, dir| {
        vfs.create_dir_all(&dir.join("inner")).unwrap();
        let path = dir.join("a");
        let mut file = write(vfs, &path, b"one ");
        file.append(b"two").unwrap();
        file.sync().unwrap();
        assert_eq!(file.len(), 7);
        let mut again = vfs.open_append(&path).unwrap();
        again.append(b" three").unwrap();
        assert_eq!(read(vfs, &path), b"one two three");

        vfs.hard_link(&path, &dir.join("b")).unwrap();
        vfs.rename(&path, &dir.join("c")).unwrap();
        assert_eq!(vfs.list(dir).unwrap(), ["b", "c", "inner"]);
        assert!(vfs.exists(&dir.join("b")).unwrap());
        assert!(!vfs.exists(&path).unwrap());
        vfs.remove(&dir.join("b")).unwrap();
        vfs.remove_dir(&dir.join("inner")).unwrap();
        vfs.sync_dir(dir).unwrap();
        assert_eq!(vfs.list(dir).unwrap(), ["c"]);
        assert_eq!(read(vfs, &dir.join("c")), b"one two three");
    });
}

#[test]
fn a_log_file_is_written_in_place_and_keeps_what_it_had() {
    for_each_vfs("log", |vfs, dir| {
        vfs.create_dir_all(dir).unwrap();
        let path = dir.join("log");
        vfs.open_log(&path).unwrap().write_at(0, b"abcdef").unwrap();
        let file = vfs.open_log(&path).unwrap();
        file.write_at(2, b"XY").unwrap();
        file.write_at(6, b"g").unwrap();
        file.sync().unwrap();
        assert_eq!(read(vfs, &path), b"abXYefg");
    });
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    for_each_vfs("missing", |vfs, dir| {
        vfs.create_dir_all(dir).unwrap();
        let error = vfs.open_read(&dir.join("none")).unwrap_err();
        assert!(error.is_not_found());
        assert_eq!(error.code(), "io_error");
        assert!(error.to_string().contains("none"), "{error}");
    });
}

#[test]
fn reading_past_the_end_names_the_end() {
    for_each_vfs("end", |vfs, dir| {
        vfs.create_dir_all(dir).unwrap();
        write(vfs, &dir.join("short"), b"12345");
        let file = vfs.open_read(&dir.join("short")).unwrap();
        let mut buffer = [0; 4];
        assert_eq!(file.read_at(3, &mut buffer).unwrap(), 2);
        match file.read_exact_at(3, &mut buffer).unwrap_err() {
            Error::Corruption { file, offset, .. } => {
                assert_eq!(file, dir.join("short"));
                assert_eq!(offset, 5);
            }
            other => panic!("{other}"),
        }
    });
}

#[test]
fn a_handle_outlives_its_name() {
    for_each_vfs("handle", |vfs, dir| {
        vfs.create_dir_all(dir).unwrap();
        write(vfs, &dir.join("gone"), b"still here");
        let file = vfs.open_read(&dir.join("gone")).unwrap();
        vfs.remove(&dir.join("gone")).unwrap();
        let mut buffer = [0; 10];
        file.read_exact_at(0, &mut buffer).unwrap();
        assert_eq!(&buffer, b"still here");
    });
}

#[test]
fn a_lock_is_held_once_and_given_back() {
    for_each_vfs("lock", |vfs, dir| {
        vfs.create_dir_all(dir).unwrap();
        let path = dir.join("LOCK");
        let guard = vfs.lock(&path).unwrap();
        assert_eq!(vfs.lock(&path).unwrap_err().code(), "locked");
        drop(guard);
        vfs.lock(&path).unwrap();
    });
}

/// A file system with a durable directory `/db`.
fn faulty(seed: u64) -> (FaultVfs, &'static Path) {
    let vfs = FaultVfs::new(seed);
    let dir = Path::new("/db");
    vfs.create_dir_all(dir).unwrap();
    vfs.sync_dir(Path::new("/")).unwrap();
    (vfs, dir)
}

#[test]
fn a_crash_keeps_what_was_synced_under_a_name_that_was_synced() {
    for seed in 0..200 {
        let (vfs, dir) = faulty(seed);
        let mut file = write(&vfs, &dir.join("a"), b"kept");
        file.sync().unwrap();
        vfs.sync_dir(dir).unwrap();
        file.append(&[7; 2000]).unwrap();
        vfs.crash();
        let after = read(&vfs, &dir.join("a"));
        assert!(after.starts_with(b"kept"));
        assert!(after.len() <= 2004);
    }
}

#[test]
fn a_crash_may_lose_or_tear_what_was_not_synced_at_any_byte() {
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..300 {
        let (vfs, dir) = faulty(seed);
        let mut file = vfs.create(&dir.join("a")).unwrap();
        vfs.sync_dir(dir).unwrap();
        file.append(b"0123456789").unwrap();
        vfs.crash();
        let after = read(&vfs, &dir.join("a"));
        assert!(b"0123456789".starts_with(after.as_slice()));
        lengths.insert(after.len());
    }
    assert_eq!(lengths.len(), 11, "every length happens: {lengths:?}");
}

#[test]
fn names_that_were_not_synced_come_and_go_in_any_order() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..300 {
        let (vfs, dir) = faulty(seed);
        for name in ["a", "b"] {
            write(&vfs, &dir.join(name), name.as_bytes())
                .sync()
                .unwrap();
        }
        vfs.sync_dir(dir).unwrap();
        vfs.rename(&dir.join("a"), &dir.join("A")).unwrap();
        vfs.rename(&dir.join("b"), &dir.join("B")).unwrap();
        vfs.crash();
        let names = vfs.list(dir).unwrap();
        assert_eq!(names.len(), 2, "a rename never loses both names: {names:?}");
        outcomes.insert(names);
    }
    assert_eq!(outcomes.len(), 4, "{outcomes:?}");
}

#[test]
fn a_failed_sync_loses_the_bytes_although_the_next_one_succeeds() {
    let mut lost = 0;
    for seed in 0..100 {
        let (vfs, dir) = faulty(seed);
        let mut file = write(&vfs, &dir.join("a"), b"kept ");
        file.sync().unwrap();
        vfs.sync_dir(dir).unwrap();
        file.append(b"lost").unwrap();
        vfs.fail_at(vfs.sites(), Fault::Error);
        assert_eq!(file.sync().unwrap_err().code(), "io_error");
        assert_eq!(read(&vfs, &dir.join("a")), b"kept lost", "still visible");
        file.sync().unwrap();
        vfs.crash();
        let after = read(&vfs, &dir.join("a"));
        lost += u32::from(after != b"kept lost");
        assert!(after.starts_with(b"kept "));
    }
    assert!(lost > 20, "lost {lost} times of 100");
}

#[test]
fn a_full_disk_stays_full_until_there_is_room() {
    let (vfs, dir) = faulty(3);
    let mut file = write(&vfs, &dir.join("a"), b"x");
    vfs.fail_at(vfs.sites(), Fault::NoSpace);
    assert!(
        file.append(b"yyyy")
            .unwrap_err()
            .to_string()
            .contains("space")
    );
    assert!(vfs.create(&dir.join("b")).is_err());
    vfs.open_read(&dir.join("a")).unwrap();
    vfs.clear();
    vfs.create(&dir.join("b")).unwrap();
}

#[test]
fn after_a_stop_nothing_works_until_the_machine_starts_again() {
    let (vfs, dir) = faulty(4);
    let mut file = write(&vfs, &dir.join("a"), b"x");
    file.sync().unwrap();
    vfs.sync_dir(dir).unwrap();
    vfs.fail_at(vfs.sites() + 1, Fault::Stop);
    file.append(b"y").unwrap();
    assert!(file.sync().is_err());
    assert!(vfs.is_stopped());
    assert!(vfs.list(dir).is_err());
    vfs.crash();
    assert!(file.append(b"z").is_err(), "what was open is dead");
    assert!(read(&vfs, &dir.join("a")).starts_with(b"x"));
}

#[test]
fn tables_written_and_read_past_the_systems_cache_have_the_same_bytes() {
    let folder = Folder::new("direct");
    let vfs = DirectVfs::new();
    let path = folder.0.join("000001.table");
    let mut random = SeededRandom::new(5);
    let mut expected: Vec<u8> = Vec::new();
    let mut file = vfs.create(&path).unwrap();
    for step in 0..60_u8 {
        let length = usize::try_from(random.below(100_000)).unwrap();
        let piece = vec![step; length];
        file.append(&piece).unwrap();
        expected.extend_from_slice(&piece);
        assert_eq!(file.len(), expected.len() as u64);
        if random.below(8) == 0 {
            file.sync().unwrap();
            assert_eq!(read(&vfs, &path), expected);
            assert_eq!(read(&RealVfs, &path), expected);
        }
    }
    file.sync().unwrap();
    let reader = vfs.open_read(&path).unwrap();
    for _ in 0..200 {
        let from = usize::try_from(random.below(expected.len() as u64 + 5000)).unwrap();
        let length = usize::try_from(random.below(20_000)).unwrap();
        let mut buffer = vec![0; length];
        let count = reader.read_at(from as u64, &mut buffer).unwrap();
        let there = expected.get(from..).unwrap_or_default();
        assert_eq!(buffer[..count], there[..length.min(there.len())]);
    }
}

#[test]
fn a_database_past_the_systems_cache_is_one_that_others_read() {
    let folder = Folder::new("direct-db");
    let dir = folder.0.join("db");
    let open = |vfs: Arc<dyn Vfs>| {
        let options = DbOptions {
            vfs,
            ..DbOptions::default()
        };
        let db = Db::open(&dir, options).unwrap();
        let space = db.create_keyspace("k", KeyspaceOptions::default()).unwrap();
        (db, space)
    };
    let (db, space) = open(Arc::new(DirectVfs::new()));
    let key = |number: u32| number.to_be_bytes();
    for number in 0..20_000 {
        let mut batch = WriteBatch::new();
        batch.put(&space, &key(number), &[7; 100]);
        db.write(batch, Durability::Buffered).unwrap();
    }
    db.compact(&space).unwrap();
    db.checkpoint(folder.0.join("copy")).unwrap();
    db.backup(folder.0.join("backup"), &mut |_, _| ()).unwrap();
    db.close().unwrap();
    let (db, space) = open(Arc::new(RealVfs));
    assert_eq!(*db.get(&space, &key(19_999)).unwrap().unwrap(), [7; 100]);
    db.verify(&mut |_, _| ()).unwrap();
}

/// Creates everything that a database creates below `dir`.
fn create_all(dir: &Path) -> Vec<PathBuf> {
    let vfs = DirectVfs::new();
    let (inner, table) = (dir.join("db/log"), dir.join("db/1.table"));
    let (log, lock) = (inner.join("1.wal"), dir.join("db/LOCK"));
    vfs.create_dir_all(&inner).unwrap();
    vfs.create(&table).unwrap();
    vfs.open_log(&log).unwrap();
    vfs.lock(&lock).unwrap();
    vec![dir.join("db"), inner, table, log, lock]
}

#[test]
fn files_that_root_creates_belong_to_the_owner_of_their_directory() {
    let folder = Folder::new("owner");
    if std::fs::metadata(&folder.0).unwrap().uid() != 0 {
        // Others cannot create files for another account.
        return;
    }
    let (account, group) = (4321, 8765);
    std::os::unix::fs::chown(&folder.0, Some(account), Some(group)).unwrap();
    for path in create_all(&folder.0) {
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(
            (metadata.uid(), metadata.gid()),
            (account, group),
            "{path:?}"
        );
    }
    let other = Folder::new("owner-of-a-link");
    let (target, link) = (other.0.join("file"), folder.0.join("link"));
    std::fs::write(&target, "").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    RealVfs.open_log(&link).unwrap();
    assert_eq!(std::fs::metadata(&target).unwrap().uid(), 0);
}
