//! The native parts of Rillbase as one Python module.
//!
//! The only crate that knows Python, and thin: it turns arguments and results from one form into
//! the other. What the module offers is declared for Python in `rillbase_native.pyi`, which the
//! lint step checks against the built module.

mod errors;
mod json;

/// The native parts of Rillbase.
#[pyo3::pymodule]
mod rillbase_native {
    #[pymodule_export]
    use crate::errors::JsonError;
    #[pymodule_export]
    use crate::json::parse_json;
}
