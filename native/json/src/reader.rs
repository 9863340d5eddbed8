//! The walk over a document: one loop, no recursion, so depth costs no stack.

use std::borrow::Cow;

use crate::error::{Error, JsonErrorCode, JsonLocation, ReadFailure};
use crate::limits::JsonLimits;
use crate::number::{JsonNumber, number};
use crate::path::{Inside, OpenContainers};
use crate::sink::JsonSink;
use crate::text::{plain_length, unescape};

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Reads one document and passes its parts to the sink.
///
/// # Errors
/// [`ReadFailure::Json`] has the first error of the document, [`ReadFailure::Sink`] that
/// of the sink. Either way the sink has received a part of the document.
pub fn read<S: JsonSink>(
    input: &[u8],
    limits: &JsonLimits,
    sink: &mut S,
) -> Result<(), ReadFailure<S::Error>> {
    let mut reader = JsonReader::new(input, *limits, sink);
    reader.document().map_err(|stop| reader.failure(stop))
}

struct JsonReader<'i, 's, S> {
    /// The input up to where it stops being UTF-8.
    text: &'i str,
    /// Whether bytes that are not UTF-8 follow `text`. They are reported when the walk arrives
    /// there, so that the first thing wrong with a document is always the one that is named.
    is_cut: bool,
    /// Bytes read. Always at the start of a character.
    at: usize,
    path: OpenContainers<'i>,
    values: usize,
    /// The latest string that had escapes, without them.
    unescaped: String,
    limits: JsonLimits,
    sink: &'s mut S,
}

/// Why the walk stops; the location is worked out only then.
enum ReadStop<E> {
    Json {
        code: JsonErrorCode,
        detail: &'static str,
        offset: usize,
    },
    Sink {
        error: E,
        offset: usize,
    },
}

/// What the grammar allows next.
enum ExpectedToken {
    Value,
    /// A comma or the end of the innermost container, or of the document.
    Separator,
    Done,
}

/// Where the content of a string is.
enum Text<'i> {
    /// In the input, as it is.
    Plain(&'i str),
    /// In [`JsonReader::unescaped`].
    Unescaped,
}

impl<'i, 's, S: JsonSink> JsonReader<'i, 's, S> {
    fn new(input: &'i [u8], limits: JsonLimits, sink: &'s mut S) -> Self {
        let (text, is_cut) = match std::str::from_utf8(input) {
            Ok(text) => (text, false),
            Err(error) => {
                let valid = input.get(..error.valid_up_to()).unwrap_or_default();
                (std::str::from_utf8(valid).unwrap_or_default(), true)
            }
        };
        let (path, unescaped) = (OpenContainers::default(), String::new());
        Self {
            text,
            is_cut,
            at: 0,
            path,
            values: 0,
            unescaped,
            limits,
            sink,
        }
    }

    fn document(&mut self) -> Result<(), ReadStop<S::Error>> {
        if self.text.starts_with(BYTE_ORDER_MARK) {
            return self.refuse(
                JsonErrorCode::ByteOrderMark,
                "the text starts with a byte order mark",
            );
        }
        let mut next = ExpectedToken::Value;
        loop {
            self.skip_whitespace();
            next = match next {
                ExpectedToken::Value => self.value()?,
                ExpectedToken::Separator => self.separator()?,
                ExpectedToken::Done => return self.end(),
            }
        }
    }

    fn end(&self) -> Result<(), ReadStop<S::Error>> {
        if self.at < self.text.len() || self.is_cut {
            return self.malformed("unexpected data after the document");
        }
        Ok(())
    }

    fn value(&mut self) -> Result<ExpectedToken, ReadStop<S::Error>> {
        let start = self.at;
        self.path.begin_value();
        self.values += 1;
        if self.values > self.limits.max_values {
            return self.refuse(
                JsonErrorCode::TooManyValues,
                "the document holds too many values",
            );
        }
        let result = match self.peek() {
            Some(b'{') => return self.begin_object(),
            Some(b'[') => return self.begin_array(),
            Some(b'"') => match self.string()? {
                Text::Plain(text) => self.sink.string(text),
                Text::Unescaped => self.sink.string(&self.unescaped),
            },
            Some(b'-' | b'0'..=b'9') => match self.number()? {
                JsonNumber::Integer(value) => self.sink.integer(value),
                JsonNumber::Double(value) => self.sink.double(value),
            },
            Some(b't') => {
                self.literal("true")?;
                self.sink.boolean(true)
            }
            Some(b'f') => {
                self.literal("false")?;
                self.sink.boolean(false)
            }
            Some(b'n') => {
                self.literal("null")?;
                self.sink.null()
            }
            _ => return self.malformed("expected a value"),
        };
        result.map_err(|error| ReadStop::Sink {
            error,
            offset: start,
        })?;
        self.path.end_value();
        Ok(self.after_value())
    }

    fn after_value(&self) -> ExpectedToken {
        if self.path.depth() == 0 {
            ExpectedToken::Done
        } else {
            ExpectedToken::Separator
        }
    }

    fn begin_object(&mut self) -> Result<ExpectedToken, ReadStop<S::Error>> {
        self.check_depth()?;
        self.sink.begin_object().map_err(|error| ReadStop::Sink {
            error,
            offset: self.at,
        })?;
        self.path.open_object();
        self.at += 1;
        self.skip_whitespace();
        if self.peek() == Some(b'}') {
            self.end_container()
        } else {
            self.member()
        }
    }

    fn begin_array(&mut self) -> Result<ExpectedToken, ReadStop<S::Error>> {
        self.check_depth()?;
        self.sink.begin_array().map_err(|error| ReadStop::Sink {
            error,
            offset: self.at,
        })?;
        self.path.open_array();
        self.at += 1;
        self.skip_whitespace();
        if self.peek() == Some(b']') {
            self.end_container()
        } else {
            Ok(ExpectedToken::Value)
        }
    }

    fn check_depth(&self) -> Result<(), ReadStop<S::Error>> {
        if self.path.depth() >= self.limits.max_depth {
            return self.refuse(
                JsonErrorCode::TooDeep,
                "arrays and objects are nested too deeply",
            );
        }
        Ok(())
    }

    /// A key and the colon after it.
    fn member(&mut self) -> Result<ExpectedToken, ReadStop<S::Error>> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return self.malformed("expected a key in double quotes");
        }
        let key = match self.string()? {
            Text::Plain(text) => Cow::Borrowed(text),
            Text::Unescaped => Cow::Owned(self.unescaped.clone()),
        };
        if !self.path.begin_member(key) {
            return refuse_at(
                JsonErrorCode::DuplicateKey,
                "the object holds this key twice",
                start,
            );
        }
        self.sink
            .key(self.path.key())
            .map_err(|error| ReadStop::Sink {
                error,
                offset: start,
            })?;
        self.skip_whitespace();
        if self.peek() != Some(b':') {
            return self.malformed("expected a colon");
        }
        self.at += 1;
        Ok(ExpectedToken::Value)
    }

    fn separator(&mut self) -> Result<ExpectedToken, ReadStop<S::Error>> {
        match (self.peek(), self.path.inside()) {
            (Some(b','), Inside::Array) => {
                self.at += 1;
                Ok(ExpectedToken::Value)
            }
            (Some(b','), Inside::Object) => {
                self.at += 1;
                self.skip_whitespace();
                self.member()
            }
            (Some(b']'), Inside::Array) | (Some(b'}'), Inside::Object) => self.end_container(),
            (_, Inside::Object) => self.malformed("expected a comma or a closing brace"),
            _ => self.malformed("expected a comma or a closing bracket"),
        }
    }

    fn end_container(&mut self) -> Result<ExpectedToken, ReadStop<S::Error>> {
        let result = match self.path.inside() {
            Inside::Object => self.sink.end_object(),
            _ => self.sink.end_array(),
        };
        result.map_err(|error| ReadStop::Sink {
            error,
            offset: self.at,
        })?;
        self.at += 1;
        self.path.close();
        Ok(self.after_value())
    }

    fn literal(&mut self, word: &str) -> Result<(), ReadStop<S::Error>> {
        if !self.rest().starts_with(word) {
            return self.malformed("expected a value");
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<JsonNumber<'i>, ReadStop<S::Error>> {
        match number(self.rest(), self.limits.max_number_length) {
            Ok((value, length)) => {
                self.at += length;
                Ok(value)
            }
            Err((code, detail, further)) => self.refuse_further(code, detail, further),
        }
    }

    /// A string from its opening to its closing quote.
    fn string(&mut self) -> Result<Text<'i>, ReadStop<S::Error>> {
        self.at += 1;
        let plain = self.plain_text();
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(Text::Plain(plain));
        }
        self.unescaped.clear();
        self.unescaped.push_str(plain);
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Text::Unescaped);
                }
                Some(b'\\') => self.escape()?,
                Some(0) => return self.refuse(JsonErrorCode::NulInString, "a string holds U+0000"),
                Some(_) => return self.malformed("a control character in a string"),
                None => return self.malformed("the text ends inside a string"),
            }
            let plain = self.plain_text();
            self.unescaped.push_str(plain);
        }
    }

    fn escape(&mut self) -> Result<(), ReadStop<S::Error>> {
        match unescape(self.rest().as_bytes()) {
            Ok((character, length)) => {
                self.unescaped.push(character);
                self.at += length;
                Ok(())
            }
            Err((code, detail, further)) => self.refuse_further(code, detail, further),
        }
    }

    /// The characters up to the next one that means something in a string.
    fn plain_text(&mut self) -> &'i str {
        let rest = self.rest();
        let length = plain_length(rest.as_bytes());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'i str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn malformed<T>(&self, detail: &'static str) -> Result<T, ReadStop<S::Error>> {
        self.refuse(JsonErrorCode::Malformed, detail)
    }

    fn refuse<T>(
        &self,
        code: JsonErrorCode,
        detail: &'static str,
    ) -> Result<T, ReadStop<S::Error>> {
        refuse_at(code, detail, self.at)
    }

    fn refuse_further<T>(
        &self,
        code: JsonErrorCode,
        detail: &'static str,
        further: usize,
    ) -> Result<T, ReadStop<S::Error>> {
        refuse_at(code, detail, self.at + further)
    }

    fn failure(&self, stop: ReadStop<S::Error>) -> ReadFailure<S::Error> {
        match stop {
            ReadStop::Sink { error, offset } => ReadFailure::Sink {
                error,
                location: self.location(offset),
            },
            // At the end of valid UTF-8 the following bytes are the error.
            ReadStop::Json {
                code: JsonErrorCode::Malformed,
                offset,
                ..
            } if self.is_cut && offset >= self.text.len() => {
                let (code, detail) = (JsonErrorCode::BadUtf8, "the text is not UTF-8");
                ReadFailure::Json(Error {
                    code,
                    detail,
                    location: self.location(self.text.len()),
                })
            }
            ReadStop::Json {
                code,
                detail,
                offset,
            } => ReadFailure::Json(Error {
                code,
                detail,
                location: self.location(offset),
            }),
        }
    }

    fn location(&self, offset: usize) -> JsonLocation {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |line_feed| line_feed + 1);
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        let column = 1 + before
            .get(line_start..)
            .map_or(0, |line| line.chars().count());
        JsonLocation {
            offset,
            line,
            column,
            pointer: self.path.pointer(),
        }
    }
}

fn refuse_at<T, E>(
    code: JsonErrorCode,
    detail: &'static str,
    offset: usize,
) -> Result<T, ReadStop<E>> {
    Err(ReadStop::Json {
        code,
        detail,
        offset,
    })
}
