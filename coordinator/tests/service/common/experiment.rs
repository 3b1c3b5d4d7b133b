//! A tiny experiment, its scheduler, and its live run.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use dormouse_cloud::{Catalogue, InstanceType, Market, ProviderTerms, VmLimits};
use dormouse_coordinator::admission::RunDemand;
use dormouse_coordinator::{CoordinatorWorld, LiveRunPlan, RunObserver};
use dormouse_engine::Run;
use dormouse_model::{
    Bag, CheckpointConfig, CheckpointScheme, Decision, MetadataSettings, Notice, Setup,
    StartReason, Task, TenantWork,
};
use dormouse_policies::Policy;
use dormouse_tasks::own::TaskProgram;
use dormouse_units::{Bytes, Mode, Ppm, Price, Seats, Span, Speedup, TaskId, Time, TypeName, VmId};
use tokio_util::sync::CancellationToken;

pub const KIND: &str = "only";

pub fn setup(tasks: usize, vcpus: u32) -> Setup {
    let kind = InstanceType {
        name: KIND.into(),
        vcpus,
        memory: Bytes::new(1 << 40),
        disk: Bytes::ZERO,
        mflops: 1,
        on_demand: Some(Price::from_nanos_per_hour(1_000_000)),
        spot: None,
        limits: VmLimits { spot: 0, on_demand: 8 },
        burstable: None,
    };
    let task = Task {
        name: "t".to_owned(),
        memory: Bytes::new(1 << 20),
        runtime: BTreeMap::from([(TypeName::from(KIND), Span::from_secs(100))]),
        submitted: Span::ZERO,
        after: Vec::new(),
    };
    Setup {
        seed: 1,
        catalogue: Catalogue {
            types: BTreeMap::from([(KIND.into(), kind)]),
            boot: Span::ZERO,
            hibernation: Span::ZERO,
        },
        bag: Bag { tasks: vec![task; tasks].into(), deadline: Span::from_secs(1_000_000) },
        checkpoint: CheckpointConfig {
            scheme: CheckpointScheme::Budget(Ppm::ZERO),
            fixed: Span::ZERO,
            per_megabyte: Span::ZERO,
            on: dormouse_model::CheckpointOn::All,
            ..CheckpointConfig::NONE
        },
        interruptions: Vec::new(),
        preemption_notice: Span::ZERO,
        terms: ProviderTerms::default(),
        noise: None,
        jobs: None,
        requests: false,
    }
}

/// First come, first served, on one VM at a time; another VM when that one is lost.
#[derive(Debug)]
pub struct Fifo {
    waiting: VecDeque<TaskId>,
    on_vm: Vec<TaskId>,
    vm: VmId,
    vcpus: usize,
    ready: bool,
    panics_at: Option<TaskId>,
}

impl Fifo {
    pub fn new(tasks: usize, vcpus: u32) -> Self {
        Self {
            waiting: (0..u32::try_from(tasks).unwrap()).map(TaskId::new).collect(),
            on_vm: Vec::new(),
            vm: VmId::new(0),
            vcpus: vcpus as usize,
            ready: false,
            panics_at: None,
        }
    }

    pub fn panicking_at(mut self, task: u32) -> Self {
        self.panics_at = Some(TaskId::new(task));
        self
    }

    fn launch(&mut self, out: &mut Vec<Decision>) {
        self.vm = self.vm.next();
        self.ready = false;
        out.push(Decision::Launch {
            vm: self.vm,
            kind: KIND.into(),
            market: Market::OnDemand,
            bid: None,
        });
    }

    fn fill(&mut self, out: &mut Vec<Decision>) {
        while self.ready && self.on_vm.len() < self.vcpus {
            let Some(task) = self.waiting.pop_front() else { return };
            self.on_vm.push(task);
            let (vm, mode, reason) = (self.vm, Mode::Burst, StartReason::Planned);
            out.push(Decision::Start { task, on: Seats::first_free(vm), mode, reason });
        }
    }
}

impl Policy for Fifo {
    fn handle(&mut self, _: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            self.hear(notice, out);
        }
    }
}

impl Fifo {
    fn hear(&mut self, notice: &Notice, out: &mut Vec<Decision>) {
        match *notice {
            Notice::Begin => self.launch(out),
            Notice::VmReady { .. } => self.ready = true,
            Notice::VmLost { .. } => {
                self.waiting.extend(self.on_vm.drain(..));
                self.launch(out);
            }
            Notice::TaskFinished { task, .. } => {
                assert_ne!(self.panics_at, Some(task), "the scheduler has a bug");
                self.on_vm.retain(|&t| t != task);
            }
            Notice::TaskFailed { task, .. } => {
                self.on_vm.retain(|&t| t != task);
                self.waiting.push_back(task);
            }
            _ => {}
        }
        self.fill(out);
    }
}

pub fn header() -> serde_json::Value {
    serde_json::json!({"format": dormouse_log::FORMAT, "experiment": "test"})
}

/// Makes a program whose answer can't be checked: none was published for its input.
fn unchecked() -> TaskProgram {
    TaskProgram::Kernel("ed --class S --id 100".split(' ').map(str::to_owned).collect())
}

/// Makes a program whose answer the coordinator computes itself.
pub fn checked() -> TaskProgram {
    TaskProgram::Kernel(vec!["vector".to_owned()])
}

/// Makes a no-op run of `tasks` tasks on `vcpus` vCPUs.
pub fn live(tasks: usize, vcpus: u32, out: &Path) -> LiveRunPlan {
    LiveRunPlan {
        setup: setup(tasks, vcpus),
        policies: vec![(TenantWork::All, Box::new(Fifo::new(tasks, vcpus)))],
        submissions: Vec::new(),
        requests: Vec::new(),
        open: false,
        phase: Duration::from_millis(100),
        experiment: "test".to_owned(),
        header: dormouse_log::HeaderText::new(&header()).unwrap(),
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        workers: 1,
        speedup: Speedup::from_f64(30.0).unwrap(),
        demand: RunDemand { vms: vec![vcpus], kinds: [KIND.into()].into(), ..RunDemand::default() },
        reserve: Ppm::new(250_000),
        share: None,
        inputs: std::collections::BTreeMap::new(),
        programs: vec![unchecked(); tasks],
        spot_checks: Ppm::ZERO,
        certificates_valid: dormouse_coordinator::CERTIFICATE_VALID,
        metadata: MetadataSettings::default(),
        needs_criu: false,
        hold_checkpoints: false,
        noop: true,
        api: None,
        faults: Vec::new(),
        out: out.to_owned(),
        lost_after: Duration::from_secs(30),
        hold: Duration::from_secs(30),
        workers_stay: false,
        answer_within: dormouse_coordinator::ANSWER_WITHIN,
        limit: Time::from_secs(1_000_000),
        observer: RunObserver::default(),
        cancel: CancellationToken::new(),
        pause: CancellationToken::new(),
        resume: false,
        world: CoordinatorWorld::default(),
    }
}

/// Makes the run anew for a replay of a test's log.
pub fn run_again(tasks: usize, vcpus: u32) -> Run {
    Run::new(setup(tasks, vcpus), Box::new(Fifo::new(tasks, vcpus)))
}
