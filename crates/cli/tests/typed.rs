//! Stores that know the types of their keys and values, at the command line.

use std::fs;

use crate::stores::Shop;

/// Entries of a dump, and what their trees are, without remarks.
fn without_remarks(dump: &str) -> String {
    let lines = dump.lines().filter(|line| !line.starts_with("# "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_dump_shows_typed_entries_as_a_scan_does_and_loads_as_before() {
    let shop = Shop::new();
    let types = ["--create", "--key-type", "(String, u32)", "--value-type", "Option<f64>"];
    for (key, value) in [(r#"("bolts", 8)"#, "0.5"), (r#"("nuts\n@end 1", 9)"#, "None")] {
        shop.ok(&[&["put", "n.db", key, value][..], &types].concat());
    }
    let scan = shop.ok(&["scan", "n.db"]);
    assert_eq!(scan, "(\"bolts\", 8)\t0.5\n(\"nuts\\n@end 1\", 9)\tNone\n");
    for how in [&["dump", "n.db"][..], &["dump", "n.db", "--salvage"]] {
        let dump = shop.ok(how);
        for line in scan.lines() {
            assert!(dump.contains(&format!("# {line}\n")), "{how:?} {dump}");
        }
    }
    let bare = shop.ok(&["dump", "n.db", "--bytes"]);
    assert!(!bare.contains("# (\"bolts\""), "{bare}");
    assert_eq!(without_remarks(&shop.ok(&["dump", "n.db"])), without_remarks(&bare));
    let json = shop.ok(&["dump", "n.db", "--format", "json"]);
    assert!(json.contains(r#""key_shown":"(\"bolts\", 8)""#), "{json}");
    assert!(json.contains(r#""value_shown":"None""#), "{json}");
    assert!(!shop.ok(&["dump", "n.db", "--format", "json", "--bytes"]).contains("_shown"));
    assert!(!shop.ok(&["dump", "n.db", "--format", "hex"]).contains("bolts"));
    for form in ["text", "hex", "json"] {
        let (out, new) = (format!("{form}.dump"), format!("{form}.db"));
        shop.ok(&["dump", "n.db", "--format", form, "--out", &out]);
        shop.ok(&["load", &new, &out]);
        assert_eq!(shop.ok(&["scan", &new]), scan);
    }
}

#[test]
fn a_dump_shows_what_is_text_as_text_beside_what_is_not() {
    let shop = Shop::new();
    let dump = "@millpond-dump 1 text\n@tree ages\tString\tu8\nada\t\\x24\n\\xff\t\\x25\n@end 2\n";
    shop.load("a.db", dump);
    let said = shop.ok(&["dump", "a.db"]);
    assert!(said.contains("# ada\t36\nada\t$\n"), "{said}");
    assert!(said.contains("# \\xff\t37\n\\xff\t%\n"), "{said}");
}

#[test]
fn bytes_that_are_no_key_or_value_of_the_stores_types_are_not_put() {
    let shop = Shop::new();
    let dump = "@millpond-dump 1 text\n@tree ages\tString\tu8\nada\t\\x24\n\\xfe\t\\x25\n\
                @heap log\t\tString\n1\tline\n@tree raw\tVec<u8>\tVec<u8>\n@end 3\n";
    shop.load("a.db", dump);
    let before = shop.ok(&["dump", "a.db"]);
    fs::write(shop.path("three"), b"abc").unwrap();
    fs::write(shop.path("no text"), [0xFF]).unwrap();
    for args in [
        &["\\xff", "7"][..],
        &["0xff", "7"],
        &["ff", "07", "--hex"],
        &["\\xff", "7", "--key-type", "text"],
    ] {
        let error = shop.fails(2, &[&["put", "a.db", "--tree", "ages"], args].concat());
        assert!(error.contains("keys of 'ages' are String"), "{args:?}: {error}");
        assert!(error.contains("at byte 0"), "{args:?}: {error}");
    }
    for args in [
        &["626f62", "0102", "--hex"][..],
        &["bob", "12", "--value-type", "text"],
        &["bob", "--value-file", "three"],
    ] {
        let error = shop.fails(2, &[&["put", "a.db", "--tree", "ages"], args].concat());
        assert!(error.contains("values of 'ages' are u8"), "{args:?}: {error}");
    }
    for args in [&["new", "\\xff"][..], &["new", "--value-file", "no text"]] {
        let error = shop.fails(2, &[&["put", "a.db", "--tree", "log"], args].concat());
        assert!(error.contains("values of 'log' are String"), "{args:?}: {error}");
    }
    assert_eq!(shop.ok(&["dump", "a.db"]), before);
    // What another program wrote can be read, and removed.
    assert_eq!(shop.ok(&["get", "a.db", "\\xfe", "--tree", "ages"]), "37\n");
    shop.ok(&["del", "a.db", "\\xfe", "--tree", "ages"]);
    shop.ok(&["put", "a.db", "\\xff", "--value-file", "no text", "--tree", "raw"]);
}

#[test]
fn a_key_of_another_type_is_not_looked_for() {
    let shop = Shop::new();
    let types = ["--create", "--key-type", "u64", "--value-type", "u8"];
    shop.ok(&[&["put", "n.db", "42", "7"][..], &types].concat());
    let says = "keys of 'main' are u64, not u32";
    for args in [
        &["get", "n.db", "42", "--key-type", "u32"][..],
        &["scan", "n.db", "--from", "42", "--key-type", "u32"],
        &["scan", "n.db", "--to", "42", "--key-type", "u32"],
    ] {
        let error = shop.fails(2, args);
        assert!(error.contains(says), "{args:?}: {error}");
    }
    assert_eq!(shop.ok(&["get", "n.db", "000000000000002a", "--key-type", "hex"]), "7\n");
    assert_eq!(shop.ok(&["scan", "n.db", "--key-type", "u32"]), "0x000000000000002a\t7\n");
}

#[test]
fn a_key_is_looked_for_by_a_type_where_only_a_program_knows_the_trees_own() {
    let shop = Shop::new();
    let key = "\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x07";
    shop.load(
        "a.db",
        &format!("@millpond-dump 1 text\n@tree t\tOrderId\tu8\n{key}\t\\x24\n@end 1\n"),
    );
    let asked = ["--key-type", "u64"];
    assert_eq!(shop.ok(&[&["get", "a.db", "7"][..], &asked].concat()), "36\n");
    for bound in ["--from", "--to"] {
        let at = if bound == "--from" { "7" } else { "8" };
        assert_eq!(shop.ok(&[&["scan", "a.db", bound, at][..], &asked].concat()), "7\t36\n");
    }
    for args in [&["put", "a.db", "8", "1"][..], &["del", "a.db", "7"]] {
        let error = shop.fails(2, &[args, &asked].concat());
        assert!(error.contains("keys of 't' are OrderId, not u64"), "{args:?}: {error}");
    }
}

#[test]
fn an_option_of_a_generated_trace_that_nothing_reads_is_refused() {
    let shop = Shop::new();
    let generate = ["trace", "gen", "zipf-ro", "refs=10", "--out", "t.txt"];
    for (option, says) in [
        (&["--pool", "10"][..], "--from"),
        (&["--readahead"], "--from"),
        (&["--dirty", "10%"], "--from"),
        (&["--columns", "page=1"], "--columns is about a trace that is read"),
        (&["--page-size", "8192"], "--page-size is about a trace that is read"),
        (&["--map-ids"], "--map-ids is about a trace that is read"),
    ] {
        let error = shop.fails(2, &[&generate[..], option].concat());
        assert!(error.contains(says), "{option:?}: {error}");
    }
    assert!(!shop.path("t.txt").exists());
}
