//! Parameters of a generator, checked against its table, with defaults filled in.

use millpond_base::nearest::nearest;
use millpond_base::{Share, Size};

use crate::trace::TraceError;

use super::info::{GeneratorInfo, ParamInfo, ParamKind};

/// Values for every parameter of one generator.
#[derive(Debug)]
pub(crate) struct Params {
    values: Vec<(&'static str, Value)>,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Count(u64),
    Real(f64),
    Choice(&'static str),
}

impl Params {
    /// Checks the user's parameters and fills in defaults.
    pub(crate) fn new(
        info: &'static GeneratorInfo,
        given: &[(String, String)],
    ) -> Result<Params, TraceError> {
        for (i, (name, _)) in given.iter().enumerate() {
            if !info.params.iter().any(|p| p.name == name) {
                return Err(unknown(info, name));
            }
            if given[..i].iter().any(|(n, _)| n == name) {
                return Err(TraceError::Options(format!("{}: '{name}' is given twice", info.id)));
            }
        }
        let mut values = Vec::with_capacity(info.params.len());
        for param in info.params {
            let text = given.iter().find(|(n, _)| n == param.name).map(|(_, v)| v.as_str());
            let value = value_of(param, text.unwrap_or(param.default)).map_err(|why| {
                let (id, name) = (info.id, param.name);
                let text = text.unwrap_or(param.default);
                TraceError::Options(format!("{id}: {name}={text}: {why} ({})", param.help))
            })?;
            values.push((param.name, value));
        }
        Ok(Params { values })
    }

    fn get(&self, name: &str) -> Option<Value> {
        let found = self.values.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
        debug_assert!(found.is_some(), "the generator's table lacks '{name}'");
        found
    }

    /// Returns a count; 0 if the table has no such count.
    pub(crate) fn count(&self, name: &str) -> u64 {
        match self.get(name) {
            Some(Value::Count(n)) => n,
            _ => 0,
        }
    }

    /// Returns a number of pages, which the tables limit to 32 bits.
    pub(crate) fn pages(&self, name: &str) -> u32 {
        u32::try_from(self.count(name)).unwrap_or(u32::MAX)
    }

    /// Returns a real number or a share; 0 if the table has no such parameter.
    pub(crate) fn real(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(Value::Real(x)) => x,
            _ => 0.0,
        }
    }

    /// Returns one of the words that the table lists.
    pub(crate) fn choice(&self, name: &str) -> &'static str {
        match self.get(name) {
            Some(Value::Choice(word)) => word,
            _ => "",
        }
    }
}

fn unknown(info: &GeneratorInfo, name: &str) -> TraceError {
    let names = || info.params.iter().map(|p| p.name);
    let hint = match nearest(name, names()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("it has {}", names().collect::<Vec<_>>().join(", ")),
    };
    TraceError::Options(format!("{} has no parameter '{name}': {hint}", info.id))
}

fn value_of(param: &ParamInfo, text: &str) -> Result<Value, String> {
    match param.kind {
        ParamKind::Count { min, max } => {
            let count = match text.parse::<Size>() {
                Ok(Size::Frames(n)) => n,
                // Sizes are never zero; counts may be.
                Err(_) if text == "0" => 0,
                _ => return Err("it is no count".into()),
            };
            if !(min..=max).contains(&count) {
                return Err(format!("it is outside {min} to {max}"));
            }
            Ok(Value::Count(count))
        }
        ParamKind::Real { min, max } => {
            let value: f64 = text.parse().map_err(|_| "it is no number".to_string())?;
            if !(min..=max).contains(&value) {
                return Err(format!("it is outside {min} to {max}"));
            }
            Ok(Value::Real(value))
        }
        ParamKind::Share => {
            let share: Share = text.parse().map_err(|e| format!("{e}"))?;
            Ok(Value::Real(share.0))
        }
        ParamKind::Choice(words) => {
            let word = words.iter().find(|w| **w == text);
            let all = words.join(", ");
            word.map(|w| Value::Choice(w)).ok_or_else(|| format!("it must be one of {all}"))
        }
    }
}
