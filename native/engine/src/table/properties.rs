//! What is known about a table without reading its entries.
//!
//! ```text
//! properties := (field{varint} value{slice})*
//! ```
//!
//! Readers skip unknown fields, so that later versions may add some.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

use crate::extract::ZoneMap;
use crate::key::{EntryKind, Millis, Sequence, Tag};
use crate::table::frame::Handle;

/// Sums and ranges over the entries of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableProperties {
    /// All entries, without range deletes.
    pub(crate) entries: u64,
    pub(crate) deletes: u64,
    pub(crate) operands: u64,
    pub(crate) range_deletes: u64,
    /// The range of sequences, including range deletes.
    pub(crate) first_sequence: Sequence,
    pub(crate) last_sequence: Sequence,
    /// The base of tags in data blocks.
    pub(crate) base_sequence: Sequence,
    /// The latest expiry, if every entry is a put that expires.
    pub(crate) all_expired_at: Option<Millis>,
    /// The engine's time when the newest entries were written, at the latest.
    pub(crate) written_until: Millis,
    pub(crate) key_bytes: u64,
    pub(crate) value_bytes: u64,
    pub(crate) data_blocks: u64,
    /// The number of trailing bytes of keys that filters ignore.
    pub(crate) tail_bytes: u64,
    /// The name of the function that determines the heads of keys, which filters contain, if
    /// there is one.
    pub(crate) head_function: Option<String>,
    /// The locations of the filters of such heads, one for each partition. Top does not have them:
    /// readers that do not use property 18 would look whole keys up in them.
    pub(crate) filters: Vec<Handle>,
    /// The zone of the entries, if the keyspace has an extractor.
    pub(crate) zone: Option<ZoneMap>,
    /// The name of that extractor.
    pub(crate) extractor: String,
    /// The version of that extractor before the first entry was extracted.
    pub(crate) extractor_version: u64,
    /// The location of the attribute map's directory, if the map is not empty.
    pub(crate) map: Option<Handle>,
    /// The attributes that the map does not contain; `None` without a map of all other ones.
    pub(crate) unmapped: Option<Vec<u8>>,
}

impl TableProperties {
    pub(crate) fn new(base_sequence: Sequence, written_until: Millis) -> Self {
        Self {
            entries: 0,
            deletes: 0,
            operands: 0,
            range_deletes: 0,
            first_sequence: Sequence::MAX,
            last_sequence: 0,
            base_sequence,
            all_expired_at: Some(0),
            written_until,
            key_bytes: 0,
            value_bytes: 0,
            data_blocks: 0,
            tail_bytes: 0,
            head_function: None,
            filters: Vec::new(),
            zone: None,
            extractor: String::new(),
            extractor_version: 0,
            map: None,
            unmapped: None,
        }
    }

    /// Counts an entry, whose key may determine its expiry.
    pub(crate) fn count(&mut self, key: &[u8], tag: Tag, value: &[u8], lifetime: Option<Millis>) {
        self.entries += 1;
        self.key_bytes += key.len() as u64;
        self.value_bytes += value.len() as u64;
        self.saw_sequence(tag.sequence());
        let mut expiry = lifetime;
        match tag.kind() {
            Some(EntryKind::Delete | EntryKind::DeleteWith) => self.deletes += 1,
            Some(EntryKind::Merge) => self.operands += 1,
            Some(kind @ EntryKind::PutExpiring) => {
                let own = crate::key::split_expiry(kind, value).and_then(|(expiry, _)| expiry);
                expiry = lifetime.or(own);
            }
            _ => {}
        }
        self.all_expired_at = match (self.all_expired_at, expiry) {
            (Some(latest), Some(expiry)) => Some(latest.max(expiry)),
            _ => None,
        };
    }

    pub(crate) fn count_range_delete(&mut self, sequence: Sequence) {
        self.range_deletes += 1;
        self.all_expired_at = None;
        self.saw_sequence(sequence);
    }

    fn saw_sequence(&mut self, sequence: Sequence) {
        self.first_sequence = self.first_sequence.min(sequence);
        self.last_sequence = self.last_sequence.max(sequence);
    }

    fn numbers(&self) -> [u64; 11] {
        [
            self.entries,
            self.deletes,
            self.operands,
            self.range_deletes,
            self.first_sequence,
            self.last_sequence,
            self.base_sequence,
            self.written_until,
            self.key_bytes,
            self.value_bytes,
            self.data_blocks,
        ]
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut field = |id: u64, value: &[u8]| {
            out.put_varint(id);
            out.put_slice(value);
        };
        for (id, number) in (1..).zip(self.numbers()) {
            field(id, &number.to_le_bytes());
        }
        if self.tail_bytes > 0 {
            field(TAIL_FIELD, &self.tail_bytes.to_le_bytes());
        }
        if let Some(name) = &self.head_function {
            field(HEAD_FIELD, name.as_bytes());
        }
        if !self.filters.is_empty() {
            let mut bytes = Vec::new();
            for filter in &self.filters {
                filter.encode(&mut bytes);
            }
            field(FILTERS_FIELD, &bytes);
        }
        if let Some(expiry) = self.all_expired_at {
            field(EXPIRY_FIELD, &expiry.to_le_bytes());
        }
        if let Some(zone) = &self.zone {
            let mut bytes = Vec::new();
            zone.encode(&mut bytes);
            field(ZONE_FIELD, &bytes);
            field(EXTRACTOR_FIELD, self.extractor.as_bytes());
        }
        if self.extractor_version > 0 {
            field(
                EXTRACTOR_VERSION_FIELD,
                &self.extractor_version.to_le_bytes(),
            );
        }
        if let Some(map) = self.map {
            let mut bytes = Vec::new();
            map.encode(&mut bytes);
            field(MAP_FIELD, &bytes);
        }
        if let Some(unmapped) = &self.unmapped {
            field(UNMAPPED_FIELD, unmapped);
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> ReadResult<Self> {
        let mut properties = Self::new(0, 0);
        properties.all_expired_at = None;
        let mut reader = ByteReader::new(bytes);
        while !reader.is_empty() {
            let id = reader.varint()?;
            let value = reader.slice()?;
            let number = || {
                let number = value.try_into().ok().map(u64::from_le_bytes);
                reader.check(number, "a number of 8 bytes")
            };
            let text = || {
                let text = String::from_utf8(value.to_vec()).ok();
                reader.check(text, "UTF-8")
            };
            match id {
                1 => properties.entries = number()?,
                2 => properties.deletes = number()?,
                3 => properties.operands = number()?,
                4 => properties.range_deletes = number()?,
                5 => properties.first_sequence = number()?,
                6 => properties.last_sequence = number()?,
                7 => properties.base_sequence = number()?,
                8 => properties.written_until = number()?,
                9 => properties.key_bytes = number()?,
                10 => properties.value_bytes = number()?,
                11 => properties.data_blocks = number()?,
                TAIL_FIELD => properties.tail_bytes = number()?,
                EXPIRY_FIELD => properties.all_expired_at = Some(number()?),
                ZONE_FIELD => properties.zone = Some(ZoneMap::decode(value)?),
                EXTRACTOR_FIELD => properties.extractor = text()?,
                EXTRACTOR_VERSION_FIELD => properties.extractor_version = number()?,
                HEAD_FIELD => properties.head_function = Some(text()?),
                FILTERS_FIELD => properties.filters = handles(value)?,
                MAP_FIELD => {
                    properties.map = Some(Handle::decode(&mut ByteReader::new(value))?);
                }
                UNMAPPED_FIELD => properties.unmapped = Some(value.to_vec()),
                _ => {}
            }
        }
        Ok(properties)
    }
}

fn handles(bytes: &[u8]) -> ReadResult<Vec<Handle>> {
    let mut reader = ByteReader::new(bytes);
    let mut handles = Vec::new();
    while !reader.is_empty() {
        handles.push(Handle::decode(&mut reader)?);
    }
    Ok(handles)
}

const EXPIRY_FIELD: u64 = 12;
const ZONE_FIELD: u64 = 13;
const EXTRACTOR_FIELD: u64 = 14;
const TAIL_FIELD: u64 = 15;
const MAP_FIELD: u64 = 16;
const UNMAPPED_FIELD: u64 = 17;
const HEAD_FIELD: u64 = 18;
const FILTERS_FIELD: u64 = 19;
const EXTRACTOR_VERSION_FIELD: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_round_trip_and_unknown_fields_are_skipped() {
        let mut properties = TableProperties::new(3, 99);
        let mut value = 50_u64.to_le_bytes().to_vec();
        value.push(1);
        properties.count(b"key", Tag::new(7, EntryKind::PutExpiring), &value, None);
        assert_eq!(properties.all_expired_at, Some(50));
        properties.count(b"key", Tag::new(5, EntryKind::Delete), &[], None);
        assert_eq!(properties.all_expired_at, None);
        properties.unmapped = Some(vec![4]);
        properties.extractor_version = 6;
        properties.head_function = Some("name".into());
        properties.filters = [(70, 65), (900, 129)]
            .map(|(offset, length)| Handle { offset, length })
            .to_vec();
        properties.map = Some(Handle {
            offset: 300,
            length: 7,
        });
        let mut bytes = properties.encode();
        bytes.extend_from_slice(&[99, 2, 0, 0]);
        assert_eq!(TableProperties::decode(&bytes), Ok(properties));
    }
}
