//! `millpond paper leanstore`.

use super::support::{assert_keeps_to_its_time, labels, number, of_figure, paper, text, whole_run};

#[test]
fn the_whole_experiment_runs_in_small_and_leaves_rows_and_a_page() {
    let out = tempfile::tempdir().unwrap();
    let figures = ["1", "7", "8", "10", "11", "12", "hits", "ramp-up", "table-1"];
    let (table, _) = whole_run("leanstore", out.path(), &figures);
    assert_eq!(labels(&table, "1", "what"), ["pool", "twin"]);
    let steps = ["+lean-evict", "+optimistic", "+swizzling", "baseline", "twin"];
    assert_eq!(labels(&table, "7", "step"), steps);
    assert_eq!(labels(&table, "7", "latching"), ["latched", "optimistic"]);
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
