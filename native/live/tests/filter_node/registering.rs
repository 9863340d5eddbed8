//! Registering, renewing and expiring queries.

use rillbase_live::filter_node::FilterNodeConfig;
use rillbase_live::message::{FencingToken, NodeRequest};

use super::stage::{Stage, positive};
use crate::common::{image, query, register, renewal, row, sorted, until};

#[test]
fn a_second_registration_is_answered_as_active() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(5), &[], true));
    node.write(image(5, "a", 1, Some(5)));
    let rows = [row("a", 1, 5)];
    let answers = node.ask(register(&positive(), 101, &until(6), &rows, true));
    assert_eq!(answers, ["active q 1"]);
    assert_eq!(node.write(image(6, "a", 2, Some(6))), ["a@2 =q"]);
}

#[test]
fn a_second_subscriber_that_read_before_the_first_must_read_again() {
    // 5 is in the first subscriber's rows and is not reported; the second subscriber does not have
    // it.
    let mut node = Stage::new();
    let rows = [row("a", 1, 5)];
    node.ask(register(&positive(), 100, &until(6), &rows, true));
    let answers = node.ask(register(&positive(), 100, &until(5), &[], true));
    assert_eq!(answers, ["too old q"]);
    let answers = node.ask(register(&positive(), 100, &until(6), &rows, true));
    assert_eq!(answers, ["active q 1"]);
}

#[test]
fn a_second_subscriber_that_read_a_minute_ago_must_read_again() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(6), &[], true));
    node.tick(until(20));
    node.pass(61);
    let answers = node.ask(register(&positive(), 100, &until(5), &[], true));
    assert_eq!(answers, ["too old q"]);
    let answers = node.ask(register(&positive(), 101, &until(20), &[], true));
    assert_eq!(answers, ["active q 1"]);
}

#[test]
fn a_registration_older_than_what_is_kept_is_too_old() {
    let mut node = Stage::new();
    node.write(image(5, "a", 1, Some(5)));
    node.pass(11);
    let answers = node.ask(register(&positive(), 100, &until(5), &[], true));
    assert_eq!(answers, ["too old q"]);
    let rows = [row("a", 1, 5)];
    let answers = node.ask(register(&positive(), 101, &until(6), &rows, true));
    assert_eq!(answers, ["active q 1"]);
}

#[test]
fn too_many_bytes_make_a_registration_too_old() {
    let config = FilterNodeConfig {
        retained_bytes: 100,
        ..FilterNodeConfig::new(0, 1, FencingToken(1))
    };
    let mut node = Stage::with(config, &[]);
    node.write(image(5, "a", 1, Some(5)));
    let answers = node.ask(register(&positive(), 100, &until(5), &[], true));
    assert_eq!(answers, ["too old q"]);
}

#[test]
fn an_expired_query_is_forgotten_and_its_number_given_again() {
    let mut node = Stage::new();
    let first = positive();
    node.ask(register(&first, 100, &until(1), &[], true));
    node.write(image(1, "a", 1, Some(5)));
    node.ask(NodeRequest::Expire {
        query: first.hash,
        activation: 1,
    });
    let second = query("r", r#"{"n":5}"#);
    node.ask(register(&second, 101, &until(2), &[], true));
    // Not "=r": that the number was another query's member does not make it this one's.
    assert_eq!(node.write(image(2, "a", 2, Some(5))), ["a@2 +r"]);
}

#[test]
fn an_expiry_of_an_earlier_activation_has_no_effect() {
    let mut node = Stage::new();
    let mut later = positive();
    later.activation = 2;
    node.ask(register(&later, 100, &until(1), &[], true));
    node.ask(NodeRequest::Expire {
        query: later.hash,
        activation: 1,
    });
    assert_eq!(node.write(image(1, "a", 1, Some(5))), ["a@1 +q"]);
}

#[test]
fn a_new_activation_of_a_query_replaces_the_old_one() {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(1), &[], true));
    node.write(image(1, "a", 1, Some(5)));
    let mut later = positive();
    later.activation = 2;
    let answers = node.ask(register(&later, 101, &until(2), &[row("a", 1, 5)], true));
    assert_eq!(answers, ["active q 2"]);
    assert_eq!(node.write(image(2, "a", 2, Some(6))), ["a@2 =q"]);
    assert!(
        node.ask(register(&positive(), 101, &until(2), &[], true))
            .is_empty()
    );
}

#[test]
fn rows_of_a_renewal_are_noticed_when_they_leave() {
    let mut node = Stage::new();
    let window = sorted("s", 0, 1, 0);
    node.ask(register(&window, 100, &until(5), &[row("a", 1, 1)], false));
    let again = register(&window, 100, &until(6), &[row("b", 1, 2)], false);
    assert_eq!(node.ask(renewal(again)), ["active s 1"]);
    assert_eq!(node.write(image(6, "b", 2, None)), ["b@2 -s"]);
}

#[test]
fn a_renewal_does_not_bring_back_what_left_while_it_was_on_its_way() {
    let mut node = Stage::new();
    let window = sorted("s", 0, 1, 0);
    node.ask(register(&window, 100, &until(5), &[row("a", 1, 1)], false));
    node.write(image(6, "a", 2, None));
    let again = register(&window, 100, &until(6), &[row("a", 1, 1)], false);
    node.ask(renewal(again));
    assert!(node.write(image(7, "a", 3, None)).is_empty());
}
