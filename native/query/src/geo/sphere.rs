//! Points, arcs and loops on the unit sphere.

use std::f64::consts::PI;

/// The radius that converts angles to metres.
pub const EARTH_RADIUS_METERS: f64 = 6_378_100.0;

/// Angles below this count as no distance: less than a tenth of a millimetre.
const TOLERANCE: f64 = 1e-11;

/// Angles are exact to about the root of the precision of numbers where a loop turns around a point
/// close to an edge, or to the point opposite to it.
const OPPOSITE: f64 = 1e-7;

/// A unit vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vector {
    x: f64,
    y: f64,
    z: f64,
}

impl Vector {
    /// The point at a longitude and a latitude in degrees.
    #[must_use]
    pub fn from_degrees(longitude: f64, latitude: f64) -> Self {
        let (lon, lat) = (longitude.to_radians(), latitude.to_radians());
        Self {
            x: lat.cos() * lon.cos(),
            y: lat.cos() * lon.sin(),
            z: lat.sin(),
        }
    }

    /// The point in the direction of a sum of vectors, if it has one.
    pub(super) fn towards([x, y, z]: [f64; 3]) -> Option<Self> {
        let length = (x * x + y * y + z * z).sqrt();
        (length > TOLERANCE).then(|| Self {
            x: x / length,
            y: y / length,
            z: z / length,
        })
    }

    pub(super) const fn coordinates(self) -> [f64; 3] {
        [self.x, self.y, self.z]
    }

    fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    fn cross(self, other: Self) -> Self {
        Self {
            x: self.y * other.z - self.z * other.y,
            y: self.z * other.x - self.x * other.z,
            z: self.x * other.y - self.y * other.x,
        }
    }

    /// The point on the other side of the sphere.
    fn opposite(self) -> Self {
        Self {
            x: -self.x,
            y: -self.y,
            z: -self.z,
        }
    }

    fn length(self) -> f64 {
        self.dot(self).sqrt()
    }

    /// The angle to another point in radians; exact for near points too.
    #[must_use]
    pub fn angle(self, other: Self) -> f64 {
        self.cross(other).length().atan2(self.dot(other))
    }

    /// The angle to the nearest point of an arc.
    #[must_use]
    pub fn angle_to_arc(self, from: Self, to: Self) -> f64 {
        let normal = from.cross(to);
        let ends = self.angle(from).min(self.angle(to));
        if normal.length() < TOLERANCE {
            return ends;
        }
        // Between the planes through the ends and the normal the foot of the
        // perpendicular is nearest.
        let between = normal.cross(from).dot(self) >= 0.0 && to.cross(normal).dot(self) >= 0.0;
        if between {
            (self.dot(normal) / normal.length())
                .clamp(-1.0, 1.0)
                .asin()
                .abs()
        } else {
            ends
        }
    }

    /// Whether it is on an arc.
    pub(super) fn is_on_arc(self, from: Self, to: Self) -> bool {
        self.angle_to_arc(from, to) < TOLERANCE
    }

    pub(super) fn is_same(self, other: Self) -> bool {
        self.angle(other) < TOLERANCE
    }
}

/// Whether two arcs cross at a point inside both.
pub(super) fn cross(a: Vector, b: Vector, c: Vector, d: Vector) -> bool {
    let ab = a.cross(b);
    let (acb, bda) = (-ab.dot(c), ab.dot(d));
    if acb * bda <= 0.0 {
        return false;
    }
    let cd = c.cross(d);
    let (cbd, dac) = (-cd.dot(b), cd.dot(a));
    acb * cbd > 0.0 && acb * dac > 0.0
}

/// Whether two arcs have a point in common.
pub(super) fn touch(a: Vector, b: Vector, c: Vector, d: Vector) -> bool {
    cross(a, b, c, d)
        || a.is_on_arc(c, d)
        || b.is_on_arc(c, d)
        || c.is_on_arc(a, b)
        || d.is_on_arc(a, b)
}

/// A closed loop, whose last point is joined to the first; the smaller area is on its left.
#[derive(Debug, Clone)]
pub(crate) struct SphereLoop {
    points: Vec<Vector>,
}

impl SphereLoop {
    /// Takes the points in either direction.
    pub(super) fn new(mut points: Vec<Vector>) -> Self {
        if turning(&points) < 0.0 {
            points.reverse();
        }
        Self { points }
    }

    pub(super) fn points(&self) -> &[Vector] {
        &self.points
    }

    pub(super) fn edges(&self) -> impl Iterator<Item = (Vector, Vector)> {
        self.points
            .iter()
            .copied()
            .zip(self.points.iter().copied().cycle().skip(1))
    }

    /// Whether no two edges meet, except at the corner between neighbours. A loop of more than
    /// `most` points counts as crossing itself, because the check takes quadratic time.
    pub(super) fn is_simple(&self, most: usize) -> bool {
        let edges: Vec<(Vector, Vector)> = self.edges().filter(|(from, to)| from != to).collect();
        let last = edges.len().saturating_sub(1);
        edges.len() <= most
            && edges.iter().enumerate().all(|(at, (a, b))| {
                // By rounding, neighbours may seem to cross at their corner.
                let others = edges.iter().enumerate().skip(at + 2);
                let mut others = others.filter(|(other, _)| at != 0 || *other != last);
                others.all(|(_, (c, d))| {
                    a != c && a != d && b != c && b != d && !cross(*a, *b, *c, *d)
                })
            })
    }

    pub(super) fn is_on_edge(&self, point: Vector) -> bool {
        self.edges().any(|(from, to)| point.is_on_arc(from, to))
    }

    /// Whether the point is inside, edges excluded: the loop turns once to the left around it.
    pub(super) fn surrounds(&self, point: Vector) -> bool {
        let turned: f64 = self
            .edges()
            .map(|(from, to)| {
                let along = from.dot(to) - from.dot(point) * to.dot(point);
                point.dot(from.cross(to)).atan2(along)
            })
            .sum();
        turned > PI && !self.is_opposite(point)
    }

    /// Whether the point is opposite to an edge, where rounding decides how the loop turns.
    fn is_opposite(&self, point: Vector) -> bool {
        let opposite = point.opposite();
        let mut edges = self.edges();
        edges.any(|(from, to)| opposite.angle_to_arc(from, to) < OPPOSITE)
    }
}

/// Positive when the loop turns to the left around the smaller area: by
/// Gauss and Bonnet the sum of its turning angles is 2π less its area.
fn turning(points: &[Vector]) -> f64 {
    let next = |skip: usize| points.iter().copied().cycle().skip(skip);
    points
        .iter()
        .copied()
        .zip(next(1))
        .zip(next(2))
        .map(|((a, b), c)| {
            let (first, second) = (a.cross(b), b.cross(c));
            b.dot(first.cross(second)).atan2(first.dot(second))
        })
        .sum()
}
