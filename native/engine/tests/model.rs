//! Compares the engine with an ordered map with snapshots: for any operations in any order and with
//! any options, both must return the same results.

use crate::model_support::{Operation, Tuning, World, operation, tuning};
use proptest::prelude::*;

/// The number of operations in a history of the everyday suite.
const EVERYDAY: usize = 160;

fn history(operations: &[Operation], tunings: &[Tuning]) {
    let mut world = World::new(tunings[0]);
    for operation in operations {
        world.apply(operation);
    }
    world.check_everything();
    // The same data opened with other options returns the same results.
    for tuning in &tunings[1..] {
        world.reopen(*tuning);
        world.check_everything();
        world.apply(&Operation::CompactAll);
        world.check_everything();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_history_gives_the_answers_of_an_ordered_map(
        operations in prop::collection::vec(operation(), 1..EVERYDAY),
        tunings in prop::collection::vec(tuning(), 2..4),
    ) {
        history(&operations, &tunings);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 550, ..ProptestConfig::default() })]

    /// More than a million operations.
    #[test]
    #[ignore = "long"]
    fn long_histories_give_the_answers_of_an_ordered_map(
        operations in prop::collection::vec(operation(), 1900..2100),
        tunings in prop::collection::vec(tuning(), 2..4),
    ) {
        history(&operations, &tunings);
    }
}
