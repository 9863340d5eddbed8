//! Answering a query: rows that belong together become one, sorted and cut, and written as JSON.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use rillbase_query::bson::ValueRef;
use rillbase_query::ejson::{self, Form};

use crate::coding::Reader;
use crate::definition::{Measure, Number, Op};
use crate::deltas::Generation;
use crate::error::{Code, Error, Result, malformed};
use crate::hash::Builder;
use crate::keys::Parts;
use crate::plan::{By, Plan, Sort};
use crate::query::Query;
use crate::scaled;
use crate::state::{Row, State};
use crate::value::{Value, millis, put_millis, write_moment};
use crate::walk::{Found, MOST_ITEMS, Sight, Walk};

/// Digits that a mean of decimals has beyond their scale.
const MEAN_DIGITS: u32 = 6;
/// Integers beyond it are written as text: other readers of JSON would round them.
const EXACT_IN_JSON: u128 = 1 << 53;

/// Values of items with their counts.
type Items = BTreeMap<Vec<u8>, i64>;

/// Rows that are shown as one.
#[derive(Debug, Default)]
struct Group {
    row: Row,
    /// For each measure that is shown.
    items: Vec<Items>,
}

/// What rows are told apart by, one after the other, in the form that sorts.
type Key = Vec<u8>;
type Groups = HashMap<Key, Group, Builder>;

/// A row of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// What it is told apart by, in the form that sorts.
    pub key: Vec<u8>,
    /// The same as a JSON object.
    pub by: String,
    /// The whole row as a JSON object.
    pub json: String,
}

/// Answers a query.
pub fn answer(sight: Sight<'_>, generation: &Generation, query: &Query) -> Result<Vec<Shown>> {
    let plan = Plan::new(&generation.definition, query)?;
    let answering = Answering {
        sight,
        generation,
        plan: &plan,
    };
    let groups = answering.groups(0)?;
    let earlier = match plan.earlier {
        Some(earlier) => Some(answering.groups(earlier)?),
        None => None,
    };
    let kept = answering.sorted(groups)?;
    kept.iter()
        .map(|(key, group)| answering.show(key, group, earlier.as_ref()))
        .collect()
}

struct Answering<'a> {
    sight: Sight<'a>,
    generation: &'a Generation,
    plan: &'a Plan<'a>,
}

impl Answering<'_> {
    /// The groups of the period, or of one earlier, under the keys that they would have later.
    fn groups(&self, earlier: i64) -> Result<Groups> {
        let shift = |at: Option<i64>| at.map(|at| at.saturating_sub(earlier));
        let period = (shift(self.plan.from), shift(self.plan.to));
        let walk = Walk::new(self.sight, self.generation.number, self.plan, period);
        let mut groups = Groups::default();
        let mut key = Vec::new();
        walk.run(&mut |found: Found<'_>| {
            key.clear();
            self.key(&mut key, found.parts, earlier)?;
            if !groups.contains_key(key.as_slice()) {
                let empty = Group {
                    row: Row::default(),
                    items: vec![Items::new(); self.plan.measures.len()],
                };
                groups.insert(key.clone(), empty);
            }
            if let Some(group) = groups.get_mut(key.as_slice()) {
                self.take_items(&walk, found.key, group)?;
                group.row.merge(&found.row);
            }
            Ok(())
        })?;
        groups.retain(
            |_, group| matches!(group.row.0.first(), Some(State::Count(count)) if *count > 0),
        );
        Ok(groups)
    }

    fn key(&self, key: &mut Vec<u8>, parts: Parts<'_>, earlier: i64) -> Result<()> {
        let mut values = [&[][..]; 16];
        let mut reader = Reader(parts.values);
        for slot in values.iter_mut().take(self.plan.dimensions.len()) {
            let before = reader.0;
            Value::skip(&mut reader).ok_or_else(malformed)?;
            *slot = before
                .get(..before.len() - reader.0.len())
                .unwrap_or_default();
        }
        for by in &self.plan.by {
            match by {
                By::Value(place) => {
                    key.extend_from_slice(values.get(*place).copied().unwrap_or_default());
                }
                By::Bucket => {
                    let at = parts.bucket.unwrap_or_default();
                    let at = at - at.rem_euclid(self.plan.bucket);
                    put_millis(key, at.saturating_add(earlier));
                }
            }
        }
        Ok(())
    }

    fn take_items(&self, walk: &Walk<'_>, key: &[u8], group: &mut Group) -> Result<()> {
        let measures = self.plan.measures.iter().zip(&mut group.items);
        for ((place, measure), items) in measures.filter(|((_, one), _)| one.has_items) {
            // A transaction's own changes may take away what is first.
            let only_one =
                matches!(measure.op, Op::Min(_) | Op::Max(_)) && self.sight.own.is_none();
            let backwards = matches!(measure.op, Op::Max(_));
            walk.items(key, *place, backwards, &mut |item, count| {
                *items.entry(item.to_vec()).or_default() += count;
                !only_one
            })?;
            walk.own_items(key, *place, &mut |item, count| {
                *items.entry(item.to_vec()).or_default() += count;
            });
            if items.len() > MOST_ITEMS {
                let detail = "a group has more than 100,000 items";
                return Err(Error::new(Code::TooExpensive, detail));
            }
        }
        Ok(())
    }

    /// The groups in order, as many as are asked for.
    fn sorted(&self, groups: Groups) -> Result<Vec<(Key, Group)>> {
        let mut keyed = Vec::with_capacity(groups.len());
        for (key, group) in groups {
            let place = |(sort, _): &(Sort, bool)| self.place(*sort, &key, &group);
            let places: Result<Vec<Place>> = self.plan.sort.iter().map(place).collect();
            keyed.push((places?, key, group));
        }
        let order = &self.plan.sort;
        keyed.sort_unstable_by(|left, right| {
            let pairs = left.0.iter().zip(&right.0).zip(order);
            let mut unequal = pairs.map(|((left, right), (_, descends))| {
                let order = left.compare(right);
                if *descends { order.reverse() } else { order }
            });
            let found = unequal.find(|order| order.is_ne());
            found.unwrap_or_else(|| left.1.cmp(&right.1))
        });
        keyed.truncate(self.plan.query.limit);
        Ok(keyed
            .into_iter()
            .map(|(_, key, group)| (key, group))
            .collect())
    }

    fn place(&self, sort: Sort, key: &[u8], group: &Group) -> Result<Place> {
        match sort {
            Sort::By(wanted) => {
                let mut reader = Reader(key);
                for by in self.plan.by.iter().take(wanted) {
                    skip(*by, &mut reader)?;
                }
                let before = reader.0;
                if let Some(by) = self.plan.by.get(wanted) {
                    skip(*by, &mut reader)?;
                }
                let value = before.get(..before.len() - reader.0.len());
                Ok(Place::Value(value.unwrap_or_default().to_vec()))
            }
            Sort::Measure(wanted) => {
                let measure = self.plan.measures.get(wanted);
                let measure = measure.ok_or_else(malformed)?;
                let items = group.items.get(wanted).ok_or_else(malformed)?;
                Ok(place(measure.1, &group.row, items))
            }
        }
    }

    fn show(&self, key: &[u8], group: &Group, earlier: Option<&Groups>) -> Result<Shown> {
        let mut json = String::with_capacity(128);
        json.push('{');
        self.write_by(&mut json, key)?;
        let by = format!("{json}}}");
        self.write_measures(&mut json, group);
        if let Some(earlier) = earlier {
            separate(&mut json);
            json.push_str("\"previous\":");
            match earlier.get(key) {
                None => json.push_str("null"),
                Some(group) => {
                    json.push('{');
                    self.write_measures(&mut json, group);
                    json.push('}');
                }
            }
        }
        json.push('}');
        Ok(Shown {
            key: key.to_vec(),
            by,
            json,
        })
    }

    fn write_by(&self, out: &mut String, key: &[u8]) -> Result<()> {
        let mut reader = Reader(key);
        for by in &self.plan.by {
            let definition = self.plan.definition;
            match by {
                By::Bucket => {
                    let at = millis(&mut reader).ok_or_else(malformed)?;
                    if let Some(time) = &definition.time {
                        write_name(out, &time.field.name);
                    }
                    write_moment(out, at);
                }
                By::Value(place) => {
                    let dimension = self.plan.dimensions.get(*place);
                    let field = dimension.and_then(|place| definition.dimensions.get(*place));
                    write_name(out, field.map_or("", |field| &field.name));
                    Value::decode(&mut reader).ok_or_else(malformed)?.write(out);
                }
            }
        }
        Ok(())
    }

    fn write_measures(&self, out: &mut String, group: &Group) {
        for ((_, measure), items) in self.plan.measures.iter().zip(&group.items) {
            write_name(out, &measure.name);
            write_measure(out, measure, &group.row, items);
        }
    }
}

fn skip(by: By, reader: &mut Reader<'_>) -> Result<()> {
    let skipped = match by {
        By::Value(_) => Value::skip(reader),
        By::Bucket => reader.take(8).map(drop),
    };
    skipped.ok_or_else(malformed)
}

/// Where a row stands by one of the things that rows are sorted by.
enum Place {
    Nothing,
    Whole(i128),
    Double(f64),
    Value(Vec<u8>),
}

impl Place {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Whole(left), Self::Whole(right)) => left.cmp(right),
            (Self::Double(left), Self::Double(right)) => left.total_cmp(right),
            (Self::Value(left), Self::Value(right)) => left.cmp(right),
            (Self::Nothing, Self::Nothing) => Ordering::Equal,
            // A measure of nothing comes first.
            (Self::Nothing, _) => Ordering::Less,
            (_, Self::Nothing) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }
}

fn whole(state: Option<&State>) -> i128 {
    match state {
        Some(State::Whole(sum)) => *sum,
        Some(State::Count(count)) => (*count).into(),
        _ => 0,
    }
}

fn place(measure: &Measure, row: &Row, items: &Items) -> Place {
    let state = row.0.get(measure.slot);
    let positive = || items.iter().filter(|(_, count)| **count > 0);
    match (&measure.op, state) {
        (Op::Sum(..), Some(State::Exact(sum))) => Place::Double(sum.value()),
        (Op::Count | Op::Sum(..), state) => Place::Whole(whole(state)),
        (Op::Avg(..), state) => {
            mean(state, row.0.get(measure.slot + 1)).map_or(Place::Nothing, Place::Double)
        }
        (Op::Min(_), _) if measure.has_items => of_item(positive().next()),
        (Op::Max(_), _) if measure.has_items => of_item(positive().next_back()),
        (Op::Min(_) | Op::Max(_), Some(State::Least(value) | State::Greatest(value)))
            if !value.is_empty() =>
        {
            Place::Value(value.clone())
        }
        (Op::Distinct(_), Some(State::Distinct(set))) if !measure.has_items => {
            Place::Whole(set.estimate().into())
        }
        (Op::Distinct(_), _) => Place::Whole(positive().count() as i128),
        (Op::Quantiles(_, shares, accuracy), Some(State::Sketch(sketch))) => {
            let first = shares.first().copied().unwrap_or(0.5);
            let quantile = sketch.quantile(*accuracy, first);
            quantile.map_or(Place::Nothing, Place::Double)
        }
        _ => Place::Nothing,
    }
}

fn of_item(item: Option<(&Vec<u8>, &i64)>) -> Place {
    item.map_or(Place::Nothing, |(value, _)| Place::Value(value.clone()))
}

/// About the mean, of which only the order counts.
#[allow(clippy::cast_precision_loss, reason = "rows are sorted by it")]
fn mean(sum: Option<&State>, count: Option<&State>) -> Option<f64> {
    let count = whole(count);
    let sum = match sum {
        Some(State::Exact(sum)) => sum.value(),
        other => whole(other) as f64,
    };
    (count > 0).then(|| sum / count as f64)
}

fn separate(out: &mut String) {
    if !out.ends_with('{') && !out.ends_with('[') {
        out.push(',');
    }
}

fn write_name(out: &mut String, name: &str) {
    separate(out);
    ejson::write_value(out, ValueRef::String(name), Form::Relaxed);
    out.push(':');
}

fn write_whole(out: &mut String, number: i128) {
    if number.unsigned_abs() <= EXACT_IN_JSON {
        out.push_str(&number.to_string());
    } else {
        write_text(out, &number.to_string());
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
        // JSON has no numbers for these.
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
    match encoded.and_then(|bytes| Value::decode(&mut Reader(bytes))) {
        Some(value) => value.write(out),
        None => out.push_str("null"),
    }
}

fn write_measure(out: &mut String, measure: &Measure, row: &Row, items: &Items) {
    let state = row.0.get(measure.slot);
    let positive = || items.iter().filter(|(_, count)| **count > 0);
    match (&measure.op, state) {
        (Op::Sum(_, Number::Decimal(scale)), state) => {
            write_text(out, &scaled::text(whole(state), *scale));
        }
        (Op::Sum(..), Some(State::Exact(sum))) => write_double(out, Some(sum.value())),
        (Op::Count | Op::Sum(..), state) => write_whole(out, whole(state)),
        (Op::Avg(_, number), state) => {
            write_mean(out, *number, (state, row.0.get(measure.slot + 1)));
        }
        (Op::Min(_), _) if measure.has_items => {
            write_value(out, positive().next().map(|(value, _)| value.as_slice()));
        }
        (Op::Max(_), _) if measure.has_items => {
            write_value(
                out,
                positive().next_back().map(|(value, _)| value.as_slice()),
            );
        }
        (Op::Min(_) | Op::Max(_), Some(State::Least(value) | State::Greatest(value))) => {
            write_value(out, Some(value));
        }
        (Op::Distinct(_), Some(State::Distinct(set))) if !measure.has_items => {
            write_whole(out, set.estimate().into());
        }
        (Op::Distinct(_), _) => write_whole(out, positive().count() as i128),
        (Op::Quantiles(_, shares, accuracy), Some(State::Sketch(sketch))) => {
            out.push('{');
            for share in shares {
                write_name(out, &share.to_string());
                write_double(out, sketch.quantile(*accuracy, *share));
            }
            out.push('}');
        }
        (Op::Top(_, k), _) => write_top(out, positive().collect(), *k),
        _ => out.push_str("null"),
    }
}

#[allow(clippy::cast_precision_loss, reason = "a double is asked for")]
fn write_mean(out: &mut String, number: Number, (sum, count): (Option<&State>, Option<&State>)) {
    let count = whole(count);
    match (number, sum) {
        _ if count <= 0 => out.push_str("null"),
        (Number::Decimal(scale), sum) => {
            let units = whole(sum).saturating_mul(10_i128.pow(MEAN_DIGITS));
            let mean = scaled::divide(units, count);
            write_text(out, &scaled::text(mean, scale + MEAN_DIGITS));
        }
        (_, Some(State::Exact(sum))) => write_double(out, Some(sum.value() / count as f64)),
        (_, sum) => write_double(out, Some(whole(sum) as f64 / count as f64)),
    }
}

/// The most frequent first; of those that are equally frequent, in the order of values.
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
