//! The real traces read with automatic detection and give the counts that are published for them.
#![allow(clippy::print_stdout, reason = "a skipped trace is announced")]

use std::collections::HashSet;
use std::path::PathBuf;

use millpond_workload::formats::{ReadOptions, open};
use millpond_workload::trace::{BATCH_LEN, Batch};

/// References, distinct pages and writes of a trace.
fn counts(path: &PathBuf) -> (u64, u64, u64) {
    let mut source = open(path, &ReadOptions::default()).unwrap();
    let mut batch = Batch::default();
    let mut seen = HashSet::new();
    let (mut references, mut writes) = (0, 0);
    loop {
        batch.clear();
        let n = source.fill(&mut batch, BATCH_LEN).unwrap();
        if n == 0 {
            return (references, seen.len() as u64, writes);
        }
        assert_eq!(batch.pages.len(), n);
        assert_eq!(batch.marks.len(), n);
        references += n as u64;
        writes += batch.marks.iter().filter(|m| m.is_write()).count() as u64;
        seen.extend(batch.pages.iter().copied());
    }
}

fn check(folder: &str, traces: &[(&str, u64, u64, u64)]) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    for (name, references, unique, writes) in traces {
        let path = root.join(name);
        if !path.exists() {
            println!("skipped: {name} is not in {folder}");
            continue;
        }
        assert_eq!(counts(&path), (*references, *unique, *writes), "{name}");
    }
}

#[test]
fn the_shipped_traces_have_their_published_counts() {
    check(
        "traces",
        &[
            ("arc_OLTP.txt.gz", 914_145, 186_880, 0),
            ("cache2k_web07.txt.gz", 76_118, 20_484, 0),
            ("cache2k_web12.txt.gz", 95_607, 13_756, 0),
        ],
    );
}

#[test]
fn the_small_shared_traces_have_their_published_counts() {
    check(
        "../shared/traces",
        &[
            ("lirs_2_pools.txt.gz", 100_000, 9_939, 0),
            ("lirs_backf.txt.gz", 9_000, 751, 0),
            ("lirs_cpp.txt.gz", 9_047, 1_223, 0),
            ("lirs_cs.txt.gz", 6_781, 1_409, 0),
            ("lirs_gli.txt.gz", 6_015, 2_529, 0),
            ("lirs_loop.txt.gz", 505_500, 1_011, 0),
            ("lirs_multi1.txt.gz", 15_858, 2_606, 0),
            ("lirs_multi2.txt.gz", 26_311, 5_684, 0),
            ("lirs_multi3.txt.gz", 30_241, 7_454, 0),
            ("lirs_ps.txt.gz", 10_448, 3_083, 0),
            ("lirs_scan.txt.gz", 50_025, 2_001, 0),
            ("lirs_sprite.txt.gz", 133_996, 7_075, 0),
            ("lirs_zigzag.txt.gz", 52_001, 2_001, 0),
            ("ucsd_gcc_page4k.txt.gz", 515_683, 294, 197_486),
            ("ucsd_gzip_page4k.txt.gz", 481_044, 39_856, 160_603),
            ("ucsd_mcf_page4k.txt.gz", 727_230, 1_442, 721_258),
            ("ucsd_swim_page4k.txt.gz", 303_193, 135, 82_525),
            ("ucsd_twolf_page4k.txt.gz", 482_824, 89, 131_421),
            ("lcs_cloudPhysicsIO.txt.gz", 113_872, 48_974, 66_898),
            ("lcs_twitter_cluster52.txt.gz", 1_000_000, 143_542, 0),
        ],
    );
}

#[test]
fn the_larger_shared_traces_have_their_published_counts() {
    check(
        "../shared/traces",
        &[
            ("arc_P3.txt.gz", 3_912_296, 762_543, 0),
            ("cloudphysics_w106.txt.gz", 5_292_456, 275_171, 0),
            ("cache2k_orm-busy.txt.gz", 5_000_000, 76_349, 0),
            ("cache2k_orm-night.txt.gz", 5_000_000, 86_466, 0),
            ("arc_P2.extents.txt.gz", 12_729_495, 913_347, 0),
            ("arc_P6.extents.txt.gz", 12_672_123, 773_770, 0),
            ("arc_P12.extents.txt.gz", 13_208_930, 3_153_310, 0),
        ],
    );
}
