//! The earth as a plane: the Mercator projection, which preserves small circles.
//!
//! Lengths grow towards the poles, by the same factor in all directions; a circle's radius is
//! scaled by that of its centre. For a radius of 100 km at 60° north the edge is off by about 1.5
//! %, for one of 1 km by 0.02 %. The plane ends at 85.05° and at the 180th meridian, where areas do
//! not wrap around.

use std::f64::consts::{FRAC_PI_4, PI};

use rillbase_pubsub::{Rectangle, TopicArea};

use crate::refusal::{CommandRefusal, Result};

/// The radius of the earth, in metres.
const RADIUS: f64 = 6_378_137.0;
const MAX_LATITUDE: f64 = 85.05;

/// The plane.
pub(crate) fn bounds() -> Rectangle {
    let half = RADIUS * PI;
    [-half, -half, half, half]
}

fn project([longitude, latitude]: [f64; 2]) -> Result<[f64; 2]> {
    if !(-180.0..=180.0).contains(&longitude) || !(-MAX_LATITUDE..=MAX_LATITUDE).contains(&latitude)
    {
        return Err(CommandRefusal::new(
            "INVALID_AREA",
            "a longitude lies within ±180, a latitude within ±85.05",
        ));
    }
    let y = (FRAC_PI_4 + latitude.to_radians() / 2.0).tan().ln();
    Ok([RADIUS * longitude.to_radians(), RADIUS * y])
}

fn unproject([x, y]: [f64; 2]) -> [f64; 2] {
    let latitude = 2.0 * ((y / RADIUS).exp().atan() - FRAC_PI_4);
    [(x / RADIUS).to_degrees(), latitude.to_degrees()]
}

/// The scale factor at a latitude relative to the equator.
fn scale(latitude: f64) -> f64 {
    latitude.to_radians().cos().recip()
}

/// An area of degrees and metres in the plane.
pub(crate) fn to_plane(area: TopicArea) -> Result<TopicArea> {
    Ok(match area {
        TopicArea::Circle {
            centre: [longitude, latitude],
            radius,
        } => TopicArea::circle(project([longitude, latitude])?, radius * scale(latitude))?,
        TopicArea::Box([west, south, east, north]) => {
            let ([left, bottom], [right, top]) = (project([west, south])?, project([east, north])?);
            TopicArea::rectangle([left, bottom, right, top])?
        }
    })
}

/// An area of the plane in degrees and metres, rounded to a sufficient precision.
pub(crate) fn from_plane(area: TopicArea) -> TopicArea {
    match area {
        TopicArea::Circle { centre, radius } => {
            let [longitude, latitude] = unproject(centre);
            TopicArea::Circle {
                centre: [degrees(longitude), degrees(latitude)],
                radius: round(radius / scale(latitude), 1e3),
            }
        }
        TopicArea::Box([left, bottom, right, top]) => {
            let ([west, south], [east, north]) =
                (unproject([left, bottom]), unproject([right, top]));
            TopicArea::Box([degrees(west), degrees(south), degrees(east), degrees(north)])
        }
    }
}

/// Rounded to about a centimetre.
fn degrees(number: f64) -> f64 {
    round(number, 1e7)
}

fn round(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn areas_round_trip_through_the_plane() {
        let circle = TopicArea::circle([13.4, 52.5], 500.0).unwrap();
        assert_eq!(from_plane(to_plane(circle).unwrap()), circle);
        let sides = TopicArea::rectangle([-74.1, 40.6, -73.9, 40.9]).unwrap();
        assert_eq!(from_plane(to_plane(sides).unwrap()), sides);
        assert!(to_plane(TopicArea::circle([13.4, 89.0], 1.0).unwrap()).is_err());
    }

    #[test]
    fn circles_meet_as_they_do_on_the_ground() {
        // 0.01 degrees of longitude at 60° north are 556.6 m.
        let circle = |longitude: f64, radius: f64| {
            to_plane(TopicArea::circle([longitude, 60.0], radius).unwrap()).unwrap()
        };
        assert!(circle(10.0, 279.0).intersects(&circle(10.01, 279.0)));
        assert!(!circle(10.0, 278.0).intersects(&circle(10.01, 278.0)));
    }
}
