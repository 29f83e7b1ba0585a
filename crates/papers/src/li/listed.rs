//! `listed`: dsync requests of the engine's sync list, beside those that his procedure adds to
//! the same recording (5.6.2.1).
//!
//! His DB2 has no sync list, so he adds the requests afterwards, after each RECOV write. He
//! argues that this hardly moves them. An engine with a sync list sends them when the log is
//! about to forget an update, and writes RECOV for the same reason.

use std::cell::RefCell;
use std::rc::Rc;

use super::io_claims::TWINS;
use super::places::{Place, Places};
use super::simulate::{Plan, Simulated};
use super::traces::Traces;
use crate::experiment::{About, Scale};
use millpond_lab::registry::PolicyError;
use millpond_lab::report::{Claim, Section};
use millpond_lab::table::{Table, Value};
use millpond_lab::tier2::Model;
use millpond_lab::verdict::{Bounds, Named, between, claim_named};

const ABOUT: About = About {
    id: "listed",
    title: "dsync requests of a sync list, and those that are put in afterwards (5.6.2.1)",
    asks: "Does it matter that his dsync requests were added to a recorded trace?",
    says: "The impact on their placement is trivial, since recLSNs in the pool and on the sync \
           list interleave.",
};

const SENT: &str = "listed-sent";
const ADDED: &str = "listed-added";
const POLICIES: [&str; 7] = ["pro-io", "lru-io", "t2-lru", "arc-io", "t2-arc", "tq-io", "tq"];

/// Bounds of ratios that count as the same.
const SAME: Bounds = between(0.95, 1.0 / 0.95);

/// Returns the figure.
///
/// # Errors
/// A policy cannot be built.
pub(super) fn figure(scale: Scale, traces: &Rc<RefCell<Traces>>) -> Result<Simulated, PolicyError> {
    let all = vec![100.0, 300.0, 600.0];
    let sizes = scale.pick(vec![300.0], all.clone(), all);
    let plan = Plan {
        about: ABOUT,
        model: Model::Rw,
        traces: [SENT, ADDED].map(|name| (name, sizes.clone())).to_vec(),
        policies: &POLICIES,
        draw,
    };
    Simulated::new(plan, scale, traces)
}

/// Returns the places of one size: with added and with sent requests.
fn pair(size: &str) -> [Place<'_>; 2] {
    [ADDED, SENT].map(|trace| Place::of(trace, size))
}

fn draw(rows: &Table) -> Section {
    let places = Places::of(rows, "total");
    let dsyncs = Places::of(rows, "dsyncs_per_write");
    let mut columns = vec!["size", "policy", "sent by the engine", "added", "added over sent"];
    columns.extend(["dsyncs a write, sent", "dsyncs a write, added"]);
    let mut table = Table::new(columns);
    for size in places.sizes() {
        for policy in places.policies() {
            let of =
                |from: &Places, trace| from.value(Place::of(trace, size), policy).map(|v| v.mean);
            let [added, sent] = pair(size);
            let ratio = places.moved(policy, added, sent).map(|v| v.mean);
            let row: [Value; 7] = [
                size.into(),
                policy.into(),
                of(&places, SENT).into(),
                of(&places, ADDED).into(),
                ratio.into(),
                of(&dsyncs, SENT).into(),
                of(&dsyncs, ADDED).into(),
            ];
            table.rows.push(row.to_vec());
        }
    }
    let note = "One recording in each repetition, of an engine that writes in place and has a \
                sync list, pool of 50 % of the data, with an LSN gap of about as many transactions \
                as softmax 400: such a log has each page that becomes dirty in whole. Totals are \
                reads and writes.";
    let claims = claims(&places, &dsyncs);
    Section { note: note.to_string(), table, claims, ..Section::default() }
}

fn claims(places: &Places, dsyncs: &Places) -> Vec<Claim> {
    // A trace has the same number at every size.
    let first = dsyncs.sizes().first().copied().unwrap_or_default();
    let [added, sent] = pair(first);
    let many: Named = vec![("added/sent".to_string(), dsyncs.moved("pro-io", added, sent))];
    let (mut totals, mut saved) = (Named::new(), Named::new());
    for size in places.sizes() {
        let [added, sent] = pair(size);
        for policy in places.policies() {
            totals.push((format!("{policy} at {size}"), places.moved(policy, added, sent)));
        }
        for (aware, blind, _) in TWINS {
            let change = places.change(aware, blind, added, sent);
            saved.push((format!("{aware}/{blind} at {size}"), change));
        }
    }
    vec![
        claim_named("5.6.2.1: as many are added as are sent (here: within 5 %)", &many, SAME),
        claim_named(
            "5.6.2.1: no policy's total I/O is another one (here: within 5 %)",
            &totals,
            SAME,
        ),
        claim_named(
            "5.6.2.1: nor what write-aware policies leave of their twins' (here: within 5 %)",
            &saved,
            SAME,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::places::made_up;
    use super::*;

    /// Judges rows by the ratios of added to sent requests: totals of the first policy and of the
    /// others, and numbers of dsync requests.
    fn verdicts(first: f64, others: f64, dsyncs: f64) -> Vec<&'static str> {
        let made = |column: &str| {
            let mut values = Vec::new();
            for (at, policy) in POLICIES.into_iter().enumerate() {
                let by = if at == 1 { first } else { others };
                let by = if column == "total" { by } else { dsyncs };
                let [added, sent] = pair("300");
                values.push((sent, policy, 100.0));
                values.push((added, policy, 100.0 * by));
            }
            made_up(column, &values)
        };
        let [totals, dsyncs] = ["total", "dsyncs_per_write"].map(made);
        assert_eq!(draw(&totals).table.rows.len(), 7);
        let places = Places::of(&totals, "total");
        let claims = claims(&places, &Places::of(&dsyncs, "dsyncs_per_write"));
        claims.iter().map(Claim::verdict).collect()
    }

    #[test]
    fn each_sentence_is_decided_on_both_sides() {
        assert_eq!(verdicts(1.01, 0.99, 1.0), ["yes"; 3]);
        assert_eq!(verdicts(0.8, 1.0, 0.5), ["no"; 3]);
        assert_eq!(verdicts(1.1, 1.1, 1.0), ["yes", "no", "yes"]);
        let none = Places::of(&made_up("total", &[]), "total");
        assert!(claims(&none, &none).iter().all(|claim| claim.holds.is_none()));
    }
}
