//! The arguments of the bit operators.

use crate::bson::ValueRef;

/// The condition of a bit operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are self-explanatory")]
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

/// A bit operator with its bit positions.
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
