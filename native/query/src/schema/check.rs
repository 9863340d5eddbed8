//! Checking values against schemas.

use std::collections::BTreeSet;

use super::words::expectation;
use super::{Items, PropertyRules, Rest, Schema, SchemaRule, SchemaViolation};
use crate::arithmetic::to_decimal;
use crate::bson::{Document, DocumentWriter, Value, ValueRef};
use crate::error::{EvaluationFailure, ParseLocation};
use crate::fuel::Fuel;
use crate::key::encode_key;
use crate::number::{NumericValue, compare};

/// The maximum number of reported violations.
const REPORTED: usize = 100;

/// One check. With a report it continues after a violation and records all of them.
pub(super) struct SchemaCheck<'f> {
    pub(super) fuel: &'f Fuel,
    pub(super) report: Option<Vec<SchemaViolation>>,
}

impl SchemaCheck<'_> {
    pub(super) fn schema(
        &mut self,
        schema: &Schema,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<bool, EvaluationFailure> {
        let mut valid = true;
        for rule in &schema.rules {
            self.fuel.step()?;
            valid &= self.rule(rule, value, location)?;
            if !valid && self.report.is_none() {
                return Ok(false);
            }
        }
        Ok(valid)
    }

    fn rule(
        &mut self,
        rule: &SchemaRule,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<bool, EvaluationFailure> {
        let (holds, keyword) = match rule {
            SchemaRule::Items(items) => return self.items(items, value, location),
            SchemaRule::Properties(properties) => {
                return self.properties(properties, value, location);
            }
            SchemaRule::All(schemas) => {
                let mut valid = true;
                for schema in schemas {
                    valid &= self.schema(schema, value, location)?;
                }
                return Ok(valid);
            }
            SchemaRule::DependsOnSchema(name, schema) => {
                let concerned = value
                    .as_document()
                    .is_some_and(|document| document.get(name).is_some());
                return if concerned {
                    self.schema(schema, value, location)
                } else {
                    Ok(true)
                };
            }
            SchemaRule::Any(schemas) => (self.count(schemas, value)? > 0, "anyOf"),
            SchemaRule::One(schemas) => (self.count(schemas, value)? == 1, "oneOf"),
            SchemaRule::Not(schema) => (!self.quietly(schema, value)?, "not"),
            SchemaRule::Enum(keys) => {
                self.fuel.steps(keys.len() as u64 / 16)?;
                (keys.contains(&unordered_key(value)), "enum")
            }
            SchemaRule::Unique => (self.is_unique(value)?, "uniqueItems"),
            SchemaRule::Required(names) => {
                return Ok(self.required(names, value, location, "required"));
            }
            SchemaRule::DependsOnKeys(name, names) => {
                let concerned = value
                    .as_document()
                    .is_some_and(|document| document.get(name).is_some());
                return Ok(!concerned || self.required(names, value, location, "dependencies"));
            }
            simple => scalar(simple, value),
        };
        if !holds && self.report.is_some() {
            self.note(location, keyword, &expectation(rule));
        }
        Ok(holds)
    }

    fn note(&mut self, location: &ParseLocation<'_>, keyword: &'static str, detail: &str) {
        if let Some(report) = &mut self.report
            && report.len() < REPORTED
        {
            report.push(SchemaViolation {
                pointer: location.pointer(),
                keyword,
                detail: detail.to_owned(),
            });
        }
    }

    /// Checks without recording violations, since an alternative may fail.
    fn quietly(&self, schema: &Schema, value: ValueRef<'_>) -> Result<bool, EvaluationFailure> {
        SchemaCheck {
            fuel: self.fuel,
            report: None,
        }
        .schema(schema, value, &ParseLocation::root())
    }

    fn count(&self, schemas: &[Schema], value: ValueRef<'_>) -> Result<usize, EvaluationFailure> {
        let mut count = 0;
        for schema in schemas {
            count += usize::from(self.quietly(schema, value)?);
        }
        Ok(count)
    }

    fn is_unique(&self, value: ValueRef<'_>) -> Result<bool, EvaluationFailure> {
        let Some(array) = value.as_array() else {
            return Ok(true);
        };
        self.fuel.bytes(array.as_bytes().len())?;
        let mut seen = BTreeSet::new();
        Ok(array.iter().all(|value| seen.insert(unordered_key(value))))
    }

    fn required(
        &mut self,
        names: &[String],
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
        keyword: &'static str,
    ) -> bool {
        let Some(document) = value.as_document() else {
            return true;
        };
        let mut valid = true;
        for name in names.iter().filter(|name| document.get(name).is_none()) {
            self.note(&location.key(name), keyword, "the field is missing");
            valid = false;
        }
        valid
    }

    fn rest(
        &mut self,
        rest: &Rest,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
        keyword: &'static str,
    ) -> Result<bool, EvaluationFailure> {
        match rest {
            Rest::Allowed => Ok(true),
            Rest::Schema(schema) => self.schema(schema, value, location),
            Rest::Refused => {
                self.note(location, keyword, "not allowed here");
                Ok(false)
            }
        }
    }

    fn items(
        &mut self,
        items: &Items,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<bool, EvaluationFailure> {
        let Some(array) = value.as_array() else {
            return Ok(true);
        };
        let mut valid = true;
        for (index, value) in array.iter().enumerate() {
            self.fuel.step()?;
            let here = location.index(index);
            valid &= match items.each.get(index) {
                Some(schema) => self.schema(schema, value, &here)?,
                None => self.rest(&items.rest, value, &here, "additionalItems")?,
            };
            if !valid && self.report.is_none() {
                return Ok(false);
            }
        }
        Ok(valid)
    }

    fn properties(
        &mut self,
        properties: &PropertyRules,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<bool, EvaluationFailure> {
        let Some(document) = value.as_document() else {
            return Ok(true);
        };
        let mut valid = true;
        for (name, value) in document.iter() {
            self.fuel.steps(1 + properties.named.len() as u64 / 16)?;
            let here = location.key(name);
            let mut known = false;
            if let Some((_, schema)) = properties.named.iter().find(|(key, _)| key == name) {
                known = true;
                valid &= self.schema(schema, value, &here)?;
            }
            for (_, schema) in properties
                .patterns
                .iter()
                .filter(|(pattern, _)| pattern.is_match(name))
            {
                known = true;
                valid &= self.schema(schema, value, &here)?;
            }
            if !known {
                valid &= self.rest(&properties.rest, value, &here, "additionalProperties")?;
            }
            if !valid && self.report.is_none() {
                return Ok(false);
            }
        }
        Ok(valid)
    }
}

/// Rules that depend on the value alone; they hold for other types.
fn scalar(rule: &SchemaRule, value: ValueRef<'_>) -> (bool, &'static str) {
    match rule {
        SchemaRule::Kinds { keyword, kinds } => (kinds.contains(value.kind()), keyword),
        SchemaRule::Minimum { bound, exclusive } => {
            let order = compare(value, bound.as_ref());
            let holds = !value.is_number()
                || (if *exclusive {
                    order.is_gt()
                } else {
                    order.is_ge()
                });
            (holds, "minimum")
        }
        SchemaRule::Maximum { bound, exclusive } => {
            let order = compare(value, bound.as_ref());
            let below = if *exclusive {
                order.is_lt()
            } else {
                order.is_le()
            };
            (!value.is_number() || (below && !value.is_nan()), "maximum")
        }
        SchemaRule::MultipleOf(factor) => (is_multiple(value, factor), "multipleOf"),
        SchemaRule::Length { least, most } => {
            let holds = value
                .as_str()
                .is_none_or(|text| (*least..=*most).contains(&(text.chars().count() as u64)));
            (holds, "minLength or maxLength")
        }
        SchemaRule::Pattern(pattern) => (
            value.as_str().is_none_or(|text| pattern.is_match(text)),
            "pattern",
        ),
        SchemaRule::ItemCount { least, most } => {
            let holds = value
                .as_array()
                .is_none_or(|array| (*least..=*most).contains(&(array.len() as u64)));
            (holds, "minItems or maxItems")
        }
        SchemaRule::PropertyCount { least, most } => {
            let holds = value
                .as_document()
                .is_none_or(|inner| (*least..=*most).contains(&(inner.len() as u64)));
            (holds, "minProperties or maxProperties")
        }
        _ => (true, ""),
    }
}

fn is_multiple(value: ValueRef<'_>, factor: &Value) -> bool {
    match (
        NumericValue::from_value(value),
        NumericValue::from_value(factor.as_ref()),
    ) {
        (Some(NumericValue::Int(int)), Some(NumericValue::Int(factor))) => {
            int.checked_rem(factor) == Some(0)
        }
        (Some(number), Some(factor)) => to_decimal(number).remainder(to_decimal(factor)).is_zero(),
        _ => true,
    }
}

/// A key that is equal for documents which differ in the order of fields.
pub(super) fn unordered_key(value: ValueRef<'_>) -> Vec<u8> {
    encode_key(sorted(value).as_ref())
}

fn sorted(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(document) => Value::Document(sorted_document(document)),
        ValueRef::Array(array) => {
            let mut writer = crate::bson::ArrayWriter::new();
            array
                .iter()
                .for_each(|value| writer.push(sorted(value).as_ref()));
            Value::Array(writer.into())
        }
        other => other.into(),
    }
}

fn sorted_document(document: Document<'_>) -> crate::bson::DocumentBuf {
    let mut fields: Vec<(&str, ValueRef<'_>)> = document.iter().collect();
    fields.sort_by_key(|(key, _)| *key);
    let mut writer = DocumentWriter::with_capacity(document.as_bytes().len());
    fields
        .iter()
        .for_each(|(key, value)| writer.append(key, sorted(*value).as_ref()));
    writer.into()
}
