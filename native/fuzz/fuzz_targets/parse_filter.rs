//! Any filter is evaluated or rejected, and its canonical form is equivalent to it and canonical
//! itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rillbase_query::bson::ValueRef;
use rillbase_query::ejson::parse_document;
use rillbase_query::environment::EvaluationContext;
use rillbase_query::filter::Filter;

fuzz_target!(|bytes: &[u8]| {
    let Ok(input) = parse_document(bytes) else {
        return;
    };
    let filter = match input.as_ref().get("filter") {
        Some(ValueRef::Document(filter)) => filter,
        _ => input.as_ref(),
    };
    let Ok(filter) = Filter::parse(filter) else {
        return;
    };
    let again = Filter::parse(filter.canonical()).expect("the canonical form is a filter");
    assert_eq!(again.hash(), filter.hash());
    let answer = filter.matches_in(input.as_ref(), &EvaluationContext::default());
    if answer.is_ok() {
        assert_eq!(
            again.matches_in(input.as_ref(), &EvaluationContext::default()),
            answer
        );
    }
});
