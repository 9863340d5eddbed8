//! A collection's requirements for each of its documents.

use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::error::{EvaluationFailure, ParseLocation};
use rillbase_query::fuel::Fuel;
use rillbase_query::schema::{Schema, SchemaViolation};

use crate::elements::DocumentLimits;
use crate::entry::{IndexDefinition, IndexEntry, entries};
use crate::refusal::DocumentRefusal;

/// A schema, limits and indexes, compiled.
#[derive(Debug, Default)]
pub struct CollectionDefinition {
    schema: Option<Schema>,
    limits: DocumentLimits,
    indexes: Vec<IndexDefinition>,
}

impl CollectionDefinition {
    /// Compiles a definition. Places in errors are relative to the schema.
    pub fn new(
        schema: Option<ValueRef<'_>>,
        indexes: Vec<IndexDefinition>,
    ) -> Result<Self, DocumentRefusal> {
        let schema = schema
            .map(|schema| Schema::parse(schema, &ParseLocation::root()))
            .transpose()?;
        Ok(Self {
            schema,
            limits: DocumentLimits::default(),
            indexes,
        })
    }

    /// Sets the limits.
    #[must_use]
    pub const fn limited(mut self, limits: DocumentLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Rejects a document that is too large or violates the schema.
    pub fn check(&self, document: Document<'_>) -> Result<(), DocumentRefusal> {
        self.limits.check(document)?;
        let Some(schema) = &self.schema else {
            return Ok(());
        };
        let violations = |schema: &Schema| -> Result<Vec<SchemaViolation>, EvaluationFailure> {
            if schema.allows(document, &Fuel::default())? {
                return Ok(Vec::new());
            }
            schema.violations(document, &Fuel::default())
        };
        match violations(schema) {
            Ok(violations) if violations.is_empty() => Ok(()),
            Ok(violations) => Err(DocumentRefusal::of_schema(violations)),
            Err(failure) => Err(DocumentRefusal::new(
                "query_too_expensive",
                format!("the collection's schema cannot be evaluated for this document: {failure}"),
            )),
        }
    }

    /// The document's entries in all indexes, sorted.
    pub fn entries(&self, document: Document<'_>) -> Result<Vec<IndexEntry>, DocumentRefusal> {
        let mut all = Vec::new();
        for index in &self.indexes {
            all.append(&mut entries(document, index)?);
        }
        all.sort_unstable();
        Ok(all)
    }
}
