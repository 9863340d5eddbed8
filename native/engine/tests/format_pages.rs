//! The examples in the documentation of tables and manifests agree with the files that are written.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use rillbase_engine::vfs::{MemoryVfs, Vfs};
use rillbase_engine::{
    Compression, Db, DbOptions, Durability, KeyspaceOptions, ManualClock, Result, WriteBatch,
};

const TABLE: &str = include_str!("../../../docs/formats/table.md");
const MANIFEST: &str = include_str!("../../../docs/formats/manifest.md");

/// The database of both examples: four entries of one keyspace, flushed at the time 1000.
fn example() -> Result<MemoryVfs> {
    let vfs = MemoryVfs::new();
    let options = DbOptions {
        vfs: Arc::new(vfs.clone()),
        clock: Arc::new(ManualClock::new(1000)),
        background_threads: 0,
        ..DbOptions::default()
    };
    let plain = KeyspaceOptions {
        compression: vec![Compression::None],
        ..KeyspaceOptions::default()
    };
    let db = Db::open("/db", options)?;
    let space = db.create_keyspace("k", plain)?;
    for (key, value) in [
        ("apple", "red"),
        ("apricot", "orange"),
        ("avocado", "yellow"),
    ] {
        let mut batch = WriteBatch::new();
        batch.put(&space, key.as_bytes(), value.as_bytes());
        db.write(batch, Durability::Buffered)?;
    }
    let mut batch = WriteBatch::new();
    batch.delete(&space, b"banana");
    db.write(batch, Durability::Buffered)?;
    db.flush()?;
    Ok(vfs)
}

fn bytes_of(vfs: &MemoryVfs, name: &str) -> Vec<u8> {
    let file = vfs.open_read(&Path::new("/db").join(name)).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes
}

/// The bytes that a line of a page shows, and their offset. An explanation follows them.
fn shown(line: &str) -> Option<(usize, Vec<u8>)> {
    let mut words = line.split_whitespace();
    let offset = words.next().filter(|word| word.len() == 4)?;
    let byte = |word: &str| (word.len() == 2).then(|| u8::from_str_radix(word, 16).ok())?;
    let bytes: Vec<u8> = words.map_while(byte).collect();
    Some((usize::from_str_radix(offset, 16).ok()?, bytes)).filter(|(_, bytes)| !bytes.is_empty())
}

/// All bytes of a page's example are those of the file, up to its end.
fn agree(page: &str, file: &[u8]) {
    let (_, example) = page.split_once("## Example").unwrap();
    let (mut wrong, mut end) = (String::new(), 0);
    for (offset, bytes) in example.lines().filter_map(shown) {
        end = offset + bytes.len();
        if file.get(offset..end) != Some(&bytes) {
            writeln!(wrong, "{offset:04x}  {bytes:02x?}").unwrap();
        }
    }
    let whole: Vec<String> = file.chunks(16).map(|part| format!("{part:02x?}")).collect();
    let whole = whole.join("\n");
    assert!(
        wrong.is_empty() && end == file.len(),
        "wrong:\n{wrong}\nwritten:\n{whole}"
    );
}

#[test]
fn the_worked_example_of_a_table_is_what_is_written() {
    let vfs = example().unwrap();
    let names = vfs.list(Path::new("/db")).unwrap();
    let kind = |name: &&String| {
        Path::new(name)
            .extension()
            .is_some_and(|kind| kind == "table")
    };
    let table = names.iter().find(kind).unwrap();
    agree(TABLE, &bytes_of(&vfs, table));
}

#[test]
fn the_worked_example_of_a_manifest_is_what_is_written() {
    agree(MANIFEST, &bytes_of(&example().unwrap(), "MANIFEST-000001"));
}
