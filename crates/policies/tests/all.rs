//! All tests of the policies from outside, in one program: each program compiles the policies anew.

mod conformance;
mod degenerate;
mod mock_pool;
mod model;
mod paper_twins;
mod stress;
mod twins;
