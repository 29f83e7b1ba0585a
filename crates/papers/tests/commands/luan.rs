//! `millpond-papers luan`.

use super::support::{labels, number, of_figure, paper, text, whole_run};

#[test]
fn the_whole_experiment_runs_in_small_and_leaves_rows_and_a_page() {
    let out = tempfile::tempdir().unwrap();
    let figures = ["1", "2", "3", "4", "6", "7", "table-8", "15", "causes", "16", "17", "18"];
    let (table, page) = whole_run("luan", out.path(), &figures);
    for figure in figures {
        let policies = labels(&table, figure, "policy");
        assert!(policies.len() >= 13, "{figure}: {policies:?}");
        assert!(policies.contains(&"CLOCK-Pro".to_string()), "{figure}");
    }
    assert_eq!(labels(&table, "3", "round").len(), 10);
    assert_eq!(labels(&table, "15", "size"), ["15360", "2560", "25600"]);
    assert_eq!(labels(&table, "causes", "trace").len(), 13);
    // Pools are shares of the data, not of the pages that are referenced.
    for row in of_figure(&table, "15") {
        let (frames, data) = (number(&table, row, "frames"), number(&table, row, "data_pages"));
        let share = number(&table, row, "size") / 115_200.0;
        assert!(
            (frames - (share * data).ceil()).abs() < 1.0 || frames == 2.0,
            "{frames} of {data}"
        );
    }
    assert_eq!(labels(&table, "16", "size"), ["10240", "25600"]);
    assert_eq!(labels(&table, "17", "bound"), ["CPU", "I/O"]);
    assert_eq!(labels(&table, "18", "policy").len(), 14, "RANDOM, too");
    for figure in ["16", "17", "18"] {
        for row in of_figure(&table, figure) {
            let of = |column| number(&table, row, column);
            assert!(of("logical_reads") > 0.0 && of("execution_us") > 0.0, "{figure}");
            assert!(of("worker_us") > 0.0 && of("read_share") <= 1.0, "{figure}");
            let replaced = of("evictions_per_read");
            // The largest pools hold all that so short a run touches.
            assert!(figure != "16" || replaced > 0.0, "no page was replaced: {replaced}");
            assert!(figure != "18" || replaced == 0.0, "it holds everything: {replaced}");
        }
    }
    // All of a scan that is a little smaller than the pool stays under LRU.
    let lru = of_figure(&table, "1")
        .into_iter()
        .find(|row| table.get(*row, "policy") == Some(&"LRU".into()));
    assert!((number(&table, lru.unwrap(), "pollution") - 92.5).abs() < 0.5);
    assert!(page.contains("figures 12 to 14"), "what is not run is named");
}

#[test]
fn the_plan_is_a_matter_of_minutes_and_unknown_figures_are_refused() {
    let out = tempfile::tempdir().unwrap();
    let plan = paper("luan", out.path(), &["--plan"]);
    assert!(plan.status.success());
    let stdout = text(&plan.stdout);
    let about = stdout.lines().find_map(|line| line.strip_prefix("All: ")?.split("about ").nth(1));
    assert!(about.is_some_and(|about| about.contains(" min") || about.contains(" s")), "{stdout}");
    let refused = paper("luan", out.path(), &["--figure", "12"]);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("table-8"), "{}", text(&refused.stderr));
}
