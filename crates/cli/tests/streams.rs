//! Values, dumps and logs that come from elsewhere than a file of a known length.

use std::io::Write;
use std::process::Stdio;

use crate::stores::Shop;

#[test]
fn a_value_is_read_from_whatever_gives_bytes() {
    let shop = Shop::new();
    shop.ok(&["put", "a.db", "k", "old", "--create"]);
    let mut put = shop.command(&["put", "a.db", "k", "--value-file", "/dev/stdin"]);
    let mut child = put.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"through a pipe").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(shop.ok(&["get", "a.db", "k"]), "through a pipe\n");
    // A file that says that it has no bytes, and has some.
    shop.ok(&["put", "a.db", "k", "--value-file", "/proc/version"]);
    let version = std::fs::read_to_string("/proc/version").unwrap();
    assert_eq!(shop.ok(&["get", "a.db", "k", "--raw"]), version);
    std::fs::write(shop.path("empty"), "").unwrap();
    shop.ok(&["put", "a.db", "k", "--value-file", "empty"]);
    assert_eq!(shop.ok(&["get", "a.db", "k", "--raw"]), "");
}

#[test]
fn what_follows_the_end_of_a_dump_is_an_error() {
    let shop = Shop::new();
    for form in ["text", "hex", "json"] {
        let name = format!("{form}.db");
        shop.load(&name, "@millpond-dump 1 text\n@tree t\na\t1\n@end 1\n\n");
        let dump = shop.ok(&["dump", &name, "--format", form]);
        std::fs::write(shop.path("two"), dump.repeat(2)).unwrap();
        let said = shop.fails(1, &["load", "two.db", "two"]);
        assert!(said.contains("more follows behind `@end`"), "{form}: {said}");
        assert_eq!(shop.ok(&["get", "two.db", "a"]), "1\n", "{form}");
        std::fs::remove_file(shop.path("two.db")).unwrap();
        std::fs::remove_file(shop.path("two.db-log")).unwrap();
        let _ = std::fs::remove_file(shop.path("two.db.stat"));
    }
}

#[test]
fn the_records_of_a_sound_log_are_shown_as_sound() {
    let shop = Shop::new();
    shop.ok(&["put", "a.db", "k", "v", "--create"]);
    let log = shop.ok(&["log", "a.db"]);
    assert!(log.contains("is durable") && !log.contains("damaged"), "{log}");
}
