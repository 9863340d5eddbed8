//! The entries of a query: a document must meet at least one in order to match.

use std::hash::{BuildHasher, RandomState};

use rillbase_query::bson::{BsonType, ValueRef};
use rillbase_query::geo::Space;
use rillbase_query::key::encode;
use rillbase_query::path::FieldPath;

use crate::point::Interval;
use crate::trie::NodeId;

/// What is waited for at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Probe {
    /// A value with this hash, neither document nor array.
    Scalar(u64),
    /// A document or an array with this hash.
    Compound(u64),
    /// A value of this type.
    Kind(BsonType),
    /// Any value.
    Present,
    /// Null or nothing.
    Nothing,
    /// No value at all.
    Absent,
    /// Values in an interval: one in it if `each`, else one above its lower end and one below its
    /// upper end. `sure`: the filter requires nothing else, so that a document's only value
    /// decides.
    Interval {
        interval: Interval,
        each: bool,
        sure: bool,
    },
    /// Text with a piece that has this hash.
    Gram {
        class: u8,
        anchored: bool,
        hash: u64,
    },
    /// A geometry in the cell that has this hash.
    Cell { space: Space, level: i16, hash: u64 },
    /// A geometry in many cells.
    Wide,
    /// A document with a term that has this hash.
    Term { analyzer: u8, hash: u64 },
}

/// An entry before it has a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntrySpec {
    pub(crate) path: FieldPath,
    pub(crate) probe: Probe,
}

/// An entry in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrieEntry {
    pub(crate) node: NodeId,
    pub(crate) probe: Probe,
}

/// Hashes of values with a secret of the process.
#[derive(Debug, Clone)]
pub(crate) struct Hashes {
    state: RandomState,
    seed: u64,
}

impl Default for Hashes {
    fn default() -> Self {
        let state = RandomState::new();
        let seed = state.hash_one(0_u8);
        Self { state, seed }
    }
}

impl Hashes {
    /// A secret number of the process.
    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// The hash of a term.
    pub(crate) fn term(&self, term: &str) -> u64 {
        self.state.hash_one(term)
    }

    /// The hash of a value; equal values have one, whatever their number type.
    pub(crate) fn value(&self, value: ValueRef<'_>, buffer: &mut Vec<u8>) -> u64 {
        buffer.clear();
        encode(buffer, value);
        self.state.hash_one(&buffer[..])
    }
}

/// Whether a value has parts that are values.
pub(crate) const fn is_compound(value: ValueRef<'_>) -> bool {
    matches!(
        value.kind(),
        BsonType::Document | BsonType::Array | BsonType::CodeWithScope
    )
}

impl Probe {
    /// The key of the posting in which those who wait for it are, if they are
    /// in one.
    pub(crate) fn key(&self, node: NodeId) -> Option<u64> {
        let (class, payload) = match self {
            Self::Scalar(hash) | Self::Compound(hash) => (0, *hash),
            Self::Kind(kind) => (1, u64::from(kind.code())),
            Self::Present => (2, 0),
            Self::Nothing => (3, 0),
            Self::Absent => (4, 0),
            Self::Gram { hash, .. } => (5, *hash),
            Self::Cell { hash, .. } => (6, *hash),
            Self::Wide => (7, 0),
            Self::Term { analyzer, hash } => (8 + u64::from(*analyzer), *hash),
            Self::Interval { .. } => return None,
        };
        Some(mixed(payload, u64::from(node) << 4 | class))
    }
}

/// One hash of two: every bit of either changes about half of the result.
pub(crate) const fn mixed(a: u64, b: u64) -> u64 {
    let product = (a ^ 0x9E37_79B9_7F4A_7C15) as u128 * (spread(b) | 1) as u128;
    #[allow(clippy::cast_possible_truncation, reason = "the halves are folded")]
    let folded = (product >> 64) as u64 ^ product as u64;
    folded
}

/// A number whose neighbours are far away.
const fn spread(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
