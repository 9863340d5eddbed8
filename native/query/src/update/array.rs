//! `$push` and `$pull`.

use std::cmp::Ordering;

use super::outcome::{OperatorRefusal, ValueOutcome, owned, remove};
use super::{describe, refuse};
use crate::bson::{ArrayBuf, Document, DocumentBuf, DocumentWriter, Value, ValueRef};
use crate::environment::EvaluationContext;
use crate::error::{Error, ParseLocation};
use crate::field_values::{FieldCursor, least_key};
use crate::filter::Filter;
use crate::limits::SORT_KEYS;
use crate::order::{compare, equal};
use crate::path::FieldPath;

/// `$push` with its modifiers.
#[derive(Debug)]
pub(crate) struct Push {
    each: Vec<Value>,
    position: Option<i64>,
    slice: Option<i64>,
    sort: Option<PushOrder>,
}

/// How `$push` sorts.
#[derive(Debug)]
enum PushOrder {
    /// Whole elements.
    Values { descending: bool },
    /// Elements by their fields.
    Fields(Vec<(FieldPath, bool)>),
}

impl Push {
    pub(super) fn parse(
        argument: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<Self, Error> {
        let modifiers = argument
            .as_document()
            .filter(|inner| inner.get("$each").is_some());
        let mut push = Self {
            each: Vec::new(),
            position: None,
            slice: None,
            sort: None,
        };
        let Some(modifiers) = modifiers else {
            push.each.push(owned(argument));
            return Ok(push);
        };
        for (name, value) in modifiers.iter() {
            let here = location.key(name);
            let whole = || {
                value
                    .as_exact_i64()
                    .ok_or_else(|| refuse(&here, format!("{name} takes an integer")))
            };
            match name {
                "$each" => match value.as_array() {
                    Some(values) => push.each = values.iter().map(owned).collect(),
                    None => return Err(refuse(&here, "$each takes an array")),
                },
                "$position" => push.position = Some(whole()?),
                "$slice" => push.slice = Some(whole()?),
                "$sort" => push.sort = Some(PushOrder::parse(value, &here)?),
                _ => {
                    return Err(refuse(
                        &here,
                        "$push supports only $each, $position, $slice and $sort",
                    ));
                }
            }
        }
        Ok(push)
    }

    pub(super) fn apply(
        &self,
        old: Option<ValueRef<'_>>,
        environment: &EvaluationContext,
    ) -> Result<ValueOutcome, OperatorRefusal> {
        let array = match old {
            None => None,
            Some(ValueRef::Array(array)) => Some(array),
            Some(other) => {
                return Err(OperatorRefusal::Invalid(format!(
                    "$push cannot change a value of type {}",
                    describe(other)
                )));
            }
        };
        let mut values: Vec<ValueRef<'_>> =
            array.iter().flat_map(crate::bson::Array::iter).collect();
        environment.fuel.steps(values.len() as u64 / 16)?;
        let at = place_of(self.position, values.len());
        values.splice(at..at, self.each.iter().map(Value::as_ref));
        if let Some(order) = &self.sort {
            order.sort(&mut values, environment)?;
        }
        match self.slice {
            Some(count) if count >= 0 => {
                values.truncate(usize::try_from(count).unwrap_or(usize::MAX))
            }
            Some(count) => {
                let kept = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
                values.drain(..values.len().saturating_sub(kept));
            }
            None => {}
        }
        Ok(ValueOutcome::Set(Value::Array(ArrayBuf::from_iter(values))))
    }
}

/// Where `$position` inserts; a negative one counts from the end.
fn place_of(position: Option<i64>, length: usize) -> usize {
    match position {
        None => length,
        Some(position) => {
            let distance = usize::try_from(position.unsigned_abs()).unwrap_or(usize::MAX);
            if position < 0 {
                length.saturating_sub(distance)
            } else {
                distance.min(length)
            }
        }
    }
}

impl PushOrder {
    fn parse(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Self, Error> {
        let direction = |value: ValueRef<'_>| match value.as_exact_i64() {
            Some(1) => Ok(false),
            Some(-1) => Ok(true),
            _ => Err(refuse(
                location,
                "$sort takes 1 or -1, or a document of fields with 1 or -1",
            )),
        };
        let Some(fields) = value.as_document().filter(|fields| !fields.is_empty()) else {
            return Ok(Self::Values {
                descending: direction(value)?,
            });
        };
        let mut keys = Vec::new();
        for (name, value) in fields.iter() {
            if name.starts_with('$') {
                return Err(refuse(location, "$sort names fields of the elements"));
            }
            if name.split('.').any(str::is_empty) || keys.len() == SORT_KEYS {
                return Err(refuse(
                    location,
                    format!("$sort takes up to {SORT_KEYS} fields"),
                ));
            }
            keys.push((FieldPath::new(name), direction(value)?));
        }
        Ok(Self::Fields(keys))
    }

    fn sort(
        &self,
        values: &mut Vec<ValueRef<'_>>,
        environment: &EvaluationContext,
    ) -> Result<(), OperatorRefusal> {
        environment.fuel.steps(values.len() as u64)?;
        match self {
            Self::Values { descending } => values.sort_by(|a, b| {
                let order = compare(*a, *b);
                if *descending { order.reverse() } else { order }
            }),
            Self::Fields(keys) => {
                let mut keyed = Vec::with_capacity(values.len());
                for value in values.drain(..) {
                    keyed.push((key_of(keys, value, environment)?, value));
                }
                keyed.sort_by(|a: &(Vec<u8>, ValueRef<'_>), b| -> Ordering { a.0.cmp(&b.0) });
                values.extend(keyed.into_iter().map(|(_, value)| value));
            }
        }
        Ok(())
    }
}

/// The key of an element; an element that is not a document has no fields.
fn key_of(
    keys: &[(FieldPath, bool)],
    value: ValueRef<'_>,
    environment: &EvaluationContext,
) -> Result<Vec<u8>, OperatorRefusal> {
    let document = value.as_document().unwrap_or_else(Document::empty);
    let fields = keys.iter();
    let fields = fields.map(|(path, descending)| (FieldCursor::at(path, document), *descending));
    Ok(least_key(fields.collect(), &environment.fuel)?)
}

/// What `$pull` removes.
#[derive(Debug)]
pub(crate) enum Pull {
    /// Elements equal to a value.
    Equal(Value),
    /// Documents that match a filter.
    Documents(Filter),
    /// Elements that match conditions; the filter looks at `{"": element}`.
    Conditions(Filter),
}

impl Pull {
    pub(super) fn parse(
        argument: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<Self, Error> {
        let conditions = match argument {
            ValueRef::Document(inner) => inner
                .iter()
                .next()
                .is_some_and(|(key, _)| key.starts_with('$')),
            ValueRef::Regex(_) => true,
            _ => false,
        };
        if conditions {
            return Ok(Self::Conditions(Filter::parse_at(
                wrapped(argument).as_ref(),
                location,
            )?));
        }
        match argument {
            ValueRef::Document(inner) => Ok(Self::Documents(Filter::parse_at(inner, location)?)),
            other => Ok(Self::Equal(owned(other))),
        }
    }

    pub(super) fn apply(
        &self,
        old: Option<ValueRef<'_>>,
        environment: &EvaluationContext,
    ) -> Result<ValueOutcome, OperatorRefusal> {
        remove(old, "$pull", |value| {
            environment.fuel.step()?;
            Ok(match self {
                Self::Equal(unwanted) => equal(unwanted.as_ref(), value),
                Self::Documents(filter) => match value {
                    ValueRef::Document(document) => filter.matches_in(document, environment)?,
                    _ => false,
                },
                Self::Conditions(filter) => {
                    filter.matches_in(wrapped(value).as_ref(), environment)?
                }
            })
        })
    }
}

fn wrapped(value: ValueRef<'_>) -> DocumentBuf {
    let mut writer = DocumentWriter::new();
    writer.append("", value);
    writer.into()
}
