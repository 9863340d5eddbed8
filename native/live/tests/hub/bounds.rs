//! Slow clients, throttles and whole results.

use rillbase_live::hub::{Bounds, Options};

use crate::common::{image, query, row, until};
use crate::desk::{Desk, F0, F1, Is, line};

const FEW: Bounds = Bounds {
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
fn a_throttled_client_is_told_at_once_and_then_at_most_so_often() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let options = Options {
        throttle_us: 1_000_000,
        ..Options::default()
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
fn what_was_put_together_is_told_before_a_token_says_so() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let options = Options {
        throttle_us: 1_000_000,
        ..Options::default()
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
    let options = Options {
        whole_results: true,
        ..Options::default()
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
    change.content = rillbase_live::message::Content::Document(large("a", 2));
    desk.matched(F0, change, Is::Changed, q.hash);
    let frames = desk.take();
    assert!(frames[0].text.contains(r#""omitted":"size""#));
    assert!(frames[0].text.len() < 2_000);
}
