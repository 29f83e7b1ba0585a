//! The store file of this format version: it opens, reads back, and is what is written today.
//!
//! A change of the format bumps the version and adds a file beside the old one, which then has to
//! be refused by name. `MILLPOND_BLESS=1 cargo test -p millpond --test stores golden_file` writes
//! it.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use millpond::internals::io::{OpenError, PageStore, PageWrite};
use millpond::internals::page::superblock::{FORMAT_VERSION, SuperblockError};
use millpond::internals::page::{PAGE_HEADER, PageHeader, PageSize, PageType};
use millpond_base::{Lsn, PageId, Reason};
use millpond_device::{FileOptions, MemoryDevice};

/// Pages of the golden store: id, kind, level, fill.
const PAGES: [(u64, PageType, u8, u8); 5] = [
    (2, PageType::BTREE_LEAF, 0, 0x11),
    (3, PageType::BTREE_INNER, 1, 0x22),
    (5, PageType::OVERFLOW, 0, 0x33),
    (6, PageType::HASH_BUCKET, 0, 0x44),
    (7, PageType::HEAP_DATA, 0, 0x55),
];

fn golden_path(version: u32) -> PathBuf {
    let name = format!("tests/golden/store-v{version}.mill.gz");
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn header_of(id: u64, kind: PageType, level: u8) -> PageHeader {
    PageHeader { checksum: 0, lsn: Lsn(id << 32), page: PageId(id), owner: 9, kind, level }
}

/// The golden store as this code writes it.
fn image_of_today() -> Vec<u8> {
    let device = Arc::new(MemoryDevice::new());
    let store = PageStore::create_on(device.clone(), PageSize::KIB_4).unwrap();
    store.allocate_many(6).unwrap();
    for (id, kind, level, fill) in PAGES {
        let mut bytes = vec![fill; 4096];
        header_of(id, kind, level).write(&mut bytes);
        let mut write = [PageWrite::new(PageId(id), Reason::Replace, &mut bytes)];
        store.write_batch(&mut write).unwrap();
    }
    store.free(PageId(4)).unwrap();
    store.close(Some(PageId(3))).unwrap();
    device.to_bytes()
}

/// The golden store of this version, as it was written when the format was new.
fn golden_image() -> Vec<u8> {
    if std::env::var_os("MILLPOND_BLESS").is_some() {
        let mut file = GzEncoder::new(Vec::new(), Compression::best());
        file.write_all(&image_of_today()).unwrap();
        std::fs::write(golden_path(FORMAT_VERSION), file.finish().unwrap()).unwrap();
    }
    image_of_version(FORMAT_VERSION)
}

fn image_of_version(version: u32) -> Vec<u8> {
    let path = golden_path(version);
    let packed = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut image = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut image).unwrap();
    image
}

#[test]
fn the_golden_file_opens_and_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("golden.mill");
    std::fs::write(&path, golden_image()).unwrap();
    for read_only in [true, false] {
        let options = FileOptions { read_only, ..FileOptions::default() };
        let store = PageStore::open(&path, Some(PageSize::KIB_4), &options).unwrap();
        assert_eq!((store.pages(), store.catalog_root()), (128, Some(PageId(3))));
        assert_eq!(store.allocated_pages(), 2 + 5);
        assert!(!store.is_allocated(PageId(4)) && store.is_allocated(PageId(7)));
        for (id, kind, level, fill) in PAGES {
            let mut bytes = vec![0; 4096];
            store.read(PageId(id), &mut bytes).unwrap();
            let header = PageHeader { checksum: 0, ..PageHeader::read(&bytes) };
            assert_eq!(header, header_of(id, kind, level));
            assert!(bytes[PAGE_HEADER..].iter().all(|&b| b == fill));
        }
        store.close(store.catalog_root()).unwrap();
    }
}

#[test]
fn what_is_written_today_is_the_golden_file_but_for_its_uuid() {
    let mut images = [golden_image(), image_of_today()];
    for image in &mut images {
        image[..8].fill(0);
        image[48..64].fill(0);
    }
    let differs = images[0].iter().zip(&images[1]).position(|(a, b)| a != b);
    assert_eq!(differs, None, "first byte that differs");
    assert_eq!(images[0].len(), images[1].len());
}

/// Asserts that `image` is refused, with the version that it has and the one that is known.
fn assert_refused(image: &[u8], found: u32) {
    let device = Arc::new(MemoryDevice::from_bytes(image));
    let error = PageStore::open_on(device, None, false).unwrap_err();
    let OpenError::Superblock { error: source, .. } = &error else { panic!("{error:?}") };
    let known = FORMAT_VERSION;
    assert_eq!(source, &SuperblockError::Version { found, known });
    let text = error.to_string();
    for what in [&format!("version {found}"), &format!("version {known}"), "dump", "load"] {
        assert!(text.contains(what), "{text}");
    }
}

#[test]
fn a_golden_file_of_the_next_version_is_refused_with_both_versions_named() {
    let mut image = golden_image();
    image[40..44].copy_from_slice(&(FORMAT_VERSION + 1).to_le_bytes());
    assert_refused(&image, FORMAT_VERSION + 1);
    PageHeader::seal(PageId(0), &mut image[..4096]);
    assert_refused(&image, FORMAT_VERSION + 1);
}

#[test]
fn golden_files_of_former_versions_are_refused_with_both_versions_named() {
    for version in 1..FORMAT_VERSION {
        assert_refused(&image_of_version(version), version);
    }
}
