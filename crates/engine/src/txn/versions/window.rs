//! Windows: buffers with copies of a snapshot's view of a range of keys.

use crate::txn::before_image::BeforeImage;
use crate::txn::versions::version::Image;

/// Position of a key or a value in a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct BufferSpan {
    at: u32,
    pub(super) len: u32,
}

impl BufferSpan {
    /// Appends `bytes` to `buffer`, which holds less than 4 GiB.
    #[inline]
    pub(super) fn append(buffer: &mut Vec<u8>, bytes: &[u8]) -> BufferSpan {
        debug_assert!(u32::try_from(buffer.len() + bytes.len()).is_ok(), "a small buffer");
        let at = buffer.len() as u32;
        buffer.extend_from_slice(bytes);
        BufferSpan { at, len: bytes.len() as u32 }
    }

    fn range(self) -> std::ops::Range<usize> {
        self.at as usize..self.at as usize + self.len as usize
    }

    /// Returns the bytes.
    #[inline]
    pub(super) fn of(self, buffer: &[u8]) -> &[u8] {
        buffer.get(self.range()).unwrap_or(&[])
    }

    /// Returns the bytes, to be changed.
    pub(super) fn of_mut(self, buffer: &mut [u8]) -> &mut [u8] {
        buffer.get_mut(self.range()).unwrap_or_default()
    }

    /// Returns the place in a copy of the buffer that begins at `base`.
    fn behind(self, base: u32) -> BufferSpan {
        BufferSpan { at: self.at + base, ..self }
    }
}

/// A before image of a window.
enum Copied {
    Absent,
    Bytes(BufferSpan),
    Apart(BeforeImage),
}

struct Row {
    key: BufferSpan,
    before: Copied,
    ended: u64,
}

/// A snapshot's view of a range of keys. It has the keys with a version for the snapshot, in the
/// order of the look-up. Each comes with its before image and the commit timestamp of the writer
/// that replaced it.
#[derive(Default)]
pub(in crate::txn) struct Window {
    bytes: Vec<u8>,
    rows: Vec<Row>,
}

impl Window {
    /// Returns the number of keys.
    #[inline]
    pub(in crate::txn) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Clears the window.
    pub(in crate::txn) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// Appends a key.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8], before: Option<Image<'_>>, ended: u64) {
        let key = BufferSpan::append(&mut self.bytes, key);
        let before = match before {
            None => Copied::Absent,
            Some(Image::Bytes(value)) => Copied::Bytes(BufferSpan::append(&mut self.bytes, value)),
            Some(Image::Apart(image)) => Copied::Apart(image.clone()),
        };
        self.rows.push(Row { key, before, ended });
    }

    /// Copies a buffer for [`Window::push_copied`], and returns the beginning of the copy.
    pub(super) fn copy(&mut self, buffer: &[u8]) -> u32 {
        BufferSpan::append(&mut self.bytes, buffer).at
    }

    /// Appends a key and a before image of a buffer whose copy begins at `base`.
    #[inline]
    pub(super) fn push_copied(
        &mut self,
        base: u32,
        key: BufferSpan,
        before: BufferSpan,
        ended: u64,
    ) {
        let (key, before) = (key.behind(base), Copied::Bytes(before.behind(base)));
        self.rows.push(Row { key, before, ended });
    }

    /// Returns the key with number `row`; `None` behind the last one.
    #[inline]
    pub(in crate::txn) fn key(&self, row: usize) -> Option<&[u8]> {
        Some(self.rows.get(row)?.key.of(&self.bytes))
    }

    /// Returns the last key.
    pub(in crate::txn) fn last(&self) -> Option<&[u8]> {
        self.key(self.rows.len().checked_sub(1)?)
    }

    /// Returns the snapshot's value of the key with number `row`; `None` if there was no entry.
    #[inline]
    pub(in crate::txn) fn before(&self, row: usize) -> Option<Image<'_>> {
        match &self.rows.get(row)?.before {
            Copied::Absent => None,
            Copied::Bytes(span) => Some(Image::Bytes(span.of(&self.bytes))),
            Copied::Apart(image) => Some(Image::Apart(image)),
        }
    }

    /// Returns the commit timestamp of the writer that replaced the before image with number `row`.
    pub(super) fn ended(&self, row: usize) -> u64 {
        self.rows.get(row).map_or(0, |row| row.ended)
    }

    /// Hides entries that were changed after `timestamp`: they count as absent.
    pub(in crate::txn) fn hide_after(&mut self, timestamp: u64) {
        for row in self.rows.iter_mut().filter(|row| row.ended > timestamp) {
            row.before = Copied::Absent;
        }
    }

    /// Drops the keys from number `rows` on.
    pub(in crate::txn) fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
    }

    /// Returns the keys with the snapshot's values.
    pub(in crate::txn) fn iter(&self) -> impl Iterator<Item = (&[u8], Option<Image<'_>>)> {
        (0..self.rows.len()).filter_map(|row| Some((self.key(row)?, self.before(row))))
    }
}
