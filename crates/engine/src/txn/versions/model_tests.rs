//! Versions compared with a model: all of them, in the order of their puts.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::Location;
use std::sync::Arc;

use crate::io::SpillFile;
use crate::txn::before_image::BeforeImage;
use crate::txn::bounds::Bounds;
use crate::txn::commit_stamp::CommitStamp;
use crate::txn::versions::reader::Reader;
use crate::txn::versions::version::Image;
use crate::txn::versions::version_store::VersionStore;
use crate::txn::versions::window::Window;

const TREE: u32 = 7;

type Value = Option<Vec<u8>>;
/// Earlier values of a key, each with the timestamp of the commit that changed it.
type Chain = Vec<(Value, u64)>;

struct Model {
    versions: VersionStore,
    all: BTreeMap<Vec<u8>, Chain>,
    /// The present entries.
    now: BTreeMap<Vec<u8>, Vec<u8>>,
    clock: u64,
}

/// Keys of several lengths, with prefixes in common, among them the empty one.
fn key(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut key = vec![b'k'; random.usize(0..4) * 5];
    let len = random.usize(0..7);
    key.extend(std::iter::repeat_with(|| random.u8(0..4)).take(len));
    key
}

fn value_of(image: Option<Image<'_>>) -> Value {
    match image? {
        Image::Bytes(value) => Some(value.to_vec()),
        Image::Apart(BeforeImage::Here(value)) => Some(value.to_vec()),
        Image::Apart(BeforeImage::Spilled(_)) => panic!("no value is that large"),
    }
}

impl Model {
    /// Changes some entries as a writer, and commits.
    fn write(&mut self, random: &mut fastrand::Rng) {
        let stamp = CommitStamp::new();
        let mut changed = Vec::new();
        for _ in 0..random.usize(1..4) {
            let key = key(random);
            let before = self.now.get(&key).cloned();
            let image = before.as_deref().map(Image::Bytes);
            self.versions.put(TREE, &key, &stamp, image);
            if !self.versions.wants(TREE, &key, &stamp) {
                // A writer's second version of a key is ignored.
                self.versions.put(TREE, &key, &stamp, Some(Image::Bytes(b"never")));
            }
            if !changed.contains(&key) {
                changed.push(key.clone());
                self.all.entry(key.clone()).or_default().push((before, self.clock + 1));
            }
            match random.usize(0..8) {
                0 => drop(self.now.remove(&key)),
                1 => drop(self.now.insert(key, vec![random.u8(..); 5000])),
                _ => drop(self.now.insert(key, vec![random.u8(..); random.usize(0..3) * 40])),
            }
        }
        self.versions.end_writer(&stamp);
        self.clock += 1;
    }

    fn seen(&self, chain: &Chain, reader: &Reader) -> Option<Value> {
        chain.iter().find(|(_, ended)| *ended > reader.timestamp).map(|(value, _)| value.clone())
    }

    /// Compares a snapshot's view of one key, and of a range.
    fn check(&self, reader: &Reader, random: &mut fastrand::Rng) {
        let (one, mut out) = (key(random), Window::default());
        self.versions.seen(reader, TREE, &one, &mut out).unwrap();
        let seen = (out.len() > 0).then(|| value_of(out.before(0)));
        assert_eq!(seen, self.all.get(&one).and_then(|chain| self.seen(chain, reader)), "{one:?}");

        let mut ends = [key(random), key(random)];
        ends.sort();
        let bound = |key, random: &mut fastrand::Rng| match random.u8(0..5) {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(key),
            _ => Bound::Included(key),
        };
        let (lower, upper) = (bound(&*ends[0], random), bound(&*ends[1], random));
        if ends[0] == ends[1] && (lower, upper) != (Bound::Included(&*ends[0]), lower) {
            return;
        }
        let (forward, limit) = (random.bool(), random.usize(1..40));
        let wanted = self.all.range::<[u8], _>((lower, upper));
        let mut wanted: Vec<_> = wanted
            .filter_map(|(key, chain)| Some((key.clone(), self.seen(chain, reader)?)))
            .collect();
        if !forward {
            wanted.reverse();
        }
        out.clear();
        let bounds = Bounds { lower, upper };
        let more = self.versions.window(reader, TREE, bounds, forward, limit, &mut out);
        assert_eq!(more.unwrap(), wanted.len() >= limit);
        wanted.truncate(limit);
        let found: Vec<_> = out.iter().map(|(key, it)| (key.to_vec(), value_of(it))).collect();
        assert_eq!(found, wanted, "{lower:?} to {upper:?}");
    }
}

/// Writes, begins and ends snapshots, and looks up keys, at random. Only versions that nobody needs
/// may be dropped.
fn run(seed: u64, limit: usize, spill: Option<Arc<SpillFile>>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let versions = VersionStore::new(limit, spill);
    let (all, now) = (BTreeMap::new(), BTreeMap::new());
    let mut model = Model { versions, all, now, clock: 1 };
    let mut readers: Vec<Arc<Reader>> = Vec::new();
    for _ in 0..4000 {
        match random.usize(0..40) {
            0 if readers.len() < 5 => {
                readers.push(model.versions.begin(Location::caller(), |_| Ok(())).unwrap());
            }
            1 if readers.len() > 1 => {
                let gone = readers.swap_remove(random.usize(0..readers.len()));
                model.versions.end(&gone);
            }
            2..20 if !readers.is_empty() => {
                let reader = random.choice(&readers).unwrap();
                model.versions.check_lost(reader).unwrap();
                model.check(reader, &mut random);
            }
            _ if !readers.is_empty() => model.write(&mut random),
            _ => {}
        }
    }
    for reader in readers {
        model.versions.end(&reader);
    }
    assert_eq!(model.versions.bytes(), 0);
}

#[test]
fn versions_in_memory_are_those_of_the_model() {
    for seed in 0..8 {
        run(seed, 1 << 30, None);
    }
}

#[test]
fn versions_in_the_spill_file_are_those_of_the_model() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 8..16 {
        let spill = SpillFile::beside(&folder.path().join(seed.to_string()), 1 << 30);
        run(seed, 40 << 10, Some(spill));
    }
}
