//! Geometry from values: GeoJSON and legacy pairs.
//!
//! The same parser serves queries, where a malformed geometry is an error with a location, and
//! documents, where it is merely not a geometry.

use super::plane::Pair;
use super::shape::{GeoShape, Polygon};
use super::sphere::{SphereLoop, Vector};
use crate::bson::{Array, Document, ValueRef};
use crate::number::NumericValue;

/// Why a value is not a geometry.
pub(super) type GeometryProblem = &'static str;

/// Deepest nesting of geometry collections.
const COLLECTIONS: usize = 4;

/// A geometry: a document with a type, or a legacy pair.
pub(super) fn shape(value: ValueRef<'_>) -> Result<GeoShape, GeometryProblem> {
    match value {
        ValueRef::Document(document)
            if matches!(document.get("type"), Some(ValueRef::String(_))) =>
        {
            let mut shape = GeoShape::default();
            geometry(document, &mut shape, COLLECTIONS)?;
            Ok(shape)
        }
        _ => {
            let pair = pair(value)?;
            let mut shape = GeoShape {
                pair: Some(pair),
                positions: 1,
                ..GeoShape::default()
            };
            // A pair beyond the degrees of the Earth exists on the plane only.
            shape.points.extend(on_sphere(pair));
            Ok(shape)
        }
    }
}

fn on_sphere(pair: Pair) -> Option<Vector> {
    let in_range = pair.x.abs() <= 180.0 && pair.y.abs() <= 90.0;
    in_range.then(|| Vector::from_degrees(pair.x, pair.y))
}

/// `[x, y]`, or a document whose first two fields are numbers.
pub(super) fn pair(value: ValueRef<'_>) -> Result<Pair, GeometryProblem> {
    let wrong = "a point is a pair of finite numbers";
    let mut numbers = match value {
        ValueRef::Array(array) => array.iter(),
        ValueRef::Document(document) => Array::trusted(document.as_bytes()).iter(),
        _ => return Err(wrong),
    };
    let mut next = || {
        let number = numbers
            .next()
            .and_then(NumericValue::from_value)
            .map(NumericValue::to_f64);
        number.filter(|number| number.is_finite()).ok_or(wrong)
    };
    Ok(Pair {
        x: next()?,
        y: next()?,
    })
}

fn position(value: ValueRef<'_>) -> Result<(Pair, Vector), GeometryProblem> {
    let array = matches!(value, ValueRef::Array(_));
    let pair = pair(value)?;
    let vector = on_sphere(pair).filter(|_| array);
    let vector = vector.ok_or("a position is [longitude, latitude], within 180 and 90 degrees")?;
    Ok((pair, vector))
}

fn geometry(
    document: Document<'_>,
    shape: &mut GeoShape,
    depth: usize,
) -> Result<(), GeometryProblem> {
    let kind = document
        .get("type")
        .and_then(|kind| kind.as_str())
        .unwrap_or_default();
    check_reference(document)?;
    if kind == "GeometryCollection" {
        let members = document
            .get("geometries")
            .and_then(|members| members.as_array());
        let members = members.ok_or("a geometry collection has geometries")?;
        for member in members.iter() {
            let member = member
                .as_document()
                .ok_or("a member of a collection is a document")?;
            geometry(
                member,
                shape,
                depth.checked_sub(1).ok_or("collections nest too deeply")?,
            )?;
        }
        return Ok(());
    }
    let coordinates = document
        .get("coordinates")
        .ok_or("a geometry has coordinates")?;
    if kind == "Point" {
        let (pair, point) = position(coordinates)?;
        shape.pair = Some(pair).filter(|_| shape.positions == 0);
        shape.positions += 1;
        shape.points.push(point);
        return Ok(());
    }
    let parts = coordinates.as_array().filter(|parts| !parts.is_empty());
    let parts = parts.ok_or("coordinates are an array that is not empty")?;
    shape.pair = None;
    match kind {
        "MultiPoint" => {
            let points = positions(parts)?;
            shape.positions += points.len();
            shape.points.extend(points);
        }
        "LineString" => line(parts, shape)?,
        "Polygon" => polygon(parts, shape)?,
        "MultiLineString" => each(parts, |part| line(part, shape))?,
        "MultiPolygon" => each(parts, |part| polygon(part, shape))?,
        _ => return Err("the type of the geometry is unknown"),
    }
    Ok(())
}

/// Only the default reference system of GeoJSON is supported.
fn check_reference(document: Document<'_>) -> Result<(), GeometryProblem> {
    let Some(reference) = document.get("crs") else {
        return Ok(());
    };
    let properties = reference
        .as_document()
        .and_then(|inner| inner.get("properties"));
    let name = properties
        .and_then(|inner| inner.as_document())
        .and_then(|inner| inner.get("name"));
    match name.and_then(|name| name.as_str()) {
        Some("EPSG:4326" | "urn:ogc:def:crs:OGC:1.3:CRS84") => Ok(()),
        _ => Err("only the reference systems EPSG:4326 and CRS84 are supported"),
    }
}

fn each(
    parts: Array<'_>,
    mut part: impl FnMut(Array<'_>) -> Result<(), GeometryProblem>,
) -> Result<(), GeometryProblem> {
    parts
        .iter()
        .try_for_each(|inner| part(inner.as_array().ok_or("coordinates are nested arrays")?))
}

fn positions(parts: Array<'_>) -> Result<Vec<Vector>, GeometryProblem> {
    parts
        .iter()
        .map(|part| position(part).map(|(_, vector)| vector))
        .collect()
}

fn line(parts: Array<'_>, shape: &mut GeoShape) -> Result<(), GeometryProblem> {
    let mut points = positions(parts)?;
    points.dedup();
    if points.len() < 2 {
        return Err("a line has two positions or more");
    }
    shape.positions += points.len();
    shape.lines.push(points);
    Ok(())
}

fn polygon(parts: Array<'_>, shape: &mut GeoShape) -> Result<(), GeometryProblem> {
    let mut loops = Vec::new();
    for part in parts.iter() {
        let part = part.as_array().ok_or("a polygon consists of loops")?;
        let mut points = positions(part)?;
        if points.len() < 4 || points.first() != points.last() {
            return Err("a loop has four positions or more, the last being the first");
        }
        points.pop();
        points.dedup();
        if points.len() < 3 {
            return Err("a loop has three different positions or more");
        }
        shape.positions += points.len();
        loops.push(SphereLoop::new(points));
    }
    let mut loops = loops.into_iter();
    let outer = loops.next().ok_or("a polygon has an outer loop")?;
    shape.polygons.push(Polygon {
        outer,
        holes: loops.collect(),
    });
    Ok(())
}
