//! Evidence for and against a statement, and for statements composed of others.

use std::ops::Not;

use crate::interval::Interval;
use crate::report::Claim;

/// The probability of a wrong verdict, over the claims of one figure.
pub(super) const LEVEL: f64 = 0.05;

/// Bounds of a value: above `low` and below `high`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// The p-values of a statement being true and of it being false. The probability that a p-value is
/// at most some level is at most that level while the opposite holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Evidence {
    /// p-value of *yes*: small if the observation is unlikely under a false statement.
    pub yes: f64,
    /// p-value of *no*: small if the observation is unlikely under a true statement.
    pub no: f64,
}

impl Evidence {
    /// No evidence in either direction.
    pub const NONE: Evidence = Evidence { yes: 1.0, no: 1.0 };

    /// Returns evidence of a fact that no other run would change.
    pub fn certain(is_so: bool) -> Evidence {
        Evidence { yes: f64::from(u8::from(!is_so)), no: f64::from(u8::from(is_so)) }
    }

    /// Returns evidence that a value is within bounds. Both bounds must hold (two one-sided tests).
    pub fn of(value: Option<Interval>, bounds: Bounds) -> Evidence {
        let Bounds { low, high } = bounds;
        let Some(value) = value else { return Evidence::NONE };
        let yes = value.p_above(low).max(value.p_below(high));
        let is_exact = value.low == value.high && value.runs != 1;
        // A value that is constant over runs and exactly on the bound is not inside.
        let no = match is_exact && (value.mean == low || value.mean == high) {
            true => 0.0,
            false => value.p_below(low).min(value.p_above(high)),
        };
        Evidence { yes, no }
    }

    /// Returns evidence that a ratio is above 1; *no* means that the ratio is below. Exactly 1
    /// supports neither.
    pub fn more(ratio: Option<Interval>) -> Evidence {
        ratio.map_or(Evidence::NONE, |ratio| Evidence {
            yes: ratio.p_above(1.0),
            no: ratio.p_below(1.0),
        })
    }

    /// Returns evidence that at least `needed` of the statements are true. The p-value of *yes* is
    /// the `needed`th smallest of their p-values, times the number of p-values that are not smaller
    /// (a partial conjunction by Bonferroni, Benjamini and Heller 2008). *No* applies the same rule
    /// to the statements being false. There is no evidence if `needed` is 0 or above the number of
    /// statements.
    ///
    /// ```
    /// # use millpond_lab::verdict::Evidence;
    /// let p = |yes| Evidence { yes, no: 1.0 };
    /// assert_eq!(Evidence::at_least(2, [p(0.25), p(0.125), p(0.5)]).yes, 0.5);
    /// ```
    pub fn at_least(needed: usize, of: impl IntoIterator<Item = Evidence>) -> Evidence {
        let (mut yes, mut no): (Vec<f64>, Vec<f64>) =
            of.into_iter().map(|one| (one.yes, one.no)).unzip();
        let count = yes.len();
        if needed == 0 || needed > count {
            return Evidence::NONE;
        }
        let some = |needed: usize, p: &mut Vec<f64>| {
            p.sort_by(f64::total_cmp);
            (p[needed - 1] * (count - needed + 1) as f64).min(1.0)
        };
        Evidence { yes: some(needed, &mut yes), no: some(count - needed + 1, &mut no) }
    }

    /// Returns evidence that all statements are true. *Yes* has their largest p-value (an
    /// intersection-union test). *No* has the smallest one times their number, because any of them
    /// could have contradicted.
    pub fn all(of: impl IntoIterator<Item = Evidence>) -> Evidence {
        let all: Vec<Evidence> = of.into_iter().collect();
        Evidence::at_least(all.len(), all)
    }

    /// Returns evidence that at least one of the statements is true: the reverse of `all`.
    pub fn any(of: impl IntoIterator<Item = Evidence>) -> Evidence {
        Evidence::at_least(1, of)
    }

    /// Returns evidence that more than half of the statements are true.
    pub fn most(of: impl IntoIterator<Item = Evidence>) -> Evidence {
        let all: Vec<Evidence> = of.into_iter().collect();
        Evidence::at_least(all.len() / 2 + 1, all)
    }

    /// Corrects the evidence for a statement that the observations chose among `count` statements
    /// (Bonferroni).
    #[must_use]
    pub fn of_chosen(self, count: usize) -> Evidence {
        let times = |p: f64| (p * count.max(1) as f64).min(1.0);
        Evidence { yes: times(self.yes), no: times(self.no) }
    }

    /// Returns the two-sided p-value of the verdict.
    pub fn p(&self) -> f64 {
        (2.0 * self.yes.min(self.no)).min(1.0)
    }

    /// Returns the claim that the evidence decides; `here` is the text shown for it.
    pub fn claim(&self, says: &str, here: String) -> Claim {
        let p = self.p();
        let holds = (p <= LEVEL).then_some(self.yes < self.no);
        Claim { holds, p: Some(p), ..Claim::open(says, here) }
    }
}

/// Negates the evidence: it is then evidence that the statement is false.
impl Not for Evidence {
    type Output = Evidence;

    fn not(self) -> Evidence {
        Evidence { yes: self.no, no: self.yes }
    }
}

#[cfg(test)]
mod tests {
    use super::super::claims::{above, corrected};
    use super::*;

    fn p(yes: f64) -> Evidence {
        Evidence { yes, no: 1.0 - yes }
    }

    #[test]
    fn conjunctions_and_disjunctions_have_the_textbook_s_p_values() {
        let three = [p(0.01), p(0.02), p(0.5)];
        let all = Evidence::all(three);
        assert_eq!((all.yes, all.no), (0.5, 1.0), "the largest; 3 × 0.5 is more than 1");
        assert_eq!(Evidence::all([p(0.99), p(0.5)]).no, 2.0 * (1.0 - 0.99));
        let any = Evidence::any(three);
        assert_eq!((any.yes, any.no), (0.03, 0.99));
        assert_eq!(Evidence::most(three).yes, 0.04, "the second of three, twice");
        assert_eq!(!Evidence::any(three), Evidence::all(three.map(|one| !one)), "De Morgan");
        assert_eq!(Evidence::at_least(0, three), Evidence::NONE);
        assert_eq!(Evidence::at_least(4, three), Evidence::NONE);
        assert_eq!(Evidence::all([]), Evidence::NONE, "nothing follows of nothing");
        assert_eq!(Evidence::most([]), Evidence::NONE);
        assert_eq!(p(0.01).of_chosen(5), Evidence { yes: 0.05, no: 1.0 });
        assert_eq!(Evidence::certain(true), !Evidence::certain(false));
        assert_eq!(Evidence::certain(true).claim("", String::new()).holds, Some(true));
    }

    #[test]
    fn verdicts_change_at_their_bounds() {
        let verdict = |of: Evidence| of.claim("", String::new()).holds;
        // Two-sided at 5 %: 2.5 % for each side.
        let (just, not_quite) = (p(0.0249), p(0.0251));
        assert_eq!(verdict(Evidence::all([just, just])), Some(true));
        assert_eq!(verdict(Evidence::all([just, not_quite])), None);
        assert_eq!(verdict(Evidence::all([just, !p(0.0124)])), Some(false));
        assert_eq!(verdict(Evidence::all([just, !p(0.0126)])), None, "one of two contradicts");
        assert_eq!(verdict(Evidence::any([p(0.0124), p(0.9)])), Some(true));
        assert_eq!(verdict(Evidence::any([p(0.0126), p(0.9)])), None);
        assert_eq!(verdict(Evidence::any([!just, !just])), Some(false));
        assert_eq!(verdict(Evidence::any([!just, !not_quite])), None);
        assert_eq!(verdict(Evidence::most([p(0.0124), p(0.0124), p(0.9)])), Some(true));
        assert_eq!(verdict(Evidence::most([p(0.0124), p(0.0126), p(0.9)])), None);
        assert_eq!(verdict(Evidence::most([p(0.0), !p(0.0)])), Some(false), "half is not most");
    }

    #[test]
    fn what_is_put_together_is_corrected_with_the_other_claims() {
        let of = |yes| Evidence::all([p(yes), p(0.001)]).claim("", String::new());
        let mut alone = [of(0.02)];
        corrected(&mut alone);
        assert_eq!((alone[0].holds, alone[0].p), (Some(true), Some(0.04)));
        let mut two = [of(0.02), of(0.02)];
        corrected(&mut two);
        assert_eq!((two[0].holds, two[0].p), (None, Some(0.08)));
    }

    /// Returns five measurements around a logarithm, each as far off as a mean of uniform draws.
    fn measured(random: &mut fastrand::Rng, log: f64) -> Option<Interval> {
        let noise = |random: &mut fastrand::Rng| (0..6).map(|_| random.f64() - 0.5).sum::<f64>();
        let values: Vec<f64> = (0..5).map(|_| (log + 0.1 * noise(random)).exp()).collect();
        Interval::of_ratios(&values, &[1.0; 5])
    }

    /// Returns the numbers of draws, of 2,000, in which a statement about ratios with these
    /// logarithms is found true, and found false.
    fn verdicts(logs: &[f64], seed: u64, of: impl Fn(Vec<Evidence>) -> Evidence) -> [usize; 2] {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut counts = [0; 2];
        for _ in 0..2000 {
            let one = |log: &f64| Evidence::of(measured(&mut random, *log), above(1.0));
            match of(logs.iter().map(one).collect()).claim("", String::new()).holds {
                Some(true) => counts[0] += 1,
                Some(false) => counts[1] += 1,
                None => {}
            }
        }
        counts
    }

    /// Limit on wrong verdicts: 2.5 % of 2,000 are 50, and three standard deviations are 21.
    const MOST: usize = 71;

    #[test]
    fn the_level_holds_where_one_part_is_just_not_so() {
        // All ratios are above 1 except one on the bound: *yes* is wrong.
        let [yes, _] = verdicts(&[1.0, 1.0, 0.0], 1, Evidence::all);
        assert!((30..=MOST).contains(&yes), "{yes}");
        // All ratios are on the bound: neither verdict is right, of all or of one.
        let kinds: [fn(Vec<Evidence>) -> Evidence; 3] =
            [|of| Evidence::all(of), |of| Evidence::any(of), |of| Evidence::most(of)];
        for of in kinds {
            let [yes, no] = verdicts(&[0.0; 6], 2, of);
            assert!(yes <= MOST && no <= MOST, "{yes} {no}");
        }
        // Five of eleven above 1 are not most; six are most.
        let logs = |over: usize, rest: f64| [vec![1.0; over], vec![rest; 11 - over]].concat();
        let [yes, no] = verdicts(&logs(5, 0.0), 3, Evidence::most);
        assert!(yes <= MOST && no <= MOST, "{yes} {no}");
        assert_eq!(verdicts(&logs(6, -1.0), 4, Evidence::most), [2000, 0]);
        assert_eq!(verdicts(&logs(5, -1.0), 5, Evidence::most), [0, 2000]);
        // If all parts are clear, the composed statement is decided.
        assert_eq!(verdicts(&[1.0; 4], 6, Evidence::all), [2000, 0]);
        assert_eq!(verdicts(&[1.0, 1.0, -1.0], 7, Evidence::all), [0, 2000]);
        assert_eq!(verdicts(&[-1.0, -1.0, 1.0], 8, Evidence::any), [2000, 0]);
    }

    #[test]
    fn the_level_holds_for_places_and_over_a_figure() {
        // The statement: at most two of eight are ahead. Two are ahead, and a third one is level.
        let third = |all: Vec<Evidence>| Evidence::at_least(6, all.into_iter().map(Not::not));
        let [yes, no] = verdicts(&[1.0, 1.0, 0.0, -1.0, -1.0, -1.0, -1.0, -1.0], 9, third);
        // The level is divided by three, by Bonferroni.
        assert!((5..=MOST).contains(&yes) && no <= MOST, "{yes} {no}");
        assert_eq!(verdicts(&[1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0], 10, third), [2000, 0]);
        assert_eq!(verdicts(&[1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0], 11, third), [0, 2000]);
        // Ten claims of three parts each: at most one figure of twenty has any wrong verdict.
        let mut random = fastrand::Rng::with_seed(12);
        let wrong = (0..1000).filter(|_| {
            let mut one = |at: usize| {
                let value = measured(&mut random, if at == 0 { 0.0 } else { 1.0 });
                Evidence::of(value, above(1.0))
            };
            let mut figure: Vec<Claim> = (0..10)
                .map(|_| Evidence::all((0..3).map(&mut one)).claim("", String::new()))
                .collect();
            corrected(&mut figure);
            figure.iter().any(|claim| claim.holds == Some(true))
        });
        let wrong = wrong.count();
        assert!(wrong <= 50 + 21, "{wrong} of 1,000");
    }
}
