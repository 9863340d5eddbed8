//! The wire: RESP, versions 2 and 3, as clients of Redis and Valkey speak it.

mod parser;
mod reply;

pub use parser::{Limits, Parser, ProtocolError};
pub(crate) use reply::Reply;
