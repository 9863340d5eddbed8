//! Complete records. Their fields lie in one buffer, unescaped.

/// Why a record cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordProblem {
    /// A quote inside a field that does not begin with one.
    StrayQuote,
    /// Text after the quote that closes a field.
    TextAfterQuote,
    /// The file ends inside a quoted field.
    UnclosedQuote,
    /// The bytes are not UTF-8.
    NotUtf8,
    /// U+0000, which no text in the product can hold.
    Nul,
    /// More fields than allowed.
    TooManyFields,
    /// The number of fields differs from that of the first record.
    Width {
        /// The fields of this record.
        has: usize,
        /// The fields of the first record.
        first: usize,
    },
}

impl RecordProblem {
    /// One sentence for people.
    #[must_use]
    pub fn detail(self) -> String {
        match self {
            Self::StrayQuote => "A field with quotes in it must be quoted as a whole, and each quote inside written twice.".into(),
            Self::TextAfterQuote => "After the quote that closes a field, only a delimiter or the end of the line may follow.".into(),
            Self::UnclosedQuote => "The file ends inside a quoted field: a closing quote is missing.".into(),
            Self::NotUtf8 => "The text is not UTF-8. Save the file with the encoding UTF-8.".into(),
            Self::Nul => "The text contains a zero byte.".into(),
            Self::TooManyFields => format!("A record may have at most {} fields.", crate::reader::MAX_FIELDS),
            Self::Width { has, first } => format!("The record has {has} fields, but the first one has {first}."),
        }
    }
}

/// The end of a field in the buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldEnd {
    pub(crate) end: usize,
    pub(crate) is_quoted: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordInfo {
    pub(crate) line: u64,
    /// Bytes in the file.
    pub(crate) size: usize,
    /// The end of its fields in the list of all.
    pub(crate) fields_end: usize,
    pub(crate) problem: Option<RecordProblem>,
}

/// Records in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct CsvRecords {
    pub(crate) text: String,
    pub(crate) fields: Vec<FieldEnd>,
    pub(crate) records: Vec<RecordInfo>,
}

/// One record.
#[derive(Debug, Clone, Copy)]
pub struct CsvRecord<'a> {
    /// The line on which it begins, counted from 1.
    pub line: u64,
    /// Its bytes in the file.
    pub size: usize,
    /// Why it cannot be used; then it has no fields.
    pub problem: Option<RecordProblem>,
    text: &'a str,
    start: usize,
    fields: &'a [FieldEnd],
}

impl CsvRecords {
    /// How many there are, including those with problems.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The record at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<CsvRecord<'_>> {
        let info = self.records.get(index)?;
        let before = index.checked_sub(1).and_then(|at| self.records.get(at));
        let first = before.map_or(0, |info| info.fields_end);
        let before = first.checked_sub(1).and_then(|at| self.fields.get(at));
        Some(CsvRecord {
            line: info.line,
            size: info.size,
            problem: info.problem,
            text: &self.text,
            start: before.map_or(0, |field| field.end),
            fields: self.fields.get(first..info.fields_end).unwrap_or_default(),
        })
    }

    /// All records in order.
    pub fn iter(&self) -> impl Iterator<Item = CsvRecord<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl<'a> CsvRecord<'a> {
    /// How many fields it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether it has no fields, such as a record with a problem.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The text of a field. `None` if there is no such field, or if it is empty and unquoted, which
    /// means no value.
    #[must_use]
    pub fn field(&self, column: usize) -> Option<&'a str> {
        let field = self.fields.get(column)?;
        let before = column.checked_sub(1).and_then(|at| self.fields.get(at));
        let start = before.map_or(self.start, |field| field.end);
        let text = self.text.get(start..field.end)?;
        (field.is_quoted || !text.is_empty()).then_some(text)
    }

    /// The texts of all fields.
    pub fn iter(&self) -> impl Iterator<Item = Option<&'a str>> + use<'a> {
        let record = *self;
        (0..self.fields.len()).map(move |column| record.field(column))
    }
}
