//! Any bytes of a client: the server ends the connection, and never panics or hangs.
#![no_main]

#[path = "../bodies/nbd.rs"]
#[allow(dead_code, reason = "the targets share their body with tests")]
mod body;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use millpond_server::serve::Server;

static SERVER: LazyLock<Server> = LazyLock::new(body::server);

fuzz_target!(|data: &[u8]| body::to_server(&SERVER, data));
