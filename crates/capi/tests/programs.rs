//! Programs in C and C++, built under AddressSanitizer and run: with the shared library and with
//! the static one. Where there is no compiler they are left out, with a message.
#![allow(clippy::print_stderr, reason = "it tells which tests are left out")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use millpond::{Db, Options};
use tempfile::TempDir;

#[derive(Clone, Copy, PartialEq)]
pub enum Link {
    Shared,
    Static,
}

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];
/// System libraries that the static library needs.
const SYSTEM: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lgcc_s"];

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the folder of the libraries that this test is linked with.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("a test is a file");
    test.parent().expect("in a folder").to_path_buf()
}

/// Returns `true` if there are compilers with AddressSanitizer.
pub fn has_compilers() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("probe.c");
        std::fs::write(&source, "int main(void) { return 0; }").expect("a file");
        let program = folder.path().join("probe");
        let works = ["cc", "c++"].iter().all(|compiler| {
            let mut build = Command::new(compiler);
            build.args(["-fsanitize=address", "-x", "c"]).arg(&source).arg("-o").arg(&program);
            let built = build.output().is_ok_and(|output| output.status.success());
            built && Command::new(&program).output().is_ok_and(|output| output.status.success())
        });
        if !works {
            eprintln!(
                "left out: programs in C and C++ (no cc and c++ with AddressSanitizer: on Debian, \
                 `apt-get install build-essential`)"
            );
        }
        works
    })
}

/// Builds a program; its file.
pub fn build(source: &str, link: Link, folder: &Path) -> PathBuf {
    let source = root().join(source);
    let program = folder.join("program");
    let is_c = source.extension().is_some_and(|extension| extension == "c");
    let (compiler, standard) = if is_c { ("cc", "-std=c11") } else { ("c++", "-std=c++17") };
    let mut command = Command::new(compiler);
    command.args([
        standard,
        "-g",
        "-O1",
        "-fsanitize=address,undefined",
        "-fno-omit-frame-pointer",
    ]);
    command.args(WARNINGS).arg("-I").arg(root().join("include")).arg(&source);
    match link {
        Link::Shared => {
            // As it is installed: under the name that programs record.
            for name in ["libmillpond_c.so", "libmillpond_c.so.0"] {
                let place = folder.join(name);
                std::os::unix::fs::symlink(libraries().join("libmillpond_c.so"), place)
                    .expect("a link");
            }
            command.arg("-L").arg(folder).arg("-lmillpond_c");
            command.arg(format!("-Wl,-rpath,{}", folder.display()));
        }
        Link::Static => {
            command.arg(libraries().join("libmillpond_c.a")).args(SYSTEM);
        }
    }
    let output = command.arg("-o").arg(&program).output().expect("the compiler runs");
    assert!(output.status.success(), "{}", text(&output));
    program
}

pub fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

/// Builds a program and runs it in a folder of its own; what it printed.
fn run(source: &str, link: Link, arguments: &[&str]) -> Option<(TempDir, String)> {
    if !has_compilers() {
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(source, link, folder.path());
    let output =
        Command::new(program).args(arguments).current_dir(folder.path()).output().expect("it runs");
    assert!(output.status.success(), "{source}: {}\n{}", output.status, text(&output));
    assert!(output.stderr.is_empty(), "{source}: {}", text(&output));
    Some((folder, String::from_utf8(output.stdout).expect("it is text")))
}

const PONDS: &str = "\
bolts now: 200
bolts before: 1200
no screws
washers: 80
nuts: 500
puts: 5
";

#[test]
fn the_first_program() {
    for link in [Link::Shared, Link::Static] {
        let Some((_, printed)) = run("examples/ponds.c", link, &["shop.mp"]) else { return };
        assert_eq!(printed, PONDS);
    }
}

#[test]
fn transfers_in_cpp() {
    for link in [Link::Shared, Link::Static] {
        let Some((_, printed)) = run("examples/transfer.cpp", link, &[]) else { return };
        assert_eq!(printed, "sum: 3000\n");
    }
}

#[test]
fn a_writer_that_is_killed_loses_no_commit() {
    let rounds = if std::env::var_os("MILLPOND_DEEP").is_some() { "200" } else { "8" };
    let ran = run("examples/crash.c", Link::Shared, &["crash.mp", rounds]);
    let Some((folder, printed)) = ran else { return };
    assert!(printed.ends_with("none lost\n"), "{printed}");
    let db = Db::open(folder.path().join("crash.mp"), Options::new()).expect("it opens");
    assert!(db.check().expect("it is read").is_sound());
}

/// The one block of C in docs/c.md that begins so, in a file.
fn program_of_the_guide(begins: &str, folder: &Path) -> PathBuf {
    let guide = std::fs::read_to_string(root().join("../../docs/c.md")).expect("the guide");
    let mut blocks = guide.split("\n```c\n").skip(1).filter(|block| block.starts_with(begins));
    let block = blocks.next().expect("the guide has the program");
    assert!(blocks.next().is_none(), "it has it once");
    let source = folder.join("guide.c");
    let end = block.find("\n```").expect("the block ends");
    std::fs::write(&source, &block[..=end]).expect("a file");
    source
}

#[test]
fn the_program_of_the_guide_that_kills_a_writer() {
    let rounds = if std::env::var_os("MILLPOND_DEEP").is_some() { "200" } else { "8" };
    let folder = tempfile::tempdir().expect("a folder");
    let source = program_of_the_guide("/* kill.c", folder.path());
    let source = source.to_str().expect("a path of text");
    for link in [Link::Shared, Link::Static] {
        let Some((place, printed)) = run(source, link, &["pond.mp", rounds]) else { return };
        assert!(printed.starts_with(&format!("{rounds} kills, ")), "{printed}");
        assert!(printed.ends_with("none lost\n"), "{printed}");
        let db = Db::open(place.path().join("pond.mp"), Options::new()).expect("it opens");
        assert!(db.check().expect("it is read").is_sound());
    }
}

#[test]
fn misuse_is_an_error() {
    for link in [Link::Shared, Link::Static] {
        if run("tests/c/misuse.c", link, &["."]).is_none() {
            return;
        }
    }
}

#[test]
fn closed_descriptors_forks_and_the_end_of_a_process_leave_the_store_as_it_is() {
    for link in [Link::Shared, Link::Static] {
        let Some((folder, printed)) = run("tests/c/processes.c", link, &["pond.mp"]) else {
            return;
        };
        assert_eq!(printed, "0 failures\n");
        let files = [
            ("pond.mp", &b"late"[..], &b"1"[..]),
            ("pond.mp.copy", b"first", b"1"),
            ("pond.mp.other", b"later", b"3"),
        ];
        for (name, key, value) in files {
            let options = Options::new().memory(8 << 20);
            let db = Db::open(folder.path().join(name), options).expect("it opens");
            let tree = db.raw_tree("t").expect("the tree");
            assert_eq!(tree.get(key).expect("it is read").as_deref(), Some(value), "{name}");
            assert!(db.recovery().is_none(), "{name}: the end of the process closed it");
        }
    }
}

type Stock = (String, u32, i64, bool);

#[test]
fn c_and_rust_share_typed_trees() {
    if !has_compilers() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stock.mp");
    let rows: [(Stock, u64); 3] = [
        (("".into(), 0, i64::MIN, false), 0),
        (("b\0".into(), u32::MAX, -1, true), u64::MAX),
        (("bolts".into(), 8, 7, false), 1200),
    ];
    let db = Db::open(&path, Options::new().memory(16 << 20)).expect("a store");
    let stock = db.tree::<Stock, u64>("stock").expect("a tree");
    for (key, value) in &rows {
        stock.put(key, value).expect("it is put");
    }
    drop(stock);
    db.close().expect("it closes");

    let program = build("tests/c/typed.c", Link::Shared, folder.path());
    let output = Command::new(program).arg(&path).output().expect("it runs");
    assert!(output.status.success(), "{}", text(&output));
    let wanted =
        format!(" 0 {} 0 0\nb\0 {} -1 1 {}\nbolts 8 7 0 1200\n", i64::MIN, u32::MAX, u64::MAX);
    assert_eq!(text(&output), wanted);

    let db = Db::open(&path, Options::new().memory(16 << 20)).expect("a store");
    let stock = db.tree::<Stock, u64>("stock").expect("the same types");
    let added: Stock = ("c\0d".into(), 9, -5, true);
    assert_eq!(stock.last().expect("it is read"), Some((added, 77)));
}

#[test]
fn the_shared_library_exports_nothing_else() {
    let library = libraries().join("libmillpond_c.so");
    let Ok(output) = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output() else {
        eprintln!("left out: exported names (no nm)");
        return;
    };
    let names: Vec<String> = String::from_utf8(output.stdout)
        .expect("names are text")
        .lines()
        .filter_map(|line| line.split_whitespace().last().map(str::to_string))
        .collect();
    assert!(names.iter().any(|name| name == "mp_open"), "{names:?}");
    let foreign: Vec<_> = names.iter().filter(|name| !name.starts_with("mp_")).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}
