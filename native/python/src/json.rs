//! JSON documents as Python objects.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};
use rillbase_json::{Integer, JsonLimits, JsonSink, read};

use crate::errors::from_json_failure;

/// Return the JSON document in `body`, or raise `JsonError`.
///
/// It is stricter than the standard library: see `native/json`. Integers are exact. `-0` is a
/// float, because integers have no negative zero. `max_depth` bounds the nesting, `max_values` the
/// total number of values.
#[pyfunction]
#[pyo3(signature = (body, *, max_depth = 100, max_values = None))]
pub(crate) fn parse_json<'py>(
    py: Python<'py>,
    body: &[u8],
    max_depth: usize,
    max_values: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let limits = JsonLimits {
        max_depth,
        max_values: max_values.unwrap_or(usize::MAX),
        ..JsonLimits::default()
    };
    let mut builder = ObjectBuilder::new(py);
    read(body, &limits, &mut builder).map_err(|failure| from_json_failure(py, failure))?;
    builder.finish()
}

/// Builds Python objects from the reader's events.
struct ObjectBuilder<'py> {
    py: Python<'py>,
    /// The values of all open arrays, those of the innermost on top; at the end, the document.
    values: Vec<Bound<'py, PyAny>>,
    open: Vec<ObjectContainer<'py>>,
    keys: KeyCache<'py>,
}

enum ObjectContainer<'py> {
    Object {
        members: Bound<'py, PyDict>,
        /// Set until the value of a member is complete.
        key: Option<Bound<'py, PyString>>,
    },
    Array {
        /// Its values are `values[first_value..]`.
        first_value: usize,
    },
}

impl<'py> ObjectBuilder<'py> {
    fn new(py: Python<'py>) -> Self {
        Self {
            py,
            values: Vec::new(),
            open: Vec::new(),
            keys: KeyCache::new(),
        }
    }

    fn finish(mut self) -> PyResult<Bound<'py, PyAny>> {
        self.values
            .pop()
            .ok_or_else(|| PyRuntimeError::new_err("the reader returned no document"))
    }

    fn add(&mut self, value: Bound<'py, PyAny>) -> PyResult<()> {
        if let Some(ObjectContainer::Object { members, key }) = self.open.last_mut() {
            return match key.take() {
                Some(key) => members.set_item(key, value),
                None => Ok(()),
            };
        }
        self.values.push(value);
        Ok(())
    }
}

impl JsonSink for ObjectBuilder<'_> {
    type Error = PyErr;

    fn null(&mut self) -> PyResult<()> {
        self.add(self.py.None().into_bound(self.py))
    }

    fn boolean(&mut self, value: bool) -> PyResult<()> {
        self.add(PyBool::new(self.py, value).to_owned().into_any())
    }

    fn integer(&mut self, value: Integer<'_>) -> PyResult<()> {
        match value {
            Integer::Small(value) => self.add(PyInt::new(self.py, value).into_any()),
            // The reader bounds the digits below the length at which Python rejects them.
            Integer::Large(digits) => self.add(self.py.get_type::<PyInt>().call1((digits,))?),
        }
    }

    fn double(&mut self, value: f64) -> PyResult<()> {
        self.add(PyFloat::new(self.py, value).into_any())
    }

    fn string(&mut self, value: &str) -> PyResult<()> {
        self.add(PyString::new(self.py, value).into_any())
    }

    fn begin_object(&mut self) -> PyResult<()> {
        self.open.push(ObjectContainer::Object {
            members: PyDict::new(self.py),
            key: None,
        });
        Ok(())
    }

    fn key(&mut self, key: &str) -> PyResult<()> {
        let interned = self.keys.get(self.py, key);
        if let Some(ObjectContainer::Object { key, .. }) = self.open.last_mut() {
            *key = Some(interned);
        }
        Ok(())
    }

    fn end_object(&mut self) -> PyResult<()> {
        match self.open.pop() {
            Some(ObjectContainer::Object { members, .. }) => self.add(members.into_any()),
            _ => Err(PyRuntimeError::new_err(
                "the reader closed an object that is not open",
            )),
        }
    }

    fn begin_array(&mut self) -> PyResult<()> {
        self.open.push(ObjectContainer::Array {
            first_value: self.values.len(),
        });
        Ok(())
    }

    fn end_array(&mut self) -> PyResult<()> {
        match self.open.pop() {
            Some(ObjectContainer::Array { first_value }) => {
                let list = PyList::new(self.py, self.values.drain(first_value..))?;
                self.add(list.into_any())
            }
            _ => Err(PyRuntimeError::new_err(
                "the reader closed an array that is not open",
            )),
        }
    }
}

/// The Python strings of recent keys: in a list of similar objects each key is created once.
///
/// A slot is chosen by the key's length and ends, so two keys may keep displacing each other; that
/// only costs the time to create the string again.
struct KeyCache<'py> {
    slots: Vec<Option<(String, Bound<'py, PyString>)>>,
}

const KEY_SLOTS: usize = 128;
const MAX_CACHED_KEY_BYTES: usize = 64;

impl<'py> KeyCache<'py> {
    fn new() -> Self {
        Self { slots: vec![] }
    }

    fn get(&mut self, py: Python<'py>, key: &str) -> Bound<'py, PyString> {
        if key.len() > MAX_CACHED_KEY_BYTES {
            return PyString::new(py, key);
        }
        if self.slots.is_empty() {
            self.slots.resize_with(KEY_SLOTS, || None);
        }
        let Some(slot) = self.slots.get_mut(slot_of(key)) else {
            return PyString::new(py, key);
        };
        let (cached, string) = slot.get_or_insert_with(|| (key.to_owned(), PyString::new(py, key)));
        if cached != key {
            cached.clear();
            cached.push_str(key);
            *string = PyString::new(py, key);
        }
        string.clone()
    }
}

fn slot_of(key: &str) -> usize {
    let ends = key.bytes().take(8).chain(key.bytes().rev().take(4));
    let mixed = ends.fold(key.len(), |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    mixed % KEY_SLOTS
}
