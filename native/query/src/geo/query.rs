//! `$geoWithin` and `$geoIntersects`.

use super::parse::{pair, shape};
use super::plane::{Area, Pair};
use super::region::{Region, Space};
use super::shape::Shape;
use super::sphere::Vector;
use crate::bson::{Document, Value, ValueRef};
use crate::error::{Code, Error, Failure, Place};
use crate::fuel::Fuel;
use crate::number::Number;

/// What a geometry is asked for.
#[derive(Debug)]
enum Question {
    /// To lie within polygons on the sphere.
    Within(Shape),
    /// To lie within an angle of a point on the sphere.
    Cap(Vector, f64),
    /// To be a point of an area on the plane.
    Area(Area),
    /// To have a point in common on the sphere.
    Intersects(Shape),
}

/// A parsed `$geoWithin` or `$geoIntersects`.
#[derive(Debug)]
pub struct GeoTest {
    question: Question,
    name: &'static str,
    source: Value,
}

fn refuse(place: &Place<'_>, detail: &str) -> Error {
    Error::new(Code::InvalidGeometry, place, detail)
}

impl GeoTest {
    /// Parses `$geoWithin`.
    pub fn within(argument: ValueRef<'_>, place: &Place<'_>) -> Result<Self, Error> {
        let detail = "$geoWithin takes one of $geometry, $box, $polygon, $center, $centerSphere";
        let (kind, value) = only(argument).ok_or_else(|| refuse(place, detail))?;
        let here = place.key(kind);
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
                Question::Within(shape)
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
                Question::Area(Area::Box {
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
                Question::Area(Area::Polygon(corners))
            }
            "$center" => {
                let (center, radius) = circle(value, &here)?;
                Question::Area(Area::Circle { center, radius })
            }
            "$centerSphere" => {
                let (center, radius) = circle(value, &here)?;
                if center.x.abs() > 180.0 || center.y.abs() > 90.0 {
                    return Err(refuse(
                        &here,
                        "the center is [longitude, latitude], within 180 and 90 degrees",
                    ));
                }
                Question::Cap(Vector::from_degrees(center.x, center.y), radius)
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
    pub fn intersects(argument: ValueRef<'_>, place: &Place<'_>) -> Result<Self, Error> {
        match only(argument) {
            Some(("$geometry", value)) => {
                let question = Question::Intersects(geometry(value, &place.key("$geometry"))?);
                Ok(Self {
                    question,
                    name: "$geoIntersects",
                    source: argument.into(),
                })
            }
            _ => Err(refuse(place, "$geoIntersects takes $geometry")),
        }
    }

    /// The operator's name and argument.
    #[must_use]
    pub const fn source(&self) -> (&'static str, &Value) {
        (self.name, &self.source)
    }

    /// Whether a value is a geometry that passes.
    pub fn passes(&self, value: ValueRef<'_>, fuel: &Fuel) -> Result<bool, Failure> {
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
            Question::Within(area) => on_sphere && area.contains(&stored),
            Question::Cap(center, angle) => on_sphere && stored.is_within(*center, *angle),
            Question::Intersects(other) => on_sphere && other.intersects(&stored),
            Question::Area(area) => stored.pair.is_some_and(|pair| area.contains(pair)),
        })
    }

    /// A box that holds what passes; none where it would be too large.
    #[must_use]
    pub fn region(&self) -> Option<Region> {
        match &self.question {
            Question::Within(area) => Region::around(Space::Position, area),
            Question::Cap(center, angle) => Region::cap(Space::Position, *center, *angle),
            Question::Area(area) => area.region(),
            Question::Intersects(other) => Region::around(Space::Part, other),
        }
    }

    /// Every position may meet every edge.
    const fn cost(&self, stored: &Shape) -> u64 {
        let own = match &self.question {
            Question::Within(shape) | Question::Intersects(shape) => shape.positions,
            Question::Area(Area::Polygon(corners)) => corners.len(),
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

pub(super) fn geometry(value: ValueRef<'_>, place: &Place<'_>) -> Result<Shape, Error> {
    if !matches!(value, ValueRef::Document(_)) {
        return Err(refuse(place, "$geometry takes a GeoJSON document"));
    }
    let shape = shape(value).map_err(|wrong| refuse(place, wrong))?;
    if shape.points.is_empty() && shape.lines.is_empty() && shape.polygons.is_empty() {
        return Err(refuse(place, "the geometry is empty"));
    }
    Ok(shape)
}

fn pairs(value: ValueRef<'_>, place: &Place<'_>) -> Result<Vec<Pair>, Error> {
    let points: Vec<ValueRef<'_>> = match value {
        ValueRef::Array(array) => array.iter().collect(),
        ValueRef::Document(document) => document.iter().map(|(_, value)| value).collect(),
        _ => return Err(refuse(place, "an array of points is expected")),
    };
    let points = points.into_iter().enumerate();
    points
        .map(|(index, point)| pair(point).map_err(|wrong| refuse(&place.index(index), wrong)))
        .collect()
}

fn circle(value: ValueRef<'_>, place: &Place<'_>) -> Result<(Pair, f64), Error> {
    let detail = "a circle is [[x, y], radius], the radius from zero";
    let parts = value
        .as_array()
        .filter(|array| array.len() == 2)
        .ok_or_else(|| refuse(place, detail))?;
    let center = parts
        .get(0)
        .map(pair)
        .and_then(Result::ok)
        .ok_or_else(|| refuse(&place.index(0), detail))?;
    let radius = parts
        .get(1)
        .and_then(Number::from_value)
        .map(Number::to_f64);
    let radius = radius
        .filter(|radius| *radius >= 0.0)
        .ok_or_else(|| refuse(&place.index(1), detail))?;
    Ok((center, radius))
}
