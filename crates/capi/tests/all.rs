//! The header; programs in C and C++ that are built and run, those of the documentation, too.

mod header;
mod programs;
mod samples;
