//! Sorted queries, whose windows a sort node keeps.

use rillbase_live::hub::HubRequest;
use rillbase_live::message::{NodeEvent, QueryDefinition, RemovalReason, WindowChange};

use super::desk::{Desk, F0, F1, SORT};
use crate::common::{key, row, sorted, until};

fn add(index: u32, id: &str, version: u64) -> WindowChange {
    let row = row(id, version, 1);
    WindowChange::Add { index, row }
}

fn remove(old_index: u32, id: &str, version: u64) -> WindowChange {
    WindowChange::Remove {
        old_index,
        key: key(id),
        id: crate::common::bson(&format!(r#"{{"_id":"{id}"}}"#)),
        version,
        reason: RemovalReason::Deleted,
    }
}

fn opened() -> (Desk, QueryDefinition) {
    let (mut desk, q) = (Desk::new(), sorted("q", 0, 3, 2));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1), row("b", 1, 2), row("c", 1, 3)]);
    assert_eq!(desk.lines(), ["s1 result a@1 b@1 c@1", "s1 ready"]);
    desk.take_requests();
    (desk, q)
}

#[test]
fn the_steps_of_a_write_are_one_group_with_indexes() {
    let (mut desk, q) = opened();
    let moved = WindowChange::Move {
        old_index: 1,
        index: 0,
        row: row("b", 2, 0),
    };
    desk.window(&q, 6, vec![moved]);
    desk.window(&q, 7, vec![remove(2, "c", 2), add(2, "d", 1)]);
    let expected = [
        "s1 changeIndex b@2 1→ 0 #1",
        "s1 remove c@2 2→ deleted #2 1/2",
        "s1 add d@1 2 #3 2/2",
    ];
    assert_eq!(desk.lines(), expected);
}

#[test]
fn a_row_may_return_with_the_version_it_left_with() {
    let (mut desk, q) = opened();
    desk.window(&q, 6, vec![remove(2, "c", 1), add(0, "d", 1)]);
    desk.take();
    desk.window(&q, 7, vec![remove(0, "d", 2), add(2, "c", 1)]);
    assert_eq!(
        desk.lines(),
        ["s1 remove d@2 0→ deleted #3 1/2", "s1 add c@1 2 #4 2/2"]
    );
}

#[test]
fn a_query_is_not_ready_before_the_sort_node_has_processed_all_filter_nodes() {
    let (mut desk, q) = (Desk::new(), sorted("q", 0, 3, 2));
    desk.attach(1, &q);
    let rows = [row("a", 1, 1)];
    desk.register(&q, until(5), &rows);
    desk.active(F0, &q);
    desk.rebase(SORT, &q, 5, &rows);
    desk.active(SORT, &q);
    desk.ticks(5);
    desk.active(F1, &q);
    desk.tick(SORT, 5);
    assert_eq!(desk.lines(), ["s1 result a@1"]);
    desk.pass(1000);
    desk.ticks(5);
    assert_eq!(desk.lines(), ["s1 ready"]);
}

#[test]
fn an_older_window_of_the_sort_node_is_followed_unseen() {
    let (mut desk, q) = (Desk::new(), sorted("q", 0, 3, 2));
    desk.attach(1, &q);
    desk.register(&q, until(9), &[row("a", 3, 1)]);
    desk.active(F0, &q);
    desk.active(F1, &q);
    desk.rebase(SORT, &q, 5, &[row("a", 1, 1)]);
    desk.active(SORT, &q);
    desk.ticks(6);
    let newer = |version| WindowChange::Change {
        index: 0,
        row: row("a", version, 1),
    };
    desk.window(&q, 7, vec![newer(2)]);
    desk.window(&q, 8, vec![newer(3)]);
    desk.window(&q, 9, vec![add(1, "b", 1)]);
    assert_eq!(desk.lines(), ["s1 result a@3"]);
    desk.ticks(9);
    assert_eq!(desk.lines(), ["s1 add b@1 1 #1", "s1 ready"]);
}

#[test]
fn a_window_stands_still_from_a_renewal_request_until_the_renewal() {
    let (mut desk, q) = opened();
    let (query, activation) = (q.hash, q.activation);
    let slack = 4;
    desk.notify(
        SORT,
        NodeEvent::Renew {
            query,
            activation,
            slack,
        },
    );
    assert_eq!(desk.take_requests(), [HubRequest::Renew(q.hash, 4)]);
    desk.pass(250_000);
    assert_eq!(desk.lines(), ["s1 stale"]);
    let changes = vec![add(3, "d", 1)];
    let image = None;
    desk.notify(
        SORT,
        NodeEvent::Window {
            query,
            activation,
            rules_version: 0,
            image,
            changes,
        },
    );
    desk.pass(250_000);
    assert_eq!(desk.lines(), ["s1 add d@1 3 #1", "s1 live"]);
}

#[test]
fn an_older_window_is_not_shown_while_the_sort_node_waits_for_rows() {
    let (mut desk, q) = (Desk::new(), sorted("q", 0, 3, 2));
    desk.attach(1, &q);
    desk.register(&q, until(9), &[row("a", 2, 1)]);
    desk.active(F0, &q);
    desk.active(F1, &q);
    desk.rebase(SORT, &q, 5, &[row("a", 1, 1)]);
    desk.active(SORT, &q);
    let (query, activation) = (q.hash, q.activation);
    let renew = NodeEvent::Renew {
        query,
        activation,
        slack: 4,
    };
    desk.notify(SORT, renew);
    desk.ticks(9);
    assert_eq!(desk.lines(), ["s1 result a@2"]);
    let newer = WindowChange::Change {
        index: 0,
        row: row("a", 2, 1),
    };
    let renewed = NodeEvent::Window {
        query,
        activation,
        rules_version: 0,
        image: None,
        changes: vec![newer, add(1, "b", 1)],
    };
    desk.notify(SORT, renewed);
    desk.pass(1000);
    desk.ticks(9);
    assert_eq!(desk.lines(), ["s1 add b@1 1 #1", "s1 ready"]);
}

#[test]
fn a_new_sort_node_reports_its_window_and_the_difference_is_sent() {
    let (mut desk, q) = opened();
    desk.notify(SORT, NodeEvent::Start);
    desk.rebase(
        SORT,
        &q,
        8,
        &[row("a", 1, 1), row("c", 2, 2), row("d", 1, 3)],
    );
    desk.active(SORT, &q);
    desk.notify(SORT, NodeEvent::Rebased { snapshot: until(8) });
    let lines = desk.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    desk.pass(1000);
    desk.ticks(8);
    desk.take_requests();
    desk.attach(2, &q);
    assert_eq!(desk.lines(), ["s2 result a@1 c@2 d@1", "s2 ready"]);
}
