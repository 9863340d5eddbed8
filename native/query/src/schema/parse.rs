//! Parsing schemas.

use super::{Items, PropertyRules, Rest, Schema, SchemaRule};
use crate::bson::TypeSet;
use crate::bson::{BsonType, Document, Value, ValueRef};
use crate::error::{Error, ErrorCode, ParseLocation};
use crate::limits::{EXPRESSION_DEPTH, FILTER_NODES};
use crate::pattern::Pattern;

fn refuse(location: &ParseLocation<'_>, detail: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidSchema, location, detail)
}

/// Keywords that are known and do not affect validity.
const NOTES: [&str; 2] = ["title", "description"];

pub(super) fn schema(
    value: ValueRef<'_>,
    depth: usize,
    nodes: &mut usize,
    location: &ParseLocation<'_>,
) -> Result<Schema, Error> {
    let document = value
        .as_document()
        .ok_or_else(|| refuse(location, "a schema is a document"))?;
    *nodes += 1;
    if depth > EXPRESSION_DEPTH || *nodes > FILTER_NODES {
        let detail = format!(
            "a schema may be nested at most {EXPRESSION_DEPTH} levels deep and have {FILTER_NODES} parts"
        );
        return Err(Error::new(ErrorCode::FilterTooLarge, location, detail));
    }
    let mut parsing = SchemaParser {
        document,
        depth,
        nodes,
        rules: Vec::new(),
    };
    for (keyword, value) in document.iter() {
        parsing.keyword(keyword, value, &location.key(keyword))?;
    }
    parsing.combined(location)?;
    Ok(Schema {
        rules: parsing.rules,
    })
}

struct SchemaParser<'a, 'n> {
    document: Document<'a>,
    depth: usize,
    nodes: &'n mut usize,
    rules: Vec<SchemaRule>,
}

impl SchemaParser<'_, '_> {
    fn keyword(
        &mut self,
        keyword: &str,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<(), Error> {
        let rule = match keyword {
            "type" => SchemaRule::Kinds {
                keyword: "type",
                kinds: kinds(value, json_kind, location)?,
            },
            "bsonType" => SchemaRule::Kinds {
                keyword: "bsonType",
                kinds: kinds(value, bson_kind, location)?,
            },
            "enum" => SchemaRule::Enum(values(value, location)?),
            "allOf" => SchemaRule::All(self.schemas(value, location)?),
            "anyOf" => SchemaRule::Any(self.schemas(value, location)?),
            "oneOf" => SchemaRule::One(self.schemas(value, location)?),
            "not" => SchemaRule::Not(Box::new(self.inner(value, location)?)),
            "multipleOf" => SchemaRule::MultipleOf(
                number(value, location).and_then(|number| positive(number, location))?,
            ),
            "pattern" => {
                let source = value
                    .as_str()
                    .ok_or_else(|| refuse(location, "a pattern is a string"))?;
                SchemaRule::Pattern(
                    Pattern::new(source, "")
                        .map_err(|why| Error::new(ErrorCode::InvalidRegex, location, why))?,
                )
            }
            "uniqueItems" => match value {
                ValueRef::Bool(true) => SchemaRule::Unique,
                ValueRef::Bool(false) => return Ok(()),
                _ => return Err(refuse(location, "uniqueItems is true or false")),
            },
            "required" => SchemaRule::Required(names(value, location)?),
            "dependencies" => return self.dependencies(value, location),
            // Rules of several keywords are created once all are known.
            "minimum"
            | "maximum"
            | "exclusiveMinimum"
            | "exclusiveMaximum"
            | "minLength"
            | "maxLength"
            | "items"
            | "additionalItems"
            | "minItems"
            | "maxItems"
            | "properties"
            | "patternProperties"
            | "additionalProperties"
            | "minProperties"
            | "maxProperties" => return Ok(()),
            note if NOTES.contains(&note) => match value {
                ValueRef::String(_) => return Ok(()),
                _ => return Err(refuse(location, format!("{note} is a string"))),
            },
            _ => {
                let detail = format!("the keyword '{keyword}' is unknown or not supported");
                return Err(Error::new(ErrorCode::UnsupportedOperator, location, detail));
            }
        };
        self.rules.push(rule);
        Ok(())
    }

    fn inner(
        &mut self,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<Schema, Error> {
        schema(value, self.depth + 1, self.nodes, location)
    }

    fn schemas(
        &mut self,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<Vec<Schema>, Error> {
        let array = value.as_array().filter(|array| !array.is_empty());
        let array =
            array.ok_or_else(|| refuse(location, "an array of at least one schema is expected"))?;
        array
            .iter()
            .enumerate()
            .map(|(index, value)| self.inner(value, &location.index(index)))
            .collect()
    }

    fn combined(&mut self, location: &ParseLocation<'_>) -> Result<(), Error> {
        if self.document.get("type").is_some() && self.document.get("bsonType").is_some() {
            return Err(refuse(location, "type and bsonType exclude each other"));
        }
        self.bounds(location)?;
        if let Some((least, most)) = self.counts("minLength", "maxLength", location)? {
            self.rules.push(SchemaRule::Length { least, most });
        }
        if let Some((least, most)) = self.counts("minItems", "maxItems", location)? {
            self.rules.push(SchemaRule::ItemCount { least, most });
        }
        if let Some((least, most)) = self.counts("minProperties", "maxProperties", location)? {
            self.rules.push(SchemaRule::PropertyCount { least, most });
        }
        self.items(location)?;
        self.properties(location)
    }

    fn bounds(&mut self, location: &ParseLocation<'_>) -> Result<(), Error> {
        for (bound, exclusive) in [
            ("minimum", "exclusiveMinimum"),
            ("maximum", "exclusiveMaximum"),
        ] {
            let here = location.key(exclusive);
            let strict = match self.document.get(exclusive) {
                None => false,
                Some(ValueRef::Bool(bool)) => bool,
                Some(_) => {
                    return Err(refuse(
                        &here,
                        format!("{exclusive} takes true or false, and requires {bound}"),
                    ));
                }
            };
            match self.document.get(bound) {
                Some(value) => {
                    let bound_value = number(value, &location.key(bound))?;
                    self.rules.push(if bound == "minimum" {
                        SchemaRule::Minimum {
                            bound: bound_value,
                            exclusive: strict,
                        }
                    } else {
                        SchemaRule::Maximum {
                            bound: bound_value,
                            exclusive: strict,
                        }
                    });
                }
                None if self.document.get(exclusive).is_some() => {
                    return Err(refuse(&here, format!("{exclusive} needs {bound}")));
                }
                None => {}
            }
        }
        Ok(())
    }

    fn counts(
        &self,
        least: &str,
        most: &str,
        location: &ParseLocation<'_>,
    ) -> Result<Option<(u64, u64)>, Error> {
        let count = |keyword: &str| match self.document.get(keyword) {
            None => Ok(None),
            Some(value) => {
                let count = value
                    .as_exact_i64()
                    .and_then(|count| u64::try_from(count).ok());
                count.map(Some).ok_or_else(|| {
                    refuse(
                        &location.key(keyword),
                        format!("{keyword} must be a non-negative integer"),
                    )
                })
            }
        };
        Ok(match (count(least)?, count(most)?) {
            (None, None) => None,
            (least, most) => Some((least.unwrap_or(0), most.unwrap_or(u64::MAX))),
        })
    }

    fn rest(&mut self, keyword: &str, location: &ParseLocation<'_>) -> Result<Rest, Error> {
        Ok(match self.document.get(keyword) {
            None | Some(ValueRef::Bool(true)) => Rest::Allowed,
            Some(ValueRef::Bool(false)) => Rest::Refused,
            Some(value) => Rest::Schema(Box::new(self.inner(value, &location.key(keyword))?)),
        })
    }

    fn items(&mut self, location: &ParseLocation<'_>) -> Result<(), Error> {
        let rest = self.rest("additionalItems", location)?;
        let here = location.key("items");
        let items = match self.document.get("items") {
            // Unless `items` is an array, no item is additional.
            None => return Ok(()),
            Some(value @ ValueRef::Array(_)) => Items {
                each: self.schemas(value, &here)?,
                rest,
            },
            Some(value) => Items {
                each: Vec::new(),
                rest: Rest::Schema(Box::new(self.inner(value, &here)?)),
            },
        };
        self.rules.push(SchemaRule::Items(items));
        Ok(())
    }

    fn properties(&mut self, location: &ParseLocation<'_>) -> Result<(), Error> {
        let mut properties = PropertyRules {
            rest: self.rest("additionalProperties", location)?,
            ..PropertyRules::default()
        };
        let here = location.key("properties");
        for (name, value) in members(self.document, "properties", location)? {
            let inner = self.inner(value, &here.key(name))?;
            properties.named.push((name.to_owned(), inner));
        }
        let here = location.key("patternProperties");
        for (source, value) in members(self.document, "patternProperties", location)? {
            let at = here.key(source);
            let pattern = Pattern::new(source, "")
                .map_err(|why| Error::new(ErrorCode::InvalidRegex, &at, why))?;
            let inner = self.inner(value, &at)?;
            properties.patterns.push((pattern, inner));
        }
        let empty = properties.named.is_empty() && properties.patterns.is_empty();
        if !(empty && matches!(properties.rest, Rest::Allowed)) {
            self.rules.push(SchemaRule::Properties(properties));
        }
        Ok(())
    }

    fn dependencies(
        &mut self,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<(), Error> {
        let members = value
            .as_document()
            .ok_or_else(|| refuse(location, "dependencies is a document"))?;
        for (name, value) in members.iter() {
            let here = location.key(name);
            let rule = match value {
                ValueRef::Array(_) => {
                    SchemaRule::DependsOnKeys(name.to_owned(), names(value, &here)?)
                }
                _ => SchemaRule::DependsOnSchema(
                    name.to_owned(),
                    Box::new(self.inner(value, &here)?),
                ),
            };
            self.rules.push(rule);
        }
        Ok(())
    }
}

fn members<'a>(
    document: Document<'a>,
    keyword: &str,
    location: &ParseLocation<'_>,
) -> Result<Vec<(&'a str, ValueRef<'a>)>, Error> {
    match document.get(keyword) {
        None => Ok(Vec::new()),
        Some(ValueRef::Document(members)) => Ok(members.iter().collect()),
        Some(_) => Err(refuse(
            &location.key(keyword),
            format!("{keyword} is a document"),
        )),
    }
}

fn kinds(
    value: ValueRef<'_>,
    named: fn(&str) -> Option<TypeSet>,
    location: &ParseLocation<'_>,
) -> Result<TypeSet, Error> {
    let one = |value: ValueRef<'_>, location: &ParseLocation<'_>| {
        value
            .as_str()
            .and_then(named)
            .ok_or_else(|| refuse(location, "this is not the name of a type"))
    };
    let Some(array) = value.as_array() else {
        return one(value, location);
    };
    let mut kinds = TypeSet::default();
    for (index, value) in array.iter().enumerate() {
        kinds.extend(one(value, &location.index(index))?);
    }
    if array.is_empty() {
        Err(refuse(location, "at least one type is expected"))
    } else {
        Ok(kinds)
    }
}

fn bson_kind(name: &str) -> Option<TypeSet> {
    TypeSet::named(ValueRef::String(name))
}

fn json_kind(name: &str) -> Option<TypeSet> {
    let kind = match name {
        "object" => BsonType::Document,
        "array" => BsonType::Array,
        "string" => BsonType::String,
        "boolean" => BsonType::Bool,
        "null" => BsonType::Null,
        "number" => return Some(TypeSet::NUMBERS),
        _ => return None,
    };
    let mut kinds = TypeSet::default();
    kinds.insert(kind);
    Some(kinds)
}

fn values(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Vec<Vec<u8>>, Error> {
    let array = value.as_array().filter(|array| !array.is_empty());
    let array = array.ok_or_else(|| refuse(location, "enum is an array of at least one value"))?;
    Ok(array.iter().map(super::check::unordered_key).collect())
}

fn names(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Vec<String>, Error> {
    let array = value.as_array().filter(|array| !array.is_empty());
    let names = array.map(|array| {
        array
            .iter()
            .map(|name| name.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
    });
    match names {
        Some(Some(names)) => Ok(names),
        _ => Err(refuse(
            location,
            "an array of at least one name is expected",
        )),
    }
}

fn number(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Value, Error> {
    if value.is_number() && !value.is_nan() {
        Ok(value.into())
    } else {
        Err(refuse(location, "a number is expected"))
    }
}

fn positive(number: Value, location: &ParseLocation<'_>) -> Result<Value, Error> {
    if crate::number::compare(number.as_ref(), ValueRef::Int32(0)).is_gt() {
        return Ok(number);
    }
    Err(refuse(location, "a positive number is expected"))
}
