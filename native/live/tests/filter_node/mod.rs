//! The filter node, one interleaving after another.

mod joining;
mod rebuilding;
mod registering;
mod stage;

use rillbase_live::filter_node::Input;
use rillbase_live::message::{AfterImage, ImageContent, QueryDefinition};

use crate::common::{COLLECTION, at, bson, image, in_batch, query, register, row, until, without};
use stage::{Stage, positive};

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
fn a_write_of_a_transaction_that_ran_during_the_snapshot_is_reported() {
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
fn a_delete_is_remembered_for_longer_than_a_publication_can_be_delayed() {
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
fn a_document_deleted_and_reinserted_around_the_registration_is_reported_once() {
    let mut node = Stage::new();
    node.write(image(5, "a", 2, None));
    let rows = [row("a", 1, 5)];
    let answers = node.ask(register(&positive(), 100, &until(5), &rows, true));
    assert_eq!(answers, ["a@2 -q", "active q 1"]);
    assert_eq!(node.write(image(6, "a", 3, Some(7))), ["a@3 +q"]);
}

#[test]
fn a_document_that_left_before_the_snapshot_does_not_reappear() {
    let mut node = Stage::new();
    // 5 inserts the document and 6 removes it; the snapshot sees both; only the insert has arrived.
    node.write(image(5, "a", 1, Some(5)));
    let answers = node.ask(register(&positive(), 100, &until(7), &[], true));
    assert_eq!(answers, ["active q 1"]);
    assert!(node.write(image(6, "a", 2, Some(-5))).is_empty());
    assert_eq!(node.write(image(7, "a", 3, Some(5))), ["a@3 +q"]);
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
fn a_quarantined_entry_ends_the_queries_of_its_collection() {
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
fn an_unreadable_entry_rebuilds_the_node() {
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
    let output = node.write(image(2, "a", 1, Some(100_000_000)));
    assert_eq!(output, ["unevaluated allowed"]);
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
    let output = node.write(image(2, "a", 2, Some(large)));
    assert_eq!(output, ["unevaluated costly", "a@2 =q -costly"]);
    let output = node.write(image(3, "b", 1, Some(large)));
    assert_eq!(output, ["unevaluated costly", "b@1 +q"]);
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
