//! A part of a filter, and what it met, in words.

use super::super::canonical::canonical;
use super::super::{Comparison, FilterClause, Predicate, Test, Whole};
use super::cut;
use crate::bson::{ArrayWriter, BsonType, Document, DocumentWriter, Value, ValueRef};
use crate::ejson::{Form, document_to_string, value_to_string};
use crate::error::EvaluationFailure;
use crate::pattern::Pattern;

/// A part of a filter as people write it, cut where it is long.
pub(super) fn clause(node: &FilterClause) -> String {
    let bytes = match node {
        FilterClause::Not(inner) => match inner.as_ref() {
            FilterClause::Field(predicate) => negated(predicate),
            _ => None,
        },
        _ => None,
    };
    let bytes = bytes.unwrap_or_else(|| canonical(node.clone()).1);
    cut(&document_to_string(
        Document::trusted(&bytes),
        Form::Relaxed,
    ))
}

/// `$ne`, `$nin` and `$exists: false`, which the canonical form writes with `$not`.
fn negated(predicate: &Predicate) -> Option<Vec<u8>> {
    let mut inner = DocumentWriter::new();
    match &predicate.test {
        Test::Compare(Comparison::Equal, operand) => inner.append("$ne", operand.as_ref()),
        Test::In(list) if list.patterns().is_empty() => {
            let mut values = ArrayWriter::new();
            list.values()
                .iter()
                .for_each(|value| values.push(value.as_ref()));
            inner.append("$nin", Value::Array(values.into()).as_ref());
        }
        Test::Exists => inner.append("$exists", ValueRef::Bool(false)),
        _ => return None,
    }
    let mut writer = DocumentWriter::new();
    let inner = inner.finish();
    let condition = ValueRef::Document(Document::trusted(&inner));
    writer.append(&predicate.path.text(), condition);
    Some(writer.finish())
}

/// One sentence: the actual value, and what the test requires.
pub(super) fn sentence(
    node: &FilterClause,
    holds: &Result<bool, EvaluationFailure>,
    found: &[String],
    document: Document<'_>,
) -> String {
    let requirement = match node {
        FilterClause::And(parts) if parts.is_empty() => {
            return "Every document matches.".to_owned();
        }
        FilterClause::Or(parts) if parts.is_empty() => return "No document can match.".to_owned(),
        FilterClause::And(parts) => format!("all of {} conditions hold", parts.len()),
        FilterClause::Or(parts) => format!("one of {} conditions holds", parts.len()),
        FilterClause::Field(predicate) => {
            let note = other_types(&predicate.test, &predicate.path.text(), document);
            return about(
                &predicate.path.text(),
                found,
                holds,
                &display_test(&predicate.test),
            ) + &note;
        }
        FilterClause::Not(inner) => match inner.as_ref() {
            FilterClause::Field(predicate) => {
                let requirement = format!("not {}", display_test(&predicate.test));
                return about(&predicate.path.text(), found, holds, &requirement);
            }
            FilterClause::Whole(whole) => format!("it is not true that {}", of_whole(whole)),
            _ => "the negated condition does not hold".to_owned(),
        },
        FilterClause::Whole(whole) => of_whole(whole),
    };
    match holds {
        Ok(true) => format!("The document matches: {requirement}."),
        Ok(false) => format!("The document does not match; expected: {requirement}."),
        Err(failure) => format!("It cannot be determined whether {requirement}: {failure}."),
    }
}

fn about(
    path: &str,
    found: &[String],
    holds: &Result<bool, EvaluationFailure>,
    requirement: &str,
) -> String {
    let actual = match found {
        [] => format!("`{path}` leads to no value"),
        [only] if only == "missing" => format!("`{path}` is missing"),
        [only] => format!("`{path}` is {only}"),
        several => format!("`{path}` has the values {}", several.join(", ")),
    };
    match holds {
        Ok(true) => format!("{actual}, as expected: {requirement}."),
        Ok(false) => format!("{actual}; expected: {requirement}."),
        Err(failure) => {
            format!("{actual}; expected: {requirement}. The evaluation failed: {failure}.")
        }
    }
}

/// A hint where value and operand are of types that never compare.
fn other_types(test: &Test, path: &str, document: Document<'_>) -> String {
    let Test::Compare(_, operand) = test else {
        return String::new();
    };
    let (operand, Some(value)) = (operand.as_ref(), document.get(path)) else {
        return String::new();
    };
    let special = |value: ValueRef<'_>| {
        matches!(
            value.kind(),
            BsonType::Array | BsonType::Null | BsonType::MinKey | BsonType::MaxKey
        )
    };
    if value.rank() == operand.rank() || special(value) || special(operand) {
        return String::new();
    }
    format!(
        " A value of type {} never matches one of type {}.",
        value.kind().alias(),
        operand.kind().alias()
    )
}

fn display_value(value: ValueRef<'_>) -> String {
    cut(&value_to_string(value, Form::Relaxed))
}

fn display_test(test: &Test) -> String {
    match test {
        Test::Compare(comparison, operand) => {
            let how = match comparison {
                Comparison::Equal => "equal to",
                Comparison::Less => "less than",
                Comparison::LessOrEqual => "at most",
                Comparison::Greater => "greater than",
                Comparison::GreaterOrEqual => "at least",
            };
            format!("{how} {}", display_value(operand.as_ref()))
        }
        Test::In(list) => {
            let values = list
                .values()
                .iter()
                .map(|value| display_value(value.as_ref()));
            let patterns = list.patterns().iter().map(written);
            cut(&format!(
                "one of {}",
                values.chain(patterns).collect::<Vec<_>>().join(", ")
            ))
        }
        Test::Exists => "present".to_owned(),
        Test::Type(kinds) => {
            let names: Vec<&str> = kinds.iter().map(BsonType::alias).collect();
            format!("of type {}", names.join(" or "))
        }
        Test::Mod { divisor, remainder } => {
            format!("{remainder} as the remainder of a division by {divisor}")
        }
        Test::Regex(pattern) => format!("text that matches {}", written(pattern)),
        Test::Size(size) => format!("an array of length {size}"),
        Test::Bits(test) => cut(&format!("{} of {:?}", test.bits.name(), test.positions)),
        Test::ElementDocument(_) | Test::ElementValue(_) => {
            "an array with an element for which all of `$elemMatch` holds".to_owned()
        }
        Test::Geo(test) => {
            let (name, argument) = test.source();
            cut(&format!("{name} {}", display_value(argument.as_ref())))
        }
        Test::Near(near) => cut(&format!(
            "a place near {}",
            display_value(ValueRef::Document(near.source()))
        )),
    }
}

fn written(pattern: &Pattern) -> String {
    format!("/{}/{}", pattern.source(), pattern.options())
}

fn of_whole(whole: &Whole) -> String {
    match whole {
        Whole::Expression(..) => "its `$expr` is true".to_owned(),
        Whole::Schema(..) => "the document satisfies `$jsonSchema`".to_owned(),
        Whole::Text(_) => "the document's text matches `$text`".to_owned(),
    }
}
