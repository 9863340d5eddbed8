//! Resuming from a token, on the same and on another app server.

use rillbase_live::hub::ClientOptions;
use rillbase_live::message::{QueryDefinition, RemovalReason, WindowChange};

use super::desk::{Desk, F0, F1, Is, line, token, watched};
use crate::common::{bson, image, key, query, row, sorted, until};

fn resume(desk: &mut Desk, id: u64, q: &QueryDefinition, token: String) -> Vec<String> {
    desk.take_requests();
    desk.attach_with(id, q, ClientOptions::default(), Some(token));
    desk.pass(250_000);
    desk.answer_replays();
    desk.lines()
}

#[test]
fn exactly_the_missed_changes_are_sent_and_numbers_continue() {
    let (mut desk, q) = watched(&[row("a", 1, 1)]);
    desk.matched(F0, image(6, "a", 2, Some(1)), Is::Changed, q.hash);
    let token = token(&desk.take());
    desk.matched(F0, image(7, "a", 3, Some(1)), Is::Changed, q.hash);
    desk.matched(F1, image(8, "b", 1, Some(1)), Is::Added, q.hash);
    desk.matched(F0, image(9, "a", 4, None), Is::Removed, q.hash);
    let expected = [
        "s2 ready",
        "s2 change a@3 #2",
        "s2 add b@1 #3",
        "s2 remove a@4 deleted #4",
    ];
    desk.take();
    assert_eq!(resume(&mut desk, 2, &q, token), expected);
}

#[test]
fn a_token_from_before_the_first_event_is_as_good() {
    let (mut desk, q) = watched(&[row("a", 1, 1)]);
    let token = token(&desk.take());
    // The write is in the rows, and the node reports it late.
    desk.matched(F0, image(4, "a", 1, Some(1)), Is::Added, q.hash);
    desk.matched(F0, image(7, "a", 2, Some(1)), Is::Changed, q.hash);
    desk.take();
    assert_eq!(
        resume(&mut desk, 2, &q, token),
        ["s2 ready", "s2 change a@2 #1"]
    );
}

#[test]
fn a_client_of_whole_results_receives_the_current_one() {
    let (mut desk, q) = watched(&[row("a", 1, 1)]);
    let token = token(&desk.take());
    desk.matched(F1, image(8, "b", 1, Some(1)), Is::Added, q.hash);
    desk.take();
    desk.take_requests();
    let options = ClientOptions {
        whole_results: true,
        ..ClientOptions::default()
    };
    desk.attach_with(2, &q, options, Some(token));
    desk.pass(250_000);
    assert_eq!(desk.lines(), ["s2 result a@1 b@1", "s2 ready"]);
}

#[test]
fn a_client_that_received_rows_after_a_loss_restarts_on_another_server() {
    let (mut desk, q) = watched(&[row("a", 1, 1)]);
    desk.take();
    // The report of b is lost; a client that resumes after this change of a would never receive it.
    desk.skip(F0);
    desk.matched(F0, image(8, "a", 2, Some(1)), Is::Changed, q.hash);
    assert_eq!(desk.lines(), ["s1 stale"]);
    desk.attach(2, &q);
    let frames = desk.take();
    let lines: Vec<_> = frames.iter().map(|frame| line(&frame.text)).collect();
    assert_eq!(lines, ["s2 result a@1"]);
    let token = token(&frames);
    let mut other = desk.elsewhere();
    other.attach_with(1, &q, ClientOptions::default(), Some(token));
    other.open(&q, 9, &[row("a", 2, 1), row("b", 1, 1)]);
    other.pass(250_000);
    other.answer_replays();
    assert_eq!(
        other.lines(),
        [
            "s1 reset resume_not_possible",
            "s1 result a@2 b@1",
            "s1 ready"
        ]
    );
}

#[test]
fn another_app_server_sends_the_same() {
    let (mut desk, q) = watched(&[row("a", 1, 1)]);
    let token = token(&desk.take());
    desk.matched(F0, image(7, "a", 2, Some(1)), Is::Changed, q.hash);
    let mut other = desk.elsewhere();
    other.attach_with(1, &q, ClientOptions::default(), Some(token));
    other.register(&q, until(8), &[row("a", 2, 1)]);
    other.active(F0, &q);
    other.active(F1, &q);
    other.ticks(8);
    other.matched(F1, image(9, "b", 1, Some(1)), Is::Added, q.hash);
    other.pass(250_000);
    other.answer_replays();
    assert_eq!(
        other.lines(),
        ["s1 ready", "s1 change a@2 #1", "s1 add b@1 #2"]
    );
}

#[test]
fn changes_during_a_replay_follow_it() {
    let (mut desk, q) = watched(&[row("a", 1, 1)]);
    desk.pass(250_000);
    let token = token(&desk.take());
    desk.matched(F0, image(7, "a", 2, Some(1)), Is::Changed, q.hash);
    desk.take();
    desk.take_requests();
    desk.attach_with(2, &q, ClientOptions::default(), Some(token));
    desk.matched(F0, image(8, "a", 3, Some(1)), Is::Changed, q.hash);
    desk.hub.detach(1);
    desk.answer_replays();
    let lines = desk.lines();
    let lines: Vec<_> = lines.iter().filter(|line| line.starts_with("s2")).collect();
    assert_eq!(lines, ["s2 ready", "s2 change a@2 #1", "s2 change a@3 #2"]);
}

#[test]
fn a_token_of_another_client_or_activation_is_answered_by_a_reset() {
    let (mut desk, q) = watched(&[row("a", 1, 1)]);
    let token = token(&desk.take());
    let mut forged = token.clone();
    let last = forged.pop().unwrap();
    forged.push(if last == '0' { '1' } else { '0' });
    let lines = resume(&mut desk, 2, &q, forged);
    assert_eq!(
        lines,
        ["s2 reset token_not_valid", "s2 result a@1", "s2 ready"]
    );
    let mut other = query("other", "{}");
    desk.attach(3, &other);
    desk.open(&other, 5, &[]);
    desk.take();
    let lines = resume(&mut desk, 4, &other, token.clone());
    assert_eq!(lines.first().unwrap(), "s4 reset token_not_valid");
    other = q.clone();
    other.activation = 2;
    let mut elsewhere = desk.elsewhere();
    elsewhere.attach_with(1, &other, ClientOptions::default(), Some(token));
    elsewhere.open(&other, 5, &[row("a", 1, 1)]);
    elsewhere.pass(250_000);
    let lines = elsewhere.lines();
    assert_eq!(
        lines,
        ["s1 reset resume_not_possible", "s1 result a@1", "s1 ready"]
    );
}

#[test]
fn a_log_that_was_trimmed_is_answered_by_a_reset() {
    let (mut desk, q) = watched(&[row("a", 1, 1)]);
    desk.pass(250_000);
    let token = token(&desk.take());
    desk.attach_with(2, &q, ClientOptions::default(), Some(token));
    desk.hub.replay(2, None);
    let expected = ["s2 reset resume_not_possible", "s2 result a@1", "s2 ready"];
    assert_eq!(desk.lines(), expected);
}

/// The change of a window of a and b when a leaves.
fn c_instead_of_a(version: u64, reason: RemovalReason) -> Vec<WindowChange> {
    let remove = WindowChange::Remove {
        old_index: 0,
        key: key("a"),
        id: bson(r#"{"_id":"a"}"#),
        version,
        reason,
    };
    let add = WindowChange::Add {
        index: 1,
        row: row("c", 1, 3),
    };
    vec![remove, add]
}

#[test]
fn a_window_resumes_even_if_rows_have_left_it() {
    let (mut desk, q) = (Desk::new(), sorted("q", 0, 2, 1));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1), row("b", 1, 2)]);
    let token = token(&desk.take());
    desk.window(&q, 6, c_instead_of_a(2, RemovalReason::Deleted));
    desk.take();
    let expected = [
        "s2 ready",
        "s2 remove a@2 0→ deleted #1 1/2",
        "s2 add c@1 1 #2 2/2",
    ];
    assert_eq!(resume(&mut desk, 2, &q, token), expected);
}

#[test]
fn a_window_continues_on_another_app_server_over_rows_that_it_never_had() {
    let (mut desk, q) = (Desk::new(), sorted("q", 0, 2, 1));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1), row("b", 1, 2)]);
    let token = token(&desk.take());
    desk.window(&q, 6, c_instead_of_a(1, RemovalReason::Left));
    let mut other = desk.elsewhere();
    let now = [row("b", 1, 2), row("c", 1, 3)];
    other.attach_with(1, &q, ClientOptions::default(), Some(token));
    other.open(&q, 8, &now);
    other.pass(250_000);
    other.answer_replays();
    let expected = [
        "s1 ready",
        "s1 remove a@1 0→ left #1 1/2",
        "s1 add c@1 1 #2 2/2",
    ];
    assert_eq!(other.lines(), expected);
}

/// A hub that read before the transaction 6, another that read before 7 with a row whose
/// after-image has not arrived, and the tokens of clients that left them.
fn two_who_differ() -> (Desk, Desk, QueryDefinition, [String; 2]) {
    let (mut desk, q) = watched(&[]);
    desk.pass(250_000);
    desk.matched(F1, image(5, "z", 1, Some(1)), Is::Added, q.hash);
    let first = token(&desk.take());
    let mut other = desk.elsewhere();
    other.attach(1, &q);
    other.register(&q, until(7), &[row("a", 2, 1), row("z", 1, 1)]);
    other.active(F0, &q);
    other.active(F1, &q);
    other.ticks(6);
    let second = token(&other.take());
    (desk, other, q, [first, second])
}

/// The frames of a client that resumes at the first hub, which has followed the log of the second.
fn resume_elsewhere(
    desk: &mut Desk,
    other: &Desk,
    q: &QueryDefinition,
    token: String,
) -> Vec<String> {
    desk.follow(other);
    let mut lines = resume(desk, 2, q, token);
    lines.retain(|line| line.starts_with("s2"));
    lines
}

#[test]
fn a_row_that_only_others_had_is_added_for_a_resuming_client() {
    let (mut desk, mut other, q, [first, _]) = two_who_differ();
    other.matched_by_some(F0, image(7, "a", 3, Some(1)), Is::Added, q.hash);
    other.ticks(8);
    let lines = resume_elsewhere(&mut desk, &other, &q, first);
    assert_eq!(lines, ["s2 ready", "s2 add a@3 #2"]);
}

#[test]
fn a_row_that_only_others_had_is_not_removed_for_a_resuming_client() {
    let (mut desk, mut other, q, [first, _]) = two_who_differ();
    other.matched_by_some(F0, image(7, "a", 3, None), Is::Removed, q.hash);
    other.ticks(8);
    assert_eq!(resume_elsewhere(&mut desk, &other, &q, first), ["s2 ready"]);
}

#[test]
fn a_client_that_may_have_a_row_that_others_lack_restarts() {
    let (mut desk, mut other, q, [_, second]) = two_who_differ();
    other.matched_by_some(F0, image(7, "a", 3, Some(1)), Is::Added, q.hash);
    other.ticks(8);
    let lines = resume_elsewhere(&mut desk, &other, &q, second);
    let anew = [
        "s2 reset resume_not_possible",
        "s2 result a@3 z@1",
        "s2 ready",
    ];
    assert_eq!(lines, anew);
}

#[test]
fn a_client_ahead_of_the_log_resumes_when_the_log_has_caught_up() {
    let (mut desk, mut other, q, [_, second]) = two_who_differ();
    assert!(resume_elsewhere(&mut desk, &other, &q, second).is_empty());
    other.matched(F0, image(6, "a", 2, Some(1)), Is::Added, q.hash);
    other.matched(F0, image(7, "a", 3, Some(1)), Is::Changed, q.hash);
    other.ticks(8);
    desk.follow(&other);
    desk.pass(250_000);
    desk.answer_replays();
    let lines = desk.lines();
    let lines: Vec<_> = lines.iter().filter(|line| line.starts_with("s2")).collect();
    assert_eq!(lines, ["s2 ready", "s2 change a@3 #1"]);
}
