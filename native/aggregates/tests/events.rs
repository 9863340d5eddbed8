//! Events are counted once, read at one snapshot, and stay exact through flushes, compactions and
//! crashes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::support::{NAMESPACE, NOW, World};
use rillbase_engine::vfs::SeededRandom;
use rillbase_engine::{Durability, WriteBatch};

const CALLS: &str = r#"{"dimensions":["customer","app"],"time":{"field":"at","bucket":"5m"},
    "measures":{"n":{"op":"count"},"total":{"op":"sum","field":"ms","type":"decimal","scale":1},
    "low":{"op":"min","field":"ms"},"peak":{"op":"max","field":"ms"},
    "mean":{"op":"avg","field":"ms","type":"int"}},
    "rollups":[["customer"],["app"]],"retention":"30d"}"#;

/// One event of the model.
#[derive(Debug, Clone)]
struct Call {
    customer: u64,
    app: u64,
    at: u64,
    ms: u64,
    id: Option<u64>,
}

impl Call {
    fn random(random: &mut SeededRandom) -> Self {
        Self {
            customer: random.below(3),
            app: random.below(2),
            at: NOW + random.below(4) * 150_000,
            ms: random.below(1000),
            id: random.one_in(2).then(|| random.below(40)),
        }
    }

    fn json(&self) -> String {
        let id = self
            .id
            .map_or(String::new(), |id| format!(r#","event_id":"e{id}""#));
        format!(
            r#"{{"customer":"c{}","app":{},"at":{},"ms":{}{id}}}"#,
            self.customer, self.app, self.at, self.ms
        )
    }
}

/// The events that were added, in order.
#[derive(Debug, Clone, Default)]
struct Model(Vec<Call>);

impl Model {
    fn add(&mut self, calls: &[Call]) -> Vec<bool> {
        let add = |call: &Call| {
            let is_known = call.id.is_some() && self.0.iter().any(|known| known.id == call.id);
            if !is_known {
                self.0.push(call.clone());
            }
            !is_known
        };
        calls.iter().map(add).collect()
    }

    /// The rows by customer and bucket, as JSON.
    fn rows(&self, only: Option<u64>) -> String {
        let mut groups: BTreeMap<(u64, u64), Vec<u64>> = BTreeMap::new();
        for call in self
            .0
            .iter()
            .filter(|call| only.is_none_or(|app| call.app == app))
        {
            let bucket = (call.at - NOW) / 300_000;
            groups
                .entry((call.customer, bucket))
                .or_default()
                .push(call.ms);
        }
        let mut out = String::from("[");
        for ((customer, bucket), ms) in &groups {
            let (n, total): (usize, u64) = (ms.len(), ms.iter().sum());
            let mean = total as f64 / n as f64;
            let separator = if out.len() > 1 { "," } else { "" };
            let (low, peak) = (ms.iter().min().unwrap(), ms.iter().max().unwrap());
            let mean = if mean.fract() == 0.0 {
                format!("{mean:.1}")
            } else {
                mean.to_string()
            };
            write!(
                out,
                r#"{separator}{{"customer":"c{customer}","at":"2026-01-01T00:{:02}:00Z","n":{n},"total":"{total}.0","low":{low},"peak":{peak},"mean":{mean}}}"#,
                bucket * 5
            )
            .unwrap();
        }
        out + "]"
    }
}

/// Random transactions, with flushes, compactions and restarts between them; snapshots keep seeing
/// the same.
fn agrees(seed: u64) {
    let mut world = World::new(seed);
    let mut random = SeededRandom::new(seed);
    let mut model = Model::default();
    world.define("calls", CALLS);
    let asked = r#"{"group_by":["customer","at"]}"#;
    let narrow = r#"{"filter":{"app":1},"rollup":["customer","app"],"group_by":["customer","at"]}"#;
    for turn in 0..12 {
        let held = (world.db().snapshot(), model.clone());
        for _ in 0..random.below(8) {
            let count = 1 + random.below(5);
            let calls: Vec<Call> = (0..count).map(|_| Call::random(&mut random)).collect();
            let events: Vec<String> = calls.iter().map(Call::json).collect();
            assert_eq!(
                world.add("calls", &events).unwrap(),
                model.add(&calls),
                "seed {seed}"
            );
        }
        let context = format!("seed {seed}, turn {turn}");
        if random.one_in(2) {
            world.db().flush().unwrap();
        }
        assert_eq!(
            world.rows_at("calls", asked, &held.0),
            held.1.rows(None),
            "{context}"
        );
        drop(held);
        world.disturb(&mut random);
        assert_eq!(world.rows("calls", asked), model.rows(None), "{context}");
        assert_eq!(
            world.rows("calls", narrow),
            model.rows(Some(1)),
            "{context}"
        );
    }
}

#[test]
fn every_snapshot_equals_the_model_whatever_happens_in_between() {
    (0..12).for_each(agrees);
}

#[test]
#[ignore = "takes minutes: the long suite runs it"]
fn every_snapshot_equals_the_model_in_many_more_histories() {
    (1_000..6_000).for_each(agrees);
}

#[test]
fn a_call_is_rejected_as_a_whole_and_the_error_names_the_event() {
    let world = World::new(1);
    world.define("calls", CALLS);
    for (event, expected) in [
        (r#"{"ms":"slow"}"#.to_owned(), "1 /ms 'ms' is not a number"),
        (
            r#"{"ms":1.25}"#.to_owned(),
            "1 /ms 'ms' has more decimal places than the measure",
        ),
        (r#"{"ms":1"#.to_owned(), "1 - "),
        (
            format!(r#"{{"event_id":"a","at":{}}}"#, NOW - 86_400_000),
            "1 /at the event is older than 24 hours, the time for which ids are remembered",
        ),
        (
            format!(r#"{{"at":{}}}"#, NOW - 40 * 86_400_000),
            "1 /at the event is older than the aggregate's retention",
        ),
    ] {
        let refusal = world.add("calls", &["{}".to_owned(), event]).unwrap_err();
        assert!(refusal.to_string().starts_with(expected), "{refusal}");
    }
    assert_eq!(world.rows("calls", "{}"), "[]");
}

#[test]
fn buckets_that_are_past_their_retention_are_not_shown_and_then_not_kept() {
    let world = World::new(2);
    world.define("calls", CALLS);
    world.add("calls", &[r#"{"ms":1}"#.to_owned()]).unwrap();
    world.db().flush().unwrap();
    world.clock.advance(30 * 86_400_000 + 299_999);
    world.add("calls", &[r#"{"ms":2}"#.to_owned()]).unwrap();
    let counted = r#"{"group_by":[],"measures":["n"]}"#;
    assert_eq!(world.rows("calls", counted), r#"[{"n":2}]"#);
    world.clock.advance(1);
    assert_eq!(world.rows("calls", counted), r#"[{"n":1}]"#);
    let left = world.count_compacted("aggregates.rows");
    assert_eq!(left, 3, "the new bucket's row of each rollup");
}

#[test]
fn rows_are_sorted_limited_and_compared_with_the_previous_period() {
    let world = World::new(3);
    world.define("calls", CALLS);
    let call = |customer: &str, minute: u64, ms: u64| {
        let at = NOW + minute * 60_000;
        format!(r#"{{"customer":"{customer}","app":0,"at":{at},"ms":{ms}}}"#)
    };
    let calls = [
        call("a", 1, 10),
        call("a", 2, 20),
        call("a", 7, 40),
        call("b", 6, 5),
    ];
    world.add("calls", &calls).unwrap();
    let compared = r#"{"group_by":["customer","at"],"from":1767225900000,"measures":["mean"],
        "compare":"previous","order":[["mean",-1]]}"#;
    assert_eq!(
        world.rows("calls", compared),
        r#"[{"customer":"a","at":"2026-01-01T00:05:00Z","mean":40.0,"previous":{"mean":15.0}},{"customer":"b","at":"2026-01-01T00:05:00Z","mean":5.0,"previous":null}]"#
    );
    let first =
        r#"{"group_by":["customer"],"order":[["total",-1]],"limit":1,"measures":["total"]}"#;
    assert_eq!(
        world.rows("calls", first),
        r#"[{"customer":"a","total":"70.0"}]"#
    );
    let hour = r#"{"group_by":["at"],"bucket":"1h","measures":["n"]}"#;
    assert_eq!(
        world.rows("calls", hour),
        r#"[{"at":"2026-01-01T00:00:00Z","n":4}]"#
    );
    let some =
        r#"{"group_by":["customer"],"filter":{"customer":{"$in":["b","z"]}},"measures":["n"]}"#;
    assert_eq!(world.rows("calls", some), r#"[{"customer":"b","n":1}]"#);
    let pattern = r#"{"group_by":["customer"],"filter":{"customer":{"$regex":"^[ab]$"},"app":{"$gte":0}},"measures":["n"]}"#;
    assert_eq!(
        world.rows("calls", pattern),
        r#"[{"customer":"a","n":3},{"customer":"b","n":1}]"#
    );
}

/// Rows that are stored in the order of the result are passed while they are read; any other order
/// needs all of them.
#[test]
fn rows_are_the_same_whether_or_not_their_order_is_requested() {
    let mut world = World::new(5);
    let mut random = SeededRandom::new(5);
    world.define("calls", CALLS);
    for _ in 0..6 {
        let calls = (0..20).map(|_| Call::random(&mut random).json());
        world.add("calls", &calls.collect::<Vec<_>>()).unwrap();
        world.disturb(&mut random);
    }
    let filters = [
        "{}",
        r#"{"customer":"c1"}"#,
        r#"{"app":{"$in":[0,1]}}"#,
        r#"{"app":1,"customer":{"$ne":"c0"}}"#,
    ];
    let groups: [&[&str]; 9] = [
        &[],
        &["customer"],
        &["app"],
        &["at"],
        &["app", "customer"],
        &["customer", "at"],
        &["at", "customer"],
        &["customer", "app", "at"],
        &["at", "app", "customer"],
    ];
    for (filter, group, limit) in filters
        .iter()
        .flat_map(|filter| groups.map(|group| (filter, group)))
        .flat_map(|(filter, group)| [1, 2, 3, 100].map(|limit| (filter, group, limit)))
    {
        let order: Vec<String> = group
            .iter()
            .map(|name| format!(r#"["{name}",1]"#))
            .collect();
        let asked = format!(
            r#"{{"rollup":["customer","app"],"filter":{filter},"group_by":{group:?},"limit":{limit},"bucket":"10m""#
        );
        let sorted = format!(r#"{asked},"order":[{}]}}"#, order.join(","));
        assert_eq!(
            world.rows("calls", &format!("{asked}}}")),
            world.rows("calls", &sorted),
            "{sorted}"
        );
    }
}

#[test]
fn a_query_that_makes_no_sense_is_refused_with_its_place() {
    let world = World::new(4);
    world.define("calls", CALLS);
    for (query, expected) in [
        (
            r#"{"group_by":["server"]}"#,
            "/group_by/0 'server' is not a dimension",
        ),
        (
            r#"{"filter":{"ms":1}}"#,
            "/filter/ms 'ms' is not a dimension",
        ),
        (
            r#"{"rollup":["app"],"group_by":["customer"]}"#,
            "/group_by/0 'customer' is not a dimension",
        ),
        (r#"{"rollup":["at"]}"#, "/rollup no rollup has"),
        (
            r#"{"measures":["p99"]}"#,
            "/measures/0 'p99' is not a measure",
        ),
        (r#"{"order":[["p99",1]]}"#, "/order/0 'p99' is not shown"),
        (r#"{"bucket":"7m"}"#, "/bucket it must be a multiple"),
        (
            r#"{"group_by":[],"compare":"previous"}"#,
            "/compare the period needs",
        ),
    ] {
        let refusal = world.refusal("calls", query);
        assert!(refusal.starts_with(expected), "{refusal}");
    }
}

#[test]
fn sketches_and_top_values_answer_within_what_they_state() {
    let world = World::new(5);
    world.define(
        "visits",
        r#"{"measures":{"users":{"op":"distinct","field":"user"},
        "ms":{"op":"quantiles","field":"ms","quantiles":[0.5,0.99]},
        "pages":{"op":"top","field":"page","k":2},"sum":{"op":"sum","field":"ms"}}}"#,
    );
    let visit = |n: u64| {
        let page = if n.is_multiple_of(3) { n % 100 } else { n % 2 };
        format!(
            r#"{{"user":"u{}","ms":{}.5,"page":"p{page}"}}"#,
            n % 250,
            n + 1
        )
    };
    let visits: Vec<String> = (0..1000).map(visit).collect();
    for some in visits.chunks(100) {
        world.add("visits", some).unwrap();
    }
    let rows = world.rows("visits", "{}");
    let number = |name: &str| -> f64 {
        let at = rows.find(&format!("\"{name}\":")).unwrap() + name.len() + 3;
        let end = rows[at..].find([',', '}']).unwrap();
        rows[at..at + end].parse().unwrap()
    };
    assert!((number("users") - 250.0).abs() <= 16.0, "{rows}");
    assert!((number("0.5") - 500.5).abs() <= 6.0, "{rows}");
    assert!((number("0.99") - 990.5).abs() <= 11.0, "{rows}");
    assert!(
        rows.contains(r#""pages":[{"value":"p0","count":"#),
        "{rows}"
    );
    assert!(rows.contains(r#""sum":501000.0"#), "{rows}");
}

#[test]
fn a_row_takes_a_hundred_thousand_values_and_no_other() {
    let mut world = World::new(9);
    let definition = r#"{"dimensions":["site"],"measures":{"pages":{"op":"top","field":"page"}}}"#;
    world.define("visits", definition);
    let visit = |n: u64| format!(r#"{{"site":"a","page":{n}}}"#);
    for first in (0..100_000).step_by(4000) {
        let visits: Vec<String> = (first..first + 4000).map(visit).collect();
        world.add("visits", &visits).unwrap();
    }
    let other = |world: &World| {
        let refused = world.add("visits", &[visit(7), visit(100_000)]);
        refused.unwrap_err().to_string()
    };
    let expected = "1 /page a row has 100,000 different values of 'page', the maximum";
    assert_eq!(other(&world), expected);
    world.add("visits", &[visit(7)]).unwrap();
    let elsewhere = r#"{"site":"b","page":-1}"#.to_owned();
    world.add("visits", &[elsewhere]).unwrap();
    world.crash(false);
    assert_eq!(other(&world), expected);
    let most = world.rows("visits", r#"{"filter":{"site":"a"}}"#);
    assert!(
        most.starts_with(r#"[{"site":"a","pages":[{"value":7,"count":2}"#),
        "{most}"
    );
}

#[test]
fn rows_are_rebuilt_from_all_events_whose_buckets_are_kept() {
    let world = World::new(10);
    world.define("calls", CALLS);
    let events = [r#"{"ms":1}"#.to_owned(), r#"{"ms":2}"#.to_owned()];
    world.add("calls", &events).unwrap();
    // Within the retention after the bucket's end, not after the events.
    world.clock.advance(30 * 86_400_000 + 299_999);
    let store = world.aggregates();
    let whose = (NAMESPACE, "calls");
    let second = store.define(whose, CALLS, true).unwrap();
    while store.fill().unwrap() {}
    store.switch(&world.find("calls"), second).unwrap();
    let counted = r#"{"group_by":[],"measures":["n"]}"#;
    assert_eq!(world.rows("calls", counted), r#"[{"n":2}]"#);
}

#[test]
fn remains_of_a_dropped_aggregate_are_deleted_at_the_next_start() {
    let mut world = World::new(11);
    world.define("calls", CALLS);
    world.define("kept", CALLS);
    let call = [r#"{"customer":"a","app":1,"event_id":"e"}"#.to_owned()];
    world.add("calls", &call).unwrap();
    world.add("kept", &call).unwrap();
    // Simulates a process that ends between the two writes of a drop.
    let catalog = world.db().keyspace("aggregates.catalog").unwrap();
    let mut batch = WriteBatch::new();
    let key = [b"a", &NAMESPACE.to_be_bytes()[..], b"calls"].concat();
    batch.delete(&catalog, &key);
    world.db().write(batch, Durability::Sync).unwrap();
    world.crash(false);
    assert_eq!(world.count("aggregates.rows"), 3);
    assert_eq!(world.count("aggregates.facts"), 1);
    assert_eq!(world.count("aggregates.ids"), 1);
    assert_eq!(world.add("kept", &call).unwrap(), [false]);
}

#[test]
fn another_definition_is_built_beside_the_current_one_and_has_earlier_events() {
    let world = World::new(6);
    let first = world.define("calls", CALLS);
    assert_eq!(world.define("calls", CALLS), first);
    let event = |ms: u64| format!(r#"{{"customer":"a","app":1,"ms":{ms}}}"#);
    world.add("calls", &[event(1), event(2)]).unwrap();
    let other = CALLS.replace("5m", "1h");
    let store = world.aggregates();
    let refused = store.define((NAMESPACE, "calls"), &other, false);
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("another definition")
    );
    let second = store.define((NAMESPACE, "calls"), &other, true).unwrap();
    world.add("calls", &[event(3)]).unwrap();
    let aggregate = world.find("calls");
    let early = store.switch(&aggregate, second).unwrap_err();
    assert_eq!(early.to_string(), "the generation is still being filled");
    while store.fill().unwrap() {}
    store.switch(&aggregate, second).unwrap();
    let rows = world.rows("calls", r#"{"group_by":["at"],"measures":["n","total"]}"#);
    assert_eq!(
        rows,
        r#"[{"at":"2026-01-01T00:00:00Z","n":3,"total":"6.0"}]"#
    );
    assert!(
        world
            .refusal("calls", r#"{"bucket":"5m"}"#)
            .starts_with("/bucket")
    );
}
