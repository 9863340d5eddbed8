//! Slow clients, throttles and whole results.

use std::collections::HashMap;

use rillbase_live::hub::{ClientOptions, OutboxBounds};
use rillbase_live::message::ResultRow;

use super::desk::{Desk, F0, F1, Is, line};
use crate::common::{image, query, row, until};

const FEW: OutboxBounds = OutboxBounds {
    frames: 4,
    bytes: 1_000_000,
    in_flight: (128, 1_000_000),
};

#[test]
fn a_slow_client_gets_what_became_of_each_document() {
    let (mut desk, q) = (Desk::bounded(FEW), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1), row("b", 1, 1)]);
    desk.take();
    for version in 2..6 {
        let change = image(version + 10, "a", version, Some(1));
        desk.matched(F0, change, Is::Changed, q.hash);
    }
    desk.matched(F0, image(20, "a", 6, Some(1)), Is::Changed, q.hash);
    desk.matched(F0, image(21, "a", 7, Some(1)), Is::Changed, q.hash);
    desk.matched(F0, image(22, "c", 1, Some(1)), Is::Added, q.hash);
    desk.matched(F0, image(23, "c", 2, None), Is::Removed, q.hash);
    desk.matched(F0, image(24, "b", 2, Some(-1)), Is::Removed, q.hash);
    desk.matched(F0, image(25, "b", 3, Some(1)), Is::Added, q.hash);
    assert_eq!(desk.lines().len(), 4);
    desk.pass(100_000);
    let expected = ["s1 change a@7 #5 1/2", "s1 change b@3 #6 2/2"];
    assert_eq!(desk.lines(), expected);
}

#[test]
fn one_slow_client_does_not_delay_another() {
    let (mut desk, q) = (Desk::bounded(FEW), query("q", "{}"));
    desk.attach(1, &q);
    desk.attach(2, &q);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    let mut fast = 0;
    for version in 2..302 {
        let change = image(version + 10, "a", version, Some(1));
        desk.matched(F0, change, Is::Changed, q.hash);
        let frames = desk.hub.poll(100);
        for frame in frames.iter().filter(|frame| frame.client == 2) {
            fast += 1;
            desk.hub.drained(2, 1, frame.text.len());
        }
    }
    assert_eq!(fast, 300);
    let waiting = desk.hub.figures(1).unwrap().waiting;
    assert!(waiting <= 128 + 4, "{waiting}");
}

#[test]
fn a_connection_has_room_for_so_much_however_many_subscriptions_it_carries() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.connection = Some(7);
    for id in 1..=40 {
        desk.attach(id, &q);
    }
    let rows = many_large();
    desk.open(&q, 5, &rows);
    let unread = handed_out(&mut desk);
    assert!(unread.1 < 3_000_000, "{unread:?}");
    desk.connection = None;
    desk.attach(50, &q);
    assert!(handed_out(&mut desk).1 > 500_000, "others have their own");
}

#[test]
fn one_poll_renders_a_bounded_amount_and_reports_that_there_is_more() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    for id in 1..=40 {
        desk.attach(id, &q);
    }
    desk.open(&q, 5, &many_large());
    let mut rounds = 0;
    while desk.hub.has_frames() {
        let bytes: usize = desk.hub.poll(1_000).iter().map(|one| one.text.len()).sum();
        assert!(bytes < 2_000_000, "{bytes}");
        rounds += 1;
    }
    assert!(rounds >= 40, "{rounds}");
}

#[test]
fn nothing_is_rendered_for_a_stuck_connection_until_it_reads() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.connection = Some(7);
    for id in 1..=40 {
        desk.attach(id, &q);
    }
    desk.open(&q, 5, &many_large());
    let mut unread = handed_out(&mut desk);
    desk.pass(1_500_000);
    desk.ticks(5);
    for version in 2..100 {
        let change = image(version + 10, "d0", version, Some(1));
        desk.matched(F0, change, Is::Changed, q.hash);
    }
    for id in 1..=40 {
        let waiting = desk.hub.figures(id).unwrap().waiting;
        assert!(waiting < 10, "{waiting} frames wait for {id}");
    }
    let mut count = 0;
    for _ in 0..1_000 {
        for (id, (frames, bytes)) in std::mem::take(&mut unread.2) {
            desk.hub.drained(id, frames, bytes);
        }
        desk.pass(60_000);
        let frames = desk.hub.poll(1_000);
        for frame in frames {
            let line = line(&frame.text);
            count += usize::from(line.contains("change d0@99"));
            let taken = unread.2.entry(frame.client).or_default();
            *taken = (taken.0 + 1, taken.1 + frame.text.len());
        }
    }
    assert_eq!(count, 40, "each is count what has become of the document");
}

/// A result of about half a megabyte.
fn many_large() -> Vec<ResultRow> {
    let text = "x".repeat(20_000);
    let large = |number: usize| {
        let id = format!("d{number}");
        let body = crate::common::bson(&format!(r#"{{"_id":"{id}","text":"{text}"}}"#));
        ResultRow {
            body,
            ..row(&id, 1, 1)
        }
    };
    (0..30).map(large).collect()
}

/// Hands out everything allowed while clients read nothing: frames, bytes, and both by
/// subscription.
fn handed_out(desk: &mut Desk) -> (usize, usize, HashMap<u64, (usize, usize)>) {
    let (mut frames, mut bytes, mut each) = (0, 0, HashMap::new());
    while desk.hub.has_frames() {
        for frame in desk.hub.poll(1_000) {
            frames += 1;
            bytes += frame.text.len();
            let own: &mut (usize, usize) = each.entry(frame.client).or_default();
            *own = (own.0 + 1, own.1 + frame.text.len());
        }
    }
    (frames, bytes, each)
}

#[test]
fn a_throttled_client_is_sent_the_first_change_at_once_and_then_limited() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let options = ClientOptions {
        throttle_us: 1_000_000,
        ..ClientOptions::default()
    };
    desk.attach_with(1, &q, options, None);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    for version in 2..5 {
        let change = image(version + 10, "a", version, Some(1));
        desk.matched(F0, change, Is::Changed, q.hash);
    }
    assert_eq!(desk.lines(), ["s1 change a@2 #1"]);
    desk.pass(900_000);
    assert!(desk.lines().is_empty());
    desk.pass(100_000);
    assert_eq!(desk.lines(), ["s1 change a@4 #2"]);
}

#[test]
fn coalesced_changes_are_sent_before_a_token_covers_them() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let options = ClientOptions {
        throttle_us: 1_000_000,
        ..ClientOptions::default()
    };
    desk.attach_with(1, &q, options, None);
    desk.register(&q, until(5), &[row("a", 1, 1)]);
    for version in 2..5 {
        let change = image(version + 10, "a", version, Some(1));
        desk.matched(F0, change, Is::Changed, q.hash);
    }
    assert_eq!(desk.lines(), ["s1 result a@1", "s1 change a@2 #1"]);
    desk.active(F0, &q);
    desk.active(F1, &q);
    desk.ticks(5);
    desk.pass(250_000);
    assert_eq!(desk.lines(), ["s1 change a@4 #2", "s1 ready"]);
}

#[test]
fn whole_results_replace_one_another() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let options = ClientOptions {
        whole_results: true,
        ..ClientOptions::default()
    };
    desk.attach_with(1, &q, options, None);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    desk.matched(F0, image(11, "a", 2, Some(1)), Is::Changed, q.hash);
    assert_eq!(desk.lines(), ["s1 result a@2"]);
    desk.matched(F0, image(12, "b", 1, Some(1)), Is::Added, q.hash);
    assert_eq!(desk.lines(), ["s1 result a@2 b@1"]);
}

#[test]
fn a_large_result_comes_in_parts_and_a_large_document_is_left_out_of_events() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let long = "x".repeat(700_000);
    let large = |id: &str, times: usize| {
        let text = format!(r#"{{"_id":"{id}","text":"{}"}}"#, long.repeat(times));
        crate::common::bson(&text)
    };
    let rows = ["a", "b", "c"].map(|id| {
        let mut row = row(id, 1, 1);
        row.body = large(id, 1);
        row
    });
    desk.attach(1, &q);
    desk.open(&q, 5, &rows);
    let frames = desk.take();
    let lines: Vec<_> = frames.iter().map(|frame| line(&frame.text)).collect();
    assert_eq!(lines, ["s1 result a@1 b@1", "s1 result c@1", "s1 ready"]);
    let mut change = image(9, "a", 2, Some(1));
    change.content = rillbase_live::message::ImageContent::Document(large("a", 2));
    desk.matched(F0, change, Is::Changed, q.hash);
    let frames = desk.take();
    assert!(frames[0].text.contains(r#""omitted":"size""#));
    assert!(frames[0].text.len() < 2_000);
}
