//! `$geoWithin` and `$geoIntersects`.

use super::parse::{pair, shape};
use super::plane::{Pair, PlaneArea};
use super::region::{Region, Space};
use super::shape::GeoShape;
use super::sphere::Vector;
use crate::bson::{Document, Value, ValueRef};
use crate::error::{Error, ErrorCode, EvaluationFailure, ParseLocation};
use crate::fuel::Fuel;
use crate::number::NumericValue;

/// The condition on a geometry.
#[derive(Debug)]
enum GeoPredicate {
    /// To be within polygons on the sphere.
    Within(GeoShape),
    /// To be within an angle of a point on the sphere.
    Cap(Vector, f64),
    /// To be a point of an area on the plane.
    Area(PlaneArea),
    /// To have a point in common on the sphere.
    Intersects(GeoShape),
}

/// A parsed `$geoWithin` or `$geoIntersects`.
#[derive(Debug)]
pub struct GeoTest {
    question: GeoPredicate,
    name: &'static str,
    source: Value,
}

fn refuse(location: &ParseLocation<'_>, detail: &str) -> Error {
    Error::new(ErrorCode::InvalidGeometry, location, detail)
}

impl GeoTest {
    /// Parses `$geoWithin`.
    pub fn within(argument: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Self, Error> {
        let detail = "$geoWithin takes one of $geometry, $box, $polygon, $center, $centerSphere";
        let (kind, value) = only(argument).ok_or_else(|| refuse(location, detail))?;
        let here = location.key(kind);
        let question = match kind {
            "$geometry" => {
                let shape = geometry(value, &here)?;
                if shape.polygons.is_empty() || !shape.points.is_empty() || !shape.lines.is_empty()
                {
                    return Err(refuse(
                        &here,
                        "$geoWithin takes a Polygon or a MultiPolygon",
                    ));
                }
                GeoPredicate::Within(shape)
            }
            "$box" => {
                let corners = pairs(value, &here)?;
                let [a, b] = corners.as_slice() else {
                    return Err(refuse(&here, "$box takes two corners"));
                };
                let low = Pair {
                    x: a.x.min(b.x),
                    y: a.y.min(b.y),
                };
                GeoPredicate::Area(PlaneArea::Box {
                    low,
                    high: Pair {
                        x: a.x.max(b.x),
                        y: a.y.max(b.y),
                    },
                })
            }
            "$polygon" => {
                let corners = pairs(value, &here)?;
                if corners.len() < 3 {
                    return Err(refuse(&here, "$polygon takes three corners or more"));
                }
                GeoPredicate::Area(PlaneArea::Polygon(corners))
            }
            "$center" => {
                let (center, radius) = circle(value, &here)?;
                GeoPredicate::Area(PlaneArea::Circle { center, radius })
            }
            "$centerSphere" => {
                let (center, radius) = circle(value, &here)?;
                if center.x.abs() > 180.0 || center.y.abs() > 90.0 {
                    return Err(refuse(
                        &here,
                        "the center is [longitude, latitude], within 180 and 90 degrees",
                    ));
                }
                GeoPredicate::Cap(Vector::from_degrees(center.x, center.y), radius)
            }
            _ => return Err(refuse(&here, detail)),
        };
        Ok(Self {
            question,
            name: "$geoWithin",
            source: argument.into(),
        })
    }

    /// Parses `$geoIntersects`.
    pub fn intersects(argument: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Self, Error> {
        match only(argument) {
            Some(("$geometry", value)) => {
                let question =
                    GeoPredicate::Intersects(geometry(value, &location.key("$geometry"))?);
                Ok(Self {
                    question,
                    name: "$geoIntersects",
                    source: argument.into(),
                })
            }
            _ => Err(refuse(location, "$geoIntersects takes $geometry")),
        }
    }

    /// The operator's name and argument.
    #[must_use]
    pub const fn source(&self) -> (&'static str, &Value) {
        (self.name, &self.source)
    }

    /// Whether a value is a geometry that passes.
    pub fn passes(&self, value: ValueRef<'_>, fuel: &Fuel) -> Result<bool, EvaluationFailure> {
        if !matches!(value, ValueRef::Document(_) | ValueRef::Array(_)) {
            return Ok(false);
        }
        let Ok(stored) = shape(value) else {
            return Ok(false);
        };
        fuel.steps(self.cost(&stored))?;
        let on_sphere =
            !stored.points.is_empty() || !stored.lines.is_empty() || !stored.polygons.is_empty();
        Ok(match &self.question {
            GeoPredicate::Within(area) => on_sphere && area.contains(&stored),
            GeoPredicate::Cap(center, angle) => on_sphere && stored.is_within(*center, *angle),
            GeoPredicate::Intersects(other) => on_sphere && other.intersects(&stored),
            GeoPredicate::Area(area) => stored.pair.is_some_and(|pair| area.contains(pair)),
        })
    }

    /// A box that contains all matches; `None` if it would be too large.
    #[must_use]
    pub fn region(&self) -> Option<Region> {
        match &self.question {
            GeoPredicate::Within(area) => Region::around(Space::Position, area),
            GeoPredicate::Cap(center, angle) => Region::cap(Space::Position, *center, *angle),
            GeoPredicate::Area(area) => area.region(),
            GeoPredicate::Intersects(other) => Region::around(Space::Part, other),
        }
    }

    /// The fuel of one test: each position of one shape is compared with each edge of the other.
    const fn cost(&self, stored: &GeoShape) -> u64 {
        let own = match &self.question {
            GeoPredicate::Within(shape) | GeoPredicate::Intersects(shape) => shape.positions,
            GeoPredicate::Area(PlaneArea::Polygon(corners)) => corners.len(),
            _ => 1,
        };
        1 + (own as u64).saturating_mul(stored.positions as u64) / 8
    }
}

fn only(argument: ValueRef<'_>) -> Option<(&str, ValueRef<'_>)> {
    let document: Document<'_> = argument
        .as_document()
        .filter(|document| document.len() == 1)?;
    document.iter().next()
}

pub(super) fn geometry(
    value: ValueRef<'_>,
    location: &ParseLocation<'_>,
) -> Result<GeoShape, Error> {
    if !matches!(value, ValueRef::Document(_)) {
        return Err(refuse(location, "$geometry takes a GeoJSON document"));
    }
    let shape = shape(value).map_err(|wrong| refuse(location, wrong))?;
    if shape.points.is_empty() && shape.lines.is_empty() && shape.polygons.is_empty() {
        return Err(refuse(location, "the geometry is empty"));
    }
    Ok(shape)
}

fn pairs(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Vec<Pair>, Error> {
    let points: Vec<ValueRef<'_>> = match value {
        ValueRef::Array(array) => array.iter().collect(),
        ValueRef::Document(document) => document.iter().map(|(_, value)| value).collect(),
        _ => return Err(refuse(location, "an array of points is expected")),
    };
    let points = points.into_iter().enumerate();
    points
        .map(|(index, point)| pair(point).map_err(|wrong| refuse(&location.index(index), wrong)))
        .collect()
}

fn circle(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<(Pair, f64), Error> {
    let detail = "a circle is [[x, y], radius], the radius from zero";
    let parts = value
        .as_array()
        .filter(|array| array.len() == 2)
        .ok_or_else(|| refuse(location, detail))?;
    let center = parts
        .get(0)
        .map(pair)
        .and_then(Result::ok)
        .ok_or_else(|| refuse(&location.index(0), detail))?;
    let radius = parts
        .get(1)
        .and_then(NumericValue::from_value)
        .map(NumericValue::to_f64);
    let radius = radius
        .filter(|radius| *radius >= 0.0)
        .ok_or_else(|| refuse(&location.index(1), detail))?;
    Ok((center, radius))
}
