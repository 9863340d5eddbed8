//! The documents of an entry of an eager index, the newest first.
//!
//! ```text
//! list     := 0                          the documents have timed entries
//!           | 1 reversed{u64} document*
//! document  := delta{varint} document_key{slice}
//! ```
//!
//! Times are stored as complements, so that they ascend; `delta` is the difference to the one before,
//! the first one's to `reversed`.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

use crate::error::{Error, Result};
use crate::format::TimedDocument;

/// Lists with more bytes are split: each write reads and replaces the whole list.
pub(crate) const MAX_LIST_BYTES: usize = 256 << 10;

const SPLIT: u8 = 0;
const LISTED: u8 = 1;

/// The documents of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EntryList {
    /// In order.
    Listed(Vec<TimedDocument>),
    /// They were too many: each has a timed entry.
    Split,
}

impl EntryList {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Self::Listed(documents) = self else {
            return vec![SPLIT];
        };
        let mut out = vec![LISTED];
        let mut before = documents.first().map_or(0, |first| first.reversed_ms);
        out.extend_from_slice(&before.to_be_bytes());
        for document in documents {
            out.put_varint(document.reversed_ms.saturating_sub(before));
            out.put_slice(&document.key);
            before = document.reversed_ms;
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        read(bytes).map_err(|_| Error::Malformed("a list of an index"))
    }
}

fn read(bytes: &[u8]) -> ReadResult<EntryList> {
    let mut reader = ByteReader::new(bytes);
    match reader.byte()? {
        SPLIT => Ok(EntryList::Split),
        LISTED => {
            let mut reversed_ms = reader.u64_be()?;
            let mut documents = Vec::new();
            while !reader.is_empty() {
                let next = reversed_ms.checked_add(reader.varint()?);
                reversed_ms = reader.check(next, "a time")?;
                let key = reader.slice()?.to_vec();
                documents.push(TimedDocument { reversed_ms, key });
            }
            Ok(EntryList::Listed(documents))
        }
        _ => Err(reader.error("0 or 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_round_trips_and_a_cut_one_is_malformed() {
        let documents = [(1 << 41, b"c"), (9, b"a"), (5, b"a"), (5, b"b")];
        let documents =
            documents.map(|(updated_ms, document)| TimedDocument::new(updated_ms, document));
        for list in [EntryList::Listed(documents.into()), EntryList::Split] {
            let bytes = list.encode();
            assert_eq!(EntryList::decode(&bytes).unwrap(), list);
            assert!(EntryList::decode(&bytes[..bytes.len() - 1]).is_err());
        }
    }
}
