//! A database whose files the fuzzer changes. In this build every checksum is accepted.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rillbase_engine::vfs::{FaultVfs, MemoryVfs, Vfs};
use rillbase_engine::wal;
use rillbase_engine::{
    Compression, Db, DbOptions, Durability, HeadFunction, KeyHead, KeyspaceOptions, Merge, Result,
    WriteBatch,
};

const DIR: &str = "/db";

/// Files with their bytes.
type Image = Vec<(PathBuf, Vec<u8>)>;

/// Appends operands to the value; the database of version 1 has some.
#[derive(Debug)]
struct Append;

impl Merge for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn full(&self, _key: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
        [below.unwrap_or_default(), &operands.concat()].concat()
    }

    fn partial(&self, _key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(operands.concat())
    }
}

/// Every key has a head of one byte.
#[derive(Debug)]
struct OneByteHeads;

impl HeadFunction for OneByteHeads {
    fn name(&self) -> &'static str {
        "one-byte-heads"
    }

    fn head_len(&self, _key: &[u8]) -> usize {
        1
    }
}

fn with_heads() -> KeyspaceOptions {
    KeyspaceOptions {
        head: KeyHead::Function(Arc::new(OneByteHeads)),
        ..KeyspaceOptions::default()
    }
}

fn options(vfs: Arc<dyn Vfs>) -> DbOptions {
    let keyspace = KeyspaceOptions {
        compression: vec![Compression::None, Compression::Lz4],
        block_bytes: 200,
        ..KeyspaceOptions::default()
    };
    let options = DbOptions {
        vfs,
        background_threads: 0,
        log: wal::WalOptions {
            segment_bytes: 1000,
            preallocate_bytes: 100,
            // The file's earlier contents would be valid again, because every checksum is accepted.
            spare_segments: 0,
            ..wal::WalOptions::default()
        },
        ..DbOptions::default()
    };
    let merged = KeyspaceOptions {
        merge: Some(Arc::new(Append)),
        ..keyspace.clone()
    };
    options
        .keyspace("space", keyspace)
        .keyspace("merged", merged)
        .keyspace("heads", with_heads())
}

/// The files of a small database with tables, a manifest of several records and a log.
fn build() -> Result<Image> {
    let vfs = FaultVfs::new(1);
    let db = Db::open(DIR, options(Arc::new(vfs.clone())))?;
    let space = db.create_keyspace("space", KeyspaceOptions::default())?;
    let heads = db.create_keyspace("heads", with_heads())?;
    for round in 0..3_u8 {
        let mut batch = WriteBatch::new();
        for key in 0..20_u8 {
            batch.put(&space, &[b'k', key], &[round; 30]);
            batch.put(&heads, &[b'k', key], &[round; 30]);
        }
        batch.delete(&space, &[b'k', round]);
        batch.put_expiring(&space, &[b'e', round], b"expires", u64::MAX - 1);
        batch.delete_range(&space, b"k\x05", b"k\x07");
        db.write(batch, Durability::Sync)?;
        match round {
            0 => db.flush()?,
            1 => db.compact(&space)?,
            _ => {}
        }
    }
    drop(db);
    let mut files = Vec::new();
    for (path, size) in vfs.files() {
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        vfs.open_read(&path)?.read_exact_at(0, &mut bytes)?;
        files.push((path, bytes));
    }
    Ok(files)
}

/// A file that an older program wrote.
macro_rules! old_file {
    ($name:literal) => {
        (
            Path::new(DIR).join($name),
            include_bytes!(concat!("../../../engine/tests/version_1/database/", $name)).to_vec(),
        )
    };
}

/// The files of a small database whose log is of version 1.
fn old() -> Image {
    vec![
        old_file!("CURRENT"),
        old_file!("MANIFEST-000001"),
        old_file!("000002.table"),
        old_file!("000004.table"),
        old_file!("log/00000000000000000001.wal"),
        old_file!("log/00000000000000000002.wal"),
        old_file!("log/00000000000000000003.wal"),
    ]
}

/// Changes the log of a database of version 1, opens it and reads all of it.
#[allow(dead_code, reason = "one target uses it")]
pub fn try_changed_old_log(changes: &[u8]) {
    static FILES: OnceLock<Image> = OnceLock::new();
    change(changes, FILES.get_or_init(old), |name| {
        name.ends_with(".wal")
    });
}

/// Changes the files that the target selects by name, opens the database and reads all of it.
#[allow(dead_code, reason = "one target does not use it")]
pub fn try_changed(changes: &[u8], wanted: fn(&str) -> bool) {
    static FILES: OnceLock<Image> = OnceLock::new();
    let files = FILES.get_or_init(|| build().expect("a database"));
    change(changes, files, wanted);
}

/// Changes files, opens the database and reads all of it.
///
/// Each four bytes of `changes` select a file, an offset in it (two bytes) and bits to flip. A file
/// may also be truncated.
fn change(changes: &[u8], files: &Image, wanted: fn(&str) -> bool) {
    let mut files = files.clone();
    let name = |path: &Path| {
        path.file_name()
            .and_then(|name| name.to_str())
            .map(str::to_owned)
    };
    let mut wanted: Vec<&mut Vec<u8>> = files
        .iter_mut()
        .filter(|(path, _)| name(path).is_some_and(|name| wanted(&name)))
        .map(|(_, bytes)| bytes)
        .collect();
    let count = wanted.len();
    assert!(count > 0, "no file is of this kind");
    for change in changes.chunks_exact(4) {
        let (file, at) = (
            usize::from(change[0]),
            u16::from_le_bytes([change[1], change[2]]),
        );
        let bytes = &mut wanted[file % count];
        if file >= 250 {
            bytes.truncate(usize::from(at));
        } else if let Some(byte) = bytes.get_mut(usize::from(at)) {
            *byte ^= change[3];
        }
    }
    let vfs = MemoryVfs::new();
    for (path, bytes) in &files {
        let dir = path.parent().unwrap_or(path);
        vfs.create_dir_all(dir).expect("a directory");
        vfs.create(path)
            .and_then(|mut file| file.append(bytes))
            .expect("a file");
    }
    // Any result is allowed, as long as it is returned in time and without a panic.
    let result = read(&vfs);
    assert!(result.is_ok() || !changes.is_empty(), "{result:?}");
}

fn read(vfs: &MemoryVfs) -> Result<()> {
    let db = Db::open(DIR, options(Arc::new(vfs.clone())))?;
    for space in db.keyspaces() {
        let mut scan = db.scan(&space, Bound::Unbounded, Bound::Unbounded, None)?;
        scan.first()?;
        while scan.is_valid() {
            db.get(&space, scan.key())?;
            scan.advance()?;
        }
        scan.last()?;
        while scan.is_valid() {
            scan.retreat()?;
        }
        let (lower, upper) = (Bound::Included(&b"k"[..]), Bound::Excluded(&b"l"[..]));
        db.scan_head(&space, b"k", lower, upper, None)?.first()?;
        db.compact(&space)?;
    }
    db.close()
}
