//! LMDB as a benchmarked store, through its C interface: a copy-on-write tree in mapped memory,
//! which has no memtable and no cache of its own.
#![allow(
    unsafe_code,
    reason = "calling a C library is the purpose of this module"
)]

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use crate::library::{Library, c_functions};
use crate::store::{BenchStore, Result};

type Handle = *mut c_void;

/// The map is larger than any data that is measured.
const MAP_BYTES: usize = 64 << 30;
const NOSYNC: c_uint = 0x1_0000;
const NOTLS: c_uint = 0x20_0000;
const RDONLY: c_uint = 0x2_0000;
const MOST_READERS: c_uint = 256;
const NOT_FOUND: c_int = -30798;
const NEXT: c_int = 8;
const SET_RANGE: c_int = 17;

/// A key or value.
#[repr(C)]
struct Slice {
    length: usize,
    start: *const c_void,
}

impl Slice {
    fn of(bytes: &[u8]) -> Self {
        Self {
            length: bytes.len(),
            start: bytes.as_ptr().cast(),
        }
    }

    fn empty() -> Self {
        Self::of(&[])
    }

    /// # Safety
    /// The library filled it within a transaction that is still open.
    unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.length) }
    }
}

c_functions! {
    struct Functions {
        env_create: fn(*mut Handle) -> c_int;
        env_set_mapsize: fn(Handle, usize) -> c_int;
        env_set_maxreaders: fn(Handle, c_uint) -> c_int;
        env_open: fn(Handle, *const c_char, c_uint, c_uint) -> c_int;
        env_sync: fn(Handle, c_int) -> c_int;
        env_close: fn(Handle);
        txn_begin: fn(Handle, Handle, c_uint, *mut Handle) -> c_int;
        txn_commit: fn(Handle) -> c_int;
        txn_abort: fn(Handle);
        dbi_open: fn(Handle, *const c_char, c_uint, *mut c_uint) -> c_int;
        put: fn(Handle, c_uint, *mut Slice, *mut Slice, c_uint) -> c_int;
        get: fn(Handle, c_uint, *mut Slice, *mut Slice) -> c_int;
        cursor_open: fn(Handle, c_uint, *mut Handle) -> c_int;
        cursor_get: fn(Handle, *mut Slice, *mut Slice, c_int) -> c_int;
        cursor_close: fn(Handle);
    }
}

struct Lmdb {
    functions: Functions,
    environment: Handle,
    table: c_uint,
}

// SAFETY: LMDB's environment may be shared; with NOTLS a transaction belongs to the object that
// began it.
unsafe impl Sync for Lmdb {}

fn check(code: c_int) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    Err(format!("LMDB failed with code {code}").into())
}

/// Opens an environment; `None` if the library is not installed.
pub(crate) fn open(dir: &Path) -> Result<Option<Box<dyn BenchStore>>> {
    let Some(library) = Library::open(&[c"liblmdb.so", c"liblmdb.so.0"]) else {
        return Ok(None);
    };
    let functions = Functions::load(&library, "mdb_")?;
    let path = CString::new(dir.as_os_str().as_bytes())?;
    let (mut environment, mut transaction, mut table) = (null_mut(), null_mut(), 0);
    // SAFETY: the calls are in the order that the header requires, each checked before the next.
    unsafe {
        check((functions.env_create)(&raw mut environment))?;
        check((functions.env_set_mapsize)(environment, MAP_BYTES))?;
        check((functions.env_set_maxreaders)(environment, MOST_READERS))?;
        let flags = NOSYNC | NOTLS;
        check((functions.env_open)(
            environment,
            path.as_ptr(),
            flags,
            0o644,
        ))?;
        let begin = functions.txn_begin;
        check(begin(environment, null_mut(), 0, &raw mut transaction))?;
        let name = std::ptr::null();
        check((functions.dbi_open)(transaction, name, 0, &raw mut table))?;
        check((functions.txn_commit)(transaction))?;
    }
    Ok(Some(Box::new(Lmdb {
        functions,
        environment,
        table,
    })))
}

impl Lmdb {
    fn begin(&self, flags: c_uint) -> Result<Handle> {
        let mut transaction = null_mut();
        let begin = self.functions.txn_begin;
        // SAFETY: the environment is open.
        check(unsafe { begin(self.environment, null_mut(), flags, &raw mut transaction) })?;
        Ok(transaction)
    }
}

impl BenchStore for Lmdb {
    fn put(&self, key: &[u8], value: &[u8], durable: bool) -> Result<()> {
        let transaction = self.begin(0)?;
        let (mut key, mut value) = (Slice::of(key), Slice::of(value));
        // SAFETY: the transaction is ended here, and the slices live as long.
        unsafe {
            let put = self.functions.put;
            check(put(
                transaction,
                self.table,
                &raw mut key,
                &raw mut value,
                0,
            ))?;
            check((self.functions.txn_commit)(transaction))?;
            if durable {
                check((self.functions.env_sync)(self.environment, 1))?;
            }
        }
        Ok(())
    }

    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let transaction = self.begin(RDONLY)?;
        let (mut key, mut value) = (Slice::of(key), Slice::empty());
        // SAFETY: the value is read before the transaction ends.
        let code = unsafe {
            let code = (self.functions.get)(transaction, self.table, &raw mut key, &raw mut value);
            if code == 0 {
                seen(value.bytes());
            }
            (self.functions.txn_abort)(transaction);
            code
        };
        if code == NOT_FOUND {
            return Ok(false);
        }
        check(code).map(|()| true)
    }

    fn walk(&self, from: &[u8], most: u64) -> Result<u64> {
        let transaction = self.begin(RDONLY)?;
        let (mut key, mut value) = (Slice::of(from), Slice::empty());
        let (mut bytes, mut count, mut cursor) = (0, 0, null_mut());
        // SAFETY: keys and values are read before the transaction ends.
        let code = unsafe {
            let functions = &self.functions;
            check((functions.cursor_open)(
                transaction,
                self.table,
                &raw mut cursor,
            ))?;
            let move_to = |key: &mut Slice, value: &mut Slice, how| {
                (functions.cursor_get)(cursor, key, value, how)
            };
            let mut code = move_to(&mut key, &mut value, SET_RANGE);
            while code == 0 && count < most {
                bytes += key.bytes().len() + value.bytes().len();
                count += 1;
                code = move_to(&mut key, &mut value, NEXT);
            }
            (functions.cursor_close)(cursor);
            (functions.txn_abort)(transaction);
            code
        };
        std::hint::black_box(bytes);
        if code != NOT_FOUND {
            check(code)?;
        }
        Ok(count)
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        // SAFETY: the environment is no longer in use.
        unsafe { (self.functions.env_close)(self.environment) };
    }
}
