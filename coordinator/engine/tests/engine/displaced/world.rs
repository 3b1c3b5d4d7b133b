//! Runs with small hosts, whose machines are played by the tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dormouse_cloud::{
    Catalogue, InstanceType, InterruptionModel, Market, Placement, PlacerName, PreemptionAction,
    ProviderTerms, ResourceVector, VmLimits,
};
use dormouse_engine::Run;
use dormouse_model::{
    Bag, CheckpointConfig, Command, Decision, Event, Notice, Report, Setup, Step, Task,
};
use dormouse_policies::Policy;
use dormouse_units::{Bytes, HostId, Price, Span, Time, VmId};

pub(crate) const HOST: HostId = HostId::new(0);
pub(crate) const BOTH: [PreemptionAction; 2] =
    [PreemptionAction::Terminate, PreemptionAction::Hibernate];

pub(crate) const fn vm(n: u32) -> VmId {
    VmId::new(n)
}

pub(crate) const fn s(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

/// Makes a setup with VMs of one vCPU that boot for 60 s and can be resumed 30 s after they froze; notice is 120 s.
pub(crate) fn setup(preemption: PreemptionAction, interruptions: Vec<InterruptionModel>) -> Setup {
    let kind = InstanceType {
        name: "small".into(),
        vcpus: 1,
        memory: Bytes::new(100),
        disk: Bytes::new(1),
        mflops: 1,
        on_demand: Some(Price::from_nanos_per_hour(3_600_000)),
        spot: Some(Price::from_nanos_per_hour(360_000)),
        limits: VmLimits { spot: 99, on_demand: 99 },
        burstable: None,
    };
    let large =
        InstanceType { name: "large".into(), vcpus: 2, memory: Bytes::new(300), ..kind.clone() };
    let runtime = BTreeMap::from([(kind.name.clone(), Span::from_secs(100))]);
    let task = Task {
        name: "a".into(),
        memory: Bytes::new(40),
        runtime,
        submitted: Span::ZERO,
        after: Vec::new(),
    };
    let placement = Placement::Named(PlacerName::Preempting);
    Setup {
        seed: 1,
        catalogue: Catalogue {
            types: [kind, large].map(|kind| (kind.name.clone(), kind)).into(),
            boot: Span::from_secs(60),
            hibernation: Span::from_secs(30),
        },
        bag: Bag { tasks: [task].into(), deadline: Span::from_secs(1_000) },
        checkpoint: CheckpointConfig::NONE,
        interruptions,
        preemption_notice: Span::from_secs(120),
        terms: ProviderTerms { placement, preemption, ..ProviderTerms::default() },
        noise: None,
        jobs: None,
        requests: false,
    }
}

/// Test policy that answers each notice with the decisions that the test has set for it, and records all notices.
#[derive(Debug, Default, Clone)]
pub(crate) struct Script(Arc<Mutex<(Answers, Heard)>>);

/// Decisions for each expected notice, each used once.
type Answers = Vec<(Notice, Vec<Decision>)>;

/// Notices received, each with its time.
type Heard = Vec<(Time, Notice)>;

impl Script {
    pub(crate) fn on(
        &self,
        notice: Notice,
        decisions: impl IntoIterator<Item = Decision>,
    ) -> &Self {
        self.0.lock().expect("unpoisoned").0.push((notice, decisions.into_iter().collect()));
        self
    }

    /// Sets the decisions that the policy makes at `at` s.
    pub(crate) fn at(&self, at: u64, decisions: impl IntoIterator<Item = Decision>) -> &Self {
        self.on(Notice::Wake { token: at }, decisions)
    }

    pub(crate) fn heard(&self) -> Heard {
        self.0.lock().expect("unpoisoned").1.clone()
    }
}

impl Policy for Script {
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        let (script, all) = &mut *self.0.lock().expect("unpoisoned");
        for notice in heard {
            all.push((now, notice.clone()));
            if let Some(place) = script.iter().position(|(on, _)| on == notice) {
                out.extend(script.remove(place).1);
            }
        }
    }
}

pub(crate) fn launch(n: u32, market: Market) -> Decision {
    Decision::Launch { vm: vm(n), kind: "small".into(), market, bid: None }
}

pub(crate) fn wake(at: u64) -> Decision {
    Decision::Wake { at: s(at), token: at }
}

pub(crate) const fn end(n: u32) -> Decision {
    Decision::Terminate { vm: vm(n), reason: None }
}

/// Makes a run that has begun, on one host of this many vCPUs.
pub(crate) fn begun(setup: Setup, script: &Script, vcpus: u32) -> Run {
    let mut run = Run::new(setup, Box::new(script.clone()));
    join(&mut run, vcpus);
    run.handle_event(s(0), Event::Begin);
    run
}

pub(crate) fn join(run: &mut Run, vcpus: u32) {
    let offer = ResourceVector::new(vcpus, Bytes::new(100 * u64::from(vcpus)));
    run.handle_event(s(0), Event::HostJoined { host: HOST, name: "h".into(), offer });
}

pub(crate) fn tick(run: &mut Run, at: u64) -> (Step, Vec<Command>) {
    assert_eq!(run.next_wakeup(), Some(s(at)));
    run.handle_event(s(at), Event::Tick)
}

pub(crate) fn tell(run: &mut Run, at: u64, report: Report) -> (Step, Vec<Command>) {
    run.handle_event(s(at), Event::Machine { host: HOST, number: 0, report })
}

pub(crate) fn created(run: &mut Run, at: u64, n: u32) {
    tell(run, at, Report::VmCreated { vm: vm(n) });
}

pub(crate) fn frozen(run: &mut Run, at: u64, n: u32) -> (Step, Vec<Command>) {
    tell(run, at, Report::VmFrozen { vm: vm(n), real_took_us: 0 })
}

/// Returns the VMs that these commands create.
pub(crate) fn made(commands: &[Command]) -> Vec<VmId> {
    let made = commands.iter().filter_map(|command| match command {
        Command::CreateVm { vm, .. } => Some(*vm),
        _ => None,
    });
    made.collect()
}
