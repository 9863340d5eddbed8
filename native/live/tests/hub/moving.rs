//! The nodes of a new grid epoch take over.

use rillbase_live::hub::{ClientOptions, GridShape, HubRequest};
use rillbase_live::message::{NotificationSource, StreamId};

use super::desk::{Desk, F0, F1, Is, SORT, token};
use crate::common::{image, query, row, sorted, until};

const F2: NotificationSource = NotificationSource::Filter(2);

/// Switches the hub to a grid of three write partitions, with new logs.
fn moved(desk: &mut Desk) {
    desk.take_requests();
    desk.hub.moved(GridShape {
        installation: 1,
        epoch: 2,
        write_partitions: 3,
        query_partitions: 1,
    });
    desk.begin_anew();
}

#[test]
fn nothing_is_missing_and_nothing_comes_twice() {
    let (mut desk, mut q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1), row("b", 1, 1)]);
    desk.matched(F0, image(6, "a", 2, Some(1)), Is::Changed, q.hash);
    desk.take();
    moved(&mut desk);
    assert_eq!(desk.take_requests(), [HubRequest::Register(q.hash)]);
    desk.pass(250_000);
    q.activation = 2;
    // One write was reported, one was not, and one is later than the rows.
    desk.register(&q, until(8), &[row("a", 2, 1), row("c", 1, 1)]);
    desk.matched(F2, image(6, "a", 2, Some(1)), Is::Changed, q.hash);
    desk.matched(F2, image(7, "c", 1, Some(1)), Is::Added, q.hash);
    desk.matched(F2, image(9, "d", 1, Some(1)), Is::Added, q.hash);
    let expected = [
        "s1 remove b@1 left #2 1/2",
        "s1 add c@1 #3 2/2",
        "s1 add d@1 #4",
    ];
    assert_eq!(desk.lines(), expected);
    for source in [F0, F1, F2] {
        desk.active(source, &q);
        desk.tick(source, 10);
    }
    // Subscribers notice nothing: this grid proves everything before the other one's proof expires.
    for _ in 0..10 {
        desk.pass(250_000);
        for source in [F0, F1, F2] {
            desk.tick(source, 10);
        }
    }
    assert_eq!(desk.lines(), [""; 0]);
}

#[test]
fn liveness_from_the_old_grid_counts_for_two_seconds() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[]);
    desk.take();
    moved(&mut desk);
    desk.pass(1_700_000);
    assert_eq!(desk.lines(), [""; 0]);
    desk.pass(300_000);
    assert_eq!(desk.lines(), ["s1 stale"]);
}

#[test]
fn a_query_that_was_not_live_is_not_live_in_the_new_grid() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[]);
    desk.take();
    desk.pass(2_250_000);
    assert_eq!(desk.lines(), ["s1 stale"]);
    moved(&mut desk);
    desk.pass(250_000);
    assert_eq!(desk.lines(), [""; 0]);
}

#[test]
fn two_of_three_nodes_are_not_all() {
    let (mut desk, mut q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[]);
    desk.take();
    moved(&mut desk);
    q.activation = 2;
    desk.register(&q, until(8), &[]);
    for source in [F0, F1] {
        desk.active(source, &q);
        desk.tick(source, 10);
    }
    desk.pass(2_000_000);
    assert_eq!(desk.lines(), ["s1 stale"]);
}

#[test]
fn a_window_continues_from_the_new_sort_nodes_report() {
    let (mut desk, mut q) = (Desk::new(), sorted("q", 0, 2, 1));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1), row("b", 1, 2)]);
    desk.take();
    moved(&mut desk);
    q.activation = 2;
    let now = [row("b", 1, 2), row("c", 1, 3)];
    desk.register(&q, until(8), &now);
    for source in [F0, F1, F2] {
        desk.active(source, &q);
    }
    desk.rebase(SORT, &q, 8, &now);
    desk.active(SORT, &q);
    for source in [F0, F1, F2, SORT] {
        desk.tick(source, 10);
    }
    desk.pass(250_000);
    let expected = ["s1 remove a@1 0→ left #1 1/2", "s1 add c@1 1 #2 2/2"];
    assert_eq!(desk.lines(), expected);
}

#[test]
fn a_token_of_the_old_grid_is_answered_by_a_reset() {
    let (mut desk, mut q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    let token = token(&desk.take());
    // It had started to resume when the grid changed.
    desk.attach_with(2, &q, ClientOptions::default(), Some(token));
    desk.pass(250_000);
    moved(&mut desk);
    q.activation = 2;
    desk.register(&q, until(8), &[row("a", 1, 1)]);
    for source in [F0, F1, F2] {
        desk.active(source, &q);
        desk.tick(source, 10);
    }
    desk.pass(250_000);
    desk.pass(250_000);
    let lines = desk.lines();
    let lines: Vec<_> = lines.iter().filter(|line| line.starts_with("s2")).collect();
    let expected = ["s2 reset resume_not_possible", "s2 result a@1", "s2 ready"];
    assert_eq!(lines, expected);
    assert_ne!(desk.end(), StreamId::default());
}
