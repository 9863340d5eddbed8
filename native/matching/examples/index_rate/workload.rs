//! Queries and documents of each class, made from their numbers.

use std::error::Error;
use std::fmt::Write as _;

use rillbase_query::bson::DocumentBuf;
use rillbase_query::ejson::parse_document;
use rillbase_query::filter::Filter;

/// The classes of predicates.
pub(crate) const CLASSES: [&str; 8] = [
    "range", "equality", "three", "regex", "geo", "text", "mixed", "residual",
];

/// How wide a range is.
const WIDTH: u64 = 17;

/// Queries of one class and the documents that they are matched with.
pub(crate) struct ClassWorkload {
    class: &'static str,
    queries: u64,
}

impl ClassWorkload {
    pub(crate) const fn new(class: &'static str, queries: u64) -> Self {
        Self { class, queries }
    }

    /// A number that is unrelated to those of its neighbours.
    pub(crate) const fn scattered(&self, number: u64) -> u64 {
        let mut mixed = number
            .wrapping_add(self.queries)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Predicates that the evaluation of a query tests.
    pub(crate) fn predicates(&self) -> u64 {
        match self.class {
            "residual" | "range" => 2,
            "three" => 3,
            _ => 1,
        }
    }

    pub(crate) fn filter(&self, number: u64) -> Result<Filter, Box<dyn Error>> {
        let text = self.text(self.class, number);
        Ok(Filter::parse(parse_document(text.as_bytes())?.as_ref())?)
    }

    fn text(&self, class: &str, number: u64) -> String {
        let low = number * WIDTH;
        let range = format!(r#""random":{{"$gte":{low},"$lt":{}}}"#, low + WIDTH);
        let word = word(number);
        match class {
            "range" => format!("{{{range}}}"),
            "equality" => format!(r#"{{"s0":"{word}"}}"#),
            "three" => format!(r#"{{"s0":"{word}",{range}}}"#),
            "regex" => format!(r#"{{"s1":{{"$regex":"{}"}}}}"#, &syllables(number)),
            "geo" => {
                let (longitude, latitude) = point(self.scattered(number));
                format!(
                    r#"{{"place":{{"$geoWithin":{{"$centerSphere":[[{longitude},{latitude}],{}]}}}}}}"#,
                    2.0 / f64::from(u32::try_from(self.queries).unwrap_or(u32::MAX)).sqrt()
                )
            }
            "text" => format!(r#"{{"$text":{{"$search":"{word}"}}}}"#),
            "residual" => format!(
                r#"{{"i1":{{"$ne":{number}}},"i2":{{"$not":{{"$mod":[{},1]}}}}}}"#,
                number + 2
            ),
            _ => {
                let of = ["range", "equality", "three", "regex", "geo", "text"];
                let class = of.get(usize::try_from(number % 6).unwrap_or(0));
                self.text(class.unwrap_or(&"range"), number)
            }
        }
    }

    pub(crate) fn document(&self, number: u64) -> Result<DocumentBuf, Box<dyn Error>> {
        let chosen = self.scattered(number) % self.queries;
        let other = self.scattered(number + 1_000_000) % self.queries;
        let random = chosen * WIDTH + self.scattered(number) % WIDTH;
        let (word, inner) = (word(chosen), syllables(other));
        let mut text = format!(
            r#"{{"_id":{number},"s0":"{word}","s1":"x{inner}y","s2":"uvwxyzabcd","s3":"efghijklmn","s4":"opqrstuvwx","i0":1,"i1":2,"i2":3,"i3":4,"random":{random}"#
        );
        if matches!(self.class, "geo" | "mixed") {
            let (longitude, latitude) = point(self.scattered(number + 2_000_000));
            write!(
                text,
                r#","place":{{"type":"Point","coordinates":[{longitude},{latitude}]}}"#
            )?;
        }
        text.push('}');
        Ok(parse_document(text.as_bytes())?)
    }
}

/// Ten letters and digits, unique to the number.
fn word(number: u64) -> String {
    format!("user{number:06}")
}

/// Eight letters, unique to the number.
fn syllables(number: u64) -> String {
    let mut rest = number.wrapping_mul(0x9E37_79B1) & 0xFFFF_FFFF;
    let mut text = String::with_capacity(8);
    for _ in 0..8 {
        text.push(char::from(b'a' + u8::try_from(rest & 15).unwrap_or(0)));
        rest >>= 4;
    }
    text
}

/// A point that is distributed uniformly on the sphere.
fn point(random: u64) -> (f64, f64) {
    let unit =
        |bits: u64| f64::from(u32::try_from(bits & 0xFFFF_FFFF).unwrap_or(0)) / 4_294_967_296.0;
    let latitude = (2.0 * unit(random >> 32) - 1.0).asin().to_degrees();
    (360.0 * unit(random) - 180.0, latitude)
}
