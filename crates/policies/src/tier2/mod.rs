//! Second-tier policies, one file each.
