//! What many contributions change, row by row: one delta per row, however many contributions.
//!
//! A contribution is added only to the row of all its dimensions. Rows of rollups are sums of such
//! rows, and the order of summation does not matter: they are computed once, when all contributions
//! have been added ([`Deltas::spread`]).

use std::collections::HashMap;
use std::sync::Arc;

use rillbase_engine::{Keyspace, WriteBatch};

use crate::contribution::{Contribution, MeasureInput};
use crate::definition::{AggregateDefinition, AggregateMeasure, MeasureOperator};
use crate::hash::Builder;
use crate::keys;
use crate::state::{RowState, SlotValue, greatest, least};

/// A definition with the number at the start of all keys of its rows.
#[derive(Debug)]
pub struct AggregateGeneration {
    /// Never used twice.
    pub number: u64,
    /// Its definition.
    pub definition: AggregateDefinition,
}

/// Changes of rows and items, by their keys.
#[derive(Debug, Default)]
pub struct Deltas {
    /// By generation, all dimensions and the bucket: contributions not spread yet.
    finest: HashMap<Vec<u8>, FinestRows, Builder>,
    rows: HashMap<Vec<u8>, RowState, Builder>,
    items: HashMap<Vec<u8>, i64, Builder>,
    key: Vec<u8>,
}

/// Contributions to the same rows.
#[derive(Debug)]
struct FinestRows {
    generation: Arc<AggregateGeneration>,
    /// One of them, which represents their common rows.
    representative: Contribution,
    row: RowState,
}

impl Deltas {
    /// Adds a contribution `times` times: once, or minus once to retract it.
    pub fn add(
        &mut self,
        generation: &Arc<AggregateGeneration>,
        contribution: &Contribution,
        times: i64,
    ) {
        let definition = &generation.definition;
        if definition.measures.is_empty() {
            return;
        }
        self.key.clear();
        contribution.write_row_id(generation.number, &mut self.key);
        if let Some(finest) = self.finest.get_mut(self.key.as_slice()) {
            apply(&mut finest.row, definition, contribution, times);
        } else {
            let mut row = definition.empty.clone();
            apply(&mut row, definition, contribution, times);
            let finest = FinestRows {
                generation: Arc::clone(generation),
                representative: contribution.clone(),
                row,
            };
            self.finest.insert(self.key.clone(), finest);
        }
        for_items(
            generation,
            contribution,
            &mut self.key,
            &mut |item| match self.items.get_mut(item.key) {
                Some(count) => *count += times,
                None => drop(self.items.insert(item.key.to_vec(), times)),
            },
        );
    }

    /// Spreads the added contributions to the rows of all rollups. Only then are rows visible.
    pub fn spread(&mut self) {
        for (_, finest) in self.finest.drain() {
            let definition = &finest.generation.definition;
            for (rollup, dimensions) in definition.rollups.iter().enumerate() {
                self.key.clear();
                let number = (finest.generation.number, rollup);
                keys::row(&mut self.key, number, dimensions, &finest.representative);
                match self.rows.get_mut(self.key.as_slice()) {
                    Some(row) => row.merge(&finest.row),
                    None => drop(self.rows.insert(self.key.clone(), finest.row.clone())),
                }
            }
        }
    }

    /// Whether an item changes.
    pub(crate) fn has_item(&self, key: &[u8]) -> bool {
        self.items.contains_key(key)
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.finest.is_empty() && self.rows.is_empty() && self.items.is_empty()
    }

    /// The rows that change, with their deltas.
    pub fn rows(&self) -> impl Iterator<Item = (&[u8], &RowState)> {
        self.rows.iter().map(|(key, row)| (key.as_slice(), row))
    }

    /// The items that change.
    pub fn items(&self) -> impl Iterator<Item = (&[u8], i64)> {
        let counted = self.items.iter().filter(|(_, count)| **count != 0);
        counted.map(|(key, count)| (key.as_slice(), *count))
    }

    /// Writes all changes as merge operands.
    pub fn write(&mut self, batch: &mut WriteBatch, rows: &Keyspace, items: &Keyspace) {
        self.spread();
        for (key, row) in self.rows() {
            batch.merge(rows, key, &row.to_bytes());
        }
        for (key, count) in self.items() {
            batch.merge(
                items,
                key,
                &RowState(vec![SlotValue::Count(count)]).to_bytes(),
            );
        }
    }
}

/// An item that a contribution counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ItemContribution<'a> {
    pub(crate) key: &'a [u8],
    /// Its row.
    pub(crate) row: &'a [u8],
    /// The row and the measure.
    pub(crate) group: &'a [u8],
    pub(crate) measure: &'a AggregateMeasure,
}

/// Passes the items that a contribution counts, of all rollups. Keys are built in `key`.
pub(crate) fn for_items(
    generation: &AggregateGeneration,
    contribution: &Contribution,
    key: &mut Vec<u8>,
    take: &mut dyn FnMut(ItemContribution<'_>),
) {
    let definition = &generation.definition;
    if !definition.measures.iter().any(|measure| measure.has_items) {
        return;
    }
    for (rollup, dimensions) in definition.rollups.iter().enumerate() {
        key.clear();
        keys::row(key, (generation.number, rollup), dimensions, contribution);
        let row = key.len();
        let inputs = definition.measures.iter().zip(&contribution.inputs);
        for (index, (measure, input)) in inputs.enumerate() {
            let (true, MeasureInput::Value(value)) = (measure.has_items, input) else {
                continue;
            };
            key.truncate(row);
            key.push(u8::try_from(index).unwrap_or(u8::MAX));
            key.extend_from_slice(value);
            take(ItemContribution {
                key,
                row: key.get(..row).unwrap_or_default(),
                group: key.get(..=row).unwrap_or_default(),
                measure,
            });
        }
    }
}

fn apply(
    row: &mut RowState,
    definition: &AggregateDefinition,
    contribution: &Contribution,
    times: i64,
) {
    if let Some(SlotValue::Count(count)) = row.0.first_mut() {
        *count += times;
    }
    for (measure, input) in definition.measures.iter().zip(&contribution.inputs) {
        if !measure.has_items && *input != MeasureInput::Nothing {
            apply_input(row, measure, input, times);
        }
    }
}

fn apply_input(row: &mut RowState, measure: &AggregateMeasure, input: &MeasureInput, times: i64) {
    let Some(slots) = row.0.get_mut(measure.slot..) else {
        return;
    };
    match (slots, input) {
        ([SlotValue::Whole(sum), ..], MeasureInput::Whole(number)) => {
            *sum = sum.saturating_add(number.saturating_mul(times.into()));
        }
        ([SlotValue::Exact(sum), ..], MeasureInput::Double(double)) => sum.add(*double, times),
        ([SlotValue::Least(own), ..], MeasureInput::Value(value)) => least(own, value),
        ([SlotValue::Greatest(own), ..], MeasureInput::Value(value)) => greatest(own, value),
        ([SlotValue::Distinct(set), ..], MeasureInput::Value(value)) => set.add(value),
        ([SlotValue::Sketch(sketch), ..], MeasureInput::Double(double)) => {
            if let MeasureOperator::Quantiles(_, _, accuracy) = &measure.op {
                sketch.add(*accuracy, *double, times);
            }
        }
        _ => {}
    }
    if let (MeasureOperator::Avg(..), Some(SlotValue::Count(count))) =
        (&measure.op, row.0.get_mut(measure.slot + 1))
    {
        *count += times;
    }
}
