//! All tests of the command line, in one program.

mod advise;
mod bench;
mod breakdown;
mod command_line;
mod compare;
mod faces;
mod interrupts;
mod laboratory;
mod numbers;
mod one_store;
mod overheads;
mod pace;
mod pages;
mod phases;
mod regret;
mod samples;
mod serve;
mod stores;
mod streams;
mod top;
mod tour;
mod typed;
