//! The tests that the crate `object_store` provides for implementations.

use std::sync::Arc;

use millpond_object_store::{CachedStore, Freshness};
use object_store::integration;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;

use crate::support::{Far, POLICIES, cached, options};

async fn all_of(store: &CachedStore) {
    // In the order of that crate's own tests: some need an empty store.
    integration::put_get_delete_list(store).await;
    integration::list_with_offset_exclusivity(store).await;
    integration::get_opts(store).await;
    integration::list_uses_directories_correctly(store).await;
    integration::list_with_delimiter(store).await;
    integration::rename_and_copy(store).await;
    integration::copy_if_not_exists(store).await;
    integration::copy_rename_nonexistent_object(store).await;
    integration::stream_get(store).await;
    store.check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cached_store_passes_the_tests_of_the_interface() {
    for (at, policy) in POLICIES.into_iter().enumerate() {
        let freshness = [Freshness::Immutable, Freshness::Checked][at % 2];
        let store = cached(Arc::new(InMemory::new()), options(policy, 40, freshness));
        all_of(&store).await;
        integration::put_opts(&store, true).await;
        integration::put_get_attributes(&store).await;
        integration::multipart_race_condition(&store, true).await;
        integration::multipart_out_of_order(&store).await;
        store.check().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_it_does_over_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let inner = LocalFileSystem::new_with_prefix(folder.path()).unwrap();
    let far = Far::over(Arc::new(inner), 0.0, 1);
    let store = cached(far, options("tq", 100, Freshness::Immutable));
    all_of(&store).await;
    integration::put_opts(&store, false).await;
    integration::multipart_race_condition(&store, true).await;
    integration::multipart_out_of_order(&store).await;
}
