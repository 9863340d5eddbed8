//! Boxes around what a test accepts and around what a document stores, for
//! finding tests by cells.
//!
//! On the sphere a box has three dimensions, those of the unit vectors, so
//! that neither poles nor the date line are special. It is that of a cap:
//! the middle of all positions with the greatest angle to one of them. Caps
//! below a quarter turn are convex: arcs between inner points stay inside,
//! and so does the smaller of the areas that a loop divides the sphere into.

use std::f64::consts::FRAC_PI_2;

use super::parse::shape;
use super::plane::{Pair, PlaneArea};
use super::shape::GeoShape;
use super::sphere::Vector;
use crate::bson::ValueRef;

/// More than what rounding and the tolerance of comparisons can move.
const MARGIN: f64 = 1e-9;
/// The maximum relative error of distances on the plane.
const RELATIVE: f64 = 1e-12;
/// Loops with more points are not checked for self-intersection.
const SIMPLE: usize = 200;
/// Caps of almost a quarter turn or more are too large for a box.
const WIDEST: f64 = FRAC_PI_2 - 1e-6;

/// The coordinates of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// On the sphere, each of its positions.
    Position,
    /// On the sphere, some part of it.
    Part,
    /// On the plane, the point that it is.
    Plane,
}

/// A box; on the plane the third dimension is flat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Region {
    /// The coordinates.
    pub space: Space,
    /// The corner with the least coordinates.
    pub low: [f64; 3],
    /// The corner with the greatest.
    pub high: [f64; 3],
}

/// Where a stored geometry is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Located {
    /// One of its positions on the sphere.
    pub position: Option<[f64; 3]>,
    /// All of it on the sphere; `None` if it is too large for a box.
    pub whole: Option<Region>,
    /// The point on the plane.
    pub plane: Option<[f64; 3]>,
}

impl Region {
    /// Around a cap of the sphere.
    pub(super) fn cap(space: Space, center: Vector, angle: f64) -> Option<Self> {
        // Neither NaN nor an angle above a quarter turn has a box.
        if !(0.0..WIDEST).contains(&angle) {
            return None;
        }
        let reach = 2.0 * (angle / 2.0).sin() + MARGIN;
        let middle = center.coordinates();
        Some(Self {
            space,
            low: middle.map(|coordinate| coordinate - reach),
            high: middle.map(|coordinate| coordinate + reach),
        })
    }

    /// Around all positions of a shape and what lies between them. A loop that
    /// crosses itself also surrounds points on the other side of the sphere.
    pub(super) fn around(space: Space, shape: &GeoShape) -> Option<Self> {
        let mut loops = shape.polygons.iter().map(|polygon| &polygon.outer);
        if !loops.all(|outer| outer.is_simple(SIMPLE)) {
            return None;
        }
        let mut sum = [0.0; 3];
        for position in shape.outer_positions() {
            for (sum, coordinate) in sum.iter_mut().zip(position.coordinates()) {
                *sum += coordinate;
            }
        }
        let center = Vector::towards(sum)?;
        let angles = shape
            .outer_positions()
            .map(|position| position.angle(center));
        Self::cap(space, center, angles.fold(0.0, f64::max))
    }

    /// Around a part of the plane.
    pub(super) fn plane(low: Pair, high: Pair) -> Option<Self> {
        let finite = [low.x, low.y, high.x, high.y]
            .iter()
            .all(|number| number.is_finite());
        finite.then_some(Self {
            space: Space::Plane,
            low: [low.x, low.y, 0.0],
            high: [high.x, high.y, 0.0],
        })
    }

    /// Around all coordinates up to a greatest one.
    pub(super) const fn whole(space: Space, most: f64) -> Self {
        Self {
            space,
            low: [-most; 3],
            high: [most; 3],
        }
    }

    /// Around a circle on the plane.
    pub(super) fn circle(center: Pair, radius: f64) -> Option<Self> {
        let size = radius + center.x.abs() + center.y.abs();
        let reach = radius + size * RELATIVE + f64::MIN_POSITIVE;
        Self::plane(
            Pair {
                x: center.x - reach,
                y: center.y - reach,
            },
            Pair {
                x: center.x + reach,
                y: center.y + reach,
            },
        )
    }
}

impl PlaneArea {
    /// A box around it.
    pub(super) fn region(&self) -> Option<Region> {
        match self {
            Self::Box { low, high } => Region::plane(*low, *high),
            Self::Circle { center, radius } => Region::circle(*center, *radius),
            Self::Polygon(corners) => {
                let first = *corners.first()?;
                let ends = corners.iter().fold((first, first), |(low, high), corner| {
                    let low = Pair {
                        x: low.x.min(corner.x),
                        y: low.y.min(corner.y),
                    };
                    let high = Pair {
                        x: high.x.max(corner.x),
                        y: high.y.max(corner.y),
                    };
                    (low, high)
                });
                Region::plane(ends.0, ends.1)
            }
        }
    }
}

/// Where a value is, if it is a geometry.
#[must_use]
pub fn locate(value: ValueRef<'_>) -> Option<Located> {
    if !matches!(value, ValueRef::Document(_) | ValueRef::Array(_)) {
        return None;
    }
    let shape = shape(value).ok()?;
    Some(Located {
        position: shape.outer_positions().next().map(Vector::coordinates),
        whole: Region::around(Space::Part, &shape),
        plane: shape.pair.map(|pair| [pair.x, pair.y, 0.0]),
    })
}
