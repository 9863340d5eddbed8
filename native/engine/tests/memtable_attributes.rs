//! Attributes of entries in memtables, and of an extractor that begins to add more of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;

use crate::attribute_support::{Append, Entries, Words, World, newest, random_words, word};
use rillbase_engine::vfs::SeededRandom;
use rillbase_engine::{
    Durability, Extractor, KeyspaceOptions, TableVersion, Visited, WriteBatch, ZoneMap,
};

/// Options under which memtables are flushed only on request.
fn large() -> KeyspaceOptions {
    KeyspaceOptions {
        extractor: Some(Arc::new(Words)),
        memtable_bytes: 256 << 20,
        block_bytes: 300,
        ..KeyspaceOptions::default()
    }
}

fn load(world: &World, keys: std::ops::Range<u64>, value: impl Fn(u64) -> String) {
    let mut batch = WriteBatch::new();
    for key in keys {
        batch.put(&world.entries, &key.to_be_bytes(), value(key).as_bytes());
    }
    world.db().write(batch, Durability::Buffered).unwrap();
}

#[test]
fn a_query_visits_only_the_entries_of_a_memtable_with_the_value() {
    let world = World::new(TableVersion::Four, large());
    let value = |key: u64| {
        format!(
            "t{:08} a{} b{:04}",
            7919 * key % 20_000,
            key % 1000,
            key % 50
        )
    };
    load(&world, 0..20_000, value);
    let (hits, visited) = world.lookup(b"a77", None);
    assert_eq!((hits.len(), visited.entries), (20, 20));
    let (hits, visited) = world.newest_within(b"a77", b"a778", None);
    assert_eq!((hits.len(), visited.entries), (200, 200));
    let (all, visited) = world.newest_with(b"b0007", None, usize::MAX);
    assert_eq!((all.len(), visited.entries), (400, 400));
    let (few, visited) = world.newest_with(b"b0007", None, 10);
    assert_eq!(few, all[..10]);
    assert!(visited.entries <= 11, "{visited:?}");
    let (none, visited) = world.newest_with(b"b", None, 10);
    assert_eq!((none.len(), visited), (0, Visited::default()));
}

#[test]
fn a_query_returns_the_same_from_a_memtable_as_from_a_table() {
    for seed in 1..=20 {
        let merge = (seed % 2 == 0).then(|| Arc::new(Append) as _);
        let world = World::new(TableVersion::Four, KeyspaceOptions { merge, ..large() });
        let mut random = SeededRandom::new(seed);
        let mut words: Vec<_> = (0..8).flat_map(|n| b"abcd".map(|id| word(id, n))).collect();
        words.sort();
        let mut snapshots = Vec::new();
        for _ in 0..300 {
            let [key, other] = [(); 2].map(|()| random.below(60).to_be_bytes());
            let value = random_words(&mut random, true);
            let (choice, expiry) = (random.below(20), world.db().now() + random.below(60));
            world.write(|batch| match choice {
                0 => batch.delete_range(&world.entries, &key, &other),
                1 | 2 => batch.delete(&world.entries, &key),
                3 | 4 if seed % 2 == 0 => batch.merge(&world.entries, &key, &value),
                5 if seed % 2 == 1 => batch.put_expiring(&world.entries, &key, &value, expiry),
                _ => batch.put(&world.entries, &key, &value),
            });
            if random.one_in(100) {
                snapshots.push(world.db().snapshot());
            }
            world.clock.advance(random.below(2));
        }
        snapshots.push(world.db().snapshot());
        let check = || {
            for snapshot in &snapshots {
                world.check(snapshot, &words);
            }
        };
        check();
        world.db().flush().unwrap();
        check();
    }
}

#[test]
fn writers_and_readers_at_once_agree_with_scans() {
    let options = KeyspaceOptions {
        memtable_bytes: 60_000,
        ..large()
    };
    let world = World::new(TableVersion::Four, options);
    let words: Vec<_> = (0..4).map(|number| word(b'a', number)).collect();
    std::thread::scope(|scope| {
        let writer = |thread: u64| {
            let (world, mut random) = (&world, SeededRandom::new(thread));
            move || {
                for number in 0..1500_u64 {
                    let key = (random.below(400) * 4 + thread).to_be_bytes();
                    let value = format!("t{number:08} a{} b{number:04}", random.below(4));
                    if random.one_in(5) {
                        world.write(|batch| batch.delete(&world.entries, &key));
                    } else {
                        world.put(&key, value.as_bytes());
                    }
                }
            }
        };
        let writers = [1, 2, 3, 4].map(|thread| scope.spawn(writer(thread)));
        while !writers.iter().all(ScopedJoinHandle::is_finished) {
            world.check(&world.db().snapshot(), &words);
        }
    });
    world.check(&world.db().snapshot(), &words);
}

/// Adds words, from version 1 on also those of attribute `b`.
#[derive(Debug, Default)]
struct GrowingWords(AtomicU64);

impl Extractor for GrowingWords {
    fn name(&self) -> &'static str {
        "growing_words"
    }

    fn version(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn is_listed(&self) -> bool {
        true
    }

    fn extract(&self, key: &[u8], value: &[u8], about: &mut ZoneMap) {
        let has_more = self.version() > 0;
        for word in value.split(|byte| *byte == b' ') {
            match word {
                [b'b', ..] if !has_more => {}
                _ => Words.extract(key, word, about),
            }
        }
    }
}

/// The entries with a word of `b` by each kind of query.
fn check_growing(world: &World, expected: &[u64]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|key| key.to_be_bytes().to_vec())
        .collect();
    let keys = |entries: Entries| -> Vec<_> { entries.into_iter().map(|(key, _)| key).collect() };
    let lookup = world
        .db()
        .lookup_requiring(&world.entries, b'b', b"b1", None, 1);
    let lookup = lookup.unwrap().hits.into_iter();
    let lookup = lookup.map(|(key, value)| (key, value.to_vec()));
    assert_eq!(keys(lookup.collect()), expected);
    let oldest = |zone: &ZoneMap| zone.times().map(|(first, _)| first);
    let ranked = || {
        world
            .db()
            .ranked(&world.entries, None, oldest)
            .unwrap()
            .requiring(1)
    };
    let with = ranked().with_attribute(b'b', b"b1");
    let within = ranked().with_attribute_range(b'b', b"b0", b"b2");
    for mut ranked in [with, within] {
        let mut entries = Vec::new();
        while let Some(next) = ranked.next().unwrap() {
            entries.push(next.key);
        }
        assert_eq!(entries, expected);
    }
}

#[test]
fn attributes_of_a_later_version_are_those_of_all_entries() {
    for version in [TableVersion::Three, TableVersion::Four] {
        let extractor = Arc::new(GrowingWords::default());
        let options = KeyspaceOptions {
            extractor: Some(Arc::clone(&extractor) as _),
            ..large()
        };
        let mut world = World::new(version, options.clone());
        let value = |key: u64| format!("t{key:08} a{key} b1");
        load(&world, 0..10, value);
        world.db().flush().unwrap();
        load(&world, 10..20, value);
        extractor.0.store(1, Ordering::SeqCst);
        load(&world, 20..30, value);
        let all: Vec<u64> = (0..40).collect();
        check_growing(&world, &all[..30]);
        world.db().flush().unwrap();
        check_growing(&world, &all[..30]);
        load(&world, 30..40, value);
        check_growing(&world, &all);
        world.reopen(version, options);
        check_growing(&world, &all);
        world.db().compact(&world.entries).unwrap();
        check_growing(&world, &all);
        assert_eq!(read_with_absent_word(&world, 1).entries, 0);
    }
}

#[test]
fn a_compaction_extracts_again_and_older_tables_are_read_whole() {
    let extractor = Arc::new(GrowingWords::default());
    let options = KeyspaceOptions {
        extractor: Some(Arc::clone(&extractor) as _),
        ..large()
    };
    let world = World::new(TableVersion::Four, options);
    load(&world, 0..10, |key| format!("t{key:08} b1"));
    assert_eq!(read_with_absent_word(&world, 1).entries, 10);
    world.db().flush().unwrap();
    extractor.0.store(3, Ordering::SeqCst);
    assert_eq!(read_with_absent_word(&world, 0).entries, 0);
    assert_eq!(read_with_absent_word(&world, 3).entries, 10);
    world.db().compact(&world.entries).unwrap();
    assert_eq!(read_with_absent_word(&world, 3).entries, 0);
    assert_eq!(read_with_absent_word(&world, 4).entries, 10);
}

#[test]
fn tables_without_attributes_of_a_version_are_rewritten_one_by_one() {
    let extractor = Arc::new(GrowingWords::default());
    let options = KeyspaceOptions {
        extractor: Some(Arc::clone(&extractor) as _),
        ..large()
    };
    let mut world = World::new(TableVersion::Four, options.clone());
    for start in [0, 40, 10, 20, 30] {
        load(&world, start..start + 10, |key| {
            format!("t{key:08} a{key} b1")
        });
        world.db().flush().unwrap();
    }
    let snapshot = world.db().snapshot();
    let key = 3_u64.to_be_bytes();
    world.write(|batch| batch.delete(&world.entries, &key));
    world.db().flush().unwrap();
    extractor.0.store(1, Ordering::SeqCst);
    let rewrite = |world: &World, (start, end): (u64, u64)| {
        let (start, end) = (start.to_be_bytes(), end.to_be_bytes());
        let bounds = (&start[..], &end[..]);
        let rewritten = world.db().rewrite_outdated(&world.entries, bounds, 1);
        rewritten.unwrap()
    };
    // The tables of 10..20, of 20..30, and no other one.
    assert_eq!(rewrite(&world, (15, 25)), Some(10));
    assert_eq!(rewrite(&world, (15, 25)), Some(10));
    assert_eq!(rewrite(&world, (15, 25)), None);
    let expected: Vec<u64> = (0..50).filter(|key| *key != 3).collect();
    check_growing(&world, &expected);
    let mut entries = 0;
    while let Some(rewritten) = rewrite(&world, (0, 100)) {
        entries += rewritten;
    }
    assert_eq!(entries, 31);
    assert_eq!(read_with_absent_word(&world, 1).entries, 0);
    check_growing(&world, &expected);
    let before = world.db().get_at(&world.entries, &key, &snapshot);
    assert!(before.unwrap().is_some());
    drop(snapshot);
    world.reopen(TableVersion::Four, options);
    check_growing(&world, &expected);
}

#[test]
fn only_memtable_entries_and_tables_with_keys_within_bounds_are_read() {
    let extractor = Arc::new(GrowingWords::default());
    let options = KeyspaceOptions {
        extractor: Some(Arc::clone(&extractor) as _),
        ..large()
    };
    let world = World::new(TableVersion::Four, options);
    let value = |key: u64| format!("t{key:08} a{key} b1");
    for start in [0, 10, 20] {
        load(&world, start..start + 10, value);
        world.db().flush().unwrap();
    }
    load(&world, 0..100, value);
    // Neither tables nor the memtable have the attribute.
    extractor.0.store(1, Ordering::SeqCst);
    let (start, end) = (12_u64.to_be_bytes(), 15_u64.to_be_bytes());
    let ranked = world.db().ranked(&world.entries, None, newest).unwrap();
    let ranked = ranked.with_attribute(b'b', b"b1").requiring(1);
    let mut ranked = ranked.between(&start, &end);
    let mut keys = Vec::new();
    while let Some(next) = ranked.next().unwrap() {
        keys.push(u64::from_be_bytes(next.key.try_into().unwrap()));
    }
    keys.sort_unstable();
    assert_eq!(keys, [12, 13, 14]);
    let visited = ranked.visited();
    // Three in memory, and a table of ten.
    assert_eq!((visited.entries, visited.tables), (13, 1));
}

/// What a query costs that returns nothing.
fn read_with_absent_word(world: &World, version: u64) -> Visited {
    let ranked = world.db().ranked(&world.entries, None, newest).unwrap();
    let mut ranked = ranked.with_attribute(b'b', b"b9").requiring(version);
    assert!(ranked.next().unwrap().is_none());
    ranked.visited()
}
