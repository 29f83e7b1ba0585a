//! The examples do what they say.

#[cfg(feature = "serde")]
#[allow(dead_code, reason = "its main is for cargo run")]
#[path = "../examples/guide_serde.rs"]
mod guide_serde;
#[allow(dead_code, reason = "its main is for cargo run")]
#[path = "../examples/hello.rs"]
mod hello;
#[allow(dead_code, reason = "its main is for cargo run")]
#[path = "../examples/ingest.rs"]
mod ingest;
#[allow(dead_code, reason = "its main is for cargo run")]
#[path = "../examples/read_in_place.rs"]
mod read_in_place;
#[allow(dead_code, reason = "its main is for cargo run")]
#[path = "../examples/secondary_index.rs"]
mod secondary_index;

#[test]
fn hello_runs_twice_on_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        hello::run(&dir.path().join("hello.mill")).unwrap();
    }
}

#[test]
fn secondary_index_runs_twice_on_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        secondary_index::run(&dir.path().join("index.mill")).unwrap();
    }
}

#[cfg(feature = "serde")]
#[test]
fn guide_serde_runs_twice_on_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        guide_serde::run(&dir.path().join("birds.mill")).unwrap();
    }
}

#[test]
fn ingest_puts_more_into_the_store_than_its_memory_holds() {
    let dir = tempfile::tempdir().unwrap();
    ingest::run(&dir.path().join("ingest.mill"), 40_000, 4 << 20).unwrap();
}

#[test]
fn read_in_place_prints_a_line_for_each_size_and_use() {
    let mut out = Vec::new();
    read_in_place::run(300, 2, &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert_eq!(out.lines().count(), 7, "{out}");
}
