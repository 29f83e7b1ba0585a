//! The buffer pool: frames, latches, translation, replacement.
