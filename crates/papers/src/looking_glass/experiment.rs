//! The experiment's figures, for one scale.

use crate::experiment::{Experiment, Scale};

use super::counted::Counter;
use super::course::Course;
use super::{removal, sampled, sections, steps, swizzling, throughput};
use crate::live::Loaded;

/// Returns the experiment for one scale; `counter` counts instructions of steps, if there
/// is one.
pub fn experiment(scale: Scale, counter: Option<Counter>) -> Experiment {
    let (course, loaded) = (Course { scale }, Loaded::default());
    Experiment {
        paper: "gilbert-2",
        title: "The looking glass (Gilbert, 2020, chapter 2), repeated".to_string(),
        note: format!(
            "Look-ups and updates in Gilbert's shape, and TPC-C with Payment in Delivery's place, \
             with an asynchronous log and two-phase locks, everything in memory but for figure \
             2.21. Runs with many threads have {}. His: five minutes after five to warm up, 10 M \
             rows and 100 warehouses, 12 cores with two hardware threads each, Foster B-trees on a page table \
             with latched pages and RANDOM.",
            course.threads()
        ),
        scale,
        figures: vec![
            steps::figure(course, &loaded, counter.clone()),
            throughput::figure(course, &loaded),
            sampled::figure(course, &loaded),
            removal::figure(course, &loaded, counter),
            swizzling::figure(course, &loaded),
            sections::figure(course, &loaded),
        ],
    }
}
