//! A map of documents that grows a little at a time.
//!
//! A hash table that doubles moves all that it holds at once. With a million documents that takes a
//! tenth of a second, for which every notification would wait. Here the documents lie in small
//! tables at the leaves of a binary tree, chosen by the bits of their hash; a table that is full
//! becomes two. So no insertion moves more than one small table.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::Arc;

/// Most entries of a table.
const FULL: usize = 512;
/// Two tables with so few entries become one again.
const SPARSE: usize = FULL / 8;
/// Hashes have no more bits for the tree: the tables need the others.
const DEEPEST: u32 = 32;

/// A document: its collection and its key, with their hash.
#[derive(Debug, Clone)]
pub(super) struct Name {
    hash: u64,
    pub(super) collection: [u8; 16],
    pub(super) key: Arc<[u8]>,
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.collection == other.collection && self.key == other.key
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Hands on what is a hash already.
#[derive(Debug, Default)]
struct Same(u64);

impl Hasher for Same {
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

type Table<V> = HashMap<Name, V, BuildHasherDefault<Same>>;

#[derive(Debug)]
enum Node<V> {
    Table(Table<V>),
    Two(Box<[Self; 2]>),
}

/// Values by document.
#[derive(Debug)]
pub(super) struct Steady<V> {
    hasher: RandomState,
    root: Node<V>,
}

impl<V> Default for Steady<V> {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            root: Node::Table(Table::default()),
        }
    }
}

impl<V> Steady<V> {
    pub(super) fn name(&self, collection: [u8; 16], key: &Arc<[u8]>) -> Name {
        Name {
            hash: self.hasher.hash_one((collection, key)),
            collection,
            key: Arc::clone(key),
        }
    }

    pub(super) fn get_mut(&mut self, name: &Name) -> Option<&mut V> {
        self.root.table(name).get_mut(name)
    }

    /// The value of a document, made if there is none.
    pub(super) fn get_or_insert_with(&mut self, name: Name, make: impl FnOnce() -> V) -> &mut V {
        let table = self.root.roomy_table(&name);
        table.entry(name).or_insert_with(make)
    }

    pub(super) fn remove(&mut self, name: &Name) {
        self.root.remove(name, 0);
    }
}

/// Which way a document goes from a node at this depth. The low bits of its hash choose the place
/// in a table, and the highest ones tell those of one place apart.
const fn is_right(name: &Name, depth: u32) -> bool {
    (name.hash >> (16 + depth)) & 1 == 1
}

impl<V> Node<V> {
    /// The table that a document belongs to.
    fn table(&mut self, name: &Name) -> &mut Table<V> {
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

    /// The same, with room for one more.
    fn roomy_table(&mut self, name: &Name) -> &mut Table<V> {
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

    fn remove(&mut self, name: &Name, depth: u32) {
        match self {
            Self::Table(table) => {
                table.remove(name);
                if table.is_empty() {
                    // What it took is given back.
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

    fn tables<V>(node: &Node<V>) -> Vec<usize> {
        match node {
            Node::Table(table) => vec![table.len()],
            Node::Two(both) => both.iter().flat_map(tables).collect(),
        }
    }

    #[test]
    fn very_many_are_found_in_tables_that_stay_small() {
        let mut map = Steady::default();
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
    fn a_map_that_was_emptied_is_small_again() {
        let mut map = Steady::default();
        let names: Vec<Name> = (0..20_000)
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
