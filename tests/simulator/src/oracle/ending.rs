//! Checks why a run ends without all of its work done: its reason must be given and be true.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::ResourceVector;
use dormouse_model::{Effect, Event, Notice, Step, TenantNumbers};
use dormouse_units::HostId;

use super::Broken;
use crate::invariant::Invariant;

/// The facts about a run by which the reason for its end is judged.
#[derive(Clone, Copy, Debug)]
pub struct EndFacts {
    /// Whether the run's user has ended the run.
    pub is_cancelled: bool,
    /// Whether the run's user has paused the run.
    pub is_paused: bool,
    /// Number of failed attempts at a task or job after which the scheduler gives it up.
    pub failures: u32,
    /// Number of refused launches in a row after which the scheduler gives up; the scheduler of parallel jobs never
    /// does.
    pub refusals: u32,
    /// Processors of the machine for parallel jobs; `None` for a run without such jobs.
    pub machine: Option<u32>,
    /// The VM numbers of the tenant that runs the bag, by which its refused launches are found if there are other
    /// tenants.
    pub bag: TenantNumbers,
    /// Whether the schedulers are programs, which do not say why they wait.
    pub are_programs: bool,
    /// Whether spot VMs have bids, or are not always available.
    pub has_bids: bool,
    /// Whether spot VMs of some type are not always available.
    pub has_scarce: bool,
}

/// A reason to end a run before its work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The user ended the run.
    UserCancel,
    /// The user paused the run before it had begun, so that there is nothing to resume.
    PauseBeforeBegin,
    /// A task failed as often as its scheduler allows.
    GivenUpWork,
    /// Launches were refused as often as the scheduler allows.
    GivenUpLaunches,
    /// No host has room for the machine of the parallel jobs.
    NoRoom,
    /// A scheduler that is a program waits, and no further event will come.
    ProgramWaits,
    /// All VMs cost more than the bids, and always will.
    TooDear,
    /// No spot VM will be available again.
    NoneLeft,
}

/// The beginning of the reason of a run that is stuck: no further event will come. The check of the log knows this
/// text, too.
const STUCK: &str = "nothing will ever happen again: ";

impl Reason {
    /// The reason that this text of a log gives; `None` if it gives no reason that is allowed.
    fn from_words(why: &str) -> Option<Self> {
        let Some(stuck) = why.strip_prefix(STUCK) else {
            return match why {
                "the user ended it" => Some(Self::UserCancel),
                "its user wanted it so" => Some(Self::PauseBeforeBegin),
                _ => None,
            };
        };
        let all = [
            (
                "what is left was given up, as its VMs were taken or it failed too often",
                Self::GivenUpWork,
            ),
            (
                "launches were refused as often as scheduler.max-retries allows",
                Self::GivenUpLaunches,
            ),
            ("the machine for parallel jobs finds no room on any host", Self::NoRoom),
            ("the scheduler has no task on any VM and asked for no wake-up", Self::ProgramWaits),
            ("no price changes any more, and at the last ones VMs cost more", Self::TooDear),
            ("a launch was refused, and of its type no spot VM can be had", Self::NoneLeft),
        ];
        all.into_iter().find(|(words, _)| stuck.starts_with(words)).map(|(_, reason)| reason)
    }

    /// Why this can't be the reason for the end of these steps; `None` if it can.
    fn why_not(self, facts: &EndFacts, steps: &[Step]) -> Option<String> {
        match self {
            Self::UserCancel => (!facts.is_cancelled).then(|| "the user did not".to_owned()),
            Self::PauseBeforeBegin => {
                let has_begun = steps.iter().any(|step| step.event == Event::Begin);
                (has_begun || !facts.is_paused).then(|| {
                    format!("it was paused: {}, and had begun: {has_begun}", facts.is_paused)
                })
            }
            Self::GivenUpWork => {
                let failures = most_failures(steps);
                (failures < facts.failures)
                    .then(|| format!("no task failed more than {failures} times"))
            }
            Self::GivenUpLaunches => {
                let refused = refused_at_last(steps, facts.bag);
                (refused < facts.refusals)
                    .then(|| format!("{refused} launches were refused at last"))
            }
            Self::NoRoom => {
                let Some(machine) = facts.machine else { return Some("it has no jobs".to_owned()) };
                // The VMs of others may have the room.
                if !facts.bag.are_same() {
                    return None;
                }
                let large = |offer: &ResourceVector| offer.vcpus >= machine;
                let (host, offer) = hosts(steps).into_iter().find(|(_, offer)| large(offer))?;
                Some(format!("{host} offers {} vCPUs, and the machine has {machine}", offer.vcpus))
            }
            Self::ProgramWaits => {
                (!facts.are_programs).then(|| "its schedulers are no programs".to_owned())
            }
            Self::TooDear => (!facts.has_bids).then(|| "nobody bids".to_owned()),
            Self::NoneLeft => (!facts.has_scarce).then(|| "all types can be had".to_owned()),
        }
    }
}

/// The number of failures of the task that failed most often.
fn most_failures(steps: &[Step]) -> u32 {
    let mut failures = BTreeMap::<_, u32>::new();
    for notice in steps.iter().flat_map(|step| &step.notices) {
        if let Notice::TaskFailed { task, .. } = notice {
            *failures.entry(*task).or_default() += 1;
        }
    }
    failures.into_values().max().unwrap_or(0)
}

/// Number of launches refused to this tenant since a VM of its own was last ready.
fn refused_at_last(steps: &[Step], own: TenantNumbers) -> u32 {
    steps.iter().flat_map(|step| &step.notices).fold(0, |refused, notice| match notice {
        Notice::VmReady { vm } if own.owns_vm(*vm) => 0,
        Notice::LaunchRefused { vm, .. } if own.owns_vm(*vm) => refused + 1,
        _ => refused,
    })
}

/// The hosts present at the end, and the resources that each offers.
fn hosts(steps: &[Step]) -> BTreeMap<HostId, ResourceVector> {
    let mut there = BTreeMap::new();
    for step in steps {
        match &step.event {
            Event::HostJoined { host, offer, .. } => drop(there.insert(*host, *offer)),
            Event::HostLost { host, .. } => drop(there.remove(host)),
            _ => {}
        }
    }
    there
}

/// Checks how a run has ended.
///
/// # Errors
///
/// The run is not over, or is incomplete and gives no true reason for that.
pub fn ending(facts: &EndFacts, steps: &[Step]) -> Result<(), Broken> {
    let broken = |why: String| Err((Invariant::Progress, why));
    let over = steps.iter().flat_map(|step| &step.effects).find_map(|effect| match effect {
        Effect::Over { complete } => Some(*complete),
        _ => None,
    });
    match over {
        None => {
            return broken(
                "its coordinator ended, and its log does not say that it is over".into(),
            );
        }
        Some(true) => return Ok(()),
        Some(false) => {}
    }
    let why: BTreeSet<_> = steps
        .iter()
        .filter_map(|step| match &step.event {
            Event::Cancel { why } => Some(why.as_str()),
            _ => None,
        })
        .collect();
    let Some(why) = why.first() else {
        return broken("it ended without all of its work, and does not say why".to_owned());
    };
    let Some(reason) = Reason::from_words(why) else {
        return broken(format!("it was ended for a reason that there is not: {why}"));
    };
    match reason.why_not(facts, steps) {
        None => Ok(()),
        Some(not) => broken(format!("'{why}' is not true: {not}")),
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Bytes, TaskId, Time, VmId};

    use super::*;

    const BAG: EndFacts = EndFacts {
        is_cancelled: false,
        is_paused: false,
        failures: 2,
        refusals: 3,
        machine: None,
        bag: TenantNumbers::SAME,
        are_programs: false,
        has_bids: false,
        has_scarce: false,
    };

    /// The steps of a log with these notices, which is cancelled for the reason `why`.
    fn cancelled(why: &str, notices: Vec<Notice>) -> Vec<Step> {
        let mut steps = vec![Step::blank(), Step::blank()];
        steps[0].begin_step(0, Time::ZERO, Event::Begin);
        steps[0].notices = notices;
        steps[1].begin_step(1, Time::ZERO, Event::Cancel { why: why.to_owned() });
        steps[1].effects.push(Effect::Over { complete: false });
        steps
    }

    fn breaks(facts: &EndFacts, steps: &[Step], part: &str) {
        let (invariant, why) = ending(facts, steps).expect_err(part);
        assert_eq!(invariant, Invariant::Progress);
        assert!(why.contains(part), "{why}");
    }

    #[test]
    fn a_run_is_over_and_complete_or_says_a_true_reason() {
        breaks(&BAG, &[], "does not say that it is over");
        let mut steps = cancelled("the user ended it", Vec::new());
        breaks(&BAG, &steps, "the user did not");
        assert_eq!(ending(&EndFacts { is_cancelled: true, ..BAG }, &steps), Ok(()));
        steps[1].event = Event::Tick;
        breaks(&BAG, &steps, "does not say why");
        steps[1].effects = vec![Effect::Over { complete: true }];
        assert_eq!(ending(&BAG, &steps), Ok(()));
        for why in ["nothing will ever happen again; 3 tasks are left", "the time limit of 9 s"] {
            breaks(&BAG, &cancelled(why, Vec::new()), "a reason that there is not");
        }
        let paused = EndFacts { is_paused: true, ..BAG };
        let mut steps = cancelled("its user wanted it so", Vec::new());
        breaks(&paused, &steps, "had begun: true");
        steps[0].event = Event::Tick;
        assert_eq!(ending(&paused, &steps), Ok(()));
        breaks(&BAG, &steps, "it was paused: false");
    }

    #[test]
    fn a_scheduler_has_tried_as_often_as_it_may_before_it_gives_up() {
        let vm = VmId::new(1);
        let refused = Notice::LaunchRefused { vm, why: String::new(), unavailable: false };
        let why = "nothing will ever happen again: launches were refused as often as \
                   scheduler.max-retries allows; raise that";
        let steps = |notices| cancelled(why, notices);
        assert_eq!(ending(&BAG, &steps(vec![refused.clone(); 3])), Ok(()));
        let since = vec![refused.clone(), Notice::VmReady { vm }, refused.clone(), refused];
        breaks(&BAG, &steps(since), "2 launches were refused at last");
        let failed = |task| Notice::TaskFailed { task: TaskId::new(task), vm, why: String::new() };
        let why = "nothing will ever happen again: what is left was given up, as its VMs were taken or it \
                   failed too often; give it VMs";
        assert_eq!(ending(&BAG, &cancelled(why, vec![failed(1), failed(1)])), Ok(()));
        let each_once = cancelled(why, vec![failed(1), failed(2)]);
        breaks(&BAG, &each_once, "no task failed more than 1 times");
    }

    #[test]
    fn no_host_that_is_left_has_room_for_a_machine_that_finds_none() {
        let why = "nothing will ever happen again: the machine for parallel jobs finds no room on any \
                   host beside the VMs that are there";
        let jobs = EndFacts { machine: Some(4), ..BAG };
        let with_host = |vcpus, is_lost| {
            let host = HostId::new(1);
            let offer = ResourceVector { memory: Bytes::new(1), ..ResourceVector::of_vcpus(vcpus) };
            let mut steps = cancelled(why, Vec::new());
            let name = "w0@1".to_owned();
            steps[0].event = Event::HostJoined { host, name, offer };
            if is_lost {
                let lost = Event::HostLost { host, why: String::new(), unheard: false };
                let mut step = Step::blank();
                step.begin_step(1, Time::ZERO, lost);
                steps.insert(1, step);
            }
            steps
        };
        assert_eq!(ending(&jobs, &with_host(3, false)), Ok(()));
        assert_eq!(ending(&jobs, &with_host(4, true)), Ok(()));
        breaks(&jobs, &with_host(4, false), "offers 4 vCPUs");
        breaks(&BAG, &with_host(3, false), "it has no jobs");
    }
}
