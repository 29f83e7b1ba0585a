//! Devices, submission engines and the page store.
