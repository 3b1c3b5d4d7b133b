//! Kinds of files, told by what they begin with.

use dormouse_input::{Chosen, Moment};
use dormouse_workload::RequestFile;

use super::command::InspectArgs;
use super::found::Found;
use super::head::Head;
use super::{jobs, lifetimes, prices, requests};
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
const KINDS: [Kind; 4] = [
    Kind {
        name: "lifetimes of VMs (CSV with lifetime_s and end_event)",
        is: |head, _| head.has_heading("lifetime_s") && head.has_heading("end_event"),
        inspect: lifetimes::inspect,
    },
    Kind {
        name: "requests for VMs (CSV, Azure's and Google's traces)",
        is: |head, chosen| RequestFile::is_begun(head.as_file(), chosen).unwrap_or(false),
        inspect: requests::inspect,
    },
    Kind {
        name: "spot prices (CSV, the JSON of EC2's price history)",
        is: |head, _| is_of_prices(head),
        inspect: prices::inspect,
    },
    Kind {
        name: "parallel jobs (logs in the Standard Workload Format)",
        is: |head, _| is_of_jobs(head),
        inspect: jobs::inspect,
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

/// A heading of times and prices, a row of both, or the provider's answer.
fn is_of_prices(head: &Head) -> bool {
    if head.is_json() {
        return head.has_key("SpotPriceHistory");
    }
    let is_headed = head.has_heading("price") && head.has_heading("time");
    let is_row = match head.first() {
        [time, price] => Moment::read(time).is_some() && price.parse::<f64>().is_ok(),
        _ => false,
    };
    is_headed || is_row
}

/// A comment of a log, or a row of its 18 numbers.
fn is_of_jobs(head: &Head) -> bool {
    const FIELDS: usize = 18;
    let line = head.line();
    let fields: Vec<&str> = line.split_whitespace().collect();
    line.starts_with(';')
        || fields.len() == FIELDS && fields.iter().all(|field| field.parse::<f64>().is_ok())
}
