//! Whether a document can be evaluated does not depend on how its queries are
//! kept: alone, behind the index, or among others that share predicates.

#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod support;

use proptest::prelude::*;
use rillbase_query::fuel::limit_steps;
use support::{Beside, any_filter, any_near_document};

/// Less than many of the filters need on many of the documents.
const STEPS: u64 = 6;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_matcher_comes_to_no_answer_where_a_filter_alone_comes_to_none(
        filters in prop::collection::vec(any_filter(), 1..60),
        documents in prop::collection::vec(any_near_document(), 1..10),
    ) {
        limit_steps(STEPS);
        let mut beside = Beside::new();
        for text in &filters {
            beside.add(text);
        }
        for text in &documents {
            beside.check_answers(text);
        }
    }
}
