//! Our statistics beside those of SciPy, statsmodels and scikit-posthocs, on random values. Long
//! counts only: it makes a virtual environment, for which half a gigabyte is fetched.

#![allow(clippy::print_stdout)] // what is left out is named

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use millpond_base::Seed;
use millpond_base::rounds::is_deep;
use millpond_lab::interval::Interval;
use millpond_lab::method::{Better, Ranks, block_bootstrap, holm, sign_test, t_test};
use serde_json::{Value as Json, json};

const PACKAGES: [&str; 3] = ["scipy==1.17.1", "statsmodels==0.15.0", "scikit-posthocs==0.17.1"];

const THEIRS: &str = r#"
import json, sys
import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests
from scikit_posthocs import posthoc_nemenyi_friedman

out = []
for case in json.load(sys.stdin):
    a, b, margin = np.array(case["a"]), np.array(case["b"]), case["margin"]
    d = np.log(a) - np.log(b)
    larger, trials = int((a > b).sum()), int((a != b).sum())
    side = "greater" if 2 * larger >= trials else "less"
    t_side = "greater" if (a - b).mean() > 0 else "less"
    up = stats.ttest_1samp(d, np.log1p(margin), alternative="less").pvalue
    down = stats.ttest_1samp(d, -np.log1p(margin), alternative="greater").pvalue
    boot = stats.bootstrap((d,), np.mean, method="percentile", n_resamples=10000, random_state=1)
    m = np.array(case["matrix"])
    n, k = m.shape[1], m.shape[0]
    q = stats.studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2)
    ranks = np.apply_along_axis(stats.rankdata, 0, m).mean(axis=1)
    out.append({
        "sign": stats.binomtest(larger, trials, alternative=side).pvalue,
        "t": stats.ttest_rel(a, b, alternative=t_side).pvalue,
        "tost": max(up, down),
        "low": boot.confidence_interval.low,
        "high": boot.confidence_interval.high,
        "holm": list(multipletests(case["p"], method="holm")[1]),
        "friedman": stats.friedmanchisquare(*m).pvalue,
        "ranks": list(ranks),
        "critical": q * np.sqrt(k * (k + 1) / (6 * n)),
        "nemenyi": posthoc_nemenyi_friedman(m.T).to_numpy().tolist(),
    })
json.dump(out, sys.stdout)
"#;

/// A Python with the packages; none where there is no Python, or the packages cannot be had.
fn python() -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("statistics-venv");
    let python = place.join("bin/python");
    let works = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    let has_all = || {
        let check = "import scipy, statsmodels, scikit_posthocs";
        let output = Command::new(&python).args(["-c", check]).output();
        output.is_ok_and(|output| output.status.success())
    };
    if has_all() {
        return Some(python);
    }
    let made = works(Command::new("python3").args(["-m", "venv"]).arg(&place));
    if !made {
        println!("left out: `python3 -m venv` does not work; install python3-venv");
        return None;
    }
    let pip = ["-m", "pip", "install", "--quiet"];
    if !works(Command::new(&python).args(pip).args(PACKAGES)) || !has_all() {
        println!("left out: pip cannot install {}", PACKAGES.join(", "));
        return None;
    }
    Some(python)
}

fn values(random: &mut fastrand::Rng, n: usize, shift: f64) -> Vec<f64> {
    // Whole numbers now and then, so that there are ties.
    let of = |random: &mut fastrand::Rng| match random.u8(..4) {
        0 => f64::from(random.u8(1..4)),
        _ => 1.0 + 3.0 * random.f64() + shift,
    };
    (0..n).map(|_| of(random)).collect()
}

fn case(seed: u64) -> Json {
    let mut random = fastrand::Rng::with_seed(seed);
    let (n, k) = (random.usize(4..40), random.usize(3..9));
    let shift = 0.4 * random.f64();
    let matrix: Vec<_> = (0..k).map(|at| values(&mut random, n, 0.15 * at as f64)).collect();
    let p: Vec<f64> = (0..random.usize(1..12)).map(|_| random.f64().powi(3)).collect();
    json!({
        "a": values(&mut random, n, shift),
        "b": values(&mut random, n, 0.0),
        "margin": 0.01 + random.f64(),
        "matrix": matrix,
        "p": p,
    })
}

fn floats(json: &Json) -> Vec<f64> {
    json.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

#[test]
fn ours_are_those_of_scipy_and_scikit_posthocs() {
    if !is_deep() {
        println!("left out: only with long counts");
        return;
    }
    let Some(python) = python() else { return };
    let cases: Vec<Json> = (0..200).map(case).collect();
    let mut child = Command::new(python)
        .args(["-c", THEIRS])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let sent = serde_json::to_vec(&cases).unwrap();
    child.stdin.take().unwrap().write_all(&sent).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let theirs: Vec<Json> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(theirs.len(), cases.len());
    for (seed, (case, theirs)) in cases.iter().zip(&theirs).enumerate() {
        beside(seed, case, theirs);
    }
}

fn beside(seed: usize, case: &Json, theirs: &Json) {
    let near = |what: &str, ours: f64, theirs: f64, by: f64| {
        assert!((ours - theirs).abs() <= by, "case {seed}, {what}: {ours}, theirs {theirs}");
    };
    let number = |name: &str| theirs[name].as_f64().unwrap();
    let (a, b) = (floats(&case["a"]), floats(&case["b"]));
    near("sign test", sign_test(&a, &b).p, number("sign"), 1e-9);
    near("t-test", t_test(&a, &b).p, number("t"), 1e-9);
    let ratio = Interval::of_ratios(&a, &b).unwrap();
    let most = 1.0 + case["margin"].as_f64().unwrap();
    near("equivalence", ratio.p_below(most).max(ratio.p_above(1.0 / most)), number("tost"), 1e-7);
    let logs: Vec<f64> = a.iter().zip(&b).map(|(a, b)| (a / b).ln()).collect();
    let boot = block_bootstrap(&logs, 1, Seed(1)).unwrap();
    // Both draw ten thousand times, each by its own generator.
    let by = 0.06 * (boot.high - boot.low);
    near("bootstrap, low", boot.low, number("low"), by);
    near("bootstrap, high", boot.high, number("high"), by);
    for (ours, theirs) in holm(&floats(&case["p"])).iter().zip(floats(&theirs["holm"])) {
        near("Holm", *ours, theirs, 1e-12);
    }
    let matrix: Vec<Vec<f64>> = case["matrix"].as_array().unwrap().iter().map(floats).collect();
    let ranks = Ranks::of(&matrix, Better::Smaller).unwrap();
    near("Friedman", ranks.p, number("friedman"), 1e-9);
    near("critical difference", ranks.critical, number("critical"), 1e-4);
    for (ours, theirs) in ranks.mean.iter().zip(floats(&theirs["ranks"])) {
        near("ranks", *ours, theirs, 1e-12);
    }
    for (i, row) in theirs["nemenyi"].as_array().unwrap().iter().enumerate() {
        for (j, p) in floats(row).into_iter().enumerate() {
            let apart = (ranks.mean[i] - ranks.mean[j]).abs();
            // Just at the critical difference rounding decides.
            if (apart - ranks.critical).abs() > 1e-3 {
                assert_eq!(apart > ranks.critical, p < 0.05, "case {seed}: {i} and {j}, p {p}");
            }
        }
    }
}
