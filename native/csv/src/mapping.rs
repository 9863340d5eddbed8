//! Maps columns to fields of a document.

use rillbase_query::bson::{Document, DocumentBuf, DocumentWriter, Value, ValueRef};

use crate::records::CsvRecord;
use crate::typed::CsvType;

/// A column of a file and the field that it becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedColumn {
    /// The column's name in the file: a name of the header, or a member of a JSON document.
    pub from: String,
    /// The path of the field, with dots between the names of nested documents.
    pub to: String,
    /// The type to which text is converted. `None`: it stays text.
    pub kind: Option<CsvType>,
}

/// Why a mapping or a value is rejected: the name that it concerns, and one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingProblem {
    /// A path or a column.
    pub name: String,
    /// One sentence for people.
    pub detail: String,
}

/// Names of the document, each a field or a nested document.
#[derive(Debug, Clone, Default)]
struct MappedLevel {
    fields: Vec<(String, MappedField)>,
}

#[derive(Debug, Clone)]
enum MappedField {
    /// The number of the column in the mapping.
    Column(usize),
    Nested(MappedLevel),
}

/// Turns records and JSON documents into documents.
#[derive(Debug, Clone)]
pub struct DocumentMapping {
    columns: Vec<MappedColumn>,
    /// The index of each mapped column in the file.
    indexes: Vec<Option<usize>>,
    root: MappedLevel,
}

impl DocumentMapping {
    /// A mapping of these columns; others are skipped.
    ///
    /// # Errors
    ///
    /// A path is malformed, or two columns become the same field.
    pub fn new(columns: Vec<MappedColumn>) -> Result<Self, MappingProblem> {
        let mut root = MappedLevel::default();
        for (number, column) in columns.iter().enumerate() {
            let path: Vec<&str> = column.to.split('.').collect();
            let problem = |detail: &str| MappingProblem {
                name: column.to.clone(),
                detail: detail.to_owned(),
            };
            let is_name = |name: &&str| !name.is_empty() && !name.starts_with('$');
            if !path.iter().all(is_name) || column.to.contains('\0') || path.len() > 16 {
                return Err(problem("This is not a valid path of a field."));
            }
            if !root.insert(&path, number) {
                return Err(problem("Two columns become this field."));
            }
        }
        let indexes = (0..columns.len()).map(Some).collect();
        Ok(Self {
            columns,
            indexes,
            root,
        })
    }

    /// The mapping for a file with this header.
    ///
    /// # Errors
    ///
    /// A mapped column is missing from the header, or present twice.
    pub fn for_header(mut self, header: &[String]) -> Result<Self, MappingProblem> {
        for (column, index) in self.columns.iter().zip(&mut self.indexes) {
            let mut found = header
                .iter()
                .enumerate()
                .filter(|(_, name)| **name == column.from);
            *index = found.next().map(|(index, _)| index);
            let detail = match (index, found.next()) {
                (None, _) => "The file has no such column.",
                (Some(_), Some(_)) => "The file has two columns with this name.",
                (Some(_), None) => continue,
            };
            return Err(MappingProblem {
                name: column.from.clone(),
                detail: detail.to_owned(),
            });
        }
        Ok(self)
    }

    /// The document of a record. Fields without a value are left out.
    ///
    /// # Errors
    ///
    /// A text is not valid for its column's type.
    pub fn record(&self, record: CsvRecord<'_>) -> Result<DocumentBuf, MappingProblem> {
        let writer = self.root.write(&|number| {
            let index = self.indexes.get(number).copied().flatten();
            let Some(text) = index.and_then(|index| record.field(index)) else {
                return Ok(None);
            };
            self.typed(number, text)
        })?;
        Ok(writer.unwrap_or_default().into())
    }

    /// Maps a JSON document. Types apply to its strings.
    ///
    /// # Errors
    ///
    /// A text is not valid for its column's type.
    pub fn document(&self, document: Document<'_>) -> Result<DocumentBuf, MappingProblem> {
        let writer = self.root.write(&|number| {
            let name = self.columns.get(number).map_or("", |column| &column.from);
            match document.get(name) {
                None => Ok(None),
                Some(ValueRef::String(text)) => self.typed(number, text),
                Some(value) => Ok(Some(value.into())),
            }
        })?;
        Ok(writer.unwrap_or_default().into())
    }

    fn typed(&self, number: usize, text: &str) -> Result<Option<Value>, MappingProblem> {
        let column = self.columns.get(number);
        let kind = column
            .and_then(|column| column.kind)
            .unwrap_or(CsvType::Text);
        if kind != CsvType::Text && text.trim_ascii().is_empty() {
            return Ok(None);
        }
        let value = kind.value(text);
        value.map(Some).map_err(|detail| MappingProblem {
            name: column.map_or_else(String::new, |column| column.to.clone()),
            detail,
        })
    }
}

impl MappedLevel {
    /// Adds a field; false if the path is taken.
    fn insert(&mut self, path: &[&str], column: usize) -> bool {
        let Some((name, rest)) = path.split_first() else {
            return false;
        };
        let there = self.fields.iter_mut().find(|(known, _)| known == name);
        match (there, rest.is_empty()) {
            (None, true) => {
                let field = MappedField::Column(column);
                self.fields.push(((*name).to_owned(), field));
                true
            }
            (None, false) => {
                let mut nested = Self::default();
                let is_added = nested.insert(rest, column);
                let field = MappedField::Nested(nested);
                self.fields.push(((*name).to_owned(), field));
                is_added
            }
            (Some((_, MappedField::Nested(nested))), false) => nested.insert(rest, column),
            (Some(_), _) => false,
        }
    }

    /// The document of this level; None if it has no field.
    fn write(
        &self,
        value: &impl Fn(usize) -> Result<Option<Value>, MappingProblem>,
    ) -> Result<Option<DocumentWriter>, MappingProblem> {
        let mut writer = DocumentWriter::new();
        for (name, field) in &self.fields {
            match field {
                MappedField::Column(number) => {
                    if let Some(value) = value(*number)? {
                        writer.append(name, value.as_ref());
                    }
                }
                MappedField::Nested(level) => {
                    if let Some(nested) = level.write(value)? {
                        let bytes = nested.finish();
                        writer.append(name, ValueRef::Document(Document::trusted(&bytes)));
                    }
                }
            }
        }
        Ok((!writer.is_empty()).then_some(writer))
    }
}
