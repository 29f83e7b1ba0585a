//! Commands in the documentation: all are ones that the command line knows, and those of the first
//! pages are run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pages whose commands are run, with what they presuppose.
const RUN: [(&str, &str); 4] = [
    ("README.md", ""),
    ("docs/start/policy.md", ""),
    ("docs/recording.md", ""),
    ("docs/backup.md", "mkdir broken\nmillpond put pond.mp heron 3 --create"),
];
const SKIP: &str = "<!-- not run: ";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Markdown file, but what builds and tests leave.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_passed = ["target", "results", "shared"].contains(&name.as_str());
        if path.is_dir() && !is_passed && !name.starts_with('.') {
            pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The blocks of commands of a page that are not marked, with their lines.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut above, mut open) = (Vec::new(), "", None);
    for (at, line) in text.lines().enumerate() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some("sh")) if !above.starts_with(SKIP) => open = Some((at + 2, String::new())),
            (Some(block), Some(_)) => {
                found.push(std::mem::take(block));
                open = None;
            }
            (Some((_, block)), None) => block.push_str(&format!("{line}\n")),
            (None, _) => {}
        }
        above = line.trim();
    }
    found
}

/// The commands of a block as a shell takes them apart, in words; what is read or written by
/// redirection is left out.
fn commands(block: &str) -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let (mut word, mut is_word, mut quote) = (String::new(), false, None);
    let mut chars = block.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, is_word) = (Some(c), true),
            (None, '\\') if chars.next_if_eq(&'\n').is_some() => {}
            (None, '\\') => word.extend(chars.next()),
            (None, '#') if !is_word => while chars.next_if(|c| *c != '\n').is_some() {},
            (None, ' ' | '\t' | '\n' | ';' | '|' | '&') if !word.ends_with('>') || c != '&' => {
                if std::mem::take(&mut is_word) {
                    found.last_mut().unwrap().push(std::mem::take(&mut word));
                }
                if !" \t".contains(c) {
                    found.push(Vec::new());
                }
            }
            (None, c) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_word {
        found.last_mut().unwrap().push(word);
    }
    let is_redirection = |word: &String| word.starts_with(['>', '<']) || word.contains(">&");
    for words in &mut found {
        if let Some(at) = words.iter().position(is_redirection) {
            words.truncate(at);
        }
    }
    found.retain(|words| !words.is_empty());
    found
}

/// The arguments of `millpond` in a command; `None` if it is another program.
fn arguments(words: &[String]) -> Option<&[String]> {
    let is_millpond = |word: &String| word == "millpond" || word.ends_with("/millpond");
    if let ["cargo", "run", rest @ ..] =
        words.iter().map(String::as_str).collect::<Vec<_>>().as_slice()
    {
        let is_other = rest.iter().any(|word| ["-p", "--example", "--bin"].contains(word));
        let dashes = words.iter().position(|word| word == "--")?;
        return (!is_other).then(|| &words[dashes + 1..]);
    }
    let at = words.iter().position(is_millpond)?;
    // Behind a program that runs it, or by itself.
    let is_run = at == 0 || ["valgrind", "do", "time"].contains(&words[0].as_str());
    (is_run || words[..at].iter().all(|word| word.contains('='))).then(|| &words[at + 1..])
}

/// `for NAME in VALUE …`: the name stands for its first value.
fn remember(words: &[String], values: &mut BTreeMap<String, String>) {
    let words = words.strip_prefix(&["do".to_string()]).unwrap_or(words);
    if let [first, name, into, value, ..] = words
        && first == "for"
        && into == "in"
    {
        let value = if value.starts_with('$') { "1" } else { value };
        values.insert(format!("${name}"), value.to_string());
    }
}

fn complaint(words: &[String], values: &mut BTreeMap<String, String>) -> Option<String> {
    remember(words, values);
    let words: Vec<String> = words
        .iter()
        .map(|word| {
            values.iter().fold(word.clone(), |word, (name, value)| word.replace(name, value))
        })
        .collect();
    if let ["cargo", "xtask", chore, ..] =
        words.iter().map(String::as_str).collect::<Vec<_>>().as_slice()
    {
        let source = std::fs::read_to_string(root().join("xtask/src/main.rs")).unwrap();
        let is_known = source.contains(&format!("\"{chore}\" =>"));
        return (!is_known).then(|| format!("cargo xtask has no {chore}"));
    }
    let arguments = arguments(&words)?;
    let all = std::iter::once("millpond").chain(arguments.iter().map(String::as_str));
    let error = millpond_cli::command().try_get_matches_from(all).err()?;
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
    let is_shown = [DisplayHelp, DisplayVersion].contains(&error.kind());
    (!is_shown).then(|| format!("millpond {}: {error}", arguments.join(" ")))
}

#[test]
fn every_command_in_the_documentation_is_one_that_there_is() {
    let (mut files, mut wrong, mut count) = (Vec::new(), Vec::new(), 0);
    pages(&root(), &mut files);
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        for (line, block) in blocks(&text) {
            // Another workspace's program.
            if block.contains("cd crates/compare") || file.ends_with("docs/compare.md") {
                continue;
            }
            let mut values = BTreeMap::new();
            for words in commands(&block) {
                count += 1;
                if let Some(what) = complaint(&words, &mut values) {
                    wrong.push(format!("{}:{line}: {what}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
    let found: Vec<_> = commands(block).iter().filter_map(|w| complaint(w, &mut values)).collect();
    assert_eq!(found, [] as [String; 0]);
    let stale = commands("millpond sim t --polcy lru");
    assert!(complaint(&stale[0], &mut values).is_some());
    assert!(complaint(&commands("cargo xtask nonsense")[0], &mut values).is_some());
}
