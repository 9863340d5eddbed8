//! Every document that a condition on a region matches has a cell inside the bounds of a spatial
//! index, wherever it is on the sphere or the plane and however large.

use std::fmt::Write as _;

use proptest::prelude::*;
use rillbase_documents::bounds::{IndexBounds, bounds};
use rillbase_documents::entry::{IndexDefinition, entries, fields};
use rillbase_query::filter::Filter;
use rillbase_query::index::FieldOrder;

use crate::common::document;

const ORDERS: [FieldOrder; 2] = [FieldOrder::Sphere, FieldOrder::Plane];

fn index(path: &str, order: FieldOrder) -> IndexDefinition {
    IndexDefinition {
        number: 1,
        fields: fields(&[(path.to_owned(), order)]),
        unique: false,
    }
}

fn filter(text: &str) -> Option<Filter> {
    Filter::parse(document(text).as_ref()).ok()
}

fn is_inside(bounds: &IndexBounds, doc: &str, index: &IndexDefinition) -> bool {
    let entries = entries(document(doc).as_ref(), index).unwrap();
    let mut keys = entries.iter().map(|entry| entry.key.as_slice());
    keys.any(|key| {
        bounds.ranges.iter().any(|range| {
            let is_below = |high: &Vec<u8>| key < high.as_slice();
            key >= range.low.as_slice() && range.high.as_ref().is_none_or(is_below)
        })
    })
}

/// Positions near a few places, among them both poles, the date line, and corners of the cube.
fn position() -> impl Strategy<Value = (f64, f64)> {
    let place = prop::sample::select(vec![
        (0.0, 0.0),
        (180.0, 0.0),
        (-180.0, 10.0),
        (0.0, 90.0),
        (0.0, -90.0),
        (45.0, 35.264_389_682_754_654),
        (45.0, 0.0),
        (13.4, 52.5),
    ]);
    let scale = prop::sample::select(vec![0.0, 1e-9, 1e-6, 1e-3, 0.1, 3.0, 20.0, 90.0]);
    let offset = (-1.0..=1.0_f64, -1.0..=1.0_f64);
    let near = (place, scale, offset).prop_map(|((lon, lat), scale, (east, north))| {
        let lon = lon + scale * east;
        let lon = if lon > 180.0 {
            lon - 360.0
        } else if lon < -180.0 {
            lon + 360.0
        } else {
            lon
        };
        (lon, (lat + scale * north).clamp(-90.0, 90.0))
    });
    prop_oneof![4 => near, 1 => (-180.0..=180.0_f64, -90.0..=90.0_f64)]
}

fn text_of(positions: &[(f64, f64)]) -> String {
    let pairs = positions.iter().map(|(lon, lat)| format!("[{lon},{lat}]"));
    pairs.collect::<Vec<_>>().join(",")
}

/// The corners of a square around a position.
fn square((lon, lat): (f64, f64), size: f64) -> Vec<(f64, f64)> {
    let corners = [
        (-1.0, -1.0),
        (1.0, -1.0),
        (1.0, 1.0),
        (-1.0, 1.0),
        (-1.0, -1.0),
    ];
    let moved = corners.map(|(x, y)| {
        let lon = (lon + size * x).clamp(-180.0, 180.0);
        (lon, (lat + size * y).clamp(-90.0, 90.0))
    });
    moved.to_vec()
}

fn size() -> impl Strategy<Value = f64> {
    prop::sample::select(vec![1e-7, 1e-4, 0.01, 0.5, 2.0, 10.0, 40.0, 80.0])
}

fn polygon() -> impl Strategy<Value = String> {
    let squares = (position(), size()).prop_map(|(center, size)| square(center, size));
    // Of a few corners, which touch or cross one another.
    let corner = (-1..=1_i32, -1..=1_i32);
    let tangled = (position(), size(), prop::collection::vec(corner, 3..7));
    let tangled = tangled.prop_map(|((lon, lat), size, corners)| {
        let corners = corners.iter().chain(corners.first());
        let moved = corners.map(|(x, y)| {
            let lon = (lon + size * f64::from(*x)).clamp(-180.0, 180.0);
            (lon, (lat + size * f64::from(*y)).clamp(-90.0, 90.0))
        });
        moved.collect()
    });
    prop_oneof![2 => squares, 1 => tangled].prop_map(|corners| {
        let corners = text_of(&corners);
        format!(r#"{{"type":"Polygon","coordinates":[[{corners}]]}}"#)
    })
}

fn point() -> impl Strategy<Value = String> {
    position().prop_map(|at| format!(r#"{{"type":"Point","coordinates":{}}}"#, text_of(&[at])))
}

fn shape() -> impl Strategy<Value = String> {
    let pair = position().prop_map(|at| text_of(&[at]));
    let members = position().prop_map(|(x, y)| format!(r#"{{"x":{x},"y":{y}}}"#));
    let line = prop::collection::vec(position(), 2..5).prop_map(|at| {
        format!(
            r#"{{"type":"LineString","coordinates":[{}]}}"#,
            text_of(&at)
        )
    });
    let points = prop::collection::vec(position(), 1..5).prop_map(|at| {
        format!(
            r#"{{"type":"MultiPoint","coordinates":[{}]}}"#,
            text_of(&at)
        )
    });
    let beyond = (-1e6..1e6_f64, -1e6..1e6_f64).prop_map(|(x, y)| format!("[{x},{y}]"));
    prop_oneof![4 => point(), 2 => pair, 1 => members, 1 => line, 1 => points, 2 => polygon(), 1 => beyond]
}

fn value() -> impl Strategy<Value = String> {
    let other = prop::sample::select(vec!["null", "5", r#""text""#, "[]", "{}", "[1,2,3]"]);
    let list =
        prop::collection::vec(shape(), 0..4).prop_map(|list| format!("[{}]", list.join(",")));
    let nested = shape().prop_map(|shape| format!(r#"{{"b":{shape}}}"#));
    let elements = prop::collection::vec(shape(), 0..3).prop_map(|list| {
        let elements = list.iter().map(|shape| format!(r#"{{"b":{shape}}}"#));
        format!("[{}]", elements.collect::<Vec<_>>().join(","))
    });
    prop_oneof![
        6 => shape(), 2 => list, 2 => nested, 2 => elements, 1 => other.prop_map(String::from)
    ]
}

fn condition() -> impl Strategy<Value = String> {
    let within = polygon().prop_map(|shape| format!(r#""$geoWithin":{{"$geometry":{shape}}}"#));
    let intersects =
        shape().prop_map(|shape| format!(r#""$geoIntersects":{{"$geometry":{shape}}}"#));
    let cap = (position(), size()).prop_map(|(at, size)| {
        let radius = size.to_radians();
        format!(
            r#""$geoWithin":{{"$centerSphere":[{},{radius}]}}"#,
            text_of(&[at])
        )
    });
    let circle = (position(), size()).prop_map(|(at, size)| {
        format!(r#""$geoWithin":{{"$center":[{},{size}]}}"#, text_of(&[at]))
    });
    let plane = (position(), size()).prop_map(|((x, y), size)| {
        let corners = [(x - size, y - size), (x + size, y + size)];
        format!(r#""$geoWithin":{{"$box":[{}]}}"#, text_of(&corners))
    });
    let near = (point(), size()).prop_map(|(point, size)| {
        let most = size * 111_000.0;
        format!(r#""$near":{{"$geometry":{point},"$maxDistance":{most}}}"#)
    });
    prop_oneof![within, intersects, cap, circle, plane, near]
}

fn any_filter() -> impl Strategy<Value = String> {
    let path = || prop::sample::select(vec!["a", "a", "a.b"]);
    let one =
        (path(), condition()).prop_map(|(path, inner)| format!(r#"{{"{path}":{{{inner}}}}}"#));
    let element =
        condition().prop_map(|inner| format!(r#"{{"a":{{"$elemMatch":{{"b":{{{inner}}}}}}}}}"#));
    let leaf = prop_oneof![5 => one, 1 => element];
    let others = prop::sample::select(vec![
        r#"{"a":null}"#,
        r#"{"a":{"$exists":false}}"#,
        r#"{"c":1}"#,
    ]);
    let leaf = prop_oneof![8 => leaf, 1 => others.prop_map(String::from)];
    leaf.prop_recursive(2, 6, 3, |inner| {
        let name = prop::sample::select(vec!["$and", "$or", "$nor"]);
        (name, prop::collection::vec(inner, 1..3))
            .prop_map(|(name, inner)| format!(r#"{{"{name}":[{}]}}"#, inner.join(",")))
    })
}

fn check(text: &str, docs: &[String]) -> Result<(), TestCaseError> {
    let Some(filter) = filter(text) else {
        return Ok(());
    };
    for path in ["a", "a.b"] {
        for order in ORDERS {
            let index = index(path, order);
            let Some(bounds) = bounds(&filter, &index.fields) else {
                continue;
            };
            for doc in docs {
                if filter.matches(document(doc).as_ref()) == Ok(true) {
                    prop_assert!(
                        is_inside(&bounds, doc, &index),
                        "{text} by {order:?} of {path} for {doc}"
                    );
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn every_match_has_a_cell_inside_the_bounds(
        text in any_filter(), values in prop::collection::vec(value(), 1..8),
    ) {
        let docs: Vec<String> = values.iter().map(|value| format!(r#"{{"a":{value}}}"#)).collect();
        check(&text, &docs)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200_000))]

    #[test]
    #[ignore = "minutes: two million pairs of document and filter"]
    fn cells_hold_for_two_million_pairs(
        text in any_filter(), values in prop::collection::vec(value(), 10),
    ) {
        let docs: Vec<String> = values.iter().map(|value| format!(r#"{{"a":{value}}}"#)).collect();
        check(&text, &docs)?;
    }
}

/// The part of points on a grid of degrees that bounds contain.
fn share_inside(condition: &str, order: FieldOrder) -> f64 {
    let index = index("a", order);
    let filter = filter(&format!(r#"{{"a":{condition}}}"#)).unwrap();
    let bounds = bounds(&filter, &index.fields).unwrap();
    let (mut inside, mut total) = (0.0, 0.0);
    let mut doc = String::new();
    for lon in (-180..180).step_by(2) {
        for lat in (-88..90).step_by(2) {
            doc.clear();
            write!(doc, r#"{{"a":[{lon},{lat}]}}"#).unwrap();
            total += 1.0;
            inside += f64::from(u8::from(is_inside(&bounds, &doc, &index)));
        }
    }
    inside / total
}

#[test]
fn bounds_exclude_nearly_all_distant_points() {
    let sphere = [
        r#"{"$geoWithin":{"$centerSphere":[[13,52],0.05]}}"#,
        r#"{"$geoWithin":{"$centerSphere":[[180,0],0.05]}}"#,
        r#"{"$near":{"$geometry":{"type":"Point","coordinates":[45,35]},"$maxDistance":300000}}"#,
        r#"{"$geoIntersects":{"$geometry":{"type":"Point","coordinates":[4,50]}}}"#,
    ];
    for condition in sphere {
        let share = share_inside(condition, FieldOrder::Sphere);
        assert!((1e-9..0.01).contains(&share), "{condition}: {share}");
    }
    let condition = r#"{"$geoWithin":{"$box":[[10,40],[20,50]]}}"#;
    let share = share_inside(condition, FieldOrder::Plane);
    assert!((0.001..0.02).contains(&share), "{share}");
}

#[test]
fn an_index_of_the_plane_does_not_serve_the_sphere_nor_the_other_way_round() {
    let sphere = filter(r#"{"a":{"$geoWithin":{"$centerSphere":[[1,1],0.1]}}}"#).unwrap();
    let plane = filter(r#"{"a":{"$geoWithin":{"$center":[[1,1],0.1]}}}"#).unwrap();
    for (filter, other) in [(sphere, FieldOrder::Plane), (plane, FieldOrder::Sphere)] {
        assert!(bounds(&filter, &index("a", other).fields).is_none());
    }
}

#[test]
fn only_geometries_have_keys() {
    for value in [
        "null",
        "5",
        r#""text""#,
        "[]",
        "{}",
        "[1]",
        r#"{"type":"Point"}"#,
    ] {
        let doc = document(&format!(r#"{{"a":{value}}}"#));
        for order in ORDERS {
            let entries = entries(doc.as_ref(), &index("a", order)).unwrap();
            assert!(entries.is_empty(), "{value} by {order:?}: {entries:?}");
        }
    }
    let beyond = document(r#"{"a":[1000,2000]}"#);
    let counts = ORDERS.map(|order| entries(beyond.as_ref(), &index("a", order)).unwrap().len());
    assert_eq!(
        counts,
        [0, 1],
        "a pair beyond the degrees is on the plane only"
    );
}
