//! Synthetic operations over a plane with hot spots.

use rillbase_engine::Millis;
use rillbase_pubsub::{CellGrid, DeweyId, Granularity, Result, TopicArea, TopicPlace};

/// The start of the virtual clock.
pub(crate) const START: Millis = 1_700_000_000_000;
/// The number of cells per side of the plane.
const CELLS: u64 = 500;
/// The plane of the quad tree, whose leaves have side 1.
const PLANE: f64 = 32.0;
const DEPTH: u32 = 5;

/// The locations of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Places {
    Flat,
    Cells,
    Circles,
}

impl Places {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "flat" => Some(Self::Flat),
            "cells" => Some(Self::Cells),
            "circles" => Some(Self::Circles),
            _ => None,
        }
    }
}

/// The parameters of a workload.
#[derive(Debug, Clone)]
pub(crate) struct WorkloadSetup {
    pub(crate) operations: u64,
    pub(crate) subscriptions: u64,
    pub(crate) publications: u64,
    pub(crate) places: Places,
    pub(crate) self_join: bool,
    pub(crate) rate: u64,
    pub(crate) memory: usize,
    pub(crate) direct: bool,
    /// The block size of our tables; 0 for the default.
    pub(crate) block_bytes: usize,
    pub(crate) description: usize,
    pub(crate) radii: Vec<f64>,
    /// The level of all cells; 0 for all levels.
    pub(crate) level: u32,
}

/// The location of an operation, independent of its representation.
#[derive(Debug, Clone)]
pub(crate) enum Spot {
    Id(DeweyId),
    Cell(DeweyId),
    Circle([f64; 2], f64),
}

/// An operation.
#[derive(Debug, Clone)]
pub(crate) struct WorkloadStep {
    pub(crate) publishes: bool,
    pub(crate) spot: Spot,
}

/// The quad tree.
pub(crate) fn grid() -> Result<CellGrid> {
    CellGrid::new([0.0, 0.0, PLANE, PLANE], 2, DEPTH)
}

/// The representation of a spot.
pub(crate) fn place(spot: &Spot, grid: &CellGrid, granularity: Granularity) -> Result<TopicPlace> {
    match spot {
        Spot::Id(id) => Ok(TopicPlace::id(id.clone())),
        Spot::Cell(id) => TopicPlace::cell(grid, id.clone(), granularity),
        Spot::Circle(centre, radius) => {
            TopicPlace::area(grid, TopicArea::circle(*centre, *radius)?, granularity)
        }
    }
}

/// A fast pseudorandom number generator.
struct SplitMix(u64);

impl SplitMix {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A point of the unit square: half of them near one of twenty towns, of which the first is the
    /// largest.
    fn point(&mut self) -> [f64; 2] {
        if self.roll().is_multiple_of(2) {
            return [self.unit(), self.unit()];
        }
        let town = (20.0 * self.unit() * self.unit()) as u64;
        let mut centre = SplitMix(town + 1);
        let spread = |dice: &mut Self| (dice.unit() + dice.unit() + dice.unit() - 1.5) * 0.05;
        let (x, y) = (centre.unit() + spread(self), centre.unit() + spread(self));
        [x.clamp(0.0, 0.999_999), y.clamp(0.0, 0.999_999)]
    }
}

/// The operations, the same for the same setup.
pub(crate) fn operations(setup: &WorkloadSetup) -> Vec<WorkloadStep> {
    let mut dice = SplitMix(42);
    let whole = setup.subscriptions + setup.publications;
    let step = |_| WorkloadStep {
        publishes: dice.roll() % whole < setup.publications,
        spot: spot(&mut dice, setup),
    };
    (0..setup.operations).map(step).collect()
}

fn spot(dice: &mut SplitMix, setup: &WorkloadSetup) -> Spot {
    let [x, y] = dice.point();
    match setup.places {
        Places::Flat => {
            let cell = |at: f64| (at * CELLS as f64) as u64;
            Spot::Id(DeweyId::root().child(cell(y) * CELLS + cell(x)))
        }
        Places::Cells => {
            // The deepest level is chosen half of the time, each higher one half as often as the
            // one below it.
            let above = dice.roll().trailing_zeros().min(DEPTH - 1);
            let level = match setup.level {
                0 => DEPTH - above,
                level => level.min(DEPTH),
            };
            Spot::Cell(cell([x, y], level))
        }
        Places::Circles => {
            let chosen = dice.roll() as usize % setup.radii.len().max(1);
            let radius = setup.radii.get(chosen).copied().unwrap_or(1.0);
            Spot::Circle([x * PLANE, y * PLANE], radius)
        }
    }
}

fn cell([x, y]: [f64; 2], level: u32) -> DeweyId {
    let side = 1_u64 << level;
    let (column, row) = ((x * side as f64) as u64, (y * side as f64) as u64);
    (0..level).rev().fold(DeweyId::root(), |id, bit| {
        id.child(1 + 2 * (row >> bit & 1) + (column >> bit & 1))
    })
}
