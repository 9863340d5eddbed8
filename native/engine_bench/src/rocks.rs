//! `RocksDB` and `LevelDB` as benchmarked stores, through their C interfaces.
//!
//! `RocksDB` kept `LevelDB`'s functions under its own prefix, so one module serves both; each has
//! its own function for options that differ.
#![allow(
    unsafe_code,
    reason = "calling C libraries is the purpose of this module"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::library::{Library, c_functions};
use crate::store::{BenchStore, Result, StoreSetup, number};

type Handle = *mut c_void;
type ErrorSlot = *mut *mut c_char;
type Destroy = unsafe extern "C" fn(*mut c_void);
type NameOf = unsafe extern "C" fn(*mut c_void) -> *const c_char;
type Filter = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut c_uchar,
) -> c_uchar;

/// The number of background threads, as in our engine.
const BACKGROUND: c_int = 2;
/// `RocksDB`'s number of LZ4.
const ROCKSDB_LZ4: c_int = 4;
/// `LevelDB`'s alternative.
const LEVELDB_SNAPPY: c_int = 1;
const BITS_A_KEY: c_int = 10;
/// The defaults of both.
const LEVELS: u32 = 7;

c_functions! {
    struct Common {
        options_create: fn() -> Handle;
        options_set_create_if_missing: fn(Handle, u8);
        options_set_write_buffer_size: fn(Handle, usize);
        options_set_compression: fn(Handle, c_int);
        cache_create_lru: fn(usize) -> Handle;
        open: fn(Handle, *const c_char, ErrorSlot) -> Handle;
        close: fn(Handle);
        put: fn(Handle, Handle, *const c_char, usize, *const c_char, usize, ErrorSlot);
        delete: fn(Handle, Handle, *const c_char, usize, ErrorSlot);
        get: fn(Handle, Handle, *const c_char, usize, *mut usize, ErrorSlot) -> *mut c_char;
        free: fn(Handle);
        property_value: fn(Handle, *const c_char) -> *mut c_char;
        create_iterator: fn(Handle, Handle) -> Handle;
        iter_destroy: fn(Handle);
        iter_seek: fn(Handle, *const c_char, usize);
        iter_next: fn(Handle);
        iter_valid: fn(Handle) -> u8;
        iter_key: fn(Handle, *mut usize) -> *const c_char;
        iter_value: fn(Handle, *mut usize) -> *const c_char;
        iter_get_error: fn(Handle, ErrorSlot);
        writeoptions_create: fn() -> Handle;
        writeoptions_set_sync: fn(Handle, u8);
        writebatch_create: fn() -> Handle;
        writebatch_put: fn(Handle, *const c_char, usize, *const c_char, usize);
        writebatch_delete: fn(Handle, *const c_char, usize);
        writebatch_destroy: fn(Handle);
        write: fn(Handle, Handle, Handle, ErrorSlot);
        readoptions_create: fn() -> Handle;
    }
}

c_functions! {
    struct RocksOnly {
        options_set_max_background_jobs: fn(Handle, c_int);
        options_set_max_write_buffer_number: fn(Handle, c_int);
        options_set_max_bytes_for_level_base: fn(Handle, u64);
        options_set_target_file_size_base: fn(Handle, u64);
        options_set_block_based_table_factory: fn(Handle, Handle);
        options_set_use_direct_reads: fn(Handle, c_uchar);
        options_set_use_direct_io_for_flush_and_compaction: fn(Handle, c_uchar);
        options_set_compaction_filter: fn(Handle, Handle);
        compactionfilter_create: fn(*mut c_void, Destroy, Filter, NameOf) -> Handle;
        block_based_options_create: fn() -> Handle;
        block_based_options_set_block_cache: fn(Handle, Handle);
        block_based_options_set_filter_policy: fn(Handle, Handle);
        filterpolicy_create_bloom_full: fn(f64) -> Handle;
        get_pinned: fn(Handle, Handle, *const c_char, usize, ErrorSlot) -> Handle;
        pinnableslice_value: fn(Handle, *mut usize) -> *const c_char;
        pinnableslice_destroy: fn(Handle);
        flushoptions_create: fn() -> Handle;
        flush: fn(Handle, Handle, ErrorSlot);
    }
}

c_functions! {
    struct LevelOnly {
        options_set_cache: fn(Handle, Handle);
        options_set_filter_policy: fn(Handle, Handle);
        options_set_max_file_size: fn(Handle, usize);
        filterpolicy_create_bloom: fn(c_int) -> Handle;
    }
}

/// A change of a batch.
pub(crate) enum BatchChange {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
}

/// What follows an entry in a range.
pub(crate) enum RangeStep {
    Next,
    /// The first entry at or after a key.
    Seek(Vec<u8>),
    Stop,
}

/// An open database.
pub(crate) struct Rocks {
    common: Common,
    /// Only `RocksDB` has these.
    own: Option<RocksOnly>,
    db: Handle,
    buffered: Handle,
    durable: Handle,
    read: Handle,
}

// SAFETY: both libraries state that a database and its options may be used by several threads.
unsafe impl Sync for Rocks {}

fn names_of(name: &str) -> &'static [&'static CStr] {
    match name {
        "rocksdb" => &[
            c"librocksdb.so",
            c"librocksdb.so.10",
            c"librocksdb.so.9",
            c"librocksdb.so.8.9",
            c"librocksdb.so.7.8",
        ],
        _ => &[c"libleveldb.so", c"libleveldb.so.1d", c"libleveldb.so.1"],
    }
}

/// Opens one of the two; `None` if its library is not installed.
pub(crate) fn open(name: &str, dir: &Path, setup: &StoreSetup) -> Result<Option<Rocks>> {
    let Some(library) = Library::open(names_of(name)) else {
        return Ok(None);
    };
    let prefix = format!("{name}_");
    let common = Common::load(&library, &prefix)?;
    // SAFETY: options are created and set as the header requires, and live as long as the process.
    let options = unsafe {
        let options = (common.options_create)();
        (common.options_set_create_if_missing)(options, 1);
        (common.options_set_write_buffer_size)(options, setup.memtable_bytes);
        let compression = match (setup.lz4, name) {
            (false, _) => 0,
            (true, "rocksdb") => ROCKSDB_LZ4,
            (true, _) => LEVELDB_SNAPPY,
        };
        (common.options_set_compression)(options, compression);
        options
    };
    let rocks = if name == "rocksdb" {
        let rocks = RocksOnly::load(&library, &prefix)?;
        set_up_rocksdb(&common, &rocks, options, setup);
        Some(rocks)
    } else {
        set_up_leveldb(
            &common,
            &LevelOnly::load(&library, &prefix)?,
            options,
            setup,
        );
        None
    };
    let path = CString::new(dir.as_os_str().as_bytes())?;
    let mut error = null_mut();
    // SAFETY: options and path are valid; the error is checked before the handle is used.
    let db = unsafe { (common.open)(options, path.as_ptr(), &raw mut error) };
    check(error)?;
    // SAFETY: created as the header requires.
    let (buffered, durable, read) = unsafe {
        let durable = (common.writeoptions_create)();
        (common.writeoptions_set_sync)(durable, 1);
        let read = (common.readoptions_create)();
        ((common.writeoptions_create)(), durable, read)
    };
    Ok(Some(Rocks {
        common,
        own: rocks,
        db,
        buffered,
        durable,
        read,
    }))
}

fn set_up_rocksdb(common: &Common, rocks: &RocksOnly, options: Handle, setup: &StoreSetup) {
    let memtable = setup.memtable_bytes as u64;
    // SAFETY: as the header requires; the table options own cache and policy from then on.
    unsafe {
        (rocks.options_set_max_background_jobs)(options, BACKGROUND);
        (rocks.options_set_max_write_buffer_number)(options, 3);
        (rocks.options_set_max_bytes_for_level_base)(options, 4 * memtable);
        (rocks.options_set_target_file_size_base)(options, memtable);
        let direct = c_uchar::from(setup.direct);
        (rocks.options_set_use_direct_reads)(options, direct);
        (rocks.options_set_use_direct_io_for_flush_and_compaction)(options, direct);
        let table = (rocks.block_based_options_create)();
        let cache = (common.cache_create_lru)(setup.cache_bytes);
        (rocks.block_based_options_set_block_cache)(table, cache);
        let policy = (rocks.filterpolicy_create_bloom_full)(f64::from(BITS_A_KEY));
        (rocks.block_based_options_set_filter_policy)(table, policy);
        (rocks.options_set_block_based_table_factory)(options, table);
        if let Some(clock) = &setup.clock {
            let clock = Arc::into_raw(Arc::clone(clock)).cast_mut().cast();
            let filter = (rocks.compactionfilter_create)(clock, keep, has_ended, name_of_filter);
            (rocks.options_set_compaction_filter)(options, filter);
        }
    }
}

/// The clock lives as long as the process.
unsafe extern "C" fn keep(_: *mut c_void) {}

unsafe extern "C" fn name_of_filter(_: *mut c_void) -> *const c_char {
    c"ended".as_ptr()
}

/// Whether a value has expired, according to its first bytes.
unsafe extern "C" fn has_ended(
    clock: *mut c_void,
    _level: c_int,
    _key: *const c_char,
    _key_length: usize,
    value: *const c_char,
    length: usize,
    _new_value: *mut *mut c_char,
    _new_length: *mut usize,
    _changed: *mut c_uchar,
) -> c_uchar {
    // SAFETY: the clock is the one that the filter was created with, and the value is valid for the
    // call.
    let (now, value) = unsafe {
        let clock: *const AtomicU64 = clock.cast_const().cast();
        ((*clock).load(Ordering::Relaxed), lent(value, length))
    };
    c_uchar::from(number(value) < now)
}

fn set_up_leveldb(common: &Common, level: &LevelOnly, options: Handle, setup: &StoreSetup) {
    // SAFETY: as the header requires; cache and policy live as long as the process.
    unsafe {
        (level.options_set_cache)(options, (common.cache_create_lru)(setup.cache_bytes));
        let policy = (level.filterpolicy_create_bloom)(BITS_A_KEY);
        (level.options_set_filter_policy)(options, policy);
        (level.options_set_max_file_size)(options, setup.memtable_bytes);
    }
}

/// Fails if a call left a message. The message is not freed: the process ends.
fn check(error: *mut c_char) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the libraries leave null or a string that ends with a zero byte.
    let text = unsafe { CStr::from_ptr(error) };
    Err(text.to_string_lossy().into_owned().into())
}

fn pointer(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// Bytes that a library owns.
///
/// # Safety
/// `start` is null with a length of 0, or has `length` bytes that stay unchanged for the lifetime.
unsafe fn lent<'a>(start: *const c_char, length: usize) -> &'a [u8] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start.cast(), length) }
}

impl Rocks {
    /// Removes one key.
    pub(crate) fn delete(&self, key: &[u8]) -> Result<()> {
        let mut error = null_mut();
        let (start, length) = (pointer(key), key.len());
        // SAFETY: the slice is valid for the call.
        unsafe { (self.common.delete)(self.db, self.buffered, start, length, &raw mut error) };
        check(error)
    }

    /// Writes some changes as one batch.
    pub(crate) fn write(&self, changes: &[BatchChange], durable: bool) -> Result<()> {
        let options = if durable { self.durable } else { self.buffered };
        let (common, mut error) = (&self.common, null_mut());
        // SAFETY: the slices are valid for the calls, which copy them into the batch.
        unsafe {
            let batch = (common.writebatch_create)();
            for change in changes {
                match change {
                    BatchChange::Put(key, value) => {
                        let (start, length) = (pointer(value), value.len());
                        (common.writebatch_put)(batch, pointer(key), key.len(), start, length);
                    }
                    BatchChange::Delete(key) => {
                        (common.writebatch_delete)(batch, pointer(key), key.len());
                    }
                }
            }
            (common.write)(self.db, options, batch, &raw mut error);
            (common.writebatch_destroy)(batch);
        }
        check(error)
    }

    /// Passes the entries from a key on to `visit` until it returns false.
    pub(crate) fn range(
        &self,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        self.steps(from, &mut |key, value| {
            if visit(key, value) {
                RangeStep::Next
            } else {
                RangeStep::Stop
            }
        })
    }

    /// Passes entries from a key on to `visit`, which chooses the next one.
    pub(crate) fn steps(
        &self,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> RangeStep,
    ) -> Result<()> {
        let common = &self.common;
        let (mut error, mut length) = (null_mut(), 0);
        // SAFETY: the iterator is used by this thread only, and keys and values only until it moves.
        unsafe {
            let iterator = (common.create_iterator)(self.db, self.read);
            (common.iter_seek)(iterator, pointer(from), from.len());
            while (common.iter_valid)(iterator) != 0 {
                let start = (common.iter_key)(iterator, &raw mut length);
                let key = lent(start, length);
                let start = (common.iter_value)(iterator, &raw mut length);
                match visit(key, lent(start, length)) {
                    RangeStep::Next => (common.iter_next)(iterator),
                    RangeStep::Seek(key) => {
                        (common.iter_seek)(iterator, pointer(&key), key.len());
                    }
                    RangeStep::Stop => break,
                }
            }
            (common.iter_get_error)(iterator, &raw mut error);
            (common.iter_destroy)(iterator);
        }
        check(error)
    }

    /// Whether compactions drop expired entries.
    pub(crate) fn forgets(&self) -> bool {
        self.own.is_some()
    }

    /// `RocksDB`'s read that copies nothing.
    fn get_pinned(
        &self,
        rocks: &RocksOnly,
        key: &[u8],
        seen: &mut dyn FnMut(&[u8]),
    ) -> Result<bool> {
        let mut error = null_mut();
        // SAFETY: the pinned value is used only until it is released.
        unsafe {
            let (start, length) = (pointer(key), key.len());
            let value = (rocks.get_pinned)(self.db, self.read, start, length, &raw mut error);
            check(error)?;
            if value.is_null() {
                return Ok(false);
            }
            let mut length = 0;
            let start = (rocks.pinnableslice_value)(value, &raw mut length);
            seen(lent(start, length));
            (rocks.pinnableslice_destroy)(value);
        }
        Ok(true)
    }

    fn get_copied(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let (mut error, mut length) = (null_mut(), 0);
        // SAFETY: the copy is used only until it is freed.
        unsafe {
            let value = (self.common.get)(
                self.db,
                self.read,
                pointer(key),
                key.len(),
                &raw mut length,
                &raw mut error,
            );
            check(error)?;
            if value.is_null() {
                return Ok(false);
            }
            seen(lent(value, length));
            (self.common.free)(value.cast());
        }
        Ok(true)
    }
}

impl BenchStore for Rocks {
    fn put(&self, key: &[u8], value: &[u8], durable: bool) -> Result<()> {
        let options = if durable { self.durable } else { self.buffered };
        let mut error = null_mut();
        // SAFETY: both slices are valid for the call.
        unsafe {
            (self.common.put)(
                self.db,
                options,
                pointer(key),
                key.len(),
                pointer(value),
                value.len(),
                &raw mut error,
            );
        }
        check(error)
    }

    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        match &self.own {
            Some(rocks) => self.get_pinned(rocks, key, seen),
            None => self.get_copied(key, seen),
        }
    }

    fn walk(&self, from: &[u8], most: u64) -> Result<u64> {
        let common = &self.common;
        let (mut bytes, mut count, mut error) = (0, 0, null_mut());
        // SAFETY: the iterator is used by this thread only, and keys and values only until it moves.
        unsafe {
            let iterator = (common.create_iterator)(self.db, self.read);
            (common.iter_seek)(iterator, pointer(from), from.len());
            while count < most && (common.iter_valid)(iterator) != 0 {
                let mut length = 0;
                let key = (common.iter_key)(iterator, &raw mut length);
                bytes += lent(key, length).len();
                let value = (common.iter_value)(iterator, &raw mut length);
                bytes += lent(value, length).len();
                count += 1;
                (common.iter_next)(iterator);
            }
            (common.iter_get_error)(iterator, &raw mut error);
            (common.iter_destroy)(iterator);
        }
        std::hint::black_box(bytes);
        check(error)?;
        Ok(count)
    }

    fn runs(&self) -> Result<Option<u64>> {
        let mut runs = 0;
        for level in 0..LEVELS {
            let prefix = if self.own.is_some() {
                "rocksdb"
            } else {
                "leveldb"
            };
            let name = CString::new(format!("{prefix}.num-files-at-level{level}"))?;
            // SAFETY: as the header requires; an unknown property returns null.
            let files = unsafe {
                let text = (self.common.property_value)(self.db, name.as_ptr());
                if text.is_null() {
                    return Ok(None);
                }
                let files = CStr::from_ptr(text).to_string_lossy().parse::<u64>();
                (self.common.free)(text.cast());
                files?
            };
            // Files of the first level overlap, those of other levels do not.
            runs += if level == 0 { files } else { files.min(1) };
        }
        Ok(Some(runs))
    }

    fn flush(&self) -> Result<()> {
        let Some(rocks) = &self.own else {
            return Ok(());
        };
        let mut error = null_mut();
        // SAFETY: as the header requires.
        unsafe { (rocks.flush)(self.db, (rocks.flushoptions_create)(), &raw mut error) };
        check(error)
    }
}

impl Drop for Rocks {
    fn drop(&mut self) {
        // SAFETY: the database is no longer in use.
        unsafe { (self.common.close)(self.db) };
    }
}
