//! Requests for VMs, from their `[workload]`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use dormouse_cloud::ResourceVector;
use dormouse_documents::{Mistakes, Node, read};
use dormouse_model::Setup;
use dormouse_workload::{
    Offer, RequestFile, RequestRules, RequestSource, RequestStream, RequestsWanted, WorkloadError,
};

use super::Experiment;
use super::sections::{RequestsSection, WorkloadSection};
use crate::chain::chain;

impl Experiment {
    /// Requests for VMs in order of time; `None` if the experiment has none.
    ///
    /// # Errors
    ///
    /// The requests can't be read.
    pub fn requests(&self) -> Result<Option<RequestStream>, WorkloadError> {
        let open = |source| {
            let (offer, seed) = (Some(offered_vms(&self.setup, &self.hosts)), self.setup.seed);
            RequestStream::open(&RequestsWanted { source, offer, seed, open })
        };
        self.requests.as_deref().map(open).transpose()
    }
}

fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(File::open(path)?))
}

/// VMs that customers may request from this provider.
fn offered_vms(setup: &Setup, hosts: &[ResourceVector]) -> Arc<Offer> {
    Arc::new(Offer::new(&setup.catalogue.types, hosts, &setup.terms.placement.placement_rule()))
}

/// Resolves the requests in `[workload]` of `node`, for this provider with these hosts.
pub(crate) fn check(
    node: &Node,
    setup: &Setup,
    hosts: &[ResourceVector],
    found: &mut Mistakes,
) -> Option<RequestSource> {
    let inside = node.get("workload")?;
    let Some(WorkloadSection::Requests(section)) = read(inside, found) else { return None };
    let (section, offer) = (*section, offered_vms(setup, hosts));
    let RequestsSection { request, csv, model, .. } = &section;
    let source = match (request.is_empty(), csv, model) {
        (false, None, None) => RequestSource::Written { request: section.request },
        (true, Some(csv), None) => {
            let place = inside.place_of("csv");
            let rules = Box::new(reading_rules(&section, inside));
            let csv = place.file(csv);
            // The rows are checked as they are read.
            if let Err(error) = RequestFile::open(&csv, &rules, Some(Arc::clone(&offer)), open) {
                let text = chain(&error);
                let make = "give a CSV file of requests; `dormouse workload requests` makes one";
                let (what, remedy) = text.rsplit_once("; ").unwrap_or((&text, make));
                found.add(place, what, remedy);
            }
            RequestSource::Csv { csv, rules }
        }
        (true, None, Some(model)) => RequestSource::Model { model: model.clone() },
        _ => {
            let what = "it needs one of request, csv and model";
            let remedy = "write [[workload.request]], csv = \"requests.csv\" or [workload.model]";
            found.add(&inside.place, what, remedy);
            return None;
        }
    };
    if !matches!(source, RequestSource::Csv { .. }) {
        for key in OF_FILES.iter().filter(|key| inside.get(key).is_some()) {
            let remedy = "leave it out, or give the file: csv = \"requests.csv\"";
            found.add(
                inside.place_of(key),
                "it says how a file is to be read, but no file is given",
                remedy,
            );
        }
    }
    for flaw in source.flaws(Some(&offer)) {
        found.add(inside.place_of(&flaw.key), flaw.refusal.what, flaw.refusal.remedy);
    }
    Some(source)
}

/// Keys of a section of requests that define how a file of requests is read.
const OF_FILES: [&str; 7] = [
    "columns",
    "types-map",
    "types",
    "machine-vcpus",
    "machine-memory",
    "spot-priority",
    "keep-times",
];

/// Rules for reading the file of requests of a section.
fn reading_rules(section: &RequestsSection, inside: &Node) -> RequestRules {
    RequestRules {
        columns: section.columns.clone(),
        types_map: section.types_map.clone(),
        types: section.types.as_ref().map(|types| inside.place_of("types").file(types)),
        machine_vcpus: section.machine_vcpus,
        machine_memory: section.machine_memory,
        spot_priority: section.spot_priority,
        keep_times: section.keep_times,
    }
}
