//! The filters themselves, as they wait to verify a candidate.
//!
//! A waiting query keeps its tree, with paths shared between all queries.
//! What is large when compiled (regular expressions, schemas, expressions) is
//! kept as the bytes of its canonical form and compiled when a document comes
//! by; recently compiled ones are kept for a while.

use std::collections::HashMap;
use std::sync::Arc;

use rillbase_query::bson::{Document, Value};
use rillbase_query::environment::Environment;
use rillbase_query::error::Failure;
use rillbase_query::filter::{Filter, Node, Predicate, Test, Whole};
use rillbase_query::path::Path;

/// Compiled filters that are kept; up to twice as many for a while.
const COMPILED: usize = 1024;

/// A filter that waits.
#[derive(Debug)]
pub(crate) enum Check {
    Tree(Box<Node>),
    /// The canonical form.
    Source(Box<[u8]>),
}

/// Paths that queries share, with the number of their uses.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    uses: HashMap<Path, u32>,
}

/// Filters that were compiled lately, by query.
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
        Self::Tree(Box::new(paths.share(filter.root())))
    }

    /// Gives back what it shares.
    pub(crate) fn release(&self, paths: &mut Paths) {
        if let Self::Tree(tree) = self {
            paths.release(tree);
        }
    }

    /// Whether the document matches, with fresh fuel.
    pub(crate) fn matches(
        &self,
        query: u32,
        document: Document<'_>,
        compiled: &mut Compiled,
    ) -> Result<bool, Failure> {
        self.with_tree(query, compiled, |tree| {
            tree.matches_in(document, &Environment::default())
        })
    }

    /// Does something with the tree.
    pub(crate) fn with_tree<T>(
        &self,
        query: u32,
        compiled: &mut Compiled,
        work: impl FnOnce(&Node) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match self {
            Self::Tree(tree) => work(tree),
            Self::Source(bytes) => {
                let filter = compiled.get(query, bytes)?;
                work(filter.root())
            }
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Tree(tree) => size_of::<Node>() + node_bytes(tree),
            Self::Source(bytes) => bytes.len(),
        }
    }
}

impl Compiled {
    fn get(&mut self, query: u32, bytes: &[u8]) -> Result<Arc<Filter>, Failure> {
        if let Some(filter) = self.recent.get(&query) {
            return Ok(filter.clone());
        }
        let filter = match self.older.remove(&query) {
            Some(filter) => filter,
            None => Arc::new(
                Filter::parse(Document::trusted(bytes))
                    .map_err(|error| Failure::refused(error.to_string()))?,
            ),
        };
        if self.recent.len() >= COMPILED {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(query, filter.clone());
        Ok(filter)
    }

    /// The query is gone; its number may be given again.
    pub(crate) fn forget(&mut self, query: u32) {
        self.recent.remove(&query);
        self.older.remove(&query);
    }
}

impl Paths {
    fn path(&mut self, path: &Path) -> Path {
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

    /// A copy of a tree with shared paths.
    fn share(&mut self, node: &Node) -> Node {
        match node {
            Node::And(children) => Node::And(self.share_all(children)),
            Node::Or(children) => Node::Or(self.share_all(children)),
            Node::Not(inner) => Node::Not(Box::new(self.share(inner))),
            Node::Whole(whole) => Node::Whole(whole.clone()),
            Node::Field(predicate) => Node::Field(Predicate {
                path: self.path(&predicate.path),
                test: match &predicate.test {
                    Test::ElementDocument(inner) => {
                        Test::ElementDocument(Box::new(self.share(inner)))
                    }
                    Test::ElementValue(inner) => Test::ElementValue(Box::new(self.share(inner))),
                    test => test.clone(),
                },
            }),
        }
    }

    fn share_all(&mut self, children: &[Node]) -> Vec<Node> {
        children.iter().map(|child| self.share(child)).collect()
    }

    fn release(&mut self, node: &Node) {
        match node {
            Node::And(children) | Node::Or(children) => {
                for child in children {
                    self.release(child);
                }
            }
            Node::Not(inner) => self.release(inner),
            Node::Whole(_) => {}
            Node::Field(predicate) => {
                if let Some(uses) = self.uses.get_mut(&predicate.path) {
                    *uses -= 1;
                    if *uses == 0 {
                        self.uses.remove(&predicate.path);
                    }
                }
                if let Test::ElementDocument(inner) | Test::ElementValue(inner) = &predicate.test {
                    self.release(inner);
                }
            }
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn memory(&self) -> usize {
        self.uses.len() * 160
    }
}

/// Whether a part takes much more room compiled than written.
fn is_large(node: &Node) -> bool {
    match node {
        Node::And(children) | Node::Or(children) => children.iter().any(is_large),
        Node::Not(inner) => is_large(inner),
        Node::Whole(whole) => !matches!(whole.as_ref(), Whole::Text(_)),
        Node::Field(predicate) => match &predicate.test {
            Test::Regex(_) => true,
            Test::In(list) => !list.patterns().is_empty(),
            Test::ElementDocument(inner) | Test::ElementValue(inner) => is_large(inner),
            _ => false,
        },
    }
}

/// Bytes behind a node.
fn node_bytes(node: &Node) -> usize {
    match node {
        Node::And(children) | Node::Or(children) => {
            children.len() * size_of::<Node>() + children.iter().map(node_bytes).sum::<usize>()
        }
        Node::Not(inner) => size_of::<Node>() + node_bytes(inner),
        Node::Whole(whole) => match whole.as_ref() {
            Whole::Text(text) => 4 * text.source().size() + size_of::<Whole>(),
            Whole::Expression(source, _) | Whole::Schema(source, _) => 4 * source.size(),
        },
        Node::Field(predicate) => match &predicate.test {
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
                size_of::<Node>() + node_bytes(inner)
            }
            _ => 0,
        },
    }
}

/// Bytes behind a value; short blocks cost as much as the smallest one.
fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(_) | Value::Document(_) | Value::Array(_) | Value::Binary(..) => {
            value.size().max(24) + 8
        }
        _ => 0,
    }
}
