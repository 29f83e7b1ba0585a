//! The meaning of each column of a separated file.

use std::str::FromStr;

use millpond_base::nearest::nearest;

use crate::trace::TraceError;

use super::parameters::COLUMNS;

/// Role of a column.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Role {
    /// The page (or object) id.
    Page,
    /// A byte address, instead of a page id.
    Offset,
    /// An address in sectors of 512 bytes, instead of a page id.
    Sector,
    /// A disk, volume or device; each has its own pages.
    Volume,
    /// Read or write.
    AccessKind,
    /// Bytes: the length of the request if there is an offset, else the object's size.
    Size,
    /// The length of the request in sectors of 512 bytes.
    Sectors,
    /// The kind of page, 0 to 255 (`PageKind`).
    Kind,
    /// Depth below the root, 0 to 255.
    Depth,
    /// Reason for a page write: none, synch, replace, recov, dsync, or 0 to 4.
    Reason,
    /// `1` or `true` if the reference belongs to a marked scan, `0` or `false` if not.
    Scan,
    /// The log position, in bytes.
    Lsn,
    /// A time stamp. The column is recognised but not kept, since a trace is a sequence.
    Time,
}

/// Roles with their names on the command line and the headers that denote them.
const ROLES: &[(Role, &str, &[&str])] = &[
    (Role::Page, "page", &["page_id", "pageid", "id", "key", "obj_id", "object", "object_id"]),
    (Role::Offset, "offset", &["byte_offset", "address", "byte_address"]),
    (Role::Sector, "sector", &["start_sector", "sector_number"]),
    (Role::Sectors, "sectors", &["nr_sectors", "num_sectors", "sector_count"]),
    (Role::Volume, "volume", VOLUME_HEADERS),
    (Role::AccessKind, "op", OP_HEADERS),
    (Role::Size, "size", &["obj_size", "object_size", "length", "len", "bytes"]),
    (Role::Kind, "kind", &["page_kind", "page_type"]),
    (Role::Depth, "depth", &["level"]),
    (Role::Reason, "reason", &["write_reason"]),
    (Role::Scan, "scan", &["is_scan"]),
    (Role::Lsn, "lsn", &["page_lsn"]),
    (Role::Time, "time", &["timestamp", "clock_time", "real_time"]),
];

/// Further headers that name the operation.
const OP_HEADERS: &[&str] = &[
    "operation",
    "op_type",
    "optype",
    "rw",
    "r_w",
    "readwrite",
    "read_write",
    "is_write",
    "opcode",
    "type",
    "request",
    "request_type",
    "requesttype",
    "req_type",
    "io_type",
    "iotype",
    "access",
    "access_type",
    "command",
    "cmd",
];

/// Further headers that name a space of pages.
const VOLUME_HEADERS: &[&str] = &[
    "volume_id",
    "volumeid",
    "vol",
    "vol_id",
    "device",
    "device_id",
    "deviceid",
    "dev",
    "disk",
    "disk_id",
    "disk_number",
    "disknumber",
    "lun",
];

/// Further headers that name a page.
const PAGE_HEADERS: &[&str] = &["block", "block_id", "blockno", "lbn", "lba", "objid"];

/// The place of a column: by number from 1, or by its name in the header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnSelector {
    /// The number of the column, from 1.
    Number(usize),
    /// The column's name in the header, whatever its case.
    Header(String),
}

/// A selection of columns: `page=3,op=5`, `page=obj_id,size=4`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Columns {
    places: Vec<(Role, ColumnSelector)>,
}

/// A column number above this is a typing error, not a trace.
const MAX_COLUMN: usize = 1024;

impl FromStr for Columns {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Columns, TraceError> {
        let wrong = |what: String| TraceError::Options(format!("{}: {what}", COLUMNS.set_to(text)));
        let mut places: Vec<(Role, ColumnSelector)> = Vec::new();
        for part in text.split(',') {
            let Some((name, place)) = part.split_once('=') else {
                return Err(wrong(format!("'{part}' is not like page=3")));
            };
            let (name, place) = (name.trim(), place.trim());
            let Some((role, ..)) = ROLES.iter().find(|r| r.1 == name) else {
                let known = nearest(name, ROLES.iter().map(|r| r.1));
                let hint = known.map_or(String::new(), |n| format!(", did you mean '{n}'?"));
                return Err(wrong(format!("no column is called '{name}'{hint}")));
            };
            if places.iter().any(|(r, _)| r == role) {
                return Err(wrong(format!("'{name}' is named twice")));
            }
            let place = match place.parse::<usize>() {
                Ok(n) if (1..=MAX_COLUMN).contains(&n) => ColumnSelector::Number(n),
                Ok(n) => return Err(wrong(format!("column {n}: they count from 1 to 1024"))),
                Err(_) if place.is_empty() => return Err(wrong(format!("'{name}' is empty"))),
                Err(_) => ColumnSelector::Header(place.to_string()),
            };
            places.push((*role, place));
        }
        let columns = Columns { places };
        let places = [Role::Page, Role::Offset, Role::Sector].map(|role| columns.has(role));
        if places.into_iter().filter(|is_there| *is_there).count() != 1 {
            return Err(wrong("name either page or offset (or sector)".into()));
        }
        if columns.has(Role::Size) && columns.has(Role::Sectors) {
            return Err(wrong("name either size or sectors".into()));
        }
        Ok(columns)
    }
}

impl Columns {
    fn has(&self, role: Role) -> bool {
        self.places.iter().any(|(r, _)| *r == role)
    }

    /// Returns `true` if only the header shows the columns.
    pub(crate) fn need_header(&self) -> bool {
        self.places.iter().any(|(_, p)| matches!(p, ColumnSelector::Header(_)))
    }

    /// Returns the role of each column, given the header's fields (none if there is no header).
    pub(crate) fn resolve(&self, header: &[String]) -> Result<Vec<Option<Role>>, String> {
        let mut roles = Vec::new();
        for (role, place) in &self.places {
            let at = match place {
                ColumnSelector::Number(n) => n - 1,
                ColumnSelector::Header(name) => {
                    let same = |h: &&String| h.trim().eq_ignore_ascii_case(name);
                    let found = header.iter().find(same);
                    let at = header.iter().position(|h| same(&h));
                    at.filter(|_| found.is_some()).ok_or_else(|| {
                        format!("no column '{name}' in the header ({})", header.join(", "))
                    })?
                }
            };
            if roles.len() <= at {
                roles.resize(at + 1, None);
            }
            if roles[at].is_some() {
                return Err(format!("column {} has two meanings in {COLUMNS}", at + 1));
            }
            roles[at] = Some(*role);
        }
        Ok(roles)
    }
}

/// Returns the role that a header's field denotes, if it is a usual name.
pub(crate) fn role_of_header(field: &str) -> Option<Role> {
    let field = field.trim().to_ascii_lowercase();
    if PAGE_HEADERS.contains(&field.as_str()) {
        return Some(Role::Page);
    }
    let known = ROLES.iter().find(|(_, name, more)| *name == field || more.contains(&&*field));
    known.map(|(role, ..)| *role)
}

/// Returns the role of each column by header alone; `None` unless a page or an address is among
/// them. A line with a number is a reference, not a header.
pub(crate) fn roles_of_header(header: &[String]) -> Option<Vec<Option<Role>>> {
    if header.iter().any(|field| field.trim().parse::<f64>().is_ok()) {
        return None;
    }
    let mut roles: Vec<Option<Role>> = Vec::new();
    for field in header {
        let role = role_of_header(field).filter(|role| !roles.contains(&Some(*role)));
        roles.push(role);
    }
    // A page id beside an address: the id wins. So do bytes beside sectors.
    let places = [Role::Page, Role::Offset, Role::Sector];
    let place = places.into_iter().find(|role| roles.contains(&Some(*role)))?;
    let has_bytes = roles.contains(&Some(Role::Size));
    for role in &mut roles {
        let is_other = |one| places.contains(&one) && one != place;
        if role.is_some_and(|one| is_other(one) || (has_bytes && one == Role::Sectors)) {
            *role = None;
        }
    }
    Some(roles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_chosen_by_number_or_by_header() {
        let columns: Columns = "page=3,op=5".parse().unwrap();
        let roles = columns.resolve(&[]).unwrap();
        assert_eq!(roles, [None, None, Some(Role::Page), None, Some(Role::AccessKind)]);
        let columns: Columns = "page=LBN,size=1".parse().unwrap();
        assert!(columns.need_header());
        let header = ["bytes".to_string(), "lbn".to_string()];
        assert_eq!(columns.resolve(&header).unwrap(), [Some(Role::Size), Some(Role::Page)]);
        assert!(columns.resolve(&header[..1]).unwrap_err().contains("no column 'LBN'"));
    }

    #[test]
    fn wrong_selections_say_what_is_wrong() {
        for (text, says) in [
            ("page", "not like page=3"),
            ("pgae=3", "did you mean 'page'"),
            ("page=0", "count from 1"),
            ("page=99999999", "count from 1"),
            ("op=1", "either page or offset"),
            ("page=1,offset=2", "either page or offset"),
            ("page=1,page=2", "twice"),
            ("offset=1,sector=2", "either page or offset"),
            ("sector=1,size=2,sectors=3", "either size or sectors"),
            ("page=", "empty"),
        ] {
            let error = text.parse::<Columns>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        let same: Columns = "page=1,op=1".parse().unwrap();
        assert!(same.resolve(&[]).unwrap_err().contains("two meanings"));
    }
}
