//! A merge whose results show the order of the operands.

use rillbase_engine::Merge;

/// Appends operands to the value.
#[derive(Debug)]
pub(crate) struct Append;

impl Merge for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn full(&self, _key: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
        [below.unwrap_or_default(), &operands.concat()].concat()
    }

    fn partial(&self, _key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(operands.concat())
    }
}
