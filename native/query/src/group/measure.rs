//! The measures of a group.
//!
//! Integers are summed as integers, doubles and decimals each exactly ([`ExactSum`],
//! [`DecimalSum`]), and the result is rounded once, when it is shown. So the sum does not depend on
//! the order in which documents come and go. Of integers it is an integer, or a double if that does
//! not hold it; with doubles it is a double; with decimals a decimal, to which the sum of the
//! doubles is added in 15 digits. Other values are not summed.

use super::GroupOperator;
use super::decimals::DecimalSum;
use super::value_counts::{Ordered, ValueCounts};
use crate::bson::{DocumentWriter, Value, ValueRef};
use crate::decimal::Decimal;
use crate::error::EvaluationFailure;
use crate::exact::ExactSum;

/// The contribution of a document to a measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MeasureValue {
    /// Nothing: the measure is a count, or the value does not contribute.
    Nothing,
    Int(i32),
    Long(i64),
    /// The bits of a double.
    Double(u64),
    /// The bytes of a decimal.
    Decimal([u8; 16]),
    Ordered(Box<Ordered>),
}

impl MeasureValue {
    pub(super) fn of(
        operation: GroupOperator,
        value: Option<ValueRef<'_>>,
    ) -> Result<Self, EvaluationFailure> {
        let Some(value) = value else {
            return Ok(Self::Nothing);
        };
        Ok(match (operation, value) {
            (GroupOperator::Count, _) | (_, ValueRef::Null | ValueRef::Undefined) => Self::Nothing,
            (GroupOperator::Min | GroupOperator::Max, value) => {
                Self::Ordered(Box::new(Ordered::of(value)?))
            }
            (_, ValueRef::Int32(int)) => Self::Int(int),
            (_, ValueRef::Int64(int)) => Self::Long(int),
            (_, ValueRef::Double(double)) => Self::Double(double.to_bits()),
            (_, ValueRef::Decimal(decimal)) => Self::Decimal(decimal.to_le_bytes()),
            _ => Self::Nothing,
        })
    }

    /// Its size in bytes.
    pub(super) fn bytes(&self) -> usize {
        let more = match self {
            Self::Ordered(value) => size_of::<Ordered>() + value.len(),
            _ => 0,
        };
        size_of::<Self>() + more
    }
}

/// The doubles and decimals of a sum; few sums have both.
#[derive(Debug, Clone, Default)]
struct Fractions {
    doubles: ExactSum,
    double_count: u64,
    decimals: DecimalSum,
    decimal_count: u64,
}

/// The numbers of a group.
#[derive(Debug, Clone, Default)]
pub(super) struct NumberSum {
    integers: i128,
    /// How many numbers there are, and how many 64-bit integers among them.
    count: u64,
    longs: u64,
    fractions: Option<Box<Fractions>>,
}

impl NumberSum {
    fn change(&mut self, given: &MeasureValue, add: bool) {
        let times = if add { 1 } else { -1 };
        let step = |count: &mut u64| *count = count.wrapping_add_signed(times);
        match given {
            MeasureValue::Nothing | MeasureValue::Ordered(_) => return,
            MeasureValue::Int(int) => self.integers += i128::from(*int) * i128::from(times),
            MeasureValue::Long(int) => {
                self.integers += i128::from(*int) * i128::from(times);
                step(&mut self.longs);
            }
            MeasureValue::Double(bits) => {
                let fractions = self.fractions.get_or_insert_default();
                fractions.doubles.add(f64::from_bits(*bits), times);
                step(&mut fractions.double_count);
            }
            MeasureValue::Decimal(bytes) => {
                let fractions = self.fractions.get_or_insert_default();
                fractions
                    .decimals
                    .add(Decimal::from_le_bytes(*bytes), times);
                step(&mut fractions.decimal_count);
            }
        }
        step(&mut self.count);
        let empty = |one: &Fractions| one.double_count == 0 && one.decimal_count == 0;
        if self.fractions.as_deref().is_some_and(empty) {
            self.fractions = None;
        }
    }

    fn value(&self) -> Value {
        match self.fractions.as_deref() {
            None => self.integer(),
            Some(fractions) if fractions.decimal_count == 0 => {
                let mut sum = fractions.doubles.clone();
                add_integer(&mut sum, self.integers);
                Value::Double(sum.value())
            }
            Some(fractions) => {
                let decimals = fractions.decimals.value(self.integers);
                Value::Decimal(if fractions.double_count == 0 {
                    decimals
                } else {
                    decimals.plus(Decimal::from_f64(fractions.doubles.value()))
                })
            }
        }
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "the nearest double is the intended result"
    )]
    fn integer(&self) -> Value {
        match (i32::try_from(self.integers), i64::try_from(self.integers)) {
            (Ok(small), _) if self.longs == 0 => Value::Int32(small),
            (_, Ok(long)) => Value::Int64(long),
            _ => Value::Double(self.integers as f64),
        }
    }

    /// The sum, rounded, by the count.
    #[allow(
        clippy::cast_precision_loss,
        reason = "the nearest double is the intended result; counts are small"
    )]
    fn mean(&self) -> Value {
        let count = self.count as f64;
        match self.value() {
            _ if self.count == 0 => Value::Null,
            Value::Int32(sum) => Value::Double(f64::from(sum) / count),
            Value::Int64(sum) => Value::Double(sum as f64 / count),
            Value::Double(sum) => Value::Double(sum / count),
            Value::Decimal(sum) => {
                let count = i64::try_from(self.count).unwrap_or(i64::MAX);
                Value::Decimal(sum.divided_by(Decimal::from(count)))
            }
            other => other,
        }
    }
}

/// Adds an integer to a sum of doubles, in pieces that doubles hold.
#[allow(clippy::cast_precision_loss, reason = "48 bits are exact")]
fn add_integer(sum: &mut ExactSum, integer: i128) {
    const BITS: u32 = 48;
    let sign = if integer < 0 { -1 } else { 1 };
    let (mut rest, mut unit) = (integer.unsigned_abs(), 1.0);
    while rest > 0 {
        let piece = rest & ((1 << BITS) - 1);
        sum.add(piece as f64 * unit, sign);
        rest >>= BITS;
        unit *= 2_f64.powi(BITS.cast_signed());
    }
}

/// The state of a measure in a group.
#[derive(Debug, Clone)]
pub(super) enum MeasureState {
    /// Documents are counted by the group.
    Count,
    Sum(NumberSum),
    Values(ValueCounts),
}

impl MeasureState {
    pub(super) fn new(operation: GroupOperator) -> Self {
        match operation {
            GroupOperator::Count => Self::Count,
            GroupOperator::Sum | GroupOperator::Avg => Self::Sum(NumberSum::default()),
            GroupOperator::Min | GroupOperator::Max => Self::Values(ValueCounts::default()),
        }
    }

    /// Adds or removes a document's contribution.
    pub(super) fn change(&mut self, given: &MeasureValue, add: bool) {
        match (self, given) {
            (Self::Sum(sum), given) => sum.change(given, add),
            (Self::Values(values), MeasureValue::Ordered(value)) if add => values.add(value),
            (Self::Values(values), MeasureValue::Ordered(value)) => values.take(value),
            (Self::Count | Self::Values(_), _) => {}
        }
    }

    /// Writes the shown value.
    pub(super) fn write(
        &self,
        operation: GroupOperator,
        documents: u64,
        name: &str,
        out: &mut DocumentWriter,
    ) {
        match self {
            Self::Count => {
                let count = i32::try_from(documents).map(ValueRef::Int32);
                let long = i64::try_from(documents).unwrap_or(i64::MAX);
                out.append(name, count.unwrap_or(ValueRef::Int64(long)));
            }
            Self::Sum(sum) if operation == GroupOperator::Avg => {
                out.append(name, sum.mean().as_ref())
            }
            Self::Sum(sum) => out.append(name, sum.value().as_ref()),
            Self::Values(values) => values.write(operation == GroupOperator::Max, name, out),
        }
    }

    /// Its size in bytes, besides the struct.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Count => 0,
            Self::Sum(sum) => sum.fractions.as_ref().map_or(0, |_| size_of::<Fractions>()),
            Self::Values(values) => values.bytes(),
        }
    }
}
