//! Explanations of why a client received a change, or did not.

use rillbase_live::hub::{ClientOptions, OutboxBounds, TraceRequest};
use rillbase_live::message::{QueryDefinition, ResultRow};
use rillbase_query::bson::{Document, DocumentBuf, Value};
use rillbase_query::ejson::parse_value;

use super::desk::{Desk, F0, F1, Is, SORT};
use crate::common::{body, bson, image, key, query, row, sorted, until};

/// The trace of a document's version for a client.
struct TraceAnswer(DocumentBuf);

impl TraceAnswer {
    fn of(desk: &Desk, client: u64, id: &str, version: u64) -> Self {
        Self::with(desk, client, id, version, None, None)
    }

    fn with(
        desk: &Desk,
        client: u64,
        id: &str,
        version: u64,
        xid: Option<u64>,
        body: Option<&[u8]>,
    ) -> Self {
        Self::to(
            desk,
            &TraceRequest {
                client,
                key: &key(id),
                version,
                xid,
                body,
                times_ms: None,
            },
        )
    }

    fn to(desk: &Desk, question: &TraceRequest<'_>) -> Self {
        let text = desk.hub.trace(question).unwrap();
        match parse_value(text.as_bytes()) {
            Ok(Value::Document(document)) => Self(document),
            other => panic!("{other:?}"),
        }
    }

    fn word(&self, name: &str) -> String {
        word(self.0.as_ref(), name)
    }

    /// These members of the change to this version.
    fn change(&self, version: u64, names: &[&str]) -> String {
        let changes = self.0.as_ref().get("changes");
        let changes = changes.and_then(|value| value.as_array()).unwrap();
        let found = changes
            .iter()
            .filter_map(|value| value.as_document())
            .find(|change| word(*change, "version") == version.to_string());
        let Some(found) = found else {
            return "unknown".to_owned();
        };
        let words: Vec<String> = names.iter().map(|name| word(found, name)).collect();
        words.join(" ")
    }
}

fn word(document: Document<'_>, name: &str) -> String {
    let value = document.get(name);
    value.map_or_else(
        || "-".to_owned(),
        |value| {
            let text =
                rillbase_query::ejson::value_to_string(value, rillbase_query::ejson::Form::Relaxed);
            text.trim_matches('"').to_owned()
        },
    )
}

const FEW: OutboxBounds = OutboxBounds {
    frames: 4,
    bytes: 1_000_000,
    in_flight: (2, 1_000_000),
};

#[test]
fn an_event_is_named_by_its_number_and_how_far_it_has_come() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    desk.matched(F0, image(11, "a", 2, Some(1)), Is::Changed, q.hash);
    desk.matched(F0, image(12, "a", 3, None), Is::Removed, q.hash);
    let answer = TraceAnswer::of(&desk, 1, "a", 2);
    let names = ["match", "told", "first_event", "last_event", "delivery"];
    assert_eq!(answer.change(2, &names), "change events 1 1 waiting");
    assert_eq!(answer.change(3, &names), "remove events 2 2 waiting");
    assert_eq!(answer.word("held_version"), "null");
    assert_eq!(
        (answer.word("gone"), answer.word("gone_version")),
        ("deleted".into(), "3".into())
    );
    let frames = desk.hub.poll(100);
    assert_eq!(
        TraceAnswer::of(&desk, 1, "a", 2).change(2, &["delivery"]),
        "handed"
    );
    for frame in frames {
        desk.hub.drained(1, 1, frame.text.len());
    }
    assert_eq!(
        TraceAnswer::of(&desk, 1, "a", 2).change(2, &["delivery"]),
        "taken"
    );
}

#[test]
fn the_trace_reports_what_the_first_result_already_contained() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 2, 1)]);
    let answer = TraceAnswer::with(&desk, 1, "a", 2, Some(4), None);
    assert_eq!(answer.word("rows_have_it"), "true");
    assert_eq!(answer.word("held_version"), "2");
    assert_eq!(answer.change(2, &["told"]), "unknown");
    assert_eq!(
        TraceAnswer::with(&desk, 1, "a", 3, Some(9), None).word("rows_have_it"),
        "false"
    );
    assert_eq!(
        TraceAnswer::of(&desk, 1, "a", 3).word("rows_have_it"),
        "null"
    );
}

#[test]
fn changes_that_were_put_together_name_the_events_that_stand_for_them() {
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
    let names = ["told", "groups", "first_event", "last_event"];
    assert_eq!(
        TraceAnswer::of(&desk, 1, "a", 2).change(2, &names),
        "events 1 1 1"
    );
    assert_eq!(
        TraceAnswer::of(&desk, 1, "a", 3).change(3, &["told"]),
        "held"
    );
    desk.pass(1_000_000);
    desk.take();
    for version in [3, 4] {
        let answer = TraceAnswer::of(&desk, 1, "a", version);
        assert_eq!(answer.change(version, &names), "together 2 2 2");
    }
}

#[test]
fn changes_that_cancel_out_cause_no_event() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let options = ClientOptions {
        throttle_us: 1_000_000,
        ..ClientOptions::default()
    };
    desk.attach_with(1, &q, options, None);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.matched(F0, image(11, "a", 2, Some(1)), Is::Changed, q.hash);
    desk.take();
    desk.matched(F0, image(12, "b", 1, Some(1)), Is::Added, q.hash);
    desk.matched(F0, image(13, "b", 2, None), Is::Removed, q.hash);
    desk.pass(1_000_000);
    assert!(desk.lines().is_empty());
    for version in [1, 2] {
        let answer = TraceAnswer::of(&desk, 1, "b", version);
        assert_eq!(
            answer.change(version, &["told", "first_event"]),
            "together -"
        );
    }
}

#[test]
fn the_trace_of_a_client_that_does_not_read_reports_dropped_frames() {
    let (mut desk, q) = (Desk::with(FEW, 2_000, 1 << 20), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    let frames = desk.hub.poll(100);
    assert_eq!(frames.len(), 2);
    for frame in &frames {
        desk.hub.drained(1, 1, frame.text.len());
    }
    for version in 2..12 {
        let change = image(version + 10, "a", version, Some(1));
        desk.matched(F0, change, Is::Changed, q.hash);
        desk.hub.poll(100);
    }
    let answer = TraceAnswer::of(&desk, 1, "a", 5);
    assert_eq!(answer.change(5, &["told", "delivery"]), "events waiting");
    assert_eq!(
        TraceAnswer::of(&desk, 1, "a", 11).change(11, &["told"]),
        "held"
    );
    // Memory is short, and the client has read nothing for seconds.
    desk.pass(3_000_000);
    let answer = TraceAnswer::of(&desk, 1, "a", 5);
    assert_eq!(answer.word("phase"), "cut_off");
    assert_eq!(answer.change(5, &["told", "delivery"]), "events dropped");
    assert_eq!(
        TraceAnswer::of(&desk, 1, "a", 11).change(11, &["told", "reason"]),
        "anew too_slow"
    );
}

#[test]
fn the_trace_compares_a_row_with_the_shown_window() {
    let (mut desk, q) = (Desk::new(), sorted("q", 1, 2, 3));
    let rows = [
        row("a", 1, 10),
        row("b", 1, 20),
        row("c", 1, 30),
        row("d", 1, 40),
    ];
    desk.attach(1, &q);
    desk.register(&q, until(5), &rows);
    desk.active(F0, &q);
    desk.active(F1, &q);
    desk.rebase(SORT, &q, 5, &rows[1..3]);
    desk.active(SORT, &q);
    desk.ticks(5);
    desk.take();
    for (n, expected) in [(10, "before"), (25, "inside"), (40, "behind")] {
        let body = body("x", n);
        let answer = TraceAnswer::with(&desk, 1, "x", 1, None, Some(&body));
        assert_eq!(answer.word("place"), expected, "{n}");
    }
    let answer = TraceAnswer::of(&desk, 1, "c", 1);
    assert_eq!(
        (answer.word("held_index"), answer.word("limit")),
        ("1".into(), "2".into())
    );
}

#[test]
fn the_trace_compares_times_with_the_window_if_it_has_them() {
    let mut desk = Desk::new();
    let q = QueryDefinition {
        sort: bson(r#"{"sort":[["$updated",-1]]}"#),
        ..sorted("q", 1, 2, 3)
    };
    let at = |id: &str, updated_ms| ResultRow {
        updated_ms,
        ..row(id, 1, 10)
    };
    let rows = [at("a", 40), at("b", 30), at("c", 20), at("d", 10)];
    desk.attach(1, &q);
    desk.register(&q, until(5), &rows);
    desk.active(F0, &q);
    desk.active(F1, &q);
    desk.rebase(SORT, &q, 5, &rows[1..3]);
    desk.active(SORT, &q);
    desk.ticks(5);
    desk.take();
    for (times_ms, expected) in [
        (Some((0, 45)), "before"),
        (Some((0, 25)), "inside"),
        (Some((0, 15)), "behind"),
        (None, "-"),
    ] {
        let question = TraceRequest {
            client: 1,
            key: &key("x"),
            version: 1,
            xid: None,
            body: Some(&body("x", 10)),
            times_ms,
        };
        let answer = TraceAnswer::to(&desk, &question);
        assert_eq!(answer.word("place"), expected, "{times_ms:?}");
    }
}

#[test]
fn the_trace_reports_muted_kinds_of_change() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let options = ClientOptions {
        muted: [false, true, false, false],
        ..ClientOptions::default()
    };
    desk.attach_with(1, &q, options, None);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    desk.matched(F0, image(11, "a", 2, Some(1)), Is::Changed, q.hash);
    assert_eq!(
        TraceAnswer::of(&desk, 1, "a", 2).change(2, &["told", "delivery"]),
        "muted none"
    );
}

#[test]
fn the_trace_reports_a_write_that_waits_for_the_rest_of_its_batch() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[]);
    desk.take();
    let mut part = image(11, "a", 1, Some(1));
    part.parts = [0, 1].into();
    desk.matched(F0, part, Is::Added, q.hash);
    assert_eq!(
        TraceAnswer::of(&desk, 1, "a", 1).word("waits_for_batch"),
        "true"
    );
    assert_eq!(
        TraceAnswer::of(&desk, 1, "b", 1).word("waits_for_batch"),
        "false"
    );
}

#[test]
fn the_past_never_takes_more_than_its_budget_and_the_busy_forget_their_own() {
    const BUDGET: usize = 64 * 1024;
    let (mut desk, quiet) = (Desk::forgetful(BUDGET), query("quiet", "{}"));
    desk.attach(1, &quiet);
    desk.open(&quiet, 5, &[]);
    desk.matched(F0, image(9, "z", 1, Some(1)), Is::Added, quiet.hash);
    let busy = query("busy", "{}");
    for client in 2..40 {
        desk.attach(client, &busy);
        assert!(desk.hub.trace_bytes() <= BUDGET);
    }
    desk.open(&busy, 5, &[]);
    for version in 1..2_000 {
        let change = image(version + 10, "a", version, Some(1));
        desk.matched(F0, change, Is::Changed, busy.hash);
        desk.take();
        assert!(
            desk.hub.trace_bytes() <= BUDGET,
            "{}",
            desk.hub.trace_bytes()
        );
    }
    let late = TraceAnswer::of(&desk, 5, "a", 1_999);
    assert_eq!(late.change(1_999, &["told", "delivery"]), "events taken");
    let early = TraceAnswer::of(&desk, 5, "a", 3);
    assert_eq!(
        (early.change(3, &["told"]), early.word("forgot")),
        ("unknown".into(), "true".into())
    );
    let other = TraceAnswer::of(&desk, 1, "z", 1);
    assert_eq!(other.change(1, &["told", "delivery"]), "events taken");
    // Later clients get a ring, and the rings of others shrink.
    for client in 40..400 {
        desk.attach(client, &busy);
        assert!(desk.hub.trace_bytes() <= BUDGET);
    }
}

#[test]
fn a_trace_has_the_time_at_which_a_change_arrived_instead_of_that_of_the_last_tick() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.hub.set_trace_time(desk.now_us + 10_000);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    let registered_us = desk.now_us + 10_000;
    let arrived_us = desk.now_us + 40_000;
    desk.hub.set_trace_time(arrived_us);
    desk.matched(F0, image(11, "a", 2, Some(1)), Is::Changed, q.hash);
    let answer = TraceAnswer::of(&desk, 1, "a", 2);
    assert_eq!(answer.word("registered_us"), registered_us.to_string());
    assert_eq!(
        answer.change(2, &["at_us", "told_us"]),
        format!("{arrived_us} {arrived_us}")
    );
}

#[test]
fn a_tick_is_the_time_of_the_changes_that_it_sends() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let options = ClientOptions {
        throttle_us: 500_000,
        ..ClientOptions::default()
    };
    desk.attach_with(1, &q, options, None);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    for version in 2..4 {
        let change = image(version + 10, "a", version, Some(1));
        desk.matched(F0, change, Is::Changed, q.hash);
    }
    let shown_us = desk.now_us;
    desk.pass(600_000);
    let answer = TraceAnswer::of(&desk, 1, "a", 3);
    let times = format!("{shown_us} together {}", desk.now_us);
    assert_eq!(answer.change(3, &["at_us", "told", "told_us"]), times);
}

#[test]
fn frames_are_dropped_by_what_followed_them_even_if_the_clock_was_set_back() {
    let (mut desk, q) = (Desk::with(FEW, 2_000, 1 << 20), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    for frame in desk.hub.poll(100) {
        desk.hub.drained(1, 1, frame.text.len());
    }
    desk.hub.set_trace_time(desk.now_us + 10_000_000);
    for version in 2..12 {
        let change = image(version + 10, "a", version, Some(1));
        desk.matched(F0, change, Is::Changed, q.hash);
        desk.hub.poll(100);
    }
    desk.pass(3_000_000);
    assert_eq!(
        TraceAnswer::of(&desk, 1, "a", 5).change(5, &["told", "delivery"]),
        "events dropped"
    );
}
