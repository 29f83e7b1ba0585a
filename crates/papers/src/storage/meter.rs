//! The operating system's counts of a device: `iostat`'s columns.

use super::request::{Nanos, Request};

/// Requests of a device, and its busy time.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Meter {
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Sectors read.
    pub sectors_read: u64,
    /// Sectors written.
    pub sectors_written: u64,
    /// Time with at least one pending request.
    pub busy: Nanos,
    outstanding: u64,
    since: Nanos,
}

impl Meter {
    /// Counts a sent request.
    pub fn sent(&mut self, now: Nanos, request: &Request) {
        if self.outstanding == 0 {
            self.since = now;
        }
        self.outstanding += 1;
        let (requests, sectors) = match request.is_write {
            true => (&mut self.writes, &mut self.sectors_written),
            false => (&mut self.reads, &mut self.sectors_read),
        };
        *requests += 1;
        *sectors += request.sectors;
    }

    /// Counts a completed request.
    pub fn done(&mut self, now: Nanos) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if self.outstanding == 0 {
            self.busy += now - self.since;
        }
    }

    /// Returns the counts from `then` to `now`.
    #[must_use]
    pub fn since(&self, then: &Meter, then_at: Nanos, now: Nanos) -> Meter {
        let busy = |meter: &Meter, at: Nanos| {
            meter.busy + if meter.outstanding > 0 { at - meter.since } else { 0 }
        };
        Meter {
            reads: self.reads - then.reads,
            writes: self.writes - then.writes,
            sectors_read: self.sectors_read - then.sectors_read,
            sectors_written: self.sectors_written - then.sectors_written,
            busy: busy(self, now) - busy(then, then_at),
            outstanding: self.outstanding,
            since: self.since,
        }
    }

    /// Returns `iostat`'s service time: busy time over the number of requests, in
    /// milliseconds.
    pub fn service_ms(&self) -> f64 {
        self.busy as f64 / 1e6 / (self.reads + self.writes).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_with_two_requests_counts_once() {
        let mut meter = Meter::default();
        let request = |is_write| Request { sector: 0, sectors: 8, is_write, id: 0 };
        meter.sent(1_000_000, &request(false));
        let early = meter;
        meter.sent(2_000_000, &request(true));
        meter.done(4_000_000);
        meter.done(5_000_000);
        meter.sent(8_000_000, &request(true));
        let all = meter.since(&Meter::default(), 0, 9_000_000);
        assert_eq!((all.reads, all.writes, all.sectors_written), (1, 2, 16));
        assert_eq!(all.busy, 5_000_000);
        assert!((all.service_ms() - 5.0 / 3.0).abs() < 1e-12);
        let later = meter.since(&early, 1_500_000, 9_000_000);
        assert_eq!((later.reads, later.writes, later.busy), (0, 2, 4_500_000));
    }
}
