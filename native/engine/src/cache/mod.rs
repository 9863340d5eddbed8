//! The shared block cache, bounded in bytes and resistant to scans.
//!
//! Each shard keeps three queues (S3-FIFO). A new block enters the small one, a tenth of the shard;
//! when it leaves, it moves to the main one only if it was hit again, otherwise only its id is
//! remembered for a while. A block that returns while its id is remembered enters the main queue at
//! once. So blocks that are read once, as by a scan, pass only through the small queue. A hit only
//! increments a counter; nothing is moved.

pub(crate) mod pins;

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;

use self::pins::PinBudget;
use crate::block::Block;

const SHARDS: usize = 16;
/// The overhead of an entry besides its bytes.
const ENTRY_OVERHEAD: usize = 160;
/// Hits beyond this are not counted.
const MAX_HITS: u8 = 3;

/// Identifies a block: the table's number in this process, and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockId {
    pub(crate) table: u64,
    pub(crate) offset: u64,
}

impl BlockId {
    fn mixed(self) -> u64 {
        let mixed = (self.table.rotate_left(40) ^ self.offset).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    }
}

/// Ids are already mixed, so the hasher need not mix them.
#[derive(Debug, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(29) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type Build = BuildHasherDefault<Mixed>;

#[derive(Debug)]
struct CachedBlock {
    name: BlockId,
    block: Arc<Block>,
    charge: usize,
    hits: AtomicU8,
}

#[derive(Debug, Default)]
struct Shard {
    held: HashMap<BlockId, Arc<CachedBlock>, Build>,
    small: VecDeque<Arc<CachedBlock>>,
    main: VecDeque<Arc<CachedBlock>>,
    small_bytes: usize,
    main_bytes: usize,
    /// Ids that left the small queue without a hit, oldest first.
    left: VecDeque<BlockId>,
    left_names: HashSet<BlockId, Build>,
    /// Hits and misses. Counted here because the lock is taken anyway, and readers on other cores
    /// usually use another shard.
    hits: u64,
    missed: u64,
}

impl Shard {
    fn insert(&mut self, held: Arc<CachedBlock>, lasting: bool) {
        if self.held.insert(held.name, Arc::clone(&held)).is_some() {
            // Two readers loaded it concurrently. The older copy leaves through its queue.
            return self.enqueue_replacement(held);
        }
        if lasting || self.left_names.remove(&held.name) {
            self.main_bytes += held.charge;
            self.main.push_back(held);
        } else {
            self.small_bytes += held.charge;
            self.small.push_back(held);
        }
    }

    fn enqueue_replacement(&mut self, held: Arc<CachedBlock>) {
        self.small_bytes += held.charge;
        self.small.push_back(held);
    }

    fn shrink_to(&mut self, budget: usize) {
        while self.small_bytes + self.main_bytes > budget {
            let evicted = if self.small_bytes > budget / 10 || self.main.is_empty() {
                self.evict_small()
            } else {
                self.evict_main()
            };
            if !evicted {
                return;
            }
        }
    }

    fn evict_small(&mut self) -> bool {
        let Some(held) = self.small.pop_front() else {
            return false;
        };
        self.small_bytes -= held.charge;
        if held.hits.load(Ordering::Relaxed) > 0 {
            held.hits.store(0, Ordering::Relaxed);
            self.main_bytes += held.charge;
            self.main.push_back(held);
        } else {
            self.forget(&held);
            self.left.push_back(held.name);
            self.left_names.insert(held.name);
            while self.left.len() > self.main.len().max(64) {
                if let Some(name) = self.left.pop_front() {
                    self.left_names.remove(&name);
                }
            }
        }
        true
    }

    fn evict_main(&mut self) -> bool {
        let Some(held) = self.main.pop_front() else {
            return false;
        };
        let hits = held.hits.load(Ordering::Relaxed);
        if hits > 0 {
            held.hits.store(hits - 1, Ordering::Relaxed);
            self.main.push_back(held);
        } else {
            self.main_bytes -= held.charge;
            self.forget(&held);
        }
        true
    }

    /// Removes a block's id, unless it identifies a newer copy.
    fn forget(&mut self, held: &Arc<CachedBlock>) {
        if self
            .held
            .get(&held.name)
            .is_some_and(|cached| Arc::ptr_eq(cached, held))
        {
            self.held.remove(&held.name);
        }
    }
}

/// Blocks of all tables of a database.
#[derive(Debug)]
pub(crate) struct BlockCache {
    shards: Vec<Mutex<Shard>>,
    shard_budget: usize,
    /// The memory that tables keep for themselves.
    pub(crate) pins: PinBudget,
}

impl BlockCache {
    /// A cache with a budget, in addition to which tables may keep `pinned` bytes.
    pub(crate) fn new(budget: usize, pinned: usize) -> Self {
        Self {
            pins: PinBudget::new(pinned),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            shard_budget: budget / SHARDS,
        }
    }

    fn shard(&self, name: BlockId) -> Option<&Mutex<Shard>> {
        self.shards
            .get(crate::coding::to_usize(name.mixed() >> 8) % SHARDS)
    }

    pub(crate) fn get(&self, name: BlockId) -> Option<Arc<Block>> {
        let mut shard = self.shard(name)?.lock();
        let Some(held) = shard.held.get(&name) else {
            shard.missed += 1;
            return None;
        };
        let hits = held.hits.load(Ordering::Relaxed);
        if hits < MAX_HITS {
            held.hits.store(hits + 1, Ordering::Relaxed);
        }
        let block = Arc::clone(&held.block);
        shard.hits += 1;
        Some(block)
    }

    /// Inserts a block. A `lasting` block, such as an index, bypasses the small queue.
    pub(crate) fn insert(&self, name: BlockId, block: &Arc<Block>, lasting: bool) {
        let charge = block.bytes().len() + ENTRY_OVERHEAD;
        let Some(shard) = self.shard(name) else {
            return;
        };
        if charge > self.shard_budget {
            return;
        }
        let held = Arc::new(CachedBlock {
            name,
            block: Arc::clone(block),
            charge,
            hits: AtomicU8::new(0),
        });
        let mut shard = shard.lock();
        shard.insert(held, lasting);
        shard.shrink_to(self.shard_budget);
    }

    /// The bytes in the cache.
    pub(crate) fn bytes(&self) -> usize {
        let sizes = self.shards.iter().map(|shard| {
            let shard = shard.lock();
            shard.small_bytes + shard.main_bytes
        });
        sizes.sum()
    }

    pub(crate) fn hits(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().hits).sum()
    }

    pub(crate) fn misses(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().missed).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Arc<Block> {
        Arc::new(Block::raw(vec![0; 1000]))
    }

    fn name(offset: u64) -> BlockId {
        BlockId { table: 1, offset }
    }

    #[test]
    fn the_cache_never_holds_more_than_its_budget() {
        let cache = BlockCache::new(400_000, 0);
        for offset in 0..5000 {
            cache.insert(name(offset), &block(), offset % 7 == 0);
            assert!(cache.bytes() <= 400_000);
        }
        assert!(cache.bytes() > 200_000);
    }

    #[test]
    fn frequently_read_blocks_survive_a_scan() {
        let cache = BlockCache::new(1_000_000, 0);
        let read = |offset| {
            if cache.get(name(offset)).is_none() {
                cache.insert(name(offset), &block(), false);
            }
        };
        for _ in 0..4 {
            (0..300).for_each(read);
        }
        (10_000..30_000).for_each(read);
        let kept = (0..300)
            .filter(|&offset| cache.get(name(offset)).is_some())
            .count();
        assert!(kept > 250, "{kept} of 300 kept");
    }
}
