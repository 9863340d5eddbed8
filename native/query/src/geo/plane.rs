//! Points and areas on the plane.

/// A point on the plane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pair {
    pub(super) x: f64,
    pub(super) y: f64,
}

impl Pair {
    pub(super) fn distance(self, other: Self) -> f64 {
        (self.x - other.x).hypot(self.y - other.y)
    }
}

/// An area on the plane; its edge belongs to it.
#[derive(Debug, Clone)]
pub(super) enum PlaneArea {
    Box { low: Pair, high: Pair },
    Circle { center: Pair, radius: f64 },
    Polygon(Vec<Pair>),
}

impl PlaneArea {
    pub(super) fn contains(&self, point: Pair) -> bool {
        match self {
            Self::Box { low, high } => {
                (low.x..=high.x).contains(&point.x) && (low.y..=high.y).contains(&point.y)
            }
            Self::Circle { center, radius } => center.distance(point) <= *radius,
            Self::Polygon(corners) => in_polygon(corners, point),
        }
    }
}

/// Counts the edges that a ray to the right crosses.
fn in_polygon(corners: &[Pair], point: Pair) -> bool {
    let mut inside = false;
    for (a, b) in corners.iter().zip(corners.iter().cycle().skip(1)) {
        let side = (b.x - a.x) * (point.y - a.y) - (b.y - a.y) * (point.x - a.x);
        let within =
            |low: f64, high: f64, value: f64| low.min(high) <= value && value <= low.max(high);
        if side == 0.0 && within(a.x, b.x, point.x) && within(a.y, b.y, point.y) {
            return true;
        }
        if (a.y > point.y) != (b.y > point.y) && (side > 0.0) == (b.y > a.y) {
            inside = !inside;
        }
    }
    inside
}
