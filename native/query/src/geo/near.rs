//! `$near` and `$nearSphere`: a range of distances, and an order by distance.

use std::f64::consts::PI;

use super::parse::{pair, shape};
use super::plane::Pair;
use super::query::geometry;
use super::region::{Region, Space};
use super::sphere::{EARTH_RADIUS_METERS, Vector};
use crate::bson::{Document, DocumentBuf, DocumentWriter, ValueRef};
use crate::error::{Error, ErrorCode, EvaluationFailure, ParseLocation};
use crate::fuel::Fuel;
use crate::index::FieldOrder;
use crate::number::NumericValue;

/// The distance that is read of an index first, as a part of the greatest one: 10 km on Earth.
const FIRST_SHARE: f64 = 1.0 / 2_048.0;
/// Half a turn, and more than what rounding can add.
const HALF_TURN: f64 = PI + 1e-6;
/// No coordinate of a position is greater.
const WHOLE_SPHERE: f64 = 1.0 + 1e-6;

/// How distances are measured.
#[derive(Debug, Clone, Copy)]
enum DistanceMetric {
    /// On the plane, in the units of the pairs.
    Plane(Pair),
    /// On the sphere, in metres.
    Meters(Vector),
    /// On the sphere, in radians.
    Radians(Vector),
}

/// A parsed `$near` or `$nearSphere`.
#[derive(Debug)]
pub struct Near {
    measure: DistanceMetric,
    least: f64,
    most: f64,
    source: Vec<u8>,
}

/// How an index is read by distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearSpan {
    /// The order of the index.
    pub order: FieldOrder,
    /// A distance to begin with.
    pub first: f64,
    /// The greatest distance up to which a part of the index is read.
    pub widest: f64,
    /// All matches are within this distance.
    pub farthest: f64,
}

fn refuse(location: &ParseLocation<'_>, detail: &str) -> Error {
    Error::new(ErrorCode::InvalidGeometry, location, detail)
}

impl Near {
    /// Parses the operator; `siblings` may hold `$maxDistance` and
    /// `$minDistance` of the legacy form.
    pub fn parse(
        name: &str,
        argument: ValueRef<'_>,
        siblings: Document<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<Self, Error> {
        let mut source = DocumentWriter::new();
        source.append(name, argument);
        for key in ["$maxDistance", "$minDistance"] {
            if let Some(value) = siblings.get(key) {
                source.append(key, value);
            }
        }
        let modern = argument
            .as_document()
            .filter(|document| document.get("$geometry").is_some());
        let measure = match modern {
            Some(document) => DistanceMetric::Meters(center(document, location)?),
            None => legacy(name, argument, location)?,
        };
        let bound = |key: &str, default: f64| {
            let value = modern
                .and_then(|document| document.get(key))
                .or_else(|| siblings.get(key));
            let Some(value) = value else {
                return Ok(default);
            };
            let number = NumericValue::from_value(value)
                .map(NumericValue::to_f64)
                .filter(|number| *number >= 0.0);
            number.ok_or_else(|| refuse(&location.key(key), "a distance is a number from zero"))
        };
        let (least, most) = (
            bound("$minDistance", 0.0)?,
            bound("$maxDistance", f64::INFINITY)?,
        );
        Ok(Self {
            measure,
            least,
            most,
            source: source.finish(),
        })
    }

    /// The operator with its siblings.
    #[must_use]
    pub fn source(&self) -> Document<'_> {
        Document::trusted(&self.source)
    }

    /// The same, within a distance that is less than its own.
    #[must_use]
    pub fn within(&self, most: f64) -> Self {
        let mut source = DocumentWriter::new();
        for (name, value) in self.source().iter() {
            match (name, value) {
                ("$maxDistance", _) => {}
                ("$minDistance", _) => source.append(name, value),
                (_, ValueRef::Document(argument)) if argument.get("$geometry").is_some() => {
                    let mut inner = DocumentWriter::new();
                    let others = argument.iter().filter(|(key, _)| *key != "$maxDistance");
                    others.for_each(|(key, value)| inner.append(key, value));
                    inner.append("$maxDistance", ValueRef::Double(most));
                    source.append(name, ValueRef::Document(DocumentBuf::from(inner).as_ref()));
                }
                _ => {
                    source.append(name, value);
                    source.append("$maxDistance", ValueRef::Double(most));
                }
            }
        }
        Self {
            measure: self.measure,
            least: self.least,
            most,
            source: source.finish(),
        }
    }

    /// How an index is read by its distances.
    #[must_use]
    pub fn span(&self) -> NearSpan {
        let greatest = self.greatest();
        let (order, widest, extent) = match self.measure {
            DistanceMetric::Plane(center) => {
                let extent = center.x.abs().max(center.y.abs()).max(1.0);
                (FieldOrder::Plane, greatest / 8.0, extent)
            }
            _ => (FieldOrder::Sphere, greatest * 0.49, greatest),
        };
        NearSpan {
            order,
            first: (extent * FIRST_SHARE).max(self.least),
            widest,
            farthest: greatest.min(self.most),
        }
    }

    /// No distance is greater.
    fn greatest(&self) -> f64 {
        match self.measure {
            DistanceMetric::Plane(_) => f64::MAX,
            DistanceMetric::Meters(_) => HALF_TURN * EARTH_RADIUS_METERS,
            DistanceMetric::Radians(_) => HALF_TURN,
        }
    }

    /// A box that contains part of the range, for an index: around everything if the distance is the
    /// greatest one.
    #[must_use]
    pub fn indexed_region(&self) -> Option<Region> {
        if self.most.to_bits() != self.greatest().to_bits() {
            return self.region();
        }
        Some(match self.measure {
            DistanceMetric::Plane(_) => Region::whole(Space::Plane, f64::MAX),
            _ => Region::whole(Space::Part, WHOLE_SPHERE),
        })
    }

    /// A box that contains part of the range; `None` if it would be too large.
    #[must_use]
    pub fn region(&self) -> Option<Region> {
        match self.measure {
            DistanceMetric::Plane(center) => Region::circle(center, self.most),
            DistanceMetric::Meters(center) => {
                Region::cap(Space::Part, center, self.most / EARTH_RADIUS_METERS)
            }
            DistanceMetric::Radians(center) => Region::cap(Space::Part, center, self.most),
        }
    }

    /// The distance of a geometry, if it is one and in range.
    pub fn distance(
        &self,
        value: ValueRef<'_>,
        fuel: &Fuel,
    ) -> Result<Option<f64>, EvaluationFailure> {
        if !matches!(value, ValueRef::Document(_) | ValueRef::Array(_)) {
            return Ok(None);
        }
        let Ok(stored) = shape(value) else {
            return Ok(None);
        };
        fuel.steps(1 + stored.positions() as u64 / 8)?;
        let distance = match self.measure {
            DistanceMetric::Plane(center) => stored.pair.map(|pair| center.distance(pair)),
            DistanceMetric::Meters(center) => Some(stored.angle(center) * EARTH_RADIUS_METERS),
            DistanceMetric::Radians(center) => Some(stored.angle(center)),
        };
        Ok(distance
            .filter(|distance| (self.least..=self.most).contains(distance) && distance.is_finite()))
    }
}

/// The point of `$geometry`.
fn center(document: Document<'_>, location: &ParseLocation<'_>) -> Result<Vector, Error> {
    for (key, _) in document.iter() {
        if !matches!(key, "$geometry" | "$maxDistance" | "$minDistance") {
            let detail = "only $geometry, $maxDistance and $minDistance are allowed here";
            return Err(refuse(&location.key(key), detail));
        }
    }
    let here = location.key("$geometry");
    let center = geometry(document.get("$geometry").unwrap_or(ValueRef::Null), &here)?;
    match (center.points.as_slice(), center.positions) {
        ([point], 1) => Ok(*point),
        _ => Err(refuse(&here, "the center is a Point")),
    }
}

/// A pair as the center.
fn legacy(
    name: &str,
    argument: ValueRef<'_>,
    location: &ParseLocation<'_>,
) -> Result<DistanceMetric, Error> {
    let center = pair(argument).map_err(|wrong| refuse(location, wrong))?;
    if name == "$near" {
        return Ok(DistanceMetric::Plane(center));
    }
    if center.x.abs() > 180.0 || center.y.abs() > 90.0 {
        return Err(refuse(
            location,
            "the center is [longitude, latitude], within 180 and 90 degrees",
        ));
    }
    Ok(DistanceMetric::Radians(Vector::from_degrees(
        center.x, center.y,
    )))
}
