//! Dumps of the files of a database.

use std::path::Path;
use std::sync::Arc;

use rillbase_engine::vfs::{MemoryVfs, Vfs};
use rillbase_engine::{Db, DbOptions, Durability, KeyHead, KeyspaceOptions, WriteBatch, dump};

use crate::head_support::FirstHalf;

fn dumped(vfs: &MemoryVfs, dir: &str, kind: &str) -> String {
    let mut text = String::new();
    for name in vfs.list(Path::new(dir)).unwrap() {
        if name.contains(kind) {
            let path = Path::new(dir).join(&name);
            dump(vfs, &path, &mut |line| text += &(line + "\n")).unwrap();
        }
    }
    text
}

#[test]
fn tables_manifests_and_logs_are_shown_entry_by_entry() {
    let vfs = MemoryVfs::new();
    let options = DbOptions {
        vfs: Arc::new(vfs.clone()),
        ..DbOptions::default()
    };
    let notes = KeyspaceOptions {
        head: KeyHead::Function(Arc::new(FirstHalf)),
        ..KeyspaceOptions::default()
    };
    let options = options.keyspace("notes", notes);
    let db = Db::open("/db", options).unwrap();
    let notes = db.keyspace("notes").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&notes, b"tab\tkey", b"value");
    batch.put_expiring(&notes, b"old", &[b'x'; 200], u64::MAX / 2);
    batch.delete(&notes, b"gone");
    batch.delete_range(&notes, b"a", b"b");
    db.write(batch, Durability::Sync).unwrap();

    let log = dumped(&vfs, "/db/log", ".wal");
    for shown in [
        "record 1: 4 writes",
        r#"Put "tab\tkey" = "value""#,
        "(200 bytes)",
        r#"Delete "gone""#,
        r#"RangeDelete "a" .. "b""#,
    ] {
        assert!(log.contains(shown), "{shown} is missing in\n{log}");
    }

    db.flush().unwrap();
    let tables = dumped(&vfs, "/db", ".table");
    for shown in [
        r#"head_function: Some("first-half")"#,
        r#"1 Put "tab\tkey" = "value""#,
        r#"3 Delete "gone""#,
        r#"4 RangeDelete "a" .. "b""#,
    ] {
        assert!(tables.contains(shown), "{shown} is missing in\n{tables}");
    }
    let manifest = dumped(&vfs, "/db", "MANIFEST");
    assert!(manifest.contains("notes"), "{manifest}");
    assert!(
        manifest.contains(r#""a" to "tab\tkey", 3 entries"#),
        "{manifest}"
    );
}

#[test]
fn other_files_are_refused() {
    let vfs = MemoryVfs::new();
    let error = dump(&vfs, Path::new("/db/LOCK"), &mut |_| ()).unwrap_err();
    assert_eq!(error.code(), "invalid_argument");
}
