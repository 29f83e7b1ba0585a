//! The flags of `cargo xtask tidy`.

use anyhow::{Result, bail};

use super::house::Sites;

/// Options of a call of `tidy`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Names of the rules to report; empty for all.
    pub rules: Vec<String>,
    /// List the largest hundredth of files, folders and functions instead of ten of each.
    pub outliers: bool,
    /// Print the figures of the code base instead of checking the rules.
    pub table: bool,
    /// Print the figures as JSON.
    pub json: bool,
    /// Count whose places are listed below the table.
    pub sites: Option<Sites>,
}

impl Options {
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Options::default();
        for argument in arguments {
            match argument.as_str() {
                "--outliers" => options.outliers = true,
                "--table" => options.table = true,
                "--json" => options.json = true,
                "--sites" => options.sites = Some(Sites::TupleParameters),
                other => match other.strip_prefix("--sites=") {
                    Some(name) => options.sites = Some(name.parse()?),
                    None if other.starts_with('-') => {
                        bail!(
                            "`{other}` is no flag of tidy: --outliers, --table, --json, \
                             --sites[=WHAT]"
                        );
                    }
                    None => options.rules.push(argument.clone()),
                },
            }
        }
        if !options.table && (options.json || options.sites.is_some()) {
            bail!("--json and --sites are for --table");
        }
        if (options.table || options.outliers) && !options.rules.is_empty() {
            bail!("--table and --outliers measure all, and take no rule");
        }
        if options.table && options.outliers {
            bail!("--table and --outliers are two calls");
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Options> {
        Options::parse(&arguments.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn rules_and_the_table_are_told_apart() {
        assert_eq!(parsed(&["tab", "panic"]).unwrap().rules, ["tab", "panic"]);
        let table = parsed(&["--table", "--sites"]).unwrap();
        assert_eq!(table.sites, Some(Sites::TupleParameters));
        assert_eq!(parsed(&["--sites=locks", "--table"]).unwrap().sites, Some(Sites::RawLocks));
        assert!(parsed(&["--outliers"]).unwrap().outliers);
        for wrong in [
            &["--fix"][..],
            &["--json"],
            &["--outliers", "--table"],
            &["--outliers", "tab"],
            &["--table", "tab"],
            &["--table", "--sites=x"],
        ] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }
}
