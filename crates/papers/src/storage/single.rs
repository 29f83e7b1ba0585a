//! One disk behind a queue.

use super::device::Device;
use super::disk::{Disk, DiskSpec};
use super::queue::{Elevator, Queue};
use super::request::{Nanos, Request};

/// A disk with a sorted queue. The drive holds some requests and serves them in the order in
/// which it can reach them (tagged queuing).
#[derive(Clone, Debug)]
pub struct Single {
    disk: Disk,
    queue: Queue,
    /// Maximum number of requests that the drive holds.
    tags: usize,
    held: Vec<(Request, Nanos)>,
    at_work: Option<(Nanos, u64)>,
}

impl Single {
    /// Creates an idle disk whose drive holds `tags` requests, at least 1, and always serves the
    /// one that completes first.
    pub fn new(spec: DiskSpec, elevator: Elevator, tags: usize) -> Single {
        let (disk, queue) = (Disk::new(spec), Queue::new(elevator));
        Single { disk, queue, tags: tags.max(1), held: Vec::new(), at_work: None }
    }

    fn begin(&mut self, now: Nanos) {
        while self.held.len() < self.tags
            && let Some((request, _)) = self.queue.take()
        {
            self.held.push((request, now));
        }
        let done = |(request, came): &(Request, Nanos)| self.disk.done_at(now, *came, request);
        let first = (0..self.held.len()).min_by_key(|at| (done(&self.held[*at]), *at));
        let Some(first) = first else { return };
        let (request, came) = self.held.remove(first);
        self.at_work = Some((self.disk.serve(now, came, &request), request.id));
    }
}

impl Device for Single {
    fn submit(&mut self, now: Nanos, request: Request) {
        self.queue.add(now, request);
        if self.at_work.is_none() {
            self.begin(now);
        }
    }

    fn next(&self) -> Option<Nanos> {
        self.at_work.map(|(done, _)| done)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<u64>) {
        while let Some((at, id)) = self.at_work
            && at <= now
        {
            self.at_work = None;
            done.push(id);
            self.begin(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time of a device for these requests, all submitted at the start.
    pub(crate) fn time(device: &mut dyn Device, sectors: &[u64]) -> Nanos {
        for (id, sector) in sectors.iter().enumerate() {
            let (sector, id) = (*sector, id as u64);
            device.submit(0, Request { sector, sectors: 32, is_write: true, id });
        }
        let (mut done, mut now) = (Vec::new(), 0);
        while let Some(next) = device.next() {
            now = next;
            device.advance(now, &mut done);
        }
        done.sort_unstable();
        assert_eq!(done, (0..sectors.len() as u64).collect::<Vec<_>>(), "each once");
        now
    }

    #[test]
    fn a_sorted_batch_is_faster_than_one_in_disorder_and_a_row_much_faster() {
        let mut rng = fastrand::Rng::with_seed(1);
        let random: Vec<u64> = (0..1000).map(|_| rng.u64(0..65_536) * 32).collect();
        let row: Vec<u64> = (0..1000).map(|at| at * 32).collect();
        let disk = |depth, tags| {
            Single::new(DiskSpec::default(), Elevator { depth, ..Elevator::default() }, tags)
        };
        let [one, some, all] = [1, 128, 1000].map(|depth| time(&mut disk(depth, 1), &random));
        assert!(some < one && all < some, "{one} {some} {all}");
        // 3.0 ms of half a turn, 0.2 of transfer, 0.5 of settling, 0.8 of seek.
        assert!((4_100_000..4_900_000).contains(&(one / 1000)), "{}", one / 1000);
        // A drive that holds one request starts the next too late, and misses it by a turn.
        let [missed, row] = [1, 2].map(|tags| time(&mut disk(128, tags), &row));
        assert!(row < all / 5 && missed > 5_900_000 * 1000, "{row} {all} {missed}");
        let tagged = time(&mut disk(128, 16), &random);
        assert!(tagged < some, "{tagged} {some}");
    }
}
