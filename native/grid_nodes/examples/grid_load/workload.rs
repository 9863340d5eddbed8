//! The paper's documents, and queries of each kind whose matches are known.
//!
//! For each kind, a document has a random number, and a query matches one number or several
//! consecutive ones. So the expected notifications are counted independently of the grid.

use std::sync::Arc;

use rillbase_live::message::{QueryDefinition, QueryHash, ResultRow};
use rillbase_live::partition::query_partition;
use rillbase_query::bson::{BsonType as Type, DocumentBuf, DocumentWriter, ValueRef};
use rillbase_query::ejson::parse_document;

use crate::Fallible;
use crate::grouped_documents::GroupedDocuments;
use crate::options::LoadOptions;

pub(crate) const COLLECTION: [u8; 16] = [7; 16];
/// The paper's number of matches per second, regardless of the numbers of queries and writes.
const MATCHES_PER_S: f64 = 17.0;
const RANGE_DOMAIN: u64 = 1_000_000_000;
/// A window that no run fills, so that every match enters it.
const LIMIT: u32 = 2_000;
/// Locations for `$geoWithin` are near the equator, where degrees of longitude and latitude have
/// similar lengths.
const LONGITUDES: f64 = 340.0;
const LATITUDES: f64 = 100.0;
/// The radius of a circle, as a fraction of the distance to the next one.
const RADIUS: f64 = 0.2;

/// The kind of predicate of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PredicateKind {
    Range,
    Equality,
    Regex,
    Geo,
    Text,
    Residual,
}

impl PredicateKind {
    /// The kinds that a name denotes.
    pub(crate) fn several(name: &str) -> Fallible<Vec<Self>> {
        Ok(match name {
            "range" => vec![Self::Range],
            "equality" => vec![Self::Equality],
            "regex" => vec![Self::Regex],
            "geo" => vec![Self::Geo],
            "text" => vec![Self::Text],
            "residual" => vec![Self::Residual],
            "mixed" => vec![
                Self::Range,
                Self::Equality,
                Self::Regex,
                Self::Geo,
                Self::Text,
            ],
            other => return Err(format!("no such kind: {other}").into()),
        })
    }
}

/// Pseudorandom numbers, the same in each run.
pub(crate) struct WorkloadRandom(pub(crate) u64);

impl WorkloadRandom {
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        spread(self.0) % bound
    }
}

const fn spread(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// The queries of one kind.
struct KindQueries {
    kind: PredicateKind,
    /// The exclusive upper bound of documents' numbers.
    domain: u64,
    /// How many consecutive numbers a query matches.
    width: u64,
    /// For `$mod`.
    modulus: u64,
    /// The first number that each query matches.
    starts: Vec<u64>,
    /// The same in ascending order.
    ordered: Vec<u64>,
}

impl KindQueries {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "widths need no more precision"
    )]
    fn make(
        kind: PredicateKind,
        queries: usize,
        options: &LoadOptions,
        random: &mut WorkloadRandom,
    ) -> Self {
        let share = MATCHES_PER_S / (options.writes as f64 * options.queries as f64);
        let apart = (1.0 / share).max(2.0) as u64;
        let (domain, width, modulus, bound) = match kind {
            PredicateKind::Range => {
                let width = ((RANGE_DOMAIN as f64 * share) as u64).max(1);
                (RANGE_DOMAIN, width, 1, RANGE_DOMAIN - width)
            }
            // Each query matches one document in `apart`.
            PredicateKind::Residual => (RANGE_DOMAIN, 1, apart, apart),
            _ => (apart, 1, 1, apart),
        };
        let starts: Vec<u64> = (0..queries).map(|_| random.below(bound)).collect();
        let mut ordered = starts.clone();
        ordered.sort_unstable();
        Self {
            kind,
            domain,
            width,
            modulus,
            starts,
            ordered,
        }
    }

    /// How many queries match a number.
    fn matching(&self, number: u64) -> usize {
        let number = match self.kind {
            PredicateKind::Residual => number % self.modulus,
            _ => number,
        };
        let below = |bound: u64| self.ordered.partition_point(|&start| start < bound);
        below(number + 1) - below((number + 1).saturating_sub(self.width))
    }

    fn filter(&self, start: u64) -> Fallible<DocumentBuf> {
        let text = match self.kind {
            PredicateKind::Range => format!(
                r#"{{"random":{{"$gte":{start},"$lt":{}}}}}"#,
                start + self.width
            ),
            PredicateKind::Equality => format!(r#"{{"v":{start}}}"#),
            PredicateKind::Regex => format!(r#"{{"b":{{"$regex":"{}"}}}}"#, letters(start)),
            PredicateKind::Text => format!(r#"{{"$text":{{"$search":"{}"}}}}"#, word(start)),
            PredicateKind::Residual => {
                format!(r#"{{"random":{{"$mod":[{},{start}]}}}}"#, self.modulus)
            }
            PredicateKind::Geo => {
                let (longitude, latitude, radius) = place(start, self.domain);
                format!(
                    r#"{{"place":{{"$geoWithin":{{"$centerSphere":[[{longitude},{latitude}],{radius}]}}}}}}"#
                )
            }
        };
        Ok(parse_document(text.as_bytes())?)
    }
}

/// Eight letters, unique to each number below 2³².
fn letters(number: u64) -> String {
    let mut rest = number.wrapping_mul(0x9E37_79B1) & 0xFFFF_FFFF;
    let mut text = String::with_capacity(8);
    for _ in 0..8 {
        text.push(char::from(b'a' + u8::try_from(rest & 15).unwrap_or(0)));
        rest >>= 4;
    }
    text
}

/// A term that is unique to the number.
fn word(number: u64) -> String {
    format!("w{number:09}")
}

/// One of `places` separate locations on the sphere, and the radius in radians of a circle around
/// it that contains no other.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "locations need no more precision"
)]
fn place(number: u64, places: u64) -> (f64, f64, f64) {
    // Consecutive numbers are at unrelated locations.
    let scattered = u128::from(number) * 2_147_483_647 % u128::from(places);
    let scattered = u64::try_from(scattered).unwrap_or(0);
    let columns = ((places as f64 * LONGITUDES / LATITUDES).sqrt() as u64).max(1);
    let rows = places.div_ceil(columns);
    let (across, along) = (LONGITUDES / columns as f64, LATITUDES / rows as f64);
    let longitude = (scattered % columns) as f64 * across - LONGITUDES / 2.0;
    let latitude = (scattered / columns) as f64 * along - LATITUDES / 2.0;
    // The cosine of 50° is above 0.64.
    (
        longitude,
        latitude,
        (RADIUS * (0.64 * across).min(along)).to_radians(),
    )
}

/// A write, and the number of notifications that it must cause.
pub(crate) struct ExpectedWrite {
    pub(crate) id: String,
    pub(crate) version: u64,
    /// The number that determines its write partition.
    pub(crate) partition: u64,
    pub(crate) body: Vec<u8>,
    pub(crate) expected: usize,
}

/// All queries, and documents for them.
pub(crate) struct GridWorkload {
    parts: Vec<KindQueries>,
    /// Grouped queries instead of those.
    grouped: Option<GroupedDocuments>,
    queries: usize,
    sorted_percent: u64,
    query_partitions: u64,
}

impl GridWorkload {
    pub(crate) fn make(options: &LoadOptions) -> Self {
        let (mut random, kinds) = (WorkloadRandom(1), options.kinds.len());
        let share = |at: usize| options.queries / kinds + usize::from(at < options.queries % kinds);
        let parts = options.kinds.iter().enumerate();
        Self {
            grouped: (options.groups > 0).then(|| GroupedDocuments::make(options)),
            parts: parts
                .map(|(at, kind)| KindQueries::make(*kind, share(at), options, &mut random))
                .collect(),
            queries: options.queries,
            sorted_percent: options.sorted_percent,
            query_partitions: options.query_partitions,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.queries
    }

    /// A query's filter.
    pub(crate) fn filter(&self, number: usize) -> Fallible<DocumentBuf> {
        let part = self.parts.get(number % self.parts.len());
        let start = part.and_then(|part| part.starts.get(number / self.parts.len()));
        let (Some(part), Some(start)) = (part, start) else {
            return Err("the query does not exist".into());
        };
        part.filter(*start)
    }

    /// The definition of a query in the registry.
    pub(crate) fn definition(&self, number: usize) -> Fallible<QueryDefinition> {
        let name = u64::try_from(number)?;
        if self.is_grouped() {
            return GroupedDocuments::definition(name);
        }
        let sorted = self.is_sorted(name);
        let sort = parse_document(br#"{"sort":[["random",1]]}"#)?;
        Ok(QueryDefinition {
            filter: self.filter(number)?.as_bytes().into(),
            sort: if sorted {
                sort.as_bytes().into()
            } else {
                Arc::default()
            },
            limit: sorted.then_some(LIMIT),
            sorted,
            slack: if sorted { 16 } else { 0 },
            ..plain(hash(name), name)
        })
    }

    /// The documents of a query that exist before the run.
    pub(crate) fn rows(&self, number: usize) -> Fallible<Vec<ResultRow>> {
        let number = u64::try_from(number)?;
        let grouped = self.grouped.as_ref();
        Ok(grouped.map_or_else(Vec::new, |grouped| grouped.rows(number)))
    }

    /// Whether rows stand for groups. Then the sort node also answers registrations, and reports
    /// all changes.
    pub(crate) const fn is_grouped(&self) -> bool {
        self.grouped.is_some()
    }

    /// A write.
    pub(crate) fn write(&self, number: u64, random: &mut WorkloadRandom) -> ExpectedWrite {
        if let Some(grouped) = &self.grouped {
            return grouped.write(number);
        }
        let id = format!("document {number}");
        let (body, expected) = self.document(&id, random);
        ExpectedWrite {
            id,
            version: 1,
            partition: number,
            body,
            expected,
        }
    }

    /// Whether a query has an order and a window, so that the sort node reports its changes.
    const fn is_sorted(&self, number: u64) -> bool {
        self.is_grouped() || spread(number) % 100 < self.sorted_percent
    }

    /// The same for a query's hash.
    pub(crate) fn is_sorted_hash(&self, hash: &QueryHash) -> bool {
        let number = hash
            .0
            .last_chunk::<8>()
            .map_or(0, |last| u64::from_be_bytes(*last));
        self.is_sorted(number)
    }

    /// The query partition of a query.
    pub(crate) fn partition(&self, hash: &QueryHash) -> u64 {
        let partitions = u16::try_from(self.query_partitions).unwrap_or(u16::MAX);
        query_partition(hash, partitions).into()
    }

    /// A document, and how many queries it matches.
    fn document(&self, id: &str, random: &mut WorkloadRandom) -> (Vec<u8>, usize) {
        let mut matching = 0;
        let mut drawn = |kind: PredicateKind| {
            let part = self.parts.iter().find(|part| part.kind == kind)?;
            let number = random.below(part.domain);
            matching += part.matching(number);
            Some((number, part.domain))
        };
        let unique = drawn(PredicateKind::Range).or_else(|| drawn(PredicateKind::Residual));
        let equal = drawn(PredicateKind::Equality).map_or(1, |(number, _)| number);
        let pattern =
            drawn(PredicateKind::Regex).map(|(number, _)| format!("x{}y", letters(number)));
        let term = drawn(PredicateKind::Text).map(|(number, _)| word(number));
        let place = drawn(PredicateKind::Geo).map(|(number, places)| place(number, places));
        let unique = unique.map_or_else(|| random.below(RANGE_DOMAIN), |(number, _)| number);
        let text = |given: Option<String>| given.unwrap_or_else(|| "0123456789".to_owned());
        let (pattern, term) = (text(pattern), text(term));
        let mut document = DocumentWriter::with_capacity(320);
        document.append("_id", ValueRef::String(id));
        let constant = "0123456789";
        for (name, value) in [
            ("a", constant),
            ("b", &pattern),
            ("c", &term),
            ("d", constant),
            ("e", constant),
        ] {
            document.append(name, ValueRef::String(value));
        }
        for (name, number) in [("v", equal), ("w", 22), ("x", 333), ("y", 4_444)] {
            document.append(name, ValueRef::Int64(number.cast_signed()));
        }
        document.append("random", ValueRef::Int64(unique.cast_signed()));
        if let Some((longitude, latitude, _)) = place {
            document.append_raw("place", Type::Document, &point(longitude, latitude));
        }
        (document.finish(), matching)
    }
}

fn point(longitude: f64, latitude: f64) -> Vec<u8> {
    let mut pair = DocumentWriter::new();
    pair.append("0", ValueRef::Double(longitude));
    pair.append("1", ValueRef::Double(latitude));
    let mut point = DocumentWriter::new();
    point.append("type", ValueRef::String("Point"));
    point.append_raw("coordinates", Type::Array, &pair.finish());
    point.finish()
}

/// A query of all documents.
pub(crate) fn plain(hash: QueryHash, number: u64) -> QueryDefinition {
    QueryDefinition {
        hash,
        activation: 0,
        tenant: tenant(number),
        collection: COLLECTION,
        rules_version: 0,
        filter: Arc::default(),
        sort: Arc::default(),
        offset: 0,
        limit: None,
        sorted: false,
        slack: 0,
        group: Arc::default(),
        lookups: Arc::default(),
        sides: Arc::default(),
        rule: Arc::default(),
    }
}

/// A query's hash: its beginning determines the partition, and its end is the query's number.
pub(crate) fn hash(number: u64) -> QueryHash {
    let mut hash = [0; 16];
    let (first, last) = hash.split_at_mut(8);
    first.copy_from_slice(&spread(number).to_be_bytes());
    last.copy_from_slice(&number.to_be_bytes());
    QueryHash(hash)
}

/// One of many tenants, so that none reaches its quota.
fn tenant(number: u64) -> [u8; 16] {
    let mut tenant = [0; 16];
    if let Some(front) = tenant.first_chunk_mut::<8>() {
        *front = (number / 500).to_be_bytes();
    }
    tenant
}
