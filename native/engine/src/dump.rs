//! Dumps any file of a database as text.

use std::path::Path;
use std::sync::Arc;

use crate::cache::BlockCache;
use crate::db::batch::Logged;
use crate::error::{Error, Result};
use crate::key::{EntryKind, Tag, split_expiry};
use crate::table::cursor::TableCursor;
use crate::table::reader::TableReader;
use crate::version::edit::Edit;
use crate::version::manifest;
use crate::version::table_cache;
use crate::vfs::Vfs;
use crate::wal;

/// Longer keys and values are truncated.
const SHOWN_BYTES: usize = 80;

/// Passes the contents of a file to `line`: a table, a manifest, or a segment of the log. The
/// database may be open.
pub fn dump(vfs: &dyn Vfs, path: &Path, line: &mut dyn FnMut(String)) -> Result<()> {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("");
    if let Some(number) = table_cache::number_of(name) {
        return dump_table(vfs, path, number, line);
    }
    if manifest::number_of(name).is_some() {
        for edit in manifest::read(vfs, path)? {
            line(edit_text(&edit));
        }
        return Ok(());
    }
    if Path::new(name)
        .extension()
        .is_some_and(|kind| kind == "wal")
    {
        return wal::dump(vfs, path, &mut |record| match record {
            wal::Dumped::Data {
                index,
                version,
                body,
            } => dump_batch(index, Logged::parse(body, version).ok(), body, line),
            wal::Dumped::Other(text) => line(text),
        });
    }
    Err(Error::InvalidArgument {
        what: format!("{name:?} is not a table, manifest or log segment"),
    })
}

fn edit_text(edit: &Edit) -> String {
    match edit {
        Edit::FileAdded {
            keyspace,
            level,
            run,
            meta,
        } => {
            let first = shown(&meta.smallest);
            let last = shown(&meta.largest.key);
            let upto = if meta.largest.exclusive {
                "before"
            } else {
                "to"
            };
            let part = meta.about.as_ref().map(|about| about.0);
            let part = part.map_or_else(String::new, |part| format!(" part {part}"));
            format!(
                "FileAdded keyspace {keyspace} level {level} run {run}{part} table {}: {} bytes, \
                 {first} {upto} {last}, {} entries, {} deletes, {} operands, {} range deletes, \
                 sequences {} to {}",
                meta.number,
                meta.size,
                meta.entries,
                meta.deletes,
                meta.operands,
                meta.range_deletes,
                meta.first_sequence,
                meta.last_sequence,
            )
        }
        Edit::Cursor {
            keyspace,
            layout,
            cursor,
        } => format!(
            "Cursor keyspace {keyspace} of {layout:?}: {}",
            shown(cursor)
        ),
        other => format!("{other:?}"),
    }
}

fn dump_table(vfs: &dyn Vfs, path: &Path, number: u64, line: &mut dyn FnMut(String)) -> Result<()> {
    let blocks = Arc::new(BlockCache::new(0, 0));
    let table = TableReader::open(vfs.open_read(path)?, number, &blocks)?;
    line(format!("{:?}", table.properties()));
    for range in table.plain_range_deletes() {
        let (start, end) = (shown(&range.start), shown(&range.end));
        line(format!("{} RangeDelete {start} .. {end}", range.sequence));
    }
    let mut cursor = TableCursor::new(table, true);
    cursor.first()?;
    while cursor.is_valid() {
        line(entry(cursor.key(), cursor.tag(), cursor.value()));
        cursor.next()?;
    }
    Ok(())
}

fn dump_batch(index: u64, logged: Option<Logged<'_>>, body: &[u8], line: &mut dyn FnMut(String)) {
    let Some(logged) = logged else {
        line(format!(
            "record {index}: {} bytes that are not a batch",
            body.len()
        ));
        return;
    };
    let (count, time) = (logged.count, logged.time);
    line(format!("record {index}: {count} writes at {time}"));
    for (sequence, write) in (logged.sequence..).zip(logged.entries()) {
        let Ok(write) = write else {
            line("  the rest is malformed".to_owned());
            return;
        };
        let text = entry(write.key, Tag::new(sequence, write.kind), write.value);
        line(format!("  keyspace {} {text}", write.keyspace));
    }
}

fn entry(key: &[u8], tag: Tag, value: &[u8]) -> String {
    let (sequence, key) = (tag.sequence(), shown(key));
    let Some(kind) = tag.kind() else {
        return format!("{sequence} unknown {key}");
    };
    match (kind, split_expiry(kind, value)) {
        (EntryKind::Delete, _) => format!("{sequence} Delete {key}"),
        (EntryKind::RangeDelete, _) => format!("{sequence} RangeDelete {key} .. {}", shown(value)),
        (_, Some((Some(expiry), value))) => {
            format!(
                "{sequence} {kind:?} {key} until {expiry} = {}",
                shown(value)
            )
        }
        _ => format!("{sequence} {kind:?} {key} = {}", shown(value)),
    }
}

fn shown(bytes: &[u8]) -> String {
    match bytes.get(..SHOWN_BYTES) {
        Some(part) => format!("\"{}\"… ({} bytes)", part.escape_ascii(), bytes.len()),
        None => format!("\"{}\"", bytes.escape_ascii()),
    }
}
