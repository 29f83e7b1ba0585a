//! `millpond-papers leanstore`.

use std::fs;
use std::path::Path;

use millpond_lab::table::Table;

use super::support::{assert_keeps_to_its_time, labels, number, of_figure, paper, text, whole_run};

/// Rows of figure 9, of which a line may be left out: not every machine sets memory limits.
fn assert_outgrown(table: &Table, page: &str, out: &Path) {
    let engines = ["in memory, no limit", "paged by the system", "pool"];
    assert_eq!(labels(table, "9", "what"), engines);
    for row in of_figure(table, "9") {
        let said = |name| table.get(row, name).map(ToString::to_string).unwrap_or_default();
        if !said("point").is_empty() {
            assert!(number(table, row, "data_mib") > 0.0 && number(table, row, "second") > 0.0);
        } else if said("end") == "left out" {
            assert_eq!(said("what"), "paged by the system", "only this needs a limit");
            assert!(!said("why").is_empty() && page.contains("is left out: "));
        } else {
            assert_eq!(said("end"), "ran");
            assert!(number(table, row, "per_s_second_half") > 0.0);
        }
    }
    let left: Vec<_> = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left.len(), 1, "only the results are left: {left:?}");
}

#[test]
fn the_whole_experiment_runs_in_small_and_leaves_rows_and_a_page() {
    let out = tempfile::tempdir().unwrap();
    let figures = ["1", "7", "8", "9", "10", "11", "12", "hits", "ramp-up", "table-1"];
    let (table, page) = whole_run("leanstore", out.path(), &figures);
    assert_eq!(labels(&table, "1", "what"), ["pool", "twin"]);
    let steps = ["+lean-evict", "+optimistic", "+swizzling", "baseline", "twin"];
    assert_eq!(labels(&table, "7", "step"), steps);
    assert_eq!(labels(&table, "7", "latching"), ["latched", "optimistic"]);
    assert_outgrown(&table, &page, out.path());
    assert_eq!(labels(&table, "10", "skew"), ["0", "2"]);
    assert_eq!(labels(&table, "11", "cooling"), ["10", "50"]);
    assert_eq!(labels(&table, "12", "table"), ["order", "order_line"]);
    assert_eq!(labels(&table, "ramp-up", "drive"), ["nvme"]);
    assert_eq!(of_figure(&table, "hits").len(), 10);
    let number = |row, name| number(&table, row, name);
    let reads = of_figure(&table, "10").into_iter().map(|row| number(row, "reads_per_tx"));
    let reads: Vec<f64> = reads.collect();
    assert!(reads[0] > reads[1], "skewed keys miss less: {reads:?}");
    for row in of_figure(&table, "12") {
        assert!(number(row, "rows_per_s") > 0.0 && number(row, "mib_per_s") > 0.0);
    }
}

#[test]
fn the_grid_in_miniature_keeps_to_its_time() {
    let out = tempfile::tempdir().unwrap();
    let plan = text(&paper("leanstore", out.path(), &["--plan"]).stdout);
    assert_keeps_to_its_time(&plan);
}
