//! Atomic batches reach subscribers as one marked group.

use rillbase_live::hub::{ClientOptions, HubRequest};
use rillbase_live::message::{
    AfterImage, NodeEvent, NotificationSource, QueryDefinition, StreamId,
};

use super::desk::{Desk, F0, F1, Is, parsed, token, watched};
use crate::common::{image, query, row, until};

fn part(xid: u64, id: &str, version: u64, n: Option<i64>) -> AfterImage {
    AfterImage {
        parts: [0, 1].into(),
        ..image(xid, id, version, n)
    }
}

/// A query with a subscriber that has received everything.
fn opened() -> (Desk, QueryDefinition) {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[]);
    desk.take();
    (desk, q)
}

fn done(desk: &mut Desk, source: NotificationSource, xid: u64) {
    desk.notify(source, NodeEvent::Done { xid });
}

#[test]
fn a_batch_over_two_partitions_is_one_group_and_later_writes_wait_behind_it() {
    let (mut desk, q) = opened();
    desk.matched(F0, part(6, "a", 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F0, 6);
    desk.matched(F0, image(7, "c", 1, Some(1)), Is::Added, q.hash);
    assert!(desk.lines().is_empty());
    desk.matched(F1, part(6, "b", 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F1, 6);
    let expected = [
        "s1 add a@1 #1 1/3",
        "s1 add b@1 #2 2/3",
        "s1 add c@1 #3 3/3",
    ];
    assert_eq!(desk.lines(), expected);
}

#[test]
fn a_new_nodes_state_from_before_a_batch_that_another_reported_first_removes_nothing_of_it() {
    let (mut desk, q) = opened();
    let part_of = |id: &str| rillbase_documents::id::key_hash(id.as_bytes()) % 2;
    let of = |part| move |id: &&str| part_of(id) == part;
    let ids = ["a", "b", "c", "d", "e", "f"];
    let zero = ids.into_iter().find(of(0)).unwrap();
    let one = ids.into_iter().find(of(1)).unwrap();
    desk.notify(F1, NodeEvent::Start);
    desk.matched(F0, part(8, zero, 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F0, 8);
    desk.rebase(F1, &q, 8, &[]);
    desk.active(F1, &q);
    desk.notify(F1, NodeEvent::Rebased { snapshot: until(8) });
    desk.matched(F1, part(8, one, 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F1, 8);
    desk.ticks(9);
    desk.pass(250_000);
    let expected = [
        format!("s1 add {zero}@1 #1 1/2"),
        format!("s1 add {one}@1 #2 2/2"),
    ];
    assert_eq!(desk.lines(), expected);
}

#[test]
fn a_batch_waits_for_a_node_that_has_not_read_the_registration() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.register(&q, until(6), &[row("a", 1, 1)]);
    desk.active(F1, &q);
    desk.matched(F1, part(6, "b", 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F1, 6);
    // Reported for other queries: this one's part comes with the answer to its registration.
    done(&mut desk, F0, 6);
    assert_eq!(desk.lines(), ["s1 result a@1"]);
    desk.matched(F0, part(6, "a", 2, Some(1)), Is::Changed, q.hash);
    done(&mut desk, F0, 6);
    desk.active(F0, &q);
    desk.ticks(7);
    let expected = ["s1 add b@1 #1 1/2", "s1 change a@2 #2 2/2", "s1 ready"];
    assert_eq!(desk.lines(), expected);
}

#[test]
fn a_batch_reported_with_a_nodes_answer_is_shown_with_the_answer() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.register(&q, until(6), &[]);
    desk.active(F1, &q);
    let own = |id| AfterImage {
        parts: [0].into(),
        ..image(6, id, 1, Some(1))
    };
    desk.matched(F0, own("a"), Is::Added, q.hash);
    desk.matched(F0, own("b"), Is::Added, q.hash);
    done(&mut desk, F0, 6);
    assert_eq!(desk.lines(), ["s1 result"]);
    desk.active(F0, &q);
    assert_eq!(desk.lines(), ["s1 add a@1 #1 1/2", "s1 add b@1 #2 2/2"]);
}

#[test]
fn a_rebase_before_the_registration_does_not_end_a_batch() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.notify(F1, NodeEvent::Start);
    desk.register(&q, until(6), &[row("a", 1, 1)]);
    desk.notify(F1, NodeEvent::Rebased { snapshot: until(7) });
    desk.active(F0, &q);
    desk.matched(F0, part(6, "a", 2, None), Is::Removed, q.hash);
    done(&mut desk, F0, 6);
    desk.active(F1, &q);
    assert_eq!(desk.lines(), ["s1 result a@1"]);
    desk.matched(F1, part(6, "b", 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F1, 6);
    let expected = ["s1 remove a@2 deleted #1 1/2", "s1 add b@1 #2 2/2"];
    assert_eq!(desk.lines(), expected);
}

#[test]
fn an_answer_that_is_read_again_after_its_node_was_replaced_counts_no_more() {
    let (mut desk, q) = opened();
    let noted = desk.end();
    desk.hub.lost(0);
    let last = desk.request();
    let answer = NodeEvent::Active {
        query: q.hash,
        activation: q.activation,
        request: StreamId {
            number: last.number + 1,
            ..last
        },
    };
    desk.notify(F1, answer);
    desk.notify(F1, NodeEvent::Start);
    desk.notify(F1, NodeEvent::Rebased { snapshot: until(8) });
    desk.register_behind(&q, noted, until(6), &[]);
    desk.active(F0, &q);
    desk.matched(F0, part(6, "a", 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F0, 6);
    assert_eq!(desk.lines(), ["s1 stale"]);
    desk.matched(F1, part(6, "b", 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F1, 6);
    desk.active(F1, &q);
    desk.tick(F1, 9);
    assert_eq!(desk.lines(), ["s1 add a@1 #1 1/2", "s1 add b@1 #2 2/2"]);
}

#[test]
fn a_new_nodes_state_waits_for_one_that_has_not_read_the_registration() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let (a, b) = (id_of(0), id_of(1));
    desk.attach(1, &q);
    desk.notify(F1, NodeEvent::Start);
    desk.register(&q, until(6), &[]);
    desk.notify(F1, NodeEvent::Rebased { snapshot: until(9) });
    desk.notify(F0, NodeEvent::Start);
    desk.rebase(F0, &q, 8, &[row(&a, 1, 1)]);
    desk.active(F0, &q);
    desk.notify(F0, NodeEvent::Rebased { snapshot: until(8) });
    assert_eq!(desk.lines(), ["s1 result"]);
    desk.matched(F1, part(6, &b, 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F1, 6);
    desk.active(F1, &q);
    desk.tick(F1, 10);
    let expected = [
        format!("s1 add {a}@1 #1 1/2"),
        format!("s1 add {b}@1 #2 2/2"),
    ];
    assert_eq!(desk.lines(), expected);
}

#[test]
fn the_states_of_two_new_nodes_are_shown_together_as_each_may_hold_a_part_of_a_batch() {
    let (mut desk, q) = opened();
    let (a, b) = (id_of(0), id_of(1));
    for (node, next, id) in [(F0, 8, &a), (F1, 9, &b)] {
        desk.notify(node, NodeEvent::Start);
        desk.rebase(node, &q, next, &[row(id, 1, 1)]);
        desk.active(node, &q);
        desk.notify(
            node,
            NodeEvent::Rebased {
                snapshot: until(next),
            },
        );
    }
    assert!(desk.lines().is_empty());
    desk.tick(F0, 9);
    let expected = [
        format!("s1 add {a}@1 #1 1/2"),
        format!("s1 add {b}@1 #2 2/2"),
    ];
    assert_eq!(desk.lines(), expected);
}

#[test]
fn only_the_last_event_of_a_group_carries_a_token() {
    let (mut desk, q) = opened();
    desk.matched(F0, part(6, "a", 1, Some(1)), Is::Added, q.hash);
    desk.matched(F1, part(6, "b", 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F0, 6);
    done(&mut desk, F1, 6);
    let tokens = desk.take();
    let tokens = tokens
        .iter()
        .map(|frame| parsed(&frame.text).as_ref().get("resume").is_some());
    assert_eq!(tokens.collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_batch_whose_end_does_not_come_is_read_again_and_becomes_a_reset() {
    let (mut desk, q) = opened();
    desk.pass(250_000);
    desk.take();
    desk.take_requests();
    desk.matched(F0, part(6, "a", 1, Some(1)), Is::Added, q.hash);
    for _ in 0..5 {
        desk.pass(500_000);
        desk.ticks(6);
    }
    assert_eq!(desk.lines(), ["s1 stale"]);
    assert_eq!(desk.take_requests(), [HubRequest::Register(q.hash)]);
    desk.register(&q, until(7), &[row("a", 1, 1), row("b", 1, 1)]);
    let expected = [
        "s1 reset batch_incomplete",
        "s1 result a@1 b@1",
        "s1 ready",
        "s1 stale",
    ];
    assert_eq!(desk.lines(), expected);
    desk.active(F0, &q);
    desk.active(F1, &q);
    desk.ticks(7);
    desk.pass(250_000);
    assert_eq!(desk.lines(), ["s1 live"]);
}

#[test]
fn a_client_of_whole_results_never_receives_half_of_an_incomplete_batch() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let options = ClientOptions {
        whole_results: true,
        ..ClientOptions::default()
    };
    desk.attach_with(1, &q, options, None);
    desk.open(&q, 5, &[]);
    desk.matched(F0, part(6, "a", 1, Some(1)), Is::Added, q.hash);
    for _ in 0..6 {
        desk.pass(500_000);
        desk.ticks(6);
    }
    assert_eq!(desk.lines(), ["s1 result", "s1 ready", "s1 stale"]);
    desk.register(&q, until(7), &[row("a", 1, 1), row("b", 1, 1)]);
    assert_eq!(
        desk.lines().get(..2).unwrap(),
        ["s1 reset batch_incomplete", "s1 result a@1 b@1"]
    );
}

#[test]
fn between_a_loss_and_the_rows_that_make_up_for_it_nothing_is_shown() {
    let (mut desk, q) = watched(&[row("a", 1, 1)]);
    desk.take();
    // Whether the other half of another batch was lost is unknown.
    desk.skip(F1);
    desk.tick(F1, 5);
    desk.matched(F0, part(8, "a", 2, Some(1)), Is::Changed, q.hash);
    done(&mut desk, F0, 8);
    done(&mut desk, F1, 8);
    desk.matched(F0, image(9, "c", 1, Some(1)), Is::Added, q.hash);
    desk.attach(2, &q);
    assert_eq!(desk.lines(), ["s1 stale", "s2 result a@1"]);
    let rows = [row("a", 2, 1), row("b", 1, 1), row("c", 1, 1)];
    desk.register(&q, until(10), &rows);
    let group = |client: &str| {
        let events = ["add b@1 #2 2/3", "add c@1 #3 3/3", "change a@2 #1 1/3"];
        events.map(|event| format!("{client} {event}"))
    };
    let mut lines = desk.lines();
    lines.sort();
    assert_eq!(lines, [group("s1"), group("s2")].concat());
}

#[test]
fn rows_of_another_activation_from_before_a_batch_undo_nothing_of_it() {
    let (mut desk, mut q) = watched(&[row("a", 1, 1)]);
    desk.take();
    desk.hub.lost(0);
    let end = desk.end();
    let own = AfterImage {
        parts: [0].into(),
        ..image(8, "a", 2, None)
    };
    desk.matched(F0, own, Is::Removed, q.hash);
    done(&mut desk, F0, 8);
    assert_eq!(desk.lines(), ["s1 stale"]);
    // The nodes answer this one later: until then their other reports about the batch are unknown.
    q.activation = 2;
    desk.register_behind(&q, end, until(8), &[row("a", 1, 1)]);
    assert!(desk.lines().is_empty());
    desk.active(F0, &q);
    assert_eq!(desk.lines(), ["s1 remove a@2 deleted #1"]);
}

#[test]
fn a_report_from_before_a_nodes_latest_answer_does_not_end_a_batch() {
    let (mut desk, q) = opened();
    let (a, b) = (id_of(0), id_of(1));
    desk.hub.lost(0);
    let end = desk.end();
    // The node has handled the batch's version of a document that it did not track: the rows that
    // it continues from did not change. The first version arrives later, or never.
    done(&mut desk, F1, 8);
    desk.matched(F0, part(8, &a, 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F0, 8);
    desk.register_behind(&q, end, until(8), &[row(&b, 1, 1)]);
    desk.active(F0, &q);
    assert_eq!(
        desk.lines(),
        ["s1 stale".into(), format!("s1 add {b}@1 #1")]
    );
    let left = part(8, &b, 2, None);
    desk.matched(F1, left, Is::Removed, q.hash);
    done(&mut desk, F1, 8);
    assert!(desk.lines().is_empty());
    desk.active(F1, &q);
    let expected = [
        format!("s1 add {a}@1 #2 1/2"),
        format!("s1 remove {b}@2 deleted #3 2/2"),
    ];
    assert_eq!(desk.lines(), expected);
}

#[test]
fn a_batch_waits_while_a_node_stands_still() {
    let (mut desk, q) = opened();
    desk.pass(250_000);
    desk.take();
    desk.matched(F0, part(6, "a", 1, Some(1)), Is::Added, q.hash);
    for _ in 0..10 {
        desk.pass(500_000);
        desk.tick(F0, 6);
    }
    assert_eq!(desk.lines(), ["s1 stale"]);
    desk.matched(F1, part(6, "b", 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F0, 6);
    done(&mut desk, F1, 6);
    assert_eq!(desk.lines(), ["s1 add a@1 #1 1/2", "s1 add b@1 #2 2/2"]);
}

#[test]
fn the_half_of_a_batch_that_a_new_node_knows_from_its_rebuild_comes_with_the_other() {
    let (mut desk, q) = opened();
    desk.matched(F0, part(6, "a", 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F0, 6);
    let b = id_of(1);
    desk.notify(F1, NodeEvent::Start);
    desk.rebase(F1, &q, 8, &[row(&b, 1, 1)]);
    desk.active(F1, &q);
    desk.notify(F1, NodeEvent::Rebased { snapshot: until(8) });
    assert!(desk.lines().is_empty());
    desk.tick(F0, 8);
    assert_eq!(
        desk.lines(),
        ["s1 add a@1 #1 1/2".into(), format!("s1 add {b}@1 #2 2/2")]
    );
}

#[test]
fn a_group_of_more_than_five_hundred_is_a_reset() {
    let (mut desk, q) = opened();
    for number in 0..501 {
        let id = format!("{number}");
        desk.matched(F0, part(6, &id, 1, Some(1)), Is::Added, q.hash);
    }
    done(&mut desk, F0, 6);
    done(&mut desk, F1, 6);
    let lines = desk.lines();
    assert_eq!(lines.first().unwrap(), "s1 reset too_many_changes");
    assert_eq!(lines.last().unwrap(), "s1 ready");
}

#[test]
fn no_place_to_go_on_from_lies_within_a_batch() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[]);
    desk.matched(F1, image(6, "z", 1, Some(1)), Is::Added, q.hash);
    desk.matched(F0, part(7, "a", 1, Some(1)), Is::Added, q.hash);
    desk.matched(F0, image(8, "c", 1, Some(1)), Is::Added, q.hash);
    let token = token(&desk.take());
    desk.matched(F1, part(7, "b", 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F0, 7);
    done(&mut desk, F1, 7);
    let count = desk.lines().len();
    desk.take_requests();
    desk.attach_with(2, &q, ClientOptions::default(), Some(token));
    desk.pass(250_000);
    desk.answer_replays();
    let again = desk.lines();
    assert_eq!(again.first().unwrap(), "s2 ready");
    assert_eq!(again.len(), 1 + count);
    let ends: Vec<_> = again
        .iter()
        .skip(1)
        .map(|line| line.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(ends, ["1/3", "2/3", "3/3"]);
}

#[test]
fn a_repeated_batch_ends_only_after_its_writes() {
    let (mut desk, q) = opened();
    done(&mut desk, F0, 6);
    desk.ticks(9);
    let own = |id| AfterImage {
        parts: [0].into(),
        ..image(6, id, 1, Some(1))
    };
    desk.matched(F0, own("a"), Is::Added, q.hash);
    desk.matched(F0, own("b"), Is::Added, q.hash);
    assert!(desk.lines().is_empty());
    done(&mut desk, F0, 6);
    assert_eq!(desk.lines(), ["s1 add a@1 #1 1/2", "s1 add b@1 #2 2/2"]);
}

/// Of a batch, b is reported; a was written again by the next batch, which its node read first, so
/// a@2 is not reported.
fn written_again(desk: &mut Desk, q: &QueryDefinition, b: &str) {
    desk.matched(F1, part(8, b, 1, Some(1)), Is::Added, q.hash);
    done(desk, F1, 8);
    desk.matched(F0, part(9, "a", 3, Some(1)), Is::Changed, q.hash);
    done(desk, F0, 9);
    done(desk, F0, 8);
}

#[test]
fn a_batch_waits_for_another_that_wrote_one_of_its_documents_again_and_was_read_first() {
    let (mut desk, q) = watched(&[row("a", 1, 1)]);
    let token = token(&desk.take());
    let b = id_of(1);
    written_again(&mut desk, &q, &b);
    assert!(desk.lines().is_empty());
    done(&mut desk, F1, 9);
    let expected = |client: &str| {
        [
            format!("{client} add {b}@1 #1 1/2"),
            format!("{client} change a@3 #2 2/2"),
        ]
    };
    assert_eq!(desk.lines(), expected("s1"));
    desk.take_requests();
    desk.attach_with(2, &q, ClientOptions::default(), Some(token));
    desk.ticks(10);
    desk.pass(250_000);
    desk.answer_replays();
    let again = desk.lines();
    assert_eq!(again.get(1..).unwrap(), expected("s2"));
}

#[test]
fn a_batch_waits_for_another_that_stands_for_a_part_of_it_in_an_answer() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let b = id_of(1);
    desk.attach(1, &q);
    desk.register(&q, until(8), &[row("a", 1, 1)]);
    desk.active(F1, &q);
    // Reported for other queries; with its answer the node reports only a@3.
    done(&mut desk, F0, 8);
    desk.matched(F1, part(8, &b, 1, Some(1)), Is::Added, q.hash);
    done(&mut desk, F1, 8);
    desk.matched(F0, part(9, "a", 3, Some(1)), Is::Changed, q.hash);
    desk.active(F0, &q);
    assert_eq!(desk.lines(), ["s1 result a@1"]);
    done(&mut desk, F0, 9);
    assert!(desk.lines().is_empty());
    done(&mut desk, F1, 9);
    let expected = [
        format!("s1 add {b}@1 #1 1/2"),
        "s1 change a@3 #2 2/2".to_owned(),
    ];
    assert_eq!(desk.lines(), expected);
}

/// An id that belongs to a partition.
fn id_of(partition: i32) -> String {
    let mut ids = ('a'..='z').map(String::from);
    ids.find(|id| rillbase_documents::id::key_hash(id.as_bytes()) % 2 == partition && id != "a")
        .unwrap()
}
