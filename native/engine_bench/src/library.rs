//! Loads C libraries at run time, so that a peer that is not installed is omitted.
#![allow(
    unsafe_code,
    reason = "calling the system's loader is the purpose of this module"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use crate::store::Result;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Resolve all symbols at once.
const RTLD_NOW: c_int = 2;

/// A library that stays loaded until the process ends.
pub(crate) struct Library {
    handle: *mut c_void,
}

impl Library {
    /// Opens the first of several libraries that is installed.
    pub(crate) fn open(names: &[&CStr]) -> Option<Self> {
        names.iter().find_map(|name| {
            // SAFETY: the name ends with a zero byte; the requested libraries have no constructors
            // that depend on the state of this process.
            let handle = unsafe { dlopen(name.as_ptr(), RTLD_NOW) };
            (!handle.is_null()).then_some(Self { handle })
        })
    }

    /// The address of a function.
    pub(crate) fn symbol(&self, name: &str) -> Result<*mut c_void> {
        let symbol_name = CString::new(name)?;
        // SAFETY: the handle came from `dlopen` and is never closed.
        let symbol = unsafe { dlsym(self.handle, symbol_name.as_ptr()) };
        if symbol.is_null() {
            return Err(format!("the library has no function {name}").into());
        }
        Ok(symbol)
    }
}

/// Declares a struct of C functions, each loaded by its name with a prefix.
macro_rules! c_functions {
    (struct $name:ident { $($field:ident: fn($($argument:ty),*) $(-> $result:ty)?;)* }) => {
        /// Functions of a library, which stays loaded.
        struct $name {
            $($field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl $name {
            fn load(library: &$crate::library::Library, prefix: &str) -> $crate::store::Result<Self> {
                Ok(Self {
                    $($field: {
                        let symbol = library.symbol(&format!("{prefix}{}", stringify!($field)))?;
                        // SAFETY: the declarations are those of the library's header.
                        unsafe {
                            std::mem::transmute::<
                                *mut std::ffi::c_void,
                                unsafe extern "C" fn($($argument),*) $(-> $result)?,
                            >(symbol)
                        }
                    },)*
                })
            }
        }
    };
}

pub(crate) use c_functions;
