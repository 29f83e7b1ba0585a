//! The classics against slow re-statements of their papers: the same victim at every miss.

use std::collections::HashMap;

use millpond_base::Mark;
use millpond_policies::config::Spec;
use millpond_policies::contract::Shape;

use crate::model::{Outcome, kinds, mixed_trace, run_plain};
use crate::twins::{
    ArcTwin, CarTwin, CartTwin, ClockTwin, Combine, FbrTwin, LirsTwin, LrfuTwin, LruKTwin, LruTwin,
    MqTwin, Twin, TwoQTwin, WattTwin,
};

const SIZES: [u32; 10] = [1, 2, 3, 4, 5, 8, 13, 20, 40, 64];

/// Runs `policy` over mixed traces at several sizes. `judge` gets the pool's size, the trace, what
/// became of each reference, and a name of the run.
fn each_run(policy: &str, judge: impl Fn(u32, &[(u64, Mark)], &[Outcome], &str)) {
    let spec = Spec::parse(policy).unwrap();
    let kinds = kinds();
    let kind = kinds.iter().find(|k| k.info.id == spec.id).expect("a registered policy");
    for frames in SIZES {
        for seed in 0..6 {
            let pages = u64::from(frames) * (2 + seed) + 4;
            let trace = mixed_trace(seed * 1000 + u64::from(frames), 3000, pages);
            let shape = Shape { frames, pages_dense: Some(pages), seed };
            let ours = run_plain(kind, kind.make(&spec, &shape).as_mut(), frames, &trace);
            judge(frames, &trace, &ours, &format!("{policy}, {frames} frames, seed {seed}"));
        }
    }
}

/// Runs `policy` and its twin; they must agree at every step.
fn agree<T: Twin>(policy: &str, twin: impl Fn(u32) -> T) {
    each_run(policy, |frames, trace, ours, run| {
        let mut twin = twin(frames);
        for (at, (page, mark)) in trace.iter().enumerate() {
            let theirs = twin.reference(*page, mark.is_write());
            assert_eq!(
                ours[at],
                theirs,
                "{run}: reference {at}, to page {page}; before it: {:?}",
                &trace[at.saturating_sub(12)..at]
            );
        }
    });
}

#[test]
fn lru_evicts_what_the_order_of_last_references_says() {
    agree("lru", |frames| LruTwin { frames: frames as usize, pages: Vec::new() });
}

#[test]
fn clock_evicts_what_a_ring_with_bits_says() {
    for (policy, enters_on) in [("clock", true), ("clock(variant=fix)", false)] {
        agree(policy, |frames| ClockTwin {
            frames: frames as usize,
            enters_on,
            ring: Vec::new(),
            hand: 0,
        });
    }
}

#[test]
fn lru_k_evicts_by_backward_k_distance() {
    for k in [1, 2, 3, 4] {
        for (history, remembers) in [("0", false), ("all", true)] {
            for (below, below_fifo) in [("fifo", true), ("lru", false)] {
                let policy = format!("lru-k(k={k},history={history},below={below})");
                agree(&policy, |frames| LruKTwin {
                    frames: frames as usize,
                    k,
                    remembers,
                    below_fifo,
                    now: 0,
                    times: HashMap::new(),
                    pages: Vec::new(),
                });
            }
        }
    }
}

#[test]
fn two_q_evicts_as_its_paper_reclaims() {
    for (policy, kin, kout) in [("2q", 0.25, 0.5), ("2q(kin=50%,kout=2x)", 0.5, 2.0)] {
        agree(policy, |frames| TwoQTwin {
            frames: frames as usize,
            kin: (kin * f64::from(frames)) as usize,
            kout: (kout * f64::from(frames)) as usize,
            ..Default::default()
        });
    }
}

#[test]
fn arc_evicts_as_the_papers_figure_4_does() {
    for (policy, real) in [("arc", true), ("arc(adaptation=integer)", false)] {
        agree(policy, |frames| ArcTwin { c: frames as usize, real, ..Default::default() });
    }
}

#[test]
fn car_evicts_as_the_papers_figure_2_does() {
    for (policy, real) in [("car", false), ("car(adaptation=real)", true)] {
        agree(policy, |frames| CarTwin { c: frames as usize, real, ..Default::default() });
    }
}

#[test]
fn cart_evicts_as_the_papers_figure_3_does() {
    for (policy, filter_min) in [("cart", false), ("cart(filter=min)", true)] {
        agree(policy, |frames| CartTwin { c: frames as usize, filter_min, ..Default::default() });
    }
}

#[test]
fn lirs_evicts_as_its_stack_and_queue_say() {
    for (policy, share, least, stack) in [
        ("lirs", 0.01, 2, 1.5),
        ("lirs(hirs=10%,hirs_min=1,stack=2x)", 0.1, 1, 2.0),
        ("lirs(stack=2500x)", 0.01, 2, 2500.0),
    ] {
        agree(policy, |frames| {
            // One frame at least is LIR, unless there is only one.
            let most = (frames as usize - 1).max(1);
            let hirs = ((share * f64::from(frames)) as usize).max(least).min(most);
            LirsTwin::new(
                frames as usize,
                frames as usize - hirs,
                (stack * f64::from(frames)) as usize,
            )
        });
    }
}

#[test]
fn mq_evicts_from_the_lowest_queue() {
    for (policy, queues, log2, life, out) in [
        ("mq", 80, false, 20_000_000, 1.0),
        ("mq(queues=8,rank=log2,life=75,out=0.5)", 8, true, 75, 0.5),
        ("mq(queues=3,rank=linear,life=20,out=4)", 3, false, 20, 4.0),
    ] {
        agree(policy, |frames| {
            let out = (out * f64::from(frames)) as usize;
            MqTwin::new(frames as usize, queues, log2, life, out)
        });
    }
}

#[test]
fn lrfu_evicts_the_least_sum_of_faded_references() {
    for (policy, lambda, correlated) in [
        ("lrfu", 0.005, 0.25),
        ("lrfu(lambda=0,correlated=0)", 0.0, 0.0),
        ("lrfu(lambda=0.05,correlated=0)", 0.05, 0.0),
    ] {
        agree(policy, |frames| LrfuTwin {
            frames: frames as usize,
            lambda,
            correlated: (correlated * f64::from(frames)) as u64,
            now: 0,
            pages: Vec::new(),
        });
    }
}

#[test]
fn watt_with_a_sample_of_all_pages_evicts_one_that_is_worth_least() {
    for (policy, epochs, write_weight, dampening, combine) in [
        ("watt(sample=65536)", 4, 4.0, 0.1, Combine::Max),
        ("watt(sample=65536,epochs=16,aggregate=mean)", 16, 4.0, 0.1, Combine::Mean),
        ("watt(sample=65536,epochs=2,write_weight=0,dampening=1)", 2, 0.0, 1.0, Combine::Max),
    ] {
        each_run(policy, |frames, trace, ours, run| {
            let mut twin = WattTwin {
                frames: frames as usize,
                epoch: (frames / epochs).max(1),
                write_weight,
                dampening,
                combine,
                now: 0,
                evicted: 0,
                pages: Vec::new(),
            };
            for (at, ((page, mark), ours)) in trace.iter().zip(ours).enumerate() {
                twin.judge(*page, mark.is_write(), *ours)
                    .unwrap_or_else(|why| panic!("{run}, reference {at}: {why}"));
            }
        });
    }
}

#[test]
fn fbr_evicts_the_least_count_of_the_old_section() {
    for (policy, new, old, c_max, a_max) in [
        ("fbr", 0.25, 0.6, 100, 100),
        ("fbr(new=0%,old=100%,c_max=3,a_max=2)", 0.0, 1.0, 3, 2),
        ("fbr(new=50%,old=20%,c_max=5,a_max=4)", 0.5, 0.2, 5, 4),
    ] {
        agree(policy, |frames| {
            let part = |share: f64| (share * f64::from(frames)) as usize;
            // One frame at least is old.
            let new = part(new).min(frames as usize - 1);
            let old = part(old).max(1).min(frames as usize - new);
            FbrTwin { frames: frames as usize, new, old, c_max, a_max, list: Vec::new() }
        });
    }
}
