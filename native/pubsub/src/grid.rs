//! Areas as cells of a tree, such as a quad tree.
//!
//! A box of the plane is divided into `sides` × `sides` cells, and each of them again, `depth`
//! times. A cell is a [`DeweyId`]: one component for each division, `1 + row * sides + column`,
//! south-west first; the root is everything. An area can be represented by its cells in three ways:
//!
//! - *fixed*: all leaves that it intersects. Two areas that intersect share a leaf.
//! - *variable*: up to four cells of the deepest level whose sides are at least as long as the
//!   area. Two areas that intersect have cells of which one equals or contains the other.
//! - *single*: the deepest cell that contains all of it. The same holds, but an area on a boundary
//!   between large cells is stored high up, and matches far more lookups than it should.
//!
//! Each point belongs to one leaf, on a boundary the one to the east and north, and its cell of any
//! level follows from that leaf: so all three agree. Points outside the box belong to the outermost
//! cells.

use crate::area::{Rectangle, TopicArea};
use crate::error::{Error, Result};
use crate::id::DeweyId;

/// The maximum number of cells that an operation may write.
pub(crate) const MAX_CELLS: u64 = 1 << 16;

/// How an area, or a node of a tree, is represented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// All leaves below it.
    Fixed,
    /// A few cells of about its size.
    Variable,
    /// The one cell that contains all of it.
    Single,
}

/// A box divided into cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellGrid {
    bounds: Rectangle,
    sides: u64,
    depth: u32,
}

/// Cells of one level, both corners inclusive, counted from the south-west.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CellSpan {
    level: u32,
    columns: (u64, u64),
    rows: (u64, u64),
}

impl CellSpan {
    fn count(&self) -> u64 {
        (self.columns.1 - self.columns.0 + 1).saturating_mul(self.rows.1 - self.rows.0 + 1)
    }
}

impl CellGrid {
    /// A grid of `sides`² cells per cell, divided `depth` times.
    pub fn new(bounds: Rectangle, sides: u64, depth: u32) -> Result<Self> {
        let [west, south, east, north] = bounds;
        let is_box = bounds.iter().all(|side| side.is_finite()) && west < east && south < north;
        let refused = |what| Err(Error::InvalidArea { what });
        if !is_box {
            return refused("a grid needs a finite box that is not empty");
        }
        if !(2..=16).contains(&sides) || depth > 30 {
            return refused("a grid is divided into 2 to 16 cells per side, at most 30 times");
        }
        if sides
            .checked_pow(depth)
            .is_none_or(|leaves| leaves > 1 << 31)
        {
            return refused("a grid may have at most 2^31 leaves per side");
        }
        Ok(Self {
            bounds,
            sides,
            depth,
        })
    }

    /// The number of divisions.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// The number of cells per side at a level.
    fn width(&self, level: u32) -> u64 {
        self.sides.saturating_pow(level)
    }

    /// The length of the shorter side of a level's cells.
    fn side(&self, level: u32) -> f64 {
        let [west, south, east, north] = self.bounds;
        (east - west).min(north - south) / double(self.width(level))
    }

    /// The leaf along one axis that contains a coordinate.
    fn leaf(&self, at: f64, low: f64, high: f64) -> u64 {
        let leaves = self.width(self.depth);
        let place = ((at - low) / (high - low) * double(leaves)).floor();
        let place = place.clamp(0.0, double(leaves - 1));
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it lies between 0 and 2^31"
        )]
        let place = place as u64;
        place
    }

    /// The cells of a level that contain points of a box.
    fn span(&self, area: Rectangle, level: u32) -> CellSpan {
        let [west, south, east, north] = self.bounds;
        let [left, bottom, right, top] = area;
        let below = self.width(self.depth - level);
        let column = |at| self.leaf(at, west, east) / below;
        let row = |at| self.leaf(at, south, north) / below;
        CellSpan {
            level,
            columns: (column(left), column(right)),
            rows: (row(bottom), row(top)),
        }
    }

    /// The cells that represent an area.
    pub fn cover(&self, area: &TopicArea, granularity: Granularity) -> Result<Vec<DeweyId>> {
        let bounds = area.bounds();
        match granularity {
            Granularity::Fixed => self.leaves_of(area),
            Granularity::Variable => {
                let fits = |level: &u32| {
                    self.side(*level) >= area.diameter() && self.span(bounds, *level).count() <= 4
                };
                let level = (0..=self.depth).rev().find(fits).unwrap_or(0);
                Ok(self.cells(&self.span(bounds, level)))
            }
            Granularity::Single => {
                let holds = |level: &u32| self.span(bounds, *level).count() == 1;
                let level = (0..=self.depth).rev().find(holds).unwrap_or(0);
                Ok(self.cells(&self.span(bounds, level)))
            }
        }
    }

    /// The leaves that an area intersects.
    fn leaves_of(&self, area: &TopicArea) -> Result<Vec<DeweyId>> {
        let span = self.span(area.bounds(), self.depth);
        if span.count() > MAX_CELLS {
            return Err(Error::TooManyCells);
        }
        let mut leaves = self.cells(&span);
        // The outermost leaves also represent what is outside the grid.
        let [west, south, east, north] = self.bounds;
        let [left, bottom, right, top] = area.bounds();
        if west <= left && right <= east && south <= bottom && top <= north {
            leaves.retain(|leaf| self.rectangle_padded(leaf).intersects(area));
        }
        Ok(leaves)
    }

    fn cells(&self, span: &CellSpan) -> Vec<DeweyId> {
        let rows = span.rows.0..=span.rows.1;
        let cell = |row| {
            let columns = span.columns.0..=span.columns.1;
            columns.map(move |column| self.cell(span.level, column, row))
        };
        rows.flat_map(cell).collect()
    }

    fn cell(&self, level: u32, column: u64, row: u64) -> DeweyId {
        (0..level).rev().fold(DeweyId::root(), |id, below| {
            let size = self.width(below);
            let (column, row) = (column / size % self.sides, row / size % self.sides);
            id.child(1 + row * self.sides + column)
        })
    }

    /// The rectangle of a cell; `None` if the id is not a cell of this grid.
    pub fn rectangle(&self, cell: &DeweyId) -> Option<Rectangle> {
        let (mut column, mut row, mut level) = (0, 0, 0);
        for number in cell.numbers()? {
            let place = number.checked_sub(1)?;
            if place >= self.sides * self.sides || level == self.depth {
                return None;
            }
            column = column * self.sides + place % self.sides;
            row = row * self.sides + place / self.sides;
            level += 1;
        }
        let [west, south, east, north] = self.bounds;
        let cells = double(self.width(level));
        let x = |column: u64| west + (east - west) * (double(column) / cells);
        let y = |row: u64| south + (north - south) * (double(row) / cells);
        Some([x(column), y(row), x(column + 1), y(row + 1)])
    }

    /// A leaf as an area, slightly enlarged, so that rounding leaves no point outside.
    fn rectangle_padded(&self, leaf: &DeweyId) -> TopicArea {
        let [west, south, east, north] = self.rectangle(leaf).unwrap_or(self.bounds);
        let largest = self
            .bounds
            .iter()
            .fold(0.0, |most: f64, side| most.max(side.abs()));
        let spare = largest * 4.0 * f64::EPSILON;
        TopicArea::Box([west - spare, south - spare, east + spare, north + spare])
    }

    /// All leaves at or below a cell.
    pub fn leaves_below(&self, cell: &DeweyId) -> Result<Vec<DeweyId>> {
        let what = "the id is not a cell of this grid";
        let refused = Error::InvalidId { what };
        if self.rectangle(cell).is_none() {
            return Err(refused);
        }
        let left = self.depth - u32::try_from(cell.depth()).unwrap_or(self.depth);
        let children = self.sides * self.sides;
        if children.saturating_pow(left) > MAX_CELLS {
            return Err(Error::TooManyCells);
        }
        let mut cells = vec![cell.clone()];
        for _ in 0..left {
            let below = |cell: &DeweyId| {
                (1..=children)
                    .map(|n| cell.child(n))
                    .collect::<Vec<DeweyId>>()
            };
            cells = cells.iter().flat_map(below).collect();
        }
        Ok(cells)
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "counts of cells along a side are below 2^32"
)]
fn double(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn quad() -> CellGrid {
        CellGrid::new([0.0, 0.0, 32.0, 32.0], 2, 5).unwrap()
    }

    fn names(cells: &[DeweyId]) -> Vec<String> {
        cells.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_area_is_covered_by_up_to_four_cells_of_its_size() {
        let small = TopicArea::circle([16.0, 16.0], 0.25).unwrap();
        let four = quad().cover(&small, Granularity::Variable).unwrap();
        assert_eq!(
            names(&four),
            ["1.4.4.4.4", "2.3.3.3.3", "3.2.2.2.2", "4.1.1.1.1"]
        );
        let single = quad().cover(&small, Granularity::Single).unwrap();
        assert_eq!(single, [DeweyId::root()]);
        let half = TopicArea::rectangle([1.0, 1.0, 4.0, 4.0]).unwrap();
        let cells = quad().cover(&half, Granularity::Variable).unwrap();
        assert_eq!(names(&cells), ["1.1.1", "1.1.2", "1.1.3", "1.1.4"]);
    }

    #[test]
    fn points_outside_belong_to_the_outermost_cells() {
        let outside = TopicArea::circle([-50.0, 90.0], 1.0).unwrap();
        let leaves = quad().cover(&outside, Granularity::Fixed).unwrap();
        assert_eq!(names(&leaves), ["3.3.3.3.3"]);
    }

    #[test]
    fn a_cell_knows_where_it_lies_and_what_is_below_it() {
        let cell = DeweyId::parse("4.1").unwrap();
        assert_eq!(quad().rectangle(&cell), Some([16.0, 16.0, 24.0, 24.0]));
        assert_eq!(quad().leaves_below(&cell).unwrap().len(), 64);
        for other in ["5", "0", "news", "1.1.1.1.1.1"] {
            let other = DeweyId::parse(other).unwrap();
            assert_eq!(quad().rectangle(&other), None);
            assert!(quad().leaves_below(&other).is_err());
        }
    }

    #[test]
    fn an_area_of_too_many_leaves_is_refused() {
        let fine = CellGrid::new([0.0, 0.0, 1.0, 1.0], 2, 20).unwrap();
        let half = TopicArea::rectangle([0.0, 0.0, 0.5, 0.5]).unwrap();
        assert!(matches!(
            fine.cover(&half, Granularity::Fixed),
            Err(Error::TooManyCells)
        ));
        assert_eq!(fine.cover(&half, Granularity::Variable).unwrap().len(), 4);
    }
}
