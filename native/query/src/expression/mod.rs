//! Aggregation expressions, as `$expr` uses them.
//!
//! An expression is parsed once into a tree whose variables are numbered; evaluation borrows from
//! the document where possible ([`ExpressionItem`]) and uses fuel for what it builds. Comparisons
//! here go over all types in the order of [`crate::order`]: unlike in filters there is no
//! bracketing.

mod arrays;
mod calendar;
mod convert;
mod date_text;
mod dates;
mod evaluate;
mod function;
mod item;
mod maths;
mod objects;
mod parse;
mod sets;
mod strings;

use crate::bson::{Document, Value, ValueRef};
use crate::environment::EvaluationContext;
use crate::error::{Error, EvaluationFailure, ParseLocation};
use crate::path::PathSegment;
use crate::pattern::Pattern;

use function::Function;
use item::Args;
pub use item::{ExpressionItem, Out};
pub(crate) use parse::ExpressionParser;

/// A parsed expression.
#[derive(Debug, Clone)]
pub struct Expression {
    root: ExpressionTree,
    moment: Option<Error>,
}

#[derive(Debug, Clone)]
enum ExpressionTree {
    Literal(Value),
    /// A path from the document.
    Field(Box<[PathSegment]>),
    /// A path from a numbered variable.
    Variable(usize, Box<[PathSegment]>),
    Now,
    Missing,
    Document(Vec<(String, ExpressionTree)>),
    Array(Vec<ExpressionTree>),
    Call(Function, Vec<Option<ExpressionTree>>),
    /// A function of a regular expression that is known while parsing.
    Pattern(Function, Box<Pattern>, Box<ExpressionTree>),
    And(Vec<ExpressionTree>),
    Or(Vec<ExpressionTree>),
    Condition(Box<[ExpressionTree; 3]>),
    IfNull(Vec<ExpressionTree>),
    Switch(
        Vec<(ExpressionTree, ExpressionTree)>,
        Option<Box<ExpressionTree>>,
    ),
    Let(Vec<(usize, ExpressionTree)>, Box<ExpressionTree>),
    Map {
        input: Box<ExpressionTree>,
        each: usize,
        result: Box<ExpressionTree>,
    },
    Filter {
        input: Box<ExpressionTree>,
        each: usize,
        keep: Box<ExpressionTree>,
        limit: Option<Box<ExpressionTree>>,
    },
    Reduce {
        input: Box<ExpressionTree>,
        initial: Box<ExpressionTree>,
        each: usize,
        sum: usize,
        result: Box<ExpressionTree>,
    },
}

impl Expression {
    /// Parses an expression.
    pub fn parse(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Self, Error> {
        let mut parsing = ExpressionParser::default();
        let root = parsing.expression(value, 1, location)?;
        Ok(Self {
            root,
            moment: parsing.moment,
        })
    }

    /// Why the expression depends on the current time, if it does.
    pub(crate) const fn moment(&self) -> Option<&Error> {
        self.moment.as_ref()
    }

    /// The value of the expression for a document; `None` if it is missing.
    pub fn evaluate<'a>(
        &'a self,
        document: Document<'a>,
        environment: &EvaluationContext,
    ) -> Result<Out<'a>, EvaluationFailure> {
        evaluate::Evaluation::new(document, environment).tree(&self.root)
    }

    /// Whether the value counts as true.
    pub fn is_true(
        &self,
        document: Document<'_>,
        environment: &EvaluationContext,
    ) -> Result<bool, EvaluationFailure> {
        let value = evaluate::Evaluation::new(document, environment).tree(&self.root)?;
        Ok(value.is_some_and(|item| crate::truth::is_true(item.as_ref())))
    }
}
