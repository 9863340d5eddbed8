//! Rows that many operands change: for each, its newest entries, of which neighbours are folded as
//! soon as no snapshot is between them.
//!
//! A skip list keeps every entry until its memtable is flushed, and a read of a key that was
//! changed a thousand times folds a thousand operands. Here a row has only one entry more than
//! there are snapshots between its changes. Operands are copied out of their batch, so that a
//! long-lived row does not keep a batch alive.
//!
//! Invariants:
//!
//! - An entry's tag is that of the newest write in it; the tags of a row are unique.
//! - Only visible entries are folded, and only with neighbours without a snapshot in between.
//!   Readers hold a snapshot, so that nothing changes that they see.
//! - Cursors copy all entries of a row at the latest when they reach it, and so miss none that is
//!   folded meanwhile. What is written after a cursor has copied a row is not visible to the
//!   cursor's reader.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::RwLock;

use crate::horizon::Horizon;
use crate::key::{EntryKind, Sequence, Tag};
use crate::merge::Merge;
use crate::value::ValueBytes;

/// An entry of a row.
pub(crate) type RowEntry = (Tag, ValueBytes);

/// Rows by their keys.
#[derive(Debug, Default)]
pub(crate) struct MergedRows {
    /// Each row's entries, oldest first.
    rows: RwLock<BTreeMap<Arc<[u8]>, Vec<RowEntry>>>,
    /// How many entries were ever added.
    added: AtomicU32,
}

impl MergedRows {
    /// Adds an entry.
    pub(crate) fn insert(&self, key: &[u8], value: &[u8], tag: Tag) {
        let entry = (tag, ValueBytes::copied(value));
        self.added.fetch_add(1, Ordering::Relaxed);
        let mut rows = self.rows.write();
        if let Some(row) = rows.get_mut(key) {
            // Writers insert concurrently, so a newer one may have been faster.
            let position = row.iter().rposition(|(other, _)| *other < tag);
            row.insert(position.map_or(0, |enter_before| enter_before + 1), entry);
        } else {
            rows.insert(key.into(), vec![entry]);
        }
    }

    pub(crate) fn added(&self) -> u32 {
        self.added.load(Ordering::Relaxed)
    }

    /// The entries of a key that are at or after `tag`, newest first.
    pub(crate) fn versions(&self, key: &[u8], tag: Tag) -> Vec<RowEntry> {
        let rows = self.rows.read();
        let entries = rows.get(key).map_or(&[][..], Vec::as_slice);
        let seen = entries.iter().rev().filter(|(other, _)| *other <= tag);
        seen.cloned().collect()
    }

    /// Folds the entries of a row as far as visibility and open snapshots allow. `is_covered` says
    /// whether a range delete is between two. Returns by how many bytes it has shrunk.
    pub(crate) fn fold(
        &self,
        key: &[u8],
        merge: &dyn Merge,
        (visible, horizon): (Sequence, &Horizon),
        is_covered: &dyn Fn(Tag, Tag) -> bool,
    ) -> usize {
        let mut rows = self.rows.write();
        let Some(row) = rows.get_mut(key).filter(|row| row.len() > 1) else {
            return 0;
        };
        let size = |row: &[RowEntry]| row.iter().map(|(_, value)| value.len()).sum::<usize>();
        let enter_before = size(row);
        let mut folded: Vec<RowEntry> = Vec::with_capacity(2);
        for (tag, value) in row.drain(..) {
            let joins = folded.last().is_some_and(|(older, _)| {
                let alike = horizon.stripe(older.sequence()) == horizon.stripe(tag.sequence());
                let is_operand = tag.kind() == Some(EntryKind::Merge);
                let onto = matches!(older.kind(), Some(EntryKind::Merge | EntryKind::Put));
                let is_seen = tag.sequence() <= visible;
                alike && is_operand && onto && is_seen && !is_covered(*older, tag)
            });
            match folded.last_mut().filter(|_| joins) {
                Some((older, below)) => match join(merge, key, (*older, below), (tag, &value)) {
                    Some(one) => (*older, *below) = one,
                    None => folded.push((tag, value)),
                },
                None => folded.push((tag, value)),
            }
        }
        *row = folded;
        enter_before.saturating_sub(size(row))
    }
}

/// Folds two neighbours.
fn join(
    merge: &dyn Merge,
    key: &[u8],
    (older, below): (Tag, &[u8]),
    (tag, operand): (Tag, &[u8]),
) -> Option<RowEntry> {
    let (kind, value) = match older.kind() {
        Some(EntryKind::Put) => (EntryKind::Put, merge.full(key, Some(below), &[operand])),
        _ => (EntryKind::Merge, merge.partial(key, &[below, operand])?),
    };
    Some((Tag::new(tag.sequence(), kind), ValueBytes::copied(&value)))
}

/// The maximum number of rows that a cursor copies at once, and of bytes after which it copies no
/// more.
const MAX_BATCH_ROWS: usize = 64;
const MAX_BATCH_BYTES: usize = 16 << 10;
/// Smaller values are copied, larger ones are referenced.
const COPIED_BYTES: usize = 128;

/// An entry of a row that a cursor has copied.
#[derive(Debug, Clone)]
struct CopiedEntry {
    /// The range of its key in the copied bytes.
    key: Range<usize>,
    tag: Tag,
    value: Copied,
}

#[derive(Debug, Clone)]
enum Copied {
    /// A range of the copied bytes.
    Here(Range<usize>),
    Held(ValueBytes),
}

/// A cursor over rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowsCursor {
    /// The entries of one or several consecutive rows, newest first within each; empty without a
    /// position.
    entries: Vec<CopiedEntry>,
    bytes: Vec<u8>,
    at: usize,
    /// How many rows the last advance copied.
    batch_rows: usize,
}

impl RowsCursor {
    /// Appends copies of a row's entries.
    fn copy(&mut self, (key, row): (&Arc<[u8]>, &Vec<RowEntry>)) {
        let key = self.keep(key);
        for (tag, value) in row.iter().rev() {
            let value = if value.len() <= COPIED_BYTES {
                Copied::Here(self.keep(value))
            } else {
                Copied::Held(value.clone())
            };
            let (key, tag) = (key.clone(), *tag);
            self.entries.push(CopiedEntry { key, tag, value });
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
    }

    /// Moves to the newest entry of the row, or to the oldest.
    fn enter(&mut self, row: Option<(&Arc<[u8]>, &Vec<RowEntry>)>, at_newest: bool) {
        self.batch_rows = 0;
        self.clear();
        if let Some(row) = row {
            self.copy(row);
        }
        self.at = if at_newest {
            0
        } else {
            self.entries.len().saturating_sub(1)
        };
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.at < self.entries.len()
    }

    fn slice(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.get(range.clone()).unwrap_or_default()
    }

    pub(crate) fn key(&self) -> &[u8] {
        let entry = self.entries.get(self.at);
        entry.map_or(&[], |entry| self.slice(&entry.key))
    }

    pub(crate) fn tag(&self) -> Tag {
        let entry = self.entries.get(self.at);
        entry.map_or(Tag::OLDEST, |entry| entry.tag)
    }

    pub(crate) fn value(&self) -> &[u8] {
        match self.entries.get(self.at).map(|entry| &entry.value) {
            None => &[],
            Some(Copied::Here(range)) => self.slice(range),
            Some(Copied::Held(value)) => value,
        }
    }

    pub(crate) fn first(&mut self, rows: &MergedRows) {
        self.enter(rows.rows.read().first_key_value(), true);
    }

    pub(crate) fn last(&mut self, rows: &MergedRows) {
        self.enter(rows.rows.read().last_key_value(), false);
    }

    fn enter_from(&mut self, rows: &MergedRows, key: Bound<&[u8]>) {
        let rows = rows.rows.read();
        self.enter(rows.range::<[u8], _>((key, Bound::Unbounded)).next(), true);
    }

    fn enter_before(&mut self, rows: &MergedRows, key: &[u8]) {
        let rows = rows.rows.read();
        let below = (Bound::Unbounded, Bound::Excluded(key));
        self.enter(rows.range::<[u8], _>(below).next_back(), false);
    }

    /// Moves to the first entry at or after `(key, tag)`.
    pub(crate) fn seek(&mut self, rows: &MergedRows, key: &[u8], tag: Tag) {
        self.enter_from(rows, Bound::Included(key));
        if self.key() != key {
            return;
        }
        let position = self.entries.iter().position(|entry| entry.tag <= tag);
        match position {
            Some(position) => self.at = position,
            None => self.enter_from(rows, Bound::Excluded(key)),
        }
    }

    /// Moves to the last entry before `(key, tag)`.
    pub(crate) fn seek_before(&mut self, rows: &MergedRows, key: &[u8], tag: Tag) {
        self.enter_from(rows, Bound::Included(key));
        let newer = self.entries.iter().rposition(|entry| entry.tag > tag);
        match newer.filter(|_| self.key() == key) {
            Some(position) => self.at = position,
            None => self.enter_before(rows, key),
        }
    }

    pub(crate) fn next(&mut self, rows: &MergedRows) {
        if !self.is_valid() {
            return;
        }
        self.at += 1;
        if self.at < self.entries.len() {
            return;
        }
        self.at -= 1;
        let key = self.key().to_vec();
        self.advance(rows, &key);
    }

    /// Moves to the row after a key. Each call copies more rows than the one before.
    fn advance(&mut self, rows: &MergedRows, key: &[u8]) {
        self.clear();
        self.at = 0;
        self.batch_rows = (2 * self.batch_rows).clamp(1, MAX_BATCH_ROWS);
        let rows = rows.rows.read();
        let enter_from = (Bound::Excluded(key), Bound::Unbounded);
        for row in rows.range::<[u8], _>(enter_from).take(self.batch_rows) {
            self.copy(row);
            if self.bytes.len() >= MAX_BATCH_BYTES {
                break;
            }
        }
    }

    pub(crate) fn previous(&mut self, rows: &MergedRows) {
        if !self.is_valid() {
            return;
        }
        if let Some(newer) = self.at.checked_sub(1) {
            self.at = newer;
        } else {
            let key = self.key().to_vec();
            self.enter_before(rows, &key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds numbers.
    #[derive(Debug)]
    struct Sum;

    fn number(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0, |sum, byte| sum + u64::from(*byte))
    }

    impl Merge for Sum {
        fn name(&self) -> &'static str {
            "sum"
        }

        fn full(&self, _: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
            let sum: u64 = below.iter().chain(operands).map(|one| number(one)).sum();
            vec![u8::try_from(sum).unwrap()]
        }

        fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
            Some(self.full(key, None, operands))
        }
    }

    fn horizon(sequences: &[Sequence]) -> Horizon {
        Horizon {
            sequences: sequences.to_vec(),
            time: 0,
        }
    }

    fn row(rows: &MergedRows) -> Vec<(Sequence, u64)> {
        let entries = rows.versions(b"row", Tag::NEWEST);
        let shown = entries
            .iter()
            .map(|(tag, value)| (tag.sequence(), number(value)));
        shown.collect()
    }

    #[test]
    fn operands_become_one_unless_a_snapshot_lies_between_or_they_are_not_visible() {
        let rows = MergedRows::default();
        for sequence in [3, 1, 2, 4, 5, 6] {
            rows.insert(b"row", &[1], Tag::new(sequence, EntryKind::Merge));
        }
        let folded = |visible, sequences: &[Sequence]| {
            let horizon = horizon(sequences);
            rows.fold(b"row", &Sum, (visible, &horizon), &|_, _| false);
            row(&rows)
        };
        assert_eq!(folded(5, &[2, 5]), [(6, 1), (5, 3), (2, 2)]);
        assert_eq!(folded(6, &[2, 6]), [(6, 4), (2, 2)]);
        assert_eq!(folded(6, &[6]), [(6, 6)]);
    }

    #[test]
    fn operands_join_the_put_below_them_and_nothing_that_a_delete_cut_off() {
        let rows = MergedRows::default();
        rows.insert(b"row", &[1], Tag::new(1, EntryKind::Merge));
        rows.insert(b"row", &[5], Tag::new(2, EntryKind::Put));
        rows.insert(b"row", &[1], Tag::new(3, EntryKind::Merge));
        rows.insert(b"row", &[], Tag::new(4, EntryKind::Delete));
        rows.insert(b"row", &[1], Tag::new(5, EntryKind::Merge));
        rows.insert(b"row", &[1], Tag::new(6, EntryKind::Merge));
        let all = horizon(&[9]);
        let covered = |older: Tag, _| older.sequence() == 5;
        rows.fold(b"row", &Sum, (9, &all), &covered);
        assert_eq!(row(&rows), [(6, 1), (5, 1), (4, 0), (3, 6), (1, 1)]);
    }

    #[test]
    fn a_cursor_shows_all_entries_in_order_both_ways() {
        let rows = MergedRows::default();
        for (key, sequence) in [("b", 2), ("a", 1), ("b", 4), ("c", 3)] {
            rows.insert(key.as_bytes(), &[], Tag::new(sequence, EntryKind::Merge));
        }
        let mut cursor = RowsCursor::default();
        let mut shown = Vec::new();
        cursor.first(&rows);
        while cursor.is_valid() {
            shown.push((cursor.key().to_vec(), cursor.tag().sequence()));
            cursor.next(&rows);
        }
        let expected = [("a", 1), ("b", 4), ("b", 2), ("c", 3)];
        let expected = expected.map(|(key, sequence)| (key.as_bytes().to_vec(), sequence));
        assert_eq!(shown, expected);
        let mut back = Vec::new();
        cursor.last(&rows);
        while cursor.is_valid() {
            back.push((cursor.key().to_vec(), cursor.tag().sequence()));
            cursor.previous(&rows);
        }
        back.reverse();
        assert_eq!(back, expected);
        cursor.seek(&rows, b"b", Tag::seek(3));
        assert_eq!((cursor.key(), cursor.tag().sequence()), (&b"b"[..], 2));
        cursor.seek(&rows, b"b", Tag::seek(1));
        assert_eq!(cursor.key(), b"c");
        cursor.seek_before(&rows, b"b", Tag::seek(3));
        assert_eq!((cursor.key(), cursor.tag().sequence()), (&b"b"[..], 4));
        cursor.seek_before(&rows, b"b", Tag::NEWEST);
        assert_eq!(cursor.key(), b"a");
    }
}
