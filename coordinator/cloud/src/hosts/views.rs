//! Views of the hosts built anew for each call, like OpenStack's scheduler does.

use dormouse_units::HostId;

use super::fleet::OccupiedHost;
use super::plain::RoomView;
use crate::{HostFleet, PlacementRequest};

/// Copies of all hosts: one for filtering and, if the rule needs two views, one for weighing.
#[derive(Debug)]
pub(super) struct BuiltViews {
    filtered: Vec<(HostId, OccupiedHost)>,
    weighed: Option<Vec<(HostId, OccupiedHost)>>,
}

impl BuiltViews {
    /// Builds the view for filtering and, if `is_second_built`, the full view beside it.
    pub(super) fn new(fleet: &HostFleet, view: RoomView, is_second_built: bool) -> Self {
        let filtered = match view {
            RoomView::Full | RoomView::Reserved => full_views(fleet),
            RoomView::Partial => {
                fleet.hosts().map(|(id, host)| (id, host.without_preemptible())).collect()
            }
        };
        Self { filtered, weighed: is_second_built.then(|| full_views(fleet)) }
    }

    /// The hosts that have room for `want` in the view for filtering, in the form that they have in
    /// the view for weighing.
    pub(super) fn with_room(
        &self,
        view: RoomView,
        want: &PlacementRequest,
    ) -> impl Iterator<Item = (HostId, &OccupiedHost)> {
        let weighed = self.weighed.as_ref().unwrap_or(&self.filtered);
        let has_room = move |host: &OccupiedHost| match view {
            // What is free in a copy without preemptible VMs is the partial view already.
            RoomView::Partial => host.free.holds(&want.room),
            RoomView::Full | RoomView::Reserved => view.has_room(host, want),
        };
        let both = self.filtered.iter().zip(weighed);
        both.filter(move |((_, host), _)| has_room(host)).map(|(_, (id, host))| (*id, host))
    }
}

/// The full view of every host: free room and VMs.
pub(super) fn full_views(fleet: &HostFleet) -> Vec<(HostId, OccupiedHost)> {
    fleet.hosts().map(|(id, host)| (id, host.clone())).collect()
}
