//! Divides compaction output among the parts of a level that are separated by zone.

use std::collections::BTreeMap;

use super::output::{CompactionOutput, TableFactory};
use super::rules::EntrySink;
use super::shape::Separation;
use crate::error::Result;
use crate::extract::ZoneMap;
use crate::key::{EntryKind, Tag, split_expiry};
use crate::options::KeyspaceOptions;
use crate::range_delete::RangeDelete;
use crate::version::file::FileMeta;

/// Writes the tables of all parts in parallel.
pub(crate) struct ZonedOutputs<'a, M: Fn(Option<u8>) -> TableFactory<'a>> {
    options: &'a KeyspaceOptions,
    level: usize,
    divides: bool,
    /// Returns the factory of a part.
    make: M,
    outputs: BTreeMap<u8, CompactionOutput<'a>>,
    zone: ZoneMap,
}

impl<'a, M: Fn(Option<u8>) -> TableFactory<'a>> ZonedOutputs<'a, M> {
    /// For a level. Range deletes go to one part: readers consult those of all tables.
    pub(crate) fn new(
        options: &'a KeyspaceOptions,
        level: usize,
        ranges: Vec<RangeDelete>,
        make: M,
    ) -> Self {
        let divides = options.layout().separation() == Separation::Zones && level > 0;
        let first = CompactionOutput::new(make(divides.then_some(0)), ranges);
        Self {
            options,
            level,
            divides,
            make,
            outputs: BTreeMap::from([(0, first)]),
            zone: ZoneMap::default(),
        }
    }

    fn part_of(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> u8 {
        if !self.divides {
            return 0;
        }
        self.zone.clear();
        match (tag.kind(), self.options.extractor.as_deref()) {
            (
                Some(kind @ (EntryKind::Put | EntryKind::PutExpiring | EntryKind::DeleteWith)),
                Some(extractor),
            ) => {
                let value = split_expiry(kind, value).map_or(value, |(_, value)| value);
                extractor.extract(key, value, &mut self.zone);
            }
            _ => self.zone.add_unknown(),
        }
        self.options.layout().part_of(&self.zone, self.level)
    }

    /// Finishes the last table of each part and returns all that were written.
    pub(crate) fn finish(self) -> Result<Vec<FileMeta>> {
        let mut finished = Vec::new();
        for output in self.outputs.into_values() {
            finished.extend(output.finish()?);
        }
        Ok(finished)
    }
}

impl<'a, M: Fn(Option<u8>) -> TableFactory<'a>> EntrySink for ZonedOutputs<'a, M> {
    fn keep(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        let part = self.part_of(key, tag, value);
        let make = &self.make;
        let output = self
            .outputs
            .entry(part)
            .or_insert_with(|| CompactionOutput::new(make(Some(part)), Vec::new()));
        output.keep(key, tag, value)
    }
}
