//! The guard around every call: errors and panics become a status.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::status::{Failure, mp_status, set_message};

/// Runs the body of a call.
pub(crate) fn guard(body: impl FnOnce() -> Result<mp_status, Failure>) -> mp_status {
    // A panic can only leave the store in a bad state, and its later calls are safe.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(status)) => status,
        Ok(Err(failure)) => failure.report(),
        Err(panic) => {
            set_message(format!("the library panicked: {}", text(&*panic)));
            // A payload may panic when it is dropped, so it is leaked.
            std::mem::forget(panic);
            mp_status::MP_PANIC
        }
    }
}

/// Drops a handle.
pub(crate) fn drop_handle<T>(handle: Option<Box<T>>) {
    guard(|| {
        drop(handle);
        Ok(mp_status::MP_OK)
    });
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::message;

    #[test]
    fn a_panic_becomes_a_status() {
        let status = guard(|| panic!("mill {}", 7));
        assert_eq!(status, mp_status::MP_PANIC);
        assert_eq!(message(), "the library panicked: mill 7");
    }
}
