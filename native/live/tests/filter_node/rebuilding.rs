//! Ticks, gaps, and rebuilds.

use rillbase_live::filter_node::{FilterNode, FilterNodeConfig, Input};
use rillbase_live::message::{FencingToken, WriteEntry};
use rillbase_live::node::Begin;

use super::stage::{Stage, positive};
use crate::common::{COLLECTION, at, image, query, register, row, sorted, tick, until, without};

#[test]
fn ticks_are_emitted_in_order_and_former_relays_are_ignored() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(1), &[], true));
    node.write(image(1, "a", 1, Some(5)));
    assert_eq!(node.tick(until(2)), ["tick 2"]);
    let mut newer = tick(3, until(3));
    newer.token = FencingToken(2);
    assert_eq!(node.entry(WriteEntry::Tick(newer)), ["tick 3"]);
    assert!(node.entry(WriteEntry::Tick(tick(4, until(9)))).is_empty());
}

#[test]
fn a_node_that_missed_entries_is_rebuilt_and_silent_until_then() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(1), &[], true));
    let ahead = WriteEntry::Tick(tick(3, until(2)));
    assert_eq!(node.entry(ahead), ["rebuild Lost"]);
    assert!(node.write(image(2, "a", 1, Some(5))).is_empty());
    assert!(node.tick(until(3)).is_empty());
}

#[test]
fn another_incarnation_rebuilds_the_node() {
    let mut node = Stage::new();
    node.tick(until(2));
    let mut other = tick(2, until(3));
    other.incarnation = [2; 16];
    assert_eq!(node.entry(WriteEntry::Tick(other)), ["rebuild Incarnation"]);
}

#[test]
fn a_rebuild_reports_members_in_parts_and_replays_what_its_snapshot_does_not_see() {
    let config = FilterNodeConfig {
        rebase_bytes: 200,
        ..FilterNodeConfig::new(0, 1, FencingToken(2))
    };
    let mut node = Stage {
        node: FilterNode::new(config),
        now_us: 1_000_000,
        read: 100,
        requests: 0,
    };
    assert_eq!(node.give(Input::Start), ["start"]);
    for query in [positive(), sorted("s", 0, 1, 0), positive()] {
        assert!(node.give(Input::Queries(vec![query])).is_empty());
    }
    node.give(Input::Begin(Begin {
        position: at(100),
        count: 40,
        requests: at(0),
        snapshot: without(9, &[7]),
        rules: std::collections::HashMap::new(),
    }));
    let rows = ["a", "b", "c", "d"].map(|id| row(id, 1, if id == "d" { -1 } else { 1 }));
    let part = node.give(Input::Rows {
        collection: COLLECTION,
        rows: rows.to_vec(),
    });
    assert_eq!(part, ["rebase q [a@1 b@1] …"]);
    let end = ["rebase q 1 [c@1]", "active q 1", "empty s 1", "rebased"];
    assert_eq!(node.give(Input::End), end);
    assert!(node.write(image(6, "a", 1, Some(1))).is_empty());
    assert_eq!(node.write(image(7, "b", 2, Some(-1))), ["b@2 -q -s"]);
    assert_eq!(node.write(image(9, "a", 2, Some(2))), ["a@2 =q =s"]);
    let right = WriteEntry::Tick(tick(44, until(9)));
    assert_eq!(node.entry(right), ["tick 44"]);
}

#[test]
fn a_write_that_the_rebuild_saw_reaches_a_query_that_was_read_before_it() {
    let mut node = Stage {
        node: FilterNode::new(FilterNodeConfig::new(0, 1, FencingToken(2))),
        now_us: 1_000_000,
        read: 100,
        requests: 0,
    };
    node.give(Input::Start);
    let other = query("other", r#"{"n":{"$gt":0}}"#);
    node.give(Input::Queries(vec![other]));
    node.give(Input::Begin(Begin {
        position: at(100),
        count: 0,
        requests: at(0),
        snapshot: until(6),
        rules: std::collections::HashMap::new(),
    }));
    let rows = vec![row("a", 1, 5)];
    node.give(Input::Rows {
        collection: COLLECTION,
        rows,
    });
    node.give(Input::End);
    node.ask(register(&positive(), 100, &until(5), &[], true));
    assert_eq!(node.write(image(5, "a", 1, Some(5))), ["a@1 +q"]);
}

#[test]
fn documents_of_other_partitions_are_ignored() {
    let mut first = Stage::with(FilterNodeConfig::new(0, 2, FencingToken(1)), &[]);
    let mut second = Stage::with(FilterNodeConfig::new(1, 2, FencingToken(1)), &[]);
    let rows = [row("a", 1, 5)];
    let mut output = 0;
    for node in [&mut first, &mut second] {
        node.ask(register(&positive(), 100, &until(2), &rows, true));
        output += node.write(image(2, "a", 2, None)).len();
    }
    assert_eq!(output, 1);
}
