//! WATT as its authors' simulator runs it without chance: every page is looked at, and the clock
//! ticks with every reference.

use crate::common::{goldens, load, shared};
use millpond_lab::sim::{Cell, SimOptions, Simulation};
use millpond_policies::policy::{ByReferences, Watt, WattConfig};

#[test]
fn without_chance_and_epochs_hits_are_those_of_the_authors_simulator() {
    let Some(rows) = goldens("golden.csv") else {
        return println!("skipped: golden.csv is not there ({:?})", shared());
    };
    let config = WattConfig {
        sample: 65_536,
        writes: 0,
        write_weight: 0.0,
        dampening: 1.0,
        age_from: 1,
        ..WattConfig::default()
    };
    let (mut cells, mut exact) = (0, 0);
    // A miss looks at the whole pool: the large ones take their time.
    let everything = std::env::var("MILLPOND_GOLDEN").is_ok_and(|v| v == "all");
    let is_asked = |size: u32| everything || size <= 500;
    for golden in rows.iter().filter(|g| g.name == "watt_ro_norand_K8_noZ" && is_asked(g.size)) {
        let (batch, distinct) = load(&golden.trace).expect("a trace of the goldens");
        let options = SimOptions::new(golden.size, Some(distinct));
        let mut cell: Cell<Watt<ByReferences>> = Cell::new(&config, &options);
        cell.run(&batch, None).unwrap();
        let (ours, theirs) = (cell.counts().hits, golden.numbers["hits"]);
        cells += 1;
        exact += u32::from(ours == theirs);
        // Pages of equal value: whose turn it is depends on the order of their hash table.
        let (trace, size) = (&golden.trace, golden.size);
        assert!(ours.abs_diff(theirs) <= 4, "{trace}@{size}: {ours}, they have {theirs}");
    }
    println!("{exact} of {cells} cells are exact");
    assert!(cells > 20 && exact >= cells - 3, "{exact} of {cells} cells are exact");
}
