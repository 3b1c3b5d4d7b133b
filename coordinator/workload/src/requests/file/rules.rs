//! User's rules for reading a file of requests, and the report on the reading.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use dormouse_input::{Chosen, LeftOut};
use dormouse_units::{Bytes, TypeName};
use serde::{Deserialize, Serialize};

/// How a file of requests is to be read, where the file itself does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct RequestRules {
    /// Headings of the file's columns, by the reader's name for each column, such as `at` or `duration`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, String>,
    /// Instance types to request, by the file's word for each: a name, the number of a `vmTypeId`, or vCPUs and GiB
    /// such as `2/8` or `>24/>64`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub types_map: BTreeMap<String, TypeName>,
    /// Path of a CSV file with the sizes of the types that the file of requests names: the table `vmType` of the
    /// Azure trace for packing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub types: Option<PathBuf>,
    /// vCPUs of the largest machine, if the file gives VM sizes as shares of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_vcpus: Option<u32>,
    /// Memory of the largest machine, if the file gives VM sizes as shares of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_memory: Option<Bytes>,
    /// Highest priority in Google's traces whose instances count as spot VMs; all higher ones are on-demand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spot_priority: Option<u32>,
    /// True if times are used as the file gives them, instead of being counted from the first request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_times: bool,
}

impl RequestRules {
    /// True if all rules have their default values.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn chosen_headings(&self) -> Chosen {
        self.columns.iter().map(|(name, heading)| (name.clone(), heading.clone())).collect()
    }
}

/// Report on the reading of a file of requests: its format, and the entries that were left out or changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct RequestsRead {
    /// The file's format, in words.
    pub format: String,
    /// Number of entries that are not requests, by reason.
    pub left_out: LeftOut,
    /// Number of changed requests, by the kind of change.
    pub changed: LeftOut,
    /// Remarks on the whole file.
    pub notes: Vec<String>,
    /// Time zero of the run in seconds since 1970, if the file has dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begins_unix_s: Option<i64>,
}

impl RequestsRead {
    /// True if every entry became a request unchanged, so that nothing has to be reported.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.left_out.is_empty() && self.changed.is_empty() && self.notes.is_empty()
    }
}

/// Prints one line: the format, the counts of left out and changed entries, and the remarks.
impl fmt::Display for RequestsRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format)?;
        if !self.left_out.is_empty() {
            write!(f, "; left out: {}", self.left_out)?;
        }
        if !self.changed.is_empty() {
            write!(f, "; {}", self.changed)?;
        }
        self.notes.iter().try_for_each(|note| write!(f, "; {note}"))
    }
}
