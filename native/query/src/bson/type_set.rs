//! Sets of element types, as `$type` and schemas name them.

use super::{BsonType, ValueRef};

/// A set of element types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TypeSet(u32);

/// All kinds, by bit.
const ALL: [BsonType; 21] = [
    BsonType::Double,
    BsonType::String,
    BsonType::Document,
    BsonType::Array,
    BsonType::Binary,
    BsonType::Undefined,
    BsonType::ObjectId,
    BsonType::Bool,
    BsonType::Date,
    BsonType::Null,
    BsonType::Regex,
    BsonType::DbPointer,
    BsonType::Code,
    BsonType::Symbol,
    BsonType::CodeWithScope,
    BsonType::Int32,
    BsonType::Timestamp,
    BsonType::Int64,
    BsonType::Decimal,
    BsonType::MaxKey,
    BsonType::MinKey,
];

impl TypeSet {
    /// The four number types.
    pub const NUMBERS: Self = Self(
        (1 << BsonType::Double as u32)
            | (1 << BsonType::Int32 as u32)
            | (1 << BsonType::Int64 as u32)
            | (1 << BsonType::Decimal as u32),
    );

    /// Adds a type.
    pub const fn insert(&mut self, kind: BsonType) {
        self.0 |= 1 << kind as u32;
    }

    /// Adds a set.
    pub const fn extend(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether the type is in the set.
    #[must_use]
    pub const fn contains(self, kind: BsonType) -> bool {
        self.0 & (1 << kind as u32) != 0
    }

    /// The types in the set.
    pub fn iter(self) -> impl Iterator<Item = BsonType> {
        ALL.into_iter().filter(move |kind| self.contains(*kind))
    }

    /// The types that an argument of `$type` names: an alias, `number`, or a code.
    #[must_use]
    pub fn named(value: ValueRef<'_>) -> Option<Self> {
        if value.as_str() == Some("number") {
            return Some(Self::NUMBERS);
        }
        let kind = match value {
            ValueRef::String(alias) => BsonType::from_alias(alias)?,
            number => BsonType::from_type_number(number.as_exact_i64()?)?,
        };
        let mut kinds = Self::default();
        kinds.insert(kind);
        Some(kinds)
    }
}
