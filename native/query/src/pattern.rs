//! Regular expressions: the part of PCRE's syntax that can be matched in linear time, with its
//! semantics in MongoDB.
//!
//! The pattern is rewritten for the `regex` crate piece by piece, because the two read some of the
//! same text differently: `\d`, `\w`, `\s` and `\b` are ASCII in PCRE; an unmatched brace or
//! bracket is a literal there; `$` also matches before a line feed at the end. Constructs that need
//! backtracking (look-around, back-references, atomic groups, possessive quantifiers, recursion,
//! callouts) are rejected by name.

use regex::bytes::{Regex, RegexBuilder};

use crate::limits::{REGEX_COMPILED_BYTES, REGEX_PATTERN_BYTES};

/// A compiled regular expression with its source.
#[derive(Debug, Clone)]
pub struct Pattern {
    source: Box<str>,
    options: Box<str>,
    regex: Regex,
}

impl Pattern {
    /// Compiles a pattern; the error describes the problem.
    pub fn new(source: &str, options: &str) -> Result<Self, String> {
        if source.len() > REGEX_PATTERN_BYTES {
            return Err(format!(
                "a pattern may have at most {REGEX_PATTERN_BYTES} bytes"
            ));
        }
        let mut letters: Vec<char> = options.chars().collect();
        letters.sort_unstable();
        letters.dedup();
        if let Some(letter) = letters.iter().find(|letter| !"imsux".contains(**letter)) {
            return Err(format!(
                "'{letter}' is not an option of regular expressions; the options are i, m, s, u and x"
            ));
        }
        let extended = letters.contains(&'x');
        let multi_line = letters.contains(&'m');
        let translated = Translator::new(source, extended, multi_line).translate()?;
        let regex = RegexBuilder::new(&translated)
            .case_insensitive(letters.contains(&'i'))
            .multi_line(multi_line)
            .dot_matches_new_line(letters.contains(&'s'))
            .ignore_whitespace(extended)
            .size_limit(REGEX_COMPILED_BYTES)
            .dfa_size_limit(REGEX_COMPILED_BYTES)
            .nest_limit(100)
            .build()
            .map_err(|error| refusal(&error))?;
        let options: String = letters.into_iter().collect();
        Ok(Self {
            source: source.into(),
            options: options.into(),
            regex,
        })
    }

    /// Whether any part of the text matches.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text.as_bytes())
    }

    /// The original pattern.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The option letters, sorted.
    #[must_use]
    pub fn options(&self) -> &str {
        &self.options
    }

    /// The same expression in the syntax of the `regex` crate, to be used with the options.
    #[must_use]
    pub fn translated(&self) -> &str {
        self.regex.as_str()
    }

    /// A prefix of every text that matches; empty if none is certain.
    #[must_use]
    pub fn prefix(&self) -> String {
        let sure = !self.options.contains(['i', 'm', 'x']) && !self.source.contains('|');
        let Some(rest) = self.source.strip_prefix('^').filter(|_| sure) else {
            return String::new();
        };
        let plain =
            |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | ':' | '/' | '@');
        let mut prefix: String = rest.chars().take_while(plain).collect();
        let next = rest.chars().nth(prefix.chars().count());
        if next.is_some_and(|c| matches!(c, '*' | '?' | '{' | '+')) {
            prefix.pop();
        }
        prefix
    }

    /// The compiled expression, for `$regexFind`.
    #[must_use]
    pub(crate) const fn compiled(&self) -> &Regex {
        &self.regex
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.options == other.options
    }
}

fn refusal(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => {
            format!(
                "the regular expression needs more than {REGEX_COMPILED_BYTES} bytes when compiled"
            )
        }
        regex::Error::Syntax(text) => {
            let last = text.lines().last().unwrap_or_default();
            format!(
                "malformed regular expression: {}",
                last.trim_start_matches("error: ")
            )
        }
        _ => "malformed regular expression".into(),
    }
}

/// Groups that start with `(?` or `(*` and cannot be matched in linear time, or have no
/// counterpart.
const REFUSED_GROUPS: &[(&str, &str)] = &[
    ("(?=", "look-ahead"),
    ("(?!", "negative look-ahead"),
    ("(?<=", "look-behind"),
    ("(?<!", "negative look-behind"),
    ("(?>", "an atomic group"),
    ("(?|", "a branch reset group"),
    ("(?(", "a condition"),
    ("(?R", "recursion"),
    ("(?&", "recursion"),
    ("(?P>", "recursion"),
    ("(?P=", "a back-reference"),
    ("(?C", "a callout"),
    ("(?+", "recursion"),
    ("(?0", "recursion"),
    ("(*", "a backtracking verb"),
];

/// Escapes that cannot be matched in linear time, or have no counterpart.
fn refused_escape(letter: char) -> Option<&'static str> {
    Some(match letter {
        '1'..='9' | 'g' | 'k' => "a back-reference",
        'K' => "\\K (a reset of the match's start)",
        'G' => "\\G (the end of the last match)",
        'X' => "\\X (an extended grapheme cluster)",
        'C' => "\\C (a single byte)",
        'E' => "\\E without \\Q",
        _ => return None,
    })
}

struct Translator<'p> {
    rest: &'p str,
    out: String,
    extended: bool,
    multi_line: bool,
}

impl<'p> Translator<'p> {
    fn new(source: &'p str, extended: bool, multi_line: bool) -> Self {
        Self {
            rest: source,
            out: String::with_capacity(source.len() + 16),
            extended,
            multi_line,
        }
    }

    fn translate(mut self) -> Result<String, String> {
        while let Some(character) = self.next() {
            match character {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                '$' if !self.multi_line => self.out.push_str(r"(?:\n?\z)"),
                '*' | '+' | '?' => self.quantifier(character)?,
                '{' => self.brace()?,
                '}' => self.out.push_str(r"\}"),
                ']' => self.out.push_str(r"\]"),
                '#' if self.extended => self.comment(),
                other => self.out.push(other),
            }
        }
        Ok(self.out)
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next();
        self.rest = characters.as_str();
        character
    }

    fn take(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn comment(&mut self) {
        let (_, rest) = self.rest.split_once('\n').unwrap_or(("", ""));
        self.rest = rest;
        self.out.push(' ');
    }

    fn literal(&mut self, character: char) {
        if character.is_ascii_punctuation() || character == ' ' || character == '#' {
            self.out
                .push_str(&format!("\\x{{{:x}}}", u32::from(character)));
        } else {
            self.out.push(character);
        }
    }

    fn quantifier(&mut self, character: char) -> Result<(), String> {
        self.out.push(character);
        self.after_quantifier()
    }

    /// A lazy mark, or the plus sign of a possessive quantifier.
    fn after_quantifier(&mut self) -> Result<(), String> {
        if self.take("?") {
            self.out.push('?');
        } else if self.rest.starts_with('+') {
            return Err("a possessive quantifier needs backtracking and is not supported".into());
        }
        Ok(())
    }

    /// `{2}`, `{2,}`, `{2,3}` and `{,3}` repeat; any other brace is a literal.
    fn brace(&mut self) -> Result<(), String> {
        let inside = self.rest.split_once('}').map_or("", |(inside, _)| inside);
        let (low, high) = inside.split_once(',').unwrap_or((inside, inside));
        let numeric = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if inside.is_empty() || inside == "," || !numeric(low) || !numeric(high) {
            self.out.push_str(r"\{");
            return Ok(());
        }
        let low = if low.is_empty() { "0" } else { low };
        let body = if inside.contains(',') {
            format!("{{{low},{high}}}")
        } else {
            format!("{{{low}}}")
        };
        self.rest = self.rest.split_once('}').map_or("", |(_, rest)| rest);
        self.out.push_str(&body);
        self.after_quantifier()
    }

    fn group(&mut self) -> Result<(), String> {
        let whole = format!("({}", self.rest.chars().take(4).collect::<String>());
        if let Some((_, name)) = REFUSED_GROUPS
            .iter()
            .find(|(prefix, _)| whole.starts_with(prefix))
        {
            return Err(format!("{name} needs backtracking and is not supported"));
        }
        if self.take("?#") {
            let (_, rest) = self
                .rest
                .split_once(')')
                .ok_or("a comment group is not closed")?;
            self.rest = rest;
            return Ok(());
        }
        self.out.push('(');
        if self.take("?'") {
            let (name, rest) = self
                .rest
                .split_once('\'')
                .ok_or("a group's name is not closed")?;
            self.out.push_str(&format!("?P<{name}>"));
            self.rest = rest;
        } else if self.take("?") {
            self.out.push('?');
            self.group_flags()?;
        }
        Ok(())
    }

    /// `i`, `m`, `s`, `x` and `-` up to `:` or `)`; or a name.
    fn group_flags(&mut self) -> Result<(), String> {
        if self.rest.starts_with(['<', 'P', ':']) {
            return Ok(());
        }
        let end = self.rest.find([':', ')']).ok_or("a group is not closed")?;
        let (flags, rest) = self.rest.split_at_checked(end).unwrap_or_default();
        if let Some(flag) = flags.chars().find(|flag| !"imsx-".contains(*flag)) {
            return Err(format!("'(?{flag}' is not supported"));
        }
        if flags.contains('x') {
            return Err("'(?x' inside a pattern is not supported; the option x is".into());
        }
        self.out.push_str(flags);
        self.rest = rest;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), String> {
        let letter = self.next().ok_or("a pattern ends with a backslash")?;
        if let Some(name) = refused_escape(letter) {
            return Err(format!("{name} needs backtracking and is not supported"));
        }
        match letter {
            'd' => self.out.push_str("[0-9]"),
            'D' => self.out.push_str("[^0-9]"),
            'w' => self.out.push_str("[0-9A-Za-z_]"),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            's' => self.out.push_str(r"[\t\n\x0B\x0C\r\x20]"),
            'S' => self.out.push_str(r"[^\t\n\x0B\x0C\r\x20]"),
            'h' => self.out.push_str(
                r"[\t\x20\u{a0}\u{1680}\u{180e}\u{2000}-\u{200a}\u{202f}\u{205f}\u{3000}]",
            ),
            'H' => self.out.push_str(
                r"[^\t\x20\u{a0}\u{1680}\u{180e}\u{2000}-\u{200a}\u{202f}\u{205f}\u{3000}]",
            ),
            'v' => self.out.push_str(r"[\n\x0B\x0C\r\u{85}\u{2028}\u{2029}]"),
            'V' => self.out.push_str(r"[^\n\x0B\x0C\r\u{85}\u{2028}\u{2029}]"),
            'R' => self
                .out
                .push_str(r"(?:\r\n|[\n\x0B\x0C\r\u{85}\u{2028}\u{2029}])"),
            'N' => self.out.push_str(r"[^\n]"),
            'b' => self.out.push_str(r"(?-u:\b)"),
            'B' => self.out.push_str(r"(?-u:\B)"),
            'A' => self.out.push_str(r"\A"),
            'z' => self.out.push_str(r"\z"),
            'Z' => self.out.push_str(r"(?:\n?\z)"),
            'Q' => self.quoted(),
            'p' | 'P' => self.property(letter)?,
            _ => {
                let character = self.character(letter)?;
                self.literal(character);
            }
        }
        Ok(())
    }

    fn quoted(&mut self) {
        let (body, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
        self.rest = rest;
        body.chars().for_each(|character| self.literal(character));
    }

    fn property(&mut self, letter: char) -> Result<(), String> {
        let name = match self.rest.strip_prefix('{') {
            Some(rest) => {
                let (name, rest) = rest
                    .split_once('}')
                    .ok_or("a property's name is not closed")?;
                self.rest = rest;
                name.to_owned()
            }
            None => self
                .next()
                .map(String::from)
                .ok_or("a property has no name")?,
        };
        let (negated, name) = match name.strip_prefix('^') {
            Some(name) => (true, name),
            None => (false, name.as_str()),
        };
        let letter = if (letter == 'P') == negated { 'p' } else { 'P' };
        if !name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return Err("a property's name may have only letters".into());
        }
        self.out.push_str(&format!("\\{letter}{{{name}}}"));
        Ok(())
    }

    /// The character that an escape denotes.
    fn character(&mut self, letter: char) -> Result<char, String> {
        let code = match letter {
            'n' => 0x0A,
            't' => 0x09,
            'r' => 0x0D,
            'f' => 0x0C,
            'a' => 0x07,
            'e' => 0x1B,
            '0' => self.number(8, 2).unwrap_or(0),
            'o' if self.take("{") => self.braced(8)?,
            'x' if self.take("{") => self.braced(16)?,
            'x' => self.number(16, 2).unwrap_or(0),
            'c' => {
                let control = self
                    .next()
                    .filter(char::is_ascii)
                    .ok_or("\\c takes a character")?;
                u32::from(control.to_ascii_uppercase()) ^ 0x40
            }
            other if other.is_ascii_alphanumeric() => {
                return Err(format!(
                    "\\{other} is not an escape sequence of regular expressions"
                ));
            }
            other => return Ok(other),
        };
        char::from_u32(code).ok_or_else(|| "an escape names no character".into())
    }

    fn number(&mut self, radix: u32, most: usize) -> Option<u32> {
        let count = self
            .rest
            .chars()
            .take(most)
            .take_while(|digit| digit.is_digit(radix))
            .count();
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        u32::from_str_radix(digits, radix).ok()
    }

    fn braced(&mut self, radix: u32) -> Result<u32, String> {
        let (digits, rest) = self.rest.split_once('}').ok_or("an escape is not closed")?;
        self.rest = rest;
        u32::from_str_radix(digits, radix).map_err(|_| "an escape names no character".into())
    }

    /// A bracket expression. Inside, `&&`, `--`, `~~` and brackets are set notation in the `regex`
    /// crate and literals in PCRE.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.take("^") {
            self.out.push('^');
        }
        if self.take("]") {
            self.out.push_str(r"\]");
        }
        loop {
            match self.next().ok_or("a bracket expression is not closed")? {
                ']' => break,
                '\\' => self.class_escape()?,
                '[' if self.rest.starts_with(':') => self.posix()?,
                '-' if self.makes_range() => self.out.push('-'),
                other => self.class_literal(other),
            }
        }
        self.out.push(']');
        Ok(())
    }

    /// Whether a minus sign here denotes a range; next to an edge or after another minus sign it is
    /// a literal.
    fn makes_range(&self) -> bool {
        !self.rest.starts_with(']') && !self.out.ends_with(['-', '[']) && !self.out.ends_with("[^")
    }

    fn class_literal(&mut self, character: char) {
        if character.is_ascii_punctuation() || character.is_whitespace() {
            self.out
                .push_str(&format!("\\x{{{:x}}}", u32::from(character)));
        } else {
            self.out.push(character);
        }
    }

    fn class_escape(&mut self) -> Result<(), String> {
        let letter = self.next().ok_or("a pattern ends with a backslash")?;
        match letter {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'h' | 'H' | 'v' | 'V' | 'p' | 'P' => {
                self.rest_of_escape(letter)
            }
            'b' => {
                self.out.push_str(r"\x08");
                Ok(())
            }
            'Q' | 'E' => Err("\\Q inside brackets is not supported".into()),
            '1'..='7' => Err("octal escapes are written \\o{…}".into()),
            _ => {
                let character = self.character(letter)?;
                self.class_literal(character);
                Ok(())
            }
        }
    }

    fn rest_of_escape(&mut self, letter: char) -> Result<(), String> {
        let mut inner = Translator::new(self.rest, self.extended, self.multi_line);
        let escaped = format!("{letter}{}", inner.rest);
        inner.rest = &escaped;
        inner.escape()?;
        let used = escaped.len() - inner.rest.len() - letter.len_utf8();
        self.rest = self.rest.get(used..).unwrap_or_default();
        self.out.push_str(&inner.out);
        Ok(())
    }

    fn posix(&mut self) -> Result<(), String> {
        let (name, rest) = self
            .rest
            .split_once(":]")
            .ok_or("a class of characters is not closed")?;
        self.rest = rest;
        self.out.push_str(&format!("[{name}:]"));
        Ok(())
    }
}
