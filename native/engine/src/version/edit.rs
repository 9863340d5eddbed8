//! Edits of the manifest.
//!
//! ```text
//! record := edit*
//! edit   := tag{u8} fields
//! ```

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

use crate::coding::to_usize;
use crate::key::{Millis, Sequence};
use crate::version::file::FileMeta;

/// One edit. All edits of a record are atomic.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Edit {
    /// A keyspace was created; `merge` is the name of its merge, or empty.
    KeyspaceCreated {
        id: u64,
        name: String,
        merge: String,
    },
    /// A keyspace was dropped, with all its tables.
    KeyspaceDropped { id: u64 },
    /// A table was added to a run of a level.
    FileAdded {
        keyspace: u64,
        level: usize,
        run: u64,
        meta: FileMeta,
    },
    /// A table was removed.
    FileRemoved { keyspace: u64, number: u64 },
    /// Everything of the keyspace up to a sequence is in tables; the log's entries up to it are not
    /// read.
    Flushed { keyspace: u64, sequence: Sequence },
    /// File numbers, sequences and times below these were used.
    Used {
        file: u64,
        sequence: Sequence,
        time: Millis,
    },
    /// The cursor of the layout with this name.
    Cursor {
        keyspace: u64,
        layout: String,
        cursor: Vec<u8>,
    },
    /// The log's records before this one are in tables. Replaces any earlier edit of this kind.
    ReplayFrom { record: u64 },
}

const CREATED: u8 = 1;
const DROPPED: u8 = 2;
const ADDED: u8 = 3;
const REMOVED: u8 = 4;
const FLUSHED: u8 = 5;
const USED: u8 = 6;
const ADDED_WITH_ZONE: u8 = 7;
const CURSOR: u8 = 8;
const REPLAY_FROM: u8 = 9;

impl Edit {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::KeyspaceCreated { id, name, merge } => {
                out.push(CREATED);
                out.put_varint(*id);
                out.put_slice(name.as_bytes());
                out.put_slice(merge.as_bytes());
            }
            Self::KeyspaceDropped { id } => {
                out.push(DROPPED);
                out.put_varint(*id);
            }
            Self::FileAdded {
                keyspace,
                level,
                run,
                meta,
            } => {
                out.push(if meta.about.is_some() {
                    ADDED_WITH_ZONE
                } else {
                    ADDED
                });
                out.put_varint(*keyspace);
                out.put_varint(*level as u64);
                out.put_varint(*run);
                meta.encode(out);
            }
            Self::FileRemoved { keyspace, number } => {
                out.push(REMOVED);
                out.put_varint(*keyspace);
                out.put_varint(*number);
            }
            Self::Flushed { keyspace, sequence } => {
                out.push(FLUSHED);
                out.put_varint(*keyspace);
                out.put_varint(*sequence);
            }
            Self::Used {
                file,
                sequence,
                time,
            } => {
                out.push(USED);
                out.put_varint(*file);
                out.put_varint(*sequence);
                out.put_varint(*time);
            }
            Self::Cursor {
                keyspace,
                layout,
                cursor,
            } => {
                out.push(CURSOR);
                out.put_varint(*keyspace);
                out.put_slice(layout.as_bytes());
                out.put_slice(cursor);
            }
            Self::ReplayFrom { record } => {
                out.push(REPLAY_FROM);
                out.put_varint(*record);
            }
        }
    }

    fn decode(reader: &mut ByteReader<'_>) -> ReadResult<Self> {
        Ok(match reader.byte()? {
            CREATED => Self::KeyspaceCreated {
                id: reader.varint()?,
                name: reader.text()?.to_owned(),
                merge: reader.text()?.to_owned(),
            },
            DROPPED => Self::KeyspaceDropped {
                id: reader.varint()?,
            },
            ADDED => Self::FileAdded {
                keyspace: reader.varint()?,
                level: to_usize(reader.varint()?),
                run: reader.varint()?,
                meta: FileMeta::decode(reader)?,
            },
            ADDED_WITH_ZONE => Self::FileAdded {
                keyspace: reader.varint()?,
                level: to_usize(reader.varint()?),
                run: reader.varint()?,
                meta: FileMeta::decode_with_zone(reader)?,
            },
            CURSOR => Self::Cursor {
                keyspace: reader.varint()?,
                layout: reader.text()?.to_owned(),
                cursor: reader.slice()?.to_vec(),
            },
            REPLAY_FROM => Self::ReplayFrom {
                record: reader.varint()?,
            },
            REMOVED => Self::FileRemoved {
                keyspace: reader.varint()?,
                number: reader.varint()?,
            },
            FLUSHED => Self::Flushed {
                keyspace: reader.varint()?,
                sequence: reader.varint()?,
            },
            USED => Self::Used {
                file: reader.varint()?,
                sequence: reader.varint()?,
                time: reader.varint()?,
            },
            _ => return Err(reader.error("a kind of edit")),
        })
    }

    /// The edits of a record.
    pub(crate) fn decode_all(record: &[u8]) -> ReadResult<Vec<Self>> {
        let mut reader = ByteReader::new(record);
        let mut edits = Vec::new();
        while !reader.is_empty() {
            edits.push(Self::decode(&mut reader)?);
        }
        Ok(edits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::ZoneMap;
    use crate::version::file::Largest;

    #[test]
    fn edits_round_trip_and_truncated_ones_are_rejected() {
        let meta = FileMeta {
            number: 7,
            size: 1 << 20,
            smallest: b"a".to_vec(),
            largest: Largest {
                key: b"z".to_vec(),
                exclusive: true,
            },
            entries: 3,
            deletes: 1,
            operands: 0,
            range_deletes: 1,
            first_sequence: 4,
            last_sequence: 9,
            written_until: 1000,
            all_expired_at: None,
            about: None,
        };
        let mut zone = ZoneMap::default();
        zone.add_rectangle([1.0, 2.0, 3.0, 4.0]);
        let zoned = FileMeta {
            number: 8,
            about: Some(Box::new((3, zone))),
            ..meta.clone()
        };
        let edits = vec![
            Edit::KeyspaceCreated {
                id: 1,
                name: "topics".into(),
                merge: String::new(),
            },
            Edit::FileAdded {
                keyspace: 1,
                level: 2,
                run: 5,
                meta,
            },
            Edit::FileAdded {
                keyspace: 1,
                level: 3,
                run: 6,
                meta: zoned,
            },
            Edit::Cursor {
                keyspace: 1,
                layout: "cells".into(),
                cursor: vec![7, 0],
            },
            Edit::FileRemoved {
                keyspace: 1,
                number: 3,
            },
            Edit::Flushed {
                keyspace: 1,
                sequence: 9,
            },
            Edit::Used {
                file: 8,
                sequence: 9,
                time: 1000,
            },
            Edit::ReplayFrom { record: 300 },
            Edit::KeyspaceDropped { id: 1 },
        ];
        let mut bytes = Vec::new();
        for edit in &edits {
            edit.encode(&mut bytes);
        }
        assert_eq!(Edit::decode_all(&bytes), Ok(edits));
        assert!(Edit::decode_all(&bytes[..bytes.len() - 1]).is_err());
        assert!(Edit::decode_all(&[77]).is_err());
    }
}
