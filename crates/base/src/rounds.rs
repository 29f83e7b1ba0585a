//! Length of randomised tests: a few rounds with every change, many with `--deep`.

use std::sync::LazyLock;

/// Returns `true` if tests run their long counts: `cargo xtask test --deep` sets `MILLPOND_DEEP`.
pub fn is_deep() -> bool {
    static DEEP: LazyLock<bool> = LazyLock::new(|| std::env::var_os("MILLPOND_DEEP").is_some());
    *DEEP
}

/// Returns `deep` in a deep run of the tests, otherwise `quick`.
///
/// The quick count is enough for the mistakes that the test was written for; the deep count looks
/// for others.
pub fn rounds<N>(quick: N, deep: N) -> N {
    if is_deep() { deep } else { quick }
}
