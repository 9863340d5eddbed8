//! Walking the paths of an update.

use super::operation::{Operation, Outcome, Refusal};
use super::parse::Change;
use super::place::{Filters, Step};
use super::tree::Tree;
use super::{Applied, describe};
use crate::bson::{Document, DocumentBuf, DocumentWriter, Value, ValueRef};
use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::limits::{ARRAY_ELEMENTS, DOCUMENT_BYTES};
use crate::path::Segment;

/// Applies all changes.
pub(super) fn apply(
    changes: &[Change],
    filters: &Filters,
    document: Document<'_>,
    applied: Applied,
    environment: &Environment,
) -> Result<DocumentBuf, Error> {
    let walk = Walk {
        filters,
        document,
        applied,
        environment,
    };
    let mut tree = Tree::of(document);
    for change in changes {
        walk.change(change, &mut tree)
            .map_err(|refusal| match refusal {
                Refusal::Invalid(detail) => Error {
                    code: Code::InvalidUpdate,
                    pointer: change.pointer.clone(),
                    detail,
                },
                Refusal::Failed(failure) => Error {
                    pointer: change.pointer.clone(),
                    ..failure.into_error()
                },
            })?;
    }
    Ok(tree.finish())
}

struct Walk<'a> {
    filters: &'a Filters,
    document: Document<'a>,
    applied: Applied,
    environment: &'a Environment,
}

fn invalid(detail: impl Into<String>) -> Refusal {
    Refusal::Invalid(detail.into())
}

impl Walk<'_> {
    fn change(&self, change: &Change, tree: &mut Tree) -> Result<(), Refusal> {
        let renamed;
        let operation = match &change.operation {
            Operation::RenameTo(source) => {
                let Some(value) = self.source(source)? else {
                    return Ok(());
                };
                if self.through_array(&change.steps) {
                    return Err(invalid("$rename cannot reach into an array"));
                }
                renamed = Operation::Set(value);
                &renamed
            }
            other => other,
        };
        self.walk(tree, &change.steps, operation)
    }

    /// The value that `$rename` takes away, as it was before the update.
    fn source(&self, steps: &[Step]) -> Result<Option<Value>, Refusal> {
        if self.through_array(steps) {
            return Err(invalid("$rename cannot reach into an array"));
        }
        let mut value = ValueRef::Document(self.document);
        for step in steps {
            let (ValueRef::Document(document), Step::Field(segment)) = (value, step) else {
                return Ok(None);
            };
            match document.get(&segment.name) {
                Some(inner) => value = inner,
                None => return Ok(None),
            }
        }
        Ok(Some(value.into()))
    }

    fn through_array(&self, steps: &[Step]) -> bool {
        let mut value = ValueRef::Document(self.document);
        for step in steps {
            match (value, step) {
                (ValueRef::Array(_), _) => return true,
                (ValueRef::Document(document), Step::Field(segment)) => {
                    match document.get(&segment.name) {
                        Some(inner) => value = inner,
                        None => return false,
                    }
                }
                _ => return false,
            }
        }
        false
    }

    fn walk(&self, tree: &mut Tree, steps: &[Step], operation: &Operation) -> Result<(), Refusal> {
        self.environment.fuel.step()?;
        let Some((step, rest)) = steps.split_first() else {
            return Ok(());
        };
        tree.open();
        match (tree, step) {
            (Tree::Document(fields), Step::Field(segment)) => {
                self.field(fields, segment, rest, operation)
            }
            (Tree::Array(elements), Step::Field(segment)) => match segment.index {
                Some(index) => self.element(elements, index, rest, operation),
                None if operation.creates(self.applied.inserting) => {
                    Err(invalid(format!("an array has no field '{}'", segment.name)))
                }
                None => Ok(()),
            },
            (Tree::Array(elements), Step::Matched) => match self.applied.position {
                Some(index) => self.element(elements, index, rest, operation),
                None => Err(invalid(
                    "the filter did not match an array, so there is no position for '$'",
                )),
            },
            (Tree::Document(fields), Step::Matched) => match self.applied.position {
                Some(index) => {
                    self.field(fields, &Segment::new(&index.to_string()), rest, operation)
                }
                None => Err(invalid(
                    "the filter did not match an array, so there is no position for '$'",
                )),
            },
            (Tree::Array(elements), Step::All) => elements
                .iter_mut()
                .try_for_each(|element| self.at(element, rest, operation)),
            (Tree::Array(elements), Step::Filtered(filter)) => {
                for element in elements {
                    if self.passes(*filter, element)? {
                        self.at(element, rest, operation)?;
                    }
                }
                Ok(())
            }
            (Tree::Value(value), Step::Field(segment))
                if operation.creates(self.applied.inserting) =>
            {
                let (name, kind) = (&segment.name, describe(value.as_ref()));
                Err(invalid(format!(
                    "a value of type {kind} has no field '{name}'"
                )))
            }
            (_, Step::Field(_)) => Ok(()),
            (_, step) => Err(invalid(format!(
                "'{}' needs an array",
                step.text(self.filters)
            ))),
        }
    }

    /// Applies to a value that is there: further down, or here at the end.
    fn at(&self, tree: &mut Tree, rest: &[Step], operation: &Operation) -> Result<(), Refusal> {
        if !rest.is_empty() {
            return self.walk(tree, rest, operation);
        }
        match self.outcome(Some(tree), operation)? {
            Outcome::Keep => {}
            Outcome::Set(value) => *tree = Tree::Value(value),
            // The places of the other elements stay.
            Outcome::Remove => *tree = Tree::Value(Value::Null),
        }
        Ok(())
    }

    fn outcome(&self, tree: Option<&Tree>, operation: &Operation) -> Result<Outcome, Refusal> {
        let old = tree.map(Tree::close);
        let outcome = operation.apply(
            old.as_ref().map(Value::as_ref),
            self.applied.inserting,
            self.environment,
        )?;
        if let Outcome::Set(value) = &outcome {
            self.environment
                .fuel
                .steps(1 + value.size() as u64 / 1024)?;
            if value.size() > DOCUMENT_BYTES {
                return Err(invalid("the document would become too large"));
            }
        }
        Ok(outcome)
    }

    fn field(
        &self,
        fields: &mut Vec<(String, Tree)>,
        segment: &Segment,
        rest: &[Step],
        operation: &Operation,
    ) -> Result<(), Refusal> {
        let found = fields.iter().position(|(name, _)| **name == *segment.name);
        match found.and_then(|index| fields.get_mut(index)) {
            Some((_, tree)) if rest.is_empty() => match self.outcome(Some(tree), operation)? {
                Outcome::Keep => {}
                Outcome::Set(value) => *tree = Tree::Value(value),
                Outcome::Remove => fields.retain(|(name, _)| **name != *segment.name),
            },
            Some((_, tree)) => self.walk(tree, rest, operation)?,
            None => {
                if let Some(tree) = self.created(rest, operation)? {
                    fields.push((segment.name.to_string(), tree));
                }
            }
        }
        Ok(())
    }

    fn element(
        &self,
        elements: &mut Vec<Tree>,
        index: u32,
        rest: &[Step],
        operation: &Operation,
    ) -> Result<(), Refusal> {
        let index = index as usize;
        if let Some(element) = elements.get_mut(index) {
            return self.at(element, rest, operation);
        }
        let Some(tree) = self.created(rest, operation)? else {
            return Ok(());
        };
        if index >= ARRAY_ELEMENTS {
            return Err(invalid(format!(
                "an array grows to at most {ARRAY_ELEMENTS} elements by a position"
            )));
        }
        self.environment.fuel.bytes((index - elements.len()) * 8)?;
        elements.resize_with(index, || Tree::Value(Value::Null));
        elements.push(tree);
        Ok(())
    }

    /// What a missing place becomes: documents down the path, the operation's
    /// value at its end. None if the operation creates nothing.
    fn created(&self, rest: &[Step], operation: &Operation) -> Result<Option<Tree>, Refusal> {
        if !operation.creates(self.applied.inserting) {
            return Ok(None);
        }
        let Some((step, rest)) = rest.split_first() else {
            return Ok(match self.outcome(None, operation)? {
                Outcome::Set(value) => Some(Tree::Value(value)),
                _ => None,
            });
        };
        let Step::Field(segment) = step else {
            let text = step.text(self.filters);
            return Err(invalid(format!(
                "'{text}' needs an array, and there is none"
            )));
        };
        let inner = self.created(rest, operation)?;
        Ok(inner.map(|tree| Tree::Document(vec![(segment.name.to_string(), tree)])))
    }

    fn passes(&self, filter: usize, element: &Tree) -> Result<bool, Refusal> {
        self.environment.fuel.step()?;
        let Some(matching) = self.filters.filter(filter) else {
            return Ok(false);
        };
        let mut writer = DocumentWriter::new();
        writer.append(self.filters.name(filter), element.close().as_ref());
        self.environment.fuel.steps(writer.len() as u64 / 1024)?;
        let wrapped = DocumentBuf::from(writer);
        Ok(matching.matches_in(wrapped.as_ref(), self.environment)?)
    }
}
