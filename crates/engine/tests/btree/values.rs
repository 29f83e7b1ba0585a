//! Large values, whole and as streams, and the pages they use.

use std::io::{Read, Seek, SeekFrom};

use millpond::internals::btree::{BTree, StreamError, WriteError};
use millpond::internals::pool::Pages;

use crate::btree::harness::{Make, on_each};

on_each!(
    values_of_every_size_come_back,
    a_stream_is_written_and_read_piece_by_piece,
    a_source_that_fails_leaves_nothing_behind,
    a_reader_finds_out_that_its_value_was_replaced,
    pages_of_values_that_go_are_free_again,
    a_panic_in_an_update_leaves_the_tree_usable,
);

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| ((i / 7) ^ i) as u8).collect()
}

fn values_of_every_size_come_back<P: Pages>(make: Make<P>) {
    let tree = BTree::create(make(512), 1).unwrap();
    let data = 512 - 48;
    let fan = data / 8;
    let sizes = [
        0,
        1,
        54,
        96,
        300,
        data,
        data + 1,
        2 * data,
        fan * data,
        fan * data + 1,
        fan * data * 3 + 5,
    ];
    for (i, size) in sizes.into_iter().enumerate() {
        assert!(tree.insert(&[i as u8], &pattern(size)).unwrap());
    }
    assert_eq!(tree.check().unwrap().violations, []);
    for (i, size) in sizes.into_iter().enumerate() {
        assert_eq!(tree.get_owned(&[i as u8]).unwrap().unwrap(), pattern(size), "{size}");
        let reversed = tree.update_in_place(&[i as u8], <[u8]>::reverse).unwrap();
        assert!(reversed.is_some());
        let mut expected = pattern(size);
        expected.reverse();
        assert_eq!(tree.remove_returning(&[i as u8]).unwrap().unwrap(), expected);
    }
    assert_eq!(tree.check().unwrap().pages.len(), 1);
}

fn a_stream_is_written_and_read_piece_by_piece<P: Pages>(make: Make<P>) {
    let tree = BTree::create(make(4096), 1).unwrap();
    let value = pattern(3_000_000);
    for len in [0, 100, 5000, value.len()] {
        let wrote = tree.upsert_from(b"key", len as u64, &mut &value[..]).unwrap();
        assert_eq!(wrote, len > 0);
        let mut reader = tree.reader(b"key").unwrap().unwrap();
        assert_eq!((reader.len(), reader.is_empty()), (len as u64, len == 0));
        let mut back = Vec::new();
        reader.read_to_end(&mut back).unwrap();
        assert!(back == value[..len]);
    }
    let mut reader = tree.reader(b"key").unwrap().unwrap();
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..50 {
        let at = random.usize(..value.len());
        reader.seek(SeekFrom::Start(at as u64)).unwrap();
        let mut some = vec![0; random.usize(..9000).min(value.len() - at)];
        reader.read_exact(&mut some).unwrap();
        assert!(some == value[at..at + some.len()]);
    }
    assert!(reader.seek(SeekFrom::Current(-10_000_000)).is_err());
    assert!(tree.reader(b"other").unwrap().is_none());
    assert_eq!(tree.check().unwrap().violations, []);
}

fn a_source_that_fails_leaves_nothing_behind<P: Pages>(make: Make<P>) {
    let tree = BTree::create(make(512), 1).unwrap();
    tree.insert(b"key", b"before").unwrap();
    let short = tree.upsert_from(b"key", 10_000, &mut &pattern(9000)[..]);
    assert!(matches!(short, Err(StreamError::Short { read: 9000, len: 10_000 })), "{short:?}");
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("broken"))
        }
    }
    let failed = tree.upsert_from(b"key", 10_000, &mut pattern(5000).chain(Broken));
    assert!(matches!(failed, Err(StreamError::Source { read: 5000, .. })), "{failed:?}");
    let huge = tree.upsert_from(b"key", 2 << 30, &mut std::io::empty());
    let Err(StreamError::Write(WriteError::ValueTooLong { .. })) = huge else { panic!("{huge:?}") };
    assert_eq!(tree.get_owned(b"key").unwrap().unwrap(), b"before");
    assert_eq!(tree.check().unwrap().pages.len(), 1);
}

fn a_reader_finds_out_that_its_value_was_replaced<P: Pages>(make: Make<P>) {
    let tree = BTree::create(make(512), 1).unwrap();
    let value = pattern(200_000);
    tree.insert(b"key", &value).unwrap();
    let mut reader = tree.reader(b"key").unwrap().unwrap();
    let mut part = vec![0; 1000];
    reader.read_exact(&mut part).unwrap();
    tree.upsert(b"key", &value).unwrap();
    let mut rest = Vec::new();
    let error = reader.read_to_end(&mut rest).unwrap_err();
    assert!(error.to_string().contains("changed"), "{error}");
}

fn pages_of_values_that_go_are_free_again<P: Pages>(make: Make<P>) {
    let tree = BTree::create(make(512), 1).unwrap();
    for round in 0..20u8 {
        for k in 0..10u8 {
            assert_eq!(tree.upsert(&[k], &pattern(5000)).unwrap(), round > 0);
        }
        assert!(!tree.insert(&[3], &pattern(9000)).unwrap(), "it is there already");
        assert!(!tree.replace(b"none", &pattern(9000)).unwrap());
    }
    let stats = tree.stats().unwrap();
    assert_eq!((stats.overflow_values, stats.value_bytes), (10, 50_000));
    assert_eq!(tree.check().unwrap().pages.len() as u64 * 512, stats.total_bytes);
    tree.clear().unwrap();
    assert_eq!(tree.check().unwrap().pages.len(), 1);
    tree.destroy().unwrap();
}

fn a_panic_in_an_update_leaves_the_tree_usable<P: Pages>(make: Make<P>) {
    let tree = BTree::create(make(512), 1).unwrap();
    tree.insert(b"key", b"value").unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        tree.update_in_place(b"key", |bytes| {
            bytes[0] = b'V';
            panic!("as planned");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(tree.get_owned(b"key").unwrap().unwrap(), b"Value");
    assert!(tree.upsert(b"key", b"again").unwrap());
    assert_eq!(tree.check().unwrap().violations, []);
}
