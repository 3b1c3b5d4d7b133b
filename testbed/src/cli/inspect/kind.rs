//! Kinds of files, detected from their beginning.

use std::io;

use dormouse_cloud::{
    SpotAvailability, are_acts, are_cloud_events, are_types, is_described, looks_like_prices,
};
use dormouse_fit::looks_like_lifetimes;
use dormouse_input::Chosen;
use dormouse_workload::{JobsFormat, RequestFile};

use super::args::InspectArgs;
use super::found::Found;
use super::head::Head;
use super::{acts, availability, catalogue, jobs, lifetimes, prices, requests, workflows};
use crate::cli::failure::Failure;

/// A kind of file that `inspect` knows.
pub(super) struct Kind {
    /// The kind in a word or two, for a list of all kinds.
    name: &'static str,
    /// Returns whether a file with this beginning belongs to this kind.
    is: fn(&Head, &Chosen) -> io::Result<bool>,
    /// Sets of keys by which JSON is recognised: a file has all keys of one set, even if it is damaged.
    keys: &'static [&'static [&'static str]],
    /// Columns that the reader of files of this kind looks for.
    columns: &'static [&'static str],
    /// Reads the whole file, and returns what it contains.
    inspect: fn(&InspectArgs, &Head) -> Result<Found, Failure>,
}

/// All kinds of files, in the order in which they are tried: the first that matches is the file's kind.
const KINDS: [Kind; 9] = [
    Kind {
        name: "parallel jobs (SWF, Batsim, sacct, PBS, LSF, Grid Engine, HTCondor, Philly, Helios, Alibaba)",
        is: |head, _| Ok(JobsFormat::detect(head.bytes()).is_some()),
        keys: &[&["jobs", "profiles"], &["subtime"]],
        columns: &[],
        inspect: jobs::inspect,
    },
    Kind {
        name: "workflows (DAGMan, WfCommons, Pegasus, Snakemake, Nextflow)",
        is: |head, _| Ok(workflows::format_of(head).is_some()),
        keys: &[],
        // None: a file that is told by --column alone is another.
        columns: &[],
        inspect: workflows::inspect,
    },
    Kind {
        name: "lifetimes of VMs",
        is: |head, _| Ok(looks_like_lifetimes(head.bytes())),
        keys: &[],
        columns: LIFETIMES,
        inspect: lifetimes::inspect,
    },
    Kind {
        name: "availability of spot VMs",
        is: |head, _| {
            let is_trace = head.is_json() && SpotAvailability::is_trace(head.bytes());
            Ok(is_trace || head.begins_with(SpotAvailability::are_headings)?)
        },
        keys: &[&["gap_seconds"]],
        columns: &["time", "count"],
        inspect: availability::inspect,
    },
    Kind {
        name: "interruptions",
        is: |head, _| {
            let are_events = head.is_json() && are_cloud_events(head.bytes());
            Ok(are_events || head.begins_with(are_acts)?)
        },
        keys: &[],
        columns: &["time", "action", "type", "zone", "vm"],
        inspect: acts::inspect,
    },
    Kind {
        name: "the spot advisor's data",
        is: |head, _| Ok(head.has_key("spot_advisor") || head.has_key("instance_types")),
        keys: &[],
        columns: &[],
        inspect: catalogue::inspect_advisor,
    },
    Kind {
        name: "requests for VMs",
        is: |head, chosen| RequestFile::is_begun(head.as_file(), chosen),
        keys: &[],
        columns: &["at", "type", "market", "duration", "end", "vcpus", "memory"],
        inspect: requests::inspect,
    },
    Kind {
        name: "instance types",
        is: |head, _| {
            let is_answer = head.is_json() && is_described(head.bytes());
            Ok(is_answer || head.begins_with(are_types)?)
        },
        keys: &[],
        columns: CATALOGUE,
        inspect: catalogue::inspect,
    },
    Kind {
        name: "spot prices",
        is: |head, chosen| Ok(looks_like_prices(head.bytes()) || are_prices_chosen(chosen)),
        keys: &[&["SpotPriceHistory"], &["SpotPrice"]],
        columns: &["time", "price", "type", "zone", "product"],
        inspect: prices::inspect,
    },
];

const LIFETIMES: &[&str] =
    &["lifetime", "end", "type", "zone", "workload", "hour", "created", "deleted"];

const CATALOGUE: &[&str] = &[
    "name",
    "vcpus",
    "memory",
    "on-demand",
    "spot",
    "baseline",
    "credits-per-hour",
    "most-credits",
    "initial-credits",
    "surplus-price",
    "gflops",
    "limit",
    "zone",
];

impl Kind {
    /// The kind of a file with this beginning; `None` if it is of no known kind. A file that no kind accepts but that
    /// can belong to only one kind counts as this kind; the reader of this kind then reports the file's flaws.
    ///
    /// # Errors
    ///
    /// No kind accepts the file, and one kind can't read the beginning of the file.
    pub(super) fn detect(head: &Head, chosen: &Chosen) -> io::Result<Option<&'static Self>> {
        let mut unreadable = None;
        for kind in &KINDS {
            match (kind.is)(head, chosen) {
                Ok(true) => return Ok(Some(kind)),
                Ok(false) => {}
                Err(error) => unreadable = unreadable.or(Some(error)),
            }
        }
        let has_all = |keys: &&[&str]| keys.iter().all(|key| head.has_key(key));
        if let Some(kind) = KINDS.iter().find(|kind| kind.keys.iter().any(has_all)) {
            return Ok(Some(kind));
        }
        let has = |kind: &&Self| chosen.iter().all(|(name, _)| kind.columns.contains(&name));
        let mut fit = KINDS.iter().filter(has);
        match (fit.next(), fit.next(), unreadable) {
            (Some(only), None, _) if !head.is_json() => Ok(Some(only)),
            (_, _, Some(error)) => Err(error),
            _ => Ok(None),
        }
    }

    /// Names of all kinds, as one line.
    pub(super) fn listed() -> String {
        KINDS.map(|kind| kind.name).join(", ")
    }

    /// Reads the whole file, and returns what it contains.
    pub(super) fn inspect(&self, args: &InspectArgs, head: &Head) -> Result<Found, Failure> {
        (self.inspect)(args, head)
    }
}

/// Whether the user chose a column of prices, which only files of prices have.
fn are_prices_chosen(chosen: &Chosen) -> bool {
    chosen.iter().any(|(name, _)| name == "price")
}
