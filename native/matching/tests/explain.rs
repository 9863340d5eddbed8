//! The explanation of a query and a document agrees with the matcher.

use crate::support::common::document;
use crate::support::{GROUP, QUOTA, any_filter, any_near_document, filter, roomy};
use proptest::prelude::*;
use rillbase_matching::{Class, reach};
use rillbase_query::filter::{Connective, Filter, FilterReason};

/// The combined result of the parts; `None` if one of them failed.
fn of_parts(reason: &FilterReason) -> Option<bool> {
    let mut parts = reason.parts.iter().map(|part| {
        let said = part.holds.clone().ok()?;
        assert!(part.how == Connective::Test || of_parts(part).is_none_or(|all| all == said));
        Some(said)
    });
    match reason.how {
        Connective::Test => reason.holds.clone().ok(),
        Connective::All => parts.try_fold(true, |all, one| Some(all && one?)),
        Connective::Any => parts.try_fold(false, |any, one| Some(any || one?)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn an_explanation_agrees_with_the_matcher(
        query in any_filter(),
        texts in prop::collection::vec(any_near_document(), 1..5),
    ) {
        let Ok(query) = Filter::parse(document(&query).as_ref()) else {
            return Ok(());
        };
        let mut matcher = roomy();
        let id = matcher.add(GROUP, QUOTA, &query).expect("room");
        for text in texts {
            let body = document(&text);
            let (mut found, mut failed) = (Vec::new(), Vec::new());
            let before = matcher.statistics().documents;
            let reach = matcher.reach(id, body.as_ref());
            prop_assert_eq!(matcher.statistics().documents, before);
            matcher.matches(&GROUP, body.as_ref(), &mut found, &mut failed);
            let told = query.explain(body.as_ref(), 0);
            prop_assert_eq!(told.matches == Ok(true), found.contains(&id), "{}", text);
            // If the index does not lead a document to a query, its filter is not evaluated.
            prop_assert!(reach.reached || found.is_empty(), "{}", text);
            if let Some(parts) = of_parts(&told.reason).filter(|_| !told.cut) {
                prop_assert_eq!(told.matches, Ok(parts), "{}", text);
            }
        }
    }
}

#[test]
fn a_document_reaches_exactly_the_queries_that_it_may_match() {
    for (query, text, expected) in [
        (
            r#"{"a":1,"b":{"$gt":5}}"#,
            r#"{"a":1,"b":2}"#,
            (true, Class::Equality),
        ),
        (
            r#"{"a":1,"b":{"$gt":5}}"#,
            r#"{"a":2,"b":9}"#,
            (false, Class::Equality),
        ),
        (r#"{"b":{"$gt":5}}"#, r#"{"b":2}"#, (false, Class::Range)),
        (r#"{"a":{"$ne":1}}"#, r#"{"a":1}"#, (true, Class::Residual)),
        ("{}", r#"{"a":1}"#, (true, Class::Everything)),
        (r#"{"a":{"$in":[]}}"#, r#"{"a":1}"#, (false, Class::Never)),
    ] {
        let found = reach(&filter(query), document(text).as_ref());
        assert_eq!(
            (found.reached, found.placement.class),
            expected,
            "{query} on {text}"
        );
    }
}
