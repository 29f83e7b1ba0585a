//! Comparisons of made-up rows.

use super::*;
use crate::table::{Table, Value};

/// Returns rows of policies on traces, from the misses by policy and trace.
fn rows(misses: &[(&str, &[f64])]) -> Table {
    let mut table = Table::new(["trace", "policy", "size", "seed", "misses"]);
    for (policy, values) in misses {
        for (trace, value) in values.iter().enumerate() {
            let trace = format!("t{trace}");
            let size = 10 + trace.len() as u64;
            let row = [trace.into(), (*policy).into(), size.into(), 1u64.into(), (*value).into()];
            table.rows.push(row.into());
        }
    }
    table
}

fn run(name: &str, rows: Table) -> Run {
    Run { name: name.to_string(), rows }
}

fn outcome(runs: &[Run]) -> Outcome {
    let contest = Contest::of(runs, None, &[]).unwrap();
    Outcome::of(contest, CompareOptions::default()).unwrap()
}

const BASE: [f64; 6] = [100.0, 250.0, 90.0, 400.0, 120.0, 310.0];

/// Returns the base times a factor, each value a little off.
fn scaled(factor: f64, noise: f64) -> Vec<f64> {
    let off = [0.4, -1.0, 0.7, 0.2, -0.6, 0.3];
    BASE.iter().zip(off).map(|(value, off)| value * factor * (1.0 + off * noise)).collect()
}

#[test]
fn a_policy_that_is_better_on_each_trace_is_called_so() {
    let outcome = outcome(&[run("r", rows(&[("lru", &BASE), ("arc", &scaled(0.9, 0.02))]))]);
    let pair = &outcome.pairs[0];
    assert_eq!((outcome.replicate, pair.verdict), (Replicate::Trace, Verdict::Second));
    assert_eq!((pair.replicates, pair.wins), (6, (0, 6)));
    assert!(pair.effect.low < 1.0 / 0.9 && 1.0 / 0.9 < pair.effect.high, "{}", pair.effect);
    assert!((pair.p_sign - 2.0 / 64.0).abs() < 1e-12);
    let sentence = outcome.sentence();
    assert!(sentence.starts_with("lru is worse than arc: misses × 1.1"), "{sentence}");
    assert!(sentence.contains("over 6 traces"), "{sentence}");
}

#[test]
fn what_is_not_shown_is_open_and_what_is_within_the_margin_is_alike() {
    let with = |factor, noise| {
        let compared = outcome(&[run("r", rows(&[("a", &BASE), ("b", &scaled(factor, noise))]))]);
        (compared.pairs[0].verdict, compared.sentence())
    };
    let (verdict, sentence) = with(1.01, 0.2);
    assert_eq!(verdict, Verdict::Open);
    assert!(sentence.contains("nothing was decided"), "{sentence}");
    let (verdict, sentence) = with(1.0, 0.004);
    assert_eq!(verdict, Verdict::Alike);
    assert!(sentence.contains("a and b are alike"), "{sentence}");
    let (verdict, sentence) = with(1.003, 0.001);
    assert_eq!(verdict, Verdict::First, "small and certain");
    assert!(sentence.contains("by less than the margin"), "{sentence}");
}

#[test]
fn the_same_policies_in_two_runs_are_told_apart_by_their_runs() {
    let before = run("results/before", rows(&[("lru", &BASE), ("arc", &BASE)]));
    let after = run("results/after", rows(&[("lru", &scaled(0.8, 0.01))]));
    let compared = outcome(&[before, after]);
    assert_eq!(compared.contest.contestants, ["lru in before", "arc in before", "lru in after"]);
    assert_eq!(compared.pairs.len(), 3);
    assert_eq!(compared.pairs[1].verdict, Verdict::Second);
    // Parts of one sweep are one contestant, even from several directories.
    let whole = rows(&[("lru", &BASE), ("arc", &scaled(0.9, 0.02))]);
    let half = |odd: bool| {
        let of_half = |(at, _): &(usize, &Vec<Value>)| (at % 2 == 1) == odd;
        let kept = whole.rows.iter().enumerate().filter(of_half).map(|(_, row)| row.clone());
        run(&format!("shard-{odd}"), Table { columns: whole.columns.clone(), rows: kept.collect() })
    };
    let shards = outcome(&[half(false), half(true)]);
    assert_eq!(shards.contest.contestants, ["lru", "arc"]);
    assert_eq!(shards.pairs, outcome(&[run("whole", whole.clone())]).pairs);
}

#[test]
fn many_are_ordered_and_corrected_for_how_many_they_are() {
    let all = [("a", scaled(1.0, 0.0)), ("b", scaled(0.96, 0.03)), ("c", scaled(1.3, 0.03))];
    let all: Vec<(&str, &[f64])> = all.iter().map(|(name, of)| (*name, of.as_slice())).collect();
    let compared = outcome(&[run("r", rows(&all))]);
    assert_eq!(compared.pairs.len(), 3);
    for pair in &compared.pairs {
        assert!(pair.p_holm >= pair.p && pair.p_holm <= 3.0 * pair.p + 1e-12);
    }
    let sentence = compared.sentence();
    assert!(sentence.starts_with("b has the least; clearly behind it: "), "{sentence}");
    let ranks = compared.ranks.unwrap();
    assert_eq!((ranks.settings, ranks.mean[2]), (6, 3.0));
    let contest = Contest::of(&[run("r", rows(&all))], None, &[]).unwrap();
    let options = CompareOptions { to: Some("c".to_string()), ..CompareOptions::default() };
    let to = Outcome::of(contest, options).unwrap();
    assert_eq!(to.pairs.len(), 2);
    assert!(to.sentence().starts_with("Better than c: a, b."), "{}", to.sentence());
}

#[test]
fn seeds_of_what_draws_stand_beside_what_does_not() {
    let mut table = Table::new(["trace", "policy", "size", "seed", "misses"]);
    let mut push = |policy: &str, seed: u64, misses: f64| {
        let row = ["t".into(), policy.into(), 5u64.into(), seed.into(), misses.into()];
        table.rows.push(row.into());
    };
    push("lru", 1, 100.0);
    push("arc", 1, 90.0);
    [(1, 120.0), (2, 122.0), (3, 119.0)].into_iter().for_each(|(seed, m)| push("random", seed, m));
    let compared = outcome(&[run("r", table)]);
    assert_eq!(compared.replicate, Replicate::Seed);
    let replicates: Vec<usize> = compared.pairs.iter().map(|pair| pair.replicates).collect();
    assert_eq!(replicates, [1, 3, 3], "nothing varies between lru and arc");
    let verdicts: Vec<Verdict> = compared.pairs.iter().map(|pair| pair.verdict).collect();
    assert_eq!(verdicts, [Verdict::Open, Verdict::First, Verdict::First]);
}

#[test]
fn zeros_are_compared_by_differences() {
    let hits = |policy: &str, values: [f64; 4]| -> Vec<Vec<Value>> {
        let row = |(trace, value): (usize, f64)| {
            vec![format!("t{trace}").into(), policy.into(), value.into()]
        };
        values.into_iter().enumerate().map(row).collect()
    };
    let columns = ["trace", "policy", "hit_ratio"];
    let mut table = Table::new(columns);
    table.rows.extend(hits("mru", [0.90, 0.85, 0.88, 0.91]));
    table.rows.extend(hits("lru", [0.0, 0.01, 0.0, 0.0]));
    let metric = Metric::parse("hit_ratio").unwrap();
    let contest = Contest::of(&[run("r", table)], Some(metric), &[]).unwrap();
    let compared = Outcome::of(contest, CompareOptions::default()).unwrap();
    assert!(!compared.are_ratios);
    assert_eq!(compared.pairs[0].verdict, Verdict::First);
    assert!(compared.sentence().contains("differ by 0.88"), "{}", compared.sentence());
}

#[test]
fn what_cannot_be_compared_says_why() {
    let error = |runs: &[Run], only: &[String]| match Contest::of(runs, None, only) {
        Err(error) => error.to_string(),
        Ok(contest) => Outcome::of(contest, CompareOptions::default()).unwrap_err().to_string(),
    };
    let both = rows(&[("lru", &BASE), ("arc", &BASE)]);
    let one = error(&[run("r", rows(&[("lru", &BASE)]))], &[]);
    assert!(one.contains("only lru has misses, and two policies"), "{one}");
    let unknown = error(&[run("r", both.clone())], &["lru".to_string(), "nru".to_string()]);
    assert_eq!(unknown, "no row is of 'nru'; there are lru, arc");
    let mut twice = both.clone();
    let mut again = twice.rows[0].clone();
    again[4] = 77.0.into();
    twice.rows.push(again);
    let twice = error(&[run("r", twice)], &[]);
    assert!(twice.contains("lru has two values at") && twice.contains("100 and 77"), "{twice}");
    let single = error(&[run("r", rows(&[("lru", &BASE[..1]), ("arc", &BASE[..1])]))], &[]);
    assert!(single.contains("`blocks` 20"), "{single}");
    let empty = error(&[run("r", Table::new(["trace"]))], &[]);
    assert!(empty.contains("there is no row"), "{empty}");
    let mut other = Table::new(["trace", "colour"]);
    other.rows.push(vec!["t".into(), "red".into()]);
    let other = error(&[run("r", other)], &[]);
    assert!(other.contains("name a column with `metric`"), "{other}");
}

#[test]
fn luan_s_marks_are_over_the_settings() {
    let compared = outcome(&[run("r", rows(&[("lru", &BASE), ("arc", &scaled(0.8, 0.01))]))]);
    let luan = compared.luan.as_ref().unwrap();
    // All six sizes agree: p is 1/64 for the sign test, and far less for the t-test of unlike
    // sizes.
    assert_eq!(luan.settings, 6);
    assert_eq!(luan.joint.sign.0[1][0].to_string(), ">");
    assert!(luan.scores[1] > 0.0 && luan.scores[0] == -luan.scores[1]);
    let sections = compared.sections();
    assert_eq!(sections[1].title, "Luan's joint method");
    assert!(compared.ranking().unwrap().rows[0][0] == Value::from("arc"));
}

/// Returns live rows: two policies, two pools, three repetitions. Frames follow from the size of
/// the data, which differs by policy.
fn live() -> Table {
    let columns = ["workload", "pool", "policy", "repetition", "pool_frames", "reads_per_tx"];
    let mut table = Table::new(columns);
    for (policy, factor, frames) in [("lru", 1.0, 1000u64), ("arc", 0.5, 1003)] {
        for pool in ["5%", "20%"] {
            for repetition in 1..=3u64 {
                let value = factor * (10.0 + repetition as f64 / 100.0);
                let row = ["tpcc".into(), pool.into(), policy.into(), repetition.into()];
                table.rows.push([&row[..], &[frames.into(), value.into()]].concat());
            }
        }
    }
    table
}

#[test]
fn live_pools_that_are_a_share_of_the_data_are_the_same_setting() {
    let metric = || Some(Metric::parse("reads_per_tx").unwrap());
    let of = |table| {
        let contest = Contest::of(&[run("r", table)], metric(), &[]).unwrap();
        Outcome::of(contest, CompareOptions::default()).unwrap()
    };
    let outcome = of(live());
    assert_eq!(
        (outcome.replicate, outcome.pairs[0].verdict),
        (Replicate::Repetition, Verdict::Second)
    );
    assert_eq!(outcome.luan.as_ref().map(|luan| luan.settings), Some(2));
    assert!(!outcome.sentence().contains("settings"), "{}", outcome.sentence());
    // The sentence counts the settings that one of the contestants lacks.
    let mut table = live();
    let lacks = |row: &Vec<Value>| row[1] == "20%".into() && row[2] == "arc".into();
    table.rows.retain(|row| !lacks(row));
    let sentence = of(table).sentence();
    assert!(sentence.contains("1 of 2 settings were not run with all of them"), "{sentence}");
}

/// Returns the rows with an extra column that is constant within each trace.
fn with(name: &str, mut rows: Table, value: impl Fn(&str) -> String) -> Table {
    let at = rows.column("trace").unwrap();
    rows.columns.push(name.to_string());
    rows.rows.iter_mut().for_each(|row| row.push(value(&row[at].to_string()).into()));
    rows
}

#[test]
fn rows_with_different_options_are_refused_by_name() {
    let of = |policy, options: &str| {
        run(policy, with("options", rows(&[(policy, &BASE)]), |_| options.to_string()))
    };
    for other in ["pool warmup=20%", "rw", "pool batch=64", "pool blocks=20"] {
        let error = Contest::of(&[of("lru", "pool"), of("arc", other)], None, &[]).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("'pool'") && error.contains(&format!("'{other}'")), "{error}");
        assert!(error.contains("'options=pool'"), "{error}");
    }
    Contest::of(&[of("lru", "rw"), of("arc", "rw")], None, &[]).unwrap();
    // Rows of live runs, or of other programs, do not state their options.
    Contest::of(&[of("lru", "rw"), run("own", rows(&[("arc", &BASE)]))], None, &[]).unwrap();
}

#[test]
fn one_trace_under_four_names_is_one_replicate() {
    let base = [BASE[0]; 4];
    let (first, second) = (("lru", &base[..]), ("arc", &base[..]));
    let named = with("content", rows(&[first, second]), |_| "ab".to_string());
    let contest = Contest::of(&[run("r", named)], None, &[]).unwrap();
    assert_eq!(contest.twins.len(), 3);
    let options = CompareOptions { replicate: Some(Replicate::Trace), ..Default::default() };
    let error = Outcome::of(contest, options).unwrap_err().to_string();
    assert!(error.contains("fewer than two traces"), "{error}");
    // Two of six traces are the same, so five are left, and the sentence names the twin.
    let twice = |trace: &str| if trace == "t5" { "t0".to_string() } else { trace.to_string() };
    let mut other = scaled(0.9, 0.02);
    other[5] = other[0];
    let mut base = BASE;
    base[5] = base[0];
    let named = with("content", rows(&[("lru", &base), ("arc", &other)]), twice);
    let outcome = outcome(&[run("r", named)]);
    assert_eq!(outcome.pairs[0].replicates, 5);
    let said = outcome.sentence();
    assert!(said.contains("t5 holds the references of t0"), "{said}");
}

#[test]
fn one_name_for_two_traces_is_refused() {
    let of = |policy, content: &str| {
        run(policy, with("content", rows(&[(policy, &BASE)]), |t| format!("{content}{t}")))
    };
    let error = Contest::of(&[of("lru", "a"), of("arc", "b")], None, &[]).unwrap_err().to_string();
    assert!(error.contains("t0 is not the same") && error.contains("`expand_sizes`"), "{error}");
}
