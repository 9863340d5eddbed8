//! The limits of the engine. Each is defined here, and a test reaches it.

/// Largest document, in bytes of BSON.
pub const DOCUMENT_BYTES: usize = 16 * 1024 * 1024;
/// All operations of one body, in bytes of BSON: twice the largest body by default.
pub const OPERATIONS_BYTES: usize = 64 * 1024 * 1024;
/// Deepest nesting of documents and arrays; the document itself is level 1.
pub const NESTING_DEPTH: usize = 100;
/// Largest filter, in bytes of BSON.
pub const FILTER_BYTES: usize = 256 * 1024;
/// Most nodes of a filter: predicates, connectives, expressions and schema rules.
pub const FILTER_NODES: usize = 1_000;
/// Deepest nesting of connectives and `$elemMatch`.
pub const FILTER_DEPTH: usize = 50;
/// Longest list of `$in` and `$nin`.
pub const IN_VALUES: usize = 10_000;
/// Most keys of a sort.
pub const SORT_KEYS: usize = 32;
/// Longest pattern of a regular expression, in bytes.
pub const REGEX_PATTERN_BYTES: usize = 32 * 1024;
/// Largest compiled regular expression, in bytes.
pub const REGEX_COMPILED_BYTES: usize = 1024 * 1024;
/// Steps of one evaluation.
pub const EVALUATION_STEPS: u64 = 1_000_000;
/// Memory that one evaluation may build, in bytes.
pub const EVALUATION_BYTES: usize = 16 * 1024 * 1024;
/// Deepest nesting of an aggregation expression or a schema.
pub const EXPRESSION_DEPTH: usize = 50;
/// Most fields of a projection or an update.
pub const CHANGES: usize = 1_000;
/// Most elements a positional operator or `$push` may make an array grow to.
pub const ARRAY_ELEMENTS: usize = 1_500_000;
/// Most index keys that one document may have in one index.
pub const INDEX_KEYS: usize = 10_000;
/// Most fields by which documents are grouped.
pub const GROUP_FIELDS: usize = 8;
/// Most measures of a group.
pub const GROUP_MEASURES: usize = 32;
/// Maximum length of the name of a measure or lookup, and of the path of either, in bytes.
pub const FIELD_NAME_BYTES: usize = 255;
/// Largest value that documents are grouped by, and largest value that `min` and `max` keep, in bytes.
pub const GROUP_VALUE_BYTES: usize = 1024;
/// Most lookups of a query.
pub const LOOKUPS: usize = 8;
/// Most documents that one lookup refers to from one document.
pub const LOOKUP_REFERENCES: usize = 1_000;
