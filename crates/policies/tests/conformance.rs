//! Every registered policy, under every kind of setting, keeps the contract.
//!
//! A failure prints the policy, its setting, the pool and the seed, and a short sequence of
//! operations that still fails.

use millpond_base::{Mark, PageId};
use millpond_policies::config::Spec;
use millpond_policies::contract::{Access, GhostHit, Shape};
use millpond_policies::info::{Class, Family};

use crate::model::{
    Case, Kind, case_of_bytes, decode, drive, kinds, mixed_trace, random_records, run_plain,
    settings, shrink,
};

fn case(kind: &Kind, spec: &Spec, frames: u32, seed: u64) -> Case {
    Case {
        kind: kind.clone(),
        spec: spec.clone(),
        frames,
        seed,
        dense: seed & 1 == 0,
        takes_dirty: seed & 2 == 0,
        bypasses: seed & 12 == 0,
    }
}

/// Reports at most one failure of each policy, all policies together.
fn report(failures: Vec<(String, String)>) {
    let mut shown: Vec<String> = Vec::new();
    let mut text = String::new();
    for (id, failure) in failures {
        if !shown.contains(&id) {
            text += &format!("\n{failure}\n");
            shown.push(id);
        }
    }
    assert!(text.is_empty(), "{} policies break the contract: {shown:?}{text}", shown.len());
}

fn explain(case: &Case, records: &[u8]) -> (String, String) {
    let (ops, why) = shrink(case, records);
    let ops: Vec<String> = ops.iter().map(|op| format!("  {op:?}")).collect();
    let text = format!(
        "{} with {} frames, seed {}: {why}\n{}",
        case.spec,
        case.frames,
        case.seed,
        ops.join("\n")
    );
    (case.kind.info.id.to_string(), text)
}

/// `mixed`: None for the defaults alone, else every setting and this number of random ones.
fn try_all(kinds: &[Kind], sizes: &[u32], mixed: Option<usize>, runs: u64, ops: usize) {
    let mut failures = Vec::new();
    for kind in kinds {
        let before = failures.len();
        let specs = settings(kind, mixed.unwrap_or(0), 11);
        let count = if mixed.is_some() { specs.len() } else { 1 };
        for (s, spec) in specs[..count].iter().enumerate() {
            for (z, &frames) in sizes.iter().enumerate() {
                for run in 0..runs {
                    let seed = run * 7919 + (s * sizes.len() + z) as u64;
                    let case = case(kind, spec, frames, seed);
                    let records = random_records(seed, ops);
                    if failures.len() == before
                        && drive(&case, &decode(&records, case.pages())).is_err()
                    {
                        failures.push(explain(&case, &records));
                    }
                }
            }
        }
    }
    report(failures);
}

#[test]
fn every_policy_keeps_the_contract_by_default() {
    try_all(&kinds(), &[1, 2, 3, 4, 7, 16, 33, 64], None, 6, 400);
}

#[test]
fn every_policy_keeps_the_contract_at_the_ends_of_its_parameters() {
    try_all(&kinds(), &[1, 2, 3, 7, 19], Some(12), 1, 250);
}

#[test]
fn the_same_seed_gives_the_same_answers() {
    let mut failures = Vec::new();
    for kind in kinds() {
        for spec in settings(&kind, 4, 5) {
            for (frames, seed) in [(3, 4), (16, 8), (33, 20)] {
                let base = case(&kind, &spec, frames, seed);
                let ops = decode(&random_records(seed, 400), base.pages());
                let logs: Vec<_> = (0..2).map(|_| drive(&base, &ops)).collect();
                if logs[0] != logs[1] {
                    failures.push((kind.info.id.to_string(), format!("{spec}: {logs:?}")));
                }
            }
        }
    }
    report(failures);
}

/// Rule 10 for hosts that renumber and hosts that cannot: near ids in a hashed table.
#[test]
fn dense_and_hashed_tables_give_the_same_victims() {
    let mut failures = Vec::new();
    for kind in kinds() {
        for spec in settings(&kind, 2, 6) {
            let run = |pages_dense: Option<u64>| {
                let frames = 12;
                let mut subject = kind.make(&spec, &Shape { frames, pages_dense, seed: 3 });
                run_plain(&kind, subject.as_mut(), frames, &mixed_trace(3, 2000, 44))
            };
            if run(Some(44)) != run(None) {
                failures.push((kind.info.id.to_string(), format!("{spec}: other victims")));
            }
        }
    }
    report(failures);
}

#[test]
fn only_offline_policies_ask_for_the_future() {
    let mut ids = Vec::new();
    for kind in kinds() {
        let offline = kind.info.class == Class::Offline || kind.info.family == Family::Offline;
        assert_eq!(kind.needs_future, offline, "{}", kind.info.id);
        assert!(!kind.info.summary.is_empty() && !kind.info.source.is_empty(), "{}", kind.info.id);
        ids.push(kind.info.id);
    }
    let listed = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), listed, "two policies share an id");
}

/// Bytes that a map from dense page ids takes for each page, and how many maps a policy may have.
const INDEX_BYTES: u64 = 4 * 2;

#[test]
fn state_is_as_small_as_the_catalog_says() {
    let (frames, pages) = (2048u32, 16_384u64);
    let mut failures = Vec::new();
    for kind in kinds() {
        let spec = &settings(&kind, 0, 0)[0];
        let mut subject = kind.make(spec, &Shape { frames, pages_dense: Some(pages), seed: 1 });
        run_plain(&kind, subject.as_mut(), frames, &mixed_trace(9, 60_000, pages));
        let own = (f64::from(kind.info.frame_bytes) - kind.meta_bytes as f64).max(0.0);
        let ghosts = kind.ghosts_max(spec, frames).min(pages) as f64;
        let stated = own * f64::from(frames) + f64::from(kind.info.ghost_bytes) * ghosts;
        // Vectors double when they grow, and an index over pages is there once for all of them.
        let indexes = if ghosts > 0.0 { INDEX_BYTES * pages } else { 0 };
        let allowed = 2.0 * stated + indexes as f64 + 2048.0;
        // What a policy has for one frame it has for any number.
        let fixed = kind.make(spec, &Shape { frames: 1, pages_dense: Some(0), seed: 1 });
        let held = subject.state_bytes() as f64 - fixed.state_bytes() as f64;
        if held > allowed || held < stated / 2.0 - indexes as f64 - 2048.0 {
            let text = format!("{spec}: {held} bytes held, {stated} stated, {allowed} allowed");
            failures.push((kind.info.id.to_string(), text));
        }
    }
    report(failures);
}

#[test]
fn ghosts_are_never_more_than_stated() {
    let mut failures = Vec::new();
    for kind in kinds() {
        for spec in settings(&kind, 4, 2) {
            for frames in [1u32, 3, 16, 50] {
                let pages = u64::from(frames) * 12 + 20;
                let most = kind.ghosts_max(&spec, frames);
                let shape = Shape { frames, pages_dense: Some(pages), seed: 1 };
                let mut subject = kind.make(&spec, &shape);
                let trace = mixed_trace(u64::from(frames), 3000, pages);
                run_plain(&kind, subject.as_mut(), frames, &trace);
                // Each page that has a ghost reports a ghost hit when it misses.
                let mut remembered = 0;
                for page in (0..pages).filter(|_| kind.info.ghost_bytes > 0.0) {
                    let access = Access {
                        page: PageId(page),
                        mark: Mark::READ,
                        now: 1 << 20,
                        next: 0,
                        next_read: 0,
                    };
                    remembered += u64::from(subject.miss(&access) != GhostHit::NONE);
                }
                // Pages in the pool may be remembered, too, beside the ghosts.
                if remembered > most.saturating_add(u64::from(frames)) {
                    let text = format!("{spec}, {frames} frames: {remembered} ghosts of {most}");
                    failures.push((kind.info.id.to_string(), text));
                }
            }
        }
    }
    report(failures);
}

/// Runs the body of the fuzz target `policy_ops`, over bytes drawn by seed.
#[test]
fn random_operation_bytes_find_no_fault() {
    let kinds = kinds();
    let mut failures = Vec::new();
    for seed in 0..2000 {
        let bytes = random_records(0xb17e5 + seed, 60);
        let Some((case, records)) = case_of_bytes(&kinds, &bytes) else { continue };
        if drive(&case, &decode(records, case.pages())).is_err() {
            failures.push(explain(&case, records));
        }
    }
    report(failures);
}
