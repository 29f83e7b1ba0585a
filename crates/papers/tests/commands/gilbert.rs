//! `millpond-papers gilbert`.

use super::support::{assert_keeps_to_its_time, labels, number, paper, text, whole_run};

#[test]
fn the_whole_experiment_runs_in_small_and_leaves_rows_and_a_page() {
    let out = tempfile::tempdir().unwrap();
    let figures = ["1.29", "1.10", "1.12", "1.16", "1.18", "1.20", "1.22", "1.25", "1.27", "2.21"];
    let (table, page) = whole_run("gilbert", out.path(), &figures);
    for figure in figures {
        assert!(labels(&table, figure, "policy").len() >= 2, "figure {figure} compares");
    }
    assert_eq!(
        labels(&table, "1.29", "policy"),
        [
            "lean-evict",
            "lru",
            "lru, unaided",
            "mru",
            "random",
            "random, unaided",
            "sorting-lru",
            "stated-mru",
            "watt"
        ]
    );
    assert_eq!(labels(&table, "1.29", "percent"), ["20", "200", "5"]);
    assert_eq!(labels(&table, "2.21", "translation"), ["hashed", "swizzled"]);
    assert_eq!(
        labels(&table, "1.12", "policy")[1..],
        ["zclock(variant=fix)".to_string(), "zclock(variant=unfix)".to_string()]
    );
    for row in 0..table.rows.len() {
        let number = |name| number(&table, row, name);
        if table.get(row, "end") == Some(&"starved".into()) {
            assert_eq!(table.get(row, "policy"), Some(&"stated-mru".into()));
            continue;
        }
        assert_eq!(table.get(row, "end"), Some(&"ran".into()));
        assert_eq!(number("transactions"), 200.0);
        let share = number("percent") / 100.0;
        let frames = (share * number("data_pages")).floor().max(8.0);
        assert_eq!(number("pool_frames"), frames, "the pool is that share of the data");
        let (misses, references) = (number("misses_per_tx"), number("references_per_tx"));
        let what = format!("row {row}: {misses} misses, {references} references");
        assert!((number("miss_ratio") - (misses / references).min(1.0)).abs() < 1e-9, "{what}");
        // Nothing holds the pages of an operation that MRU as stated sends away again and again:
        // until it starves, it may miss more often than it has references that count. Nor does
        // the page table keep the upper pages of an operation, of which another thread may need
        // the frames while this one does not run.
        let is_held = table.get(row, "policy") != Some(&"stated-mru".into())
            && table.get(row, "translation") != Some(&"hashed".into());
        assert!(misses > 0.0 && (misses < references || !is_held), "{what}");
    }
    assert_eq!(labels(&table, "1.29", "end"), ["ran", "starved"]);
    assert!(page.contains("stated-mru (stalled at 5"));
    assert!(page.contains("Stalled means") && page.contains("transactions per second"));
}

#[test]
fn what_is_too_much_for_the_machine_is_refused_and_the_grid_in_miniature_keeps_to_its_time() {
    let out = tempfile::tempdir().unwrap();
    let results = out.path().join("results");
    let output = paper("gilbert", &results, &["--scale", "paper", "--minutes", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("`millpond-papers gilbert --scale paper` is refused: it "), "{said}");
    let output = paper("gilbert", &results, &["--plan"]);
    let plan = text(&output.stdout);
    assert!(output.status.success() && plan.contains("1.29") && plan.contains("2.21"), "{plan}");
    assert_keeps_to_its_time(&plan);
    assert!(!results.exists(), "nothing was made");
}
