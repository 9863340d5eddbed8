//! The arguments of `$type` and the bit operators.

use crate::bson::{Kind, ValueRef};

/// A set of element types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds(u32);

/// All kinds, by bit.
const ALL: [Kind; 21] = [
    Kind::Double,
    Kind::String,
    Kind::Document,
    Kind::Array,
    Kind::Binary,
    Kind::Undefined,
    Kind::ObjectId,
    Kind::Bool,
    Kind::Date,
    Kind::Null,
    Kind::Regex,
    Kind::DbPointer,
    Kind::Code,
    Kind::Symbol,
    Kind::CodeWithScope,
    Kind::Int32,
    Kind::Timestamp,
    Kind::Int64,
    Kind::Decimal,
    Kind::MaxKey,
    Kind::MinKey,
];

impl Kinds {
    /// The four number types.
    pub const NUMBERS: Self = Self(
        (1 << Kind::Double as u32)
            | (1 << Kind::Int32 as u32)
            | (1 << Kind::Int64 as u32)
            | (1 << Kind::Decimal as u32),
    );

    /// Adds a type.
    pub const fn insert(&mut self, kind: Kind) {
        self.0 |= 1 << kind as u32;
    }

    /// Adds a set.
    pub const fn extend(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether the type is in the set.
    #[must_use]
    pub const fn contains(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u32) != 0
    }

    /// The types in the set.
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        ALL.into_iter().filter(move |kind| self.contains(*kind))
    }

    /// The types that an argument of `$type` names: an alias, `number`, or a code.
    #[must_use]
    pub fn named(value: ValueRef<'_>) -> Option<Self> {
        if value.as_str() == Some("number") {
            return Some(Self::NUMBERS);
        }
        let kind = match value {
            ValueRef::String(alias) => Kind::from_alias(alias)?,
            number => Kind::from_type_number(number.as_exact_i64()?)?,
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
