//! Commands in the documentation: all are ones that the command line knows, and those of the first
//! pages are run.

#[path = "samples/page.rs"]
mod page;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use page::{Program, assert_known, blocks, commands, complaint, root};

/// Pages whose commands are run, with what they presuppose.
const RUN: [(&str, &str); 4] = [
    ("README.md", ""),
    ("docs/start/policy.md", ""),
    ("docs/recording.md", ""),
    ("docs/backup.md", "mkdir broken\nmillpond put pond.mp heron 3 --create"),
];
const MILLPOND: Program = Program { name: "millpond", command: millpond_cli::command };

#[test]
fn every_command_in_the_documentation_is_one_that_there_is() {
    let count = assert_known(&MILLPOND);
    assert!(count > 150, "{count} commands were found");
}

#[test]
fn the_commands_of_the_first_pages_run() {
    let bin = Path::new(env!("CARGO_BIN_EXE_millpond")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    for (page, before) in RUN {
        let folder = tempfile::tempdir().unwrap();
        let traces = root().canonicalize().unwrap().join("traces");
        std::os::unix::fs::symlink(traces, folder.path().join("traces")).unwrap();
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let blocks = blocks(&text).into_iter().map(|(_, block)| block);
        // What compiles is not run here.
        let script: String = blocks.filter(|block| !block.contains("cargo ")).collect();
        assert!(script.contains("millpond "), "{page} has no command");
        let output = Command::new("sh")
            .args(["-e", "-x", "-c", &format!("{before}\n{script}")])
            .env("PATH", format!("{}:{path}", bin.display()))
            .current_dir(folder.path())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{page}: {errors}");
    }
}

#[test]
fn a_block_is_taken_apart_as_a_shell_would() {
    let block = "for p in lru 'a b'; do\n  X=1 millpond sim t -p \"$p\" \\\n    -s 5 2>&1 | grep x # no\n\
                 done\nmillpond policies > 'a;b'\n";
    let words: Vec<String> = commands(block).iter().map(|words| words.join("_")).collect();
    assert_eq!(
        words,
        [
            "for_p_in_lru_a b",
            "do",
            "X=1_millpond_sim_t_-p_$p_-s_5",
            "grep_x",
            "done",
            "millpond_policies"
        ]
    );
    let mut values = BTreeMap::new();
    let found: Vec<_> =
        commands(block).iter().filter_map(|w| complaint(w, &mut values, &MILLPOND)).collect();
    assert_eq!(found, [] as [String; 0]);
    let stale = commands("millpond sim t --polcy lru");
    assert!(complaint(&stale[0], &mut values, &MILLPOND).is_some());
    assert!(complaint(&commands("cargo xtask nonsense")[0], &mut values, &MILLPOND).is_some());
}
