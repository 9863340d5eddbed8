//! The writes of an atomic batch are shown together, with everything that belongs to them.

use rillbase_live::message::NodeEvent;
use rillbase_live::sort_node::Input;

use super::stage::{Stage, batch, match_event, three};
use crate::common::{COLLECTION, hash, image, register, row, sorted, tick, until};

#[test]
fn the_writes_of_a_batch_change_the_window_at_once() {
    let mut node = three();
    assert!(node.put(batch(image(5, "d", 1, Some(5)))).is_empty());
    assert!(node.notify(0, NodeEvent::Done { xid: 5 }).is_empty());
    // A later write waits behind it.
    assert!(node.put(image(6, "e", 1, Some(6))).is_empty());
    let other = match_event(batch(image(5, "a", 2, None)), &[], &[hash("s")]);
    assert!(node.notify(1, other).is_empty());
    let output = node.notify(1, NodeEvent::Done { xid: 5 });
    let expected = [
        "window s [-0 a@2 deleted, +0 d@1]",
        "window s [-1 b@1 left, +1 e@1]",
    ];
    assert_eq!(output, expected);
}

#[test]
fn a_batch_waits_for_another_that_wrote_one_of_its_documents_again_and_was_read_first() {
    let mut node = three();
    let other = match_event(batch(image(5, "d", 1, Some(5))), &[hash("s")], &[]);
    assert!(node.notify(1, other).is_empty());
    // The node has handled a@3, and does not report a@2, which was written together with d.
    assert!(node.put(batch(image(6, "a", 3, Some(7)))).is_empty());
    assert!(node.notify(0, NodeEvent::Done { xid: 6 }).is_empty());
    assert!(node.notify(0, NodeEvent::Done { xid: 5 }).is_empty());
    assert!(node.notify(1, NodeEvent::Done { xid: 5 }).is_empty());
    let output = node.notify(1, NodeEvent::Done { xid: 6 });
    assert_eq!(output, ["window s [-1 b@1 left, =0 a@3, +0 d@1]"]);
}

#[test]
fn a_batch_waits_for_another_that_stands_for_a_part_of_it_in_an_answer() {
    let mut node = Stage::new();
    let rows = [row("a", 1, 10), row("b", 1, 20)];
    node.ask_alone(register(&sorted("s", 0, 2, 1), 0, &until(5), &rows, true));
    let other = match_event(batch(image(5, "d", 1, Some(5))), &[hash("s")], &[]);
    node.notify(1, other);
    node.notify(1, NodeEvent::Done { xid: 5 });
    node.accept(1);
    // Reported for other queries; with its answer the node reports only a@3, not a@2.
    node.notify(0, NodeEvent::Done { xid: 5 });
    node.put(batch(image(6, "a", 3, Some(7))));
    assert_eq!(node.accept(0), ["rebase s [a@1 b@1]", "active s 1"]);
    assert!(node.notify(0, NodeEvent::Done { xid: 6 }).is_empty());
    let output = node.notify(1, NodeEvent::Done { xid: 6 });
    assert_eq!(output, ["window s [-1 b@1 left, =0 a@3, +0 d@1]"]);
}

#[test]
fn a_tick_that_sees_a_batch_stands_for_its_end() {
    let mut node = three();
    assert!(node.put(batch(image(5, "d", 1, Some(5)))).is_empty());
    node.notify(0, NodeEvent::Tick(tick(1, until(6))));
    let output = node.notify(1, NodeEvent::Tick(tick(1, until(6))));
    assert_eq!(output, ["window s [-1 b@1 left, +0 d@1]", "tick 1"]);
}

/// A node that was rebuilt with a@1 before filter nodes reported it, and keeps all rows.
fn ahead() -> Stage {
    let mut node = Stage::new();
    node.begin(&[sorted("s", 0, 5, 1)], until(5));
    let rows = vec![row("a", 1, 10)];
    let collection = COLLECTION;
    node.give(Input::Rows { collection, rows });
    let output = node.give(Input::End);
    assert_eq!(output, ["rebase s [a@1]", "active s 1", "rebased"]);
    node
}

#[test]
fn a_batch_waits_until_filter_nodes_know_which_documents_a_rebuild_read() {
    let mut node = ahead();
    // The node does not report a@2, which does not match: it does not know who has a@1.
    assert!(node.put(batch(image(5, "d", 1, Some(5)))).is_empty());
    assert!(node.notify(0, NodeEvent::Done { xid: 5 }).is_empty());
    assert!(node.notify(1, NodeEvent::Done { xid: 5 }).is_empty());
    assert_eq!(node.tick(1, &until(4)), ["tick 1"]);
    // a@1 has arrived.
    assert!(node.leave(batch(image(5, "a", 2, None))).is_empty());
    assert_eq!(node.tick(2, &until(5)), ["tick 2"]);
    // The node reported before that it was done, so that does not count.
    let output = node.notify(0, NodeEvent::Tick(tick(3, until(6))));
    assert_eq!(output, ["window s [-0 a@2 deleted, +0 d@1]"]);
}

#[test]
fn a_batch_is_shown_with_the_write_that_took_out_what_a_rebuild_read() {
    let mut node = ahead();
    assert!(node.put(batch(image(5, "d", 1, Some(5)))).is_empty());
    assert!(node.notify(0, NodeEvent::Done { xid: 5 }).is_empty());
    assert!(node.notify(1, NodeEvent::Done { xid: 5 }).is_empty());
    // a@2 of the batch arrived after a@3, and a@1 after both: a@3 covers what the batch wrote.
    assert!(node.leave(image(6, "a", 3, None)).is_empty());
    let output = node.tick(1, &until(5));
    let expected = ["window s [-0 a@3 deleted, +0 d@1]", "tick 1"];
    assert_eq!(output, expected);
}

#[test]
fn a_batch_waits_no_more_for_what_a_rebuild_read_once_ticks_have_reached_it() {
    let mut node = ahead();
    assert!(node.put(batch(image(9, "d", 1, Some(5)))).is_empty());
    assert!(node.notify(0, NodeEvent::Done { xid: 9 }).is_empty());
    assert!(node.notify(1, NodeEvent::Done { xid: 9 }).is_empty());
    let output = node.tick(1, &until(5));
    assert_eq!(output, ["window s [+0 d@1]", "tick 1"]);
    assert!(node.put(batch(image(10, "e", 1, Some(1)))).is_empty());
    assert!(node.notify(0, NodeEvent::Done { xid: 10 }).is_empty());
    let output = node.notify(1, NodeEvent::Done { xid: 10 });
    assert_eq!(output, ["window s [+0 e@1]"]);
}
