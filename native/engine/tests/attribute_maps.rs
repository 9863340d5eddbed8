//! Lookups of values of attributes, compared with scans, and what they cost; zones of partitions.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::cmp::Reverse;
use std::ops::Bound::Unbounded;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rillbase_engine::vfs::{FaultVfs, MemoryVfs, SeededRandom, Vfs};
use rillbase_engine::{
    Clock, Compression, Db, DbOptions, DbSnapshot, Durability, ElementTimes, Error, Extractor,
    Keyspace, KeyspaceOptions, ListFilter, ManualClock, Merge, Strategy, TableVersion, Visited,
    WriteBatch, ZoneMap, dump, verify,
};

const VERSIONS: [TableVersion; 2] = [TableVersion::Three, TableVersion::Four];

/// Values are words; the first letter of a word is its attribute:
///
/// - `a` and `b` are indexed, `b` with words longer than the bounds of zones,
/// - `c` is not indexed, and `d` only if the word ends with an even digit,
/// - `t` is followed by a time of eight digits, `u` has unknown attributes.
#[derive(Debug)]
struct Words;

fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty())
}

fn time_of(word: &[u8]) -> u64 {
    std::str::from_utf8(&word[1..]).unwrap().parse().unwrap()
}

fn is_even(word: &[u8]) -> bool {
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
struct OtherWords;

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
struct Append;

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
fn has(value: &[u8], word: &[u8]) -> bool {
    let id = word[0];
    let mut same: Vec<&[u8]> = words(value).filter(|other| other[0] == id).collect();
    same.sort_unstable();
    let is_ranged = id == b'c' || id == b'd' && same.iter().any(|other| !is_even(other));
    let is_within = same.first() <= Some(&word) && Some(&word) <= same.last();
    words(value).any(|other| other[0] == b'u')
        || same.contains(&word)
        || is_ranged && !same.is_empty() && is_within
}

fn newest(zone: &ZoneMap) -> Option<Reverse<u64>> {
    zone.times().map(|(_, last)| Reverse(last))
}

/// A database with one keyspace.
struct World {
    vfs: Arc<dyn Vfs>,
    clock: Arc<ManualClock>,
    db: Option<Db>,
    entries: Keyspace,
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn open(
    vfs: &Arc<dyn Vfs>,
    clock: &Arc<ManualClock>,
    version: TableVersion,
    options: KeyspaceOptions,
) -> (Db, Keyspace) {
    let database = DbOptions {
        vfs: Arc::clone(vfs),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        table_version: version,
        // All blocks are read through the cache, which counts them.
        table_cache_bytes: 0,
        cache_bytes: 256 << 20,
        background_threads: 0,
        ..DbOptions::default()
    };
    let db = Db::open("/db", database.keyspace("entries", options)).unwrap();
    let entries = db.keyspace("entries").unwrap();
    (db, entries)
}

impl World {
    fn new(version: TableVersion, options: KeyspaceOptions) -> Self {
        Self::on(Arc::new(MemoryVfs::new()), version, options)
    }

    fn on(vfs: Arc<dyn Vfs>, version: TableVersion, options: KeyspaceOptions) -> Self {
        let clock = Arc::new(ManualClock::new(1000));
        let (db, entries) = open(&vfs, &clock, version, options);
        Self {
            vfs,
            clock,
            db: Some(db),
            entries,
        }
    }

    fn reopen(&mut self, version: TableVersion, options: KeyspaceOptions) {
        self.db.take().unwrap().close().unwrap();
        let (db, entries) = open(&self.vfs, &self.clock, version, options);
        (self.db, self.entries) = (Some(db), entries);
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn write(&self, add: impl FnOnce(&mut WriteBatch)) {
        let mut batch = WriteBatch::new();
        add(&mut batch);
        self.db().write(batch, Durability::Buffered).unwrap();
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        self.write(|batch| batch.put(&self.entries, key, value));
    }

    fn lookup(&self, word: &[u8], snapshot: Option<&DbSnapshot>) -> (Entries, Visited) {
        let result = self.db().lookup(&self.entries, word[0], word, snapshot);
        let result = result.unwrap();
        let hits = result.hits.into_iter();
        let hits = hits.map(|(key, value)| (key, value.to_vec()));
        (hits.collect(), result.visited)
    }

    /// The newest entries with a word, up to a number, and what they cost.
    fn newest_with(
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

    fn scanned(&self, snapshot: &DbSnapshot) -> Entries {
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
    fn check(&self, snapshot: &DbSnapshot, words: &[Vec<u8>]) {
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

    fn tables(&self) -> Vec<PathBuf> {
        let names = self.vfs.list(Path::new("/db")).unwrap().into_iter();
        let names = names.filter(|name| name.contains(".table"));
        names.map(|name| Path::new("/db").join(name)).collect()
    }

    fn table_bytes(&self) -> u64 {
        let sizes = self.tables().into_iter();
        let sizes = sizes.map(|path| self.vfs.open_read(&path).unwrap().len().unwrap());
        sizes.sum()
    }

    fn misses(&self) -> u64 {
        self.db().stats().cache_misses
    }
}

/// A word of an attribute. Few distinct ones are common.
fn word(id: u8, number: u64) -> Vec<u8> {
    let filler = if id == b'b' {
        "x".repeat(40)
    } else {
        String::new()
    };
    format!("{}{filler}{number}", char::from(id)).into_bytes()
}

fn random_words(random: &mut SeededRandom, unknown: bool) -> Vec<u8> {
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

fn history(options: &KeyspaceOptions, keys: u64, seed: u64) {
    let version = |random: &mut SeededRandom| VERSIONS[usize::from(random.one_in(2))];
    let merges = options.merge.is_some();
    let mut random = SeededRandom::new(seed);
    let mut world = World::new(TableVersion::Four, options.clone());
    let mut snapshots = Vec::new();
    let words: Vec<Vec<u8>> = b"abcd"
        .iter()
        .flat_map(|&id| [1, 4, 7, 9].map(|number| word(id, number)))
        .collect();
    for step in 0..600 {
        match random.below(60) {
            0 => world.db().flush().unwrap(),
            1 => world.db().compact_due(&world.entries).unwrap(),
            2 if random.one_in(3) => world.db().compact(&world.entries).unwrap(),
            3 if random.one_in(2) => {
                snapshots.clear();
                world.reopen(version(&mut random), options.clone());
            }
            4..=6 => world.clock.advance(random.below(8)),
            7 | 8 => snapshots.push(world.db().snapshot()),
            9 if !snapshots.is_empty() => {
                snapshots.remove(random.up_to(snapshots.len() - 1));
            }
            _ => change(&world, keys, (seed.is_multiple_of(2), merges), &mut random),
        }
        if step % 60 == 59 {
            let current = world.db().snapshot();
            world.check(&current, &words);
            let any = words[random.up_to(words.len() - 1)].as_slice();
            assert_eq!(world.lookup(any, None), world.lookup(any, Some(&current)));
            for snapshot in &snapshots {
                world.check(snapshot, &words);
            }
        }
    }
    world.db().compact(&world.entries).unwrap();
    world.check(&world.db().snapshot(), &words);
    world.db().verify(&mut |_, _| ()).unwrap();
}

/// Some random writes.
fn change(world: &World, keys: u64, (unknown, merges): (bool, bool), random: &mut SeededRandom) {
    let entries = &world.entries;
    for _ in 0..=keys / 60 {
        let [key, other] = [(); 2].map(|()| format!("k{:03}", random.below(keys)).into_bytes());
        let value = random_words(random, unknown);
        let choice = random.below(24);
        world.write(|batch| match choice {
            0 if keys < 100 => batch.delete_range(entries, &key, &other),
            1 => batch.delete(entries, &key),
            2 | 3 => {
                if let Some(below) = world.db().get(entries, &key).unwrap() {
                    batch.delete_with(entries, &key, &below);
                }
            }
            4..=6 if !merges => {
                let expiry = world.db().now() + 1 + random.below(30);
                batch.put_expiring(entries, &key, &value, expiry);
            }
            7 | 8 if merges => batch.merge(entries, &key, &value),
            _ => batch.put(entries, &key, &value),
        });
    }
}

fn small() -> KeyspaceOptions {
    KeyspaceOptions {
        strategy: Strategy::Leveled { fanout: 3 },
        extractor: Some(Arc::new(Words)),
        memtable_bytes: 6000,
        block_bytes: 200,
        table_bytes: 900,
        base_bytes: 3000,
        compact_at_runs: 3,
        restart_interval: 4,
        ..KeyspaceOptions::default()
    }
}

#[test]
fn any_history_gives_the_entries_of_a_scan_that_have_the_value() {
    let tiered = KeyspaceOptions {
        strategy: Strategy::SizeTiered { runs: 3 },
        ..small()
    };
    let merged = KeyspaceOptions {
        merge: Some(Arc::new(Append)),
        ..small()
    };
    let accumulating = KeyspaceOptions {
        accumulates: true,
        ..merged.clone()
    };
    for options in [small(), tiered, merged, accumulating] {
        for seed in 1..=4 {
            history(&options, 60, seed);
        }
    }
}

#[test]
fn any_history_with_many_partitions_gives_the_same() {
    let options = KeyspaceOptions {
        block_bytes: 1,
        table_bytes: 1 << 20,
        memtable_bytes: 40_000,
        base_bytes: 1 << 20,
        ..small()
    };
    for seed in 1..=3 {
        history(&options, 400, seed);
    }
}

/// Options with blocks of the default size, in one table.
fn plain() -> KeyspaceOptions {
    KeyspaceOptions {
        extractor: Some(Arc::new(Words)),
        compression: vec![Compression::None],
        table_bytes: u64::MAX,
        ..KeyspaceOptions::default()
    }
}

/// Digits that differ everywhere for consecutive numbers.
fn spread(number: u64) -> u64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 8
}

const MANY: u64 = 100_000;
const RARE: &[u8] = b"a7777 rare";

/// Loads entries in the order of their keys and of their time, whose words are spread.
fn load(world: &World, value: impl Fn(u64) -> Vec<u8>) {
    let key = |number: u64| format!("entry {number:08}").into_bytes();
    let entries = (0..MANY).map(|number| (key(number), value(number)));
    world.db().bulk_load(&world.entries, entries).unwrap();
}

fn value_with(number: u64, word: &[u8], bytes: usize) -> Vec<u8> {
    let mut value = format!("t{number:08} ").into_bytes();
    value.extend_from_slice(word);
    // The rest is one word of another attribute.
    value.extend_from_slice(b" z");
    let mut random = SeededRandom::new(number);
    let mut letter = || b'a' + u8::try_from(random.below(26)).unwrap();
    value.extend((value.len()..bytes).map(|_| letter()));
    value
}

fn distinct(number: u64) -> Vec<u8> {
    format!("a{:014}", spread(number)).into_bytes()
}

#[test]
fn a_rare_value_costs_few_blocks() {
    let rare = RARE.split(|byte| *byte == b' ').next().unwrap();
    let value = |number: u64| {
        let word = if number % 10_007 == 9 {
            rare.to_vec()
        } else {
            distinct(number)
        };
        value_with(number, &word, 100)
    };
    let cost = VERSIONS.map(|version| {
        let world = World::new(version, plain());
        load(&world, value);
        let before = world.misses();
        let (hits, visited) = world.lookup(rare, None);
        assert_eq!(hits.len(), 10);
        (visited, world.misses() - before, world)
    });
    let [(ranges, _, _), (mapped, misses, world)] = cost;
    assert_eq!(mapped.blocks, 10);
    assert_eq!(
        ranges.blocks + ranges.blocks_skipped,
        mapped.blocks + mapped.blocks_skipped
    );
    assert!(mapped.blocks * 2 < ranges.blocks);
    // Each block needs its index and filter; and the map its directory and a page or two.
    assert!(misses <= 10 * 3 + 3, "{misses}");

    // The newest ones with the value: blocks are read in the order of their ranks.
    let (newest, visited) = world.newest_with(rare, None, 3);
    let times: Vec<u64> = newest
        .iter()
        .map(|(_, value)| time_of(words(value).next().unwrap()))
        .collect();
    assert_eq!(times, [90_072, 80_065, 70_058]);
    assert!(visited.blocks <= 3, "{visited:?}");
}

#[test]
fn absent_values_cost_almost_no_blocks_and_the_map_is_small() {
    let value = |number: u64| value_with(number, &distinct(number), 500);
    let worlds = VERSIONS.map(|version| {
        let world = World::new(version, plain());
        load(&world, value);
        world
    });
    let [before, bytes] = worlds.each_ref().map(World::table_bytes);
    let map = bytes - before;
    assert!(map * 8 <= 48 * MANY, "{map} bytes for {MANY} pairs");
    assert!(bytes * 20 <= before * 21, "{bytes} instead of {before}");
    let [_, world] = worlds;
    let mut blocks = 0;
    for number in MANY..MANY + 10_000 {
        let (hits, visited) = world.lookup(&distinct(number), None);
        assert!(hits.is_empty());
        blocks += visited.blocks;
        assert!(blocks <= 8, "{blocks}");
    }
    for number in (0..MANY).step_by(997) {
        let (hits, visited) = world.lookup(&distinct(number), None);
        assert_eq!(hits.len(), 1);
        assert!(visited.blocks <= 2, "{visited:?}");
    }
}

#[test]
fn a_common_value_is_in_all_its_blocks() {
    let world = World::new(TableVersion::Four, plain());
    load(&world, |number| {
        value_with(number, &word(b'a', number % 3), 60)
    });
    let (hits, visited) = world.lookup(b"a1", None);
    assert_eq!(hits.len(), 33_333);
    assert_eq!(visited.blocks_skipped, 0);
    let (newest, visited) = world.newest_with(b"a1", None, 20);
    assert_eq!(newest.len(), 20);
    assert!(visited.blocks <= 3, "{visited:?}");
}

#[test]
fn without_a_map_the_blocks_whose_range_contains_the_value_are_ranked() {
    let world = World::new(TableVersion::Three, plain());
    let ascending = |number: u64| format!("a{number:08}").into_bytes();
    load(&world, |number| value_with(number, &ascending(number), 60));
    let (entries, visited) = world.newest_with(&ascending(500), None, 2);
    assert_eq!((entries.len(), visited.blocks), (1, 1));
}

#[test]
fn values_of_deletes_are_not_in_the_map() {
    let world = World::new(TableVersion::Four, plain());
    world.put(b"1", b"a1");
    world.db().flush().unwrap();
    world.write(|batch| batch.delete_with(&world.entries, b"1", b"a1"));
    world.put(b"2", b"a0 a2");
    world.db().flush().unwrap();
    let (hits, visited) = world.lookup(b"a1", None);
    assert_eq!((hits.len(), visited.tables, visited.blocks), (0, 2, 1));
}

#[test]
fn tables_without_a_map_of_the_attribute_are_searched() {
    let with = |extractor: Option<Arc<dyn Extractor>>| KeyspaceOptions {
        extractor,
        ..plain()
    };
    let cases: [(TableVersion, Option<Arc<dyn Extractor>>); 4] = [
        (TableVersion::Four, Some(Arc::new(OtherWords))),
        (TableVersion::Four, None),
        (TableVersion::Three, None),
        (TableVersion::Three, Some(Arc::new(Words))),
    ];
    for (version, extractor) in cases {
        let mut world = World::new(version, with(extractor));
        world.put(b"old", b"t00000003 a1");
        world.put(b"other", b"t00000002 a2");
        world.db().flush().unwrap();
        world.reopen(TableVersion::Four, plain());
        world.put(b"new", b"t00000001 a1");
        world.db().flush().unwrap();
        let keys = |entries: Entries| entries.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(keys(world.lookup(b"a1", None).0), [b"new", b"old"]);
        let newest = world.newest_with(b"a1", None, usize::MAX).0;
        assert_eq!(keys(newest), [b"old", b"new"]);
    }
}

#[test]
fn one_partition_of_many_is_read_if_the_others_have_other_times() {
    let within = |zone: &ZoneMap| zone.may_be_within(MANY - 20, MANY);
    let reads = VERSIONS.map(|version| {
        let world = World::new(version, plain());
        load(&world, |number| value_with(number, b"a1", 60));
        let start = world.misses();
        let mut ranked = world.db().ranked(&world.entries, None, newest).unwrap();
        for number in (MANY - 20..MANY).rev() {
            assert_eq!(ranked.next().unwrap().unwrap().rank, Reverse(number));
        }
        let ranked = (world.misses() - start, ranked.visited().blocks);
        let world = World::new(version, plain());
        load(&world, |number| value_with(number, b"a1", 60));
        let start = world.misses();
        let found = world
            .db()
            .search(&world.entries, Unbounded, Unbounded, None, &within)
            .unwrap();
        assert_eq!(found.hits.len(), 20);
        let all = found.visited.blocks + found.visited.blocks_skipped;
        (ranked, (world.misses() - start, found.visited.blocks), all)
    });
    let [(ranked_3, searched_3, all_3), (ranked_4, searched_4, all_4)] = reads;
    assert_eq!(
        (ranked_3.1, searched_3.1, all_3),
        (ranked_4.1, searched_4.1, all_4)
    );
    let partitions = all_3.div_ceil(64);
    // One index, one filter, and the blocks.
    for ((older, _), (newer, blocks)) in [(ranked_3, ranked_4), (searched_3, searched_4)] {
        assert!(blocks <= 2);
        assert_eq!(newer, blocks + 2);
        assert_eq!(older, newer + partitions - 1);
    }
}

#[test]
fn lists_skip_partitions() {
    let options = KeyspaceOptions {
        extractor: Some(Arc::new(ElementTimes)),
        block_bytes: 100,
        ..plain()
    };
    let cost = VERSIONS.map(|version| {
        let world = World::new(version, options.clone());
        for time in 0..5000_u64 {
            world.write(|batch| {
                // Some of the oldest elements are as late as the newest.
                let time = if time == 300 { 4999 } else { time };
                batch.append(&world.entries, b"list", 1, (time, time, b"element"), None);
            });
        }
        world.db().flush().unwrap();
        let start = world.misses();
        let filter = ListFilter {
            from_time: 4990,
            ..ListFilter::ALL
        };
        let mut list = world
            .db()
            .list(&world.entries, b"list", 1, filter, None)
            .unwrap();
        let mut times = Vec::new();
        while let Some(element) = list.next_element().unwrap() {
            times.push(element.time);
        }
        let expected: Vec<u64> = (4990..5000).rev().chain([4999]).collect();
        assert_eq!(times, expected);
        (list.cost(), world.misses() - start)
    });
    let [(cost_3, misses_3), (cost_4, misses_4)] = cost;
    assert_eq!(cost_3, cost_4);
    let partitions = (cost_3.blocks + cost_3.blocks_skipped).div_ceil(64);
    assert!(partitions > 5);
    assert_eq!(misses_3 - misses_4, partitions - 2);
}

/// The number that follows a text in a dump.
fn number_after(text: &str, before: &str) -> usize {
    let (_, rest) = text.split_once(before).unwrap();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn damage_of_a_map_is_an_error_and_never_another_answer() {
    let vfs = FaultVfs::new(1);
    let shared = Arc::new(vfs.clone()) as Arc<dyn Vfs>;
    let mut world = World::on(shared, TableVersion::Four, plain());
    for number in 0..3000 {
        let value = value_with(number, &distinct(number % 2000), 30);
        world.put(&number.to_be_bytes(), &value);
    }
    world.db().flush().unwrap();
    let path = world.tables().pop().unwrap();
    let mut text = String::new();
    dump(&vfs, &path, &mut |line| text += &line).unwrap();
    let (_, map) = text.split_once("map: Some(Handle { ").unwrap();
    let directory = number_after(map, "offset: ");
    let end = directory + number_after(map, "length: ") + 9;
    let expected: Vec<Entries> = (0..40)
        .map(|word| world.lookup(&distinct(word), None).0)
        .collect();
    let mut errors = 0;
    for offset in (directory - 9000..end)
        .step_by(97)
        .chain([directory, end - 1])
    {
        vfs.damage(&path, |bytes| bytes[offset] ^= 4).unwrap();
        world.reopen(TableVersion::Four, plain());
        for (number, expected) in (0..40).zip(&expected) {
            let looked_up = distinct(number);
            match world
                .db()
                .lookup(&world.entries, looked_up[0], &looked_up, None)
            {
                Ok(result) => {
                    let hits = result.hits.into_iter();
                    let hits: Entries = hits.map(|(key, value)| (key, value.to_vec())).collect();
                    assert_eq!(&hits, expected);
                }
                Err(error) => {
                    assert!(matches!(error, Error::Corruption { .. }), "{error}");
                    errors += 1;
                    let ranked = world.db().ranked(&world.entries, None, newest).unwrap();
                    let mut ranked = ranked.with_attribute(looked_up[0], &looked_up);
                    assert!(ranked.next().is_err());
                    assert!(ranked.next().is_err(), "the next call tries again");
                }
            }
        }
        let verified = world.db().verify(&mut |_, _| ());
        assert!(
            matches!(verified, Err(Error::Corruption { .. })),
            "{offset}"
        );
        vfs.damage(&path, |bytes| bytes[offset] ^= 4).unwrap();
    }
    assert!(errors > 100, "{errors}");
    world.db.take().unwrap().close().unwrap();
    verify(&world.vfs, Path::new("/db"), &mut |_, _| ()).unwrap();
}

#[test]
fn without_an_extractor_the_versions_differ_in_the_footer_alone() {
    let [older, newer] = VERSIONS.map(|version| {
        let world = World::new(version, KeyspaceOptions::default());
        (0..5000_u64).for_each(|number| world.put(&number.to_be_bytes(), b"value"));
        world.db().flush().unwrap();
        let file = world.vfs.open_read(&world.tables()[0]).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        file.read_exact_at(0, &mut bytes).unwrap();
        let footer = bytes.split_off(bytes.len() - 16);
        (bytes, footer)
    });
    assert_eq!(older.0, newer.0);
    assert_eq!((older.1[0], newer.1[0]), (3, 4));
}

#[test]
fn a_keyspace_without_an_extractor_has_no_attributes() {
    let world = World::new(TableVersion::Four, KeyspaceOptions::default());
    let refused = world.db().lookup(&world.entries, 1, b"", None).unwrap_err();
    assert_eq!(refused.code(), "invalid_argument");
}
