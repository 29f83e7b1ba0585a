//! Curves against simulations of each size.

use crate::common::load;
use millpond_lab::curve::{Curve, Method, curve_sizes};
use millpond_lab::registry::Registry;
use millpond_lab::sim::{Future, Renumber};
use millpond_policies::config::Spec;
use millpond_workload::trace::Batch;

/// Hot pages, a loop and a scan, by seed.
fn mixed(seed: u64, references: u64) -> (Batch, u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut batch = Batch::default();
    for i in 0..references {
        let page = match rng.u8(0..4) {
            0 => i % 300,
            1 => 1_000_000 + i,
            _ => (rng.f64() * rng.f64() * rng.f64() * 2000.0) as u64,
        };
        batch.push(page, millpond_base::Mark::READ);
    }
    let mut renumber = Renumber::new();
    renumber.apply(&mut batch);
    (batch, renumber.distinct())
}

fn errors(policies: &str, trace: &(Batch, u64)) -> Vec<(Method, f64)> {
    let registry = Registry::builtin();
    let specs = Spec::parse_list(policies).unwrap();
    let (batch, pages) = trace;
    let future = Future::of(batch, *pages);
    let sizes = curve_sizes(*pages, 20);
    let mut curve = Curve::new(&registry, &specs, sizes, *pages, 1).unwrap();
    curve.run(batch, Some(&future)).unwrap();
    let exact = curve.exact(batch, Some(&future), *pages, 1).unwrap();
    let points = curve.points();
    points.iter().zip(exact).map(|(p, e)| (p.method, (p.miss_ratio - e).abs())).collect()
}

#[test]
fn stack_algorithms_have_the_exact_curve() {
    for seed in 0..3 {
        let errors = errors("lru,opt,mru", &mixed(seed, 20_000));
        assert!(errors.iter().all(|(m, e)| *m == Method::Stack && *e < 1e-12), "{errors:?}");
    }
}

#[test]
fn sampled_curves_are_near_the_exact_ones() {
    let Some(trace) = load("arc_OLTP") else { return println!("skipped: no shared traces") };
    let errors = errors("clock,arc", &trace);
    assert!(errors.iter().any(|(m, _)| *m == Method::Sampled));
    let mean = errors.iter().map(|(_, e)| e).sum::<f64>() / errors.len() as f64;
    assert!(mean < 0.01, "mean absolute error {mean}");
}

/// Popular pages, far more than a sample has, and among them pages that come twice in a while.
fn popular(references: u64) -> (Batch, u64) {
    let mut rng = fastrand::Rng::with_seed(9);
    let mut batch = Batch::default();
    for i in 0..references {
        let page = match rng.u8(0..4) {
            0 => 1_000_000 + i % 150_000,
            _ => (rng.f64().powi(2) * 200_000.0) as u64,
        };
        batch.push(page, millpond_base::Mark::READ);
    }
    let mut renumber = Renumber::new();
    renumber.apply(&mut batch);
    (batch, renumber.distinct())
}

#[test]
fn parameters_that_count_frames_or_references_shrink_with_the_sample() {
    let trace = popular(1_200_000);
    let (registry, sizes) = (Registry::builtin(), vec![20_000, 60_000]);
    for policy in [
        "2q(kin=1000,kout=10000)",
        "lirs(hirs=3000)",
        "lrfu(lambda=0.00005)",
        "lru-k(history=30000,correlated=1000)",
    ] {
        let specs = Spec::parse_list(policy).unwrap();
        let mut curve = Curve::new(&registry, &specs, sizes.clone(), trace.1, 1).unwrap();
        curve.run(&trace.0, None).unwrap();
        let exact = curve.exact(&trace.0, None, trace.1, 1).unwrap();
        for (point, exact) in curve.points().iter().zip(exact) {
            let (size, sampled) = (point.size, point.miss_ratio);
            assert_eq!(point.method, Method::Sampled);
            assert!((sampled - exact).abs() < 0.02, "{policy} at {size}: {sampled}, {exact}");
        }
    }
}
