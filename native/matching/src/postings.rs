//! Posting lists: from a key to the queries that are registered for it.
//!
//! Keys are 64-bit hashes with a secret of the process, so collisions cannot be provoked from
//! outside; verification resolves accidental ones. A posting list remembers the document for which
//! it was last read, so a value that a document repeats costs one lookup, regardless of the number
//! of queries.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// The maximum number of queries in a list that is searched linearly; larger ones become trees.
const FEW: usize = 64;

/// Passes on keys that are already hashes.
#[derive(Debug, Default, Clone)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Debug)]
#[allow(
    clippy::box_collection,
    reason = "almost all keys have one query, so the others take one more indirection"
)]
enum PostingList {
    One(u32),
    Few(Box<Vec<u32>>),
    Many(Box<BTreeSet<u32>>),
}

#[derive(Debug)]
struct Posting {
    /// The last document for which it was read.
    read: u32,
    queries: PostingList,
}

/// All postings of a group.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    map: HashMap<u64, Posting, BuildHasherDefault<KeyHasher>>,
    /// Queries beyond the first of each key.
    more: usize,
}

impl PostingList {
    fn insert(&mut self, query: u32) {
        match self {
            Self::One(only) => *self = Self::Few(Box::new(vec![*only, query])),
            Self::Few(list) if list.len() < FEW => list.push(query),
            Self::Few(list) => {
                let mut set: BTreeSet<u32> = list.iter().copied().collect();
                set.insert(query);
                *self = Self::Many(Box::new(set));
            }
            Self::Many(set) => {
                set.insert(query);
            }
        }
    }

    /// Removes a query; returns whether others are left.
    fn remove(&mut self, query: u32) -> bool {
        match self {
            Self::One(only) => *only != query,
            Self::Few(list) => {
                if let Some(at) = list.iter().position(|held| *held == query) {
                    list.swap_remove(at);
                }
                if let [only] = list.as_slice() {
                    *self = Self::One(*only);
                }
                true
            }
            Self::Many(set) => {
                set.remove(&query);
                if set.len() < FEW / 2 {
                    *self = Self::Few(Box::new(set.iter().copied().collect()));
                }
                true
            }
        }
    }
}

impl Postings {
    /// Adds a query to the list of a key, which must not contain it yet.
    pub(crate) fn insert(&mut self, key: u64, query: u32) {
        match self.map.entry(key) {
            Entry::Vacant(slot) => {
                slot.insert(Posting {
                    read: 0,
                    queries: PostingList::One(query),
                });
            }
            Entry::Occupied(mut slot) => {
                self.more += 1;
                slot.get_mut().queries.insert(query);
            }
        }
    }

    /// Removes a query from the list of a key.
    pub(crate) fn remove(&mut self, key: u64, query: u32) {
        let Entry::Occupied(mut slot) = self.map.entry(key) else {
            return;
        };
        if slot.get_mut().queries.remove(query) {
            self.more = self.more.saturating_sub(1);
        } else {
            slot.remove();
        }
    }

    /// Passes the queries of a key to `visit`, once for each document.
    pub(crate) fn read(&mut self, key: u64, document: u32, visit: &mut impl FnMut(u32)) {
        let Some(posting) = self.map.get_mut(&key) else {
            return;
        };
        if std::mem::replace(&mut posting.read, document) == document {
            return;
        }
        match &posting.queries {
            PostingList::One(only) => visit(*only),
            PostingList::Few(list) => list.iter().copied().for_each(visit),
            PostingList::Many(set) => set.iter().copied().for_each(visit),
        }
    }

    /// Forgets which documents were read, since their numbers have wrapped around.
    pub(crate) fn restart(&mut self) {
        for posting in self.map.values_mut() {
            posting.read = 0;
        }
    }

    /// Its approximate size in bytes.
    pub(crate) fn memory(&self) -> usize {
        let slot = size_of::<(u64, Posting)>() + 1;
        self.map.capacity() * slot + self.more * 2 * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(postings: &mut Postings, key: u64, document: u32) -> Vec<u32> {
        let mut visit = Vec::new();
        postings.read(key, document, &mut |query| visit.push(query));
        visit.sort_unstable();
        visit
    }

    #[test]
    fn a_key_keeps_its_queries_whether_few_or_many() {
        let mut postings = Postings::default();
        let count = 3 * u32::try_from(FEW).expect("small");
        for query in 0..count {
            postings.insert(7, query);
            assert_eq!(read(&mut postings, 7, query + 1).len(), query as usize + 1);
        }
        for query in 0..count {
            postings.remove(7, query);
            let left: Vec<u32> = (query + 1..count).collect();
            assert_eq!(read(&mut postings, 7, 1000 + query), left);
        }
        assert!(postings.map.is_empty() && postings.more == 0);
    }

    #[test]
    fn a_key_is_read_once_for_each_document() {
        let mut postings = Postings::default();
        postings.insert(7, 1);
        assert_eq!(read(&mut postings, 7, 5), [1]);
        assert!(read(&mut postings, 7, 5).is_empty());
        assert_eq!(read(&mut postings, 7, 6), [1]);
    }
}
