//! Resume tokens: sealed positions in a subscription.
//!
//! A token states where a client resumes, who may use it, and the query and its activation; the
//! seal (HMAC-SHA-256, truncated to 16 bytes) proves that we wrote it. The content is encrypted,
//! because positions in logs and transaction numbers would reveal how much all tenants write.

use sha2::{Digest, Sha256};

use rillbase_binary_format::{ByteReader, ReadResult};

use crate::message::{QueryHash, StreamId};
use crate::snapshot::PgSnapshot;

const FORMAT: u8 = 2;
const BLOCK_BYTES: usize = 64;
const SEAL_BYTES: usize = 16;
/// The maximum number of running transactions in a token.
const MAX_RUNNING: usize = 256;
/// Their number is rounded up to a multiple of this, since it can be inferred from a token's
/// length.
const RUNNING_STEP: usize = 16;

/// The content of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeToken {
    /// A hash of tenant and principal: who may use it.
    pub holder: [u8; 16],
    /// The query.
    pub query: QueryHash,
    /// Its activation.
    pub activation: u64,
    /// The installation epoch.
    pub installation: u64,
    /// The grid epoch.
    pub epoch: u32,
    /// The incarnation of the event layer and the database.
    pub incarnation: [u8; 16],
    /// The position in the notification log up to which everything was sent; zero if the client
    /// cannot resume.
    pub position: StreamId,
    /// How many events were sent.
    pub seq: u64,
    /// What the client's result contains regardless of its position in the log; empty by default.
    pub seen: PgSnapshot,
}

/// Seals and opens tokens.
#[derive(Debug, Clone)]
pub struct Sealer {
    inner: [u8; BLOCK_BYTES],
    outer: [u8; BLOCK_BYTES],
    cipher_key: [u8; 32],
}

impl Sealer {
    /// A sealer with a key of any length.
    pub fn new(secret: &[u8]) -> Self {
        let mut key = [0_u8; BLOCK_BYTES];
        for (to, from) in key.iter_mut().zip(Sha256::digest(secret)) {
            *to = from;
        }
        Self {
            inner: key.map(|byte| byte ^ 0x36),
            outer: key.map(|byte| byte ^ 0x5c),
            cipher_key: Sha256::new()
                .chain_update(b"rillbase resume token")
                .chain_update(key)
                .finalize()
                .into(),
        }
    }

    /// The token's text: hexadecimal digits.
    pub fn seal(&self, token: &ResumeToken) -> String {
        let mut bytes = body(token);
        let mac = self.mac(&bytes);
        let seal = mac.split_at(SEAL_BYTES).0;
        self.encrypt(&mut bytes, seal);
        bytes.extend(seal);
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
        digits.collect()
    }

    /// The content of a token; `None` if we did not write it.
    pub fn open(&self, text: &str) -> Option<ResumeToken> {
        let mut bytes = from_hex(text)?;
        let body_bytes = bytes.len().checked_sub(SEAL_BYTES)?;
        let (body, seal) = bytes.split_at_mut_checked(body_bytes)?;
        self.encrypt(body, seal);
        let expected = self.mac(body);
        let differ = seal
            .iter()
            .zip(expected)
            .fold(0_u8, |sum, (a, b)| sum | (a ^ b));
        if seal.len() != SEAL_BYTES || differ != 0 {
            return None;
        }
        read(body).ok()
    }

    /// Encrypts or decrypts with a keystream of the seal (a synthetic initialization vector).
    fn encrypt(&self, bytes: &mut [u8], seal: &[u8]) {
        for (block, number) in bytes.chunks_mut(32).zip(0_u32..) {
            let stream = Sha256::new()
                .chain_update(self.cipher_key)
                .chain_update(seal)
                .chain_update(number.to_be_bytes())
                .finalize();
            block
                .iter_mut()
                .zip(stream)
                .for_each(|(to, with)| *to ^= with);
        }
    }

    fn mac(&self, bytes: &[u8]) -> [u8; 32] {
        let inner = Sha256::new().chain_update(self.inner).chain_update(bytes);
        let outer = Sha256::new().chain_update(self.outer);
        outer.chain_update(inner.finalize()).finalize().into()
    }
}

fn body(token: &ResumeToken) -> Vec<u8> {
    let fits = token.seen.running.len() <= MAX_RUNNING;
    let position = if fits {
        token.position
    } else {
        StreamId::default()
    };
    let mut out = Vec::with_capacity(160);
    out.push(FORMAT);
    out.extend(token.holder);
    out.extend(token.query.0);
    out.extend(token.activation.to_be_bytes());
    out.extend(token.installation.to_be_bytes());
    out.extend(token.epoch.to_be_bytes());
    out.extend(token.incarnation);
    out.extend(position.ms.to_be_bytes());
    out.extend(position.number.to_be_bytes());
    out.extend(token.seq.to_be_bytes());
    let running = token.seen.running.iter().filter(|_| fits);
    for xid in [&token.seen.xmin, &token.seen.xmax]
        .into_iter()
        .chain(running)
    {
        out.extend(xid.to_be_bytes());
    }
    if fits {
        let padded = token.seen.running.len().next_multiple_of(RUNNING_STEP);
        out.resize(out.len() + (padded - token.seen.running.len()) * 8, 0);
    }
    out
}

fn read(body: &[u8]) -> ReadResult<ResumeToken> {
    let mut reader = ByteReader::new(body);
    if reader.byte()? != FORMAT {
        return Err(reader.error("a token of this format"));
    }
    Ok(ResumeToken {
        holder: reader.array()?,
        query: QueryHash(reader.array()?),
        activation: reader.u64_be()?,
        installation: reader.u64_be()?,
        epoch: reader.u32_be()?,
        incarnation: reader.array()?,
        position: StreamId {
            ms: reader.u64_be()?,
            number: reader.u64_be()?,
        },
        seq: reader.u64_be()?,
        seen: PgSnapshot {
            xmin: reader.u64_be()?,
            xmax: reader.u64_be()?,
            // No transaction has the number 0.
            running: reader
                .rest()
                .chunks_exact(8)
                .filter_map(|xid| xid.try_into().ok().map(u64::from_be_bytes))
                .filter(|xid| *xid != 0)
                .collect(),
        },
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| {
        char::from(*byte)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    // Longer than any token of ours.
    if text.len() > 8 * 1024 {
        return None;
    }
    text.as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(xmin: u64, running: usize) -> ResumeToken {
        ResumeToken {
            holder: [1; 16],
            query: QueryHash([2; 16]),
            activation: 3,
            installation: 4,
            epoch: 5,
            incarnation: [6; 16],
            position: StreamId {
                ms: xmin,
                number: xmin,
            },
            seq: 7,
            seen: PgSnapshot {
                xmin,
                xmax: xmin + 1_000,
                running: (1..=running as u64).map(|n| xmin + n).collect(),
            },
        }
    }

    #[test]
    fn a_token_reveals_its_content_only_to_its_sealer() {
        let sealer = Sealer::new(b"secret");
        for running in [0, 1, 15, 16, 17, MAX_RUNNING] {
            let made = token(0x1122_3344_5566, running);
            let text = sealer.seal(&made);
            assert!(!text.contains("112233445566"), "{text}");
            assert!(!text.contains("0202020202"), "{text}");
            assert_eq!(sealer.open(&text).as_ref(), Some(&made));
            assert_eq!(Sealer::new(b"other").open(&text), None);
            for at in 0..text.len() {
                let digit = if text.as_bytes().get(at) == Some(&b'0') {
                    "1"
                } else {
                    "0"
                };
                let mut broken = text.clone();
                broken.replace_range(at..=at, digit);
                assert_eq!(sealer.open(&broken), None);
            }
        }
    }

    #[test]
    fn neither_text_nor_length_shows_how_much_others_write() {
        let sealer = Sealer::new(b"secret");
        let text = |xmin, running| sealer.seal(&token(xmin, running));
        assert_eq!(text(10, 1).len(), text(10, 16).len());
        let (one, next) = (text(10, 0), text(11, 0));
        let same = one
            .bytes()
            .zip(next.bytes())
            .filter(|(a, b)| a == b)
            .count();
        assert!(same < one.len() / 4, "{one} {next}");
    }
}
