//! Keys and values, as `docs/formats/collection.md` describes them.
//!
//! ```text
//! key        := collection{u64} index{u32} rest        index 0: documents
//! document   := document_key
//! value      := 1 flags version rules created updated ordinal {varints} body
//! composite  := 1 entry document_key length{u16}       value: ordering{u8}
//! timed      := 1 entry !updated{u64} document_key length{u16}
//! mark       := 0 [!updated] document_key 0{u16}
//! unique     := 2 entry                                value: document_key
//! list       := 2 entry                                value: `entry_list.rs`
//! change     := document_key                           value: version{i64}   index 2^32 - 1
//! ```
//!
//! An index has composite and unique entries, or timed ones, or lists and timed ones.

use rillbase_binary_format::{ByteReader, ByteWriter as _};
use rillbase_engine::HeadFunction;

use crate::error::{Error, Result};

/// The number of the documents among a collection's indexes.
pub(crate) const DOCUMENTS: u32 = 0;
/// The number of the documents that were changed since a move to another backend began.
pub(crate) const CHANGES: u32 = u32::MAX;
/// The length of collection and index in a key.
pub(crate) const PREFIX_BYTES: usize = 12;

const MARK: u8 = 0;
const COMPOSITE: u8 = 1;
/// Also lists: an index has only one of the two.
const UNIQUE: u8 = 2;
const LENGTH_BYTES: usize = 2;
const TIME_BYTES: usize = 8;
const VERSION: u8 = 1;
const TOMBSTONE: u64 = 1;
const ATOMIC: u64 = 2;

/// Where the keys of an index begin.
pub(crate) fn prefix(collection: u64, index: u32) -> [u8; PREFIX_BYTES] {
    let mut prefix = [0; PREFIX_BYTES];
    let (head, tail) = prefix.split_at_mut(8);
    head.copy_from_slice(&collection.to_be_bytes());
    tail.copy_from_slice(&index.to_be_bytes());
    prefix
}

/// The key of a document.
pub(crate) fn document_key(collection: u64, document: &[u8]) -> Vec<u8> {
    [&prefix(collection, DOCUMENTS), document].concat()
}

/// The key under which the change of a document is recorded.
pub(crate) fn change_key(collection: u64, document: &[u8]) -> Vec<u8> {
    [&prefix(collection, CHANGES), document].concat()
}

/// The collection and the document's key, if the key is that of a document.
pub(crate) fn split_document_key(key: &[u8]) -> Option<(u64, &[u8])> {
    let (collection, rest) = key.split_first_chunk()?;
    let (index, document) = rest.split_first_chunk()?;
    let is_document = u32::from_be_bytes(*index) == DOCUMENTS;
    is_document.then(|| (u64::from_be_bytes(*collection), document))
}

/// The forms of the entries of indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryForm {
    /// One key per entry and document; the mark has its own first byte.
    Composite,
    /// One key per entry, with the document's key.
    Unique,
    /// One key per entry, time and document, the newest first; marks as above.
    Timed,
    /// One key per entry, with the documents.
    List,
}

impl EntryForm {
    fn byte(self) -> u8 {
        match self {
            Self::Composite | Self::Timed => COMPOSITE,
            Self::Unique | Self::List => UNIQUE,
        }
    }

    /// Whether a key has one document, so that marks are apart from other entries.
    fn has_marks(self) -> bool {
        matches!(self, Self::Composite | Self::Timed)
    }
}

/// A document in the order of times: the newest first, then by key.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TimedDocument {
    /// The complement of the time of its last change, in milliseconds since 1970.
    pub(crate) reversed_ms: u64,
    pub(crate) key: Vec<u8>,
}

impl TimedDocument {
    pub(crate) fn new(updated_ms: i64, key: &[u8]) -> Self {
        Self {
            reversed_ms: !unsigned(updated_ms),
            key: key.to_vec(),
        }
    }
}

/// The key of an entry of a document; an empty entry is the mark.
pub(crate) fn entry_key(
    place: (u64, u32),
    form: EntryForm,
    entry: &[u8],
    document: &[u8],
) -> Vec<u8> {
    let mut key = entry_head(place, form, entry);
    if form == EntryForm::Unique && !entry.is_empty() {
        return key;
    }
    key.extend_from_slice(document);
    put_entry_length(&mut key, entry);
    key
}

/// The key of a timed entry of a document; an empty entry is the mark.
pub(crate) fn timed_key(place: (u64, u32), entry: &[u8], timed: &TimedDocument) -> Vec<u8> {
    let mut key = entry_head(place, EntryForm::Timed, entry);
    key.extend_from_slice(&timed.reversed_ms.to_be_bytes());
    key.extend_from_slice(&timed.key);
    put_entry_length(&mut key, entry);
    key
}

/// The key of the list of an entry.
pub(crate) fn list_key(place: (u64, u32), entry: &[u8]) -> Vec<u8> {
    entry_head(place, EntryForm::List, entry)
}

/// The beginning of all keys of an entry in a form. An empty entry of a unique index is a composite
/// one.
pub(crate) fn entry_head(place: (u64, u32), form: EntryForm, entry: &[u8]) -> Vec<u8> {
    if entry.is_empty() && form != EntryForm::List {
        return mark_bound(place);
    }
    entry_bound(place, form, entry)
}

/// The end of all keys of an entry in a form. No entry begins with another one, and keys of
/// documents begin with a byte that is less than 255.
pub(crate) fn entry_end(place: (u64, u32), form: EntryForm, entry: &[u8]) -> Vec<u8> {
    let mut key = entry_head(place, form, entry);
    match form {
        EntryForm::Composite => key.push(0xff),
        EntryForm::Timed => key.extend_from_slice(&[0xff; TIME_BYTES + 1]),
        EntryForm::Unique | EntryForm::List => key.push(0),
    }
    key
}

fn put_entry_length(key: &mut Vec<u8>, entry: &[u8]) {
    // Entries are at most 1,024 bytes long.
    let length = u16::try_from(entry.len()).unwrap_or(u16::MAX);
    key.extend_from_slice(&length.to_be_bytes());
}

/// The heads of keys in the filters of tables: a scan of one entry skips tables without it.
#[derive(Debug)]
pub(crate) struct EntryHeads;

impl HeadFunction for EntryHeads {
    fn name(&self) -> &'static str {
        "collection-entries"
    }

    fn head_len(&self, key: &[u8]) -> usize {
        match key.get(PREFIX_BYTES) {
            Some(&(MARK | COMPOSITE)) if split_document_key(key).is_none() => {
                let head = split_rest(key).map(|(entry, _)| PREFIX_BYTES + 1 + entry.len());
                head.unwrap_or(key.len())
            }
            _ => key.len(),
        }
    }
}

/// Where the keys of entries from `entry` on begin. A range from the beginning includes the marks.
pub(crate) fn range_start(place: (u64, u32), form: EntryForm, entry: &[u8]) -> Vec<u8> {
    if entry.is_empty() && form.has_marks() {
        return mark_bound(place);
    }
    entry_bound(place, form, entry)
}

/// Where the keys of entries before `entry` end; `None`: those of all entries.
pub(crate) fn range_end(place: (u64, u32), form: EntryForm, entry: Option<&[u8]>) -> Vec<u8> {
    match entry {
        Some(entry) => entry_bound(place, form, entry),
        None => [&prefix(place.0, place.1)[..], &[form.byte() + 1]].concat(),
    }
}

fn entry_bound((collection, index): (u64, u32), form: EntryForm, entry: &[u8]) -> Vec<u8> {
    [&prefix(collection, index)[..], &[form.byte()], entry].concat()
}

fn mark_bound((collection, index): (u64, u32)) -> Vec<u8> {
    [&prefix(collection, index)[..], &[MARK]].concat()
}

/// The entry, and the document's key with what precedes it, in the key of a composite or timed entry
/// or a mark.
fn split_rest(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = key.get(PREFIX_BYTES + 1..)?;
    let (rest, length) = rest.split_at_checked(rest.len().checked_sub(LENGTH_BYTES)?)?;
    let length = u16::from_be_bytes(length.try_into().ok()?);
    rest.split_at_checked(usize::from(length))
}

/// The entry and the document's key in the key of a composite entry or a mark.
pub(crate) fn split_entry(key: &[u8]) -> Result<(&[u8], &[u8])> {
    split_rest(key).ok_or(Error::Malformed("the key of an index"))
}

/// The entry and the document in the key of a timed entry or a mark.
pub(crate) fn split_timed(key: &[u8]) -> Result<(&[u8], TimedDocument)> {
    let split = || {
        let (entry, rest) = split_rest(key)?;
        let (time, document) = rest.split_first_chunk::<TIME_BYTES>()?;
        let timed = TimedDocument {
            reversed_ms: u64::from_be_bytes(*time),
            key: document.to_vec(),
        };
        Some((entry, timed))
    };
    split().ok_or(Error::Malformed("the key of an index by time"))
}

/// The entry in the key of a unique entry or a list.
pub(crate) fn whole_entry(key: &[u8]) -> Result<&[u8]> {
    let entry = key.get(PREFIX_BYTES + 1..);
    entry.ok_or(Error::Malformed("the key of a unique index"))
}

/// What is stored of a document besides its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DocumentHead {
    /// Whether it was deleted; its body then is its `_id` alone.
    pub is_tombstone: bool,
    /// Whether all documents of its batch changed as one.
    pub is_atomic: bool,
    /// Its version.
    pub version: i64,
    /// The version of the access rules with which it was written.
    pub rules_version: u64,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was changed.
    pub updated_ms: i64,
    /// The position of its write in the batch.
    pub ordinal: u32,
}

/// The value of a document.
pub(crate) fn encode_document(head: &DocumentHead, body: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(body.len() + 32);
    value.push(VERSION);
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    value.put_varint(flag(head.is_tombstone, TOMBSTONE) | flag(head.is_atomic, ATOMIC));
    for number in [
        unsigned(head.version),
        head.rules_version,
        unsigned(head.created_ms),
        unsigned(head.updated_ms),
        u64::from(head.ordinal),
    ] {
        value.put_varint(number);
    }
    value.extend_from_slice(body);
    value
}

/// The parts of a document's value.
pub(crate) fn decode_document(value: &[u8]) -> Result<(DocumentHead, &[u8])> {
    read_document(value).ok_or(Error::Malformed("a document"))
}

fn read_document(value: &[u8]) -> Option<(DocumentHead, &[u8])> {
    let mut reader = ByteReader::new(value);
    if reader.byte().ok()? != VERSION {
        return None;
    }
    let flags = reader.varint().ok()?;
    let mut number = || reader.varint().ok();
    let head = DocumentHead {
        is_tombstone: flags & TOMBSTONE != 0,
        is_atomic: flags & ATOMIC != 0,
        version: i64::try_from(number()?).ok()?,
        rules_version: number()?,
        created_ms: i64::try_from(number()?).ok()?,
        updated_ms: i64::try_from(number()?).ok()?,
        ordinal: u32::try_from(number()?).ok()?,
    };
    Some((head, value.get(reader.offset()..)?))
}

/// Versions and times are never negative.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_round_trips_and_a_cut_one_is_malformed() {
        let head = DocumentHead {
            is_tombstone: true,
            is_atomic: true,
            version: 300,
            rules_version: 2,
            created_ms: 1 << 41,
            updated_ms: (1 << 41) + 5,
            ordinal: 999,
        };
        let value = encode_document(&head, b"body");
        assert_eq!(decode_document(&value).unwrap(), (head, &b"body"[..]));
        assert!(decode_document(&value[..8]).is_err());
        assert!(decode_document(&[2]).is_err());
    }

    #[test]
    fn an_entry_and_its_document_are_split_again() {
        let place = (7, 3);
        for entry in [&b""[..], b"e", b"entry"] {
            let key = entry_key(place, EntryForm::Composite, entry, b"document");
            assert_eq!(split_entry(&key).unwrap(), (entry, &b"document"[..]));
        }
        let key = entry_key(place, EntryForm::Unique, b"entry", b"document");
        assert_eq!(whole_entry(&key).unwrap(), b"entry");
        assert_eq!(whole_entry(&list_key(place, b"")).unwrap(), b"");
        assert!(split_entry(&prefix(7, 3)).is_err());
        assert!(split_timed(&entry_key(place, EntryForm::Composite, b"e", b"1234567")).is_err());
    }

    #[test]
    fn keys_are_ordered_by_entry_then_by_document() {
        let place = (7, 3);
        let key =
            |entry: &[u8], document: &[u8]| entry_key(place, EntryForm::Composite, entry, document);
        // Entries and keys of documents are prefix-free.
        let keys = [
            key(b"", b"z"),
            key(b"a\0", b"a"),
            key(b"a\0", b"b"),
            key(b"ab", b"a"),
            key(b"b\0", b""),
        ];
        assert!(keys.is_sorted());
        assert!(keys[0] >= range_start(place, EntryForm::Composite, b""));
        assert_eq!(
            entry_bound(place, EntryForm::Composite, b"ab").as_slice(),
            &keys[3][..15]
        );
        assert!(keys[2] < entry_end(place, EntryForm::Composite, b"a\0"));
        assert!(keys[3] > entry_end(place, EntryForm::Composite, b"a\0"));
    }

    #[test]
    fn the_head_of_an_entry_is_what_precedes_its_document() {
        let place = (7, 3);
        let timed = timed_key(place, b"entry", &TimedDocument::new(9, b"document"));
        let composite = entry_key(place, EntryForm::Composite, b"entry", b"document");
        let head = entry_head(place, EntryForm::Timed, b"entry");
        for key in [&timed, &composite] {
            assert_eq!(key[..EntryHeads.head_len(key)], head);
        }
        let mark = entry_key(place, EntryForm::Composite, b"", b"document");
        assert_eq!(EntryHeads.head_len(&mark), PREFIX_BYTES + 1);
        for whole in [list_key(place, b"entry"), document_key(7, b"\x01document")] {
            assert_eq!(EntryHeads.head_len(&whole), whole.len());
        }
    }

    #[test]
    fn timed_entries_are_ordered_by_entry_then_the_newest_first() {
        let place = (7, 3);
        let key = |entry: &[u8], updated_ms, document: &[u8]| {
            timed_key(place, entry, &TimedDocument::new(updated_ms, document))
        };
        let keys = [
            key(b"", 0, b"z"),
            key(b"a\0", 9, b"a"),
            key(b"a\0", 9, b"b"),
            key(b"a\0", 0, b"\xfe"),
            key(b"b\0", 8, b"a"),
        ];
        assert!(keys.is_sorted());
        assert_eq!(
            split_timed(&keys[2]).unwrap(),
            (&b"a\0"[..], TimedDocument::new(9, b"b"))
        );
        let end = entry_end(place, EntryForm::Timed, b"a\0");
        assert!(keys[3] < end && end < keys[4]);
        assert!(keys[0] < entry_end(place, EntryForm::Timed, b""));
    }
}
