//! The definition of a collection, as a server declares it.

use rillbase_documents::elements::DocumentLimits;
use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::index::FieldOrder;

use crate::definition::{IndexTechnique, MoveStage, NativeDefinition, NativeIndex};
use crate::error::{Error, Result};

/// The maximum number of indexes of a collection, and of fields of an index.
const MAX_INDEXES: usize = 1_000;
const MAX_FIELDS: usize = 32;

impl NativeDefinition {
    /// Reads a definition as a server writes it: `{write_version, rules_version, schema, limits:
    /// {array_elements, values}, indexes: [{number, name, fields: [[path, direction], …], unique,
    /// technique, ready}, …], version_floor, move: "copying" | "sealed" | null}`. A schema, limits,
    /// indexes, techniques, `version_floor` and `move` are optional.
    pub fn parse(document: Document<'_>) -> Result<Self> {
        let mut definition = Self::default();
        for (name, value) in document.iter() {
            match name {
                "write_version" => definition.write_version = natural(name, value)?,
                "rules_version" => definition.rules_version = natural(name, value)?,
                "schema" => {
                    definition.schema = match value {
                        ValueRef::Null => None,
                        ValueRef::Document(schema) => Some(schema.as_bytes().to_vec()),
                        _ => return Err(invalid("schema", "an object")),
                    }
                }
                "limits" => definition.limits = limits(value)?,
                "indexes" => {
                    let ValueRef::Array(indexes) = value else {
                        return Err(invalid("indexes", "an array"));
                    };
                    definition.indexes = indexes.iter().map(index).collect::<Result<_>>()?;
                }
                "version_floor" => {
                    let floor = i64::try_from(natural(name, value)?);
                    definition.version_floor = floor.map_err(|_| invalid(name, "63 bits"))?;
                }
                "move" => {
                    definition.move_stage = match value {
                        ValueRef::Null => None,
                        ValueRef::String(stage) => Some(
                            MoveStage::parse(stage)
                                .ok_or_else(|| invalid(name, "copying or sealed"))?,
                        ),
                        _ => return Err(invalid(name, "a string")),
                    }
                }
                _ => return Err(unknown(name)),
            }
        }
        definition.check()?;
        Ok(definition)
    }

    fn check(&self) -> Result<()> {
        if self.write_version == 0 {
            return Err(invalid("write_version", "a number from 1"));
        }
        if self.indexes.len() > MAX_INDEXES {
            return Err(invalid("indexes", "at most 1,000 indexes"));
        }
        let mut numbers: Vec<u32> = self.indexes.iter().map(|index| index.number).collect();
        numbers.sort_unstable();
        if numbers.first() == Some(&0) || !numbers.is_sorted_by(|one, other| one < other) {
            return Err(invalid("indexes", "numbers from 1, each once"));
        }
        Ok(())
    }
}

fn limits(value: ValueRef<'_>) -> Result<DocumentLimits> {
    let ValueRef::Document(fields) = value else {
        return Err(invalid("limits", "an object"));
    };
    let mut limits = DocumentLimits::default();
    for (name, value) in fields.iter() {
        let limit = match name {
            "array_elements" => &mut limits.array_elements,
            "values" => &mut limits.values,
            _ => return Err(unknown(name)),
        };
        *limit = usize::try_from(natural(name, value)?).unwrap_or(usize::MAX);
    }
    Ok(limits)
}

fn index(value: ValueRef<'_>) -> Result<NativeIndex> {
    let ValueRef::Document(fields) = value else {
        return Err(invalid("indexes", "an array of objects"));
    };
    let mut index = NativeIndex {
        number: 0,
        name: String::new(),
        fields: Vec::new(),
        is_unique: false,
        technique: IndexTechnique::default(),
        is_ready: false,
        embedded_since: 0,
    };
    for (name, value) in fields.iter() {
        match (name, value) {
            ("number", _) => {
                let number = u32::try_from(natural(name, value)?);
                index.number = number.map_err(|_| invalid(name, "a number of 32 bits"))?;
            }
            ("name", ValueRef::String(text)) => text.clone_into(&mut index.name),
            ("unique", ValueRef::Bool(is_unique)) => index.is_unique = is_unique,
            ("ready", ValueRef::Bool(is_ready)) => index.is_ready = is_ready,
            ("technique", ValueRef::String(technique)) => {
                let technique = IndexTechnique::parse(technique);
                index.technique =
                    technique.ok_or_else(|| invalid(name, "composite, lazy, eager or embedded"))?;
            }
            ("fields", ValueRef::Array(fields)) => {
                index.fields = fields.iter().map(field).collect::<Result<_>>()?;
            }
            ("name" | "technique", _) => return Err(invalid(name, "a string")),
            ("unique" | "ready", _) => return Err(invalid(name, "true or false")),
            ("fields", _) => return Err(invalid(name, "an array")),
            _ => return Err(unknown(name)),
        }
    }
    if !(1..=MAX_FIELDS).contains(&index.fields.len()) {
        return Err(invalid("fields", "1 to 32 fields"));
    }
    if index.is_spatial() && (index.fields.len() > 1 || index.is_unique) {
        return Err(invalid(
            "fields",
            "one field of a spatial index, not unique",
        ));
    }
    if index.is_spatial() && index.technique != IndexTechnique::Composite {
        return Err(invalid(
            "technique",
            "composite, since the index is spatial",
        ));
    }
    if index.is_unique && index.technique != IndexTechnique::Composite {
        return Err(invalid("technique", "composite, since the index is unique"));
    }
    Ok(index)
}

fn field(value: ValueRef<'_>) -> Result<(String, FieldOrder)> {
    let mut parts = match value {
        ValueRef::Array(parts) => parts.iter(),
        _ => return Err(invalid("fields", "pairs of a path and a direction")),
    };
    match (parts.next(), parts.next(), parts.next()) {
        (Some(ValueRef::String(path)), Some(ValueRef::Int32(direction @ (1 | -1))), None) => {
            Ok((path.to_owned(), FieldOrder::directed(direction)))
        }
        (Some(ValueRef::String(path)), Some(ValueRef::String(name)), None) => {
            let order = FieldOrder::spatial(name);
            let order = order.ok_or_else(|| invalid("fields", "2dsphere or 2d"))?;
            Ok((path.to_owned(), order))
        }
        _ => Err(invalid(
            "fields",
            "pairs of a path, and 1, -1, \"2dsphere\" or \"2d\"",
        )),
    }
}

fn natural(name: &str, value: ValueRef<'_>) -> Result<u64> {
    let number = match value {
        ValueRef::Int32(number) => u64::try_from(number).ok(),
        ValueRef::Int64(number) => u64::try_from(number).ok(),
        _ => None,
    };
    number.ok_or_else(|| invalid(name, "a natural number"))
}

fn invalid(name: &str, expected: &str) -> Error {
    Error::Definition(format!("{name}: expected {expected}"))
}

fn unknown(name: &str) -> Error {
    Error::Definition(format!("{name:?} is not a part of a definition"))
}

#[cfg(test)]
mod tests {
    use rillbase_query::ejson::parse_document;

    use super::*;

    fn parse(text: &str) -> Result<NativeDefinition> {
        NativeDefinition::parse(parse_document(text.as_bytes()).unwrap().as_ref())
    }

    #[test]
    fn a_definition_is_read_as_a_server_writes_it() {
        let text = r#"{
            "write_version": 7, "rules_version": 3, "schema": {"type": "object"},
            "limits": {"array_elements": 100, "values": 1000},
            "indexes": [{"number": 2, "name": "by price", "fields": [["shop", 1], ["price", -1]],
                         "unique": true, "ready": false},
                        {"number": 3, "fields": [["shop", 1]], "technique": "lazy"}]
        }"#;
        let definition = parse(text).unwrap();
        assert!(definition.schema.is_some());
        let index = definition.index(2).unwrap();
        assert_eq!(
            index.fields,
            [
                ("shop".into(), FieldOrder::Ascending),
                ("price".into(), FieldOrder::Descending)
            ]
        );
        assert!(index.is_unique && !index.is_ready);
        assert_eq!(index.technique, IndexTechnique::Composite);
        assert_eq!(definition.index(3).unwrap().technique, IndexTechnique::Lazy);
        assert_eq!((definition.write_version, definition.rules_version), (7, 3));
        assert_eq!(definition.limits.values, 1_000);
        assert!(definition.compile(1).is_ok());
    }

    #[test]
    fn an_invalid_definition_is_rejected_by_the_name_of_its_part() {
        for (text, part) in [
            ("{}", "write_version"),
            (r#"{"write_version": -1}"#, "write_version"),
            (r#"{"write_version": 1, "schema": 5}"#, "schema"),
            (
                r#"{"write_version": 1, "limits": {"values": "many"}}"#,
                "values",
            ),
            (r#"{"write_version": 1, "sort": 1}"#, "sort"),
            (
                r#"{"write_version": 1, "indexes": [{"number": 1}]}"#,
                "fields",
            ),
            (
                r#"{"write_version": 1, "indexes": [{"fields": [["a", 1]]}]}"#,
                "indexes",
            ),
            (
                r#"{"write_version": 1, "indexes": [{"number": 1, "fields": [["a", 2]]}]}"#,
                "fields",
            ),
            (
                r#"{"write_version": 1, "indexes": [{"number": 1, "fields": [["a", 1]],
                                                     "technique": "sorted"}]}"#,
                "technique",
            ),
            (
                r#"{"write_version": 1, "indexes": [{"number": 1, "fields": [["a", 1]],
                                                     "technique": "lazy", "unique": true}]}"#,
                "technique",
            ),
            (
                r#"{"write_version": 1, "indexes": [{"number": 1, "fields": [["a", 1]]},
                                                    {"number": 1, "fields": [["b", 1]]}]}"#,
                "indexes",
            ),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
