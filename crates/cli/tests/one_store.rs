//! One store through four faces: written by Rust, read by C and added to, changed by Python, looked
//! at by the command line, and read by Rust again. A face that this machine lacks is left out, with
//! a message.
#![allow(clippy::print_stderr, reason = "it tells which faces are left out")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use millpond::{Db, Error, ErrorKind, Options, Tree, Value, codec::ValueLike};

type Stock = (String, u32, i64, bool);

/// A value of each type that has a name, in a tree that is called by it.
struct Values(Vec<String>);

impl Values {
    fn put<V: Value + ValueLike<V>>(&mut self, db: &Db, of: &str, value: &V) {
        let name = format!("value {of}");
        let tree: Tree<u32, V> = db.tree(&name).unwrap();
        tree.put(&7, value).unwrap();
        self.0.push(name);
    }

    fn all(db: &Db) -> Values {
        let mut values = Values(Vec::new());
        values.put(db, "()", &());
        values.put(db, "bool", &true);
        values.put(db, "char", &'é');
        values.put(db, "u8", &u8::MAX);
        values.put(db, "u16", &u16::MAX);
        values.put(db, "u32", &u32::MAX);
        values.put(db, "u64", &u64::MAX);
        values.put(db, "u128", &u128::MAX);
        values.put(db, "i8", &i8::MIN);
        values.put(db, "i16", &i16::MIN);
        values.put(db, "i32", &i32::MIN);
        values.put(db, "i64", &i64::MIN);
        values.put(db, "i128", &i128::MIN);
        values.put(db, "f32", &-1.5f32);
        values.put(db, "f64", &2f64.powi(-1000));
        values.put(db, "String", &"a\0é".to_string());
        values.put(db, "Vec<u8>", &vec![0u8, 255]);
        values.put(db, "[u8; 4]", &[1u8, 2, 3, 4]);
        values.put(db, "Option<u16>", &Some(258u16));
        values.put(db, "(u8, String, Option<i64>)", &(1u8, "two".to_string(), Some(-3i64)));
        values
    }
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A library that cargo built beside this test.
fn library(name: &str) -> PathBuf {
    std::env::current_exe().unwrap().with_file_name(name)
}

fn kind<T>(result: Result<T, Error>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn rust_writes(path: &Path) -> Values {
    let db = Db::open(path, Options::new().memory(16 << 20)).unwrap();
    let stock = db.tree::<Stock, u64>("stock").unwrap();
    stock.put(&("", 0u32, i64::MIN, false), &0).unwrap();
    stock.put(&("b", u32::MAX, -1i64, true), &u64::MAX).unwrap();
    let numbers = db.tree::<i64, String>("numbers").unwrap();
    for number in [-1, 0, 1, i64::MAX] {
        numbers.put(&number, &format!("number {number}")).unwrap();
    }
    let values = Values::all(&db);
    let sessions = db.hash_index::<String, u64>("sessions").unwrap();
    sessions.put("ada", &1815).unwrap();
    let log = db.heap::<String>("log").unwrap();
    log.append("first line").unwrap();

    let before = db.snapshot().unwrap();
    stock.put(&("bolts", 8u32, 7i64, false), &1200).unwrap();
    assert_eq!(before.tree(&stock).count(..).unwrap(), 2);
    assert_eq!(stock.count(..).unwrap(), 3);
    assert_eq!(kind(Db::open(path, Options::new())), Some(ErrorKind::InUse));
    assert_eq!(kind(db.tree::<String, u64>("stock")), Some(ErrorKind::OtherType));
    let output = millpond(path, &["get"], &["1", "--tree", "numbers", "--key-type", "i64"]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&std::process::id().to_string()), "it names who has it: {said}");
    drop(before);
    values
}

/// What C read, if there is a compiler.
fn c_reads(folder: &Path, path: &Path, values: &Values) -> Option<String> {
    let program = folder.join("faces");
    let mut build = Command::new("cc");
    build.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"]).arg(here("../capi/include"));
    build.arg(here("tests/one_store/faces.c")).arg(library("libmillpond_c.a"));
    build.args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-o"]).arg(&program);
    let Ok(built) = build.output() else {
        eprintln!("left out: C reads the store (no cc: on Debian, `apt-get install gcc`)");
        return None;
    };
    assert!(built.status.success(), "{}", text(&built));
    let output = Command::new(program).arg(path).args(&values.0).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    Some(text(&output))
}

/// Returns `true` if Python changed the store.
fn python_changes(folder: &Path, path: &Path) -> bool {
    let is_new_enough = "import sys; sys.exit(sys.version_info < (3, 11))";
    let found = Command::new("python3").args(["-c", is_new_enough]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!("left out: Python changes the store (no python3 of version 3.11 or newer)");
        return false;
    }
    let package = folder.join("millpond");
    std::fs::create_dir(&package).unwrap();
    for file in std::fs::read_dir(here("../../python/millpond")).unwrap() {
        let file = file.unwrap();
        if file.path().is_file() {
            std::fs::copy(file.path(), package.join(file.file_name())).unwrap();
        }
    }
    let name = format!("{}_millpond{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    std::fs::copy(library(&name), package.join("_millpond.abi3.so")).unwrap();
    let mut python = Command::new("python3");
    python.arg(here("tests/one_store/faces.py")).arg(path).env("PYTHONPATH", folder);
    let output = python.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    true
}

fn millpond(path: &Path, before: &[&str], behind: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.args(before).arg(path).args(behind).output().unwrap()
}

/// Returns the output of the command, which must succeed.
#[track_caller]
fn said(path: &Path, before: &[&str], behind: &[&str]) -> String {
    let output = millpond(path, before, behind);
    assert!(output.status.success(), "{before:?} {behind:?}: {}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn rust_c_python_and_the_command_line_have_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pond.mp");
    let values = rust_writes(&path);
    let read = c_reads(folder.path(), &path, &values);
    if let Some(read) = &read {
        let (min, max, most) = (i64::MIN, i64::MAX, u32::MAX);
        let expected = format!(
            " 0 {min} 0 0\nb {most} -1 1 {}\nbolts 8 7 0 1200\nc 3 -3 1 33\nbefore: 3\n\
             -1 number -1\n0 number 0\n1 number 1\n{max} number {max}\n",
            u64::MAX
        );
        assert!(read.starts_with(&expected), "{read}");
        assert!(read.contains("value i16 0080\n") && read.contains("value String 6100c3a9\n"));
        assert_eq!(read.lines().count(), 9 + values.0.len());
    } else {
        let db = Db::open(&path, Options::new()).unwrap();
        db.tree::<Stock, u64>("stock").unwrap().put(&("c", 3u32, -3i64, true), &33).unwrap();
    }
    let is_changed = python_changes(folder.path(), &path);

    let found = said(&path, &["check"], &["--format", "csv"]);
    assert_eq!(found.lines().count(), 1, "a header and no fault: {found}");
    let numbers = said(&path, &["scan"], &["--tree", "numbers", "--key-type", "i64"]);
    let most = i64::MAX;
    let expected = match is_changed {
        true => format!("-7\tminus seven\n-1\tnumber -1\n0\tnumber 0\n{most}\tnumber {most}\n"),
        false => format!("-1\tnumber -1\n0\tnumber 0\n1\tnumber 1\n{most}\tnumber {most}\n"),
    };
    assert_eq!(numbers, expected);
    let session = ["ada", "--tree", "sessions", "--value-type", "u64"];
    assert_eq!(said(&path, &["get"], &session), "1815\n");
    let bolts = ["(\"bolts\", 8, 7, false)", "--tree", "stock"];
    let count = if is_changed { "1000\n" } else { "1200\n" };
    assert_eq!(said(&path, &["get"], &bolts), count);
    let trees = said(&path, &["trees"], &["--format", "csv"]);
    assert!(trees.contains("\"(String, u32, i64, bool)\",u64"), "{trees}");
    assert!(said(&path, &["scan"], &["--tree", "log"]).ends_with("\tfirst line\n"));

    let db = Db::open(&path, Options::new().memory(16 << 20)).unwrap();
    let stock = db.tree::<Stock, u64>("stock").unwrap();
    let bolts = stock.get(&("bolts", 8u32, 7i64, false)).unwrap();
    assert_eq!(bolts, Some(if is_changed { 1000 } else { 1200 }));
    let tuples = db.tree::<u32, (u8, String, Option<i64>)>("value (u8, String, Option<i64>)");
    let copied = tuples.unwrap().get(&8).unwrap();
    assert_eq!(copied, is_changed.then(|| (1, "two".to_string(), Some(-3))));
    assert!(db.check().unwrap().is_sound());
}
