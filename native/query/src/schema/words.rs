//! What a rule expects, in words.
//!
//! The text never contains the value: a user who may write a document may not be allowed to read
//! all of its fields.

use super::SchemaRule;
use crate::bson::{BsonType, TypeSet, Value};
use crate::ejson::{Form, value_to_string};

/// What a value that breaks this rule should have been.
pub(super) fn expectation(rule: &SchemaRule) -> String {
    match rule {
        SchemaRule::Kinds { kinds, .. } => format!("expected {}", kind_names(*kinds)),
        SchemaRule::Enum(_) => "expected one of the allowed values".into(),
        SchemaRule::Any(_) => "none of the alternatives holds".into(),
        SchemaRule::One(_) => "not exactly one alternative holds".into(),
        SchemaRule::Not(_) => "the value matches what is excluded".into(),
        SchemaRule::Minimum { bound, exclusive } => {
            let words = if *exclusive { "more than" } else { "at least" };
            format!("expected {words} {}", number(bound))
        }
        SchemaRule::Maximum { bound, exclusive } => {
            let words = if *exclusive { "less than" } else { "at most" };
            format!("expected {words} {}", number(bound))
        }
        SchemaRule::MultipleOf(factor) => format!("expected a multiple of {}", number(factor)),
        SchemaRule::Length { least, most } => count(*least, *most, "characters"),
        SchemaRule::Pattern(_) => "expected a text that matches the pattern".into(),
        SchemaRule::ItemCount { least, most } => count(*least, *most, "elements"),
        SchemaRule::Unique => "two elements are equal".into(),
        SchemaRule::PropertyCount { least, most } => count(*least, *most, "fields"),
        SchemaRule::All(_)
        | SchemaRule::Items(_)
        | SchemaRule::Properties(_)
        | SchemaRule::Required(_)
        | SchemaRule::DependsOnKeys(..)
        | SchemaRule::DependsOnSchema(..) => String::new(),
    }
}

/// The types with articles: `a number or null`.
fn kind_names(kinds: TypeSet) -> String {
    let is_number = TypeSet::NUMBERS.iter().all(|kind| kinds.contains(kind));
    let mut names = Vec::new();
    if is_number {
        names.push("a number".to_owned());
    }
    for kind in kinds.iter().filter(|kind| !(is_number && kind.is_number())) {
        names.push(match kind {
            BsonType::Null | BsonType::Undefined => kind.alias().to_owned(),
            BsonType::Array | BsonType::Document | BsonType::ObjectId | BsonType::Int32 => {
                format!("an {}", kind.alias())
            }
            _ => format!("a {}", kind.alias()),
        });
    }
    names.join(" or ")
}

fn number(value: &Value) -> String {
    value_to_string(value.as_ref(), Form::Relaxed)
}

fn count(least: u64, most: u64, noun: &str) -> String {
    match (least, most) {
        (0, most) => format!("expected at most {most} {noun}"),
        (least, u64::MAX) => format!("expected at least {least} {noun}"),
        (least, most) if least == most => format!("expected {least} {noun}"),
        (least, most) => format!("expected {least} to {most} {noun}"),
    }
}
