//! Value lists: many elements under one key, read newest first.
//!
//! An element is a separate entry, whose key is the list's key, its kind and its sequence, newest
//! first:
//!
//! ```text
//! key     := list_key{0 as 0 255} 0 1 kind{u8} !sequence{u64, big-endian}
//! element := time{u64} valid_until{u64} payload
//! ```
//!
//! Prefix compression leaves a few bytes of the key for each element, and blocks of the table serve
//! as the list's segments: an append reads nothing, a list may end anywhere in a table, and a list
//! of ten million elements is never read or rewritten as a whole.
//!
//! A block's zone has the times of its elements, so a read of elements from some time on skips
//! blocks and tables that are older, wherever they are. A removal is a delete with the times of
//! what it removes: it is in blocks that are skipped exactly when those of its target are.

use std::ops::Bound;
use std::sync::Arc;

use rillbase_binary_format::{ByteWriter as _, u64_at};

use crate::db::batch::WriteBatch;
use crate::db::{Db, DbSnapshot, Keyspace, Passing, Scan};
use crate::error::{Error, Result};
use crate::extract::{Extractor, ZoneMap};
use crate::key::{Millis, Sequence, prefix_end};
use crate::table::zone_filter::ZoneFilter;

/// The zone attribute for the end of validity of elements.
const VALID_UNTIL: u8 = 0;
/// The size of an element's times before its payload.
const TIMES_BYTES: usize = 16;

/// The size of the sequence at the end of an element's key. With this
/// [`crate::KeyHead::FixedTail`] filters contain lists, which avoids reading tables without a list.
const NAME_BYTES: usize = 8;

/// Extracts the times of elements; the extractor of keyspaces with lists.
#[derive(Debug, Default, Clone, Copy)]
pub struct ElementTimes;

impl Extractor for ElementTimes {
    fn name(&self) -> &'static str {
        "element-times"
    }

    fn extract(&self, _key: &[u8], value: &[u8], about: &mut ZoneMap) {
        match (u64_at(value, 0), u64_at(value, 8)) {
            (Some(time), Some(valid_until)) => {
                about.add_time(time);
                about.add_attribute(VALID_UNTIL, &valid_until.to_be_bytes());
            }
            _ => about.add_unknown(),
        }
    }
}

/// An element of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListElement {
    /// The sequence of its append, which identifies it within the list.
    pub sequence: Sequence,
    /// Its time, given by the caller.
    pub time: Millis,
    /// The end of its validity.
    pub valid_until: Millis,
    /// The caller's payload.
    pub payload: Vec<u8>,
}

/// The elements that a read returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListFilter {
    /// Elements with at least this time.
    pub from_time: Millis,
    /// Elements that are valid at or after this time.
    pub valid_at: Millis,
}

impl ListFilter {
    /// All elements.
    pub const ALL: Self = Self {
        from_time: 0,
        valid_at: 0,
    };

    fn may_match(self, zone: &ZoneMap) -> bool {
        zone.may_be_within(self.from_time, Millis::MAX)
            && zone.may_have(VALID_UNTIL, &self.valid_at.to_be_bytes(), &[u8::MAX; 8])
    }
}

/// The cost of a read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListCost {
    /// Tables skipped by their properties.
    pub tables_skipped: u64,
    /// Blocks that were read.
    pub blocks: u64,
    /// Blocks skipped by their zones.
    pub blocks_skipped: u64,
    /// Elements that were examined.
    pub elements: u64,
}

/// The common key prefix of all elements of a kind.
fn prefix(list: &[u8], kind: u8) -> Vec<u8> {
    let mut key = Vec::with_capacity(list.len() + 11);
    for &byte in list {
        key.push(byte);
        if byte == 0 {
            key.push(u8::MAX);
        }
    }
    key.extend_from_slice(&[0, 1, kind]);
    key
}

fn element_key(list: &[u8], kind: u8, sequence: Sequence) -> Vec<u8> {
    let mut key = prefix(list, kind);
    key.extend_from_slice(&(!sequence).to_be_bytes());
    key
}

fn value_of(time: Millis, valid_until: Millis, payload: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(TIMES_BYTES + payload.len());
    value.put_u64_le(time);
    value.put_u64_le(valid_until);
    value.extend_from_slice(payload);
    value
}

impl WriteBatch {
    /// Appends an element to a list. Its sequence is that of this write, so nothing is read. With
    /// an `expiry` it is removed at that time.
    pub fn append(
        &mut self,
        keyspace: &Keyspace,
        list: &[u8],
        kind: u8,
        (time, valid_until, payload): (Millis, Millis, &[u8]),
        expiry: Option<Millis>,
    ) {
        let value = value_of(time, valid_until, payload);
        self.put_sequenced(keyspace, &prefix(list, kind), &value, expiry);
    }

    /// Removes an element from a list.
    pub fn remove(&mut self, keyspace: &Keyspace, list: &[u8], kind: u8, element: &ListElement) {
        let key = element_key(list, kind, element.sequence);
        let value = value_of(element.time, element.valid_until, &[]);
        self.delete_with(keyspace, &key, &value);
    }
}

/// The elements of a list, newest first.
#[derive(Debug)]
pub struct ListScan {
    scan: Scan,
    zones: Arc<ZoneFilter>,
    filter: ListFilter,
    begun: bool,
    elements: u64,
}

impl ListScan {
    /// The next element, if there is one.
    pub fn next_element(&mut self) -> Result<Option<ListElement>> {
        loop {
            if self.begun {
                self.scan.advance()?;
            } else {
                self.scan.first()?;
                self.begun = true;
            }
            if !self.scan.is_valid() {
                return Ok(None);
            }
            self.elements += 1;
            let element = element_of(self.scan.key(), self.scan.value())?;
            let fresh = element.time >= self.filter.from_time;
            if fresh && element.valid_until >= self.filter.valid_at {
                return Ok(Some(element));
            }
        }
    }

    /// The cost of reading so far.
    pub fn cost(&self) -> ListCost {
        let (tables_skipped, blocks, blocks_skipped) = self.zones.counts();
        ListCost {
            tables_skipped,
            blocks,
            blocks_skipped,
            elements: self.elements,
        }
    }
}

fn element_of(key: &[u8], value: &[u8]) -> Result<ListElement> {
    let read = || {
        let named = key.last_chunk::<8>()?;
        Some(ListElement {
            sequence: !u64::from_be_bytes(*named),
            time: u64_at(value, 0)?,
            valid_until: u64_at(value, 8)?,
            payload: value.get(TIMES_BYTES..)?.to_vec(),
        })
    };
    read().ok_or_else(|| Error::InvalidArgument {
        what: "an entry of this keyspace is not an element of a list".into(),
    })
}

impl Db {
    /// The requested elements of one kind of a list, newest first.
    pub fn list(
        &self,
        keyspace: &Keyspace,
        list: &[u8],
        kind: u8,
        filter: ListFilter,
        snapshot: Option<&DbSnapshot>,
    ) -> Result<ListScan> {
        let extractor = keyspace
            .options()
            .extractor
            .as_ref()
            .map(|extractor| extractor.name());
        if extractor != Some(ElementTimes.name()) {
            let what = "lists need a keyspace with the extractor ElementTimes".into();
            return Err(Error::InvalidArgument { what });
        }
        let zones = Arc::new(ZoneFilter::new(
            ElementTimes.name(),
            Box::new(move |zone| filter.may_match(zone)),
        ));
        let prefix = prefix(list, kind);
        let end = prefix_end(&prefix);
        let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let bounds = (Bound::Included(prefix.as_slice()), upper);
        let heads = keyspace.options().head.tail_bytes() == NAME_BYTES;
        let passing = Passing {
            zones: Some(&zones),
            head: heads.then_some(prefix.as_slice()),
        };
        Ok(ListScan {
            scan: self.scan_where(keyspace, bounds, snapshot, passing)?,
            zones,
            filter,
            begun: false,
            elements: 0,
        })
    }
}
