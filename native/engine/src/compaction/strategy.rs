//! The engine's own layouts.

use super::layout::TableLayout;
use super::plan::CompactionPlan;
use super::shape::KeyspaceShape;
use super::{leveled, tiered, window};
use crate::options::Strategy;

impl TableLayout for Strategy {
    fn name(&self) -> &'static str {
        match self {
            Self::Leveled { .. } => "leveled",
            Self::SizeTiered { .. } => "size-tiered",
            Self::LazyLeveled { .. } => "lazy-leveled",
            Self::TimeWindow { .. } => "time-window",
        }
    }

    fn choose(&self, shape: &KeyspaceShape<'_>) -> Option<CompactionPlan> {
        let (version, options) = (shape.version, shape.options);
        match *self {
            Self::Leveled { fanout } => leveled::choose(version, options, fanout),
            Self::SizeTiered { runs } => tiered::choose(version, options, runs, false),
            Self::LazyLeveled { runs } => tiered::choose(version, options, runs, true),
            Self::TimeWindow { window, runs } => window::choose(version, window, runs),
        }
    }

    fn bottom(&self, shape: &KeyspaceShape<'_>) -> usize {
        let (version, options) = (shape.version, shape.options);
        match *self {
            Self::TimeWindow { .. } => 0,
            Self::Leveled { fanout } => {
                leveled::level_for(version.size(), options, fanout).max(version.deepest())
            }
            _ => version.deepest().max(1),
        }
    }
}
