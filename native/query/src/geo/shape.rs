//! Shapes and their spatial relations.

use super::plane::Pair;
use super::sphere::{SphereLoop, Vector, cross, touch};

/// A polygon: the outer loop and its holes.
#[derive(Debug, Clone)]
pub(super) struct Polygon {
    pub(super) outer: SphereLoop,
    pub(super) holes: Vec<SphereLoop>,
}

impl Polygon {
    /// Whether the point is inside or on an edge.
    fn contains(&self, point: Vector) -> bool {
        let in_hole = |hole: &SphereLoop| hole.surrounds(point) && !hole.is_on_edge(point);
        (self.outer.surrounds(point) || self.outer.is_on_edge(point))
            && !self.holes.iter().any(in_hole)
    }

    fn loops(&self) -> impl Iterator<Item = &SphereLoop> {
        std::iter::once(&self.outer).chain(&self.holes)
    }

    fn edges(&self) -> impl Iterator<Item = (Vector, Vector)> {
        self.loops().flat_map(SphereLoop::edges)
    }

    /// Whether all of an arc is inside, its ends being so.
    fn contains_arc(&self, from: Vector, to: Vector) -> bool {
        !self.edges().any(|(a, b)| cross(from, to, a, b))
    }

    fn contains_polygon(&self, other: &Self) -> bool {
        let inside = other
            .outer
            .points()
            .iter()
            .all(|point| self.contains(*point));
        let arcs = other
            .outer
            .edges()
            .all(|(from, to)| self.contains_arc(from, to));
        // A hole of this one inside the other is not covered, unless the
        // other has a hole there too.
        let uncovered = |hole: &SphereLoop| {
            hole.points()
                .iter()
                .any(|point| other.contains(*point) && !self.contains_edge(*point, other))
        };
        inside && arcs && !self.holes.iter().any(uncovered)
    }

    fn contains_edge(&self, point: Vector, other: &Self) -> bool {
        other.loops().any(|edge| edge.is_on_edge(point)) && self.contains(point)
    }
}

/// A geometry.
#[derive(Debug, Clone, Default)]
pub struct GeoShape {
    pub(super) points: Vec<Vector>,
    /// Arcs of lines.
    pub(super) lines: Vec<Vec<Vector>>,
    pub(super) polygons: Vec<Polygon>,
    /// The point on the plane, when the geometry is one point.
    pub(super) pair: Option<Pair>,
    /// How many positions it has, for the fuel.
    pub(super) positions: usize,
}

impl GeoShape {
    fn arcs(&self) -> impl Iterator<Item = (Vector, Vector)> {
        self.lines
            .iter()
            .flat_map(|line| line.iter().copied().zip(line.iter().copied().skip(1)))
    }

    /// Its positions, those of holes left out.
    pub(super) fn outer_positions(&self) -> impl Iterator<Item = Vector> {
        let corners = self
            .polygons
            .iter()
            .flat_map(|polygon| polygon.outer.points());
        self.points
            .iter()
            .chain(self.lines.iter().flatten())
            .chain(corners)
            .copied()
    }

    /// How many positions it has.
    #[must_use]
    pub const fn positions(&self) -> usize {
        self.positions
    }

    /// Whether the point is in the shape.
    fn contains_point(&self, point: Vector) -> bool {
        self.polygons.iter().any(|polygon| polygon.contains(point))
    }

    /// Whether all of another shape is in the polygons of this one.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        let line = |line: &Vec<Vector>| {
            self.polygons.iter().any(|polygon| {
                let arcs = line.iter().zip(line.iter().skip(1));
                line.iter().all(|point| polygon.contains(*point))
                    && arcs
                        .into_iter()
                        .all(|(from, to)| polygon.contains_arc(*from, *to))
            })
        };
        other.points.iter().all(|point| self.contains_point(*point))
            && other.lines.iter().all(line)
            && other.polygons.iter().all(|inner| {
                self.polygons
                    .iter()
                    .any(|outer| outer.contains_polygon(inner))
            })
    }

    /// Whether two shapes have a point in common.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        self.meets(other) || other.meets(self) || self.crosses(other)
    }

    /// Whether a position of the other is on this one.
    fn meets(&self, other: &Self) -> bool {
        other.outer_positions().any(|position| {
            self.points.iter().any(|point| point.is_same(position))
                || self.arcs().any(|(from, to)| position.is_on_arc(from, to))
                || self.contains_point(position)
        })
    }

    fn crosses(&self, other: &Self) -> bool {
        let edges = |shape: &Self| -> Vec<(Vector, Vector)> {
            shape
                .arcs()
                .chain(shape.polygons.iter().flat_map(Polygon::edges))
                .collect()
        };
        let others = edges(other);
        edges(self)
            .into_iter()
            .any(|(a, b)| others.iter().any(|(c, d)| touch(a, b, *c, *d)))
    }

    /// The least angle from a point.
    #[must_use]
    pub fn angle(&self, point: Vector) -> f64 {
        if self.contains_point(point) {
            return 0.0;
        }
        let points = self.points.iter().map(|other| point.angle(*other));
        let edges = self
            .arcs()
            .chain(self.polygons.iter().flat_map(Polygon::edges));
        points
            .chain(edges.map(|(from, to)| point.angle_to_arc(from, to)))
            .fold(f64::INFINITY, f64::min)
    }

    /// Whether all of the shape is within an angle of a point. Angles below a quarter turn make
    /// caps that no arc between two inner points leaves.
    #[must_use]
    pub fn is_within(&self, center: Vector, angle: f64) -> bool {
        self.outer_positions()
            .all(|position| position.angle(center) <= angle)
    }
}
