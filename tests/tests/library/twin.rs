//! A live run beside its twin: equal runs compare as equal, and planted differences are found.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};

use dormouse_analysis::RunMode;
use dormouse_analysis::twin::{LiveAndTwin, TaskStanding, TwinComparison};
use dormouse_cloud::{InterruptionAction, InterruptionTarget, ResourceVector};
use dormouse_engine::drive::{ModelledMachines, beginning_events, play_run};
use dormouse_experiment::Experiment;
use dormouse_model::{Decision, Effect, Event, Notice, Report, Step};
use dormouse_report::output::{LogHeader, RunLog, RunLogWriter};
use dormouse_report::twin::{TwinError, table, twin_of};
use dormouse_units::{Bytes, HostId, Span, Time};

use super::runs::{played, under};

/// A folder with a log of these steps.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(experiment: &Experiment, mode: RunMode, steps: &[Step]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let header = LogHeader::new(mode, "a test".to_owned(), experiment.clone());
        let mut log = RunLogWriter::begin(folder.path(), &header).unwrap();
        steps.iter().for_each(|step| log.step(step).unwrap());
        log.finish().unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn log(&self) -> PathBuf {
        self.path().join("events.jsonl")
    }

    fn twin(&self) -> TwinComparison {
        twin_of(self.path()).unwrap()
    }
}

/// Checks that two runs are the same, to the microsecond and the billionth of a dollar.
fn assert_identical(twin: &TwinComparison, what: &str) {
    assert_eq!(twin.divergence, None, "{what}");
    for row in &twin.tasks {
        assert_eq!(row.sides.live, row.sides.twin, "{what}: task {}", row.number);
    }
    for row in &twin.vms {
        assert_eq!(row.sides.live, row.sides.twin, "{what}: {}", row.vm);
    }
    for count in &twin.counts {
        assert_eq!(count.sides.live, count.sides.twin, "{what}: {}", count.name);
    }
    assert_eq!(twin.makespan.live, twin.makespan.twin, "{what}");
    assert_eq!(twin.cost.unwrap().live, twin.cost.unwrap().twin, "{what}");
    assert_eq!(twin.ended_early.live, twin.ended_early.twin, "{what}");
}

#[test]
fn a_run_of_virtual_time_is_its_own_twin() {
    let sets: [&[&str]; 4] = [
        &[],
        &["interruption.0.scope=vm"],
        &["interruption.1={ model = \"schedule\", acts = [\
                { at = \"9m\", action = \"preempt\", vm = 1 }, \
                { at = \"10m\", action = \"preempt\", type = \"c4.large\" }] }"],
        &["cloud.hosts=[{ vcpus = 12 }, { vcpus = 16 }]"],
    ];
    let (mut hibernated, mut interrupted) = (0, 0);
    for name in ["j60-sc2", "j60-sc5", "j80-sc4"] {
        for scheduler in ["burst-hads", "hads"] {
            for (seed, set) in (1..).zip(sets) {
                let experiment = under(name, scheduler, seed, set);
                let twin =
                    Folder::new(&experiment, RunMode::Virtual, &played(&experiment).0).twin();
                assert_identical(&twin, &format!("{name} {scheduler} {seed} {set:?}"));
                interrupted += usize::from(twin.interruptions > 0);
                assert!(twin.makespan.live.is_some(), "{name} {scheduler} {seed}");
                let count = twin.counts.iter().find(|count| count.name == "hibernations");
                hibernated += count.unwrap().sides.twin;
            }
        }
    }
    assert!(hibernated > 50 && interrupted > 20, "{hibernated} in {interrupted} of 24 runs");
}

/// The interruptions of a twin are those of the log: with the plan in the header, nothing but interruptions depends on
/// the seed.
#[test]
fn the_interruptions_are_those_of_the_log_and_not_of_the_seed() {
    let mut experiment = under("j60-sc5", "burst-hads", 3, &[]);
    let plan = experiment.plan().unwrap();
    experiment.scheduler.as_mut().unwrap().plan = plan;
    let steps = played(&experiment).0;
    let acts = |steps: &[Step]| {
        let effects = steps.iter().flat_map(|step| &step.effects);
        effects.filter(|e| matches!(e, Effect::Interrupted { .. })).cloned().collect::<Vec<_>>()
    };
    let drawn = acts(&steps);
    // What follows from an act, a hibernation that waited for the end of a boot, is not given again.
    let is_given =
        |e: &&Effect| matches!(e, Effect::Interrupted { target: InterruptionTarget::Type(_), .. });
    let given = drawn.iter().filter(is_given).count();
    assert!(given > 0 && given < drawn.len(), "{given} of {}", drawn.len());
    for seed in [4, 5] {
        let mut other = experiment.clone();
        other.setup.seed = seed;
        assert_ne!(acts(&played(&other).0), drawn, "the seed moves nothing: this shows nothing");
        let twin = Folder::new(&other, RunMode::Live, &steps).twin();
        assert_identical(&twin, &format!("seed {seed}"));
        assert_eq!(twin.interruptions, given);
    }
    let mut none = experiment;
    none.setup.interruptions.clear();
    assert_identical(&Folder::new(&none, RunMode::Live, &steps).twin(), "no interruptions drawn");
}

/// Plays a run of the experiment with these further events from outside.
fn troubled(experiment: &Experiment, troubles: Vec<(Time, Event)>) -> Vec<Step> {
    let host = ResourceVector::new(40, Bytes::new(1 << 40));
    let mut outside = beginning_events(&[host, host]);
    outside.extend(troubles);
    let mut run = experiment.run(experiment.scheduler().unwrap());
    let (mut steps, limit) = (Vec::new(), Time::from_secs(1_000_000));
    let see = |step: &Step| {
        steps.push(step.clone());
        Ok(())
    };
    let outside = outside.into_iter().map(Ok::<_, Infallible>);
    play_run(&mut run, &mut ModelledMachines::default(), outside, limit, see).unwrap();
    steps
}

#[test]
fn hosts_come_and_go_and_the_user_ends_it_when_they_did() {
    let experiment = under("j60-sc2", "burst-hads", 1, &[]);
    let lost = |s, host| {
        let (host, why) = (HostId::new(host), "its worker was killed".to_owned());
        (Time::from_secs(s), Event::HostLost { host, why, unheard: false })
    };
    let offer = ResourceVector::new(40, Bytes::new(1 << 40));
    let joined = Event::HostJoined { host: HostId::new(2), name: "anew".to_owned(), offer };
    let at = Time::from_micros(500_000_001);
    let steps = troubled(&experiment, vec![lost(400, 0), (at, joined), lost(900, 1)]);
    let twin = Folder::new(&experiment, RunMode::Live, &steps).twin();
    assert_identical(&twin, "hosts lost");
    let count = |name: &str| twin.counts.iter().find(|c| c.name == name).unwrap().sides.twin;
    assert!(count("hosts_lost") == 2 && twin.makespan.twin.is_some());
    assert!(twin.tasks.iter().any(|row| row.sides.twin.attempts > 1));

    let interrupt = |s, action| {
        let (target, why) = (InterruptionTarget::Type("c4.large".into()), "to see".to_owned());
        (Time::from_secs(s), Event::Interrupt { target, action, why })
    };
    let asked = vec![
        interrupt(300, InterruptionAction::Hibernate),
        interrupt(600, InterruptionAction::Resume),
    ];
    let steps = troubled(&experiment, asked);
    let folder = Folder::new(&experiment, RunMode::Live, &steps);
    assert_identical(&folder.twin(), "interruptions that somebody asked for");
    let log = RunLog::read(folder.path()).unwrap();
    let mut record = log.header.record();
    steps.iter().for_each(|step| record.see(step));
    let asked: Vec<_> = record.interruptions.iter().filter(|i| i.asked_by.is_some()).collect();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|i| i.vms.len() == 3 && i.asked_by.as_deref() == Some("to see")));
    assert_eq!(dormouse_report::replay::replay(&log).unwrap().difference, None);

    let cancel = Event::Cancel { why: "by its user".to_owned() };
    let steps = troubled(&experiment, vec![(Time::from_secs(700), cancel)]);
    let twin = Folder::new(&experiment, RunMode::Live, &steps).twin();
    assert_identical(&twin, "cancelled");
    let why = Some("by its user".to_owned());
    assert_eq!(twin.ended_early, LiveAndTwin { live: why.clone(), twin: why });
    assert!(twin.tasks.iter().any(|row| row.sides.live.finished.is_some()));
    assert_eq!(twin.makespan, LiveAndTwin { live: None, twin: None });
}

/// The twin of a killed run ends where the run's log ends, and is compared up to there.
#[test]
fn a_run_that_was_killed_is_compared_as_far_as_it_came() {
    let experiment = under("j80-sc4", "burst-hads", 2, &[]);
    let steps = played(&experiment).0;
    let half = steps.len() / 2;
    let last = (half..steps.len()).find(|&n| steps[n].at > steps[n - 1].at).unwrap();
    let folder = Folder::new(&experiment, RunMode::Live, &steps[..last]);
    let mut text = fs::read(folder.log()).unwrap();
    let whole = folder.twin();
    assert_identical(&whole, "cut between two steps");
    let cut = Some("its log ends here".to_owned());
    assert_eq!(whole.ended_early, LiveAndTwin { live: cut.clone(), twin: cut });
    assert!(whole.cost.unwrap().live.as_nanos() > 0, "VMs that still ran cost something");
    for tail in [&b"{\"seq\":"[..], b"\xff\xfe\0\0", b"\0\0\0\n", b"nonsense\n{}\n"] {
        let length = text.len();
        text.extend_from_slice(tail);
        fs::write(folder.log(), &text).unwrap();
        assert_eq!(folder.twin(), whole, "{tail:?}");
        text.truncate(length);
    }
    // What is torn is after all that the seal covers: before its end it is damage.
    let second = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    text[second] = b'?';
    fs::write(folder.log(), &text).unwrap();
    assert!(matches!(twin_of(folder.path()), Err(TwinError::Log(_))));
}

fn finished(step: &Step) -> Option<u32> {
    match &step.event {
        Event::Machine { report: Report::TaskFinished { task, .. }, .. } => Some(task.get()),
        _ => None,
    }
}

/// The log of a run in which what one task reports comes only after another's end, with what the
/// engine made of it.
fn with_a_late_task(
    experiment: &Experiment,
    good: &[Step],
    late: usize,
    after: usize,
) -> Vec<Step> {
    let mut order: Vec<_> = (0..good.len()).filter(|n| *n != late).collect();
    order.insert(after, late);
    let mut run = experiment.run(experiment.scheduler().unwrap());
    let until = good[after].at + Span::from_micros(1);
    let mut steps = Vec::new();
    for n in order.into_iter().take(after + 1) {
        let at = if n == late { until } else { good[n].at };
        steps.push(run.handle_event(at, good[n].event.clone()).0);
    }
    steps
}

#[test]
fn a_planted_divergence_is_found_with_its_cause_and_both_times() {
    let experiment = under("j60", "burst-hads", 1, &[]);
    let good = played(&experiment).0;
    let starts = |step: &Step| step.decisions.iter().any(|d| matches!(d, Decision::Start { .. }));
    // Two ends, one after the other, that let others begin on different VMs.
    let ends: Vec<_> =
        (0..good.len()).filter(|&n| finished(&good[n]).is_some() && starts(&good[n])).collect();
    let vm = |n: usize| match good[n].notices.first() {
        Some(Notice::TaskFinished { vm, .. }) => *vm,
        _ => panic!("nothing finished in step {n}"),
    };
    let differ =
        |pair: &&[usize]| good[pair[0]].at < good[pair[1]].at && vm(pair[0]) != vm(pair[1]);
    let pair = ends.windows(2).find(differ).unwrap();
    let (late, after) = (pair[0], pair[1]);
    let steps = with_a_late_task(&experiment, &good, late, after);
    let twin = Folder::new(&experiment, RunMode::Live, &steps).twin();

    let counted = |steps: &[Step]| {
        let decisions = steps.iter().flat_map(|step| &step.decisions);
        decisions.filter(|d| !matches!(d, Decision::Wake { .. })).count()
    };
    let divergence = twin.divergence.as_ref().unwrap();
    assert_eq!(divergence.same, counted(&good[..late]));
    let LiveAndTwin { live: Some(live), twin: Some(other) } = &divergence.decided else { panic!() };
    let end_of = |n: usize| {
        let Some(Notice::TaskFinished { task, vm }) = good[n].notices.first() else { panic!() };
        format!("{task} finished on {vm}")
    };
    assert_eq!((other.at, &other.heard), (good[late].at, &end_of(late)));
    assert_eq!(other.other_heard, Some(good[after].at + Span::from_micros(1)));
    assert!(live.at > good[late].at && live.what != other.what, "{live:?} {other:?}");

    // The late task took that much longer, and nothing else about it changed.
    let row = &twin.tasks[finished(&good[late]).unwrap() as usize];
    let late_by = good[after].at.since(good[late].at) + Span::from_micros(1);
    assert_eq!(row.standing, TaskStanding::Undisturbed);
    assert_eq!(row.sides.live.took().unwrap(), row.sides.twin.took().unwrap() + late_by);
    let part = late_by.as_secs_f64() / row.sides.twin.took().unwrap().as_secs_f64();
    assert!((row.difference.unwrap() - part).abs() < 1e-9 && part > 0.0);
    assert_eq!(twin.worst()[0], row);
    let spread = twin.undisturbed.as_ref().unwrap();
    assert!((spread.longest() - part).abs() < 1e-9 && spread.shortest().abs() < 1e-9);
    assert_eq!(spread.past_5_percent(), usize::from(part > 0.05));
    let table = table(&twin, dormouse_view::Terminal::PLAIN, false);
    assert!(table.contains(&format!("in the twin, {}", end_of(late))), "{table}");
}

/// A task's duration is compared only if it ran without disturbance and once in both runs; otherwise the comparison
/// says why not.
#[test]
fn what_disturbed_a_task_is_said_and_its_duration_left_out() {
    let experiment = under("j60-sc2", "burst-hads", 21, &[]);
    let twin = Folder::new(&experiment, RunMode::Virtual, &played(&experiment).0).twin();
    let undisturbed = twin.tasks.iter().filter(|row| row.standing == TaskStanding::Undisturbed);
    assert_eq!(undisturbed.count(), twin.undisturbed.as_ref().unwrap().tasks());
    for row in &twin.tasks {
        match &row.standing {
            TaskStanding::Undisturbed => assert_eq!(row.sides.live.attempts, 1),
            TaskStanding::Disturbed(why) if row.sides.live.attempts == 1 => {
                assert_eq!(why, "its VM was taken before it began in both");
            }
            TaskStanding::Disturbed(why) => {
                assert_eq!(*why, format!("{} attempts in both", row.sides.live.attempts));
            }
            TaskStanding::Background => panic!("a bag has no background"),
        }
    }
}

#[test]
fn a_log_that_is_decided_otherwise_now_is_refused() {
    let experiment = under("j60", "burst-hads", 1, &[]);
    let mut steps = played(&experiment).0;
    let step = steps.iter_mut().filter(|step| step.decisions.len() > 1).nth(1).unwrap();
    step.decisions.pop();
    let seq = step.seq;
    let folder = Folder::new(&experiment, RunMode::Live, &steps);
    let refused = twin_of(folder.path()).unwrap_err();
    assert!(matches!(refused, TwinError::OtherVersion { step, .. } if step == seq), "{refused}");
    assert!(refused.is_bad_input());
    let only_hosts = Folder::new(&experiment, RunMode::Live, &steps[..1]);
    assert!(matches!(twin_of(only_hosts.path()), Err(TwinError::NeverBegan(_))));
}
