//! Pages in a browser: nothing is wider than the window, every plot is there, and the browser has
//! nothing to complain of, on a desktop and on a phone. Without Chromium it is left out.

use std::fs;
use std::process::Command;

#[path = "pages/browser.rs"]
mod browser;

use browser::{browser, check};

#[test]
fn comparisons_and_reports_are_whole_on_a_desktop_and_on_a_phone() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let millpond = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        let output = command.args(args).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let trace = |seed: u32| format!("t{seed}.parquet");
    for seed in 1..=5 {
        let name = ["gen", "zipf-ro", "pages=500", "refs=5k"].map(String::from);
        let rest = ["--seed".to_string(), seed.to_string(), "-o".to_string(), trace(seed)];
        let args: Vec<String> = ["trace".to_string()].into_iter().chain(name).chain(rest).collect();
        millpond(&args.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let traces: Vec<String> = (1..=5).map(trace).collect();
    let mut args: Vec<&str> = vec!["sim", "-q", "-p", "lru,fifo,lfu,watt(sample=16)"];
    args.extend(["-s", "5%,10%,20%"]);
    args.extend(traces.iter().map(String::as_str));
    millpond(&args);
    let results = fs::read_dir(folder.path().join("results")).unwrap().next().unwrap().unwrap();
    let results = results.path().display().to_string();
    millpond(&["compare", &results, "--plot", "compared.html"]);
    millpond(&["report", &results, "--compare", "-o", "report.html"]);
    for page in ["compared.html", "report.html"] {
        check(browser, &folder.path().join(page), folder.path());
    }
}
