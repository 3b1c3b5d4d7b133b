//! Rules that no schedule on two tiers may break, on random workloads.

use std::collections::BTreeMap;
use std::convert::Infallible;

use dormouse_analysis::jobs::simulate;
use dormouse_analysis::{JobHistory, RunRecord as Record, SpellEnd, carried_out};
use dormouse_engine::jobs::JobSimulation;
use dormouse_model::{Decision, Event, PromotionMethod, Step, Submission, UsageInformation};
use dormouse_policies::Policy;
use dormouse_policies::batch::{Algorithm, BatchPolicy, BatchScheduler, Config, Noted};
use dormouse_units::{Bytes, Ppm, RandomStream, Seats, Span, TaskId, Tier, Time, Usage};

type Vm = (u32, Tier);

/// Tracks the job on each vCPU and tier, and fails the test if a decision breaks a rule.
#[derive(Default)]
struct Rules {
    algorithm: Option<Algorithm>,
    vms: BTreeMap<Vm, TaskId>,
    jobs: Vec<JobHistory>,
}

impl Rules {
    fn sit(&mut self, job: TaskId, tier: Tier, on: &[u32]) {
        for &p in on {
            let before = self.vms.insert((p, tier), job);
            assert_eq!(before, None, "{job} into a taken VM of processor {p}");
        }
    }

    fn stand(&mut self, job: TaskId) -> Vec<Vm> {
        let held: Vec<_> = self.vms.iter().filter(|(_, j)| **j == job).map(|(vm, _)| *vm).collect();
        self.vms.retain(|_, j| *j != job);
        held
    }
}

impl Rules {
    /// Checks a step that `record` has already taken in.
    fn see(&mut self, record: &Record, step: &Step) -> Result<(), Infallible> {
        record.closed().jobs.iter().for_each(|job| self.ended(job));
        let decided = carried_out(step).into_iter().filter(|it| it.task().is_some());
        decided.for_each(|decision| self.decided(decision));
        Ok(())
    }

    fn decided(&mut self, decision: &Decision) {
        match decision {
            Decision::Start { task, on: Seats { tier, cpus, .. }, .. } => {
                self.sit(*task, *tier, cpus);
            }
            Decision::Promote { task, by, .. } => {
                let held = self.stand(*task);
                assert!(!held.is_empty() && held.iter().all(|vm| vm.1 == Tier::Background));
                let own: Vec<u32> = held.iter().map(|vm| vm.0).collect();
                let on = match (by, self.algorithm) {
                    (PromotionMethod::Swap, _) => &own[..],
                    (PromotionMethod::Kill { on }, Some(Algorithm::Keasy)) => on,
                    (PromotionMethod::Migrate { on }, Some(Algorithm::Measy)) => on,
                    other => panic!("no such promotion here: {other:?}"),
                };
                self.sit(*task, Tier::Foreground, on);
            }
            other => panic!("no batch scheduler decides that: {other:?}"),
        }
    }

    fn ended(&mut self, job: &JobHistory) {
        assert_eq!(self.stand(job.id).len(), job.job.processes as usize);
        let (started, ended) = (job.started().expect("it ran"), job.ended.expect("it ended"));
        assert!(job.job.submitted <= started);
        assert!(ended.since(started) >= job.job.runtime, "faster than alone");
        self.jobs.push(job.clone());
    }
}

fn workload(seed: u64, count: u64, machine: u32) -> Vec<Submission> {
    let mut stream = RandomStream::new(seed, "two-tier test", 0);
    let mut at = 0;
    (0..count)
        .map(|number| {
            at += stream.draw_below(30) as u64;
            let processes = match stream.draw_below(3) {
                0 => 1,
                _ => 1 + stream.draw_below(machine as usize) as u32,
            };
            let usage: Vec<_> = (0..processes)
                .map(|_| Ppm::new(400_000 + stream.draw_below(600_000) as u32))
                .collect();
            let runtime = stream.draw_below(200) as u64;
            Submission {
                number,
                submitted: Time::from_secs(at),
                processes,
                runtime: Span::from_secs(runtime),
                estimate: Span::from_secs(1 + runtime + stream.draw_below(200) as u64),
                usage: if processes == 1 { Usage::FULL } else { Usage::each_process(usage) },
                memory: Bytes::ZERO,
                priority: 0,
                after: None,
                is_cut: false,
                fails: false,
            }
        })
        .collect()
}

fn play(seed: u64, jobs: &[Submission], mut setup: JobSimulation) -> Rules {
    setup.seed = seed;
    let algorithm = Some(setup.config.algorithm);
    let mut rules = Rules { algorithm, ..Rules::default() };
    let see = |record: &Record, step: &Step| rules.see(record, step);
    let record = simulate(jobs.iter().cloned().map(Ok), &setup, see).expect("to the end");
    assert_eq!((rules.jobs.len(), record.jobs_heard), (jobs.len(), 0));
    assert!(rules.vms.is_empty());
    rules
}

#[test]
fn no_vm_is_taken_twice_and_every_job_ends() {
    let (mut swaps, mut kills, mut migrations) = (0, 0, 0);
    for seed in 0..60 {
        let machine = 2 + (seed % 23) as u32;
        let jobs = workload(seed, 120, machine);
        for algorithm in Algorithm::ALL {
            for information in
                [UsageInformation::Exact, UsageInformation::Absent(Ppm::new(700_000))]
            {
                let mut setup = JobSimulation::new(Config::new(algorithm, machine), 1);
                setup.information = information;
                for job in play(seed, &jobs, setup).jobs {
                    swaps += job.left_by(SpellEnd::Swapped);
                    kills += job.left_by(SpellEnd::Killed);
                    migrations += job.left_by(SpellEnd::Migrated);
                }
            }
        }
    }
    assert!(swaps > 100 && kills > 100 && migrations > 100, "{swaps} {kills} {migrations}");
}

#[test]
fn the_same_seed_gives_the_same_records_and_another_does_not() {
    let jobs = workload(7, 200, 16);
    let setup = JobSimulation::new(Config::new(Algorithm::Measy, 16), 1);
    let played = |seed| format!("{:?}", play(seed, &jobs, setup.clone()).jobs);
    assert_eq!(played(7), played(7));
    assert_ne!(played(7), played(8));
}

#[test]
fn watching_a_job_says_what_it_waits_for_and_changes_nothing() {
    let jobs = workload(3, 200, 8);
    let setup = JobSimulation::new(Config::new(Algorithm::Easy, 8), 1);
    let (mut rules, mut instants) = (Rules::default(), Vec::new());
    simulate(jobs.iter().cloned().map(Ok), &setup, |record, step| {
        if step.event == Event::InstantOver {
            instants.push((step.at, step.notices.clone(), step.decisions.clone()));
        }
        rules.see(record, step)
    })
    .expect("to the end");
    let waited = |job: &&JobHistory| job.started().map(|at| at.since(job.job.submitted));
    let most = rules.jobs.iter().max_by_key(waited).expect("there are jobs").id;
    let mut watching = BatchScheduler::new(setup.config, "processors".into());
    watching.watch(most);
    for (at, notices, decisions) in instants {
        let mut again = Vec::new();
        watching.handle(at, &notices, &mut again);
        assert_eq!(again, decisions, "at {at}");
    }
    let noted: Vec<_> = watching.notes().iter().map(|note| note.what).collect();
    assert!(matches!(noted.last(), Some(Noted::Head { .. })), "{noted:?}");
    assert!(noted.len() > 1);
}

#[test]
fn what_can_not_be_is_refused_with_the_job_named() {
    let refused = |change: fn(&mut Vec<Submission>)| {
        let mut jobs = workload(1, 5, 4);
        change(&mut jobs);
        let setup = JobSimulation::new(Config::new(Algorithm::Measy, 4), 1);
        let mut rules = Rules { algorithm: Some(Algorithm::Measy), ..Rules::default() };
        let see = |record: &Record, step: &Step| rules.see(record, step);
        let error = simulate(jobs.into_iter().map(Ok), &setup, see).expect_err("refused");
        error.to_string()
    };
    let large = refused(|jobs| jobs[3].processes = 5);
    assert!(large.contains("job 3") && large.contains("wants 5 processors"), "{large}");
    let none = refused(|jobs| jobs[2].processes = 0);
    assert!(none.contains("job 2") && none.contains("no processor"), "{none}");
    let unsorted = refused(|jobs| jobs[4].submitted = Time::ZERO);
    assert!(unsorted.contains("job 4") && unsorted.contains("sort the trace"), "{unsorted}");
}
