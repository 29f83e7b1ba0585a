//! The entries of a hash index.

use std::marker::PhantomData;

use crate::api::scan::Scan;
use crate::api::tree::range::{decode_entry, decoded};
use crate::encoding::key::Key;
use crate::encoding::value::Value;
use crate::store::error::Error;

/// Iterator over the entries of a hash index. It ends after an error.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let sessions = db.hash_index::<String, u64>("sessions")?;
/// sessions.put("4f1c", &17)?;
/// for entry in &sessions {
///     assert_eq!(entry?, ("4f1c".to_string(), 17));
/// }
/// # Ok(()) }
/// ```
pub struct Entries<'t, K, V> {
    scan: Scan<'t>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K, V> Entries<'t, K, V> {
    pub(super) fn new(scan: Scan<'t>) -> Entries<'t, K, V> {
        Entries { scan, types: PhantomData }
    }
}

impl<K: Key, V: Value> Iterator for Entries<'_, K, V> {
    type Item = Result<(K, V), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self
            .scan
            .next(true)?
            .and_then(|entry| decoded(self.scan.name(), decode_entry(&entry.key, &entry.value)));
        if entry.is_err() {
            self.scan.end();
        }
        Some(entry)
    }
}
