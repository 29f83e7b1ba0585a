//! Status of a call, and the message of its error.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char};

use millpond::ErrorKind;
use millpond_handles::Fault;

/// Result of a call. A negative one is an error, with a message from mp_error_message.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mp_status {
    /// The call succeeded.
    MP_OK = 0,
    /// The key does not exist, or there is no further entry. Not an error.
    MP_NOT_FOUND = 1,
    /// An argument is invalid in every call: a null pointer, a string that is not UTF-8, an unknown
    /// constant.
    MP_MISUSE = -1,
    /// A bug in the library. Please report it, with the message.
    MP_PANIC = -2,
    /// An option, a policy, a name or an argument is invalid.
    MP_INVALID = -3,
    /// The store or tree does not exist, and was not to be created.
    MP_NO_SUCH = -4,
    /// The store or tree exists already.
    MP_EXISTS = -5,
    /// The structure has another type, or belongs to another store.
    MP_OTHER_TYPE = -6,
    /// A key or a value is too long.
    MP_TOO_LONG = -7,
    /// Another process or another handle uses it.
    MP_IN_USE = -8,
    /// The store is open for reading only.
    MP_READ_ONLY = -9,
    /// The transaction lost in a deadlock: abort it and try again.
    MP_DEADLOCK = -10,
    /// A wait for a lock was too long: abort the transaction and try again.
    MP_TIMEOUT = -11,
    /// A call outside the transaction would wait for the transaction whose callback made it.
    MP_OWN_TRANSACTION = -12,
    /// The transaction, savepoint, snapshot or cursor cannot continue.
    MP_TRANSACTION_FAILED = -13,
    /// Memory is not enough for the request.
    MP_MEMORY = -14,
    /// The device is full. Stored data is intact.
    MP_DISK_FULL = -15,
    /// The device or the operating system failed.
    MP_IO = -16,
    /// Stored data differs from the data that was written.
    MP_DAMAGED = -17,
    /// A part of the store, such as its log, is missing.
    MP_INCOMPLETE = -18,
    /// This version does not know the format.
    MP_VERSION = -19,
    /// A callback cancelled the call.
    MP_CANCELLED = -20,
    /// Any other error.
    MP_OTHER = -21,
    /// The store was closed.
    MP_CLOSED = -22,
}

use mp_status::*;

impl mp_status {
    /// All statuses, for lookups by number and name.
    const ALL: [mp_status; 24] = [
        MP_OK,
        MP_NOT_FOUND,
        MP_MISUSE,
        MP_PANIC,
        MP_INVALID,
        MP_NO_SUCH,
        MP_EXISTS,
        MP_OTHER_TYPE,
        MP_TOO_LONG,
        MP_IN_USE,
        MP_READ_ONLY,
        MP_DEADLOCK,
        MP_TIMEOUT,
        MP_OWN_TRANSACTION,
        MP_TRANSACTION_FAILED,
        MP_MEMORY,
        MP_DISK_FULL,
        MP_IO,
        MP_DAMAGED,
        MP_INCOMPLETE,
        MP_VERSION,
        MP_CANCELLED,
        MP_OTHER,
        MP_CLOSED,
    ];

    pub(crate) fn of(kind: ErrorKind) -> mp_status {
        match kind {
            ErrorKind::Invalid => MP_INVALID,
            ErrorKind::NotFound => MP_NO_SUCH,
            ErrorKind::Exists => MP_EXISTS,
            ErrorKind::OtherType => MP_OTHER_TYPE,
            ErrorKind::TooLong => MP_TOO_LONG,
            ErrorKind::InUse => MP_IN_USE,
            ErrorKind::ReadOnly => MP_READ_ONLY,
            ErrorKind::Deadlock => MP_DEADLOCK,
            ErrorKind::Timeout => MP_TIMEOUT,
            ErrorKind::OwnTransaction => MP_OWN_TRANSACTION,
            ErrorKind::TransactionFailed => MP_TRANSACTION_FAILED,
            ErrorKind::Memory => MP_MEMORY,
            ErrorKind::DiskFull => MP_DISK_FULL,
            ErrorKind::Io => MP_IO,
            ErrorKind::Damaged => MP_DAMAGED,
            ErrorKind::Incomplete => MP_INCOMPLETE,
            ErrorKind::Version => MP_VERSION,
            ErrorKind::Cancelled => MP_CANCELLED,
            ErrorKind::Closed => MP_CLOSED,
            _ => MP_OTHER,
        }
    }

    /// Returns the status with a number, if there is one.
    pub(crate) fn of_number(number: i32) -> Option<mp_status> {
        mp_status::ALL.into_iter().find(|status| *status as i32 == number)
    }
}

/// Reason that a call failed.
pub(crate) enum Failure {
    Misuse(String),
    Fault(Fault),
    /// The status that a callback returned. Its message is that of the last call that failed with
    /// it.
    Callback(mp_status),
}

impl<E: Into<Fault>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Fault(error.into())
    }
}

impl Failure {
    /// Returns the status, and leaves the message for the thread.
    pub(crate) fn report(self) -> mp_status {
        match self {
            Failure::Misuse(message) => {
                set_message(message);
                REPORTED.set(Some(MP_MISUSE));
                MP_MISUSE
            }
            Failure::Fault(fault) => {
                set_message(fault.to_string());
                let status = mp_status::of(fault.kind());
                REPORTED.set(Some(status));
                status
            }
            Failure::Callback(status) => {
                if (status as i32) < 0 && REPORTED.get() != Some(status) {
                    let name = name_of(status as i32).to_string_lossy();
                    set_message(format!("the callback returned {name}, of no call of its own"));
                }
                status
            }
        }
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
    /// Status that the message belongs to, unless it was forgotten.
    static REPORTED: Cell<Option<mp_status>> = const { Cell::new(None) };
}

/// Forgets which status the message belongs to, since a callback begins.
pub(crate) fn forget_reported() {
    REPORTED.set(None);
}

/// Leaves a message for the thread.
pub(crate) fn set_message(message: String) {
    let mut bytes = message.into_bytes();
    bytes.retain(|byte| *byte != 0);
    let text = CString::new(bytes).unwrap_or_default();
    // A thread that is ending will not read it.
    let _ = MESSAGE.try_with(|message| *message.borrow_mut() = text);
}

/// Returns the thread's message.
#[cfg(test)]
pub(crate) fn message() -> String {
    MESSAGE.with(|message| message.borrow().to_string_lossy().into_owned())
}

/// Returns the message of this thread's last error, or an empty one if none has occurred. It stays
/// until the thread's next error. It is never NULL, and must not be freed.
#[unsafe(no_mangle)]
pub extern "C" fn mp_error_message() -> *const c_char {
    // The text on the heap only moves when it is replaced.
    MESSAGE.try_with(|message| message.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Returns the name of a status, such as "MP_TIMEOUT". It is never NULL, and must not be freed.
#[unsafe(no_mangle)]
pub extern "C" fn mp_status_name(status: i32) -> *const c_char {
    name_of(status).as_ptr()
}

fn name_of(status: i32) -> &'static CStr {
    match mp_status::of_number(status) {
        Some(MP_OK) => c"MP_OK",
        Some(MP_NOT_FOUND) => c"MP_NOT_FOUND",
        Some(MP_MISUSE) => c"MP_MISUSE",
        Some(MP_PANIC) => c"MP_PANIC",
        Some(MP_INVALID) => c"MP_INVALID",
        Some(MP_NO_SUCH) => c"MP_NO_SUCH",
        Some(MP_EXISTS) => c"MP_EXISTS",
        Some(MP_OTHER_TYPE) => c"MP_OTHER_TYPE",
        Some(MP_TOO_LONG) => c"MP_TOO_LONG",
        Some(MP_IN_USE) => c"MP_IN_USE",
        Some(MP_READ_ONLY) => c"MP_READ_ONLY",
        Some(MP_DEADLOCK) => c"MP_DEADLOCK",
        Some(MP_TIMEOUT) => c"MP_TIMEOUT",
        Some(MP_OWN_TRANSACTION) => c"MP_OWN_TRANSACTION",
        Some(MP_TRANSACTION_FAILED) => c"MP_TRANSACTION_FAILED",
        Some(MP_MEMORY) => c"MP_MEMORY",
        Some(MP_DISK_FULL) => c"MP_DISK_FULL",
        Some(MP_IO) => c"MP_IO",
        Some(MP_DAMAGED) => c"MP_DAMAGED",
        Some(MP_INCOMPLETE) => c"MP_INCOMPLETE",
        Some(MP_VERSION) => c"MP_VERSION",
        Some(MP_CANCELLED) => c"MP_CANCELLED",
        Some(MP_OTHER) => c"MP_OTHER",
        Some(MP_CLOSED) => c"MP_CLOSED",
        None => c"unknown",
    }
}

/// Returns the library's version, such as "0.1.0". It is never NULL, and must not be freed.
#[unsafe(no_mangle)]
pub extern "C" fn mp_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}
