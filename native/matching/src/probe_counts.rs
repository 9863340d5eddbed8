//! Counts the entries at a node of the tree of paths by kind of probe, so that only probes in use
//! are computed.

use rillbase_query::text::{Analyzer, Language};

use crate::cells::Levels;
use crate::entry::Probe;
use crate::grams::Grams;
use crate::intervals::Intervals;

/// The number of analyzers that extract terms from text.
const ANALYZERS: u8 = 8;

/// The entries at a node, by kind.
#[derive(Debug, Default)]
pub(crate) struct ProbeCounts {
    /// Hashes of values other than documents and arrays.
    pub(crate) scalars: u32,
    /// Hashes of documents and arrays.
    pub(crate) compounds: u32,
    /// Types.
    pub(crate) kinds: u32,
    /// Entries for any value.
    pub(crate) present: u32,
    /// Entries for null or nothing.
    pub(crate) nothing: u32,
    /// Entries for no value.
    pub(crate) absent: u32,
    /// Intervals, if there are any.
    pub(crate) ranges: Option<Box<Ranges>>,
    /// Fragments of text, if there are any.
    pub(crate) grams: Option<Box<Grams>>,
    /// Cells, if there are any.
    pub(crate) levels: Option<Box<Levels>>,
    /// Terms of the whole document by analyzer, if there are any.
    pub(crate) terms: Option<Box<[u32; ANALYZERS as usize]>>,
}

/// The intervals at a node.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    /// Bounds that two different values of a document may meet: the hull of the values decides.
    pub(crate) hull: Intervals,
    /// Bounds that a single value must meet.
    pub(crate) each: Intervals,
}

impl ProbeCounts {
    /// Adds an entry of a query (`more`) or removes it.
    pub(crate) fn change(&mut self, probe: &Probe, query: u32, more: bool) {
        match probe {
            Probe::Interval {
                interval,
                each,
                sure,
            } => {
                let ranges = self.ranges.get_or_insert_default();
                let intervals = if *each {
                    &mut ranges.each
                } else {
                    &mut ranges.hull
                };
                if more {
                    intervals.insert(*interval, query, *sure);
                } else {
                    intervals.remove(*interval, query);
                }
                self.ranges
                    .take_if(|ranges| ranges.hull.len() + ranges.each.len() == 0);
            }
            Probe::Scalar(_) => count(&mut self.scalars, more),
            Probe::Compound(_) => count(&mut self.compounds, more),
            Probe::Kind(_) => count(&mut self.kinds, more),
            Probe::Present => count(&mut self.present, more),
            Probe::Nothing => count(&mut self.nothing, more),
            Probe::Absent => count(&mut self.absent, more),
            Probe::Gram {
                class, anchored, ..
            } => {
                let grams = self.grams.get_or_insert_default();
                if let Some(counter) = grams.counter(*class, *anchored) {
                    count(counter, more);
                }
                self.grams.take_if(|grams| grams.is_empty());
            }
            Probe::Cell { space, level, .. } => {
                let levels = self.levels.get_or_insert_default();
                levels.change(*space, *level, more);
                self.levels.take_if(|levels| levels.is_empty());
            }
            Probe::Wide => {
                let levels = self.levels.get_or_insert_default();
                count(&mut levels.wide, more);
                self.levels.take_if(|levels| levels.is_empty());
            }
            Probe::Term { analyzer, .. } => {
                let terms = self.terms.get_or_insert_default();
                if let Some(counter) = terms.get_mut(usize::from(*analyzer)) {
                    count(counter, more);
                }
                self.terms
                    .take_if(|terms| terms.iter().all(|count| *count == 0));
            }
        }
    }

    /// Whether there are entries for null or nothing.
    pub(crate) const fn is_watched(&self) -> bool {
        self.nothing + self.absent > 0
    }

    /// The analyzers whose terms have entries, with their numbers.
    pub(crate) fn analyzers(&self) -> impl Iterator<Item = (u8, Analyzer)> {
        let counts = self.terms.iter().flat_map(|terms| terms.iter());
        let numbered = (0..ANALYZERS).zip(counts);
        numbered
            .filter(|(_, count)| **count > 0)
            .map(|(number, _)| (number, numbered_analyzer(number)))
    }

    /// Its approximate size in bytes.
    pub(crate) fn memory(&self) -> usize {
        let ranges = self.ranges.as_ref();
        ranges.map_or(0, |ranges| ranges.hull.memory() + ranges.each.memory())
    }
}

fn count(counter: &mut u32, more: bool) {
    *counter = if more {
        *counter + 1
    } else {
        counter.saturating_sub(1)
    };
}

/// The number of an analyzer.
pub(crate) fn analyzer_number(analyzer: Analyzer) -> u8 {
    u8::from(analyzer.language == Language::None) << 2
        | u8::from(analyzer.case_sensitive) << 1
        | u8::from(analyzer.diacritic_sensitive)
}

fn numbered_analyzer(number: u8) -> Analyzer {
    Analyzer {
        language: if number & 4 == 0 {
            Language::English
        } else {
            Language::None
        },
        case_sensitive: number & 2 != 0,
        diacritic_sensitive: number & 1 != 0,
    }
}
