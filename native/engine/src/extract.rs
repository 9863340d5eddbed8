//! Attributes of entries, and their ranges in blocks.
//!
//! A keyspace may have an [`Extractor`], which derives attributes, a rectangle and a time from its
//! entries. Tables store their range per block as a [`ZoneMap`], so that a scan for some of them
//! skips blocks that contain none.

use std::fmt::Debug;
use std::sync::Arc;

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

use crate::key::{EntryKind, Millis, Tag, split_expiry};

/// West, south, east, north; in any plane, edges included.
pub type Rectangle = [f64; 4];

/// Longer attribute values are rounded in zones, down at the low end, up at the high end.
pub(crate) const ROUNDED_BYTES: usize = 32;

/// Derives attributes from entries. Must always return the same for the same bytes, because zones
/// are stored; only a higher version may add attributes.
pub trait Extractor: Debug + Send + Sync {
    /// A stable name, stored in tables.
    fn name(&self) -> &'static str;

    /// A number that never decreases, also when the database is opened again, stored in tables. An
    /// extraction that starts after this returned a version adds all attributes of that version.
    /// Attributes that are added from a version on are missing from tables of older versions, so
    /// queries for them require the version.
    fn version(&self) -> u64 {
        0
    }

    /// Whether memtables list the attributes of their entries from now on, so that queries for values
    /// need not visit all of them. It makes writes slower.
    fn is_listed(&self) -> bool {
        false
    }

    /// Adds the attributes of an entry to `about`. An entry without an attribute is not found by
    /// it. Values that are looked up are added with [`ZoneMap::add_indexed`].
    fn extract(&self, key: &[u8], value: &[u8], about: &mut ZoneMap);
}

/// An extractor, and the version from which on what it made is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExtractorVersion<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: u64,
}

impl<'a> ExtractorVersion<'a> {
    /// An extractor in any version.
    pub(crate) fn any(name: &'a str) -> Self {
        Self { name, version: 0 }
    }
}

/// The ranges of attributes, rectangle and time of some entries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ZoneMap {
    attributes: Vec<AttributeRange>,
    rectangle: Option<Rectangle>,
    times: Option<(Millis, Millis)>,
    /// Some entry's attributes are unknown, such as those of an unfolded operand.
    unknown: bool,
    exact: ExactValues,
}

/// What an extractor added besides ranges: neither stored with a zone nor compared.
#[derive(Debug, Clone, Default)]
struct ExactValues {
    /// Attributes and hashes of their indexed values.
    hashes: Vec<(u8, u32)>,
    /// The attributes with values that are not indexed.
    ranged: Vec<u8>,
    value_use: Option<Box<ValueUse>>,
}

impl PartialEq for ExactValues {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What is done with the values that an extractor adds.
#[derive(Debug, Clone)]
enum ValueUse {
    /// They are listed, cut to the length of rounded ones, instead of covered.
    List(Vec<(u8, Vec<u8>)>),
    /// They are compared with these, and whether one is within them.
    Compare(Arc<AttributeBounds>, bool),
}

/// The values of an attribute that a query searches for.
#[derive(Debug)]
pub(crate) struct AttributeBounds {
    pub(crate) id: u8,
    pub(crate) low: Vec<u8>,
    pub(crate) high: Vec<u8>,
}

impl AttributeBounds {
    /// From `low` to `high`, inclusive.
    pub(crate) fn new(id: u8, low: &[u8], high: &[u8]) -> Arc<Self> {
        let (low, high) = (low.to_vec(), high.to_vec());
        Arc::new(Self { id, low, high })
    }

    /// Whether they contain one value.
    pub(crate) fn is_value(&self) -> bool {
        self.low == self.high
    }

    /// The hash of the value if they contain one.
    pub(crate) fn hash(&self) -> Option<u32> {
        self.is_value().then(|| hash_of(&self.low))
    }

    fn contain(&self, id: u8, value: &[u8]) -> bool {
        self.id == id && self.low.as_slice() <= value && value <= self.high.as_slice()
    }

    /// Whether an entry that a zone covers may have a value within them.
    pub(crate) fn may_be_in(&self, zone: &ZoneMap) -> bool {
        zone.may_have(self.id, &self.low, &self.high)
    }

    /// A zone for entries, of which [`ZoneMap::is_within_bounds`] then tells whether they have a
    /// value within the bounds.
    pub(crate) fn zone(self: &Arc<Self>) -> ZoneMap {
        ZoneMap::with_use(ValueUse::Compare(Arc::clone(self), false))
    }
}

/// Sets `zone` to that of one entry, exact unless it is an operand. Returns false if the entry is a
/// delete.
pub(crate) fn extract_entry(
    extractor: &dyn Extractor,
    (key, tag, value): (&[u8], Tag, &[u8]),
    zone: &mut ZoneMap,
) -> bool {
    zone.clear();
    match tag.kind() {
        Some(kind @ (EntryKind::Put | EntryKind::PutExpiring)) => {
            let value = split_expiry(kind, value).map_or(value, |(_, value)| value);
            extractor.extract(key, value, zone);
        }
        Some(EntryKind::Merge) => zone.add_unknown(),
        _ => return false,
    }
    true
}

/// The hash of a value in attribute maps.
fn hash_of(value: &[u8]) -> u32 {
    (crate::key::hash(value) & 0xffff_ffff) as u32
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct AttributeRange {
    id: u8,
    low: Vec<u8>,
    /// `None` if no bound is short enough.
    high: Option<Vec<u8>>,
}

impl ZoneMap {
    /// Adds a value of an attribute. Bytes compare as the attribute does.
    pub fn add_attribute(&mut self, id: u8, value: &[u8]) {
        self.cover_value(id, value);
        if !self.exact.ranged.contains(&id) {
            self.exact.ranged.push(id);
        }
    }

    /// Adds a value of an attribute as [`Self::add_attribute`] does, and indexes it: tables in
    /// version 4 map it to the blocks that contain it. All values of an attribute should be added
    /// in the same way; an attribute with others is looked up by ranges.
    pub fn add_indexed(&mut self, id: u8, value: &[u8]) {
        self.cover_value(id, value);
        self.exact.hashes.push((id, hash_of(value)));
    }

    fn with_use(value_use: ValueUse) -> Self {
        let mut zone = Self::default();
        zone.exact.value_use = Some(Box::new(value_use));
        zone
    }

    /// A zone that lists values of attributes instead of covering them.
    pub(crate) fn of_values() -> Self {
        Self::with_use(ValueUse::List(Vec::new()))
    }

    /// Removes the listed values, and returns each once, in order.
    pub(crate) fn take_values(&mut self) -> Vec<(u8, Vec<u8>)> {
        let Some(ValueUse::List(values)) = self.exact.value_use.as_deref_mut() else {
            return Vec::new();
        };
        let mut values = std::mem::take(values);
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Whether an entry has a value within the bounds that the zone was made for, or unknown
    /// attributes.
    pub(crate) fn is_within_bounds(&self) -> bool {
        let value_use = self.exact.value_use.as_deref();
        self.unknown || matches!(value_use, Some(ValueUse::Compare(_, true)))
    }

    fn cover_value(&mut self, id: u8, value: &[u8]) {
        let low = value.get(..ROUNDED_BYTES).unwrap_or(value).to_vec();
        match self.exact.value_use.as_deref_mut() {
            Some(ValueUse::List(values)) => {
                values.push((id, low));
                return;
            }
            Some(ValueUse::Compare(bounds, is_within)) => {
                *is_within |= bounds.contain(id, value);
            }
            None => {}
        }
        let high = if value.len() > ROUNDED_BYTES {
            crate::key::prefix_end(&low)
        } else {
            Some(low.clone())
        };
        self.cover(AttributeRange { id, low, high });
    }

    /// Adds a rectangle.
    pub fn add_rectangle(&mut self, [west, south, east, north]: Rectangle) {
        self.rectangle = Some(match self.rectangle {
            None => [west, south, east, north],
            Some([w, s, e, n]) => [w.min(west), s.min(south), e.max(east), n.max(north)],
        });
    }

    /// Adds a time.
    pub fn add_time(&mut self, time: Millis) {
        let (low, high) = self.times.unwrap_or((time, time));
        self.times = Some((low.min(time), high.max(time)));
    }

    /// Adds an entry with unknown attributes.
    pub fn add_unknown(&mut self) {
        self.unknown = true;
    }

    /// Adds everything that another zone covers.
    pub fn add_zone(&mut self, other: &Self) {
        match self.exact.value_use.as_deref_mut() {
            Some(ValueUse::List(_)) => self.unknown |= !other.attributes.is_empty(),
            Some(ValueUse::Compare(bounds, is_within)) => *is_within |= bounds.may_be_in(other),
            None => {}
        }
        for range in &other.attributes {
            self.cover(range.clone());
        }
        if let Some(rectangle) = other.rectangle {
            self.add_rectangle(rectangle);
        }
        if let Some((low, high)) = other.times {
            self.add_time(low);
            self.add_time(high);
        }
        self.unknown |= other.unknown;
    }

    fn cover(&mut self, added: AttributeRange) {
        let Some(range) = self
            .attributes
            .iter_mut()
            .find(|range| range.id == added.id)
        else {
            self.attributes.push(added);
            return;
        };
        if added.low < range.low {
            range.low = added.low;
        }
        range.high = match (range.high.take(), added.high) {
            (Some(old), Some(new)) => Some(old.max(new)),
            _ => None,
        };
    }

    /// Whether an entry may have a value of an attribute from `low` to `high`, inclusive.
    pub fn may_have(&self, id: u8, low: &[u8], high: &[u8]) -> bool {
        let has = |range: &AttributeRange| {
            range.id == id
                && range.low.as_slice() <= high
                && range.high.as_deref().is_none_or(|greatest| greatest >= low)
        };
        self.unknown || self.attributes.iter().any(has)
    }

    /// Whether an entry's rectangle may intersect another one.
    pub fn may_intersect(&self, [west, south, east, north]: Rectangle) -> bool {
        let meets = |[w, s, e, n]: Rectangle| w <= east && west <= e && s <= north && south <= n;
        self.unknown || self.rectangle.is_some_and(meets)
    }

    /// Whether an entry's time may be from `low` to `high`, inclusive.
    pub fn may_be_within(&self, low: Millis, high: Millis) -> bool {
        self.unknown
            || self
                .times
                .is_some_and(|(first, last)| first <= high && low <= last)
    }

    /// Covers all values of an attribute.
    pub(crate) fn add_all_of(&mut self, id: u8) {
        let (low, high) = (Vec::new(), None);
        self.cover(AttributeRange { id, low, high });
    }

    /// Whether it covers all values of an attribute.
    pub(crate) fn has_all_of(&self, id: u8) -> bool {
        let mut ranges = self.attributes.iter();
        ranges.any(|range| range.id == id && range.low.is_empty() && range.high.is_none())
    }

    /// Whether its rectangle contains that of another zone, if there is one.
    pub(crate) fn contains_rectangle(&self, other: &Self) -> bool {
        let Some([west, south, east, north]) = other.rectangle else {
            return true;
        };
        let contains = |[w, s, e, n]: Rectangle| w <= west && s <= south && e >= east && n >= north;
        self.rectangle.is_some_and(contains)
    }

    /// Replaces its times by those up to a time.
    pub(crate) fn limit_times(&mut self, last: Millis) {
        self.times = Some((0, last));
    }

    /// Whether the attributes of some entry are not in it, so that the zone excludes nothing.
    pub(crate) fn has_unknown(&self) -> bool {
        self.unknown
    }

    /// The smallest rectangle that contains those of all entries, if there are any.
    pub fn rectangle(&self) -> Option<Rectangle> {
        self.rectangle
    }

    /// The earliest and the latest time.
    pub fn times(&self) -> Option<(Millis, Millis)> {
        self.times
    }

    /// Its memory.
    pub(crate) fn memory(&self) -> usize {
        let bytes = |range: &AttributeRange| {
            size_of::<AttributeRange>() + range.low.len() + range.high.as_ref().map_or(0, Vec::len)
        };
        size_of::<Self>() + self.attributes.iter().map(bytes).sum::<usize>()
    }

    /// The number of indexed values.
    pub(crate) fn indexed_values(&self) -> usize {
        self.exact.hashes.len()
    }

    /// Removes indexed values beyond the first `count`, but not from the ranges.
    pub(crate) fn truncate_indexed(&mut self, count: usize) {
        self.exact.hashes.truncate(count);
    }

    /// Attributes and hashes of indexed values, each once.
    pub(crate) fn distinct_hashes(&mut self) -> &[(u8, u32)] {
        self.exact.hashes.sort_unstable();
        self.exact.hashes.dedup();
        &self.exact.hashes
    }

    /// The attributes with values that are not indexed.
    pub(crate) fn ranged_attributes(&self) -> &[u8] {
        &self.exact.ranged
    }

    pub(crate) fn clear(&mut self) {
        self.attributes.clear();
        self.rectangle = None;
        self.times = None;
        self.unknown = false;
        self.exact.hashes.clear();
        self.exact.ranged.clear();
        match self.exact.value_use.as_deref_mut() {
            Some(ValueUse::List(values)) => values.clear(),
            Some(ValueUse::Compare(_, is_within)) => *is_within = false,
            None => {}
        }
    }

    /// `zone := flags{u8} [4 × f64] [2 × u64] (id{u8} low{slice} has_high{u8} [high{slice}])*`
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.unknown)
            | u8::from(self.rectangle.is_some()) << 1
            | u8::from(self.times.is_some()) << 2;
        out.push(flags);
        for side in self.rectangle.iter().flatten() {
            out.put_f64_le(*side);
        }
        if let Some((low, high)) = self.times {
            out.put_u64_le(low);
            out.put_u64_le(high);
        }
        for range in &self.attributes {
            out.push(range.id);
            out.put_slice(&range.low);
            out.push(u8::from(range.high.is_some()));
            if let Some(high) = &range.high {
                out.put_slice(high);
            }
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> ReadResult<Self> {
        let mut reader = ByteReader::new(bytes);
        let flags = reader.byte()?;
        let mut zone = Self {
            unknown: flags & 1 != 0,
            ..Self::default()
        };
        if flags & 2 != 0 {
            let mut side = || reader.u64_le().map(f64::from_bits);
            zone.rectangle = Some([side()?, side()?, side()?, side()?]);
        }
        if flags & 4 != 0 {
            zone.times = Some((reader.u64_le()?, reader.u64_le()?));
        }
        while !reader.is_empty() {
            let id = reader.byte()?;
            let low = reader.slice()?.to_vec();
            let high = match reader.byte()? {
                0 => None,
                _ => Some(reader.slice()?.to_vec()),
            };
            zone.attributes.push(AttributeRange { id, low, high });
        }
        Ok(zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ZoneMap {
        let mut zone = ZoneMap::default();
        zone.add_attribute(1, b"m");
        zone.add_attribute(1, b"p");
        zone.add_attribute(2, &[b'x'; 100]);
        zone.add_rectangle([0.0, 0.0, 1.0, 2.0]);
        zone.add_rectangle([-3.0, 1.0, 0.0, 1.0]);
        zone.add_time(70);
        zone
    }

    #[test]
    fn a_zone_covers_what_was_added_and_little_else() {
        let zone = sample();
        assert!(zone.may_have(1, b"n", b"o"));
        assert!(!zone.may_have(1, b"a", b"l"));
        assert!(!zone.may_have(3, b"", b"z"));
        assert!(zone.may_have(2, &[b'x'; 100], &[b'x'; 100]));
        assert!(zone.may_intersect([-2.0, 0.0, -1.0, 0.5]));
        assert!(!zone.may_intersect([5.0, 5.0, 6.0, 6.0]));
        assert!(zone.may_be_within(60, 70) && !zone.may_be_within(71, 90));
    }

    #[test]
    fn unknown_values_may_match() {
        let mut zone = sample();
        zone.add_unknown();
        assert!(zone.may_have(9, b"", b"") && zone.may_be_within(0, 0));
    }

    #[test]
    fn values_of_an_entry_are_compared_with_bounds_exactly_until_the_zone_is_cleared() {
        let long = [b'x'; 100];
        let bounds = |id, low: &[u8], high: &[u8]| AttributeBounds::new(id, low, high);
        let is_within = |bounds: Arc<AttributeBounds>| {
            let mut zone = bounds.zone();
            zone.add_indexed(1, b"a");
            zone.add_attribute(1, b"z");
            zone.add_indexed(2, &long);
            assert!(bounds.may_be_in(&zone));
            let is_within = zone.is_within_bounds();
            zone.clear();
            assert!(!zone.is_within_bounds());
            zone.add_unknown();
            assert!(zone.is_within_bounds());
            is_within
        };
        assert!(is_within(bounds(1, b"z", b"z")) && is_within(bounds(2, &long, &long)));
        assert!(is_within(bounds(1, b"A", b"a")) && !is_within(bounds(1, b"b", b"y")));
        assert!(!is_within(bounds(2, &long[1..], &long[1..])));
    }

    #[test]
    fn indexed_values_are_not_those_of_a_sum() {
        let mut zone = ZoneMap::default();
        zone.add_indexed(1, b"a");
        zone.add_indexed(1, b"z");
        let mut sum = ZoneMap::default();
        sum.add_zone(&zone);
        assert_eq!(sum, zone);
        assert_eq!((zone.indexed_values(), sum.indexed_values()), (2, 0));
        zone.clear();
        assert_eq!((zone.indexed_values(), &zone), (0, &ZoneMap::default()));
    }

    #[test]
    fn listed_values_are_there_once_in_order_and_a_sum_makes_them_unknown() {
        let mut zone = ZoneMap::of_values();
        for value in [&b"z"[..], b"a", b"z"] {
            zone.add_indexed(1, value);
        }
        zone.add_attribute(0, &[b'x'; 40]);
        let expected = [(0, vec![b'x'; 32]), (1, b"a".to_vec()), (1, b"z".to_vec())];
        assert_eq!(zone.take_values(), expected);
        assert!(!zone.has_unknown() && !zone.may_have(1, b"a", b"a"));
        zone.add_zone(&sample());
        assert!(zone.has_unknown());
    }

    #[test]
    fn zones_come_back_from_bytes() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        assert_eq!(ZoneMap::decode(&bytes), Ok(sample()));
        assert!(ZoneMap::decode(&bytes[..bytes.len() - 1]).is_err());
    }
}
