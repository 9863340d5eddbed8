//! The wire protocol: RESP versions 2 and 3, as Redis and Valkey clients use them.

mod parser;
mod reply;

pub use parser::{RequestLimits, RequestParser, RequestSyntaxError};
pub(crate) use reply::ReplyWriter;
