//! The sort node, one interleaving after another.

mod stage;

mod batches;

use crate::common::{
    COLLECTION, at, bson, hash, image, notification, query, register, renewal, row, sorted, tick,
    until, without,
};
use rillbase_live::message::{
    AfterImage, FencingToken, NodeEvent, NodeRequest, NotificationSource, QueryDefinition,
    ResultRow, StreamId,
};
use rillbase_live::sort_node::{Input, SortNode, SortNodeConfig};
use stage::{Stage, active, three};

#[test]
fn a_row_that_comes_in_pushes_another_out() {
    let mut node = three();
    let output = node.put(image(5, "d", 1, Some(15)));
    assert_eq!(output, ["window s [-1 b@1 left, +1 d@1]"]);
}

#[test]
fn a_row_that_leaves_lets_the_next_one_in() {
    let mut node = three();
    let output = node.leave(image(5, "a", 2, None));
    assert_eq!(output, ["window s [-0 a@2 deleted, +1 c@1]"]);
}

#[test]
fn a_row_that_moves_within_the_window_is_one_step() {
    let mut node = three();
    let output = node.put(image(5, "a", 2, Some(25)));
    assert_eq!(output, ["window s [0>1 a@2]"]);
    let output = node.put(image(6, "a", 3, Some(26)));
    assert_eq!(output, ["window s [=1 a@3]"]);
}

/// The query `s` in this order, with the first two rows and one row more.
fn ordered(sort: &str) -> QueryDefinition {
    QueryDefinition {
        sort: bson(&format!(r#"{{"sort":{sort}}}"#)),
        ..sorted("s", 0, 2, 1)
    }
}

fn row_at(id: &str, created_ms: i64, updated_ms: i64) -> ResultRow {
    ResultRow {
        created_ms,
        updated_ms,
        ..row(id, 1, 10)
    }
}

#[test]
fn a_write_moves_a_document_to_the_front_of_those_changed_last() {
    let mut node = Stage::new();
    let rows = [row_at("a", 1, 30), row_at("b", 2, 20), row_at("c", 3, 10)];
    let query = ordered(r#"[["$updated",-1]]"#);
    let answers = node.ask(register(&query, 0, &until(5), &rows, true));
    assert_eq!(answers, ["rebase s [a@1 b@1]", "active s 1"]);
    let write = |xid, id, version, written_us| AfterImage {
        written_us,
        // The content is the same: only the time places it.
        ..image(xid, id, version, Some(10))
    };
    let output = node.put(write(5, "c", 2, 40_999));
    assert_eq!(output, ["window s [-1 b@1 left, +0 c@2]"]);
    let output = node.put(write(6, "a", 2, 50_000));
    assert_eq!(output, ["window s [1>0 a@2]"]);
    // Within the same millisecond, the `_id` decides.
    let output = node.put(write(7, "b", 2, 50_999));
    assert_eq!(output, ["window s [-1 c@2 left, +1 b@2]"]);
}

#[test]
fn a_write_does_not_move_a_document_among_those_created_last() {
    let mut node = Stage::new();
    let rows = [
        row_at("a", 30, 30),
        row_at("b", 20, 20),
        row_at("c", 10, 10),
    ];
    let query = ordered(r#"[["$created",-1]]"#);
    let answers = node.ask(register(&query, 0, &until(5), &rows, true));
    assert_eq!(answers, ["rebase s [a@1 b@1]", "active s 1"]);
    let written = AfterImage {
        created_ms: 20,
        written_us: 90_000,
        ..image(5, "b", 2, Some(99))
    };
    assert_eq!(node.put(written), ["window s [=1 b@2]"]);
    let created = AfterImage {
        created_ms: 95,
        written_us: 95_000,
        ..image(6, "d", 1, Some(5))
    };
    assert_eq!(node.put(created), ["window s [-1 b@2 left, +0 d@1]"]);
}

#[test]
fn rows_before_the_offset_move_the_window() {
    let mut node = Stage::new();
    let rows = [row("a", 1, 10), row("b", 1, 20), row("c", 1, 30)];
    let answers = node.ask(register(&sorted("s", 1, 1, 1), 0, &until(5), &rows, true));
    assert_eq!(answers, ["rebase s [b@1]", "active s 1"]);
    let output = node.put(image(5, "d", 1, Some(1)));
    assert_eq!(output, ["window s [-0 b@1 left, +0 a@1]"]);
}

#[test]
fn a_row_beyond_the_last_known_one_is_dropped() {
    let mut node = three();
    assert!(node.put(image(5, "z", 1, Some(99))).is_empty());
    assert_eq!(
        node.leave(image(6, "a", 2, None)),
        ["window s [-0 a@2 deleted, +1 c@1]"]
    );
    // Whether z or another row is the next one is unknown.
    assert_eq!(
        node.leave(image(7, "b", 2, None)),
        ["window s [-0 b@2 deleted]", "renew s 1"]
    );
}

#[test]
fn the_last_row_of_a_complete_result_needs_no_renewal() {
    let mut node = Stage::new();
    let rows = [row("a", 1, 10), row("b", 1, 20)];
    node.ask(register(&sorted("s", 0, 2, 1), 0, &until(5), &rows, true));
    assert_eq!(
        node.leave(image(5, "a", 2, None)),
        ["window s [-0 a@2 deleted]"]
    );
    assert_eq!(node.put(image(6, "z", 1, Some(99))), ["window s [+1 z@1]"]);
}

#[test]
fn writes_around_a_renewal_are_applied_once() {
    let mut node = three();
    node.leave(image(5, "a", 2, None));
    node.leave(image(6, "b", 2, None));
    // The renewal sees 7 and not 8.
    assert!(node.put(image(7, "d", 1, Some(35))).is_empty());
    assert!(node.put(image(8, "e", 1, Some(32))).is_empty());
    let rows = [row("c", 1, 30), row("d", 1, 35), row("f", 1, 40)];
    let request = register(&sorted("s", 0, 2, 1), 0, &until(8), &rows, false);
    assert_eq!(
        node.ask(renewal(request)),
        ["window s [+1 d@1]", "window s [-1 d@1 left, +1 e@1]"]
    );
}

#[test]
fn a_renewal_read_before_what_was_applied_is_not_taken() {
    let mut node = three();
    node.leave(image(5, "a", 2, None));
    node.leave(image(7, "b", 2, None));
    let rows = [row("b", 1, 20), row("c", 1, 30), row("d", 1, 40)];
    let old = register(&sorted("s", 0, 2, 1), 0, &until(6), &rows, false);
    assert!(node.ask(renewal(old)).is_empty());
    let rows = [row("c", 1, 30), row("d", 1, 40), row("e", 1, 50)];
    let new = register(&sorted("s", 0, 2, 1), 0, &until(8), &rows, false);
    assert_eq!(node.ask(renewal(new)), ["window s [+1 d@1]"]);
}

#[test]
fn slack_grows_when_renewals_follow_each_other() {
    let mut node = three();
    node.leave(image(5, "a", 2, None));
    assert_eq!(
        node.leave(image(6, "b", 2, None)).last().unwrap(),
        "renew s 1"
    );
    let rows = [row("c", 1, 30), row("d", 1, 40), row("e", 1, 50)];
    let request = register(&sorted("s", 0, 2, 1), 0, &until(7), &rows, false);
    node.ask(renewal(request));
    node.leave(image(7, "c", 2, None));
    assert_eq!(
        node.leave(image(8, "d", 2, None)).last().unwrap(),
        "renew s 2"
    );
}

#[test]
fn an_unanswered_renewal_is_requested_again() {
    let mut node = three();
    node.leave(image(5, "a", 2, None));
    node.leave(image(6, "b", 2, None));
    node.now_us += 4_000_000;
    assert!(node.give(Input::Idle).is_empty());
    node.now_us += 1_000_000;
    assert_eq!(node.give(Input::Idle), ["renew s 1"]);
}

#[test]
fn a_subscriber_that_joins_during_a_renewal_starts_after_it() {
    let mut node = three();
    node.leave(image(5, "a", 2, None));
    node.leave(image(7, "b", 2, None));
    let rows = [row("b", 1, 20), row("c", 1, 30), row("d", 1, 40)];
    let joins = register(&sorted("s", 0, 2, 1), 0, &until(6), &rows, false);
    assert!(node.ask(joins).is_empty());
    let rows = [row("c", 1, 30), row("d", 1, 40), row("e", 1, 50)];
    let request = register(&sorted("s", 0, 2, 1), 0, &until(8), &rows, false);
    assert_eq!(
        node.ask(renewal(request)),
        ["window s [+1 d@1]", "rebase s [c@1 d@1]", "active s 1"]
    );
}

#[test]
fn a_joining_subscriber_starts_from_the_current_window() {
    let mut node = three();
    node.put(image(5, "d", 1, Some(15)));
    let rows = [row("a", 1, 10), row("b", 1, 20), row("c", 1, 30)];
    let joins = register(&sorted("s", 0, 2, 1), 0, &until(5), &rows, false);
    assert_eq!(node.ask(joins), ["rebase s [a@1 d@1]", "active s 1"]);
}

#[test]
fn changes_that_the_rows_contain_are_not_applied_again() {
    let mut node = three();
    assert!(node.put(image(4, "a", 1, Some(10))).is_empty());
    assert!(node.leave(image(3, "b", 0, None)).is_empty());
}

#[test]
fn a_match_reported_before_the_registration_was_read_is_applied() {
    let mut node = Stage::new();
    assert!(node.put(image(5, "d", 1, Some(15))).is_empty());
    let rows = [row("a", 1, 10), row("b", 1, 20)];
    let answers = node.ask(register(&sorted("s", 0, 2, 1), 0, &until(5), &rows, true));
    let expected = [
        "rebase s [a@1 b@1]",
        "active s 1",
        "window s [-1 b@1 left, +1 d@1]",
    ];
    assert_eq!(answers, expected);
}

#[test]
fn versions_never_fall_after_a_row_has_left() {
    let mut node = three();
    node.leave(image(6, "a", 3, Some(-1)));
    assert!(node.put(image(5, "a", 2, Some(10))).is_empty());
}

#[test]
fn a_tick_is_emitted_when_all_filter_nodes_have_reached_it() {
    let mut node = Stage::new();
    assert_eq!(node.tick(1, &until(2)), ["tick 1"]);
    assert!(
        node.notify(0, NodeEvent::Tick(tick(3, until(3))))
            .is_empty()
    );
    assert_eq!(
        node.notify(1, NodeEvent::Tick(tick(2, until(3)))),
        ["tick 2"]
    );
}

#[test]
fn a_gap_in_a_filter_nodes_reports_rebuilds_the_sort_node() {
    let mut node = three();
    node.tick(1, &until(2));
    node.counts[0] += 1;
    assert_eq!(node.put(image(5, "d", 1, Some(15))), ["rebuild Lost"]);
    assert!(node.put(image(6, "d", 2, Some(15))).is_empty());
}

#[test]
fn a_log_that_was_trimmed_behind_the_place_where_it_was_left_rebuilds_the_sort_node() {
    let mut node = Stage::new();
    let notification = notification(NotificationSource::Filter(0), 1, 900, NodeEvent::Start);
    let id = StreamId {
        ms: 60_000,
        number: 0,
    };
    assert_eq!(
        node.give(Input::Entry {
            id,
            entry: notification
        }),
        ["rebuild Lost"]
    );
}

#[test]
fn a_filter_node_that_was_rebuilt_rebuilds_the_sort_node() {
    let mut node = three();
    node.tick(1, &until(2));
    node.notify(0, NodeEvent::Start);
    assert!(
        node.notify(1, NodeEvent::Tick(tick(2, until(3))))
            .is_empty()
    );
    let snapshot = until(9);
    assert_eq!(
        node.notify(0, NodeEvent::Rebased { snapshot }),
        ["rebuild FilterNode"]
    );
}

#[test]
fn a_filter_node_that_was_rebuilt_before_the_sort_node_needs_nothing() {
    let mut node = three();
    node.begin(&[], without(12, &[9]));
    node.give(Input::End);
    node.notify(0, NodeEvent::Start);
    let snapshot = until(9);
    assert!(node.notify(0, NodeEvent::Rebased { snapshot }).is_empty());
    assert_eq!(node.tick(1, &until(9)), ["tick 1"]);
}

#[test]
fn an_entry_of_a_filter_node_that_lost_its_lease_is_ignored() {
    let mut node = three();
    let new = notification(NotificationSource::Filter(0), 9, 1, NodeEvent::Start);
    node.give(Input::Entry {
        id: at(101),
        entry: new,
    });
    assert!(node.put(image(5, "d", 1, Some(15))).is_empty());
}

#[test]
fn a_rebuild_takes_the_first_rows_of_all_documents() {
    let rows: Vec<_> = ["a", "b", "c", "d"].iter().zip([40, 30, 20, -5]).collect();
    let rows: Vec<_> = rows.into_iter().map(|(id, n)| row(id, 1, n)).collect();
    let mut node = Stage {
        node: SortNode::new(SortNodeConfig::new(2, FencingToken(2))),
        now_us: 1_000_000,
        read: 100,
        requests: 0,
        counts: [0, 0],
    };
    assert_eq!(node.give(Input::Start), ["start"]);
    let unsorted = query("q", r#"{"n":{"$gt":0}}"#);
    node.begin(&[sorted("s", 0, 2, 1), unsorted], until(5));
    let collection = COLLECTION;
    node.give(Input::Rows { collection, rows });
    let output = node.give(Input::End);
    assert_eq!(output, ["rebase s [c@1 b@1]", "active s 1", "rebased"]);
    assert_eq!(
        node.put(image(5, "e", 1, Some(1))),
        ["window s [-1 b@1 left, +0 e@1]"]
    );
}

#[test]
fn a_query_that_was_registered_too_late_takes_the_rows_of_the_next_registration() {
    let mut node = three();
    node.refuse(0, 1);
    assert!(node.put(image(9, "d", 1, Some(5))).is_empty());
    let rows = [row("b", 1, 20), row("c", 1, 30)];
    let again = register(&sorted("s", 0, 2, 1), 0, &until(8), &rows, true);
    let expected = [
        "window s [-0 a@1 left, +1 c@1]",
        "rebase s [b@1 c@1]",
        "active s 1",
        "window s [-1 c@1 left, +0 d@1]",
    ];
    assert_eq!(node.ask(again), expected);
}

#[test]
fn a_result_without_limit_that_is_too_large_ends() {
    let mut node = Stage::new();
    node.node = SortNode::new(SortNodeConfig {
        max_rows: 2,
        ..SortNodeConfig::new(2, FencingToken(1))
    });
    node.give(Input::Start);
    node.begin(&[], until(1));
    node.give(Input::End);
    let mut all = sorted("s", 0, 0, 0);
    all.limit = None;
    let rows = [row("a", 1, 10), row("b", 1, 20)];
    node.ask(register(&all, 0, &until(5), &rows, true));
    let output = node.put(image(5, "c", 1, Some(15)));
    assert_eq!(output.last().unwrap(), "failed s result_too_large");
}

#[test]
fn a_registration_that_was_rejected_as_too_old_before_it_was_read_waits_for_the_next() {
    let mut node = Stage::new();
    node.refuse(0, 1);
    let rows = [row("a", 1, 10), row("b", 1, 20)];
    let first = register(&sorted("s", 0, 2, 1), 0, &until(5), &rows, true);
    assert!(node.ask_alone(first).is_empty());
    assert!(node.accept(1).is_empty());
    let rows = [row("b", 1, 20), row("c", 1, 30)];
    let second = register(&sorted("s", 0, 2, 1), 0, &until(7), &rows, true);
    let expected = ["rebase s [b@1 c@1]", "active s 1"];
    assert_eq!(node.ask(second), expected);
}

#[test]
fn rows_count_only_once_all_filter_nodes_go_on_from_them() {
    let mut node = Stage::new();
    let rows = [row("a", 1, 10), row("b", 1, 20)];
    let request = register(&sorted("s", 0, 2, 1), 0, &until(5), &rows, true);
    assert!(node.ask_alone(request).is_empty());
    assert!(node.accept(0).is_empty());
    assert!(node.put(image(6, "c", 1, Some(5))).is_empty());
    let expected = [
        "rebase s [a@1 b@1]",
        "active s 1",
        "window s [-1 b@1 left, +0 c@1]",
    ];
    assert_eq!(node.accept(1), expected);
}

#[test]
fn an_answer_to_an_earlier_registration_does_not_cover_new_rows() {
    let mut node = three();
    for id in ["a", "b"] {
        node.leave(image(6, id, 2, None));
    }
    let rows = [row("c", 1, 30), row("d", 1, 40)];
    let again = register(&sorted("s", 0, 2, 2), 0, &until(8), &rows, false);
    assert!(node.ask_alone(renewal(again)).is_empty());
    assert!(node.notify(0, active(at(1))).is_empty());
    assert!(node.notify(1, active(at(1))).is_empty());
    assert!(node.accept(0).is_empty());
    assert_eq!(node.accept(1).len(), 1);
}

#[test]
fn new_rows_that_a_filter_node_does_not_continue_from_are_requested_again() {
    let mut node = three();
    for id in ["a", "b"] {
        node.leave(image(6, id, 2, None));
    }
    let rows = [row("c", 1, 30), row("d", 1, 40)];
    let again = register(&sorted("s", 0, 2, 2), 0, &until(8), &rows, false);
    node.ask_alone(renewal(again));
    assert!(node.accept(0).is_empty());
    assert_eq!(node.refuse(1, 2), ["renew s 1"]);
}

#[test]
fn rows_that_lack_what_a_filter_node_began_with_do_not_count() {
    let mut node = Stage::new();
    let rows = [row("a", 1, 10)];
    node.ask_alone(register(&sorted("s", 0, 2, 1), 0, &until(9), &rows, true));
    node.accept(0);
    node.refuse(1, 1);
    let older = register(&sorted("s", 0, 2, 1), 0, &until(5), &[], true);
    assert!(node.ask(older).is_empty());
}

#[test]
fn reports_of_an_ended_activation_must_be_in_the_rows_of_the_next() {
    let mut node = three();
    // The filter nodes are already in the next activation; its request has not been read yet.
    node.put(image(9, "d", 1, Some(5)));
    let request = NodeRequest::Expire {
        query: hash("s"),
        activation: 1,
    };
    node.ask_alone(request);
    let mut next = sorted("s", 0, 2, 1);
    next.activation = 2;
    let rows = [row("a", 1, 10), row("b", 1, 20)];
    let answers = node.ask_alone(register(&next, 0, &until(9), &rows, true));
    assert_eq!(answers, ["renew s 1"]);
}

#[test]
fn rows_read_before_a_filter_node_was_rebuilt_are_requested_again() {
    let mut node = Stage::with(&[], &[]);
    node.begin(&[], until(9));
    node.give(Input::End);
    let snapshot = until(8);
    node.notify(0, NodeEvent::Rebased { snapshot });
    let rows = [row("a", 1, 10), row("b", 1, 20)];
    let answers = node.ask(register(&sorted("s", 0, 2, 1), 0, &until(5), &rows, true));
    assert_eq!(answers, ["renew s 1"]);
}
