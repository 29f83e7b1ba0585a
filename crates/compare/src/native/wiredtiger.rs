//! WiredTiger's connection, sessions and cursors, safe.
//!
//! A connection may be used by all threads, a session and its cursors by one: they are neither
//! `Send` nor `Sync`. A cursor keeps its session open, and a session borrows the connection, so
//! everything closes in the order that WiredTiger asks for.
//!
//! What a cursor shows is in WiredTiger's pages until the cursor moves. Only closures see it, while
//! the cursor is borrowed; then the cursor releases the page.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::rc::Rc;

/// An opaque type of WiredTiger's.
type Raw = c_void;

// SAFETY: these are the functions and constants of `wiredtiger.c`, declared with the same types.
unsafe extern "C" {
    safe static millpond_wt_not_found: c_int;
    safe static millpond_wt_duplicate_key: c_int;
    safe static millpond_wt_rollback: c_int;
    fn millpond_wt_open(home: *const c_char, config: *const c_char, to: *mut *mut Raw) -> c_int;
    fn millpond_wt_close(connection: *mut Raw) -> c_int;
    fn millpond_wt_session_open(
        connection: *mut Raw,
        config: *const c_char,
        to: *mut *mut Raw,
    ) -> c_int;
    fn millpond_wt_session_close(session: *mut Raw) -> c_int;
    fn millpond_wt_create(session: *mut Raw, uri: *const c_char, config: *const c_char) -> c_int;
    fn millpond_wt_checkpoint(session: *mut Raw) -> c_int;
    fn millpond_wt_cursor_open(
        session: *mut Raw,
        uri: *const c_char,
        config: *const c_char,
        to: *mut *mut Raw,
    ) -> c_int;
    fn millpond_wt_cursor_close(cursor: *mut Raw) -> c_int;
    fn millpond_wt_reset(cursor: *mut Raw) -> c_int;
    fn millpond_wt_search(
        cursor: *mut Raw,
        key: *const u8,
        key_len: usize,
        value: *mut *const u8,
        value_len: *mut usize,
    ) -> c_int;
    fn millpond_wt_search_near(
        cursor: *mut Raw,
        key: *const u8,
        key_len: usize,
        exact: *mut c_int,
    ) -> c_int;
    fn millpond_wt_next(cursor: *mut Raw) -> c_int;
    fn millpond_wt_prev(cursor: *mut Raw) -> c_int;
    fn millpond_wt_row(
        cursor: *mut Raw,
        key: *mut *const u8,
        key_len: *mut usize,
        value: *mut *const u8,
        value_len: *mut usize,
    ) -> c_int;
    fn millpond_wt_insert(
        cursor: *mut Raw,
        key: *const u8,
        key_len: usize,
        value: *const u8,
        value_len: usize,
    ) -> c_int;
    fn millpond_wt_update(
        cursor: *mut Raw,
        key: *const u8,
        key_len: usize,
        value: *const u8,
        value_len: usize,
    ) -> c_int;
    fn millpond_wt_remove(cursor: *mut Raw, key: *const u8, key_len: usize) -> c_int;
    fn millpond_wt_message(code: c_int) -> *const c_char;
}

/// A code that WiredTiger returned: its own, or the system's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(c_int);

impl Code {
    /// Returns `true` if the operation met another transaction's and may be tried again.
    pub(crate) fn is_rollback(self) -> bool {
        self.0 == millpond_wt_rollback
    }

    /// Returns `true` if the object is in use, as another cursor blocks bulk loading.
    pub(crate) fn is_busy(self) -> bool {
        self.0 == rustix::io::Errno::BUSY.raw_os_error()
    }

    /// Returns `true` if a file or a table is missing.
    pub(crate) fn is_missing(self) -> bool {
        self.0 == rustix::io::Errno::NOENT.raw_os_error() || self.0 == millpond_wt_not_found
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: the result is a string with an end, for every code, and lives until the next call
        // by this thread at least.
        let message = unsafe { CStr::from_ptr(millpond_wt_message(self.0)) };
        write!(to, "{} ({})", message.to_string_lossy(), self.0)
    }
}

impl std::error::Error for Code {}

fn check(code: c_int) -> Result<(), Code> {
    if code == 0 { Ok(()) } else { Err(Code(code)) }
}

/// Returns the pointer that `open` wrote, if `open` returned 0.
fn opened(open: impl FnOnce(*mut *mut Raw) -> c_int) -> Result<NonNull<Raw>, Code> {
    let mut raw = ptr::null_mut();
    check(open(&mut raw))?;
    NonNull::new(raw).ok_or(Code(rustix::io::Errno::INVAL.raw_os_error()))
}

/// A text for C. One with a zero inside ends there, and WiredTiger refuses what is left.
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
        // SAFETY: the caller's promise; WiredTiger's lengths are below 4 GiB.
        _ => unsafe { std::slice::from_raw_parts(data, len) },
    }
}

/// An open database.
#[derive(Debug)]
pub(crate) struct Connection(NonNull<Raw>);

// SAFETY: WiredTiger's connection handle may be used by any number of threads at once; what is
// for one thread only are sessions and cursors.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

impl Connection {
    pub(crate) fn open(home: &Path, config: &str) -> Result<Connection, Code> {
        let (home, config) = (text(&home.to_string_lossy()), text(config));
        // SAFETY: both texts outlive the call.
        let open = |to| unsafe { millpond_wt_open(home.as_ptr(), config.as_ptr(), to) };
        Ok(Connection(opened(open)?))
    }

    pub(crate) fn session(&self) -> Result<Rc<Session<'_>>, Code> {
        // SAFETY: the connection is open, as it is borrowed; no configuration is a null pointer.
        let open = |to| unsafe { millpond_wt_session_open(self.0.as_ptr(), ptr::null(), to) };
        Ok(Rc::new(Session(opened(open)?, PhantomData)))
    }

    /// Writes everything and closes.
    pub(crate) fn close(self) -> Result<(), Code> {
        let raw = std::mem::ManuallyDrop::new(self).0;
        // SAFETY: no session borrows the connection, as it was moved in here; it is not used
        // again.
        check(unsafe { millpond_wt_close(raw.as_ptr()) })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: as in `close`, which forgets what it closed.
        let _ = unsafe { millpond_wt_close(self.0.as_ptr()) };
    }
}

/// One thread's way into the database.
#[derive(Debug)]
pub(crate) struct Session<'c>(NonNull<Raw>, PhantomData<&'c Connection>);

impl<'c> Session<'c> {
    pub(crate) fn create(&self, uri: &str, config: &str) -> Result<(), Code> {
        let (uri, config) = (text(uri), text(config));
        // SAFETY: the session is open, and both texts outlive the call.
        check(unsafe { millpond_wt_create(self.0.as_ptr(), uri.as_ptr(), config.as_ptr()) })
    }

    pub(crate) fn checkpoint(&self) -> Result<(), Code> {
        // SAFETY: the session is open.
        check(unsafe { millpond_wt_checkpoint(self.0.as_ptr()) })
    }

    /// A cursor over the table `uri`.
    pub(crate) fn cursor(self: &Rc<Self>, uri: &str, config: &str) -> Result<Cursor<'c>, Code> {
        let (uri, config) = (text(uri), text(config));
        let raw = self.0.as_ptr();
        // SAFETY: the session is open, and both texts outlive the call.
        let open = |to| unsafe { millpond_wt_cursor_open(raw, uri.as_ptr(), config.as_ptr(), to) };
        Ok(Cursor { raw: opened(open)?, _session: self.clone() })
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: the session is open, and its cursors, each of which keeps it alive, are gone.
        let _ = unsafe { millpond_wt_session_close(self.0.as_ptr()) };
    }
}

/// A cursor over a table of raw keys and values. Between calls it has no position.
#[derive(Debug)]
pub(crate) struct Cursor<'c> {
    raw: NonNull<Raw>,
    _session: Rc<Session<'c>>,
}

impl Cursor<'_> {
    /// Releases the page, and passes a result on.
    #[inline]
    fn reset(&mut self, code: c_int) -> Result<(), Code> {
        // SAFETY: the cursor is open.
        let reset = unsafe { millpond_wt_reset(self.raw.as_ptr()) };
        check(code).and(check(reset))
    }

    /// Shows the key's value.
    #[inline]
    pub(crate) fn get<R>(
        &mut self,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Code> {
        let (mut value, mut len) = (ptr::null(), 0);
        let (raw, at) = (self.raw.as_ptr(), key.as_ptr());
        // SAFETY: the cursor is open; the key outlives the call, after which WiredTiger does not
        // look at it again, as every call sets a new one.
        let code = unsafe { millpond_wt_search(raw, at, key.len(), &mut value, &mut len) };
        if code != 0 {
            return self.found(code).map(|_| None);
        }
        // SAFETY: the cursor is positioned on the row, whose bytes stay until it moves; it is
        // borrowed here, and `read` cannot keep them.
        let answer = read(unsafe { bytes(value, len) });
        self.reset(0)?;
        Ok(Some(answer))
    }

    /// Adds a row; false if there is one, and the cursor was opened not to overwrite.
    #[inline]
    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Code> {
        let ((at, len), (from, size)) = ((key.as_ptr(), key.len()), (value.as_ptr(), value.len()));
        // SAFETY: the cursor is open; key and value are copied during the call.
        let code = unsafe { millpond_wt_insert(self.raw.as_ptr(), at, len, from, size) };
        if code == millpond_wt_duplicate_key {
            return self.reset(0).map(|()| false);
        }
        check(code).map(|()| true)
    }

    /// Replaces a value; false if there is no row, and the cursor was opened not to overwrite.
    #[inline]
    pub(crate) fn update(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Code> {
        let ((at, len), (from, size)) = ((key.as_ptr(), key.len()), (value.as_ptr(), value.len()));
        // SAFETY: the cursor is open; key and value are copied during the call.
        let code = unsafe { millpond_wt_update(self.raw.as_ptr(), at, len, from, size) };
        self.found(code)
    }

    /// Removes a row; false if there is none, and the cursor was opened not to overwrite.
    #[inline]
    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<bool, Code> {
        // SAFETY: the cursor is open; the key is not looked at after the call.
        let code = unsafe { millpond_wt_remove(self.raw.as_ptr(), key.as_ptr(), key.len()) };
        self.found(code)
    }

    /// Releases the page, and returns whether the row was there.
    #[inline]
    fn found(&mut self, code: c_int) -> Result<bool, Code> {
        let is_there = code != millpond_wt_not_found;
        self.reset(if is_there { code } else { 0 }).map(|()| is_there)
    }

    /// Shows rows from `start` on, upwards or downwards, until `visit` returns false.
    pub(crate) fn scan(
        &mut self,
        start: &[u8],
        upwards: bool,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Code> {
        let mut code = self.seek(start, upwards);
        while code == 0 {
            let (mut key, mut key_len, mut value, mut len) = (ptr::null(), 0, ptr::null(), 0);
            let raw = self.raw.as_ptr();
            // SAFETY: the cursor is open.
            code = unsafe { millpond_wt_row(raw, &mut key, &mut key_len, &mut value, &mut len) };
            if code != 0 {
                break;
            }
            // SAFETY: the cursor is positioned on the row, whose bytes stay until it moves; it is
            // borrowed here, and `visit` cannot keep them.
            let (key, value) = unsafe { (bytes(key, key_len), bytes(value, len)) };
            if !visit(key, value) {
                break;
            }
            code = self.step(upwards);
        }
        self.reset(if code == millpond_wt_not_found { 0 } else { code })
    }

    /// To the first row of a scan.
    fn seek(&mut self, start: &[u8], upwards: bool) -> c_int {
        if upwards && start.is_empty() {
            // A cursor without a position moves to the first row.
            return self.step(true);
        }
        let mut exact = 0;
        let (raw, at) = (self.raw.as_ptr(), start.as_ptr());
        // SAFETY: the cursor is open; the key is not looked at after the call.
        let code = unsafe { millpond_wt_search_near(raw, at, start.len(), &mut exact) };
        match (code, exact.signum(), upwards) {
            (0, -1, true) | (0, 1, false) => self.step(upwards),
            _ => code,
        }
    }

    #[inline]
    fn step(&mut self, upwards: bool) -> c_int {
        let raw = self.raw.as_ptr();
        // SAFETY: the cursor is open.
        unsafe { if upwards { millpond_wt_next(raw) } else { millpond_wt_prev(raw) } }
    }

    /// Closes the cursor, and tells what became of what it loaded.
    pub(crate) fn close(self) -> Result<(), Code> {
        let mut this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the cursor is open and is not used again.
        let closed = check(unsafe { millpond_wt_cursor_close(this.raw.as_ptr()) });
        // SAFETY: the only other field with anything to drop; `this` is never touched again.
        unsafe { ptr::drop_in_place(&mut this._session) };
        closed
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: the cursor is open, as its session is.
        let _ = unsafe { millpond_wt_cursor_close(self.raw.as_ptr()) };
    }
}
