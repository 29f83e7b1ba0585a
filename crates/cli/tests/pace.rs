//! `millpond bench pace` as a user meets it: small.

use std::process::Command;

use serde_json::Value as Json;

#[test]
fn commits_beside_writes_come_with_ratios_a_time_series_and_a_plot() {
    let folder = tempfile::tempdir().unwrap();
    let small = ["--rows", "5000", "--memory", "16MiB", "--log-gap", "128KiB", "--rounds", "2"];
    let output = Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["bench", "pace", "--quiet", "--json", "--plot", "pace.html", "--seconds", "0.3"])
        .args(["--slice", "20"])
        .args(small)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let object: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["params"]["log_gap"], 128 << 10);
    let rows = object["rows"].as_array().unwrap();
    let [quiet, busy, slices @ ..] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&quiet["step"], &busy["step"]), (&"quiet".into(), &"busy".into()));
    assert_eq!(quiet["pages_per_commit"], 0.0);
    let number = |column: &str| busy[column].as_f64().unwrap();
    assert!(number("rate_ratio_low") <= number("rate_ratio"));
    assert!(number("rate_ratio") <= number("rate_ratio_high"));
    assert!(number("p99_ratio") > 0.0 && number("slow_slice") > 0.0);
    let of = |name: &str| slices.iter().filter(|slice| slice["step"] == name).count();
    assert!(of("quiet") > 1 && of("busy") > 1 && of("quiet") + of("busy") == slices.len());
    assert!(slices.iter().all(|slice| slice["second"].is_number()));
    let plot = std::fs::read_to_string(folder.path().join("pace.html")).unwrap();
    assert!(plot.contains("durable commits per second"), "{plot}");
    let left: Vec<_> = folder.path().read_dir().unwrap().collect();
    assert_eq!(left.len(), 1, "stores are removed");
}

#[test]
fn a_gap_that_is_a_share_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["bench", "pace", "--log-gap", "10%"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("Say bytes"), "{text}");
}
