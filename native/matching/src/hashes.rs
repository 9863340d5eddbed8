//! Hashes of values and terms, with a secret of the process.

use std::hash::{BuildHasher, RandomState};

use rillbase_query::bson::ValueRef;
use rillbase_query::key::encode;

/// Hashes values with a secret of the process.
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

    /// The hash of a value. Numbers of different types that are equal have the same hash.
    pub(crate) fn value(&self, value: ValueRef<'_>, buffer: &mut Vec<u8>) -> u64 {
        buffer.clear();
        encode(buffer, value);
        self.state.hash_one(&buffer[..])
    }
}

/// Combines two hashes: each bit of either changes about half of the bits of the result.
pub(crate) const fn mixed(a: u64, b: u64) -> u64 {
    let product = (a ^ 0x9E37_79B9_7F4A_7C15) as u128 * (spread(b) | 1) as u128;
    #[allow(clippy::cast_possible_truncation, reason = "the halves are folded")]
    let folded = (product >> 64) as u64 ^ product as u64;
    folded
}

/// Spreads neighbouring numbers apart.
const fn spread(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
