//! Requests: an array of bulk strings, or a line of words for people with a plain connection.
//!
//! ```text
//! request := '*' count CRLF ('$' length CRLF bytes CRLF)*
//!          | words LF
//! ```
//!
//! The parser keeps its position, so that bytes arriving one by one are examined once each, and
//! rejects what is too large by its header, before its content arrives.

use std::fmt;
use std::ops::Range;

/// A header is a sign and a number.
const MAX_HEADER_BYTES: usize = 32;

/// The limits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// The number of words.
    pub words: usize,
    /// The length of a word.
    pub word_bytes: usize,
    /// The total length.
    pub request_bytes: usize,
}

impl RequestLimits {
    /// Of a line without headers.
    fn line_bytes(&self) -> usize {
        self.word_bytes.min(64 << 10)
    }
}

/// Bytes that are not a request, or a request that exceeds the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSyntaxError(pub &'static str);

impl fmt::Display for RequestSyntaxError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Protocol error: {}", self.0)
    }
}

/// What the parser expects next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ParserState {
    #[default]
    Start,
    /// The header of a word, with the number of missing words.
    Header(usize),
    /// The bytes of a word of this length, with the number of missing words.
    Word(usize, usize),
}

/// Finds one request at the start of a growing buffer.
#[derive(Debug, Default)]
pub struct RequestParser {
    state: ParserState,
    /// Everything before was read.
    at: usize,
    /// No line ends before this.
    scanned: usize,
    words: Vec<Range<usize>>,
}

impl RequestParser {
    /// Continues with the bytes of a request, whose beginning must not have changed. Returns its
    /// length once it is complete.
    pub fn parse(
        &mut self,
        bytes: &[u8],
        limits: &RequestLimits,
    ) -> Result<Option<usize>, RequestSyntaxError> {
        loop {
            let went_on = match self.state {
                ParserState::Start if bytes.first().is_some_and(|first| *first != b'*') => {
                    return self.line(bytes, limits);
                }
                ParserState::Start => self.array(bytes, limits)?,
                ParserState::Header(0) => return Ok(Some(self.at)),
                ParserState::Header(missing) => self.header(bytes, limits, missing)?,
                ParserState::Word(length, missing) => self.word(bytes, length, missing)?,
            };
            if !went_on {
                return Ok(None);
            }
        }
    }

    /// The words of the request that was found.
    pub fn words<'a>(&self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let word = |range: &Range<usize>| bytes.get(range.clone()).unwrap_or_default();
        self.words.iter().map(word).collect()
    }

    /// Resets the parser for the next request.
    pub fn reset(&mut self) {
        self.state = ParserState::Start;
        self.at = 0;
        self.scanned = 0;
        self.words.clear();
    }

    fn array(&mut self, bytes: &[u8], limits: &RequestLimits) -> Result<bool, RequestSyntaxError> {
        let Some(count) = self.number(bytes, b'*', "expected an array")? else {
            return Ok(false);
        };
        let refused = RequestSyntaxError("invalid multibulk length");
        let count = usize::try_from(count.max(0)).map_err(|_| refused)?;
        if count > limits.words {
            return Err(refused);
        }
        self.state = ParserState::Header(count);
        Ok(true)
    }

    fn header(
        &mut self,
        bytes: &[u8],
        limits: &RequestLimits,
        missing: usize,
    ) -> Result<bool, RequestSyntaxError> {
        let Some(length) = self.number(bytes, b'$', "expected '$'")? else {
            return Ok(false);
        };
        let refused = RequestSyntaxError("invalid bulk length");
        let length = usize::try_from(length).map_err(|_| refused)?;
        if length > limits.word_bytes {
            return Err(refused);
        }
        if self.at.saturating_add(length) > limits.request_bytes {
            return Err(RequestSyntaxError("too big request"));
        }
        self.state = ParserState::Word(length, missing);
        Ok(true)
    }

    fn word(
        &mut self,
        bytes: &[u8],
        length: usize,
        missing: usize,
    ) -> Result<bool, RequestSyntaxError> {
        let end = self.at.saturating_add(length);
        match bytes.get(end..end.saturating_add(2)) {
            None => return Ok(false),
            Some(b"\r\n") => {}
            Some(_) => return Err(RequestSyntaxError("expected CRLF after a bulk string")),
        }
        self.words.push(self.at..end);
        self.at = end + 2;
        self.scanned = self.at;
        self.state = ParserState::Header(missing - 1);
        Ok(true)
    }

    /// A sign, a number, CRLF.
    fn number(
        &mut self,
        bytes: &[u8],
        sign: u8,
        expected: &'static str,
    ) -> Result<Option<i64>, RequestSyntaxError> {
        if bytes.get(self.at).is_some_and(|first| *first != sign) {
            return Err(RequestSyntaxError(expected));
        }
        let end = self.line_end(bytes);
        // Regardless of how the bytes arrive.
        if end.unwrap_or(bytes.len()).saturating_sub(self.at) > MAX_HEADER_BYTES {
            return Err(RequestSyntaxError("too big count string"));
        }
        let Some(end) = end else { return Ok(None) };
        let digits = bytes.get(self.at + 1..end).unwrap_or_default();
        let digits = digits.strip_suffix(b"\r");
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let number = digits.and_then(|digits| digits.parse().ok());
        self.at = end + 1;
        self.scanned = self.at;
        number.map(Some).ok_or(RequestSyntaxError("invalid number"))
    }

    /// The end of the line that starts here, if it has arrived.
    fn line_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let rest = bytes.get(self.scanned..)?;
        let line_feed = rest.iter().position(|&byte| byte == b'\n');
        let end = line_feed.map(|place| self.scanned + place);
        self.scanned = bytes.len();
        end
    }

    fn line(
        &mut self,
        bytes: &[u8],
        limits: &RequestLimits,
    ) -> Result<Option<usize>, RequestSyntaxError> {
        let end = self.line_end(bytes);
        if end.unwrap_or(bytes.len()) > limits.line_bytes() {
            return Err(RequestSyntaxError("too big inline request"));
        }
        let Some(end) = end else { return Ok(None) };
        let line = bytes.get(..end).unwrap_or_default();
        let mut at = 0;
        for word in line.split(u8::is_ascii_whitespace) {
            if !word.is_empty() {
                self.words.push(at..at + word.len());
            }
            at += word.len() + 1;
        }
        if self.words.len() > limits.words {
            return Err(RequestSyntaxError("too many arguments"));
        }
        self.at = end + 1;
        self.state = ParserState::Header(0);
        Ok(Some(self.at))
    }

    /// The length of the request that was found.
    pub fn length(&self) -> usize {
        self.at
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    const LIMITS: RequestLimits = RequestLimits {
        words: 8,
        word_bytes: 100,
        request_bytes: 300,
    };

    /// A request's length and words.
    type Found = (usize, Vec<Vec<u8>>);

    fn parse(bytes: &[u8]) -> Result<Option<Found>, RequestSyntaxError> {
        let mut parser = RequestParser::default();
        let found = parser.parse(bytes, &LIMITS)?;
        let words = parser.words(bytes);
        let words = words.iter().map(|word| word.to_vec()).collect();
        Ok(found.map(|length| (length, words)))
    }

    fn words(text: &str) -> Vec<Vec<u8>> {
        text.split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect()
    }

    #[test]
    fn a_request_is_an_array_of_words_or_a_line_of_them() {
        let bytes = b"*2\r\n$3\r\nGET\r\n$0\r\n\r\nmore";
        let (length, found) = parse(bytes).unwrap().unwrap();
        assert_eq!((length, found), (19, vec![b"GET".to_vec(), Vec::new()]));
        let (length, found) = parse(b"PING  hello \r\nmore").unwrap().unwrap();
        assert_eq!((length, found), (14, words("PING hello")));
    }

    #[test]
    fn too_large_commands_are_rejected_by_their_header() {
        for bytes in [
            &b"*9\r\n"[..],
            b"*99999999999999999999\r\n",
            b"*1\r\n$101\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n$9999999999999999999999\r\n",
            b"*000000000000000000000000000000000000000",
            b"*000000000000000000000000000000000000001\r\n",
            b"*1\r\n:3\r\n",
            b"*1\n$x\r\n",
            b"*1\r\n$1\r\nabc",
        ] {
            assert!(parse(bytes).is_err(), "{}", bytes.escape_ascii());
        }
        let many = [&b"*4\r\n"[..], b"$90\r\n", &[b'x'; 90], b"\r\n"].concat();
        let more = [b"$90\r\n".to_vec(), vec![b'x'; 90], b"\r\n".to_vec()].concat();
        let bytes = [many, more.clone(), more, b"$90\r\n".to_vec()].concat();
        assert_eq!(parse(&bytes), Err(RequestSyntaxError("too big request")));
        assert!(parse(&[b'x'; 200]).is_err());
    }

    proptest! {
        #[test]
        fn bytes_that_come_in_pieces_mean_the_same(
            request in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6),
            cuts in prop::collection::vec(0_usize..200, 0..8),
        ) {
            let mut bytes = format!("*{}\r\n", request.len()).into_bytes();
            for word in &request {
                bytes.extend(format!("${}\r\n", word.len()).into_bytes());
                bytes.extend_from_slice(word);
                bytes.extend_from_slice(b"\r\n");
            }
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % bytes.len()).collect();
            cuts.sort_unstable();
            let mut parser = RequestParser::default();
            for cut in cuts {
                let seen = bytes.get(..cut).unwrap();
                prop_assert_eq!(parser.parse(seen, &LIMITS), Ok(None));
            }
            prop_assert_eq!(parser.parse(&bytes, &LIMITS), Ok(Some(bytes.len())));
            prop_assert_eq!(parser.words(&bytes), request);
        }

        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(Some((length, _))) = parse(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
