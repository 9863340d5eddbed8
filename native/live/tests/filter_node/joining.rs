//! Subscribers that join a registered query with rows of their own.

use rillbase_live::message::{AfterImage, ImageContent};

use super::stage::{Stage, positive};
use crate::common::{image, register, renewal, row, sorted, until};

#[test]
fn a_joining_subscriber_is_notified_of_a_row_that_left_before_the_registration() {
    let mut node = Stage::new();
    // The second subscriber reads between 5 and 6, the first has read before both; 5 is in transit.
    node.write(image(6, "a", 2, Some(-5)));
    let joining = || register(&positive(), 100, &until(6), &[row("a", 1, 5)], true);
    let answers = node.ask(register(&positive(), 100, &until(5), &[], true));
    assert_eq!(answers, ["active q 1"]);
    assert_eq!(node.ask(joining()), ["a@2 =q -q", "active q 1"]);
    assert_eq!(node.ask(joining()), ["active q 1"]);
}

#[test]
fn a_removal_is_not_repeated_for_a_late_subscriber() {
    let mut node = Stage::new();
    let joining = || register(&positive(), 100, &until(6), &[row("a", 1, 5)], true);
    node.ask(joining());
    assert_eq!(node.write(image(6, "a", 2, Some(-5))), ["a@2 -q"]);
    assert_eq!(node.ask(joining()), ["active q 1"]);
    node.write(image(7, "a", 3, Some(-6)));
    assert_eq!(node.ask(joining()), ["active q 1"]);
}

/// A query with one reader before the transaction 5, and another before 7 with this row.
fn joined(row: rillbase_live::message::ResultRow) -> Stage {
    let mut node = Stage::new();
    node.ask(register(&positive(), 100, &until(5), &[], true));
    node.ask(register(&positive(), 100, &until(7), &[row], true));
    node
}

#[test]
fn a_joining_subscriber_is_notified_when_an_unconfirmed_row_leaves() {
    let mut node = joined(row("a", 1, 5));
    assert_eq!(node.write(image(7, "a", 2, Some(-5))), ["a@2 =q -q"]);
    assert!(node.write(image(8, "a", 3, Some(-5))).is_empty());
}

#[test]
fn a_row_that_only_joining_subscribers_have_enters_with_its_after_image() {
    let mut node = joined(row("a", 2, 5));
    assert!(node.write(image(5, "a", 1, Some(-5))).is_empty());
    assert_eq!(node.write(image(6, "a", 2, Some(5))), ["a@2 +q"]);
    assert_eq!(node.write(image(7, "a", 3, Some(6))), ["a@3 =q"]);
}

#[test]
fn a_version_above_that_of_joining_subscribers_enters_for_some_and_stays_for_others() {
    let mut node = joined(row("a", 2, 5));
    assert_eq!(node.write(image(7, "a", 3, Some(6))), ["a@3 +q =q"]);
    assert_eq!(node.write(image(8, "a", 4, Some(6))), ["a@4 =q"]);
}

#[test]
fn a_row_that_has_not_arrived_is_not_forgotten_because_a_lower_version_left() {
    let mut node = joined(row("a", 3, 5));
    assert_eq!(node.write(image(5, "a", 1, Some(5))), ["a@1 +q"]);
    assert_eq!(node.write(image(6, "a", 2, Some(-5))), ["a@2 -q"]);
    assert_eq!(node.write(image(7, "a", 4, Some(-5))), ["a@4 =q -q"]);
}

#[test]
fn a_superseded_row_is_remembered_after_the_tick_that_covers_it() {
    let mut node = joined(row("a", 2, 5));
    let superseded = AfterImage {
        content: ImageContent::Superseded,
        ..image(6, "a", 2, None)
    };
    assert!(node.write(superseded).is_empty());
    assert_eq!(node.tick(until(7)), ["tick 2"]);
    assert_eq!(node.write(image(7, "a", 3, Some(6))), ["a@3 +q =q"]);
}

#[test]
fn a_row_that_all_have_is_a_member_behind_the_tick_that_covers_it() {
    let mut node = Stage::new();
    let rows = [row("a", 2, 5)];
    node.ask(register(&positive(), 100, &until(5), &rows, true));
    node.ask(register(&positive(), 100, &until(7), &rows, true));
    assert_eq!(node.tick(until(7)), ["tick 1"]);
    assert_eq!(node.write(image(7, "a", 3, Some(-5))), ["a@3 -q"]);
}

#[test]
fn a_skipped_version_leaves_sorted_queries_that_may_have_it() {
    let mut node = Stage::new();
    node.ask(register(&sorted("s", 0, 1, 0), 100, &until(5), &[], true));
    assert!(node.write(image(6, "a", 2, None)).is_empty());
    assert_eq!(node.write(image(5, "a", 1, Some(5))), ["a@2 -s"]);
    assert!(node.write(image(5, "a", 1, Some(5))).is_empty());
}

#[test]
fn a_superseded_version_leaves_sorted_queries_with_the_next_one() {
    let mut node = Stage::new();
    node.ask(register(&sorted("s", 0, 1, 0), 100, &until(5), &[], true));
    let superseded = AfterImage {
        content: ImageContent::Superseded,
        ..image(5, "a", 1, None)
    };
    assert!(node.write(superseded).is_empty());
    assert_eq!(node.write(image(6, "a", 2, None)), ["a@2 -s"]);
}

#[test]
fn a_sorted_query_receives_removals_from_before_its_registration() {
    let mut node = Stage::new();
    node.write(image(5, "a", 1, Some(5)));
    node.write(image(6, "a", 2, None));
    let answers = node.ask(register(&sorted("s", 0, 2, 1), 100, &until(5), &[], true));
    assert_eq!(answers, ["a@2 -s", "active s 1"]);
}

#[test]
fn a_renewal_of_an_unknown_query_is_rejected_as_too_old() {
    let mut node = Stage::new();
    let request = register(&sorted("s", 0, 2, 1), 100, &until(5), &[], true);
    assert_eq!(node.ask(renewal(request)), ["too old s"]);
}
