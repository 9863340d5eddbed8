//! Deciding whether a document matches.

use std::cell::Cell;
use std::cmp::Ordering;

use super::{Comparison, FilterClause, Predicate, Test, Whole};
use crate::bson::{Document, ValueRef};
use crate::environment::EvaluationContext;
use crate::error::EvaluationFailure;
use crate::number::NumericValue;
use crate::order::compare;
use crate::pattern::Pattern;

/// Bytes of text that a regular expression reads for one step of fuel.
const REGEX_BYTES_LOG2: u32 = 8;

/// One document being matched.
pub(crate) struct DocumentMatcher<'a, 'e> {
    root: Document<'a>,
    environment: &'e EvaluationContext,
    position: Cell<Option<u32>>,
}

impl FilterClause {
    /// Whether the document matches this part of a filter, in normal form or
    /// not; fuel and time come from outside.
    pub fn matches_in(
        &self,
        document: Document<'_>,
        environment: &EvaluationContext,
    ) -> Result<bool, EvaluationFailure> {
        DocumentMatcher::new(document, environment).node(self, document)
    }
}

impl<'a, 'e> DocumentMatcher<'a, 'e> {
    pub(crate) const fn new(root: Document<'a>, environment: &'e EvaluationContext) -> Self {
        Self {
            root,
            environment,
            position: Cell::new(None),
        }
    }

    /// The position that the last array on the way matched at.
    pub(crate) fn position(&self) -> Option<u32> {
        self.position.get()
    }

    /// Whether a document matches a node.
    pub(crate) fn node(
        &self,
        node: &FilterClause,
        document: Document<'a>,
    ) -> Result<bool, EvaluationFailure> {
        match node {
            FilterClause::Field(predicate) => self.predicate(predicate, document),
            FilterClause::Whole(whole) => self.whole(whole),
            FilterClause::Not(inner) => self.unmatched(|| self.node(inner, document)),
            FilterClause::And(children) => {
                for child in children {
                    if !self.node(child, document)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            FilterClause::Or(children) => {
                for child in children {
                    if self.node(child, document)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    fn whole(&self, whole: &Whole) -> Result<bool, EvaluationFailure> {
        match whole {
            Whole::Expression(_, expression) => expression.is_true(self.root, self.environment),
            Whole::Schema(_, schema) => schema.allows(self.root, &self.environment.fuel),
            Whole::Text(text) => Ok(text.score(self.root, &self.environment.fuel)?.is_some()),
        }
    }

    /// A negation does not determine positions.
    fn unmatched(
        &self,
        decide: impl FnOnce() -> Result<bool, EvaluationFailure>,
    ) -> Result<bool, EvaluationFailure> {
        let before = self.position.get();
        let answer = decide();
        self.position.set(before);
        answer.map(|matched| !matched)
    }

    /// Whether something that the path finds passes the test.
    pub(crate) fn predicate(
        &self,
        predicate: &Predicate,
        document: Document<'a>,
    ) -> Result<bool, EvaluationFailure> {
        let fuel = &self.environment.fuel;
        let Predicate { path, test } = predicate;
        path.test_any(document, test.leaf(), fuel, &mut |value, offset| {
            let passed = self.test(test, value)?;
            if passed && offset.is_some() {
                self.position.set(offset);
            }
            Ok(passed)
        })
    }

    /// Whether one value matches conditions on values.
    fn value(&self, node: &FilterClause, value: ValueRef<'a>) -> Result<bool, EvaluationFailure> {
        match node {
            FilterClause::Field(predicate) => self.test(&predicate.test, Some(value)),
            FilterClause::Whole(whole) => self.whole(whole),
            FilterClause::Not(inner) => self.unmatched(|| self.value(inner, value)),
            FilterClause::And(children) => {
                for child in children {
                    if !self.value(child, value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            FilterClause::Or(children) => {
                for child in children {
                    if self.value(child, value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// Whether one value, or a missing one, passes a test.
    pub(crate) fn test(
        &self,
        test: &Test,
        value: Option<ValueRef<'a>>,
    ) -> Result<bool, EvaluationFailure> {
        Ok(match test {
            Test::Compare(comparison, operand) => compares(*comparison, operand.as_ref(), value),
            Test::Exists => value.is_some(),
            Test::Regex(pattern) => self.regex(pattern, value)?,
            Test::In(list) => {
                if list.holds(value) {
                    return Ok(true);
                }
                for pattern in list.patterns() {
                    if self.regex(pattern, value)? {
                        return Ok(true);
                    }
                }
                false
            }
            Test::Type(kinds) => value.is_some_and(|value| kinds.contains(value.kind())),
            Test::Mod { divisor, remainder } => {
                let number = value
                    .and_then(NumericValue::from_value)
                    .and_then(NumericValue::truncate);
                number.is_some_and(|number| number.wrapping_rem(*divisor) == *remainder)
            }
            Test::Size(size) => match value {
                Some(ValueRef::Array(array)) => array.iter().count() as u64 == *size,
                _ => false,
            },
            Test::Geo(test) => match value {
                Some(value) => test.passes(value, &self.environment.fuel)?,
                None => false,
            },
            Test::Near(near) => match value {
                Some(value) => near.distance(value, &self.environment.fuel)?.is_some(),
                None => false,
            },
            Test::Bits(test) => value.is_some_and(|value| test.passes(value)),
            Test::ElementDocument(inner) => self.elements(value, |value| match value {
                ValueRef::Document(document) => self.node(inner, document),
                ValueRef::Array(array) => self.node(inner, array.as_document()),
                _ => Ok(false),
            })?,
            Test::ElementValue(inner) => self.elements(value, |value| self.value(inner, value))?,
        })
    }

    fn elements(
        &self,
        value: Option<ValueRef<'a>>,
        matches: impl Fn(ValueRef<'a>) -> Result<bool, EvaluationFailure>,
    ) -> Result<bool, EvaluationFailure> {
        let Some(ValueRef::Array(array)) = value else {
            return Ok(false);
        };
        for (index, value) in (0..).zip(array.iter()) {
            self.environment.fuel.step()?;
            if matches(value)? {
                self.position.set(Some(index));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Text that the expression matches, or the same expression as a value.
    fn regex(
        &self,
        pattern: &Pattern,
        value: Option<ValueRef<'a>>,
    ) -> Result<bool, EvaluationFailure> {
        match value {
            Some(ValueRef::String(text) | ValueRef::Symbol(text)) => {
                self.environment
                    .fuel
                    .steps((text.len() >> REGEX_BYTES_LOG2) as u64)?;
                Ok(pattern.is_match(text))
            }
            Some(ValueRef::Regex(regex)) => {
                Ok(regex.pattern == pattern.source() && regex.options == pattern.options())
            }
            _ => Ok(false),
        }
    }
}

/// Compares within the operand's type. Null includes missing; MinKey and MaxKey compare with
/// everything.
fn compares(comparison: Comparison, operand: ValueRef<'_>, value: Option<ValueRef<'_>>) -> bool {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    match value {
        Some(value) if value.rank() == operand.rank() => {
            if value.is_nan() || operand.is_nan() {
                let both = value.is_nan() && operand.is_nan();
                return both && matches!(comparison, Equal | LessOrEqual | GreaterOrEqual);
            }
            let order = compare(value, operand);
            match comparison {
                Equal => order == Ordering::Equal,
                Less => order == Ordering::Less,
                LessOrEqual => order != Ordering::Greater,
                Greater => order == Ordering::Greater,
                GreaterOrEqual => order != Ordering::Less,
            }
        }
        other => match operand {
            ValueRef::Null => {
                other.is_none() && matches!(comparison, Equal | LessOrEqual | GreaterOrEqual)
            }
            ValueRef::MaxKey => matches!(comparison, Less | LessOrEqual),
            ValueRef::MinKey => matches!(comparison, Greater | GreaterOrEqual),
            _ => false,
        },
    }
}
