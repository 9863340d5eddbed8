//! Finds the regions that contain a geometry, among very many.
//!
//! Space is cut into cells at each of several levels, the cells of a level being twice as wide as
//! those of the one below. A region is registered in the cells of the lowest level at which three
//! cells in each direction cover it; a geometry is looked up in its cells at each level in use.
//! Cells that the sphere does not pass through are omitted.

use std::collections::BTreeMap;

use rillbase_query::bson::ValueRef;
use rillbase_query::geo::{Region, Space, locate};

use crate::entry::Probe;
use crate::hashes::{Hashes, mixed};

/// Levels of cells; the width of a cell is two to the power of its level.
const LEVELS: std::ops::RangeInclusive<i16> = -40..=60;
/// A geometry that covers more cells of a level than this is looked up as wide.
const CELLS: usize = 64;
/// Larger than any rounding error.
const MARGIN: f64 = 1e-9;

/// The numbers of entries at a node, by level, and of wide ones.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    counts: BTreeMap<(Space, i16), u32>,
    pub(crate) wide: u32,
}

/// The entries of a region; `None` if it is too large for cells.
pub(crate) fn probes(region: &Region, hashes: &Hashes) -> Option<Vec<Probe>> {
    let extents = region.high.iter().zip(&region.low);
    let extent = extents.map(|(high, low)| high - low).fold(0.0, f64::max);
    let level = LEVELS.clone().find(|level| 2.0 * width(*level) >= extent)?;
    // Beyond this, neighbouring cells can no longer be distinguished.
    let farthest = region.low.iter().chain(&region.high);
    let farthest = farthest.fold(0.0_f64, |far, coordinate| far.max(coordinate.abs()));
    if farthest / width(level) > 1e15 {
        return None;
    }
    let mut probes = Vec::new();
    each_cell(region.space, level, region.low, region.high, &mut |cell| {
        probes.push(of_cell(region.space, level, cell, hashes));
    });
    if region.space == Space::Part {
        probes.push(Probe::Wide);
    }
    Some(probes)
}

/// The width of a level's cells.
fn width(level: i16) -> f64 {
    f64::from(level).exp2()
}

type Cell = [i64; 3];

fn of_cell(space: Space, level: i16, cell: Cell, hashes: &Hashes) -> Probe {
    let [x, y, z] = cell.map(i64::cast_unsigned);
    let coordinates = mixed(mixed(mixed(hashes.seed(), x), y), z);
    Probe::Cell {
        space,
        level,
        hash: mixed(
            coordinates,
            u64::from(level.cast_unsigned()) << 2 | space as u64,
        ),
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "coordinates that exceed an integer are in the last cell"
)]
fn cell_of(coordinate: f64, level: i16) -> i64 {
    (coordinate / width(level)).floor() as i64
}

/// Passes the cells between two corners to `visit`.
fn each_cell(
    space: Space,
    level: i16,
    low: [f64; 3],
    high: [f64; 3],
    visit: &mut impl FnMut(Cell),
) {
    let [x0, y0, z0] = low.map(|coordinate| cell_of(coordinate, level));
    let [x1, y1, z1] = high.map(|coordinate| cell_of(coordinate, level));
    for x in x0..=x1 {
        for y in y0..=y1 {
            for z in z0..=z1 {
                if space == Space::Plane || meets_sphere([x, y, z], width(level)) {
                    visit([x, y, z]);
                }
            }
        }
    }
}

/// Whether the unit sphere passes through a cell.
#[allow(
    clippy::cast_precision_loss,
    reason = "cells of the sphere have small numbers"
)]
fn meets_sphere(cell: Cell, width: f64) -> bool {
    let (mut nearest, mut farthest) = (0.0, 0.0);
    for number in cell {
        let (low, high) = (number as f64 * width, (number as f64 + 1.0) * width);
        let near = if low <= 0.0 && high >= 0.0 {
            0.0
        } else {
            low.abs().min(high.abs())
        };
        let far = low.abs().max(high.abs());
        nearest += near * near;
        farthest += far * far;
    }
    nearest <= 1.0 + MARGIN && farthest >= 1.0 - MARGIN
}

/// The maximum number of cells between two corners.
fn cells_between(level: i16, low: [f64; 3], high: [f64; 3]) -> usize {
    let counts = low.iter().zip(&high).map(|(low, high)| {
        let count = cell_of(*high, level).saturating_sub(cell_of(*low, level));
        usize::try_from(count).unwrap_or(0).saturating_add(1)
    });
    counts.fold(1, usize::saturating_mul)
}

impl Levels {
    /// Counts an entry of a level, or removes it from the count.
    pub(crate) fn change(&mut self, space: Space, level: i16, more: bool) {
        let count = self.counts.entry((space, level)).or_default();
        *count = if more {
            *count + 1
        } else {
            count.saturating_sub(1)
        };
        if *count == 0 {
            self.counts.remove(&(space, level));
        }
    }

    /// Whether there are no entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.wide == 0
    }

    /// Passes the cells that contain a value and may have entries to `visit`.
    pub(crate) fn cells(
        &self,
        value: ValueRef<'_>,
        hashes: &Hashes,
        visit: &mut impl FnMut(Probe),
    ) {
        let Some(located) = locate(value) else {
            return;
        };
        for (space, level) in self.counts.keys().copied() {
            let corners = match space {
                Space::Position => located.position.map(|at| (at, at)),
                Space::Plane => located.plane.map(|at| (at, at)),
                Space::Part => located.whole.map(|whole| (whole.low, whole.high)),
            };
            let Some((low, high)) = corners else {
                // A geometry on the sphere without a bounding box.
                if space == Space::Part && located.position.is_some() {
                    visit(Probe::Wide);
                }
                continue;
            };
            if cells_between(level, low, high) > CELLS {
                visit(Probe::Wide);
                continue;
            }
            each_cell(space, level, low, high, &mut |cell| {
                visit(of_cell(space, level, cell, hashes));
            });
        }
    }
}
