//! Guesses the delimiter of a file and the types of its columns.

use crate::reader::{CsvReader, DELIMITERS};
use crate::records::{CsvRecord, CsvRecords};
use crate::typed::CsvType;

/// The delimiter with which most records of a sample have the same number of fields; among equals,
/// the one with more fields.
#[must_use]
pub fn guess_delimiter(sample: &[u8]) -> u8 {
    let mut best = (0, 0, b',');
    for delimiter in DELIMITERS {
        let mut reader = CsvReader::new(delimiter);
        let records = reader.push(sample).unwrap_or_default();
        // The sample may end within a record: only complete ones count, unless there are none.
        let records = if records.is_empty() {
            reader.finish().unwrap_or_default()
        } else {
            records
        };
        let width = records.get(0).map_or(0, |record| record.len());
        let usable = records.iter().filter(|record| record.problem.is_none());
        let usable = if width > 1 { usable.count() } else { 0 };
        if (usable, width) > (best.0, best.1) {
            best = (usable, width, delimiter);
        }
    }
    best.2
}

/// The type of a column: the first type for which all of its values are valid, otherwise text.
#[must_use]
pub fn guess_type(records: &CsvRecords, first: usize, column: usize) -> CsvType {
    const CANDIDATES: [CsvType; 5] = [
        CsvType::Boolean,
        CsvType::Number,
        CsvType::Date,
        CsvType::ObjectId,
        CsvType::Json,
    ];
    let rows: Vec<_> = records.iter().skip(first).collect();
    if texts(&rows, column).next().is_none() {
        return CsvType::Text;
    }
    let fits = |kind: &&CsvType| texts(&rows, column).all(|text| is_plainly(**kind, text));
    CANDIDATES
        .iter()
        .find(fits)
        .copied()
        .unwrap_or(CsvType::Text)
}

fn texts<'a>(rows: &'a [CsvRecord<'a>], column: usize) -> impl Iterator<Item = &'a str> {
    let fields = rows.iter().filter_map(move |record| record.field(column));
    fields.filter(|text| !text.trim_ascii().is_empty())
}

/// Whether a text unambiguously has a type: `1` is not taken for a boolean, nor a JSON string for
/// JSON.
fn is_plainly(kind: CsvType, text: &str) -> bool {
    let trimmed = text.trim_ascii();
    let may_be = match kind {
        CsvType::Boolean => ["true", "false"]
            .iter()
            .any(|word| trimmed.eq_ignore_ascii_case(word)),
        CsvType::Json => trimmed.starts_with(['{', '[']),
        _ => true,
    };
    may_be && kind.value(text).is_ok()
}
