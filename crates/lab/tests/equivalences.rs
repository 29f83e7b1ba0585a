//! Policies that must agree with one another, or with a published table, on real traces.

#![allow(clippy::print_stdout)] // skipped traces are named

use crate::common::{load, shared};
use millpond_lab::registry::Registry;
use millpond_lab::sim::{Counts, SimOptions};
use millpond_policies::config::Spec;
use millpond_workload::trace::Batch;

fn run(policy: &str, trace: &(Batch, u64), frames: u32) -> Counts {
    let spec = Spec::parse(policy).unwrap();
    let registry = Registry::builtin();
    let entry = registry.find(&spec.id).unwrap();
    let options = SimOptions::new(frames, Some(trace.1));
    let mut simulation = entry.simulation(&spec, &options).unwrap();
    simulation.run(&trace.0, None).unwrap();
    simulation.counts()
}

fn traces(names: &[&str]) -> Vec<(String, (Batch, u64))> {
    let found: Vec<_> =
        names.iter().filter_map(|n| load(n).map(|trace| (n.to_string(), trace))).collect();
    if found.is_empty() {
        println!("skipped: no traces in {:?}", shared());
    }
    found
}

#[test]
fn policies_that_are_one_in_two_guises_have_the_same_hits() {
    let pairs = [
        // The tournament finds what gilbert's search of all frames finds.
        ("lrd-v1", "lrd-v1(search=linear)"),
        ("lrd-v2", "lrd-v2(search=linear)"),
        (
            "lrd-v2(period=2,aging=multiply,by=0.75)",
            "lrd-v2(period=2,aging=multiply,by=0.75,search=linear)",
        ),
        // Ageing that never comes, or takes nothing.
        ("lrd-v1", "lrd-v2(period=1000000)"),
        ("lrd-v1", "lrd-v2(period=1,by=0)"),
        // Without marks every page is of one type.
        ("gclock-v1", "dgclock-v1"),
        ("gclock-v2(variant=fix-full)", "dgclock-v2"),
        ("clock-sweep", "gclock-v1(f=1,r=1,max=5,variant=fix)"),
        // Halving that never comes.
        ("lfu", "lfu-aging(a_max=1000000000)"),
    ];
    for (name, trace) in traces(&["lirs_cpp", "lirs_gli", "lirs_multi1", "lirs_ps", "lirs_cs"]) {
        for frames in [1, 10, 100, 500] {
            for (a, b) in pairs {
                let (ours, theirs) = (run(a, &trace, frames), run(b, &trace, frames));
                assert_eq!(ours.hits, theirs.hits, "{a} and {b} on {name}@{frames}");
            }
        }
    }
}

#[test]
fn fbr_is_within_a_point_of_its_published_hit_ratios() {
    for (_, trace) in traces(&["arc_OLTP"]) {
        for (frames, published) in [(1000, 36.96), (5000, 53.53), (15_000, 65.66)] {
            let ours = 100.0 * run("fbr", &trace, frames).hit_ratio();
            assert!((ours - published).abs() < 1.01, "{ours} at {frames}, published {published}");
        }
    }
}
