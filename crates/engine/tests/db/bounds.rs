//! The largest value of all, and the longest name.

use std::io::Read;
use std::path::Path;

use millpond::{Db, Error, ErrorKind, Options, RawTree};
use millpond_base::rounds::is_deep;

use super::place;

/// Bytes of the largest value.
const MOST: u64 = 1 << 30;

/// Bytes that tell their offset, up to an end.
struct Pattern {
    at: u64,
    end: u64,
}

fn byte(at: u64) -> u8 {
    (at ^ at >> 8 ^ at >> 16 ^ at >> 24) as u8
}

impl Read for Pattern {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let count = bytes.len().min((self.end - self.at) as usize);
        for byte_at in &mut bytes[..count] {
            *byte_at = byte(self.at);
            self.at += 1;
        }
        Ok(count)
    }
}

fn open(path: &Path) -> (Db, RawTree) {
    let db = Db::open(path, Options::new().memory(32 << 20)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    (db, tree)
}

#[test]
fn a_value_may_have_one_gibibyte_and_no_byte_more() {
    let (_folder, path) = place();
    let (db, tree) = open(&path);
    tree.put(b"k", b"before").unwrap();
    let mut source = Pattern { at: 0, end: u64::MAX };
    let error = tree.put_from(b"k", MOST + 1, &mut source).unwrap_err();
    assert_eq!((error.kind(), source.at), (ErrorKind::TooLong, 0), "{error}");
    // Zeros that nobody reads take no memory.
    let error = tree.put(b"k", &vec![0; MOST as usize + 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLong, "{error}");
    // The length is right, and only the source ends.
    let mut source = Pattern { at: 0, end: 3 << 20 };
    let error = tree.put_from(b"k", MOST, &mut source).unwrap_err();
    assert!(matches!(error, Error::Stream(_)) && source.at == source.end, "{error}");
    assert_eq!(tree.get(b"k").unwrap().as_deref(), Some(&b"before"[..]));
    assert!(db.check().unwrap().is_sound());
}

/// A value of 64 MiB, and in a deep run the largest.
#[test]
fn a_value_of_many_pages_is_written_read_and_removed() {
    let (_folder, path) = place();
    let (db, tree) = open(&path);
    let length = if is_deep() { MOST } else { 64 << 20 };
    assert!(!tree.put_from(b"k", length, Pattern { at: 0, end: length }).unwrap());
    drop(tree);
    db.close().unwrap();
    let (db, tree) = open(&path);
    let mut reader = tree.reader(b"k").unwrap().unwrap();
    let (mut at, mut part) = (0, vec![0; 1 << 20]);
    loop {
        let count = reader.read(&mut part).unwrap();
        if count == 0 {
            break;
        }
        assert!((at..).zip(&part[..count]).all(|(at, found)| byte(at) == *found), "from {at} on");
        at += count as u64;
    }
    assert_eq!(at, length);
    drop(reader);
    assert!(tree.delete(b"k").unwrap());
    assert!(db.check().unwrap().is_sound());
    let free = db.stats().free_pages * db.stats().page_size;
    assert!(free >= length, "{free} bytes are free");
}

#[test]
fn a_name_may_have_255_bytes_and_no_byte_more() {
    let (_folder, path) = place();
    let (db, _) = open(&path);
    let longest = "n".repeat(255);
    db.raw_tree(&longest).unwrap().put(b"k", b"v").unwrap();
    db.close().unwrap();
    let (db, _) = open(&path);
    assert_eq!(db.raw_tree(&longest).unwrap().get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    for name in [String::new(), "n".repeat(256)] {
        let refused = db.raw_tree(&name).map(drop);
        let Err(Error::Name { len, max: 255 }) = refused else { panic!("{refused:?}") };
        assert_eq!(len, name.len());
    }
}
