//! Databases whose entries have words as attributes, and what a scan of them returns.

use std::cmp::Reverse;
use std::ops::Bound::Unbounded;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::database_support::open_entries;
use rillbase_engine::vfs::{MemoryVfs, SeededRandom, Vfs};
use rillbase_engine::{
    Db, DbOptions, DbSnapshot, Durability, Extractor, Keyspace, KeyspaceOptions, ManualClock,
    Merge, Ranked, TableVersion, Visited, WriteBatch, ZoneMap,
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

    fn is_listed(&self) -> bool {
        true
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

    fn is_listed(&self) -> bool {
        true
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

/// Whether a value has a word of an attribute from one to another, or may have it.
pub(crate) fn has(value: &[u8], id: u8, low: &[u8], high: &[u8]) -> bool {
    let is_within = |word: &[u8]| word[0] == id && low <= word && word <= high;
    words(value).any(|word| word[0] == b'u' || is_within(word))
}

pub(crate) fn newest(zone: &ZoneMap) -> Option<Reverse<u64>> {
    zone.times().map(|(_, last)| Reverse(last))
}

/// The first results, up to a number, and what they cost.
fn first_of<F>(mut ranked: Ranked<'_, Reverse<u64>, F>, count: usize) -> (Entries, Visited)
where
    F: Fn(&ZoneMap) -> Option<Reverse<u64>>,
{
    let mut entries = Vec::new();
    while entries.len() < count
        && let Some(next) = ranked.next().unwrap()
    {
        entries.push((next.key, next.value.to_vec()));
    }
    (entries, ranked.visited())
}

/// Entries with a time, the newest first.
fn in_order_of_time(entries: Entries) -> Entries {
    let with_time = entries.into_iter().filter_map(|(key, value)| {
        let mut zone = ZoneMap::default();
        Words.extract(&key, &value, &mut zone);
        Some((newest(&zone)?, key, value))
    });
    let mut ordered: Vec<_> = with_time.collect();
    ordered.sort();
    let ordered = ordered.into_iter();
    ordered.map(|(_, key, value)| (key, value)).collect()
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
        first_of(ranked.with_attribute(word[0], word), count)
    }

    /// The newest entries with a word from one to another of the same attribute.
    pub(crate) fn newest_within(
        &self,
        low: &[u8],
        high: &[u8],
        snapshot: Option<&DbSnapshot>,
    ) -> (Entries, Visited) {
        let ranked = self.db().ranked(&self.entries, snapshot, newest).unwrap();
        first_of(ranked.with_attribute_range(low[0], low, high), usize::MAX)
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
            let with = all
                .iter()
                .filter(|(_, value)| has(value, word[0], word, word));
            let with: Entries = with.cloned().collect();
            assert_eq!(self.lookup(word, Some(snapshot)).0, with);
            let (entries, _) = self.newest_with(word, Some(snapshot), usize::MAX);
            assert_eq!(entries, in_order_of_time(with));
        }
        for (low, high) in words.iter().zip(words.iter().skip(2)) {
            let with = all
                .iter()
                .filter(|(_, value)| has(value, low[0], low, high));
            let with = in_order_of_time(with.cloned().collect());
            assert_eq!(self.newest_within(low, high, Some(snapshot)).0, with);
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
