//! Batches of writes, in the form in which they are logged.
//!
//! ```text
//! batch := sequence{varint} time{varint} count{varint} entry*
//! entry := kind{u8} keyspace{varint} key{slice} [value{slice}]     no value: delete
//! ```
//!
//! In version 1 of the log sequence and time have 64 bits, and the count has 32.
//!
//! The entries have consecutive sequences from `sequence` on.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult, varint_length};

use crate::db::Keyspace;
use crate::error::{Error, Result};
use crate::key::{EntryKind, Millis, Sequence};
use crate::wal::WalVersion;

/// The maximum size of the header before the entries. Unused bytes are not logged.
const HEADER_ROOM: usize = 30;
const HEADER_BYTES_1: usize = 20;
/// The initial capacity, so that small batches need no reallocation.
const FIRST_BYTES: usize = 480;
/// Bytes of a sequence in a key.
const NAME_BYTES: usize = 8;
/// The maximum size of a batch, which is one record of the log.
const MAX_BYTES: usize = crate::wal::MAX_BODY_BYTES;
/// The maximum length of a key: keys are kept in indexes and in the manifest.
pub(crate) const MAX_KEY_BYTES: usize = 1 << 16;

/// Writes that become visible and durable together, over any keyspaces of one database.
#[derive(Debug, Clone)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    count: u32,
    /// Where sequences are filled in, and for which write.
    named: Vec<(usize, u32)>,
    /// The keyspaces that it writes to, each once.
    keyspaces: Vec<u64>,
    error: Option<&'static str>,
}

impl Default for WriteBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        let mut bytes = Vec::with_capacity(FIRST_BYTES);
        bytes.resize(HEADER_ROOM, 0);
        Self {
            bytes,
            count: 0,
            named: Vec::new(),
            keyspaces: Vec::new(),
            error: None,
        }
    }

    /// The number of writes.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether it has no writes.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Its size in the log, or a few bytes more.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the writes of another batch.
    pub fn extend(&mut self, other: &Self) {
        let at = self.bytes.len();
        self.bytes
            .extend_from_slice(other.bytes.get(HEADER_ROOM..).unwrap_or_default());
        let moved = other
            .named
            .iter()
            .map(|&(offset, number)| (offset - HEADER_ROOM + at, number + self.count));
        self.named.extend(moved);
        self.count = self.count.saturating_add(other.count);
        for keyspace in &other.keyspaces {
            if !self.keyspaces.contains(keyspace) {
                self.keyspaces.push(*keyspace);
            }
        }
        self.error = self.error.or(other.error);
    }

    /// Removes all writes.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEADER_ROOM);
        self.count = 0;
        self.keyspaces.clear();
        self.named.clear();
        self.error = None;
    }

    /// Sets a key to a value.
    pub fn put(&mut self, keyspace: &Keyspace, key: &[u8], value: &[u8]) {
        self.begin(EntryKind::Put, keyspace, key);
        self.bytes.put_slice(value);
    }

    /// Sets a key to a value until `expiry`.
    pub fn put_expiring(&mut self, keyspace: &Keyspace, key: &[u8], value: &[u8], expiry: Millis) {
        self.check_expiring(keyspace);
        self.begin(EntryKind::PutExpiring, keyspace, key);
        self.value_expiring(value, expiry);
    }

    fn check_expiring(&mut self, keyspace: &Keyspace) {
        if keyspace.options().merge.is_some() && !keyspace.expires_by_key() {
            self.refuse("a keyspace with merge operands never expires by entry");
        }
    }

    fn value_expiring(&mut self, value: &[u8], expiry: Millis) {
        self.bytes
            .put_varint((value.len() + crate::key::EXPIRY_BYTES) as u64);
        self.bytes.extend_from_slice(&expiry.to_le_bytes());
        self.bytes.extend_from_slice(value);
    }

    /// Deletes a key.
    pub fn delete(&mut self, keyspace: &Keyspace, key: &[u8]) {
        if keyspace.options().layout().requires_attributes() {
            self.refuse("this keyspace needs the attributes of a delete: use delete_with");
        }
        self.begin(EntryKind::Delete, keyspace, key);
    }

    /// Deletes a key; `about` describes the deleted value as the extractor requires.
    pub fn delete_with(&mut self, keyspace: &Keyspace, key: &[u8], about: &[u8]) {
        self.begin(EntryKind::DeleteWith, keyspace, key);
        self.bytes.put_slice(about);
    }

    /// Sets the key made of `prefix` and the write's own sequence, inverted and big-endian, to a
    /// value, until `expiry` if given. Such a key is always new, so no read is needed to find its
    /// place; keys with one prefix are ordered newest first.
    pub fn put_sequenced(
        &mut self,
        keyspace: &Keyspace,
        prefix: &[u8],
        value: &[u8],
        expiry: Option<Millis>,
    ) {
        // The sequence is filled in once it is assigned.
        let parts = [prefix, &[0; NAME_BYTES]];
        match expiry {
            None => {
                self.begin_of(EntryKind::Put, keyspace, parts);
                self.name_by_sequence();
                self.bytes.put_slice(value);
            }
            Some(expiry) => {
                self.check_expiring(keyspace);
                self.begin_of(EntryKind::PutExpiring, keyspace, parts);
                self.name_by_sequence();
                self.value_expiring(value, expiry);
            }
        }
    }

    /// Replaces the last bytes of the key just added by the sequence of its write, inverted and
    /// big-endian.
    fn name_by_sequence(&mut self) {
        let at = self.bytes.len().saturating_sub(NAME_BYTES);
        self.named.push((at, self.count - 1));
    }

    /// Deletes all keys from `start` up to `end`, exclusive.
    pub fn delete_range(&mut self, keyspace: &Keyspace, start: &[u8], end: &[u8]) {
        if end.len() > MAX_KEY_BYTES {
            self.refuse("a key is longer than 64 KiB");
        }
        self.begin(EntryKind::RangeDelete, keyspace, start);
        self.bytes.put_slice(end);
    }

    /// Adds a merge operand to a key.
    pub fn merge(&mut self, keyspace: &Keyspace, key: &[u8], operand: &[u8]) {
        if keyspace.options().merge.is_none() {
            self.refuse("this keyspace has no merge");
        }
        self.begin(EntryKind::Merge, keyspace, key);
        self.bytes.put_slice(operand);
    }

    fn begin(&mut self, kind: EntryKind, keyspace: &Keyspace, key: &[u8]) {
        self.begin_of(kind, keyspace, [key, &[]]);
    }

    /// Adds everything of a write except its value; the key consists of two parts.
    fn begin_of(&mut self, kind: EntryKind, keyspace: &Keyspace, [head, tail]: [&[u8]; 2]) {
        let length = head.len() + tail.len();
        if length > MAX_KEY_BYTES {
            self.refuse("a key is longer than 64 KiB");
        }
        self.bytes.push(kind as u8);
        self.bytes.put_varint(keyspace.id());
        self.bytes.put_varint(length as u64);
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(tail);
        if self.keyspaces.last() != Some(&keyspace.id()) && !self.keyspaces.contains(&keyspace.id())
        {
            self.keyspaces.push(keyspace.id());
        }
        self.count = self.count.saturating_add(1);
    }

    /// Records the first error; writing the batch then fails.
    fn refuse(&mut self, what: &'static str) {
        self.error.get_or_insert(what);
    }

    pub(crate) fn check(&self) -> Result<()> {
        let what = if let Some(what) = self.error {
            what
        } else if self.bytes.len() > MAX_BYTES {
            "a batch is larger than 256 MiB"
        } else {
            return Ok(());
        };
        Err(Error::InvalidArgument { what: what.into() })
    }

    /// The record of an empty batch, which marks the sequences before `sequence` as used.
    pub(crate) fn skip_to(sequence: Sequence, time: Millis) -> Stamped {
        Self::new().stamp(sequence, time)
    }

    /// The record for the log.
    pub(crate) fn stamp(mut self, sequence: Sequence, time: Millis) -> Stamped {
        // The header ends where the entries start, so it is written backwards.
        let mut start = HEADER_ROOM;
        for number in [u64::from(self.count), time, sequence] {
            start = put_varint_before(&mut self.bytes, start, number);
        }
        for &(at, number) in &self.named {
            let name = !(sequence + u64::from(number));
            if let Some(slot) = self.bytes.get_mut(at..at + NAME_BYTES) {
                slot.copy_from_slice(&name.to_be_bytes());
            }
        }
        Stamped {
            bytes: self.bytes,
            start,
        }
    }

    pub(crate) fn keyspaces(&self) -> &[u64] {
        &self.keyspaces
    }
}

/// Writes a varint that ends before `end`; returns where it begins.
fn put_varint_before(bytes: &mut [u8], end: usize, number: u64) -> usize {
    let length = varint_length(number);
    let start = end.saturating_sub(length);
    let slots = bytes.get_mut(start..end).unwrap_or_default();
    let mut rest = number;
    for (slot, left) in slots.iter_mut().zip((0..length).rev()) {
        let more = if left > 0 { 0x80 } else { 0 };
        *slot = (rest & 0x7f) as u8 | more;
        rest >>= 7;
    }
    start
}

/// A batch with its sequences and its time.
#[derive(Debug)]
pub(crate) struct Stamped {
    bytes: Vec<u8>,
    start: usize,
}

impl Stamped {
    /// The logged bytes.
    pub(crate) fn record(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

/// An entry of a logged batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchEntry<'a> {
    pub(crate) kind: EntryKind,
    pub(crate) keyspace: u64,
    pub(crate) key: &'a [u8],
    /// Empty for deletes.
    pub(crate) value: &'a [u8],
}

/// A logged batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Logged<'a> {
    bytes: &'a [u8],
    /// Where its entries start.
    start: usize,
    pub(crate) sequence: Sequence,
    pub(crate) time: Millis,
    pub(crate) count: u32,
}

impl<'a> Logged<'a> {
    /// Parses a logged batch, or one stamped for the log.
    pub(crate) fn parse(bytes: &'a [u8], version: WalVersion) -> ReadResult<Self> {
        let mut reader = ByteReader::new(bytes);
        let logged = match version {
            WalVersion::One => Self {
                bytes,
                start: HEADER_BYTES_1,
                sequence: reader.u64_le()?,
                time: reader.u64_le()?,
                count: reader.u32_le()?,
            },
            WalVersion::Two => {
                let (sequence, time) = (reader.varint()?, reader.varint()?);
                let count = u32::try_from(reader.varint()?).ok();
                let count = reader.check(count, "a count of 32 bits")?;
                Self {
                    bytes,
                    start: reader.offset(),
                    sequence,
                    time,
                    count,
                }
            }
        };
        let last = logged.sequence.checked_add(u64::from(logged.count));
        reader.check(last.map(|_| logged), "sequences of 64 bits")
    }

    /// Its entries; the last item is an error if the bytes are malformed.
    pub(crate) fn entries(&self) -> Entries<'a> {
        Entries {
            bytes: self.bytes,
            at: self.start,
            left: self.count,
        }
    }
}

/// Iterates over the entries of a logged batch.
#[derive(Debug)]
pub(crate) struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
    left: u32,
}

/// The bytes of a batch are invalid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MalformedBatch;

impl<'a> Entries<'a> {
    fn read(&mut self) -> ReadResult<BatchEntry<'a>> {
        let mut reader = ByteReader::new(self.bytes.get(self.at..).unwrap_or_default());
        let kind = EntryKind::from_byte(reader.byte()?);
        let kind = reader.check(kind, "a kind of entry")?;
        let keyspace = reader.varint()?;
        let key = reader.slice()?;
        let value = if kind == EntryKind::Delete {
            &[]
        } else {
            reader.slice()?
        };
        self.at += reader.offset();
        Ok(BatchEntry {
            kind,
            keyspace,
            key,
            value,
        })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = std::result::Result<BatchEntry<'a>, MalformedBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let entry = self.read().map_err(|_| MalformedBatch);
        if entry.is_err() {
            self.left = 0;
        }
        Some(entry)
    }
}
