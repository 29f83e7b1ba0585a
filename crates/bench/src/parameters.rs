//! The parameters of a run, as messages name them.

use millpond_base::Parameter;

pub(crate) const DEVICE: Parameter = Parameter::new("device");
pub(crate) const FAST_WARM_UP: Parameter = Parameter::new("fast_warm_up");
pub(crate) const LOCKS: Parameter = Parameter::new("locks");
pub(crate) const LOG: Parameter = Parameter::new("log");
pub(crate) const RECORD: Parameter = Parameter::new("record");
