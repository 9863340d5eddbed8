//! Value lists, and searches by zone.

use std::ops::Bound::Unbounded;
use std::sync::Arc;

use rillbase_engine::vfs::MemoryVfs;
use rillbase_engine::{
    Clock, Db, DbOptions, DbSnapshot, Durability, ElementTimes, Extractor, Keyspace,
    KeyspaceOptions, ListCost, ListFilter, ManualClock, WriteBatch, ZoneMap,
};

struct Lists {
    db: Db,
    space: Keyspace,
    clock: Arc<ManualClock>,
}

impl Lists {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(1000));
        let space = KeyspaceOptions {
            extractor: Some(Arc::new(ElementTimes)),
            block_bytes: 512,
            memtable_bytes: 1 << 20,
            ..KeyspaceOptions::default()
        };
        let options = DbOptions {
            vfs: Arc::new(MemoryVfs::new()),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            background_threads: 0,
            ..DbOptions::default()
        };
        let db = Db::open("/lists", options.keyspace("lists", space)).unwrap();
        let space = db.keyspace("lists").unwrap();
        Self { db, space, clock }
    }

    fn append(&self, list: &[u8], kind: u8, time: u64, expiry: Option<u64>) {
        let mut batch = WriteBatch::new();
        let payload = time.to_string();
        batch.append(
            &self.space,
            list,
            kind,
            (time, time + 5, payload.as_bytes()),
            expiry,
        );
        self.db.write(batch, Durability::Buffered).unwrap();
    }

    fn times(
        &self,
        list: &[u8],
        wanted: ListFilter,
        snapshot: Option<&DbSnapshot>,
    ) -> (Vec<u64>, ListCost) {
        let mut scan = self
            .db
            .list(&self.space, list, 1, wanted, snapshot)
            .unwrap();
        let mut times = Vec::new();
        while let Some(element) = scan.next_element().unwrap() {
            assert_eq!(element.payload, element.time.to_string().as_bytes());
            times.push(element.time);
        }
        (times, scan.cost())
    }
}

fn from(from_time: u64) -> ListFilter {
    ListFilter {
        from_time,
        ..ListFilter::ALL
    }
}

#[test]
fn a_list_is_read_newest_first_and_apart_from_its_neighbours() {
    let lists = Lists::new();
    for time in 0..50 {
        lists.append(b"a", 1, time, None);
        lists.append(b"a", 2, time + 1000, None);
        lists.append(b"a\0", 1, time + 2000, None);
        lists.append(b"aa", 1, time + 3000, None);
        if time == 20 {
            lists.db.flush().unwrap();
        }
    }
    let expected: Vec<u64> = (0..50).rev().collect();
    assert_eq!(lists.times(b"a", ListFilter::ALL, None).0, expected);
    assert_eq!(lists.times(b"a\0", ListFilter::ALL, None).0[0], 2049);
    assert!(lists.times(b"b", ListFilter::ALL, None).0.is_empty());
}

#[test]
fn old_blocks_and_tables_are_skipped_unread() {
    let lists = Lists::new();
    for part in 0..4 {
        for time in 0..500 {
            lists.append(b"list", 1, part * 500 + time, None);
        }
        lists.db.flush().unwrap();
    }
    let (all, whole) = lists.times(b"list", ListFilter::ALL, None);
    assert_eq!(all.len(), 2000);
    let (newest, few) = lists.times(b"list", from(1990), None);
    assert_eq!(newest, (1990..2000).rev().collect::<Vec<u64>>());
    assert_eq!(few.tables_skipped, 3);
    assert!(few.blocks <= 2 && whole.blocks > 40, "{few:?} {whole:?}");
    // The same in one run, where only blocks can be skipped.
    lists.db.compact(&lists.space).unwrap();
    let (newest, few) = lists.times(b"list", from(1990), None);
    assert_eq!(newest.len(), 10);
    assert!(few.blocks <= 2 && few.blocks_skipped > 40, "{few:?}");
    assert!(few.elements < 60);
}

#[test]
fn invalid_elements_are_skipped_wherever_they_are() {
    let lists = Lists::new();
    for time in 0..300 {
        lists.append(b"list", 1, time, None);
    }
    lists.db.flush().unwrap();
    let valid = ListFilter {
        from_time: 0,
        valid_at: 300,
    };
    let (found, cost) = lists.times(b"list", valid, None);
    assert_eq!(found, [299, 298, 297, 296, 295]);
    assert!(cost.blocks_skipped > cost.blocks);
}

#[test]
fn a_removed_element_stays_away_for_all_but_older_snapshots() {
    let lists = Lists::new();
    for time in 0..100 {
        lists.append(b"list", 1, time, None);
    }
    lists.db.flush().unwrap();
    let before = lists.db.snapshot();
    let mut scan = lists
        .db
        .list(&lists.space, b"list", 1, ListFilter::ALL, None)
        .unwrap();
    let newest = scan.next_element().unwrap().unwrap();
    drop(scan);
    let mut batch = WriteBatch::new();
    batch.remove(&lists.space, b"list", 1, &newest);
    lists.db.write(batch, Durability::Sync).unwrap();
    for _ in 0..3 {
        for wanted in [ListFilter::ALL, from(95), from(99)] {
            assert!(!lists.times(b"list", wanted, None).0.contains(&99));
            assert!(lists.times(b"list", wanted, Some(&before)).0.contains(&99));
        }
        lists.db.compact(&lists.space).unwrap();
    }
    drop(before);
    lists.db.compact(&lists.space).unwrap();
    let stats = lists.db.stats();
    let entries: u64 = stats.keyspaces[0]
        .levels
        .iter()
        .map(|level| level.entries)
        .sum();
    assert_eq!(entries, 99, "the pair is gone");
}

#[test]
fn expired_elements_are_not_shown_and_are_compacted_away() {
    let lists = Lists::new();
    for time in 0..100 {
        lists.append(
            b"list",
            1,
            time,
            Some(if time % 2 == 0 { 2000 } else { 5000 }),
        );
    }
    lists.db.flush().unwrap();
    lists.clock.set(3000);
    assert_eq!(lists.times(b"list", ListFilter::ALL, None).0.len(), 50);
    lists.db.compact(&lists.space).unwrap();
    let stats = lists.db.stats();
    let entries: u64 = stats.keyspaces[0]
        .levels
        .iter()
        .map(|level| level.entries)
        .sum();
    assert_eq!(entries, 50);
}

/// The value's first byte is attribute 1.
#[derive(Debug)]
struct FirstByte;

impl Extractor for FirstByte {
    fn name(&self) -> &'static str {
        "first-byte"
    }

    fn extract(&self, _key: &[u8], value: &[u8], about: &mut ZoneMap) {
        if let Some(first) = value.get(..1) {
            about.add_attribute(1, first);
        }
    }
}

#[test]
fn a_search_reads_few_blocks_and_never_shows_what_was_overwritten() {
    let space = KeyspaceOptions {
        extractor: Some(Arc::new(FirstByte)),
        block_bytes: 256,
        ..KeyspaceOptions::default()
    };
    let options = DbOptions {
        vfs: Arc::new(MemoryVfs::new()),
        background_threads: 0,
        ..DbOptions::default()
    };
    let db = Db::open("/search", options.keyspace("s", space)).unwrap();
    let space = db.keyspace("s").unwrap();
    let put = |number: u32, first: u8| {
        let mut batch = WriteBatch::new();
        batch.put(&space, format!("{number:05}").as_bytes(), &[first; 20]);
        db.write(batch, Durability::Buffered).unwrap();
    };
    (0..1000).for_each(|number| put(number, if number / 10 == 50 { b'z' } else { b'a' }));
    db.flush().unwrap();
    let is_z = |zone: &ZoneMap| zone.may_have(1, b"z", b"z");
    let before = db.snapshot();
    let found = db
        .search(&space, Unbounded, Unbounded, None, &is_z)
        .unwrap();
    assert_eq!(found.hits.len(), 10);
    assert!(found.visited.blocks <= 3 && found.visited.blocks_skipped > 50);
    put(505, b'a');
    put(7, b'z');
    let now = db
        .search(&space, Unbounded, Unbounded, None, &is_z)
        .unwrap();
    let keys: Vec<&[u8]> = now.hits.iter().map(|(key, _)| key.as_slice()).collect();
    assert_eq!(keys.len(), 10);
    assert!(keys.contains(&&b"00007"[..]) && !keys.contains(&&b"00505"[..]));
    let then = db
        .search(&space, Unbounded, Unbounded, Some(&before), &is_z)
        .unwrap();
    assert_eq!(then.hits, found.hits);
}
