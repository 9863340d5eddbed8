//! Documents that are shown with others that they refer to.

use std::collections::BTreeSet;
use std::sync::Arc;

use rillbase_documents::lookups::{self, ReferencedDocuments};
use rillbase_documents::refusal::DocumentRefusal;
use rillbase_query::bson::{Document, DocumentWriter, ValueRef};
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::ParseLocation;
use rillbase_query::lookup::LookupFields;
use rillbase_query::projection::{Matched, Projection};

use crate::message::{Foreign, QueryDefinition, ResultRow};

/// What a query looks up, and what it shows of the resulting documents.
///
/// A projection is part of such a query, and is not applied by hubs: a change that it does not show
/// is no change, since rows are equal if and only if they show the same.
#[derive(Debug)]
pub struct Join {
    lookups: LookupFields,
    projection: Option<Projection>,
}

impl Join {
    fn parse(document: Document<'_>) -> Result<Self, DocumentRefusal> {
        let Some(list) = document.get("lookup") else {
            return Err(DocumentRefusal::new(
                "invalid_lookup",
                "the lookups are missing",
            ));
        };
        let projection = document
            .get("projection")
            .and_then(|shown| shown.as_document());
        let projection = projection.map(|shown| Projection::parse(shown, &ParseLocation::root()));
        Ok(Self {
            lookups: LookupFields::parse(list, &ParseLocation::root())?,
            projection: projection.transpose()?,
        })
    }

    /// The names of the collections that are looked up, each once.
    pub fn collections(&self) -> Vec<&str> {
        self.lookups.collections()
    }

    /// The keys to which documents refer, for each collection.
    pub(crate) fn keys<'b>(
        &self,
        bodies: impl Iterator<Item = &'b [u8]>,
    ) -> Result<Vec<BTreeSet<Vec<u8>>>, DocumentRefusal> {
        lookups::keys(&self.lookups, bodies)
    }

    /// Whether a document can be shown with those that it refers to.
    pub(crate) fn can_embed(&self, own: &ResultRow) -> bool {
        let document = Document::trusted(&own.body);
        let mut lookups = self.lookups.iter();
        lookups.all(|lookup| lookup.references(document).is_ok())
    }

    /// What is looked up.
    pub const fn lookups(&self) -> &LookupFields {
        &self.lookups
    }

    /// A document as it is shown, with the documents of each side that `find` returns by key.
    pub(crate) fn row(
        &self,
        own: &ResultRow,
        find: &Find<'_>,
    ) -> Result<ResultRow, DocumentRefusal> {
        let keys = self.keys(std::iter::once(&*own.body))?;
        let referenced = keys.iter().enumerate().map(|(side, keys)| {
            let referenced = keys
                .iter()
                .filter_map(|key| Some((key.clone(), find(side, key)?)));
            referenced.collect()
        });
        let referenced: Vec<ReferencedDocuments<Arc<[u8]>>> = referenced.collect();
        let shown = lookups::embed(&self.lookups, &own.body, &referenced)?;
        let Some(projection) = &self.projection else {
            return Ok(ResultRow::of_join(own, shown.as_ref()));
        };
        let environment = EvaluationContext::at(own.updated_ms);
        let (shown, _) = projection.apply_or_id(shown.as_ref(), Matched::default(), &environment);
        Ok(ResultRow::of_join(own, shown.as_ref()))
    }
}

/// The encoded definition of what a query looks up and shows.
pub fn definition(lookups: &LookupFields, projection: Option<ValueRef<'_>>) -> Vec<u8> {
    let canonical = lookups.canonical();
    let mut writer = DocumentWriter::new();
    if let Some(list) = canonical.as_ref().get("lookup") {
        writer.append("lookup", list);
    }
    if let Some(shown) = projection {
        writer.append("projection", shown);
    }
    writer.finish()
}

/// What a query looks up; `None` if it has no lookups.
pub fn join_of(query: &QueryDefinition) -> Result<Option<Arc<Join>>, DocumentRefusal> {
    if !query.looks_up() {
        return Ok(None);
    }
    let join = Join::parse(Document::parse(&query.lookups)?)?;
    if join.collections().len() != query.sides.len() {
        let detail = "there must be a side for each collection that is looked up";
        return Err(DocumentRefusal::new("invalid_lookup", detail));
    }
    Ok(Some(Arc::new(join)))
}

/// The keys to which documents of a query refer, for each of its sides.
pub fn references(
    query: &QueryDefinition,
    rows: &[ResultRow],
) -> Result<Vec<BTreeSet<Vec<u8>>>, DocumentRefusal> {
    match join_of(query)? {
        None => Ok(Vec::new()),
        Some(join) => join.keys(rows.iter().map(|row| &*row.body)),
    }
}

/// Finds the body of a document of a side by its key.
pub(crate) type Find<'f> = dyn Fn(usize, &[u8]) -> Option<Arc<[u8]>> + 'f;

/// Documents as a query shows them, from what was read with them.
pub(crate) fn rows(
    join: &Join,
    documents: &[ResultRow],
    foreign: &[Foreign],
) -> Result<Vec<ResultRow>, DocumentRefusal> {
    let bodies = |side: &Foreign| -> ReferencedDocuments<Arc<[u8]>> {
        let rows = side.rows.iter();
        rows.map(|row| (row.key.to_vec(), Arc::clone(&row.body)))
            .collect()
    };
    let referenced: Vec<_> = foreign.iter().map(bodies).collect();
    let find = |side: usize, key: &[u8]| referenced.get(side)?.get(key).cloned();
    let shown = documents.iter().map(|own| join.row(own, &find));
    shown.collect()
}
