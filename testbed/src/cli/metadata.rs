//! `dormouse metadata`: a metadata endpoint without a run, as a VM's programs find it on a cloud.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use dormouse_cloud::{InterruptionModel, InterruptionTarget};
use dormouse_experiment::{SpotScenario, chain, read_scenario};
use dormouse_input::Moment;
use dormouse_metadata::{
    EndpointSettings, InstanceAccess, InterruptionNotice, MaintenanceEvent, MaintenanceState,
    MetadataService, TakingAction, TokenRule, UnixTime, VmAnnouncement, VmFacts, VmMarket, VmPlace,
    address_of_vm,
};
use dormouse_model::{MetadataSettings, MetadataTimes, MetadataTokens};
use dormouse_units::{Speedup, Time, TypeName, VmId};
use dormouse_worker::metadata::{Endpoint, random_key, unix_now};
use tokio::runtime::Builder;
use tokio::time::Instant;

use super::failure::Failure;
use super::metadata_args::{EventsArgs, MetadataArgs, Mock, MockTimes, SpotAction, SpotArgs};
use super::print::print;
use crate::endpoint::{Act, Interrupted, VmTimeline, play};
use crate::said;

/// Default instance type of a VM whose type and zone are not given.
const KIND: &str = "m5.large";
const ZONE: &str = "us-east-1a";
/// Default time from a notice to the end of the VM.
const NOTICE: Duration = Duration::from_secs(120);
const DAY: Duration = Duration::from_secs(86_400);

/// Serves the metadata of one VM until a signal ends it.
pub(crate) fn metadata(args: &MetadataArgs) -> Result<(), Failure> {
    let scenario = args.scenario.as_deref().map(read_scenario).transpose()?;
    if scenario.is_some() && args.mock.is_some() {
        let why = "a scenario says what is announced: leave spot or events out, or the scenario";
        return Err(Failure::BadInput(why.to_owned()));
    }
    let kind = kind(args, scenario.as_ref())?;
    let settings = settings(args, scenario.as_ref())?;
    for note in scenario.iter().flat_map(|scenario| &scenario.notes) {
        said::note(note);
    }
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::Broken(format!("the runtime can't be started: {error}")))?;
    runtime.block_on(async {
        let mut signals = dormouse_coordinator::ProcessSignals::of_this_process()
            .map_err(|error| Failure::Broken(format!("signals can't be received: {error}")))?;
        let (begun, zero) = (Instant::now(), unix_now());
        let facts = facts(args, &kind, &settings, zero);
        let words =
            format!("{}, a spot {} in {}", VmId::new(args.vm), facts.kind, facts.place.zone);
        let endpoint = listen(args, facts, &settings)?;
        print(&format!("http://{} answers as {words} until Ctrl-C", endpoint.address()))?;
        let acts: Box<dyn Iterator<Item = Act>> = match scenario {
            Some(scenario) => {
                let clock = ScenarioClock {
                    zero,
                    speedup: args.speedup.unwrap_or(Speedup::ONE),
                    times: settings.times,
                };
                let timeline = VmTimeline::new(&scenario, VmId::new(args.vm), kind);
                Box::new(timeline.map(move |act| clock.act(act)))
            }
            None => Box::new(mocked(args, zero).into_iter()),
        };
        tokio::select! {
            () = signals.next() => {}
            () = async {
                play(&endpoint, begun, acts).await;
                std::future::pending::<()>().await;
            } => {}
        }
        Ok(())
    })
}

/// The instance type of the VM, with its zone if types have zones.
fn kind(args: &MetadataArgs, scenario: Option<&SpotScenario>) -> Result<TypeName, Failure> {
    let said = args.kind.as_deref().map(TypeName::from);
    let zoned = |kind: TypeName| match &args.zone {
        Some(zone) if kind.zone().is_none() => kind.in_zone(&zone.as_str().into()),
        _ => kind,
    };
    let types = scenario.map(|scenario| &scenario.types).filter(|types| !types.is_empty());
    let Some(types) = types else {
        let named = said.or_else(|| first_targets(scenario?).find_map(of_target));
        return Ok(zoned(named.unwrap_or_else(|| TypeName::from(KIND))));
    };
    let is_wanted = |kind: &&TypeName| {
        let is_it = |said: &TypeName| *kind == said || kind.without_zone() == said.as_str();
        said.as_ref().is_none_or(is_it)
            && args.zone.as_ref().is_none_or(|zone| kind.zone().is_none_or(|of| of == zone))
    };
    let wanted: Vec<&TypeName> = types.keys().filter(is_wanted).collect();
    let hit = scenario.into_iter().flat_map(first_targets).find_map(|target| {
        wanted.iter().find(|kind| match target {
            InterruptionTarget::Type(of) => of == **kind,
            InterruptionTarget::Zone(zone) => kind.zone() == Some(zone.as_str()),
            InterruptionTarget::All | InterruptionTarget::Vm(_) => false,
        })
    });
    match hit.or(wanted.first()) {
        Some(kind) => Ok((*kind).clone()),
        None => {
            let all: Vec<&str> = types.keys().map(TypeName::as_str).collect();
            let why = format!("the scenario has no such spot type; it has {}", all.join(", "));
            Err(Failure::BadInput(why))
        }
    }
}

/// The targets that a scenario's listed interruptions name, in the order of the interruptions.
fn first_targets(scenario: &SpotScenario) -> impl Iterator<Item = &InterruptionTarget> {
    let acts = scenario.interruptions.iter().flat_map(|model| match model {
        InterruptionModel::Schedule { acts } => &acts[..],
        _ => &[],
    });
    acts.map(|act| &act.target)
}

/// The instance type that a target names; `None` if the target names a VM.
fn of_target(target: &InterruptionTarget) -> Option<TypeName> {
    match target {
        InterruptionTarget::Type(kind) => Some(kind.clone()),
        InterruptionTarget::Zone(zone) => Some(TypeName::from(KIND).in_zone(zone)),
        InterruptionTarget::All | InterruptionTarget::Vm(_) => None,
    }
}

/// The metadata settings of the scenario, with the additions of the command line.
fn settings(
    args: &MetadataArgs,
    scenario: Option<&SpotScenario>,
) -> Result<MetadataSettings, Failure> {
    let mut settings = scenario.map(|scenario| scenario.metadata.clone()).unwrap_or_default();
    settings.tags.extend(args.tags.iter().cloned());
    if args.imdsv2 {
        settings.tokens = MetadataTokens::Required;
    }
    if let Some(path) = &args.user_data {
        settings.user_data = Some(dormouse_experiment::read_text(path)?);
    }
    match settings.first_flaw() {
        None => Ok(settings),
        Some((_, what, remedy)) => Err(Failure::BadInput(format!("{what}; {remedy}"))),
    }
}

fn facts(
    args: &MetadataArgs,
    kind: &TypeName,
    settings: &MetadataSettings,
    launched: UnixTime,
) -> VmFacts {
    let zone = kind.zone().or(args.zone.as_deref()).unwrap_or(ZONE);
    VmFacts {
        identity: format!("endpoint/{}", args.vm),
        instance_id: None,
        image_id: None,
        kind: kind.without_zone().to_owned(),
        place: VmPlace::of_zone(zone),
        market: VmMarket::Spot,
        launched,
        address: address_of_vm(args.vm),
        tags: settings.tags.clone(),
        user_data: settings.user_data.clone(),
        security_groups: Vec::new(),
        access: InstanceAccess::default(),
    }
}

fn listen(
    args: &MetadataArgs,
    facts: VmFacts,
    settings: &MetadataSettings,
) -> Result<Endpoint, Failure> {
    let tokens = match settings.tokens {
        MetadataTokens::Optional => TokenRule::Optional,
        MetadataTokens::Required => TokenRule::Required,
    };
    let key = random_key();
    let key =
        key.map_err(|error| Failure::Broken(format!("the host gives no random numbers: {error}")))?;
    let service = MetadataService::new(facts, EndpointSettings { tokens }, key);
    let MetadataArgs { hostname, port, .. } = args;
    let found = (hostname.as_str(), *port).to_socket_addrs();
    let address: Option<SocketAddr> = found.ok().and_then(|mut found| found.next());
    let Some(address) = address else {
        let why = format!("--hostname {hostname} is neither a name nor an address of this host");
        return Err(Failure::BadInput(why));
    };
    Endpoint::listen_at(address, service).map_err(|error| {
        let why = chain(&error);
        Failure::BadInput(format!(
            "can't listen on {address}: {why}; give another --port, such as 0 for any that is free"
        ))
    })
}

/// The clock of a scenario, which was at zero when the endpoint began.
#[derive(Clone, Copy, Debug)]
struct ScenarioClock {
    zero: UnixTime,
    speedup: Speedup,
    times: MetadataTimes,
}

impl ScenarioClock {
    /// Real time from the beginning of the scenario to an instant of it.
    fn real(self, at: Time) -> Duration {
        self.speedup.to_real(at.since(Time::ZERO))
    }

    /// The date that the metadata give for an instant of the scenario.
    fn date(self, at: Time) -> UnixTime {
        match self.times {
            MetadataTimes::Real => later(self.zero, self.real(at)),
            MetadataTimes::Emulated => {
                UnixTime::from_micros(self.zero.as_micros().saturating_add(at.as_micros()))
            }
        }
    }

    /// The announcement for an event of the VM at an instant; without an event, nothing is announced at that instant.
    fn act(self, (at, heard): (Time, Option<Interrupted>)) -> Act {
        let after = self.real(at);
        let interruption = |taking, at| {
            VmAnnouncement::Interruption(InterruptionNotice { taking, at: self.date(at) })
        };
        let what = heard.map(|heard| match heard {
            Interrupted::Preempted { at } => interruption(TakingAction::Terminate, at),
            Interrupted::Hibernated => interruption(TakingAction::Hibernate, at),
            Interrupted::Resumed => VmAnnouncement::Resumed,
            Interrupted::Recommended => VmAnnouncement::Rebalance(self.date(at)),
        });
        let words = what.as_ref().map(in_words).unwrap_or_default();
        Act { after, what, words: format!("at {}: {words}", at.since(Time::ZERO)) }
    }
}

/// The announcements that amazon-ec2-metadata-mock makes for these options, in the order of their times.
fn mocked(args: &MetadataArgs, now: UnixTime) -> Vec<Act> {
    let MockTimes {
        mock_delay_sec,
        mock_trigger_time,
        rebalance_delay_sec,
        rebalance_trigger_time,
    } = args.times;
    let after = delay(mock_delay_sec, mock_trigger_time, now);
    let rebalance_after = delay(rebalance_delay_sec, rebalance_trigger_time, now);
    let (default_spot, default_events) = (SpotArgs::default(), EventsArgs::default());
    let (spot, events) = match &args.mock {
        None => (Some(&default_spot), Some(&default_events)),
        Some(Mock::Spot(spot)) => (Some(spot), None),
        Some(Mock::Events(events)) => (None, Some(events)),
    };
    let mut acts = Vec::new();
    if let Some(SpotArgs { action, time, rebalance_rec_time }) = spot {
        let taking = match action {
            SpotAction::Terminate => TakingAction::Terminate,
            SpotAction::Stop => TakingAction::Stop,
            SpotAction::Hibernate => TakingAction::Hibernate,
        };
        let at = time.map_or_else(|| later(now, after.saturating_add(NOTICE)), date);
        let since = rebalance_rec_time.map_or_else(|| later(now, rebalance_after), date);
        acts.push((rebalance_after, VmAnnouncement::Rebalance(since)));
        acts.push((after, VmAnnouncement::Interruption(InterruptionNotice { taking, at })));
    }
    acts.extend(events.map(|events| (after, maintenance(events, now))));
    acts.sort_by_key(|(after, _)| *after);
    let act = |(after, what): (Duration, VmAnnouncement)| {
        let words = format!("after {} s: {}", after.as_secs(), in_words(&what));
        Act { after, what: Some(what), words }
    };
    acts.into_iter().map(act).collect()
}

fn maintenance(events: &EventsArgs, now: UnixTime) -> VmAnnouncement {
    use super::metadata_args::{EventCode as Code, EventState as State};
    let code = match events.code {
        Code::InstanceReboot => "instance-reboot",
        Code::SystemReboot => "system-reboot",
        Code::SystemMaintenance => "system-maintenance",
        Code::InstanceRetirement => "instance-retirement",
        Code::InstanceStop => "instance-stop",
    };
    let state = match events.state {
        State::Active => MaintenanceState::Active,
        State::Completed => MaintenanceState::Completed,
        State::Canceled => MaintenanceState::Canceled,
    };
    let or = |said: Option<Moment>, days| said.map_or_else(|| later(now, DAY * days), date);
    VmAnnouncement::Maintenance(MaintenanceEvent {
        code: code.to_owned(),
        state,
        not_before: or(events.not_before, 0),
        not_after: or(events.not_after, 7),
        deadline: or(events.not_before_deadline, 9),
    })
}

/// The time from `now` to an announcement: until the date `at`, if given, or else `seconds`.
fn delay(seconds: Option<u64>, at: Option<Moment>, now: UnixTime) -> Duration {
    match at {
        Some(at) => Duration::from_micros(date(at).as_micros().saturating_sub(now.as_micros())),
        None => Duration::from_secs(seconds.unwrap_or(0)),
    }
}

fn date(moment: Moment) -> UnixTime {
    let seconds = u64::try_from(moment.second).unwrap_or(0);
    UnixTime::from_micros(seconds.saturating_mul(1_000_000))
}

fn later(from: UnixTime, by: Duration) -> UnixTime {
    let by = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
    UnixTime::from_micros(from.as_micros().saturating_add(by))
}

fn in_words(what: &VmAnnouncement) -> String {
    match what {
        VmAnnouncement::Interruption(InterruptionNotice { taking, at }) => {
            format!("the VM hears that it will {} at {}", taking.ec2_word(), at.iso_text())
        }
        VmAnnouncement::Rebalance(since) => {
            format!("the VM hears that it is likely to be taken, since {}", since.iso_text())
        }
        VmAnnouncement::Maintenance(event) => {
            format!("the VM hears of maintenance: {}, {}", event.code, event.state.ec2_word())
        }
        VmAnnouncement::SecurityGroups(names) => {
            format!("the VM has the security groups {}", names.join(", "))
        }
        VmAnnouncement::Resumed => "the VM is in use again, and hears nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests;
