//! The entries of a query: a document must meet at least one in order to match.

use rillbase_query::bson::{BsonType, ValueRef};
use rillbase_query::geo::Space;
use rillbase_query::path::FieldPath;

use crate::hashes::mixed;
use crate::point::Interval;

/// The number of a node in the tree of paths; numbers of removed nodes are reused.
pub(crate) type NodeId = u32;

/// A condition on the values at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Probe {
    /// A value with this hash, neither document nor array.
    Scalar(u64),
    /// A document or an array with this hash.
    Compound(u64),
    /// A value of this type.
    Kind(BsonType),
    /// Any value at all.
    Present,
    /// Null or nothing.
    Nothing,
    /// No value.
    Absent,
    /// Values in an interval: a single value in it if `each`, otherwise one above its lower end and
    /// one below its upper end. `sure`: the filter requires nothing else, so that a document with a
    /// single value is decided.
    Interval {
        interval: Interval,
        each: bool,
        sure: bool,
    },
    /// Text that contains a fragment with this hash.
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

/// An entry before it is assigned to a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntrySpec {
    pub(crate) path: FieldPath,
    pub(crate) probe: Probe,
}

/// An entry at a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrieEntry {
    pub(crate) node: NodeId,
    pub(crate) probe: Probe,
}

/// Whether a value contains other values.
pub(crate) const fn is_compound(value: ValueRef<'_>) -> bool {
    matches!(
        value.kind(),
        BsonType::Document | BsonType::Array | BsonType::CodeWithScope
    )
}

impl Probe {
    /// The key of the posting list of its queries; `None` for intervals, which have none.
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
