//! The tree of a filter.

use std::sync::Arc;

use super::{BitTest, List};
use crate::bson::TypeSet;
use crate::bson::Value;
use crate::expression::Expression;
use crate::geo::{GeoTest, Near};
use crate::path::{FieldPath, Leaf};
use crate::pattern::Pattern;
use crate::schema::Schema;
use crate::text::TextQuery;

/// A node of a filter. In normal form `Not` is applied only to leaves, and connectives have at
/// least two children, except that `And([])` alone is true and `Or([])` alone is false.
#[derive(Debug, Clone)]
pub enum FilterClause {
    /// All of them.
    And(Vec<FilterClause>),
    /// At least one of them.
    Or(Vec<FilterClause>),
    /// Not that.
    Not(Box<FilterClause>),
    /// A test of what a path finds.
    Field(Predicate),
    /// A test of the document as a whole.
    Whole(Arc<Whole>),
}

impl FilterClause {
    /// The first node, in order, for which something is found.
    pub(super) fn find<'n, T>(&'n self, pick: &dyn Fn(&'n Self) -> Option<T>) -> Option<T> {
        match self {
            Self::And(children) | Self::Or(children) => {
                children.iter().find_map(|child| child.find(pick))
            }
            Self::Not(inner) => inner.find(pick),
            leaf => pick(leaf),
        }
    }

    /// The same with `$near` within a distance; it is at the top level or in `$and`.
    pub(super) fn within(&self, distance: f64) -> Self {
        match self {
            Self::And(children) => Self::And(
                children
                    .iter()
                    .map(|child| child.within(distance))
                    .collect(),
            ),
            Self::Field(Predicate {
                path,
                test: Test::Near(near),
            }) => Self::Field(Predicate {
                path: path.clone(),
                test: Test::Near(Arc::new(near.within(distance))),
            }),
            other => other.clone(),
        }
    }
}

/// A test of the document as a whole.
#[derive(Debug)]
pub enum Whole {
    /// `$expr`, with its text.
    Expression(Value, Expression),
    /// `$jsonSchema`, with its text.
    Schema(Value, Schema),
    /// `$text`
    Text(TextQuery),
}

/// A test of what a path finds; one value that passes is enough.
#[derive(Debug, Clone)]
pub struct Predicate {
    /// The path. Inside `$elemMatch` of values it is empty: the element itself is tested.
    pub path: FieldPath,
    /// The test of each value.
    pub test: Test,
}

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are self-explanatory")]
pub enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// The operator's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equal => "$eq",
            Self::Less => "$lt",
            Self::LessOrEqual => "$lte",
            Self::Greater => "$gt",
            Self::GreaterOrEqual => "$gte",
        }
    }
}

/// A test of one value.
#[derive(Debug, Clone)]
pub enum Test {
    /// `$eq`, `$lt`, `$lte`, `$gt`, `$gte`: only within one type.
    Compare(Comparison, Value),
    /// `$in`
    In(List),
    /// `$exists: true`
    Exists,
    /// `$type`
    Type(TypeSet),
    /// `$mod`
    Mod {
        /// Never zero.
        divisor: i64,
        /// What must remain.
        remainder: i64,
    },
    /// `$regex`
    Regex(Pattern),
    /// `$size`
    Size(u64),
    /// `$bitsAllSet`, `$bitsAnySet`, `$bitsAllClear` and `$bitsAnyClear`
    Bits(BitTest),
    /// `$elemMatch` of documents
    ElementDocument(Box<FilterClause>),
    /// `$elemMatch` of values; its predicates have no path.
    ElementValue(Box<FilterClause>),
    /// `$geoWithin` and `$geoIntersects`
    Geo(Arc<GeoTest>),
    /// `$near` and `$nearSphere`
    Near(Arc<Near>),
}

impl Test {
    /// Whether it looks at the elements of an array or at the array.
    #[must_use]
    pub const fn leaf(&self) -> Leaf {
        match self {
            Self::Size(_) | Self::ElementDocument(_) | Self::ElementValue(_) => Leaf::Whole,
            _ => Leaf::Elements,
        }
    }
}
