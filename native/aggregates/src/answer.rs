//! Evaluating a query: rows of a group are merged, sorted and truncated, then rendered.

use std::cmp::Ordering;

use rillbase_binary_format::ByteReader;

use crate::definition::{AggregateMeasure, MeasureOperator};
use crate::deltas::AggregateGeneration;
use crate::error::{Result, malformed};
use crate::groups::{Items, MergedGroup, MergedPair, RowGroup, RowGroups, check_count};
use crate::keys::RowKeyParts;
use crate::plan::{AggregatePlan, AggregateSort, GroupColumn};
use crate::query::AggregateQuery;
use crate::row_scan::{ReadSnapshot, RowScan, ScannedRow};
use crate::show::RowWriter;
use crate::state::{RowState, SlotValue, whole};
use crate::value::put_millis;

/// The maximum bytes reserved in advance for a result.
const MAX_RESERVED: usize = 1 << 20;

/// A row of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerRow {
    /// Its group, in the sortable encoding.
    pub key: Vec<u8>,
    /// The group as a JSON object.
    pub by: String,
    /// The whole row as a JSON object.
    pub json: String,
}

/// Evaluates a query, row by row.
pub fn answer(
    read_snapshot: ReadSnapshot<'_>,
    generation: &AggregateGeneration,
    query: &AggregateQuery,
) -> Result<Vec<AnswerRow>> {
    let mut shown = Vec::new();
    each(
        read_snapshot,
        generation,
        query,
        &mut |writer, key, pair, _| {
            let mut json = String::with_capacity(128);
            let by = writer.by(&mut json, key)?;
            writer.rest(&mut json, pair);
            shown.push(AnswerRow {
                key: key.to_vec(),
                by,
                json,
            });
            Ok(())
        },
    )?;
    Ok(shown)
}

/// Evaluates a query as a JSON array.
pub(crate) fn answer_json(
    read_snapshot: ReadSnapshot<'_>,
    generation: &AggregateGeneration,
    query: &AggregateQuery,
    out: &mut String,
) -> Result<()> {
    out.push('[');
    each(
        read_snapshot,
        generation,
        query,
        &mut |writer, key, pair, left| {
            let (is_first, before) = (out.ends_with('['), out.len());
            if !is_first {
                out.push(',');
            }
            writer.begin(out, key)?;
            writer.rest(out, pair);
            if is_first {
                // Rows are about as long as the first.
                let length = out.len() - before;
                out.reserve((left * (length + length / 8)).min(MAX_RESERVED));
            }
            Ok(())
        },
    )?;
    out.push(']');
    Ok(())
}

/// Takes a row of a result by its key, and how many follow.
type Take<'t> = &'t mut dyn FnMut(&mut RowWriter<'_>, &[u8], MergedPair<'_>, usize) -> Result<()>;

fn each(
    read_snapshot: ReadSnapshot<'_>,
    generation: &AggregateGeneration,
    query: &AggregateQuery,
    take: Take<'_>,
) -> Result<()> {
    let plan = AggregatePlan::new(&generation.definition, query)?;
    let answering = QueryExecution {
        read_snapshot,
        generation,
        plan: &plan,
    };
    if plan.is_in_order() && read_snapshot.own.is_none() {
        return answering.stream(take);
    }
    let groups = answering.groups(0)?;
    let earlier = match plan.earlier {
        Some(earlier) => Some(answering.groups(earlier)?),
        None => None,
    };
    let mut writer = RowWriter::new(&plan);
    let (mut now, mut then) = (RowState::default(), RowState::default());
    let sorted = answering.sorted(&groups)?;
    let mut left = sorted.len();
    for (key, group) in sorted {
        left -= 1;
        let sum = groups.sum(group, &mut now)?;
        let compared = match &earlier {
            None => None,
            Some(earlier) => Some(match earlier.get(key) {
                None => None,
                Some(group) => Some(earlier.sum(group, &mut then)?),
            }),
        };
        take(&mut writer, key, (sum, compared), left)?;
    }
    Ok(())
}

struct QueryExecution<'a> {
    read_snapshot: ReadSnapshot<'a>,
    generation: &'a AggregateGeneration,
    plan: &'a AggregatePlan<'a>,
}

impl QueryExecution<'_> {
    /// The groups of the period, or of an earlier one under the keys of the later one.
    fn groups(&self, earlier: i64) -> Result<RowGroups> {
        let shift = |at: Option<i64>| at.map(|at| at.saturating_sub(earlier));
        let period = (shift(self.plan.from), shift(self.plan.to));
        let walk = RowScan::new(
            self.read_snapshot,
            self.generation.number,
            self.plan,
            period,
        );
        let mut groups = RowGroups::default();
        let mut key = Vec::new();
        walk.run(&mut |scanned: ScannedRow<'_>| {
            key.clear();
            self.key(&mut key, &scanned.parts, earlier);
            groups.take(&key, scanned.row, self.items(&walk, scanned.key)?)?;
            Ok(true)
        })?;
        groups.finish()
    }

    /// Passes groups while rows are read in group order: one is complete once a row of the next
    /// arrives.
    fn stream(&self, take: Take<'_>) -> Result<()> {
        let mut writer = RowWriter::new(self.plan);
        let (mut groups, mut key, mut row) =
            (RowGroups::default(), Vec::new(), RowState::default());
        let mut left = self.plan.query.limit;
        let mut tell = |groups: &RowGroups| -> Result<usize> {
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
        let walk = RowScan::new(
            self.read_snapshot,
            self.generation.number,
            self.plan,
            period,
        );
        walk.run(&mut |scanned: ScannedRow<'_>| {
            key.clear();
            self.key(&mut key, &scanned.parts, 0);
            if groups.last().is_some_and(|(own, _)| own != key) {
                left -= tell(&groups)?;
                groups.clear();
            }
            if left > 0 {
                groups.take(&key, scanned.row, self.items(&walk, scanned.key)?)?;
            }
            Ok(left > 0)
        })?;
        tell(&groups).map(drop)
    }

    /// The items of a row, for each measure that is shown, if one has items.
    fn items(&self, walk: &RowScan<'_>, key: &[u8]) -> Result<Option<Box<[Items]>>> {
        if !self.plan.measures.iter().any(|(_, one)| one.has_items) {
            return Ok(None);
        }
        let mut all = vec![Items::new(); self.plan.measures.len()];
        self.take_items(walk, key, &mut all)?;
        Ok(Some(all.into()))
    }

    fn key(&self, key: &mut Vec<u8>, parts: &RowKeyParts<'_>, earlier: i64) {
        for by in &self.plan.by {
            match by {
                GroupColumn::Value(index) => key.extend_from_slice(parts.value(*index)),
                GroupColumn::Bucket => {
                    let at = parts.bucket.unwrap_or_default();
                    // Rows have the definition's own buckets.
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

    fn take_items(&self, walk: &RowScan<'_>, key: &[u8], all: &mut [Items]) -> Result<()> {
        let measures = self.plan.measures.iter().zip(all);
        for ((index, measure), items) in measures.filter(|((_, one), _)| one.has_items) {
            // A transaction's own changes may remove the first one.
            let only_one = matches!(
                measure.op,
                MeasureOperator::Min(_) | MeasureOperator::Max(_)
            ) && self.read_snapshot.own.is_none();
            let backwards = matches!(measure.op, MeasureOperator::Max(_));
            walk.items(key, *index, backwards, &mut |item, count| {
                *items.entry(item.to_vec()).or_default() += count;
                !only_one
            })?;
            walk.own_items(key, *index, &mut |item, count| {
                *items.entry(item.to_vec()).or_default() += count;
            });
            check_count(items)?;
        }
        Ok(())
    }

    /// The requested number of groups, in order.
    fn sorted<'g>(&self, groups: &'g RowGroups) -> Result<Vec<(&'g [u8], &'g RowGroup)>> {
        let order = &self.plan.sort;
        if order.is_empty() {
            return Ok(groups.iter().take(self.plan.query.limit).collect());
        }
        let mut keyed = Vec::with_capacity(groups.len());
        let mut row = RowState::default();
        for (key, group) in groups.iter() {
            let sum = groups.sum(group, &mut row)?;
            let value_of = |(sort, _): &(AggregateSort, bool)| self.sort_value(*sort, key, sum);
            let values: Result<Vec<SortValue>> = order.iter().map(value_of).collect();
            keyed.push((values?, key, group));
        }
        keyed.sort_unstable_by(|left, right| {
            let pairs = left.0.iter().zip(&right.0).zip(order);
            let mut unequal = pairs.map(|((left, right), (_, descends))| {
                let order = left.compare(right);
                if *descends { order.reverse() } else { order }
            });
            let ordering = unequal.find(|order| order.is_ne());
            ordering.unwrap_or_else(|| left.1.cmp(right.1))
        });
        keyed.truncate(self.plan.query.limit);
        Ok(keyed
            .into_iter()
            .map(|(_, key, group)| (key, group))
            .collect())
    }

    fn sort_value(
        &self,
        sort: AggregateSort,
        key: &[u8],
        sum: MergedGroup<'_>,
    ) -> Result<SortValue> {
        match sort {
            AggregateSort::By(index) => {
                let mut reader = ByteReader::new(key);
                for by in self.plan.by.iter().take(index) {
                    by.skip(&mut reader)?;
                }
                let before = reader.rest();
                if let Some(by) = self.plan.by.get(index) {
                    by.skip(&mut reader)?;
                }
                let value = before.get(..before.len() - reader.rest().len());
                Ok(SortValue::Value(value.unwrap_or_default().to_vec()))
            }
            AggregateSort::Measure(index) => {
                let measure = self.plan.measures.get(index);
                let measure = measure.ok_or_else(malformed)?;
                Ok(measure_sort_value(measure.1, sum.row, sum.items(index)))
            }
        }
    }
}

/// A row's value for one sort column.
enum SortValue {
    Nothing,
    Whole(i128),
    Double(f64),
    Value(Vec<u8>),
}

impl SortValue {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Whole(left), Self::Whole(right)) => left.cmp(right),
            (Self::Double(left), Self::Double(right)) => left.total_cmp(right),
            (Self::Value(left), Self::Value(right)) => left.cmp(right),
            (Self::Nothing, Self::Nothing) => Ordering::Equal,
            // A measure without values sorts first.
            (Self::Nothing, _) => Ordering::Less,
            (_, Self::Nothing) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }
}

fn measure_sort_value(
    measure: &AggregateMeasure,
    row: &RowState,
    items: Option<&Items>,
) -> SortValue {
    let state = row.0.get(measure.slot);
    let positive = || items.into_iter().flatten().filter(|(_, count)| **count > 0);
    match (&measure.op, state) {
        (MeasureOperator::Sum(..), Some(SlotValue::Exact(sum))) => SortValue::Double(sum.value()),
        (MeasureOperator::Count | MeasureOperator::Sum(..), state) => {
            SortValue::Whole(whole(state))
        }
        (MeasureOperator::Avg(..), state) => {
            mean(state, row.0.get(measure.slot + 1)).map_or(SortValue::Nothing, SortValue::Double)
        }
        (MeasureOperator::Min(_), _) if measure.has_items => of_item(positive().next()),
        (MeasureOperator::Max(_), _) if measure.has_items => of_item(positive().next_back()),
        (
            MeasureOperator::Min(_) | MeasureOperator::Max(_),
            Some(SlotValue::Least(value) | SlotValue::Greatest(value)),
        ) if !value.is_empty() => SortValue::Value(value.clone()),
        (MeasureOperator::Distinct(_), Some(SlotValue::Distinct(set))) if !measure.has_items => {
            SortValue::Whole(set.estimate().into())
        }
        (MeasureOperator::Distinct(_), _) => SortValue::Whole(positive().count() as i128),
        (MeasureOperator::Quantiles(_, shares, accuracy), Some(SlotValue::Sketch(sketch))) => {
            let first = shares.first().copied().unwrap_or(0.5);
            let quantile = sketch.quantile(*accuracy, first);
            quantile.map_or(SortValue::Nothing, SortValue::Double)
        }
        _ => SortValue::Nothing,
    }
}

fn of_item(item: Option<(&Vec<u8>, &i64)>) -> SortValue {
    item.map_or(SortValue::Nothing, |(value, _)| {
        SortValue::Value(value.clone())
    })
}

/// The approximate mean, used only for the order.
#[allow(clippy::cast_precision_loss, reason = "rows are sorted by it")]
fn mean(sum: Option<&SlotValue>, count: Option<&SlotValue>) -> Option<f64> {
    let count = whole(count);
    let sum = match sum {
        Some(SlotValue::Exact(sum)) => sum.value(),
        other => whole(other) as f64,
    };
    (count > 0).then(|| sum / count as f64)
}
