//! Tests with systems small enough to follow by hand.

use std::collections::VecDeque;

use super::super::disk::DiskSpec;
use super::super::queue::Elevator;
use super::super::single::Single;
use super::*;

/// Listed transactions.
struct Given(VecDeque<Vec<(u64, Mark)>>);

impl Requests for Given {
    fn next(&mut self, rows: &mut Vec<(u64, Mark)>) -> Result<bool, TraceError> {
        let Some(next) = self.0.pop_front() else { return Ok(false) };
        rows.extend(next);
        Ok(true)
    }
}

fn write(page: u64, reason: Reason) -> (u64, Mark) {
    (page, Mark::WRITE.with_reason(reason))
}

fn read(page: u64) -> (u64, Mark) {
    (page, Mark::READ)
}

/// Device that takes a millisecond per request, one after the other.
#[derive(Default)]
struct Slow {
    queue: VecDeque<Request>,
    sent: Vec<(u64, u64, bool)>,
    at_work: Option<Nanos>,
}

const MILLI: Nanos = 1_000_000;

impl Device for Slow {
    fn submit(&mut self, now: Nanos, request: Request) {
        self.sent.push((request.sector / 32, request.sectors / 32, request.is_write));
        self.queue.push_back(request);
        self.at_work.get_or_insert(now + MILLI);
    }

    fn next(&self) -> Option<Nanos> {
        self.at_work
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<u64>) {
        while let Some(at) = self.at_work
            && at <= now
        {
            done.extend(self.queue.pop_front().map(|request| request.id));
            self.at_work = (!self.queue.is_empty()).then_some(at + MILLI);
        }
    }
}

fn options(clients: usize) -> SystemOptions {
    let (think, page_sectors) = (10_000, 32);
    let (cache, by_last_use) = (100, false);
    SystemOptions {
        clients,
        page_sectors,
        think,
        backlog: 1,
        cache,
        dirty: 0.5,
        batch: 8,
        by_last_use,
    }
}

fn run(
    options: SystemOptions,
    transactions: Vec<Vec<(u64, Mark)>>,
) -> (SystemStat, Vec<(u64, u64, bool)>) {
    let (mut slow, count) = (Slow::default(), transactions.len() as u64);
    let mut given = Given(transactions.into());
    let stat = System::new(options, &mut slow, &mut given).run(0, count).unwrap();
    (stat, slow.sent)
}

#[test]
fn reads_wait_and_are_served_by_the_cache_the_second_time() {
    let (stat, sent) = run(options(1), vec![vec![read(1), read(2)], vec![read(1)], vec![]]);
    assert_eq!(sent, [(1, 1, false), (2, 1, false)]);
    assert_eq!((stat.reads, stat.read_hits, stat.transactions), (3, 1, 3));
    assert_eq!(stat.time, 2 * MILLI + 2 * 10_000, "two reads, and twice what lies between");
    assert_eq!((stat.meter.busy, stat.meter.sectors_read), (2 * MILLI, 64));
}

#[test]
fn deferred_writes_wait_for_nobody_and_a_call_writes_what_it_names_in_order() {
    let replace = [7, 3, 4].map(|page| write(page, Reason::Replace)).to_vec();
    let dsyncs = [9, 4, 3].map(|page| write(page, Reason::Dsync));
    let recover = [vec![write(9, Reason::Recov)], dsyncs.to_vec()].concat();
    let after = vec![read(3), read(20)];
    let (stat, sent) = run(options(1), vec![replace, recover, after]);
    assert_eq!(sent, [(3, 2, true), (9, 1, true), (20, 1, false)], "7 stays");
    assert_eq!((stat.syncs, stat.synced, stat.writes, stat.left_dirty), (1, 3, 4, 1));
    assert_eq!(stat.read_hits, 1);
    assert_eq!(stat.time, 3 * MILLI + 10_000, "the read waits behind two writes");
}

#[test]
fn the_cleaner_writes_one_after_the_other_and_clients_wait_where_it_has_too_much() {
    let pair = |page| vec![write(page, Reason::Replace), write(page, Reason::Dsync)];
    let all = [pair(1), pair(2), pair(3), pair(4)].concat();
    let (stat, sent) = run(options(1), vec![all.clone()]);
    assert_eq!(sent, [(1, 1, true), (2, 1, true), (3, 1, true)], "each has its call");
    // One call is running and one is queued. The third and the fourth wait a turn each, and
    // then one is running and one queued again.
    assert_eq!((stat.time, stat.syncs), (2 * MILLI, 0));
    let patient = SystemOptions { backlog: 10, ..options(1) };
    assert_eq!(run(patient, vec![all]).0.time, 0);
    let synch = vec![write(1, Reason::Synch), write(1, Reason::Dsync)];
    assert_eq!(run(options(1), vec![synch]).0.time, MILLI, "its own, and waits");
}

#[test]
fn nothing_begins_while_the_log_is_full() {
    let recover = |page| vec![write(page, Reason::Recov), write(page, Reason::Dsync)];
    // The second recovery waits for the first, and the fourth transaction for the second.
    let all = vec![recover(1), vec![], recover(2), vec![], vec![]];
    let (stat, _) = run(options(1), all);
    assert_eq!((stat.syncs, stat.synced), (2, 2));
    assert!((MILLI..2 * MILLI).contains(&stat.time), "{}", stat.time);
    let (stat, _) = run(options(1), vec![recover(1), vec![], vec![], vec![]]);
    assert!(stat.time < MILLI, "one goes on beside them: {}", stat.time);
}

#[test]
fn the_kernel_writes_what_is_too_much_and_each_dirty_page_once() {
    let small = SystemOptions { cache: 16, dirty: 0.5, batch: 4, ..options(2) };
    let all: Vec<_> = (0..200).map(|at| vec![write(at * 2, Reason::Replace)]).collect();
    let (stat, sent) = run(small, all);
    let written: Vec<u64> = sent.iter().map(|(page, ..)| *page).collect();
    let mut once = written.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), written.len());
    assert_eq!(stat.background, written.len() as u64);
    assert_eq!(stat.background + stat.left_dirty, 200);
    assert!(stat.time > 100 * MILLI, "the disk's pace: {}", stat.time);
}

#[test]
fn what_was_before_the_end_of_the_warm_up_does_not_count() {
    let all: Vec<_> = (0..10).map(|page| vec![read(page)]).collect();
    let (mut slow, mut given) = (Slow::default(), Given(all.into()));
    let stat = System::new(options(1), &mut slow, &mut given).run(4, 100).unwrap();
    assert_eq!((stat.transactions, stat.reads, stat.meter.reads), (6, 6, 6));
    assert!(stat.time >= 6 * MILLI && stat.time < 7 * MILLI);
}

#[test]
fn every_dirty_page_is_written_once_per_call_on_a_disk_too() {
    let mut rng = fastrand::Rng::with_seed(5);
    let (mut dirty, mut expected) = (std::collections::BTreeSet::new(), 0);
    let mut all = Vec::new();
    for at in 0..2_000u64 {
        let page = rng.u64(0..5_000);
        let mut rows = vec![read(rng.u64(0..5_000)), write(page, Reason::Replace)];
        dirty.insert(page);
        if at % 40 == 39 {
            let named: Vec<u64> = dirty.iter().copied().filter(|page| page % 3 > 0).collect();
            rows.push(write(9_999, Reason::Recov));
            dirty.insert(9_999);
            rows.extend(named.iter().chain([&9_999]).map(|page| write(*page, Reason::Dsync)));
            expected += named.len() as u64 + 1 - u64::from(named.contains(&9_999));
            named.iter().for_each(|page| {
                dirty.remove(page);
            });
            dirty.remove(&9_999);
        }
        all.push(rows);
    }
    let large = SystemOptions { cache: 10_000, dirty: 1.0, ..options(1) };
    let mut disk = Single::new(DiskSpec::default(), Elevator::default(), 1);
    let mut given = Given(all.into());
    // With one client, calls are in order.
    let stat = System::new(large, &mut disk, &mut given).run(0, 2_000).unwrap();
    assert_eq!((stat.synced, stat.left_dirty), (expected, dirty.len() as u64));
    assert!(stat.meter.sectors_written <= expected * 32);
    assert_eq!(stat.meter.sectors_read, (stat.reads - stat.read_hits) * 32);
}
