//! The outcome of an operation on a value.

use super::describe;
use crate::bson::{ArrayWriter, Value, ValueRef};
use crate::error::EvaluationFailure;

/// The effect on the value.
pub(super) enum ValueOutcome {
    Keep,
    Set(Value),
    Remove,
}

/// Why an operation rejects a value.
pub(super) enum OperatorRefusal {
    Invalid(String),
    Failed(EvaluationFailure),
}

impl From<EvaluationFailure> for OperatorRefusal {
    fn from(failure: EvaluationFailure) -> Self {
        Self::Failed(failure)
    }
}

pub(super) fn invalid(detail: impl Into<String>) -> OperatorRefusal {
    OperatorRefusal::Invalid(detail.into())
}

/// Removes elements of an array; keeps the value if there are none to remove.
pub(super) fn remove(
    old: Option<ValueRef<'_>>,
    name: &str,
    mut unwanted: impl FnMut(ValueRef<'_>) -> Result<bool, OperatorRefusal>,
) -> Result<ValueOutcome, OperatorRefusal> {
    let array = match old {
        None => return Ok(ValueOutcome::Keep),
        Some(ValueRef::Array(array)) => array,
        Some(other) => {
            return Err(invalid(format!(
                "{name} cannot change a value of type {}",
                describe(other)
            )));
        }
    };
    let (mut kept, mut all) = (ArrayWriter::new(), true);
    for value in array.iter() {
        if unwanted(value)? {
            all = false;
        } else {
            kept.push(value);
        }
    }
    Ok(if all {
        ValueOutcome::Keep
    } else {
        ValueOutcome::Set(Value::Array(kept.into()))
    })
}

/// An argument, owned.
pub(super) fn owned(value: ValueRef<'_>) -> Value {
    value.into()
}
