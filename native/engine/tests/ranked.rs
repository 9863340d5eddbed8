//! Entries in the order of a rank, compared with sorted scans, and what they cost.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::ranked_support::{
    GROUPS, SumOfTimes, TimeAndPlace, TimeZero, Variant, World, all_of, group_of, place_of,
    value_of,
};
use rillbase_engine::vfs::{Fault, FaultVfs, SeededRandom, Vfs};
use rillbase_engine::{
    DbSnapshot, Durability, Extractor, KeyspaceOptions, RankedEntry, Sequence, TableVersion,
    WriteBatch, ZoneMap,
};

/// Times of the histories are below this, so that many are equal.
const TIMES: u64 = 40;

/// The newest entries first.
fn newest(zone: &ZoneMap) -> Option<Reverse<u64>> {
    zone.times().map(|(_, last)| Reverse(last))
}

/// Entries from a quarter of the times on, the oldest first.
fn oldest_of_later(zone: &ZoneMap) -> Option<u64> {
    let (first, last) = zone.times()?;
    (last >= TIMES / 4).then_some(first.max(TIMES / 4))
}

/// The distance of a place from the nearest point of the zone, squared. The bits of positive numbers
/// have the order of the numbers.
fn distance(zone: &ZoneMap, [x, y]: [f64; 2]) -> Option<u64> {
    let [west, south, east, north] = zone.rectangle()?;
    let (across, along) = (x - x.clamp(west, east), y - y.clamp(south, north));
    Some((across * across + along * along).to_bits())
}

fn key(random: &mut SeededRandom) -> Vec<u8> {
    format!("entry {:02}", random.below(60)).into_bytes()
}

/// A place on a grid.
fn cell(random: &mut SeededRandom) -> [u32; 2] {
    [(); 2].map(|()| u32::try_from(random.below(1 << 16)).unwrap())
}

fn place(random: &mut SeededRandom) -> [f64; 2] {
    cell(random).map(|side| f64::from(side) / 100.0)
}

/// A value with time and place, or with only a time, or with neither.
fn value(random: &mut SeededRandom) -> Vec<u8> {
    let mut value = value_of(random.below(TIMES), place(random));
    match random.below(10) {
        0 => value.truncate(8),
        1 => value.truncate(3),
        _ => {}
    }
    value
}

fn write(world: &World, add: impl FnOnce(&mut WriteBatch)) -> Sequence {
    let mut batch = WriteBatch::new();
    add(&mut batch);
    world.db().write(batch, Durability::Buffered).unwrap()
}

fn put(world: &World, key: &[u8], value: &[u8]) -> Sequence {
    write(world, |batch| batch.put(&world.entries, key, value))
}

/// One random write.
fn change(world: &World, variant: Variant, random: &mut SeededRandom) {
    let (key, other, value) = (key(random), key(random), value(random));
    let entries = &world.entries;
    let choice = random.below(20);
    write(world, |batch| match choice {
        0 => batch.delete_range(entries, &key, &other),
        1 if variant != Variant::Parts => batch.delete(entries, &key),
        1..=3 => {
            let below = world.db().get(entries, &key).unwrap();
            if let Some(below) = below {
                batch.delete_with(entries, &key, &below);
            }
        }
        4..=6 if !variant.has_merge() => {
            let expiry = world.db().now() + 1 + random.below(30);
            batch.put_expiring(entries, &key, &value, expiry);
        }
        7..=12 if variant.has_merge() => batch.merge(entries, &key, &value),
        _ => batch.put(entries, &key, &value),
    });
}

fn check_rank<S: Ord + std::fmt::Debug + Clone>(
    world: &World,
    snapshot: &DbSnapshot,
    rank: impl Fn(&ZoneMap) -> Option<S> + Copy,
) {
    let part = |entry: RankedEntry<S>| (entry.rank, entry.key, entry.value.to_vec());
    let parts = |entries: Vec<RankedEntry<S>>| entries.into_iter().map(part).collect::<Vec<_>>();
    let scanned = world.scanned(snapshot, rank);
    assert_eq!(parts(world.ranked(Some(snapshot), rank)), scanned);
    let start = || world.db().ranked(&world.entries, Some(snapshot), rank);
    for group in 0..GROUPS {
        let mut of_group = scanned.clone();
        of_group.retain(|(_, _, value)| group_of(value) == Some(group));
        let ranked = start().unwrap().with_attribute(1, &[group]);
        assert_eq!(parts(all_of(ranked)), of_group);
    }
    let mut of_groups = scanned;
    of_groups.retain(|(_, _, value)| group_of(value).is_some_and(|group| group >= 2));
    let ranked = start().unwrap().with_attribute_range(1, &[2], &[GROUPS]);
    assert_eq!(parts(all_of(ranked)), of_groups);
}

fn check(world: &World, snapshots: &[DbSnapshot]) {
    let current = world.db().snapshot();
    for snapshot in snapshots.iter().chain([&current]) {
        check_rank(world, snapshot, newest);
        check_rank(world, snapshot, oldest_of_later);
        check_rank(world, snapshot, |zone| distance(zone, [300.0, 200.0]));
    }
    let without = world.ranked(None, newest);
    assert_eq!(without, world.ranked(Some(&current), newest));
}

fn history(variant: Variant, seed: u64) {
    let mut world = World::new(variant.options());
    let mut random = SeededRandom::new(seed);
    let mut snapshots = Vec::new();
    for step in 0..500 {
        match random.below(60) {
            0 => world.db().flush().unwrap(),
            1 => world.db().compact_due(&world.entries).unwrap(),
            2 if random.one_in(3) => world.db().compact(&world.entries).unwrap(),
            3 if random.one_in(3) => {
                snapshots.clear();
                world.version = [TableVersion::Three, TableVersion::Four][random.up_to(1)];
                world.reopen(variant.options());
            }
            4..=6 => world.clock.advance(random.below(8)),
            7 | 8 => snapshots.push(world.db().snapshot()),
            9 if !snapshots.is_empty() => {
                snapshots.remove(random.up_to(snapshots.len() - 1));
            }
            _ => change(&world, variant, &mut random),
        }
        if step % 50 == 49 {
            check(&world, &snapshots);
        }
    }
    world.db().compact(&world.entries).unwrap();
    check(&world, &snapshots);
    snapshots.clear();
    world.reopen(variant.options());
    check(&world, &snapshots);
}

#[test]
fn any_history_gives_the_entries_of_a_scan_in_the_order_of_their_ranks() {
    for variant in Variant::ALL {
        for seed in 1..=6 {
            history(variant, seed);
        }
    }
}

/// Options with blocks of the default size.
fn plain() -> KeyspaceOptions {
    KeyspaceOptions {
        extractor: Some(Arc::new(TimeAndPlace)),
        table_bytes: 128 << 10,
        ..KeyspaceOptions::default()
    }
}

/// Writes entries in batches.
fn load(world: &World, entries: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) {
    let mut batch = WriteBatch::new();
    for (key, value) in entries {
        batch.put(&world.entries, &key, &value);
        if batch.len() == 1000 {
            world.db().write(batch, Durability::Buffered).unwrap();
            batch = WriteBatch::new();
        }
    }
    world.db().write(batch, Durability::Buffered).unwrap();
}

#[test]
fn the_newest_of_many_entries_are_returned_after_few_blocks() {
    let world = World::new(plain());
    let entry = |time: u64| {
        let mut value = value_of(time, [0.0, 0.0]);
        value.extend_from_slice(&time.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
        (format!("reading {time:08}").into_bytes(), value)
    };
    load(&world, (0..100_000).map(entry));
    world.db().compact(&world.entries).unwrap();
    let levels = &world.db().stats().keyspaces[0].levels;
    let tables: usize = levels.iter().map(|level| level.files).sum();
    assert!(tables > 3, "{tables}");
    let reads = || world.db().stats().cache_misses;
    let before = reads();
    let mut ranked = world.db().ranked(&world.entries, None, newest).unwrap();
    for time in (99_980..100_000).rev() {
        let next = ranked.next().unwrap().unwrap();
        assert_eq!((next.key, next.value.to_vec()), entry(time));
        assert_eq!(next.rank, Reverse(time));
    }
    let visited = ranked.visited();
    assert!((1..=4).contains(&visited.blocks), "{visited:?}");
    assert_eq!(visited.tables, 1, "{visited:?}");
    // Adding the blocks of a table to the queue reads none of them.
    assert!(reads() - before <= 8, "{}", reads() - before);
}

/// A key in the order of a curve through the grid, whose neighbours are near each other.
fn curve([x, y]: [u32; 2], number: u64) -> Vec<u8> {
    let spread = |side: u32| u64::from_str_radix(&format!("{side:b}"), 4).unwrap();
    format!("{:08x} {number}", spread(x) | spread(y) << 1).into_bytes()
}

#[test]
fn the_nearest_neighbours_are_those_of_a_full_comparison_and_few_blocks_are_read() {
    let world = World::new(plain());
    let mut random = SeededRandom::new(5);
    let entries: Vec<(Vec<u8>, Vec<u8>)> = (0..20_000)
        .map(|number| {
            let cell = cell(&mut random);
            (curve(cell, number), value_of(number, cell.map(f64::from)))
        })
        .collect();
    load(&world, entries.iter().cloned());
    world.db().compact(&world.entries).unwrap();
    for _ in 0..10 {
        let at = cell(&mut random).map(f64::from);
        let rank = |zone: &ZoneMap| distance(zone, at);
        let mut expected: Vec<(u64, &Vec<u8>)> = entries
            .iter()
            .map(|(key, value)| {
                let [x, y] = place_of(value).unwrap();
                let (across, along) = (x - at[0], y - at[1]);
                ((across * across + along * along).to_bits(), key)
            })
            .collect();
        expected.sort();
        let mut ranked = world.db().ranked(&world.entries, None, rank).unwrap();
        for (rank, key) in expected.iter().take(10) {
            let next = ranked.next().unwrap().unwrap();
            assert_eq!((next.rank, &next.key), (*rank, *key));
        }
        let few = ranked.visited().blocks;
        while ranked.next().unwrap().is_some() {}
        let all = ranked.visited().blocks;
        assert!(few * 20 <= all, "{few} of {all}");
    }
}

fn shown<S>(entries: &[RankedEntry<S>]) -> Vec<(&[u8], Sequence)> {
    let entries = entries.iter();
    entries.map(|entry| (&*entry.key, entry.sequence)).collect()
}

#[test]
fn a_snapshot_reads_the_older_entry_of_a_key_and_later_reads_the_newer_one() {
    for flushes in [false, true] {
        let world = World::new(plain());
        let first = put(&world, b"a", &value_of(30, [0.0, 0.0]));
        let other = put(&world, b"b", &value_of(20, [0.0, 0.0]));
        let snapshot = world.db().snapshot();
        if flushes {
            world.db().flush().unwrap();
        }
        let second = put(&world, b"a", &value_of(10, [0.0, 0.0]));
        if flushes {
            world.db().flush().unwrap();
        }
        let past = world.ranked(Some(&snapshot), newest);
        assert_eq!(shown(&past), [(&b"a"[..], first), (b"b", other)]);
        let present = world.ranked(None, newest);
        assert_eq!(shown(&present), [(&b"b"[..], other), (b"a", second)]);
    }
}

#[test]
fn entries_that_are_overwritten_while_others_are_read_are_returned_as_they_were() {
    let options = Variant::Accumulating.options();
    let world = World::new(options);
    for number in 0..100_u64 {
        let key = number.to_be_bytes();
        write(&world, |batch| {
            batch.merge(&world.entries, &key, &number.to_le_bytes());
        });
    }
    let db = world.db();
    let mut ranked = db.ranked(&world.entries, None, newest).unwrap();
    for number in (0..100_u64).rev() {
        let next = ranked.next().unwrap().unwrap();
        assert_eq!(next.key, number.to_be_bytes());
        assert_eq!(*next.value, number.to_le_bytes());
        write(&world, |batch| {
            for below in 0..number {
                batch.merge(
                    &world.entries,
                    &below.to_be_bytes(),
                    &1000_u64.to_le_bytes(),
                );
            }
        });
        if number % 20 == 0 {
            db.compact(&world.entries).unwrap();
        }
    }
    assert_eq!(ranked.next().unwrap(), None);
}

#[test]
fn entries_of_tables_without_zones_or_with_those_of_another_extractor_are_returned() {
    let earlier: [Option<Arc<dyn Extractor>>; 2] = [None, Some(Arc::new(TimeZero))];
    for extractor in earlier {
        let with_earlier = KeyspaceOptions {
            extractor,
            ..plain()
        };
        let mut world = World::new(with_earlier);
        let old = put(&world, b"old", &value_of(30, [1.0, 1.0]));
        world.db().flush().unwrap();
        world.reopen(plain());
        let new = put(&world, b"new", &value_of(20, [2.0, 2.0]));
        world.db().flush().unwrap();
        let by_time = world.ranked(None, newest);
        assert_eq!(shown(&by_time), [(&b"old"[..], old), (b"new", new)]);
        let by_place = world.ranked(None, |zone: &ZoneMap| distance(zone, [0.0, 0.0]));
        assert_eq!(shown(&by_place), [(&b"old"[..], old), (b"new", new)]);
    }
}

#[test]
fn operands_are_ranked_by_the_value_that_they_are_folded_to() {
    let options = KeyspaceOptions {
        merge: Some(Arc::new(SumOfTimes)),
        compact_at_runs: 100,
        ..plain()
    };
    let world = World::new(options);
    let merge = |key: &[u8], time: u64| {
        let sequence = write(&world, |batch| {
            batch.merge(&world.entries, key, &time.to_le_bytes());
        });
        world.db().flush().unwrap();
        sequence
    };
    put(&world, b"a", &5_u64.to_le_bytes());
    merge(b"a", 5);
    merge(b"b", 7);
    let first = merge(b"a", 5);
    let second = merge(b"b", 7);
    let third = put(&world, b"c", &14_u64.to_le_bytes());
    let ranked = world.ranked(None, newest);
    assert_eq!(
        shown(&ranked),
        [(&b"a"[..], first), (b"b", second), (b"c", third)]
    );
    let ranks: Vec<u64> = ranked.iter().map(|entry| entry.rank.0).collect();
    assert_eq!(ranks, [15, 14, 14]);
}

fn check_failed_reads(version: TableVersion) {
    let vfs = FaultVfs::new(1);
    let shared = Arc::new(vfs.clone()) as Arc<dyn Vfs>;
    let mut world = World::on(shared, 0, Variant::Merged.options());
    world.version = version;
    world.reopen(Variant::Merged.options());
    for time in 0..30_u64 {
        put(
            &world,
            &[b'p', 7 * time.to_le_bytes()[0] % 10],
            &value_of(time, [0.0, 0.0]),
        );
        write(&world, |batch| {
            let key = [b'm', 3 * time.to_le_bytes()[0] % 10];
            batch.merge(&world.entries, &key, &time.to_le_bytes());
        });
        if time % 10 == 9 {
            world.db().flush().unwrap();
        }
    }
    let expected = world.ranked(None, newest);
    assert_eq!(expected.len(), 20);
    let mut failures = 0;
    for ahead in 0.. {
        let mut ranked = world.db().ranked(&world.entries, None, newest).unwrap();
        let site = vfs.sites() + ahead;
        vfs.fail_at(site, Fault::Error);
        let (mut entries, before) = (Vec::new(), failures);
        loop {
            match ranked.next() {
                Ok(Some(entry)) => entries.push(entry),
                Ok(None) => break,
                Err(_) => failures += 1,
            }
        }
        vfs.clear();
        assert_eq!(entries, expected);
        if failures == before {
            break;
        }
    }
    assert!(failures > 10, "{failures}");
}

#[test]
fn after_a_failed_read_the_next_call_tries_again() {
    for version in [TableVersion::Three, TableVersion::Four] {
        check_failed_reads(version);
    }
}

#[test]
fn a_keyspace_without_an_extractor_has_no_ranks() {
    let world = World::new(KeyspaceOptions::default());
    let refused = world.db().ranked(&world.entries, None, newest).unwrap_err();
    assert_eq!(refused.code(), "invalid_argument");
}
