//! The arguments of `$type` and the bit operators.

use crate::bson::{BsonType, ValueRef};

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

/// Which bits a bit operator asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Bits {
    AllSet,
    AnySet,
    AllClear,
    AnyClear,
}

impl Bits {
    /// The operator's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllSet => "$bitsAllSet",
            Self::AnySet => "$bitsAnySet",
            Self::AllClear => "$bitsAllClear",
            Self::AnyClear => "$bitsAnyClear",
        }
    }

    /// The operator of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::AllSet, Self::AnySet, Self::AllClear, Self::AnyClear]
            .into_iter()
            .find(|bits| bits.name() == name)
    }
}

/// A bit operator with the positions that it asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitTest {
    /// Which operator.
    pub bits: Bits,
    /// Positions in ascending order, each once.
    pub positions: Vec<u32>,
}

impl BitTest {
    /// Whether the value passes: whole numbers of 64 bits (negative ones are
    /// extended by their sign) and binary data.
    #[must_use]
    pub fn passes(&self, value: ValueRef<'_>) -> bool {
        match value {
            ValueRef::Binary(binary) => self.decide(|position| {
                let byte = binary
                    .bytes
                    .get((position / 8) as usize)
                    .copied()
                    .unwrap_or(0);
                byte >> (position % 8) & 1 == 1
            }),
            number => match number.as_exact_i64() {
                Some(int) => self.decide(|position| int >> position.min(63) & 1 == 1),
                None => false,
            },
        }
    }

    fn decide(&self, is_set: impl Fn(u32) -> bool) -> bool {
        let mut positions = self.positions.iter().copied();
        match self.bits {
            Bits::AllSet => positions.all(is_set),
            Bits::AnySet => positions.any(is_set),
            Bits::AllClear => !positions.any(is_set),
            Bits::AnyClear => !positions.all(is_set),
        }
    }
}
