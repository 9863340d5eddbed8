//! From text to BSON bytes in one pass.
//!
//! Every JSON object is first written as a plain document. When its brace
//! closes and its first key begins with `$`, [`super::wrapper`] decides
//! whether it stands for a typed value; then the few bytes just written are
//! replaced by that value. No tree is built.

use rillbase_json::{Failure, Integer, Limits, Sink};

use super::wrapper::{Unwrapped, unwrap};
use crate::bson::{Document, DocumentBuf, DocumentWriter, Value, ValueRef};
use crate::error::{Code, Error, Place};
use crate::limits::{DOCUMENT_BYTES, NESTING_DEPTH};

/// How much deeper the text may nest than the BSON: `{"$numberLong":"1"}`.
const WRAPPER_DEPTH: usize = 3;
/// How many levels of a request's body may lie around a document.
const BODY_DEPTH: usize = 8;
/// How many bytes of text are read at most for one document.
const TEXT_BYTES: usize = 4 * DOCUMENT_BYTES;

/// Reads the text of one document.
pub fn parse_document(text: &[u8]) -> Result<DocumentBuf, Error> {
    match parse_value(text)? {
        Value::Document(document) => {
            crate::bson::validate(document.as_bytes())?;
            Ok(document)
        }
        _ => Err(Error::new(
            Code::InvalidJson,
            &Place::root(),
            "a document is expected, in braces",
        )),
    }
}

/// Reads the text of one value of any type.
pub fn parse_value(text: &[u8]) -> Result<Value, Error> {
    read(text, DOCUMENT_BYTES, NESTING_DEPTH + WRAPPER_DEPTH)
}

/// Reads a request's body: documents within a few levels that are the
/// request's own. Its size is the caller's to bound; what is taken from it as
/// a document is validated then.
pub fn parse_body(text: &[u8]) -> Result<Value, Error> {
    read(text, usize::MAX, NESTING_DEPTH + WRAPPER_DEPTH + BODY_DEPTH)
}

fn read(text: &[u8], max_bytes: usize, max_depth: usize) -> Result<Value, Error> {
    if text.len() > TEXT_BYTES {
        let detail = format!("the text is longer than {TEXT_BYTES} bytes");
        return Err(Error::new(Code::DocumentTooLarge, &Place::root(), detail));
    }
    let mut builder = Builder {
        max_bytes,
        open: Vec::new(),
        root: Vec::new(),
    };
    let limits = Limits {
        max_depth,
        ..Limits::default()
    };
    rillbase_json::read(text, &limits, &mut builder).map_err(refusal)?;
    let root = Document::trusted(&builder.root);
    let value = root.get("").map(Value::from);
    value.ok_or_else(|| Error::new(Code::InvalidJson, &Place::root(), "there is no value"))
}

fn refusal(failure: Failure<Refused>) -> Error {
    match failure {
        Failure::Json(error) => {
            let code = match error.code {
                rillbase_json::Code::TooDeep => Code::NestingTooDeep,
                _ => Code::InvalidJson,
            };
            let detail = format!(
                "{} (line {}, column {})",
                error.detail, error.place.line, error.place.column
            );
            Error {
                code,
                pointer: error.place.pointer,
                detail,
            }
        }
        Failure::Sink { error, place } => Error {
            code: error.code,
            pointer: place.pointer,
            detail: error.detail,
        },
    }
}

/// Why the builder refuses a value; where is known to the reader.
#[derive(Debug)]
pub(crate) struct Refused {
    code: Code,
    detail: String,
}

impl Refused {
    pub(crate) fn new(detail: impl Into<String>) -> Self {
        Self {
            code: Code::InvalidJson,
            detail: detail.into(),
        }
    }
}

/// One open object or array.
struct Frame {
    is_array: bool,
    count: usize,
    key: String,
    writer: DocumentWriter,
    /// Whether the first key begins with `$`.
    may_wrap: bool,
}

/// Writes what the reader tells; the finished root is `{"": value}`.
struct Builder {
    /// Of one open object or array.
    max_bytes: usize,
    open: Vec<Frame>,
    root: Vec<u8>,
}

impl Builder {
    fn put(&mut self, value: ValueRef<'_>) -> Result<(), Refused> {
        let Some(frame) = self.open.last_mut() else {
            let mut writer = DocumentWriter::new();
            writer.append("", value);
            self.root = writer.finish();
            return Ok(());
        };
        if frame.writer.len() > self.max_bytes {
            let detail = format!("a document has at most {} bytes", self.max_bytes);
            return Err(Refused {
                code: Code::DocumentTooLarge,
                detail,
            });
        }
        if frame.is_array {
            frame.key = frame.count.to_string();
        }
        frame.writer.append(&frame.key, value);
        frame.count += 1;
        Ok(())
    }

    fn begin(&mut self, is_array: bool) {
        let (key, writer) = (String::new(), DocumentWriter::new());
        self.open.push(Frame {
            is_array,
            count: 0,
            key,
            writer,
            may_wrap: false,
        });
    }

    fn close(&mut self) -> Option<Frame> {
        self.open.pop()
    }
}

impl Sink for Builder {
    type Error = Refused;

    fn null(&mut self) -> Result<(), Refused> {
        self.put(ValueRef::Null)
    }

    fn boolean(&mut self, value: bool) -> Result<(), Refused> {
        self.put(ValueRef::Bool(value))
    }

    fn integer(&mut self, value: Integer<'_>) -> Result<(), Refused> {
        match value {
            Integer::Small(int) => match i32::try_from(int) {
                Ok(int) => self.put(ValueRef::Int32(int)),
                Err(_) => self.put(ValueRef::Int64(int)),
            },
            Integer::Large(digits) => match digits.parse::<f64>() {
                Ok(double) if double.is_finite() => self.put(ValueRef::Double(double)),
                _ => Err(Refused::new("the number is too large for a double")),
            },
        }
    }

    fn double(&mut self, value: f64) -> Result<(), Refused> {
        self.put(ValueRef::Double(value))
    }

    fn string(&mut self, value: &str) -> Result<(), Refused> {
        self.put(ValueRef::String(value))
    }

    fn begin_object(&mut self) -> Result<(), Refused> {
        self.begin(false);
        Ok(())
    }

    fn key(&mut self, key: &str) -> Result<(), Refused> {
        if let Some(frame) = self.open.last_mut() {
            frame.may_wrap |= frame.count == 0 && key.starts_with('$');
            frame.key.clear();
            frame.key.push_str(key);
        }
        Ok(())
    }

    fn end_object(&mut self) -> Result<(), Refused> {
        let Some(frame) = self.close() else {
            return Ok(());
        };
        let bytes = frame.writer.finish();
        let document = Document::trusted(&bytes);
        if !frame.may_wrap {
            return self.put(ValueRef::Document(document));
        }
        match unwrap(document)? {
            Unwrapped::Plain => self.put(ValueRef::Document(document)),
            Unwrapped::Borrowed(value) => self.put(value),
            Unwrapped::Owned(value) => self.put(value.as_ref()),
        }
    }

    fn begin_array(&mut self) -> Result<(), Refused> {
        self.begin(true);
        Ok(())
    }

    fn end_array(&mut self) -> Result<(), Refused> {
        let Some(frame) = self.close() else {
            return Ok(());
        };
        let bytes = frame.writer.finish();
        self.put(ValueRef::Array(crate::bson::Array::trusted(&bytes)))
    }
}
