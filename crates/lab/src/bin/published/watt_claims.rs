//! What WATT's paper says about its figures, claim by claim.

use super::arena::Failure;
use super::claims::{Claim, listed};
use super::watt_lab::{Lab, Measured, POLICIES, TRACES};

/// Where the Zipf traces are in [`TRACES`]: all but the first.
const ZIPFS: std::ops::Range<usize> = 1..TRACES.len();
/// The traces with writes.
const WRITTEN: [usize; 2] = [0, 3];

/// The claims of §4.2 from `figure`, measured for [`POLICIES`], and some of §4.3.
pub fn claims(lab: &Lab, figure: &[Measured]) -> Result<String, Failure> {
    let of = |policy: &str| {
        let at = POLICIES.iter().position(|p| *p == policy);
        at.map(|at| &figure[at]).ok_or_else(|| format!("{policy} is not in the figure"))
    };
    let (lru, watt) = (of("lru")?, of("watt")?);
    let (hyperbolic, arc) = (of("hyperbolic(sample=20)")?, of("arc")?);
    let mut claims = vec![worst(figure, watt), best(figure, watt)];
    claims.push(close_to(
        "CLOCK and LeanEvict are slightly worse than LRU",
        lru,
        &[("CLOCK", of("clock")?), ("LeanEvict", of("lean-evict(cooling=30%)")?)],
    ));
    claims.push(close_to(
        "so are CFLRU and LRU-WSR",
        lru,
        &[("CFLRU", of("cflru(window=30%)")?), ("LRU-WSR", of("lru-wsr")?)],
    ));
    claims.extend(lru_2(&[of("lru-k")?, of("lru-k(history=all)")?], lru));
    claims.push(between(&[("Hyperbolic", hyperbolic), ("ARC", arc)], lru, watt));
    claims.extend(parameters(lab)?);
    Ok(listed(&claims))
}

fn worst(figure: &[Measured], watt: &Measured) -> Claim {
    let all: Vec<f64> = figure.iter().map(|m| m.over_all(watt)).collect();
    let next = all[1..].iter().copied().fold(f64::MIN, f64::max);
    Claim::new(
        "random is the worst",
        format!("random {:.3}, the next worst {next:.3}", all[0]),
        all[0] > next,
    )
}

fn best(figure: &[Measured], watt: &Measured) -> Claim {
    let others = figure.iter().zip(POLICIES).filter(|(_, name)| !name.starts_with("watt"));
    let (next, name) = others
        .map(|(m, name)| (m.over_all(watt), name))
        .fold((f64::MAX, ""), |a, b| if b.0 < a.0 { b } else { a });
    Claim::new(
        "WATT is the best on average over all workloads and sizes",
        format!("the best of the others is {name} with {next:.3}"),
        next > 1.0,
    )
}

/// "Slightly worse": by up to a tenth; equal to the third digit is not worse.
fn close_to(text: &'static str, lru: &Measured, others: &[(&str, &Measured)]) -> Claim {
    let ratios: Vec<(&str, f64)> = others.iter().map(|(n, m)| (*n, m.over_all(lru))).collect();
    let said: Vec<String> = ratios.iter().map(|(n, r)| format!("{n} {r:.3} × LRU")).collect();
    Claim::new(text, said.join(", "), ratios.iter().all(|(_, r)| *r > 1.0005 && *r < 1.1))
}

/// LRU-2, without and with a memory of pages that left: the paper does not say which it means, so
/// each is judged by itself.
fn lru_2(variants: &[&Measured; 2], lru: &Measured) -> [Claim; 4] {
    let [none, all] = *variants;
    let said = |of: &Measured, traces: std::ops::Range<usize>| {
        let each = |trace: usize| format!("{} {:.3}", TRACES[trace].1, of.over(lru, trace));
        format!("over LRU: {}", traces.map(each).collect::<Vec<_>>().join(", "))
    };
    let beats = |text, of: &Measured| {
        Claim::new(text, said(of, ZIPFS), ZIPFS.into_iter().all(|trace| of.over(lru, trace) < 1.0))
    };
    let loses = |text, of: &Measured| Claim::new(text, said(of, 0..1), of.over(lru, 0) > 1.0);
    [
        beats("LRU-2 without history beats LRU on the Zipf workloads", none),
        beats("LRU-2 with history beats LRU on the Zipf workloads", all),
        loses("LRU-2 without history is worse than LRU on TPC-E (and TPC-C)", none),
        loses("LRU-2 with history is worse than LRU on TPC-E (and TPC-C)", all),
    ]
}

fn between(others: &[(&str, &Measured)], lru: &Measured, watt: &Measured) -> Claim {
    let said = others
        .iter()
        .map(|(n, m)| format!("{n} {:.3} × LRU, {:.3} × WATT", m.over_all(lru), m.over_all(watt)));
    Claim::new(
        "Hyperbolic and ARC are generally better than LRU, on average worse than WATT",
        said.collect::<Vec<_>>().join("; "),
        others.iter().all(|(_, m)| m.over_all(lru) < 1.0 && m.over_all(watt) > 1.0),
    )
}

/// What §4.2 and §4.3 say about the parameters.
fn parameters(lab: &Lab) -> Result<Vec<Claim>, Failure> {
    let policies = [
        "watt(write_weight=0)",
        "watt",
        "watt(writes=0,write_weight=0)",
        "watt(writes=0,write_weight=0,dampening=1)",
        "watt(writes=0,write_weight=0,accesses=1)",
        "watt(log=strict)",
        "watt(log=bit)",
    ];
    let measured = lab.measure(&policies)?;
    let [zero, four, plain, undamped, short, strict, bit] = &measured[..] else {
        return Err("each policy is measured once".into());
    };
    let traded = WRITTEN.map(|t| (four.writes_over(zero, t), four.over(zero, t)));
    let named = |trace: usize, text: String| format!("{} {text}", TRACES[trace].1);
    let said = WRITTEN.iter().zip(traded).map(|(t, (writes, misses))| {
        named(*t, format!("writes × {writes:.3}, misses × {misses:.3}"))
    });
    let both_lists = |other: &Measured| {
        let each = WRITTEN.map(|t| (other.over(four, t) + other.writes_over(four, t)) / 2.0);
        (each[0] + each[1]) / 2.0
    };
    let (undamped, short) = (undamped.over_all(plain), short.over_all(plain));
    Ok(vec![
        Claim::new(
            "a write weight saves writes for a few more misses (< 15 %)",
            format!("weight 4 over 0: {}", said.collect::<Vec<_>>().join("; ")),
            traded.iter().all(|(writes, misses)| *writes < 1.0 && *misses < 1.15),
        ),
        Claim::new(
            "dampening the last access (0.1) improves it",
            format!("without: misses × {undamped:.3}"),
            undamped > 1.0,
        ),
        Claim::new(
            "eight accesses are better than one",
            format!("with one: misses × {short:.3}"),
            short > 1.0,
        ),
        Claim::new(
            "one access and one write list beat strict lists and one list with a bit",
            format!(
                "reads and writes, mean: strict × {:.3}, bit × {:.3}",
                both_lists(strict),
                both_lists(bit)
            ),
            both_lists(strict) > 1.0 && both_lists(bit) > 1.0,
        ),
    ])
}
