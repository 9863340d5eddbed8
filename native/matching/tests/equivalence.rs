//! The index with verification finds the same queries as the evaluation of each filter.

use crate::support::{MatcherWithModel, any_filter, any_near_document};
use proptest::prelude::*;

/// An operation on a matcher.
#[derive(Debug, Clone)]
enum Step {
    Add(String),
    Remove(usize),
    Document(String),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any_filter().prop_map(Step::Add),
        1 => (0..60_usize).prop_map(Step::Remove),
        4 => any_near_document().prop_map(Step::Document),
    ]
}

fn play(first: &[String], steps: &[Step], again: usize) {
    let mut beside = MatcherWithModel::new();
    for text in first {
        beside.add(text);
    }
    for step in steps {
        match step {
            Step::Add(text) => {
                beside.add(text);
            }
            Step::Remove(at) => beside.remove(*at),
            // Repeated documents make queries move to other predicates.
            Step::Document(text) => (0..again).for_each(|_| beside.check(text)),
        }
    }
    while !beside.queries.is_empty() {
        beside.remove(0);
    }
    beside.check(r#"{"a":1}"#);
    let left = beside.matcher.statistics();
    assert!(left.queries.is_empty() && left.residual.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_matcher_agrees_with_each_filter_while_queries_are_added_and_removed(
        first in prop::collection::vec(any_filter(), 0..60),
        steps in prop::collection::vec(any_step(), 1..40),
    ) {
        play(&first, &steps, 1);
    }

    #[test]
    fn queries_that_move_to_rarer_predicates_are_still_found(
        first in prop::collection::vec(any_filter(), 20),
        steps in prop::collection::vec(any_step(), 1..10),
    ) {
        play(&first, &steps, 40);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    #[ignore = "minutes: millions of pairs of document and filter"]
    fn the_matcher_agrees_with_each_filter_in_a_long_run(
        first in prop::collection::vec(any_filter(), 0..100),
        steps in prop::collection::vec(any_step(), 1..60),
    ) {
        play(&first, &steps, 1);
    }
}
