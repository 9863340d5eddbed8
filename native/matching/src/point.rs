//! Maps values to points on a line, for the index of intervals.
//!
//! A point is the first sixteen bytes of a value's order-preserving key, the rank of its type
//! included. The mapping preserves the order, so an interval of values is contained in an interval
//! of points. For keys of at most sixteen bytes (all numbers, dates and ids, and short text) it is
//! exact, because no key is a prefix of another.

use rillbase_query::bson::ValueRef;
use rillbase_query::key::{encode, encode_key};

/// The number of bytes of a key in a point.
const WIDTH: usize = 16;

/// The beginning of a key, ordered by its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Point {
    high: u64,
    low: u64,
}

impl Point {
    pub(crate) const LEAST: Self = Self::new(0);

    const fn new(bits: u128) -> Self {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the two halves are taken apart"
        )]
        Self {
            high: (bits >> 64) as u64,
            low: bits as u64,
        }
    }

    const fn bits(self) -> u128 {
        ((self.high as u128) << 64) | self.low as u128
    }

    /// The point of a key.
    pub(crate) fn of_key(key: &[u8]) -> Self {
        let mut bytes = [0; WIDTH];
        for (to, from) in bytes.iter_mut().zip(key) {
            *to = *from;
        }
        Self::new(u128::from_be_bytes(bytes))
    }

    /// The point of a value; `buffer` is overwritten. Only the beginning of long text is read.
    pub(crate) fn of_value(value: ValueRef<'_>, buffer: &mut Vec<u8>) -> Self {
        buffer.clear();
        match value {
            ValueRef::String(text) => encode(buffer, ValueRef::String(beginning(text))),
            ValueRef::Symbol(text) => encode(buffer, ValueRef::Symbol(beginning(text))),
            other => encode(buffer, other),
        }
        Self::of_key(buffer)
    }

    /// Whether a key was short enough for its point to be unique.
    pub(crate) const fn holds(key: &[u8]) -> bool {
        key.len() <= WIDTH
    }

    /// The rank of the type of the value.
    pub(crate) const fn rank(self) -> u8 {
        self.high.to_be_bytes()[0]
    }

    /// The least point of a rank.
    pub(crate) const fn first(rank: u8) -> Self {
        Self::new((rank as u128) << 120)
    }

    /// The greatest point of a rank.
    pub(crate) const fn last(rank: u8) -> Self {
        Self::new(((rank as u128) << 120) | (u128::MAX >> 8))
    }

    const fn next(self) -> Self {
        Self::new(self.bits().saturating_add(1))
    }

    const fn previous(self) -> Self {
        Self::new(self.bits().saturating_sub(1))
    }
}

/// At least as much of a text as a point can hold.
fn beginning(text: &str) -> &str {
    let mut end = WIDTH.min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    text.get(..end).unwrap_or(text)
}

/// The interval of values that a comparison admits; both ends inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Interval {
    pub(crate) low: Point,
    pub(crate) high: Point,
}

impl Interval {
    /// All values of the operand's type that are less (or greater) than it,
    /// or equal if `inclusive`.
    pub(crate) fn bounded_by(operand: ValueRef<'_>, less: bool, inclusive: bool) -> Self {
        let key = encode_key(operand);
        let (point, exact) = (Point::of_key(&key), key.len() <= WIDTH);
        let strictly = exact && !inclusive;
        let rank = operand.rank();
        if less {
            // NaN is the least number, but `$lt` does not consider it less than others.
            let skip = operand.is_number() && !operand.is_nan();
            let first = Point::first(rank);
            return Self {
                low: if skip { first.next() } else { first },
                high: if strictly { point.previous() } else { point },
            };
        }
        Self {
            low: if strictly { point.next() } else { point },
            high: Point::last(rank),
        }
    }

    /// The values that are in both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
        }
    }

    /// Whether it has an end on both sides.
    pub(crate) fn is_two_sided(self) -> bool {
        let rank = self.low.rank();
        self.low > Point::first(rank).next() && self.high < Point::last(rank)
    }
}
