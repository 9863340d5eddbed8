//! The engine's counters as dicts.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rillbase_engine::{KeyspaceStats, LevelStats, Stats};

pub(super) fn dict<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let keyspaces = stats
        .keyspaces
        .iter()
        .map(|keyspace| of_keyspace(py, keyspace));
    dict.set_item("keyspaces", keyspaces.collect::<PyResult<Vec<_>>>()?)?;
    for (name, count) in [
        ("sequence", stats.sequence),
        ("batches", stats.batches),
        ("entries", stats.entries),
        ("batch_bytes", stats.batch_bytes),
        ("flushes", stats.flushes),
        ("flushed_bytes", stats.flushed_bytes),
        ("compactions", stats.compactions),
        ("moves", stats.moves),
        ("dropped_files", stats.dropped_files),
        ("unremoved_files", stats.unremoved_files),
        ("compaction_read_bytes", stats.compaction_read_bytes),
        ("compaction_written_bytes", stats.compaction_written_bytes),
        ("slowed_micros", stats.slowed_micros),
        ("stopped_micros", stats.stopped_micros),
        ("waited_micros", stats.waited_micros),
        ("cache_hits", stats.cache_hits),
        ("cache_misses", stats.cache_misses),
        ("log_bytes", stats.log_bytes),
    ] {
        dict.set_item(name, count)?;
    }
    dict.set_item("cache_bytes", stats.cache_bytes)?;
    dict.set_item("open_table_bytes", stats.open_table_bytes)?;
    dict.set_item("snapshots", stats.snapshots)?;
    dict.set_item("write_amplification", stats.write_amplification)?;
    Ok(dict)
}

fn of_keyspace<'py>(py: Python<'py>, stats: &KeyspaceStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &stats.name)?;
    dict.set_item("memtable_bytes", stats.memtable_bytes)?;
    dict.set_item("waiting_memtables", stats.waiting_memtables)?;
    let levels = stats.levels.iter().map(|level| of_level(py, level));
    dict.set_item("levels", levels.collect::<PyResult<Vec<_>>>()?)?;
    dict.set_item("read_amplification", stats.read_amplification)?;
    dict.set_item("space_amplification", stats.space_amplification)?;
    Ok(dict)
}

fn of_level<'py>(py: Python<'py>, stats: &LevelStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("runs", stats.runs)?;
    dict.set_item("files", stats.files)?;
    dict.set_item("bytes", stats.bytes)?;
    dict.set_item("entries", stats.entries)?;
    dict.set_item("deletes", stats.deletes)?;
    Ok(dict)
}
