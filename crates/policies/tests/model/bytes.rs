//! Operation sequences as bytes: what a fuzzer mutates, a seed draws, and a failure shrinks to.
//!
//! Four bytes of header choose policy, setting, pool size and habits of the host; then every four
//! bytes are one operation. Each byte sequence means something.

use std::time::{Duration, Instant};

use millpond_base::{Mark, PageKind, Reason};
use millpond_policies::config::Spec;

use super::settings::settings;
use super::subject::Kind;
use super::world::drive;

/// Time spent on making a failure shorter.
const SHRINK_MAX: Duration = Duration::from_secs(3);

/// Bytes of one operation.
pub const RECORD: usize = 4;

/// One thing that happens to the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A page is referenced: fixed and unfixed at once.
    Reference { page: u32, mark: Mark },
    /// A page is referenced and stays fixed.
    Fix { page: u32, mark: Mark },
    /// A page is referenced; if it has to be loaded, the load stays in flight.
    StartLoad { page: u32, mark: Mark },
    /// A load in flight ends, or fails.
    EndLoad { which: u8, fails: bool },
    /// One of the fixed frames is unfixed.
    Unfix { which: u8 },
    /// All are.
    UnfixAll,
    /// A page is dropped.
    Forget { frame: u8 },
    /// The host evicts ahead; frames whose number is `latched` modulo 8 are latched meanwhile.
    Evict { frames: u8, steps: u8, latched: u8 },
    /// All begun writes end.
    EndWrites,
    /// A page cleaner writes a page.
    Clean { frame: u8 },
    /// A page's parent now points to it directly.
    Swizzle { child: u8, parent: u8 },
    /// A page's parent no longer points to it directly.
    Unswizzle { child: u8 },
    /// A page will never go.
    Permanent { frame: u8 },
    /// From now on this number in 256 offers meet a page that changes meanwhile, or is dropped.
    Trouble { changes: u8, vanishes: u8 },
}

/// A policy under some setting, for a pool of some size and some habits.
#[derive(Clone)]
pub struct Case {
    pub kind: Kind,
    pub spec: Spec,
    pub frames: u32,
    pub seed: u64,
    /// Page ids are dense.
    pub dense: bool,
    /// The host writes dirty victims itself instead of refusing them.
    pub takes_dirty: bool,
    /// The host asks whether a page is wanted.
    pub bypasses: bool,
}

impl Case {
    /// Distinct pages that operations name.
    pub fn pages(&self) -> u32 {
        self.frames * 3 + 8
    }
}

/// The case and the operations that `bytes` mean; None if they are too few.
pub fn case_of_bytes<'b>(kinds: &[Kind], bytes: &'b [u8]) -> Option<(Case, &'b [u8])> {
    let (header, records) = bytes.split_at_checked(4)?;
    let kind = kinds[header[0] as usize % kinds.len()].clone();
    let mut specs = settings(&kind, 6, u64::from(header[3]));
    let spec = specs.swap_remove(header[1] as usize % specs.len());
    let sizes = [1, 2, 3, 4, 5, 7, 10, 16, 33, 64];
    let case = Case {
        kind,
        spec,
        frames: sizes[header[2] as usize % sizes.len()],
        seed: u64::from(header[3]),
        dense: header[3] & 1 == 0,
        takes_dirty: header[3] & 2 == 0,
        bypasses: header[3] & 12 == 0,
    };
    Some((case, records))
}

/// The operations that `records` mean for `pages` pages.
pub fn decode(records: &[u8], pages: u32) -> Vec<Op> {
    records.chunks_exact(RECORD).enumerate().map(|(i, r)| decode_one(i, r, pages)).collect()
}

fn decode_one(index: usize, record: &[u8], pages: u32) -> Op {
    let (a, b, c) = (record[1], record[2], record[3]);
    // The product of two even draws leans to small numbers; one reference in four is of a loop.
    let page = match c >> 6 {
        0 => index as u32 % pages,
        _ => (u32::from(a) * u32::from(b) * pages) >> 16,
    };
    let mark = mark_of(c, page);
    match record[0] % 32 {
        0..=15 => Op::Reference { page, mark },
        16..=18 => Op::Fix { page, mark },
        19..=20 => Op::Unfix { which: a },
        21 => Op::StartLoad { page, mark },
        22 => Op::EndLoad { which: a, fails: c & 3 == 0 },
        23 => Op::Forget { frame: a },
        24 => Op::Evict { frames: a % 8 + 1, steps: b, latched: c },
        25 => Op::EndWrites,
        26 => Op::Swizzle { child: a, parent: b },
        27 => Op::Unswizzle { child: a },
        28 if c & 3 == 0 => Op::Permanent { frame: a },
        28 => Op::UnfixAll,
        29 => Op::Trouble { changes: if c & 1 == 0 { b } else { 0 }, vanishes: a >> 3 },
        30 => Op::UnfixAll,
        _ => Op::Clean { frame: a },
    }
}

fn mark_of(c: u8, page: u32) -> Mark {
    let reasons = [Reason::None, Reason::Synch, Reason::Replace, Reason::Recov];
    let mark = if c & 1 != 0 {
        Mark::WRITE.with_reason(reasons[usize::from(c >> 2 & 3)])
    } else {
        Mark::READ
    };
    mark.with_scan(c & 0x30 == 0x30).with_kind(PageKind(page as u8 % 5), page as u8 % 4)
}

/// `count` operations drawn by `seed`, as bytes.
pub fn random_records(seed: u64, count: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut records = vec![0; count * RECORD];
    random.fill(&mut records);
    records
}

/// A short part of `records` that still fails, its operations spelt out, and how it fails.
pub fn shrink(case: &Case, records: &[u8]) -> (Vec<Op>, String) {
    let fails = |records: &[u8]| drive(case, &decode(records, case.pages())).err();
    let mut now = records.to_vec();
    let mut why = fails(&now).unwrap_or_else(|| "it did not fail again".to_string());
    let mut chunk = (now.len() / RECORD / 2).max(1);
    let begun = Instant::now();
    while begun.elapsed() < SHRINK_MAX {
        let mut cut = false;
        let mut at = 0;
        while at < now.len() && begun.elapsed() < SHRINK_MAX {
            let mut shorter = now.clone();
            shorter.drain(at..(at + chunk * RECORD).min(now.len()));
            match fails(&shorter) {
                Some(reason) => (now, why, cut) = (shorter, reason, true),
                None => at += chunk * RECORD,
            }
        }
        if chunk == 1 && !cut {
            break;
        }
        chunk = (chunk / 2).max(1);
    }
    (decode(&now, case.pages()), why)
}
