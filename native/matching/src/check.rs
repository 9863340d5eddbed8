//! The filters of live queries, in the compact form in which they are kept for verifying
//! candidates.
//!
//! A query keeps its tree and shares its paths with all other queries. Parts that are large when
//! compiled (regular expressions other than plain text, schemas, expressions) are kept in canonical
//! form and compiled when a document needs them; a cache keeps the recently compiled ones.

use std::collections::HashMap;
use std::sync::Arc;

use rillbase_query::bson::{Document, Value};
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::EvaluationFailure;
use rillbase_query::filter::{Filter, FilterClause, Predicate, Test, Whole};
use rillbase_query::path::FieldPath;

use crate::plain::PlainPattern;

/// The number of compiled filters in the cache, which may temporarily hold twice as many.
const COMPILED: usize = 1024;

/// A filter in compact form.
#[derive(Debug)]
pub(crate) enum Check {
    Tree(CheckTree),
    /// The canonical form.
    Source(Box<[u8]>),
}

/// A filter whose leaves are small.
#[derive(Debug)]
pub(crate) enum CheckTree {
    And(Box<[CheckTree]>),
    Or(Box<[CheckTree]>),
    Not(Box<CheckTree>),
    Leaf(Box<FilterClause>),
    Plain(Box<PlainPattern>),
}

/// Paths that queries share, with reference counts.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    uses: HashMap<FieldPath, u32>,
}

/// Recently compiled filters, by query.
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    recent: HashMap<u32, Arc<Filter>>,
    older: HashMap<u32, Arc<Filter>>,
}

impl Check {
    pub(crate) fn new(filter: &Filter, paths: &mut Paths) -> Self {
        if is_large(filter.root()) {
            return Self::Source(filter.canonical().as_bytes().into());
        }
        Self::Tree(paths.tree(filter.root()))
    }

    /// A check that is never used.
    pub(crate) fn none() -> Self {
        Self::Source(Box::default())
    }

    /// Releases what it shares.
    pub(crate) fn release(&self, query: u32, paths: &mut Paths, compiled: &mut Compiled) {
        match self {
            Self::Tree(tree) => paths.release_tree(tree),
            Self::Source(_) => compiled.forget(query),
        }
    }

    /// Whether the document matches, with fresh fuel.
    pub(crate) fn matches(
        &self,
        query: u32,
        document: Document<'_>,
        compiled: &mut Compiled,
    ) -> Result<bool, EvaluationFailure> {
        match self {
            Self::Tree(tree) => tree.matches(document, &EvaluationContext::default()),
            Self::Source(bytes) => compiled.get(query, bytes)?.matches(document),
        }
    }

    /// A check that needs the full filter.
    pub(crate) fn peek(&self) -> usize {
        match self {
            Self::Tree(CheckTree::And(children) | CheckTree::Or(children)) => {
                match children.first() {
                    Some(CheckTree::Leaf(node)) => {
                        usize::from(matches!(**node, FilterClause::Field(_)))
                    }
                    _ => 0,
                }
            }
            Self::Tree(CheckTree::Leaf(node)) => {
                usize::from(matches!(**node, FilterClause::Field(_)))
            }
            _ => 0,
        }
    }

    /// The tree of the filter.
    pub(crate) fn node(&self, query: u32, compiled: &mut Compiled) -> Option<FilterClause> {
        match self {
            Self::Tree(tree) => tree.node(),
            Self::Source(bytes) => Some(compiled.get(query, bytes).ok()?.root().clone()),
        }
    }

    /// Its approximate size in bytes, besides the struct.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Tree(tree) => tree.memory(),
            Self::Source(bytes) => bytes.len(),
        }
    }
}

impl CheckTree {
    fn matches(
        &self,
        document: Document<'_>,
        environment: &EvaluationContext,
    ) -> Result<bool, EvaluationFailure> {
        match self {
            Self::Leaf(node) => node.matches_in(document, environment),
            Self::Plain(plain) => plain.matches(document, &environment.fuel),
            Self::Not(inner) => inner.matches(document, environment).map(|answer| !answer),
            Self::And(children) => {
                for child in children {
                    if !child.matches(document, environment)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Or(children) => {
                for child in children {
                    if child.matches(document, environment)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    fn node(&self) -> Option<FilterClause> {
        let all = |children: &[Self]| children.iter().map(Self::node).collect::<Option<Vec<_>>>();
        Some(match self {
            Self::And(children) => FilterClause::And(all(children)?),
            Self::Or(children) => FilterClause::Or(all(children)?),
            Self::Not(inner) => FilterClause::Not(Box::new(inner.node()?)),
            Self::Leaf(node) => node.as_ref().clone(),
            Self::Plain(plain) => FilterClause::Field(plain.predicate()?),
        })
    }

    fn memory(&self) -> usize {
        match self {
            Self::And(children) | Self::Or(children) => {
                let inner = children.iter().map(Self::memory);
                size_of_val::<[Self]>(children) + inner.sum::<usize>()
            }
            Self::Not(inner) => size_of::<Self>() + inner.memory(),
            Self::Leaf(node) => size_of::<FilterClause>() + node_bytes(node),
            Self::Plain(plain) => plain.memory(),
        }
    }
}

impl Compiled {
    fn get(&mut self, query: u32, bytes: &[u8]) -> Result<Arc<Filter>, EvaluationFailure> {
        if let Some(filter) = self.recent.get(&query) {
            return Ok(filter.clone());
        }
        let filter = match self.older.remove(&query) {
            Some(filter) => filter,
            None => Arc::new(
                Filter::parse(Document::trusted(bytes))
                    .map_err(|error| EvaluationFailure::refused(error.to_string()))?,
            ),
        };
        if self.recent.len() >= COMPILED {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(query, filter.clone());
        Ok(filter)
    }

    /// Removes the filter of a query whose number may be reused.
    fn forget(&mut self, query: u32) {
        self.recent.remove(&query);
        self.older.remove(&query);
    }
}

impl Paths {
    /// A filter with shared paths.
    fn tree(&mut self, node: &FilterClause) -> CheckTree {
        match node {
            FilterClause::And(children) => {
                CheckTree::And(children.iter().map(|child| self.tree(child)).collect())
            }
            FilterClause::Or(children) => {
                CheckTree::Or(children.iter().map(|child| self.tree(child)).collect())
            }
            FilterClause::Not(inner) => CheckTree::Not(Box::new(self.tree(inner))),
            FilterClause::Field(predicate) => match PlainPattern::of(predicate) {
                Some(mut plain) => {
                    plain.path = self.path(&plain.path);
                    CheckTree::Plain(Box::new(plain))
                }
                None => CheckTree::Leaf(Box::new(self.node(node))),
            },
            FilterClause::Whole(_) => CheckTree::Leaf(Box::new(node.clone())),
        }
    }

    fn path(&mut self, path: &FieldPath) -> FieldPath {
        if let Some((shared, _)) = self.uses.get_key_value(path) {
            let shared = shared.clone();
            if let Some(uses) = self.uses.get_mut(path) {
                *uses += 1;
            }
            return shared;
        }
        self.uses.insert(path.clone(), 1);
        path.clone()
    }

    fn node(&mut self, node: &FilterClause) -> FilterClause {
        match node {
            FilterClause::And(children) => {
                FilterClause::And(children.iter().map(|child| self.node(child)).collect())
            }
            FilterClause::Or(children) => {
                FilterClause::Or(children.iter().map(|child| self.node(child)).collect())
            }
            FilterClause::Not(inner) => FilterClause::Not(Box::new(self.node(inner))),
            FilterClause::Whole(whole) => FilterClause::Whole(whole.clone()),
            FilterClause::Field(predicate) => FilterClause::Field(Predicate {
                path: self.path(&predicate.path),
                test: match &predicate.test {
                    Test::ElementDocument(inner) => {
                        Test::ElementDocument(Box::new(self.node(inner)))
                    }
                    Test::ElementValue(inner) => Test::ElementValue(Box::new(self.node(inner))),
                    test => test.clone(),
                },
            }),
        }
    }

    fn release_tree(&mut self, tree: &CheckTree) {
        match tree {
            CheckTree::And(children) | CheckTree::Or(children) => {
                for child in children {
                    self.release_tree(child);
                }
            }
            CheckTree::Not(inner) => self.release_tree(inner),
            CheckTree::Leaf(node) => self.release(node),
            CheckTree::Plain(plain) => self.release_path(&plain.path),
        }
    }

    fn release(&mut self, node: &FilterClause) {
        match node {
            FilterClause::And(children) | FilterClause::Or(children) => {
                for child in children {
                    self.release(child);
                }
            }
            FilterClause::Not(inner) => self.release(inner),
            FilterClause::Whole(_) => {}
            FilterClause::Field(predicate) => {
                self.release_path(&predicate.path);
                if let Test::ElementDocument(inner) | Test::ElementValue(inner) = &predicate.test {
                    self.release(inner);
                }
            }
        }
    }

    fn release_path(&mut self, path: &FieldPath) {
        if let Some(uses) = self.uses.get_mut(path) {
            *uses -= 1;
            if *uses == 0 {
                self.uses.remove(path);
            }
        }
    }

    /// Its approximate size in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.uses.len() * 160
    }
}

/// Whether a part is much larger compiled than in canonical form.
fn is_large(node: &FilterClause) -> bool {
    match node {
        FilterClause::And(children) | FilterClause::Or(children) => children.iter().any(is_large),
        FilterClause::Not(inner) => is_large(inner),
        FilterClause::Whole(whole) => !matches!(whole.as_ref(), Whole::Text(_)),
        FilterClause::Field(predicate) => match &predicate.test {
            Test::Regex(_) => PlainPattern::of(predicate).is_none(),
            Test::In(list) => !list.patterns().is_empty(),
            Test::ElementDocument(inner) | Test::ElementValue(inner) => has_pattern(inner),
            _ => false,
        },
    }
}

/// Whether it contains a regular expression.
fn has_pattern(node: &FilterClause) -> bool {
    match node {
        FilterClause::And(children) | FilterClause::Or(children) => {
            children.iter().any(has_pattern)
        }
        FilterClause::Not(inner) => has_pattern(inner),
        FilterClause::Whole(_) => false,
        FilterClause::Field(predicate) => match &predicate.test {
            Test::Regex(_) => true,
            Test::In(list) => !list.patterns().is_empty(),
            Test::ElementDocument(inner) | Test::ElementValue(inner) => has_pattern(inner),
            _ => false,
        },
    }
}

/// The heap size of a node.
fn node_bytes(node: &FilterClause) -> usize {
    match node {
        FilterClause::And(children) | FilterClause::Or(children) => {
            children.len() * size_of::<FilterClause>()
                + children.iter().map(node_bytes).sum::<usize>()
        }
        FilterClause::Not(inner) => size_of::<FilterClause>() + node_bytes(inner),
        FilterClause::Whole(whole) => match whole.as_ref() {
            Whole::Text(text) => 4 * text.source().size() + size_of::<Whole>(),
            Whole::Expression(source, _) | Whole::Schema(source, _) => 4 * source.size(),
        },
        FilterClause::Field(predicate) => match &predicate.test {
            Test::Compare(_, operand) => value_bytes(operand),
            Test::In(list) => {
                let values = list.values().iter();
                values
                    .map(|value| size_of::<Value>() + value_bytes(value))
                    .sum()
            }
            Test::Bits(test) => test.positions.len() * size_of::<u32>(),
            Test::Geo(test) => 4 * test.source().1.size(),
            Test::Near(near) => 4 * near.source().as_bytes().len(),
            Test::ElementDocument(inner) | Test::ElementValue(inner) => {
                size_of::<FilterClause>() + node_bytes(inner)
            }
            _ => 0,
        },
    }
}

/// The heap size of a value; short blocks cost as much as the smallest one.
fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(_) | Value::Document(_) | Value::Array(_) | Value::Binary(..) => {
            value.size().max(24) + 8
        }
        _ => 0,
    }
}
