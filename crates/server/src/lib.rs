//! Storage server: a block device with a second-tier cache, over the NBD protocol.
//!
//! ```no_run
//! use std::sync::Arc;
//! use millpond_server::serve::{Address, ServeOptions, Server};
//! use millpond_server::volume::{CacheSpec, Volume, VolumeSpec};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cache = CacheSpec {
//!     path: "/nvme/vol0.tier".into(),
//!     bytes: 64 << 30,
//!     policy: "tq".to_string(),
//!     seed: 1,
//!     write_back: false,
//! };
//! let spec = VolumeSpec { cache: Some(cache), ..VolumeSpec::new("/slow/vol0.img".as_ref()) };
//! let volume = Arc::new(Volume::open(&spec)?);
//! let address: Address = "127.0.0.1:10809".parse()?;
//! let server = Server::start(volume.clone(), &address, ServeOptions::default())?;
//! // … until it is enough:
//! server.stop();
//! volume.close()?;
//! # Ok(()) }
//! ```
//!
//! [`volume`] turns blocks into bytes, above any device; [`protocol`] has the messages; [`serve`]
//! has the connections and their worker threads; [`client`] is a device backed by such a server.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod client;
pub mod protocol;
pub mod serve;
pub mod volume;
mod wire;
