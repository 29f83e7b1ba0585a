//! Gilbert's classification (thesis, 2020, table 1.2) beside that of our policies.

use millpond_lab::registry::Registry;
use millpond_policies::info::{Age, References};

use super::arena::Failure;
use super::markdown::{code, table};

/// His name of a policy, its columns and rows, and our policy.
const TABLE: [(&str, Age, References, &str); 18] = [
    ("RANDOM", Age::Ignored, References::Ignored, "random"),
    ("FIFO", Age::First, References::Ignored, "fifo"),
    ("FILO", Age::First, References::Ignored, "filo"),
    ("ZCLOCK", Age::Ignored, References::Last, "zclock"),
    ("LRU", Age::Last, References::Last, "lru"),
    ("MRU", Age::Last, References::Last, "mru"),
    ("CLOCK", Age::Last, References::Last, "clock"),
    ("GCLOCK-V2", Age::Last, References::Last, "gclock-v2"),
    ("DGCLOCK-V2", Age::Last, References::Last, "dgclock-v2"),
    ("LeanStore", Age::Last, References::Last, "lean-evict"),
    ("SLRU", Age::Last, References::Some, "slru"),
    ("LRU-K", Age::Some, References::Some, "lru-k"),
    ("LRD-V2", Age::Some, References::Some, "lrd-v2"),
    ("LFU", Age::Ignored, References::All, "lfu"),
    ("GCLOCK-V1", Age::Last, References::All, "gclock-v1"),
    ("DGCLOCK-V1", Age::Last, References::All, "dgclock-v1"),
    ("LRD-V1", Age::First, References::All, "lrd-v1"),
    ("LFUDA", Age::First, References::All, "lfuda"),
];

/// Returns the comparison.
pub fn section(_is_quick: bool) -> Result<String, Failure> {
    let registry = Registry::builtin();
    let (mut rows, mut different) = (Vec::new(), 0);
    for (name, age, references, policy) in TABLE {
        let entry = registry.find(policy)?;
        let same = (entry.info.age, entry.info.references) == (age, references);
        different += u32::from(!same);
        rows.push(vec![
            name.to_string(),
            age.name().to_string(),
            references.name().to_string(),
            code(policy),
            entry.info.age.name().to_string(),
            entry.info.references.name().to_string(),
            if same { "same" } else { "**differs**" }.to_string(),
        ]);
    }
    let header = ["his name", "age", "references", "ours", "age", "references", ""];
    let mut text = String::from(
        "\n## The classification of Effelsberg and Härder (Gilbert 2020, table 1.2)\n\nAge: since \
         which reference time counts. References: which ones count. `millpond policies` prints \
         ours.\n\n",
    );
    text.push_str(&table(&header, &rows));
    text.push_str(&format!("\n{different} of {} rows differ.\n", rows.len()));
    Ok(text)
}
