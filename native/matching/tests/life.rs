//! The cost of live queries: quotas, moves, memory, and the limits of hostile documents and
//! filters.

use crate::support::common::document;
use crate::support::{GROUP, MatcherWithModel, QUOTA, filter, roomy};
use rillbase_matching::{Class, Matcher, MatcherLimits, QueryId, QueryRefusal};
use rillbase_query::bson::DocumentBuf;

fn matches_of(matcher: &mut Matcher, group: [u8; 16], body: &DocumentBuf) -> Vec<QueryId> {
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    matcher.matches(&group, body.as_ref(), &mut found, &mut failed);
    assert!(failed.is_empty());
    found
}

#[test]
fn a_bound_itself_is_not_proposed_where_it_is_excluded() {
    let mut matcher = roomy();
    matcher
        .add(GROUP, QUOTA, &filter(r#"{"a":{"$gt":0}}"#))
        .expect("room");
    for _ in 0..10 {
        assert!(matches_of(&mut matcher, GROUP, &document(r#"{"a":0}"#)).is_empty());
    }
    assert_eq!(matcher.statistics().candidates, 0);
}

#[test]
fn residual_queries_are_refused_beyond_the_quota_and_others_are_not() {
    let mut matcher = Matcher::new(MatcherLimits {
        residual_per_group: 3,
        residual_per_quota: 2,
        ..MatcherLimits::default()
    });
    let residual = filter(r#"{"a":{"$ne":1}}"#);
    let (one, other) = ([1; 16], [2; 16]);
    let first = matcher.add(GROUP, one, &residual).expect("room");
    matcher.add([9; 16], one, &residual).expect("room");
    assert_eq!(
        matcher.add(GROUP, one, &residual),
        Err(QueryRefusal::ResidualQuota)
    );
    matcher
        .add(GROUP, other, &residual)
        .expect("another tenant's quota");
    matcher
        .add(GROUP, one, &filter(r#"{"a":1}"#))
        .expect("not residual");
    matcher.remove(first);
    matcher.add(GROUP, one, &residual).expect("room again");
    let statistics = matcher.statistics();
    let mut by_quota = statistics.residual.clone();
    by_quota.sort_unstable();
    assert_eq!(by_quota, [(one, 2), (other, 1)]);
    assert_eq!(
        statistics.queries,
        [(Class::Equality, 1), (Class::Residual, 3)]
    );
    assert_eq!(matcher.len(), 4);
}

#[test]
fn a_group_never_sees_the_queries_of_another() {
    let mut matcher = roomy();
    let (one, other) = ([3; 16], [4; 16]);
    let here = matcher
        .add(one, QUOTA, &filter(r#"{"a":1}"#))
        .expect("room");
    let there = matcher
        .add(other, QUOTA, &filter(r#"{"a":1}"#))
        .expect("room");
    let body = document(r#"{"a":1}"#);
    assert_eq!(matches_of(&mut matcher, one, &body), [here]);
    assert_eq!(matches_of(&mut matcher, other, &body), [there]);
    matcher.remove(here);
    assert!(matches_of(&mut matcher, one, &body).is_empty());
    assert!(matches_of(&mut matcher, [5; 16], &body).is_empty());
    let again = matcher
        .add([6; 16], QUOTA, &filter(r#"{"a":1}"#))
        .expect("room");
    assert_eq!(again, here, "numbers are given again");
    assert!(matches_of(&mut matcher, one, &body).is_empty());
    assert_eq!(matches_of(&mut matcher, [6; 16], &body), [again]);
}

#[test]
fn a_query_that_is_proposed_in_vain_moves_to_a_rarer_predicate() {
    let mut matcher = roomy();
    // Before any document is seen, equality is assumed to be rarer than the range.
    let query = filter(r#"{"kind":"order","price":{"$gt":100,"$lt":110}}"#);
    let id = matcher.add(GROUP, QUOTA, &query).expect("room");
    assert_eq!(matcher.explain(id).class, Class::Equality);
    for price in 0..200 {
        let body = document(&format!(r#"{{"kind":"order","price":{}}}"#, price % 50));
        assert!(matches_of(&mut matcher, GROUP, &body).is_empty());
    }
    assert_eq!(matcher.explain(id).class, Class::Range);
    assert_eq!(matcher.statistics().moves, 1);
    let body = document(r#"{"kind":"order","price":105}"#);
    assert_eq!(matches_of(&mut matcher, GROUP, &body), [id]);
}

#[test]
fn a_query_added_later_knows_from_the_start_what_is_rare() {
    let mut matcher = roomy();
    matcher
        .add(GROUP, QUOTA, &filter(r#"{"kind":"other"}"#))
        .expect("room");
    for price in 0..50 {
        let body = document(&format!(r#"{{"kind":"order","price":{price}}}"#));
        matches_of(&mut matcher, GROUP, &body);
    }
    let query = filter(r#"{"kind":"order","price":{"$gt":100,"$lt":110}}"#);
    let id = matcher.add(GROUP, QUOTA, &query).expect("room");
    let placed = matcher.explain(id);
    assert_eq!(
        (placed.class, placed.paths),
        (Class::Range, vec!["price".to_owned()])
    );
    assert!(placed.selectivity < 0.1);
}

#[test]
fn ways_that_double_at_each_level_are_walked_once_each() {
    let nested = (0..48).fold("[1]".to_owned(), |inner, _| format!(r#"[{{"0":{inner}}}]"#));
    let body = document(&format!(r#"{{"a":{nested},"b":1}}"#));
    let mut matcher = roomy();
    let hostile = matcher
        .add(
            GROUP,
            QUOTA,
            &filter(&format!(r#"{{"a{}":1}}"#, ".0".repeat(90))),
        )
        .expect("room");
    let innocent = matcher
        .add(GROUP, QUOTA, &filter(r#"{"b":1}"#))
        .expect("room");
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    matcher.matches(&GROUP, body.as_ref(), &mut found, &mut failed);
    assert_eq!(found, [innocent]);
    assert!(!found.contains(&hostile));
}

#[test]
fn queries_behind_more_positions_than_are_walked_are_evaluated_instead() {
    let body = format!(r#"{{"a":[[{}]],"b":1}}"#, vec!["{}"; 1_050_000].join(","));
    let mut beside = MatcherWithModel::new();
    for query in [r#"{"a.0.c":1}"#, r#"{"b":1,"a.0.c":2}"#, r#"{"b":1}"#] {
        beside.add(query);
    }
    beside.check(&body);
}

#[test]
fn a_path_deeper_than_any_document_takes_no_room_in_the_tree_of_paths() {
    let mut matcher = roomy();
    let deep = "a".to_owned() + &".a".repeat(5000);
    let id = matcher
        .add(GROUP, QUOTA, &filter(&format!(r#"{{"{deep}":1}}"#)))
        .expect("room");
    assert_eq!(matcher.explain(id).class, Class::Residual);
    let missing = matcher
        .add(
            GROUP,
            QUOTA,
            &filter(&format!(r#"{{"{deep}":null,"b":1}}"#)),
        )
        .expect("room");
    assert_eq!(matcher.explain(missing).class, Class::Equality);
    assert_eq!(
        matches_of(&mut matcher, GROUP, &document(r#"{"b":1}"#)),
        [missing]
    );
}

#[test]
fn a_failed_evaluation_is_distinguished_from_a_mismatch() {
    let mut matcher = roomy();
    let id = matcher
        .add(
            GROUP,
            QUOTA,
            &filter(r#"{"a":1,"$expr":{"$divide":["$a","$b"]}}"#),
        )
        .expect("room");
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    matcher.matches(
        &GROUP,
        document(r#"{"a":1,"b":0}"#).as_ref(),
        &mut found,
        &mut failed,
    );
    assert_eq!(
        (found.as_slice(), failed.as_slice()),
        ([].as_slice(), [id].as_slice())
    );
    matcher.matches(
        &GROUP,
        document(r#"{"a":1,"b":2}"#).as_ref(),
        &mut found,
        &mut failed,
    );
    assert_eq!(
        (found.as_slice(), failed.as_slice()),
        ([id].as_slice(), [].as_slice())
    );
}

#[test]
fn a_value_repeated_in_an_array_is_looked_up_once() {
    let mut matcher = roomy();
    for _ in 0..1000 {
        matcher
            .add(GROUP, QUOTA, &filter(r#"{"a":7}"#))
            .expect("room");
    }
    let body = document(&format!(r#"{{"a":[{}]}}"#, vec!["7"; 10_000].join(",")));
    assert_eq!(matches_of(&mut matcher, GROUP, &body).len(), 1000);
    assert_eq!(matcher.statistics().candidates, 1000);
}

#[test]
fn an_idle_query_of_three_predicates_takes_less_than_a_kibibyte() {
    let mut matcher = roomy();
    let count = 20_000;
    for low in 0..count {
        let query = format!(
            r#"{{"s0":"user{low:06}","random":{{"$gte":{low},"$lt":{}}}}}"#,
            low + 17
        );
        matcher.add(GROUP, QUOTA, &filter(&query)).expect("room");
    }
    let each = matcher.memory() / count;
    assert!(each < 1024, "{each} bytes");
}

#[test]
fn removed_queries_release_their_memory() {
    let mut matcher = roomy();
    matcher
        .add(GROUP, QUOTA, &filter(r#"{"stays":1}"#))
        .expect("room");
    let mut first = None;
    for round in 0..20 {
        // Paths and values that are unique to the round.
        let added: Vec<QueryId> = (0..500)
            .map(|number| {
                let query = format!(
                    r#"{{"$or":[{{"f{round}.x{number}":"v{round}"}},{{"g{round}":{{"$gt":{number}}}}}]}}"#
                );
                matcher.add(GROUP, QUOTA, &filter(&query)).expect("room")
            })
            .collect();
        let full = matcher.memory();
        assert!(
            full <= 2 * *first.get_or_insert(full),
            "round {round}: {full}"
        );
        for id in added {
            matcher.remove(id);
        }
    }
    assert_eq!(matcher.len(), 1);
}
