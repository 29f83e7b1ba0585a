//! Prometheus' text format.

use std::fmt;

use crate::stats::counters::Timing;
use crate::store::stats::latency::Latency;

/// Metrics in Prometheus' text format, being written.
pub(super) struct Prometheus {
    text: String,
    /// `a="x",b="y"`, or nothing.
    labels: String,
}

impl Prometheus {
    pub(super) fn new(labels: &[(&str, &str)]) -> Prometheus {
        let escape =
            |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        Prometheus { text: String::new(), labels: labels.join(",") }
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        self.text.push_str(&format!("# HELP millpond_{name} {help}\n"));
        self.text.push_str(&format!("# TYPE millpond_{name} {kind}\n"));
    }

    /// Writes one sample; `more` is a label that only this one has.
    fn sample(&mut self, name: &str, more: &str, value: impl fmt::Display) {
        let comma = if self.labels.is_empty() || more.is_empty() { "" } else { "," };
        let labels = match (self.labels.as_str(), more) {
            ("", "") => String::new(),
            (all, more) => format!("{{{all}{comma}{more}}}"),
        };
        self.text.push_str(&format!("millpond_{name}{labels} {value}\n"));
    }

    pub(super) fn plain(&mut self, name: &str, help: &str, kind: &str, value: f64) {
        self.head(name, help, kind);
        self.sample(name, "", value);
    }

    pub(super) fn histogram(&mut self, timing: Timing, latency: &Latency) {
        let name = format!("{timing}_seconds");
        let help = match latency.sample_period {
            1 => timing.help().to_string(),
            0 => format!("{} (not timed)", timing.help()),
            period => format!("{} (a sample: one in {period})", timing.help()),
        };
        self.head(&name, &help, "histogram");
        let mut buckets = latency.buckets.iter().peekable();
        let mut below = 0u64;
        // 256 ns to 34 s. Buckets end at powers of two, so that each is wholly on one side.
        for exponent in 8..=35 {
            let bound = 1u64 << exponent;
            while let Some((_, count)) = buckets.next_if(|(low, _)| *low < bound) {
                below = below.saturating_add(*count);
            }
            let le = format!("le=\"{}\"", bound as f64 / 1e9);
            self.sample(&format!("{name}_bucket"), &le, below);
        }
        self.sample(&format!("{name}_bucket"), "le=\"+Inf\"", latency.count);
        self.sample(&format!("{name}_sum"), "", latency.sum_ns as f64 / 1e9);
        self.sample(&format!("{name}_count"), "", latency.count);
    }

    pub(super) fn end(self) -> String {
        self.text
    }
}
