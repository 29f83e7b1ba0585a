//! Borrowed pages: pages that a thread keeps from changing while the user's own code reads them.
//!
//! Such code may call the store again, and that call may need the page that the code reads. Only
//! the thread itself could release the page, so the call would wait for ever. Each thread therefore
//! counts the pages that its closures have borrowed. An operation that restarts again and again on
//! a thread with borrowed pages ends with [`PoolError::Held`]. Two threads that each read a page
//! and want to write the other's page end in the same way.
//!
//! The count is read only after [`PATIENT`] restarts in a row. A latch that another thread holds is
//! released within a microsecond, or within some milliseconds if its holder lost its processor.
//! That is why an operation naps before it gives up. With more threads than processors, each
//! restart before the naps costs a time slice of every other thread, so those restarts are few.

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::Duration;

use crate::pool::error::PoolError;
use crate::pool::frame::IS_MODEL;

/// Number of restarts in a row before the pages that the thread has borrowed are considered.
const PATIENT: u32 = 100;
/// Number of further restarts, with a nap before each, before the operation gives up.
const NAPS: u32 = if IS_MODEL { 100 } else { 250 };
const NAP: Duration = Duration::from_millis(1);

#[cfg(not(feature = "model"))]
thread_local! {
    static BORROWED: Cell<u32> = const { Cell::new(0) };
}
// Threads of a model are not threads of the system.
#[cfg(feature = "loom")]
loom::thread_local! {
    static BORROWED: Cell<u32> = Cell::new(0);
}
#[cfg(all(feature = "shuttle", not(feature = "loom")))]
shuttle::thread_local! {
    static BORROWED: Cell<u32> = Cell::new(0);
}

/// Borrow of one page, which this thread keeps from changing while the user's code runs.
pub(crate) struct BorrowedPage {
    /// Ties the borrow to the thread that began it.
    _thread: PhantomData<*const ()>,
}

impl BorrowedPage {
    #[inline]
    pub(crate) fn begin() -> BorrowedPage {
        BORROWED.with(|borrowed| borrowed.set(borrowed.get().wrapping_add(1)));
        BorrowedPage { _thread: PhantomData }
    }
}

impl Drop for BorrowedPage {
    #[inline]
    fn drop(&mut self) {
        BORROWED.with(|borrowed| {
            debug_assert_ne!(borrowed.get(), 0, "each borrowed page is counted");
            borrowed.set(borrowed.get().wrapping_sub(1));
        });
    }
}

/// Returns the number of pages that closures of this thread borrow now.
pub(crate) fn pages_borrowed() -> u32 {
    BORROWED.with(Cell::get)
}

/// Waits before an operation that met a conflict restarts, the `attempt`th time.
///
/// # Errors
/// [`PoolError::Held`] if the operation might never end.
pub(crate) fn back_off(attempt: u32) -> Result<(), PoolError> {
    if attempt < 4 && !IS_MODEL {
        // Conflicts end within a microsecond, unless a holder lost its processor.
        std::hint::spin_loop();
    } else if attempt < PATIENT || pages_borrowed() == 0 {
        millpond_base::sync::thread::yield_now();
    } else if attempt < PATIENT + NAPS {
        nap();
    } else {
        return Err(PoolError::Held { pages: pages_borrowed() });
    }
    Ok(())
}

fn nap() {
    if IS_MODEL {
        millpond_base::sync::thread::yield_now();
    } else {
        std::thread::sleep(NAP);
    }
}

/// Calls `attempt` until it returns a value; between calls it backs off like an operation.
///
/// # Errors
/// [`PoolError::Held`].
pub(crate) fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> Result<T, PoolError> {
    let mut round = 0u32;
    loop {
        if let Some(done) = attempt() {
            return Ok(done);
        }
        back_off(round)?;
        round = round.saturating_add(1);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gives_up_only_while_it_has_borrowed_a_page_itself() {
        let rounds = PATIENT + NAPS;
        assert!((rounds..rounds + 100).all(|attempt| back_off(attempt).is_ok()));
        let borrowed = BorrowedPage::begin();
        let second = BorrowedPage::begin();
        assert_eq!(pages_borrowed(), 2);
        assert!(back_off(rounds - 1).is_ok());
        assert!(matches!(back_off(rounds), Err(PoolError::Held { pages: 2 })));
        let other = std::thread::spawn(move || back_off(rounds).is_ok());
        assert!(other.join().unwrap(), "another thread's pages are no reason");
        assert!(matches!(until(|| None::<()>), Err(PoolError::Held { pages: 2 })));
        drop((borrowed, second));
        assert!(back_off(rounds).is_ok());
    }

    #[test]
    fn pages_are_given_back_when_the_closure_panics() {
        let result = std::panic::catch_unwind(|| {
            let _borrowed = BorrowedPage::begin();
            panic!("as ordered");
        });
        assert!(result.is_err());
        assert_eq!(pages_borrowed(), 0);
    }
}
