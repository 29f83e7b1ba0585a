//! Parameter settings worth trying: the defaults, each parameter at each choice and at the ends
//! of its range, and random combinations.

use millpond_policies::config::{ParamError, ParamInfo, Spec};

use super::subject::Kind;

/// The settings of `kind`: the defaults first, then one parameter at a time, then `mixed`
/// combinations drawn by `seed`.
pub fn settings(kind: &Kind, mixed: usize, seed: u64) -> Vec<Spec> {
    let bare = Spec { id: kind.info.id.to_string(), params: Vec::new() };
    let mut specs = vec![bare.clone()];
    let values: Vec<(&ParamInfo, Vec<String>)> =
        kind.params.iter().map(|p| (p, values_of(kind, &bare, p))).collect();
    for (param, values) in &values {
        assert!(!values.is_empty(), "{}: no value of '{}' is valid", kind.info.id, param.name);
        specs.extend(values.iter().map(|v| with(&bare, param.name, v)));
    }
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..if kind.params.len() > 1 { mixed } else { 0 } {
        let mut spec = bare.clone();
        for (param, values) in &values {
            if random.bool() {
                spec = with(&spec, param.name, &values[random.usize(..values.len())]);
            }
        }
        if kind.check_spec(&spec).is_ok() {
            specs.push(spec);
        }
    }
    specs
}

fn with(spec: &Spec, name: &str, value: &str) -> Spec {
    let mut spec = spec.clone();
    spec.params.push((name.to_string(), value.to_string()));
    spec
}

fn values_of(kind: &Kind, bare: &Spec, param: &ParamInfo) -> Vec<String> {
    let words = |text: &str| text.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    let takes = param.takes.as_str();
    let mut candidates = match takes {
        _ if takes.starts_with("one of ") => words(&takes["one of ".len()..]),
        "true or false" => words("true false"),
        "a whole number" => words("0 1 2 3 5 64 1000 4294967295 18446744073709551615"),
        "a number" => words("0 0.001 0.5 1 2 1000000000 -1"),
        _ if takes.starts_with("a share") => words("0% 1% 10% 50% 99% 100%"),
        _ => words("0 1 2 10% 25% 50% 100% 2x 100 all"),
    };
    for word in candidates.clone() {
        if let Err(ParamError::Impossible { reason, .. }) =
            kind.check_spec(&with(bare, param.name, &word))
            && let Some((low, high)) =
                reason.strip_prefix("it must be between ").and_then(|r| r.split_once(" and "))
        {
            candidates.extend([low.to_string(), high.to_string()]);
        }
    }
    candidates.sort();
    candidates.dedup();
    candidates.retain(|v| kind.check_spec(&with(bare, param.name, v)).is_ok());
    candidates
}
