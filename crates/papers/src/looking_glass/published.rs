//! Gilbert's numbers: table 2.1, CPU seconds by component on a machine with 12 cores and 24
//! hardware threads.

use millpond_profile::LATCHING;

/// His numbers for one workload.
pub(super) struct Column {
    /// Our name of the workload.
    pub workload: &'static str,
    /// Threads.
    pub threads: u32,
    /// CPU seconds of [`COMPONENTS`], in their order.
    pub seconds: [f64; 9],
}

/// His components, by our names.
pub(super) const COMPONENTS: [&str; 9] = [
    "logging",
    "locking",
    "locking, latching",
    "B-tree",
    "pool",
    "pool, latching",
    "pool: page table",
    "pool: free frames",
    "pool: fetching",
];

/// Table 2.1.
pub(super) const TABLE: [Column; 6] = [
    Column {
        workload: "ycsb-read",
        threads: 1,
        seconds: [5.236, 166.703, 12.374, 219.454, 42.984, 27.562, 23.053, 0.668, 21.517],
    },
    Column {
        workload: "ycsb-update",
        threads: 1,
        seconds: [166.306, 130.689, 17.269, 257.482, 41.989, 35.204, 23.582, 0.5, 7.948],
    },
    Column {
        workload: "tpcc",
        threads: 1,
        seconds: [244.855, 26.257, 2.08, 187.497, 50.993, 35.584, 26.319, 0.276, 2.829],
    },
    Column {
        workload: "ycsb-read",
        threads: 24,
        seconds: [17.566, 1367.299, 2470.092, 829.531, 114.462, 90.462, 53.211, 3.137, 0.054],
    },
    Column {
        workload: "ycsb-update",
        threads: 24,
        seconds: [1119.645, 413.172, 1619.046, 627.305, 94.723, 98.321, 44.874, 1.86, 1.052],
    },
    Column {
        workload: "tpcc",
        threads: 24,
        seconds: [316.533, 142.108, 28.26, 2437.772, 322.127, 336.345, 150.108, 8.223, 1.769],
    },
];

/// Returns his component that one of ours counts towards. Returns `None` for the driver, which is
/// part of the client, and for components without a counterpart.
pub(super) fn of_ours(component: &str) -> Option<&'static str> {
    let (name, latching) = match component.strip_suffix(LATCHING) {
        Some(name) => (name, true),
        None => (component, false),
    };
    Some(match (name, latching) {
        // His "locking" includes transaction management.
        ("locking" | "transactions", false) => "locking",
        ("locking" | "transactions", true) => "locking, latching",
        ("logging" | "I/O", _) => "logging",
        ("B-tree", _) => "B-tree",
        ("pool: page table", _) => "pool: page table",
        ("pool: free frames", _) => "pool: free frames",
        ("pool: fetching", _) => "pool: fetching",
        (name, true) if name.starts_with("pool") => "pool, latching",
        (name, false) if name.starts_with("pool") => "pool",
        _ => return None,
    })
}

impl Column {
    /// Returns a component's share of the sum, 0 to 1.
    pub fn share(&self, component: &str) -> f64 {
        let sum: f64 = self.seconds.iter().sum();
        let at = COMPONENTS.iter().position(|name| *name == component);
        at.map_or(0.0, |at| self.seconds[at] / sum)
    }

    /// Returns the column of a workload with one thread, or with all of his threads.
    pub fn of(workload: &str, is_single: bool) -> Option<&'static Column> {
        TABLE.iter().find(|c| c.workload == workload && (c.threads == 1) == is_single)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the shares stated in his text with the seconds in his table.
    #[test]
    fn the_shares_of_his_text_are_those_of_his_table() {
        let share = |workload, is_single, components: &[&str]| {
            let column = Column::of(workload, is_single).unwrap();
            components.iter().map(|c| column.share(c)).sum::<f64>() * 100.0
        };
        let locks = ["locking", "locking, latching"];
        let pool: Vec<&str> =
            COMPONENTS.iter().copied().filter(|name| name.starts_with("pool")).collect();
        let stated = [
            (share("ycsb-read", true, &["logging"]), 1.01),
            (share("ycsb-read", true, &locks), 34.47),
            (share("ycsb-read", true, &["pool: fetching"]), 4.14),
            (share("ycsb-update", true, &["logging"]), 24.42),
            (share("ycsb-update", true, &locks), 21.73),
            (share("tpcc", true, &["logging"]), 42.46),
            (share("tpcc", true, &locks), 4.91),
            (share("tpcc", true, &["B-tree"]), 32.51),
            (share("tpcc", true, &pool), 20.11),
            (share("tpcc", false, &["logging"]), 8.45),
        ];
        for (at, (ours, his)) in stated.iter().enumerate() {
            assert!((ours - his).abs() < 0.02, "number {at}: {ours} is not {his}");
        }
    }

    #[test]
    fn every_component_of_the_list_that_ships_is_his_or_left_out_on_purpose() {
        let left_out = [
            "hash index and heap",
            "statistics",
            "store",
            "twin",
            "profiler",
            "server",
            "bindings",
            "object store",
        ];
        let left_out = [&left_out[..], &["workload driver", "useful work"]].concat();
        let all = millpond_profile::Components::shipped().unwrap();
        for name in all.all.iter().map(|component| component.name.as_str()) {
            let is_his = of_ours(name).is_some_and(|his| COMPONENTS.contains(&his));
            assert!(is_his != left_out.contains(&name), "{name}");
        }
        // A part of a component is also a part in his list.
        for whole in ["logging", "locking"] {
            assert!(all.parts(whole).all(|part| of_ours(part) == Some(whole)), "{whole}");
        }
    }
}
