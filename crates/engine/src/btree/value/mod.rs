//! Values in overflow pages: layout, building, reading and freeing.

pub(crate) mod large;
pub(crate) mod layout;
pub(crate) mod overflow;
pub(crate) mod stream;
