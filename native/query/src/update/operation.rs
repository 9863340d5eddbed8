//! Operations at a path: pure functions from the old value to the new.

use super::array::{Pull, Push};
use super::outcome::{OperatorRefusal, ValueOutcome, invalid, owned, remove};
use super::update_path::{UpdateSegment, document};
use super::{describe, refuse};
use crate::arithmetic::{self, Overflow, sized};
use crate::bson::{ArrayBuf, Value, ValueRef};
use crate::environment::EvaluationContext;
use crate::error::{Error, ParseLocation};
use crate::order::{compare, equal};

/// An operation with its argument.
#[derive(Debug)]
pub(crate) enum UpdateOperation {
    Set(Value),
    SetOnInsert(Value),
    Unset,
    Add(Value),
    Multiply(Value),
    Min(Value),
    Max(Value),
    RenameTo(Vec<UpdateSegment>),
    CurrentDate,
    CurrentTimestamp,
    Push(Push),
    AddToSet(Vec<Value>),
    Pop {
        first: bool,
    },
    Pull(Pull),
    PullAll(Vec<Value>),
    Bits {
        operation: BitOperation,
        operand: i64,
        wide: bool,
    },
}

/// A bit operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BitOperation {
    And,
    Or,
    Xor,
}

impl UpdateOperation {
    /// The operators of updates.
    pub(super) const NAMES: [&'static str; 15] = [
        "$set",
        "$setOnInsert",
        "$unset",
        "$inc",
        "$mul",
        "$min",
        "$max",
        "$rename",
        "$currentDate",
        "$push",
        "$addToSet",
        "$pop",
        "$pull",
        "$pullAll",
        "$bit",
    ];

    /// Parses the argument of an operator other than `$rename`.
    pub(super) fn parse(
        name: &str,
        argument: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<Self, Error> {
        Ok(match name {
            "$set" => Self::Set(owned(argument)),
            "$setOnInsert" => Self::SetOnInsert(owned(argument)),
            "$unset" => Self::Unset,
            "$inc" => Self::Add(number(name, argument, location)?),
            "$mul" => Self::Multiply(number(name, argument, location)?),
            "$min" => Self::Min(owned(argument)),
            "$max" => Self::Max(owned(argument)),
            "$currentDate" => current(argument, location)?,
            "$push" => Self::Push(Push::parse(argument, location)?),
            "$addToSet" => Self::AddToSet(each(argument, location)?),
            "$pop" => Self::Pop {
                first: end(argument, location)?,
            },
            "$pull" => Self::Pull(Pull::parse(argument, location)?),
            "$pullAll" => match argument.as_array() {
                Some(array) => Self::PullAll(array.iter().map(owned).collect()),
                None => return Err(refuse(location, "$pullAll takes an array")),
            },
            "$bit" => bits(argument, location)?,
            _ => {
                return Err(refuse(
                    location,
                    format!("{name} is not an update operator"),
                ));
            }
        })
    }

    /// Whether it creates what is missing on its path.
    pub(super) const fn creates(&self, inserting: bool) -> bool {
        match self {
            Self::SetOnInsert(_) => inserting,
            Self::Unset | Self::Pop { .. } | Self::Pull(_) | Self::PullAll(_) => false,
            _ => true,
        }
    }

    /// The new value for an old one (`None` if missing).
    pub(super) fn apply(
        &self,
        old: Option<ValueRef<'_>>,
        inserting: bool,
        environment: &EvaluationContext,
    ) -> Result<ValueOutcome, OperatorRefusal> {
        Ok(match self {
            Self::Set(value) => ValueOutcome::Set(value.clone()),
            Self::SetOnInsert(value) if inserting => ValueOutcome::Set(value.clone()),
            Self::SetOnInsert(_) | Self::RenameTo(_) => ValueOutcome::Keep,
            Self::Unset => ValueOutcome::Remove,
            Self::Add(by) => compute(arithmetic::ArithmeticOperator::Add, "$inc", old, by)?,
            Self::Multiply(by) => {
                compute(arithmetic::ArithmeticOperator::Multiply, "$mul", old, by)?
            }
            Self::Min(bound) => bounded(old, bound, std::cmp::Ordering::Less),
            Self::Max(bound) => bounded(old, bound, std::cmp::Ordering::Greater),
            Self::CurrentDate => ValueOutcome::Set(Value::Date(environment.now_ms)),
            Self::CurrentTimestamp => ValueOutcome::Set(timestamp(environment.now_ms)),
            Self::Push(push) => push.apply(old, environment)?,
            Self::AddToSet(values) => add_to_set(old, values, environment)?,
            Self::Pop { first } => pop(old, *first)?,
            Self::Pull(pull) => pull.apply(old, environment)?,
            Self::PullAll(values) => remove(old, "$pullAll", |value| {
                environment.fuel.steps(1 + values.len() as u64 / 16)?;
                Ok(values
                    .iter()
                    .any(|unwanted| equal(unwanted.as_ref(), value)))
            })?,
            Self::Bits {
                operation,
                operand,
                wide,
            } => bit(old, *operation, *operand, *wide)?,
        })
    }
}

fn number(
    name: &str,
    argument: ValueRef<'_>,
    location: &ParseLocation<'_>,
) -> Result<Value, Error> {
    if argument.is_number() {
        return Ok(owned(argument));
    }
    Err(refuse(
        location,
        format!("{name} takes a number, not {}", describe(argument)),
    ))
}

fn compute(
    operation: arithmetic::ArithmeticOperator,
    name: &str,
    old: Option<ValueRef<'_>>,
    by: &Value,
) -> Result<ValueOutcome, OperatorRefusal> {
    let by = by.as_ref();
    let Some(old) = old else {
        // A missing factor is zero, of the type of the other.
        return Ok(ValueOutcome::Set(match operation {
            arithmetic::ArithmeticOperator::Multiply => zero(by),
            _ => owned(by),
        }));
    };
    match arithmetic::compute(operation, old, by) {
        Some(Ok(value)) => Ok(ValueOutcome::Set(value)),
        Some(Err(Overflow)) => Err(invalid(format!("{name} would exceed 64 bits"))),
        None => Err(invalid(format!(
            "{name} cannot change a value of type {}",
            describe(old)
        ))),
    }
}

fn zero(like: ValueRef<'_>) -> Value {
    match like {
        ValueRef::Int32(_) => Value::Int32(0),
        ValueRef::Int64(_) => Value::Int64(0),
        ValueRef::Decimal(_) => Value::Decimal(crate::decimal::Decimal::ZERO),
        _ => Value::Double(0.0),
    }
}

fn bounded(
    old: Option<ValueRef<'_>>,
    bound: &Value,
    replace_if: std::cmp::Ordering,
) -> ValueOutcome {
    match old {
        Some(old) if compare(bound.as_ref(), old) != replace_if => ValueOutcome::Keep,
        _ => ValueOutcome::Set(bound.clone()),
    }
}

fn current(argument: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<UpdateOperation, Error> {
    let kind = match argument {
        ValueRef::Bool(_) => Some("date"),
        ValueRef::Document(inner) if inner.len() == 1 => {
            inner.get("$type").and_then(|kind| kind.as_str())
        }
        _ => None,
    };
    match kind {
        Some("date") => Ok(UpdateOperation::CurrentDate),
        Some("timestamp") => Ok(UpdateOperation::CurrentTimestamp),
        _ => Err(refuse(
            location,
            "$currentDate takes true or {\"$type\": \"date\" or \"timestamp\"}",
        )),
    }
}

fn timestamp(now_ms: i64) -> Value {
    let seconds = u64::try_from(now_ms / 1000).unwrap_or(0) & 0xFFFF_FFFF;
    Value::Timestamp(seconds << 32 | 1)
}

/// One value, or those of `$each`.
fn each(argument: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Vec<Value>, Error> {
    let values = argument.as_document().and_then(|inner| inner.get("$each"));
    match (values, argument) {
        (Some(ValueRef::Array(values)), ValueRef::Document(inner)) if inner.len() == 1 => {
            Ok(values.iter().map(owned).collect())
        }
        (Some(_), _) => Err(refuse(
            location,
            "$each takes an array and must be the only member of $addToSet",
        )),
        (None, value) => Ok(vec![owned(value)]),
    }
}

fn add_to_set(
    old: Option<ValueRef<'_>>,
    values: &[Value],
    environment: &EvaluationContext,
) -> Result<ValueOutcome, OperatorRefusal> {
    let array = match old {
        None => None,
        Some(ValueRef::Array(array)) => Some(array),
        Some(other) => {
            return Err(invalid(format!(
                "$addToSet cannot change a value of type {}",
                describe(other)
            )));
        }
    };
    let mut held: Vec<ValueRef<'_>> = array.iter().flat_map(crate::bson::Array::iter).collect();
    let before = held.len();
    for value in values {
        environment.fuel.steps(1 + held.len() as u64 / 16)?;
        if !held.iter().any(|present| equal(*present, value.as_ref())) {
            held.push(value.as_ref());
        }
    }
    if held.len() == before && old.is_some() {
        return Ok(ValueOutcome::Keep);
    }
    Ok(ValueOutcome::Set(Value::Array(ArrayBuf::from_iter(held))))
}

fn end(argument: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<bool, Error> {
    match argument.as_exact_i64() {
        Some(1) => Ok(false),
        Some(-1) => Ok(true),
        _ => Err(refuse(
            location,
            "$pop takes 1 for the last element or -1 for the first",
        )),
    }
}

fn pop(old: Option<ValueRef<'_>>, first: bool) -> Result<ValueOutcome, OperatorRefusal> {
    let array = match old {
        None => return Ok(ValueOutcome::Keep),
        Some(ValueRef::Array(array)) => array,
        Some(other) => {
            return Err(invalid(format!(
                "$pop cannot change a value of type {}",
                describe(other)
            )));
        }
    };
    if array.is_empty() {
        return Ok(ValueOutcome::Keep);
    }
    let rest: ArrayBuf = if first {
        array.iter().skip(1).collect()
    } else {
        array.iter().take(array.len().saturating_sub(1)).collect()
    };
    Ok(ValueOutcome::Set(Value::Array(rest)))
}

fn bits(argument: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<UpdateOperation, Error> {
    let inner = document(argument, "$bit", location)?;
    let only = inner.iter().next().filter(|_| inner.len() == 1);
    let detail = "$bit takes one of and, or, xor with an int or a long";
    let Some((name, operand)) = only else {
        return Err(refuse(location, detail));
    };
    let operation = match name {
        "and" => BitOperation::And,
        "or" => BitOperation::Or,
        "xor" => BitOperation::Xor,
        _ => return Err(refuse(&location.key(name), detail)),
    };
    match operand {
        ValueRef::Int32(int) => Ok(UpdateOperation::Bits {
            operation,
            operand: i64::from(int),
            wide: false,
        }),
        ValueRef::Int64(int) => Ok(UpdateOperation::Bits {
            operation,
            operand: int,
            wide: true,
        }),
        _ => Err(refuse(&location.key(name), detail)),
    }
}

fn bit(
    old: Option<ValueRef<'_>>,
    operation: BitOperation,
    operand: i64,
    wide: bool,
) -> Result<ValueOutcome, OperatorRefusal> {
    let (old, wide) = match old {
        None => (0, wide),
        Some(ValueRef::Int32(int)) => (i64::from(int), wide),
        Some(ValueRef::Int64(int)) => (int, true),
        Some(other) => {
            return Err(invalid(format!(
                "$bit cannot change a value of type {}",
                describe(other)
            )));
        }
    };
    let result = match operation {
        BitOperation::And => old & operand,
        BitOperation::Or => old | operand,
        BitOperation::Xor => old ^ operand,
    };
    Ok(ValueOutcome::Set(sized(result, !wide)))
}
