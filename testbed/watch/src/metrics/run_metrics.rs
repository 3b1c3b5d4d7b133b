//! Metrics of one run, from the steps of its log.

use std::collections::BTreeMap;
use std::convert::Infallible;

use dormouse_analysis::requests::RequestLedger;
use dormouse_analysis::{RecordChange, RunRecord};
use dormouse_model::{Decision, Effect, Event, Setup, Step, Tenants};
use dormouse_units::{HostId, Time};

use super::exposition::{MetricFamily, open_metrics};
use super::families::{RunName, UnloggedFacts, coordinator, families};
use super::fleet::FleetMetrics;
use super::measured::WorkerMetrics;
use super::text::{self, MetricFormat};
use super::work_state::WorkState;

/// Metrics of one run: a fold over its steps. Its memory grows with living VMs, unfinished tasks
/// and open requests, not with the log. Call [`Self::see`] for each step in order.
#[derive(Debug)]
pub struct RunMetrics {
    pub(super) name: RunName,
    /// Deadline of the bag, if the run has one.
    pub(super) deadline: Option<Time>,
    pub(super) record: RunRecord,
    /// Last known time of the clock.
    pub(super) now: Time,
    pub(super) fleet: FleetMetrics,
    pub(super) work: WorkState,
    pub(super) measured: WorkerMetrics,
    pub(super) requests: Option<RequestCounts>,
    /// Connected hosts, with their names.
    pub(super) hosts: BTreeMap<HostId, String>,
    pub(super) decisions: BTreeMap<&'static str, u64>,
    pub(super) moot: u64,
    pub(super) stale: u64,
    pub(super) coordinator_resumes: u64,
    /// Real time during which the run had no coordinator, in microseconds.
    pub(super) away_us: u64,
    /// Whether the run ended complete; `None` while the run is not over.
    pub(super) over: Option<bool>,
}

/// Requests for VMs of a run.
#[derive(Debug)]
pub(super) struct RequestCounts {
    ledger: RequestLedger,
    pub(super) requested: u64,
    pub(super) ended: BTreeMap<&'static str, u64>,
}

impl RunMetrics {
    /// Metrics of a run with this setup and these tenants, before its first step.
    #[must_use]
    pub fn new(name: RunName, setup: &Setup, tenants: Tenants) -> Self {
        let has_deadline = !setup.bag.tasks.is_empty();
        let record = RunRecord::shared(setup, tenants.clone()).forgetting();
        let requests = setup.requests.then(|| RequestCounts {
            ledger: RequestLedger::new(setup, tenants),
            requested: 0,
            ended: BTreeMap::new(),
        });
        Self {
            name,
            deadline: has_deadline.then_some(Time::ZERO + setup.bag.deadline),
            record,
            now: Time::ZERO,
            fleet: FleetMetrics::new(setup),
            work: WorkState::new(setup),
            measured: WorkerMetrics::new(),
            requests,
            hosts: BTreeMap::new(),
            decisions: BTreeMap::new(),
            moot: 0,
            stale: 0,
            coordinator_resumes: 0,
            away_us: 0,
            over: None,
        }
    }

    /// Adds the next step of the log.
    pub fn see(&mut self, step: &Step) {
        self.record.see(step);
        self.now = self.now.max(step.at);
        let is_stale = step.effects.contains(&Effect::Stale);
        self.stale += u64::from(is_stale);
        match &step.event {
            Event::HostJoined { host, name, .. } => {
                self.hosts.insert(*host, name.clone());
            }
            Event::HostLost { host, .. } => {
                self.hosts.remove(host);
            }
            Event::Clock { shows, .. } => self.now = self.now.max(*shows),
            Event::Resumed { away_real_us, .. } => {
                self.coordinator_resumes += 1;
                self.away_us = self.away_us.saturating_add(*away_real_us);
            }
            _ => {}
        }
        for decision in &step.decisions {
            *self.decisions.entry(decision_word(decision)).or_default() += 1;
        }
        for effect in &step.effects {
            match effect {
                Effect::Moot { .. } => self.moot += 1,
                Effect::Over { complete } => self.over = Some(*complete),
                _ => {}
            }
        }
        let began = self.work.see(&self.record, step);
        self.measured.see(step, is_stale, began);
        self.fleet.see(step);
        if let Some(requests) = &mut self.requests {
            requests.see(&self.record, step);
        }
    }

    /// The record of the run so far.
    pub(crate) const fn record(&self) -> &RunRecord {
        &self.record
    }

    /// All metrics in this format, with the facts that are not in the log.
    #[must_use]
    pub fn exposition(&self, format: MetricFormat, beside: &UnloggedFacts<'_>) -> String {
        encode_families(families(self, beside), format)
    }

    /// The metrics of a run that has not begun.
    #[must_use]
    pub fn before(format: MetricFormat, beside: &UnloggedFacts<'_>) -> String {
        encode_families(coordinator(beside), format)
    }
}

fn encode_families(families: Vec<MetricFamily>, format: MetricFormat) -> String {
    let open = open_metrics(families);
    match format {
        MetricFormat::OpenMetrics => open,
        MetricFormat::Plain => text::plain(&open),
    }
}

impl RequestCounts {
    fn see(&mut self, record: &RunRecord, step: &Step) {
        let is_one = |change: &&RecordChange| matches!(change, RecordChange::Requested(_));
        self.requested += record.changes().iter().filter(is_one).count() as u64;
        let Self { ledger, ended, .. } = self;
        let Ok(()) = ledger.see(record, step, |it| {
            *ended.entry(it.end.word()).or_default() += 1;
            Ok::<_, Infallible>(())
        });
    }

    /// Number of requests for VMs that have not ended.
    pub(super) fn open(&self) -> u64 {
        self.requested.saturating_sub(self.ended.values().sum())
    }
}

/// Kind of a decision, as the log names it.
const fn decision_word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Launch { .. } => "launch",
        Decision::Terminate { .. } => "terminate",
        Decision::Start { .. } => "start",
        Decision::Stop { .. } => "stop",
        Decision::Checkpoint { .. } => "checkpoint",
        Decision::FallBack { .. } => "fall-back",
        Decision::Promote { .. } => "promote",
        Decision::SetMode { .. } => "set-mode",
        Decision::SetInterruption { .. } => "set-interruption",
        Decision::SetVcpuUse { .. } => "set-vcpu-use",
        Decision::Resume { .. } => "resume",
        Decision::Wake { .. } => "wake",
    }
}
