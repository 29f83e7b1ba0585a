//! Numbers of an object that is being written, until the object is known.
//!
//! A write may be dropped at any time, while a blocking thread goes on copying its parts. The
//! write and each such thread hold the reservation: the last one to let go removes the copies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use millpond_base::Reason;
use object_store::PutPayload;

use crate::front::{Front, blocking};

/// Reserved numbers whose parts are being copied. Dropping it removes the copies, unless they were
/// kept.
pub(crate) struct Reservation {
    front: Front,
    first: u64,
    /// First number whose part was not handed to the cache yet.
    end: AtomicU64,
    is_kept: AtomicBool,
}

impl Reservation {
    /// Returns a reservation from the number `first` on, with no copies yet.
    pub fn new(front: &Front, first: u64) -> Arc<Reservation> {
        let (end, is_kept) = (AtomicU64::new(first), AtomicBool::new(false));
        Arc::new(Reservation { front: front.clone(), first, end, is_kept })
    }

    /// Returns the number of its first part.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the first number that has no part yet.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Takes the numbers for the next `bytes`, and returns the first of them.
    pub fn take(&self, bytes: u64) -> u64 {
        self.end.fetch_add(bytes.div_ceil(self.front.part), Ordering::AcqRel)
    }

    /// Offers written bytes to the policy, as whole parts from `first` on. The last part of the
    /// object may be shorter.
    pub async fn offer(self: Arc<Self>, first: u64, payload: PutPayload, reason: Reason) {
        blocking(move || self.front.offer_now(first, &payload, reason)).await;
    }

    /// Keeps the copies: the object is known now.
    pub fn keep(&self) {
        self.is_kept.store(true, Ordering::Release);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_kept.load(Ordering::Acquire) {
            self.front.forget_parts(self.first..self.end());
        }
    }
}
