//! Kinds of files, told by what they begin with.

use dormouse_cloud::{Availability, are_acts, are_types, is_described, looks_like_prices};
use dormouse_fit::looks_like_lifetimes;
use dormouse_input::Chosen;
use dormouse_workload::{JobsFormat, RequestFile};

use super::command::InspectArgs;
use super::found::Found;
use super::head::Head;
use super::{acts, availability, catalogue, jobs, lifetimes, prices, requests};
use crate::cli::failure::Failure;

/// What a file is of.
pub(super) struct Kind {
    /// The kind in some words, with the formats that are read.
    name: &'static str,
    /// Whether a file that begins so is of this kind.
    is: fn(&Head, &Chosen) -> bool,
    /// Reads the file whole, and says what is in it.
    inspect: fn(&InspectArgs, &Head) -> Result<Found, Failure>,
}

/// All kinds, in the order in which they are asked: the first that says yes is it.
const KINDS: [Kind; 8] = [
    Kind {
        name: "parallel jobs (the Standard Workload Format, Batsim's workloads, the output of sacct)",
        is: |head, _| JobsFormat::of(head.bytes()).is_some(),
        inspect: jobs::inspect,
    },
    Kind {
        name: "lifetimes of VMs (tables with a lifetime or its ends, the JSON of Google's preemptible VMs)",
        is: |head, _| looks_like_lifetimes(head.bytes()),
        inspect: lifetimes::inspect,
    },
    Kind {
        name: "availability of spot VMs (the JSON of spot-traces, tables of time and count)",
        is: |head, _| {
            head.is_json() && Availability::is_trace(head.bytes())
                || head.begins_with(Availability::are_headings)
        },
        inspect: availability::inspect,
    },
    Kind {
        name: "interruptions (tables of time and action)",
        is: |head, _| head.begins_with(are_acts),
        inspect: acts::inspect,
    },
    Kind {
        name: "the provider's spot advisor (spot-advisor-data.json)",
        is: |head, _| head.has_key("spot_advisor") || head.has_key("instance_types"),
        inspect: catalogue::inspect_advisor,
    },
    Kind {
        name: "requests for VMs (CSV, Azure's and Google's traces)",
        is: |head, chosen| RequestFile::is_begun(head.as_file(), chosen).unwrap_or(false),
        inspect: requests::inspect,
    },
    Kind {
        name: "instance types (tables, the JSON of EC2's describe-instance-types)",
        is: |head, _| head.is_json() && is_described(head.bytes()) || head.begins_with(are_types),
        inspect: catalogue::inspect,
    },
    Kind {
        name: "spot prices (tables, the JSON, list or text of EC2's price history)",
        is: |head, chosen| looks_like_prices(head.bytes()) || are_prices_chosen(chosen),
        inspect: prices::inspect,
    },
];

impl Kind {
    /// The kind of a file that begins so; `None`: it is of no known kind.
    pub(super) fn of(head: &Head, chosen: &Chosen) -> Option<&'static Self> {
        KINDS.iter().find(|kind| (kind.is)(head, chosen))
    }

    /// All kinds, for a line.
    pub(super) fn listed() -> String {
        KINDS.map(|kind| kind.name).join(", ")
    }

    /// Reads the file whole, and says what is in it.
    pub(super) fn inspect(&self, args: &InspectArgs, head: &Head) -> Result<Found, Failure> {
        (self.inspect)(args, head)
    }
}

/// Whether a column of prices was chosen: no other kind has one.
fn are_prices_chosen(chosen: &Chosen) -> bool {
    chosen.iter().any(|(name, _)| name == "price")
}
