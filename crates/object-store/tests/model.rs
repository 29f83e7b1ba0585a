//! Random requests to a cached store and to one without a cache, which must give the same answers:
//! bytes, ranges, tags, attributes and kinds of errors.

use std::sync::Arc;

use futures::TryStreamExt;
use millpond_base::Reason;
use millpond_object_store::{CachedStore, Class, Freshness, Hint, ReadPlan, WritePlan};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, Extensions, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, Result, UpdateVersion,
};

use crate::support::{POLICIES, cached, options, whole};

/// An answer, without its times.
#[derive(PartialEq, Debug)]
enum Answer {
    Done(String),
    Failed(&'static str),
}

fn kind(error: &object_store::Error) -> &'static str {
    use object_store::Error::*;
    match error {
        NotFound { .. } => "not found",
        AlreadyExists { .. } => "exists",
        Precondition { .. } => "precondition",
        NotModified { .. } => "not modified",
        NotImplemented { .. } => "not implemented",
        _ => "other",
    }
}

fn answer<T>(result: Result<T>, show: impl FnOnce(T) -> String) -> Answer {
    match result {
        Ok(value) => Answer::Done(show(value)),
        Err(error) => Answer::Failed(kind(&error)),
    }
}

async fn get(store: &dyn ObjectStore, path: &Path, options: GetOptions) -> Answer {
    let is_head = options.head;
    let read = async {
        let found = store.get_opts(path, options).await?;
        let (meta, attributes) = (found.meta.clone(), found.attributes.clone());
        // A head request ignores the range.
        let (range, bytes) = match is_head {
            true => (0..0, Vec::new()),
            false => (found.range.clone(), found.bytes().await?.to_vec()),
        };
        Ok((meta, attributes, range, bytes))
    };
    answer(read.await, |(meta, attributes, range, bytes)| {
        let (tag, size) = (meta.e_tag, meta.size);
        format!("{} {tag:?} {size} {attributes:?} {range:?} {bytes:x?}", meta.location)
    })
}

async fn list(store: &dyn ObjectStore) -> Answer {
    let all = store.list(None).map_ok(|meta| format!("{} {:?}", meta.location, meta.e_tag));
    let mut all: Vec<String> = all.try_collect().await.unwrap();
    all.sort();
    Answer::Done(all.concat())
}

struct Story {
    random: fastrand::Rng,
    versions: u64,
}

impl Story {
    fn path(&mut self) -> Path {
        Path::from(format!("a/{}", self.random.u8(0..6)))
    }

    fn hint(&mut self) -> Extensions {
        let reads =
            [ReadPlan::Keep, ReadPlan::Keep, ReadPlan::Pass, ReadPlan::Peek, ReadPlan::Last];
        let read = if self.random.u8(0..20) == 0 {
            ReadPlan::Again
        } else {
            reads[self.random.usize(0..5)]
        };
        let reasons = [Reason::None, Reason::Synch, Reason::Replace, Reason::Recov];
        let write = match self.random.usize(0..5) {
            4 => WritePlan::Pass,
            reason => WritePlan::Keep(reasons[reason]),
        };
        let class = Class::ALL[self.random.usize(0..Class::ALL.len())];
        let mut extensions = Extensions::new();
        if self.random.u8(0..4) > 0 {
            extensions.insert(Hint { class, read, write });
        }
        extensions
    }

    fn get_options(&mut self) -> GetOptions {
        let random = &mut self.random;
        let start = random.u64(0..45_000);
        let range = match random.u8(0..6) {
            0 => None,
            1 => Some(GetRange::Offset(start)),
            2 => Some(GetRange::Suffix(random.u64(0..45_000))),
            _ => Some(GetRange::Bounded(start..start + random.u64(0..12_000))),
        };
        let tag = || Some("3".to_string());
        let (mut if_match, mut if_none_match) = (None, None);
        match random.u8(0..16) {
            0 => if_match = tag(),
            1 => if_none_match = tag(),
            _ => {}
        }
        let head = random.u8(0..10) == 0;
        let extensions = self.hint();
        GetOptions { range, if_match, if_none_match, head, extensions, ..GetOptions::default() }
    }

    fn put_options(&mut self) -> PutOptions {
        let mode = match self.random.u8(0..8) {
            0 => PutMode::Create,
            1 => {
                let e_tag = Some(self.random.u32(0..20).to_string());
                PutMode::Update(UpdateVersion { e_tag, version: None })
            }
            _ => PutMode::Overwrite,
        };
        let mut attributes = Attributes::new();
        if self.random.bool() {
            attributes.insert(Attribute::ContentType, "text/plain".into());
        }
        PutOptions { mode, attributes, extensions: self.hint(), ..PutOptions::default() }
    }

    fn payload(&mut self) -> PutPayload {
        self.versions += 1;
        let mut bytes = bytes::Bytes::from(whole(self.versions));
        let mut chunks = Vec::new();
        while !bytes.is_empty() {
            chunks.push(bytes.split_to(self.random.usize(1..10_000).min(bytes.len())));
        }
        PutPayload::from_iter(chunks)
    }

    async fn upload(&mut self, stores: [&dyn ObjectStore; 2], path: &Path) -> [Answer; 2] {
        let options = PutMultipartOptions { extensions: self.hint(), ..Default::default() };
        let parts: Vec<PutPayload> = (0..self.random.usize(1..4)).map(|_| self.payload()).collect();
        let (ends_well, in_order) = (self.random.u8(0..4) > 0, self.random.bool());
        let upload = async |store: &dyn ObjectStore| {
            let mut upload = store.put_multipart_opts(path, options.clone()).await?;
            let mut sent: Vec<_> = parts.iter().map(|part| upload.put_part(part.clone())).collect();
            if !in_order {
                sent.reverse();
            }
            for part in sent {
                part.await?;
            }
            if ends_well { upload.complete().await.map(|_| ()) } else { upload.abort().await }
        };
        let show = |_| String::new();
        [answer(upload(stores[0]).await, show), answer(upload(stores[1]).await, show)]
    }

    /// Sends one request to both.
    async fn step(&mut self, stores: [&dyn ObjectStore; 2]) -> [Answer; 2] {
        let path = self.path();
        let [one, other] = stores;
        match self.random.u8(0..20) {
            0..=11 => {
                let options = self.get_options();
                [get(one, &path, options.clone()).await, get(other, &path, options).await]
            }
            12..=14 => {
                let (payload, options) = (self.payload(), self.put_options());
                let put = async |store: &dyn ObjectStore| {
                    let done = store.put_opts(&path, payload.clone(), options.clone()).await;
                    answer(done, |done| format!("{:?}", done.e_tag))
                };
                [put(one).await, put(other).await]
            }
            15 => self.upload(stores, &path).await,
            16 => {
                let show = |()| String::new();
                [answer(one.delete(&path).await, show), answer(other.delete(&path).await, show)]
            }
            17 | 18 => {
                let (to, is_copy, only_new) = (self.path(), self.random.bool(), self.random.bool());
                let moved = async |store: &dyn ObjectStore| {
                    let done = match (is_copy, only_new) {
                        (true, true) => store.copy_if_not_exists(&path, &to).await,
                        (true, false) => store.copy(&path, &to).await,
                        (false, true) => store.rename_if_not_exists(&path, &to).await,
                        (false, false) => store.rename(&path, &to).await,
                    };
                    answer(done, |()| String::new())
                };
                [moved(one).await, moved(other).await]
            }
            _ => [list(one).await, list(other).await],
        }
    }
}

async fn story(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let policy = POLICIES[random.usize(0..POLICIES.len())];
    let freshness = if random.bool() { Freshness::Immutable } else { Freshness::Checked };
    let options = options(policy, random.u64(8..60), freshness);
    let store: CachedStore = cached(Arc::new(InMemory::new()), options);
    let oracle = InMemory::new();
    let mut story = Story { random, versions: seed << 20 };
    for step in 0..150 {
        let [found, right] = story.step([&store, &oracle]).await;
        assert!(
            found == right,
            "{policy}, seed {seed}, step {step}: {found:.300?} / {right:.300?}"
        );
    }
    store.check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cached_store_answers_as_the_one_behind_it() {
    for seed in 0..400 {
        story(seed).await;
    }
}
