//! Generation of a trace from a generator's name and parameters.

use millpond_base::Seed;
use millpond_base::nearest::nearest;

use crate::trace::{Source, TraceError};

use super::btree::Btree;
use super::dynzipf::DynZipf;
use super::exponential::Exponential;
use super::info::GENERATORS;
use super::params::Params;
use super::patterns::{Correlated, Looping, Temporal};
use super::stream::Stream;
use super::tpce::Tpce;
use super::uniform::Uniform;
use super::zipf_ro::ZipfRo;

/// Returns the trace of generator `id` with these parameters and this seed.
///
/// The same id, parameters and seed always give the same trace. Missing parameters have the
/// defaults of [`GENERATORS`].
///
/// # Errors
/// [`TraceError::Options`] for an unknown generator or parameter (with the nearest name), and for
/// a value outside its range.
pub fn generate(
    id: &str,
    given: &[(String, String)],
    seed: Seed,
) -> Result<Box<dyn Source>, TraceError> {
    let Some(info) = GENERATORS.iter().find(|g| g.id == id) else {
        let hint = match nearest(id, GENERATORS.iter().map(|g| g.id)) {
            Some(near) => format!("did you mean '{near}'?"),
            None => {
                let all: Vec<&str> = GENERATORS.iter().map(|g| g.id).collect();
                format!("known are {}", all.join(", "))
            }
        };
        return Err(TraceError::Options(format!("unknown generator '{id}': {hint}")));
    };
    let params = Params::new(info, given)?;
    let seed = seed.derive(id);
    Ok(match id {
        "zipf-ro" | "probabilistic" => Box::new(Stream(ZipfRo::new(&params, seed))),
        "dynzipf-ro" => Box::new(Stream(DynZipf::read_only(&params, seed))),
        "dynzipf-rw" => Box::new(Stream(DynZipf::read_write(&params, seed))),
        "tpce-like" => Box::new(Stream(Tpce::new(&params, seed)?)),
        "sequential" => Box::new(Stream(Looping::once(&params))),
        "correlated" => Box::new(Stream(Correlated::new(&params, seed))),
        "looping" => Box::new(Stream(Looping::new(&params))),
        "temporal" => Box::new(Stream(Temporal::new(&params))),
        "uniform" => Box::new(Stream(Uniform::new(&params, seed))),
        "exponential" => Box::new(Stream(Exponential::new(&params, seed))),
        _ => Box::new(Stream(Btree::new(&params, seed))),
    })
}

/// Splits `pages=10k,theta=0.8` into names and values; an empty text has no parameter.
///
/// # Errors
/// [`TraceError::Options`] if a part is not like `name=value`.
pub fn parse_params(text: &str) -> Result<Vec<(String, String)>, TraceError> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| match part.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_string(), value.trim().to_string())),
            None => Err(TraceError::Options(format!("'{part}' is not like name=value"))),
        })
        .collect()
}
