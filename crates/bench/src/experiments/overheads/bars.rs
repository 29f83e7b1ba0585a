//! The judged ratios, and their bars.

use millpond_profile::Components;

use super::arms::{Arm, Load, Part};
use super::cost::{LOCKING, LOGGING, Repetition};
use crate::interval::Interval;
use millpond_lab::verdict::{below, claim};

/// CPU time per transaction of an arm, in total or of a component with its parts.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Time {
    arm: Arm,
    component: Option<&'static str>,
}

/// A ratio of CPU times per transaction, and its upper limit.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// Name of the ratio for programs.
    pub id: &'static str,
    /// Description of the ratio, in words.
    pub what: String,
    /// Upper limit of the ratio.
    pub most: f64,
    above: Time,
    less: Option<Time>,
    below: Time,
}

/// A bar and its measured ratio.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// The bar.
    pub bar: Bar,
    /// The ratio with its 95 % interval over the repetitions; `None` if a component was not sampled
    /// in each of them.
    pub ratio: Option<Interval>,
    /// Repetitions.
    pub repetitions: usize,
}

impl Judged {
    /// Returns *met* if the whole interval is below the bar, *missed* if it is above, else *open*.
    /// One repetition has no interval.
    pub fn verdict(&self) -> &'static str {
        let ratio = self.ratio.filter(|_| self.repetitions > 1);
        match claim(&self.bar.what, &[(self.bar.id, ratio)], below(self.bar.most)).holds {
            Some(true) => "met",
            Some(false) => "missed",
            None => "open",
        }
    }
}

/// Returns the bars. Each component is named with everything that the list counts towards it.
pub fn bars(components: &Components) -> Vec<Bar> {
    let arm = |load, part, threads| Arm { load, part, threads };
    let all = |arm| Time { arm, component: None };
    let named = |component| components.parts(component).collect::<Vec<_>>().join(" + ");
    let over_neither = |id, load, part, component, most| Bar {
        id,
        what: format!("{load}: {} over neither", named(component)),
        most,
        above: Time { arm: arm(load, part, 1), component: Some(component) },
        less: None,
        below: all(arm(load, Part::Neither, 1)),
    };
    let growth = |id, load, part, component| Bar {
        id,
        what: format!("{load}: {}, two threads over one", named(component)),
        most: 1.15,
        above: Time { arm: arm(load, part, 2), component: Some(component) },
        less: None,
        below: Time { arm: arm(load, part, 1), component: Some(component) },
    };
    let neither = all(arm(Load::Tpcc, Part::Neither, 1));
    let pool = Bar {
        id: "tpcc-pool",
        what: format!("{}: pool less twin over neither", Load::Tpcc),
        most: 0.03,
        above: neither,
        less: Some(all(arm(Load::Tpcc, Part::Twin, 1))),
        below: neither,
    };
    vec![
        over_neither("tpcc-logging", Load::Tpcc, Part::Both, LOGGING, 0.35),
        over_neither("tpcc-locking", Load::Tpcc, Part::Both, LOCKING, 0.20),
        pool,
        over_neither("ycsb-locking", Load::YcsbRead, Part::Locks, LOCKING, 0.40),
        growth("tpcc-logging-growth", Load::Tpcc, Part::Both, LOGGING),
        growth("tpcc-locking-growth", Load::Tpcc, Part::Both, LOCKING),
        growth("ycsb-locking-growth", Load::YcsbRead, Part::Locks, LOCKING),
    ]
}

/// Judges the bars by the repetitions.
pub fn judge(bars: Vec<Bar>, repetitions: &[Repetition]) -> Vec<Judged> {
    let judged = |bar: Bar| {
        let ratio = ratio(&bar, repetitions);
        Judged { bar, ratio, repetitions: repetitions.len() }
    };
    bars.into_iter().map(judged).collect()
}

fn ratio(bar: &Bar, repetitions: &[Repetition]) -> Option<Interval> {
    let times = |time: Time| -> Option<Vec<f64>> {
        repetitions.iter().map(|one| one.us(&time.arm, time.component)).collect()
    };
    let (above, below) = (times(bar.above)?, times(bar.below)?);
    let Some(less) = bar.less else { return Interval::of_ratios(&above, &below) };
    // A difference may be negative, so it has no logarithm.
    let less = times(less)?;
    let each = above.iter().zip(&less).zip(&below).map(|((above, less), below)| {
        let ratio = (above - less) / below;
        ratio.is_finite().then_some(ratio)
    });
    Interval::of(&each.collect::<Option<Vec<_>>>()?)
}

#[cfg(test)]
mod tests {
    use super::super::arms::ARMS;
    use super::super::cost::Cost;
    use super::*;

    fn components() -> Components {
        Components::shipped().unwrap()
    }

    /// Makes repetitions in which *neither* takes 10 µs, and `us` gives all other times.
    fn made_up(count: u32, us: impl Fn(u32, &Arm, Option<&str>) -> f64) -> Vec<Repetition> {
        let cost = |turn: u32, arm: Arm| Cost {
            arm,
            us: us(turn, &arm, None),
            logging_us: arm.is_sampled().then(|| us(turn, &arm, Some(LOGGING))),
            locking_us: arm.is_sampled().then(|| us(turn, &arm, Some(LOCKING))),
            ..Cost::none(arm)
        };
        let repetition = |turn| Repetition(ARMS.iter().map(|arm| cost(turn, *arm)).collect());
        (0..count).map(repetition).collect()
    }

    fn verdict(id: &str, repetitions: &[Repetition]) -> (&'static str, f64) {
        let all = judge(bars(&components()), repetitions);
        let one = all.iter().find(|judged| judged.bar.id == id).unwrap();
        (one.verdict(), one.ratio.map_or(f64::NAN, |ratio| ratio.mean))
    }

    /// Makes repetitions whose ratio for `bar` is `factor` times its limit, with scatter.
    fn around(bar: &Bar, factor: f64, spread: f64) -> Vec<Repetition> {
        let bar = bar.clone();
        made_up(5, move |turn, arm, component| {
            let noise = 1.0 + spread * (f64::from(turn) - 2.0);
            let (is_above, is_less) = (
                *arm == bar.above.arm && component == bar.above.component,
                bar.less.is_some_and(|less| less.arm == *arm && component.is_none()),
            );
            match () {
                () if is_less => 10.0 * (1.0 - bar.most * factor * noise),
                () if is_above && bar.less.is_none() => 10.0 * bar.most * factor * noise,
                () => 10.0,
            }
        })
    }

    #[test]
    fn each_bar_is_met_below_missed_above_and_open_between() {
        let all = bars(&components());
        assert_eq!(all.len(), 7);
        for bar in &all {
            for (factor, spread, expected) in [
                (0.9, 0.01, "met"),
                (1.1, 0.01, "missed"),
                (0.99, 0.1, "open"),
                (1.01, 0.1, "open"),
            ] {
                let (found, mean) = verdict(bar.id, &around(bar, factor, spread));
                assert_eq!(found, expected, "{}: {mean} of {}", bar.id, bar.most);
                assert!((mean / bar.most / factor - 1.0).abs() < 0.03, "{}: {mean}", bar.id);
            }
        }
    }

    #[test]
    fn a_bar_hears_of_nothing_but_its_own_arms_and_components() {
        let all = bars(&components());
        for bar in &all {
            let repetitions = around(bar, 0.5, 0.001);
            for other in all.iter().filter(|other| other.id != bar.id) {
                let is_shared = [other.above, other.below].contains(&bar.above);
                if !is_shared {
                    let plain = verdict(other.id, &made_up(5, |_, _, _| 10.0)).1;
                    assert_eq!(verdict(other.id, &repetitions).1, plain, "{}", other.id);
                }
            }
        }
    }

    #[test]
    fn a_pool_that_is_faster_than_the_twin_meets_its_bar() {
        let faster = made_up(3, |turn, arm, _| match arm.part {
            Part::Twin => 10.5 + f64::from(turn) / 100.0,
            _ => 10.0,
        });
        let (found, mean) = verdict("tpcc-pool", &faster);
        assert!(found == "met" && (-0.06..-0.04).contains(&mean), "{found} {mean}");
    }

    #[test]
    fn one_repetition_or_a_component_that_was_not_seen_decide_nothing() {
        let (found, mean) = verdict("tpcc-logging", &made_up(1, |_, _, _| 10.0));
        assert_eq!((found, mean), ("open", 1.0));
        let unseen = made_up(3, |turn, _, component| match component {
            Some(LOGGING) if turn == 1 => 0.0,
            _ => 10.0,
        });
        assert_eq!(verdict("tpcc-logging", &unseen).0, "open");
        assert_eq!(verdict("tpcc-locking", &unseen).0, "missed");
        assert!(judge(bars(&components()), &[]).iter().all(|judged| judged.verdict() == "open"));
    }

    #[test]
    fn components_are_those_of_the_list() {
        for whole in [LOGGING, LOCKING] {
            assert!(components().parts(whole).count() > 1, "{whole}");
        }
        let named: Vec<String> = bars(&components()).into_iter().map(|bar| bar.what).collect();
        assert_eq!(named[0], "tpcc: logging + I/O over neither");
        assert_eq!(named[6], "ycsb-read: locking + transactions, two threads over one");
    }
}
