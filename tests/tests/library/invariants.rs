//! Every built-in experiment under every scheduler and many seeds: what must hold in every
//! run holds, the record agrees with the engine, and equal runs are equal.

use dormouse_analysis::check_bag;
use dormouse_experiment::BuiltinExperiment;
use dormouse_model::{Effect, Event, Report, Step, Task, TenantWork};
use dormouse_units::{Money, Ppm, Span, TaskId, Time, VmId};

use super::runs::{played, sound, under, with};

const SCHEDULERS: [&str; 5] = ["burst-hads", "hads", "ils-on-demand", "longest-first", "lazy"];
const SERVICE: &str = "batch-service";
const SEEDS: u64 = 4;

#[test]
fn every_builtin_is_sound_under_every_scheduler() {
    // Where there are tenants, the schedulers are theirs.
    let jobs: Vec<_> = BuiltinExperiment::all().filter(|b| b.work() == TenantWork::Bag).collect();
    std::thread::scope(|scope| {
        for half in jobs.chunks(jobs.len().div_ceil(2)) {
            scope.spawn(move || {
                for builtin in half {
                    let own = with(&builtin.name(), &[]).unwrap().scheduler_name();
                    // The batch service has keys that say nothing to others.
                    let schedulers =
                        if own == SERVICE { vec![SERVICE] } else { SCHEDULERS.to_vec() };
                    for scheduler in schedulers {
                        for seed in 0..SEEDS {
                            let experiment = under(&builtin.name(), scheduler, seed, &[]);
                            sound(&experiment);
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn other_clouds_and_interruptions_are_sound_too() {
    let sets: [&[&str]; 5] = [
        &["interruption.0.scope=vm"],
        &["checkpoint.overhead=0"],
        &["checkpoint.overhead=0.5", "cloud.boot=10s"],
        &["cloud.catalogue=ec2-2020-paper", "scheduler.preset=artifact"],
        &["interruption.1={ model = \"schedule\", acts = [\
                { at = \"9m\", action = \"preempt\", vm = 1 }, \
                { at = \"10m\", action = \"preempt\", type = \"c4.large\" }] }"],
    ];
    for (n, set) in sets.iter().enumerate() {
        for scheduler in SCHEDULERS {
            let experiment = under("j60-sc5", scheduler, n as u64, set);
            sound(&experiment);
        }
    }
}

/// VMs live for ten minutes on average, and those of one type have prices that pass a bid twice.
#[test]
fn every_scheme_of_checkpoints_is_sound_under_every_scheduler() {
    let checkpoints = [
        "policy = \"hour\"",
        "policy = \"edge\"",
        "policy = \"adapt\", every = \"1m\"",
        "policy = \"opt\"",
        "policy = \"acc\", bid = 0.03, look = \"30m\"",
        "policy = \"young-daly\"",
        "policy = \"dp\", step = \"5s\"",
        "policy = \"dp\", step = \"10s\", mode = \"artifact\", lifetimes = { mean = \"5m\" }",
    ];
    let rows = "[[\"0s\", 0.02], [\"5m\", 0.04], [\"7m\", 0.06], [\"9m\", 0.03], [\"20m\", 0.07], [\"22m\", 0.02]]";
    let prices = format!("cloud.prices={{ \"c3.large\" = {rows} }}");
    let lives = "interruption.0={ model = \"lifetime\", mean = \"10m\" }";
    let fleet = "{ type = \"c3.large\", market = \"spot\", count = 2, bid = 0.05 }";
    let fleet = format!("scheduler.fleet=[{fleet}, {{ type = \"c4.large\", market = \"spot\" }}]");
    let mut kept = 0;
    for checkpoint in checkpoints {
        let checkpoint = format!("checkpoint={{ {checkpoint}, fixed = \"2s\" }}");
        for scheduler in SCHEDULERS.into_iter().chain(["fifo"]) {
            let mut set = vec![&*checkpoint, &*prices, lives];
            set.extend((scheduler == "fifo").then_some(&*fleet));
            let experiment = under("j60-sc2", scheduler, 1, &set);
            let (_, record) = sound(&experiment);
            assert!(record.makespan().is_some(), "{checkpoint} {scheduler}");
            kept += record.counts.checkpoints;
        }
    }
    assert!(kept > 100, "{kept}");
}

#[test]
fn equal_runs_are_equal_and_seeds_matter() {
    let make = |seed| played(&under("j80-sc4", "burst-hads", seed, &[])).0;
    assert_eq!(make(3), make(3));
    assert_ne!(make(3), make(4));
}

/// The checker finds each kind of damage to a valid log.
#[test]
fn damage_is_found() {
    let experiment = under("j60-sc2", "burst-hads", 1, &[]);
    let (good, _) = played(&experiment);
    let find = |pick: &dyn Fn(&Step) -> bool| good.iter().position(pick).unwrap();
    let violated = |what: &str, damage: &dyn Fn(&mut Vec<Step>)| {
        let mut bad = good.clone();
        damage(&mut bad);
        let found = check_bag(&experiment.setup, &bad, Span::ZERO, true);
        assert!(!found.is_empty(), "{what}");
    };
    violated("a step is missing", &|log| drop(log.remove(10)));
    let over = find(&|s| s.effects.iter().any(|e| matches!(e, Effect::Over { .. })));
    violated("the end is missing", &|log| log.truncate(over));
    violated("time runs backwards", &|log| {
        log[20].at = log[19].at - dormouse_units::Span::from_secs(1);
    });
    let ended = find(&|s| s.effects.iter().any(|e| matches!(e, Effect::VmEnded { .. })));
    violated("a bill is wrong", &|log| {
        for effect in &mut log[ended].effects {
            if let Effect::VmEnded { cost, .. } = effect {
                *cost += Money::from_nanos(1);
            }
        }
    });
    violated("a time that no run comes to", &|log| {
        if let Some(last) = log.last_mut() {
            last.at = Time::from_micros(1 << 63);
        }
    });
    let sent = find(&|s| s.effects.iter().any(|e| matches!(e, Effect::TaskSent { .. })));
    violated("a task is on two VMs", &|log| {
        let twice =
            log[sent].effects.iter().find(|e| matches!(e, Effect::TaskSent { .. })).cloned();
        log[sent].effects.extend(twice);
    });
    violated("a VM appears from nowhere", &|log| {
        for effect in &mut log[sent].effects {
            if let Effect::TaskSent { vm, .. } = effect {
                *vm = VmId::new(999);
            }
        }
    });
    let finished =
        find(&|s| matches!(&s.event, Event::Machine { report: Report::TaskFinished { .. }, .. }));
    violated("a task is finished twice", &|log| {
        let again = Step { effects: Vec::new(), decisions: Vec::new(), ..log[finished].clone() };
        log.insert(finished + 1, again);
        for (n, step) in (0..).zip(log.iter_mut()) {
            step.seq = n;
        }
    });
    let frozen = find(&|s| s.effects.iter().any(|e| matches!(e, Effect::VmHibernated { .. })));
    violated("a hibernation takes effect before it is asked for", &|log| {
        for effect in &mut log[frozen].effects {
            if let Effect::VmHibernated { asked, .. } = effect {
                *asked += dormouse_units::Span::from_secs(1_000);
            }
        }
    });
    violated("credits come from nowhere", &|log| {
        for step in log.iter_mut() {
            if let Event::Machine { report: Report::Credits { balance, .. }, .. } = &mut step.event
            {
                *balance = *balance + dormouse_units::Credits::whole_credits(500);
            }
        }
    });
}

/// The checker finds a task that begins before it is submitted: the log's second bag is changed to have been submitted
/// a second late.
#[test]
fn a_task_that_begins_before_it_is_submitted_is_found() {
    let mut experiment = under("bathtub-service-live", SERVICE, 1, &[]);
    let (log, _) = played(&experiment);
    assert!(check_bag(&experiment.setup, &log, Span::ZERO, true).is_empty());
    let later = |task: Task| match task.submitted {
        Span::ZERO => task,
        submitted => Task { submitted: submitted + Span::from_secs(1), ..task },
    };
    let tasks = experiment.setup.bag.tasks.iter().cloned();
    experiment.setup.bag.tasks = tasks.map(later).collect();
    let found = check_bag(&experiment.setup, &log, Span::ZERO, true);
    assert!(
        !found.is_empty() && found.iter().all(|v| v.to_string().contains("before it is submitted")),
        "{found:?}"
    );
}

/// The first start of a task from a checkpoint that has an older one: its index in the log, and the work that the
/// older one holds.
fn restart(log: &[Step]) -> Option<(usize, Ppm)> {
    let mut stored = std::collections::BTreeMap::<TaskId, Vec<Ppm>>::new();
    for (n, step) in log.iter().enumerate() {
        match step.event {
            Event::Machine { report: Report::CheckpointTaken { task, done, .. }, .. } => {
                stored.entry(task).or_default().push(done);
            }
            Event::Machine { report: Report::TaskStarted { task, done, .. }, .. } => {
                let older = stored.get(&task).and_then(|all| all.iter().find(|it| **it < done));
                if let Some(older) = older {
                    return Some((n, *older));
                }
            }
            _ => {}
        }
    }
    None
}

#[test]
fn a_task_may_begin_with_an_older_image_if_there_was_one() {
    let of_seed = |seed| {
        let experiment = under("j60-sc2", "burst-hads", seed, &["checkpoint.overhead=0.5"]);
        let (log, _) = played(&experiment);
        let (n, older) = restart(&log)?;
        Some((experiment, log, n, older))
    };
    let found = (1..=20).find_map(of_seed);
    let (experiment, log, n, older) =
        found.expect("a task starts from its second checkpoint or later");
    let wrong = |begins_at: Ppm, lateness: Span| {
        let mut log = log.clone();
        let Event::Machine { report: Report::TaskStarted { done, .. }, .. } = &mut log[n].event
        else {
            panic!("a start")
        };
        *done = begins_at;
        let violations = check_bag(&experiment.setup, &log, lateness, true);
        violations.iter().any(|it| it.what.contains("it starts at"))
    };
    let late = Span::from_secs(30);
    assert!(!wrong(older, late), "a real image can be damaged");
    assert!(!wrong(Ppm::ZERO, late), "all of them can");
    assert!(wrong(older, Span::ZERO), "no modelled one can");
    assert!(wrong(Ppm::new(older.get() + 1), late), "there never was one");
    assert!(wrong(Ppm::ONE, late), "nor of what was yet to be done");
}
