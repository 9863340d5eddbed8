//! Areas of a plane: circles and boxes, edges included, and whether two of them intersect.
//!
//! The plane has any unit. Longitudes and latitudes must be projected first, so that a circle is
//! one.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

use crate::error::{Error, Result};

/// West, south, east, north.
pub type Rectangle = [f64; 4];

/// Part of a plane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TopicArea {
    /// All points within a distance of a point.
    Circle {
        /// The point.
        centre: [f64; 2],
        /// The distance.
        radius: f64,
    },
    /// All points of an axis-aligned rectangle.
    Box(Rectangle),
}

impl TopicArea {
    /// A circle.
    pub fn circle(centre: [f64; 2], radius: f64) -> Result<Self> {
        if !centre.iter().all(|at| at.is_finite()) || !radius.is_finite() || radius < 0.0 {
            return Err(refused(
                "a circle needs a finite centre and a finite, non-negative radius",
            ));
        }
        Ok(Self::Circle { centre, radius })
    }

    /// A box.
    pub fn rectangle(sides: Rectangle) -> Result<Self> {
        let [west, south, east, north] = sides;
        if !sides.iter().all(|side| side.is_finite()) || west > east || south > north {
            return Err(refused(
                "a box needs finite sides, west to east and south to north",
            ));
        }
        Ok(Self::Box(sides))
    }

    /// The smallest box around it; a circle's is slightly larger, so that rounding excludes nothing
    /// of the circle.
    pub fn bounds(&self) -> Rectangle {
        match *self {
            Self::Box(sides) => sides,
            Self::Circle {
                centre: [x, y],
                radius,
            } => {
                let spare = (x.abs().max(y.abs()) + radius) * 4.0 * f64::EPSILON;
                let reach = radius + spare;
                [x - reach, y - reach, x + reach, y + reach]
            }
        }
    }

    /// The longer side of its bounds.
    pub(crate) fn diameter(&self) -> f64 {
        let [west, south, east, north] = self.bounds();
        (east - west).max(north - south)
    }

    /// Whether they have a point in common.
    pub fn intersects(&self, other: &Self) -> bool {
        match (*self, *other) {
            (Self::Box([w, s, e, n]), Self::Box([west, south, east, north])) => {
                w <= east && west <= e && s <= north && south <= n
            }
            (
                Self::Circle { centre, radius },
                Self::Circle {
                    centre: [x, y],
                    radius: other,
                },
            ) => {
                let [left, low] = centre;
                (left - x).hypot(low - y) <= radius + other
            }
            (Self::Circle { centre, radius }, Self::Box(sides))
            | (Self::Box(sides), Self::Circle { centre, radius }) => {
                let ([x, y], [west, south, east, north]) = (centre, sides);
                let nearest = (x.clamp(west, east), y.clamp(south, north));
                (x - nearest.0).hypot(y - nearest.1) <= radius
            }
        }
    }

    /// `area := 1 x y radius | 2 west south east north`, all little-endian doubles.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Circle {
                centre: [x, y],
                radius,
            } => {
                out.push(1);
                put_doubles(out, &[*x, *y, *radius]);
            }
            Self::Box(sides) => {
                out.push(2);
                put_doubles(out, sides);
            }
        }
    }

    pub(crate) fn decode(reader: &mut ByteReader<'_>, kind: u8) -> ReadResult<Self> {
        match kind {
            1 => Ok(Self::Circle {
                centre: [reader.f64_le()?, reader.f64_le()?],
                radius: reader.f64_le()?,
            }),
            2 => Ok(Self::Box(sides(reader)?)),
            _ => Err(reader.error("a kind of extent")),
        }
    }
}

pub(crate) fn sides(reader: &mut ByteReader<'_>) -> ReadResult<Rectangle> {
    let mut side = || reader.f64_le();
    Ok([side()?, side()?, side()?, side()?])
}

pub(crate) fn put_doubles(out: &mut Vec<u8>, numbers: &[f64]) {
    for number in numbers {
        out.put_f64_le(*number);
    }
}

fn refused(what: &'static str) -> Error {
    Error::InvalidArea { what }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn areas_intersect_where_they_touch() {
        let circle = TopicArea::circle([0.0, 0.0], 1.0).unwrap();
        let matches = |other: Result<TopicArea>| circle.intersects(&other.unwrap());
        assert!(matches(TopicArea::circle([2.0, 0.0], 1.0)));
        assert!(!matches(TopicArea::circle([2.0, 0.1], 1.0)));
        assert!(matches(TopicArea::rectangle([1.0, -1.0, 2.0, 1.0])));
        // The corner of its bounds is outside a circle.
        assert!(!matches(TopicArea::rectangle([0.9, 0.9, 2.0, 2.0])));
        assert!(matches(TopicArea::rectangle([-9.0, -9.0, 9.0, 9.0])));
    }

    #[test]
    fn invalid_areas_are_rejected() {
        assert!(TopicArea::circle([f64::NAN, 0.0], 1.0).is_err());
        assert!(TopicArea::circle([0.0, 0.0], -1.0).is_err());
        assert!(TopicArea::rectangle([1.0, 0.0, 0.0, 1.0]).is_err());
    }
}
