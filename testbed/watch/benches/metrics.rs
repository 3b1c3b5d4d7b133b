//! Benchmark of metrics: the cost of adding an event, and of a scrape of a long run with many VMs.
//!
//! `cargo bench -p dormouse-watch --bench metrics`

#![expect(clippy::disallowed_macros, reason = "a benchmark prints its figures")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use dormouse_analysis::RunMode;
use dormouse_cloud::Market;
use dormouse_coordinator::CoordinatorVitals;
use dormouse_experiment::{ExperimentSource, LoadedExperiment, open};
use dormouse_model::{Effect, Event, Notice, Report, StartReason, Step, VmEnd};
use dormouse_report::output::{LogHeader, RunLog};
use dormouse_report::replay::play;
use dormouse_samples::{Samples, median};
use dormouse_units::{
    Attempt, Bytes, CheckpointSeq, Credits, HostId, Money, Ppm, Price, TaskId, Time, TypeName, VmId,
};
use dormouse_watch::metrics::{MetricFormat, RunMetrics, RunName, UnloggedFacts};

/// Number of scrapes in each mean (`SCRAPES`), and number of means (`ROUNDS`).
const SCRAPES: u32 = 40;
const ROUNDS: usize = 5;
/// Name of the benchmarked run whose figures are reported.
const REPORTED: &str = "2,000 VMs";

fn metrics_of(header: &LogHeader) -> RunMetrics {
    let experiment = &header.experiment;
    let name = RunName {
        run: "bench".to_owned(),
        experiment: experiment.name.clone(),
        scheduler: experiment.scheduler_name(),
        mode: RunMode::Live,
        speedup: Some(30.0),
    };
    RunMetrics::new(name, &experiment.whole_setup(), experiment.tenants())
}

fn header_of(experiment: &str) -> LogHeader {
    let source = ExperimentSource { experiment: Some(experiment), ..ExperimentSource::default() };
    let loaded = open(&source);
    let LoadedExperiment { experiment, .. } =
        loaded.unwrap_or_else(|error| panic!("{experiment}: {error}"));
    LogHeader::new(RunMode::Virtual, String::new(), experiment)
}

fn report(us: u64, host: u32, report: Report) -> Step {
    let event = Event::Machine { host: HostId::new(host), number: us, report };
    Step { at: Time::from_micros(us), event, ..Step::blank() }
}

/// The steps of a long run of 2,000 VMs on 20 hosts: each VM launches, runs tasks that are checkpointed, reports
/// credits and shares, hibernates and resumes, and one in ten ends.
fn long_run() -> Vec<Step> {
    let (mut steps, mut us) = (Vec::new(), 0);
    let mut next = || {
        us += 1_000;
        us
    };
    let kinds = ["c3.large", "t3.large"].map(TypeName::from);
    for n in 0..2_000_u32 {
        let (vm, host) = (VmId::new(n), n % 20);
        let task = TaskId::new(n % 60);
        let launched = Effect::VmLaunched {
            vm,
            kind: kinds[n as usize % 2].clone(),
            market: if n % 3 == 0 { Market::OnDemand } else { Market::Spot },
            price: Price::from_nanos_per_hour(30_000_000),
            bid: None,
            vcpus: 2,
            host: HostId::new(host),
        };
        let at = Time::from_micros(next());
        let effects = vec![launched, Effect::VmReady { vm }];
        steps.push(Step { at, event: Event::Tick, effects, ..Step::blank() });
        for round in 0..6_u32 {
            let attempt = Attempt::new(round + 1);
            let (reason, from) = (StartReason::Planned, None);
            let sent = Effect::TaskSent { task, attempt, vm, reason, from, vcpu: None };
            let at = Time::from_micros(next());
            let (event, effects) = (Event::Tick, vec![sent]);
            steps.push(Step { at, event, effects, ..Step::blank() });
            let (done, real_took_us) = (Ppm::ZERO, 9_000);
            let started =
                Report::TaskStarted { vm, task, attempt, done, real_took_us, real_inputs_us: 0 };
            steps.push(report(next(), host, started));
            steps.push(report(
                next(),
                host,
                Report::CheckpointTaken {
                    vm,
                    task,
                    attempt,
                    checkpoint: CheckpointSeq::new(1),
                    done: Ppm::ONE,
                    bytes: Bytes::new(u64::from(n) * 10_000),
                    real_held_us: 100_000 + u64::from(n) * 20,
                    real_dump_us: 40_000,
                    real_owed_us: 0,
                    real_criu_us: 0,
                    held_at: None,
                },
            ));
            let balance = Credits::whole_credits(u64::from(round) + 1);
            let said = Report::Credits { vm, balance, as_of: None };
            let mut credits = report(next(), host, said);
            credits.notices = vec![Notice::Credits { vm, balance }];
            steps.push(credits);
            let promised = u64::from(round + 1) * 1_000_000;
            steps.push(report(
                next(),
                host,
                Report::Share { vm, real_promised_us: promised, real_received_us: promised + 700 },
            ));
            let asked = Time::from_micros(next());
            let mut frozen = report(next(), host, Report::VmFrozen { vm, real_took_us: 900 });
            frozen.effects = vec![Effect::VmHibernated { vm, asked }];
            steps.push(frozen);
            let mut thawed = report(next(), host, Report::VmThawed { vm, real_took_us: 900 });
            thawed.effects = vec![Effect::VmResumed { vm, asked }];
            steps.push(thawed);
            let (kept, real_cpu_us) = (None, 10);
            steps.push(report(
                next(),
                host,
                Report::TaskStopped { vm, task, attempt, kept, real_cpu_us },
            ));
        }
        if n % 10 == 9 {
            let at = Time::from_micros(next());
            let (why, cost) = (VmEnd::Terminated, Money::from_nanos(5));
            let (event, effects) = (Event::Tick, vec![Effect::VmEnded { vm, why, cost }]);
            steps.push(Step { at, event, effects, ..Step::blank() });
        }
    }
    steps
}

fn ns_of_each(began: Instant, count: usize) -> f64 {
    began.elapsed().as_secs_f64() / count.max(1) as f64 * 1e9
}

/// Lower bound for the cost of adding an event, in nanoseconds per event: the event is matched and counted by its kind.
fn bare_count(steps: &[Step]) -> f64 {
    let began = Instant::now();
    let mut counts = [0_u64; 4];
    for step in steps {
        let kind = match &step.event {
            Event::Tick => 0,
            Event::Machine { report: Report::CheckpointTaken { .. }, .. } => 1,
            Event::Machine { .. } => 2,
            _ => 3,
        };
        counts[kind] += 1 + step.effects.len() as u64;
    }
    black_box(counts);
    ns_of_each(began, steps.len())
}

/// Lower bound for the cost of a scrape, in microseconds: the same lines are written from ready names and numbers.
fn bare_scrape(exposition: &str) -> f64 {
    let lines: Vec<(&str, Option<f64>)> = exposition
        .lines()
        .map(|line| match line.rsplit_once(' ') {
            Some((name, number)) if !line.starts_with('#') => (name, number.parse().ok()),
            _ => (line, None),
        })
        .collect();
    let began = Instant::now();
    for _ in 0..SCRAPES {
        let mut text = String::new();
        for (name, number) in &lines {
            text.push_str(name);
            if let Some(number) = number {
                let _ = write!(text, " {number}");
            }
            text.push('\n');
        }
        black_box(&text);
    }
    ns_of_each(began, SCRAPES as usize) / 1e3
}

fn said(name: &str, figure: &str, samples: &Samples) {
    if name == REPORTED
        && let Err(error) = samples.report_costs(figure)
    {
        panic!("{error}");
    }
}

/// Measures and prints the cost of adding these steps to the metrics, and of scraping them.
fn measure(name: &str, header: &LogHeader, steps: &[Step]) {
    let (mut metrics, mut events) = (metrics_of(header), Samples::default());
    for _ in 0..ROUNDS {
        metrics = metrics_of(header);
        let began = Instant::now();
        steps.iter().for_each(|step| metrics.see(step));
        events.push(ns_of_each(began, steps.len()), bare_count(steps));
    }
    let per_event = median(&events.ours);
    said(name, "metrics-event", &events);
    let vitals = CoordinatorVitals::default();
    let beside = UnloggedFacts { serves: true, now: None, vitals: Some(&vitals) };
    for format in [MetricFormat::OpenMetrics, MetricFormat::Plain] {
        let (mut bytes, mut scrapes) = (0, Samples::default());
        for _ in 0..ROUNDS {
            let began = Instant::now();
            for _ in 0..SCRAPES {
                bytes = black_box(metrics.exposition(format, &beside)).len();
            }
            let us = ns_of_each(began, SCRAPES as usize) / 1e3;
            scrapes.push(us, bare_scrape(&metrics.exposition(format, &beside)));
        }
        if matches!(format, MetricFormat::OpenMetrics) {
            said(name, "metrics-scrape", &scrapes);
        }
        let (n, us) = (steps.len(), median(&scrapes.ours));
        println!(
            "{name}: {n} events, {per_event:.0} ns each; a scrape in {format:?} takes {us:.0} us and has {bytes} bytes"
        );
    }
}

fn main() {
    let steps = long_run();
    measure(REPORTED, &header_of("j60"), &steps);
    for experiment in ["j60", "batch-small", "provider-testbed"] {
        let header = header_of(experiment);
        let (log, mut steps) = (RunLog { header, steps: None, torn: false }, Vec::new());
        if let Err(error) = play(&log, |step| steps.push(step.clone())) {
            panic!("{experiment}: {error}");
        }
        measure(experiment, &log.header, &steps);
    }
}
