//! The filter of a memtable, which grows with it: an empty memtable takes no memory, and a small
//! one little.
//!
//! The first bytes of a memtable are in a small Bloom filter, the next ones in a larger one. A
//! lookup asks all of them, of which the small ones stay in the processor's caches. A filter is
//! created before the key that needs it is linked in, so a reader of that key has it.

use std::sync::OnceLock;

use super::bloom::Bloom;

/// A filter is replaced by the next, larger one when the memtable has reached this size.
const STAGE_BYTES: [usize; 2] = [64 << 10, 1 << 20];

/// Excludes most keys that are not in a memtable.
#[derive(Debug)]
pub(crate) struct KeyFilter {
    stages: [OnceLock<Bloom>; STAGE_BYTES.len() + 1],
    /// The size at which the memtable is flushed.
    memtable_bytes: usize,
}

impl KeyFilter {
    pub(crate) fn new(memtable_bytes: usize) -> Self {
        Self {
            stages: std::array::from_fn(|_| OnceLock::new()),
            memtable_bytes,
        }
    }

    /// Adds a key's hash to the filter of a memtable of this size.
    pub(crate) fn add(&self, hash: u64, bytes: usize) {
        let full = STAGE_BYTES.iter().take_while(|&&limit| bytes >= limit);
        let stage = full.count();
        let Some(filter) = self.stages.get(stage) else {
            return;
        };
        let limit = STAGE_BYTES.get(stage).unwrap_or(&self.memtable_bytes);
        let create = || Bloom::new(self.memtable_bytes.min(*limit));
        filter.get_or_init(create).add(hash);
    }

    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let mut filters = self.stages.iter().filter_map(OnceLock::get);
        filters.any(|filter| filter.may_contain(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::hash;

    const ENTRY_BYTES: usize = 128;

    fn filled(keys: usize) -> KeyFilter {
        let filter = KeyFilter::new(64 << 20);
        (0..keys).for_each(|key| filter.add(hash(&key.to_be_bytes()), key * ENTRY_BYTES));
        filter
    }

    #[test]
    fn every_key_passes_and_few_others_do_at_every_size() {
        for keys in [0, 1, 400, 5000, 50_000] {
            let filter = filled(keys);
            let passes = |key: usize| filter.may_contain(hash(&key.to_be_bytes()));
            assert!((0..keys).all(passes), "{keys}");
            let others = (keys..keys + 40_000).filter(|&key| passes(key)).count();
            assert!(others < 1600, "{others} of 40,000 passed beside {keys}");
        }
    }

    #[test]
    fn the_large_filter_is_created_when_the_memtable_is_large() {
        let sizes = |keys| {
            let filter = filled(keys);
            filter.stages.iter().map_while(OnceLock::get).count()
        };
        assert_eq!([sizes(0), sizes(1), sizes(600), sizes(9000)], [0, 1, 2, 3]);
    }
}
