//! Parsing a filter's documents: connectives and fields.

use std::sync::Arc;

use super::{FilterClause, Predicate, Test, Whole};
use crate::bson::{Document, Value, ValueRef};
use crate::error::{Error, ErrorCode, ParseLocation};
use crate::expression::Expression;
use crate::limits::{FILTER_DEPTH, FILTER_NODES};
use crate::path::FieldPath;
use crate::pattern::Pattern;
use crate::schema::Schema;
use crate::text::TextQuery;

/// The state of parsing.
#[derive(Debug, Default)]
pub(crate) struct FilterParser {
    nodes: usize,
    /// Whether this is inside `$elemMatch`, where the whole document is not available.
    in_element: bool,
    /// How many of `$or`, `$nor`, `$not` and `$elemMatch` this is inside of.
    alternatives: usize,
    /// How many of `$nor` and `$not` this is inside of.
    negations: usize,
    /// Whether there is a `$text`, or a `$near`.
    has_text: bool,
    has_near: bool,
    /// Why the filter depends on the current time, where it first does.
    pub(crate) moment: Option<Error>,
}

/// The error for a malformed filter.
pub(super) fn refuse(location: &ParseLocation<'_>, detail: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidFilter, location, detail)
}

/// A refusal of an operator that does not exist here.
pub(super) fn unsupported(location: &ParseLocation<'_>, name: &str) -> Error {
    let detail = match name {
        "$where" | "$function" | "$accumulator" => {
            format!("{name} runs JavaScript, which is never allowed")
        }
        _ => format!("the operator {name} is unknown or not supported"),
    };
    Error::new(ErrorCode::UnsupportedOperator, location, detail)
}

impl FilterParser {
    /// Counts a node of the filter.
    pub(crate) fn count(&mut self, location: &ParseLocation<'_>) -> Result<(), Error> {
        self.nodes += 1;
        if self.nodes > FILTER_NODES {
            let detail = format!("a filter may have at most {FILTER_NODES} nodes");
            return Err(Error::new(ErrorCode::FilterTooLarge, location, detail));
        }
        Ok(())
    }

    fn deeper(depth: usize, location: &ParseLocation<'_>) -> Result<usize, Error> {
        if depth >= FILTER_DEPTH {
            let detail = format!("a filter may be nested at most {FILTER_DEPTH} levels deep");
            return Err(Error::new(ErrorCode::FilterTooLarge, location, detail));
        }
        Ok(depth + 1)
    }

    /// A document of fields and connectives.
    pub(crate) fn filter(
        &mut self,
        document: Document<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<FilterClause, Error> {
        let mut all = Vec::new();
        for (key, value) in document.iter() {
            let here = location.key(key);
            if key.starts_with('$') {
                all.extend(self.connective(key, value, depth, &here)?);
            } else {
                self.field(&FieldPath::new(key), value, depth, &here, &mut all)?;
            }
        }
        Ok(FilterClause::And(all))
    }

    fn connective(
        &mut self,
        name: &str,
        value: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<Option<FilterClause>, Error> {
        self.count(location)?;
        match name {
            "$and" => self
                .branches(value, depth, location)
                .map(|all| Some(FilterClause::And(all))),
            "$or" => {
                self.alternatives += 1;
                let any = self.branches(value, depth, location);
                self.alternatives -= 1;
                Ok(Some(FilterClause::Or(any?)))
            }
            "$nor" => {
                self.negate(1);
                let any = self.branches(value, depth, location);
                self.negate(-1);
                Ok(Some(FilterClause::Not(Box::new(FilterClause::Or(any?)))))
            }
            "$comment" => Ok(None),
            "$expr" if self.in_element => {
                Err(refuse(location, "$expr is not allowed inside $elemMatch"))
            }
            "$expr" => self.whole_expression(value, location).map(Some),
            "$jsonSchema" => {
                let schema = Schema::parse(value, location)?;
                Ok(Some(FilterClause::Whole(Arc::new(Whole::Schema(
                    value.into(),
                    schema,
                )))))
            }
            "$text" => {
                if self.negations > 0 || std::mem::replace(&mut self.has_text, true) {
                    return Err(refuse(
                        location,
                        "$text is allowed only once in a filter, and not under a negation",
                    ));
                }
                Ok(Some(FilterClause::Whole(Arc::new(Whole::Text(
                    TextQuery::parse(value, location)?,
                )))))
            }
            _ => Err(unsupported(location, name)),
        }
    }

    fn negate(&mut self, by: isize) {
        self.negations = self.negations.saturating_add_signed(by);
        self.alternatives = self.alternatives.saturating_add_signed(by);
    }

    /// `$near` orders the whole result, so it must hold for all of it.
    pub(super) fn ranking(
        &mut self,
        name: &str,
        location: &ParseLocation<'_>,
    ) -> Result<(), Error> {
        let misplaced = self.in_element || self.alternatives > 0;
        if misplaced || std::mem::replace(&mut self.has_near, true) {
            return Err(refuse(
                location,
                format!("{name} is allowed only once in a filter, at its top level or in $and"),
            ));
        }
        Ok(())
    }

    fn whole_expression(
        &mut self,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<FilterClause, Error> {
        let expression = Expression::parse(value, location)?;
        if let Some(moment) = expression.moment() {
            self.moment.get_or_insert_with(|| moment.clone());
        }
        Ok(FilterClause::Whole(Arc::new(Whole::Expression(
            value.into(),
            expression,
        ))))
    }

    fn branches(
        &mut self,
        value: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<Vec<FilterClause>, Error> {
        let depth = Self::deeper(depth, location)?;
        let Some(array) = value.as_array().filter(|array| !array.is_empty()) else {
            return Err(refuse(
                location,
                "an array of at least one filter is expected",
            ));
        };
        let branches = array.iter().enumerate().map(|(index, branch)| {
            let here = location.index(index);
            match branch {
                ValueRef::Document(document) => self.filter(document, depth, &here),
                _ => Err(refuse(&here, "a filter is a document")),
            }
        });
        branches.collect()
    }

    /// A field's condition: operators, a regular expression, or a value to be equal to.
    fn field(
        &mut self,
        path: &FieldPath,
        value: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
        all: &mut Vec<FilterClause>,
    ) -> Result<(), Error> {
        if let ValueRef::Document(document) = value
            && has_operators(document)
        {
            return self.operators(path, document, depth, location, all);
        }
        self.count(location)?;
        let test = match value {
            ValueRef::Regex(regex) => Test::Regex(pattern(regex.pattern, regex.options, location)?),
            _ => self.equal(value, location)?,
        };
        all.push(FilterClause::Field(Predicate {
            path: path.clone(),
            test,
        }));
        Ok(())
    }

    /// All operators of one document on one path.
    pub(super) fn operators(
        &mut self,
        path: &FieldPath,
        document: Document<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
        all: &mut Vec<FilterClause>,
    ) -> Result<(), Error> {
        for (name, value) in document.iter() {
            let here = location.key(name);
            if !name.starts_with('$') {
                return Err(refuse(&here, "operators and fields cannot be mixed"));
            }
            self.count(&here)?;
            all.extend(self.operator(path, name, value, document, depth, &here)?);
        }
        Ok(())
    }

    /// `$not` over operators or a regular expression.
    pub(super) fn negation(
        &mut self,
        path: &FieldPath,
        value: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<FilterClause, Error> {
        let mut all = Vec::new();
        match value {
            ValueRef::Regex(regex) => {
                let test = Test::Regex(pattern(regex.pattern, regex.options, location)?);
                all.push(FilterClause::Field(Predicate {
                    path: path.clone(),
                    test,
                }));
            }
            ValueRef::Document(document) if has_operators(document) => {
                let depth = Self::deeper(depth, location)?;
                self.negate(1);
                let inner = self.operators(path, document, depth, location, &mut all);
                self.negate(-1);
                inner?;
            }
            _ => {
                return Err(refuse(
                    location,
                    "$not takes operators or a regular expression",
                ));
            }
        }
        Ok(FilterClause::Not(Box::new(FilterClause::And(all))))
    }

    /// `$elemMatch`, of values when its first key is an operator of fields.
    pub(crate) fn element(
        &mut self,
        value: ValueRef<'_>,
        depth: usize,
        location: &ParseLocation<'_>,
    ) -> Result<Test, Error> {
        let depth = Self::deeper(depth, location)?;
        let Some(document) = value.as_document() else {
            return Err(refuse(location, "$elemMatch takes a document"));
        };
        let first = document.iter().next().map_or("", |(key, _)| key);
        let of_values = has_operators(document) && !matches!(first, "$and" | "$or" | "$nor");
        if matches!(first, "$where" | "$expr" | "$text" | "$jsonSchema") {
            return Err(refuse(
                location,
                format!("{first} is not allowed inside $elemMatch"),
            ));
        }
        if of_values {
            let mut all = Vec::new();
            let outside = std::mem::replace(&mut self.in_element, true);
            let inner = self.operators(&FieldPath::itself(), document, depth, location, &mut all);
            self.in_element = outside;
            inner?;
            return Ok(Test::ElementValue(Box::new(FilterClause::And(all))));
        }
        let outside = std::mem::replace(&mut self.in_element, true);
        let node = self.filter(document, depth, location);
        self.in_element = outside;
        Ok(Test::ElementDocument(Box::new(node?)))
    }
}

/// Whether a document contains operators: its first key starts with `$`, and it is not a reference
/// (`{$ref, $id}`).
fn has_operators(document: Document<'_>) -> bool {
    let is_operator = document
        .iter()
        .next()
        .is_some_and(|(key, _)| key.starts_with('$'));
    let is_reference =
        matches!(document.get("$ref"), Some(ValueRef::String(_))) && document.get("$id").is_some();
    is_operator && !is_reference
}

/// Compiles a regular expression.
pub(super) fn pattern(
    source: &str,
    options: &str,
    location: &ParseLocation<'_>,
) -> Result<Pattern, Error> {
    Pattern::new(source, options).map_err(|why| Error::new(ErrorCode::InvalidRegex, location, why))
}

/// An operand, owned.
pub(super) fn owned(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Value, Error> {
    if matches!(value, ValueRef::Undefined) {
        return Err(refuse(location, "undefined cannot be compared with"));
    }
    Ok(super::normal::operand(value))
}
