//! The binary `millpond`.
fn main() {}
