//! Commands that can be run again.

use serde_json::Value as Json;

/// Returns words as a line for a shell; words with special characters are quoted.
///
/// ```
/// # use millpond_lab::results::shell_line;
/// assert_eq!(shell_line(["sim", "a b.txt", "watt(sample=4)"]), "sim 'a b.txt' 'watt(sample=4)'");
/// assert_eq!(shell_line(["it's"]), r"'it'\''s'");
/// ```
pub fn shell_line<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./,:=+%@".contains(c);
    let quoted = |word: &str| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.into_iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Returns the command that runs units again. The keys in the units' files name a trace, a policy,
/// sizes, seeds and settings.
pub(super) fn of_units(units: &[Json], folder: &str) -> Option<String> {
    let first = units.first()?;
    let mut words = vec!["millpond".to_string(), "sim".to_string()];
    let each = |name: &str| -> Vec<String> {
        let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_string);
        let mut all = Vec::new();
        for unit in units {
            let value = &unit[name];
            let one = std::slice::from_ref(value);
            let of_unit = value.as_array().map_or(one, Vec::as_slice);
            for value in of_unit.iter().map(text) {
                if !all.contains(&value) {
                    all.push(value);
                }
            }
        }
        all
    };
    words.extend(each("trace"));
    for policy in each("policy") {
        words.extend(["-p".to_string(), policy]);
    }
    words.extend(["-s".to_string(), each("sizes").join(",")]);
    words.extend(["--seed".to_string(), each("seeds").join(",")]);
    let settings = &first["settings"];
    for (flag, value, default) in [
        ("--trace-format", &first["format"], Json::Null),
        ("--columns", &first["columns"], Json::Null),
        ("--ops", &first["ops"], Json::Null),
        ("--page-size", &settings["page_size"], 4096.into()),
        ("--warmup", &settings["warmup"], "0".into()),
        ("--blocks", &settings["blocks"], 0.into()),
        ("--batch", &settings["batch"], 1.into()),
        ("--model", &settings["model"], "pool".into()),
        ("--charge-ghosts", &settings["charge_ghosts"], 0.into()),
    ] {
        if *value != default && !value.is_null() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
            words.extend([flag.to_string(), text]);
        }
    }
    for (flag, value) in [
        ("--expand-sizes", &first["expand_sizes"]),
        ("--map-ids", &first["map_ids"]),
        ("--scan-hints", &settings["scan_hints"]),
    ] {
        if *value == Json::Bool(true) {
            words.push(flag.to_string());
        }
    }
    words.extend(["--out-dir".to_string(), folder.to_string()]);
    Some(shell_line(words))
}
