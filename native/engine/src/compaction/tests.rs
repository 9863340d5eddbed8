//! Tests of the choice of each strategy.

use std::collections::HashSet;
use std::sync::Arc;

use super::plan::{CompactionAction, CompactionPlan, choose};
use crate::options::{Expiry, KeyspaceOptions, Strategy};
use crate::table::codec::Compression;
use crate::version::KeyspaceVersion;
use crate::version::file::{FileMeta, Graveyard, Largest, TableFile};

/// A file from one key to another, with a size, in a run of a level.
fn file(number: u64, keys: (&str, &str), size: u64) -> FileMeta {
    FileMeta {
        number,
        size,
        smallest: keys.0.into(),
        largest: Largest {
            key: keys.1.into(),
            exclusive: false,
        },
        entries: 10,
        deletes: 0,
        operands: 0,
        range_deletes: 0,
        first_sequence: number,
        last_sequence: number,
        written_until: number,
        all_expired_at: None,
        about: None,
    }
}

fn version(files: Vec<(usize, u64, FileMeta)>) -> KeyspaceVersion {
    let graveyard = Graveyard::default();
    let files: Vec<(usize, u64, Arc<TableFile>)> = files
        .into_iter()
        .map(|(level, run, meta)| {
            (
                level,
                run,
                TableFile::new(meta, "unused".into(), &graveyard),
            )
        })
        .collect();
    KeyspaceVersion::empty().changed(&HashSet::new(), &files, None)
}

fn options(strategy: Strategy) -> KeyspaceOptions {
    KeyspaceOptions {
        strategy,
        compression: vec![Compression::None],
        base_bytes: 100,
        compact_at_runs: 3,
        memtable_bytes: 10,
        ..KeyspaceOptions::default()
    }
}

fn numbers(plan: &CompactionPlan) -> Vec<u64> {
    plan.files().map(|file| file.meta.number).collect()
}

const LEVELED: Strategy = Strategy::Leveled { fanout: 10 };

#[test]
fn leveled_merges_flushed_runs_with_what_they_overlap_below() {
    let mut files = vec![
        (1, 1, file(1, ("a", "f"), 40)),
        (1, 1, file(2, ("k", "p"), 40)),
        (0, 3, file(3, ("b", "d"), 10)),
        (0, 4, file(4, ("a", "g"), 10)),
    ];
    assert!(choose(&version(files.clone()), &options(LEVELED), 0).is_none());
    files.push((0, 5, file(5, ("c", "c"), 10)));
    let plan = choose(&version(files), &options(LEVELED), 0).unwrap();
    assert_eq!(
        (plan.action, plan.level, plan.run),
        (CompactionAction::Merge, 1, Some(1))
    );
    assert_eq!(
        numbers(&plan),
        [5, 4, 3, 1],
        "the newest first, and not what lies apart"
    );
}

#[test]
fn leveled_moves_what_overlaps_nothing() {
    let files = (0..3).map(|at| {
        let key = ["a", "b", "c"][at];
        (0, at as u64 + 1, file(at as u64 + 1, (key, key), 10))
    });
    let plan = choose(&version(files.collect()), &options(LEVELED), 0).unwrap();
    assert_eq!((plan.action, plan.level), (CompactionAction::Move, 1));
}

#[test]
fn leveled_takes_from_a_full_level_the_file_that_costs_least() {
    let files = vec![
        (1, 1, file(1, ("a", "f"), 80)),
        (1, 1, file(2, ("k", "p"), 80)),
        (2, 2, file(3, ("a", "e"), 300)),
        (2, 2, file(4, ("m", "n"), 100)),
    ];
    let plan = choose(&version(files), &options(LEVELED), 0).unwrap();
    assert_eq!((plan.level, numbers(&plan)), (2, vec![2, 4]));
}

#[test]
fn tiers_merge_all_runs_of_a_full_level_into_a_new_run_of_the_next() {
    let files = vec![
        (0, 7, file(7, ("a", "z"), 10)),
        (1, 4, file(4, ("a", "z"), 30)),
        (1, 5, file(5, ("a", "z"), 30)),
        (1, 6, file(6, ("a", "z"), 30)),
        (2, 3, file(3, ("a", "z"), 90)),
    ];
    let tiered = options(Strategy::SizeTiered { runs: 3 });
    let plan = choose(&version(files.clone()), &tiered, 0).unwrap();
    assert_eq!(
        (plan.level, plan.run, numbers(&plan)),
        (2, None, vec![6, 5, 4])
    );
    let lazy = options(Strategy::LazyLeveled { runs: 3 });
    let plan = choose(&version(files), &lazy, 0).unwrap();
    assert_eq!(
        (plan.level, numbers(&plan)),
        (2, vec![6, 5, 4, 3]),
        "the last level is one run"
    );
}

#[test]
fn windows_are_merged_within_themselves_and_one_that_has_passed_into_one_run() {
    let files = vec![
        (0, 11, file(11, ("a", "z"), 10)),
        (0, 22, file(22, ("a", "z"), 10)),
        (0, 25, file(25, ("a", "z"), 10)),
        (0, 31, file(31, ("a", "z"), 10)),
    ];
    let windows = options(Strategy::TimeWindow {
        window: 10,
        runs: 4,
    });
    let plan = choose(&version(files), &windows, 0).unwrap();
    assert_eq!(
        (plan.level, plan.run, numbers(&plan)),
        (0, Some(25), vec![25, 22])
    );
}

#[test]
fn an_expired_file_is_dropped_unread_unless_it_hides_something() {
    let expired = FileMeta {
        all_expired_at: Some(50),
        ..file(9, ("c", "e"), 10)
    };
    let over =
        |below: (&str, &str)| version(vec![(0, 9, expired.clone()), (1, 1, file(1, below, 10))]);
    let by_entry = options(LEVELED);
    let by_key = KeyspaceOptions {
        expiry: Expiry::ByKey,
        ..by_entry.clone()
    };
    let drops = |version: &KeyspaceVersion, options: &KeyspaceOptions, now| {
        choose(version, options, now).is_some_and(|plan| plan.action == CompactionAction::Drop)
    };
    assert!(drops(&over(("x", "z")), &by_entry, 50));
    assert!(
        !drops(&over(("x", "z")), &by_entry, 49),
        "a snapshot still sees it"
    );
    assert!(
        !drops(&over(("a", "d")), &by_entry, 50),
        "an older entry would come back"
    );
    assert!(
        drops(&over(("a", "d")), &by_key, 50),
        "all versions have expired"
    );
}
