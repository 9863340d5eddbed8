//! Names of subscriptions: they locate the record, so that ending it needs no index by name.
//!
//! ```text
//! name := sequence{varint} until{varint} remembers{u8} [user{slice}] (id{slice})*
//! ```
//!
//! `user` is present for a subscription with a history. Names must be sealed before they are given
//! to untrusted clients: any client that knows a name can end the subscription.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};
use rillbase_engine::{Millis, Sequence};

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
        out.put_varint(self.sequence);
        out.put_varint(self.until);
        out.push(u8::from(self.user.is_some()));
        if let Some(user) = &self.user {
            out.put_slice(user);
        }
        self.ids.iter().for_each(|id| out.put_slice(id.as_bytes()));
        out
    }

    /// Decodes a name.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let what = "this is not the name of a subscription";
        Self::read(ByteReader::new(bytes)).map_err(|_| Error::Malformed { what })
    }

    fn read(mut reader: ByteReader<'_>) -> ReadResult<Self> {
        let mut name = Self {
            sequence: reader.varint()?,
            until: reader.varint()?,
            user: if reader.flag()? {
                Some(reader.slice()?.to_vec())
            } else {
                None
            },
            ids: Vec::new(),
        };
        while !reader.is_empty() {
            let id = DeweyId::from_bytes(reader.slice()?);
            name.ids.push(reader.check(id, "an id")?);
        }
        reader.check((!name.ids.is_empty()).then_some(name), "an id")
    }

    /// The name of a stored subscription, which is stored under `ids`.
    pub fn of(stored: &StoredRecord<SubscriptionRecord>, ids: &[DeweyId]) -> Self {
        let subscription = &stored.record;
        Self {
            sequence: stored.sequence,
            until: subscription.until,
            user: subscription.unseen_only.then(|| subscription.user.clone()),
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
