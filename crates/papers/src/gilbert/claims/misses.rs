//! Misses of all policies: figure 1.30.

use millpond_lab::report::Claim;

use super::super::bounds::{ALIKE, DATA, GB_1, GB_4};
use super::ranking::{Asked, By, HIS, Place, ranked};
use super::speed::{SORTED_KS, shared, those, those_run};
use crate::live::sizes::{Pair, RANDOM, Sizes};
use millpond_lab::verdict::{Evidence, Named, above, below, between, claim_named, most};

/// Policies with few misses in a small pool, by his measurement.
const FEW: [&str; 7] =
    ["lru", SORTED_KS[0], SORTED_KS[1], SORTED_KS[2], "gclock-v1", "lrd-v1", "lrd-v2"];
const CLOCKS: [&str; 6] = ["clock", "zclock", "gclock-v1", "gclock-v2", "dgclock-v1", "dgclock-v2"];
const LISTS: [&str; 6] = ["lru", "slru", "mru", "lru-k", "lru-k(k=3)", "lru-k(k=4)"];

fn asked(is: fn(&Place) -> Evidence) -> Asked {
    Asked { by: By::Misses, is, over_pools: |each| Evidence::all(each) }
}

/// Claims about misses.
pub(in super::super) fn misses(sizes: &Sizes) -> Vec<Claim> {
    [small(sizes), fitting(sizes), compared(sizes)].concat()
}

/// Claims about small pools.
fn small(sizes: &Sizes) -> Vec<Claim> {
    let small = sizes.percents_at(|p| p <= GB_1);
    let smaller = those(&shared(sizes, &[RANDOM, "filo"]), |p| p < GB_4);
    let others: Vec<&str> = HIS.into_iter().filter(|one| *one != "filo").collect();
    let others = those_run(sizes, &smaller, &others);
    let pairs: Vec<Pair<'_>> = others.iter().map(|other| ("filo", *other)).collect();
    vec![
        ranked(
            "in small pools (up to 1 GB, 7 %), the list of LRU, sorted LRU-K, GCLOCK-V1 and LRD \
             miss less than most",
            sizes,
            &small,
            &FEW,
            asked(Place::is_better_than_most),
        ),
        ranked(
            "below 4 GB (28 %) FILO misses more than most",
            sizes,
            &smaller,
            &["filo"],
            asked(Place::is_worse_than_most),
        ),
        most(
            "by some 4 %; by 2 to 6 % here",
            &sizes.ratios(&smaller, &pairs, Sizes::misses),
            between(1.02, 1.06),
        ),
    ]
}

/// Claims about pools that hold the data.
fn fitting(sizes: &Sizes) -> Vec<Claim> {
    let fits = sizes.percents_at(|p| p > DATA);
    let ratios = |policies: &[&str]| -> Named {
        let at = |percent: &str| -> Named {
            let named = policies.iter().filter(|policy| sizes.was_run(percent, policy));
            let of = |policy: &&str| {
                let value = sizes.miss_ratio(percent, policy).map(|ratio| ratio.times(100.0));
                (format!("{policy} at {percent} %"), value)
            };
            named.map(of).collect()
        };
        fits.iter().flat_map(|percent| at(percent)).collect()
    };
    vec![
        ranked(
            "where the data fit, FIFO and FILO are among those that miss least",
            sizes,
            &fits,
            &["fifo", "filo"],
            asked(Place::is_among_best),
        ),
        most("there most miss less than 0.2 % of references", &ratios(&HIS), below(0.2)),
        claim_named(
            "there lists behind one latch miss some 0.9 %, for having run less from an empty \
             pool; 0.8 to 1 % here",
            &ratios(&LISTS),
            between(0.8, 1.0),
        ),
    ]
}

/// Claims that compare policies (his analysis).
fn compared(sizes: &Sizes) -> Vec<Claim> {
    let stamps = shared(sizes, &["sorting-lru", SORTED_KS[0]]);
    let all: Vec<&str> = [RANDOM, "loop"].into_iter().chain(CLOCKS).collect();
    let clocks = those(&shared(sizes, &all), |p| p < DATA);
    let over: Vec<Pair<'_>> = [RANDOM, "loop"]
        .into_iter()
        .flat_map(|one| CLOCKS.into_iter().map(move |clock| (one, clock)))
        .collect();
    let ageing = shared(sizes, &["lfu", "lfuda"]);
    let ratios =
        |percents: &[&str], pairs: &[Pair<'_>]| sizes.ratios(percents, pairs, Sizes::misses);
    let aged = |percents: &[&str]| ratios(percents, &[("lfuda", "lfu")]);
    vec![
        fewest(sizes),
        claim_named(
            "in larger pools (from 4 GB, 28 %) sorted LRU misses as little as sorted LRU-2; within \
             10 % here",
            &ratios(&those(&stamps, |p| p >= GB_4), &[("sorting-lru", SORTED_KS[0])]),
            ALIKE,
        ),
        claim_named(
            "RANDOM and LOOP miss more than the clocks, in pools smaller than the data",
            &ratios(&clocks, &over),
            above(1.0),
        ),
        claim_named(
            "in small pools (up to 1 GB, 7 %) LFUDA misses less than LFU",
            &aged(&those(&ageing, |p| p <= GB_1)),
            below(1.0),
        ),
        claim_named(
            "in larger ones (from 4 GB, 28 %) it misses more",
            &aged(&those(&ageing, |p| p >= GB_4)),
            above(1.0),
        ),
    ]
}

/// Judges that in most pools no other policy misses less than the best of the sorted LRU-Ks.
fn fewest(sizes: &Sizes) -> Claim {
    let says = "in most pools sorted LRU-K misses least";
    let others: Vec<&str> = HIS.into_iter().filter(|one| !SORTED_KS.contains(one)).collect();
    let (mut here, mut pools) = (Vec::new(), Vec::new());
    for percent in sizes.percents() {
        let place = |k| Some((k, Place::of(sizes, percent, k, &others, By::Misses)?));
        let places: Vec<(&str, Place)> = SORTED_KS.into_iter().filter_map(place).collect();
        let Some((best, place)) = places.iter().min_by_key(|(_, place)| place.counts().0) else {
            continue;
        };
        here.push(place.shown(best, percent));
        pools.push(Evidence::any(places.iter().map(|(_, place)| place.is_best())));
    }
    match pools.is_empty() {
        true => Claim::open(says, "not run"),
        false => Evidence::most(pools).claim(says, here.join("; ")),
    }
}
