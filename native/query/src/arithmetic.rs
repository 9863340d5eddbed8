//! Sums and products over the four number types.
//!
//! The result of two ints is an int, or a long if it does not fit. It is a double if an operand is
//! a double, and a decimal if an operand is a decimal.

use crate::bson::{Value, ValueRef};
use crate::decimal::Decimal;
use crate::number::NumericValue;

/// A result that does not fit 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

/// The operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are self-explanatory")]
pub enum ArithmeticOperator {
    Add,
    Subtract,
    Multiply,
}

/// Computes a result; `None` if an operand is not a number.
pub fn compute(
    operation: ArithmeticOperator,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> Option<Result<Value, Overflow>> {
    let narrow = matches!((a, b), (ValueRef::Int32(_), ValueRef::Int32(_)));
    let result = match (NumericValue::from_value(a)?, NumericValue::from_value(b)?) {
        (NumericValue::Int(a), NumericValue::Int(b)) => {
            let result = match operation {
                ArithmeticOperator::Add => a.checked_add(b),
                ArithmeticOperator::Subtract => a.checked_sub(b),
                ArithmeticOperator::Multiply => a.checked_mul(b),
            };
            return Some(result.map(|result| sized(result, narrow)).ok_or(Overflow));
        }
        (a @ NumericValue::Decimal(_), b) | (a, b @ NumericValue::Decimal(_)) => {
            let (a, b) = (to_decimal(a), to_decimal(b));
            Value::Decimal(match operation {
                ArithmeticOperator::Add => a.plus(b),
                ArithmeticOperator::Subtract => a.minus(b),
                ArithmeticOperator::Multiply => a.times(b),
            })
        }
        (a, b) => {
            let (a, b) = (a.to_f64(), b.to_f64());
            Value::Double(match operation {
                ArithmeticOperator::Add => a + b,
                ArithmeticOperator::Subtract => a - b,
                ArithmeticOperator::Multiply => a * b,
            })
        }
    };
    Some(Ok(result))
}

/// A whole number: an int if `narrow` is set and it fits, otherwise a long.
pub(crate) fn sized(int: i64, narrow: bool) -> Value {
    match i32::try_from(int) {
        Ok(small) if narrow => Value::Int32(small),
        _ => Value::Int64(int),
    }
}

/// The number as a decimal; doubles in 15 digits.
pub(crate) fn to_decimal(number: NumericValue) -> Decimal {
    match number {
        NumericValue::Int(int) => Decimal::from(int),
        NumericValue::Double(double) => Decimal::from_f64(double),
        NumericValue::Decimal(decimal) => decimal,
    }
}
