//! The header; programs in C and C++ that are built and run.

mod header;
mod programs;
