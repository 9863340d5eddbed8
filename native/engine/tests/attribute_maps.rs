//! Lookups of values of attributes, compared with scans, and what they cost; zones of partitions.

use std::cmp::Reverse;
use std::ops::Bound::Unbounded;
use std::path::Path;
use std::sync::Arc;

use crate::attribute_support::{
    Append, Entries, OtherWords, Words, World, newest, random_words, time_of, word, words,
};
use rillbase_engine::vfs::{FaultVfs, SeededRandom, Vfs};
use rillbase_engine::{
    Compression, ElementTimes, Error, Extractor, KeyspaceOptions, ListFilter, Strategy,
    TableVersion, ZoneMap, dump, verify,
};

const VERSIONS: [TableVersion; 2] = [TableVersion::Three, TableVersion::Four];

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
