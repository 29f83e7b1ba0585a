//! `millpond-papers leanstore-hits`, with little data.

use std::process::Command;

use serde_json::Value as Json;

fn leanstore_hits(more: &[&str]) -> Json {
    let output = Command::new(env!("CARGO_BIN_EXE_millpond-papers"))
        .args(["leanstore-hits", "--divisor", "1000", "--page-size", "4096", "--json"])
        .args(more)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The policy, how it was measured, and its hits in per cent: of all pages, and of leaves.
fn figures(object: &Json) -> Vec<(String, String, f64, f64)> {
    let text = |row: &Json, name: &str| row[name].as_str().unwrap().to_string();
    let row = |row: &Json| {
        let percent = |name: &str| row[name].as_f64().unwrap();
        let (all, leaves) = (percent("hits_percent"), percent("leaf_hits_percent"));
        (text(row, "policy"), text(row, "how"), all, leaves)
    };
    object["rows"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn the_table_of_hit_rates_has_the_live_pool_and_every_policy_and_opt_is_best() {
    for keys in ["scattered", "adjacent"] {
        let object = leanstore_hits(&["--keys", keys, "--lookups", "20000"]);
        assert_eq!(object["command"], "paper leanstore-hits");
        assert_eq!(object["params"]["rows"], 41_000);
        let rows = figures(&object);
        assert_eq!(rows.len(), 10);
        assert_eq!(rows[0].1, "live pool");
        let of = |policy: &str| rows[1..].iter().find(|row| row.0 == policy).unwrap();
        for (policy, how, all, leaves) in &rows[1..] {
            assert_eq!(how, "simulated");
            assert!(50.0 < *all && *all < 100.0 && leaves < all, "{policy}: {all} {leaves}");
            assert!(*all <= of("opt").2, "{policy}");
        }
        // One run, two worlds: the pool keeps inner pages, the simulator may evict them.
        let simulated = of(&rows[0].0);
        assert!((rows[0].2 - simulated.2).abs() < 3.0, "{keys}: {:?} {simulated:?}", rows[0]);
    }
}
