//! `millpond-papers gilbert --chapter 2`.
#![allow(clippy::print_stdout)]

use std::process::{Command, Output};

use serde_json::Value as Json;

use super::support::{assert_keeps_to_its_time, labels, number, of_figure, paper, text, what_came};

#[test]
fn the_chapter_runs_in_small_with_both_arms_and_both_orders() {
    let out = tempfile::tempdir().unwrap();
    let output = paper("gilbert", out.path(), &["--chapter", "2", "--scale", "quick", "--quiet"]);
    let said = text(&output.stderr);
    if said.contains("may not sample itself") || said.contains("x86-64 only") {
        println!("skipped: {said}");
        return;
    }
    let figures = ["2.1", "2.12", "2.13", "2.21", "removal", "sections"];
    let (table, page) = what_came(&output, &figures);
    let arms = ["conventional", "modern"];
    for figure in ["2.12", "2.13"] {
        assert_eq!(labels(&table, figure, "arm"), arms, "{figure}");
        assert_eq!(labels(&table, figure, "workload"), ["tpcc", "ycsb-read", "ycsb-update"]);
        assert_eq!(labels(&table, figure, "threads"), ["1", "2"]);
    }
    for row in of_figure(&table, "2.12") {
        let is_conventional = table.get(row, "arm") == Some(&"conventional".into());
        let translation = if is_conventional { "hashed" } else { "swizzled" };
        assert_eq!(table.get(row, "translation"), Some(&translation.into()));
        assert!(number(&table, row, "throughput_per_s") > 0.0);
    }
    let mut shares = 0.0;
    for row in of_figure(&table, "2.13") {
        match table.get(row, "component") {
            Some(all) if *all == "all".into() => assert_eq!(number(&table, row, "lost"), 0.0),
            _ => shares += number(&table, row, "share"),
        }
    }
    // Twelve runs, in which little or nothing was left unassigned.
    assert!(shares <= 12.0 + 1e-6, "{shares}");
    assert_eq!(
        labels(&table, "2.21", "translation"),
        ["hashed", "swizzled", "swizzled-table"],
        "one arm each"
    );
    assert_eq!(labels(&table, "removal", "order"), ["log first", "pool first"]);
    assert_eq!(labels(&table, "removal", "step").len(), 11, "two of them in both orders");
    assert_eq!(labels(&table, "2.1", "transaction"), ["new-order", "payment"]);
    assert_eq!(labels(&table, "2.1", "step").len(), 7);
    assert!(page.contains("everything") && page.contains("rank alike"));
    if millpond_base::sections::ARE_COUNTED {
        let components = labels(&table, "sections", "component");
        assert!(
            ["logging", "locking", "pool"].iter().all(|name| components.contains(&(*name).into()))
        );
    } else {
        assert!(page.contains("--features critical-sections"), "it says how to build it");
    }
}

#[test]
fn the_chapter_in_miniature_keeps_to_its_time_and_there_is_no_third() {
    let out = tempfile::tempdir().unwrap();
    let results = out.path().join("results");
    let plan = text(&paper("gilbert", &results, &["--chapter", "2", "--plan"]).stdout);
    assert!(
        ["2.1 ", "2.12", "2.13", "2.21", "removal"].iter().all(|figure| plan.contains(figure)),
        "{plan}"
    );
    assert_keeps_to_its_time(&plan);
    let output = paper("gilbert", &results, &["--chapter", "3"]);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("1..=2"));
    let output = paper("gilbert", &results, &["--chapter", "2", "--figure", "1.29"]);
    assert!(text(&output.stderr).contains("2.12"), "{}", text(&output.stderr));
    assert!(!results.exists(), "nothing was made");
}

const TRANSACTIONS: [&str; 2] = ["new-order", "payment"];

/// The hidden command that is counted, or counts.
fn step(transaction: &str, steps: u32, transactions: u32, more: &[&str]) -> Output {
    let (steps, transactions) = (steps.to_string(), transactions.to_string());
    let numbers = ["--steps", &steps, "--transactions", &transactions, "--scale", "quick"];
    Command::new(env!("CARGO_BIN_EXE_millpond-papers"))
        .args(["gilbert-step", "--load", transaction])
        .args(numbers)
        .args(more)
        .output()
        .unwrap()
}

fn json(output: &Output) -> Json {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn each_step_runs_alone_on_one_thread() {
    for transaction in TRANSACTIONS {
        for steps in 0..=6 {
            let printed = json(&step(transaction, steps, 3, &[]));
            assert_eq!((&printed["transactions"], &printed["retries"]), (&3.into(), &0.into()));
        }
    }
    for (list, last) in [("log first", 6), ("pool first", 5)] {
        for load in ["tpcc", "ycsb-read", "ycsb-update"] {
            for steps in [0, 1, last - 1, last] {
                let printed = json(&step(load, steps, 3, &["--list", list]));
                assert_eq!(printed["transactions"], 3, "{list}, {load}, {steps}");
            }
        }
        let output = step("payment", 0, 3, &["--list", list]);
        assert!(text(&output.stderr).contains("ycsb-read, ycsb-update, tpcc do"));
        let output = step("tpcc", last + 1, 3, &["--list", list]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    }
    for (transaction, steps, count) in [("payment", 7, 3), ("delivery", 0, 3), ("payment", 0, 0)] {
        let output = step(transaction, steps, count, &[]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    }
}

#[test]
fn instructions_repeat_grow_with_transactions_and_shrink_with_steps() {
    let valgrind = Command::new("valgrind").arg("--version").output();
    if !valgrind.is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no valgrind");
        return;
    }
    let count = |steps, transactions| {
        let output = step("payment", steps, transactions, &["--instructions"]);
        json(&output)["instructions_per_tx"].as_f64().unwrap()
    };
    let [whole, again, twice, tree] =
        [(0, 200), (0, 200), (0, 400), (6, 200)].map(|(steps, n)| count(steps, n));
    let is_near = |a: f64, b: f64, within: f64| (a / b - 1.0).abs() < within;
    assert!(is_near(whole, again, 0.01), "{whole} and {again}");
    assert!(is_near(twice, whole, 0.02), "of one transaction: {whole}, in twice as many {twice}");
    assert!(tree < 0.8 * whole, "{tree} of {whole}");
}

#[test]
fn instructions_are_cells_of_their_own_where_there_is_valgrind() {
    let plan = |more: &[&str], path: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond-papers"));
        command.args(["gilbert", "--chapter", "2", "--figure", "2.1", "--plan"]);
        command.args(["--repetitions", "2"]).args(more);
        command.envs(path.map(|path| ("PATH", path)));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    assert!(plan(&[], None).0.contains("All: 28 cells"));
    let (without, said) = plan(&["--instructions"], Some("/nonexistent"));
    assert!(without.contains("All: 28 cells"), "{without}");
    assert!(said.contains("instructions are not counted: valgrind cannot be started"), "{said}");
    let (with, said) = plan(&["--instructions"], None);
    assert!(with.contains("All: 42 cells") || said.contains("are not counted"), "{with}{said}");
    let out = tempfile::tempdir().unwrap();
    let output = paper("gilbert", out.path(), &["--instructions", "--plan"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--chapter 2"), "{}", text(&output.stderr));
}
