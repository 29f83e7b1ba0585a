//! CPU time by component, with the confidence that the number of samples allows (gilbert
//! 2.1.2, table 2.1).

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use crate::components::{Charge, Components};
use crate::profile::Profile;

/// Samples of one component.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Share {
    /// Name of the component; its latching is a separate component.
    pub component: String,
    /// Number of samples.
    pub samples: u64,
    /// Number of these samples in the kernel.
    pub kernel_samples: u64,
    /// CPU time in seconds.
    pub cpu_s: f64,
    /// Share of all samples, 0 to 1.
    pub share: f64,
    /// Lower bound of the share's 95 % confidence interval (Wilson's).
    pub share_low: f64,
    /// Upper bound of the share's 95 % confidence interval.
    pub share_high: f64,
}

/// CPU time by component.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Breakdown {
    /// Components with samples, largest share first.
    pub shares: Vec<Share>,
    /// Number of all samples.
    pub samples: u64,
    /// CPU time of all samples in seconds.
    pub cpu_s: f64,
    /// CPU time of the process in seconds by the system's own account, without the profiler's.
    pub cpu_counted_s: f64,
    /// Part of `cpu_counted_s` spent in the kernel.
    pub kernel_counted_s: f64,
    /// Share of the samples that could not be assigned, 0 to 1.
    pub unassigned: f64,
    /// Number of samples that the system could not deliver.
    pub lost: u64,
    /// CPU time of the profiler's own thread in seconds.
    pub profiler_s: f64,
    /// Wall-clock seconds of the sampling.
    pub wall_s: f64,
    /// `true` if the samples include time in the kernel.
    pub has_kernel: bool,
    /// `true` if line tables were found; they determine the components.
    pub has_lines: bool,
}

impl Profile {
    /// Charges each sample to a component.
    pub fn breakdown(&self, components: &Components) -> Breakdown {
        Breakdown::of(self, components)
    }
}

/// Returns Wilson's 95 % confidence interval of the share `hits` of `all`.
fn interval(hits: u64, all: u64) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let (n, z) = (all as f64, 1.959_964);
    let p = hits as f64 / n;
    let middle = p + z * z / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
}

impl Breakdown {
    fn of(profile: &Profile, components: &Components) -> Breakdown {
        let mut charged: HashMap<Charge, (u64, u64)> = HashMap::new();
        for stack in &profile.stacks {
            let (user, kernel) = charged.entry(components.charge(stack)).or_default();
            *user += stack.user;
            *kernel += stack.kernel;
        }
        let samples = profile.samples();
        let period = profile.period.as_secs_f64();
        let unassigned = charged.remove(&Charge::Unknown).map_or(0, |(user, kernel)| user + kernel);
        let mut shares: Vec<Share> = charged
            .iter()
            .map(|(charge, (user, kernel))| {
                let (share_low, share_high) = interval(user + kernel, samples);
                Share {
                    component: components.name_of(*charge),
                    samples: user + kernel,
                    kernel_samples: *kernel,
                    cpu_s: (user + kernel) as f64 * period,
                    share: (user + kernel) as f64 / samples.max(1) as f64,
                    share_low,
                    share_high,
                }
            })
            .collect();
        shares
            .sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.component.cmp(&b.component)));
        let (user, kernel) = profile.cpu;
        Breakdown {
            shares,
            samples,
            cpu_s: profile.cpu_seconds(),
            cpu_counted_s: (user + kernel).saturating_sub(profile.own).as_secs_f64(),
            kernel_counted_s: kernel.as_secs_f64(),
            unassigned: unassigned as f64 / samples.max(1) as f64,
            lost: profile.lost,
            profiler_s: profile.own.as_secs_f64(),
            wall_s: profile.wall.as_secs_f64(),
            has_kernel: profile.has_kernel,
            has_lines: profile
                .stacks
                .iter()
                .any(|stack| stack.frames.iter().any(|frame| !frame.file.is_empty())),
        }
    }

    /// Returns the component's share without its latching; `None` if it has none.
    pub fn share(&self, component: &str) -> Option<&Share> {
        self.shares.iter().find(|share| share.component == component)
    }

    /// Returns the share of all samples, 0 to 1, that counts towards a component: its own
    /// share, the shares of its parts, and their latching.
    pub fn whole_share(&self, components: &Components, whole: &str) -> f64 {
        let counts = |share: &&Share| components.counts_towards(&share.component, whole);
        self.shares.iter().filter(counts).map(|share| share.share).sum()
    }

    /// Returns the limits of the shares' accuracy, each in a sentence.
    pub fn caveats(&self) -> Vec<String> {
        let mut all = Vec::new();
        if !self.has_lines && self.samples > 0 {
            let text = "the program has no line tables, so that no component is known: compile it \
                        with debug = \"line-tables-only\", and do not strip it";
            all.push(text.to_string());
        }
        if !self.has_kernel {
            all.push(format!(
                "time in the kernel is not sampled ({:.2} s): kernel.perf_event_paranoid is over 1",
                self.kernel_counted_s
            ));
        }
        all
    }
}

/// Width of the longest bar in characters.
const BAR: usize = 40;

/// Formats a table with bars for people.
impl fmt::Display for Breakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.shares.iter().map(|share| share.component.chars().count()).max();
        let width = width.unwrap_or(0).max("component".len());
        writeln!(f, "{:width$}   CPU s   share       95 %     kernel", "component")?;
        let most = self.shares.first().map_or(1.0, |share| share.share).max(f64::MIN_POSITIVE);
        for share in &self.shares {
            let kernel = share.kernel_samples as f64 / self.samples.max(1) as f64;
            let bar = (share.share / most * BAR as f64).round() as usize;
            writeln!(
                f,
                "{:width$}  {:6.2}  {:5.1} %  {:4.1}–{:<4.1}  {:5.1} %  {}",
                share.component,
                share.cpu_s,
                share.share * 100.0,
                share.share_low * 100.0,
                share.share_high * 100.0,
                kernel * 100.0,
                "█".repeat(bar),
            )?;
        }
        writeln!(
            f,
            "{} samples, {:.2} s of CPU time in {:.2} s ({:.2} s by the system's account); \
             {:.2} % not assigned, {} lost; the profiler took {:.2} s",
            self.samples,
            self.cpu_s,
            self.wall_s,
            self.cpu_counted_s,
            self.unassigned * 100.0,
            self.lost,
            self.profiler_s,
        )?;
        self.caveats().iter().try_for_each(|caveat| writeln!(f, "{caveat}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Frame, Stack};
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn intervals_hold_the_share_and_shrink_with_samples() {
        let (low, high) = interval(50, 100);
        assert!(low > 0.40 && low < 0.41 && high > 0.59 && high < 0.60, "{low} {high}");
        let (low, high) = interval(0, 1000);
        assert!(low < 1e-9 && high > 0.003 && high < 0.004, "{low} {high}");
        assert_eq!(interval(0, 0), (0.0, 1.0));
        let (few, many) = (interval(10, 100), interval(1000, 10_000));
        assert!(many.1 - many.0 < (few.1 - few.0) / 5.0);
    }

    #[test]
    fn samples_are_summed_by_component_and_the_unknown_are_apart() {
        let stack = |file: &str, function: &str, user, kernel| {
            let frame = Frame {
                file: file.to_string(),
                function: function.to_string(),
                ..Frame::default()
            };
            Stack { frames: vec![Arc::new(frame)], user, kernel, is_cut: false }
        };
        let profile = Profile {
            stacks: vec![
                stack("crates/engine/src/btree/a.rs", "a", 50, 0),
                stack("crates/engine/src/btree/b.rs", "b", 10, 10),
                stack("crates/engine/src/log/ring.rs", "c", 10, 10),
                stack("", "0x12", 10, 0),
            ],
            period: Duration::from_millis(1),
            has_kernel: true,
            ..Profile::default()
        };
        let breakdown = profile.breakdown(&Components::shipped().unwrap());
        assert_eq!((breakdown.samples, breakdown.unassigned), (100, 0.1));
        let tree = breakdown.share("B-tree").unwrap();
        assert_eq!((tree.samples, tree.kernel_samples, tree.share), (70, 10, 0.7));
        assert!((tree.cpu_s - 0.07).abs() < 1e-12 && tree.share_low < 0.7 && tree.share_high > 0.7);
        assert_eq!(breakdown.share("logging").unwrap().samples, 20);
        assert_eq!(breakdown.share("locking"), None);
        let components = Components::shipped().unwrap();
        assert_eq!(breakdown.whole_share(&components, "logging"), 0.2);
        assert_eq!(breakdown.whole_share(&components, "locking"), 0.0);
        let text = breakdown.to_string();
        assert!(text.contains("B-tree") && text.contains("10.00 % not assigned"), "{text}");
        assert!(breakdown.has_lines && !text.contains("no line tables"), "{text}");
        let stripped = Profile { stacks: vec![stack("", "0x1", 5, 0)], ..Profile::default() };
        let text = stripped.breakdown(&Components::default()).to_string();
        assert!(text.contains("the program has no line tables"), "{text}");
        assert!(Profile::default().breakdown(&Components::default()).shares.is_empty());
    }
}
