//! A hash map of documents that grows incrementally.
//!
//! An ordinary hash table moves all of its entries when it doubles. With a million documents that
//! takes a tenth of a second and delays every notification. This map keeps entries in small tables at
//! the leaves of a binary tree, which is descended by the bits of the hash. A full table is split in
//! two, so an insertion never moves more than one small table.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::Arc;

/// The maximum number of entries in a table. A full one is split.
const FULL: usize = 512;
/// Two sibling tables are merged when together they have at most this many entries.
const SPARSE: usize = FULL / 8;
/// The maximum depth of the tree. The tables need the other bits of the hash.
const DEEPEST: u32 = 32;

/// Identifies a document: its collection and key, with their hash.
#[derive(Debug, Clone)]
pub(super) struct DocumentId {
    hash: u64,
    pub(super) collection: [u8; 16],
    pub(super) key: Arc<[u8]>,
}

impl PartialEq for DocumentId {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.collection == other.collection && self.key == other.key
    }
}

impl Eq for DocumentId {}

impl Hash for DocumentId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Returns what already is a hash unchanged.
#[derive(Debug, Default)]
struct DocumentHasher(u64);

impl Hasher for DocumentHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type Table<V> = HashMap<DocumentId, V, BuildHasherDefault<DocumentHasher>>;

#[derive(Debug)]
enum MapNode<V> {
    Table(Table<V>),
    Two(Box<[Self; 2]>),
}

/// A map from documents to values. See the module.
#[derive(Debug)]
pub(super) struct IncrementalMap<V> {
    hasher: RandomState,
    root: MapNode<V>,
}

impl<V> Default for IncrementalMap<V> {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            root: MapNode::Table(Table::default()),
        }
    }
}

impl<V> IncrementalMap<V> {
    pub(super) fn name(&self, collection: [u8; 16], key: &Arc<[u8]>) -> DocumentId {
        DocumentId {
            hash: self.hasher.hash_one((collection, key)),
            collection,
            key: Arc::clone(key),
        }
    }

    pub(super) fn get_mut(&mut self, name: &DocumentId) -> Option<&mut V> {
        self.root.table(name).get_mut(name)
    }

    /// The value of a document, inserted if there is none.
    pub(super) fn get_or_insert_with(
        &mut self,
        name: DocumentId,
        make: impl FnOnce() -> V,
    ) -> &mut V {
        let table = self.root.roomy_table(&name);
        table.entry(name).or_insert_with(make)
    }

    pub(super) fn remove(&mut self, name: &DocumentId) {
        self.root.remove(name, 0);
    }
}

/// Which child of a node at this depth a document belongs to. The standard table uses the low bits of
/// the hash for the bucket and the highest ones to compare entries of a bucket, so the tree uses
/// those between.
const fn is_right(name: &DocumentId, depth: u32) -> bool {
    (name.hash >> (16 + depth)) & 1 == 1
}

impl<V> MapNode<V> {
    /// Returns the table that a document belongs to.
    fn table(&mut self, name: &DocumentId) -> &mut Table<V> {
        let (mut node, mut depth) = (self, 0);
        loop {
            match node {
                Self::Table(table) => return table,
                Self::Two(both) => {
                    let [left, right] = &mut **both;
                    node = if is_right(name, depth) { right } else { left };
                    depth += 1;
                }
            }
        }
    }

    /// Returns the same table, split first if it is full.
    fn roomy_table(&mut self, name: &DocumentId) -> &mut Table<V> {
        let (mut node, mut depth) = (self, 0);
        loop {
            if let Self::Table(table) = node
                && table.len() >= FULL
                && depth < DEEPEST
            {
                *node = Self::split(std::mem::take(table), depth);
            }
            match node {
                Self::Table(table) => return table,
                Self::Two(both) => {
                    let [left, right] = &mut **both;
                    node = if is_right(name, depth) { right } else { left };
                    depth += 1;
                }
            }
        }
    }

    fn split(table: Table<V>, depth: u32) -> Self {
        let (right, left): (Table<V>, Table<V>) = table
            .into_iter()
            .partition(|(name, _)| is_right(name, depth));
        Self::Two(Box::new([Self::Table(left), Self::Table(right)]))
    }

    fn remove(&mut self, name: &DocumentId, depth: u32) {
        match self {
            Self::Table(table) => {
                table.remove(name);
                if table.is_empty() {
                    // An empty table keeps its capacity otherwise.
                    *table = Table::default();
                }
            }
            Self::Two(both) => {
                let [left, right] = &mut **both;
                let side = if is_right(name, depth) {
                    &mut *right
                } else {
                    &mut *left
                };
                side.remove(name, depth + 1);
                if let (Self::Table(one), Self::Table(other)) = (left, right)
                    && one.len() + other.len() <= SPARSE
                {
                    let all = one.drain().chain(other.drain()).collect();
                    *self = Self::Table(all);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Arc<[u8]> {
        number.to_be_bytes().into()
    }

    fn tables<V>(node: &MapNode<V>) -> Vec<usize> {
        match node {
            MapNode::Table(table) => vec![table.len()],
            MapNode::Two(both) => both.iter().flat_map(tables).collect(),
        }
    }

    #[test]
    fn tables_stay_small_however_many_entries_there_are() {
        let mut map = IncrementalMap::default();
        for number in 0..20_000 {
            let name = map.name([1; 16], &key(number));
            *map.get_or_insert_with(name, || 0) += number;
        }
        let sizes = tables(&map.root);
        assert!(sizes.iter().all(|size| *size <= FULL), "{sizes:?}");
        assert_eq!(sizes.iter().sum::<usize>(), 20_000);
        for number in 0..20_000 {
            let name = map.name([1; 16], &key(number));
            assert_eq!(map.get_mut(&name), Some(&mut number.clone()));
        }
        let other = map.name([2; 16], &key(7));
        assert_eq!(map.get_mut(&other), None);
    }

    #[test]
    fn an_emptied_map_is_a_single_table_again() {
        let mut map = IncrementalMap::default();
        let names: Vec<DocumentId> = (0..20_000)
            .map(|number| map.name([1; 16], &key(number)))
            .collect();
        for name in &names {
            map.get_or_insert_with(name.clone(), || ());
        }
        for name in &names {
            map.remove(name);
        }
        assert_eq!(tables(&map.root), [0]);
    }
}
