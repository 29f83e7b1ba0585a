//! Request queue of the operating system above a drive. It sorts requests by their sector, and
//! lets reads go before writes, within limits (the rule of Linux' *deadline* scheduler without
//! its deadlines).

use std::collections::{BTreeMap, VecDeque};

use super::request::{Nanos, Request};

/// Parameters of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elevator {
    /// Number of requests of one kind, served in ascending order, before the kind may change.
    pub batch: u32,
    /// Number of read batches that may go before a waiting write batch.
    pub starved: u32,
    /// Number of sorted writes; further ones wait in order of arrival.
    pub depth: usize,
}

impl Default for Elevator {
    /// Returns the defaults of Linux: batches of 16, two of reads before one of writes, 128
    /// requests.
    fn default() -> Elevator {
        Elevator { batch: 16, starved: 2, depth: 128 }
    }
}

/// Requests of one kind, by their sector and the order of arrival.
type Sorted = BTreeMap<(u64, u64), (Request, Nanos)>;

/// Requests that wait for a drive.
#[derive(Clone, Debug)]
pub struct Queue {
    elevator: Elevator,
    /// Reads and writes.
    sorted: [Sorted; 2],
    waiting: VecDeque<(Request, Nanos)>,
    arrivals: u64,
    /// Kind of the current batch, and its remaining requests.
    kind: usize,
    left: u32,
    passed: u32,
    /// Sector after the end of the last taken request.
    last: u64,
}

impl Queue {
    /// Creates an empty queue.
    pub fn new(elevator: Elevator) -> Queue {
        Queue {
            elevator,
            sorted: [Sorted::new(), Sorted::new()],
            waiting: VecDeque::new(),
            arrivals: 0,
            kind: 0,
            left: 0,
            passed: 0,
            last: 0,
        }
    }

    /// Returns `true` if no request waits.
    pub fn is_empty(&self) -> bool {
        self.sorted.iter().all(BTreeMap::is_empty) && self.waiting.is_empty()
    }

    /// Adds a request that arrived at `now`.
    pub fn add(&mut self, now: Nanos, request: Request) {
        if request.is_write && self.sorted[1].len() >= self.elevator.depth.max(1) {
            self.waiting.push_back((request, now));
        } else {
            self.sort_in(request, now);
        }
    }

    fn sort_in(&mut self, request: Request, now: Nanos) {
        self.arrivals += 1;
        let key = (request.sector, self.arrivals);
        self.sorted[usize::from(request.is_write)].insert(key, (request, now));
    }

    /// Takes the next request, with its time of arrival.
    pub fn take(&mut self) -> Option<(Request, Nanos)> {
        let ahead = |sorted: &Sorted, last| sorted.range((last, 0)..).next().map(|(key, _)| *key);
        let mut next = None;
        if self.left > 0 {
            next = ahead(&self.sorted[self.kind], self.last);
        }
        if next.is_none() {
            self.choose_kind();
            self.left = self.elevator.batch.max(1);
            let sorted = &self.sorted[self.kind];
            // If nothing is ahead, continue with the lowest sector.
            next = ahead(sorted, self.last).or_else(|| sorted.keys().next().copied());
        }
        let (request, came) = self.sorted[self.kind].remove(&next?)?;
        self.left -= 1;
        self.last = request.sector + request.sectors;
        if request.is_write
            && let Some((request, came)) = self.waiting.pop_front()
        {
            self.sort_in(request, came);
        }
        Some((request, came))
    }

    fn choose_kind(&mut self) {
        let [reads, writes] = [0, 1].map(|kind: usize| !self.sorted[kind].is_empty());
        let is_writes_turn = writes && (!reads || self.passed >= self.elevator.starved);
        self.kind = usize::from(is_writes_turn);
        self.passed = match (is_writes_turn, writes) {
            (false, true) => self.passed + 1,
            _ => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(elevator: Elevator, requests: &[(u64, bool)]) -> Vec<(u64, bool)> {
        let mut queue = Queue::new(elevator);
        for (id, (sector, is_write)) in requests.iter().enumerate() {
            let request =
                Request { sector: *sector, sectors: 1, is_write: *is_write, id: id as u64 };
            queue.add(0, request);
        }
        let mut all = Vec::new();
        while let Some((request, _)) = queue.take() {
            all.push((request.sector, request.is_write));
        }
        assert!(queue.is_empty());
        all
    }

    #[test]
    fn requests_leave_in_the_order_of_their_places() {
        let (r, w) = (|sector| (sector, false), |sector| (sector, true));
        let all = Elevator::default();
        assert_eq!(order(all, &[r(7), r(3), r(5)]), [r(3), r(5), r(7)]);
        // Reads come first, then writes from the arm's position on, then from the lowest.
        assert_eq!(order(all, &[w(9), w(1), r(5)]), [r(5), w(9), w(1)]);
        // Two writes are sorted at a time.
        let two = Elevator { depth: 2, ..all };
        assert_eq!(order(two, &[w(9), w(5), w(1), w(2)]), [w(5), w(9), w(1), w(2)]);
    }

    #[test]
    fn writes_wait_for_two_batches_of_reads_and_no_longer() {
        let (r, w) = (|sector| (sector, false), |sector| (sector, true));
        let one = Elevator { batch: 1, ..Elevator::default() };
        let got = order(one, &[w(1), r(2), r(3), r(4), r(5)]);
        assert_eq!(got, [r(2), r(3), w(1), r(4), r(5)]);
        let pairs = Elevator { batch: 2, starved: 1, ..one };
        let got = order(pairs, &[w(1), w(2), w(3), r(2), r(3), r(4)]);
        assert_eq!(got, [r(2), r(3), w(1), w(2), r(4), w(3)]);
    }
}
