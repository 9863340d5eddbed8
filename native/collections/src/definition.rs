//! The definition of a collection, as a node stores it.

use std::sync::Arc;

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};
use rillbase_documents::definition::CollectionDefinition;
use rillbase_documents::elements::DocumentLimits;
use rillbase_documents::entry::{IndexDefinition, fields};
use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::index::{FieldOrder, IndexField};

use crate::error::{Error, Result};
use crate::format::EntryForm;

const VERSION: u8 = 2;
/// It moves to another backend.
const VERSION_WITH_STAGE: u8 = 3;
/// Its indexes have no techniques: they are composite.
const VERSION_WITHOUT_TECHNIQUES: u8 = 1;
const INDEX_BITS: u32 = 32;
/// The greatest number of a collection.
pub(crate) const MAX_COLLECTION: u64 = (1 << 31) - 1;

/// How the entries of an index are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexTechnique {
    /// By entry and document: an entry changes only with the document's values.
    #[default]
    Composite,
    /// By entry, then the time of the document's last change, the newest first: entries change with
    /// each write of the document.
    Lazy,
    /// One list per entry, the newest document first, which each write reads and replaces.
    Eager,
    /// Nowhere: tables record which values the documents in them have.
    Embedded,
}

impl IndexTechnique {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::Composite, Self::Lazy, Self::Eager, Self::Embedded];

    /// Its name in declarations and replies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Composite => "composite",
            Self::Lazy => "lazy",
            Self::Eager => "eager",
            Self::Embedded => "embedded",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether the documents of an entry are in the order of their times.
    pub(crate) fn is_by_time(self) -> bool {
        self != Self::Composite
    }

    /// Whether it has entries.
    pub(crate) fn is_stored(self) -> bool {
        self != Self::Embedded
    }

    fn byte(self) -> u8 {
        match self {
            Self::Composite => 0,
            Self::Lazy => 1,
            Self::Eager => 2,
            Self::Embedded => 3,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.byte() == byte)
    }
}

/// An index of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeIndex {
    /// Its number in the collection, from 1; never used again.
    pub number: u32,
    /// Its name, for refusals.
    pub name: String,
    /// Its fields.
    pub fields: Vec<(String, FieldOrder)>,
    /// Whether no two documents may have equal values.
    pub is_unique: bool,
    /// How its entries are stored. Does not change.
    pub technique: IndexTechnique,
    /// Whether all documents are in it. Until then it is written and not read.
    pub is_ready: bool,
    /// Of an embedded index: the version of the extractor since which tables have its values. The
    /// store determines it.
    pub embedded_since: u64,
}

impl NativeIndex {
    /// Whether its keys are cells of geometries.
    pub fn is_spatial(&self) -> bool {
        self.fields.iter().any(|(_, order)| order.is_spatial())
    }

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
        match self.technique {
            IndexTechnique::Composite if self.is_unique && is_enforced => EntryForm::Unique,
            // An embedded index has no entries.
            IndexTechnique::Composite | IndexTechnique::Embedded => EntryForm::Composite,
            IndexTechnique::Lazy => EntryForm::Timed,
            IndexTechnique::Eager => EntryForm::List,
        }
    }

    /// The forms that its entries may have.
    pub(crate) fn forms(&self) -> &'static [EntryForm] {
        match self.technique {
            IndexTechnique::Composite if self.is_unique => {
                &[EntryForm::Composite, EntryForm::Unique]
            }
            IndexTechnique::Composite => &[EntryForm::Composite],
            IndexTechnique::Lazy => &[EntryForm::Timed],
            IndexTechnique::Eager => &[EntryForm::List, EntryForm::Timed],
            IndexTechnique::Embedded => &[],
        }
    }
}

/// What a collection does while it moves to another backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveStage {
    /// It records which documents are changed, since they have to be copied again.
    Copying,
    /// It also accepts no writes: the last changes are being copied.
    Sealed,
}

impl MoveStage {
    const ALL: [Self; 2] = [Self::Copying, Self::Sealed];

    /// The stage with a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copying => "copying",
            Self::Sealed => "sealed",
        }
    }

    fn byte(self) -> u8 {
        match self {
            Self::Copying => 1,
            Self::Sealed => 2,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.byte() == byte)
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
    /// In a new definition: documents without a row continue after this version. Not stored with it.
    pub version_floor: i64,
    /// Whether it moves to another backend.
    pub move_stage: Option<MoveStage>,
}

impl NativeDefinition {
    /// An index by its number.
    pub fn index(&self, number: u32) -> Option<&NativeIndex> {
        self.indexes.iter().find(|index| index.number == number)
    }

    pub(crate) fn compile(&self, collection: u64) -> Result<Arc<CollectionDefinition>> {
        let stored = self.indexes.iter();
        let stored = stored.filter(|index| index.technique.is_stored());
        let indexes = stored.map(|index| index.compiled(collection));
        let schema = self.schema.as_deref().map(Document::trusted);
        let schema = schema.map(ValueRef::Document);
        let compiled = CollectionDefinition::new(schema, indexes.collect());
        let compiled = compiled.map_err(|refusal| Error::Definition(refusal.detail))?;
        Ok(Arc::new(compiled.limited(self.limits)))
    }

    /// `2 write_version rules_version elements values has_schema [schema] count (number name unique
    /// technique since ready count (path direction)*)*`; version 1, which earlier releases read, has no
    /// techniques, and version 3 has a stage at its end.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let is_composite = |index: &NativeIndex| index.technique == IndexTechnique::Composite;
        let has_techniques = !self.indexes.iter().all(is_composite);
        let has_techniques = has_techniques || self.move_stage.is_some();
        let version = if self.move_stage.is_some() {
            VERSION_WITH_STAGE
        } else if has_techniques {
            VERSION
        } else {
            VERSION_WITHOUT_TECHNIQUES
        };
        let mut out = vec![version];
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
            if has_techniques {
                out.push(index.technique.byte());
                out.put_varint(index.embedded_since);
            }
            out.push(u8::from(index.is_ready));
            out.put_varint(index.fields.len() as u64);
            for (path, order) in &index.fields {
                out.put_slice(path.as_bytes());
                out.push(order.byte());
            }
        }
        out.extend(self.move_stage.map(MoveStage::byte));
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        read(bytes).map_err(|_| Error::Malformed("a definition"))
    }
}

fn read(bytes: &[u8]) -> ReadResult<NativeDefinition> {
    let mut reader = ByteReader::new(bytes);
    let version = reader.byte()?;
    let has_techniques = match version {
        VERSION | VERSION_WITH_STAGE => true,
        VERSION_WITHOUT_TECHNIQUES => false,
        _ => return Err(reader.error("version 1 to 3")),
    };
    let (write_version, rules_version) = (reader.varint()?, reader.varint()?);
    let mut limit = || Ok(usize::try_from(reader.varint()?).unwrap_or(usize::MAX));
    let limits = DocumentLimits {
        array_elements: limit()?,
        values: limit()?,
    };
    let schema = reader.optional(|reader| Ok(reader.slice()?.to_vec()))?;
    let indexes = reader.list(|reader| index(reader, has_techniques))?;
    let move_stage = if version == VERSION_WITH_STAGE {
        let stage = MoveStage::from_byte(reader.byte()?);
        Some(reader.check(stage, "a stage")?)
    } else {
        None
    };
    reader.finish()?;
    Ok(NativeDefinition {
        write_version,
        rules_version,
        schema,
        limits,
        indexes,
        version_floor: 0,
        move_stage,
    })
}

fn index(reader: &mut ByteReader<'_>, has_technique: bool) -> ReadResult<NativeIndex> {
    let number = u32::try_from(reader.varint()?).ok();
    Ok(NativeIndex {
        number: reader.check(number, "a number of 32 bits")?,
        name: reader.text()?.to_owned(),
        is_unique: reader.flag()?,
        technique: if has_technique {
            let technique = IndexTechnique::from_byte(reader.byte()?);
            reader.check(technique, "a technique")?
        } else {
            IndexTechnique::Composite
        },
        embedded_since: if has_technique { reader.varint()? } else { 0 },
        is_ready: reader.flag()?,
        fields: reader.list(|reader| {
            let path = reader.text()?.to_owned();
            let order = FieldOrder::from_byte(reader.byte()?);
            Ok((path, reader.check(order, "an order")?))
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
                fields: vec![
                    ("shop".into(), FieldOrder::Ascending),
                    ("price".into(), FieldOrder::Descending),
                ],
                is_unique: true,
                technique: IndexTechnique::Composite,
                is_ready: false,
                embedded_since: 300,
            }],
            version_floor: 0,
            move_stage: None,
        };
        for technique in IndexTechnique::ALL {
            let mut definition = definition.clone();
            definition.indexes[0].technique = technique;
            definition.move_stage = MoveStage::from_byte(technique.byte());
            if technique == IndexTechnique::Composite {
                definition.indexes[0].embedded_since = 0;
            }
            let bytes = definition.encode();
            assert_eq!(NativeDefinition::decode(&bytes).unwrap(), definition);
            assert!(NativeDefinition::decode(&bytes[..bytes.len() - 1]).is_err());
        }
    }

    #[test]
    fn the_indexes_of_version_1_are_composite() {
        let bytes = [
            1, 7, 3, 0, 0, 0, 1, 2, 1, b'p', 0, 1, 1, 5, b'p', b'r', b'i', b'c', b'e', 1,
        ];
        let definition = NativeDefinition::decode(&bytes).unwrap();
        let index = definition.index(2).unwrap();
        assert_eq!(index.technique, IndexTechnique::Composite);
        assert_eq!(index.fields, [("price".into(), FieldOrder::Descending)]);
        assert!(index.is_ready && !index.is_unique);
    }
}
