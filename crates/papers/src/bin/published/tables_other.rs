//! Hit counts that others published for the same traces.

use super::published::{Published, Unit, column};

const DJBLUE: &str = "github.com/djblue/caching, output.txt (a course project at ASU)";

/// LRU at eight sizes, as ratios with all their digits: exact hit counts.
pub const BITFASTER: Published = Published {
    title: "OLTP, LRU in BitFaster.Caching",
    source: "BitFaster.Caching, pull requests 132, 191 and 196, column ClassicLru",
    trace: "arc_OLTP",
    references: 914_145,
    frames: &[250, 500, 750, 1000, 1250, 1500, 1750, 2000],
    unit: Unit::Percent,
    columns: &[column(
        "LRU",
        &[
            16.473425988218498,
            23.445405269404745,
            28.28074320813438,
            32.83089663018449,
            36.209682271412085,
            38.69604931383971,
            40.7881681790088,
            42.46973948334236,
        ],
        &["lru"],
    )],
    remarks: &[],
};

/// LRU and ARC on P2, P3, P6 and P12.
pub const COUNTS: [Published; 4] = [
    Published {
        title: "P2, hits",
        source: DJBLUE,
        trace: "arc_P2",
        references: 12_729_495,
        frames: &[1024, 8192, 32768, 131_072],
        unit: Unit::Hits,
        columns: &[
            column("LRU", &[329_931.0, 582_260.0, 2_350_757.0, 6_554_444.0], &["lru"]),
            column("ARC", &[329_805.0, 1_049_007.0, 3_485_175.0, 7_506_500.0], &["arc"]),
        ],
        remarks: &[],
    },
    Published {
        title: "P3, hits",
        source: DJBLUE,
        trace: "arc_P3",
        references: 3_912_296,
        frames: &[1024, 4096, 16384, 32768, 65536, 131_072, 262_144],
        unit: Unit::Hits,
        columns: &[
            column(
                "LRU",
                &[41_051.0, 51_596.0, 81_136.0, 139_485.0, 497_558.0, 1_752_194.0, 2_547_620.0],
                &["lru"],
            ),
            column(
                "ARC",
                &[43_999.0, 91_241.0, 273_980.0, 669_507.0, 1_051_962.0, 1_980_715.0, 2_643_450.0],
                &["arc"],
            ),
        ],
        remarks: &[],
    },
    Published {
        title: "P6, hits",
        source: DJBLUE,
        trace: "arc_P6",
        references: 12_672_123,
        frames: &[1024, 8192, 32768, 131_072],
        unit: Unit::Hits,
        columns: &[
            column("LRU", &[89_738.0, 160_182.0, 537_345.0, 9_653_237.0], &["lru"]),
            column("ARC", &[106_184.0, 752_930.0, 3_021_895.0, 10_088_823.0], &["arc"]),
        ],
        remarks: &[],
    },
    Published {
        title: "P12, hits",
        source: DJBLUE,
        trace: "arc_P12",
        references: 13_208_930,
        frames: &[1024, 8192, 32768, 65536, 131_072],
        unit: Unit::Hits,
        columns: &[
            column("LRU", &[539_564.0, 821_758.0, 1_179_069.0, 1_906_176.0, 3_859_015.0], &["lru"]),
            column("ARC", &[549_674.0, 943_907.0, 2_104_636.0, 3_446_535.0, 5_108_453.0], &["arc"]),
        ],
        remarks: &[
            "That project's ARC divides whole numbers where ours divides real ones, if its \
                    counts differ from ours; LRU leaves no choice.",
        ],
    },
];
