//! What the section of requests for VMs comes to.

use dormouse_cloud::{Catalogue, Host};
use dormouse_documents::{Mistakes, Node, read};
use dormouse_workload::{RequestSource, RequestSpec};

use super::cloud::is_type;
use super::sections::WorkloadSection;

/// What `[workload]` of `node` says of the VMs that are requested of a provider with these types and
/// hosts; no hosts: they hold everything.
pub(crate) fn check(
    node: &Node,
    catalogue: &Catalogue,
    hosts: &[Host],
    found: &mut Mistakes,
) -> Option<RequestSource> {
    let inside = node.get("workload")?;
    let Some(WorkloadSection::Requests(section)) = read(inside, found) else { return None };
    for (n, spec) in section.request.iter().enumerate() {
        let RequestSpec { at, kind, market, .. } = spec;
        let place = |key: &str| inside.place_of(&format!("request.{n}.{key}"));
        if !is_type(kind, place("type"), Some(&catalogue.types), found) {
            continue;
        }
        let Some(offer) = catalogue.get(kind) else { continue };
        if offer.price(*market).is_none() {
            let what = format!("{kind} is not offered in the {market} market");
            found.add(place("market"), what, "give the type a price there, or change the market");
        }
        let room = offer.room();
        if !hosts.is_empty() && !hosts.iter().any(|host| host.holds(&room)) {
            let what = format!("no host can hold a {kind}: it needs {room}");
            found.add(place("type"), what, "give cloud.hosts a larger one, or take another type");
        }
        if n > 0 && *at < section.request[n - 1].at {
            let what = format!("{at} is before the request above it");
            found.add(place("at"), what, "write the requests in order of time");
        }
    }
    Some(RequestSource::Written { request: section.request })
}
