//! Rows of a result as JSON.

use std::fmt::Write as _;

use rillbase_binary_format::ByteReader;
use rillbase_query::bson::ValueRef;
use rillbase_query::ejson::date::DAY_MS;
use rillbase_query::ejson::{self, Form};

use crate::definition::{AggregateMeasure, MeasureOperator, SumType};
use crate::error::Result;
use crate::groups::{Items, MergedGroup, MergedPair};
use crate::plan::{AggregatePlan, GroupColumn};
use crate::scaled;
use crate::state::{RowState, SlotValue, whole};
use crate::value::{DimensionValue, millis, write_moment};

/// Extra decimal places of a mean of decimals.
const MEAN_DIGITS: u32 = 6;
/// Integers beyond this are written as text: other JSON readers would round them.
const EXACT_IN_JSON: u64 = 1 << 53;

/// The rendering of one group column.
#[derive(Debug)]
struct GroupLabel {
    by: GroupColumn,
    /// Its name, as the start of a member.
    name: String,
    /// The last value and its text: consecutive rows often share it.
    value: Vec<u8>,
    text: String,
    day: Day,
}

impl GroupLabel {
    fn write(&mut self, value: &[u8]) -> Result<()> {
        self.value.clear();
        self.value.extend_from_slice(value);
        self.text.clear();
        let mut reader = ByteReader::new(value);
        match self.by {
            GroupColumn::Bucket => {
                let at = millis(&mut reader)?;
                self.day.write(&mut self.text, at);
            }
            GroupColumn::Value(_) => {
                let value = DimensionValue::decode(&mut reader)?;
                value.write(&mut self.text);
            }
        }
        Ok(())
    }
}

/// Writes times of the same day faster: most of a time's text is its day.
#[derive(Debug, Default)]
struct Day {
    /// The last day written, since 1970, and its text up to the hour.
    number: Option<i64>,
    text: String,
}

impl Day {
    fn write(&mut self, out: &mut String, at: i64) {
        let (number, rest) = (at.div_euclid(DAY_MS), at.rem_euclid(DAY_MS));
        if self.number != Some(number) {
            self.text.clear();
            write_moment(&mut self.text, number.saturating_mul(DAY_MS));
            // Days whose text is a number are not split.
            self.number = self.text.find('T').map(|at| {
                self.text.truncate(at + 1);
                number
            });
        }
        if self.number.is_none() || rest % 1000 != 0 {
            return write_moment(out, at);
        }
        out.push_str(&self.text);
        for (number, end) in [
            (rest / 3_600_000, ':'),
            (rest / 60_000 % 60, ':'),
            (rest / 1000 % 60, 'Z'),
        ] {
            let digit = |digit: i64| char::from(b'0' + u8::try_from(digit).unwrap_or_default());
            out.extend([digit(number / 10), digit(number % 10), end]);
        }
        out.push('"');
    }
}

/// Writes rows.
#[derive(Debug)]
pub(crate) struct RowWriter<'a> {
    plan: &'a AggregatePlan<'a>,
    labels: Vec<GroupLabel>,
    /// The names of measures, as starts of members.
    names: Vec<String>,
}

impl<'a> RowWriter<'a> {
    pub(crate) fn new(plan: &'a AggregatePlan<'a>) -> Self {
        let labels = plan.by.iter().map(|by| GroupLabel {
            by: *by,
            name: member(name_of(plan, *by)),
            value: Vec::new(),
            text: String::new(),
            day: Day::default(),
        });
        let names = plan
            .measures
            .iter()
            .map(|(_, measure)| member(&measure.name));
        Self {
            labels: labels.collect(),
            names: names.collect(),
            plan,
        }
    }

    /// Starts a row with its group columns.
    pub(crate) fn begin(&mut self, out: &mut String, key: &[u8]) -> Result<()> {
        let mut reader = ByteReader::new(key);
        out.push('{');
        for label in &mut self.labels {
            let before = reader.rest();
            label.by.skip(&mut reader)?;
            let value = before.len() - reader.rest().len();
            let value = before.get(..value).unwrap_or_default();
            if label.value != value {
                label.write(value)?;
            }
            separate(out);
            out.push_str(&label.name);
            out.push_str(&label.text);
        }
        Ok(())
    }

    /// The same; returns it as a separate object.
    pub(crate) fn by(&mut self, out: &mut String, key: &[u8]) -> Result<String> {
        self.begin(out, key)?;
        Ok(format!("{out}}}"))
    }

    /// Completes a row with its measures, and those of the compared row.
    pub(crate) fn rest(&self, out: &mut String, (sum, compared): MergedPair<'_>) {
        self.write_measures(out, sum);
        if let Some(earlier) = compared {
            separate(out);
            out.push_str("\"previous\":");
            match earlier {
                None => out.push_str("null"),
                Some(sum) => {
                    out.push('{');
                    self.write_measures(out, sum);
                    out.push('}');
                }
            }
        }
        out.push('}');
    }

    fn write_measures(&self, out: &mut String, sum: MergedGroup<'_>) {
        let measures = self.plan.measures.iter().zip(&self.names).enumerate();
        for (index, ((_, measure), name)) in measures {
            separate(out);
            out.push_str(name);
            write_measure(out, measure, sum.row, sum.items(index));
        }
    }
}

fn name_of<'a>(plan: &AggregatePlan<'a>, by: GroupColumn) -> &'a str {
    let definition = plan.definition;
    let field = match by {
        GroupColumn::Bucket => definition.time.as_ref().map(|time| &time.field),
        GroupColumn::Value(index) => {
            let dimension = plan.dimensions.get(index);
            dimension.and_then(|index| definition.dimensions.get(*index))
        }
    };
    field.map_or("", |field| &field.name)
}

/// The start of an object's member.
fn member(name: &str) -> String {
    let mut out = String::new();
    ejson::write_value(&mut out, ValueRef::String(name), Form::Relaxed);
    out.push(':');
    out
}

fn separate(out: &mut String) {
    if !out.ends_with('{') && !out.ends_with('[') {
        out.push(',');
    }
}

fn write_name(out: &mut String, name: &str) {
    separate(out);
    out.push_str(&member(name));
}

fn write_whole(out: &mut String, number: i128) {
    match i64::try_from(number) {
        Ok(number) if number.unsigned_abs() <= EXACT_IN_JSON => {
            // Writing to a string does not fail.
            let _ = write!(out, "{number}");
        }
        _ => write_text(out, &number.to_string()),
    }
}

/// Text that needs no escapes.
fn write_text(out: &mut String, text: &str) {
    out.push('"');
    out.push_str(text);
    out.push('"');
}

fn write_double(out: &mut String, double: Option<f64>) {
    match double {
        Some(double) if double.is_finite() => {
            ejson::write_value(out, ValueRef::Double(double), Form::Relaxed);
        }
        // JSON has no representation for these.
        Some(double) if double.is_nan() => write_text(out, "NaN"),
        Some(double) => write_text(
            out,
            if double > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            },
        ),
        None => out.push_str("null"),
    }
}

fn write_value(out: &mut String, encoded: Option<&[u8]>) {
    match encoded.and_then(|bytes| DimensionValue::decode(&mut ByteReader::new(bytes)).ok()) {
        Some(value) => value.write(out),
        None => out.push_str("null"),
    }
}

fn write_measure(
    out: &mut String,
    measure: &AggregateMeasure,
    row: &RowState,
    items: Option<&Items>,
) {
    let state = row.0.get(measure.slot);
    let positive = || items.into_iter().flatten().filter(|(_, count)| **count > 0);
    match (&measure.op, state) {
        (MeasureOperator::Sum(_, SumType::Decimal(scale)), state) => {
            write_text(out, &scaled::text(whole(state), *scale));
        }
        (MeasureOperator::Sum(..), Some(SlotValue::Exact(sum))) => {
            write_double(out, Some(sum.value()));
        }
        (MeasureOperator::Count | MeasureOperator::Sum(..), state) => {
            write_whole(out, whole(state));
        }
        (MeasureOperator::Avg(_, number), state) => {
            write_mean(out, *number, (state, row.0.get(measure.slot + 1)));
        }
        (MeasureOperator::Min(_), _) if measure.has_items => {
            write_value(out, positive().next().map(|(value, _)| value.as_slice()));
        }
        (MeasureOperator::Max(_), _) if measure.has_items => {
            write_value(
                out,
                positive().next_back().map(|(value, _)| value.as_slice()),
            );
        }
        (
            MeasureOperator::Min(_) | MeasureOperator::Max(_),
            Some(SlotValue::Least(value) | SlotValue::Greatest(value)),
        ) => {
            write_value(out, Some(value));
        }
        (MeasureOperator::Distinct(_), Some(SlotValue::Distinct(set))) if !measure.has_items => {
            write_whole(out, set.estimate().into());
        }
        (MeasureOperator::Distinct(_), _) => write_whole(out, positive().count() as i128),
        (MeasureOperator::Quantiles(_, shares, accuracy), Some(SlotValue::Sketch(sketch))) => {
            out.push('{');
            for share in shares {
                write_name(out, &share.to_string());
                write_double(out, sketch.quantile(*accuracy, *share));
            }
            out.push('}');
        }
        (MeasureOperator::Top(_, k), _) => write_top(out, positive().collect(), *k),
        _ => out.push_str("null"),
    }
}

#[allow(clippy::cast_precision_loss, reason = "a double is requested")]
fn write_mean(
    out: &mut String,
    number: SumType,
    (sum, count): (Option<&SlotValue>, Option<&SlotValue>),
) {
    let count = whole(count);
    match (number, sum) {
        _ if count <= 0 => out.push_str("null"),
        (SumType::Decimal(scale), sum) => {
            let units = whole(sum).saturating_mul(10_i128.pow(MEAN_DIGITS));
            let mean = scaled::divide(units, count);
            write_text(out, &scaled::text(mean, scale + MEAN_DIGITS));
        }
        (_, Some(SlotValue::Exact(sum))) => write_double(out, Some(sum.value() / count as f64)),
        (_, sum) => write_double(out, Some(whole(sum) as f64 / count as f64)),
    }
}

/// Most frequent first; equally frequent ones in the order of values.
fn write_top(out: &mut String, mut items: Vec<(&Vec<u8>, &i64)>, k: usize) {
    items.sort_by(|left, right| right.1.cmp(left.1));
    out.push('[');
    for (value, count) in items.into_iter().take(k) {
        separate(out);
        out.push_str("{\"value\":");
        write_value(out, Some(value));
        out.push_str(",\"count\":");
        write_whole(out, (*count).into());
        out.push('}');
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn consecutive_times_are_written_like_single_ones(
            moments in prop::collection::vec(
                prop_oneof![any::<i64>(), -DAY_MS..3 * DAY_MS, (0_i64..99).prop_map(|at| at * 1_800_000)],
                1..9,
            ),
        ) {
            let mut day = Day::default();
            for at in moments {
                let (mut text, mut alone) = (String::new(), String::new());
                day.write(&mut text, at);
                write_moment(&mut alone, at);
                prop_assert_eq!(text, alone);
            }
        }
    }
}
