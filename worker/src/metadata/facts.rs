//! Facts about a VM that the coordinator sends, as the VM's metadata show them.

use std::net::Ipv4Addr;
use std::time::{SystemTime, UNIX_EPOCH};

use dormouse_metadata::{
    InstanceAccess, InterruptionNotice, RoleCredentials, TakingAction, UnixTime, VmAnnouncement,
    VmFacts, VmMarket, VmPlace, address_of_vm,
};
use dormouse_proto::v1::{Announce, CreateVm, Metadata, announce::What};
use dormouse_units::{Speedup, Time};

use crate::micros::whole_micros;

/// Availability zone that is shown for a VM without a zone.
const ZONE: &str = "us-east-1a";

/// The clock that gives the times in a VM's metadata: the run's clock, or the host's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Factor by which the run's clock is faster than the wall clock.
    pub(crate) speedup: Speedup,
    /// When the run's clock showed zero, in microseconds since 1970, if the endpoint shows times of the run's clock;
    /// `None`: the endpoint shows times of the host's clock.
    pub(crate) zero_unix_us: Option<u64>,
}

/// An instant on the host's wall clock and on the run's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Microseconds since 1970, by the wall clock.
    pub(crate) unix_us: u64,
    /// Time on the run's clock, if that is known.
    pub(crate) run: Option<Time>,
}

impl Moment {
    /// Makes the instant `since` ago, at which the run's clock showed `run`.
    pub(crate) fn moment_ago(since: std::time::Duration, run: Option<Time>) -> Self {
        Self { unix_us: unix_us().saturating_sub(whole_micros(since)), run }
    }
}

/// Returns the current time of the wall clock.
#[must_use]
pub fn unix_now() -> UnixTime {
    UnixTime::from_micros(unix_us())
}

/// Returns the current time of the wall clock in microseconds since 1970.
fn unix_us() -> u64 {
    whole_micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

impl Clock {
    /// Returns the time that the metadata show for the instant `at` of the run, computed from the known instant `seen`;
    /// if `at` is `None`, the time of `seen`.
    pub(crate) fn shown_time(self, at: Option<Time>, seen: Moment) -> UnixTime {
        let at = at.or(seen.run);
        let us = match (self.zero_unix_us, at, seen.run) {
            (Some(zero), Some(at), _) => zero.saturating_add(at.as_micros()),
            (_, Some(at), Some(run)) => {
                let (ahead, behind) = (at.since(run), run.since(at));
                let ahead = whole_micros(self.speedup.to_real(ahead));
                seen.unix_us
                    .saturating_add(ahead)
                    .saturating_sub(whole_micros(self.speedup.to_real(behind)))
            }
            _ => seen.unix_us,
        };
        UnixTime::from_micros(us)
    }
}

/// Makes the facts that a VM's metadata show; `created` is when the VM was created.
pub(crate) fn vm_facts(
    run: &str,
    create: &CreateVm,
    of: &Metadata,
    clock: Clock,
    made: Moment,
) -> VmFacts {
    let (kind, zone) = create.kind.split_once('@').unwrap_or((&create.kind, &of.zone));
    let zone = if zone.is_empty() { ZONE } else { zone };
    VmFacts {
        identity: format!("{run}/{}", create.vm),
        instance_id: of.instance_id.clone(),
        image_id: of.image_id.clone(),
        kind: kind.to_owned(),
        place: VmPlace::of_zone(zone),
        market: if of.spot { VmMarket::Spot } else { VmMarket::OnDemand },
        launched: clock.shown_time(None, made),
        address: own_address(create.vm, of),
        tags: of.tags.iter().map(|tag| (tag.name.clone(), tag.value.clone())).collect(),
        user_data: of.user_data.clone(),
        security_groups: of.security_groups.clone(),
        access: instance_access(of),
    }
}

/// Makes the part of a VM's facts that says how the VM is reached, and what it may call.
fn instance_access(of: &Metadata) -> InstanceAccess {
    InstanceAccess {
        public_address: of.public_address.as_deref().and_then(|address| address.parse().ok()),
        public_key: of.public_key.as_ref().map(|key| (key.name.clone(), key.text.clone())),
        role: of.role.as_ref().map(|role| RoleCredentials {
            name: role.name.clone(),
            profile: role.profile.clone(),
            access_key: role.access_key.clone(),
            secret: role.secret.clone(),
            token: role.token.clone(),
        }),
    }
}

/// Returns the address of a VM: the one that its metadata name, else the one that its number gives.
pub(crate) fn own_address(vm: u32, of: &Metadata) -> Ipv4Addr {
    let named = of.address.as_deref().and_then(|address| address.parse().ok());
    named.unwrap_or_else(|| address_of_vm(vm))
}

/// Converts the announcement of a command, with the moment of its decision; `None`: programs aren't told of it, or this
/// version of the program doesn't know the announcement.
pub(crate) fn read_announcement(
    said: &Announce,
    clock: Clock,
    decided: Moment,
) -> Option<VmAnnouncement> {
    let interruption = |taking, at| {
        let at = clock.shown_time(Some(Time::from_micros(at)), decided);
        VmAnnouncement::Interruption(InterruptionNotice { taking, at })
    };
    Some(match said.what? {
        What::TerminateAtUs(at) => interruption(TakingAction::Terminate, at),
        What::StopAtUs(at) => interruption(TakingAction::Stop, at),
        What::HibernateAtUs(at) => interruption(TakingAction::Hibernate, at),
        What::Booted(_) | What::KeepFiles(_) | What::ForgetFiles(_) => return None,
        What::Rebalance(_) => VmAnnouncement::Rebalance(clock.shown_time(None, decided)),
    })
}

#[cfg(test)]
mod tests {
    use dormouse_proto::v1::Tag;

    use super::*;

    const S: u64 = 1_000_000;

    fn at(clock: Clock) -> Option<VmAnnouncement> {
        let said = Announce { vm: 1, what: Some(What::TerminateAtUs(220 * S)) };
        let decided = Moment { unix_us: 1_000 * S, run: Some(Time::from_secs(100)) };
        read_announcement(&said, clock, decided)
    }

    fn terminates(at: u64) -> Option<VmAnnouncement> {
        let at = UnixTime::from_micros(at);
        Some(VmAnnouncement::Interruption(InterruptionNotice {
            taking: TakingAction::Terminate,
            at,
        }))
    }

    #[test]
    fn times_are_those_at_which_it_will_really_happen() {
        let clock = Clock { speedup: Speedup::times_real(60), zero_unix_us: None };
        assert_eq!(at(clock), terminates(1_002 * S));
    }

    #[test]
    fn times_of_the_runs_clock_are_counted_from_its_beginning() {
        let clock = Clock { speedup: Speedup::times_real(60), zero_unix_us: Some(900 * S) };
        assert_eq!(at(clock), terminates(1_120 * S));
    }

    #[test]
    fn a_vm_is_where_its_kind_says() {
        let clock = Clock { speedup: Speedup::ONE, zero_unix_us: None };
        let create =
            CreateVm { vm: 7, kind: "c3.large@eu-west-1b".to_owned(), ..CreateVm::default() };
        let tags = vec![Tag { name: "team".to_owned(), value: "weather".to_owned() }];
        let of = Metadata { spot: true, tags, ..Metadata::default() };
        assert_eq!(
            own_address(7, &Metadata { address: Some("172.31.0.9".to_owned()), ..of.clone() }),
            Ipv4Addr::new(172, 31, 0, 9)
        );
        let made = Moment { unix_us: 5, run: None };
        let facts = vm_facts("run", &create, &of, clock, made);
        assert_eq!((facts.kind.as_str(), facts.place.region.as_str()), ("c3.large", "eu-west-1"));
        assert_eq!((facts.address, facts.market), (Ipv4Addr::new(10, 0, 0, 11), VmMarket::Spot));
        assert_eq!(facts.launched.as_micros(), 5);
        assert_eq!((facts.tags["team"].as_str(), facts.user_data), ("weather", None));
    }
}
