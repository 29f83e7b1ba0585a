//! `millpond-papers li`.

use super::support::{folder, labels, number, of_figure, paper, rows, text, whole_run};

#[test]
fn the_whole_experiment_runs_in_small_and_leaves_rows_and_a_page() {
    let out = tempfile::tempdir().unwrap();
    let of_chapter_4 = ["4.5", "4.6", "tables-4", "why-4"];
    let others =
        ["tables", "3.3", "3.4", "3.5", "5.4", "5.5", "5.6", "5.8", "5.9", "dsyncs", "listed"];
    let figures = [&others[..], &of_chapter_4].concat();
    let (table, page) = whole_run("li", out.path(), &figures);
    assert_eq!(labels(&table, "tables", "trace").len(), 12);
    for row in of_figure(&table, "tables") {
        let of = |column| number(&table, row, column);
        let kinds = ["read_share", "synch_share", "replace_share", "recov_share"];
        let all: f64 = kinds.map(of).iter().sum();
        assert!((all - 1.0).abs() < 1e-9 && of("requests") > 100.0, "{all}");
        assert!(of("read_share") > 0.0, "a pool reads");
    }
    for figure in ["3.3", "3.4", "3.4-short", "3.5"] {
        assert_eq!(labels(&table, figure, "policy").len(), 7, "{figure}");
        for row in of_figure(&table, figure) {
            let of = |column| number(&table, row, column);
            assert!(of("read_hit_ratio") <= 1.0 && of("read_hits") <= of("reads"));
            // Out queues take their space.
            assert!(of("frames") <= of("tier_frames"));
        }
    }
    for figure in ["5.4", "5.5", "5.6", "5.8", "5.9"] {
        assert_eq!(labels(&table, figure, "policy").len(), 8, "{figure}");
        for row in of_figure(&table, figure) {
            let of = |column| number(&table, row, column);
            assert_eq!(of("total"), of("storage_reads") + of("storage_writes"));
            assert!(of("unavoidable") <= of("total") && of("unavoidable") > 0.0);
        }
    }
    assert_eq!(labels(&table, "dsyncs", "trace").len(), 4);
    for row in of_figure(&table, "dsyncs") {
        let trace = table.get(row, "trace").unwrap().to_string();
        let dsyncs = number(&table, row, "dsyncs_per_write");
        assert_eq!(dsyncs == 0.0, trace == "gap-5", "{trace}: {dsyncs} dsyncs a write");
    }
    assert_eq!(labels(&table, "listed", "trace"), ["listed-added", "listed-sent"]);
    for row in of_figure(&table, "listed") {
        assert!(number(&table, row, "dsyncs") > 0.0, "a sync list is synced");
    }
    let requests = |row| number(&table, row, "requests");
    let same: Vec<f64> = of_figure(&table, "listed").into_iter().map(requests).collect();
    assert!(same.windows(2).all(|pair| pair[0] == pair[1]), "one recording: {same:?}");
    // A second tier is a share of the data.
    for row in of_figure(&table, "5.6") {
        let of = |column| number(&table, row, column);
        // Chapter 4 has words on this axis, so that the column is text.
        let size: f64 = table.get(row, "size").unwrap().to_string().parse().unwrap();
        let share = size / 606.317;
        assert!((of("tier_frames") - share * of("data_pages")).abs() <= 1.0);
    }
    for figure in &of_chapter_4[1..] {
        for row in of_figure(&table, figure) {
            let of = |column| number(&table, row, column);
            assert!(of("utilisation") > 0.0 && of("utilisation") <= 1.0 + 1e-9, "{figure}");
            assert!(of("transactions") > 1000.0 && of("service_ms") > 0.0, "{figure}");
        }
    }
    assert_eq!(labels(&table, "tables-4", "policy"), ["org", "range", "rec"]);
    for row in of_figure(&table, "4.5") {
        let of = |column| number(&table, row, column);
        assert!(of("physical") <= of("logical") && of("physical") > 0.0);
    }
    assert!(page.contains("virtual time"), "what is a model is named");
}

#[test]
fn the_plan_is_a_matter_of_minutes_and_unknown_figures_are_refused() {
    let out = tempfile::tempdir().unwrap();
    let plan = paper("li", out.path(), &["--plan", "--repetitions", "5"]);
    assert!(plan.status.success());
    let stdout = text(&plan.stdout);
    let about = stdout.lines().find_map(|line| line.strip_prefix("All: ")?.split("about ").nth(1));
    let minutes = about.and_then(|about| about.split(" min").next()?.parse::<f64>().ok());
    assert!(minutes.is_some_and(|minutes| minutes > 1.0 && minutes <= 25.0), "{stdout}");
    let refused = paper("li", out.path(), &["--figure", "4.1"]);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("tables, 3.3"), "{}", text(&refused.stderr));
}

#[test]
fn recordings_are_kept_and_some_traces_can_be_run_alone() {
    let out = tempfile::tempdir().unwrap();
    let traces = out.path().join("traces");
    let run = |more: &[&str]| {
        let some = ["--scale", "quick", "--figure", "tables", "--traces", traces.to_str().unwrap()];
        paper("li", out.path(), &[&some[..], more].concat())
    };
    let of = |output| {
        let folder = folder(&output);
        let described = std::fs::read_to_string(folder.join("run.json")).unwrap();
        assert!(described.contains("--figure tables --trace 300k_400\""), "{described}");
        let table = rows(&folder);
        let row = of_figure(&table, "tables");
        assert_eq!(row.len(), 1);
        ["requests", "dsyncs", "pages", "read_share", "replace_share", "recov_share"]
            .map(|column| number(&table, row[0], column))
    };
    let first = of(run(&["--trace", "300k_400"]));
    let files = || std::fs::read_dir(&traces).unwrap().count();
    assert_eq!(files(), 2, "a trace, and how it was made");
    // A live pool with cleaners is not the same twice.
    assert_eq!(of(run(&["--trace", "300k_400"])), first);
    assert_eq!(files(), 2);
    let unknown = run(&["--trace", "300k"]);
    assert!(!unknown.status.success());
    assert!(text(&unknown.stderr).contains("540k_4000"), "{}", text(&unknown.stderr));
    std::fs::write(traces.join("300k_400-1.txt"), "otherwise\n").unwrap();
    let refused = run(&["--trace", "300k_400"]);
    assert!(text(&refused.stderr).contains("300k_400-1.txt"), "{}", text(&refused.stderr));
}
