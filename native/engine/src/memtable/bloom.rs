//! A filter that excludes most keys that are not in a memtable, at the cost of one cache line.
//!
//! The bits are as in the filters of tables. They are set before an entry is linked in, with
//! relaxed order: a reader learns an entry's sequence from the writer after both.

use super::sync::{AtomicU64, Ordering};
use crate::table::filter::{bits_of, line_of};

const WORDS: usize = 8;
const PROBES: u8 = 6;
/// The assumed size of entries; smaller ones only let more keys pass.
const ENTRY_BYTES: usize = 128;
const ENTRY_BITS: usize = 10;

/// Bits of the keys that were added.
#[derive(Debug)]
pub(crate) struct Bloom {
    lines: Box<[[AtomicU64; WORDS]]>,
}

impl Bloom {
    /// For about as many keys as fit into a memtable of this size.
    pub(crate) fn new(memtable_bytes: usize) -> Self {
        let lines = (memtable_bytes / ENTRY_BYTES * ENTRY_BITS / 512).max(1);
        let empty = || std::array::from_fn(|_| AtomicU64::new(0));
        Self {
            lines: (0..lines).map(|_| empty()).collect(),
        }
    }

    #[inline]
    fn line(&self, hash: u64) -> Option<&[AtomicU64; WORDS]> {
        self.lines.get(line_of(hash, self.lines.len()))
    }

    pub(crate) fn add(&self, hash: u64) {
        let Some(line) = self.line(hash) else {
            return;
        };
        for bit in bits_of(hash, PROBES) {
            if let Some(word) = line.get(bit as usize / 64) {
                let mask = 1 << (bit % 64);
                if word.load(Ordering::Relaxed) & mask == 0 {
                    word.fetch_or(mask, Ordering::Relaxed);
                }
            }
        }
    }

    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let Some(line) = self.line(hash) else {
            return true;
        };
        bits_of(hash, PROBES).all(|bit| {
            let word = line.get(bit as usize / 64);
            word.is_none_or(|word| word.load(Ordering::Relaxed) & (1 << (bit % 64)) != 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::hash;

    #[test]
    fn every_key_passes_and_few_others_do() {
        let bloom = Bloom::new(1 << 20);
        let hash = |key: u32| hash(&key.to_be_bytes());
        (0..8000).for_each(|key| bloom.add(hash(key)));
        assert!((0..8000).all(|key| bloom.may_contain(hash(key))));
        let passed = (8000..48_000)
            .filter(|&key| bloom.may_contain(hash(key)))
            .count();
        assert!(passed < 1000, "{passed} of 40,000 passed");
    }
}
