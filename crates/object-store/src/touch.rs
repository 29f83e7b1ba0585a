//! The first get of an object: its metadata and first bytes, in one request.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use object_store::path::Path;
use object_store::{Error, GetOptions, GetRange, GetResult, GetResultPayload, Result};

use crate::front::Part;
use crate::object::{Head, Identity, Object};
use crate::options::Freshness;
use crate::plan::{cut, parts_of};
use crate::read::{Why, split, wanted, whole};
use crate::store::Core;

impl Core {
    /// Serves the first get of an object; `None` if the object is known by now, so that the caller
    /// looks it up again.
    pub async fn touch(
        self: &Arc<Self>,
        path: &Path,
        options: &GetOptions,
        why: &Why,
    ) -> Result<Option<GetResult>> {
        let pass = || self.pass(path, options.clone(), why.class);
        let _turn = self.turns.wait(path).await;
        let Some(known) = self.registry.known(path) else { return pass().await.map(Some) };
        if known.object.is_some() {
            return Ok(None);
        }
        let Some(asked) = self.aligned(options) else {
            // The range counts from the end, and the size is not known.
            return match self.look(path, options, why, known.epoch).await? {
                true => Ok(None),
                false => pass().await.map(Some),
            };
        };
        let bounds = Some(GetRange::Bounded(asked.clone()));
        let result = match self
            .inner
            .get_opts(path, GetOptions { range: bounds, ..options.clone() })
            .await
        {
            Ok(result) => result,
            Err(error) => {
                self.counters.fetched(why.class, 0);
                return match error {
                    Error::NotFound { .. }
                    | Error::Precondition { .. }
                    | Error::NotModified { .. } => Err(error),
                    // The error may be due to the range, which differs from the caller's.
                    _ => pass().await.map(Some),
                };
            }
        };
        let head = Head { meta: result.meta.clone(), attributes: result.attributes.clone() };
        let there = asked.start..asked.end.min(head.meta.size);
        self.counters.fetched(why.class, there.end.saturating_sub(there.start));
        let Some(range) = wanted(options, head.meta.size).filter(|_| !there.is_empty()) else {
            return pass().await.map(Some);
        };
        let bytes = whole(result, &there).await?;
        let parts = parts_of(&there, self.front.part);
        self.counters.missed(why.class, parts.end - parts.start);
        let bytes = split(&bytes, self.front.part);
        match self.learn(path, head.clone(), known.epoch) {
            Some(object) => {
                self.keep_first(&object, parts, &bytes).await;
                self.serve(&object, range, Some(bytes), why).await
            }
            // Written in the meantime, or indistinguishable from another version.
            None if range.end <= there.end => {
                let bytes = cut(bytes, parts.start, self.front.part, &range);
                Ok(Some(answer(head, range, bytes)))
            }
            None => pass().await.map(Some),
        }
    }

    async fn keep_first(&self, object: &Arc<Object>, parts: Range<u64>, bytes: &[Bytes]) {
        let numbers = parts.map(|index| object.base + index);
        let asked = numbers.zip(bytes.iter().map(|bytes| bytes.len() as u64)).collect();
        let answers = self.front.ask(asked, false).await.into_iter().zip(bytes);
        let kept = answers.filter_map(|(answer, bytes)| match answer {
            Part::Absent(Some(ticket)) => Some((ticket, bytes.clone())),
            _ => None,
        });
        self.front.keep(kept.collect()).await;
    }

    /// Requests the head alone. Returns `true` if the object is known now.
    async fn look(&self, path: &Path, options: &GetOptions, why: &Why, epoch: u64) -> Result<bool> {
        self.counters.fetched(why.class, 0);
        let head = GetOptions { head: true, range: None, ..options.clone() };
        let found = self.inner.get_opts(path, head).await?;
        if self.freshness == Freshness::Checked && !Identity::of(&found.meta).is_marked() {
            return Ok(false);
        }
        let head = Head { meta: found.meta, attributes: found.attributes };
        Ok(self.learn(path, head, epoch).is_some())
    }

    /// Returns the first window of the requested range, extended to whole parts.
    fn aligned(&self, options: &GetOptions) -> Option<Range<u64>> {
        let part = self.front.part;
        let range = match &options.range {
            None => 0..u64::MAX,
            Some(GetRange::Offset(start)) => *start..u64::MAX,
            Some(GetRange::Bounded(range)) if !range.is_empty() => range.clone(),
            Some(GetRange::Bounded(_) | GetRange::Suffix(_)) => return None,
        };
        let start = range.start - range.start % part;
        let most = start.saturating_add(self.window * part);
        Some(start..range.end.checked_next_multiple_of(part).unwrap_or(u64::MAX).min(most))
    }
}

fn answer(head: Head, range: Range<u64>, bytes: Vec<Bytes>) -> GetResult {
    GetResult {
        payload: GetResultPayload::Stream(stream::iter(bytes.into_iter().map(Ok)).boxed()),
        meta: head.meta,
        range,
        attributes: head.attributes,
        extensions: object_store::Extensions::new(),
    }
}
