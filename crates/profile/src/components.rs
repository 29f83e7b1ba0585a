//! Assignment of code to components.

use serde::Deserialize;

use crate::error::ProfileError;
use crate::profile::{Frame, Stack};

/// The list of this repository's components.
const SHIPPED: &str = include_str!("../components.toml");

/// A component: code to which costs are charged.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Component {
    /// Name of the component.
    pub name: String,
    /// Source folders and files, with `/` between their parts.
    pub paths: Vec<String>,
    /// Component that this one counts towards, where both are judged as one.
    #[serde(default)]
    pub part_of: Option<String>,
}

/// Suffix of a component's name for its latching.
pub const LATCHING: &str = ", latching";

/// All components, and the code that counts as latching of any component that calls it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct Components {
    /// The components.
    #[serde(rename = "components")]
    pub all: Vec<Component>,
    /// Folders and files whose code counts as latching of the component that calls it.
    #[serde(default)]
    pub latches: Vec<String>,
    /// Folders and files whose code is charged to its caller.
    #[serde(default)]
    pub transparent: Vec<String>,
}

/// Component that a sample is charged to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) enum Charge {
    /// A component, by its index in the list; `true` for its latching.
    Component(usize, bool),
    /// The program around the engine.
    Program,
    /// No frame of the sample is known.
    Unknown,
}

impl Components {
    /// Returns the components of the engine, the workloads and the tools.
    ///
    /// # Errors
    /// [`ProfileError::Components`].
    pub fn shipped() -> Result<Components, ProfileError> {
        Components::parse(SHIPPED)
    }

    /// Parses the table `[profile]` of a TOML file: `components` with `name` and `paths`, and
    /// optionally `latches` and `transparent`.
    ///
    /// # Errors
    /// [`ProfileError::Components`].
    pub fn parse(toml: &str) -> Result<Components, ProfileError> {
        #[derive(Deserialize)]
        struct File {
            profile: Components,
        }
        let file: Result<File, _> = toml::from_str(toml);
        file.map(|file| file.profile).map_err(|error| ProfileError::Components(error.to_string()))
    }

    /// Returns the component of a source file: the one with the longest path that contains the
    /// file. Paths are relative to a repository, wherever it is checked out.
    pub fn of_file(&self, file: &str) -> Option<&Component> {
        self.find(file).map(|at| &self.all[at])
    }

    /// Returns `true` if `component`, named as in a [`Share`](crate::Share), counts towards
    /// `whole`: it is `whole`, a part of it, or the latching of either.
    pub fn counts_towards(&self, component: &str, whole: &str) -> bool {
        let name = component.strip_suffix(LATCHING).unwrap_or(component);
        let is_part = |one: &Component| one.name == name && one.part_of.as_deref() == Some(whole);
        name == whole || self.all.iter().any(is_part)
    }

    /// Returns the components that count towards `whole`, itself included, in the order of the
    /// list.
    pub fn parts<'a>(&'a self, whole: &'a str) -> impl Iterator<Item = &'a str> {
        let names = self.all.iter().map(|component| component.name.as_str());
        names.filter(move |name| self.counts_towards(name, whole))
    }

    fn find(&self, file: &str) -> Option<usize> {
        let mut best: Option<(usize, usize)> = None;
        for (at, component) in self.all.iter().enumerate() {
            for path in component.paths.iter().filter(|path| is_in(file, path)) {
                if best.is_none_or(|(_, length)| path.len() > length) {
                    best = Some((at, path.len()));
                }
            }
        }
        best.map(|(at, _)| at)
    }

    fn is_latch(&self, file: &str) -> bool {
        self.latches.iter().any(|path| is_in(file, path))
    }

    /// Returns the component to which the samples of a stack are charged.
    pub(crate) fn charge(&self, stack: &Stack) -> Charge {
        self.charge_with_frame(stack).0
    }

    /// Like `charge`, with the frame that decided it.
    pub(crate) fn charge_with_frame<'s>(&self, stack: &'s Stack) -> (Charge, Option<&'s Frame>) {
        let (mut latching, mut is_known) = (false, false);
        for frame in &stack.frames {
            is_known |= !frame.file.is_empty();
            if self.is_latch(&frame.file) {
                latching = true;
                continue;
            }
            if self.transparent.iter().any(|path| is_in(&frame.file, path)) {
                continue;
            }
            if let Some(at) = self.find(&frame.file) {
                return (Charge::Component(at, latching), Some(frame));
            }
            if is_program(frame) {
                return (Charge::Program, Some(frame));
            }
        }
        if is_known || stack.frames.iter().any(|frame| !frame.function.starts_with("0x")) {
            (Charge::Program, None)
        } else {
            (Charge::Unknown, None)
        }
    }

    /// Returns the name of the charged component.
    pub(crate) fn name_of(&self, charge: Charge) -> String {
        match charge {
            Charge::Component(at, false) => self.all[at].name.clone(),
            Charge::Component(at, true) => format!("{}{LATCHING}", self.all[at].name),
            Charge::Program => "program".to_string(),
            Charge::Unknown => "not assigned".to_string(),
        }
    }
}

/// Returns `true` if `file` is `path`, or in the folder `path`, wherever the repository is.
fn is_in(file: &str, path: &str) -> bool {
    let ends = |rest: &str| rest.is_empty() || rest.starts_with('/');
    let mut from = 0;
    while let Some(at) = file[from..].find(path) {
        let at = from + at;
        let begins = at == 0 || file[..at].ends_with('/');
        if begins && ends(&file[at + path.len()..]) {
            return true;
        }
        from = at + 1;
    }
    false
}

/// Returns `true` if a frame is code of the program itself. Code of the standard library, of
/// foreign crates, and of system libraries (which have no line tables) is not.
fn is_program(frame: &Frame) -> bool {
    let file = frame.file.as_str();
    let is_foreign = file.starts_with("/rustc/")
        || file.starts_with("library/")
        || file.contains("/library/std/src/")
        || file.contains("/library/core/src/")
        || file.contains("/library/alloc/src/")
        || file.contains("/.cargo/registry/")
        || file.starts_with("/rust/deps/");
    !file.is_empty() && !is_foreign
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn stack(files: &[&str]) -> Stack {
        let frame = |file: &&str| {
            let function = "f".to_string();
            Arc::new(Frame { function, file: file.to_string(), ..Frame::default() })
        };
        Stack { frames: files.iter().map(frame).collect(), user: 1, ..Stack::default() }
    }

    fn charged(files: &[&str]) -> String {
        let components = Components::shipped().unwrap();
        components.name_of(components.charge(&stack(files)))
    }

    #[test]
    fn the_innermost_frame_of_a_component_is_charged() {
        let std = "/rustc/abc/library/core/src/ptr/mod.rs";
        let (tree, pool) = ("/src/crates/engine/src/btree/node.rs", "crates/engine/src/pool/x.rs");
        assert_eq!(charged(&[std, tree, pool]), "B-tree");
        assert_eq!(charged(&["", pool, tree]), "pool");
        assert_eq!(charged(&["crates/engine/src/pool/swip.rs", tree]), "pool: swizzling");
        assert_eq!(charged(&["crates/engine/src/pool/latch.rs", tree]), "B-tree, latching");
        let mutex = "/rustc/abc/library/std/src/sys/sync/mutex/futex.rs";
        assert_eq!(charged(&[mutex, "crates/engine/src/lock/table.rs"]), "locking, latching");
        assert_eq!(charged(&[std, "/shop/src/main.rs", tree]), "program");
        // A crate inside the standard library.
        assert_eq!(charged(&["/rust/deps/hashbrown-0.16.1/src/map.rs", tree]), "B-tree");
        assert_eq!(charged(&[std]), "program");
        assert_eq!(charged(&["crates/engine/src/page/view.rs", tree]), "B-tree");
    }

    #[test]
    fn parts_and_their_latching_count_towards_what_they_are_part_of() {
        let components = Components::shipped().unwrap();
        for whole in components.all.iter().filter_map(|component| component.part_of.as_deref()) {
            let parts: Vec<&str> = components.parts(whole).collect();
            assert!(parts.contains(&whole) && parts.len() > 1, "{whole} is a component: {parts:?}");
        }
        assert!(components.parts("logging").eq(["logging", "I/O"]));
        assert!(components.parts("locking").eq(["locking", "transactions"]));
        assert!(components.counts_towards("I/O, latching", "logging"));
        assert!(components.counts_towards("locking, latching", "locking"));
        assert!(!components.counts_towards("logging", "I/O"), "a whole is not in its part");
        assert!(!components.counts_towards("pool: page table", "pool"));
    }

    #[test]
    fn a_path_is_a_folder_or_a_file_and_no_part_of_a_name() {
        assert!(is_in("/a/crates/engine/src/log/ring.rs", "crates/engine/src/log"));
        assert!(is_in("crates/engine/src/log", "crates/engine/src/log"));
        assert!(!is_in("crates/engine/src/logs/ring.rs", "crates/engine/src/log"));
        assert!(!is_in("my-crates/engine/src/log/ring.rs", "crates/engine/src/log"));
        assert!(is_in("my-crates/engine/crates/engine/x.rs", "crates/engine"));
    }

    #[test]
    fn nothing_is_known_of_a_stack_without_names() {
        let frame = Frame { function: "0x7f".to_string(), ..Frame::default() };
        let stack = Stack { frames: vec![Arc::new(frame)], ..Stack::default() };
        assert_eq!(Components::shipped().unwrap().charge(&stack), Charge::Unknown);
        assert_eq!(Components::shipped().unwrap().charge(&Stack::default()), Charge::Unknown);
    }
}
