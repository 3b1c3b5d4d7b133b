//! What a reader compares a run with. For a bag: the cost and time of the same work on on-demand VMs alone, and the cost
//! of interruptions, and the same under other seeds. For parallel jobs: their times under EASY. All come from virtual runs
//! that are made for the report, with the same seed unless it is said.

mod easy;
mod seeds;

use std::sync::Arc;
use std::time::Duration;

use dormouse_analysis::{RunRecord, TaskHistory};
use dormouse_cloud::Market;
use dormouse_experiment::Experiment;
use dormouse_model::{CheckpointConfig, Setup};
use dormouse_policies::{BagSchedulerConfig, BagSchedulerName, Fleet};
use dormouse_units::{Money, Ppm, Span, Speedup, TaskId, Time};
use dormouse_view::number::{decimals_of_dollars, dollars};
use dormouse_view::{
    PageAnswer, PageBlock, TableCell, TableColumn, TextTone, TimeUnit, TypedTable,
};
use serde_json::{Value, json};

pub(super) use self::easy::JobsUnderEasy;
pub(super) use self::seeds::SEEDS;
use self::seeds::SeedTotals;
use super::outcome::BagResults;
use super::{SummaryLine, dates};
use crate::virtual_run::virtual_run;

/// Greatest number of tasks or jobs for which the runs for comparison are made: with more tasks the search for a plan takes
/// longer than the run.
const MOST_TASKS: usize = 1_000;

/// Virtual runs for comparison with the reported run.
#[derive(Clone, Debug, Default)]
pub(super) struct RunsBeside {
    /// The run on on-demand VMs alone, with the name of its scheduler; `None` if the reported run
    /// itself uses only on-demand VMs, or if no type is sold on demand.
    on_demand: Option<(String, Result<RunTotals, String>)>,
    /// The run without interruptions; `None` if the reported run had none, or if a scheduler program would have to
    /// decide again.
    undisturbed: Option<RunTotals>,
    /// The same experiment under other seeds; `None` if these runs were not made.
    seeds: Option<SeedTotals>,
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RunTotals {
    makespan: Time,
    cost: Money,
    vms: usize,
}

impl RunsBeside {
    /// Makes the runs for comparison: none if the work is shared with other tenants, takes an
    /// unknown time, or is free.
    pub(super) fn of(run: &BagResults<'_>) -> Self {
        let experiment = &as_it_took(&run.of.header.experiment, run.record);
        let is_bag_alone = experiment.jobs.is_none() && experiment.requests.is_none();
        let tasks = experiment.setup.bag.tasks.len();
        if !is_bag_alone || tasks > MOST_TASKS || experiment.unknown_runtime().is_some() {
            return Self::default();
        }
        let is_paid = run.record.cost() > Money::ZERO;
        let has_spot = run.record.vms.values().any(|vm| vm.market == Market::Spot);
        let on_demand = on_demand(experiment).filter(|_| is_paid && has_spot);
        let counts = &run.record.counts;
        let was_disturbed = counts.hibernations + counts.preemptions > 0;
        let undisturbed = undisturbed_experiment(run, experiment).filter(|_| was_disturbed);
        Self {
            on_demand: on_demand.map(|(how, experiment)| (how, run_totals(&experiment))),
            undisturbed: undisturbed.and_then(|experiment| run_totals(&experiment).ok()),
            seeds: SeedTotals::of(run, experiment).filter(|_| is_paid),
        }
    }

    /// Lines on the comparison for a terminal.
    pub(super) fn lines(&self, run: &BagResults<'_>) -> Vec<SummaryLine> {
        let mut lines = Vec::new();
        let own = RunTotals::of(run.record);
        if let Some((how, Ok(other))) = &self.on_demand {
            let compared = own.map(|own| format!("this run: {}", own.against(*other)));
            let compared = compared.unwrap_or_default();
            let (cost, makespan) = (dollars(other.cost), other.makespan.as_secs_f64());
            let what = format!("{cost} and {makespan:.1} s for the same work ({how})");
            lines.push(SummaryLine::plain("on demand", what).and(TextTone::Dim, compared));
        }
        if let Some((own, without)) = own.zip(self.undisturbed) {
            let (cost, late) = own.more_than(without);
            let what = format!(
                "{late:+.1} s and {} against the same run without them",
                signed_dollars(cost)
            );
            lines.push(SummaryLine::plain("interruptions", what));
        }
        lines
    }

    /// The answer on the run's cost, with how it compares: with on-demand VMs alone, with the plan, and with the same run
    /// without interruptions.
    pub(super) fn answer(&self, run: &BagResults<'_>, mut answer: PageAnswer) -> PageAnswer {
        let Some(own) = RunTotals::of(run.record) else { return answer };
        let time = dates::at(run.of.time_unit());
        let figures = |of: &RunTotals| format!("{} and {}", dollars(of.cost), time(of.makespan));
        let with = |answer: PageAnswer, other: RunTotals, what: &str, how: &str| {
            let change = own.against(other);
            let noun = format!("{} {what}: {}{how}", than(&change), figures(&other));
            answer.item(change, noun)
        };
        if let Some(seeds) = &self.seeds {
            let this = answer.sentence.trim_end_matches('.').to_owned();
            let mean = dollars(seeds.mean_cost());
            answer.sentence = format!("{this} in this run, {mean} on average of {SEEDS} seeds.");
        }
        if let Some((how, Ok(other))) = &self.on_demand {
            let what = match self.seeds {
                Some(_) => "on demand alone, in this run",
                None => "on demand alone",
            };
            answer = with(answer, *other, what, &format!(" ({how})"));
            let on_average = self.seeds.as_ref().and_then(SeedTotals::against_on_demand);
            if let Some((change, noun)) = on_average {
                answer = answer.item(change, noun);
            }
        }
        let planned = run.planned_figures().filter(|plan| plan.is_whole());
        if let Some(plan) = planned.filter(|_| run.cost_of_bag() == own.cost) {
            let makespan = Time::ZERO + plan.makespan;
            let plan = RunTotals { makespan, cost: plan.bill, vms: own.vms };
            answer = with(answer, plan, "the plan", "");
        }
        match self.undisturbed {
            Some(without) => with(answer, without, "the same without interruptions", ""),
            None => answer,
        }
    }

    /// Where the run stands among those under other seeds, in a sentence; `None` if they were not made.
    pub(super) fn standing(&self) -> Option<String> {
        self.seeds.as_ref().map(SeedTotals::standing)
    }

    /// The answer with the spread over seeds.
    pub(super) fn spread(&self, unit: TimeUnit, answer: PageAnswer) -> PageAnswer {
        match &self.seeds {
            Some(seeds) => seeds.spread(unit, answer),
            None => answer,
        }
    }

    /// Section of the run's page that compares the run with the same work on demand, without interruptions and under other
    /// seeds.
    pub(super) fn section(&self, run: &BagResults<'_>) -> Vec<PageBlock> {
        if self.on_demand.is_none() && self.undisturbed.is_none() && self.seeds.is_none() {
            return Vec::new();
        }
        let unit = run.of.time_unit();
        let time = dates::at(unit);
        let columns =
            ["run", "makespan", "cost", "VMs", "the run against it"].map(TableColumn::text);
        let mut table = TypedTable::new(columns);
        let own = RunTotals::of(run.record);
        let mut row = |name: String, of: Option<RunTotals>| {
            let against = own.zip(of).filter(|(own, of)| own != of);
            table.push([
                TableCell::text(name),
                TableCell::text(of.map_or("unfinished".to_owned(), |of| time(of.makespan))),
                TableCell::text(of.map_or(String::new(), |of| dollars(of.cost))),
                TableCell::text(of.map_or(String::new(), |of| of.vms.to_string())),
                TableCell::text(against.map_or(String::new(), |(own, of)| own.against(of))),
            ]);
        };
        row("this run".to_owned(), own);
        if let Some(without) = self.undisturbed {
            row("the same without interruptions".to_owned(), Some(without));
        }
        if let Some((how, Ok(other))) = &self.on_demand {
            row(format!("on demand alone ({how})"), Some(*other));
        }
        for (name, totals) in self.seeds.iter().flat_map(SeedTotals::rows) {
            row(name, Some(totals));
        }
        let mut blocks = vec![PageBlock::Table(table)];
        if let Some((how, Err(why))) = &self.on_demand {
            blocks
                .push(PageBlock::text(format!("There is no run on demand alone ({how}): {why}.")));
        }
        blocks.push(PageBlock::text(
            "The other runs are in virtual time, with the same seed unless a row names others, and the same times of tasks; \
             they were made for this page and are not in the log. On demand nothing is interrupted, and nothing is checkpointed.",
        ));
        blocks
    }

    /// Entries for `summary.json`; null if the comparison run was not made.
    pub(super) fn summary(&self) -> [(&'static str, Value); 2] {
        let of = |of: &RunTotals| {
            json!({
                "makespan_s": of.makespan.as_secs_f64(),
                "cost_usd": of.cost.as_usd(),
                "vms": of.vms,
            })
        };
        let on_demand = self.on_demand.as_ref().map(|(how, made)| {
            let mut said = made.as_ref().map_or_else(|why| json!({ "why_not": why }), of);
            said["how"] = json!(how);
            said
        });
        [
            ("on_demand_alone", json!(on_demand)),
            ("without_interruptions", json!(self.undisturbed.as_ref().map(of))),
        ]
    }
}

impl RunTotals {
    /// Totals of a run; `None` if not all of its tasks finished.
    fn of(record: &RunRecord) -> Option<Self> {
        let (cost, vms) = (record.cost(), record.vms.len());
        Some(Self { makespan: record.makespan()?, cost, vms })
    }

    /// Dollars and seconds by which the run's cost and makespan exceed those of the other run.
    fn more_than(self, other: Self) -> (f64, f64) {
        let cost = self.cost.as_usd() - other.cost.as_usd();
        (cost, self.makespan.as_secs_f64() - other.makespan.as_secs_f64())
    }

    /// Comparison of this run with another in words: `32.0 % cheaper, 4.1 % slower`.
    fn against(self, other: Self) -> String {
        let [is, was] = [self, other].map(|of| of.cost.as_usd());
        let cost = relative_difference((is, was), "cost", ["cheaper", "dearer"]);
        let [is, was] = [self, other].map(|of| of.makespan.as_secs_f64());
        let makespan = relative_difference((is, was), "makespan", ["faster", "slower"]);
        cost.into_iter().chain(makespan).collect::<Vec<_>>().join(", ")
    }
}

/// Difference of two figures in words, in per cent of the second; `None` if the second is zero.
fn relative_difference(
    (is, was): (f64, f64),
    figure: &str,
    [less, more]: [&str; 2],
) -> Option<String> {
    let percent = (is / was - 1.0) * 100.0;
    let size = format!("{:.1}", percent.abs());
    (was > 0.0).then(|| match (percent, size.as_str()) {
        (0.0, _) => format!("the same {figure}"),
        // A difference that rounds to zero is neither more nor less.
        (_, "0.0") => format!("the same {figure} to within 0.1 %"),
        (percent, size) if percent < 0.0 => format!("{size} % {less}"),
        (_, size) => format!("{size} % {more}"),
    })
}

/// The word between a difference in words and what it is measured from: cheaper *than*, the same cost *as*.
fn than(difference: &str) -> &'static str {
    let last = difference.rsplit(", ").next().unwrap_or_default();
    if last.starts_with("the same") { "as" } else { "than" }
}

/// Dollars with a sign.
fn signed_dollars(usd: f64) -> String {
    let sign = if usd < 0.0 { '-' } else { '+' };
    format!("{sign}${:.*}", decimals_of_dollars(usd), usd.abs())
}

/// Runs an experiment in virtual time.
fn run_totals(experiment: &Experiment) -> Result<RunTotals, String> {
    let (scheduler, _) = experiment.planned().map_err(|error| error.to_string())?;
    let mut record = RunRecord::new(&experiment.setup).undigested();
    virtual_run(experiment, scheduler, |step| record.see(step))
        .map_err(|error| error.to_string())?;
    RunTotals::of(&record).ok_or_else(|| "some of its tasks do not finish".to_owned())
}

/// The same experiment on on-demand VMs alone, with its scheduler in words: on the run's own fleet, or under
/// `ils-on-demand`. `None` if tasks are submitted later and there is no fleet for them.
fn on_demand(experiment: &Experiment) -> Option<(String, Experiment)> {
    let config = experiment.scheduler.as_ref()?;
    let comes_later = experiment.setup.bag.tasks.iter().any(|task| task.submitted > Span::ZERO);
    let (how, scheduler) = if config.fleet.is_empty() {
        let name = BagSchedulerName::IlsOnDemand;
        (name.as_str().to_owned(), BagSchedulerConfig::paper(name))
    } else {
        let name = if comes_later { config.name } else { BagSchedulerName::Fifo };
        let bought = |fleet: &Fleet| Fleet { market: Market::OnDemand, bid: None, ..fleet.clone() };
        let fleet = config.fleet.iter().map(bought).collect();
        let same = if comes_later { config.clone() } else { BagSchedulerConfig::paper(name) };
        ("the same fleet".to_owned(), BagSchedulerConfig { fleet, plan: None, ..same })
    };
    if comes_later && (config.fleet.is_empty() || !config.name.takes_later_tasks()) {
        return None;
    }
    let mut other = without_interruptions(experiment);
    other.setup.checkpoint = CheckpointConfig::NONE;
    other.scheduler = Some(scheduler);
    Some((how, other))
}

/// The experiment without interruptions; `None` if its scheduler is a program.
fn undisturbed_experiment(run: &BagResults<'_>, experiment: &Experiment) -> Option<Experiment> {
    if experiment.has_programs() {
        return None;
    }
    let mut other = without_interruptions(experiment);
    let scheduler = other.scheduler.as_mut()?;
    scheduler.plan.clone_from(&run.of.plan);
    Some(other)
}

/// The experiment with the run times that users' own programs really had, since users' estimates
/// can be wrong. All other tasks keep the experiment's run times.
fn as_it_took(experiment: &Experiment, record: &RunRecord) -> Experiment {
    let mut as_it_took = experiment.clone();
    let Some(speedup) = record.speedup else { return as_it_took };
    let setup = &experiment.setup;
    let tasks = Arc::make_mut(&mut as_it_took.setup.bag.tasks);
    for (id, (task, history)) in (0..).map(TaskId::new).zip(tasks.iter_mut().zip(&record.tasks)) {
        if !experiment.own_programs.contains_key(&id) {
            continue;
        }
        let measured = measured_runtime(setup, record, (id, history), speedup);
        let Some((said, took)) = measured.filter(|(said, _)| *said > Span::ZERO) else { continue };
        let ratio = took.as_secs_f64() / said.as_secs_f64();
        for runtime in task.runtime.values_mut() {
            let times = runtime.as_micros() as f64 * ratio;
            *runtime = Span::from_micros((times.round() as u64).max(1));
        }
    }
    as_it_took
}

/// Returns the stated run time of a task on its last VM's type, and its measured run time. The latter is the work
/// saved before the last attempt plus that attempt's time without checkpoints. `None` if the task did not end, or its
/// speed could change.
fn measured_runtime(
    setup: &Setup,
    record: &RunRecord,
    (id, history): (TaskId, &TaskHistory),
    speedup: Speedup,
) -> Option<(Span, Span)> {
    history.finished?;
    let (last, ledger) = history.last().and_then(|last| Some((last, last.ledger?)))?;
    let vm = record.vms.get(&last.vm).filter(|vm| !vm.is_background)?;
    if setup.catalogue.get(&vm.kind)?.burstable.is_some() {
        return None;
    }
    let said = setup.task_runtime(id, &vm.kind)?;
    let from = last.from.map_or(Ppm::ZERO, |(_, done)| done);
    let memory = setup.bag.tasks.get(id.get() as usize)?.memory;
    let stood = setup.checkpoint.checkpoint_cost(memory).times(last.checkpoints.len() as u64);
    let took = speedup.to_emulated(Duration::from_micros(ledger.real_promised_us));
    Some((said, said.part(from) + took.saturating_sub(stood)))
}

/// The experiment with a provider that takes VMs away only because of their prices.
fn without_interruptions(experiment: &Experiment) -> Experiment {
    let mut other = experiment.clone();
    other.setup.interruptions.clear();
    other.setup.terms.availability.clear();
    other
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use std::fs;

    use dormouse_experiment::{ExperimentSource, open};
    use dormouse_model::{AttemptLedger, Effect, Event, Report, StartReason, Step};
    use dormouse_units::{Attempt, CheckpointSeq, HostId, Price, VmId};

    use super::*;

    const EXPERIMENT: &str = r#"name = "mine"
[cloud]
catalogue = "ec2-2020"
boot = "60s"
[scheduler]
name = "fifo"
fleet = [{ type = "c3.large", market = "spot", count = 1 }]
[checkpoint]
policy = "none"
[live]
speedup = 30
[workload]
deadline = "2h"
[[workload.task]]
count = 3
command = ["true"]
runtime = "10m"
memory = "64 MB"
"#;

    fn happened(record: &mut RunRecord, s: u64, event: Event, effects: Vec<Effect>) {
        record.see(&Step { at: Time::from_secs(s), event, effects, ..Step::blank() });
    }

    /// Three programs with a stated run time of ten minutes. The first took 10 s of real time,
    /// which is five minutes of emulated time; the second began with half of its work done, and
    /// took 8 s; the third has not ended.
    #[test]
    fn the_runs_beside_a_live_run_have_the_times_that_its_programs_took() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        fs::write(&file, EXPERIMENT).unwrap();
        let source = ExperimentSource { experiment: file.to_str(), ..ExperimentSource::default() };
        let experiment = open(&source).unwrap().experiment;
        let (vm, attempt) = (VmId::new(0), Attempt::default());
        let mut record = RunRecord::new(&experiment.setup).at(experiment.live.speedup);
        let price = Price::from_nanos_per_hour(1);
        let (kind, market, bid, host) = ("c3.large".into(), Market::Spot, None, HostId::new(0));
        let launched = Effect::VmLaunched { vm, kind, market, price, bid, vcpus: 2, host };
        happened(&mut record, 0, Event::Tick, vec![launched, Effect::VmReady { vm }]);
        let half = Some((CheckpointSeq::default(), Ppm::new(500_000)));
        for (task, from, took_s) in [(0, None, Some(10)), (1, half, Some(8)), (2, None, None)] {
            let task = TaskId::new(task);
            let reason = StartReason::Planned;
            let sent = Effect::TaskSent { task, attempt, vm, reason, from, vcpu: None };
            happened(&mut record, 1, Event::Tick, vec![sent]);
            let report = |report| Event::Machine { host, number: 0, report };
            let (real_took_us, real_inputs_us, done) = (0, 0, from.map_or(Ppm::ZERO, |it| it.1));
            let started =
                Report::TaskStarted { vm, task, attempt, done, real_took_us, real_inputs_us };
            happened(&mut record, 1, report(started), Vec::new());
            let Some(took_s) = took_s else { continue };
            let real_promised_us = took_s * 1_000_000;
            let ledger = Box::new(AttemptLedger { real_promised_us, ..AttemptLedger::default() });
            happened(
                &mut record,
                1_000,
                report(Report::Ledger { vm, task, attempt, ledger, own: None }),
                Vec::new(),
            );
            let finished = Report::TaskFinished {
                vm,
                task,
                attempt,
                verified: true,
                reported: true,
                program_failed: false,
                result: None,
                real_cpu_us: 0,
            };
            happened(&mut record, 1_000, report(finished), Vec::new());
        }
        let took = as_it_took(&experiment, &record);
        let kind = "c3.large".into();
        let seconds =
            |task| took.setup.task_runtime(TaskId::new(task), &kind).map(Span::as_secs_f64);
        assert_eq!([0, 1, 2].map(seconds), [Some(300.0), Some(540.0), Some(600.0)]);
        let beside = run_totals(&without_interruptions(&took)).unwrap();
        // Two vCPUs: the third begins after the first, which ends 300 s after the boot.
        assert_eq!(beside.makespan, Time::from_secs(60 + 300 + 600));
        // In virtual time nothing else is known than what was said.
        let virtually = RunRecord::new(&experiment.setup);
        assert_eq!(as_it_took(&experiment, &virtually), experiment);
    }

    #[test]
    fn what_does_not_differ_is_neither_more_nor_less() {
        let said = |is, was| relative_difference((is, was), "makespan", ["faster", "slower"]);
        assert_eq!(said(750.0, 750.0).as_deref(), Some("the same makespan"));
        for is in [749.9, 750.1] {
            assert_eq!(said(is, 750.0).as_deref(), Some("the same makespan to within 0.1 %"));
        }
        assert_eq!(said(749.0, 750.0).as_deref(), Some("0.1 % faster"));
        assert_eq!(said(751.0, 750.0).as_deref(), Some("0.1 % slower"));
        assert_eq!(said(1.0, 0.0), None);
        assert_eq!(
            ["5.0 % cheaper, 0.1 % slower", "5.0 % cheaper, the same makespan"].map(than),
            ["than", "as"]
        );
    }
}
