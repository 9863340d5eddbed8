//! Unsorted queries, one write at a time.

use rillbase_live::hub::{ClientOptions, HubRequest};

use super::desk::{Desk, F0, F1, Is};
use crate::common::{image, query, row, until};

#[test]
fn a_result_comes_first_and_ready_once_all_nodes_watch() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    assert_eq!(desk.take_requests(), [HubRequest::Register(q.hash)]);
    desk.register(&q, until(5), &[row("a", 1, 1)]);
    assert_eq!(desk.lines(), ["s1 result a@1"]);
    desk.active(F0, &q);
    desk.ticks(5);
    assert!(desk.lines().is_empty());
    desk.active(F1, &q);
    assert_eq!(desk.lines(), ["s1 ready"]);
}

#[test]
fn each_change_is_sent_once_with_its_version_and_consecutive_numbers() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    desk.matched(F0, image(6, "a", 2, Some(2)), Is::Changed, q.hash);
    desk.matched(F1, image(7, "b", 1, Some(2)), Is::Added, q.hash);
    desk.matched(F1, image(7, "b", 1, Some(2)), Is::Added, q.hash);
    desk.matched(F0, image(8, "a", 3, Some(-2)), Is::Removed, q.hash);
    desk.matched(F1, image(9, "b", 2, None), Is::Removed, q.hash);
    let expected = [
        "s1 change a@2 #1",
        "s1 add b@1 #2",
        "s1 remove a@3 left #3",
        "s1 remove b@2 deleted #4",
    ];
    assert_eq!(desk.lines(), expected);
}

#[test]
fn a_later_subscriber_gets_the_current_result_at_once() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.matched(F0, image(6, "a", 2, Some(2)), Is::Changed, q.hash);
    desk.take();
    desk.take_requests();
    desk.attach(2, &q);
    assert_eq!(desk.lines(), ["s2 result a@2", "s2 ready"]);
    assert!(desk.take_requests().is_empty());
}

#[test]
fn a_write_in_the_rows_is_not_repeated_and_an_old_one_is_never_sent() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 3, 1)]);
    desk.take();
    desk.matched(F0, image(4, "b", 1, Some(1)), Is::Added, q.hash);
    desk.matched(F0, image(6, "a", 2, Some(1)), Is::Changed, q.hash);
    assert!(desk.lines().is_empty());
}

#[test]
fn a_removed_document_does_not_reappear_with_an_old_version() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.matched(F0, image(7, "a", 3, None), Is::Removed, q.hash);
    desk.take();
    desk.matched(F0, image(6, "a", 2, Some(1)), Is::Added, q.hash);
    assert!(desk.lines().is_empty());
    desk.matched(F0, image(8, "a", 4, Some(1)), Is::Added, q.hash);
    assert_eq!(desk.lines(), ["s1 add a@4 #2"]);
}

#[test]
fn log_entries_that_arrive_while_rows_are_read_are_not_lost() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.matched(F0, image(3, "a", 2, Some(1)), Is::Added, q.hash);
    let end = desk.end();
    desk.matched(F0, image(6, "b", 1, Some(1)), Is::Added, q.hash);
    desk.register_behind(&q, end, until(5), &[row("a", 2, 1)]);
    assert_eq!(desk.lines(), ["s1 result a@2 b@1"]);
}

#[test]
fn muted_kinds_are_left_out_of_the_numbers() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let options = ClientOptions {
        muted: [false, true, false, false],
        ..ClientOptions::default()
    };
    desk.attach_with(1, &q, options, None);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    desk.matched(F0, image(6, "a", 2, Some(2)), Is::Changed, q.hash);
    desk.matched(F0, image(7, "b", 1, Some(2)), Is::Added, q.hash);
    assert_eq!(desk.lines(), ["s1 add b@1 #1"]);
}

#[test]
fn writes_under_newer_rules_and_later_ones_are_withheld() {
    let (mut desk, mut q) = (Desk::new(), query("q", "{}"));
    q.rules_version = 3;
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    desk.take_requests();
    let mut newer = image(6, "a", 2, Some(2));
    newer.rules_version = 4;
    desk.matched(F0, newer, Is::Changed, q.hash);
    desk.matched(F0, image(7, "b", 1, Some(2)), Is::Added, q.hash);
    desk.pass(250_000);
    assert_eq!(desk.lines(), ["s1 stale"]);
    assert_eq!(desk.take_requests(), [HubRequest::RecheckAccess(q.hash)]);
}

#[test]
fn a_query_without_subscribers_is_unregistered() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.attach(2, &q);
    desk.open(&q, 5, &[]);
    desk.take_requests();
    desk.hub.detach(1);
    assert!(desk.take_requests().is_empty());
    desk.hub.detach(2);
    assert_eq!(desk.take_requests(), [HubRequest::Unregister(q.hash)]);
}

#[test]
fn a_refused_query_ends_all_its_subscriptions() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.attach(2, &q);
    desk.hub.refused(&q.hash, "{}");
    let frames = desk.take();
    assert!(frames.iter().all(|frame| frame.over));
    assert_eq!(frames.len(), 2);
}
