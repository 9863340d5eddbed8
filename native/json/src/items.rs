//! Splits a JSON file into its documents, without parsing them.
//!
//! A file has one array of values, or one object after the other. Each item is returned with its
//! place. With [`ItemReader::one_line`] it is one line, for a reader of lines to validate: line
//! breaks around its parts become spaces. Within a string they are errors anyway.

use std::fmt;

/// Why the rest of a file cannot be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemsFailure {
    /// The file begins with neither a bracket nor a brace.
    NoItems,
    /// Something else than a comma stands between two items, or anything after the array.
    Separator {
        /// The line of the error.
        line: u64,
    },
    /// An item is larger than allowed.
    TooLarge {
        /// Where it begins.
        line: u64,
        /// The limit.
        max_bytes: usize,
    },
    /// The file ends within an item, or before the end of the array.
    Truncated,
}

impl fmt::Display for ItemsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoItems => f.write_str("Expected an array of documents, or a document."),
            Self::Separator { line } => write!(f, "Line {line}: expected a comma or the end."),
            Self::TooLarge { line, max_bytes } => write!(
                f,
                "The document that begins on line {line} has more than {max_bytes} bytes."
            ),
            Self::Truncated => f.write_str("The file ends within a document or its array."),
        }
    }
}

/// A document of the file, not parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileItem {
    /// The line on which it begins, from 1.
    pub line: u64,
    /// The column at which it begins, from 1, in characters.
    pub column: u64,
    /// Its bytes.
    pub text: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemsState {
    /// Before the first byte that is not white space.
    Start,
    /// Where an item may begin; with `after_comma`, where one must begin.
    Before {
        after_comma: bool,
    },
    Inside,
    /// After an item.
    After,
    /// After the array.
    End,
}

/// The position in relation to strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextState {
    Outside,
    Inside,
    /// After the backslash of a string.
    Escaped,
}

/// Splits a file part by part.
#[derive(Debug, Clone)]
pub struct ItemReader {
    max_bytes: usize,
    state: ItemsState,
    is_array: bool,
    is_one_line: bool,
    line: u64,
    column: u64,
    item_line: u64,
    item_column: u64,
    item: Vec<u8>,
    depth: usize,
    text: TextState,
}

impl ItemReader {
    /// A reader of items of at most `max_bytes` bytes.
    #[must_use]
    pub const fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            state: ItemsState::Start,
            is_array: false,
            is_one_line: false,
            line: 1,
            column: 1,
            item_line: 1,
            item_column: 1,
            item: Vec::new(),
            depth: 0,
            text: TextState::Outside,
        }
    }

    /// Returns each item as one line.
    #[must_use]
    pub const fn one_line(mut self) -> Self {
        self.is_one_line = true;
        self
    }

    /// Reads a part and returns the items that it completes.
    ///
    /// # Errors
    ///
    /// The rest of the file cannot be split.
    pub fn push(&mut self, part: &[u8]) -> Result<Vec<FileItem>, ItemsFailure> {
        let mut items = Vec::new();
        for &byte in part {
            self.step(byte, &mut items)?;
            self.advance(byte);
        }
        Ok(items)
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// The file is not complete.
    pub fn finish(&self) -> Result<(), ItemsFailure> {
        let is_complete = match self.state {
            ItemsState::End => true,
            ItemsState::Before { .. } => !self.is_array,
            ItemsState::Start | ItemsState::Inside | ItemsState::After => false,
        };
        is_complete.then_some(()).ok_or(ItemsFailure::Truncated)
    }

    fn advance(&mut self, byte: u8) {
        if byte == b'\n' {
            self.line += 1;
            self.column = 1;
        } else if byte & 0b1100_0000 != 0b1000_0000 {
            // The other bytes continue a character.
            self.column += 1;
        }
    }

    fn step(&mut self, byte: u8, items: &mut Vec<FileItem>) -> Result<(), ItemsFailure> {
        const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];
        if self.state == ItemsState::Inside {
            return self.step_inside(byte, items);
        }
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            return Ok(());
        }
        match (self.state, byte) {
            (ItemsState::Start, mark) if BYTE_ORDER_MARK.contains(&mark) => {}
            (ItemsState::Start, b'[') => {
                self.is_array = true;
                self.state = ItemsState::Before { after_comma: false };
            }
            (ItemsState::Start | ItemsState::Before { .. }, b'{') => self.begin(byte),
            (ItemsState::Start, _) => return Err(ItemsFailure::NoItems),
            (ItemsState::Before { after_comma: false } | ItemsState::After, b']')
                if self.is_array =>
            {
                self.state = ItemsState::End;
            }
            (ItemsState::Before { .. }, other)
                if self.is_array && !matches!(other, b',' | b']') =>
            {
                self.begin(byte);
            }
            (ItemsState::After, b',') => self.state = ItemsState::Before { after_comma: true },
            _ => return Err(ItemsFailure::Separator { line: self.line }),
        }
        Ok(())
    }

    fn begin(&mut self, byte: u8) {
        self.state = ItemsState::Inside;
        self.item_line = self.line;
        self.item_column = self.column;
        self.depth = 0;
        self.item.clear();
        self.take(byte);
    }

    fn step_inside(&mut self, byte: u8, items: &mut Vec<FileItem>) -> Result<(), ItemsFailure> {
        // A value without brackets ends before what follows it.
        let is_open = self.depth > 0 || self.text != TextState::Outside;
        if !is_open && matches!(byte, b',' | b']' | b'}') {
            self.end(items);
            return self.step(byte, items);
        }
        if self.item.len() >= self.max_bytes {
            let line = self.item_line;
            let max_bytes = self.max_bytes;
            return Err(ItemsFailure::TooLarge { line, max_bytes });
        }
        self.take(byte);
        if self.depth == 0 && self.text == TextState::Outside && matches!(byte, b'}' | b']') {
            self.end(items);
        }
        Ok(())
    }

    fn end(&mut self, items: &mut Vec<FileItem>) {
        items.push(FileItem {
            line: self.item_line,
            column: self.item_column,
            text: std::mem::take(&mut self.item),
        });
        self.state = if self.is_array {
            ItemsState::After
        } else {
            ItemsState::Before { after_comma: false }
        };
    }

    fn take(&mut self, byte: u8) {
        self.text = match (self.text, byte) {
            (TextState::Inside, b'\\') => TextState::Escaped,
            (TextState::Outside, b'"') | (TextState::Escaped, _) => TextState::Inside,
            (TextState::Inside, b'"') => TextState::Outside,
            (state, _) => state,
        };
        let is_outside = self.text == TextState::Outside;
        match byte {
            b'{' | b'[' if is_outside => self.depth += 1,
            b'}' | b']' if is_outside => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        let is_break = self.is_one_line && is_outside && matches!(byte, b'\n' | b'\r');
        self.item.push(if is_break { b' ' } else { byte });
    }
}
