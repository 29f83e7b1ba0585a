//! Gilbert's studies of parameters: variants of one policy over pool sizes (gilbert 1.2.8–1.2.15).

use crate::experiment::{About, Figure, Scale};
use millpond_lab::report::{Claim, Section};
use millpond_lab::table::Table;
use millpond_lab::verdict::shown;

use super::bounds::{GB_2_5, GB_5, GB_10};
use super::claims::clocks::{self, TWICE, TWICE_TYPED};
use super::claims::others::{self, AGEINGS, SEARCHED, cooled, lrd, lrd_searched};
use super::course::Course;
use crate::live::sizes::{RANDOM, Sizes};
use crate::live::stall::MEANS;
use crate::live::{Job, LiveFigure, Loaded};

/// A study: its figure, and its variants, starting with the one that he uses later.
struct Study {
    about: About,
    variants: fn() -> Vec<String>,
    /// Sizes of the pool at the standard scale, in per cent: those that he mentions.
    standard: &'static [f64],
    draw: fn(&Table) -> Section,
}

/// Returns variants of a policy.
fn of(policy: &str, variants: &[&str]) -> Vec<String> {
    variants.iter().map(|params| format!("{policy}({params})")).collect()
}

/// Names `policy` with each variant of events in `single`, then with those in `then` at doubled
/// weights.
fn doubled(policy: &str, single: &[&str], then: &[&str], twice: &str) -> Vec<String> {
    let name = |events: &&str| format!("{policy}(variant={events})");
    let of_twice = |events: &&str| format!("{policy}(variant={events},{twice})");
    single.iter().map(name).chain(then.iter().map(of_twice)).collect()
}

const COUNTED: [&str; 4] = ["fix", "fix-full", "unfix", "unfix-full"];
const TYPED: [&str; 2] = ["fix-full", "fix"];

const ASKS: &str = "Which events should count as references, and how much?";

const CLOCK: Study = Study {
    about: About {
        id: "1.10",
        title: "Variants of CLOCK (figs 1.10, 1.11)",
        asks: "Which events should set the usage bit: fix, unfix, both, or refusals, too?",
        says: "They hardly differ; the full variant misses a little more and is no slower.",
    },
    variants: || {
        of("clock", &["variant=full", "variant=fix", "variant=unfix", "variant=fix-unfix"])
    },
    standard: &[5.0, 20.0, 100.0],
    draw: |rows| draw(rows, clocks::clock),
};

const ZCLOCK: Study = Study {
    about: About {
        id: "1.12",
        title: "Variants of ZCLOCK (figs 1.12, 1.13)",
        asks: "The same for a hand that jumps at random.",
        says: "Fix and unfix are the best; the full variant is slower, most of all where the data \
               almost fit.",
    },
    variants: || {
        of("zclock", &["variant=fix", "variant=unfix", "variant=fix-unfix", "variant=full"])
    },
    standard: &[5.0, 20.0, 70.0, 100.0],
    draw: |rows| draw(rows, clocks::zclock),
};

const GCLOCK_1: Study = Study {
    about: About {
        id: "1.16",
        title: "Variants of GCLOCK-V1 (figs 1.16, 1.17)",
        asks: ASKS,
        says: "Counting refusals is some 15 % faster where the pool is a little smaller than the \
               data; fix or unfix does not matter, and neither do doubled weights.",
    },
    variants: || doubled("gclock-v1", &["fix-full", "fix", "unfix", "unfix-full"], &COUNTED, TWICE),
    standard: &[0.7, 3.5, 20.0, 70.0, 140.0],
    draw: |rows| draw(rows, clocks::gclock_v1),
};

const GCLOCK_2: Study = Study {
    about: About {
        id: "1.18",
        title: "Variants of GCLOCK-V2 (figs 1.18, 1.19)",
        asks: ASKS,
        says: "Smaller differences than for V1; unfix is a little better than fix, and counting \
               refusals costs misses.",
    },
    variants: || doubled("gclock-v2", &["unfix-full", "fix", "fix-full", "unfix"], &COUNTED, TWICE),
    standard: &[0.7, 5.0, 20.0, 70.0, 140.0],
    draw: |rows| draw(rows, clocks::gclock_v2),
};

const DGCLOCK_1: Study = Study {
    about: About {
        id: "1.20",
        title: "Variants of DGCLOCK-V1 (figs 1.20, 1.21)",
        asks: ASKS,
        says: "Counting refusals is best in all but the smallest pools; doubled weights are a \
               little worse.",
    },
    variants: || doubled("dgclock-v1", &TYPED, &["fix", "fix-full"], TWICE_TYPED),
    standard: &[0.7, 5.0, 20.0, 100.0],
    draw: |rows| draw(rows, clocks::dgclock_v1),
};

const DGCLOCK_2: Study = Study {
    about: About {
        id: "1.22",
        title: "Variants of DGCLOCK-V2 (figs 1.22, 1.23)",
        asks: ASKS,
        says: "Misses differ only in very small pools; counting refusals is a little faster, \
               doubled weights are a little slower.",
    },
    variants: || doubled("dgclock-v2", &TYPED, &["fix", "fix-full"], TWICE_TYPED),
    standard: &[0.7, 5.0, 20.0, 70.0, 100.0],
    draw: |rows| draw(rows, clocks::dgclock_v2),
};

const LRD_2: Study = Study {
    about: About {
        id: "1.25",
        title: "Variants of LRD-V2 (figs 1.25, 1.26)",
        asks: "How often should counts age, and by how much?",
        says: "Pools of 0.7 % want a short period, of 17 % a long one; whatever is faster also \
               misses less; up to 10 % larger pools are slower; from 35 % on nothing matters.",
    },
    variants: || AGEINGS.map(lrd).to_vec(),
    standard: &[0.7, 3.5, 7.0, 17.0, 35.0, 100.0],
    draw: |rows| draw(rows, others::lrd_v2),
};

const LEAN: Study = Study {
    about: About {
        id: "1.27",
        title: "Cooling stages of lean eviction (figs 1.27, 1.28)",
        asks: "How large should the cooling stage be?",
        says: "From 1 % to 25 % of the pool, neither throughput nor misses differ much.",
    },
    variants: || others::STAGES.map(cooled).to_vec(),
    standard: &[5.0, 20.0, 100.0],
    draw: |rows| draw(rows, others::lean),
};

const STUDIES: [Study; 8] = [CLOCK, ZCLOCK, GCLOCK_1, GCLOCK_2, DGCLOCK_1, DGCLOCK_2, LRD_2, LEAN];

/// Pools of his figures at the scale of the paper.
const HIS: [f64; 6] = [0.7, 3.5, 7.0, 17.0, 70.0, 140.0];

/// Returns the policies that a study's sentences need in a pool, beside the variants.
fn beside(id: &str, percent: f64) -> Vec<String> {
    match id {
        // V2's gain is compared with V1's gain there.
        "1.18" if percent == GB_10 => of("gclock-v1", &["variant=fix", "variant=fix-full"]),
        // Up to this size he finds that larger pools can be slower, with his search of all frames.
        "1.25" if percent <= GB_5 && percent != GB_2_5 => SEARCHED.map(lrd_searched).to_vec(),
        _ => Vec::new(),
    }
}

/// Returns the jobs of a study.
fn jobs(study: &Study, scale: Scale) -> Vec<Job> {
    let course = Course::new(scale);
    let mut jobs = Vec::new();
    for percent in scale.pick(&[20.0][..], study.standard, &HIS) {
        let mut policies = vec![RANDOM.to_string()];
        policies.extend((study.variants)().into_iter().take(scale.pick(2, usize::MAX, usize::MAX)));
        if scale != Scale::Quick {
            policies.extend(beside(study.about.id, *percent));
        }
        jobs.extend(policies.iter().map(|policy| course.job(*percent, policy)));
    }
    jobs
}

/// Returns the figures, each with RANDOM beside the variants.
pub(super) fn figures(scale: Scale, loaded: &Loaded) -> Vec<Box<dyn Figure>> {
    let figure = |study: &Study| -> Box<dyn Figure> {
        Box::new(LiveFigure::new(study.about, jobs(study, scale), loaded, study.draw))
    };
    STUDIES.iter().map(figure).collect()
}

fn draw(rows: &Table, claims: fn(&Sizes) -> Vec<Claim>) -> Section {
    let sizes = Sizes::of(rows);
    let variants = sizes.others(&[RANDOM]);
    let mut section = sizes.section(&[("Variants".to_string(), sizes.policies())]);
    let Some(used) = variants.first() else { return section };
    let mut lines = Vec::new();
    for percent in sizes.percents() {
        let others = variants.iter().filter(|variant| variant != &used);
        let ratios = others.filter_map(|v| Some((*v, sizes.faster(percent, v, used)?)));
        let best = ratios.max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
        if let Some((best, ratio)) = best {
            lines.push(format!(
                "at {percent} % the best other variant is {best}, × {}",
                shown(Some(ratio))
            ));
        }
    }
    section.note = format!(
        "Throughput over that of {used}, which the comparison of all policies uses: {}. {MEANS}",
        lines.join("; ")
    );
    section.claims = claims(&sizes);
    section
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Makes rows of three repetitions of identical runs.
    pub fn made_up(jobs: &[Job]) -> Table {
        let columns = ["percent", "policy", "repetition", "end", "transactions"];
        let more = ["throughput_per_s", "miss_ratio", "misses_per_tx"];
        let mut table = Table::new(columns.into_iter().chain(more));
        for repetition in 1..=3u64 {
            for job in jobs {
                let axes = job.axes.iter().map(|(_, value)| value.clone());
                let place = axes.chain([repetition.into(), "ran".into(), 100u64.into()]);
                table.rows.push(place.chain([100.0.into(), 0.1.into(), 0.5.into()]).collect());
            }
        }
        table
    }

    #[test]
    fn every_sentence_has_its_runs() {
        for study in STUDIES {
            let section = (study.draw)(&made_up(&jobs(&study, Scale::Standard)));
            assert!(!section.claims.is_empty(), "{}", study.about.id);
            for claim in section.claims {
                assert!(!claim.here.contains("not run"), "{}: {claim:?}", study.about.id);
            }
        }
    }

    #[test]
    fn a_study_is_judged_by_its_own_pools_only() {
        let study = &GCLOCK_1;
        let mut rows = made_up(&jobs(study, Scale::Standard));
        rows.rows.retain(|row| row[0] == 20.0.into());
        let section = (study.draw)(&rows);
        let speaks_of_70 =
            section.claims.iter().filter(|claim| claim.says.contains("10 GB (70 %)"));
        assert_eq!(speaks_of_70.filter(|claim| claim.here == "not run").count(), 1);
        for claim in &section.claims {
            assert!(claim.holds.is_none() || !claim.says.contains("0.7 %"), "{claim:?}");
        }
    }
}
