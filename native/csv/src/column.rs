//! A column of many records in Arrow's layout: the validity bitmap, the values and, for text, the
//! end offsets.

use crate::records::CsvRecords;
use crate::typed::{boolean, double, is_no, micros};

/// Microseconds of a day.
const DAY_MICROS: i64 = 86_400_000_000;

/// The type of a column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the variants are named like the types of analytics tables"
)]
pub enum ColumnType {
    Bool,
    Int32,
    Int64,
    Double,
    Text,
    /// Days since 1970.
    Date,
    /// Microseconds since 1970.
    Timestamp,
}

impl ColumnType {
    /// The type with the name that definitions of tables use.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "bool" => Self::Bool,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "double" => Self::Double,
            "string" => Self::Text,
            "date" => Self::Date,
            "timestamp" => Self::Timestamp,
            _ => return None,
        })
    }
}

/// A text that is not valid for its column's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnProblem {
    /// The line of its record.
    pub line: u64,
    /// One sentence for people.
    pub detail: String,
}

/// The buffers of a column.
#[derive(Debug, Clone, Default)]
pub struct ColumnBuffers {
    /// The number of values, including missing ones.
    pub rows: usize,
    /// A bit for each record.
    pub validity: Vec<u8>,
    /// The ends of texts, after a zero.
    pub ends: Vec<u8>,
    /// The values.
    pub values: Vec<u8>,
    /// The invalid texts, at most as many as requested.
    pub problems: Vec<ColumnProblem>,
}

/// Reads a column of the records from `first` on that have no problem.
#[must_use]
pub fn read_column(
    records: &CsvRecords,
    first: usize,
    column: usize,
    kind: ColumnType,
    max_problems: usize,
) -> ColumnBuffers {
    let mut buffers = ColumnBuffers::default();
    if kind == ColumnType::Text {
        buffers.ends.extend_from_slice(&0_i32.to_le_bytes());
    }
    let rows = records.iter().skip(first);
    let usable = rows.filter(|record| record.problem.is_none());
    for (index, record) in usable.enumerate() {
        let field = record.field(column);
        let is_valid = match (kind, field) {
            (ColumnType::Text, text) => buffers.push_text(text),
            (_, Some(text)) if !text.trim_ascii().is_empty() => {
                let pushed = buffers.push_typed(kind, index, text.trim_ascii());
                if let (Err(what), true) = (pushed, buffers.problems.len() < max_problems) {
                    buffers.problems.push(ColumnProblem {
                        line: record.line,
                        detail: is_no(text, what),
                    });
                }
                pushed.is_ok()
            }
            _ => buffers.push_nothing(kind, index),
        };
        set_bit(&mut buffers.validity, index, is_valid);
        buffers.rows += 1;
    }
    buffers
}

impl ColumnBuffers {
    fn push_text(&mut self, text: Option<&str>) -> bool {
        self.values
            .extend_from_slice(text.unwrap_or_default().as_bytes());
        let end = i32::try_from(self.values.len()).unwrap_or(i32::MAX);
        self.ends.extend_from_slice(&end.to_le_bytes());
        text.is_some()
    }

    /// Appends a value. If the text is not valid for the type, appends a missing value and returns
    /// the form that was expected.
    fn push_typed(
        &mut self,
        kind: ColumnType,
        index: usize,
        text: &str,
    ) -> Result<(), &'static str> {
        let pushed = match kind {
            ColumnType::Bool => boolean(text).map(|value| set_bit(&mut self.values, index, value)),
            ColumnType::Int32 => integer::<i32>(text).map(|value| self.push(&value.to_le_bytes())),
            ColumnType::Int64 => integer::<i64>(text).map(|value| self.push(&value.to_le_bytes())),
            ColumnType::Double => double(text).map(|value| self.push(&value.to_le_bytes())),
            ColumnType::Date => days(text).map(|value| self.push(&value.to_le_bytes())),
            ColumnType::Timestamp => micros(text).map(|value| self.push(&value.to_le_bytes())),
            ColumnType::Text => Some(()),
        };
        if pushed.is_none() {
            self.push_nothing(kind, index);
        }
        pushed.ok_or(match kind {
            ColumnType::Bool => "boolean: expected true or false",
            ColumnType::Int32 => "integer of 32 bits",
            ColumnType::Int64 => "integer of 64 bits",
            ColumnType::Date => "day such as 2026-11-21",
            ColumnType::Timestamp => "time such as 2026-11-21T08:00:00Z",
            ColumnType::Double | ColumnType::Text => "number",
        })
    }

    fn push_nothing(&mut self, kind: ColumnType, index: usize) -> bool {
        match kind {
            ColumnType::Bool => set_bit(&mut self.values, index, false),
            ColumnType::Int32 | ColumnType::Date => self.push(&[0; 4]),
            ColumnType::Int64 | ColumnType::Double | ColumnType::Timestamp => self.push(&[0; 8]),
            ColumnType::Text => {}
        }
        false
    }

    fn push(&mut self, bytes: &[u8]) {
        self.values.extend_from_slice(bytes);
    }
}

fn integer<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn days(text: &str) -> Option<i32> {
    let is_day = text.len() == "2026-11-21".len();
    let micros = micros(text).filter(|_| is_day)?;
    i32::try_from(micros.div_euclid(DAY_MICROS)).ok()
}

/// Sets a bit of a bitmap that grows by one bit each time.
fn set_bit(bitmap: &mut Vec<u8>, index: usize, value: bool) {
    if index.is_multiple_of(8) {
        bitmap.push(0);
    }
    if let Some(last) = bitmap.last_mut() {
        *last |= u8::from(value) << (index % 8);
    }
}
