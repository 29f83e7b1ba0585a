//! The page that a report is.

use std::path::PathBuf;

use millpond_lab::report::{ReportData, ReportError, ReportOptions, render};
use millpond_lab::results::{ResultDir, RunInfo};
use millpond_lab::table::Table;

fn directory(root: &std::path::Path, rows: &[(&str, u64, u64, u64, u64)]) -> PathBuf {
    let names = ["trace", "policy", "params", "size", "seed", "references", "misses", "writes"];
    let mut table = Table::new(names);
    for (policy, size, seed, misses, writes) in rows {
        table.rows.push(vec![
            "dir/<trace>.txt".into(),
            (*policy).into(),
            "".into(),
            (*size).into(),
            (*seed).into(),
            1000u64.into(),
            (*misses).into(),
            (*writes).into(),
        ]);
    }
    let dir = ResultDir::create(root, "sim", "1").unwrap();
    let info = RunInfo {
        command: "sim".into(),
        command_line: "millpond sim '<trace>.txt' --policy lru,watt".into(),
        params: serde_json::json!({"seeds": [1, 2]}),
    };
    dir.write(&info, &table, true).unwrap();
    dir.path().to_path_buf()
}

#[test]
fn a_report_is_one_page_with_curves_map_tradeoff_table_and_command() {
    let root = tempfile::tempdir().unwrap();
    let rows = [
        ("lru", 10, 1, 500, 50),
        ("lru", 20, 1, 300, 40),
        ("watt", 10, 1, 400, 30),
        ("watt", 10, 2, 420, 32),
        ("watt", 20, 1, 200, 20),
    ];
    let data = ReportData::read(&[directory(root.path(), &rows)]).unwrap();
    let page = render(&data, &ReportOptions { title: "A & B".into(), ..Default::default() });
    for part in [
        "<title>A &amp; B</title>",
        "class=\"series s0 d0\"",
        "class=\"band\"",
        "Misses relative to watt",
        "1.22", // 500 misses of LRU over 410 of WATT on average
        "Reads against writes",
        "5 rows",
        "millpond sim &#39;&lt;trace&gt;.txt&#39; --policy lru,watt",
        "prefers-color-scheme:dark",
        "width=device-width",
    ] {
        assert!(page.contains(part), "no {part:?}");
    }
    assert!(!page.contains("http:") && !page.contains("https:"), "nothing is fetched");
    assert!(!page.contains("<trace>"), "names are escaped");
    assert!(!page.contains("NaN"));
}

#[test]
fn a_directory_without_results_is_an_error_that_names_it() {
    let root = tempfile::tempdir().unwrap();
    let missing = root.path().join("nothing");
    let error = ReportData::read(std::slice::from_ref(&missing)).err().unwrap();
    assert!(error.to_string().contains("nothing"), "{error}");
    let empty = directory(root.path(), &[]);
    assert!(matches!(ReportData::read(&[empty]), Err(ReportError::Empty(_))));
}
