//! How a keyspace behaves.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rillbase_engine as engine;
use rillbase_engine::{Compression, Strategy};

/// How a keyspace behaves.
#[pyclass(frozen, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct KeyspaceOptions {
    pub(super) inner: engine::KeyspaceOptions,
}

#[pymethods]
impl KeyspaceOptions {
    #[new]
    #[pyo3(signature = (
        *, strategy = "leveled", compression = "lz4", memtable_bytes = 64 << 20,
        block_bytes = 4 << 10, filter_bits = 10
    ))]
    fn new(
        strategy: &str,
        compression: &str,
        memtable_bytes: usize,
        block_bytes: usize,
        filter_bits: usize,
    ) -> PyResult<Self> {
        let inner = engine::KeyspaceOptions {
            strategy: strategy_named(strategy)?,
            compression: vec![compression_named(compression)?],
            memtable_bytes,
            block_bytes,
            filter_bits,
            ..engine::KeyspaceOptions::default()
        };
        Ok(Self { inner })
    }
}

fn strategy_named(name: &str) -> PyResult<Strategy> {
    match name {
        "leveled" => Ok(Strategy::Leveled { fanout: 10 }),
        "size_tiered" => Ok(Strategy::SizeTiered { runs: 4 }),
        "lazy_leveled" => Ok(Strategy::LazyLeveled { runs: 4 }),
        "time_window" => Ok(Strategy::TimeWindow {
            window: 3_600_000,
            runs: 4,
        }),
        other => Err(PyValueError::new_err(format!(
            "there is no strategy {other:?}"
        ))),
    }
}

fn compression_named(name: &str) -> PyResult<Compression> {
    match name {
        "none" => Ok(Compression::None),
        "lz4" => Ok(Compression::Lz4),
        "zstd" => Ok(Compression::Zstd(3)),
        other => Err(PyValueError::new_err(format!(
            "there is no compression {other:?}"
        ))),
    }
}
