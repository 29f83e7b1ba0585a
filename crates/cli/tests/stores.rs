//! The commands that work on stores, as a user meets them: output and exit codes.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

pub(crate) struct Shop {
    folder: TempDir,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

impl Shop {
    pub(crate) fn new() -> Shop {
        Shop { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.args(args).current_dir(self.folder.path());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Returns the output of the command, which must succeed.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Returns the command's standard error when it fails with this code.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        error
    }

    pub(crate) fn load(&self, file: &str, dump: &str) {
        let mut child = self.command(&["load", file]).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(dump.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }

    /// A store with 3000 rows in `rows` and 3 in `names`.
    fn filled(&self) -> &'static str {
        let mut dump =
            "@millpond-dump 1 text\n@tree names\nada\tL\\tb\nbob\t\nzoë\tü\n@tree rows\n"
                .to_string();
        for i in 0..3000 {
            dump.push_str(&format!("row {i:05}\tvalue {i}\n"));
        }
        dump.push_str("@end 3003\n");
        self.load("shop.db", &dump);
        "shop.db"
    }
}

#[test]
fn the_types_of_trees_survive_a_dump_and_a_salvage() {
    let shop = Shop::new();
    let dump =
        "@millpond-dump 1 text\n@tree ages\tString\tu8\nada\t\\x24\n@heap log\t\tString\n@end 1\n";
    shop.load("typed.db", dump);
    let ages = "@tree ages\tString\tu8\n# ada\t36\nada\t";
    for how in [&["dump", "typed.db"][..], &["dump", "typed.db", "--salvage"]] {
        let said = shop.ok(how);
        assert!(said.contains(ages) && said.contains("@heap log\t\tString\n"), "{said}");
    }
    let said = shop.ok(&["dump", "typed.db", "--format", "json"]);
    assert!(said.contains(r#"{"keys":"String","tree":"ages","values":"u8"}"#), "{said}");
    let said = shop.ok(&["trees", "typed.db", "--format", "csv"]);
    assert!(said.lines().nth(1).unwrap().ends_with(",String,u8"), "{said}");
    fs::write(shop.path("other.dump"), dump.replace("\tu8\n", "\tu16\n")).unwrap();
    let said = shop.fails(1, &["load", "typed.db", "other.dump", "--add"]);
    assert!(said.contains("'ages'") && said.contains("u16"), "{said}");
    fs::write(shop.path("same.dump"), dump).unwrap();
    shop.ok(&["load", "typed.db", "same.dump", "--add"]);
}

#[test]
fn an_entry_is_put_read_and_removed() {
    let shop = Shop::new();
    let error = shop.fails(1, &["put", "a.db", "k", "v"]);
    assert!(error.contains("there is no store at a.db"), "{error}");
    shop.ok(&["put", "a.db", "k", r"v\x00\n", "--create"]);
    assert_eq!(shop.ok(&["get", "a.db", "k"]), "v\\x00\\n\n");
    assert_eq!(
        shop.ok(&["get", "a.db", "k", "--hex"].map(|a| if a == "k" { "6b" } else { a })),
        "76000a\n"
    );
    assert_eq!(shop.run(&["get", "a.db", "0x6b", "--raw"]).stdout, b"v\0\n");
    let json = shop.ok(&["get", "a.db", "k", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["command"], "get");
    assert_eq!(json["rows"][0]["value"], "v\\x00\\n");
    let error = shop.fails(1, &["put", "a.db", "k", "w", "--if-absent"]);
    assert!(error.contains("already"), "{error}");
    shop.ok(&["del", "a.db", "k"]);
    assert!(shop.fails(1, &["get", "a.db", "k"]).contains("'k' is not in tree 'main'"));
    assert!(shop.fails(1, &["del", "a.db", "k"]).contains("not in tree"));
    assert!(shop.fails(2, &["get", "a.db", r"\q"]).contains("backslash"));
}

#[test]
fn a_large_value_comes_from_a_file_and_goes_to_one() {
    let shop = Shop::new();
    let large: Vec<u8> = (0..300_000u32).map(|i| (i / 7) as u8).collect();
    fs::write(shop.path("photo"), &large).unwrap();
    shop.ok(&["put", "a.db", "photo", "--value-file", "photo", "--create"]);
    assert_eq!(shop.run(&["get", "a.db", "photo", "--raw"]).stdout, large);
    shop.ok(&["check", "a.db"]);
}

#[test]
fn numbers_are_keys_in_their_order() {
    let shop = Shop::new();
    for key in ["5", "-7", "1000", "0"] {
        let args =
            ["put", "n.db", key, key, "--create", "--key-type", "i64", "--value-type", "i32"];
        shop.ok(&args);
    }
    let scan = ["scan", "n.db", "--key-type", "i64", "--value-type", "i32"];
    assert_eq!(shop.ok(&scan), "-7\t-7\n0\t0\n5\t5\n1000\t1000\n");
    let range = [&scan[..], &["--from", "-7", "--to", "5", "--reverse", "--keys"]].concat();
    assert_eq!(shop.ok(&range), "0\n-7\n");
    assert!(shop.fails(2, &["get", "n.db", "x", "--key-type", "i64"]).contains("'x' is no i64"));
    let prefix = [&scan[..], &["--prefix", "1"]].concat();
    assert!(shop.fails(2, &prefix).contains("--from"));
}

#[test]
fn keys_of_several_parts_are_written_as_the_types_that_the_store_knows() {
    let shop = Shop::new();
    let types = ["--create", "--key-type", "(String, u32)", "--value-type", "Option<f64>"];
    for (key, value) in [(r#"("bolts", 8)"#, "0.5"), (r#"("nuts", 1)"#, "None")] {
        shop.ok(&[&["put", "n.db", key, value], &types[..]].concat());
    }
    shop.ok(&["put", "n.db", r#"("bolts", 10)"#, "7"]);
    assert_eq!(
        shop.ok(&["scan", "n.db"]),
        "(\"bolts\", 8)\t0.5\n(\"bolts\", 10)\t7.0\n(\"nuts\", 1)\tNone\n"
    );
    assert_eq!(shop.ok(&["get", "n.db", r#"("bolts",10)"#]), "7.0\n");
    let bolts = ["scan", "n.db", "--keys", "--prefix", r#"("bolts",)"#];
    assert_eq!(shop.ok(&bolts), "(\"bolts\", 8)\n(\"bolts\", 10)\n");
    let from = ["scan", "n.db", "--keys", "--from", r#"("bolts", 9)"#, "--limit", "1"];
    assert_eq!(shop.ok(&from), "(\"bolts\", 10)\n");
    let json = shop.ok(&["scan", "n.db", "--json", "--limit", "1"]);
    assert!(json.contains(r#"{"key":"(\"bolts\", 8)","value":"0.5"}"#), "{json}");
    let other = shop.fails(2, &["put", "n.db", "7", "1", "--key-type", "u64"]);
    assert!(other.contains("keys of 'main' are (String, u32), not u64"), "{other}");
    let wrong = shop.fails(2, &["get", "n.db", "bolts"]);
    assert!(wrong.contains("'bolts' is no (String, u32)"), "{wrong}");
    assert!(shop.ok(&["scan", "n.db", "--hex", "--limit", "1"]).starts_with("626f6c7473"));
    let nothing = ["put", "new.db", "x", "1", "--create", "--key-type", "u64"];
    assert!(shop.fails(2, &nothing).contains("'x' is no u64"));
    assert!(!shop.path("new.db").exists(), "no store is created for what cannot be written");
    shop.fails(2, &[&["put", "n.db"], &nothing[2..], &["--tree", "other"]].concat());
    assert!(!shop.ok(&["trees", "n.db"]).contains("other"));
    shop.ok(&["del", "n.db", "--prefix", r#"("bolts",)"#]);
    assert_eq!(shop.ok(&["scan", "n.db", "--count"]), "1\n");
}

#[test]
fn scans_are_bounded_as_asked() {
    let shop = Shop::new();
    let file = shop.filled();
    let scan = |more: &[&str]| shop.ok(&[&["scan", file, "--tree", "rows"], more].concat());
    assert_eq!(scan(&["--count"]), "3000\n");
    assert_eq!(scan(&["--prefix", "row 0012", "--count"]), "10\n");
    assert_eq!(scan(&["--limit", "1"]), "row 00000\tvalue 0\n");
    assert_eq!(scan(&["-n", "2", "--reverse", "--keys"]), "row 02999\nrow 02998\n");
    assert_eq!(scan(&["--from", "row 00007", "--to", "row 00009"]).lines().count(), 2);
    let json = scan(&["--prefix", "row 0000", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["command"], &json["params"]["tree"]), (&"scan".into(), &"rows".into()));
    assert_eq!(json["rows"].as_array().unwrap().len(), 10);
    assert_eq!(json["rows"][3]["value"], "value 3");
    let none: serde_json::Value =
        serde_json::from_str(&scan(&["--prefix", "x", "--json"])).unwrap();
    assert_eq!(none["rows"], serde_json::json!([]));
    assert_eq!(shop.ok(&["scan", file, "-t", "names"]), "ada\tL\\tb\nbob\t\nzoë\tü\n");
    let error = shop.fails(2, &["scan", file]);
    assert!(error.contains("which tree") && error.contains("names, rows"), "{error}");
    let error = shop.fails(1, &["scan", file, "--tree", "row"]);
    assert!(error.contains("no tree 'row'") && error.contains("names, rows"), "{error}");
    shop.ok(&["del", file, "--prefix", "row 01", "--tree", "rows"]);
    assert_eq!(scan(&["--count"]), "2000\n");
    shop.ok(&["check", file]);
}

#[test]
fn trees_and_stat_describe_a_closed_store() {
    let shop = Shop::new();
    let file = shop.filled();
    let trees = shop.ok(&["trees", file, "--format", "csv"]);
    let lines: Vec<&str> = trees.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("name,kind,id,root") && lines[1].starts_with("names,tree,1,"));
    let stat: serde_json::Value =
        serde_json::from_str(&shop.ok(&["stat", file, "--json"])).unwrap();
    assert_eq!((&stat["params"]["clean"], &stat["params"]["sound"]), (&true.into(), &true.into()));
    let rows = stat["rows"].as_array().unwrap();
    assert_eq!(rows[2]["name"], "rows");
    assert_eq!(rows[2]["rows"], 3000);
    assert!(rows[2]["leaf_fill"].as_f64().unwrap() > 0.8, "{}", rows[2]);
    let table = shop.ok(&["stat", file]);
    assert!(table.contains("closed cleanly") && table.contains("leaf_fill"), "{table}");
    assert!(shop.fails(1, &["stat", file, "--watch"]).contains("not in use"));
    let prometheus = shop.ok(&["stat", file, "--prometheus"]);
    assert!(prometheus.contains("millpond_frames{store=\"shop.db\"}"), "{prometheus}");
}

#[test]
fn a_running_store_shows_its_statistics_and_is_left_alone() {
    let shop = Shop::new();
    let db = millpond::Db::open(shop.path("run.db"), Default::default()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    tree.put(b"a", b"b").unwrap();
    let stat_file = millpond::internals::store::stats::stat_file::stat_path(&shop.path("run.db"));
    while !stat_file.exists() {
        std::thread::yield_now();
    }
    let stat = shop.ok(&["stat", "run.db", "--format", "json"]);
    let stat: serde_json::Value = serde_json::from_str(&stat).unwrap();
    assert_eq!(stat["params"]["pid"], std::process::id());
    assert_eq!(stat["params"]["running"], true);
    assert!(stat["rows"][0]["references"].is_u64() && stat["rows"][0]["frames"].is_u64());
    assert!(shop.ok(&["stat", "run.db"]).contains("open in process"));
    for command in ["get", "check", "dump"] {
        let args = [command, "run.db", "a"];
        let args = if command == "get" { &args[..] } else { &args[..2] };
        let error = shop.fails(1, args);
        assert!(error.contains(&std::process::id().to_string()), "{error}");
    }
    drop(tree);
    db.close().unwrap();
    assert_eq!(shop.ok(&["get", "run.db", "a"]), "b\n");
}

#[test]
fn dumps_come_back_through_load_in_every_form() {
    let shop = Shop::new();
    let file = shop.filled();
    let dump = shop.ok(&["dump", file]);
    assert!(dump.starts_with("@millpond-dump 1 text\n# shop.db\n@tree names\nada\tL\\tb\n"));
    assert!(dump.ends_with("row 02999\tvalue 2999\n@end 3003\n"));
    for (form, page) in [("text", "4KiB"), ("hex", "16KiB"), ("json", "64KiB")] {
        let (out, new) = (format!("{form}.dump"), format!("{form}.db"));
        shop.ok(&["dump", file, "--format", form, "--out", &out]);
        shop.ok(&["load", &new, &out, "--page-size", page]);
        shop.ok(&["check", &new]);
        let again = shop.ok(&["dump", &new]);
        assert_eq!(
            again.lines().skip(2).collect::<Vec<_>>(),
            dump.lines().skip(2).collect::<Vec<_>>()
        );
    }
    let only = shop.ok(&["dump", file, "--tree", "names", "--format", "json"]);
    assert_eq!(only.lines().count(), 6);
    let error = shop.fails(1, &["load", file, "text.dump"]);
    assert!(error.contains("exists") && error.contains("--add"), "{error}");
    shop.ok(&["load", file, "text.dump", "--add"]);
    assert_eq!(shop.ok(&["scan", file, "-t", "rows", "--count"]), "3000\n");
    fs::write(shop.path("bad.dump"), "@millpond-dump 1 text\n@tree t\na\tb\n").unwrap();
    let error = shop.fails(1, &["load", "bad.db", "bad.dump"]);
    assert!(error.contains("line 4") && error.contains("@end"), "{error}");
    assert!(shop.fails(1, &["load", "x.db", "shop.db"]).contains("line 1"));
    assert!(!shop.path("x.db").exists());
}

#[test]
fn damage_is_found_named_and_survived() {
    let shop = Shop::new();
    let file = shop.filled();
    let output = shop.run(&["check", file]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(text(&output.stderr).contains("pages of 4 KiB were read"));
    let mut bytes = fs::read(shop.path(file)).unwrap();
    // A leaf of the rows, neither the first nor the last.
    let needle = b"value 1500";
    let at = bytes.windows(needle.len()).position(|w| w == needle).unwrap();
    let page = at / 4096;
    bytes[at] ^= 1;
    fs::write(shop.path(file), &bytes).unwrap();
    let output = shop.run(&["check", file]);
    assert_eq!(output.status.code(), Some(1));
    let found = text(&output.stdout);
    let start = format!("page {page} (offset {}, rows): ", page * 4096);
    assert!(found.starts_with(&start) && found.contains("checksum"), "{found}");
    assert!(text(&output.stderr).contains("1 problem found"));
    let json = shop.run(&["check", file, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&text(&json.stdout)).unwrap();
    assert_eq!((&json["rows"][0]["page"], &json["params"]["sound"]), (&page.into(), &false.into()));
    shop.fails(1, &["dump", file]);
    let output = shop.run(&["dump", file, "--salvage", "--out", "saved.dump"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("keys from \"") && error.contains("something was lost"), "{error}");
    shop.ok(&["load", "saved.db", "saved.dump"]);
    let left: u64 = shop.ok(&["scan", "saved.db", "-t", "rows", "--count"]).trim().parse().unwrap();
    assert!((2500..3000).contains(&left), "{left}");
    assert_eq!(shop.ok(&["scan", "saved.db", "-t", "names", "--count"]), "3\n");
}

#[test]
fn a_store_without_a_log_that_was_not_closed_is_not_opened_but_saved() {
    let shop = Shop::new();
    let options = millpond::Options::new().lab(|lab| lab.log = false);
    let db = millpond::Db::open(shop.path("run.db"), options).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for i in 0..5000u32 {
        tree.put(&i.to_be_bytes(), &[7; 20]).unwrap();
    }
    db.flush().unwrap();
    // What a crash leaves behind.
    fs::copy(shop.path("run.db"), shop.path("crashed.db")).unwrap();
    let error = shop.fails(1, &["scan", "crashed.db"]);
    assert!(error.contains("was not shut down") && error.contains("--salvage"), "{error}");
    let check = shop.run(&["check", "crashed.db"]);
    assert_eq!(check.status.code(), Some(1));
    assert!(text(&check.stdout).contains("was not closed"));
    let output = shop.run(&["dump", "crashed.db", "--salvage", "--out", "saved.dump"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains("5000 entries saved") && error.contains("not closed"), "{error}");
    shop.ok(&["load", "saved.db", "saved.dump"]);
    assert_eq!(shop.ok(&["scan", "saved.db", "--count"]), "5000\n");
}

#[test]
fn a_store_larger_than_memory_that_was_cut_down_is_saved_in_large_part_and_invents_nothing() {
    let shop = Shop::new();
    let options = millpond::Options::new().memory(4 << 20);
    let db = millpond::Db::open(shop.path("run.db"), options).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..60_000 {
        let key = random.u32(..100_000);
        tree.put(&key.to_be_bytes(), &[key as u8; 150]).unwrap();
    }
    fs::copy(shop.path("run.db"), shop.path("crashed.db")).unwrap();
    assert_eq!(shop.run(&["check", "crashed.db"]).status.code(), Some(1));
    let args = ["dump", "crashed.db", "--salvage", "--format", "hex"];
    let dump = text(&shop.run(&args).stdout);
    let mut entries = 0;
    for line in dump.lines().filter(|line| !line.starts_with(['@', '#'])) {
        let (key, value) = line.split_once('\t').unwrap();
        assert_eq!((key.len(), value), (8, key[6..].repeat(150).as_str()));
        assert!(tree.contains(&u32::from_str_radix(key, 16).unwrap().to_be_bytes()).unwrap());
        entries += 1;
    }
    assert!(entries > 20_000, "{entries} of {}", tree.len().unwrap());
}

#[test]
fn what_is_no_store_says_so() {
    let shop = Shop::new();
    fs::write(shop.path("text"), "no store at all\n".repeat(9000)).unwrap();
    assert!(shop.fails(1, &["get", "text", "a"]).contains("no Millpond store"));
    assert!(shop.fails(1, &["check", "text"]).contains("nothing can be salvaged"));
    assert!(shop.fails(1, &["check", "absent"]).contains("absent"));
    shop.fails(2, &["put", "new.db", "a", "b", "--create", "--page-size", "5000"]);
    for command in [
        "get", "put", "del", "scan", "trees", "stat", "top", "dump", "load", "check", "recover",
        "log",
    ] {
        let help = shop.ok(&[command, "--help"]);
        assert!(help.contains("Examples:\n  millpond "), "{command}: {help}");
    }
}

#[test]
fn a_hash_index_is_written_and_read_like_a_tree_and_has_no_order() {
    let shop = Shop::new();
    for i in 0..40 {
        let (key, value) = (format!("key {i:02}"), format!("value {i}"));
        let args = ["put", "a.db", &key, &value, "--tree", "ix", "--create", "--kind", "hash"];
        shop.ok(&args);
    }
    shop.ok(&["put", "a.db", "k", "v", "--tree", "t", "--create"]);
    assert_eq!(shop.ok(&["get", "a.db", "key 07", "--tree", "ix"]), "value 7\n");
    assert_eq!(shop.run(&["get", "a.db", "key 07", "-t", "ix", "--raw"]).stdout, b"value 7");
    let error = shop.fails(1, &["put", "a.db", "key 07", "x", "-t", "ix", "--if-absent"]);
    assert!(error.contains("in hash index 'ix' already"), "{error}");
    shop.ok(&["del", "a.db", "key 07", "-t", "ix"]);
    let error = shop.fails(1, &["get", "a.db", "key 07", "-t", "ix"]);
    assert!(error.contains("'key 07' is not in hash index 'ix'"), "{error}");
    let scan = shop.ok(&["scan", "a.db", "-t", "ix"]);
    let mut lines: Vec<&str> = scan.lines().collect();
    lines.sort_unstable();
    assert_eq!((lines.len(), lines[38]), (39, "key 39\tvalue 39"));
    for flag in [&["--reverse"][..], &["--prefix", "k"], &["--from", "k"]] {
        let error = shop.fails(2, &[&["scan", "a.db", "-t", "ix"], flag].concat());
        assert!(error.contains("not for a hash index"), "{error}");
    }
    let error = shop.fails(2, &["del", "a.db", "--prefix", "k", "-t", "ix"]);
    assert!(error.contains("--prefix is for trees"), "{error}");
    let json = shop.ok(&["scan", "a.db", "-t", "ix", "--count", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["params"]["ordered"], &json["rows"][0]["count"]),
        (&false.into(), &39.into())
    );
    let trees = shop.ok(&["trees", "a.db", "--format", "csv"]);
    assert!(trees.contains("\nix,hash index,") && trees.contains("\nt,tree,"), "{trees}");
    shop.ok(&["check", "a.db"]);
}

#[test]
fn records_of_a_heap_have_numbers() {
    let shop = Shop::new();
    let put = |key: &str, value: &str| {
        shop.run(&["put", "a.db", key, value, "-t", "log", "--create", "--kind", "heap"])
    };
    let ids: Vec<String> =
        (0..30).map(|i| text(&put("new", &format!("line {i}")).stdout)).collect();
    let ids: Vec<&str> = ids.iter().map(|id| id.trim()).collect();
    assert_eq!(shop.ok(&["get", "a.db", ids[7]]), "line 7\n");
    assert!(put(ids[8], "another").status.success());
    shop.ok(&["del", "a.db", ids[9]]);
    assert!(shop.fails(1, &["get", "a.db", ids[9]]).contains("is not in heap 'log'"));
    assert!(text(&put("1234567", "x").stderr).contains("no record 1234567"));
    assert!(shop.fails(2, &["get", "a.db", "seven"]).contains("no id of a heap's record"));
    let some = shop.ok(&["scan", "a.db", "--from", ids[7], "--to", ids[12]]);
    let expected: Vec<String> = [(7, "line 7"), (8, "another"), (10, "line 10"), (11, "line 11")]
        .map(|(i, line)| format!("{}\t{line}", ids[i]))
        .to_vec();
    assert_eq!(some.lines().collect::<Vec<_>>(), expected);
    let last = shop.ok(&["scan", "a.db", "--reverse", "-n", "1"]);
    assert_eq!(last, format!("{}\tline 29\n", ids[29]));
    assert_eq!(shop.ok(&["scan", "a.db", "--count"]), "29\n");
    shop.ok(&["check", "a.db"]);
}

#[test]
fn hash_indexes_and_heaps_are_dumped_and_loaded() {
    let shop = Shop::new();
    let mut dump = "@millpond-dump 1 text\n@hash ix\n".to_string();
    for i in 0..2000 {
        dump.push_str(&format!("key {i}\tvalue {i}\n"));
    }
    dump.push_str("@heap log\n");
    for i in 0..500 {
        // As the first load numbers them.
        dump.push_str(&format!("{i}\tline {i}\n"));
    }
    dump.push_str("@tree empty\n@heap nothing\n@end 2500\n");
    shop.load("a.db", &dump);
    let sorted = |dump: &str| {
        let mut lines: Vec<String> = dump.lines().skip(2).map(str::to_string).collect();
        lines.sort_unstable();
        lines
    };
    let first = shop.ok(&["dump", "a.db"]);
    assert_eq!(first.lines().filter(|line| line.starts_with("key ")).count(), 2000);
    assert!(first.contains("\n@hash ix\n") && first.contains("\n@heap log\n0\tline 0\n"));
    for form in ["text", "hex", "json"] {
        let (out, new) = (format!("{form}.dump"), format!("{form}.db"));
        shop.ok(&["dump", "a.db", "--format", form, "--out", &out]);
        shop.ok(&["load", &new, &out]);
        shop.ok(&["check", &new]);
        assert_eq!(sorted(&shop.ok(&["dump", &new])), sorted(&first));
    }
    // With a gap, or other pages, numbers change, and someone should know.
    let id = first.lines().find(|line| line.ends_with("\tline 3")).unwrap();
    shop.ok(&["del", "a.db", id.split_once('\t').unwrap().0, "-t", "log"]);
    shop.ok(&["dump", "a.db", "--out", "gap.dump"]);
    let output = shop.run(&["load", "gap.db", "gap.dump"]);
    assert!(text(&output.stderr).contains("heap 'log' got other numbers"));
    assert_eq!(shop.ok(&["scan", "gap.db", "-t", "log", "--count"]), "499\n");
    let trees = shop.ok(&["trees", "gap.db", "--format", "csv"]);
    assert!(trees.contains("\nnothing,heap,") && trees.contains("\nempty,tree,"), "{trees}");
}

#[test]
fn a_store_that_was_not_closed_is_recovered_and_its_log_is_printed() {
    let shop = Shop::new();
    let db = millpond::Db::open(shop.path("live.db"), millpond::Options::new()).unwrap();
    let names = db.raw_tree("names").unwrap();
    db.transact(|tx| tx.tree(&names).put(b"ada", b"1815")).unwrap();
    let open = db.begin().unwrap();
    open.tree(&names).put(b"bob", b"never").unwrap();
    db.flush().unwrap();
    // What a power failure would leave.
    for (from, to) in [("live.db", "shop.db"), ("live.db-log", "shop.db-log")] {
        fs::copy(shop.path(from), shop.path(to)).unwrap();
    }
    let error = shop.fails(1, &["trees", "shop.db"]);
    assert!(error.contains("was not shut down, and has a log"), "{error}");
    // It is checked as it will be; its files stay as they are.
    let before = [fs::read(shop.path("shop.db")), fs::read(shop.path("shop.db-log"))];
    let check = shop.run(&["check", "shop.db"]);
    let (said, lines) = (text(&check.stderr), text(&check.stdout));
    assert_eq!((check.status.code(), lines.as_str()), (Some(0), ""), "{said}");
    assert!(said.contains("was not closed") && said.contains("no file was changed"), "{said}");
    let check = shop.run(&["check", "shop.db", "--unrecovered"]);
    assert_eq!(check.status.code(), Some(1));
    assert!(text(&check.stdout).contains("was not closed (process"));
    let stat = shop.ok(&["stat", "shop.db"]);
    assert!(stat.contains("names"), "{stat}");
    let after = [fs::read(shop.path("shop.db")), fs::read(shop.path("shop.db-log"))];
    for (before, after) in before.into_iter().zip(after) {
        assert!(before.unwrap() == after.unwrap());
    }
    fs::copy(shop.path("live.db"), shop.path("alone.db")).unwrap();
    let check = shop.run(&["check", "alone.db"]);
    assert_eq!(check.status.code(), Some(1));
    assert!(text(&check.stderr).contains("cannot be recovered"), "{}", text(&check.stderr));
    let error = shop.fails(1, &["recover", "alone.db"]);
    assert!(error.contains("alone.db-log is missing"), "{error}");
    let error = shop.fails(1, &["log", "alone.db"]);
    assert!(error.contains("no log at") && error.contains("alone.db-log"), "{error}");
    let log = shop.ok(&["log", "shop.db", "--format", "csv"]);
    assert!(log.contains(",commit,") && log.contains(",update,"), "{log}");
    let before = fs::read(shop.path("shop.db")).unwrap();
    let trial = shop.ok(&["recover", "shop.db", "--dry-run", "--format", "csv"]);
    assert!(trial.contains("transactions that had not ended,1"), "{trial}");
    assert!(trial.contains("changes of theirs undone,1"), "{trial}");
    assert_eq!(fs::read(shop.path("shop.db")).unwrap(), before);
    assert_eq!(shop.ok(&["recover", "shop.db", "--format", "csv"]).lines().count(), 9);
    assert_eq!(shop.ok(&["recover", "shop.db"]), "");
    assert_eq!(shop.ok(&["get", "shop.db", "ada"]).trim(), "1815");
    shop.fails(1, &["get", "shop.db", "bob"]);
    shop.ok(&["check", "shop.db"]);
    let error = shop.fails(1, &["log", "nowhere.db"]);
    assert!(error.contains("nowhere.db"), "{error}");
    drop((open, names, db));
}

/// A store with twenty commits whose log is damaged in the record that `damages` picks among the
/// rows of `millpond log`, by their positions and kinds.
fn damaged(shop: &Shop, file: &str, damages: impl Fn(&[(u64, String)]) -> u64) {
    let live = shop.path("live.db");
    let db = millpond::Db::open(&live, millpond::Options::new()).unwrap();
    let names = db.raw_tree("names").unwrap();
    for i in 0..20u8 {
        db.transact(|tx| tx.tree(&names).put(format!("key {i:02}").as_bytes(), b"here")).unwrap();
    }
    for end in ["", "-log"] {
        fs::copy(shop.path(&format!("live.db{end}")), shop.path(&format!("{file}{end}"))).unwrap();
    }
    drop(names);
    db.close().unwrap();
    for end in ["", "-log", ".stat"] {
        fs::remove_file(shop.path(&format!("live.db{end}"))).unwrap();
    }
    let rows: Vec<(u64, String)> = shop
        .ok(&["log", file, "--format", "csv"])
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect::<Vec<_>>())
        .map(|row| (row[0].parse().unwrap(), row[2].to_string()))
        .collect();
    let log = shop.path(&format!("{file}-log"));
    let mut bytes = fs::read(&log).unwrap();
    // All of it is in the first segment, behind two blocks of headers.
    bytes[8192 + damages(&rows) as usize + 12] ^= 4;
    fs::write(&log, bytes).unwrap();
}

/// A file of a store, and its log.
type Pair = (Vec<u8>, Vec<u8>);

/// A store of two lives: as its files are in the midst of the first one, closed, in the midst of
/// the second one, whose log begins behind a checkpoint, and closed again.
fn lives(shop: &Shop) -> [Pair; 4] {
    let files = || {
        let read = |name: &str| fs::read(shop.path(name)).unwrap();
        (read("live.db"), read("live.db-log"))
    };
    let mut pairs = Vec::new();
    for life in 0..2u8 {
        let db = millpond::Db::open(shop.path("live.db"), millpond::Options::new()).unwrap();
        let names = db.raw_tree("names").unwrap();
        for i in 0..200u8 {
            db.transact(|tx| tx.tree(&names).put(&[i, life], &[life; 100])).unwrap();
        }
        pairs.push(files());
        drop(names);
        db.close().unwrap();
        pairs.push(files());
    }
    pairs.try_into().unwrap()
}

/// A state of a store: its name, if the store opens, and the bytes of its data file and its log.
type Case<'a> = (&'a str, bool, &'a [u8], Option<&'a [u8]>);

#[test]
fn a_check_fails_for_whatever_keeps_a_store_from_opening() {
    let shop = Shop::new();
    let [(early, early_log), (closed, _), (late, late_log), (end, end_log)] = lives(&shop);
    let other = Shop::new();
    damaged(&other, "bad.db", |rows| {
        rows.iter().filter(|(_, kind)| kind == "commit").nth(12).unwrap().0
    });
    let bad = ["bad.db", "bad.db-log"].map(|name| fs::read(other.path(name)).unwrap());
    let garbage = vec![7; 100_000];
    let cases: [Case<'_>; 13] = [
        ("killed", true, &early, Some(&early_log)),
        ("killed in its second life", true, &late, Some(&late_log)),
        ("closed", true, &end, Some(&end_log)),
        ("closed, with a log of anything", false, &end, Some(&garbage)),
        ("killed, with a damaged log", false, &bad[0], Some(&bad[1])),
        ("killed, with a log of anything", false, &early, Some(&garbage)),
        ("killed, with a log cut to one block", false, &late, Some(&late_log[..4096])),
        ("killed, with an empty log", false, &late, Some(&[])),
        ("killed, without a log", false, &late, None),
        ("killed, with a log of its first life", false, &late, Some(&early_log)),
        ("of its first life, with a later log", false, &early, Some(&late_log)),
        ("closed, with a later log", false, &closed, Some(&late_log)),
        ("closed, with the log of a later end", false, &closed, Some(&end_log)),
    ];
    for (what, opens, data, log) in cases {
        fs::write(shop.path("shop.db"), data).unwrap();
        let _ = fs::remove_file(shop.path("shop.db-log"));
        if let Some(log) = log {
            fs::write(shop.path("shop.db-log"), log).unwrap();
        }
        let check = shop.run(&["check", "shop.db"]);
        let said = text(&check.stderr);
        let put = shop.run(&["put", "shop.db", "k", "v", "--tree", "names"]);
        let opened = put.status.code();
        let said = text(&check.stdout) + &said + &text(&put.stderr);
        assert_eq!(check.status.code(), Some(i32::from(!opens)), "{what}: {said} {opened:?}");
        assert_eq!(opened, Some(i32::from(!opens)), "{what}: {}", text(&put.stderr));
    }
}

#[test]
fn a_store_with_a_damaged_log_is_salvaged_as_it_was_at_the_damage() {
    let shop = Shop::new();
    damaged(&shop, "shop.db", |rows| {
        rows.iter().filter(|(_, kind)| kind == "commit").nth(12).unwrap().0
    });
    let files =
        || [shop.path("shop.db"), shop.path("shop.db-log")].map(|path| fs::read(path).unwrap());
    let before = files();
    for args in [&["recover", "shop.db"][..], &["put", "shop.db", "k", "v"]] {
        let error = shop.fails(1, args);
        assert!(error.contains("shop.db-log is damaged at position"), "{error}");
        assert!(error.contains("7 commits among them"), "{error}");
        assert!(error.contains("millpond recover FILE --salvage"), "{error}");
    }
    let error = shop.fails(1, &["recover", "shop.db"]);
    assert!(error.contains("\nnext: millpond recover shop.db --salvage --dry-run"), "{error}");
    let said = |args: &[&str]| {
        let output = shop.run(args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let error = text(&output.stderr);
        assert!(error.contains("all later commits are lost, 7 of which could be read"), "{error}");
        assert!(error.contains("the store is sound"), "{error}");
        text(&output.stdout)
    };
    let trial = said(&["recover", "shop.db", "--salvage", "--dry-run", "--format", "json"]);
    let trial: serde_json::Value = serde_json::from_str(&trial).unwrap();
    assert_eq!(trial["params"]["salvaged"], true);
    assert_eq!(files(), before, "nothing was changed");
    let done = said(&["recover", "shop.db", "--salvage", "--format", "csv"]);
    assert!(done.contains("commits among them,7\n"), "{done}");
    assert_eq!(shop.ok(&["scan", "shop.db", "--count"]), "12\n");
    assert_eq!(shop.ok(&["get", "shop.db", "key 11"]), "here\n");
    shop.fails(1, &["get", "shop.db", "key 12"]);
    shop.ok(&["check", "shop.db"]);
    let again = shop.run(&["recover", "shop.db", "--salvage"]);
    assert!(text(&again.stderr).contains("closed cleanly"), "{again:?}");
}

#[test]
fn what_cannot_be_salvaged_from_its_log_says_what_to_do_next() {
    let shop = Shop::new();
    damaged(&shop, "bad.db", |rows| rows.iter().rfind(|(_, kind)| kind == "checkpoint").unwrap().0);
    for salvage in [&["recover", "bad.db"][..], &["recover", "bad.db", "--salvage"]] {
        let error = shop.fails(1, salvage);
        assert!(error.contains("recovery would begin with the checkpoint there"), "{error}");
        let next = "\nnext: millpond dump bad.db --salvage --out bad.db.dump; millpond load \
                    bad.db.new bad.db.dump\n";
        assert!(error.ends_with(next), "{error}");
    }
    shop.run(&["dump", "bad.db", "--salvage", "--out", "bad.db.dump"]);
    shop.ok(&["load", "bad.db.new", "bad.db.dump"]);
    // With nothing wrong it is a recovery like any other.
    damaged(&shop, "good.db", |_| 100 << 10);
    let said = shop.run(&["recover", "good.db", "--salvage"]);
    assert!(said.status.success() && text(&said.stderr).contains("the log is sound"), "{said:?}");
    assert_eq!(shop.ok(&["scan", "good.db", "--count"]), "20\n");
    // What a store was closed with is not needed.
    fs::write(shop.path("good.db-log"), vec![7; 100_000]).unwrap();
    let said = shop.run(&["recover", "good.db", "--salvage"]);
    assert!(said.status.success() && text(&said.stderr).contains("nothing is lost"), "{said:?}");
    assert_eq!(shop.ok(&["scan", "good.db", "--count"]), "20\n");
}

#[test]
fn a_backup_is_a_store_with_the_same_entries() {
    let shop = Shop::new();
    let file = shop.filled();
    let said = shop.run(&["backup", file, "monday.db"]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    assert!(text(&said.stderr).contains("monday.db: a copy of shop.db"), "{said:?}");
    shop.ok(&["check", "monday.db"]);
    let entries = |file: &str| shop.ok(&["scan", file, "--tree", "rows"]);
    assert_eq!(entries("monday.db"), entries(file));
    assert!(shop.fails(1, &["backup", file, "monday.db"]).contains("monday.db exists"));
    assert!(shop.fails(1, &["backup", "none.db", "x.db"]).contains("there is no store at none.db"));
    assert!(!shop.path("none.db").exists() && !shop.path("x.db").exists());
    let db = millpond::Db::open(shop.path(file), millpond::Options::new()).unwrap();
    let error = shop.fails(1, &["backup", file, "tuesday.db"]);
    assert!(error.contains("in use by") && error.contains("Db::backup_to"), "{error}");
    db.close().unwrap();
}

#[test]
fn a_store_shrinks_when_what_was_made_last_is_gone() {
    let shop = Shop::new();
    let file = shop.filled();
    fs::write(shop.path("photo"), vec![7; 3 << 20]).unwrap();
    shop.ok(&["put", file, "photo", "--tree", "names", "--value-file", "photo"]);
    shop.ok(&["del", file, "photo", "--tree", "names"]);
    let before = fs::metadata(shop.path(file)).unwrap().len();
    let said = text(&shop.run(&["shrink", file]).stderr);
    assert!(said.contains("shop.db: shorter by"), "{said}");
    let after = fs::metadata(shop.path(file)).unwrap().len();
    assert!(before > 3 << 20 && after < 2 << 20, "{before}, {after}: {said}");
    shop.ok(&["check", file]);
    assert_eq!(shop.ok(&["scan", file, "--tree", "rows", "--count"]).trim(), "3000");
    // The earlier dump is removed, and the last one takes its name.
    shop.ok(&["put", file, "photo", "--tree", "names", "--value-file", "photo"]);
    let rows: String = (0..9000).map(|i| format!("{i:05}\t{i:0300}\n")).collect();
    let dump = format!("@millpond-dump 1 text\n@tree last\n{rows}@end 9000\n");
    fs::write(shop.path("last.dump"), dump).unwrap();
    shop.ok(&["load", "--add", file, "last.dump"]);
    shop.ok(&["del", file, "photo", "--tree", "names"]);
    let before = fs::metadata(shop.path(file)).unwrap().len();
    let said = text(&shop.run(&["shrink", file, "--quiet"]).stderr);
    let after = fs::metadata(shop.path(file)).unwrap().len();
    assert!(said.contains("pages moved") && !said.contains("; 0 pages"), "{said}");
    assert!(after < before - (2 << 20), "{before}, {after}: {said}");
    shop.ok(&["check", file]);
    assert_eq!(shop.ok(&["get", file, "04711", "--tree", "last"]).trim(), format!("{:0300}", 4711));
    assert_eq!(shop.ok(&["scan", file, "--tree", "last", "--count"]).trim(), "9000");
    assert!(shop.fails(1, &["shrink", "none.db"]).contains("there is no store at none.db"));
}
