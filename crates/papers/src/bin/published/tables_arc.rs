//! The tables of the ARC paper (FAST 2003) for the traces that are available.

use super::published::{Published, Unit, column, doubtful};

/// LIRS with a practically unlimited stack, as in its authors' program.
const LIRS: &[&str] = &["lirs(stack=2500x)"];

// These grids replace offline tuning. The grids for P12 are small, since each entry costs ten
// runs over thirteen million references.

const TWO_Q_OLTP: &[&str] = &[
    "2q(kin=5%,kout=50%)",
    "2q(kin=25%,kout=50%)",
    "2q(kin=25%,kout=100%)",
    "2q(kin=50%,kout=50%)",
    "2q(kin=50%,kout=100%)",
];
const LRU_2_OLTP: &[&str] = &[
    "lru-k(history=all,correlated=0)",
    "lru-k(history=all,correlated=100)",
    "lru-k(history=all,correlated=1000)",
    "lru-k(history=all,correlated=4000)",
    "lru-2-history",
];
const LRFU_OLTP: &[&str] = &[
    "lrfu(lambda=0.0001,correlated=25%)",
    "lrfu(lambda=0.0001,correlated=2x)",
    "lrfu(lambda=0.00003,correlated=25%)",
    "lrfu(lambda=0.00003,correlated=2x)",
    "lrfu(lambda=0.00001,correlated=25%)",
    "lrfu(lambda=0.00001,correlated=1000)",
    "lrfu(lambda=0.000003,correlated=25%)",
];
const MQ_OLTP: &[&str] = &[
    "mq(queues=8,rank=log2,life=3000,out=1)",
    "mq(queues=8,rank=log2,life=30000,out=1)",
    "mq(queues=8,rank=log2,life=300000,out=1)",
];

const TWO_Q_P12: &[&str] = &[
    "2q(kin=5%,kout=50%)",
    "2q(kin=5%,kout=100%)",
    "2q(kin=25%,kout=50%)",
    "2q(kin=25%,kout=100%)",
    "2q(kin=90%,kout=50%)",
];
const LRU_2_P12: &[&str] = &[
    "lru-k(history=all)",
    "lru-k(history=all,correlated=1000)",
    "lru-2-history",
    "lru-2-history(correlated=75%)",
];
const LRFU_P12: &[&str] = &[
    "lrfu(lambda=0.001,correlated=0)",
    "lrfu(lambda=0.0001,correlated=25%)",
    "lrfu(lambda=0.00001,correlated=25%)",
    "lrfu(lambda=0.000001,correlated=25%)",
    "lrfu(lambda=0.000001,correlated=0)",
];
const MQ_P12: &[&str] = &[
    "mq(queues=8,rank=log2,life=300,out=1)",
    "mq(queues=8,rank=log2,life=10000,out=1)",
    "mq(queues=8,rank=log2,life=300000,out=1)",
];
const LIRS_P12: &[&str] = &[
    "lirs(stack=2500x)",
    "lirs(stack=2500x,hirs=10%)",
    "lirs(stack=2500x,hirs=50%)",
    "lirs(stack=2500x,hirs=95%)",
];

/// Table IV.
pub const OLTP: Published = Published {
    title: "OLTP",
    source: "Megiddo and Modha, ARC, FAST 2003, table IV",
    trace: "arc_OLTP",
    references: 914_145,
    frames: &[1000, 5000, 15000],
    unit: Unit::Percent,
    columns: &[
        column("LRU", &[32.83, 53.65, 64.63], &["lru"]),
        column("ARC", &[38.93, 55.25, 65.40], &["arc"]),
        column("FBR", &[36.96, 53.53, 65.66], &["fbr"]),
        doubtful("LFU", &[27.98, 44.76, 56.22], &["lfu", "lfu(count=perfect)"]),
        column("LIRS", &[34.80, f64::NAN, 63.99], LIRS),
        doubtful("LIRS", &[f64::NAN, 47.14, f64::NAN], LIRS),
        column("MQ", &[37.86, 54.39, 64.81], MQ_OLTP),
        column("LRU-2", &[39.30, 54.78, 65.22], LRU_2_OLTP),
        column("2Q", &[40.48, 55.70, 65.82], TWO_Q_OLTP),
        column("LRFU", &[40.52, 56.73, 67.06], LRFU_OLTP),
        column("MIN", &[53.61, 68.27, 75.13], &["opt"]),
    ],
    remarks: &[
        "The authors took LFU, FBR, LRU-2, 2Q, LRFU and MIN from the LRFU paper, which tuned LRU-2, \
         2Q and LRFU for each size off line: ours are the best of a small grid, and what won is \
         named.",
        "LFU is marked `*`: neither counts of cached pages nor perfect counts give the paper's \
         numbers, here or elsewhere, and its definition is not known. LIRS at 5000 is marked, too: \
         the LIRS authors' own program gives 52.80, as ours does, and 47.14 cannot be reproduced.",
        "MQ adapts its life time in the paper; ours is fixed and the best of three. FBR's section \
         sizes and limits are its original paper's, which was not at hand; with `old=40%` ours has \
         36.97, 53.79 and 66.25.",
    ],
};

/// Table V, its right half.
pub const P12: Published = Published {
    title: "P12",
    source: "Megiddo and Modha, ARC, FAST 2003, table V",
    trace: "arc_P12",
    references: 13_208_930,
    frames: &[1024, 2048, 4096, 8192, 16384, 32768, 65536, 131_072, 262_144, 524_288],
    unit: Unit::Percent,
    columns: &[
        column("LRU", &[4.09, 4.84, 5.61, 6.22, 7.09, 8.93, 14.43, 29.21, 49.11, 60.91], &["lru"]),
        column("MQ", &[4.08, 4.83, 5.61, 6.23, 7.11, 9.56, 20.82, 35.76, 51.56, 61.35], MQ_P12),
        column(
            "ARC",
            &[4.16, 4.89, 5.76, 7.14, 10.12, 15.94, 26.09, 38.68, 53.47, 63.56],
            &["arc"],
        ),
        column(
            "2Q",
            &[4.13, 4.89, 5.76, 7.52, 11.05, 16.89, 27.46, 41.09, 53.31, 61.64],
            TWO_Q_P12,
        ),
        column(
            "LRU-2",
            &[4.07, 4.83, 5.81, 7.54, 10.67, 16.36, 25.79, 39.58, 53.43, 63.15],
            LRU_2_P12,
        ),
        column(
            "LRFU",
            &[4.09, 4.84, 5.61, 7.29, 11.01, 16.35, 25.35, 39.78, 54.56, 63.13],
            LRFU_P12,
        ),
        column(
            "LIRS",
            &[4.08, 4.83, 5.61, 6.61, 9.29, 15.15, 25.65, 40.37, 53.65, 63.89],
            LIRS_P12,
        ),
    ],
    remarks: &["2Q, LRU-2, LRFU and LIRS were tuned off line for each size; the grids are not \
                printed. Ours are small, so that a difference either way is first of all one of \
                grids. MQ is tuned here and adapts itself there, which explains why ours hits \
                more; at the smallest sizes a tuned policy only has to become LRU."],
};

const TABLE_VIII: &str = "Megiddo and Modha, ARC, FAST 2003, table VIII";

/// Table VIII: LRU and ARC at 32,768 pages, for the traces that are available.
pub const AT_32768: [Published; 4] = [
    Published {
        title: "P2",
        source: TABLE_VIII,
        trace: "arc_P2",
        references: 12_729_495,
        frames: &[32768],
        unit: Unit::Percent,
        columns: &[column("LRU", &[18.47], &["lru"]), column("ARC", &[27.38], &["arc"])],
        remarks: &[],
    },
    Published {
        title: "P3",
        source: TABLE_VIII,
        trace: "arc_P3",
        references: 3_912_296,
        frames: &[32768],
        unit: Unit::Percent,
        columns: &[column("LRU", &[3.57], &["lru"]), column("ARC", &[17.12], &["arc"])],
        remarks: &[],
    },
    Published {
        title: "P6",
        source: TABLE_VIII,
        trace: "arc_P6",
        references: 12_672_123,
        frames: &[32768],
        unit: Unit::Percent,
        columns: &[column("LRU", &[4.24], &["lru"]), column("ARC", &[23.84], &["arc"])],
        remarks: &[],
    },
    Published {
        title: "P12",
        source: TABLE_VIII,
        trace: "arc_P12",
        references: 13_208_930,
        frames: &[32768],
        unit: Unit::Percent,
        columns: &[column("LRU", &[8.93], &["lru"]), column("ARC", &[15.94], &["arc"])],
        remarks: &[],
    },
];
