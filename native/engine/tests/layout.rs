//! Custom layouts: tables that are separated by location, and invalid plans.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rillbase_engine::vfs::{MemoryVfs, SeededRandom, Vfs};
use rillbase_engine::{
    CompactionPlan, Db, DbOptions, DbSnapshot, Durability, Extractor, Keyspace, KeyspaceOptions,
    KeyspaceShape, Merge, Rectangle, Separation, TableLayout, TableShape, WriteBatch, ZoneMap,
};

/// Cells of a side.
const SIDE: u8 = 4;
const CELL: f64 = 100.0 / 4.0;

fn value_of(x: f64, y: f64, note: u8) -> Vec<u8> {
    let mut value = x.to_le_bytes().to_vec();
    value.extend_from_slice(&y.to_le_bytes());
    value.push(note);
    value
}

fn point(value: &[u8]) -> [f64; 2] {
    let read = |at: usize| f64::from_le_bytes(value[at..at + 8].try_into().unwrap());
    [read(0), read(8)]
}

#[derive(Debug)]
struct Points;

impl Extractor for Points {
    fn name(&self) -> &'static str {
        "points"
    }

    fn extract(&self, _key: &[u8], value: &[u8], about: &mut ZoneMap) {
        let [x, y] = point(value);
        about.add_rectangle([x, y, x, y]);
    }
}

fn cell_bounds(cell: u8) -> Rectangle {
    let (west, south) = (f64::from(cell % SIDE) * CELL, f64::from(cell / SIDE) * CELL);
    [west, south, west + CELL, south + CELL]
}

/// Each level below the flushed runs is divided into the cells of a grid. Cells are compacted in
/// rotation, and the cursor is the last one.
#[derive(Debug, Default)]
struct Cells {
    shown: Mutex<Vec<Vec<u8>>>,
}

impl TableLayout for Cells {
    fn name(&self) -> &'static str {
        "cells"
    }

    fn separation(&self) -> Separation {
        Separation::Zones
    }

    fn requires_attributes(&self) -> bool {
        true
    }

    fn choose(&self, shape: &KeyspaceShape<'_>) -> Option<CompactionPlan> {
        self.shown.lock().unwrap().push(shape.cursor().to_vec());
        if shape.runs(0).count() >= 3 {
            let tables = shape.runs(0).flat_map(|run| run.tables());
            return Some(CompactionPlan::merge(tables, 1));
        }
        let last = shape.cursor().first().copied().unwrap_or(0);
        let cells = (1..=SIDE * SIDE).map(|step| (last + step) % (SIDE * SIDE));
        for cell in cells {
            let of = |level: usize| {
                let runs = shape
                    .runs(level)
                    .filter(move |run| run.part() == Some(cell));
                runs.flat_map(|run| run.tables())
                    .collect::<Vec<TableShape<'_>>>()
            };
            let runs = shape.runs(1).filter(|run| run.part() == Some(cell));
            if runs.count() >= 3 {
                let tables = of(1).into_iter().chain(of(2));
                return Some(CompactionPlan::merge(tables, 2).with_cursor([cell]));
            }
        }
        None
    }

    fn part_of(&self, zone: &ZoneMap, _level: usize) -> u8 {
        let cells = 0..SIDE * SIDE;
        let mut cells = cells.filter(|cell| zone.may_intersect(cell_bounds(*cell)));
        cells.next().unwrap_or(0)
    }
}

fn space_options(layout: Arc<dyn TableLayout>) -> KeyspaceOptions {
    KeyspaceOptions {
        layout: Some(layout),
        extractor: Some(Arc::new(Points)),
        memtable_bytes: 20_000,
        table_bytes: 4000,
        block_bytes: 300,
        ..KeyspaceOptions::default()
    }
}

fn open(vfs: &Arc<MemoryVfs>, layout: Arc<dyn TableLayout>) -> (Db, Keyspace) {
    let options = DbOptions {
        vfs: Arc::clone(vfs) as Arc<dyn Vfs>,
        background_threads: 0,
        ..DbOptions::default()
    };
    let db = Db::open("/db", options.keyspace("objects", space_options(layout))).unwrap();
    let space = db.keyspace("objects").unwrap();
    (db, space)
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(random: &mut SeededRandom) -> Vec<u8> {
    format!("object {:03}", random.below(300)).into_bytes()
}

fn coordinate(random: &mut SeededRandom) -> f64 {
    f64::from(u32::try_from(random.below(10_000)).unwrap()) / 100.0
}

/// Adds, moves and removes objects; sometimes a range at once.
fn change(db: &Db, space: &Keyspace, model: &mut Model, random: &mut SeededRandom) {
    let mut batch = WriteBatch::new();
    let key = key(random);
    match random.below(20) {
        0 => {
            let mut end = key.clone();
            end.extend_from_slice(b"~");
            batch.delete_range(space, &key, &end);
            model.retain(|known, _| *known < key || *known >= end);
        }
        1..=4 => {
            if let Some(old) = model.remove(&key) {
                batch.delete_with(space, &key, &old);
            }
        }
        _ => {
            let (x, y) = (coordinate(random), coordinate(random));
            let value = value_of(x, y, random.below(250).to_le_bytes()[0]);
            batch.put(space, &key, &value);
            model.insert(key, value);
        }
    }
    db.write(batch, Durability::Buffered).unwrap();
}

fn check(db: &Db, space: &Keyspace, model: &Model, snapshot: Option<&DbSnapshot>) {
    for number in 0..300 {
        let key = format!("object {number:03}").into_bytes();
        let found = match snapshot {
            Some(snapshot) => db.get_at(space, &key, snapshot).unwrap(),
            None => db.get(space, &key).unwrap(),
        };
        assert_eq!(
            found.as_deref(),
            model.get(&key).map(Vec::as_slice),
            "{number}"
        );
    }
    let mut scan = db.scan_prefix(space, b"object", snapshot).unwrap();
    let mut shown = Model::new();
    scan.first().unwrap();
    while scan.is_valid() {
        shown.insert(scan.key().to_vec(), scan.value().to_vec());
        scan.advance().unwrap();
    }
    assert_eq!(shown, *model);
    for cell in 0..SIDE * SIDE {
        let [west, south, east, north] = cell_bounds(cell);
        let inside = |value: &[u8]| {
            let [x, y] = point(value);
            west <= x && x <= east && south <= y && y <= north
        };
        let all = std::ops::Bound::Unbounded;
        let bounds = cell_bounds(cell);
        let may_match = |zone: &ZoneMap| zone.may_intersect(bounds);
        let found = db.search(space, all, all, snapshot, &may_match).unwrap();
        let hits: Model = found
            .hits
            .into_iter()
            .map(|(key, value)| (key, value.to_vec()))
            .collect();
        let expected = model.iter().filter(|(_, value)| inside(value));
        let expected = expected.map(|(key, value)| (key.clone(), value.clone()));
        assert_eq!(hits, expected.collect::<Model>(), "cell {cell}");
    }
}

#[test]
fn objects_are_found_wherever_they_moved_when_tables_lie_apart_by_place() {
    let vfs = Arc::new(MemoryVfs::new());
    let layout = || Arc::new(Cells::default());
    let (mut db, mut space) = open(&vfs, layout());
    let (mut model, mut random) = (Model::new(), SeededRandom::new(7));
    for round in 0..12 {
        let held = (db.snapshot(), model.clone());
        for step in 0..400 {
            change(&db, &space, &mut model, &mut random);
            if step % 40 == 0 {
                db.flush().unwrap();
                db.compact_due(&space).unwrap();
            }
        }
        check(&db, &space, &model, None);
        check(&db, &space, &held.1, Some(&held.0));
        drop(held);
        if round % 4 == 3 {
            db.compact(&space).unwrap();
            check(&db, &space, &model, None);
        }
        if round % 3 == 2 {
            db.close().unwrap();
            (db, space) = open(&vfs, layout());
            check(&db, &space, &model, None);
        }
    }
}

#[test]
fn a_search_in_one_cell_passes_over_the_tables_of_others() {
    let vfs = Arc::new(MemoryVfs::new());
    let (db, space) = open(&vfs, Arc::new(Cells::default()));
    let (mut model, mut random) = (Model::new(), SeededRandom::new(3));
    for _ in 0..3000 {
        change(&db, &space, &mut model, &mut random);
    }
    db.compact(&space).unwrap();
    let inner = [1.0, 1.0, CELL - 1.0, CELL - 1.0];
    let all = std::ops::Bound::Unbounded;
    let may_match = |zone: &ZoneMap| zone.may_intersect(inner);
    let found = db.search(&space, all, all, None, &may_match).unwrap();
    assert_eq!(found.visited.tables, 1, "{:?}", found.visited);
    assert_eq!(found.visited.tables_skipped, u64::from(SIDE * SIDE) - 1);
}

#[test]
fn a_layout_continues_from_its_cursor_after_opening_and_in_a_copy() {
    let vfs = Arc::new(MemoryVfs::new());
    let (db, space) = open(&vfs, Arc::new(Cells::default()));
    let (mut model, mut random) = (Model::new(), SeededRandom::new(9));
    for _ in 0..60 {
        for _ in 0..40 {
            change(&db, &space, &mut model, &mut random);
        }
        db.flush().unwrap();
        db.compact_due(&space).unwrap();
    }
    let seen = Arc::new(Cells::default());
    db.checkpoint("/copy").unwrap();
    db.close().unwrap();
    let last_cursor = |path: &str| {
        let options = DbOptions {
            vfs: Arc::clone(&vfs) as Arc<dyn Vfs>,
            background_threads: 0,
            ..DbOptions::default()
        };
        let layout = Arc::clone(&seen) as Arc<dyn TableLayout>;
        let db = Db::open(path, options.keyspace("objects", space_options(layout))).unwrap();
        let space = db.keyspace("objects").unwrap();
        db.compact_due(&space).unwrap();
        check(&db, &space, &model, None);
        seen.shown.lock().unwrap().first().cloned()
    };
    let reopened = last_cursor("/db");
    assert_eq!(
        reopened.as_ref().map(Vec::len),
        Some(1),
        "a cell is remembered"
    );
    seen.shown.lock().unwrap().clear();
    assert_eq!(last_cursor("/copy"), reopened);
}

#[test]
fn deletes_must_describe_their_target_if_the_layout_requires_it() {
    let vfs = Arc::new(MemoryVfs::new());
    let (db, space) = open(&vfs, Arc::new(Cells::default()));
    let mut batch = WriteBatch::new();
    batch.delete(&space, b"object 001");
    let refused = db.write(batch, Durability::Buffered).unwrap_err();
    assert_eq!(refused.code(), "invalid_argument");
}

#[derive(Debug)]
struct Last;

impl Merge for Last {
    fn name(&self) -> &'static str {
        "last"
    }

    fn full(&self, _key: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
        operands
            .last()
            .copied()
            .or(below)
            .unwrap_or_default()
            .to_vec()
    }

    fn partial(&self, _key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        operands.last().map(|newest| newest.to_vec())
    }
}

#[test]
fn tables_that_lie_apart_by_place_hold_no_operands_and_need_an_extractor() {
    let vfs = Arc::new(MemoryVfs::new());
    let (db, _) = open(&vfs, Arc::new(Cells::default()));
    let with_merge = KeyspaceOptions {
        merge: Some(Arc::new(Last)),
        ..space_options(Arc::new(Cells::default()))
    };
    let without_extractor = KeyspaceOptions {
        extractor: None,
        ..space_options(Arc::new(Cells::default()))
    };
    for options in [with_merge, without_extractor] {
        let refused = db.create_keyspace("other", options).unwrap_err();
        assert_eq!(refused.code(), "invalid_argument");
    }
}

/// An invalid layout, which moves the newest flushed run below older ones.
#[derive(Debug)]
struct Upside;

impl TableLayout for Upside {
    fn name(&self) -> &'static str {
        "upside"
    }

    fn choose(&self, shape: &KeyspaceShape<'_>) -> Option<CompactionPlan> {
        if shape.runs(0).count() < 2 {
            return None;
        }
        let newest = shape.runs(0).next()?;
        Some(CompactionPlan::merge(newest.tables(), 1))
    }
}

#[test]
fn a_plan_that_would_put_older_entries_over_newer_ones_is_refused() {
    let vfs = Arc::new(MemoryVfs::new());
    let (db, space) = open(&vfs, Arc::new(Upside));
    for note in [1, 2] {
        let mut batch = WriteBatch::new();
        batch.put(&space, b"object", &value_of(0.0, 0.0, note));
        db.write(batch, Durability::Buffered).unwrap();
        // The writer that flushes also compacts: the second time, it reaches the invalid plan.
        let _ = db.flush();
    }
    assert!(db.compact_due(&space).is_err());
    assert_eq!(
        *db.get(&space, b"object").unwrap().unwrap(),
        *value_of(0.0, 0.0, 2)
    );
}
