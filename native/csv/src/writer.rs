//! Writes documents as CSV records.

use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::ejson::date::to_rfc3339;
use rillbase_query::ejson::{Form, value_to_string, write_value};

/// Text that starts with one of these characters is a formula to a spreadsheet.
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Writes documents as records with the same columns.
#[derive(Debug, Clone)]
pub struct CsvWriter {
    delimiter: char,
    /// Whether an apostrophe is written before text that a spreadsheet would evaluate as a formula.
    escapes_formulas: bool,
    /// Each column's path.
    columns: Vec<Vec<String>>,
}

impl CsvWriter {
    /// A writer of these fields; dots separate the names of nested documents. A field whose own
    /// name contains a dot is found by its whole name.
    #[must_use]
    pub fn new(columns: &[String], delimiter: u8, escapes_formulas: bool) -> Self {
        let split = |path: &String| path.split('.').map(str::to_owned).collect();
        Self {
            delimiter: char::from(delimiter),
            escapes_formulas,
            columns: columns.iter().map(split).collect(),
        }
    }

    /// Appends the record of the columns' names.
    pub fn header(&self, out: &mut String) {
        for (index, column) in self.columns.iter().enumerate() {
            self.separate(out, index);
            self.text(out, &column.join("."));
        }
        out.push_str("\r\n");
    }

    /// Appends the record of a document.
    pub fn row(&self, out: &mut String, document: Document<'_>) {
        let start = out.len();
        for (index, column) in self.columns.iter().enumerate() {
            self.separate(out, index);
            if let Some(value) = find(document, column) {
                self.value(out, value);
            }
        }
        // A blank line would not be read as a record.
        if out.len() == start {
            out.push_str("\"\"");
        }
        out.push_str("\r\n");
    }

    fn separate(&self, out: &mut String, index: usize) {
        if index > 0 {
            out.push(self.delimiter);
        }
    }

    fn value(&self, out: &mut String, value: ValueRef<'_>) {
        match value {
            ValueRef::Null | ValueRef::Undefined => {}
            ValueRef::String(text) | ValueRef::Symbol(text) => self.text(out, text),
            ValueRef::ObjectId(id) => out.push_str(&id.to_hex()),
            ValueRef::Int64(int) => out.push_str(&int.to_string()),
            ValueRef::Decimal(decimal) => out.push_str(&decimal.to_string()),
            ValueRef::Date(millis) => match to_rfc3339(millis) {
                Some(text) => out.push_str(&text),
                None => self.quoted(out, &value_to_string(value, Form::Relaxed)),
            },
            ValueRef::Bool(_) | ValueRef::Int32(_) | ValueRef::Double(_) => {
                write_value(out, value, Form::Relaxed);
            }
            _ => self.quoted(out, &value_to_string(value, Form::Relaxed)),
        }
    }

    fn text(&self, out: &mut String, text: &str) {
        if self.escapes_formulas && text.starts_with(FORMULA_STARTS) {
            self.quoted(out, &format!("'{text}"));
        } else {
            self.quoted(out, text);
        }
    }

    /// Appends a text, quoted if necessary. An empty text is quoted, because an empty unquoted
    /// field means no value.
    fn quoted(&self, out: &mut String, text: &str) {
        let is_special =
            |character: char| character == self.delimiter || matches!(character, '"' | '\n' | '\r');
        let is_plain = !text.is_empty()
            && !text.contains(is_special)
            && !text.starts_with([' ', '\t', '\u{feff}'])
            && !text.ends_with([' ', '\t']);
        if is_plain {
            out.push_str(text);
            return;
        }
        out.push('"');
        for (index, piece) in text.split('"').enumerate() {
            if index > 0 {
                out.push_str("\"\"");
            }
            out.push_str(piece);
        }
        out.push('"');
    }
}

fn find<'a>(document: Document<'a>, path: &[String]) -> Option<ValueRef<'a>> {
    let (name, rest) = path.split_first()?;
    if rest.is_empty() {
        return document.get(name);
    }
    match document.get(name) {
        Some(ValueRef::Document(nested)) => find(nested, rest),
        _ => document.get(&path.join(".")),
    }
}
