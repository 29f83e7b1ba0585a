//! The clocks: figures 1.10 to 1.23.

use millpond_lab::report::Claim;

use super::super::bounds::{
    ALIKE, DATA, GB_01, GB_1, GB_2_5, GB_05, GB_5, GB_10, IDENTICAL, NEGLIGIBLE, SLIGHT,
};
use crate::live::sizes::{Pair, Sizes};
use millpond_lab::verdict::{Named, above, below, between, claim_named, most};

/// Doubled weights of the clocks with one weight for all pages.
pub(in super::super) const TWICE: &str = "f=50,r=10";
/// Doubled weights of a typed clock, of references and of refusals.
pub(in super::super) const TWICE_TYPED: &str =
    "f=50,f_root=50,f_root_1=25,f_deep=10,r=10,r_root=10,r_root_1=5,r_deep=2";
/// Pools that a claim needs, by their names in rows.
pub(super) const SMALLEST: &str = "0.7";
const ALMOST_ALL: &str = "70";

/// Pairs one variant with each of the others.
fn over<'p>(one: &'p str, others: &[&'p str]) -> Vec<Pair<'p>> {
    others.iter().map(|other| (one, *other)).collect()
}

/// Claims about variants by their events: fix, unfix, both, and all with refusals.
pub(in super::super) fn clock(sizes: &Sizes) -> Vec<Claim> {
    let name = |events: &str| format!("clock(variant={events})");
    let names = ["full", "fix", "unfix", "fix-unfix"].map(name);
    let [full, fix, unfix, both] = names.each_ref().map(String::as_str);
    let all = sizes.percents();
    let each = [over(full, &[fix, unfix, both]), over(both, &[fix, unfix]), over(fix, &[unfix])];
    let both_over = over(both, &[fix, unfix]);
    let full_over = over(full, &[fix, unfix, both]);
    let speed = |pairs: &[Pair<'_>]| sizes.ratios(&all, pairs, Sizes::faster);
    let misses = |pairs: &[Pair<'_>]| sizes.ratios(&all, pairs, Sizes::misses);
    vec![
        claim_named(
            "the variants' throughput differs slightly only; within 10 % here",
            &speed(&each.concat()),
            ALIKE,
        ),
        claim_named(
            "setting the bit on fix and unfix costs nothing beside one of them; within 2 % here",
            &speed(&both_over),
            NEGLIGIBLE,
        ),
        claim_named("nor does it change misses; within 2 % here", &misses(&both_over), NEGLIGIBLE),
        claim_named(
            "the full variant misses more than the others",
            &misses(&full_over),
            above(1.0),
        ),
        claim_named(
            "it is no slower than the others; by 5 % at most here",
            &speed(&full_over),
            above(SLIGHT.low),
        ),
    ]
}

/// Claims about the events counted by ZCLOCK, whose hand jumps.
pub(in super::super) fn zclock(sizes: &Sizes) -> Vec<Claim> {
    let name = |events: &str| format!("zclock(variant={events})");
    let names = ["full", "fix", "unfix", "fix-unfix"].map(name);
    let [full, fix, unfix, both] = names.each_ref().map(String::as_str);
    let all = sizes.percents();
    let best = [over(fix, &[both, full]), over(unfix, &[both, full])].concat();
    let loss = (full, fix);
    let elsewhere = sizes.percents_at(|p| p != GB_10).into_iter().map(|percent| {
        let lead = sizes.lead((ALMOST_ALL, loss), (percent, loss));
        (format!("{full} over {fix} at {ALMOST_ALL} %, over that at {percent} %"), lead)
    });
    let others = [(unfix, fix), (both, fix), (full, fix)];
    let misses = |percents: &[&str]| sizes.ratios(percents, &others, Sizes::misses);
    vec![
        claim_named(
            "fix and unfix are faster than both and full, in each pool",
            &sizes.ratios(&all, &best, Sizes::faster),
            above(1.0),
        ),
        claim_named(
            "the full variant is slower than fix where the data almost fit (10 GB, 70 %)",
            &sizes.ratios(&[ALMOST_ALL], &[loss], Sizes::faster),
            below(1.0),
        ),
        claim_named("there it loses more than elsewhere", &elsewhere.collect(), below(1.0)),
        claim_named(
            "from 2.5 GB (17 %) on the misses of all variants are almost the same; within 2 % here",
            &misses(&sizes.percents_at(|p| p >= GB_2_5)),
            NEGLIGIBLE,
        ),
        claim_named(
            "in smaller pools they differ by chance only; within 5 % here",
            &misses(&sizes.percents_at(|p| p < GB_2_5)),
            SLIGHT,
        ),
    ]
}

/// The eight variants of a clock with counts.
struct Counting(Vec<String>);

impl Counting {
    fn of(policy: &str) -> Counting {
        let single = ["fix", "fix-full", "unfix", "unfix-full"];
        let name = |events: &&str| format!("{policy}(variant={events})");
        let twice = |events: &&str| format!("{policy}(variant={events},{TWICE})");
        Counting(single.iter().map(name).chain(single.iter().map(twice)).collect())
    }

    fn all(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }

    /// Pairs variants that count refusals with those that do not; the first two have single
    /// weights.
    fn full(&self) -> [Pair<'_>; 4] {
        [(1, 0), (3, 2), (5, 4), (7, 6)].map(|(full, not)| (&*self.0[full], &*self.0[not]))
    }

    /// Pairs unfix with fix; the first two have single weights.
    fn unfix(&self) -> [Pair<'_>; 4] {
        [(2, 0), (3, 1), (6, 4), (7, 5)].map(|(unfix, fix)| (&*self.0[unfix], &*self.0[fix]))
    }
}

/// Claims about counts to which references add.
pub(in super::super) fn gclock_v1(sizes: &Sizes) -> Vec<Claim> {
    let variants = Counting::of("gclock-v1");
    let (full, unfix) = (variants.full(), variants.unfix());
    let [fix, fix_full, _, _, twice, ..] = variants.all()[..] else { return Vec::new() };
    let all = sizes.percents();
    let fits = sizes.percents_at(|p| p > DATA);
    let others: Vec<_> = variants.all().into_iter().filter(|v| *v != fix_full).collect();
    let beside = over(fix_full, &others);
    let speed =
        |percents: &[&str], pairs: &[Pair<'_>]| sizes.ratios(percents, pairs, Sizes::faster);
    let misses =
        |percents: &[&str], pairs: &[Pair<'_>]| sizes.ratios(percents, pairs, Sizes::misses);
    let mut leads: Named = Vec::new();
    for percent in sizes.percents_at(|p| p < GB_10) {
        leads.extend(full[..2].iter().map(|pair| {
            let name = format!("{} at {percent} %, over that at {ALMOST_ALL} %", pair.0);
            (name, sizes.lead((percent, *pair), (ALMOST_ALL, *pair)))
        }));
    }
    vec![
        most("counting refusals is faster in most pools", &speed(&all, &full), above(1.0)),
        claim_named(
            "where the pool is a little smaller than the data (10 GB, 70 %), by some 15 %; by 10 \
             to 20 % here",
            &speed(&[ALMOST_ALL], &full[..2]),
            between(1.10, 1.20),
        ),
        claim_named("the lead is smaller in smaller pools", &leads, below(1.0)),
        claim_named(
            "with 100 MB (0.7 %), counting them is slower",
            &speed(&[SMALLEST], &full[..2]),
            below(1.0),
        ),
        claim_named(
            "where the data fit, throughput is the same, within 0.5 %",
            &speed(&fits, &beside),
            IDENTICAL,
        ),
        claim_named("fix and unfix differ by less than 2 %", &speed(&all, &unfix), NEGLIGIBLE),
        claim_named(
            "with 10 GB (70 %), counting refusals misses less (0.53 beside 0.55 % of references)",
            &misses(&[ALMOST_ALL], &full[..2]),
            below(1.0),
        ),
        claim_named(
            "there doubled weights are in between: they miss more than fix-full, less than fix",
            &misses(&[ALMOST_ALL], &[(twice, fix_full), (fix, twice)]),
            above(1.0),
        ),
        claim_named(
            "from 1 to 5 GB (7 to 35 %), counting refusals misses less",
            &misses(&sizes.percents_at(|p| (GB_1..=GB_5).contains(&p)), &full[..2]),
            below(1.0),
        ),
        claim_named(
            "with 500 MB (3.5 %), it misses more",
            &misses(&sizes.percents_at(|p| p == GB_05), &full[..2]),
            above(1.0),
        ),
        claim_named(
            "where the data fit, misses are the same; within 0.5 % here",
            &misses(&fits, &beside),
            IDENTICAL,
        ),
    ]
}

/// Claims about counts that references set.
pub(in super::super) fn gclock_v2(sizes: &Sizes) -> Vec<Claim> {
    let (variants, adding) = (Counting::of("gclock-v2"), Counting::of("gclock-v1"));
    let (full, unfix) = (variants.full(), variants.unfix());
    let used = variants.all()[3];
    let others: Vec<_> = variants.all().into_iter().filter(|v| *v != used).collect();
    let all = sizes.percents();
    let ends = sizes.percents_at(|p| p == GB_01 || p > DATA);
    let lead = sizes.lead((ALMOST_ALL, adding.full()[0]), (ALMOST_ALL, full[0]));
    let name = format!("what refusals counted gain V1 over what they gain V2, at {ALMOST_ALL} %");
    vec![
        claim_named("variants differ less than those of V1", &vec![(name, lead)], above(1.0)),
        claim_named(
            "in very small pools (100 MB, 0.7 %) and where the data fit, by next to nothing; \
             within 2 % here",
            &sizes.ratios(&ends, &over(used, &others), Sizes::faster),
            NEGLIGIBLE,
        ),
        claim_named(
            "unfix is faster than fix",
            &sizes.ratios(&all, &unfix, Sizes::faster),
            above(1.0),
        ),
        claim_named(
            "counting refusals misses more",
            &sizes.ratios(&all, &full, Sizes::misses),
            above(1.0),
        ),
        claim_named(
            "unfix misses less than fix",
            &sizes.ratios(&all, &unfix, Sizes::misses),
            below(1.0),
        ),
    ]
}

/// Returns the four variants of a typed clock: fix and fix-full, then both with doubled
/// weights.
fn typed(policy: &str) -> [String; 4] {
    let name = |events: &str| format!("{policy}(variant={events})");
    let twice = |events: &str| format!("{policy}(variant={events},{TWICE_TYPED})");
    [name("fix"), name("fix-full"), twice("fix"), twice("fix-full")]
}

/// Claims about counts with weights for types of pages, to which references add.
pub(in super::super) fn dgclock_v1(sizes: &Sizes) -> Vec<Claim> {
    let names = typed("dgclock-v1");
    let [fix, full, fix_2, full_2] = names.each_ref().map(String::as_str);
    let larger = sizes.percents_at(|p| p >= GB_05);
    let doubled = [(fix_2, fix), (full_2, full)];
    vec![
        claim_named(
            "from 500 MB (3.5 %) on doubled weights are slower",
            &sizes.ratios(&larger, &doubled, Sizes::faster),
            below(1.0),
        ),
        claim_named(
            "there they miss more",
            &sizes.ratios(&larger, &doubled, Sizes::misses),
            above(1.0),
        ),
        claim_named(
            "there fix-full is the fastest",
            &sizes.ratios(&larger, &over(full, &[fix, fix_2, full_2]), Sizes::faster),
            above(1.0),
        ),
        claim_named(
            "there it misses less than fix",
            &sizes.ratios(&larger, &[(full, fix)], Sizes::misses),
            below(1.0),
        ),
        claim_named(
            "with 100 MB (0.7 %), fix with doubled weights misses least",
            &sizes.ratios(&[SMALLEST], &over(fix_2, &[fix, full, full_2]), Sizes::misses),
            below(1.0),
        ),
        claim_named(
            "there doubled weights are slower all the same",
            &sizes.ratios(&[SMALLEST], &doubled, Sizes::faster),
            below(1.0),
        ),
    ]
}

/// Claims about counts with weights for types of pages, which references set.
pub(in super::super) fn dgclock_v2(sizes: &Sizes) -> Vec<Claim> {
    let names = typed("dgclock-v2");
    let [fix, full, fix_2, full_2] = names.each_ref().map(String::as_str);
    let larger = sizes.percents_at(|p| p > GB_01);
    let all = sizes.percents();
    let beside = over(full, &[fix, fix_2, full_2]);
    let plain = [(fix, full), (fix_2, full_2)];
    vec![
        claim_named(
            "but for very small pools (100 MB, 0.7 %) all variants miss alike; within 2 % here",
            &sizes.ratios(&larger, &beside, Sizes::misses),
            NEGLIGIBLE,
        ),
        claim_named(
            "with 100 MB (0.7 %), those that do not count refusals miss less",
            &sizes.ratios(&[SMALLEST], &plain, Sizes::misses),
            below(1.0),
        ),
        claim_named(
            "there they are no faster for it; by 2 % at most here",
            &sizes.ratios(&[SMALLEST], &plain, Sizes::faster),
            below(NEGLIGIBLE.high),
        ),
        claim_named(
            "in larger pools throughput differs little; within 5 % here",
            &sizes.ratios(&larger, &beside, Sizes::faster),
            SLIGHT,
        ),
        claim_named(
            "doubled weights are slower in each pool",
            &sizes.ratios(&all, &[(fix_2, fix), (full_2, full)], Sizes::faster),
            below(1.0),
        ),
        claim_named(
            "in larger pools fix-full is the fastest",
            &sizes.ratios(&larger, &beside, Sizes::faster),
            above(1.0),
        ),
    ]
}
