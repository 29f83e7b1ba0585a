//! Table of the generators: ids, parameters with defaults, and sources.

/// Kind of a parameter, with its allowed values.
#[derive(Clone, Copy, Debug)]
pub enum ParamKind {
    /// A count, as `1000`, `20k` or `2M`.
    Count {
        /// The least value.
        min: u64,
        /// The largest value.
        max: u64,
    },
    /// A number.
    Real {
        /// The least value.
        min: f64,
        /// The largest value.
        max: f64,
    },
    /// A share, as `10%` or `0.1`.
    Share,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// One parameter of a generator.
#[derive(Clone, Copy, Debug)]
pub struct ParamInfo {
    /// Name of the parameter in `name=value`.
    pub name: &'static str,
    /// Default value.
    pub default: &'static str,
    /// Meaning of the parameter.
    pub help: &'static str,
    /// Type and range of the parameter.
    pub kind: ParamKind,
}

/// One generator.
#[derive(Clone, Copy, Debug)]
pub struct GeneratorInfo {
    /// Name of the generator on the command line.
    pub id: &'static str,
    /// Summary of the trace that it generates, in a line.
    pub summary: &'static str,
    /// Parameters of the generator.
    pub params: &'static [ParamInfo],
    /// Paper and section that the generator follows.
    pub source: &'static str,
}

const fn param(
    name: &'static str,
    default: &'static str,
    help: &'static str,
    kind: ParamKind,
) -> ParamInfo {
    ParamInfo { name, default, help, kind }
}

/// Maximum pages of a generator that keeps tables.
const MANY: ParamKind = ParamKind::Count { min: 1, max: 1 << 27 };
const REFS: ParamKind = ParamKind::Count { min: 1, max: 1 << 48 };
const UPTO_MANY: ParamKind = ParamKind::Count { min: 0, max: 1 << 48 };
const THETA: ParamKind = ParamKind::Real { min: 0.0, max: 20.0 };
const METHOD: ParamInfo = param(
    "method",
    "table",
    "exact inversion (table) or YCSB's closed formula (ycsb)",
    ParamKind::Choice(&["table", "ycsb"]),
);

/// Every generator, in the order in which lists show them.
pub const GENERATORS: &[GeneratorInfo] = &[
    GeneratorInfo {
        id: "zipf-ro",
        summary: "reads with a fixed Zipf distribution over pages in random order",
        params: &[
            param("pages", "10k", "distinct pages", MANY),
            param("refs", "1M", "references", REFS),
            param("theta", "0.9", "Zipf exponent; 0 is uniform", THETA),
            METHOD,
        ],
        source: "watt 4.1, table 2",
    },
    GeneratorInfo {
        id: "dynzipf-ro",
        summary: "Zipf reads whose order is slowly shuffled, with marked scans in between",
        params: &[
            param("pages", "20k", "distinct pages", MANY),
            param("refs", "2M", "references", REFS),
            param("theta", "0.9", "Zipf exponent; 0 is uniform", THETA),
            param("scan", "50%", "share of the reads that belongs to scans", ParamKind::Share),
            param("scan-run", "64", "pages that a scan reads in a row", REFS),
            param("shuffle-every", "45", "references between two swaps; 0 is never", UPTO_MANY),
            METHOD,
        ],
        source: "watt 4.1, table 2",
    },
    GeneratorInfo {
        id: "dynzipf-rw",
        summary: "dynzipf-ro with writes of the same Zipf distribution woven in",
        params: &[
            param("pages", "20k", "distinct pages", MANY),
            param("refs", "1200k", "references", REFS),
            param("theta", "0.9", "Zipf exponent; 0 is uniform", THETA),
            param("writes", "16.67%", "share of writes", ParamKind::Share),
            param("scan", "50%", "share of the reads that belongs to scans", ParamKind::Share),
            param("scan-run", "64", "pages that a scan reads in a row", REFS),
            param("shuffle-every", "9", "references between two swaps; 0 is never", UPTO_MANY),
            METHOD,
        ],
        source: "watt 4.1, table 2",
    },
    GeneratorInfo {
        id: "tpce-like",
        summary: "synthetic stand-in for watt's TPC-E trace: index paths, hot upper levels",
        params: &[
            param("pages", "65656", "distinct pages", ParamKind::Count { min: 1000, max: 1 << 27 }),
            param("refs", "1500k", "references, at least four per page", REFS),
            param("theta", "0.6", "Zipf exponent among the pages that are not hot", THETA),
            param("writes", "5.7%", "share of writes, at most 30 %", ParamKind::Share),
        ],
        source: "watt 4.1, table 2 (synthetic: the original trace is unavailable)",
    },
    GeneratorInfo {
        id: "sequential",
        summary: "one marked scan over a table",
        params: &[param("pages", "11113", "pages of the table", REFS)],
        source: "luan 3.2.1.1",
    },
    GeneratorInfo {
        id: "correlated",
        summary: "selects of single pages, some of them deletes that touch the page again at once",
        params: &[
            param("operations", "10k", "selects and deletes, a page each", REFS),
            param(
                "deletes",
                "50%",
                "share of deletes; 0 % is the first workload",
                ParamKind::Share,
            ),
            param(
                "repeats",
                "3",
                "references of one delete; the last one writes",
                ParamKind::Count { min: 2, max: 1000 },
            ),
            param(
                "gap",
                "4",
                "operations under way at a time, so that repeats are apart",
                ParamKind::Count { min: 1, max: 100_000 },
            ),
            param("index", "0", "pages one of which each operation reads first", UPTO_MANY),
        ],
        source: "luan 3.2.1.2",
    },
    GeneratorInfo {
        id: "looping",
        summary: "a table read from end to end again and again",
        params: &[
            param("pages", "11113", "pages of the table", REFS),
            param("loops", "10", "times that it is read", REFS),
        ],
        source: "luan 3.2.1.3, 5.3.1",
    },
    GeneratorInfo {
        id: "temporal",
        summary: "temporally clustered: a table read forwards, then backwards, and again",
        params: &[
            param("pages", "5500", "pages of the table", REFS),
            param("rounds", "2", "times that it is read there and back", REFS),
        ],
        source: "luan 3.2.1.4, 5.4",
    },
    GeneratorInfo {
        id: "probabilistic",
        summary: "independent reads, each page with its own fixed probability (Zipf)",
        params: &[
            param("pages", "10k", "distinct pages", MANY),
            param("refs", "200k", "references", REFS),
            param("theta", "0.8", "Zipf exponent of the probabilities", THETA),
            METHOD,
        ],
        source: "luan 3.2.1.5",
    },
    GeneratorInfo {
        id: "uniform",
        summary: "every page equally likely",
        params: &[
            param("pages", "10k", "distinct pages", REFS),
            param("refs", "1M", "references", REFS),
            param("writes", "0%", "share of writes", ParamKind::Share),
        ],
        source: "leanstore VI-B",
    },
    GeneratorInfo {
        id: "exponential",
        summary: "writes, exponentially distributed over a file, made durable at once or later",
        params: &[
            param("pages", "1M", "pages of the file", REFS),
            param("writes", "2M", "writes (dsync records come on top)", REFS),
            param(
                "lambda",
                "1.0",
                "parameter of the distribution",
                ParamKind::Real { min: 1e-6, max: 1e6 },
            ),
            param(
                "span",
                "40",
                "length of the file in units of the distribution",
                ParamKind::Real { min: 1e-3, max: 1e6 },
            ),
            param("sync", "10%", "share of writes made durable at once", ParamKind::Share),
            param(
                "delay",
                "5k",
                "writes between any other write and its dsync",
                ParamKind::Count { min: 1, max: 1 << 24 },
            ),
        ],
        source: "li 4.4.1.1",
    },
    GeneratorInfo {
        id: "btree",
        summary: "root-to-leaf paths over a B-tree, with page kinds, depths and marked scans",
        params: &[
            param("leaves", "20k", "leaf pages", MANY),
            param(
                "fanout",
                "100",
                "children of an inner page",
                ParamKind::Count { min: 2, max: 1 << 20 },
            ),
            param("operations", "300k", "look-ups, updates and scans", REFS),
            param("theta", "0.9", "Zipf exponent of the leaves", THETA),
            param("writes", "10%", "share of operations that update their leaf", ParamKind::Share),
            param("scans", "0%", "share of operations that are range scans", ParamKind::Share),
            param("scan-leaves", "100", "leaves that a scan reads", REFS),
            METHOD,
        ],
        source: "gilbert 1.2.11 (what DGCLOCK weighs by), leanstore VI-B",
    },
];
