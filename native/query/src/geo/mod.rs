//! Geometry: GeoJSON on the sphere, and legacy pairs on sphere and plane.
//!
//! On the sphere positions are unit vectors and edges are great arcs, so that
//! neither the poles nor the date line are special. A polygon is the smaller
//! of the two areas that its loop divides the sphere into, however it is
//! wound; points on an edge are inside.

mod cell;
mod near;
mod parse;
mod plane;
mod query;
mod region;
mod shape;
mod sphere;

pub use cell::CellRange;
pub use near::{Near, NearSpan};
pub use query::GeoTest;
pub use region::{Located, Region, Space, locate};
pub use shape::GeoShape;
pub use sphere::{EARTH_RADIUS_METERS, Vector};
