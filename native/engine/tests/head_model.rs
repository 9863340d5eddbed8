//! Reads agree with a model whatever the filters contain, and contained when tables were written.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::path::Path;
use std::sync::Arc;

use rillbase_engine::vfs::{MemoryVfs, SeededRandom, Vfs};
use rillbase_engine::{
    Db, DbOptions, DbSnapshot, Durability, ElementTimes, KeyHead, Keyspace, KeyspaceOptions, Merge,
    TableVersion, WriteBatch, prefix_end, verify,
};

use crate::head_support::{Entries, FirstHalf, PrefixLength, backward, forward};

/// Appends operands to the value.
#[derive(Debug)]
struct Concatenation;

impl Merge for Concatenation {
    fn name(&self) -> &'static str {
        "concatenation"
    }

    fn full(&self, _key: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
        [below.unwrap_or_default(), &operands.concat()].concat()
    }

    fn partial(&self, _key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(operands.concat())
    }
}

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// A keyspace that is opened with one head function after another, and its model.
struct HeadModel {
    vfs: Arc<MemoryVfs>,
    random: SeededRandom,
    keys: Vec<Vec<u8>>,
    contents: Contents,
}

impl HeadModel {
    fn new(seed: u64) -> Self {
        let mut random = SeededRandom::new(seed);
        let mut keys = BTreeSet::new();
        while keys.len() < 200 {
            let mut key = vec![[0, 2, 3, 5][random.up_to(3)]];
            for _ in 0..=random.up_to(6) {
                key.push(b"abc"[random.up_to(2)]);
            }
            keys.insert(key);
        }
        Self {
            vfs: Arc::new(MemoryVfs::new()),
            random,
            keys: keys.into_iter().collect(),
            contents: Contents::new(),
        }
    }

    fn open(&mut self, head: &KeyHead) -> (Db, Keyspace) {
        let space = KeyspaceOptions {
            merge: Some(Arc::new(Concatenation)),
            extractor: Some(Arc::new(ElementTimes)),
            head: head.clone(),
            // Tables of several partitions, which have 64 blocks, or runs of several tables.
            block_bytes: [1, 40][self.random.up_to(1)],
            table_bytes: [1500, 100_000][self.random.up_to(1)],
            compact_at_runs: 4,
            ..KeyspaceOptions::default()
        };
        let options = DbOptions {
            vfs: Arc::clone(&self.vfs) as Arc<dyn Vfs>,
            background_threads: 0,
            table_version: [TableVersion::Three, TableVersion::Four][self.random.up_to(1)],
            ..DbOptions::default()
        };
        let db = Db::open("/db", options.keyspace("heads", space)).unwrap();
        let space = db.keyspace("heads").unwrap();
        (db, space)
    }

    fn key(&mut self) -> Vec<u8> {
        let at = self.random.up_to(self.keys.len() - 1);
        self.keys[at].clone()
    }

    fn write(&mut self, db: &Db, space: &Keyspace) {
        let mut batch = WriteBatch::new();
        let key = self.key();
        let value = format!("{}", self.random.below(1000)).into_bytes();
        match self.random.below(20) {
            0 => {
                let mut range = [key, self.key()];
                range.sort();
                batch.delete_range(space, &range[0], &range[1]);
                self.contents
                    .retain(|key, _| *key < range[0] || *key >= range[1]);
            }
            1..=4 => {
                batch.delete(space, &key);
                self.contents.remove(&key);
            }
            5..=8 => {
                batch.merge(space, &key, &value);
                self.contents.entry(key).or_default().extend(value);
            }
            _ => {
                batch.put(space, &key, &value);
                self.contents.insert(key, value);
            }
        }
        db.write(batch, Durability::Buffered).unwrap();
    }

    /// Writes, flushes, compacts and compares, then closes the database.
    fn run(&mut self, head: &KeyHead) {
        let (db, space) = self.open(head);
        self.compare(&db, &space, None, &self.contents);
        let mut old: Option<(DbSnapshot, Contents)> = None;
        for _ in 0..5 {
            for _ in 0..self.random.up_to(80) {
                self.write(&db, &space);
            }
            match self.random.below(5) {
                0 => {}
                1 => db.compact(&space).unwrap(),
                2 => db.compact_due(&space).unwrap(),
                _ => db.flush().unwrap(),
            }
            self.compare(&db, &space, None, &self.contents);
            if let Some((snapshot, contents)) = &old {
                self.compare(&db, &space, Some(snapshot), contents);
            }
            if self.random.one_in(2) {
                old = Some((db.snapshot(), self.contents.clone()));
            }
        }
        drop(old);
        db.close().unwrap();
    }

    fn compare(&self, db: &Db, space: &Keyspace, at: Option<&DbSnapshot>, contents: &Contents) {
        let head = &space.options().head;
        for key in &self.keys {
            let value = match at {
                Some(snapshot) => db.get_at(space, key, snapshot).unwrap(),
                None => db.get(space, key).unwrap(),
            };
            assert_eq!(value.as_deref(), contents.get(key).map(Vec::as_slice));
        }
        let keys = self.keys.iter().map(Vec::as_slice);
        let values = db.multi_get(space, keys, at).unwrap();
        for (key, value) in self.keys.iter().zip(values) {
            assert_eq!(value.as_deref(), contents.get(key).map(Vec::as_slice));
        }
        let heads: BTreeSet<&[u8]> = self.keys.iter().map(|key| head.of(key)).collect();
        let mut seeking = db.scan(space, Unbounded, Unbounded, at).unwrap();
        let mut other: &[u8] = b"\x02a";
        for of in heads {
            let expected = with_heads(contents, head, &[of]);
            let end = prefix_end(of);
            let upper = end.as_deref().map_or(Unbounded, Excluded);
            let mut scan = db.scan_head(space, of, Included(of), upper, at).unwrap();
            scan.first().unwrap();
            assert_eq!(forward(&mut scan, head, &[of], None), expected);
            assert_eq!(backward(&mut scan, head, of), expected);

            let pair = [other.min(of), other.max(of)];
            let limits = pair.map(prefix_end);
            let end = limits
                .iter()
                .all(Option::is_some)
                .then(|| limits.iter().max());
            seeking.seek_heads(pair[0], &pair).unwrap();
            let end = end.flatten().and_then(Option::as_deref);
            let both = forward(&mut seeking, head, &pair, end);
            assert_eq!(both, with_heads(contents, head, &pair));
            other = of;
        }
    }
}

fn with_heads(contents: &Contents, head: &KeyHead, heads: &[&[u8]]) -> Entries {
    let entries = contents
        .iter()
        .filter(|(key, _)| heads.contains(&head.of(key)));
    entries
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn by_length() -> KeyHead {
    KeyHead::Function(Arc::new(PrefixLength))
}

/// Runs the model with these functions, one after another.
fn check(heads: &[KeyHead]) {
    for seed in 0..4 {
        let mut model = HeadModel::new(seed);
        for head in heads {
            model.run(head);
        }
        let vfs = model.vfs as Arc<dyn Vfs>;
        verify(&vfs, Path::new("/db"), &mut |_, _| ()).unwrap();
    }
}

#[test]
fn reads_agree_with_a_model_if_filters_contain_whole_keys() {
    check(&[KeyHead::Whole, KeyHead::Whole]);
}

#[test]
fn reads_agree_with_a_model_if_filters_contain_keys_without_a_fixed_tail() {
    check(&[KeyHead::FixedTail(2), KeyHead::FixedTail(2)]);
}

#[test]
fn reads_agree_with_a_model_if_filters_contain_heads_of_different_lengths() {
    check(&[by_length(), by_length()]);
}

#[test]
fn reads_agree_with_a_model_if_the_head_function_changes() {
    let halves = KeyHead::Function(Arc::new(FirstHalf));
    check(&[
        KeyHead::Whole,
        by_length(),
        KeyHead::FixedTail(2),
        halves.clone(),
        by_length(),
        KeyHead::FixedTail(3),
        KeyHead::Whole,
        halves,
        KeyHead::FixedTail(0),
        by_length(),
    ]);
}
