//! Transactions over several aggregates are visible as a whole or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::support::{NAMESPACE, World, commit};
use rillbase_aggregates::{Add, Aggregates, Staged};
use rillbase_engine::{Db, KeyspaceOptions};

const ACCOUNT: &str = r#"{"dimensions":["owner"],"measures":{"sum":{"op":"sum","field":"by","type":"int"}},"rollups":[[]]}"#;
const ALL: &str = r#"{"group_by":[]}"#;

/// Moves money from one aggregate to the other, as one transaction.
fn transfer(db: &Db, store: &Aggregates, amount: u64) {
    let mut staged = Staged::default();
    for (name, sign) in [("left", "-"), ("right", "")] {
        let event = format!(r#"{{"owner":"o{}","by":{sign}{amount}}}"#, amount % 3);
        let aggregate = store.find(NAMESPACE, name).unwrap();
        let add = Add::read(&aggregate, [event.as_bytes()].into_iter(), db.now()).unwrap();
        store.stage(&mut staged, &add).unwrap();
    }
    commit(db, store, (staged, db.begin().unwrap())).unwrap();
}

fn sum(rows: &str) -> i64 {
    let number = rows
        .trim_start_matches(r#"[{"sum":"#)
        .trim_end_matches("}]");
    number.parse().unwrap_or(0)
}

#[test]
fn transfers_between_aggregates_always_sum_to_zero() {
    let mut world = World::new(11);
    world.define("left", ACCOUNT);
    world.define("right", ACCOUNT);
    let (is_over, checked) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let snapshot = world.db().snapshot();
                let [left, right] =
                    ["left", "right"].map(|name| sum(&world.rows_at(name, ALL, &snapshot)));
                assert_eq!(left + right, 0);
                checked.fetch_add(1, Ordering::Relaxed);
            }
        });
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let (db, store) = (Arc::clone(world.db()), world.aggregates());
                scope.spawn(move || {
                    (1..200).for_each(|amount| transfer(&db, store, amount * 7 + writer));
                })
            })
            .collect();
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        while checked.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let expected: i64 = (0..3)
        .flat_map(|writer| (1..200).map(move |n| n * 7 + writer))
        .sum();
    assert_eq!(sum(&world.rows("right", ALL)), expected);
    world.crash(true);
    assert_eq!(sum(&world.rows("left", ALL)), -expected);
}

#[test]
fn a_transaction_sees_what_it_adds_and_others_do_not() {
    let world = World::new(12);
    world.define("left", ACCOUNT);
    world
        .add("left", &[r#"{"owner":"a","by":1}"#.to_owned()])
        .unwrap();
    let (db, store) = (world.db(), world.aggregates());
    let transaction = db.begin().unwrap();
    let mut staged = Staged::default();
    let add = world
        .read("left", &[r#"{"owner":"a","by":5}"#.to_owned()])
        .unwrap();
    store.stage(&mut staged, &add).unwrap();
    world
        .add("left", &[r#"{"owner":"a","by":10}"#.to_owned()])
        .unwrap();
    let query = world.query(ALL);
    let own = store.query(
        &world.find("left"),
        &query,
        transaction.snapshot(),
        Some(staged.deltas()),
    );
    assert_eq!(own.unwrap().json(), r#"[{"sum":6}]"#);
    assert_eq!(world.rows("left", ALL), r#"[{"sum":11}]"#);
    commit(db, store, (staged, transaction)).unwrap();
    assert_eq!(world.rows("left", ALL), r#"[{"sum":16}]"#);
}

#[test]
fn the_first_commit_wins_on_ordinary_rows_and_aggregates_never_conflict() {
    let world = World::new(13);
    world.define("left", ACCOUNT);
    let (db, store) = (world.db(), world.aggregates());
    let values = db
        .create_keyspace("values", KeyspaceOptions::default())
        .unwrap();
    let begin = |key: Option<&[u8]>| {
        let mut transaction = db.begin().unwrap();
        if let Some(key) = key {
            transaction.put(&values, key, b"mine");
        }
        let mut staged = Staged::default();
        let add = world
            .read("left", &[r#"{"owner":"a","by":1}"#.to_owned()])
            .unwrap();
        store.stage(&mut staged, &add).unwrap();
        (transaction, staged)
    };
    let (first, second, third) = (begin(Some(b"key")), begin(Some(b"key")), begin(None));
    commit(db, store, (second.1, second.0)).unwrap();
    let lost = commit(db, store, (first.1, first.0)).unwrap_err();
    assert!(
        lost.to_string().contains("written by another transaction"),
        "{lost}"
    );
    commit(db, store, (third.1, third.0)).unwrap();
    assert_eq!(world.rows("left", ALL), r#"[{"sum":2}]"#);
}

#[test]
fn of_two_writers_of_the_same_event_one_adds_it() {
    let world = World::new(14);
    world.define("left", ACCOUNT);
    let (db, store) = (world.db(), world.aggregates());
    let event = [r#"{"owner":"a","by":1,"event_id":"once"}"#.to_owned()];
    let transaction = db.begin().unwrap();
    let mut staged = Staged::default();
    let fresh = store
        .stage(&mut staged, &world.read("left", &event).unwrap())
        .unwrap();
    assert_eq!(fresh, [true]);
    assert_eq!(world.add("left", &event).unwrap(), [true]);
    assert!(commit(db, store, (staged, transaction)).is_err());
    assert_eq!(world.add("left", &event).unwrap(), [false]);
    assert_eq!(world.rows("left", ALL), r#"[{"sum":1}]"#);
    let counts = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..50 {
                    let event = [format!(r#"{{"owner":"b","by":1,"event_id":"n{number}"}}"#)];
                    let fresh = world.add("left", &event).unwrap();
                    counts.fetch_add(u64::from(fresh[0]), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(counts.load(Ordering::Relaxed), 50);
    assert_eq!(world.rows("left", ALL), r#"[{"sum":51}]"#);
}
