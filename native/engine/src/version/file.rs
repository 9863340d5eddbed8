//! A table in the manifest.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

use crate::extract::ZoneMap;
use crate::key::{Millis, Sequence};
use crate::table::builder::BuiltTable;
use crate::table::reader::TableReader;

/// The upper end of a table's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Largest {
    pub(crate) key: Vec<u8>,
    /// Whether keys end before `key`: a range delete ends the table there.
    pub(crate) exclusive: bool,
}

impl Largest {
    /// Whether `key` is after the end.
    pub(crate) fn is_before(&self, key: &[u8]) -> bool {
        if self.exclusive {
            self.key.as_slice() <= key
        } else {
            self.key.as_slice() < key
        }
    }

    pub(crate) fn max(self, other: Self) -> Self {
        match self.key.cmp(&other.key) {
            std::cmp::Ordering::Less => other,
            std::cmp::Ordering::Greater => self,
            std::cmp::Ordering::Equal => Self {
                exclusive: self.exclusive && other.exclusive,
                key: self.key,
            },
        }
    }
}

/// The description of a table in the manifest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileMeta {
    pub(crate) number: u64,
    pub(crate) size: u64,
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Largest,
    pub(crate) entries: u64,
    pub(crate) deletes: u64,
    pub(crate) operands: u64,
    pub(crate) range_deletes: u64,
    pub(crate) first_sequence: Sequence,
    pub(crate) last_sequence: Sequence,
    pub(crate) written_until: Millis,
    pub(crate) all_expired_at: Option<Millis>,
    /// If parts of a level are separated by zone: the table's part and zone.
    pub(crate) about: Option<Box<(u8, ZoneMap)>>,
}

impl FileMeta {
    /// For a table that was just written; `keys` covers its range deletes too.
    pub(crate) fn new(number: u64, keys: (Vec<u8>, Largest), written: &BuiltTable) -> Self {
        let properties = &written.properties;
        Self {
            number,
            size: written.size,
            smallest: keys.0,
            largest: keys.1,
            entries: properties.entries,
            deletes: properties.deletes,
            operands: properties.operands,
            range_deletes: properties.range_deletes,
            first_sequence: properties.first_sequence,
            last_sequence: properties.last_sequence,
            written_until: properties.written_until,
            all_expired_at: properties.all_expired_at,
            about: None,
        }
    }

    /// Whether the table may have something between two keys, inclusive.
    pub(crate) fn overlaps(&self, smallest: &[u8], largest: &Largest) -> bool {
        !self.largest.is_before(smallest) && !largest.is_before(&self.smallest)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_varint(self.number);
        out.put_varint(self.size);
        out.put_slice(&self.smallest);
        out.put_slice(&self.largest.key);
        out.push(u8::from(self.largest.exclusive));
        let numbers = [
            self.entries,
            self.deletes,
            self.operands,
            self.range_deletes,
            self.first_sequence,
            self.last_sequence,
            self.written_until,
            self.all_expired_at.map_or(0, |at| at.saturating_add(1)),
        ];
        for number in numbers {
            out.put_varint(number);
        }
        if let Some(about) = &self.about {
            let (part, zone) = about.as_ref();
            out.push(*part);
            let mut bytes = Vec::new();
            zone.encode(&mut bytes);
            out.put_slice(&bytes);
        }
    }

    pub(crate) fn decode(reader: &mut ByteReader<'_>) -> ReadResult<Self> {
        Ok(Self {
            number: reader.varint()?,
            size: reader.varint()?,
            smallest: reader.slice()?.to_vec(),
            largest: Largest {
                key: reader.slice()?.to_vec(),
                exclusive: reader.byte()? != 0,
            },
            entries: reader.varint()?,
            deletes: reader.varint()?,
            operands: reader.varint()?,
            range_deletes: reader.varint()?,
            first_sequence: reader.varint()?,
            last_sequence: reader.varint()?,
            written_until: reader.varint()?,
            all_expired_at: reader.varint()?.checked_sub(1),
            about: None,
        })
    }

    /// For a table with its part and zone: `part{u8} zone{slice}` follow the rest.
    pub(crate) fn decode_with_zone(reader: &mut ByteReader<'_>) -> ReadResult<Self> {
        let plain = Self::decode(reader)?;
        let part = reader.byte()?;
        let zone = ZoneMap::decode(reader.slice()?)?;
        Ok(Self {
            about: Some(Box::new((part, zone))),
            ..plain
        })
    }
}

/// Paths of tables that are no longer read, until a background thread removes them.
pub(crate) type Graveyard = Arc<Mutex<Vec<PathBuf>>>;

/// A table in use. When it was replaced and the last version that contains it is dropped, its file
/// is queued for removal.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub(crate) meta: FileMeta,
    path: PathBuf,
    /// The open table, which readers load without a lock and without reference counting.
    pub(crate) handle: ArcSwapOption<TableReader>,
    /// Locked to open it.
    pub(crate) opening: Mutex<()>,
    /// Whether it was read since the table cache last checked.
    pub(crate) used: AtomicBool,
    obsolete: AtomicBool,
    graveyard: Graveyard,
}

impl TableFile {
    pub(crate) fn new(meta: FileMeta, path: PathBuf, graveyard: &Graveyard) -> Arc<Self> {
        Arc::new(Self {
            meta,
            path,
            handle: ArcSwapOption::empty(),
            opening: Mutex::new(()),
            used: AtomicBool::new(false),
            obsolete: AtomicBool::new(false),
            graveyard: Arc::clone(graveyard),
        })
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Marks it as removed from the manifest.
    pub(crate) fn set_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire) {
            self.graveyard.lock().push(std::mem::take(&mut self.path));
        }
    }
}
