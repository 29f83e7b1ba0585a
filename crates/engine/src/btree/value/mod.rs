//! Values in overflow pages: their layout, and building, reading and freeing them.

pub(crate) mod large;
pub(crate) mod layout;
pub(crate) mod overflow;
pub(crate) mod stream;
