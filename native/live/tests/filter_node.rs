//! The filter node, one interleaving after another.
#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::format_push_string,
    reason = "what a test did not expect fails it"
)]

mod common;

use common::{
    COLLECTION, at, bson, image, in_batch, lines, query, register, renewal, row, sorted, tick,
    until, without,
};
use rillbase_live::filter_node::{FilterNode, FilterNodeConfig, Input};
use rillbase_live::message::{
    AfterImage, FencingToken, ImageContent, NodeRequest, QueryDefinition, WriteEntry,
};
use rillbase_live::node::Begin;
use rillbase_live::snapshot::PgSnapshot;

/// A node, a clock, and a write stream that goes on.
struct Stage {
    node: FilterNode,
    now_us: u64,
    read: u64,
    requests: u64,
}

impl Stage {
    /// A running node of one partition that has read everything up to `at(100)`.
    fn new() -> Self {
        Self::with(FilterNodeConfig::new(0, 1, FencingToken(1)), &[])
    }

    fn with(config: FilterNodeConfig, queries: &[QueryDefinition]) -> Self {
        let mut node = Self {
            node: FilterNode::new(config),
            now_us: 1_000_000,
            read: 100,
            requests: 0,
        };
        node.give(Input::Start);
        node.give(Input::Begin(Begin {
            position: at(100),
            count: 0,
            requests: at(0),
            queries: queries.to_vec(),
            snapshot: until(1),
            rules: std::collections::HashMap::new(),
        }));
        node.give(Input::End);
        node
    }

    fn give(&mut self, input: Input) -> Vec<String> {
        let mut out = Vec::new();
        self.node.handle(input, self.now_us, &mut out);
        lines(&out)
    }

    fn entry(&mut self, entry: WriteEntry) -> Vec<String> {
        self.read += 1;
        let id = at(self.read);
        self.give(Input::Entry { id, entry })
    }

    fn write(&mut self, image: AfterImage) -> Vec<String> {
        self.entry(WriteEntry::Image(image))
    }

    /// The relay's tick, true about how many entries there were.
    fn tick(&mut self, snapshot: PgSnapshot) -> Vec<String> {
        let count = self.read - 100 + 1;
        self.entry(WriteEntry::Tick(tick(count, snapshot)))
    }

    fn ask(&mut self, request: NodeRequest) -> Vec<String> {
        self.requests += 1;
        let id = at(self.requests);
        self.give(Input::Request { id, request })
    }

    fn pass(&mut self, seconds: u64) {
        self.now_us += seconds * 1_000_000;
        self.give(Input::Idle);
    }
}

fn positive() -> QueryDefinition {
    query("q", r#"{"n":{"$gt":0}}"#)
}

#[test]
fn a_write_enters_stays_in_and_leaves_an_answer() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(1), &[], true));
    assert_eq!(node.write(image(1, "a", 1, Some(5))), ["a@1 +q"]);
    assert_eq!(node.write(image(2, "a", 2, Some(6))), ["a@2 =q"]);
    assert_eq!(node.write(image(3, "a", 3, Some(-1))), ["a@3 -q"]);
    assert!(node.write(image(4, "a", 4, Some(-2))).is_empty());
    assert_eq!(node.write(image(5, "a", 5, Some(1))), ["a@5 +q"]);
    assert_eq!(node.write(image(6, "a", 6, None)), ["a@6 -q"]);
}

#[test]
fn a_write_before_its_query_was_registered_is_replayed() {
    let mut node = Stage::new();
    assert!(node.write(image(5, "a", 1, Some(5))).is_empty());
    let answers = node.ask(register(&positive(), 100, &until(5), &[], true));
    assert_eq!(answers, ["a@1 +q", "active q 1"]);
}

#[test]
fn a_write_that_the_rows_contain_is_not_replayed() {
    let mut node = Stage::new();
    node.write(image(5, "a", 1, Some(5)));
    let rows = [row("a", 1, 5)];
    let answers = node.ask(register(&positive(), 100, &until(6), &rows, true));
    assert_eq!(answers, ["active q 1"]);
    assert_eq!(node.write(image(6, "a", 2, Some(-5))), ["a@2 -q"]);
}

#[test]
fn a_query_registered_before_a_write_that_its_rows_contain_ignores_it() {
    let mut node = Stage::new();
    let rows = [row("a", 1, 5)];
    node.ask(register(&positive(), 100, &until(6), &rows, true));
    assert!(node.write(image(5, "a", 1, Some(5))).is_empty());
}

#[test]
fn a_write_of_a_transaction_that_the_snapshot_found_running_is_told() {
    let mut node = Stage::new();
    node.write(image(5, "a", 1, Some(5)));
    let answers = node.ask(register(&positive(), 100, &without(9, &[5]), &[], true));
    assert_eq!(answers, ["a@1 +q", "active q 1"]);
}

#[test]
fn an_after_image_that_comes_after_a_newer_one_changes_nothing() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(1), &[], true));
    assert_eq!(node.write(image(2, "a", 2, Some(-5))), [""; 0]);
    assert!(node.write(image(1, "a", 1, Some(5))).is_empty());
}

#[test]
fn only_the_newest_of_several_versions_is_replayed() {
    let mut node = Stage::new();
    node.write(image(6, "a", 2, Some(-5)));
    node.write(image(5, "a", 1, Some(5)));
    let answers = node.ask(register(&positive(), 100, &until(5), &[], true));
    assert_eq!(answers, ["active q 1"]);
}

#[test]
fn a_repeated_after_image_changes_nothing() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(1), &[], true));
    node.write(image(1, "a", 1, Some(5)));
    assert!(node.write(image(1, "a", 1, Some(5))).is_empty());
    node.write(image(2, "a", 2, None));
    assert!(node.write(image(1, "a", 1, Some(5))).is_empty());
}

#[test]
fn a_delete_is_remembered_for_longer_than_anybody_publishes_late() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(1), &[], true));
    node.write(image(2, "a", 2, None));
    node.pass(59);
    assert!(node.write(image(1, "a", 1, Some(5))).is_empty());
}

#[test]
fn an_after_image_older_than_the_rows_that_was_delayed_past_a_tick_is_ignored() {
    // Version 2 was reported before the node started, so the node has no version to compare with.
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(9), &[], true));
    node.tick(until(20));
    node.pass(5);
    assert!(node.write(image(1, "a", 1, Some(5))).is_empty());
}

#[test]
fn a_document_deleted_and_inserted_again_around_the_registration_is_told_once() {
    let mut node = Stage::new();
    node.write(image(5, "a", 2, None));
    let rows = [row("a", 1, 5)];
    let answers = node.ask(register(&positive(), 100, &until(5), &rows, true));
    assert_eq!(answers, ["a@2 -q", "active q 1"]);
    assert_eq!(node.write(image(6, "a", 3, Some(7))), ["a@3 +q"]);
}

#[test]
fn a_document_that_left_before_the_snapshot_does_not_come_back() {
    let mut node = Stage::new();
    // 5 inserts, 6 takes it out; the snapshot sees both; only the insert has arrived.
    node.write(image(5, "a", 1, Some(5)));
    let answers = node.ask(register(&positive(), 100, &until(7), &[], true));
    assert_eq!(answers, ["active q 1"]);
    assert!(node.write(image(6, "a", 2, Some(-5))).is_empty());
    assert_eq!(node.write(image(7, "a", 3, Some(5))), ["a@3 +q"]);
}

#[test]
fn a_second_subscriber_is_told_that_the_query_is_active() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(5), &[], true));
    node.write(image(5, "a", 1, Some(5)));
    let rows = [row("a", 1, 5)];
    let answers = node.ask(register(&positive(), 101, &until(6), &rows, true));
    assert_eq!(answers, ["active q 1"]);
    assert_eq!(node.write(image(6, "a", 2, Some(6))), ["a@2 =q"]);
}

#[test]
fn a_second_subscriber_that_read_before_the_first_must_read_again() {
    // 5 is in the first one's rows and so is not told; the second one has never heard of it.
    let mut node = Stage::new();
    let rows = [row("a", 1, 5)];
    node.ask(register(&positive(), 100, &until(6), &rows, true));
    let answers = node.ask(register(&positive(), 100, &until(5), &[], true));
    assert_eq!(answers, ["too old q"]);
    let answers = node.ask(register(&positive(), 100, &until(6), &rows, true));
    assert_eq!(answers, ["active q 1"]);
}

#[test]
fn a_second_subscriber_that_read_a_minute_ago_must_read_again() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(6), &[], true));
    node.tick(until(20));
    node.pass(61);
    let answers = node.ask(register(&positive(), 100, &until(5), &[], true));
    assert_eq!(answers, ["too old q"]);
    let answers = node.ask(register(&positive(), 101, &until(20), &[], true));
    assert_eq!(answers, ["active q 1"]);
}

#[test]
fn a_registration_older_than_what_is_kept_is_too_old() {
    let mut node = Stage::new();
    node.write(image(5, "a", 1, Some(5)));
    node.pass(11);
    let answers = node.ask(register(&positive(), 100, &until(5), &[], true));
    assert_eq!(answers, ["too old q"]);
    let rows = [row("a", 1, 5)];
    let answers = node.ask(register(&positive(), 101, &until(6), &rows, true));
    assert_eq!(answers, ["active q 1"]);
}

#[test]
fn too_many_bytes_make_a_registration_too_old() {
    let config = FilterNodeConfig {
        retained_bytes: 100,
        ..FilterNodeConfig::new(0, 1, FencingToken(1))
    };
    let mut node = Stage::with(config, &[]);
    node.write(image(5, "a", 1, Some(5)));
    let answers = node.ask(register(&positive(), 100, &until(5), &[], true));
    assert_eq!(answers, ["too old q"]);
}

#[test]
fn an_expired_query_is_forgotten_and_its_number_given_again() {
    let mut node = Stage::new();
    let first = positive();
    node.ask(register(&first, 100, &until(1), &[], true));
    node.write(image(1, "a", 1, Some(5)));
    node.ask(NodeRequest::Expire {
        query: first.hash,
        activation: 1,
    });
    let second = query("r", r#"{"n":5}"#);
    node.ask(register(&second, 101, &until(2), &[], true));
    // Not "=r": that the number was another query's member does not make it this one's.
    assert_eq!(node.write(image(2, "a", 2, Some(5))), ["a@2 +r"]);
}

#[test]
fn an_expiry_of_an_earlier_life_leaves_the_query_alone() {
    let mut node = Stage::new();
    let mut later = positive();
    later.activation = 2;
    node.ask(register(&later, 100, &until(1), &[], true));
    node.ask(NodeRequest::Expire {
        query: later.hash,
        activation: 1,
    });
    assert_eq!(node.write(image(1, "a", 1, Some(5))), ["a@1 +q"]);
}

#[test]
fn a_new_life_of_a_query_replaces_the_old_one() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(1), &[], true));
    node.write(image(1, "a", 1, Some(5)));
    let mut later = positive();
    later.activation = 2;
    let answers = node.ask(register(&later, 101, &until(2), &[row("a", 1, 5)], true));
    assert_eq!(answers, ["active q 2"]);
    assert_eq!(node.write(image(2, "a", 2, Some(6))), ["a@2 =q"]);
    assert!(
        node.ask(register(&positive(), 101, &until(2), &[], true))
            .is_empty()
    );
}

#[test]
fn rows_of_a_renewal_are_noticed_when_they_leave() {
    let mut node = Stage::new();
    let window = sorted("s", 0, 1, 0);
    node.ask(register(&window, 100, &until(5), &[row("a", 1, 1)], false));
    let again = register(&window, 100, &until(6), &[row("b", 1, 2)], false);
    assert_eq!(node.ask(renewal(again)), ["active s 1"]);
    assert_eq!(node.write(image(6, "b", 2, None)), ["b@2 -s"]);
}

#[test]
fn a_renewal_does_not_bring_back_what_left_while_it_was_on_its_way() {
    let mut node = Stage::new();
    let window = sorted("s", 0, 1, 0);
    node.ask(register(&window, 100, &until(5), &[row("a", 1, 1)], false));
    node.write(image(6, "a", 2, None));
    let again = register(&window, 100, &until(6), &[row("a", 1, 1)], false);
    node.ask(renewal(again));
    assert!(node.write(image(7, "a", 3, None)).is_empty());
}

#[test]
fn ticks_are_passed_on_in_order_and_old_relays_are_not_believed() {
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
fn a_rebuild_tells_members_in_parts_and_replays_what_its_snapshot_does_not_see() {
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
    node.give(Input::Begin(Begin {
        position: at(100),
        count: 40,
        requests: at(0),
        queries: vec![positive(), sorted("s", 0, 1, 0)],
        snapshot: without(9, &[7]),
        rules: std::collections::HashMap::new(),
    }));
    let rows = ["a", "b", "c", "d"].map(|id| row(id, 1, if id == "d" { -1 } else { 1 }));
    let part = node.give(Input::Rows {
        collection: COLLECTION,
        rows: rows.to_vec(),
    });
    assert_eq!(part, ["rebase q [a@1 b@1] …"]);
    let end = ["rebase q 1 [c@1]", "active q 1", "active s 1", "rebased"];
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
    node.give(Input::Begin(Begin {
        position: at(100),
        count: 0,
        requests: at(0),
        queries: vec![query("other", r#"{"n":{"$gt":0}}"#)],
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
fn documents_of_other_partitions_are_no_business_of_the_node() {
    let mut first = Stage::with(FilterNodeConfig::new(0, 2, FencingToken(1)), &[]);
    let mut second = Stage::with(FilterNodeConfig::new(1, 2, FencingToken(1)), &[]);
    let rows = [row("a", 1, 5)];
    let mut told = 0;
    for node in [&mut first, &mut second] {
        node.ask(register(&positive(), 100, &until(2), &rows, true));
        told += node.write(image(2, "a", 2, None)).len();
    }
    assert_eq!(told, 1);
}

#[test]
fn a_batch_is_done_when_something_else_follows_or_nothing_does() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(1), &[], true));
    let parts = [0, 1];
    let first = in_batch(image(5, "a", 1, Some(5)), &parts);
    assert_eq!(node.entry(first), ["a@1 +q"]);
    assert!(
        node.entry(in_batch(image(5, "b", 1, Some(-5)), &parts))
            .is_empty()
    );
    assert_eq!(node.write(image(6, "c", 1, Some(5))), ["done 5", "c@1 +q"]);
    let superseded = AfterImage {
        content: ImageContent::Superseded,
        ..image(7, "d", 1, None)
    };
    assert!(node.entry(in_batch(superseded, &parts)).is_empty());
    assert_eq!(node.give(Input::Idle), ["done 7"]);
    assert!(node.give(Input::Idle).is_empty());
}

#[test]
fn a_batch_that_is_replayed_is_done_again_for_the_new_query() {
    let mut node = Stage::new();
    node.entry(in_batch(image(5, "a", 1, Some(5)), &[0, 1]));
    assert_eq!(node.give(Input::Idle), ["done 5"]);
    let answers = node.ask(register(&positive(), 100, &until(5), &[], true));
    assert_eq!(answers, ["a@1 +q", "done 5", "active q 1"]);
}

#[test]
fn an_entry_that_nobody_can_handle_ends_the_queries_of_its_collection() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(1), &[], true));
    let mut elsewhere = query("r", r#"{"n":5}"#);
    elsewhere.collection = [8; 16];
    node.ask(register(&elsewhere, 100, &until(1), &[], true));
    node.read += 1;
    let id = at(node.read);
    let answers = node.give(Input::Quarantined {
        id,
        collection: Some(COLLECTION),
    });
    assert_eq!(answers, ["failed q poison"]);
    assert_eq!(node.tick(until(2)), ["tick 2"]);
}

#[test]
fn an_entry_that_nobody_can_read_rebuilds_the_node() {
    let mut node = Stage::new();
    let input = Input::Quarantined {
        id: at(101),
        collection: None,
    };
    assert_eq!(node.give(input), ["rebuild Unreadable"]);
}

#[test]
fn a_document_that_cannot_be_evaluated_is_reported_if_the_access_rule_allows_reading_it() {
    let mut node = Stage::new();
    let large = r#"{"$expr":{"$gte":[{"$size":{"$range":[0,"$n"]}},0]}}"#;
    for (name, rule) in [
        ("allowed", r#"{"_id":"a"}"#),
        ("hidden", r#"{"_id":"b"}"#),
        ("undecided", large),
    ] {
        let ruled = QueryDefinition {
            rule: bson(rule),
            rules_version: 1,
            ..query(name, large)
        };
        node.ask(register(&ruled, 100, &until(1), &[], true));
    }
    let told = node.write(image(2, "a", 1, Some(100_000_000)));
    assert_eq!(told, ["unevaluated allowed"]);
}

#[test]
fn a_document_that_cannot_be_evaluated_is_in_no_answer_and_ends_no_query() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(1), &[], true));
    // One step for each unit of `n`, of which an evaluation has a million.
    let costly = query(
        "costly",
        r#"{"$expr":{"$gte":[{"$size":{"$range":[0,"$n"]}},0]}}"#,
    );
    node.ask(register(&costly, 100, &until(1), &[], true));
    let large = 100_000_000;
    assert_eq!(node.write(image(1, "a", 1, Some(5))), ["a@1 +q +costly"]);
    let told = node.write(image(2, "a", 2, Some(large)));
    assert_eq!(told, ["unevaluated costly", "a@2 =q -costly"]);
    let told = node.write(image(3, "b", 1, Some(large)));
    assert_eq!(told, ["unevaluated costly", "b@1 +q"]);
    assert_eq!(node.write(image(4, "a", 3, Some(6))), ["a@3 +costly =q"]);
    // New subscribers receive what was written after their snapshot, but not after this one.
    let late = query(
        "late",
        r#"{"$expr":{"$gt":[{"$size":{"$range":[0,"$n"]}},0]}}"#,
    );
    let answers = node.ask(register(&late, 100, &until(1), &[], true));
    assert_eq!(answers, ["a@3 +late", "active late 1"]);
}

#[test]
fn a_filter_that_cannot_be_read_ends_its_query() {
    let mut node = Stage::new();
    let broken = query("broken", r#"{"n":{"$nonsense":1}}"#);
    let answers = node.ask(register(&broken, 100, &until(1), &[], true));
    assert_eq!(answers, ["failed broken unsupported_operator"]);
}

#[test]
fn who_joins_with_a_row_that_left_before_the_query_was_known_is_told() {
    let mut node = Stage::new();
    // The second one reads between 5 and 6, the first one has read before both; 5 is on its way.
    node.write(image(6, "a", 2, Some(-5)));
    let joining = || register(&positive(), 100, &until(6), &[row("a", 1, 5)], true);
    let answers = node.ask(register(&positive(), 100, &until(5), &[], true));
    assert_eq!(answers, ["active q 1"]);
    assert_eq!(node.ask(joining()), ["a@2 =q -q", "active q 1"]);
    assert_eq!(node.ask(joining()), ["active q 1"]);
}

#[test]
fn that_a_document_has_left_is_not_told_again_for_one_who_joins_late() {
    let mut node = Stage::new();
    let joining = || register(&positive(), 100, &until(6), &[row("a", 1, 5)], true);
    node.ask(joining());
    assert_eq!(node.write(image(6, "a", 2, Some(-5))), ["a@2 -q"]);
    assert_eq!(node.ask(joining()), ["active q 1"]);
    node.write(image(7, "a", 3, Some(-6)));
    assert_eq!(node.ask(joining()), ["active q 1"]);
}

/// A query with one reader before the transaction 5, and another before 7 with this row.
fn joined(row: rillbase_live::message::ResultRow) -> Stage {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(5), &[], true));
    node.ask(register(&positive(), 100, &until(7), &[row], true));
    node
}

#[test]
fn who_joins_with_a_row_that_has_not_arrived_is_told_when_it_leaves() {
    let mut node = joined(row("a", 1, 5));
    assert_eq!(node.write(image(7, "a", 2, Some(-5))), ["a@2 =q -q"]);
    assert!(node.write(image(8, "a", 3, Some(-5))).is_empty());
}

#[test]
fn a_row_that_only_those_who_joined_have_enters_with_its_after_image() {
    let mut node = joined(row("a", 2, 5));
    assert!(node.write(image(5, "a", 1, Some(-5))).is_empty());
    assert_eq!(node.write(image(6, "a", 2, Some(5))), ["a@2 +q"]);
    assert_eq!(node.write(image(7, "a", 3, Some(6))), ["a@3 =q"]);
}

#[test]
fn a_version_above_that_of_those_who_joined_enters_for_some_and_stays_for_others() {
    let mut node = joined(row("a", 2, 5));
    assert_eq!(node.write(image(7, "a", 3, Some(6))), ["a@3 +q =q"]);
    assert_eq!(node.write(image(8, "a", 4, Some(6))), ["a@4 =q"]);
}

#[test]
fn a_row_that_has_not_arrived_is_not_forgotten_because_a_lower_version_left() {
    let mut node = joined(row("a", 3, 5));
    assert_eq!(node.write(image(5, "a", 1, Some(5))), ["a@1 +q"]);
    assert_eq!(node.write(image(6, "a", 2, Some(-5))), ["a@2 -q"]);
    assert_eq!(node.write(image(7, "a", 4, Some(-5))), ["a@4 =q -q"]);
}

#[test]
fn a_row_that_was_superseded_is_kept_in_mind_behind_the_tick_that_covers_it() {
    let mut node = joined(row("a", 2, 5));
    let superseded = AfterImage {
        content: ImageContent::Superseded,
        ..image(6, "a", 2, None)
    };
    assert!(node.write(superseded).is_empty());
    assert_eq!(node.tick(until(7)), ["tick 2"]);
    assert_eq!(node.write(image(7, "a", 3, Some(6))), ["a@3 +q =q"]);
}

#[test]
fn a_row_that_all_have_is_a_member_behind_the_tick_that_covers_it() {
    let mut node = Stage::new();
    let rows = [row("a", 2, 5)];
    node.ask(register(&positive(), 100, &until(5), &rows, true));
    node.ask(register(&positive(), 100, &until(7), &rows, true));
    assert_eq!(node.tick(until(7)), ["tick 1"]);
    assert_eq!(node.write(image(7, "a", 3, Some(-5))), ["a@3 -q"]);
}

#[test]
fn a_version_that_was_passed_over_leaves_sorted_queries_that_may_have_found_it() {
    let mut node = Stage::new();
    node.ask(register(&sorted("s", 0, 1, 0), 100, &until(5), &[], true));
    assert!(node.write(image(6, "a", 2, None)).is_empty());
    assert_eq!(node.write(image(5, "a", 1, Some(5))), ["a@2 -s"]);
    assert!(node.write(image(5, "a", 1, Some(5))).is_empty());
}

#[test]
fn a_superseded_version_leaves_sorted_queries_with_the_next_one() {
    let mut node = Stage::new();
    node.ask(register(&sorted("s", 0, 1, 0), 100, &until(5), &[], true));
    let superseded = AfterImage {
        content: ImageContent::Superseded,
        ..image(5, "a", 1, None)
    };
    assert!(node.write(superseded).is_empty());
    assert_eq!(node.write(image(6, "a", 2, None)), ["a@2 -s"]);
}

#[test]
fn a_sorted_query_is_told_of_what_left_before_it_was_known() {
    let mut node = Stage::new();
    node.write(image(5, "a", 1, Some(5)));
    node.write(image(6, "a", 2, None));
    let answers = node.ask(register(&sorted("s", 0, 2, 1), 100, &until(5), &[], true));
    assert_eq!(answers, ["a@2 -s", "active s 1"]);
}

#[test]
fn a_renewal_of_an_unknown_query_is_called_too_old() {
    let mut node = Stage::new();
    let request = register(&sorted("s", 0, 2, 1), 100, &until(5), &[], true);
    assert_eq!(node.ask(renewal(request)), ["too old s"]);
}
