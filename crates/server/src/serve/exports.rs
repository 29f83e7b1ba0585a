//! The exports of a volume: the volume itself, and one more for each class of writes.

use millpond_base::Reason;

use crate::protocol::CLASSES;

/// Names of one volume's exports.
#[derive(Clone, Debug)]
pub(super) struct Exports {
    name: String,
}

impl Exports {
    pub fn new(name: &str) -> Exports {
        Exports { name: name.to_string() }
    }

    /// Finds the export called `name`. Returns its canonical name and the class of its writes.
    pub fn find(&self, name: &str) -> Option<(String, Reason)> {
        let class = match name.strip_prefix(&self.name) {
            _ if name.is_empty() => "",
            Some(class) => class,
            None => return None,
        };
        let reason = match class.strip_prefix('/') {
            None if class.is_empty() => Reason::None,
            None => return None,
            Some(class) => CLASSES.into_iter().find(|reason| reason.name() == class)?,
        };
        Some((self.canonical(reason), reason))
    }

    fn canonical(&self, reason: Reason) -> String {
        match reason {
            Reason::None => self.name.clone(),
            reason => format!("{}/{}", self.name, reason.name()),
        }
    }

    /// Returns the names of all exports.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        let classes = CLASSES.into_iter().map(|reason| self.canonical(reason));
        std::iter::once(self.name.clone()).chain(classes)
    }

    /// Returns the description of an export, for people.
    pub fn description(reason: Reason) -> String {
        match reason {
            Reason::None => "a Millpond volume".to_string(),
            reason => format!("a Millpond volume; writes are {}", reason.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_is_found_by_its_name_its_class_or_none() {
        let exports = Exports::new("disk");
        let names: Vec<String> = exports.names().collect();
        assert_eq!(names, ["disk", "disk/synch", "disk/replace", "disk/recov"]);
        for name in &names {
            assert_eq!(exports.find(name).unwrap().0, *name);
        }
        assert_eq!(exports.find("").unwrap(), ("disk".to_string(), Reason::None));
        assert_eq!(exports.find("disk/recov").unwrap().1, Reason::Recov);
        for wrong in ["disk/", "disk/none", "disk/dsync", "disks", "/synch", "disk/synch/", "x"] {
            assert_eq!(exports.find(wrong), None, "{wrong}");
        }
    }
}
