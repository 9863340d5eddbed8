//! JSON Schema in MongoDB's dialect: draft 4 with `bsonType`.
//!
//! Supported: `type`, `bsonType`, `enum`, `allOf`, `anyOf`, `oneOf`, `not`, numbers, strings,
//! arrays, objects, `dependencies`, and `title` and `description`. A schema is self-contained:
//! `$ref` and `definitions` are rejected. `pattern` uses the linear regular expressions of
//! [`crate::pattern`].

mod check;
mod parse;
mod words;

use crate::bson::TypeSet;
use crate::bson::{Document, ValueRef};
use crate::error::{Error, EvaluationFailure, ParseLocation};
use crate::fuel::Fuel;
use crate::pattern::Pattern;

/// A parsed schema: all rules must hold.
#[derive(Debug, Default)]
pub struct Schema {
    rules: Vec<SchemaRule>,
}

#[derive(Debug)]
enum SchemaRule {
    Kinds {
        keyword: &'static str,
        kinds: TypeSet,
    },
    /// The keys of the allowed values, regardless of the order of fields.
    Enum(Vec<Vec<u8>>),
    All(Vec<Schema>),
    Any(Vec<Schema>),
    One(Vec<Schema>),
    Not(Box<Schema>),
    Minimum {
        bound: crate::bson::Value,
        exclusive: bool,
    },
    Maximum {
        bound: crate::bson::Value,
        exclusive: bool,
    },
    MultipleOf(crate::bson::Value),
    Length {
        least: u64,
        most: u64,
    },
    Pattern(Pattern),
    Items(Items),
    ItemCount {
        least: u64,
        most: u64,
    },
    Unique,
    Properties(PropertyRules),
    PropertyCount {
        least: u64,
        most: u64,
    },
    Required(Vec<String>),
    DependsOnKeys(String, Vec<String>),
    DependsOnSchema(String, Box<Schema>),
}

#[derive(Debug)]
struct Items {
    /// One for each position, if `items` is an array.
    each: Vec<Schema>,
    rest: Rest,
}

#[derive(Debug, Default)]
struct PropertyRules {
    named: Vec<(String, Schema)>,
    patterns: Vec<(Pattern, Schema)>,
    rest: Rest,
}

/// The rule for members that are not named.
#[derive(Debug, Default)]
enum Rest {
    #[default]
    Allowed,
    Refused,
    Schema(Box<Schema>),
}

/// A rule that a document breaks, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaViolation {
    /// The offending location as an RFC 6901 pointer.
    pub pointer: String,
    /// The keyword of the rule.
    pub keyword: &'static str,
    /// One sentence for people.
    pub detail: String,
}

impl Schema {
    /// Parses a schema.
    pub fn parse(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Self, Error> {
        parse::schema(value, 1, &mut 0, location)
    }

    /// Whether a document satisfies the schema.
    pub fn allows(&self, document: Document<'_>, fuel: &Fuel) -> Result<bool, EvaluationFailure> {
        check::SchemaCheck { fuel, report: None }.schema(
            self,
            ValueRef::Document(document),
            &ParseLocation::root(),
        )
    }

    /// The rules that a document breaks, the first hundred of them.
    pub fn violations(
        &self,
        document: Document<'_>,
        fuel: &Fuel,
    ) -> Result<Vec<SchemaViolation>, EvaluationFailure> {
        let mut checking = check::SchemaCheck {
            fuel,
            report: Some(Vec::new()),
        };
        checking.schema(self, ValueRef::Document(document), &ParseLocation::root())?;
        Ok(checking.report.unwrap_or_default())
    }
}
