//! Claims of chapter 5 about its figures, beside our results.

use super::places::{Place, Places};
use millpond_lab::report::Claim;
use millpond_lab::verdict::{
    Bounds, Evidence, Named, above, at_least, at_most, below, between, claim_named, listed, most,
};

/// Each write-aware policy, its oblivious twin, and its maximum saving in per cent: over sizes
/// (5.6.2.2), over gaps (5.6.2.3), and below the pool of 540K (table 5.6).
pub(super) const TWINS: [(&str, &str, [f64; 3]); 3] = [
    ("lru-io", "t2-lru", [41.0, 36.0, 31.0]),
    ("arc-io", "t2-arc", [26.0, 26.0, 13.0]),
    ("tq-io", "tq", [59.0, 12.0, 8.0]),
];
const ONLINE: [&str; 6] = ["lru-io", "t2-lru", "arc-io", "t2-arc", "tq-io", "tq"];
const NOT_PRO: [&str; 7] = ["min-rw", "lru-io", "t2-lru", "arc-io", "t2-arc", "tq-io", "tq"];

/// Bounds of ratios of totals that count as the same.
const SAME: Bounds = between(0.95, 1.0 / 0.95);
/// Minimum saving that counts.
const COUNTS: f64 = 0.10;

const MYSQL: [Place<'static>; 4] = [
    Place::of("120mbuf", "30"),
    Place::of("240mbuf", "30"),
    Place::of("480mbuf", "30"),
    Place::of("960mbuf", "30"),
];
const POOLS: [Place<'static>; 3] =
    [Place::of("60k_4000", "300"), Place::of("300k_4000", "300"), Place::of("540k_4000", "300")];
const GAPS: [Place<'static>; 3] =
    [Place::of("300k_40", "300"), Place::of("300k_400", "300"), Place::of("300k_4000", "300")];
const STEPS: [&str; 6] = ["100", "200", "300", "400", "500", "600"];
const MYSQL_STEPS: [&str; 6] = ["10", "20", "30", "40", "50", "60"];

/// Returns the ratios of all twins at all places.
fn twins(places: &Places, at: &[Place<'_>]) -> Named {
    TWINS.iter().flat_map(|(aware, twin, _)| places.ratios(at, aware, twin)).collect()
}

/// Returns each policy's values, each over the one at the place before.
fn steps(places: &Places, policies: &[&str], at: &[Place<'_>]) -> Named {
    let mut all = Vec::new();
    for policy in policies {
        for pair in at.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            let name = if before.trace == after.trace { after.size } else { after.trace };
            all.push((format!("{policy} at {name}"), places.moved(policy, after, before)));
        }
    }
    all
}

/// Claims that a policy somewhere saves at least `percent` of its twin's total; all ratios are
/// shown.
pub(super) fn saves(
    places: &Places,
    says: &str,
    at: &[Place<'_>],
    twin: usize,
    percent: f64,
) -> Claim {
    let (aware, blind, _) = TWINS[twin];
    let ratios = places.ratios(at, aware, blind);
    let shown: Vec<_> = ratios.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    // The printed number has no decimals.
    let bound = 1.0 - (percent - 0.5) / 100.0;
    let each = ratios.iter().map(|(_, value)| Evidence::of(*value, below(bound)));
    Evidence::any(each).claim(&format!("{says}: {aware} {percent} %"), listed(&shown))
}

/// Claims that no other policy causes less I/O than PRO-IO, anywhere.
fn pro_io(places: &Places, says: &str, at: &[Place<'_>]) -> Claim {
    let all = NOT_PRO.iter().flat_map(|other| places.ratios(at, other, "pro-io"));
    claim_named(says, &all.collect(), at_least(1.0))
}

/// Judges figure 5.4.
pub(super) fn mysql_sizes(places: &Places) -> Vec<Claim> {
    let all = MYSQL_STEPS.map(|size| Place::of("480mbuf", size));
    let arc = places.ratios(&[all[3], all[4]], "arc-io", "t2-arc");
    vec![
        claim_named(
            "5.4: no policy causes more with a larger second tier",
            &steps(places, &["pro-io", "min-rw", "lru-io", "t2-lru", "arc-io", "t2-arc"], &all),
            at_most(1.0),
        ),
        pro_io(places, "5.4: no policy causes less than PRO-IO at any size", &all),
        most(
            "5.4: write-aware policies cause less than their twins in most cases",
            &twins(places, &all),
            below(1.0),
        ),
        claim_named(
            "5.4: but not by much (here: nowhere by 10 %)",
            &twins(places, &all),
            above(1.0 - COUNTS),
        ),
        claim_named("5.4: at 40K and 50K pages ARC-IO causes more than ARC", &arc, above(1.0)),
    ]
}

/// Judges figure 5.5.
pub(super) fn mysql_pools(places: &Places) -> Vec<Claim> {
    let others = NOT_PRO.map(|policy| ("960mbuf", policy));
    let same = others
        .map(|(_, policy)| (format!("{policy}/pro-io"), places.ratio(MYSQL[3], policy, "pro-io")));
    let worse: Named = TWINS[..2]
        .iter()
        .flat_map(|(aware, twin, _)| places.ratios(&MYSQL[..2], aware, twin))
        .collect();
    vec![
        claim_named(
            "5.5: total I/O falls with the pool's size, for every policy",
            &steps(
                places,
                &["pro-io", "lru-io", "t2-lru", "arc-io", "t2-arc", "tq-io", "tq"],
                &MYSQL,
            ),
            below(1.0),
        ),
        pro_io(places, "5.5: no policy causes less than PRO-IO below any pool", &MYSQL),
        claim_named(
            "5.5: below the pool of 96 % all are alike (here: within 5 % of PRO-IO)",
            &same.to_vec(),
            SAME,
        ),
        claim_named(
            "5.5: write-aware policies save nothing that counts (here: nowhere 10 %)",
            &twins(places, &MYSQL),
            above(1.0 - COUNTS),
        ),
        claim_named(
            "5.5: below the pools of 12 and 24 % LRU and ARC cause less than LRU-IO and ARC-IO",
            &worse,
            above(1.0),
        ),
    ]
}

/// Judges figure 5.6.
pub(super) fn sizes(places: &Places) -> Vec<Claim> {
    let all = STEPS.map(|size| Place::of("300k_4000", size));
    let [small, large] = [all[0], all[5]];
    let mut claims: Vec<Claim> = (0..TWINS.len())
        .map(|twin| {
            let percent = TWINS[twin].2[0];
            saves(places, "5.6: at some size saves", &all, twin, percent)
        })
        .collect();
    let same: Named = ["lru-io", "t2-lru", "arc-io", "t2-arc", "tq-io"]
        .iter()
        .map(|policy| (format!("{policy}/t2-lru"), places.ratio(large, policy, "t2-lru")))
        .filter(|(name, _)| name != "t2-lru/t2-lru")
        .collect();
    claims.extend([
        most(
            "5.6: write-aware policies cause less than their twins in most cases",
            &twins(places, &all),
            below(1.0),
        ),
        pro_io(places, "5.6: no policy causes less than PRO-IO at any size", &all),
        claim_named(
            "5.6: LRU, ARC and PRO-IO cause no more with a larger second tier",
            &steps(places, &["pro-io", "lru-io", "t2-lru", "arc-io", "t2-arc"], &all),
            at_most(1.0),
        ),
        claim_named(
            "5.6: at 100K pages write-aware policies are of little help (here: under 5 %)",
            &twins(places, &[small]),
            above(0.95),
        ),
        claim_named(
            "5.6: at 600K pages all but TQ are almost the same (here: within 5 % of LRU)",
            &same,
            SAME,
        ),
        places.apart(
            "5.6: and TQ causes more (here: over 5 %)",
            large,
            &["tq"],
            &["t2-lru", "t2-arc", "tq-io"],
            above(1.05),
        ),
    ]);
    claims
}

/// Judges figure 5.7, from eviction writes.
pub(super) fn eviction_writes(writes: &Places) -> Vec<Claim> {
    let at = |size: &'static str| Place::of("300k_4000", size);
    let few: Named = ["500", "600"]
        .into_iter()
        .map(|size| (format!("tq-io/tq at {size}"), writes.ratio(at(size), "tq-io", "tq")))
        .collect();
    vec![
        writes.apart(
            "5.7: at 400K pages TQ and TQ-IO cause many more eviction writes than LRU and ARC, \
             write-aware or not (here: over half as many again)",
            at("400"),
            &["tq", "tq-io"],
            &["lru-io", "t2-lru", "arc-io", "t2-arc"],
            above(1.5),
        ),
        claim_named(
            "5.7: at 500K and 600K TQ-IO causes few (here: under half of TQ's)",
            &few,
            below(0.5),
        ),
    ]
}

/// Judges figure 5.8.
pub(super) fn pools(places: &Places) -> Vec<Claim> {
    let [small, middle, large] = POOLS;
    let change = |twin: usize, at: Place<'_>| {
        let (aware, blind, _) = TWINS[twin];
        let name = format!("{aware}/{blind} at {} over {}", at.trace, small.trace);
        (name, places.change(aware, blind, at, small))
    };
    vec![
        claim_named(
            "5.8: LRU-IO saves more below the pools of 300K and 540K than below that of 60K",
            &vec![change(0, middle), change(0, large)],
            below(1.0),
        ),
        claim_named(
            "5.8: what ARC-IO and TQ-IO save does not depend on the pool (here: by under a tenth)",
            &vec![change(1, middle), change(1, large), change(2, middle), change(2, large)],
            between(0.9, 1.0 / 0.9),
        ),
        pro_io(places, "5.8: no policy causes less than PRO-IO below any pool", &POOLS),
    ]
}

/// Judges table 5.6, below the pool of 540K.
pub(super) fn parts(places: &Places, reads: &Places, writes: &Places) -> Vec<Claim> {
    let large = POOLS[2];
    let mut claims: Vec<Claim> = TWINS
        .iter()
        .map(|(aware, twin, [.., percent])| {
            let near = 1.0 - percent / 100.0;
            let says = format!("t 5.6: {aware} saves {percent} % (here: within 5 points)");
            let value = (format!("{aware}/{twin}"), places.ratio(large, aware, twin));
            claim_named(&says, &vec![value], between(near - 0.05, near + 0.05))
        })
        .collect();
    let online: Vec<_> =
        ONLINE.iter().map(|policy| (*policy, places.ratio(large, "min-rw", policy))).collect();
    let each = online.iter().map(|(_, value)| Evidence::of(*value, above(1.0)));
    claims.extend([
        Evidence::any(each).claim(
            "5.8: below the pool of 540K MIN-RW causes more I/O than some that do not know the \
             future",
            format!("MIN-RW over {}", listed(&online)),
        ),
        reads.apart(
            "t 5.6: MIN-RW has the fewest reads",
            large,
            &["min-rw"],
            &["pro-io", "lru-io", "t2-lru", "arc-io", "t2-arc", "tq-io", "tq"],
            below(1.0),
        ),
        writes.apart(
            "t 5.6: and the most writes",
            large,
            &["min-rw"],
            &["pro-io", "lru-io", "t2-lru", "arc-io", "t2-arc", "tq-io", "tq"],
            above(1.0),
        ),
        reads.apart(
            "t 5.6: TQ reads less than LRU and ARC, write-aware or not",
            large,
            &["tq"],
            &["lru-io", "t2-lru", "arc-io", "t2-arc"],
            below(1.0),
        ),
    ]);
    claims
}

/// Judges figure 5.9.
pub(super) fn gaps(places: &Places) -> Vec<Claim> {
    let [tight, _, wide] = GAPS;
    let mut claims: Vec<Claim> = (0..TWINS.len())
        .map(|twin| saves(places, "5.9: at some gap saves", &GAPS, twin, TWINS[twin].2[1]))
        .collect();
    let more: Named = TWINS
        .iter()
        .map(|(aware, twin, _)| {
            let change = places.change(aware, twin, wide, tight);
            (format!("{aware}/{twin} at 4000 over 40"), change)
        })
        .collect();
    claims.extend([
        most(
            "5.9: write-aware policies cause less than their twins in most cases",
            &twins(places, &GAPS),
            below(1.0),
        ),
        pro_io(places, "5.9: no policy causes less than PRO-IO at any gap", &GAPS),
        claim_named(
            "5.9: total I/O falls with the gap, for every policy",
            &steps(places, &[&NOT_PRO[..], &["pro-io"]].concat(), &GAPS),
            below(1.0),
        ),
        claim_named(
            "5.9: the larger the gap, the more write-aware policies save",
            &more,
            below(1.0),
        ),
        claim_named(
            "5.9: at softmax 40 they save nothing that counts (here: under 5 %)",
            &twins(places, &[tight]),
            SAME,
        ),
    ]);
    claims
}

#[cfg(test)]
mod tests;
