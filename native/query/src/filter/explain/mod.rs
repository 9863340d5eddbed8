//! Why a filter decides as it does about one document, for people.
//!
//! Nothing is recorded while documents are matched: filter and document determine the explanation
//! at any time. The verdict is the matcher's own. Each part of the filter is then evaluated
//! separately, with its own fuel, so that parts are explained that the matcher never evaluated.

mod words;

use super::{Filter, FilterClause, Predicate};
use crate::bson::{ArrayWriter, Document, DocumentWriter, Value, ValueRef};
use crate::ejson::{Form, document_to_string, value_to_string};
use crate::environment::EvaluationContext;
use crate::error::EvaluationFailure;
use crate::path::Leaf;

/// The maximum number of values shown for one path.
const VALUES: usize = 5;
/// The maximum number of characters shown of a value or a clause.
const CHARACTERS: usize = 300;
/// The maximum number of parts shown of a filter.
const PARTS: usize = 200;

/// How the parts of a filter make one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connective {
    /// All of them must hold.
    All,
    /// One of them must hold.
    Any,
    /// It is one test.
    Test,
}

impl Connective {
    const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Any => "any",
            Self::Test => "test",
        }
    }
}

/// A part of a filter, and its result for a document.
#[derive(Debug, Clone, PartialEq)]
pub struct FilterReason {
    /// How its parts make one answer.
    pub how: Connective,
    /// Whether it holds, or why that is not known.
    pub holds: Result<bool, EvaluationFailure>,
    /// Whether it determines the result of the whole filter: in a conjunction the parts that do not
    /// hold, in a disjunction those that hold, or all if the parts agree.
    pub decides: bool,
    /// The part as a filter: Extended JSON, cut where it is long.
    pub clause: String,
    /// What the test's path found in the document, likewise; a value that is not there is `missing`.
    pub found: Vec<String>,
    /// Whether the path found more.
    pub more: bool,
    /// The same in a sentence.
    pub sentence: String,
    /// The parts that it consists of.
    pub parts: Vec<Self>,
}

/// Why a document matches a filter, or does not.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The result of the matcher.
    pub matches: Result<bool, EvaluationFailure>,
    /// The whole filter.
    pub reason: FilterReason,
    /// Whether parts were left out.
    pub cut: bool,
}

impl Filter {
    /// Explains why a document matches, or does not, at a time (milliseconds since 1970).
    #[must_use]
    pub fn explain(&self, document: Document<'_>, now_ms: i64) -> Explanation {
        let mut left = PARTS;
        let mut reason = explained(self.root(), document, now_ms, &mut left);
        let matches = self.matches_in(document, &EvaluationContext::at(now_ms));
        reason.holds.clone_from(&matches);
        reason.settle(true);
        Explanation {
            matches,
            reason,
            cut: left == 0,
        }
    }
}

fn explained(
    node: &FilterClause,
    document: Document<'_>,
    now_ms: i64,
    left: &mut usize,
) -> FilterReason {
    *left = left.saturating_sub(1);
    let holds = node.matches_in(document, &EvaluationContext::at(now_ms));
    let clause = words::clause(node);
    let (how, children) = match node {
        FilterClause::And(children) => (Connective::All, children.as_slice()),
        FilterClause::Or(children) => (Connective::Any, children.as_slice()),
        _ => (Connective::Test, [].as_slice()),
    };
    let mut parts = Vec::new();
    for child in children {
        if *left > 0 {
            parts.push(explained(child, document, now_ms, left));
        }
    }
    let (found, more) = match node {
        FilterClause::Field(predicate) => values(predicate, document),
        FilterClause::Not(inner) => match inner.as_ref() {
            FilterClause::Field(predicate) => values(predicate, document),
            _ => (Vec::new(), false),
        },
        _ => (Vec::new(), false),
    };
    FilterReason {
        sentence: words::sentence(node, &holds, &found, document),
        how,
        holds,
        decides: false,
        clause,
        found,
        more,
        parts,
    }
}

/// The values at a predicate's path; errors are reported by the test itself.
fn values(predicate: &Predicate, document: Document<'_>) -> (Vec<String>, bool) {
    let mut found = Vec::new();
    let mut more = false;
    let environment = EvaluationContext::default();
    let leaf = match predicate.test.leaf() {
        // The elements of an array are shown as the array.
        Leaf::Elements if is_array_at(predicate, document) => Leaf::Whole,
        leaf => leaf,
    };
    let walked = predicate
        .path
        .any(document, leaf, &environment.fuel, &mut |value, _| {
            more = found.len() == VALUES;
            if !more {
                found.push(value.map_or_else(
                    || "missing".to_owned(),
                    |value| cut(&value_to_string(value, Form::Relaxed)),
                ));
            }
            Ok(more)
        });
    (found, more || walked.is_err())
}

fn is_array_at(predicate: &Predicate, document: Document<'_>) -> bool {
    match predicate.path.segments() {
        [only] => matches!(document.get(&only.name), Some(ValueRef::Array(_))),
        _ => false,
    }
}

/// The beginning of a text.
pub(super) fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(CHARACTERS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

impl FilterReason {
    /// Marks the parts that determine the result.
    fn settle(&mut self, decides: bool) {
        self.decides = decides;
        for part in &mut self.parts {
            let same = match (&self.holds, &part.holds) {
                (Ok(whole), Ok(one)) => whole == one,
                (Err(_), Err(_)) => true,
                _ => false,
            };
            part.settle(decides && same);
        }
    }

    /// The tests that determine the result.
    pub fn deciding(&self) -> Vec<&Self> {
        if self.parts.is_empty() {
            return if self.decides { vec![self] } else { Vec::new() };
        }
        self.parts.iter().flat_map(Self::deciding).collect()
    }

    fn write(&self) -> Vec<u8> {
        let mut writer = DocumentWriter::new();
        writer.append("how", ValueRef::String(self.how.name()));
        match &self.holds {
            Ok(holds) => writer.append("holds", ValueRef::Bool(*holds)),
            Err(failure) => {
                writer.append("holds", ValueRef::Null);
                writer.append("failure", ValueRef::String(&failure.to_string()));
            }
        }
        writer.append("decides", ValueRef::Bool(self.decides));
        writer.append("clause", ValueRef::String(&self.clause));
        writer.append("sentence", ValueRef::String(&self.sentence));
        let mut found = ArrayWriter::new();
        for value in &self.found {
            found.push(ValueRef::String(value));
        }
        writer.append("found", Value::Array(found.into()).as_ref());
        writer.append("more", ValueRef::Bool(self.more));
        let mut parts = ArrayWriter::new();
        for part in &self.parts {
            parts.push(ValueRef::Document(Document::trusted(&part.write())));
        }
        writer.append("parts", Value::Array(parts.into()).as_ref());
        writer.finish()
    }
}

impl Explanation {
    /// The explanation as JSON text.
    #[must_use]
    pub fn json(&self) -> String {
        let mut writer = DocumentWriter::new();
        match &self.matches {
            Ok(matches) => writer.append("matches", ValueRef::Bool(*matches)),
            Err(failure) => {
                writer.append("matches", ValueRef::Null);
                writer.append("failure", ValueRef::String(&failure.to_string()));
            }
        }
        writer.append(
            "reason",
            ValueRef::Document(Document::trusted(&self.reason.write())),
        );
        writer.append("cut", ValueRef::Bool(self.cut));
        document_to_string(Document::trusted(&writer.finish()), Form::Relaxed)
    }
}
