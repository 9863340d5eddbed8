//! Keys of rows and items.
//!
//! ```text
//! row  := generation{8} rollup{1} value* [bucket{8}]
//! item := row measure{1} value
//! ```
//!
//! Values are those of the rollup's dimensions, in its order. So rows sort by their dimensions,
//! then by time, and the buckets of one group are adjacent.

use std::ops::Range;

use rillbase_binary_format::ByteReader;

use crate::contribution::Contribution;
use crate::definition::AggregateDefinition;
use crate::value::{DimensionValue, millis, put_millis};

/// The prefix of all keys of a rollup.
pub(crate) fn rollup(out: &mut Vec<u8>, generation: u64, rollup: usize) {
    out.extend_from_slice(&generation.to_be_bytes());
    out.push(u8::try_from(rollup).unwrap_or(u8::MAX));
}

/// The length of that prefix.
pub(crate) const ROLLUP_BYTES: usize = 9;

/// The key of a contribution's row in a rollup.
pub(crate) fn row(
    out: &mut Vec<u8>,
    (generation, number): (u64, usize),
    dimensions: &[usize],
    contribution: &Contribution,
) {
    rollup(out, generation, number);
    for &index in dimensions {
        out.extend_from_slice(contribution.dimension(index));
    }
    if let Some(bucket) = contribution.bucket {
        put_millis(out, bucket);
    }
}

/// The maximum number of dimensions of a rollup.
const MAX_VALUES: usize = 16;

/// The parts of a row's key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowKeyParts<'a> {
    /// All values, concatenated.
    pub(crate) values: &'a [u8],
    /// The end of each value.
    ends: [u32; MAX_VALUES],
    pub(crate) bucket: Option<i64>,
}

/// The decoded values of one key, so that following keys with the same values need not be decoded.
#[derive(Debug, Default)]
pub(crate) struct DecodedValues {
    values: Vec<u8>,
    ends: [u32; MAX_VALUES],
}

impl DecodedValues {
    /// The parts of a key, if its values are the decoded ones.
    pub(crate) fn parts<'k>(&self, key: &'k [u8], has_time: bool) -> Option<RowKeyParts<'k>> {
        let rest = key.get(ROLLUP_BYTES..)?;
        let values = rest.get(..self.values.len())?;
        let mut reader = ByteReader::new(rest.get(self.values.len()..)?);
        if values != self.values.as_slice() || self.values.is_empty() {
            return None;
        }
        let bucket = if has_time {
            Some(millis(&mut reader).ok()?)
        } else {
            None
        };
        Some(RowKeyParts {
            values,
            ends: self.ends,
            bucket,
        })
    }

    pub(crate) fn note(&mut self, parts: &RowKeyParts<'_>) {
        self.values.clear();
        self.values.extend_from_slice(parts.values);
        self.ends = parts.ends;
    }
}

impl<'a> RowKeyParts<'a> {
    /// Splits the key of a row or an item of a rollup with this many dimensions.
    pub(crate) fn of(key: &'a [u8], dimensions: usize, has_time: bool) -> Option<Self> {
        let mut reader = ByteReader::new(key.get(ROLLUP_BYTES..)?);
        let all = reader.rest();
        let mut ends = [0; MAX_VALUES];
        for end in ends.get_mut(..dimensions)? {
            DimensionValue::skip(&mut reader).ok()?;
            *end = u32::try_from(reader.offset()).ok()?;
        }
        let values = all.get(..reader.offset())?;
        let bucket = if has_time {
            Some(millis(&mut reader).ok()?)
        } else {
            None
        };
        Some(Self {
            values,
            ends,
            bucket,
        })
    }

    /// The range of one value among all.
    pub(crate) fn range(&self, index: usize) -> Range<usize> {
        let end = |index: usize| self.ends.get(index).map_or(0, |end| *end as usize);
        index.checked_sub(1).map_or(0, end)..end(index)
    }

    /// The value of one of the rollup's dimensions.
    pub(crate) fn value(&self, index: usize) -> &'a [u8] {
        self.values.get(self.range(index)).unwrap_or_default()
    }
}

/// When the row or item with this key expires.
pub(crate) fn expiry(key: &[u8], definition: &AggregateDefinition) -> Option<i64> {
    definition.retention?;
    let rollup = definition.rollups.get(usize::from(*key.get(8)?))?;
    let bucket = RowKeyParts::of(key, rollup.len(), true)?.bucket?;
    definition.expires(bucket)
}
