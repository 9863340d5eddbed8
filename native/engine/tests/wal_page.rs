//! The example in the documentation of the log's format agrees with what the log writes.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use rillbase_engine::vfs::{MemoryVfs, Vfs};
use rillbase_engine::wal::{Durability, Wal, WalOptions};

const PAGE: &str = include_str!("../../../docs/formats/wal.md");

/// The first bytes of a file, sixteen in a line, each line with its offset.
fn hex(vfs: &MemoryVfs, path: &str, length: usize) -> String {
    let mut bytes = vec![0; length];
    let file = vfs.open_read(Path::new(path)).unwrap();
    file.read_exact_at(0, &mut bytes).unwrap();
    let mut text = String::new();
    for (line, part) in bytes.chunks(16).enumerate() {
        write!(text, "{:04x} ", line * 16).unwrap();
        for byte in part {
            write!(text, " {byte:02x}").unwrap();
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_worked_example_is_what_the_log_writes() {
    let vfs = MemoryVfs::new();
    let wal = Wal::open(
        Arc::new(vfs.clone()),
        Path::new("/log"),
        &WalOptions::default(),
    )
    .unwrap();
    wal.append(b"hello", Durability::Sync).unwrap();
    let block = wal.append_block(b"payload").unwrap();
    wal.append_referring(b"x", &[block], Durability::Sync)
        .unwrap();
    wal.truncate_front(2).unwrap();
    wal.truncate_back(3).unwrap();
    wal.close().unwrap();
    let segment = hex(&vfs, "/log/00000000000000000001.wal", 190);
    let blocks = hex(&vfs, "/log/00000000000000000001.blk", 40);
    for text in [segment, blocks] {
        assert!(PAGE.contains(&text), "the page should show this:\n\n{text}");
    }
}
