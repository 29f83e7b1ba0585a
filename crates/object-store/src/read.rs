//! Gets: parts from the cache, and missing parts from the object store.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use millpond_tier::Ticket;
use object_store::path::Path;
use object_store::{
    Error, Extensions, GetOptions, GetRange, GetResult, GetResultPayload, ObjectMeta, Result,
};

use crate::flights::{Flight, Seat, arrival};
use crate::front::Part;
use crate::hints::{Class, ReadPlan};
use crate::object::{Head, Identity, Object};
use crate::options::Freshness;
use crate::plan::{cut, parts_of, runs, windows};
use crate::registry::Known;
use crate::store::Core;

/// Maximum attempts of a get. An attempt fails if the object turns out to be another version than
/// assumed.
const TRIES: usize = 8;

/// A part to be fetched, with room for it in the cache if there is any.
type Pilot<'f> = (u64, Option<Ticket>, Flight<'f>);

/// Reason that parts could not be read.
pub(crate) enum Stop {
    /// The object is another version now.
    Changed,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

pub(crate) fn fault(text: String) -> Error {
    Error::Generic { store: "CachedStore", source: text.into() }
}

/// Hints of a get, and the caller's extensions.
#[derive(Clone)]
pub(crate) struct Why {
    pub class: Class,
    pub plan: ReadPlan,
    pub extensions: Extensions,
}

impl Core {
    pub async fn get(self: &Arc<Self>, path: &Path, options: GetOptions) -> Result<GetResult> {
        let (class, plan) = self.hints.read(path, &options);
        self.counters.get(class);
        let why = Why { class, plan, extensions: options.extensions.clone() };
        // The object store decides how a head request treats a range.
        let is_odd = options.version.is_some() || (options.head && options.range.is_some());
        if plan == ReadPlan::Pass || is_odd {
            return self.pass(path, options, class).await;
        }
        if options.head {
            return self.head(path, options, &why).await;
        }
        for _ in 0..TRIES {
            let Some(known) = self.registry.known(path) else { break };
            if let Some(result) = self.attempt(path, &options, &why, known).await? {
                return Ok(result);
            }
        }
        self.pass(path, options, class).await
    }

    /// Passes the get to the object store, and keeps nothing.
    pub async fn pass(&self, path: &Path, options: GetOptions, class: Class) -> Result<GetResult> {
        let is_head = options.head;
        let result = self.inner.get_opts(path, options).await?;
        let bytes = if is_head { 0 } else { result.range.end - result.range.start };
        self.counters.passed(class, bytes);
        Ok(result)
    }

    async fn head(&self, path: &Path, options: GetOptions, why: &Why) -> Result<GetResult> {
        let known = self.registry.known(path);
        let object = known.as_ref().and_then(|known| known.object.as_ref());
        if let Some(head) = object.and_then(|object| object.head.get())
            && self.freshness == Freshness::Immutable
        {
            options.check_preconditions(&head.meta)?;
            return Ok(GetResult {
                payload: GetResultPayload::Stream(stream::empty().boxed()),
                meta: head.meta.clone(),
                range: 0..0,
                attributes: head.attributes.clone(),
                extensions: Extensions::new(),
            });
        }
        let result = self.pass(path, options, why.class).await?;
        if let Some(known) = known.filter(|_| why.plan == ReadPlan::Keep) {
            let head = Head { meta: result.meta.clone(), attributes: result.attributes.clone() };
            self.learn(path, head, known.epoch);
        }
        Ok(result)
    }

    /// Records the head that a read found. Returns the object if its version can be relied on.
    pub fn learn(&self, path: &Path, head: Head, epoch: u64) -> Option<Arc<Object>> {
        if self.freshness == Freshness::Checked && !Identity::of(&head.meta).is_marked() {
            return None;
        }
        let (object, gone) = self.registry.learn(path, head, epoch);
        self.front.forget(gone);
        object
    }

    /// Tries to serve a get; `None` if the object was another version, so that the caller looks it
    /// up again.
    async fn attempt(
        self: &Arc<Self>,
        path: &Path,
        options: &GetOptions,
        why: &Why,
        known: Known,
    ) -> Result<Option<GetResult>> {
        let Some(object) = known.object else {
            return match why.plan {
                ReadPlan::Peek | ReadPlan::Last => {
                    self.pass(path, options.clone(), why.class).await.map(Some)
                }
                _ => self.touch(path, options, why).await,
            };
        };
        if !self.confirm(&object, why).await? {
            return Ok(None);
        }
        let Some(head) = object.head.get() else { return Ok(None) };
        options.check_preconditions(&head.meta)?;
        match wanted(options, object.identity.size) {
            Some(range) => self.serve(&object, range, None, why).await,
            None => self.pass(path, options.clone(), why.class).await.map(Some),
        }
    }

    /// Asks the object store for the version of the object, if it is not certain.
    async fn confirm(&self, object: &Arc<Object>, why: &Why) -> Result<bool> {
        let is_known = || self.freshness == Freshness::Immutable && object.head.get().is_some();
        if is_known() {
            return Ok(true);
        }
        let _turn = match self.freshness {
            Freshness::Immutable => Some(self.turns.wait(&object.path).await),
            Freshness::Checked => None,
        };
        if is_known() {
            return Ok(true);
        }
        let extensions = why.extensions.clone();
        let options = GetOptions { head: true, extensions, ..GetOptions::default() };
        self.counters.fetched(why.class, 0);
        match self.inner.get_opts(&object.path, options).await {
            Ok(found) if Identity::of(&found.meta).is(&object.identity) => {
                let _ = object.head.set(Head { meta: found.meta, attributes: found.attributes });
                Ok(true)
            }
            Ok(_) => {
                self.outdated(object);
                Ok(false)
            }
            Err(error) => {
                if matches!(error, Error::NotFound { .. }) {
                    self.outdated(object);
                }
                Err(error)
            }
        }
    }

    fn outdated(&self, object: &Object) {
        self.front.forget_parts(self.registry.drop_object(object));
    }

    /// Serves a get of `range`. If `first` is given, it is the range's first window.
    pub async fn serve(
        self: &Arc<Self>,
        object: &Arc<Object>,
        range: Range<u64>,
        first: Option<Vec<Bytes>>,
        why: &Why,
    ) -> Result<Option<GetResult>> {
        let Some(Head { meta, attributes }) = object.head.get().cloned() else { return Ok(None) };
        let part = self.front.part;
        let mut windows = windows(parts_of(&range, part), self.window);
        let first = match (windows.next(), first) {
            (None, _) => Vec::new(),
            (Some(parts), Some(bytes)) => cut(bytes, parts.start, part, &range),
            (Some(parts), None) => match self.window(object, parts, &range, why).await {
                Ok(bytes) => bytes,
                Err(Stop::Changed) => return Ok(None),
                Err(Stop::Failed(error)) => return Err(error),
            },
        };
        let (core, object, why, wanted) =
            (self.clone(), object.clone(), why.clone(), range.clone());
        let rest = stream::iter(windows).then(move |parts| {
            let (core, object, why) = (core.clone(), object.clone(), why.clone());
            let wanted = wanted.clone();
            async move {
                core.window(&object, parts, &wanted, &why).await.map_err(|stop| match stop {
                    Stop::Failed(error) => error,
                    Stop::Changed => {
                        fault(format!("{} was overwritten while it was read", object.path))
                    }
                })
            }
        });
        let all = |bytes: Vec<Bytes>| stream::iter(bytes.into_iter().map(Ok));
        let payload = all(first).chain(rest.map_ok(all).try_flatten());
        let payload = GetResultPayload::Stream(payload.boxed());
        let extensions = Extensions::new();
        Ok(Some(GetResult { payload, meta, range, attributes, extensions }))
    }

    /// Reads the bytes of `range` that are in `parts`.
    async fn window(
        &self,
        object: &Arc<Object>,
        parts: Range<u64>,
        range: &Range<u64>,
        why: &Why,
    ) -> Result<Vec<Bytes>, Stop> {
        let (part, base) = (self.front.part, object.base);
        if why.plan == ReadPlan::Again {
            self.front.forget_parts(base + parts.start..base + parts.end);
        }
        let bytes = self.parts(object, parts.clone(), why).await?;
        if why.plan == ReadPlan::Last {
            let is_end = range.end >= object.identity.size;
            let whole = if is_end { parts.end } else { parts.end.min(range.end / part) };
            self.front.forget_parts(base + parts.start..base + whole.max(parts.start));
        }
        Ok(cut(bytes, parts.start, part, range))
    }

    async fn parts(
        &self,
        object: &Arc<Object>,
        parts: Range<u64>,
        why: &Why,
    ) -> Result<Vec<Bytes>, Stop> {
        let length = |index| self.front.length(object.identity.size, index);
        let asked = parts.clone().map(|index| (object.base + index, length(index))).collect();
        let is_quiet = matches!(why.plan, ReadPlan::Peek | ReadPlan::Last);
        let answers = self.front.ask(asked, is_quiet).await;
        let mut found: Vec<Bytes> = vec![Bytes::new(); answers.len()];
        let (mut pilots, mut passengers) = (Vec::new(), Vec::new());
        for (index, (answer, place)) in parts.clone().zip(answers.into_iter().zip(&mut found)) {
            match answer {
                Part::Copy(bytes) => {
                    self.counters.hit(why.class, bytes.len() as u64);
                    *place = bytes;
                }
                Part::Absent(ticket) => {
                    self.counters.missed(why.class, 1);
                    match self.flights.join(object.base + index) {
                        Seat::Pilot(flight) => pilots.push((index, ticket, flight)),
                        Seat::Passenger(waiting) => passengers.push((index, ticket, waiting)),
                    }
                }
            }
        }
        let mut put = |index: u64, bytes: Bytes| {
            if let Some(place) = found.get_mut((index - parts.start) as usize) {
                *place = bytes;
            }
        };
        let (pilots, late) = self.not_late(object, pilots, why).await;
        late.into_iter().for_each(|(index, bytes)| put(index, bytes));
        let fetches = runs(pilots.iter().map(|(index, ..)| *index));
        let fetches = fetches.into_iter().map(|run| self.fetch(object, run, why));
        let fetched: Vec<Bytes> = try_join_all(fetches).await?.into_iter().flatten().collect();
        let mut kept = Vec::new();
        let mut flights = Vec::with_capacity(pilots.len());
        for ((index, ticket, flight), bytes) in pilots.into_iter().zip(fetched) {
            flight.arrive(bytes.clone());
            flights.push(flight);
            kept.extend(ticket.map(|ticket| (ticket, bytes.clone())));
            put(index, bytes);
        }
        for (index, ticket, waiting) in passengers {
            let bytes = match arrival(waiting).await {
                Some(bytes) => {
                    self.counters.shared(why.class);
                    bytes
                }
                // The request that fetched it failed, or gave up.
                None => self.fetch(object, index..index + 1, why).await?.concat().into(),
            };
            kept.extend(ticket.map(|ticket| (ticket, bytes.clone())));
            put(index, bytes);
        }
        // Until the copies are written, late requests get the bytes from the flights.
        self.front.keep(kept).await;
        drop(flights);
        Ok(found)
    }

    /// Looks into the cache again, since another request's flight may have ended between the first
    /// look and `join`. Returns the parts still to fetch, and those found.
    async fn not_late<'f>(
        &self,
        object: &Object,
        pilots: Vec<Pilot<'f>>,
        why: &Why,
    ) -> (Vec<Pilot<'f>>, Vec<(u64, Bytes)>) {
        if pilots.is_empty() {
            return (pilots, Vec::new());
        }
        let length = |index| self.front.length(object.identity.size, index);
        let asked = pilots.iter().map(|(index, ..)| (object.base + index, length(*index)));
        let answers = self.front.ask(asked.collect(), true).await;
        let (mut early, mut late) = (Vec::with_capacity(pilots.len()), Vec::new());
        for (pilot, answer) in pilots.into_iter().zip(answers) {
            if let Part::Copy(bytes) = answer {
                let (index, _, flight) = pilot;
                self.counters.shared(why.class);
                flight.arrive(bytes.clone());
                late.push((index, bytes));
            } else {
                early.push(pilot);
            }
        }
        (early, late)
    }

    /// Reads adjacent parts of this version from the object store.
    async fn fetch(
        &self,
        object: &Arc<Object>,
        parts: Range<u64>,
        why: &Why,
    ) -> Result<Vec<Bytes>, Stop> {
        let part = self.front.part;
        let range = parts.start * part..(parts.end * part).min(object.identity.size);
        let extensions = why.extensions.clone();
        let bounds = Some(GetRange::Bounded(range.clone()));
        let options = GetOptions { range: bounds, extensions, ..GetOptions::default() };
        self.counters.fetched(why.class, range.end - range.start);
        let result = match self.inner.get_opts(&object.path, options).await {
            Ok(result) => result,
            Err(error) => {
                if matches!(error, Error::NotFound { .. }) {
                    self.outdated(object);
                }
                return Err(error.into());
            }
        };
        if !Identity::of(&result.meta).is(&object.identity) {
            self.outdated(object);
            return Err(Stop::Changed);
        }
        let bytes = whole(result, &range).await?;
        Ok(split(&bytes, part))
    }
}

/// Reads all bytes of a range.
pub(crate) async fn whole(result: GetResult, range: &Range<u64>) -> Result<Bytes> {
    let ObjectMeta { location, .. } = result.meta.clone();
    let bytes = result.bytes().await?;
    if bytes.len() as u64 != range.end - range.start {
        let length = bytes.len();
        return Err(fault(format!("{length} bytes came of {location} for {range:?}: ask again")));
    }
    Ok(bytes)
}

/// Cuts bytes that begin with a part into parts. Several parts are copied: a slice would keep all
/// of them in memory as long as one of them is in use.
pub(crate) fn split(bytes: &Bytes, part: u64) -> Vec<Bytes> {
    if bytes.len() as u64 <= part {
        return Some(bytes.clone()).filter(|bytes| !bytes.is_empty()).into_iter().collect();
    }
    bytes.chunks(part as usize).map(Bytes::copy_from_slice).collect()
}

/// Returns the range that a get asks for, or `None` if it is invalid: the object store reports the
/// error then.
pub(crate) fn wanted(options: &GetOptions, size: u64) -> Option<Range<u64>> {
    match &options.range {
        None => Some(0..size),
        Some(range) => range.as_range(size).ok().filter(|range| !range.is_empty()),
    }
}
