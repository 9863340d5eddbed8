//! Building a generation from stored events while new ones arrive.
//!
//! Events up to a position are added here, step by step; later ones were added to the new
//! generation as they were written. Each step stores its position in the same write as its events,
//! so that none is counted twice, even after a crash.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};
use rillbase_engine::{Sequence, WriteBatch};

use crate::catalog::{AggregateEntry, GenerationBuild};
use crate::contribution::Contribution;
use crate::deltas::Deltas;
use crate::error::Result;
use crate::fields::{Flat, ParsedEvent};
use crate::store::Aggregates;

/// The number of events added by one step.
const STEP: usize = 2000;

impl Aggregates {
    /// Runs one step for each generation that is being built from events. Returns whether there is
    /// more to do.
    pub fn fill(&self) -> Result<bool> {
        let mut has_more = false;
        for aggregate in self.catalog.all() {
            if let Some(building) = &aggregate.shape().building
                && !building.is_ready.load(Ordering::Acquire)
            {
                has_more |= self.fill_step(&aggregate, building)?;
            }
        }
        Ok(has_more)
    }

    fn fill_step(
        &self,
        aggregate: &Arc<AggregateEntry>,
        building: &GenerationBuild,
    ) -> Result<bool> {
        let mut progress = building.generation.number.to_be_bytes().to_vec();
        progress.push(b'f');
        let (sequence, index) = match self.db.get(&self.spaces.kept, &progress)? {
            None => (0, 0),
            Some(value) => read_place(&value)?,
        };
        let _writing = self.gate.read();
        let is_left = aggregate.generation(building.generation.number).is_err();
        if is_left || aggregate.is_dropped() {
            return Ok(false);
        }
        let facts = self.facts(aggregate, (sequence, index), STEP)?;
        let mut deltas = Deltas::default();
        let (mut last, mut room) = (None, Flat::default());
        for fact in facts
            .iter()
            .take_while(|fact| fact.sequence <= building.since)
        {
            last = Some((fact.sequence, fact.index));
            let event = ParsedEvent::event(&fact.json, &mut room)?;
            // The time of an event without its own was that of its write, which is not stored: now
            // is used instead.
            let now = i64::try_from(self.db.now()).unwrap_or(i64::MAX);
            // An event that does not fit the new definition was accepted by the old one.
            let definition = &building.generation.definition;
            if let Ok(contribution) = Contribution::of(definition, event.fields(), now) {
                deltas.add(&building.generation, &contribution, 1);
            }
        }
        let Some((sequence, index)) = last else {
            building.is_ready.store(true, Ordering::Release);
            return Ok(false);
        };
        let mut batch = WriteBatch::new();
        deltas.write(&mut batch, &self.spaces.rows, &self.spaces.items);
        let mut value = Vec::new();
        value.put_varint(sequence);
        value.put_varint(index as u64);
        batch.put(&self.spaces.kept, &progress, &value);
        self.db.write(batch, self.durability)?;
        Ok(true)
    }
}

fn read_place(bytes: &[u8]) -> ReadResult<(Sequence, usize)> {
    let mut reader = ByteReader::new(bytes);
    let sequence = reader.varint()?;
    let index = usize::try_from(reader.varint()?).ok();
    Ok((sequence, reader.check(index, "an index")?))
}
