//! Names of subscriptions: they locate the record, so that ending it needs no index by name.
//!
//! ```text
//! name := sequence{varint} until{varint} remembers{u8} [user{slice}] (id{slice})*
//! ```
//!
//! `user` is present for a subscription with a history. Names must be sealed before they are given
//! to untrusted clients: any client that knows a name can end the subscription.

use rillbase_engine::{Millis, Sequence};

use crate::coding::{RecordReader, put_slice, put_varint};
use crate::error::{Error, Result};
use crate::id::DeweyId;
use crate::record::{StoredRecord, SubscriptionRecord};

/// The name of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionLocator {
    pub(crate) sequence: Sequence,
    pub(crate) until: Millis,
    /// Its user, if it has a history.
    pub(crate) user: Option<Vec<u8>>,
    /// The ids under which it is stored.
    pub(crate) ids: Vec<DeweyId>,
}

impl SubscriptionLocator {
    /// Its encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.sequence);
        put_varint(&mut out, self.until);
        out.push(u8::from(self.user.is_some()));
        if let Some(user) = &self.user {
            put_slice(&mut out, user);
        }
        self.ids
            .iter()
            .for_each(|id| put_slice(&mut out, id.as_bytes()));
        out
    }

    /// Decodes a name.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let what = "this is not the name of a subscription";
        Self::read(RecordReader(bytes)).ok_or(Error::Malformed { what })
    }

    fn read(mut reader: RecordReader<'_>) -> Option<Self> {
        let mut name = Self {
            sequence: reader.varint()?,
            until: reader.varint()?,
            user: match reader.byte()? {
                0 => None,
                1 => Some(reader.slice()?.to_vec()),
                _ => return None,
            },
            ids: Vec::new(),
        };
        while !reader.0.is_empty() {
            name.ids.push(DeweyId::from_bytes(reader.slice()?)?);
        }
        (!name.ids.is_empty()).then_some(name)
    }

    /// The name of a stored subscription, which is stored under `ids`.
    pub fn of(stored: &StoredRecord<SubscriptionRecord>, ids: &[DeweyId]) -> Self {
        let wish = &stored.record;
        Self {
            sequence: stored.sequence,
            until: wish.until,
            user: wish.unseen_only.then(|| wish.user.clone()),
            ids: ids.to_vec(),
        }
    }

    /// When the subscription ends.
    pub fn until(&self) -> Millis {
        self.until
    }

    /// The sequence of the operation that created it.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }
}
