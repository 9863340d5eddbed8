//! Answering a query: rows that belong together become one, sorted and cut, then shown.

use std::cmp::Ordering;

use crate::coding::Reader;
use crate::definition::{Measure, Op};
use crate::deltas::Generation;
use crate::error::{Result, malformed};
use crate::groups::{Group, Groups, Items, Sum, check_count};
use crate::keys::Parts;
use crate::plan::{By, Plan, Sort};
use crate::query::Query;
use crate::show::Writer;
use crate::state::{Row, State};
use crate::value::{Value, put_millis};
use crate::walk::{Found, Sight, Walk};

/// Room for so much of an answer is made at once.
const MOST_RESERVED: usize = 1 << 20;

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

/// Answers a query, row by row.
pub fn answer(sight: Sight<'_>, generation: &Generation, query: &Query) -> Result<Vec<Shown>> {
    let mut shown = Vec::new();
    each(sight, generation, query, &mut |writer, key, pair, _| {
        let mut json = String::with_capacity(128);
        let by = writer.by(&mut json, key)?;
        writer.rest(&mut json, pair);
        shown.push(Shown {
            key: key.to_vec(),
            by,
            json,
        });
        Ok(())
    })?;
    Ok(shown)
}

/// Answers a query as a JSON array.
pub(crate) fn answer_json(
    sight: Sight<'_>,
    generation: &Generation,
    query: &Query,
    out: &mut String,
) -> Result<()> {
    out.push('[');
    each(sight, generation, query, &mut |writer, key, pair, left| {
        let (is_first, before) = (out.ends_with('['), out.len());
        if !is_first {
            out.push(',');
        }
        writer.begin(out, key)?;
        writer.rest(out, pair);
        if is_first {
            // Rows are about as long as the first.
            let length = out.len() - before;
            out.reserve((left * (length + length / 8)).min(MOST_RESERVED));
        }
        Ok(())
    })?;
    out.push(']');
    Ok(())
}

/// Takes a row of an answer by its key, and is told how many follow.
type Take<'t> = &'t mut dyn FnMut(&mut Writer<'_>, &[u8], Pair<'_>, usize) -> Result<()>;

/// What a row shows, and what it is set beside: nothing if rows are not compared, none if there was
/// nothing earlier.
pub(crate) type Pair<'g> = (Sum<'g>, Option<Option<Sum<'g>>>);

fn each(sight: Sight<'_>, generation: &Generation, query: &Query, take: Take<'_>) -> Result<()> {
    let plan = Plan::new(&generation.definition, query)?;
    let answering = Answering {
        sight,
        generation,
        plan: &plan,
    };
    if plan.is_in_order() && sight.own.is_none() {
        return answering.stream(take);
    }
    let groups = answering.groups(0)?;
    let earlier = match plan.earlier {
        Some(earlier) => Some(answering.groups(earlier)?),
        None => None,
    };
    let mut writer = Writer::new(&plan);
    let (mut now, mut then) = (Row::default(), Row::default());
    let sorted = answering.sorted(&groups)?;
    let mut left = sorted.len();
    for (key, group) in sorted {
        left -= 1;
        let sum = groups.sum(group, &mut now)?;
        let beside = match &earlier {
            None => None,
            Some(earlier) => Some(match earlier.get(key) {
                None => None,
                Some(group) => Some(earlier.sum(group, &mut then)?),
            }),
        };
        take(&mut writer, key, (sum, beside), left)?;
    }
    Ok(())
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
            self.key(&mut key, &found.parts, earlier);
            groups.take(&key, found.row, self.items(&walk, found.key)?)?;
            Ok(true)
        })?;
        groups.finish()
    }

    /// Tells groups while rows are read in the order of groups: one is whole once a row of the next
    /// comes.
    fn stream(&self, take: Take<'_>) -> Result<()> {
        let mut writer = Writer::new(self.plan);
        let (mut groups, mut key, mut row) = (Groups::default(), Vec::new(), Row::default());
        let mut left = self.plan.query.limit;
        let mut tell = |groups: &Groups| -> Result<usize> {
            match groups.last().filter(|(_, group)| groups.counts(group)) {
                None => Ok(0),
                Some((key, group)) => {
                    let sum = groups.sum(group, &mut row)?;
                    take(&mut writer, key, (sum, None), 0)?;
                    Ok(1)
                }
            }
        };
        let period = (self.plan.from, self.plan.to);
        let walk = Walk::new(self.sight, self.generation.number, self.plan, period);
        walk.run(&mut |found: Found<'_>| {
            key.clear();
            self.key(&mut key, &found.parts, 0);
            if groups.last().is_some_and(|(own, _)| own != key) {
                left -= tell(&groups)?;
                groups.clear();
            }
            if left > 0 {
                groups.take(&key, found.row, self.items(&walk, found.key)?)?;
            }
            Ok(left > 0)
        })?;
        tell(&groups).map(drop)
    }

    /// The items of a row, for each measure that is shown, if one has any.
    fn items(&self, walk: &Walk<'_>, key: &[u8]) -> Result<Option<Box<[Items]>>> {
        if !self.plan.measures.iter().any(|(_, one)| one.has_items) {
            return Ok(None);
        }
        let mut all = vec![Items::new(); self.plan.measures.len()];
        self.take_items(walk, key, &mut all)?;
        Ok(Some(all.into()))
    }

    fn key(&self, key: &mut Vec<u8>, parts: &Parts<'_>, earlier: i64) {
        for by in &self.plan.by {
            match by {
                By::Value(place) => key.extend_from_slice(parts.value(*place)),
                By::Bucket => {
                    let at = parts.bucket.unwrap_or_default();
                    // Rows are of the definition's own buckets.
                    let at = if self.plan.has_own_buckets() {
                        at
                    } else {
                        at - at.rem_euclid(self.plan.bucket)
                    };
                    put_millis(key, at.saturating_add(earlier));
                }
            }
        }
    }

    fn take_items(&self, walk: &Walk<'_>, key: &[u8], all: &mut [Items]) -> Result<()> {
        let measures = self.plan.measures.iter().zip(all);
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
            check_count(items)?;
        }
        Ok(())
    }

    /// The groups in order, as many as are asked for.
    fn sorted<'g>(&self, groups: &'g Groups) -> Result<Vec<(&'g [u8], &'g Group)>> {
        let order = &self.plan.sort;
        if order.is_empty() {
            return Ok(groups.iter().take(self.plan.query.limit).collect());
        }
        let mut keyed = Vec::with_capacity(groups.len());
        let mut row = Row::default();
        for (key, group) in groups.iter() {
            let sum = groups.sum(group, &mut row)?;
            let place = |(sort, _): &(Sort, bool)| self.place(*sort, key, sum);
            let places: Result<Vec<Place>> = order.iter().map(place).collect();
            keyed.push((places?, key, group));
        }
        keyed.sort_unstable_by(|left, right| {
            let pairs = left.0.iter().zip(&right.0).zip(order);
            let mut unequal = pairs.map(|((left, right), (_, descends))| {
                let order = left.compare(right);
                if *descends { order.reverse() } else { order }
            });
            let found = unequal.find(|order| order.is_ne());
            found.unwrap_or_else(|| left.1.cmp(right.1))
        });
        keyed.truncate(self.plan.query.limit);
        Ok(keyed
            .into_iter()
            .map(|(_, key, group)| (key, group))
            .collect())
    }

    fn place(&self, sort: Sort, key: &[u8], sum: Sum<'_>) -> Result<Place> {
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
                Ok(place(measure.1, sum.row, sum.items(wanted)))
            }
        }
    }
}

pub(crate) fn skip(by: By, reader: &mut Reader<'_>) -> Result<()> {
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

pub(crate) fn whole(state: Option<&State>) -> i128 {
    match state {
        Some(State::Whole(sum)) => *sum,
        Some(State::Count(count)) => (*count).into(),
        _ => 0,
    }
}

fn place(measure: &Measure, row: &Row, items: Option<&Items>) -> Place {
    let state = row.0.get(measure.slot);
    let positive = || items.into_iter().flatten().filter(|(_, count)| **count > 0);
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
