//! What a collection prescribes for each of its documents.

use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::error::Place;
use rillbase_query::fuel::Fuel;
use rillbase_query::schema::Schema;

use crate::entry::{Entry, Index, entries};
use crate::refusal::Refusal;

/// A schema and indexes, compiled.
#[derive(Debug, Default)]
pub struct Definition {
    schema: Option<Schema>,
    indexes: Vec<Index>,
}

impl Definition {
    /// Compiles a definition. Places of refusals are inside the schema.
    pub fn new(schema: Option<ValueRef<'_>>, indexes: Vec<Index>) -> Result<Self, Refusal> {
        let schema = schema
            .map(|schema| Schema::parse(schema, &Place::root()))
            .transpose()?;
        Ok(Self { schema, indexes })
    }

    /// Refuses a document that breaks the schema.
    pub fn check(&self, document: Document<'_>) -> Result<(), Refusal> {
        let Some(schema) = &self.schema else {
            return Ok(());
        };
        if schema.allows(document, &Fuel::default())? {
            return Ok(());
        }
        Err(Refusal::of_schema(
            schema.violations(document, &Fuel::default())?,
        ))
    }

    /// The document's entries in all indexes, sorted.
    pub fn entries(&self, document: Document<'_>) -> Result<Vec<Entry>, Refusal> {
        let mut all = Vec::new();
        for index in &self.indexes {
            all.append(&mut entries(document, index)?);
        }
        all.sort_unstable();
        Ok(all)
    }
}
