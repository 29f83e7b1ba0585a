//! LRD-V2 and lean eviction: figures 1.25 to 1.28.

use millpond_lab::interval::Interval;
use millpond_lab::report::Claim;

use super::super::bounds::{GB_1, GB_5, NEGLIGIBLE, SLIGHT};
use super::clocks::SMALLEST;
use crate::live::sizes::{Pair, Sizes};
use millpond_lab::verdict::{Evidence, Named, above, below, claim_named, is_more};

/// Pools of 2.5 and 5 GB, by their names in rows.
const SOME: &str = "17";
const MORE: &str = "35";

/// Ways of ageing counts, each with a period and a step.
pub(in super::super) const AGEINGS: [&str; 6] = [
    "period=10,aging=subtract,by=10",
    "period=2,aging=subtract,by=10",
    "period=2,aging=multiply,by=0.75",
    "period=2,aging=multiply,by=0.5",
    "period=10,aging=multiply,by=0.75",
    "period=10,aging=multiply,by=0.5",
];
/// Ageings that also run with his search of all frames: the one that he uses later, and his
/// example of a large pool that is slower than a small one.
pub(in super::super) const SEARCHED: [&str; 2] = [AGEINGS[0], AGEINGS[3]];

/// Returns LRD-V2 with an ageing.
pub(in super::super) fn lrd(ageing: &str) -> String {
    format!("lrd-v2({ageing})")
}

/// Returns LRD-V2 with an ageing and his search of all frames.
pub(in super::super) fn lrd_searched(ageing: &str) -> String {
    format!("lrd-v2(search=linear,{ageing})")
}

/// Claims about counts that age.
pub(in super::super) fn lrd_v2(sizes: &Sizes) -> Vec<Claim> {
    [larger_pools(sizes), ageing(sizes)].concat()
}

/// Claims about the effect of larger pools.
fn larger_pools(sizes: &Sizes) -> Vec<Claim> {
    let names: Vec<String> = AGEINGS.iter().map(|ageing| lrd(ageing)).collect();
    let searched = SEARCHED.map(lrd_searched);
    let own: Vec<&str> = names.iter().map(String::as_str).collect();
    let all: Vec<&str> = names.iter().chain(&searched).map(String::as_str).collect();
    let steps = |percents: &[&str], policies: &[&str]| -> Named {
        let of = |pair: &[&str]| -> Named {
            let grown = |policy: &&str| {
                let name = format!("{policy} at {} over {} %", pair[1], pair[0]);
                (name, sizes.growth(policy, pair[1], pair[0]))
            };
            policies.iter().map(grown).collect()
        };
        percents.windows(2).flat_map(of).collect()
    };
    let example = [own[3], &searched[1]];
    vec![
        claim_named(
            "most striking: while less than some 10 % of the data fit (100 MB to 1 GB), all \
             variants are slower in larger pools",
            &steps(&sizes.percents_at(|p| p <= GB_1), &all),
            below(1.0),
        ),
        claim_named(
            "2 · 0.5 is faster with 100 MB (0.7 %) than with 5 GB (35 %)",
            &steps(&[SMALLEST, MORE], &example),
            below(1.0),
        ),
        claim_named(
            "from there on all are faster in larger pools",
            &steps(&sizes.percents_at(|p| p >= GB_5), &own),
            above(1.0),
        ),
    ]
}

/// Claims about the period and the step of ageing.
fn ageing(sizes: &Sizes) -> Vec<Claim> {
    let names = AGEINGS.map(lrd);
    let [long_minus, minus, by_075, by_05, long_075, long_05] =
        names.each_ref().map(String::as_str);
    let short = [(minus, long_minus), (by_075, long_075), (by_05, long_05)];
    let long = short.map(|(short, long)| (long, short));
    let others: Vec<Pair<'_>> = names[1..].iter().map(|one| (one.as_str(), long_minus)).collect();
    let smaller = sizes.percents_at(|p| p < GB_5);
    let larger = sizes.percents_at(|p| p >= GB_5);
    vec![
        claim_named(
            "with 100 MB (0.7 %), periods of 2 are faster than periods of 10",
            &sizes.ratios(&[SMALLEST], &short, Sizes::faster),
            above(1.0),
        ),
        claim_named(
            "there they also miss less",
            &sizes.ratios(&[SMALLEST], &short, Sizes::misses),
            below(1.0),
        ),
        claim_named(
            "with 2.5 GB (17 %), periods of 10 are faster",
            &sizes.ratios(&[SOME], &long, Sizes::faster),
            above(1.0),
        ),
        claim_named(
            "there they also miss less",
            &sizes.ratios(&[SOME], &long, Sizes::misses),
            below(1.0),
        ),
        agreement(sizes, &names.each_ref().map(String::as_str)),
        claim_named(
            "longer periods want stronger ageing, below 5 GB: 0.75 is faster than 0.5 with a \
             period of 2, and slower with one of 10",
            &sizes.ratios(&smaller, &[(by_075, by_05), (long_05, long_075)], Sizes::faster),
            above(1.0),
        ),
        claim_named(
            "from 5 GB (35 %) on all variants are equally fast; within 5 % here",
            &sizes.ratios(&larger, &others, Sizes::faster),
            SLIGHT,
        ),
        claim_named(
            "there they miss alike; within 2 % here",
            &sizes.ratios(&larger, &others, Sizes::misses),
            NEGLIGIBLE,
        ),
    ]
}

/// Returns evidence that the faster of two variants misses less (*yes*) or more (*no*). Neither
/// ratio shows that alone.
fn agree(speed: Option<Interval>, misses: Option<Interval>) -> Evidence {
    let (faster, more) = (Evidence::more(speed), Evidence::more(misses));
    let both = |one, other| Evidence::all([one, other]);
    Evidence {
        yes: Evidence::any([both(faster, !more), both(!faster, more)]).yes,
        no: Evidence::any([both(faster, more), both(!faster, !more)]).yes,
    }
}

/// Claims that the faster of two variants misses less, in each pool where one is certainly faster.
/// The pairs are chosen by their speed, so each p-value is multiplied by the number of pairs.
fn agreement(sizes: &Sizes, names: &[&str]) -> Claim {
    let says = "in each pool the faster variants are those that miss less";
    let (mut agreed, mut against, mut open) = (0, Vec::new(), 0);
    let (mut all, mut told) = (Vec::new(), Vec::new());
    for percent in sizes.percents() {
        for (at, one) in names.iter().enumerate() {
            for other in &names[at + 1..] {
                let speed = sizes.faster(percent, one, other);
                let misses = sizes.misses(percent, one, other);
                if speed.is_none() {
                    continue;
                }
                all.push(agree(speed, misses));
                let Some(is_faster) = is_more(speed) else { continue };
                told.push(agree(speed, misses));
                match is_more(misses) {
                    None => open += 1,
                    Some(misses_more) if misses_more == is_faster => {
                        against.push(format!("{one} and {other} at {percent} %"));
                    }
                    Some(_) => agreed += 1,
                }
            }
        }
    }
    if all.is_empty() {
        return Claim::open(says, "not run");
    }
    let mut here = format!("of pairs with a certainly faster one, {agreed} agree, {open} open");
    here += &match against.as_slice() {
        [] => ", none contradicts".to_string(),
        against => format!(", against it: {}", against.join("; ")),
    };
    let pairs = all.len();
    let yes = Evidence::all(told).of_chosen(pairs).yes;
    Evidence { yes, no: Evidence::all(all).no }.claim(says, here)
}

/// Sizes of the cooling stage, starting with the one that he uses later.
pub(in super::super) const STAGES: [&str; 5] = ["2.5%", "1%", "5%", "10%", "25%"];

/// Returns lean eviction with a cooling stage.
pub(in super::super) fn cooled(stage: &str) -> String {
    format!("lean-evict(cooling={stage},refill=half)")
}

/// Claims about cooling stages.
pub(in super::super) fn lean(sizes: &Sizes) -> Vec<Claim> {
    let names = STAGES.map(cooled);
    let others: Vec<Pair<'_>> = names[1..].iter().map(|one| (&**one, &*names[0])).collect();
    let all = sizes.percents();
    vec![
        claim_named(
            "from 1 to 25 % of the pool the cooling stage's size does not change throughput; \
             within 5 % of that with 2.5 % here",
            &sizes.ratios(&all, &others, Sizes::faster),
            SLIGHT,
        ),
        claim_named(
            "nor misses; within 5 % here",
            &sizes.ratios(&all, &others, Sizes::misses),
            SLIGHT,
        ),
    ]
}
