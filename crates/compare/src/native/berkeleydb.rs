//! BerkeleyDB's environments, databases and cursors, safe.
//!
//! Environments and databases are opened with `DB_THREAD` and may be used by all threads; a cursor
//! belongs to one and borrows its database. Databases keep their environment open, so that
//! everything closes in the order that BerkeleyDB asks for.
//!
//! Environments without transactions are "concurrent data stores": any number of readers or one
//! writer per database, locked by BerkeleyDB itself. A thread that has a cursor open must not use
//! the database otherwise, or it waits for itself; so cursors live no longer than a call here.
//! With transactions pages are locked, a deadlock is found as it arises, and writes outside of a
//! transaction are one each.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// An opaque type of BerkeleyDB's.
type Raw = c_void;

// SAFETY: these are the functions and constants of `berkeleydb.c`, declared with the same types.
unsafe extern "C" {
    safe static millpond_bdb_not_found: c_int;
    safe static millpond_bdb_key_exists: c_int;
    safe static millpond_bdb_buffer_small: c_int;
    safe static millpond_bdb_deadlock: c_int;
    fn millpond_bdb_env_open(
        home: *const c_char,
        cache: u64,
        direct: c_int,
        transactions: c_int,
        synced: c_int,
        to: *mut *mut Raw,
    ) -> c_int;
    fn millpond_bdb_env_close(env: *mut Raw) -> c_int;
    fn millpond_bdb_checkpoint(env: *mut Raw) -> c_int;
    fn millpond_bdb_begin(env: *mut Raw, to: *mut *mut Raw) -> c_int;
    fn millpond_bdb_commit(txn: *mut Raw) -> c_int;
    fn millpond_bdb_abort(txn: *mut Raw) -> c_int;
    fn millpond_bdb_open(
        env: *mut Raw,
        file: *const c_char,
        create: c_int,
        transactions: c_int,
        to: *mut *mut Raw,
    ) -> c_int;
    fn millpond_bdb_close(db: *mut Raw) -> c_int;
    fn millpond_bdb_sync(db: *mut Raw) -> c_int;
    fn millpond_bdb_get(
        db: *mut Raw,
        txn: *mut Raw,
        key: *const u8,
        key_len: usize,
        value: *mut u8,
        room: usize,
        value_len: *mut usize,
    ) -> c_int;
    fn millpond_bdb_put(
        db: *mut Raw,
        txn: *mut Raw,
        key: *const u8,
        key_len: usize,
        value: *const u8,
        value_len: usize,
        only_new: c_int,
    ) -> c_int;
    fn millpond_bdb_delete(db: *mut Raw, txn: *mut Raw, key: *const u8, key_len: usize) -> c_int;
    fn millpond_bdb_cursor_open(
        db: *mut Raw,
        txn: *mut Raw,
        writes: c_int,
        to: *mut *mut Raw,
    ) -> c_int;
    fn millpond_bdb_cursor_close(cursor: *mut Raw) -> c_int;
    fn millpond_bdb_cursor_find(
        cursor: *mut Raw,
        key: *const u8,
        key_len: usize,
        rmw: c_int,
        value: *mut *const u8,
        value_len: *mut usize,
    ) -> c_int;
    fn millpond_bdb_cursor_seek(
        cursor: *mut Raw,
        key: *mut *const u8,
        key_len: *mut usize,
        value: *mut *const u8,
        value_len: *mut usize,
    ) -> c_int;
    fn millpond_bdb_cursor_next(
        cursor: *mut Raw,
        key: *mut *const u8,
        key_len: *mut usize,
        value: *mut *const u8,
        value_len: *mut usize,
    ) -> c_int;
    fn millpond_bdb_cursor_prev(
        cursor: *mut Raw,
        key: *mut *const u8,
        key_len: *mut usize,
        value: *mut *const u8,
        value_len: *mut usize,
    ) -> c_int;
    fn millpond_bdb_cursor_replace(cursor: *mut Raw, value: *const u8, value_len: usize) -> c_int;
    fn millpond_bdb_message(code: c_int) -> *const c_char;
}

/// A code that BerkeleyDB returned: its own, or the system's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(c_int);

impl Code {
    /// Returns `true` if the transaction has to give way to another one.
    pub(crate) fn is_deadlock(self) -> bool {
        self.0 == millpond_bdb_deadlock
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: the result is a string with an end, for every code, and lives until the next call
        // at least.
        let message = unsafe { CStr::from_ptr(millpond_bdb_message(self.0)) };
        write!(to, "{} ({})", message.to_string_lossy(), self.0)
    }
}

impl std::error::Error for Code {}

fn check(code: c_int) -> Result<(), Code> {
    if code == 0 { Ok(()) } else { Err(Code(code)) }
}

/// False where the code is `no`.
fn unless(no: c_int, code: c_int) -> Result<bool, Code> {
    if code == no { Ok(false) } else { check(code).map(|()| true) }
}

/// Returns the pointer that `open` wrote, if `open` returned 0.
fn opened(open: impl FnOnce(*mut *mut Raw) -> c_int) -> Result<NonNull<Raw>, Code> {
    let mut raw = ptr::null_mut();
    check(open(&mut raw))?;
    NonNull::new(raw).ok_or(Code(rustix::io::Errno::INVAL.raw_os_error()))
}

/// A text for C. One with a zero inside ends there.
fn text(words: &str) -> CString {
    CString::new(words.split('\0').next().unwrap_or("")).unwrap_or_default()
}

/// Bytes that C returned; empty ones may have no address.
///
/// # Safety
/// From `data` on, `len` bytes may be read for as long as `'a`.
unsafe fn bytes<'a>(data: *const u8, len: usize) -> &'a [u8] {
    match len {
        0 => &[],
        // SAFETY: the caller's promise; BerkeleyDB's lengths are below 4 GiB.
        _ => unsafe { std::slice::from_raw_parts(data, len) },
    }
}

/// An environment: a folder, a cache and locks; with transactions, a log.
#[derive(Debug)]
pub(crate) struct Environment {
    raw: NonNull<Raw>,
    is_transactional: bool,
}

// SAFETY: the environment is opened with DB_THREAD, which makes its handle free-threaded.
unsafe impl Send for Environment {}
// SAFETY: as above.
unsafe impl Sync for Environment {}

impl Environment {
    /// An environment in the folder `home`; with `transactions`, whose commits are synced or not,
    /// recovered if it has to be.
    pub(crate) fn open(
        home: &Path,
        cache: u64,
        direct: bool,
        transactions: Option<bool>,
    ) -> Result<Arc<Environment>, Code> {
        let home = text(&home.to_string_lossy());
        let direct = c_int::from(direct);
        let is_transactional = transactions.is_some();
        let (with, synced) =
            (c_int::from(is_transactional), c_int::from(transactions == Some(true)));
        let at = home.as_ptr();
        // SAFETY: the text outlives the call.
        let open = |to| unsafe { millpond_bdb_env_open(at, cache, direct, with, synced, to) };
        Ok(Arc::new(Environment { raw: opened(open)?, is_transactional }))
    }

    /// Whether it has transactions.
    pub(crate) fn is_transactional(&self) -> bool {
        self.is_transactional
    }

    /// Writes all pages.
    pub(crate) fn checkpoint(&self) -> Result<(), Code> {
        // SAFETY: the environment is open, and has a log if it has transactions.
        check(unsafe { millpond_bdb_checkpoint(self.raw.as_ptr()) })
    }

    /// Begins a transaction.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<Txn, Code> {
        // SAFETY: the environment is open.
        let open = |to| unsafe { millpond_bdb_begin(self.raw.as_ptr(), to) };
        Ok(Txn { raw: opened(open)?, _environment: self.clone() })
    }

    /// The database in this file of the environment's folder.
    pub(crate) fn database(
        self: &Arc<Self>,
        file: &str,
        create: bool,
    ) -> Result<Arc<Database>, Code> {
        let (file, create) = (text(file), c_int::from(create));
        let (raw, with) = (self.raw.as_ptr(), c_int::from(self.is_transactional));
        // SAFETY: the environment is open, and the text outlives the call.
        let open = |to| unsafe { millpond_bdb_open(raw, file.as_ptr(), create, with, to) };
        Ok(Arc::new(Database { raw: opened(open)?, _environment: self.clone() }))
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        // SAFETY: the environment is open, and its databases, each of which keeps it alive, are
        // closed.
        let _ = unsafe { millpond_bdb_env_close(self.raw.as_ptr()) };
    }
}

/// A transaction. One that is dropped is aborted.
#[derive(Debug)]
pub(crate) struct Txn {
    raw: NonNull<Raw>,
    _environment: Arc<Environment>,
}

impl Txn {
    pub(crate) fn commit(self) -> Result<(), Code> {
        let mut this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the transaction is open, and is not used again.
        let done = check(unsafe { millpond_bdb_commit(this.raw.as_ptr()) });
        // SAFETY: the only other field with anything to drop; `this` is never touched again.
        unsafe { ptr::drop_in_place(&mut this._environment) };
        done
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        // SAFETY: as in `commit`, which forgets what it committed.
        let _ = unsafe { millpond_bdb_abort(self.raw.as_ptr()) };
    }
}

/// The transaction for C; none is a null pointer.
fn raw_of(txn: Option<&Txn>) -> *mut Raw {
    txn.map_or(ptr::null_mut(), |txn| txn.raw.as_ptr())
}

/// A B⁺-tree in a file.
#[derive(Debug)]
pub(crate) struct Database {
    raw: NonNull<Raw>,
    _environment: Arc<Environment>,
}

// SAFETY: the database is opened with DB_THREAD, which makes its handle free-threaded.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Database {
    pub(crate) fn sync(&self) -> Result<(), Code> {
        // SAFETY: the database is open.
        check(unsafe { millpond_bdb_sync(self.raw.as_ptr()) })
    }

    /// Copies the key's value into `value`, which grows as it must; false if there is none.
    #[inline]
    pub(crate) fn get(
        &self,
        txn: Option<&Txn>,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<bool, Code> {
        let txn = raw_of(txn);
        loop {
            value.clear();
            let (raw, at, to, room) =
                (self.raw.as_ptr(), key.as_ptr(), value.as_mut_ptr(), value.capacity());
            let mut len = 0;
            // SAFETY: the database is open; there is room for `room` bytes at `to`, which is not
            // shared.
            let code = unsafe { millpond_bdb_get(raw, txn, at, key.len(), to, room, &mut len) };
            if code == millpond_bdb_buffer_small && len > room {
                value.reserve(len);
                continue;
            }
            if !unless(millpond_bdb_not_found, code)? {
                return Ok(false);
            }
            // SAFETY: this number of bytes has been written, or else there would not have been
            // room.
            unsafe { value.set_len(len.min(room)) };
            return Ok(true);
        }
    }

    /// Adds a row or replaces its value; with `only_new` it returns false if there is a row.
    #[inline]
    pub(crate) fn put(
        &self,
        txn: Option<&Txn>,
        key: &[u8],
        value: &[u8],
        only_new: bool,
    ) -> Result<bool, Code> {
        let (raw, txn) = (self.raw.as_ptr(), raw_of(txn));
        let ((at, len), (from, size)) = ((key.as_ptr(), key.len()), (value.as_ptr(), value.len()));
        let only_new = c_int::from(only_new);
        // SAFETY: the database is open; key and value are copied during the call.
        let code = unsafe { millpond_bdb_put(raw, txn, at, len, from, size, only_new) };
        unless(millpond_bdb_key_exists, code)
    }

    /// Removes a row; false if there is none.
    #[inline]
    pub(crate) fn delete(&self, txn: Option<&Txn>, key: &[u8]) -> Result<bool, Code> {
        let (raw, txn) = (self.raw.as_ptr(), raw_of(txn));
        // SAFETY: the database is open; the key is not looked at after the call.
        let code = unsafe { millpond_bdb_delete(raw, txn, key.as_ptr(), key.len()) };
        unless(millpond_bdb_not_found, code)
    }

    /// Changes a value, copied to `scratch`, while no other thread writes. With transactions there
    /// has to be one.
    pub(crate) fn update<R>(
        &self,
        txn: Option<&Txn>,
        key: &[u8],
        scratch: &mut Vec<u8>,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, Code> {
        let cursor = Cursor::open(self, txn, true)?;
        let rmw = c_int::from(txn.is_some());
        let (raw, at) = (cursor.raw.as_ptr(), key.as_ptr());
        let (key_len, mut value, mut len) = (key.len(), ptr::null(), 0);
        // SAFETY: the cursor is open; the key is not looked at after the call.
        let code = unsafe { millpond_bdb_cursor_find(raw, at, key_len, rmw, &mut value, &mut len) };
        if !unless(millpond_bdb_not_found, code)? {
            return cursor.close().map(|()| None);
        }
        scratch.clear();
        // SAFETY: the value is the cursor's until it moves, and is copied here.
        scratch.extend_from_slice(unsafe { bytes(value, len) });
        let answer = change(scratch);
        // SAFETY: the cursor is open and positioned on the row; the value is copied during the
        // call.
        check(unsafe { millpond_bdb_cursor_replace(raw, scratch.as_ptr(), scratch.len()) })?;
        cursor.close().map(|()| Some(answer))
    }

    /// Shows rows from `start` on, upwards or downwards, until `visit` returns false.
    pub(crate) fn scan(
        &self,
        txn: Option<&Txn>,
        start: &[u8],
        upwards: bool,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Code> {
        let mut cursor = Cursor::open(self, txn, false)?;
        let mut at = cursor.seek(start)?;
        if !upwards && at.is_none_or(|(key, _)| key != start) {
            // The first row beyond, or the end: the one before is the first that counts.
            at = cursor.step(false)?;
        }
        while let Some((key, value)) = at {
            if !visit(key, value) {
                break;
            }
            at = cursor.step(upwards)?;
        }
        cursor.close()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: the database is open, and no cursor borrows it.
        let _ = unsafe { millpond_bdb_close(self.raw.as_ptr()) };
    }
}

/// A cursor. It locks the database: for others' writes, if it writes itself for all cursors that
/// write.
struct Cursor<'d> {
    raw: NonNull<Raw>,
    _database: PhantomData<&'d Database>,
}

type Row<'c> = Option<(&'c [u8], &'c [u8])>;

/// Where a cursor moves to.
#[derive(Clone, Copy)]
enum Step {
    /// To the first key at or above this one.
    Seek,
    Next,
    /// From nowhere to the last row.
    Previous,
}

impl<'d> Cursor<'d> {
    fn open(
        database: &'d Database,
        txn: Option<&'d Txn>,
        writes: bool,
    ) -> Result<Cursor<'d>, Code> {
        let (raw, txn, writes) = (database.raw.as_ptr(), raw_of(txn), c_int::from(writes));
        // SAFETY: database and transaction are open, and stay so for as long as they are borrowed.
        let open = |to| unsafe { millpond_bdb_cursor_open(raw, txn, writes, to) };
        Ok(Cursor { raw: opened(open)?, _database: PhantomData })
    }

    #[inline]
    fn go(&mut self, step: Step, key: &[u8]) -> Result<Row<'_>, Code> {
        let (mut at, mut at_len) = (key.as_ptr(), key.len());
        let (mut value, mut len) = (ptr::null(), 0);
        let (key, key_len, raw) = (&mut at, &mut at_len, self.raw.as_ptr());
        // SAFETY: the cursor is open, and the key outlives the call.
        let code = unsafe {
            match step {
                Step::Seek => millpond_bdb_cursor_seek(raw, key, key_len, &mut value, &mut len),
                Step::Next => millpond_bdb_cursor_next(raw, key, key_len, &mut value, &mut len),
                Step::Previous => millpond_bdb_cursor_prev(raw, key, key_len, &mut value, &mut len),
            }
        };
        if !unless(millpond_bdb_not_found, code)? {
            return Ok(None);
        }
        // SAFETY: key and value are in the cursor's own memory until it moves or closes, and the
        // result borrows it.
        Ok(Some(unsafe { (bytes(at, at_len), bytes(value, len)) }))
    }

    /// To the first key at or above `start`.
    fn seek(&mut self, start: &[u8]) -> Result<Row<'_>, Code> {
        match start {
            // A cursor without a position moves to the first row.
            [] => self.step(true),
            start => self.go(Step::Seek, start),
        }
    }

    #[inline]
    fn step(&mut self, upwards: bool) -> Result<Row<'_>, Code> {
        self.go(if upwards { Step::Next } else { Step::Previous }, &[])
    }

    fn close(self) -> Result<(), Code> {
        let raw = std::mem::ManuallyDrop::new(self).raw;
        // SAFETY: the cursor is open and is not used again.
        check(unsafe { millpond_bdb_cursor_close(raw.as_ptr()) })
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: as in `close`, which forgets what it closed.
        let _ = unsafe { millpond_bdb_cursor_close(self.raw.as_ptr()) };
    }
}
