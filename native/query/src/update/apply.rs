//! Applies an update along its paths.

use super::operation::UpdateOperation;
use super::outcome::{OperatorRefusal, ValueOutcome};
use super::parse::PathChange;
use super::tree::ValueTree;
use super::update_path::{ArrayFilters, UpdateSegment};
use super::{Applied, describe};
use crate::bson::{Document, DocumentBuf, DocumentWriter, Value, ValueRef};
use crate::environment::EvaluationContext;
use crate::error::{Error, ErrorCode};
use crate::limits::{ARRAY_ELEMENTS, DOCUMENT_BYTES};
use crate::path::PathSegment;

/// Applies all changes.
pub(super) fn apply(
    changes: &[PathChange],
    filters: &ArrayFilters,
    document: Document<'_>,
    applied: Applied,
    environment: &EvaluationContext,
) -> Result<DocumentBuf, Error> {
    let walk = UpdateWalk {
        filters,
        document,
        applied,
        environment,
    };
    let mut tree = ValueTree::of(document);
    for change in changes {
        walk.change(change, &mut tree)
            .map_err(|refusal| match refusal {
                OperatorRefusal::Invalid(detail) => Error {
                    code: ErrorCode::InvalidUpdate,
                    pointer: change.pointer.clone(),
                    detail,
                },
                OperatorRefusal::Failed(failure) => Error {
                    pointer: change.pointer.clone(),
                    ..failure.into_error()
                },
            })?;
    }
    Ok(tree.finish())
}

struct UpdateWalk<'a> {
    filters: &'a ArrayFilters,
    document: Document<'a>,
    applied: Applied,
    environment: &'a EvaluationContext,
}

fn invalid(detail: impl Into<String>) -> OperatorRefusal {
    OperatorRefusal::Invalid(detail.into())
}

impl UpdateWalk<'_> {
    fn change(&self, change: &PathChange, tree: &mut ValueTree) -> Result<(), OperatorRefusal> {
        let renamed;
        let operation = match &change.operation {
            UpdateOperation::RenameTo(source) => {
                let Some(value) = self.source(source)? else {
                    return Ok(());
                };
                if self.through_array(&change.steps) {
                    return Err(invalid("$rename cannot reach into an array"));
                }
                renamed = UpdateOperation::Set(value);
                &renamed
            }
            other => other,
        };
        self.walk(tree, &change.steps, operation)
    }

    /// The value that `$rename` moves, as it was before the update.
    fn source(&self, steps: &[UpdateSegment]) -> Result<Option<Value>, OperatorRefusal> {
        if self.through_array(steps) {
            return Err(invalid("$rename cannot reach into an array"));
        }
        let mut value = ValueRef::Document(self.document);
        for step in steps {
            let (ValueRef::Document(document), UpdateSegment::Field(segment)) = (value, step)
            else {
                return Ok(None);
            };
            match document.get(&segment.name) {
                Some(inner) => value = inner,
                None => return Ok(None),
            }
        }
        Ok(Some(value.into()))
    }

    fn through_array(&self, steps: &[UpdateSegment]) -> bool {
        let mut value = ValueRef::Document(self.document);
        for step in steps {
            match (value, step) {
                (ValueRef::Array(_), _) => return true,
                (ValueRef::Document(document), UpdateSegment::Field(segment)) => {
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

    fn walk(
        &self,
        tree: &mut ValueTree,
        steps: &[UpdateSegment],
        operation: &UpdateOperation,
    ) -> Result<(), OperatorRefusal> {
        self.environment.fuel.step()?;
        let Some((step, rest)) = steps.split_first() else {
            return Ok(());
        };
        tree.open();
        match (tree, step) {
            (ValueTree::Document(fields), UpdateSegment::Field(segment)) => {
                self.field(fields, segment, rest, operation)
            }
            (ValueTree::Array(elements), UpdateSegment::Field(segment)) => match segment.index {
                Some(index) => self.element(elements, index, rest, operation),
                None if operation.creates(self.applied.inserting) => {
                    Err(invalid(format!("an array has no field '{}'", segment.name)))
                }
                None => Ok(()),
            },
            (ValueTree::Array(elements), UpdateSegment::Matched) => match self.applied.position {
                Some(index) => self.element(elements, index, rest, operation),
                None => Err(invalid(
                    "the filter did not match an array, so there is no position for '$'",
                )),
            },
            (ValueTree::Document(fields), UpdateSegment::Matched) => match self.applied.position {
                Some(index) => self.field(
                    fields,
                    &PathSegment::new(&index.to_string()),
                    rest,
                    operation,
                ),
                None => Err(invalid(
                    "the filter did not match an array, so there is no position for '$'",
                )),
            },
            (ValueTree::Array(elements), UpdateSegment::All) => elements
                .iter_mut()
                .try_for_each(|element| self.at(element, rest, operation)),
            (ValueTree::Array(elements), UpdateSegment::Filtered(filter)) => {
                for element in elements {
                    if self.passes(*filter, element)? {
                        self.at(element, rest, operation)?;
                    }
                }
                Ok(())
            }
            (ValueTree::Value(value), UpdateSegment::Field(segment))
                if operation.creates(self.applied.inserting) =>
            {
                let (name, kind) = (&segment.name, describe(value.as_ref()));
                Err(invalid(format!(
                    "a value of type {kind} has no field '{name}'"
                )))
            }
            (_, UpdateSegment::Field(_)) => Ok(()),
            (_, step) => Err(invalid(format!(
                "'{}' needs an array",
                step.text(self.filters)
            ))),
        }
    }

    /// Applies to an existing value: further down, or here at the end of the path.
    fn at(
        &self,
        tree: &mut ValueTree,
        rest: &[UpdateSegment],
        operation: &UpdateOperation,
    ) -> Result<(), OperatorRefusal> {
        if !rest.is_empty() {
            return self.walk(tree, rest, operation);
        }
        match self.outcome(Some(tree), operation)? {
            ValueOutcome::Keep => {}
            ValueOutcome::Set(value) => *tree = ValueTree::Value(value),
            // The positions of the other elements stay.
            ValueOutcome::Remove => *tree = ValueTree::Value(Value::Null),
        }
        Ok(())
    }

    fn outcome(
        &self,
        tree: Option<&ValueTree>,
        operation: &UpdateOperation,
    ) -> Result<ValueOutcome, OperatorRefusal> {
        let old = tree.map(ValueTree::close);
        let outcome = operation.apply(
            old.as_ref().map(Value::as_ref),
            self.applied.inserting,
            self.environment,
        )?;
        if let ValueOutcome::Set(value) = &outcome {
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
        fields: &mut Vec<(String, ValueTree)>,
        segment: &PathSegment,
        rest: &[UpdateSegment],
        operation: &UpdateOperation,
    ) -> Result<(), OperatorRefusal> {
        let index = fields.iter().position(|(name, _)| **name == *segment.name);
        match index.and_then(|index| fields.get_mut(index)) {
            Some((_, tree)) if rest.is_empty() => match self.outcome(Some(tree), operation)? {
                ValueOutcome::Keep => {}
                ValueOutcome::Set(value) => *tree = ValueTree::Value(value),
                ValueOutcome::Remove => fields.retain(|(name, _)| **name != *segment.name),
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
        elements: &mut Vec<ValueTree>,
        index: u32,
        rest: &[UpdateSegment],
        operation: &UpdateOperation,
    ) -> Result<(), OperatorRefusal> {
        let index = index as usize;
        if let Some(element) = elements.get_mut(index) {
            return self.at(element, rest, operation);
        }
        let Some(tree) = self.created(rest, operation)? else {
            return Ok(());
        };
        if index >= ARRAY_ELEMENTS {
            return Err(invalid(format!(
                "an update of a position may extend an array to at most {ARRAY_ELEMENTS} elements"
            )));
        }
        self.environment.fuel.bytes((index - elements.len()) * 8)?;
        elements.resize_with(index, || ValueTree::Value(Value::Null));
        elements.push(tree);
        Ok(())
    }

    /// The value for a missing path: documents along the path, and the operation's value at its
    /// end. `None` if the operation creates nothing.
    fn created(
        &self,
        rest: &[UpdateSegment],
        operation: &UpdateOperation,
    ) -> Result<Option<ValueTree>, OperatorRefusal> {
        if !operation.creates(self.applied.inserting) {
            return Ok(None);
        }
        let Some((step, rest)) = rest.split_first() else {
            return Ok(match self.outcome(None, operation)? {
                ValueOutcome::Set(value) => Some(ValueTree::Value(value)),
                _ => None,
            });
        };
        let UpdateSegment::Field(segment) = step else {
            let text = step.text(self.filters);
            return Err(invalid(format!(
                "'{text}' requires an array, which is missing"
            )));
        };
        let inner = self.created(rest, operation)?;
        Ok(inner.map(|tree| ValueTree::Document(vec![(segment.name.to_string(), tree)])))
    }

    fn passes(&self, filter: usize, element: &ValueTree) -> Result<bool, OperatorRefusal> {
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
