//! Publications and subscriptions, and their encoding.
//!
//! ```text
//! record       := part{varint} received{varint} extent (publication | subscription)
//! publication  := until{varint} id{slice} data{slice}
//! subscription := flags{u8} from{varint} at{varint} id{slice} user{slice} [filter{slice}]
//! ```
//!
//! `part` is 0 for a record with one id. A record with several ids has an entry for each, numbered
//! from 1 on; their sequences are consecutive, so each determines the first, which identifies the
//! record. A publication's time and a subscription's end are in the key.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};
use rillbase_engine::{Millis, Sequence};

use crate::error::{Error, Result};
use crate::id::DeweyId;
use crate::place::{TopicExtent, TopicPlace};

/// A publication.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublicationRecord {
    /// When it happened (Tp).
    pub at: Millis,
    /// The end of its life (Tmax), inclusive.
    pub until: Millis,
    /// The publisher's name for it (Pid).
    pub id: Vec<u8>,
    /// Its content (Desc): a BSON document if subscriptions filter by it.
    pub data: Vec<u8>,
}

/// A subscription.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriptionRecord {
    /// The first time of its publications (Tmin), which may be in the past.
    pub from: Millis,
    /// The last one (Tmax), at which the subscription itself ends.
    pub until: Millis,
    /// When it was created, according to the subscriber (Ts).
    pub at: Millis,
    /// The subscriber's name for it (Sid).
    pub id: Vec<u8>,
    /// Its user (Uid).
    pub user: Vec<u8>,
    /// A filter on the data of publications, as BSON.
    pub filter: Option<Vec<u8>>,
    /// Whether it omits what another such subscription of the user has already received.
    pub unseen_only: bool,
}

/// A stored record.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRecord<T> {
    /// Its position in the order of all operations, which identifies it.
    pub sequence: Sequence,
    /// The store's time of its arrival.
    pub received: Millis,
    /// Its extent.
    pub extent: TopicExtent,
    /// The record.
    pub record: T,
}

/// One side of a match: a record that is stored, or is about to be.
#[derive(Debug)]
pub(crate) struct MatchSide<'a, T> {
    pub(crate) sequence: Sequence,
    pub(crate) received: Millis,
    pub(crate) extent: &'a TopicExtent,
    pub(crate) record: &'a T,
}

impl<T> Clone for MatchSide<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for MatchSide<'_, T> {}

impl<T: Clone> MatchSide<'_, T> {
    /// The stored form of the record.
    pub(crate) fn stored(self) -> StoredRecord<T> {
        StoredRecord {
            sequence: self.sequence,
            received: self.received,
            extent: self.extent.clone(),
            record: self.record.clone(),
        }
    }
}

impl<T> StoredRecord<T> {
    pub(crate) fn side(&self) -> MatchSide<'_, T> {
        MatchSide {
            sequence: self.sequence,
            received: self.received,
            extent: &self.extent,
            record: &self.record,
        }
    }
}

const FILTERED: u8 = 1;
const UNSEEN_ONLY: u8 = 2;
/// The initial capacity, so that small records need no reallocation.
const FIRST_BYTES: usize = 240;

/// A record that is stored under a time, which orders its list.
pub(crate) trait TimedRecord: Sized {
    /// The time of the key.
    fn time(&self) -> Millis;
    /// When it expires.
    fn expiry(&self) -> Millis;
    fn encode(&self, out: &mut Vec<u8>);
    fn decode(reader: &mut ByteReader<'_>, time: Millis) -> ReadResult<Self>;
}

impl TimedRecord for PublicationRecord {
    fn time(&self) -> Millis {
        self.at
    }

    fn expiry(&self) -> Millis {
        self.until.saturating_add(1)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_varint(self.until);
        out.put_slice(&self.id);
        out.put_slice(&self.data);
    }

    fn decode(reader: &mut ByteReader<'_>, time: Millis) -> ReadResult<Self> {
        Ok(Self {
            at: time,
            until: reader.varint()?,
            id: reader.slice()?.to_vec(),
            data: reader.slice()?.to_vec(),
        })
    }
}

impl TimedRecord for SubscriptionRecord {
    fn time(&self) -> Millis {
        self.until
    }

    fn expiry(&self) -> Millis {
        self.until.saturating_add(1)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let filtered = if self.filter.is_some() { FILTERED } else { 0 };
        let unseen = if self.unseen_only { UNSEEN_ONLY } else { 0 };
        out.push(filtered | unseen);
        out.put_varint(self.from);
        out.put_varint(self.at);
        out.put_slice(&self.id);
        out.put_slice(&self.user);
        if let Some(filter) = &self.filter {
            out.put_slice(filter);
        }
    }

    fn decode(reader: &mut ByteReader<'_>, time: Millis) -> ReadResult<Self> {
        let flags = reader.byte()?;
        Ok(Self {
            until: time,
            from: reader.varint()?,
            at: reader.varint()?,
            id: reader.slice()?.to_vec(),
            user: reader.slice()?.to_vec(),
            filter: match flags & FILTERED {
                0 => None,
                _ => Some(reader.slice()?.to_vec()),
            },
            unseen_only: flags & UNSEEN_ONLY != 0,
        })
    }
}

/// The parts of a record, one per entry.
pub(crate) fn parts(place: &TopicPlace) -> impl Iterator<Item = (u64, &DeweyId)> {
    let first = u64::from(place.ids().len() > 1);
    (first..).zip(place.ids())
}

pub(crate) fn encode<T: TimedRecord>(
    record: &T,
    part: u64,
    received: Millis,
    (extent, under): (&TopicExtent, Option<&DeweyId>),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(FIRST_BYTES);
    out.put_varint(part);
    out.put_varint(received);
    extent.encode(under, &mut out);
    record.encode(&mut out);
    out
}

/// The header of an entry: enough to decide whether to read the record.
pub(crate) struct OpenedRecord<'a> {
    /// The sequence that identifies the record.
    pub(crate) sequence: Sequence,
    /// Whether the record has several entries.
    pub(crate) has_several: bool,
    received: Millis,
    rest: ByteReader<'a>,
}

const MALFORMED: Error = Error::Malformed {
    what: "an entry of a topic is malformed although its checksum matches",
};

/// Reads the header of an entry.
pub(crate) fn open(value: &[u8], sequence: Sequence) -> Result<OpenedRecord<'_>> {
    let mut rest = ByteReader::new(value);
    let mut read = || {
        let part = rest.varint()?;
        let named = sequence.checked_sub(part.saturating_sub(1));
        let named = rest.check(named, "a part of this record")?;
        ReadResult::Ok((named, part > 0, rest.varint()?))
    };
    let (sequence, has_several, received) = read().map_err(|_| MALFORMED)?;
    Ok(OpenedRecord {
        sequence,
        has_several,
        received,
        rest,
    })
}

impl OpenedRecord<'_> {
    /// The record, if its extent is accepted.
    pub(crate) fn read<T: TimedRecord>(
        mut self,
        (id, time): (&[u8], Millis),
        is_wanted: impl FnOnce(&TopicExtent) -> bool,
    ) -> Result<Option<StoredRecord<T>>> {
        let extent = TopicExtent::decode(&mut self.rest, id).map_err(|_| MALFORMED)?;
        if !is_wanted(&extent) {
            return Ok(None);
        }
        let record = T::decode(&mut self.rest, time).map_err(|_| MALFORMED)?;
        if !self.rest.is_empty() {
            return Err(MALFORMED);
        }
        Ok(Some(StoredRecord {
            sequence: self.sequence,
            received: self.received,
            extent,
            record,
        }))
    }
}

/// The record of an entry.
pub(crate) fn decode<T: TimedRecord>(
    value: &[u8],
    (id, time, sequence): (&[u8], Millis, Sequence),
) -> Result<StoredRecord<T>> {
    let read = open(value, sequence)?.read((id, time), |_| true)?;
    read.ok_or(MALFORMED)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::keys;

    #[test]
    fn the_example_of_the_format_is_what_is_written() {
        let id = DeweyId::parse("1.4").unwrap();
        let publication = PublicationRecord {
            at: 1_000_000,
            until: 1_001_000,
            id: b"a".to_vec(),
            data: Vec::new(),
        };
        let key = keys::entry(&keys::topic(7), &id, keys::PUBLICATIONS, publication.at, 5);
        let expected = [
            1, 2, 7, 2, 1, 2, 4, 0, 2, 255, 255, 255, 255, 255, 0xf0, 0xbd, 0xbf, 255, 255, 255,
            255, 255, 255, 255, 0xfa,
        ];
        assert_eq!(key, expected);
        let extent = TopicExtent::Id(id.clone());
        let value = encode(&publication, 0, 1_000_000, (&extent, Some(&id)));
        assert_eq!(
            value,
            [0, 0xc0, 0x84, 0x3d, 0, 0xa8, 0x8c, 0x3d, 1, b'a', 0]
        );
        let stored =
            decode::<PublicationRecord>(&value, (id.as_bytes(), publication.at, 5)).unwrap();
        assert_eq!((stored.record, stored.sequence), (publication, 5));
    }

    #[test]
    fn a_damaged_value_is_refused() {
        let extent = TopicExtent::Id(DeweyId::root());
        let value = encode(&SubscriptionRecord::default(), 1, 9, (&extent, None));
        for length in 0..value.len() {
            let cut = value.get(..length).unwrap();
            assert!(decode::<SubscriptionRecord>(cut, (&[], 0, 5)).is_err());
        }
    }
}
