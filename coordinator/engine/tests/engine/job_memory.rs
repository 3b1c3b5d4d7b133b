//! Memory of parallel jobs: their machine's memory, the memory that a start takes, and that no start whose memory isn't
//! free is carried out.

use std::convert::Infallible;
use std::sync::Arc;

use dormouse_cloud::Market;
use dormouse_engine::Run;
use dormouse_engine::drive::{BOUNDLESS, ModelledMachines, beginning_events, play_run};
use dormouse_engine::jobs::{JobSimulation, SubmissionEvents};
use dormouse_model::{Command, Decision, Effect, Event, Notice, Report, StartReason, Submission};
use dormouse_policies::Policy;
use dormouse_policies::batch::{Algorithm, Config};
use dormouse_units::{Bytes, HostId, Mode, Seats, Span, TaskId, Tier, Time, Usage, VmId};

const MIB: u64 = 1 << 20;

fn job(number: u64, processes: u32, mib: u64) -> Submission {
    Submission {
        number,
        submitted: Time::ZERO,
        processes,
        runtime: Span::from_secs(100),
        estimate: Span::from_secs(100),
        usage: Usage::FULL,
        memory: Bytes::new(mib * MIB),
        priority: 0,
        after: None,
        is_cut: false,
        fails: false,
    }
}

fn simulation(algorithm: Algorithm) -> JobSimulation {
    let mut simulation = JobSimulation::new(Config::new(algorithm, 4), 1);
    simulation.memory = Some(Bytes::new(100 * MIB));
    simulation
}

#[test]
fn a_process_has_half_of_a_processor_where_two_are_on_one() {
    for algorithm in Algorithm::ALL {
        let setup = simulation(algorithm).make_setup();
        let most = if algorithm.promotion().is_some() { 50 } else { 100 };
        assert_eq!(setup.space_of_jobs().memory, Some(Bytes::new(most * MIB)), "{algorithm}");
        assert_eq!(setup.memory_of_machine(), Bytes::new(400 * MIB), "{algorithm}");
    }
    let silent = JobSimulation::new(Config::new(Algorithm::Measy, 4), 1).make_setup();
    assert_eq!((silent.space_of_jobs().memory, silent.memory_of_machine()), (None, Bytes::ZERO));
}

/// Every scheduler fills a machine with jobs that want as much memory as possible: no decision is refused, and each
/// start names the memory that all processes of its job need.
#[test]
fn no_scheduler_decides_what_memory_forbids() {
    for algorithm in Algorithm::ALL {
        let simulation = simulation(algorithm);
        let most = simulation.job_capacity().memory.expect("it is said").get() / MIB;
        let jobs: Vec<_> =
            (1..=30).map(|n| job(n, 1 + u32::try_from(n % 4).expect("small"), most)).collect();
        let mut run = simulation.run();
        let of_all = jobs.iter().map(|job| Ok::<_, Infallible>(job.clone()));
        let events = SubmissionEvents::new(of_all, simulation.job_capacity(), TaskId::new(0));
        let events = events.map(|event| event.expect("they fit"));
        let events =
            beginning_events(&[BOUNDLESS]).into_iter().chain(events).map(Ok::<_, Infallible>);
        let (mut world, mut rejected) =
            (ModelledMachines::new(simulation.two_tier_law()), Vec::new());
        let played = play_run(&mut run, &mut world, events, Time::from_secs(1_000_000), |step| {
            let no = |e: &&Effect| matches!(e, Effect::Rejected { .. } | Effect::Moot { .. });
            rejected.extend(step.effects.iter().filter(no).cloned());
            Ok(())
        });
        assert_eq!(played, Ok(()), "{algorithm}");
        assert_eq!((run.unfinished_count(), rejected), (0, Vec::new()), "{algorithm}");
    }
}

/// Test policy that starts every submitted job, one after the other, whether there is room or not.
#[derive(Debug, Default)]
struct Careless {
    next_cpu: u32,
}

impl Policy for Careless {
    fn handle(&mut self, _: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        let vm = VmId::new(0);
        for notice in heard {
            match notice {
                Notice::Begin => out.push(Decision::Launch {
                    vm,
                    kind: dormouse_model::MACHINE.into(),
                    market: Market::OnDemand,
                    bid: None,
                }),
                Notice::Submitted { job } => {
                    let cpus = (self.next_cpu..self.next_cpu + job.processes).collect::<Vec<_>>();
                    self.next_cpu += job.processes;
                    let on = Seats { vm, tier: Tier::Foreground, cpus: cpus.into() };
                    let (mode, reason) = (Mode::Burst, StartReason::FirstInLine);
                    out.push(Decision::Start { task: job.id, on, mode, reason });
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_start_whose_memory_is_not_free_is_refused() {
    let setup = simulation(Algorithm::Easy).make_setup();
    let mut run = Run::new(setup, Box::<Careless>::default());
    let host = HostId::new(0);
    let feed = |run: &mut Run, event| run.handle_event(Time::ZERO, event);
    for event in beginning_events(&[BOUNDLESS]) {
        let (_, commands) = feed(&mut run, event.1);
        let made = commands.iter().find_map(|command| match command {
            Command::CreateVm { memory, .. } => Some(*memory),
            _ => None,
        });
        assert!(made.is_none_or(|memory| memory == Bytes::new(400 * MIB)), "{made:?}");
    }
    let report = Report::VmCreated { vm: VmId::new(0) };
    feed(&mut run, Event::Machine { host, number: 1, report });
    feed(&mut run, Event::Tick);
    // Three processes of 120 MiB leave 40 of 400.
    let submit = |run: &mut Run, task, job| {
        let event = Event::Submitted { task: TaskId::new(task), key: None, job: Arc::new(job) };
        run.handle_event(Time::ZERO, event)
    };
    let (_, commands) = submit(&mut run, 0, job(1, 3, 120));
    let memory = commands.iter().find_map(|command| match command {
        Command::StartTask(start) => Some(start.memory),
        _ => None,
    });
    assert_eq!(memory, Some(Bytes::new(360 * MIB)));
    let (step, commands) = submit(&mut run, 1, job(2, 1, 41));
    let why = step.effects.iter().find_map(|effect| match effect {
        Effect::Rejected { why, .. } => Some(why.as_str()),
        _ => None,
    });
    assert_eq!((why, commands.len()), (Some("task1 needs 41 MiB, vm0 has 40 MiB free"), 0));
}
