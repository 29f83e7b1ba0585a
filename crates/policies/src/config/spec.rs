//! A policy with its parameters, as written on a command line.

use std::fmt;

use super::declare::Config;
use super::error::ParamError;

/// A policy as written on a command line: `watt(write_weight=2,aggregate=mean)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The policy's id.
    pub id: String,
    /// Given parameters, in order.
    pub params: Vec<(String, String)>,
}

impl Spec {
    /// Parses one policy.
    ///
    /// # Errors
    /// [`ParamError::Syntax`] with the fault.
    pub fn parse(text: &str) -> Result<Spec, ParamError> {
        let text = text.trim();
        let wrong = |reason: &str| ParamError::Syntax {
            text: text.to_string(),
            reason: reason.to_string(),
        };
        let (id, inner) = match text.split_once('(') {
            None if text.contains(')') => return Err(wrong("a ')' without its '('")),
            None => (text, ""),
            Some((id, rest)) => {
                (id.trim(), rest.strip_suffix(')').ok_or_else(|| wrong("the ')' is missing"))?)
            }
        };
        if id.is_empty() {
            return Err(wrong("the name is missing"));
        }
        if inner.contains(['(', ')']) {
            return Err(wrong("parentheses inside parentheses"));
        }
        let mut params: Vec<(String, String)> = Vec::new();
        for pair in inner.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| wrong(&format!("'{pair}' is not name=value")))?;
            let (name, value) = (name.trim().to_string(), value.trim().to_string());
            if params.iter().any(|(n, _)| *n == name) {
                return Err(wrong(&format!("'{name}' is given twice")));
            }
            params.push((name, value));
        }
        Ok(Spec { id: id.to_string(), params })
    }

    /// Parses a comma-separated list of policies; commas inside parentheses belong to a
    /// policy.
    ///
    /// # Errors
    /// [`ParamError::Syntax`] with the fault.
    pub fn parse_list(text: &str) -> Result<Vec<Spec>, ParamError> {
        let (mut specs, mut depth, mut start) = (Vec::new(), 0i32, 0);
        for (i, c) in text.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                ',' if depth == 0 => {
                    specs.push(Spec::parse(&text[start..i])?);
                    start = i + 1;
                }
                _ => {}
            }
        }
        specs.push(Spec::parse(&text[start..])?);
        Ok(specs)
    }

    /// Returns the parameters of `C`: the defaults, overridden by the given ones.
    ///
    /// # Errors
    /// [`ParamError`] for the first parameter that is invalid, alone or with the others.
    pub fn config<C: Config>(&self) -> Result<C, ParamError> {
        let mut config = C::default();
        for (name, value) in &self.params {
            config.set(&self.id, name, value)?;
        }
        config.check()?;
        Ok(config)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        if !self.params.is_empty() {
            let pairs: Vec<String> = self.params.iter().map(|(n, v)| format!("{n}={v}")).collect();
            write!(f, "({})", pairs.join(","))?;
        }
        Ok(())
    }
}
