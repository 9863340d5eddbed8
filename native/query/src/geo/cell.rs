//! Cells of sphere and plane, as keys of spatial indexes.
//!
//! A key is a class and the number of a cell. Cells are numbered along a Hilbert curve, so that
//! those of a square have successive numbers, and most neighbours are close to each other.
//!
//! On the sphere, the cell is that of the centre of a geometry's box, projected to a face of a cube
//! around the sphere, and the class is that of the box's extent. A query reads each class in the
//! cells of its own box, widened by half of the greatest extent of the class: so a few large
//! geometries do not widen what is read of many points. Geometries that are too large for a box
//! have a class that every query reads.
//!
//! On the plane, the coordinates are the leading bits of doubles in their order, and all keys have
//! one class: only points are compared there.

use super::region::{Located, Region, Space};

/// The bits of a coordinate on a face of the cube.
const FACE_BITS: u32 = 30;
const PLANE_BITS: u32 = 32;
/// The greatest extents of the classes. The first is that of points, whose boxes are not flat.
const EXTENTS: [f64; 7] = [
    4e-9,
    1.0 / 1_048_576.0,
    1.0 / 65_536.0,
    1.0 / 4_096.0,
    1.0 / 256.0,
    1.0 / 16.0,
    0.5,
];
/// The class of geometries that every query reads.
const LARGE: u8 = 255;
/// Where a box contains a position of the sphere, its greatest coordinate is at least 1/√3. The
/// centre of a box with the greatest extent is at most a quarter away from that in each dimension.
const LEAST_COORDINATE: f64 = 0.3;
/// More than what rounding can move on a face.
const MARGIN: f64 = 1e-9;
/// How many ranges of cells a query reads, of points and of each other class.
const POINT_RANGES: usize = 32;
const SHAPE_RANGES: usize = 8;
/// The least number for a part of a region on the plane, and the part of its coordinates that is
/// small.
const PART_RANGES: usize = 10;
const SMALL_PART: f64 = 32.0;

/// A cell of a grid: its key is in the order of the curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Square {
    x: u64,
    y: u64,
    /// The number of bits of a coordinate inside it.
    bits: u32,
}

/// Whole numbers of both coordinates: the first and the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rectangle {
    x: (u64, u64),
    y: (u64, u64),
}

/// The least and the greatest value of a coordinate.
type Interval = (f64, f64);

/// Keys of cells from the first up to, but not including, the second; `None` for the end.
pub type CellRange = (Vec<u8>, Option<Vec<u8>>);

impl Located {
    /// The key of a geometry on the sphere.
    #[must_use]
    pub fn sphere_cell(&self) -> Option<Vec<u8>> {
        self.position?;
        let place = self.whole.and_then(|whole| {
            let extent = extent(&whole);
            let class = EXTENTS.iter().position(|most| extent <= *most)?;
            let center = whole.axes().map(|(low, high)| f64::midpoint(low, high));
            Some((u8::try_from(class).ok()?, cell_of_sphere(center)?))
        });
        let (class, cell) = place.unwrap_or((LARGE, 0));
        Some(key(class, cell))
    }

    /// The key of a point on the plane.
    #[must_use]
    pub fn plane_cell(&self) -> Option<Vec<u8>> {
        let [x, y, _] = self.plane?;
        Some(key(0, curve(PLANE_BITS, ordered(x), ordered(y))))
    }
}

impl Region {
    /// The keys of all geometries that may meet it, in an index of the sphere (`is_plane` false) or
    /// of the plane; `None` if such an index does not have them.
    #[must_use]
    pub fn cell_ranges(&self, is_plane: bool) -> Option<Vec<CellRange>> {
        match (self.space, is_plane) {
            (Space::Plane, true) => Some(self.plane_ranges()),
            (Space::Position | Space::Part, false) => Some(self.sphere_ranges()),
            _ => None,
        }
    }

    /// The intervals of its coordinates.
    fn axes(&self) -> [Interval; 3] {
        let ([x, y, z], [most_x, most_y, most_z]) = (self.low, self.high);
        [(x, most_x), (y, most_y), (z, most_z)]
    }

    fn plane_ranges(&self) -> Vec<CellRange> {
        let [xs, ys, _] = self.axes().map(parts);
        let count = POINT_RANGES / (xs.len() * ys.len()).max(1);
        let rectangles = xs
            .iter()
            .flat_map(|&x| ys.iter().map(move |&y| Rectangle { x, y }));
        let ranges = rectangles.flat_map(|one| one.ranges(PLANE_BITS, count.max(PART_RANGES)));
        ranges
            .map(|(first, last)| (key(0, first), after(0, last)))
            .collect()
    }

    fn sphere_ranges(&self) -> Vec<CellRange> {
        let mut ranges = Vec::new();
        for (class, most) in (0_u8..).zip(EXTENTS) {
            let count = if class == 0 {
                POINT_RANGES
            } else {
                SHAPE_RANGES
            };
            let faces = self.faces(most / 2.0);
            let count = count / faces.len().max(1);
            for (face, rectangle) in faces {
                let start = u64::from(face) << (2 * FACE_BITS);
                for (first, last) in rectangle.ranges(FACE_BITS, count) {
                    ranges.push((key(class, start + first), after(class, start + last)));
                }
            }
        }
        ranges.push((vec![LARGE], None));
        ranges
    }

    /// The rectangles on the faces of the cube that contain the centres of boxes that meet it, if
    /// those extend this far in each direction.
    fn faces(&self, reach: f64) -> Vec<(u8, Rectangle)> {
        let axes = self.axes().map(|(low, high)| (low - reach, high + reach));
        let mut faces = Vec::new();
        for (number, main, others) in turned(axes) {
            let opposite = (-main.1, -main.0);
            for (face, main) in [(number, main), (number + 3, opposite)] {
                let rectangle = projected(main, others);
                faces.extend(rectangle.map(|rectangle| (face, rectangle)));
            }
        }
        faces
    }
}

/// An interval on the plane as whole numbers, divided where it becomes small. Most of the doubles
/// between 0 and 1 are close to 0: without that, cells would be chosen that contain few of these
/// and nearly all other numbers.
fn parts((low, high): Interval) -> Vec<(u64, u64)> {
    let small = low.abs().max(high.abs()) / SMALL_PART;
    let bounds = [low, -small, small, high];
    let inner = bounds.map(|bound| bound.clamp(low, high));
    let pairs = inner.windows(2).filter_map(|pair| match pair {
        [first, last] if first < last => Some((ordered(*first), ordered(*last))),
        _ => None,
    });
    let parts: Vec<_> = pairs.collect();
    if parts.is_empty() {
        return vec![(ordered(low), ordered(high))];
    }
    parts
}

/// Each of the values with its number, and the two that follow it.
fn turned<T: Copy>([x, y, z]: [T; 3]) -> [(u8, T, [T; 2]); 3] {
    [(0, x, [y, z]), (1, y, [z, x]), (2, z, [x, y])]
}

/// The part of a face that a box covers whose coordinate in the direction of the face is `main`.
fn projected((low, high): Interval, others: [Interval; 2]) -> Option<Rectangle> {
    let near = low.max(LEAST_COORDINATE);
    if high < near {
        return None;
    }
    let sides = others.map(|(least, most)| {
        let least = least / if least < 0.0 { near } else { high };
        let most = most / if most < 0.0 { high } else { near };
        (least - MARGIN, most + MARGIN)
    });
    let is_on_face = sides
        .iter()
        .all(|(least, most)| *least <= 1.0 && *most >= -1.0);
    let [x, y] = sides.map(|(least, most)| (on_face(least), on_face(most)));
    is_on_face.then_some(Rectangle { x, y })
}

impl Rectangle {
    /// About this many ranges of numbers along the curve, with both ends, that cover it.
    fn ranges(&self, bits: u32, count: usize) -> Vec<(u64, u64)> {
        let mut inner: Vec<Square> = Vec::new();
        let mut partial = vec![Square { x: 0, y: 0, bits }];
        while !partial.is_empty() && inner.len() + partial.len() < count.max(1) {
            let mut smaller = Vec::new();
            for square in partial.iter().flat_map(Square::quarters) {
                if self.contains(&square) {
                    inner.push(square);
                } else if self.meets(&square) {
                    smaller.push(square);
                }
            }
            partial = smaller;
        }
        let squares = inner.iter().chain(&partial);
        let mut ranges: Vec<(u64, u64)> = squares.map(|square| square.range(bits)).collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, last| {
            let is_adjacent = last.1.checked_add(1) == Some(next.0);
            if is_adjacent {
                last.1 = next.1;
            }
            is_adjacent
        });
        ranges
    }

    fn contains(&self, square: &Square) -> bool {
        let is_within = |(first, last), corner| first <= corner && square.end(corner) <= last;
        is_within(self.x, square.x) && is_within(self.y, square.y)
    }

    fn meets(&self, square: &Square) -> bool {
        let meets = |(first, last), corner| first <= square.end(corner) && corner <= last;
        meets(self.x, square.x) && meets(self.y, square.y)
    }
}

impl Square {
    /// The last coordinate from a corner on.
    fn end(&self, corner: u64) -> u64 {
        corner + ((1 << self.bits) - 1)
    }

    /// Its quarters; itself if it is a single cell.
    fn quarters(&self) -> Vec<Self> {
        let Some(bits) = self.bits.checked_sub(1) else {
            return vec![*self];
        };
        let half = 1 << bits;
        let corners = [(0, 0), (0, half), (half, 0), (half, half)];
        let quarters = corners.map(|(x, y)| Self {
            x: self.x + x,
            y: self.y + y,
            bits,
        });
        quarters.to_vec()
    }

    /// The numbers of its cells along a curve.
    fn range(&self, bits: u32) -> (u64, u64) {
        // They are successive, so the number of any of them leads to the first.
        let inside = if self.bits == 32 {
            u64::MAX
        } else {
            (1 << (2 * self.bits)) - 1
        };
        let number = curve(bits, self.x, self.y);
        (number & !inside, number | inside)
    }
}

fn extent(region: &Region) -> f64 {
    let extents = region.high.iter().zip(&region.low);
    extents.map(|(high, low)| high - low).fold(0.0, f64::max)
}

fn key(class: u8, cell: u64) -> Vec<u8> {
    let mut key = vec![class];
    key.extend_from_slice(&cell.to_be_bytes());
    key
}

/// The first key after a cell.
fn after(class: u8, cell: u64) -> Option<Vec<u8>> {
    match cell.checked_add(1) {
        Some(next) => Some(key(class, next)),
        None => class.checked_add(1).map(|class| vec![class]),
    }
}

/// The cell in the direction of a vector.
fn cell_of_sphere(vector: [f64; 3]) -> Option<u64> {
    let farther = |one: (u8, f64, [f64; 2]), other: (u8, f64, [f64; 2])| {
        if other.1.abs() > one.1.abs() {
            other
        } else {
            one
        }
    };
    let (number, main, others) = turned(vector).into_iter().reduce(farther)?;
    if main.abs() < LEAST_COORDINATE {
        return None;
    }
    let [x, y] = others.map(|other| on_face(other / main.abs()));
    let face = u64::from(if main > 0.0 { number } else { number + 3 });
    Some((face << (2 * FACE_BITS)) + curve(FACE_BITS, x, y))
}

/// The whole number of a coordinate between -1 and 1.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the coordinate is within the bits"
)]
fn on_face(coordinate: f64) -> u64 {
    let cells = f64::from(1_u32 << FACE_BITS);
    let number = f64::midpoint(coordinate, 1.0) * cells;
    number.clamp(0.0, cells - 1.0) as u64
}

/// The leading bits of a number in the order of numbers.
fn ordered(number: f64) -> u64 {
    // The two zeros are equal.
    let bits = (number + 0.0).to_bits();
    let ordered = if number.is_sign_negative() && number != 0.0 {
        !bits
    } else {
        bits | 1 << 63
    };
    ordered >> (64 - PLANE_BITS)
}

/// The number of a cell along the Hilbert curve.
fn curve(bits: u32, mut x: u64, mut y: u64) -> u64 {
    let mut number = 0;
    let last = (1_u64 << bits) - 1;
    for bit in (0..bits).rev() {
        let (right, upper) = (x >> bit & 1, y >> bit & 1);
        number = number << 2 | (3 * right) ^ upper;
        if upper == 0 {
            if right == 1 {
                (x, y) = (last - x, last - y);
            }
            (x, y) = (y, x);
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_on_the_curve_are_neighbours_on_the_grid() {
        let mut cells = vec![(0_i64, 0_i64); 256];
        for x in 0..16 {
            for y in 0..16 {
                let number = usize::try_from(curve(4, x, y)).unwrap();
                cells[number] = (x.cast_signed(), y.cast_signed());
            }
        }
        for pair in cells.windows(2) {
            let ((x, y), (next_x, next_y)) = (pair[0], pair[1]);
            assert_eq!((x - next_x).abs() + (y - next_y).abs(), 1, "{pair:?}");
        }
    }

    #[test]
    fn ranges_cover_a_rectangle_and_little_else() {
        let rectangle = Rectangle {
            x: (3, 9),
            y: (5, 12),
        };
        let ranges = rectangle.ranges(4, 1_000);
        for x in 0..16 {
            for y in 0..16 {
                let number = curve(4, x, y);
                let is_covered = ranges.iter().any(|(a, b)| (*a..=*b).contains(&number));
                let is_inside = (3..=9).contains(&x) && (5..=12).contains(&y);
                assert_eq!(is_covered, is_inside, "{x} {y}");
            }
        }
        for count in [1, 4, 16] {
            let few = rectangle.ranges(4, count);
            assert!(few.len() <= 4 * count, "{count}: {}", few.len());
            let covers = |number| few.iter().any(|(a, b)| (*a..=*b).contains(&number));
            assert!((3..=9).all(|x| (5..=12).all(|y| covers(curve(4, x, y)))));
        }
    }

    #[test]
    fn numbers_of_the_plane_are_in_order() {
        let numbers = [
            f64::MIN,
            -1e9,
            -1.0,
            -0.5,
            -1e-300,
            -0.0,
            0.0,
            1e-300,
            0.5,
            1.0,
            1e9,
            f64::MAX,
        ];
        assert!(numbers.map(ordered).is_sorted());
        assert_eq!(ordered(-0.0), ordered(0.0));
    }

    #[test]
    fn boxes_over_the_axes_of_the_plane_contain_little_else() {
        let region = |low: f64, high: f64| Region {
            space: Space::Plane,
            low: [low, 38.0, 0.0],
            high: [high, 63.0, 0.0],
        };
        for (low, high) in [(-1.7, 23.7), (0.0, 25.0), (-25.0, 0.001), (-30.0, 30.0)] {
            let ranges = region(low, high).cell_ranges(true).unwrap();
            assert!(ranges.len() < 64, "{low} {high}: {}", ranges.len());
            let (mut inside, mut read) = (0, 0);
            for x in -180..180 {
                for y in -90..90 {
                    let (x, y) = (f64::from(x), f64::from(y));
                    let cell = key(0, curve(PLANE_BITS, ordered(x), ordered(y)));
                    let is_below = |end: &Vec<u8>| cell < *end;
                    let mut ranges = ranges.iter();
                    let is_read =
                        ranges.any(|(from, to)| *from <= cell && to.as_ref().is_none_or(is_below));
                    let is_inside = (low..=high).contains(&x) && (38.0..=63.0).contains(&y);
                    assert!(is_read || !is_inside, "{low} {high}: {x} {y}");
                    inside += i32::from(is_inside);
                    read += i32::from(is_read);
                }
            }
            assert!(read < 4 * inside, "{low} {high}: {read} of {inside}");
        }
    }
}
