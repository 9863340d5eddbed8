//! Databases whose entries have words as attributes, and what a scan of them returns.

use std::cmp::Reverse;
use std::ops::Bound::Unbounded;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::database_support::open_entries;
use rillbase_engine::vfs::{MemoryVfs, SeededRandom, Vfs};
use rillbase_engine::{
    Db, DbOptions, DbSnapshot, Durability, Extractor, Keyspace, KeyspaceOptions, ManualClock,
    Merge, TableVersion, Visited, WriteBatch, ZoneMap,
};

/// Values are words; the first letter of a word is its attribute:
///
/// - `a` and `b` are indexed, `b` with words longer than the bounds of zones,
/// - `c` is not indexed, and `d` only if the word ends with an even digit,
/// - `t` is followed by a time of eight digits, `u` has unknown attributes.
#[derive(Debug)]
pub(crate) struct Words;

pub(crate) fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty())
}

pub(crate) fn time_of(word: &[u8]) -> u64 {
    std::str::from_utf8(&word[1..]).unwrap().parse().unwrap()
}

pub(crate) fn is_even(word: &[u8]) -> bool {
    word.last().is_some_and(|digit| digit % 2 == 0)
}

impl Extractor for Words {
    fn name(&self) -> &'static str {
        "words"
    }

    fn extract(&self, _key: &[u8], value: &[u8], about: &mut ZoneMap) {
        for word in words(value) {
            match word[0] {
                b't' => about.add_time(time_of(word)),
                b'u' => about.add_unknown(),
                id @ (b'a' | b'b') => about.add_indexed(id, word),
                b'd' if is_even(word) => about.add_indexed(b'd', word),
                id => about.add_attribute(id, word),
            }
        }
    }
}

/// The same words under other attributes.
#[derive(Debug)]
pub(crate) struct OtherWords;

impl Extractor for OtherWords {
    fn name(&self) -> &'static str {
        "other_words"
    }

    fn extract(&self, _key: &[u8], value: &[u8], about: &mut ZoneMap) {
        for word in words(value) {
            about.add_indexed(word[0] + 1, word);
        }
    }
}

/// Appends words.
#[derive(Debug)]
pub(crate) struct Append;

impl Merge for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn full(&self, _key: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
        let parts: Vec<&[u8]> = below.into_iter().chain(operands.iter().copied()).collect();
        parts.join(&b' ')
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(self.full(key, None, operands))
    }
}

/// Whether a value has a word, or may have it as far as ranges tell.
pub(crate) fn has(value: &[u8], word: &[u8]) -> bool {
    let id = word[0];
    let mut same: Vec<&[u8]> = words(value).filter(|other| other[0] == id).collect();
    same.sort_unstable();
    let is_ranged = id == b'c' || id == b'd' && same.iter().any(|other| !is_even(other));
    let is_within = same.first() <= Some(&word) && Some(&word) <= same.last();
    words(value).any(|other| other[0] == b'u')
        || same.contains(&word)
        || is_ranged && !same.is_empty() && is_within
}

pub(crate) fn newest(zone: &ZoneMap) -> Option<Reverse<u64>> {
    zone.times().map(|(_, last)| Reverse(last))
}

/// A database with one keyspace.
pub(crate) struct World {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) db: Option<Db>,
    pub(crate) entries: Keyspace,
}

pub(crate) type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn open(
    vfs: &Arc<dyn Vfs>,
    clock: &Arc<ManualClock>,
    version: TableVersion,
    options: KeyspaceOptions,
) -> (Db, Keyspace) {
    // All blocks are read through the cache, which counts them.
    let database = DbOptions {
        table_version: version,
        table_cache_bytes: 0,
        cache_bytes: 256 << 20,
        ..DbOptions::default()
    };
    open_entries(vfs, clock, database, options)
}

impl World {
    pub(crate) fn new(version: TableVersion, options: KeyspaceOptions) -> Self {
        Self::on(Arc::new(MemoryVfs::new()), version, options)
    }

    pub(crate) fn on(vfs: Arc<dyn Vfs>, version: TableVersion, options: KeyspaceOptions) -> Self {
        let clock = Arc::new(ManualClock::new(1000));
        let (db, entries) = open(&vfs, &clock, version, options);
        Self {
            vfs,
            clock,
            db: Some(db),
            entries,
        }
    }

    pub(crate) fn reopen(&mut self, version: TableVersion, options: KeyspaceOptions) {
        self.db.take().unwrap().close().unwrap();
        let (db, entries) = open(&self.vfs, &self.clock, version, options);
        (self.db, self.entries) = (Some(db), entries);
    }

    pub(crate) fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    pub(crate) fn write(&self, add: impl FnOnce(&mut WriteBatch)) {
        let mut batch = WriteBatch::new();
        add(&mut batch);
        self.db().write(batch, Durability::Buffered).unwrap();
    }

    pub(crate) fn put(&self, key: &[u8], value: &[u8]) {
        self.write(|batch| batch.put(&self.entries, key, value));
    }

    pub(crate) fn lookup(&self, word: &[u8], snapshot: Option<&DbSnapshot>) -> (Entries, Visited) {
        let result = self.db().lookup(&self.entries, word[0], word, snapshot);
        let result = result.unwrap();
        let hits = result.hits.into_iter();
        let hits = hits.map(|(key, value)| (key, value.to_vec()));
        (hits.collect(), result.visited)
    }

    /// The newest entries with a word, up to a number, and what they cost.
    pub(crate) fn newest_with(
        &self,
        word: &[u8],
        snapshot: Option<&DbSnapshot>,
        count: usize,
    ) -> (Entries, Visited) {
        let ranked = self.db().ranked(&self.entries, snapshot, newest).unwrap();
        let mut ranked = ranked.with_attribute(word[0], word);
        let mut entries = Vec::new();
        while entries.len() < count
            && let Some(next) = ranked.next().unwrap()
        {
            entries.push((next.key, next.value.to_vec()));
        }
        (entries, ranked.visited())
    }

    pub(crate) fn scanned(&self, snapshot: &DbSnapshot) -> Entries {
        let scan = self
            .db()
            .scan(&self.entries, Unbounded, Unbounded, Some(snapshot));
        let (mut scan, mut entries) = (scan.unwrap(), Vec::new());
        scan.first().unwrap();
        while scan.is_valid() {
            entries.push((scan.key().to_vec(), scan.value().to_vec()));
            scan.advance().unwrap();
        }
        entries
    }

    /// Lookups of some words agree with a scan.
    pub(crate) fn check(&self, snapshot: &DbSnapshot, words: &[Vec<u8>]) {
        let all = self.scanned(snapshot);
        for word in words {
            let with = all.iter().filter(|(_, value)| has(value, word));
            let with: Entries = with.cloned().collect();
            assert_eq!(self.lookup(word, Some(snapshot)).0, with);
            let mut ranked: Vec<_> = with
                .into_iter()
                .filter_map(|(key, value)| {
                    let mut zone = ZoneMap::default();
                    Words.extract(&key, &value, &mut zone);
                    Some((newest(&zone)?, key, value))
                })
                .collect();
            ranked.sort();
            let ranked: Entries = ranked
                .into_iter()
                .map(|(_, key, value)| (key, value))
                .collect();
            assert_eq!(self.newest_with(word, Some(snapshot), usize::MAX).0, ranked);
        }
    }

    pub(crate) fn tables(&self) -> Vec<PathBuf> {
        let names = self.vfs.list(Path::new("/db")).unwrap().into_iter();
        let names = names.filter(|name| name.contains(".table"));
        names.map(|name| Path::new("/db").join(name)).collect()
    }

    pub(crate) fn table_bytes(&self) -> u64 {
        let sizes = self.tables().into_iter();
        let sizes = sizes.map(|path| self.vfs.open_read(&path).unwrap().len().unwrap());
        sizes.sum()
    }

    pub(crate) fn misses(&self) -> u64 {
        self.db().stats().cache_misses
    }
}

/// A word of an attribute. Few distinct ones are common.
pub(crate) fn word(id: u8, number: u64) -> Vec<u8> {
    let filler = if id == b'b' {
        "x".repeat(40)
    } else {
        String::new()
    };
    format!("{}{filler}{number}", char::from(id)).into_bytes()
}

pub(crate) fn random_words(random: &mut SeededRandom, unknown: bool) -> Vec<u8> {
    let mut value = format!("t{:08}", random.below(40)).into_bytes();
    if random.one_in(8) {
        value.clear();
    }
    for _ in 0..random.below(5) {
        let id = b"abcd"[usize::try_from(random.below(4)).unwrap()];
        value.push(b' ');
        value.extend_from_slice(&word(id, random.below(8)));
    }
    if unknown && random.one_in(60) {
        value.extend_from_slice(b" u");
    }
    value
}
