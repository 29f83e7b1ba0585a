//! The thirteen policies with the paper's parameters (luan 4), and their numbers in its tables.

/// A policy: its name in the paper, and ours with its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Named {
    /// Name of the policy in the paper, or the difference of a variant.
    pub name: &'static str,
    /// Policy with its parameters, such as `lrfu(lambda=1)`.
    pub by: String,
}

/// His policies, in the order of his tables 3 and 4: name, our policy with his parameters, his
/// score of table 5, the space of its control blocks in table 8, and the pages remembered beside
/// the pool, in pools (5.8).
pub(super) const THIRTEEN: [(&str, &str, f64, u64, f64); 13] = [
    ("GCLOCK", "gclock-v2(f=5,r=5,s=1,variant=fix)", 9.0, 12, 0.0),
    ("CLOCK", "clock", 2.5, 12, 0.0),
    ("LRU", "lru", 14.5, 560_008, 0.0),
    ("2Q-Simple", "2q-simple(kin=25%)", -5.5, 2_520_036, 0.0),
    ("2Q-Full", "2q(kin=25%,kout=50%)", 6.0, 3_780_048, 0.5),
    ("ARC", "arc", 5.5, 5_040_060, 1.0),
    ("CAR", "car", 2.0, 5_040_060, 1.0),
    ("CART", "cart", -7.0, 5_040_072, 1.0),
    ("LIRS", "lirs(hirs=1%,stack=1.5x)", -24.0, 5_040_052, 0.5),
    ("LRFU", "lrfu(lambda=0.005,correlated=25%)", 6.0, 3_920_040, 0.0),
    ("FBR", "fbr", 16.5, 3_360_080, 0.0),
    ("LRU-2", "lru-2-history(correlated=25%,history=50%)", -9.5, 6_300_052, 0.5),
    ("CLOCK-Pro", "clock-pro", -16.0, 5_600_040, 1.0),
];

/// All names.
pub(super) const NAMES: [&str; 13] = {
    let mut names = [""; 13];
    let mut at = 0;
    while at < 13 {
        names[at] = THIRTEEN[at].0;
        at += 1;
    }
    names
};

/// Returns his policies, with LRFU at this λ.
pub(super) fn thirteen(lambda: &str) -> Vec<Named> {
    let by = |name: &str, by: &str| match name {
        "LRFU" => format!("lrfu(lambda={lambda},correlated=25%)"),
        _ => by.to_string(),
    };
    THIRTEEN.iter().map(|(name, ours, ..)| Named { name, by: by(name, ours) }).collect()
}

/// Returns policies beside his, each named by its own id and parameters.
pub(super) fn variants(all: &[&'static str]) -> Vec<Named> {
    all.iter().map(|by| Named { name: by, by: (*by).to_string() }).collect()
}

/// Default λ of the paper (4.7).
pub(super) const LAMBDA: &str = "0.005";

#[cfg(test)]
mod tests {
    use millpond_policies::config::Spec;

    use super::*;
    use millpond_lab::registry::Registry;

    #[test]
    fn his_policies_are_there_with_his_parameters_and_remember_what_he_says() {
        let registry = Registry::builtin();
        assert_eq!(thirteen(LAMBDA).len(), 13);
        for (policy, (name, by, _, _, remembered)) in thirteen(LAMBDA).iter().zip(THIRTEEN) {
            assert_eq!((policy.name, policy.by.as_str()), (name, by));
            let spec = Spec::parse(by).unwrap();
            let entry = registry.find(&spec.id).unwrap();
            let ghosts = entry.ghosts_max(&spec, 70_000).unwrap() as f64 / 70_000.0;
            // Some bounds are wider than the usual content.
            assert!(ghosts + 0.011 > remembered, "{name}: {ghosts}");
            assert_eq!(ghosts > 0.0, remembered > 0.0, "{name}: {ghosts}");
        }
        let spec = Spec::parse(&thirteen("1")[9].by).unwrap();
        let values = registry.find("lrfu").unwrap().values(&spec).unwrap();
        assert_eq!(values[0], ("lambda", "1".to_string()));
    }
}
