//! WATT's evaluation (VLDB 2023), on traces made after its table 2.
//!
//! Its own traces are unavailable. Zipf and dynamic Zipf can be generated again; the TPC-E trace is
//! only imitated, and there is none for TPC-C.

use std::fmt::Write as _;

use millpond_lab::papers::watt::{AGGREGATIONS, BYTES};

use super::arena::{Arena, Failure};
use super::markdown::{code, table};
use super::watt_claims::claims;

/// Sizes, in percent of the trace's pages.
const PERCENTS: &[f64] = &[2.0, 5.0, 10.0, 20.0, 40.0];
const PERCENTS_QUICK: &[f64] = &[5.0, 20.0];

/// Our generator for each trace, and its name in the paper.
pub const TRACES: [(&str, &str); 4] = [
    ("tpce-like", "TPC-E (imitated)"),
    ("zipf-ro", "ZipfRO"),
    ("dynzipf-ro", "dynZipfRO"),
    ("dynzipf-rw", "dynZipfRW"),
];

/// The algorithms of fig. 1, as the paper configures them, and its WATT.
///
/// Its LRU2 may or may not know pages that left; its simulator lets ages begin at 1, where its
/// formula gives a page of the current epoch the value +∞. Both are measured.
pub const POLICIES: [&str; 12] = [
    "random",
    "clock",
    "lean-evict(cooling=30%)",
    "lru-k",
    "lru-k(history=all)",
    "lru",
    "cflru(window=30%)",
    "lru-wsr",
    "hyperbolic(sample=20)",
    "arc",
    "watt(age_from=1)",
    "watt",
];

/// Misses and writes of one policy on each of [`TRACES`], at each size.
#[derive(Clone, Default)]
pub struct Measured {
    /// By trace, then size.
    pub misses: Vec<Vec<f64>>,
    /// By trace, then size.
    pub writes: Vec<Vec<f64>>,
}

impl Measured {
    /// Its misses over another one's on one trace, the mean over the sizes.
    pub fn over(&self, other: &Measured, trace: usize) -> f64 {
        ratio(&self.misses[trace], &other.misses[trace])
    }

    /// Its writes over another one's on one trace, the mean over the sizes.
    pub fn writes_over(&self, other: &Measured, trace: usize) -> f64 {
        ratio(&self.writes[trace], &other.writes[trace])
    }

    /// Its misses over another one's, the mean over traces and sizes.
    pub fn over_all(&self, other: &Measured) -> f64 {
        let each = (0..self.misses.len()).map(|trace| self.over(other, trace));
        each.sum::<f64>() / self.misses.len() as f64
    }
}

fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    ours.iter().zip(theirs).map(|(a, b)| a / b).sum::<f64>() / ours.len() as f64
}

/// The generated traces, and what was measured on them, by policy.
pub struct Lab {
    arenas: Vec<Arena>,
    percents: &'static [f64],
}

impl Lab {
    fn new(is_quick: bool) -> Result<Lab, Failure> {
        let arenas = TRACES.iter().map(|(id, _)| Arena::generated(id, ""));
        let percents = if is_quick { PERCENTS_QUICK } else { PERCENTS };
        Ok(Lab { arenas: arenas.collect::<Result<_, _>>()?, percents })
    }

    /// Runs policies on all traces, at all sizes.
    pub fn measure(&self, policies: &[&str]) -> Result<Vec<Measured>, Failure> {
        let mut all = vec![Measured::default(); policies.len()];
        for arena in &self.arenas {
            let frames: Vec<u32> = self.percents.iter().map(|p| arena.frames(*p)).collect();
            let cells: Vec<(&str, u32)> =
                policies.iter().flat_map(|p| frames.iter().map(move |f| (*p, *f))).collect();
            let counts = arena.run_all(&cells)?;
            for (measured, counts) in all.iter_mut().zip(counts.chunks(frames.len())) {
                measured.misses.push(counts.iter().map(|c| c.misses() as f64).collect());
                measured.writes.push(counts.iter().map(|c| c.writes() as f64).collect());
            }
        }
        Ok(all)
    }

    /// Bytes of state per frame after a run over the Zipf trace, a tenth of its pages in frames.
    fn bytes_per_frame(&self, policy: &str) -> Result<f64, Failure> {
        let arena = &self.arenas[1];
        let frames = arena.frames(10.0);
        Ok(arena.run(policy, frames)?.policy_bytes as f64 / f64::from(frames))
    }
}

/// Everything about WATT's paper.
pub fn section(is_quick: bool) -> Result<String, Failure> {
    let lab = Lab::new(is_quick)?;
    let figure = lab.measure(&POLICIES)?;
    let sizes: Vec<String> = lab.percents.iter().map(|p| format!("{p} %")).collect();
    let mut text = String::from("\n## WATT (Vöhringer and Leis, VLDB 2023)\n");
    write!(
        text,
        "\nThe traces are made by `millpond trace gen` with the sizes and shares of the paper's \
         table 2, seed 1; the one for TPC-E is an imitation, and there is none for TPC-C. Every \
         number is the mean over pools of {} of the trace's pages; the paper does not print the \
         sizes behind its figures and tables.\n",
        sizes.join(", ")
    )?;
    text.push_str("\n### Misses over WATT's (fig. 1)\n\n");
    text.push_str(&normalised(&figure));
    text.push_str(
        "\nThe figure's numbers are colours; what the text says of them, one by one:\n\n",
    );
    text.push_str(&claims(&lab, &figure)?);
    text.push_str("\n### Aggregation functions (§4.3): misses over the maximum's\n\n");
    text.push_str(&aggregations(&lab)?);
    text.push_str("\n### Memory per cached page (§3.2), in bytes\n\n");
    text.push_str(&bytes(&lab)?);
    Ok(text)
}

fn normalised(figure: &[Measured]) -> String {
    let Some(watt) = figure.last() else { return String::new() };
    let rows = POLICIES.iter().zip(figure).map(|(policy, measured)| {
        let mut row = vec![code(policy)];
        row.extend((0..TRACES.len()).map(|t| format!("{:.3}", measured.over(watt, t))));
        row.push(format!("{:.3}", measured.over_all(watt)));
        row
    });
    let header = ["policy", TRACES[0].1, TRACES[1].1, TRACES[2].1, TRACES[3].1, "mean"];
    table(&header, &rows.collect::<Vec<_>>())
}

fn aggregations(lab: &Lab) -> Result<String, Failure> {
    let spec = |name: &str| format!("watt(writes=0,write_weight=0,aggregate={name})");
    let specs: Vec<String> = ["max", "min", "mean", "median"].into_iter().map(spec).collect();
    let measured = lab.measure(&specs.iter().map(String::as_str).collect::<Vec<_>>())?;
    let (max, others) = measured.split_first().ok_or("no aggregation")?;
    let mut rows = Vec::new();
    for ((name, _, published), other) in AGGREGATIONS.iter().zip(others) {
        // The first is TPC-C.
        for (trace, theirs) in published[1..].iter().enumerate() {
            let ours = (other.over(max, trace) - 1.0) * 100.0;
            rows.push(vec![
                name.to_string(),
                TRACES[trace].1.to_string(),
                format!("{theirs:+.1} %"),
                format!("{ours:+.1} %"),
                format!("{:+.1}", ours - theirs),
            ]);
        }
    }
    let mut text = table(&["function", "trace", "published", "ours", "difference"], &rows);
    text.push_str(
        "\nBefore the write log is added, as in the paper: `writes=0,write_weight=0`. TPC-C \
         (+4.5 %, −1.0 %, +0.5 %) has no counterpart here.\n",
    );
    Ok(text)
}

fn bytes(lab: &Lab) -> Result<String, Failure> {
    let registry = millpond_lab::registry::Registry::builtin();
    let mut rows = Vec::new();
    for (name, published, policy) in BYTES {
        let info = registry.find(policy)?.info;
        rows.push(vec![
            name.to_string(),
            format!("{published}"),
            format!("{}", info.frame_bytes),
            format!("{:+}", info.frame_bytes - published),
            format!("{:.1}", lab.bytes_per_frame(policy)?),
        ]);
    }
    let header = ["algorithm", "published", "ours", "difference", "all state, measured"];
    let mut text = table(&header, &rows);
    text.push_str(
        "\nThe paper counts what the idea needs with pointers of 8 bytes; ours is what a frame's \
         metadata and list nodes take (frames are numbered by 4 bytes, and the page's id is the \
         pool's). The last column is the whole state over the frames, ghosts and the dense tables \
         that find them among all pages included (ZipfRO, 10 % of its pages).\n",
    );
    Ok(text)
}
