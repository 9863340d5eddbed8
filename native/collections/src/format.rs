//! Keys and values, as `docs/formats/collection.md` describes them.
//!
//! ```text
//! key        := collection{u64} index{u32} rest        index 0: documents
//! document   := document_key
//! value      := 1 flags version rules created updated ordinal {varints} body
//! composite  := 1 entry document_key length{u16}       value: ordering{u8}
//! mark       := 0 document_key 0{u16}
//! unique     := 2 entry                                value: document_key
//! ```

use rillbase_binary_format::{ByteReader, ByteWriter as _};

use crate::error::{Error, Result};

/// The number of the documents among a collection's indexes.
pub(crate) const DOCUMENTS: u32 = 0;
/// The length of collection and index in a key.
pub(crate) const PREFIX_BYTES: usize = 12;

const MARK: u8 = 0;
const COMPOSITE: u8 = 1;
const UNIQUE: u8 = 2;
const LENGTH_BYTES: usize = 2;
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

/// The collection and the document's key, if the key is that of a document.
pub(crate) fn split_document_key(key: &[u8]) -> Option<(u64, &[u8])> {
    let (collection, rest) = key.split_first_chunk()?;
    let (index, document) = rest.split_first_chunk()?;
    let is_document = u32::from_be_bytes(*index) == DOCUMENTS;
    is_document.then(|| (u64::from_be_bytes(*collection), document))
}

/// The kinds of entries of an index that is read in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryForm {
    /// One key per entry and document; the mark has its own first byte.
    Composite,
    /// One key per entry.
    Unique,
}

impl EntryForm {
    fn byte(self) -> u8 {
        match self {
            Self::Composite => COMPOSITE,
            Self::Unique => UNIQUE,
        }
    }
}

/// The key of an entry of a document; an empty entry is the mark.
pub(crate) fn entry_key(
    (collection, index): (u64, u32),
    form: EntryForm,
    entry: &[u8],
    document: &[u8],
) -> Vec<u8> {
    let mut key = prefix(collection, index).to_vec();
    let kind = if entry.is_empty() { MARK } else { form.byte() };
    key.push(kind);
    key.extend_from_slice(entry);
    if kind != UNIQUE {
        key.extend_from_slice(document);
        // Entries are at most 1,024 bytes long.
        let length = u16::try_from(entry.len()).unwrap_or(u16::MAX);
        key.extend_from_slice(&length.to_be_bytes());
    }
    key
}

/// Where the keys of entries from `entry` on begin.
pub(crate) fn entry_bound(
    (collection, index): (u64, u32),
    form: EntryForm,
    entry: &[u8],
) -> Vec<u8> {
    let mut key = prefix(collection, index).to_vec();
    key.push(form.byte());
    key.extend_from_slice(entry);
    key
}

/// Where the marks of an index begin.
pub(crate) fn mark_bound((collection, index): (u64, u32)) -> Vec<u8> {
    let mut key = prefix(collection, index).to_vec();
    key.push(MARK);
    key
}

/// The entry and the document's key in the key of a composite entry or a mark.
pub(crate) fn split_entry(key: &[u8]) -> Result<(&[u8], &[u8])> {
    let malformed = || Error::Malformed("the key of an index");
    let rest = key.get(PREFIX_BYTES + 1..).ok_or_else(malformed)?;
    let (rest, length) = rest
        .len()
        .checked_sub(LENGTH_BYTES)
        .and_then(|at| rest.split_at_checked(at))
        .ok_or_else(malformed)?;
    let length = length.try_into().map(u16::from_be_bytes);
    let length = usize::from(length.map_err(|_| malformed())?);
    rest.split_at_checked(length).ok_or_else(malformed)
}

/// The entry in the key of a unique entry.
pub(crate) fn unique_entry(key: &[u8]) -> Result<&[u8]> {
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
        assert_eq!(unique_entry(&key).unwrap(), b"entry");
        assert!(split_entry(&prefix(7, 3)).is_err());
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
        assert!(keys[0] >= mark_bound(place) && keys[0] < keys[1]);
        assert_eq!(
            entry_bound(place, EntryForm::Composite, b"ab").as_slice(),
            &keys[3][..15]
        );
    }
}
