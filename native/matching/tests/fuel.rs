//! Whether a document can be evaluated does not depend on whether a query is evaluated alone,
//! through the index, or in a set of queries that share predicates.

#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod support;

use proptest::prelude::*;
use rillbase_query::fuel::limit_steps;
use support::{MatcherWithModel, any_filter, any_near_document};

/// Too few steps for many filters on many documents.
const STEPS: u64 = 6;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_matcher_comes_to_no_answer_where_a_filter_alone_comes_to_none(
        filters in prop::collection::vec(any_filter(), 1..60),
        documents in prop::collection::vec(any_near_document(), 1..10),
    ) {
        limit_steps(STEPS);
        let mut beside = MatcherWithModel::new();
        for text in &filters {
            beside.add(text);
        }
        for text in &documents {
            beside.check_answers(text);
        }
    }
}
