//! WATT's evaluation (VLDB 2023), on traces made after its table 2.
//!
//! The paper's traces are unavailable. Zipf and dynamic Zipf can be generated again; the TPC-E
//! trace is only imitated, and there is none for TPC-C.

use std::fmt::Write as _;

use millpond_papers::watt::{AGGREGATIONS, BYTES};

use super::arena::Failure;
use super::markdown::{code, table};
use super::watt_lab::{Lab, Measured, POLICIES, TRACES};

/// Returns the section about WATT's paper.
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
        "\nThe figure's numbers are colours. What the text says of them is judged with intervals over \
         seeds by `millpond-papers watt` ([watt.md](watt.md)); here is one seed.\n",
    );
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
