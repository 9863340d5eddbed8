//! Views show the same as grouping the current documents.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::support::{NAMESPACE, World};
use rillbase_engine::vfs::SeededRandom;

const STOCK: &str = r#"{"source":"view","dimensions":["shop"],"measures":{
    "n":{"op":"count"},"worth":{"op":"sum","field":"price","type":"decimal","scale":2},
    "double":{"op":"sum","field":"price"},
    "low":{"op":"min","field":"price"},"high":{"op":"max","field":"price"},
    "kinds":{"op":"distinct","field":"kind"},"top":{"op":"top","field":"kind","k":2}}}"#;

#[derive(Debug, Clone)]
struct Item {
    shop: u64,
    /// The price in quarters.
    price: u64,
    kind: u64,
}

/// A change: key, version, and the document if there is one.
type Change = (u64, u64, Option<Item>);

fn json((key, version, item): &Change) -> String {
    let row = item.as_ref().map_or("null".to_owned(), |item| {
        let price = item.price as f64 / 4.0;
        format!(
            r#"{{"shop":"s{}","price":{price},"kind":"k{}"}}"#,
            item.shop, item.kind
        )
    });
    format!(r#"{{"key":{key},"version":{version},"row":{row}}}"#)
}

fn number(quarters: u64) -> String {
    let number = quarters as f64 / 4.0;
    if number.fract() == 0.0 {
        format!("{number:.0}")
    } else {
        number.to_string()
    }
}

/// The result of grouping the documents.
fn grouped(documents: &BTreeMap<u64, Item>) -> String {
    let mut shops: BTreeMap<u64, Vec<&Item>> = BTreeMap::new();
    for item in documents.values() {
        shops.entry(item.shop).or_default().push(item);
    }
    let mut out = String::from("[");
    for (shop, items) in shops {
        let worth: u64 = items.iter().map(|item| item.price).sum();
        let mut kinds: BTreeMap<u64, u64> = BTreeMap::new();
        items
            .iter()
            .for_each(|item| *kinds.entry(item.kind).or_default() += 1);
        let mut top: Vec<(u64, u64)> = kinds.into_iter().collect();
        let distinct = top.len();
        top.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let top: Vec<String> = top
            .iter()
            .take(2)
            .map(|(kind, count)| format!(r#"{{"value":"k{kind}","count":{count}}}"#))
            .collect();
        let prices = || items.iter().map(|item| item.price);
        let double = worth as f64 / 4.0;
        let double = if double.fract() == 0.0 {
            format!("{double:.1}")
        } else {
            double.to_string()
        };
        write!(
            out,
            r#"{}{{"shop":"s{shop}","n":{},"worth":"{:.2}","double":{double},"low":{},"high":{},"kinds":{distinct},"top":[{}]}}"#,
            if out.len() > 1 { "," } else { "" },
            items.len(),
            worth as f64 / 4.0,
            number(prices().min().unwrap()),
            number(prices().max().unwrap()),
            top.join(",")
        )
        .unwrap();
    }
    out + "]"
}

/// Random changes, sent repeatedly, some late, with flushes, compactions and restarts in between.
fn agrees(seed: u64) {
    let mut world = World::new(seed);
    let mut random = SeededRandom::new(seed);
    let generation = world.define("stock", STOCK);
    let mut documents: BTreeMap<u64, Item> = BTreeMap::new();
    let mut versions: BTreeMap<u64, u64> = BTreeMap::new();
    let mut history: Vec<Change> = Vec::new();
    for turn in 0..15 {
        let first = history.len();
        for _ in 0..random.below(12) {
            let key = random.below(12);
            let version = versions.entry(key).and_modify(|one| *one += 1).or_insert(1);
            let item = (!random.one_in(4)).then(|| Item {
                shop: random.below(3),
                price: random.below(40),
                kind: random.below(5),
            });
            match &item {
                Some(item) => drop(documents.insert(key, item.clone())),
                None => drop(documents.remove(&key)),
            }
            history.push((key, *version, item));
        }
        let mut sent: BTreeSet<usize> = (first..history.len()).collect();
        // Some earlier changes are sent again.
        for _ in 0..random.below(4) {
            sent.insert(random.below(1 + history.len() as u64) as usize);
        }
        let changes: Vec<String> = sent
            .iter()
            .filter_map(|&at| history.get(at).map(json))
            .collect();
        let position = format!("{}-{}", 1000 + turn, random.below(3));
        assert!(
            world
                .apply("stock", generation, ("p0", &position), &changes)
                .unwrap()
        );
        if random.one_in(2) {
            // Repeating them changes nothing.
            let place = ("p0", position.as_str());
            assert!(!world.apply("stock", generation, place, &changes).unwrap());
        }
        world.disturb(&mut random);
        assert_eq!(
            world.rows("stock", "{}"),
            grouped(&documents),
            "seed {seed}, turn {turn}"
        );
        let positions = world.aggregates().positions(generation).unwrap();
        assert_eq!(positions, [("p0".to_owned(), position)]);
    }
}

#[test]
fn a_view_equals_grouping_the_documents_whatever_came_twice_or_late() {
    (0..12).for_each(agrees);
}

#[test]
#[ignore = "takes minutes: the long suite runs it"]
fn a_view_equals_grouping_the_documents_in_many_more_histories() {
    (1_000..6_000).for_each(agrees);
}

#[test]
fn view_rows_without_documents_are_removed() {
    let world = World::new(8);
    let generation = world.define("stock", STOCK);
    let item = |shop, price| {
        Some(Item {
            shop,
            price,
            kind: 0,
        })
    };
    let apply = |turn: u64, changes: &[Change]| {
        let changes: Vec<String> = changes.iter().map(json).collect();
        let place = format!("{turn}");
        world
            .apply("stock", generation, ("p0", &place), &changes)
            .unwrap();
        world.db().flush().unwrap();
    };
    apply(1, &[(1, 1, item(0, 4)), (2, 1, item(1, 8))]);
    let before = world.db().snapshot();
    apply(2, &[(1, 2, item(1, 12))]);
    apply(3, &[(2, 2, None)]);
    world.count_compacted("aggregates.rows");
    let shops = r#"{"measures":["n","low"]}"#;
    assert_eq!(
        world.rows_at("stock", shops, &before),
        r#"[{"shop":"s0","n":1,"low":1},{"shop":"s1","n":1,"low":2}]"#
    );
    drop(before);
    let left = ["aggregates.rows", "aggregates.items"].map(|name| world.count_compacted(name));
    assert_eq!(left, [1, 4], "a shop, and a value of each measure");
    assert_eq!(
        world.rows("stock", shops),
        r#"[{"shop":"s1","n":1,"low":3}]"#
    );
}

#[test]
fn a_snapshot_from_before_a_switch_shows_the_rows_of_that_time() {
    let world = World::new(9);
    let store = world.aggregates();
    let define = |replaces| {
        let whose = (NAMESPACE, "stock");
        store.define(whose, STOCK, replaces).unwrap()
    };
    let item = |price| {
        json(&(
            price,
            1,
            Some(Item {
                shop: 0,
                price,
                kind: 0,
            }),
        ))
    };
    let apply = |generation: u64, price: u64| {
        let place = format!("{price}");
        world
            .apply("stock", generation, ("p0", &place), &[item(price)])
            .unwrap();
    };
    let counted = r#"{"measures":["n"]}"#;
    let first = define(false);
    apply(first, 1);
    let early = world.db().snapshot();
    apply(first, 2);
    store.switch(&world.find("stock"), first).unwrap();
    let whole = world.db().snapshot();
    let second = define(true);
    apply(second, 1);
    let half = world.db().snapshot();
    apply(second, 2);
    store.switch(&world.find("stock"), second).unwrap();
    for moment in [&whole, &half] {
        let rows = world.rows_at("stock", counted, moment);
        assert_eq!(rows, r#"[{"shop":"s0","n":2}]"#);
    }
    assert_eq!(world.rows("stock", counted), r#"[{"shop":"s0","n":2}]"#);
    let aggregate = world.find("stock");
    let refused = store.query(&aggregate, &world.query(counted), &early, None);
    let expected = "the snapshot is older than the first rows of this aggregate";
    assert_eq!(refused.unwrap_err().to_string(), expected);
}

#[test]
fn a_view_is_rebuilt_beside_the_current_one() {
    let world = World::new(7);
    let first = world.define("stock", STOCK);
    let change = |version: u64, shop: u64| {
        json(&(
            1,
            version,
            Some(Item {
                shop,
                price: 4,
                kind: 0,
            }),
        ))
    };
    world
        .apply("stock", first, ("p0", "5"), &[change(1, 0)])
        .unwrap();
    let store = world.aggregates();
    let second = store.define((NAMESPACE, "stock"), STOCK, true).unwrap();
    world
        .apply("stock", second, ("p0", "-"), &[change(2, 1)])
        .unwrap();
    let shops = r#"{"measures":["n"]}"#;
    assert_eq!(world.rows("stock", shops), r#"[{"shop":"s0","n":1}]"#);
    store.switch(&world.find("stock"), second).unwrap();
    assert_eq!(world.rows("stock", shops), r#"[{"shop":"s1","n":1}]"#);
    assert_eq!(store.positions(second).unwrap(), []);
    let gone = world.apply("stock", first, ("p0", "6"), &[]).unwrap_err();
    assert_eq!(gone.to_string(), "the generation does not exist (any more)");
}
