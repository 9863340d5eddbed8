//! Documents that are shown with others that they refer to.

use std::collections::BTreeSet;
use std::sync::Arc;

use rillbase_documents::lookups::{self, Found};
use rillbase_documents::refusal::Refusal;
use rillbase_query::bson::Document;
use rillbase_query::error::Place;
use rillbase_query::lookup::Lookups;

use crate::message::{Definition, Foreign, Row};

/// What a query looks up; none: nothing.
pub fn lookups_of(query: &Definition) -> Result<Option<Arc<Lookups>>, Refusal> {
    if !query.looks_up() {
        return Ok(None);
    }
    let Some(list) = Document::parse(&query.lookups)?.get("lookup") else {
        return Err(Refusal::new("invalid_lookup", "the lookups are missing"));
    };
    let parsed = Lookups::parse(list, &Place::root())?;
    if parsed.collections().len() != query.sides.len() {
        let detail = "there must be a side for each collection that is looked up";
        return Err(Refusal::new("invalid_lookup", detail));
    }
    Ok(Some(Arc::new(parsed)))
}

/// The keys to which documents of a query refer, for each of its sides.
pub fn references(query: &Definition, rows: &[Row]) -> Result<Vec<BTreeSet<Vec<u8>>>, Refusal> {
    match lookups_of(query)? {
        None => Ok(Vec::new()),
        Some(lookups) => lookups::keys(&lookups, rows.iter().map(|row| &*row.body)),
    }
}

/// Finds the body of a document of a side by its key.
pub(crate) type Find<'f> = dyn Fn(usize, &[u8]) -> Option<Arc<[u8]>> + 'f;

/// A document as it is shown, with others of each side that `find` knows by key.
pub(crate) fn row(lookups: &Lookups, own: &Row, find: &Find<'_>) -> Result<Row, Refusal> {
    let keys = lookups::keys(lookups, std::iter::once(&*own.body))?;
    let found = keys.iter().enumerate().map(|(side, keys)| {
        let found = keys
            .iter()
            .filter_map(|key| Some((key.clone(), find(side, key)?)));
        found.collect()
    });
    let found: Vec<Found<Arc<[u8]>>> = found.collect();
    let shown = lookups::embed(lookups, &own.body, &found)?;
    Ok(Row::of_join(own, shown.as_ref()))
}

/// Documents as a query shows them, from what was read with them.
pub(crate) fn rows(
    lookups: &Lookups,
    documents: &[Row],
    foreign: &[Foreign],
) -> Result<Vec<Row>, Refusal> {
    let bodies = |side: &Foreign| -> Found<Arc<[u8]>> {
        let rows = side.rows.iter();
        rows.map(|row| (row.key.to_vec(), Arc::clone(&row.body)))
            .collect()
    };
    let found: Vec<_> = foreign.iter().map(bodies).collect();
    let find = |side: usize, key: &[u8]| found.get(side)?.get(key).cloned();
    let shown = documents.iter().map(|own| row(lookups, own, &find));
    shown.collect()
}
