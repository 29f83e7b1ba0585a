//! `millpond paper gilbert --chapter 2`.
#![allow(clippy::print_stdout)]

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
    let (table, page) = what_came(&output, &["2.1", "2.12", "2.13", "2.21", "removal"]);
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
