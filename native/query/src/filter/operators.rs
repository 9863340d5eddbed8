//! Parsing the operators of fields.

use std::sync::Arc;

use super::parse::{FilterParser, owned, pattern, refuse, unsupported};
use super::{BitTest, Bits, Comparison, FilterClause, List, Predicate, Test};
use crate::bson::TypeSet;
use crate::bson::{Document, ValueRef};
use crate::error::{Error, ErrorCode, ParseLocation};
use crate::geo::{GeoTest, Near};
use crate::limits::IN_VALUES;
use crate::number::NumericValue;
use crate::path::FieldPath;
use crate::truth::is_true;

/// The operators of fields, as [`FilterParser::operator`] parses them.
impl FilterParser {
    /// Parses one operator. `all` also has its siblings, because `$regex` depends on `$options`.
    pub(super) fn operator(
        &mut self,
        path: &FieldPath,
        name: &str,
        value: ValueRef<'_>,
        siblings: Document<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<Option<FilterClause>, Error> {
        let test = match name {
            "$eq" => self.equal(value, location)?,
            "$ne" => return self.not_equal(path, value, location).map(Some),
            "$gt" => ordered(Comparison::Greater, value, location)?,
            "$gte" => ordered(Comparison::GreaterOrEqual, value, location)?,
            "$lt" => ordered(Comparison::Less, value, location)?,
            "$lte" => ordered(Comparison::LessOrEqual, value, location)?,
            "$in" => Test::In(list(value, location)?),
            "$nin" => return Ok(Some(not(path, Test::In(list(value, location)?)))),
            "$not" => return self.negation(path, value, depth, location).map(Some),
            "$exists" if is_true(value) => Test::Exists,
            "$exists" => return Ok(Some(not(path, Test::Exists))),
            "$type" => Test::Type(kinds(value, location)?),
            "$mod" => modulo(value, location)?,
            "$regex" => regex(value, siblings, location)?,
            "$options" if siblings.get("$regex").is_some() => return Ok(None),
            "$options" => return Err(refuse(location, "$options requires $regex")),
            "$size" => Test::Size(size(value, location)?),
            "$all" => return self.all(path, value, depth, location).map(Some),
            "$elemMatch" => self.element(value, depth, location)?,
            "$comment" => return Ok(None),
            "$geoWithin" => Test::Geo(Arc::new(GeoTest::within(value, location)?)),
            "$geoIntersects" => Test::Geo(Arc::new(GeoTest::intersects(value, location)?)),
            "$near" | "$nearSphere" => {
                self.ranking(name, location)?;
                Test::Near(Arc::new(Near::parse(name, value, siblings, location)?))
            }
            "$maxDistance" | "$minDistance" if has_near(siblings) => return Ok(None),
            _ => match Bits::from_name(name) {
                Some(bits) => Test::Bits(BitTest {
                    bits,
                    positions: positions(value, location)?,
                }),
                None => return Err(unsupported(location, name)),
            },
        };
        Ok(Some(FilterClause::Field(Predicate {
            path: path.clone(),
            test,
        })))
    }

    #[allow(clippy::unused_self, reason = "operators are parsed alike")]
    pub(super) fn equal(
        &self,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<Test, Error> {
        Ok(Test::Compare(Comparison::Equal, owned(value, location)?))
    }

    fn not_equal(
        &self,
        path: &FieldPath,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<FilterClause, Error> {
        if matches!(value, ValueRef::Regex(_)) {
            return Err(refuse(
                location,
                "$ne cannot take a regular expression; $not can",
            ));
        }
        Ok(not(path, self.equal(value, location)?))
    }

    /// `$all`: each of them, regular expressions and `$elemMatch` too.
    fn all(
        &mut self,
        path: &FieldPath,
        value: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<FilterClause, Error> {
        let Some(array) = value.as_array() else {
            return Err(refuse(location, "$all takes an array"));
        };
        let of_elements = |value: ValueRef<'_>| {
            value
                .as_document()
                .and_then(|document| document.iter().next())
                .is_some_and(|(key, _)| key == "$elemMatch")
        };
        let elements = array.iter().next().is_some_and(of_elements);
        let mut all = Vec::new();
        for (index, value) in array.iter().enumerate() {
            let here = location.index(index);
            self.count(&here)?;
            if of_elements(value) != elements {
                return Err(refuse(
                    &here,
                    "$all takes $elemMatch for all of its values or for none",
                ));
            }
            let test = match value {
                ValueRef::Regex(regex) => {
                    Test::Regex(pattern(regex.pattern, regex.options, &here)?)
                }
                ValueRef::Document(document) if elements => {
                    let inner = document.get("$elemMatch").filter(|_| document.len() == 1);
                    let inner = inner.ok_or_else(|| {
                        refuse(&here, "$elemMatch must be the only operator inside $all")
                    })?;
                    self.element(inner, depth, &here.key("$elemMatch"))?
                }
                ValueRef::Document(document) if first_is_operator(document) => {
                    return Err(refuse(
                        &here,
                        "$all takes values, regular expressions and $elemMatch",
                    ));
                }
                _ => self.equal(value, &here)?,
            };
            all.push(FilterClause::Field(Predicate {
                path: path.clone(),
                test,
            }));
        }
        // Nothing is in an empty list.
        Ok(if all.is_empty() {
            FilterClause::Or(all)
        } else {
            FilterClause::And(all)
        })
    }
}

/// Whether the legacy form of `$near` is present.
fn has_near(siblings: Document<'_>) -> bool {
    siblings.get("$near").is_some() || siblings.get("$nearSphere").is_some()
}

fn first_is_operator(document: Document<'_>) -> bool {
    document
        .iter()
        .next()
        .is_some_and(|(key, _)| key.starts_with('$') && key != "$ref")
}

fn not(path: &FieldPath, test: Test) -> FilterClause {
    FilterClause::Not(Box::new(FilterClause::Field(Predicate {
        path: path.clone(),
        test,
    })))
}

fn ordered(
    comparison: Comparison,
    value: ValueRef<'_>,
    location: &ParseLocation<'_>,
) -> Result<Test, Error> {
    if matches!(value, ValueRef::Regex(_)) {
        let detail = format!("{} cannot take a regular expression", comparison.name());
        return Err(refuse(location, detail));
    }
    Ok(Test::Compare(comparison, owned(value, location)?))
}

fn list(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<List, Error> {
    let Some(array) = value.as_array() else {
        return Err(refuse(location, "an array is expected"));
    };
    let (mut values, mut patterns) = (Vec::new(), Vec::new());
    for (index, value) in array.iter().enumerate() {
        let here = location.index(index);
        if index >= IN_VALUES {
            let detail = format!("a list may have at most {IN_VALUES} values");
            return Err(Error::new(ErrorCode::FilterTooLarge, &here, detail));
        }
        match value {
            ValueRef::Regex(regex) => patterns.push(pattern(regex.pattern, regex.options, &here)?),
            ValueRef::Document(document) if first_is_operator(document) => {
                return Err(refuse(&here, "a list of values must not contain operators"));
            }
            _ => values.push(owned(value, &here)?),
        }
    }
    Ok(List::new(values, patterns))
}

/// The types that an argument of `$type` names.
pub(crate) fn kinds(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<TypeSet, Error> {
    let one = |value, location: &ParseLocation<'_>| {
        TypeSet::named(value)
            .ok_or_else(|| refuse(location, "a type is named by its number or its alias"))
    };
    let Some(array) = value.as_array() else {
        return one(value, location);
    };
    let mut kinds = TypeSet::default();
    for (index, value) in array.iter().enumerate() {
        kinds.extend(one(value, &location.index(index))?);
    }
    if array.is_empty() {
        return Err(refuse(location, "at least one type is expected"));
    }
    Ok(kinds)
}

fn modulo(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Test, Error> {
    let detail = "$mod takes two numbers: divisor and remainder";
    let array = value
        .as_array()
        .filter(|array| array.len() == 2)
        .ok_or_else(|| refuse(location, detail))?;
    let part = |index| {
        let number = array.get(index).and_then(NumericValue::from_value);
        number
            .and_then(NumericValue::truncate)
            .ok_or_else(|| refuse(&location.index(index), detail))
    };
    let (divisor, remainder) = (part(0)?, part(1)?);
    if divisor == 0 {
        return Err(refuse(
            &location.index(0),
            "the divisor of $mod cannot be zero",
        ));
    }
    Ok(Test::Mod { divisor, remainder })
}

fn regex(
    value: ValueRef<'_>,
    siblings: Document<'_>,
    location: &ParseLocation<'_>,
) -> Result<Test, Error> {
    let options = match siblings.get("$options") {
        None => None,
        Some(ValueRef::String(options)) => Some(options),
        Some(_) => return Err(refuse(location, "$options takes a string")),
    };
    let (source, options) = match (value, options) {
        (ValueRef::String(source), options) => (source, options.unwrap_or("")),
        (ValueRef::Regex(regex), None) => (regex.pattern, regex.options),
        (ValueRef::Regex(regex), Some(options)) if regex.options.is_empty() => {
            (regex.pattern, options)
        }
        (ValueRef::Regex(_), Some(_)) => {
            return Err(refuse(
                location,
                "options are allowed in $regex or in $options, not in both",
            ));
        }
        _ => {
            return Err(refuse(
                location,
                "$regex takes a string or a regular expression",
            ));
        }
    };
    pattern(source, options, location).map(Test::Regex)
}

fn size(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<u64, Error> {
    let size = value
        .as_exact_i64()
        .and_then(|size| u64::try_from(size).ok());
    size.ok_or_else(|| refuse(location, "$size takes a whole number, zero or more"))
}

/// The bits that a mask, binary data or a list of positions names.
fn positions(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Vec<u32>, Error> {
    let detail = "a mask of bits is a whole number from zero, binary data, or a list of positions";
    match value {
        ValueRef::Array(array) => {
            let mut positions = Vec::new();
            for (index, value) in array.iter().enumerate() {
                let position = value
                    .as_exact_i64()
                    .and_then(|position| u32::try_from(position).ok());
                positions.push(position.ok_or_else(|| refuse(&location.index(index), detail))?);
            }
            positions.sort_unstable();
            positions.dedup();
            Ok(positions)
        }
        ValueRef::Binary(binary) => {
            let bits = (0..).step_by(8).zip(binary.bytes);
            Ok(bits
                .flat_map(|(first, byte)| {
                    (0..8)
                        .filter(move |bit| byte >> bit & 1 == 1)
                        .map(move |bit| first + bit)
                })
                .collect())
        }
        number => {
            let mask = number
                .as_exact_i64()
                .filter(|mask| *mask >= 0)
                .ok_or_else(|| refuse(location, detail))?;
            Ok((0..63).filter(|bit| mask >> bit & 1 == 1).collect())
        }
    }
}
