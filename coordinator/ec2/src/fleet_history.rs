//! The history of a fleet: when the fleet was made and ended, and which instances it launched and lost.

use dormouse_ec2_wire::{ApiError, WireValue};
use dormouse_units::Time;

use crate::desk::{ApiDesk, CallScope};
use crate::desk_records::InstanceFleet;
use crate::ec2_instance::InstanceStage;
use crate::fleet::fleet_not_found;
use crate::listing::{refuse_others, take_page};

/// The words of an API for the kinds of a fleet's events.
struct HistoryWords {
    /// Word for a change of the fleet itself.
    fleet: &'static str,
    /// Word for a change of one of the fleet's instances.
    instance: &'static str,
    /// Word for the end of the fleet.
    ended: &'static str,
}

const OF_FLEETS: HistoryWords =
    HistoryWords { fleet: "fleet-change", instance: "instance-change", ended: "deleted" };
const OF_SPOT_FLEETS: HistoryWords =
    HistoryWords { fleet: "fleetRequestChange", instance: "instanceChange", ended: "cancelled" };

/// One event: its time, its kind, its name, and the instance that it is about, if any.
type FleetEvent<'a> = (Time, &'static str, &'static str, Option<&'a str>);

impl ApiDesk {
    pub(crate) fn fleet_history(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["FleetId", "StartTime", "EventType", "DryRun", "NextToken", "MaxResults"];
        refuse_others("DescribeFleetHistory", input, &played)?;
        let id = input.text("FleetId").unwrap_or_default();
        let place = self.fleet_of(scope, id).ok_or_else(|| fleet_not_found(id))?;
        let fleet = self.fleets.get(place).ok_or_else(|| fleet_not_found(id))?;
        Ok(self.history_to_wire(fleet, input, &OF_FLEETS)?.with("FleetId", id))
    }

    pub(crate) fn spot_fleet_history(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played =
            ["SpotFleetRequestId", "StartTime", "EventType", "DryRun", "NextToken", "MaxResults"];
        refuse_others("DescribeSpotFleetRequestHistory", input, &played)?;
        let id = input.text("SpotFleetRequestId").unwrap_or_default();
        let place = self.spot_fleet_of(scope, id)?;
        let fleet = self.fleets.get(place).ok_or_else(|| fleet_not_found(id))?;
        Ok(self.history_to_wire(fleet, input, &OF_SPOT_FLEETS)?.with("SpotFleetRequestId", id))
    }

    fn history_to_wire(
        &self,
        fleet: &InstanceFleet,
        input: &WireValue,
        words: &HistoryWords,
    ) -> Result<WireValue, ApiError> {
        let start = input.instant("StartTime").unwrap_or(i64::MIN);
        let from = self.time_of(start);
        let mut events = self.events_of(fleet, words);
        events.retain(|(at, kind, ..)| {
            *at >= from && input.text("EventType").is_none_or(|wanted| wanted == *kind)
        });
        let (page, next) = take_page(events, input, (1, 1_000))?;
        let written = page.into_iter().map(|(at, kind, name, instance)| {
            let about =
                WireValue::structure().with("EventSubType", name).with_some("InstanceId", instance);
            WireValue::structure()
                .with("EventType", kind)
                .with("Timestamp", self.instant(at))
                .with("EventInformation", about)
        });
        Ok(WireValue::structure()
            .with("HistoryRecords", WireValue::list_of(written))
            .with("LastEvaluatedTime", self.instant(self.now))
            .with_some("StartTime", input.instant("StartTime").map(WireValue::Instant))
            .with_some("NextToken", next))
    }

    /// The events of a fleet, in order of time.
    fn events_of<'a>(&'a self, fleet: &InstanceFleet, words: &HistoryWords) -> Vec<FleetEvent<'a>> {
        let mut events = vec![
            (fleet.created, words.fleet, "submitted", None),
            (fleet.created, words.fleet, "active", None),
        ];
        for (index, _) in &fleet.instances {
            let Some(it) = self.instances.get(*index) else { continue };
            if it.stage == InstanceStage::Refused {
                continue;
            }
            let id = Some(it.id.as_str());
            events.push((it.created, words.instance, "launched", id));
            if let InstanceStage::Terminated(at) = it.stage {
                events.push((at, words.instance, "terminated", id));
            }
        }
        events.extend(fleet.ended.map(|at| (at, words.fleet, words.ended, None)));
        events.sort_by_key(|(at, ..)| *at);
        events
    }
}
