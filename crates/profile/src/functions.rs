//! The functions of each component that took most of its time.

use std::collections::HashMap;

use serde::Serialize;

use crate::components::Components;
use crate::profile::Profile;

/// A function of a component, including calls into code of no component.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HotFunction {
    /// Name of the component. Its latching is a separate component, with the functions that
    /// latched.
    pub component: String,
    /// Name of the function without its type arguments; it may have been inlined into
    /// another.
    pub function: String,
    /// Source file, relative to the repository.
    pub file: String,
    /// Samples.
    pub samples: u64,
}

impl Profile {
    /// Returns the functions of each component that samples were charged to, largest first.
    pub fn functions(&self, components: &Components) -> Vec<HotFunction> {
        let mut counts: HashMap<(String, &str, &str), u64> = HashMap::new();
        for stack in &self.stacks {
            let (charge, frame) = components.charge_with_frame(stack);
            let Some(frame) = frame else { continue };
            let place = (components.name_of(charge), short(&frame.function), file_of(&frame.file));
            *counts.entry(place).or_default() += stack.user + stack.kernel;
        }
        let named = |((component, function, file), samples): ((String, &str, &str), u64)| {
            let (function, file) = (function.to_string(), file.to_string());
            HotFunction { component, function, file, samples }
        };
        let mut all: Vec<HotFunction> = counts.into_iter().map(named).collect();
        all.sort_by(|a, b| {
            let names =
                |it: &HotFunction| (it.component.clone(), it.file.clone(), it.function.clone());
            b.samples.cmp(&a.samples).then_with(|| names(a).cmp(&names(b)))
        });
        all
    }
}

/// Returns a function's name without its type arguments.
fn short(name: &str) -> &str {
    match name.find('<') {
        None | Some(0) => name,
        Some(at) => &name[..at],
    }
}

/// Returns the end of a path, relative to a repository.
fn file_of(path: &str) -> &str {
    path.rfind("/src/").map_or(path, |at| &path[at + "/src/".len()..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Frame, Stack};
    use std::sync::Arc;

    #[test]
    fn the_function_that_is_charged_is_that_of_the_component_and_not_what_it_called() {
        let frame = |function: &str, file: &str| {
            let (function, file) = (function.to_string(), file.to_string());
            Arc::new(Frame { function, file, ..Frame::default() })
        };
        let seek = frame("seek", "/src/crates/engine/src/btree/node/search.rs");
        let compare = frame("compare", "/rustc/abc/library/core/src/cmp.rs");
        let lock = frame("lock<u8>", "crates/engine/src/lock/table.rs");
        let spin = frame("try_take", "crates/engine/src/lock/spinlock.rs");
        let stack = |frames: &[&Arc<Frame>], user| Stack {
            frames: frames.iter().map(|frame| Arc::clone(frame)).collect(),
            user,
            ..Stack::default()
        };
        let profile = Profile {
            stacks: vec![
                stack(&[&compare, &seek], 5),
                stack(&[&seek], 2),
                stack(&[&spin, &lock, &seek], 4),
                stack(&[&lock, &seek], 1),
            ],
            ..Profile::default()
        };
        let functions = profile.functions(&Components::shipped().unwrap());
        let told =
            functions.iter().map(|it| (&*it.component, &*it.function, &*it.file, it.samples));
        let expected = [
            ("B-tree", "seek", "btree/node/search.rs", 7),
            ("locking, latching", "lock", "lock/table.rs", 4),
            ("locking", "lock", "lock/table.rs", 1),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        assert!(Profile::default().functions(&Components::shipped().unwrap()).is_empty());
    }
}
