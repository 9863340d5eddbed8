//! A quick hash of short keys, the same on every machine.
//!
//! Eight bytes at a time are folded in by a multiplication whose halves are added. Sets of values
//! remember hashes on disk, so it never changes.

const FIRST: u64 = 0x243f_6a88_85a3_08d3;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash in progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hasher(u64);

impl Default for Hasher {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Hasher {
    #[inline]
    fn fold(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * u128::from(FACTOR);
        self.0 = (product as u64) ^ ((product >> 64) as u64).rotate_left(29);
    }
}

impl std::hash::Hasher for Hasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.fold(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        for (slot, byte) in last.iter_mut().zip(rest) {
            *slot = *byte;
        }
        self.fold(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.fold(number as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        let mut last = *self;
        last.fold(FACTOR);
        last.0 ^ last.0 >> 32
    }
}

/// Builds hashers for maps.
pub(crate) type Builder = std::hash::BuildHasherDefault<Hasher>;
