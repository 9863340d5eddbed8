//! The definition of a collection, as a node stores it.

use std::sync::Arc;

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};
use rillbase_documents::definition::CollectionDefinition;
use rillbase_documents::elements::DocumentLimits;
use rillbase_documents::entry::{IndexDefinition, fields};
use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::index::IndexField;

use crate::error::{Error, Result};
use crate::format::EntryForm;

const VERSION: u8 = 1;
const INDEX_BITS: u32 = 32;
/// The greatest number of a collection.
pub(crate) const MAX_COLLECTION: u64 = (1 << 31) - 1;

/// An index of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeIndex {
    /// Its number in the collection, from 1; never used again.
    pub number: u32,
    /// Its name, for refusals.
    pub name: String,
    /// Its fields, with 1 for ascending and -1 for descending.
    pub fields: Vec<(String, i32)>,
    /// Whether no two documents may have equal values.
    pub is_unique: bool,
    /// Whether all documents are in it. Until then it is written and not read.
    pub is_ready: bool,
}

impl NativeIndex {
    pub(crate) fn fields(&self) -> Vec<IndexField> {
        fields(&self.fields)
    }

    pub(crate) fn compiled(&self, collection: u64) -> IndexDefinition {
        IndexDefinition {
            number: number_in_database((collection, self.number)),
            fields: self.fields(),
            unique: self.is_unique,
        }
    }

    /// How an entry is stored.
    pub(crate) fn form(&self, is_enforced: bool) -> EntryForm {
        if self.is_unique && is_enforced {
            EntryForm::Unique
        } else {
            EntryForm::Composite
        }
    }
}

/// The definition of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NativeDefinition {
    /// Incremented with each definition. Requests carry it.
    pub write_version: u64,
    /// The version of its access rules, which documents record.
    pub rules_version: u64,
    /// The schema as BSON.
    pub schema: Option<Vec<u8>>,
    /// The maximum number of elements of an array, and of values, in a document.
    pub limits: DocumentLimits,
    /// Its indexes.
    pub indexes: Vec<NativeIndex>,
}

impl NativeDefinition {
    /// An index by its number.
    pub fn index(&self, number: u32) -> Option<&NativeIndex> {
        self.indexes.iter().find(|index| index.number == number)
    }

    pub(crate) fn compile(&self, collection: u64) -> Result<Arc<CollectionDefinition>> {
        let indexes = self.indexes.iter().map(|index| index.compiled(collection));
        let schema = self.schema.as_deref().map(Document::trusted);
        let schema = schema.map(ValueRef::Document);
        let compiled = CollectionDefinition::new(schema, indexes.collect());
        let compiled = compiled.map_err(|refusal| Error::Definition(refusal.detail))?;
        Ok(Arc::new(compiled.limited(self.limits)))
    }

    /// `1 write_version rules_version elements values has_schema [schema] count (number name unique
    /// ready count (path direction)*)*`
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.put_varint(self.write_version);
        out.put_varint(self.rules_version);
        out.put_varint(self.limits.array_elements as u64);
        out.put_varint(self.limits.values as u64);
        out.put_optional_slice(self.schema.as_deref());
        out.put_varint(self.indexes.len() as u64);
        for index in &self.indexes {
            out.put_varint(u64::from(index.number));
            out.put_slice(index.name.as_bytes());
            out.push(u8::from(index.is_unique));
            out.push(u8::from(index.is_ready));
            out.put_varint(index.fields.len() as u64);
            for (path, direction) in &index.fields {
                out.put_slice(path.as_bytes());
                out.push(u8::from(*direction < 0));
            }
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        read(bytes).map_err(|_| Error::Malformed("a definition"))
    }
}

fn read(bytes: &[u8]) -> ReadResult<NativeDefinition> {
    let mut reader = ByteReader::new(bytes);
    let version = reader.byte()?;
    reader.check((version == VERSION).then_some(()), "version 1")?;
    let (write_version, rules_version) = (reader.varint()?, reader.varint()?);
    let mut limit = || Ok(usize::try_from(reader.varint()?).unwrap_or(usize::MAX));
    let limits = DocumentLimits {
        array_elements: limit()?,
        values: limit()?,
    };
    let schema = reader.optional(|reader| Ok(reader.slice()?.to_vec()))?;
    let indexes = reader.list(index)?;
    reader.finish()?;
    Ok(NativeDefinition {
        write_version,
        rules_version,
        schema,
        limits,
        indexes,
    })
}

fn index(reader: &mut ByteReader<'_>) -> ReadResult<NativeIndex> {
    let number = u32::try_from(reader.varint()?).ok();
    Ok(NativeIndex {
        number: reader.check(number, "a number of 32 bits")?,
        name: reader.text()?.to_owned(),
        is_unique: reader.flag()?,
        is_ready: reader.flag()?,
        fields: reader.list(|reader| {
            let path = reader.text()?.to_owned();
            Ok((path, if reader.flag()? { -1 } else { 1 }))
        })?,
    })
}

/// The number of an index among those of all collections.
pub(crate) fn number_in_database((collection, index): (u64, u32)) -> i64 {
    // Collections have numbers of 31 bits: see `Collections::define`.
    i64::try_from(collection << INDEX_BITS | u64::from(index)).unwrap_or(i64::MAX)
}

/// The number of an index in its collection.
pub(crate) fn number_in_collection(number: i64) -> u32 {
    // The lowest bits alone.
    u32::try_from(number & i64::from(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_round_trips_and_a_cut_one_is_malformed() {
        let definition = NativeDefinition {
            write_version: 7,
            rules_version: 3,
            schema: Some(vec![5, 0, 0, 0, 0]),
            limits: DocumentLimits {
                array_elements: 100,
                values: 1_000,
            },
            indexes: vec![NativeIndex {
                number: 2,
                name: "by price".into(),
                fields: vec![("shop".into(), 1), ("price".into(), -1)],
                is_unique: true,
                is_ready: false,
            }],
        };
        let bytes = definition.encode();
        assert_eq!(NativeDefinition::decode(&bytes).unwrap(), definition);
        assert!(NativeDefinition::decode(&bytes[..bytes.len() - 1]).is_err());
    }
}
