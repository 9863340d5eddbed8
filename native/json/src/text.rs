//! Strings: finding their end quickly, and unescaping.

use crate::error::JsonErrorCode;

/// What is wrong, and its offset from where the scan began.
pub(crate) type Refusal = (JsonErrorCode, &'static str, usize);

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;
const WORD: usize = 8;

/// How many bytes at the start of `bytes` stand for themselves inside a string: the distance to
/// the first quote, backslash or control character, or to the end.
pub(crate) fn plain_length(bytes: &[u8]) -> usize {
    let mut words = bytes.chunks_exact(WORD);
    let mut length = 0;
    for word in words.by_ref() {
        // Eight bytes at a time: the high bit of each byte that may be special is set.
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        let quotes = word ^ (ONES * u64::from(b'"'));
        let escapes = word ^ (ONES * u64::from(b'\\'));
        let special = (quotes.wrapping_sub(ONES) & !quotes)
            | (escapes.wrapping_sub(ONES) & !escapes)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        // A borrow can only mark a byte falsely above one that is marked correctly, so the lowest
        // mark is correct.
        let special = special & HIGHS;
        if special != 0 {
            return length + special.trailing_zeros() as usize / WORD;
        }
        length += WORD;
    }
    let is_plain = |&&byte: &&u8| byte != b'"' && byte != b'\\' && byte >= 0x20;
    length + words.remainder().iter().take_while(is_plain).count()
}

/// The character that the escape at the start of `bytes` stands for, and the escape's length.
pub(crate) fn unescape(bytes: &[u8]) -> Result<(char, usize), Refusal> {
    let character = match bytes.get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unescape_unicode(bytes),
        Some(_) => return Err((JsonErrorCode::Malformed, "no such escape", 1)),
        None => return Err((JsonErrorCode::Malformed, "the text ends inside a string", 1)),
    };
    Ok((character, 2))
}

/// `\uXXXX`, or two of them that make up one character.
fn unescape_unicode(bytes: &[u8]) -> Result<(char, usize), Refusal> {
    const LONE: Refusal = (
        JsonErrorCode::LoneSurrogate,
        "an escape names half a surrogate pair",
        0,
    );
    let unit = code_unit(bytes, 2)?;
    match unit {
        0 => Err((JsonErrorCode::NulInString, "a string holds U+0000", 0)),
        0xD800..=0xDBFF => {
            if bytes.get(6..8) != Some(b"\\u") {
                return Err(LONE);
            }
            let low = code_unit(bytes, 8)?;
            match char::decode_utf16([unit, low]).next() {
                Some(Ok(character)) => Ok((character, 12)),
                _ => Err(LONE),
            }
        }
        _ => char::from_u32(u32::from(unit))
            .map(|character| (character, 6))
            .ok_or(LONE),
    }
}

/// Four hexadecimal digits at `at`.
fn code_unit(bytes: &[u8], at: usize) -> Result<u16, Refusal> {
    let mut unit = 0_u16;
    for offset in at..at + 4 {
        let digit = match bytes.get(offset) {
            Some(&byte @ b'0'..=b'9') => byte - b'0',
            Some(&byte @ b'a'..=b'f') => byte - b'a' + 10,
            Some(&byte @ b'A'..=b'F') => byte - b'A' + 10,
            _ => {
                return Err((
                    JsonErrorCode::Malformed,
                    "expected four hexadecimal digits",
                    offset,
                ));
            }
        };
        unit = unit << 4 | u16::from(digit);
    }
    Ok(unit)
}
