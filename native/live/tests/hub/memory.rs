//! All subscriptions together stay within one budget.

use rillbase_live::hub::{ClientOptions, HubRequest};
use rillbase_live::message::{QueryDefinition, ResultRow};

use super::desk::{Desk, F0, F1, Is, SORT, token};
use crate::common::{bson, image, query, row, sorted, until};

const BUDGET: usize = 1_000_000;
const LARGE: usize = 20_000;
/// The number of rows of a result that uses a fifth of the budget.
const ROWS: usize = 10;

fn large(id: &str, version: u64) -> ResultRow {
    let text = format!(r#"{{"_id":"{id}","text":"{}"}}"#, "x".repeat(LARGE));
    let body = bson(&text);
    ResultRow {
        body,
        ..row(id, version, 1)
    }
}

fn many(prefix: &str) -> Vec<ResultRow> {
    (0..ROWS)
        .map(|n| large(&format!("{prefix}{n}"), 1))
        .collect()
}

/// Subscribes to queries until their results no longer fit together.
fn crowded(desk: &mut Desk) -> Vec<QueryDefinition> {
    let queries: Vec<_> = (0..8).map(|n| query(&format!("q{n}"), "{}")).collect();
    for (id, q) in (1..).zip(&queries) {
        let mut q = q.clone();
        q.tenant = [u8::try_from(id).unwrap(); 16];
        desk.attach(id, &q);
        desk.open(&q, 5, &many(&format!("q{id}-")));
        desk.take();
        desk.pass(250_000);
    }
    desk.take_requests();
    queries
}

#[test]
fn results_that_were_not_sent_recently_lose_their_bodies_and_changes_continue() {
    let mut desk = Desk::narrow(BUDGET);
    let queries = crowded(&mut desk);
    let memory = desk.hub.memory();
    assert!(memory.total() <= BUDGET, "{memory:?}");
    assert!(memory.let_go >= 4, "{memory:?}");
    assert_eq!(memory.refused, 0);
    desk.ticks(5);
    desk.matched(
        F0,
        image(6, "q1-0", 2, Some(1)),
        Is::Changed,
        queries[0].hash,
    );
    desk.matched(F0, image(7, "q1-1", 2, None), Is::Removed, queries[0].hash);
    let expected = ["s1 change q1-0@2 #1", "s1 remove q1-1@2 deleted #2"];
    assert_eq!(desk.lines(), expected);
    assert_eq!(desk.take_requests(), []);
}

#[test]
fn a_client_that_joins_a_result_without_bodies_has_it_read_again_unnoticed_by_others() {
    let mut desk = Desk::narrow(BUDGET);
    let queries = crowded(&mut desk);
    let (q, mut rows) = (&queries[0], many("q1-"));
    desk.ticks(5);
    desk.attach(20, q);
    assert_eq!(desk.take_requests(), [HubRequest::Register(q.hash)]);
    assert_eq!(desk.lines(), [""; 0]);
    desk.matched(F0, image(6, "q1-0", 2, Some(1)), Is::Changed, q.hash);
    assert_eq!(desk.lines(), ["s1 change q1-0@2 #1"]);
    rows[0] = large("q1-0", 2);
    desk.register(q, until(7), &rows);
    let others: Vec<_> = (1..ROWS).map(|n| format!("q1-{n}@1")).collect();
    let result = format!("s20 result q1-0@2 {}", others.join(" "));
    let expected = [result, "s20 ready".to_owned()];
    assert_eq!(desk.lines(), expected);
}

#[test]
fn writes_during_the_read_of_bodies_are_awaited() {
    let mut desk = Desk::narrow(BUDGET);
    let queries = crowded(&mut desk);
    let (q, mut rows) = (&queries[0], many("q1-"));
    desk.ticks(5);
    desk.attach(20, q);
    desk.take_requests();
    rows[0] = large("q1-0", 2);
    desk.register(q, until(7), &rows);
    assert_eq!(desk.lines(), [""; 0]);
    desk.matched(F0, image(6, "q1-0", 2, Some(1)), Is::Changed, q.hash);
    let lines = desk.lines();
    assert_eq!(lines[0], "s1 change q1-0@2 #1");
    assert!(lines[1].starts_with("s20 result q1-0@2 q1-1@1"));
    assert_eq!(desk.take_requests(), []);
}

#[test]
fn events_lost_during_the_read_of_bodies_are_read_after_them() {
    let mut desk = Desk::narrow(BUDGET);
    let queries = crowded(&mut desk);
    let q = &queries[0];
    desk.ticks(5);
    desk.attach(20, q);
    desk.take_requests();
    desk.hub.lost(0);
    desk.take_requests();
    assert!(desk.lines().iter().all(|line| line.ends_with(" stale")));
    desk.register(q, until(5), &many("q1-"));
    assert_eq!(desk.lines(), [""; 0]);
    assert_eq!(desk.take_requests(), [HubRequest::Register(q.hash)]);
}

#[test]
fn a_window_without_bodies_is_whole_again_too() {
    let mut desk = Desk::narrow(BUDGET);
    let q = sorted("window", 0, 10, 1);
    desk.attach(9, &q);
    desk.open(&q, 5, &many("w"));
    desk.take();
    crowded(&mut desk);
    desk.ticks(5);
    desk.pass(250_000);
    desk.take();
    desk.attach(20, &q);
    assert_eq!(desk.take_requests(), [HubRequest::Register(q.hash)]);
    desk.register(&q, until(5), &many("w"));
    let lines = desk.lines();
    assert!(lines[0].starts_with("s20 result w0@1 w1@1"));
    assert_eq!(lines[1..], ["s20 ready"]);
    desk.rebase(SORT, &q, 5, &many("w"));
    desk.active(SORT, &q);
    assert_eq!(desk.lines(), [""; 0]);
}

#[test]
fn a_client_that_must_restart_waits_for_the_whole_result() {
    let mut desk = Desk::narrow(BUDGET);
    let queries = crowded(&mut desk);
    let q = &queries[0];
    desk.ticks(5);
    desk.attach_with(20, q, ClientOptions::default(), Some("00".into()));
    desk.pass(250_000);
    assert_eq!(desk.lines(), ["s20 reset token_not_valid"]);
    assert_eq!(desk.take_requests(), [HubRequest::Register(q.hash)]);
    desk.register(q, until(5), &many("q1-"));
    assert!(desk.lines()[0].starts_with("s20 result q1-0@1"));
}

#[test]
fn a_client_that_reads_nothing_is_cut_off_and_restarts_when_it_reads() {
    let mut desk = Desk::narrow(BUDGET);
    let q = query("q", "{}");
    desk.attach(1, &q);
    desk.attach(2, &q);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    let mut handed = (0, 0);
    for version in 2..100 {
        let mut change = image(version + 10, "a", version, Some(1));
        change.content = rillbase_live::message::ImageContent::Document(large("a", version).body);
        desk.matched(F0, change, Is::Changed, q.hash);
        for frame in desk.hub.poll(1_000) {
            if frame.client == 2 {
                desk.hub.drained(2, 1, frame.text.len());
            } else {
                handed = (handed.0 + 1, handed.1 + frame.text.len());
            }
        }
    }
    for _ in 0..12 {
        desk.ticks(200);
        desk.pass(250_000);
        for frame in desk.hub.poll(1_000) {
            assert_eq!(frame.client, 2);
            desk.hub.drained(2, 1, frame.text.len());
        }
    }
    let memory = desk.hub.memory();
    assert_eq!(memory.cut_off, 1, "{memory:?}");
    assert!(memory.outboxes <= BUDGET, "{memory:?}");
    assert_eq!(desk.hub.figures(1).unwrap().state, "stale");
    desk.take_requests();
    desk.hub.drained(1, handed.0, handed.1);
    assert_eq!(desk.lines(), ["s1 reset too_slow"]);
    assert_eq!(desk.take_requests(), [HubRequest::Register(q.hash)]);
    desk.register(&q, until(200), &[row("a", 99, 1)]);
    assert_eq!(desk.lines(), ["s1 result a@99", "s1 ready"]);
}

#[test]
fn a_result_that_is_too_large_for_one_query_is_refused_by_name() {
    let mut desk = Desk::narrow(BUDGET);
    let q = query("q", "{}");
    desk.attach(1, &q);
    desk.take_requests();
    let rows: Vec<_> = (0..13).map(|n| large(&format!("d{n}"), 1)).collect();
    desk.register(&q, until(5), &rows);
    let requests = desk.take_requests();
    assert!(
        matches!(&requests[..], [HubRequest::Fail(hash, code, _)] if *hash == q.hash && code == "result_too_large")
    );
    assert_eq!(desk.lines(), [""; 0]);
}

#[test]
fn one_tenant_may_take_half_and_others_go_on() {
    let mut desk = Desk::narrow(BUDGET);
    let throttled = ClientOptions {
        throttle_us: 1_000,
        ..ClientOptions::default()
    };
    let mut codes = Vec::new();
    for id in 1..5 {
        let q = query(&format!("q{id}"), "{}");
        desk.attach_with(id, &q, throttled.clone(), None);
        desk.take_requests();
        desk.open(&q, 5, &many(&format!("q{id}-")));
        desk.take();
        let failed = desk.take_requests();
        codes.extend(failed.iter().filter_map(|request| match request {
            HubRequest::Fail(_, code, _) => Some(code.clone()),
            _ => None,
        }));
    }
    assert_eq!(codes, ["quota_exceeded", "quota_exceeded"]);
    let mut other = query("other", "{}");
    other.tenant = [7; 16];
    desk.attach(9, &other);
    desk.open(&other, 5, &many("o"));
    assert!(
        desk.lines()
            .iter()
            .any(|line| line.starts_with("s9 result o0@1"))
    );
}

#[test]
fn a_token_leads_on_over_a_result_without_bodies() {
    let mut desk = Desk::narrow(BUDGET);
    let q = query("first", "{}");
    desk.attach(30, &q);
    desk.open(&q, 5, &many("f"));
    desk.pass(250_000);
    let token = token(&desk.take());
    crowded(&mut desk);
    desk.ticks(5);
    desk.matched(F1, image(6, "f0", 2, Some(1)), Is::Changed, q.hash);
    desk.take();
    desk.attach_with(31, &q, ClientOptions::default(), Some(token));
    desk.pass(250_000);
    desk.answer_replays();
    assert_eq!(desk.lines(), ["s31 ready", "s31 change f0@2 #1"]);
}
