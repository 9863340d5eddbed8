//! Bytes as records.
//!
//! Records end with LF, CR or CRLF; blank lines are skipped. A field that begins with a quote ends
//! with one, and contains delimiters and line ends as they are and quotes twice. A byte order mark
//! of UTF-8 is skipped.

use std::fmt;

use crate::records::{CsvRecords, FieldEnd, RecordInfo, RecordProblem};

/// The maximum size of a record in bytes, the same as of a line of NDJSON.
pub const MAX_RECORD_BYTES: usize = 16 * 1024 * 1024;
/// The maximum number of fields of a record.
pub const MAX_FIELDS: usize = 1_000;
/// The delimiters that a file may use.
pub const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

const UTF8_MARK: &[u8] = &[0xEF, 0xBB, 0xBF];
const UTF16_MARKS: [&[u8]; 2] = [&[0xFF, 0xFE], &[0xFE, 0xFF]];

/// Why the rest of a file cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvFailure {
    /// The file begins with a mark of UTF-16.
    Utf16,
    /// A record is larger than [`MAX_RECORD_BYTES`].
    RecordTooLarge {
        /// The line on which it begins.
        line: u64,
    },
}

impl fmt::Display for CsvFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Utf16 => f.write_str("The file is UTF-16. Save it with the encoding UTF-8."),
            Self::RecordTooLarge { line } => write!(
                f,
                "The record that begins on line {line} has more than {MAX_RECORD_BYTES} bytes. \
                 Is a closing quote missing?"
            ),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReaderState {
    FieldStart,
    Unquoted,
    Quoted,
    /// After a quote in a quoted field: the first of two, or the end.
    QuoteInQuoted,
    /// The record has a problem; the next line end ends it.
    Skipping,
}

/// Reads a file part by part.
#[derive(Debug, Clone)]
pub struct CsvReader {
    delimiter: u8,
    state: ReaderState,
    /// The first bytes, until it is known whether they are a byte order mark.
    start: Option<Vec<u8>>,
    /// The last byte was a carriage return that ended a record.
    after_return: bool,
    line: u64,
    width: Option<usize>,
    text: Vec<u8>,
    fields: Vec<FieldEnd>,
    is_quoted: bool,
    problem: Option<RecordProblem>,
    record_line: u64,
    size: usize,
    records: CsvRecords,
}

impl CsvReader {
    /// A reader of a file with this delimiter.
    #[must_use]
    pub fn new(delimiter: u8) -> Self {
        Self {
            delimiter,
            state: ReaderState::FieldStart,
            start: Some(Vec::new()),
            after_return: false,
            line: 1,
            width: None,
            text: Vec::new(),
            fields: Vec::new(),
            is_quoted: false,
            problem: None,
            record_line: 1,
            size: 0,
            records: CsvRecords::default(),
        }
    }

    /// Reads a part and returns the records that it completes.
    ///
    /// # Errors
    ///
    /// The rest of the file cannot be read.
    pub fn push(&mut self, part: &[u8]) -> Result<CsvRecords, CsvFailure> {
        match self.start.take() {
            None => self.read(part)?,
            Some(mut start) => {
                start.extend_from_slice(part);
                if start.len() < UTF8_MARK.len() {
                    self.start = Some(start);
                } else {
                    self.read_start(&start)?;
                }
            }
        }
        Ok(std::mem::take(&mut self.records))
    }

    /// Ends the file and returns its last record, which may lack a line end.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn finish(&mut self) -> Result<CsvRecords, CsvFailure> {
        if let Some(start) = self.start.take() {
            self.read_start(&start)?;
        }
        if self.state == ReaderState::Quoted {
            self.refuse(RecordProblem::UnclosedQuote);
        }
        if self.state != ReaderState::FieldStart || !self.fields.is_empty() {
            self.end_record();
        }
        Ok(std::mem::take(&mut self.records))
    }

    fn read_start(&mut self, start: &[u8]) -> Result<(), CsvFailure> {
        if UTF16_MARKS.iter().any(|mark| start.starts_with(mark)) {
            return Err(CsvFailure::Utf16);
        }
        self.read(start.strip_prefix(UTF8_MARK).unwrap_or(start))
    }

    fn read(&mut self, part: &[u8]) -> Result<(), CsvFailure> {
        let mut rest = part;
        while let Some(&byte) = rest.first() {
            let taken = match self.state {
                ReaderState::Quoted => self.read_quoted(rest),
                ReaderState::Unquoted | ReaderState::Skipping => self.read_plain(rest),
                ReaderState::FieldStart | ReaderState::QuoteInQuoted => 0,
            };
            if taken > 0 {
                self.size += taken;
                rest = rest.get(taken..).unwrap_or_default();
            } else {
                self.size += 1;
                self.step(byte);
                rest = rest.get(1..).unwrap_or_default();
            }
            if self.size > MAX_RECORD_BYTES {
                let line = self.record_line;
                return Err(CsvFailure::RecordTooLarge { line });
            }
        }
        Ok(())
    }

    /// Takes the bytes of a quoted field up to the next quote; returns their number.
    fn read_quoted(&mut self, rest: &[u8]) -> usize {
        let length = rest.iter().position(|byte| *byte == b'"');
        let plain = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
        self.text.extend_from_slice(plain);
        self.line += count_lines(plain);
        plain.len()
    }

    /// Takes the bytes of an unquoted field up to its end; returns their number.
    fn read_plain(&mut self, rest: &[u8]) -> usize {
        let delimiter = self.delimiter;
        let is_end = |byte: &u8| *byte == delimiter || matches!(*byte, b'"' | b'\n' | b'\r');
        let length = rest.iter().position(is_end);
        let plain = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
        if self.state == ReaderState::Unquoted {
            self.text.extend_from_slice(plain);
        }
        plain.len()
    }

    fn step(&mut self, byte: u8) {
        let follows_return = std::mem::take(&mut self.after_return);
        match byte {
            b'\n' if follows_return => self.size = 0,
            b'\n' | b'\r' if self.state != ReaderState::Quoted => {
                self.end_line();
                self.after_return = byte == b'\r';
            }
            b'"' => self.step_quote(),
            _ if self.state == ReaderState::Skipping => {}
            _ if byte == self.delimiter => {
                self.end_field();
                self.state = ReaderState::FieldStart;
                if self.fields.len() >= MAX_FIELDS {
                    self.refuse(RecordProblem::TooManyFields);
                }
            }
            _ if self.state == ReaderState::QuoteInQuoted => {
                self.refuse(RecordProblem::TextAfterQuote);
            }
            _ => {
                self.state = ReaderState::Unquoted;
                self.text.push(byte);
            }
        }
    }

    fn step_quote(&mut self) {
        match self.state {
            ReaderState::FieldStart => {
                self.state = ReaderState::Quoted;
                self.is_quoted = true;
            }
            ReaderState::Quoted => self.state = ReaderState::QuoteInQuoted,
            ReaderState::QuoteInQuoted => {
                self.text.push(b'"');
                self.state = ReaderState::Quoted;
            }
            ReaderState::Unquoted => self.refuse(RecordProblem::StrayQuote),
            ReaderState::Skipping => {}
        }
    }

    fn refuse(&mut self, problem: RecordProblem) {
        self.problem = Some(problem);
        self.state = ReaderState::Skipping;
    }

    fn end_field(&mut self) {
        self.fields.push(FieldEnd {
            end: self.text.len(),
            is_quoted: std::mem::take(&mut self.is_quoted),
        });
    }

    fn end_line(&mut self) {
        let is_blank = self.state == ReaderState::FieldStart && self.fields.is_empty();
        if !is_blank {
            self.end_record();
        }
        self.size = 0;
        self.line += 1;
        self.record_line = self.line;
    }

    fn end_record(&mut self) {
        self.end_field();
        let problem = self.problem.take().or_else(|| self.problem_of_fields());
        if problem.is_none()
            && let Ok(text) = valid_text(&self.text, &self.fields)
        {
            let before = self.records.text.len();
            self.records.text.push_str(text);
            let fields = self.fields.iter().map(|field| FieldEnd {
                end: before + field.end,
                ..*field
            });
            self.records.fields.extend(fields);
            self.width.get_or_insert(self.fields.len());
        }
        self.records.records.push(RecordInfo {
            line: self.record_line,
            size: self.size,
            fields_end: self.records.fields.len(),
            problem,
        });
        self.text.clear();
        self.fields.clear();
        self.size = 0;
        self.state = ReaderState::FieldStart;
    }

    fn problem_of_fields(&self) -> Option<RecordProblem> {
        let has = self.fields.len();
        let other_width = self.width.filter(|first| *first != has);
        let width = other_width.map(|first| RecordProblem::Width { has, first });
        valid_text(&self.text, &self.fields).err().or(width)
    }
}

/// The record's text, if each of its fields is valid.
fn valid_text<'a>(text: &'a [u8], fields: &[FieldEnd]) -> Result<&'a str, RecordProblem> {
    let text = std::str::from_utf8(text).map_err(|_| RecordProblem::NotUtf8)?;
    if text.contains('\0') {
        return Err(RecordProblem::Nul);
    }
    // A character must not be split between two fields.
    let are_whole = fields.iter().all(|field| text.is_char_boundary(field.end));
    are_whole.then_some(text).ok_or(RecordProblem::NotUtf8)
}

fn count_lines(text: &[u8]) -> u64 {
    text.iter()
        .fold(0, |lines, byte| lines + u64::from(*byte == b'\n'))
}
