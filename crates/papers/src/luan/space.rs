//! Table 8: bytes of the policies (luan 5.8).

use super::figure::{Axes, Patterns, axes, shrunk};
use super::policies::{LAMBDA, THIRTEEN, thirteen};
use super::work::{made, parsed};
use crate::experiment::{About, Cell, Fields, FigureError, Grid, Scale};
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::report::{Claim, Section};
use millpond_lab::sim::{Renumber, SimOptions};
use millpond_lab::table::{Table, Value};
use millpond_lab::verdict::{below, between, claim};

const ABOUT: About = About {
    id: "table-8",
    title: "Space overhead (table 8)",
    asks: "How many bytes does each policy hold beside a pool of 70,000 frames, once it and its \
           history are full?",
    says: "None but a hand for GCLOCK and CLOCK; LRU 8 bytes per frame, the others 36 to 90, those with \
           history most.",
};

/// His n.
const FRAMES: u32 = 70_000;
/// Pages and references that fill the pool and every history.
const PAGES: u32 = 350_000;
const REFS: u32 = 1_000_000;

pub(super) fn figure(scale: Scale) -> Result<Patterns, PolicyError> {
    let cells: Vec<Axes> = thirteen(LAMBDA).iter().map(axes).collect();
    Patterns::new(ABOUT, scale, cells, u64::from(REFS), simulate, draw)
}

fn simulate(registry: &Registry, cell: &Cell, scale: Scale) -> Result<Vec<Fields>, FigureError> {
    let (frames, pages) = (shrunk(FRAMES, scale), shrunk(PAGES, scale));
    let seed = u64::from(cell.repetition);
    let params = format!("pages={pages},refs={},theta=0.5", shrunk(REFS, scale));
    let mut batch = made("probabilistic", &params, seed)?;
    let mut renumber = Renumber::new();
    renumber.apply(&mut batch);
    let spec = parsed(&cell.text("by")).map_err(FigureError::of)?;
    let entry = registry.find(&spec.id).map_err(FigureError::of)?;
    // Ids are arbitrary, as in a pool, since tables by page id would grow with the data.
    let options = SimOptions { seed, ..SimOptions::new(frames, None) };
    let mut simulation = entry.simulation(&spec, &options).map_err(FigureError::of)?;
    simulation.run(&batch, None).map_err(FigureError::of)?;
    let bytes = simulation.counts().policy_bytes;
    let history = entry.ghosts_max(&spec, frames).map_err(FigureError::of)?;
    let fields = [
        ("frames", frames.into()),
        ("policy_bytes", bytes.into()),
        ("bytes_per_frame", (bytes as f64 / f64::from(frames)).into()),
        ("history_pages_max", history.into()),
    ];
    Ok(vec![fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect()])
}

fn draw(rows: &Table) -> Section {
    let bytes = Grid::of(rows, &["policy"], "bytes_per_frame");
    let history = Grid::with(rows, &["policy"], |row| {
        let of = |column| rows.get(row, column).and_then(Value::number);
        Some(of("history_pages_max")? / of("frames")?)
    });
    let mut table = Table::new([
        "policy",
        "bytes per frame",
        "his control blocks, bytes per frame",
        "remembered at most, pools",
        "his",
    ]);
    for (name, _, _, theirs, remembered) in THIRTEEN {
        table.rows.push(vec![
            name.into(),
            bytes.mean(&[name]).into(),
            (theirs as f64 / f64::from(FRAMES)).into(),
            history.mean(&[name]).into(),
            remembered.into(),
        ]);
    }
    Section {
        note: "Frames' metadata and what the policy itself holds, its history with the table that \
               finds it included. Remembered at most is our bound, which for ARC, CAR, CART and \
               LIRS is more than they usually keep, so that it is not judged there. His numbers are the control blocks alone: every policy of his also \
               has 40 bytes of hash table for each page it knows, which in ours is the pool's page \
               table and in no policy."
            .to_string(),
        table,
        claims: claims(&bytes, &history),
        ..Section::default()
    }
}

fn claims(bytes: &Grid, history: &Grid) -> Vec<Claim> {
    let of = |name: &'static str| (name, history.interval(&[name]));
    let less = |low: &'static str, high: &'static str| (low, bytes.difference(&[low], &[high]));
    let clocks = ["GCLOCK", "CLOCK"];
    let others = THIRTEEN.iter().map(|p| p.0).filter(|name| !clocks.contains(name));
    let clocks: Vec<_> = others.flat_map(|other| clocks.map(|clock| less(clock, other))).collect();
    let full = ["ARC", "CAR", "CART", "CLOCK-Pro"];
    let with_history = full.iter().map(|name| less("LRU", name)).collect::<Vec<_>>();
    vec![
        claim(
            "GCLOCK and CLOCK need the least: bytes per frame less those of each other policy",
            &clocks,
            below(0.0),
        ),
        claim(
            "LRU, 2Q-Simple, LRFU and FBR remember no page that left: pools",
            &["LRU", "2Q-Simple", "LRFU", "FBR"].map(of),
            between(-0.01, 0.01),
        ),
        claim("2Q-Full and LRU-2 half a pool", &["2Q-Full", "LRU-2"].map(of), between(0.48, 0.52)),
        claim("CLOCK-Pro a pool", &["CLOCK-Pro"].map(of), between(0.98, 1.02)),
        claim(
            "LRU needs less than ARC, CAR, CART and CLOCK-Pro: bytes per frame",
            &with_history,
            below(0.0),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::said::twice;
    use super::*;

    #[test]
    fn each_sentence_can_hold_and_fail() {
        let all = |bytes: &dyn Fn(&str) -> f64, pools: &dyn Fn(&str) -> f64| {
            let mut table = Table::new(["policy", "bytes_per_frame", "history_pages_max"]);
            for (name, ..) in THIRTEEN {
                table.rows.push(vec![name.into(), bytes(name).into(), pools(name).into()]);
            }
            let table = twice(&table);
            let grid = |column| Grid::of(&table, &["policy"], column);
            claims(&grid("bytes_per_frame"), &grid("history_pages_max"))
        };
        let remembered = |name: &str| THIRTEEN.iter().find(|p| p.0 == name).unwrap().4;
        let his = |name: &str| THIRTEEN.iter().find(|p| p.0 == name).unwrap().3 as f64;
        assert!(all(&his, &remembered).iter().all(|claim| claim.holds == Some(true)));
        let other = all(&|name| -his(name), &|name| 0.7 - remembered(name));
        assert!(other.iter().all(|claim| claim.holds == Some(false)), "{other:?}");
    }
}
