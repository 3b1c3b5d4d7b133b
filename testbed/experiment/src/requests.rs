//! The section of requests for VMs, and what it comes to.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use dormouse_cloud::Host;
use dormouse_documents::{Mistakes, Node, read};
use dormouse_model::Setup;
use dormouse_workload::{
    Offer, RequestCsv, RequestSource, RequestStream, RequestsWanted, WorkloadError,
};

use super::Experiment;
use super::sections::WorkloadSection;
use crate::chain::chain;

impl Experiment {
    /// The VMs that are requested, in order of time; `None`: nobody requests any.
    ///
    /// # Errors
    ///
    /// They can't be read.
    pub fn requests(&self) -> Result<Option<RequestStream>, WorkloadError> {
        let open = |source| {
            let (offer, seed) = (Some(offer(&self.setup, &self.hosts)), self.setup.seed);
            RequestStream::open(&RequestsWanted { source, offer, seed, open })
        };
        self.requests.as_deref().map(open).transpose()
    }
}

fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(File::open(path)?))
}

/// What may be requested of this provider.
fn offer(setup: &Setup, hosts: &[Host]) -> Arc<Offer> {
    Arc::new(Offer::new(&setup.catalogue.types, hosts, &setup.terms.placement.rule()))
}

/// What `[workload]` of `node` says of the VMs that are requested of this provider with these hosts.
pub(crate) fn check(
    node: &Node,
    setup: &Setup,
    hosts: &[Host],
    found: &mut Mistakes,
) -> Option<RequestSource> {
    let inside = node.get("workload")?;
    let Some(WorkloadSection::Requests(section)) = read(inside, found) else { return None };
    let offer = offer(setup, hosts);
    let source = match (section.request, section.csv, section.model) {
        (request, None, None) if !request.is_empty() => RequestSource::Written { request },
        (request, Some(csv), None) if request.is_empty() => {
            let place = inside.place_of("csv");
            let csv = place.file(&csv);
            // The rows are looked at as they are read.
            if let Err(error) = RequestCsv::of(&csv, File::open(&csv), None) {
                let text = chain(&error);
                let make = "give a CSV file of requests; `dormouse workload requests` makes one";
                let (what, remedy) = text.rsplit_once("; ").unwrap_or((&text, make));
                found.add(place, what, remedy);
            }
            RequestSource::Csv { csv }
        }
        (request, None, Some(model)) if request.is_empty() => RequestSource::Model { model },
        _ => {
            let what = "it needs one of request, csv and model";
            let remedy = "write [[workload.request]], csv = \"requests.csv\" or [workload.model]";
            found.add(&inside.place, what, remedy);
            return None;
        }
    };
    for flaw in source.flaws(Some(&offer)) {
        found.add(inside.place_of(&flaw.key), flaw.refusal.what, flaw.refusal.remedy);
    }
    Some(source)
}
