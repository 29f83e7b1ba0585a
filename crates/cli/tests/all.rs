//! All tests of the command line, in one program.

mod advise;
mod bench;
mod breakdown;
mod command_line;
mod compare;
mod faces;
mod factors;
mod interrupts;
mod laboratory;
mod numbers;
mod one_store;
mod overheads;
mod pace;
mod pages;
mod paper;
mod phases;
mod regret;
mod samples;
mod serve;
mod stores;
mod streams;
mod top;
mod tour;
mod typed;
