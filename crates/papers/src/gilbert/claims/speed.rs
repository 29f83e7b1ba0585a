//! Throughput of all policies: figure 1.29.

use millpond_lab::report::Claim;

use super::super::bounds::{ALIKE, ALMOST_TWICE, DATA, GB_1, GB_2, GB_10, GB_20};
use super::ranking::{Asked, By, HIS, Place, ranked};
use crate::live::sizes::{Pair, RANDOM, Sizes};
use millpond_lab::verdict::{Evidence, Named, above, below, claim_named, most};

const LISTS: [&str; 4] = ["lru", "slru", "lru-k", "mru"];
const ONE_LATCH: [&str; 2] = ["lru", "slru"];
const LIST_KS: [&str; 3] = ["lru-k", "lru-k(k=3)", "lru-k(k=4)"];
pub(super) const SORTED_KS: [&str; 3] =
    ["sorting-lru-k", "sorting-lru-k(k=3)", "sorting-lru-k(k=4)"];
/// Pools that are needed, by their names in rows.
const FOUR_AND_SIX: [&str; 2] = ["28", "42"];
const DROPS: [(&str, &str, &str); 2] = [("fifo", "7", "3.5"), ("filo", "175", "140")];

/// Returns the pools in which all of these policies were run.
pub(super) fn shared<'s>(sizes: &'s Sizes, policies: &[&str]) -> Vec<&'s str> {
    let all = |percent: &&str| policies.iter().all(|policy| sizes.was_run(percent, policy));
    sizes.percents().into_iter().filter(all).collect()
}

/// Returns the pools whose percentage satisfies `at`.
pub(super) fn those<'s>(percents: &[&'s str], at: impl Fn(f64) -> bool) -> Vec<&'s str> {
    percents.iter().filter(|percent| percent.parse().is_ok_and(&at)).copied().collect()
}

fn asked(is: fn(&Place) -> Evidence) -> Asked {
    Asked { by: By::Speed, is, over_pools: |each| Evidence::all(each) }
}

fn in_most(is: fn(&Place) -> Evidence) -> Asked {
    Asked { over_pools: |each| Evidence::most(each), ..asked(is) }
}

/// Claims about throughput.
pub(in super::super) fn speed(sizes: &Sizes) -> Vec<Claim> {
    [lists(sizes), lists_of_k(sizes), queues(sizes), counts(sizes), stamps_and_clocks(sizes)]
        .concat()
}

/// Claims about lists behind one latch.
fn lists(sizes: &Sizes) -> Vec<Claim> {
    let percents = shared(sizes, &[RANDOM, "lru", "slru"]);
    let (smaller, larger) = (those(&percents, |p| p <= GB_10), those(&percents, |p| p > GB_10));
    let last: Vec<&str> = percents.last().copied().into_iter().collect();
    let over_random = |policies: &[&str]| -> Named {
        let pairs: Vec<Pair<'_>> = policies.iter().map(|list| (*list, RANDOM)).collect();
        sizes.ratios(&last, &pairs, Sizes::faster)
    };
    let mut growth: Named = Vec::new();
    let mut gaps: Named = Vec::new();
    for list in ONE_LATCH {
        growth.extend(larger.windows(2).map(|pair| {
            let name = format!("{list} at {} over {} %", pair[1], pair[0]);
            (name, sizes.growth(list, pair[1], pair[0]))
        }));
        for (most, percent) in last.iter().flat_map(|most| smaller.iter().map(move |p| (most, p))) {
            let lead = sizes.lead((most, (list, RANDOM)), (percent, (list, RANDOM)));
            gaps.push((
                format!("{list} over {RANDOM} at {most} %, over that at {percent} %"),
                lead,
            ));
        }
    }
    vec![
        claim_named(
            "in the largest pool, lists behind one latch are slower than RANDOM",
            &over_random(&LISTS),
            below(1.0),
        ),
        claim_named(
            "there the lists of LRU and SLRU are some 94 % slower than the fastest, with 12 \
             cores; at most a tenth of RANDOM here",
            &over_random(&ONE_LATCH),
            below(0.1),
        ),
        claim_named(
            "above 10 GB (70 %) they are no faster in larger pools; by 10 % at most here",
            &growth,
            below(ALIKE.high),
        ),
        ranked(
            "up to there they are slower than most",
            sizes,
            &smaller,
            &ONE_LATCH,
            asked(Place::is_worse_than_most),
        ),
        claim_named("but what they lose is less there than in the largest", &gaps, below(1.0)),
    ]
}

/// Claims about the lists of LRU-K.
fn lists_of_k(sizes: &Sizes) -> Vec<Claim> {
    let percents = shared(sizes, &["lru", "lru-k"]);
    let last: Vec<&str> = percents.last().copied().into_iter().collect();
    let over = |others: &[&'static str]| -> Vec<Pair<'_>> {
        others.iter().map(|other| (LIST_KS[0], *other)).collect()
    };
    let competition: Vec<&str> =
        HIS.into_iter().filter(|one| !LISTS.contains(one) && !LIST_KS.contains(one)).collect();
    let competition = those_run(sizes, &last, &competition);
    let pairs = LIST_KS.map(|list| (list, "lru"));
    vec![
        claim_named(
            "in the largest pool, the lists of LRU-K are almost twice as fast as that of LRU; 1.5 \
             times here",
            &sizes.ratios(&last, &pairs, Sizes::faster),
            above(ALMOST_TWICE),
        ),
        claim_named(
            "there that of LRU-2 is the fastest of them",
            &sizes.ratios(&last, &over(&LIST_KS[1..]), Sizes::faster),
            above(1.0),
        ),
        most(
            "and yet almost 90 % slower than most; 85 % at least here",
            &sizes.ratios(&last, &over(&competition), Sizes::faster),
            below(0.15),
        ),
    ]
}

/// Returns the policies that were run in one of the pools.
pub(super) fn those_run(
    sizes: &Sizes,
    percents: &[&str],
    policies: &[&'static str],
) -> Vec<&'static str> {
    let is_there = |policy: &&str| percents.iter().any(|percent| sizes.was_run(percent, policy));
    policies.iter().copied().filter(is_there).collect()
}

/// Claims about FIFO and FILO.
fn queues(sizes: &Sizes) -> Vec<Claim> {
    let queues = ["fifo", "filo"];
    let drops = DROPS.map(|(policy, to, from)| {
        (format!("{policy} at {to} over {from} %"), sizes.growth(policy, to, from))
    });
    vec![
        ranked(
            "FIFO and FILO are in the middle where the pool is smaller than the data",
            sizes,
            &sizes.percents_at(|p| p < DATA),
            &queues,
            asked(Place::is_in_the_middle),
        ),
        ranked(
            "where (almost) nothing is evicted, they are among the fastest",
            sizes,
            &sizes.percents_at(|p| p > GB_20),
            &queues,
            asked(Place::is_among_best),
        ),
        claim_named(
            "FIFO's throughput drops with 1 GB (7 %), FILO's with 25 GB (175 %)",
            &drops.to_vec(),
            below(1.0),
        ),
    ]
}

/// Claims about LFU, LFUDA and LRD.
fn counts(sizes: &Sizes) -> Vec<Claim> {
    let small = sizes.percents_at(|p| p <= GB_1);
    let medium = sizes.percents_at(|p| (GB_2..=GB_20).contains(&p));
    let large = sizes.percents_at(|p| p > GB_20);
    let both = ["lfu", "lfuda"];
    let densities = ["lrd-v1", "lrd-v2"];
    let shared = shared(sizes, &["lfu", "lfuda", "lrd-v1", "lrd-v2"]);
    let pairs = |pairs: &[Pair<'_>]| sizes.ratios(&shared, pairs, Sizes::faster);
    let beside = |other| densities.map(|density| (density, other));
    let rank = |says, percents: &[&str], policies: &[&str], is| {
        ranked(says, sizes, percents, policies, asked(is))
    };
    vec![
        rank(
            "up to 1 GB (7 %) LFU is among the slowest",
            &small,
            &both[..1],
            Place::is_among_worst,
        ),
        rank("LFUDA is in the middle there", &small, &both[1..], Place::is_in_the_middle),
        rank(
            "from 2 to 20 GB (14 to 140 %) both are among the slowest",
            &medium,
            &both,
            Place::is_among_worst,
        ),
        rank("above, both are among the fastest", &large, &both, Place::is_among_best),
        claim_named("LFUDA is always faster than LFU", &pairs(&[("lfuda", "lfu")]), above(1.0)),
        claim_named("LRD is much like LFU; within 10 % here", &pairs(&beside("lfu")), ALIKE),
        claim_named("it is slower than LFUDA, in each pool", &pairs(&beside("lfuda")), below(1.0)),
    ]
}

/// Claims about sorted time stamps, RANDOM and the clocks.
fn stamps_and_clocks(sizes: &Sizes) -> Vec<Claim> {
    let lru = shared(sizes, &["sorting-lru", "lru"]);
    let ks = those(&shared(sizes, &SORTED_KS), |p| p >= GB_2);
    let whole = sizes.percents();
    let fastest = [RANDOM, "sorting-lru", "clock", "zclock", "gclock-v1", "gclock-v2"];
    let clocks = ["zclock", "gclock-v1", "gclock-v2", "dgclock-v1", "dgclock-v2"];
    let all_clocks = shared(sizes, &clocks);
    let small = those(&all_clocks, |p| p <= GB_1);
    let big = those(&all_clocks, |p| p > DATA);
    let simple = ["clock", "zclock"];
    let counting = &clocks[1..];
    let simple_over: Vec<Pair<'_>> =
        simple.iter().flat_map(|one| counting.iter().map(move |other| (*one, *other))).collect();
    let over_clock = clocks.map(|one| (one, "clock"));
    let faster =
        |percents: &[&str], pairs: &[Pair<'_>]| sizes.ratios(percents, pairs, Sizes::faster);
    vec![
        claim_named(
            "sorted time stamps are faster than the list of LRU, in each pool",
            &faster(&lru, &[("sorting-lru", "lru")]),
            above(1.0),
        ),
        ranked(
            "sorted LRU-K is almost among the fastest; faster than most in most pools here",
            sizes,
            &whole,
            &SORTED_KS,
            in_most(Place::is_better_than_most),
        ),
        claim_named(
            "but for the smallest pools (from 2 GB, 14 %), sorted LRU-2 is the fastest of them",
            &faster(&ks, &[(SORTED_KS[0], SORTED_KS[1]), (SORTED_KS[0], SORTED_KS[2])]),
            above(1.0),
        ),
        ranked(
            "RANDOM, sorted LRU, CLOCK, ZCLOCK and both GCLOCKs are among the fastest in most \
             pools",
            sizes,
            &whole,
            &fastest,
            in_most(Place::is_among_best),
        ),
        claim_named(
            "with 4 and 6 GB (28 and 42 %), both DGCLOCKs are almost twice as fast; 1.5 times \
             CLOCK here",
            &faster(&FOUR_AND_SIX, &[("dgclock-v1", "clock"), ("dgclock-v2", "clock")]),
            above(ALMOST_TWICE),
        ),
        claim_named(
            "in very small pools (1 GB, 7 %) all clocks are much alike; within 10 % of CLOCK here",
            &faster(&small, &over_clock),
            ALIKE,
        ),
        claim_named(
            "where the data fit, CLOCK and ZCLOCK are faster than the clocks that count",
            &faster(&big, &simple_over),
            above(1.0),
        ),
        most(
            "GCLOCK-V1 is slower than V2 in most pools",
            &faster(&all_clocks, &[("gclock-v1", "gclock-v2")]),
            below(1.0),
        ),
        claim_named(
            "both DGCLOCKs are equally fast; within 10 % here",
            &faster(&all_clocks, &[("dgclock-v1", "dgclock-v2")]),
            ALIKE,
        ),
    ]
}
