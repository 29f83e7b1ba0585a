//! `why-4`, a figure of ours: the parameter that makes rec or nio faster on one disk.

use std::cell::RefCell;
use std::rc::Rc;

use super::setting::Setting;
use super::systems::{Systems, table};
use super::tables::{COLUMNS, tpcc};
use crate::experiment::{About, Cell, FigureError, Scale, Watch};
use crate::li::places::{Place, Places};
use crate::li::traces::Traces;
use crate::storage::SystemStat;
use millpond_lab::report::{Claim, Section};
use millpond_lab::table::Table;
use millpond_lab::tier1::SyncRule;
use millpond_lab::verdict::{above, claim_named};

const ABOUT: About = About {
    id: "why-4",
    title: "TPC-C on one disk: rec beside nio, with other disks and file caches",
    asks: "Where does rec have more transactions than nio, as table 4.1 has it?",
    says: "On one disk rec has 6.3 % more, since it writes in large sorted batches.",
};

/// Name of a variant, and its change of the setting.
type Variant = (&'static str, fn(&mut Setting));

/// Variants, each with one change.
const VARIANTS: [Variant; 10] = [
    ("as his", |_| {}),
    ("half the seeks", |setting| setting.seeks(0.5)),
    ("twice the seeks", |setting| setting.seeks(2.0)),
    ("16 tags", |setting| setting.tags = 16),
    ("half dirty", |setting| setting.dirty = 0.5),
    ("seven tenths dirty", |setting| setting.dirty = 0.7),
    ("kernel by last use", |setting| setting.by_last_use = true),
    ("file cache 12 %", |setting| setting.cache = 0.12),
    ("file cache 36 %", |setting| setting.cache = 0.36),
    ("file cache 48 %", |setting| setting.cache = 0.48),
];

/// Variant that also runs on the array.
const BY_LAST_USE: Place<'static> = Place::of("array", "kernel by last use");

/// Returns the figure.
pub(in super::super) fn figure(scale: Scale, traces: &Rc<RefCell<Traces>>) -> Systems {
    let chosen = scale.pick(&VARIANTS[..2], &VARIANTS[..], &VARIANTS[..]);
    Systems {
        about: ABOUT,
        scale,
        traces: traces.clone(),
        places: chosen
            .iter()
            .map(|(name, _)| Place::of("disk", name))
            .chain([BY_LAST_USE])
            .collect(),
        rules: vec!["rec", "range"],
        seconds: scale.pick(0.3, 1.2, 6.0),
        run,
        draw,
    }
}

fn run(
    traces: &mut Traces,
    _: Scale,
    cell: &Cell,
    rule: SyncRule,
    watch: &mut dyn Watch,
) -> Result<SystemStat, FigureError> {
    let name = cell.text("size");
    let unknown = || FigureError::Failed(format!("no variant is called '{name}'").into());
    let known = VARIANTS.iter().find(|(known, _)| *known == name);
    let (_, change) = known.ok_or_else(unknown)?;
    tpcc(traces, cell, rule, watch, *change)
}

fn draw(rows: &Table) -> Section {
    let note = "Ours, to explain table 4.1: what is called a variant differs from the system of \
                that table in one thing. Drives of 16 tags choose among as many requests the one \
                that they can do first; of the file cache so much may be dirty before the kernel \
                writes; by last use it writes the pages that were used least recently, and not \
                those that follow on the disk.";
    Section {
        note: note.to_string(),
        table: table(rows, &COLUMNS),
        claims: claims(&Places::of(rows, "per_second")),
        ..Section::default()
    }
}

fn claims(per_second: &Places) -> Vec<Claim> {
    let claim = |(name, _): &Variant| {
        let ratio = per_second.over(Place::of("disk", name), "rec", &["range"]);
        claim_named(
            &format!("t 4.1, {name}: rec has more transactions than nio"),
            &ratio,
            above(1.0),
        )
    };
    let on_array = per_second.over(BY_LAST_USE, "range", &["rec"]);
    let says = format!("t 4.2, {}: nio has more transactions than rec", BY_LAST_USE.size);
    let mut claims: Vec<Claim> = VARIANTS.iter().map(claim).collect();
    claims.push(claim_named(&says, &on_array, above(1.0)));
    claims
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::li::places::made_up;

    #[test]
    fn each_variant_is_decided_on_both_sides() {
        let verdicts = |ratio: f64| -> Vec<&'static str> {
            let mut values = Vec::new();
            for (name, _) in VARIANTS {
                values.push((Place::of("disk", name), "rec", 100.0 * ratio));
                values.push((Place::of("disk", name), "range", 100.0));
            }
            values.push((BY_LAST_USE, "rec", 100.0));
            values.push((BY_LAST_USE, "range", 100.0 * ratio));
            draw(&made_up("per_second", &values)).claims.iter().map(Claim::verdict).collect()
        };
        assert_eq!(verdicts(1.05), ["yes"; 11]);
        assert_eq!(verdicts(0.95), ["no"; 11]);
        assert!(claims(&Places::of(&made_up("v", &[]), "v")).iter().all(|c| c.holds.is_none()));
    }

    #[test]
    fn each_variant_changes_one_thing() {
        let plain = Setting::new(SyncRule::Ranges, 1000, 1000, 1);
        let mut seen = std::collections::HashSet::new();
        for (name, change) in VARIANTS {
            let mut setting = plain;
            change(&mut setting);
            let shown = format!("{setting:?}");
            assert_eq!(shown == format!("{plain:?}"), name == "as his");
            assert!(seen.insert(shown), "{name}");
        }
    }
}
