//! The settings that all files of a folder share.

use serde_json::Value as Json;

use super::unit::{Settings, TraceFile};
use crate::sweep::Plan;

/// Returns the settings of a folder's files: the plan's settings, and the way in which traces are
/// read. Rows do not state how their trace was read, so a folder has one way. An option that
/// differs between traces is a list.
pub fn common_settings(plan: &Plan, traces: &[TraceFile]) -> Json {
    let mut common = Settings::of(plan).json();
    let ways: Vec<Json> = traces.iter().map(TraceFile::reading).collect();
    let options = ways.first().and_then(Json::as_object);
    for option in options.into_iter().flat_map(|options| options.keys()) {
        let mut values: Vec<Json> = ways.iter().map(|way| way[option].clone()).collect();
        values.sort_by_key(Json::to_string);
        values.dedup();
        common[option] = if values.len() == 1 { values.remove(0) } else { values.into() };
    }
    common
}
