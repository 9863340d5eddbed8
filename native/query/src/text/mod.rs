//! `$text`: words, phrases and negations, in English or without stemming.
//!
//! Every string of a document is searched, as with MongoDB's wildcard text index. A document
//! matches when it has one of the words, each of the phrases, and none of what is negated. The
//! language is that of the query: with `none`, words are not stemmed.

mod query;
mod stop_words;
mod tokens;

pub use query::TextQuery;
pub use tokens::{Analyzer, Language};
