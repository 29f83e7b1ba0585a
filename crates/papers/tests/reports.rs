//! The rows in `docs/reports`: the command on a folder's page makes its HTML page from them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use millpond_lab::results::ResultDir;
use millpond_lab::table::{Table, Value};

#[path = "../../cli/tests/pages/browser.rs"]
mod browser;

/// A folder of `docs/reports`, copied, with the page that its command made.
struct Report {
    name: String,
    readme: String,
    rows: Table,
    run: serde_json::Value,
    page: PathBuf,
    html: String,
    /// Numbers of claims that hold, that do not, and that are open.
    verdicts: [usize; 3],
}

/// The folders with rows.
fn folders() -> Vec<PathBuf> {
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reports");
    let entries = fs::read_dir(reports).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> =
        entries.filter(|folder| folder.join("rows.parquet").is_file()).collect();
    folders.sort();
    folders
}

/// Runs the command that the folder's page names, in a copy.
fn made(folder: &Path, root: &Path) -> Report {
    let name = folder.file_name().unwrap().to_str().unwrap().to_string();
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    let copy = root.join(format!("docs/reports/{name}"));
    fs::create_dir_all(&copy).unwrap();
    for file in ["rows.parquet", "run.json"] {
        fs::copy(folder.join(file), copy.join(file)).unwrap();
    }
    let mut commands = readme.lines().filter_map(|line| line.strip_prefix("millpond-papers "));
    let command = commands.next().unwrap_or_else(|| panic!("{name} names no command"));
    let output = Command::new(env!("CARGO_BIN_EXE_millpond-papers"))
        .args(command.split_whitespace())
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    let page = copy.join("report.html");
    let html = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{command}: {error}"));
    let verdicts = ["yes", "no", "open"].map(|v| html.matches(&format!("<td>{v}</td>")).count());
    let dir = ResultDir::open(&copy).unwrap();
    let (rows, run) = (dir.rows().unwrap(), dir.run().unwrap());
    Report { name, readme, rows, run, page, html, verdicts }
}

#[test]
fn every_page_can_be_made_of_its_rows_and_its_verdicts_are_those_in_the_folder() {
    let root = tempfile::tempdir().unwrap();
    let folders = folders();
    assert!(folders.len() >= 17, "{folders:?}");
    for folder in folders {
        let Report { name, readme, rows, run, html, verdicts, .. } = made(&folder, root.path());
        assert_eq!(run["rows"], rows.rows.len(), "{name}");
        assert!(readme.contains(&format!("{} rows", rows.rows.len())), "{name}");
        assert!(html.contains(&format!("All {} cells were run.", run["params"]["cells"])));
        let [yes, no, open] = verdicts;
        let verdicts = format!("{yes} yes, {no} no, {open} open.");
        assert!(readme.contains(&verdicts), "{name}: the page has {verdicts}");
    }
}

#[test]
fn luans_page_shows_the_numbers_of_its_rows() {
    let root = tempfile::tempdir().unwrap();
    let folder = folders().into_iter().find(|folder| folder.ends_with("luan")).unwrap();
    let report = made(&folder, root.path());
    let title = "<title>Luan, Du, Feng and Wang (2008), repeated</title>";
    assert!(report.html.contains(title));
    assert_eq!(report.rows.rows.len(), 31_368);
    let rows = report.rows.only("figure", "1");
    let is_lru = |row: &usize| rows.get(*row, "policy") == Some(&"LRU".into());
    let pollution = |row: usize| rows.get(row, "pollution").and_then(Value::number).unwrap();
    let lru: Vec<f64> = (0..rows.rows.len()).filter(is_lru).map(pollution).collect();
    // Nothing is drawn for LRU: all repetitions, after all patterns, are equal.
    assert!(lru.len() >= 8 && lru.iter().all(|value| *value == lru[0]), "{lru:?}");
    let cell = format!("<td>LRU</td><td>0.8</td><td class=\"n\">{:.2}</td>", lru[0]);
    assert!(report.html.contains(&cell), "{cell}");
    assert!(cell.contains(">92.61<"), "{cell}");
}

#[test]
fn pages_made_of_rows_are_whole_on_a_desktop_and_on_a_phone() {
    let Some(browser) = browser::browser() else { return };
    let root = tempfile::tempdir().unwrap();
    let reports: Vec<Report> = folders().iter().map(|f| made(f, root.path())).collect();
    // The page of `listed` has tables only.
    let drawn: Vec<&Report> = reports.iter().filter(|r| r.html.contains("<svg viewBox")).collect();
    assert!(drawn.len() + 1 >= reports.len());
    drawn.iter().for_each(|report| browser::check(browser, &report.page, root.path()));
}
