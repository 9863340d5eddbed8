//! The wire: RESP, versions 2 and 3, as clients of Redis and Valkey speak it.

mod parser;
mod reply;

pub use parser::{RequestLimits, RequestParser, RequestSyntaxError};
pub(crate) use reply::ReplyWriter;
