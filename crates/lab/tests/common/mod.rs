//! Helpers of the laboratory's integration tests: real traces, and results of other simulators.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::collections::HashMap;
use std::io::Read;
use std::path::PathBuf;

use millpond_base::Mark;
use millpond_lab::sim::Renumber;
use millpond_workload::trace::Batch;

/// The folder of traces and goldens beside the repository, if it is there.
pub fn shared() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    path.is_dir().then_some(path)
}

/// A trace of the shared folder by its name in the goldens, renumbered; and its distinct pages.
pub fn load(name: &str) -> Option<(Batch, u64)> {
    let folder = shared()?;
    let plain = folder.join(format!("{name}.txt.gz"));
    let extents = folder.join(format!("{name}.extents.txt.gz"));
    let (path, is_extents) = if plain.exists() { (plain, false) } else { (extents, true) };
    let mut text = String::new();
    let file = std::fs::File::open(path).ok()?;
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).ok()?;
    let mut batch = Batch::default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let page: u64 = words.next()?.parse().ok()?;
        match words.next() {
            Some(count) if is_extents => {
                (page..page + count.parse::<u64>().ok()?).for_each(|p| batch.push(p, Mark::READ));
            }
            Some("W") => batch.push(page, Mark::WRITE),
            _ => batch.push(page, Mark::READ),
        }
    }
    let mut renumber = Renumber::new();
    renumber.apply(&mut batch);
    let distinct = renumber.distinct();
    Some((batch, distinct))
}

/// One cell of a golden table: oracle, its name of the policy, its parameters, trace, size, and
/// the numbers after the size by their column's name.
pub struct Golden {
    pub oracle: String,
    pub name: String,
    pub params: String,
    pub trace: String,
    pub size: u32,
    pub numbers: HashMap<String, u64>,
}

/// The rows of `golden.csv` or `golden_writes.csv`.
pub fn goldens(file: &str) -> Option<Vec<Golden>> {
    let text = std::fs::read_to_string(shared()?.join(file)).ok()?;
    let mut lines = text.lines().map(fields);
    let header = lines.next()?;
    let rows = lines.map(|row| Golden {
        oracle: row[0].clone(),
        name: row[1].clone(),
        params: row[2].clone(),
        trace: row[3].clone(),
        size: row[4].parse().unwrap(),
        numbers: header
            .iter()
            .cloned()
            .zip(&row)
            .skip(5)
            .map(|(h, v)| (h, v.parse().unwrap()))
            .collect(),
    });
    Some(rows.collect())
}

/// The fields of one CSV line, quotes removed.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}
