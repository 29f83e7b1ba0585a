//! The statistics agree with traces small enough to count by hand.

use millpond_base::{AccessKind, Mark, Reason};
use millpond_workload::formats::{ReadOptions, open_reader};
use millpond_workload::stat::{Describer, RequestType, TraceStat, describe};
use millpond_workload::trace::Batch;

fn stat_of(references: &[(u64, Mark)]) -> TraceStat {
    let mut batch = Batch::default();
    references.iter().for_each(|(page, mark)| batch.push(*page, *mark));
    let mut describer = Describer::new();
    describer.add(&batch).unwrap();
    describer.finish(Vec::new())
}

#[test]
fn sizes_shares_reuse_and_footprint_of_a_tiny_trace() {
    let text = b"1\n2 W\n1\n3\n3 W\n2\n";
    let reader = Box::new(std::io::Cursor::new(text.to_vec()));
    let mut source = open_reader("t", reader, &ReadOptions::default()).unwrap();
    let stat = describe(&mut *source).unwrap();
    assert_eq!((stat.references, stat.pages, stat.writes), (6, 3, 2));
    assert_eq!((stat.hot_pages, stat.warm_pages), (3, 3));
    assert_eq!(stat.top_ten_share, 1.0);
    // 1 again after 2; 3 again at once; 2 again after 1 and 3.
    let buckets: Vec<(u64, u64, u64)> =
        stat.reuse.buckets.iter().map(|b| (b.from, b.to, b.references)).collect();
    assert_eq!(buckets, [(0, 0, 1), (1, 1, 1), (2, 3, 1)]);
    assert_eq!(stat.reuse.first, 3);
    let points: Vec<(u64, u64)> = stat.footprint.iter().map(|p| (p.references, p.pages)).collect();
    assert_eq!(points, [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 3)]);
    assert!(stat.storage.is_none() && stat.kinds.is_empty());
}

#[test]
fn long_traces_keep_at_most_256_points_of_the_footprint() {
    let references: Vec<(u64, Mark)> = (0..100_001).map(|i| (i, Mark::READ)).collect();
    let stat = stat_of(&references);
    assert!((100..=257).contains(&stat.footprint.len()));
    let last = stat.footprint.last().unwrap();
    assert_eq!((last.references, last.pages), (100_001, 100_001));
    let steps: Vec<u64> =
        stat.footprint.windows(2).map(|w| w[1].references - w[0].references).collect();
    assert!(steps[..steps.len() - 1].iter().all(|s| *s == steps[0]));
}

#[test]
fn storage_requests_are_counted_by_type_and_by_what_follows_them() {
    let write = |reason| Mark::of(AccessKind::Write).with_reason(reason);
    let stat = stat_of(&[
        (1, Mark::READ),
        (2, Mark::READ),
        (1, write(Reason::Replace)),
        (1, Mark::READ),
        (2, write(Reason::Recov)),
        (1, write(Reason::Replace)),
        (1, write(Reason::Dsync)),
        (1, write(Reason::Replace)),
        (3, write(Reason::Synch)),
    ]);
    let storage = stat.storage.unwrap();
    assert_eq!((storage.requests, storage.dsyncs), (8, 1));
    assert_eq!(stat.references, 8);
    let row = |request| *storage.types.iter().find(|t| t.request == request).unwrap();
    let read = row(RequestType::Read);
    assert_eq!((read.requests, read.share), (3, 0.375));
    assert_eq!((read.then_replace, read.then_recov, read.then_any_write()), (2, 1, 3));
    let replace = row(RequestType::Replace);
    let then = (replace.then_read, replace.then_replace, replace.then_none);
    assert_eq!((replace.requests, then), (3, (1, 1, 1)));
    assert_eq!(row(RequestType::Synch).then_none, 1);
    assert_eq!(row(RequestType::Recov).then_none, 1);
    assert_eq!(storage.types.len(), 4);
}
