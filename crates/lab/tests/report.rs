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

/// A directory of a run named `name` with these columns' rows, all of policy `lru`.
fn lru_rows(
    root: &std::path::Path,
    name: &str,
    columns: &[&str],
    rows: Vec<Vec<millpond_lab::table::Value>>,
) -> PathBuf {
    let mut table = Table::new(columns.iter().copied());
    table.rows = rows;
    let dir = ResultDir::create(root, name, "1").unwrap();
    let info = RunInfo {
        command: name.into(),
        command_line: String::new(),
        params: serde_json::json!({"seeds": [1]}),
    };
    dir.write(&info, &table, true).unwrap();
    dir.path().to_path_buf()
}

#[test]
fn sampled_points_are_no_part_of_the_line_of_exact_ones() {
    let root = tempfile::tempdir().unwrap();
    let columns = ["trace", "policy", "size", "miss_ratio", "method"];
    let row = |size: u64, ratio: f64, method: &str| {
        vec!["t".into(), "lru".into(), size.into(), ratio.into(), method.into()]
    };
    let rows = vec![
        row(10, 0.5, "simulated"),
        row(20, 0.4, "simulated"),
        row(20, 0.9, "sampled"),
        row(40, 0.8, "sampled"),
    ];
    let data = ReportData::read(&[lru_rows(root.path(), "curve", &columns, rows)]).unwrap();
    let page = render(&data, &ReportOptions::default());
    assert_eq!(page.matches("<title>lru</title><polyline").count(), 1);
    assert_eq!(page.matches("<title>lru, sampled</title><polyline").count(), 1);
    assert!(page.contains("lru, 20 frames: 0.4000"), "not the mean of both");
}

#[test]
fn traces_of_one_name_are_told_apart_and_each_plot_has_its_own_legend() {
    let root = tempfile::tempdir().unwrap();
    let columns = ["trace", "policy", "size", "references", "misses", "mib"];
    let row = |trace: &str, policy: &str, size: u64, misses: u64| {
        let counts = [1000u64.into(), misses.into(), 24.0.into()];
        [vec![trace.into(), policy.into(), size.into()], counts.to_vec()].concat()
    };
    let rows = vec![
        row("a/t.txt", "lru", 10, 500),
        row("a/t.txt", "lru", 20, 400),
        row("b/t.txt", "arc", 10, 450),
        row("b/t.txt", "arc", 20, 350),
    ];
    let data = ReportData::read(&[lru_rows(root.path(), "sim", &columns, rows)]).unwrap();
    let page = render(&data, &ReportOptions::default());
    assert!(page.contains("<figcaption>a/t.txt<") && page.contains("<figcaption>b/t.txt<"));
    let legends: Vec<&str> = page.split("<ul class=\"legend\">").skip(1).collect();
    let entries = legends.iter().map(|l| l.split("</ul>").next().unwrap().matches("<li>").count());
    assert_eq!(entries.collect::<Vec<_>>(), [1, 1], "one line in each plot, one entry");
    assert!(page.contains(">24</td>") && !page.contains("24.0"), "whole numbers stay whole");
}

/// The columns of a sweep that was cut into blocks.
const BLOCKS: [&str; 8] =
    ["trace", "policy", "size", "references", "misses", "block", "content", "options"];

/// Rows of `lru` at two sizes, with these misses of 100 references in each block.
fn blocks(content: &str, options: &str, misses: &[u64]) -> Vec<Vec<millpond_lab::table::Value>> {
    let row = |size: u64, block: usize| {
        let counts = [100u64.into(), misses[block].into(), (block as u64).into()];
        let head = vec!["t".into(), "lru".into(), size.into()];
        [head, counts.to_vec(), vec![content.into(), options.into()]].concat()
    };
    [10, 20].into_iter().flat_map(|size| (0..misses.len()).map(move |at| row(size, at))).collect()
}

#[test]
fn blocks_of_two_runs_with_equal_numbers_stay_with_their_runs() {
    let root = tempfile::tempdir().unwrap();
    let one = lru_rows(root.path(), "one", &BLOCKS, blocks("c", "pool", &[10, 20]));
    let other = lru_rows(root.path(), "other", &BLOCKS, blocks("c", "pool", &[10, 30]));
    let page = render(&ReportData::read(&[one, other]).unwrap(), &ReportOptions::default());
    assert!(page.contains("lru, 10 frames: 0.1750"), "the mean of 15 and 20 of 100: {page}");
    assert!(
        page.contains("over the runs") && page.contains("blocks of a trace are taken together")
    );
}

#[test]
fn a_simulation_that_two_directories_have_is_one_run() {
    let root = tempfile::tempdir().unwrap();
    let dirs = ["one", "other"]
        .map(|name| lru_rows(root.path(), name, &BLOCKS, blocks("c", "p", &[9, 8])));
    let page = render(&ReportData::read(&dirs).unwrap(), &ReportOptions::default());
    assert!(page.contains("Each point is one run, and there are no bands."), "{page}");
}

#[test]
fn two_contents_under_one_name_are_two_traces_in_a_report() {
    let root = tempfile::tempdir().unwrap();
    let one = lru_rows(root.path(), "one", &BLOCKS, blocks("aaaaaaaaaa", "pool", &[10, 20]));
    let other = lru_rows(root.path(), "other", &BLOCKS, blocks("bbbbbbbbbb", "pool", &[50, 50]));
    let page = render(&ReportData::read(&[one, other]).unwrap(), &ReportOptions::default());
    for part in ["t (content aaaaaaaa)", "t (content bbbbbbbb)", "0.1500", "0.5000"] {
        assert!(page.contains(part), "no {part}: {page}");
    }
    assert!(!page.contains("0.3250"), "no mean of two traces");
}

#[test]
fn a_policy_that_others_are_relative_to_may_have_several_options() {
    let root = tempfile::tempdir().unwrap();
    let columns = ["trace", "policy", "size", "references", "misses", "options"];
    let row = |policy: &str, options: &str, misses: u64| {
        let counts = [1000u64.into(), misses.into(), options.into()];
        [vec!["t".into(), policy.into(), 10u64.into()], counts.to_vec()].concat()
    };
    let rows = vec![
        row("tide", "pool", 100),
        row("lru", "pool", 150),
        row("tide", "pool warmup=10%", 50),
        row("lru", "pool warmup=10%", 90),
    ];
    let data = ReportData::read(&[lru_rows(root.path(), "sim", &columns, rows)]).unwrap();
    let label = data.reference("tide, pool warmup=10%").unwrap();
    for options in [
        ReportOptions::default(),
        ReportOptions { relative_to: Some("tide".into()), ..Default::default() },
        ReportOptions { relative_to: Some(label), ..Default::default() },
    ] {
        let page = render(&data, &options);
        assert!(page.contains("Misses relative to tide"), "{page}");
        assert!(page.contains(">1.50</td>") && page.contains(">1.80</td>"), "{page}");
        assert!(page.contains("relative to the one with its own options"), "{page}");
    }
}

#[test]
fn a_line_without_one_to_compare_it_with_is_named() {
    let root = tempfile::tempdir().unwrap();
    let columns = ["trace", "policy", "size", "references", "misses", "options"];
    let row = |policy: &str, options: &str, misses: u64| {
        let counts = [1000u64.into(), misses.into(), options.into()];
        [vec!["t".into(), policy.into(), 10u64.into()], counts.to_vec()].concat()
    };
    let rows =
        vec![row("tide", "pool", 100), row("arc", "pool", 150), row("lru", "pool warmup=10%", 90)];
    let data = ReportData::read(&[lru_rows(root.path(), "sim", &columns, rows)]).unwrap();
    let page = render(&data, &ReportOptions::default());
    assert!(page.contains(">1.50</td>"), "{page}");
    let says = "There is no tide with the options of &#39;lru, pool warmup=10%&#39; on t.";
    assert!(page.contains(says), "{page}");
}

#[test]
fn directories_with_different_seeds_are_no_several_runs() {
    let root = tempfile::tempdir().unwrap();
    let columns = ["trace", "policy", "size", "references", "misses", "seed"];
    let shard = |name: &str, seeds: [u64; 2]| {
        let row = |size: u64, seed: u64| {
            let counts = [100u64.into(), (10 * seed).into(), seed.into()];
            [vec!["t".into(), "lru".into(), size.into()], counts.to_vec()].concat()
        };
        let sizes = |seed| [10u64, 20].map(|size| row(size, seed));
        lru_rows(root.path(), name, &columns, seeds.into_iter().flat_map(sizes).collect())
    };
    let dirs = [shard("one", [1, 2]), shard("other", [3, 4])];
    let page = render(&ReportData::read(&dirs).unwrap(), &ReportOptions::default());
    assert!(page.contains("intervals, over the seeds, where"), "{page}");
}
