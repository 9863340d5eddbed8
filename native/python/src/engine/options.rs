//! The options of a keyspace.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rillbase_engine as engine;
use rillbase_engine::{Compression, Expiry, KeyHead, Strategy};

/// The options of a keyspace.
#[pyclass(
    frozen,
    name = "KeyspaceOptions",
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct PyKeyspaceOptions {
    pub(super) inner: engine::KeyspaceOptions,
}

#[pymethods]
impl PyKeyspaceOptions {
    #[new]
    #[pyo3(signature = (
        *, strategy = "leveled", fanout = 10, runs = 4, window_ms = 3_600_000, expiry = "by_entry",
        compression = OneOrMore::One("lz4".into()), memtable_bytes = 64 << 20,
        table_bytes = 64 << 20, base_bytes = 256 << 20, block_bytes = 4 << 10, filter_bits = 10,
        tail_bytes = 0
    ))]
    #[allow(clippy::too_many_arguments, reason = "all of them are given by name")]
    fn new(
        strategy: &str,
        fanout: u64,
        runs: usize,
        window_ms: u64,
        expiry: &str,
        compression: OneOrMore,
        memtable_bytes: usize,
        table_bytes: u64,
        base_bytes: u64,
        block_bytes: usize,
        filter_bits: usize,
        tail_bytes: usize,
    ) -> PyResult<Self> {
        let strategy = match strategy {
            "leveled" => Strategy::Leveled { fanout },
            "size_tiered" => Strategy::SizeTiered { runs },
            "lazy_leveled" => Strategy::LazyLeveled { runs },
            "time_window" => Strategy::TimeWindow {
                window: window_ms,
                runs,
            },
            other => return Err(unknown("strategy", other)),
        };
        let expiry = match expiry {
            "by_entry" => Expiry::ByEntry,
            "by_key" => Expiry::ByKey,
            other => return Err(unknown("expiry", other)),
        };
        let inner = engine::KeyspaceOptions {
            strategy,
            expiry,
            compression: compression.codecs()?,
            memtable_bytes,
            table_bytes,
            base_bytes,
            block_bytes,
            filter_bits,
            head: KeyHead::FixedTail(tail_bytes),
            ..engine::KeyspaceOptions::default()
        };
        Ok(Self { inner })
    }
}

/// The compression: one for all levels, or one for each level, the last for all further levels.
#[derive(FromPyObject)]
pub(super) enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    fn codecs(&self) -> PyResult<Vec<Compression>> {
        match self {
            Self::One(name) => Ok(vec![compression_named(name)?]),
            Self::More(names) => names.iter().map(|name| compression_named(name)).collect(),
        }
    }
}

fn unknown(what: &str, name: &str) -> PyErr {
    PyValueError::new_err(format!("unknown {what} {name:?}"))
}

fn compression_named(name: &str) -> PyResult<Compression> {
    match name {
        "none" => Ok(Compression::None),
        "lz4" => Ok(Compression::Lz4),
        "zstd" => Ok(Compression::Zstd(3)),
        other => Err(unknown("compression", other)),
    }
}
