//! Aggregation expressions, as `$expr` uses them.
//!
//! An expression is parsed once into a tree whose variables are numbered;
//! evaluating it borrows from the document wherever it can ([`Item`]) and
//! pays fuel for what it builds. Comparisons here go over all types in the
//! order of [`crate::order`]: unlike in filters there is no bracketing.

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
use crate::environment::Environment;
use crate::error::{Error, Failure, Place};
use crate::path::Segment;
use crate::pattern::Pattern;

use function::Function;
use item::Args;
pub use item::{Item, Out};
pub(crate) use parse::Parsing;

/// A parsed expression.
#[derive(Debug, Clone)]
pub struct Expression {
    root: Tree,
    moment: Option<Error>,
}

#[derive(Debug, Clone)]
enum Tree {
    Literal(Value),
    /// A path from the document.
    Field(Box<[Segment]>),
    /// A path from a numbered variable.
    Variable(usize, Box<[Segment]>),
    Now,
    Missing,
    Document(Vec<(String, Tree)>),
    Array(Vec<Tree>),
    Call(Function, Vec<Option<Tree>>),
    /// A function of a regular expression that is known while parsing.
    Pattern(Function, Box<Pattern>, Box<Tree>),
    And(Vec<Tree>),
    Or(Vec<Tree>),
    Condition(Box<[Tree; 3]>),
    IfNull(Vec<Tree>),
    Switch(Vec<(Tree, Tree)>, Option<Box<Tree>>),
    Let(Vec<(usize, Tree)>, Box<Tree>),
    Map {
        input: Box<Tree>,
        each: usize,
        result: Box<Tree>,
    },
    Filter {
        input: Box<Tree>,
        each: usize,
        keep: Box<Tree>,
        limit: Option<Box<Tree>>,
    },
    Reduce {
        input: Box<Tree>,
        initial: Box<Tree>,
        each: usize,
        sum: usize,
        result: Box<Tree>,
    },
}

impl Expression {
    /// Parses an expression.
    pub fn parse(value: ValueRef<'_>, place: &Place<'_>) -> Result<Self, Error> {
        let mut parsing = Parsing::default();
        let root = parsing.expression(value, 1, place)?;
        Ok(Self {
            root,
            moment: parsing.moment,
        })
    }

    /// Why the expression depends on the moment, if it does.
    pub(crate) const fn moment(&self) -> Option<&Error> {
        self.moment.as_ref()
    }

    /// The value of the expression for a document; none is missing.
    pub fn evaluate<'a>(
        &'a self,
        document: Document<'a>,
        environment: &Environment,
    ) -> Result<Out<'a>, Failure> {
        evaluate::Evaluation::new(document, environment).tree(&self.root)
    }

    /// Whether the value counts as true.
    pub fn is_true(
        &self,
        document: Document<'_>,
        environment: &Environment,
    ) -> Result<bool, Failure> {
        let value = evaluate::Evaluation::new(document, environment).tree(&self.root)?;
        Ok(value.is_some_and(|item| crate::filter::is_true(item.as_ref())))
    }
}
