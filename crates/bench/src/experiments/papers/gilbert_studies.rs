//! Gilbert's studies of parameters: variants of one policy over pool sizes (gilbert 1.2.8–1.2.15).

use millpond_lab::experiment::{About, Figure, Scale};
use millpond_lab::report::Section;
use millpond_lab::table::Table;

use super::gilbert_course::Course;
use super::live::{LiveFigure, Loaded};
use super::sizes::{RANDOM, Sizes};
use super::stall::MEANS;
use millpond_lab::verdict::{below, claim, shown};

/// A study: what it is about, the policy, and its variants, the one that he then uses first.
struct Study {
    about: About,
    policy: &'static str,
    variants: &'static [&'static [&'static str]],
}

impl Study {
    fn policies(&self, most: usize) -> Vec<String> {
        let variants = self.variants.iter().take(most);
        variants.map(|params| format!("{}({})", self.policy, params.join(","))).collect()
    }
}

/// Weights twice as large, of a typed clock: of references, and of refusals.
const DOUBLED: &str = "f=50,f_root=50,f_root_1=25,f_deep=10,r=10,r_root=10,r_root_1=5,r_deep=2";

const ASKS: &str = "Which events should count as references, and how much?";

const CLOCK: Study = Study {
    about: About {
        id: "1.10",
        title: "Variants of CLOCK (figs 1.10, 1.11)",
        asks: "Which events should set the usage bit: fix, unfix, both, or refusals, too?",
        says: "They hardly differ; the full variant misses a little more and is no slower.",
    },
    policy: "clock",
    variants: &[&["variant=full"], &["variant=fix"], &["variant=unfix"], &["variant=fix-unfix"]],
};

const ZCLOCK: Study = Study {
    about: About {
        id: "1.12",
        title: "Variants of ZCLOCK (figs 1.12, 1.13)",
        asks: "The same for a hand that jumps at random.",
        says: "Fix and unfix are the best; the full variant is slower, most of all where the data \
               almost fit.",
    },
    policy: "zclock",
    variants: &[&["variant=fix"], &["variant=unfix"], &["variant=fix-unfix"], &["variant=full"]],
};

const GCLOCK_1: Study = Study {
    about: About {
        id: "1.16",
        title: "Variants of GCLOCK-V1 (figs 1.16, 1.17)",
        asks: ASKS,
        says: "Counting refusals is some 15 % faster where the pool is a little smaller than the \
               data; fix or unfix does not matter, and neither do doubled weights.",
    },
    policy: "gclock-v1",
    variants: &[
        &["variant=fix-full"],
        &["variant=fix"],
        &["variant=unfix"],
        &["variant=unfix-full"],
        &["variant=fix,f=50,r=10"],
        &["variant=fix-full,f=50,r=10"],
        &["variant=unfix,f=50,r=10"],
        &["variant=unfix-full,f=50,r=10"],
    ],
};

const GCLOCK_2: Study = Study {
    about: About {
        id: "1.18",
        title: "Variants of GCLOCK-V2 (figs 1.18, 1.19)",
        asks: ASKS,
        says: "Smaller differences than for V1; unfix is a little better than fix, and counting \
               refusals costs misses.",
    },
    policy: "gclock-v2",
    variants: &[
        &["variant=unfix-full"],
        &["variant=fix"],
        &["variant=fix-full"],
        &["variant=unfix"],
        &["variant=fix,f=50,r=10"],
        &["variant=fix-full,f=50,r=10"],
        &["variant=unfix,f=50,r=10"],
        &["variant=unfix-full,f=50,r=10"],
    ],
};

const DGCLOCK_1: Study = Study {
    about: About {
        id: "1.20",
        title: "Variants of DGCLOCK-V1 (figs 1.20, 1.21)",
        asks: ASKS,
        says: "Counting refusals is best in all but the smallest pools; doubled weights are a \
               little worse.",
    },
    policy: "dgclock-v1",
    variants: &[
        &["variant=fix-full"],
        &["variant=fix"],
        &["variant=fix", DOUBLED],
        &["variant=fix-full", DOUBLED],
    ],
};

const DGCLOCK_2: Study = Study {
    about: About {
        id: "1.22",
        title: "Variants of DGCLOCK-V2 (figs 1.22, 1.23)",
        asks: ASKS,
        says: "Misses differ only in very small pools; counting refusals is a little faster, \
               doubled weights are a little slower.",
    },
    policy: "dgclock-v2",
    variants: &[
        &["variant=fix-full"],
        &["variant=fix"],
        &["variant=fix", DOUBLED],
        &["variant=fix-full", DOUBLED],
    ],
};

const LRD_2: Study = Study {
    about: About {
        id: "1.25",
        title: "Variants of LRD-V2 (figs 1.25, 1.26)",
        asks: "How often should counts age, and by how much?",
        says: "Small pools want a short period, large ones a long one; whatever is faster also \
               misses less.",
    },
    policy: "lrd-v2",
    variants: &[
        &["period=10,aging=subtract,by=10"],
        &["period=2,aging=subtract,by=10"],
        &["period=2,aging=multiply,by=0.75"],
        &["period=2,aging=multiply,by=0.5"],
        &["period=10,aging=multiply,by=0.75"],
        &["period=10,aging=multiply,by=0.5"],
    ],
};

const LEAN: Study = Study {
    about: About {
        id: "1.27",
        title: "Cooling stages of lean eviction (figs 1.27, 1.28)",
        asks: "How large should the cooling stage be?",
        says: "From 1 % to 25 % of the pool, neither throughput nor misses differ much.",
    },
    policy: "lean-evict",
    variants: &[
        &["cooling=2.5%,refill=half"],
        &["cooling=1%,refill=half"],
        &["cooling=5%,refill=half"],
        &["cooling=10%,refill=half"],
        &["cooling=25%,refill=half"],
    ],
};

const STUDIES: [Study; 8] = [CLOCK, ZCLOCK, GCLOCK_1, GCLOCK_2, DGCLOCK_1, DGCLOCK_2, LRD_2, LEAN];

/// The figures, each with RANDOM beside the variants.
pub(super) fn figures(scale: Scale, loaded: &Loaded) -> Vec<Box<dyn Figure>> {
    let course = Course::new(scale);
    let percents: &[f64] =
        scale.pick(&[20.0], &[5.0, 20.0, 100.0], &[0.7, 3.5, 7.0, 17.0, 70.0, 140.0]);
    let mut figures: Vec<Box<dyn Figure>> = Vec::new();
    for study in STUDIES {
        let variants = study.policies(scale.pick(2, usize::MAX, usize::MAX));
        let mut jobs = Vec::new();
        for percent in percents {
            jobs.push(course.job(*percent, RANDOM));
            jobs.extend(variants.iter().map(|variant| course.job(*percent, variant)));
        }
        figures.push(Box::new(LiveFigure::new(study.about, jobs, loaded, draw)));
    }
    figures
}

fn draw(rows: &Table) -> Section {
    let sizes = Sizes::of(rows);
    let variants = sizes.others(&[RANDOM]);
    let mut section = sizes.section(&[("Variants".to_string(), sizes.policies())]);
    let Some(used) = variants.first() else { return section };
    let mut lines = Vec::new();
    let mut spread = Vec::new();
    for percent in sizes.percents() {
        let others = variants.iter().filter(|variant| variant != &used);
        let ratios = others.filter_map(|v| Some((*v, sizes.faster(percent, v, used)?)));
        let best = ratios.max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
        if let Some((best, ratio)) = best {
            lines.push(format!(
                "at {percent} % the best other variant is {best}, × {}",
                shown(Some(ratio))
            ));
            spread.push((percent, Some(ratio)));
        }
    }
    section.note = format!(
        "Throughput over that of {used}, which the comparison of all policies uses: {}. {MEANS}",
        lines.join("; ")
    );
    let says = "the variant that the comparison uses is as fast as the best, within 5 %";
    section.claims = vec![claim(says, &spread, below(1.05))];
    section
}
