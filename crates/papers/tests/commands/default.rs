//! `millpond-papers default`.

use super::support::{labels, number, whole_run};

#[test]
fn policies_run_live_and_their_regrets_are_on_the_page() {
    let out = tempfile::tempdir().unwrap();
    let (table, page) = whole_run("default", out.path(), &["pages", "throughput"]);
    let workloads = ["lookups", "scans", "tpcc", "updates"];
    assert_eq!(labels(&table, "pages", "workload"), workloads);
    assert_eq!(labels(&table, "pages", "policy"), ["random", "s3-fifo", "tide", "watt"]);
    assert_eq!(labels(&table, "throughput", "pool"), ["20%", "all"]);
    for row in 0..table.rows.len() {
        assert_eq!(table.get(row, "end"), Some(&"ran".into()));
        assert!(number(&table, row, "transactions") > 0.0);
    }
    assert!(page.contains("nine of ten"), "the plot of regrets");
}
