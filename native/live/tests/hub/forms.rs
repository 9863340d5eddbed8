//! Documents in the form of Extended JSON that each subscriber requested.

use rillbase_live::hub::ClientOptions;
use rillbase_query::ejson::Form;

use super::desk::{Desk, F0, Is};
use crate::common::{image, query, row};

fn canonical() -> ClientOptions {
    ClientOptions {
        form: Form::Canonical,
        ..ClientOptions::default()
    }
}

fn texts(desk: &mut Desk, client: u64) -> Vec<String> {
    let frames = desk.hub.poll(100);
    let own = frames.into_iter().filter(|frame| frame.client == client);
    own.map(|frame| frame.text).collect()
}

#[test]
fn subscribers_of_one_query_receive_the_forms_that_they_requested() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach_with(1, &q, canonical(), None);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    let first = texts(&mut desk, 1);
    assert!(first[0].contains(r#""n":{"$numberInt":"1"}"#), "{first:?}");
    desk.attach(2, &q);
    desk.attach_with(3, &q, canonical(), None);
    desk.attach(4, &q);
    desk.pass(1_000_000);
    desk.hub.poll(100);
    desk.matched(F0, image(6, "a", 2, Some(2)), Is::Changed, q.hash);
    let frames = desk.hub.poll(100);
    let of = |client: u64| {
        let mut own = frames.iter().filter(|frame| frame.client == client);
        own.next().unwrap().text.clone()
    };
    for client in [1, 3] {
        assert!(
            of(client).contains(r#""n":{"$numberInt":"2"}"#),
            "{}",
            of(client)
        );
    }
    for client in [2, 4] {
        assert!(of(client).contains(r#""n":2"#), "{}", of(client));
    }
}

#[test]
fn coalesced_changes_and_whole_results_keep_the_form() {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    let throttled = ClientOptions {
        throttle_us: 1_000_000,
        ..canonical()
    };
    let whole = ClientOptions {
        whole_results: true,
        ..canonical()
    };
    desk.attach_with(1, &q, throttled, None);
    desk.attach_with(2, &q, whole, None);
    desk.open(&q, 5, &[row("a", 1, 1)]);
    desk.take();
    let mut frames = Vec::new();
    for version in 2..5 {
        let n = i64::try_from(version).unwrap();
        let change = image(version + 10, "a", version, Some(n));
        desk.matched(F0, change, Is::Changed, q.hash);
        frames.extend(desk.take());
    }
    desk.pass(900_000);
    desk.pass(100_000);
    frames.extend(desk.take());
    for client in [1, 2] {
        let mut own = frames.iter().filter(|frame| frame.client == client);
        let last = own.rfind(|frame| frame.text.contains(r#""n":"#));
        let text = &last.unwrap().text;
        assert!(text.contains(r#""n":{"$numberInt":"4"}"#), "{text}");
    }
}
