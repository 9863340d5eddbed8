//! Any update results in a valid document or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rillbase_query::bson::{Document, ValueRef, validate};
use rillbase_query::ejson::parse_document;
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::ParseLocation;
use rillbase_query::update::{Applied, Update};

fuzz_target!(|bytes: &[u8]| {
    let Ok(input) = parse_document(bytes) else {
        return;
    };
    let part = |name| match input.as_ref().get(name) {
        Some(ValueRef::Document(document)) => document,
        _ => Document::empty(),
    };
    let filters = input
        .as_ref()
        .get("array_filters")
        .and_then(|filters| filters.as_array());
    let Ok(update) = Update::parse(part("update"), filters, &ParseLocation::root()) else {
        return;
    };
    let applied = Applied {
        position: Some(0),
        inserting: false,
    };
    if let Ok(after) = update.apply(part("document"), applied, &EvaluationContext::default()) {
        assert!(validate(after.as_bytes()).is_ok());
    }
});
