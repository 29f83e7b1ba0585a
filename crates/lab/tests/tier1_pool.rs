//! The simulated first tier: its requests to storage, and their guarantees.

use std::collections::{HashMap, HashSet};

use millpond_base::{Lsn, Mark, Reason, Share};
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::tier1::{SyncRule, Tier1, Tier1Counts, Tier1Options};
use millpond_policies::config::Spec;
use millpond_policies::contract::Policy;
use millpond_policies::registry::{Visitor, visit_all};
use millpond_policies::tier2::T2Lru;
use millpond_workload::trace::{Batch, Source, TraceError};

/// A trace in memory, given out in odd pieces.
#[derive(Clone)]
struct Memory(Batch, usize);

impl Source for Memory {
    fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError> {
        let end = self.0.len().min(self.1 + limit.min(777));
        batch.pages.extend_from_slice(&self.0.pages[self.1..end]);
        batch.marks.extend_from_slice(&self.0.marks[self.1..end]);
        Ok(end - std::mem::replace(&mut self.1, end))
    }
}

/// `len` references to `pages` pages, skewed, of which `writes` in a hundred write; now and then
/// a run of pages is read in sequence.
fn references(seed: u64, len: usize, pages: u64, writes: u8) -> Memory {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut batch = Batch::default();
    while batch.len() < len {
        if rng.u32(0..400) == 0 {
            let first = rng.u64(0..pages);
            (first..(first + 12).min(pages)).for_each(|p| batch.push(p, Mark::READ));
        }
        let page = (0..4).map(|_| rng.u64(0..pages)).min().unwrap();
        let mark = if rng.u8(0..100) < writes { Mark::WRITE } else { Mark::READ };
        batch.push(page * 7919 % pages, mark);
    }
    Memory(batch, 0)
}

fn requests(policy: &str, options: &Tier1Options, source: &Memory, piece: usize) -> Batch {
    let spec = Spec::parse(policy).unwrap();
    let registry = Registry::builtin();
    let entry = registry.find(&spec.id).unwrap();
    let mut tier = entry.tier1(&spec, options, Box::new(source.clone())).unwrap();
    let mut rows = Batch::default();
    while tier.fill(&mut rows, piece).unwrap() > 0 {}
    assert_eq!(rows.lsns.len(), rows.len());
    rows
}

fn counts(options: &Tier1Options, source: &Memory) -> Tier1Counts {
    let source = Box::new(source.clone());
    let mut tier = Tier1::new::<T2Lru>(&Default::default(), options, source);
    let mut rows = Batch::default();
    while tier.fill(&mut rows, 5_000).unwrap() > 0 {}
    tier.check().unwrap();
    tier.counts()
}

/// Every update must be written and synced before the log has grown by the gap, and nothing is
/// written that was not updated.
fn assert_durable(name: &str, options: &Tier1Options, source: &Memory, rows: &Batch) {
    let mut updates: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut lsn = 0;
    for (page, mark) in source.0.pages.iter().zip(&source.0.marks) {
        if mark.is_write() {
            lsn += 1;
            updates.entry(*page).or_default().push(lsn);
        }
    }
    let (mut written, mut durable) = (HashMap::new(), HashMap::new());
    let mut late = HashMap::new();
    for at in 0..rows.len() {
        let (page, mark, Lsn(now)) = (rows.pages[at], rows.marks[at], rows.lsns[at]);
        if !mark.is_write() {
            continue;
        }
        let of_page = updates.get(&page).map_or(&[][..], |u| &u[..]);
        let upto = of_page.iter().copied().filter(|u| *u <= now).max();
        if mark.reason() == Reason::Dsync {
            let upto: u64 = written.get(&page).copied().expect("a dsync of a page never written");
            let before: u64 = durable.insert(page, upto).unwrap_or(0);
            for update in of_page.iter().filter(|u| **u > before && **u <= upto) {
                late.insert((page, *update), now - update);
            }
        } else {
            let upto = upto.unwrap_or_else(|| panic!("{name}: page {page} has no update"));
            let before = written.insert(page, upto);
            assert!(before.is_none_or(|b| b < upto), "{name}: page {page} written while clean");
        }
    }
    for (page, of_page) in &updates {
        for update in of_page.iter().filter(|u| **u + options.lsn_gap <= lsn) {
            let after = late.get(&(*page, *update)).copied();
            let in_time = after.is_some_and(|a| a <= options.lsn_gap);
            assert!(in_time, "{name}: update {update} of page {page} durable after {after:?}");
        }
    }
}

#[test]
fn every_update_is_durable_before_its_log_must_go() {
    let source = references(1, 20_000, 600, 45);
    for policy in ["lru", "clock", "t2-arc", "random"] {
        for (frames, gap) in [(1, 1), (3, 50), (60, 700), (200, 5_000), (600, 100)] {
            for mysql in [false, true] {
                let mut options = Tier1Options::new(frames, gap);
                (options.readahead, options.cleaning.neighbours) = (mysql, mysql);
                let rows = requests(policy, &options, &source, 1_000);
                let name = format!("{policy}, {frames} frames, gap {gap}, mysql {mysql}");
                assert_durable(&name, &options, &source, &rows);
            }
        }
    }
}

#[test]
fn each_rule_makes_updates_durable_in_time_and_syncs_what_it_says() {
    let source = references(11, 20_000, 600, 45);
    for (name, sync) in SyncRule::ALL {
        for freed in [0.0, 1.0 / 32.0, 0.125, 1.0] {
            let plain = Tier1Options::new(60, 700);
            let options = Tier1Options { sync, freed: Share(freed), ..plain };
            let rows = requests("lru", &options, &source, 1_000);
            assert_durable(name, &options, &source, &rows);
        }
    }
    let of = |sync| {
        let options = Tier1Options { sync, ..Tier1Options::new(60, 700) };
        (counts(&options, &source), requests("lru", &options, &source, 1_000))
    };
    let [(org, rows), (rec, of_rec), (range, _)] =
        [SyncRule::EachWrite, SyncRule::EachRecov, SyncRule::Ranges].map(of);
    // Each write has its dsync behind it.
    assert_eq!(org.dsyncs, org.synch + org.replace + org.recov);
    let writes = (0..rows.len()).filter(|at| rows.marks[*at].is_write());
    for pair in writes.collect::<Vec<_>>().chunks(2) {
        assert_eq!(rows.pages[pair[0]], rows.pages[pair[1]]);
        assert!(!rows.marks[pair[0]].is_dsync() && rows.marks[pair[1]].is_dsync());
    }
    // The whole file is synced no earlier than ranges, and more of it.
    assert!(range.dsyncs < rec.dsyncs && rec.dsyncs < org.dsyncs, "{range:?} {rec:?} {org:?}");
    // After a run of dsyncs nothing that was written waits.
    let mut waiting: HashSet<u64> = HashSet::new();
    for at in 0..of_rec.len() {
        let (page, mark) = (of_rec.pages[at], of_rec.marks[at]);
        if mark.is_dsync() {
            assert!(waiting.remove(&page));
            let is_last = at + 1 == of_rec.len() || !of_rec.marks[at + 1].is_dsync();
            assert!(!is_last || waiting.is_empty());
        } else if mark.is_write() {
            waiting.insert(page);
        }
    }
}

#[test]
fn the_same_trace_gives_the_same_requests_in_any_pieces() {
    let source = references(2, 8_000, 500, 40);
    let options = Tier1Options::new(50, 400);
    let whole = requests("clock", &options, &source, usize::MAX);
    for piece in [1, 13, 4_096] {
        let again = requests("clock", &options, &source, piece);
        assert_eq!((&again.pages, &again.lsns), (&whole.pages, &whole.lsns));
        assert_eq!(again.marks, whole.marks);
    }
}

#[test]
fn a_small_gap_makes_recov_writes_and_a_large_one_almost_none() {
    // As li's tables 3.2 and 5.4: softmax 50, 400 and 4000.
    let source = references(3, 120_000, 4_000, 45);
    let with = |gap| counts(&Tier1Options::new(1_500, gap), &source);
    let (small, medium, large) = (with(100), with(5_000), with(40_000));
    assert!(small.recov * 10 > (small.recov + small.replace + small.synch) * 9, "{small:?}");
    assert!(medium.recov < small.recov && medium.replace > small.replace, "{medium:?}");
    assert!(large.recov * 20 < large.replace, "{large:?}");
    assert!(large.dsyncs < medium.dsyncs && medium.dsyncs < small.dsyncs);
}

#[test]
fn a_larger_pool_sends_fewer_reads_and_a_larger_share_of_recov_writes() {
    // As li's table 3.2: 60 K, 300 K and 540 K pages of 606 K.
    let source = references(4, 120_000, 4_000, 45);
    let with = |frames| counts(&Tier1Options::new(frames, 12_000), &source);
    let (small, medium, large) = (with(400), with(2_000), with(3_600));
    assert!(small.reads > 2 * medium.reads && medium.reads > large.reads);
    let recov_share = |c: Tier1Counts| c.recov as f64 / (c.recov + c.replace + c.synch) as f64;
    assert!(recov_share(small) < recov_share(medium));
    assert!(recov_share(medium) < recov_share(large));
}

#[test]
fn workers_write_only_when_the_free_list_runs_dry() {
    let source = references(5, 40_000, 2_000, 45);
    let mut options = Tier1Options::new(200, 1_000_000);
    options.cleaning.dirty = Share(1.0);
    (options.cleaning.free, options.round) = (Share(0.05), 8);
    assert_eq!(counts(&options, &source).synch, 0);
    options.round = 1_000_000;
    let never = counts(&options, &source);
    assert!(never.synch > 1_000 && never.replace == 0, "{never:?}");
    // With a dirty share the cleaners write, too.
    options.cleaning.dirty = Share(0.3);
    let dirty = counts(&options, &source);
    assert!(dirty.replace > 0 && dirty.synch < never.synch, "{dirty:?}");
}

#[test]
fn pages_in_the_free_list_come_back_without_a_read() {
    let source = references(6, 40_000, 500, 45);
    let counts = counts(&Tier1Options::new(500, 1_000_000), &source);
    assert!(counts.rescues > 100, "{counts:?}");
    let distinct: HashSet<u64> = source.0.pages.iter().copied().collect();
    assert_eq!(counts.reads, distinct.len() as u64);
}

/// Of the READ requests, the share that another READ of the same page follows.
fn read_after_read(rows: &Batch) -> f64 {
    let (mut last, mut pairs, mut reads) = (HashMap::new(), 0, 0);
    for (page, mark) in rows.pages.iter().zip(&rows.marks) {
        if mark.reason() != Reason::Dsync {
            let before = last.insert(*page, mark.is_write());
            pairs += u32::from(!mark.is_write() && before == Some(false));
            reads += u32::from(!mark.is_write());
        }
    }
    f64::from(pairs) / f64::from(reads)
}

#[test]
fn read_ahead_and_neighbours_make_the_trace_like_mysqls() {
    // Reads of whole runs, and updates of neighbours.
    let mut rng = fastrand::Rng::with_seed(7);
    let mut batch = Batch::default();
    for _ in 0..6_000 {
        let first = rng.u64(0..60) * 64 + rng.u64(0..60);
        (first..first + 3).for_each(|p| batch.push(p, Mark::READ));
        let page = rng.u64(0..3_000).min(rng.u64(0..3_000));
        (page..page + 2).for_each(|p| batch.push(p, Mark::WRITE));
    }
    let source = Memory(batch, 0);
    let plain = Tier1Options::new(400, 2_000);
    let ahead = Tier1Options { readahead: true, ..plain.clone() };
    let mut together = plain.clone();
    together.cleaning.neighbours = true;
    let rows = |options| requests("lru", options, &source, 9_999);
    assert!(read_after_read(&rows(&ahead)) > read_after_read(&rows(&plain)));
    assert!(counts(&ahead, &source).ahead > 1_000 && counts(&plain, &source).ahead == 0);
    let (alone, with) = (counts(&plain, &source), counts(&together, &source));
    let writes = |c: Tier1Counts| c.synch + c.replace + c.recov;
    assert!(writes(with) > writes(alone), "{alone:?} {with:?}");
}

struct Tiny(Memory);

impl Visitor for Tiny {
    fn visit<P: Policy>(&mut self) {
        if P::NEEDS_FUTURE {
            return;
        }
        for frames in [1, 2, 3, 9] {
            let mut options = Tier1Options::new(frames, 40);
            (options.readahead, options.cleaning.neighbours) = (true, true);
            options.cleaning.dirty = Share(if frames == 2 { 0.0 } else { 0.5 });
            let source = Box::new(self.0.clone());
            let mut tier = Tier1::new::<P>(&Default::default(), &options, source);
            let mut rows = Batch::default();
            while tier.fill(&mut rows, 50).unwrap() > 0 {
                assert_eq!(tier.check(), Ok(()), "{} with {frames} frames", P::INFO.id);
            }
            assert_durable(P::INFO.id, &options, &self.0, &rows);
        }
    }
}

#[test]
fn every_online_policy_runs_a_first_tier_of_any_size() {
    visit_all(&mut Tiny(references(8, 1_500, 40, 40)));
}

#[test]
fn offline_policies_are_refused() {
    let (registry, spec) = (Registry::builtin(), Spec::parse("min-rw").unwrap());
    let source = Box::new(references(9, 1, 1, 0));
    let made = registry.find("min-rw").unwrap().tier1(&spec, &Tier1Options::new(1, 1), source);
    assert!(matches!(made, Err(PolicyError::NeedsFuture(_))));
}
