//! A patch: a sentence that names the bug, the campaign that must catch it, and the diff.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tree::Tree;

const FOLDER: &str = "tests/planted/";

/// Tests that must fail once a bug is planted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Campaign {
    /// Stories over a store whose power fails.
    Crash,
    /// Stories over a store that is only a log; they are shorter.
    Log,
    /// Stories in which reads go wrong.
    Reads,
    /// A model under shuttle's schedules, by the name of its module.
    Model(String),
}

impl fmt::Display for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Campaign::Crash => f.write_str("crash"),
            Campaign::Log => f.write_str("log"),
            Campaign::Reads => f.write_str("reads"),
            Campaign::Model(module) => write!(f, "model {module}"),
        }
    }
}

/// A planted bug.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Patch {
    /// Name of the file without its ending.
    pub name: String,
    /// Campaign that must catch the bug.
    pub campaign: Campaign,
}

impl Patch {
    /// Reads the head of a patch.
    ///
    /// # Errors
    /// If the sentence, the campaign or the diff is missing.
    pub fn parse(name: &str, text: &str) -> Result<Patch> {
        let (head, _) = text.split_once("\ndiff --git ").context("no line `diff --git`")?;
        let (says, caught_by) =
            head.split_once("Caught by: ").context("no line `Caught by: CAMPAIGN`")?;
        if says.trim().is_empty() {
            bail!("no sentence that says which rule it breaks");
        }
        let campaign = match caught_by.trim() {
            "crash" => Campaign::Crash,
            "log" => Campaign::Log,
            "reads" => Campaign::Reads,
            other => match other.strip_prefix("model ") {
                Some(module) => Campaign::Model(module.to_string()),
                None => bail!("campaigns are crash, log, reads and model MODULE, not `{other}`"),
            },
        };
        Ok(Patch { name: name.to_string(), campaign })
    }

    /// Returns the path of the patch in the tree.
    pub fn path(&self) -> String {
        format!("{FOLDER}{}.patch", self.name)
    }
}

/// Returns the path, name and text of each patch file.
fn files(tree: &Tree) -> impl Iterator<Item = (&str, &str, &str)> {
    tree.texts().filter_map(|(path, text)| {
        let name = path.strip_prefix(FOLDER)?.strip_suffix(".patch")?;
        Some((path, name, text))
    })
}

/// Reads all patches of the tree.
///
/// # Errors
/// If the head of a patch is malformed.
pub fn patches(tree: &Tree) -> Result<Vec<Patch>> {
    let read = |(path, name, text): (&str, &str, &str)| {
        Patch::parse(name, text).with_context(|| path.to_string())
    };
    files(tree).map(read).collect()
}

/// A useless patch, and the reason.
#[derive(PartialEq, Eq, Debug)]
pub struct Fault {
    pub path: String,
    pub why: String,
}

/// Returns the patches that cannot be read, or do not apply to the files under `root`.
pub fn faults(root: &Path, tree: &Tree) -> Vec<Fault> {
    files(tree)
        .filter_map(|(path, name, text)| {
            let error = Patch::parse(name, text).and_then(|_| check(root, path)).err()?;
            Some(Fault { path: path.to_string(), why: format!("{error:#}") })
        })
        .collect()
}

/// Fails if the patch does not apply.
fn check(root: &Path, path: &str) -> Result<()> {
    let checked = Command::new("git").args(["apply", "--check", path]).current_dir(root).output();
    let Ok(checked) = checked else { return Ok(()) };
    if !checked.status.success() {
        let why = String::from_utf8_lossy(&checked.stderr).trim().replace('\n', "; ");
        bail!("the code that it breaks has changed: plant the bug again ({why})");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "A commit does not wait.\n\nCaught by: crash\n\n";
    const DIFF: &str = "\
diff --git a/x.rs b/x.rs
--- a/x.rs
+++ b/x.rs
@@ -1,3 +1,2 @@
 begin();
-wait();
 end();
";

    #[test]
    fn a_head_names_the_bug_and_its_campaign() {
        let text = format!("{HEAD}{DIFF}");
        let patch = Patch::parse("no-wait", &text).unwrap();
        assert_eq!(patch, Patch { name: "no-wait".to_string(), campaign: Campaign::Crash });
        assert_eq!(patch.path(), "tests/planted/no-wait.patch");
        let model = Patch::parse("x", &text.replace("crash", "model lock")).unwrap();
        assert_eq!(model.campaign, Campaign::Model("lock".to_string()));
        for (text, why) in [
            (DIFF.to_string(), "diff --git"),
            (format!("A bug.\n\n{DIFF}"), "Caught by"),
            (format!("\nCaught by: crash\n\n{DIFF}"), "sentence"),
            (text.replace("crash", "luck"), "luck"),
        ] {
            let error = Patch::parse("x", &text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_patch_that_no_longer_applies_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| Command::new("git").args(words).current_dir(&root).status();
        assert!(git(&["init", "-q"]).unwrap().success());
        let path = "tests/planted/no-wait.patch";
        std::fs::create_dir_all(root.path().join("tests/planted")).unwrap();
        std::fs::write(root.path().join(path), format!("{HEAD}{DIFF}")).unwrap();
        let found = |code: &str| {
            std::fs::write(root.path().join("x.rs"), code).unwrap();
            faults(root.path(), &Tree::load(root.path()).unwrap())
        };
        assert_eq!(found("begin();\nwait();\nend();\n"), []);
        let changed = found("begin();\nwait_long();\nend();\n");
        assert_eq!(changed.len(), 1, "{changed:?}");
        assert!(changed[0].why.contains("plant the bug again"), "{changed:?}");
    }
}
