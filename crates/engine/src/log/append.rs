//! Appends records.

use millpond_base::Lsn;

use super::error::LogError;
use super::group_commit::GroupCommitWait;
use super::record::Appended;
use super::record::Record;
use super::ring::Reservation;
use super::shared::Shared;
use crate::stats::Wait;

impl Shared {
    /// Reserves bytes, fills them and publishes them. Takes no lock and allocates nothing, unless
    /// the buffer is full.
    #[inline]
    pub(super) fn append(&self, record: &Record<'_>) -> Appended {
        let body = record.parts.iter().map(|part| part.len()).sum();
        if body > self.record_max {
            return self.refuse(record, body);
        }
        let reservation = self.ring.reserve(record, body);
        let (start, end) = (reservation.start, reservation.end());
        debug_assert!(start < end && start.is_multiple_of(8), "records are aligned, and LSNs grow");
        if let Err(reservation) = reservation.fill(record) {
            self.fill_later(reservation, record);
        }
        // Two branches that are rarely taken. The first comes after the reservation in the one
        // order of all sequentially consistent operations (rule 9).
        if self.alarm.is_asleep() {
            self.alarm.rouse();
        }
        let quarter = self.ring.size() / 4;
        if (start ^ end) & !(quarter - 1) != 0 && end - self.ring.durable().min(end) > 2 * quarter {
            self.alarm.urge();
        }
        Appended { start: Lsn(start), end: Lsn(end) }
    }

    /// Makes room in the full buffer and fills the reservation, or finds that there will be no
    /// room.
    #[cold]
    #[inline(never)]
    fn fill_later(&self, mut reservation: Reservation<'_>, record: &Record<'_>) {
        loop {
            // A log that takes nothing more has a hole here, and stays durable up to it at most.
            if self.wait(Some(Wait::LogSpace), reservation.needs(), GroupCommitWait::None).is_err()
            {
                return;
            }
            match reservation.fill(record) {
                Ok(()) => return,
                Err(again) => reservation = again,
            }
        }
    }

    /// Refuses a record that can never become durable. No later record can, either.
    #[cold]
    #[inline(never)]
    fn refuse(&self, record: &Record<'_>, body: usize) -> Appended {
        let (length, max) = (body as u64, self.record_max as u64);
        self.poison(LogError::RecordTooLong { path: self.path().to_path_buf(), length, max });
        let hole = self.ring.reserve(record, 0);
        Appended { start: Lsn(hole.start), end: Lsn(hole.end()) }
    }
}
