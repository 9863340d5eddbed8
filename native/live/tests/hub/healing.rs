//! Stale queries and their recovery.

use rillbase_live::hub::{ClientOptions, HubRequest};
use rillbase_live::message::NodeEvent;

use super::desk::{Desk, F0, F1, Is, SORT, token, watched};
use crate::common::{image, notification, query, row, sorted, until};

#[test]
fn a_subscriber_is_notified_when_ticks_stop_and_resume() {
    let (mut desk, _) = watched(&[]);
    desk.take();
    desk.pass(1_900_000);
    desk.tick(F0, 5);
    assert!(desk.lines().is_empty());
    desk.pass(250_000);
    assert_eq!(desk.lines(), ["s1 stale"]);
    desk.tick(F1, 5);
    desk.pass(250_000);
    assert_eq!(desk.lines(), ["s1 live"]);
}

#[test]
fn after_a_gap_the_query_is_registered_again_and_the_difference_is_sent() {
    let (mut desk, q) = watched(&[row("a", 1, 1), row("b", 1, 1)]);
    desk.take();
    desk.take_requests();
    desk.skip(F0);
    desk.tick(F0, 8);
    assert_eq!(desk.take_requests(), [HubRequest::Register(q.hash)]);
    desk.pass(250_000);
    assert_eq!(desk.lines(), ["s1 stale"]);
    desk.register(&q, until(8), &[row("a", 2, 1), row("c", 1, 1)]);
    desk.active(F0, &q);
    desk.active(F1, &q);
    desk.ticks(8);
    desk.pass(250_000);
    let expected = [
        "s1 remove b@1 left #1 1/3",
        "s1 change a@2 #2 2/3",
        "s1 add c@1 #3 3/3",
        "s1 live",
    ];
    assert_eq!(desk.lines(), expected);
}

#[test]
fn a_registration_that_is_older_than_what_was_shown_lets_no_version_fall() {
    let (mut desk, q) = watched(&[row("a", 1, 1), row("b", 1, 1)]);
    desk.take();
    desk.hub.lost(0);
    let end = desk.end();
    desk.matched(F0, image(8, "a", 2, Some(1)), Is::Changed, q.hash);
    desk.matched(F0, image(9, "b", 2, None), Is::Removed, q.hash);
    // Reports before the rows arrive may be incomplete.
    assert_eq!(desk.lines(), ["s1 stale"]);
    desk.register_behind(&q, end, until(8), &[row("a", 1, 1), row("b", 1, 1)]);
    let expected = ["s1 remove b@2 deleted #1 1/2", "s1 change a@2 #2 2/2"];
    assert_eq!(desk.lines(), expected);
    desk.hub.detach(1);
    desk.attach(2, &q);
}

#[test]
fn another_incarnation_of_the_event_layer_makes_all_queries_register_again() {
    let (mut desk, q) = watched(&[]);
    desk.take_requests();
    desk.life = [2; 16];
    desk.tick(F0, 5);
    assert_eq!(desk.take_requests(), [HubRequest::Register(q.hash)]);
}

#[test]
fn a_loss_during_a_registration_requests_another_one() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.take_requests();
    desk.tick(F0, 5);
    desk.skip(F0);
    desk.tick(F0, 5);
    desk.register(&q, until(5), &[]);
    assert_eq!(desk.take_requests(), [HubRequest::Register(q.hash)]);
}

#[test]
fn a_registration_that_nodes_do_not_answer_is_sent_again_and_then_less_often() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.register(&q, until(5), &[]);
    desk.take_requests();
    let mut asked_s = Vec::new();
    for second in 1..=40 {
        desk.pass(1_000_000);
        desk.ticks(5);
        if desk.take_requests() == [HubRequest::Register(q.hash)] {
            asked_s.push(second);
            desk.register(&q, until(5), &[]);
        }
    }
    assert_eq!(asked_s, [12, 33]);
    desk.active(F0, &q);
    desk.active(F1, &q);
    assert_eq!(desk.lines(), ["s1 result", "s1 ready"]);
}

#[test]
fn too_old_requests_one_registration() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.register(&q, until(5), &[]);
    desk.take_requests();
    for source in [F0, F1] {
        desk.too_old(source, &q);
    }
    assert_eq!(desk.take_requests(), [HubRequest::Register(q.hash)]);
}

#[test]
fn a_former_lease_holder_is_not_trusted() {
    let (mut desk, q) = watched(&[]);
    desk.notify(F0, NodeEvent::Start);
    desk.take();
    let event = NodeEvent::Match {
        image: image(6, "a", 1, Some(1)),
        added: vec![q.hash],
        changed: Vec::new(),
        removed: Vec::new(),
    };
    desk.enter(notification(F0, 1, 9, event));
    assert!(desk.lines().is_empty());
}

#[test]
fn a_new_node_reports_its_members_and_the_difference_is_sent() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let part = |id: &str| rillbase_documents::id::key_hash(id.as_bytes()) % 2;
    let mut zero = ('a'..='z').map(String::from).filter(|id| part(id) == 0);
    let [kept, gone, new] = [(); 3].map(|()| zero.next().unwrap());
    let other = ('a'..='z')
        .map(String::from)
        .find(|id| part(id) == 1)
        .unwrap();
    desk.attach(1, &q);
    desk.open(
        &q,
        5,
        &[row(&kept, 2, 1), row(&gone, 1, 1), row(&other, 1, 1)],
    );
    desk.take();
    desk.notify(F0, NodeEvent::Start);
    desk.rebase(F0, &q, 8, &[row(&kept, 2, 1), row(&new, 1, 1)]);
    desk.active(F0, &q);
    desk.notify(F0, NodeEvent::Rebased { snapshot: until(8) });
    desk.ticks(8);
    desk.pass(250_000);
    let expected = [
        format!("s1 remove {gone}@1 left #1 1/2"),
        format!("s1 add {new}@1 #2 2/2"),
    ];
    assert_eq!(desk.lines(), expected);
}

#[test]
fn queries_that_a_rebuilt_node_has_no_rows_of_lose_those_of_its_partition() {
    let (mut desk, first) = (Desk::new(), query("q", "{}"));
    let second = query("r", "{}");
    let part = |id: &&str| rillbase_documents::id::key_hash(id.as_bytes()) % 2;
    let ids = ["a", "b", "c", "d", "e", "f"];
    let [first_id, second_id] = [0, 1].map(|at| *ids.iter().find(|id| part(id) == at).unwrap());
    for (client, query) in [(1, &first), (2, &second)] {
        desk.attach(client, query);
        desk.open(query, 5, &[row(first_id, 1, 1), row(second_id, 1, 1)]);
    }
    desk.take();
    desk.notify(F0, NodeEvent::Start);
    desk.empty(F0, &[&first, &query("elsewhere", "{}"), &second], 8);
    desk.notify(F0, NodeEvent::Rebased { snapshot: until(8) });
    desk.ticks(8);
    desk.pass(250_000);
    let mut lines = desk.lines();
    lines.sort_unstable();
    let expected = [1, 2].map(|client| format!("s{client} remove {first_id}@1 left #1"));
    assert_eq!(lines, expected);
}

#[test]
fn a_rebuilt_filter_node_has_no_rows_of_a_window_and_does_not_empty_it() {
    let (mut desk, q) = (Desk::new(), sorted("q", 0, 3, 2));
    desk.attach(1, &q);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    desk.notify(F0, NodeEvent::Start);
    desk.empty(F0, &[&q], 8);
    desk.notify(F0, NodeEvent::Rebased { snapshot: until(8) });
    desk.ticks(8);
    desk.pass(250_000);
    assert!(desk.lines().is_empty());
    desk.empty(SORT, &[&q], 9);
    assert_eq!(desk.lines(), ["s1 remove a@1 0→ left #1"]);
}

#[test]
fn a_query_that_a_node_gave_up_is_failed() {
    let (mut desk, q) = watched(&[]);
    desk.take_requests();
    let (query, code) = (q.hash, "out_of_fuel".to_owned());
    let detail = String::new();
    desk.notify(
        F0,
        NodeEvent::Failed {
            query,
            code,
            detail,
        },
    );
    let expected = HubRequest::Fail(q.hash, "out_of_fuel".into(), String::new());
    assert_eq!(desk.take_requests(), [expected]);
}

#[test]
fn subscribers_receive_the_number_of_documents_that_cannot_be_evaluated() {
    let (mut desk, q) = watched(&[]);
    desk.take_requests();
    let notices = |desk: &mut Desk| -> Vec<String> {
        let frames = desk.hub.poll(100).into_iter().map(|frame| frame.text);
        frames.filter(|text| text.contains("notice")).collect()
    };
    let counted = |count: u32| format!(r#""code":"documents_not_evaluated","count":{count},"#);
    desk.hub.unevaluated(&q.hash, 2);
    desk.pass(250_000);
    let sent = notices(&mut desk);
    assert!(
        matches!(&sent[..], [only] if only.contains(&counted(2))),
        "{sent:?}"
    );
    // Regardless of the number of writes, notices are sent only periodically.
    for _ in 0..100 {
        let queries = vec![q.hash];
        desk.notify(F0, NodeEvent::Unevaluated { queries });
    }
    assert_eq!(notices(&mut desk), [""; 0]);
    desk.pass(250_000);
    let sent = notices(&mut desk);
    assert!(
        matches!(&sent[..], [only] if only.contains(&counted(100))),
        "{sent:?}"
    );
    assert_eq!(
        desk.take_requests(),
        [HubRequest::LogUnevaluated(q.hash, 100)]
    );
    desk.pass(250_000);
    assert_eq!(notices(&mut desk), [""; 0]);
}

#[test]
fn rows_of_an_outdated_registration_are_ignored() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    let (asked, end) = (desk.hub.registration_id(&q.hash).unwrap(), desk.end());
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    desk.hub.registered(
        &q.hash,
        asked,
        (1, desk.request()),
        end,
        until(4),
        Vec::new(),
    );
    assert!(desk.lines().is_empty());
    desk.hub.detach(1);
    desk.attach(2, &q);
    desk.hub.registered(
        &q.hash,
        asked,
        (1, desk.request()),
        end,
        until(4),
        Vec::new(),
    );
    assert!(desk.lines().is_empty());
}

#[test]
fn an_answer_to_an_earlier_request_makes_no_client_ready() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    let earlier = desk.request();
    desk.register(&q, until(5), &[]);
    for source in [F0, F1] {
        desk.notify(
            source,
            NodeEvent::Active {
                query: q.hash,
                activation: 1,
                request: earlier,
            },
        );
    }
    desk.ticks(5);
    desk.pass(250_000);
    assert_eq!(desk.lines(), ["s1 result"]);
    desk.active(F0, &q);
    desk.active(F1, &q);
    assert_eq!(desk.lines(), ["s1 ready"]);
}

#[test]
fn a_node_whose_end_of_rebuild_was_lost_is_trusted_when_it_ticks() {
    let (mut desk, q) = watched(&[]);
    desk.take();
    desk.notify(F0, NodeEvent::Start);
    desk.skip(F0);
    desk.ticks(6);
    desk.register(&q, until(6), &[]);
    desk.active(F0, &q);
    desk.active(F1, &q);
    desk.ticks(6);
    desk.pass(250_000);
    desk.ticks(6);
    desk.pass(250_000);
    assert_eq!(desk.hub.figures(1).unwrap().state, "live");
}

#[test]
fn no_client_is_live_while_the_state_of_a_node_waits_for_the_others() {
    let (mut desk, q) = watched(&[]);
    desk.take();
    desk.notify(F0, NodeEvent::Start);
    desk.empty(F0, &[&q], 8);
    desk.notify(F0, NodeEvent::Rebased { snapshot: until(8) });
    desk.ticks(7);
    desk.pass(250_000);
    assert_eq!(desk.lines(), ["s1 stale"]);
    desk.ticks(8);
    desk.pass(250_000);
    assert_eq!(desk.lines(), ["s1 live"]);
}

#[test]
fn queries_registered_after_the_loss_are_not_registered_again() {
    let (mut desk, before) = watched(&[row("a", 1, 1)]);
    let since = query("since", "{}");
    desk.attach(2, &since);
    desk.open(&since, 6, &[row("a", 1, 1)]);
    desk.lines();
    desk.take_requests();
    desk.hub.forgotten(0, &[since.hash].into());
    assert_eq!(desk.take_requests(), [HubRequest::Register(before.hash)]);
    assert_eq!(desk.lines(), ["s1 stale"]);
    desk.matched(F0, image(7, "a", 2, Some(1)), Is::Changed, since.hash);
    let token = token(&desk.take());
    desk.matched(F0, image(8, "a", 3, Some(1)), Is::Changed, since.hash);
    desk.pass(250_000);
    desk.take();
    desk.attach_with(3, &since, ClientOptions::default(), Some(token));
    desk.answer_replays();
    assert_eq!(desk.lines(), ["s3 ready", "s3 change a@3 #2"]);
}

#[test]
fn progress_does_not_fall_with_a_tick_older_than_the_state() {
    let (mut desk, q) = watched(&[row("a", 1, 1)]);
    desk.lines();
    let end = desk.end();
    desk.hub.lost(0);
    for source in [F0, F1] {
        desk.notify(source, NodeEvent::Start);
        desk.empty(source, &[&q], 12);
        let snapshot = until(12);
        desk.notify(source, NodeEvent::Rebased { snapshot });
    }
    assert_eq!(desk.lines(), ["s1 stale"]);
    desk.ticks(11);
    // Rows that were read before the nodes' state, which removes the row.
    desk.register_behind(&q, end, until(11), &[row("a", 1, 1)]);
    assert_eq!(desk.lines(), ["s1 remove a@1 left #1"]);
}
