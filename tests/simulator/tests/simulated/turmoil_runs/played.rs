//! Plays a scenario and checks the outcome.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dormouse_coordinator::replay_log;
use dormouse_log::LogReader;
use dormouse_model::{Event, Report, Step};
use turmoil::Sim;

use super::coordinator::Coordinators;
use super::scenario::{Action, Scenario};
use super::witness::{Witness, decided};
use super::worker::Worker;

const TICK: Duration = Duration::from_millis(2);
/// Time after the last action in which a run must be over: lost workers have come back, and the remaining work is
/// done.
const ENDS_WITHIN: Duration = Duration::from_secs(90);
/// Time in which connected workers learn that the run is over.
const HEARD_WITHIN: Duration = Duration::from_secs(30);
const COORDINATOR: &str = "coordinator";

/// Counts of what happened in runs that kept all promises.
#[derive(Debug, Default)]
pub(crate) struct Played {
    /// Number of coordinators that were started.
    pub(crate) coordinators: u64,
    pub(crate) hosts_lost: u64,
    pub(crate) reconnects: u64,
    pub(crate) steps: u64,
    /// Seconds on the simulation's clock.
    pub(crate) seconds: u64,
}

impl Played {
    pub(crate) fn add(&mut self, other: &Self) {
        self.coordinators += other.coordinators;
        self.hosts_lost += other.hosts_lost;
        self.reconnects += other.reconnects;
        self.steps += other.steps;
        self.seconds += other.seconds;
    }
}

fn name(worker: usize) -> String {
    format!("w{worker}")
}

/// Plays a scenario to its end; an error says which promise was broken.
pub(crate) fn play(scenario: &Scenario) -> Result<Played, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let out = folder.path().join("out");
    let witness = Witness::default();
    let coordinators = Coordinators::new(scenario, &out, &witness);
    let mut sim = turmoil::Builder::new()
        .rng_seed(scenario.seed)
        .tick_duration(TICK)
        .simulation_duration(Duration::from_secs(3600))
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(Duration::from_millis(5))
        .tcp_capacity(1 << 16)
        .build();
    let process = coordinators.clone();
    sim.host(COORDINATOR, move || process.clone().process());
    for worker in 0..scenario.workers {
        let name = name(worker);
        let root = folder.path().join(&name);
        let worker =
            Worker { name: name.clone(), root, out: out.clone(), witness: witness.clone() };
        sim.host(name, move || worker.clone().process());
    }
    let seconds = goes_on(&mut sim, scenario, &coordinators, &witness)?;
    let seen = witness.seen();
    let conducted = seen.conducted.as_ref().ok_or("nobody conducted it to its end")?;
    if !seen.wrong.is_empty() {
        return Err(seen.wrong.join("; "));
    }
    let run = &conducted.run;
    if run.unfinished_count() != 0 {
        return Err(format!("{} tasks are lost", run.unfinished_count()));
    }
    replays(&conducted.log, &coordinators, &run.digest())?;
    let steps = LogReader::open(&conducted.log).and_then(|mut log| log.steps());
    let steps: Vec<Step> = steps.map_err(|error| error.to_string())?;
    each_once(&steps, scenario.tasks)?;
    in_order(&steps, &coordinators, &seen.commands)?;
    Ok(Played {
        coordinators: coordinators.lives.load(Ordering::Relaxed),
        hosts_lost: run.counts().hosts_lost.into(),
        reconnects: seen.reconnects,
        steps: steps.len() as u64,
        seconds,
    })
}

/// Lets time pass and carries out the actions, until the run is over and its workers know that.
fn goes_on(
    sim: &mut Sim<'_>,
    scenario: &Scenario,
    coordinators: &Coordinators,
    witness: &Witness,
) -> Result<u64, String> {
    let mut actions = scenario.actions.iter().peekable();
    let began = coordinators.wall.load(Ordering::Relaxed);
    let (mut repaired, mut over_at) = (false, None);
    loop {
        sim.step().map_err(|error| format!("at {:?}: {error}", sim.elapsed()))?;
        let now = sim.elapsed();
        let micros = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        coordinators.wall.store(began + micros, Ordering::Relaxed);
        if over_at.is_none() && witness.seen().conducted.is_some() {
            over_at = Some(now);
        }
        if let Some(over_at) = over_at {
            let heard = witness.seen().over.len();
            if heard >= scenario.workers || now > over_at + HEARD_WITHIN {
                return Ok(now.as_secs());
            }
            continue;
        }
        while let Some((_, action)) = actions.next_if(|(at, _)| *at <= now) {
            act(sim, *action);
        }
        if scenario.repaired && !repaired && now > scenario.last() {
            repaired = true;
            repair(sim, scenario);
        }
        if now > scenario.last() + ENDS_WITHIN {
            let log = LogReader::open(&coordinators.out.join(dormouse_log::FILE));
            let steps = log.and_then(|mut log| log.steps()).unwrap_or_default();
            let last = steps.last().map(|step: &Step| format!("{:?}", step.event));
            return Err(format!("it did not end: {} steps, the last {last:?}", steps.len()));
        }
    }
}

fn act(sim: &mut Sim<'_>, action: Action) {
    match action {
        Action::CrashCoordinator => sim.crash(COORDINATOR),
        Action::StartCoordinator => sim.bounce(COORDINATOR),
        Action::CrashWorker { worker } => sim.crash(name(worker)),
        Action::StartWorker { worker } => sim.bounce(name(worker)),
        Action::Partition { worker } => sim.partition(COORDINATOR, name(worker)),
        Action::PartitionFromWorker { worker } => sim.partition_oneway(name(worker), COORDINATOR),
        Action::PartitionToWorker { worker } => sim.partition_oneway(COORDINATOR, name(worker)),
        Action::Repair { worker } => sim.repair(COORDINATOR, name(worker)),
        Action::Hold { worker } => sim.hold(COORDINATOR, name(worker)),
        Action::Release { worker } => sim.release(COORDINATOR, name(worker)),
        Action::Latency { worker, ms } => {
            let most = Duration::from_millis(ms);
            sim.set_link_max_message_latency(COORDINATOR, name(worker), most);
        }
    }
}

/// Repairs all links, and starts all processes that are not running.
fn repair(sim: &mut Sim<'_>, scenario: &Scenario) {
    if !sim.is_host_running(COORDINATOR) {
        sim.bounce(COORDINATOR);
    }
    for worker in 0..scenario.workers {
        act(sim, Action::Repair { worker });
        act(sim, Action::Release { worker });
        if !sim.is_host_running(name(worker)) {
            sim.bounce(name(worker));
        }
    }
}

/// Checks that a replay of the log makes the same decisions.
fn replays(log: &Path, coordinators: &Coordinators, digest: &str) -> Result<(), String> {
    let report =
        replay_log(log, |_| Ok(coordinators.run_again())).map_err(|error| error.to_string())?;
    match report.difference {
        Some(different) => Err(format!("its log replays otherwise: {different:?}")),
        None if report.torn => Err("its log is torn".to_owned()),
        None if report.decisions_sha256 != digest => Err("another digest".to_owned()),
        None => Ok(()),
    }
}

/// Checks that each task has one end that counts: no attempt at it begins later, and none ends a second time.
fn each_once(steps: &[Step], tasks: usize) -> Result<(), String> {
    let mut ends = BTreeMap::new();
    for step in steps {
        if let Event::Machine { report: Report::TaskFinished { task, attempt, .. }, .. } =
            &step.event
            && let Some(before) = ends.insert(*task, *attempt)
        {
            return Err(format!("{task} ends in attempt {before}, and again in {attempt}"));
        }
    }
    if ends.len() == tasks { Ok(()) } else { Err(format!("{} of {tasks} ended", ends.len())) }
}

/// Checks that each host received exactly the commands that the log decided for it, in order from the first.
fn in_order(
    steps: &[Step],
    coordinators: &Coordinators,
    told: &BTreeMap<u32, Vec<String>>,
) -> Result<(), String> {
    let mut run = coordinators.run_again();
    let mut due: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for step in steps {
        for (host, command) in run.handle_again(step).1.iter().map(decided) {
            due.entry(host).or_default().push(command);
        }
    }
    for (host, told) in told {
        let due = due.get(host).map_or(&[][..], Vec::as_slice);
        if !due.starts_with(told) {
            let at = due.iter().zip(told).take_while(|(due, told)| due == told).count();
            let (due, told) = (due.get(at), told.get(at));
            return Err(format!("host{host}, command {}: {told:?} for {due:?}", at + 1));
        }
    }
    Ok(())
}
