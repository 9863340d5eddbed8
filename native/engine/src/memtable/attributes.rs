//! The attributes of a memtable's entries in the order of their values, so that a query visits only
//! the entries with the values that it searches for.
//!
//! An entry is listed once for each of its values: its key and tag, below
//!
//! ```text
//! listed key := 0                                an entry with unknown attributes
//!             | 1 id value 0 0 latest-first       an entry with a value
//! value      := its first 32 bytes, in which 0 is followed by 255
//! ```
//!
//! `latest-first` is the complement of the entry's last time, eight bytes, the first of them the
//! highest. So the entries with a value are in the order of time, the latest first, and those of one
//! time in the order of writes, the newest first.
//!
//! Like the memtable's entries, they are listed before their sequences become visible. Deletes and
//! range deletes are not listed: queries look up each key that they visit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use rillbase_skip_list::{ListCursor, SkipList};

use crate::extract::{AttributeBounds, Extractor, ROUNDED_BYTES, ZoneMap, extract_entry};
use crate::key::{Millis, Tag};
use crate::options::KeyspaceOptions;

const UNKNOWN: u8 = 0;
const VALUE: u8 = 1;

/// The entries of a memtable by their attributes.
#[derive(Debug)]
pub(crate) struct AttributeList {
    list: SkipList,
    extractor: Arc<dyn Extractor>,
    /// The version of the extractor before the first entry was extracted.
    version: u64,
    /// Set if an entry could not be listed.
    is_incomplete: AtomicBool,
    outline: RwLock<ZoneMap>,
}

/// An entry of a memtable, and the last time of its attributes, or zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttributeEntry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) tag: Tag,
    pub(crate) time: Millis,
}

impl AttributeList {
    /// An empty list for a keyspace with an extractor. Early folding changes entries after they
    /// were inserted, so there is none for keyspaces that accumulate.
    pub(crate) fn of(options: &KeyspaceOptions) -> Option<Box<Self>> {
        let extractor = options.extractor.as_ref();
        let is_listed = |extractor: &&Arc<dyn Extractor>| extractor.is_listed();
        let extractor = extractor
            .filter(|_| !options.accumulates)
            .filter(is_listed)?;
        Some(Box::new(Self {
            list: SkipList::new(),
            version: extractor.version(),
            extractor: Arc::clone(extractor),
            is_incomplete: AtomicBool::new(false),
            outline: RwLock::default(),
        }))
    }

    /// Lists an entry. Returns the memory that this takes.
    pub(crate) fn insert(&self, key: &[u8], value: &[u8], tag: Tag) -> usize {
        let mut zone = ZoneMap::of_values();
        if !extract_entry(self.extractor.as_ref(), (key, tag, value), &mut zone) {
            return 0;
        }
        if zone.has_unknown() {
            return self.insert_at(&[UNKNOWN], key, tag);
        }
        let values = zone.take_values();
        if values.is_empty() {
            return 0;
        }
        self.extend_outline(&zone, &values);
        let time = zone.times().map_or(0, |(_, last)| last);
        let (mut bytes, mut at) = (0, Vec::new());
        for (id, value) in &values {
            at.clear();
            encode(*id, value, &mut at);
            at.extend_from_slice(&(!time).to_be_bytes());
            bytes += self.insert_at(&at, key, tag);
        }
        bytes
    }

    fn insert_at(&self, at: &[u8], key: &[u8], tag: Tag) -> usize {
        let bytes = self.list.insert(at, key, tag.0);
        if bytes.is_none() {
            self.is_incomplete.store(true, Ordering::Release);
        }
        bytes.unwrap_or(0)
    }

    fn extend_outline(&self, zone: &ZoneMap, values: &[(u8, Vec<u8>)]) {
        let is_outside = |outline: &ZoneMap| {
            let mut ids = values.iter().map(|(id, _)| *id);
            ids.any(|id| !outline.has_all_of(id)) || !outline.contains_rectangle(zone)
        };
        if !is_outside(&self.outline.read()) {
            return;
        }
        let mut outline = self.outline.write();
        for (id, _) in values {
            outline.add_all_of(*id);
        }
        if let Some(rectangle) = zone.rectangle() {
            outline.add_rectangle(rectangle);
        }
    }

    /// A zone that covers all listed entries, except for their times.
    pub(crate) fn outline(&self) -> ZoneMap {
        self.outline.read().clone()
    }

    /// Whether all entries are listed with the attributes that a version of the extractor adds.
    pub(crate) fn is_complete_in(&self, version: u64) -> bool {
        self.version >= version && !self.is_incomplete.load(Ordering::Acquire)
    }

    /// The entry at a position, and its listed key without the time.
    fn entry(&self, at: ListCursor) -> Option<(&[u8], AttributeEntry<'_>)> {
        let entry = self.list.entry(at)?;
        let (start, time) = match entry.key().split_last_chunk() {
            Some((start, time)) => (start, !u64::from_be_bytes(*time)),
            None => (entry.key(), 0),
        };
        let (key, tag) = (entry.value(), Tag(entry.tag()));
        Some((start, AttributeEntry { key, tag, time }))
    }

    /// The entries with unknown attributes.
    pub(crate) fn unknown(&self) -> AttributeCursor {
        AttributeCursor {
            at: self.list.seek(&[UNKNOWN], Tag::NEWEST.0),
            last: vec![UNKNOWN],
        }
    }

    /// The entries with a value within bounds, as far as the first bytes of values tell. An entry
    /// with several values is there several times.
    pub(crate) fn within(&self, bounds: &AttributeBounds) -> AttributeCursor {
        let (mut first, mut last) = (Vec::new(), Vec::new());
        encode(bounds.id, &bounds.low, &mut first);
        encode(bounds.id, &bounds.high, &mut last);
        AttributeCursor {
            at: self.list.seek(&first, Tag::NEWEST.0),
            last,
        }
    }

    /// The entry at a cursor.
    pub(crate) fn peek(&self, cursor: &AttributeCursor) -> Option<AttributeEntry<'_>> {
        let (start, entry) = self.entry(cursor.at)?;
        (start <= cursor.last.as_slice()).then_some(entry)
    }

    /// The entry at a cursor, which moves to the next one.
    pub(crate) fn next(&self, cursor: &mut AttributeCursor) -> Option<AttributeEntry<'_>> {
        let entry = self.peek(cursor)?;
        cursor.at = self.list.next(cursor.at);
        Some(entry)
    }
}

/// A position in a range of the list.
#[derive(Debug)]
pub(crate) struct AttributeCursor {
    at: ListCursor,
    /// The last listed key of the range, without the time.
    last: Vec<u8>,
}

/// Writes the listed key of a value, without the time.
fn encode(id: u8, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[VALUE, id]);
    for &byte in value.iter().take(ROUNDED_BYTES) {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_keys_have_the_order_of_values_and_none_is_a_prefix_of_another() {
        let listed = |value: &[u8]| {
            let mut out = Vec::new();
            encode(7, value, &mut out);
            out
        };
        let long = [b'x'; 40];
        let values: [&[u8]; 9] = [
            b"",
            b"\0",
            b"\0\0",
            b"\0\x01",
            b"\x01",
            b"a",
            b"a\0",
            b"ab",
            &long[..32],
        ];
        for pair in values.windows(2) {
            let (lower, higher) = (listed(pair[0]), listed(pair[1]));
            assert!(lower < higher && !higher.starts_with(&lower), "{pair:?}");
        }
        assert_eq!(listed(&long), listed(&long[..32]));
    }
}
