//! Parses text into BSON bytes in one pass.
//!
//! Every JSON object is first written as a plain document. When its brace closes and its first key
//! starts with `$`, [`super::wrapper`] decides whether it denotes a typed value, which then
//! replaces the few bytes just written. No tree is built.

use rillbase_json::{Integer, JsonLimits, JsonSink, ReadFailure};

use super::build_refusal::BuildRefusal;
use super::wrapper::{Unwrapped, unwrap};
use crate::bson::{Document, DocumentBuf, DocumentWriter, Value, ValueRef};
use crate::error::{Error, ErrorCode, ParseLocation};
use crate::limits::{DOCUMENT_BYTES, FILTER_BYTES, NESTING_DEPTH, OPERATIONS_BYTES};

/// How much deeper the text may nest than the BSON: `{"$numberLong":"1"}`.
const WRAPPER_DEPTH: usize = 3;
/// How many levels of a request's body may surround a document.
const BODY_DEPTH: usize = 8;
const BODY_LEVELS: usize = NESTING_DEPTH + WRAPPER_DEPTH + BODY_DEPTH;
/// The maximum bytes of text of one document.
const TEXT_BYTES: usize = 4 * DOCUMENT_BYTES;

/// Parses the text of one document.
pub fn parse_document(text: &[u8]) -> Result<DocumentBuf, Error> {
    match parse_value(text)? {
        Value::Document(document) => {
            crate::bson::validate(document.as_bytes())?;
            Ok(document)
        }
        _ => Err(Error::new(
            ErrorCode::InvalidJson,
            &ParseLocation::root(),
            "expected a document in braces",
        )),
    }
}

/// Parses the text of one value of any type.
pub fn parse_value(text: &[u8]) -> Result<Value, Error> {
    read(text, SizeBound::Document, NESTING_DEPTH + WRAPPER_DEPTH)
}

/// Parses a text whose size the caller has bounded. Documents are validated when they are extracted
/// from it.
pub fn parse_body(text: &[u8]) -> Result<Value, Error> {
    read(text, SizeBound::Any, BODY_LEVELS)
}

/// Parses a request's body that is one document, or a change to one.
pub fn parse_document_body(text: &[u8]) -> Result<Value, Error> {
    read(text, SizeBound::Document, BODY_LEVELS)
}

/// Parses a request's body that is an object with members, each of which has a bound (see
/// [`ByteBound::of`]). Reading ends at the first member that exceeds its bound: a large text never
/// becomes a large filter.
pub fn parse_request(text: &[u8]) -> Result<Value, Error> {
    read(text, SizeBound::Members, BODY_LEVELS)
}

/// Parses a request's body that lists operations, of at most [`OPERATIONS_BYTES`] altogether. Of
/// each list one element more than `max_elements` is built: enough to detect that there are too
/// many.
pub fn parse_operations(text: &[u8], max_elements: usize) -> Result<Value, Error> {
    let mut builder = BsonBuilder::new(SizeBound::Operations);
    builder.max_elements = max_elements + 1;
    build(text, &mut builder, BODY_LEVELS)
}

/// Parses a request as [`parse_request`] does, but to its end: the first member that exceeds its
/// bound is returned as an error together with the others.
pub fn parse_message(text: &[u8]) -> Result<(Value, Option<Error>), Error> {
    let mut builder = BsonBuilder::new(SizeBound::Members);
    builder.passes_over = true;
    let value = build(text, &mut builder, BODY_LEVELS)?;
    let refused = builder.refused.map(|refused| Error {
        code: refused.code,
        pointer: refused
            .member
            .map_or_else(String::new, |name| format!("/{name}")),
        detail: refused.detail,
    });
    Ok((value, refused))
}

fn read(text: &[u8], size: SizeBound, max_depth: usize) -> Result<Value, Error> {
    build(text, &mut BsonBuilder::new(size), max_depth)
}

fn build(text: &[u8], builder: &mut BsonBuilder, max_depth: usize) -> Result<Value, Error> {
    if text.len() > TEXT_BYTES {
        let detail = format!("the text is longer than {TEXT_BYTES} bytes");
        return Err(Error::new(
            ErrorCode::DocumentTooLarge,
            &ParseLocation::root(),
            detail,
        ));
    }
    let limits = JsonLimits {
        max_depth,
        ..JsonLimits::default()
    };
    rillbase_json::read(text, &limits, builder).map_err(refusal)?;
    let root = Document::trusted(&builder.root);
    let value = root.get("").map(Value::from);
    value.ok_or_else(|| {
        Error::new(
            ErrorCode::InvalidJson,
            &ParseLocation::root(),
            "there is no value",
        )
    })
}

fn refusal(failure: ReadFailure<BuildRefusal>) -> Error {
    match failure {
        ReadFailure::Json(error) => {
            let code = match error.code {
                rillbase_json::JsonErrorCode::TooDeep => ErrorCode::NestingTooDeep,
                _ => ErrorCode::InvalidJson,
            };
            let detail = format!(
                "{} (line {}, column {})",
                error.detail, error.location.line, error.location.column
            );
            Error {
                code,
                pointer: error.location.pointer,
                detail,
            }
        }
        ReadFailure::Sink { error, location } => Error {
            code: error.code,
            pointer: error
                .member
                .map_or(location.pointer, |member| format!("/{member}")),
            detail: error.detail,
        },
    }
}

/// The bound on the BSON bytes of a text.
#[derive(Clone, Copy)]
enum SizeBound {
    Any,
    Document,
    Members,
    Operations,
}

impl SizeBound {
    const fn bound(self) -> ByteBound {
        match self {
            Self::Document => ByteBound::DOCUMENT,
            Self::Operations => ByteBound::OPERATIONS,
            Self::Any | Self::Members => ByteBound::NONE,
        }
    }
}

/// The maximum number of BSON bytes, and the error if there are more.
#[derive(Clone, Copy)]
struct ByteBound {
    bytes: usize,
    code: ErrorCode,
    what: &'static str,
    member: Option<&'static str>,
}

impl ByteBound {
    const NONE: Self = Self {
        bytes: usize::MAX,
        ..Self::DOCUMENT
    };
    const DOCUMENT: Self = Self {
        bytes: DOCUMENT_BYTES,
        code: ErrorCode::DocumentTooLarge,
        what: "document",
        member: None,
    };

    const OPERATIONS: Self = Self {
        bytes: OPERATIONS_BYTES,
        what: "list of operations",
        ..Self::DOCUMENT
    };

    /// The bound of a member of a request. Lists of documents are bounded by
    /// the size of the body and by the number of their elements.
    fn of(member: &str) -> Self {
        let (code, what, member) = match member {
            "filter" => (ErrorCode::FilterTooLarge, "filter", "filter"),
            "sort" => (ErrorCode::InvalidSort, "sort", "sort"),
            "projection" => (ErrorCode::InvalidProjection, "projection", "projection"),
            "group" => (ErrorCode::InvalidGroup, "group", "group"),
            "lookup" => (ErrorCode::InvalidLookup, "lookup", "lookup"),
            "array_filters" => (ErrorCode::InvalidUpdate, "list of filters", "array_filters"),
            "operations" | "ids" => return Self::NONE,
            _ => return Self::DOCUMENT,
        };
        Self {
            bytes: FILTER_BYTES,
            code,
            what,
            member: Some(member),
        }
    }

    fn check(self, bytes: usize) -> Result<(), BuildRefusal> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let detail = format!("a {} may have at most {} bytes", self.what, self.bytes);
        Err(BuildRefusal {
            code: self.code,
            member: self.member,
            detail,
        })
    }
}

/// One open object or array.
struct BsonFrame {
    is_array: bool,
    count: usize,
    key: String,
    writer: DocumentWriter,
    /// The number of bytes that had been built when it was opened.
    built_before: usize,
    /// Whether the first key starts with `$`.
    may_wrap: bool,
}

/// Builds BSON from the reader's events; the finished root is `{"": value}`.
struct BsonBuilder {
    /// The bound of what is being built: the whole, or one member of the root.
    bound: ByteBound,
    bounds_members: bool,
    /// Whether a member that exceeds its bound is skipped, and the first that did.
    passes_over: bool,
    refused: Option<BuildRefusal>,
    /// The maximum number of elements that are built of a list in the root.
    max_elements: usize,
    /// Open objects and arrays in the member that is skipped.
    passing: usize,
    /// The size of the value being built, including finished parts.
    built_bytes: usize,
    open: Vec<BsonFrame>,
    root: Vec<u8>,
}

impl BsonBuilder {
    const fn new(size: SizeBound) -> Self {
        Self {
            bound: size.bound(),
            bounds_members: matches!(size, SizeBound::Members),
            passes_over: false,
            refused: None,
            max_elements: usize::MAX,
            passing: 0,
            built_bytes: 0,
            open: Vec::new(),
            root: Vec::new(),
        }
    }

    fn put(&mut self, value: ValueRef<'_>) -> Result<(), BuildRefusal> {
        if self.passing > 0 {
            return Ok(());
        }
        match self.append(value) {
            Err(refused) if self.passes_over && self.bounds_members && !self.open.is_empty() => {
                self.pass_over(refused);
                Ok(())
            }
            done => done,
        }
    }

    /// Drops what has been built of a member, and skips the rest of it.
    fn pass_over(&mut self, refused: BuildRefusal) {
        self.refused.get_or_insert(refused);
        self.passing = self.open.len() - 1;
        self.open.truncate(1);
    }

    fn append(&mut self, value: ValueRef<'_>) -> Result<(), BuildRefusal> {
        let is_listed = self.open.len() == 2;
        let is_member = self.bounds_members && self.open.len() == 1;
        let Some(frame) = self.open.last_mut() else {
            let mut writer = DocumentWriter::new();
            writer.append("", value);
            self.root = writer.finish();
            return Ok(());
        };
        if is_listed && frame.is_array && frame.count >= self.max_elements {
            return Ok(());
        }
        if frame.is_array {
            frame.key = frame.count.to_string();
        }
        // The name of a member does not count towards it.
        let key_bytes = if is_member { 0 } else { frame.key.len() };
        self.bound
            .check(self.built_bytes + key_bytes + value.content_bytes())?;
        let before = frame.writer.len();
        frame.writer.append(&frame.key, value);
        frame.count += 1;
        self.built_bytes += frame.writer.len() - before;
        Ok(())
    }

    fn begin(&mut self, is_array: bool) {
        if self.passing > 0 {
            self.passing += 1;
            return;
        }
        let (key, writer) = (String::new(), DocumentWriter::new());
        self.open.push(BsonFrame {
            is_array,
            count: 0,
            key,
            writer,
            built_before: self.built_bytes,
            may_wrap: false,
        });
    }

    /// The innermost open object or array; `None` while a member is skipped.
    fn close(&mut self) -> Option<BsonFrame> {
        if self.passing > 0 {
            self.passing -= 1;
            return None;
        }
        let frame = self.open.pop()?;
        // Its result is counted when it is added to its container.
        self.built_bytes = frame.built_before;
        Some(frame)
    }

    /// Starts a member of the root, with its own bound.
    fn begin_member(&mut self, name: &str) {
        if self.bounds_members && self.open.len() == 1 {
            self.bound = ByteBound::of(name);
            self.built_bytes = 0;
        }
    }
}

impl JsonSink for BsonBuilder {
    type Error = BuildRefusal;

    fn null(&mut self) -> Result<(), BuildRefusal> {
        self.put(ValueRef::Null)
    }

    fn boolean(&mut self, value: bool) -> Result<(), BuildRefusal> {
        self.put(ValueRef::Bool(value))
    }

    fn integer(&mut self, value: Integer<'_>) -> Result<(), BuildRefusal> {
        match value {
            Integer::Small(int) => match i32::try_from(int) {
                Ok(int) => self.put(ValueRef::Int32(int)),
                Err(_) => self.put(ValueRef::Int64(int)),
            },
            Integer::Large(digits) => match digits.parse::<f64>() {
                Ok(double) if double.is_finite() => self.put(ValueRef::Double(double)),
                _ => Err(BuildRefusal::new("the number is too large for a double")),
            },
        }
    }

    fn double(&mut self, value: f64) -> Result<(), BuildRefusal> {
        self.put(ValueRef::Double(value))
    }

    fn string(&mut self, value: &str) -> Result<(), BuildRefusal> {
        self.put(ValueRef::String(value))
    }

    fn begin_object(&mut self) -> Result<(), BuildRefusal> {
        self.begin(false);
        Ok(())
    }

    fn key(&mut self, key: &str) -> Result<(), BuildRefusal> {
        if self.passing > 0 {
            return Ok(());
        }
        self.begin_member(key);
        if let Some(frame) = self.open.last_mut() {
            frame.may_wrap |= frame.count == 0 && key.starts_with('$');
            frame.key.clear();
            frame.key.push_str(key);
        }
        Ok(())
    }

    fn end_object(&mut self) -> Result<(), BuildRefusal> {
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

    fn begin_array(&mut self) -> Result<(), BuildRefusal> {
        self.begin(true);
        Ok(())
    }

    fn end_array(&mut self) -> Result<(), BuildRefusal> {
        let Some(frame) = self.close() else {
            return Ok(());
        };
        let bytes = frame.writer.finish();
        self.put(ValueRef::Array(crate::bson::Array::trusted(&bytes)))
    }
}
