//! Measures the x of the virtual model: the part of the cycles left idle by foreground jobs that
//! background jobs turned into progress. In the model a background process progresses at min(1, x ·
//! (1 − u_fg) / u_bg), and a job as its slowest process.

use std::collections::BTreeMap;
use std::time::Duration;

use dormouse_estimate::{Estimate, normal};
use dormouse_model::{Event, Step};
use dormouse_units::{Speedup, TaskId, Tier, Time};
use dormouse_vm::ProcessorSharing;

use super::Consolidation;
use super::submitted::SubmittedJobs;
use crate::{LiveFacts, RunRecord, SpellEnd};

/// Least emulated time, in seconds, that a job must have been in the background of other jobs for its progress to be judged: over
/// less time, chance in the job's first phases decides its progress.
const LEAST_BELOW_S: f64 = 100.0;

/// A period of a job in the background, in which the jobs on the job's processors stayed the same.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BackgroundStay {
    seconds: f64,
    /// Smallest (1 − u_fg) / u_bg over the job's processes, where u is CPU use; infinite if no
    /// foreground process is on their processors.
    room: f64,
}

/// Number of processes, and utilisation x, of every job that was in the background for long enough.
#[must_use]
pub fn utilisations(
    steps: &[Step],
    submissions: SubmittedJobs<'_>,
    facts: &LiveFacts,
    speedup: Speedup,
) -> Vec<(u32, f64)> {
    let mut cpu_us = BTreeMap::<TaskId, u64>::new();
    for (job, of) in facts.jobs.uses.iter().filter(|(_, of)| of.tier == Tier::Background) {
        let sum = cpu_us.entry(*job).or_default();
        *sum = sum.saturating_add(of.cpu_us);
    }
    let x = |(job, stays): (TaskId, Vec<BackgroundStay>)| {
        let submission = submissions.get(job)?;
        let below = stays.iter().filter(|stay| stay.room.is_finite());
        if below.map(|stay| stay.seconds).sum::<f64>() < LEAST_BELOW_S {
            return None;
        }
        // CPU time that a second of the job takes alone, and the CPU time that it had.
        let all = 0..submission.processes as usize;
        let takes: f64 =
            all.map(|n| submission.usage.of_process(n).as_f64() * facts.share.as_f64()).sum();
        let had = Duration::from_micros(cpu_us.get(&job).copied().unwrap_or(0));
        let had_s = speedup.to_emulated(had).as_secs_f64();
        Some((submission.processes, solve_utilisation(&stays, had_s / takes)))
    };
    background_stays(steps, submissions).into_iter().filter_map(x).collect()
}

/// The utilisation x, at most 1, with which a job progresses by `progress` seconds in these background periods.
fn solve_utilisation(stays: &[BackgroundStay], progress: f64) -> f64 {
    let under = |x: f64| stays.iter().map(|s| s.seconds * (x * s.room).min(1.0)).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if under(middle) < progress { low = middle } else { high = middle }
    }
    high
}

/// The background periods of every job.
fn background_stays(
    steps: &[Step],
    submissions: SubmittedJobs<'_>,
) -> BTreeMap<TaskId, Vec<BackgroundStay>> {
    let usage = |job: TaskId, n: usize| {
        submissions.get(job).map_or(1.0, |s| s.usage.of_process(n).as_f64())
    };
    let mut stays = BTreeMap::<TaskId, Vec<BackgroundStay>>::new();
    let (mut record, mut last) = (RunRecord::default().forgetting().without_attempts(), Time::ZERO);
    for step in steps {
        if step.event != Event::InstantOver {
            record.see(step);
            continue;
        }
        let seconds = step.at.since(last).as_secs_f64();
        last = step.at;
        let there = || {
            let spells = record.jobs.iter().filter_map(|(id, job)| Some((id, job.spells.last()?)));
            spells.filter(|(_, spell)| spell.until.is_none())
        };
        let mut above = BTreeMap::<u32, f64>::new();
        for (job, spell) in there().filter(|(_, spell)| spell.tier == Tier::Foreground) {
            above.extend(spell.on.iter().enumerate().map(|(n, p)| (*p, usage(job, n))));
        }
        for (job, spell) in there().filter(|(_, spell)| spell.tier == Tier::Background) {
            let rooms = spell.on.iter().enumerate().filter_map(|(n, p)| {
                above.get(p).map(|foreground| (1.0 - foreground) / usage(job, n))
            });
            let room = rooms.fold(f64::INFINITY, f64::min);
            stays.entry(job).or_default().push(BackgroundStay { seconds, room });
        }
        record.see(step);
        // The CPU time of a failed start is unknown: the job is left out.
        let failed = Some((step.at, SpellEnd::Failed));
        for (job, history) in record.jobs.iter() {
            if history.spells.iter().any(|spell| spell.until == failed) {
                stays.remove(&job);
            }
        }
    }
    stays
}

/// The model's sharing parameters, measured in live runs. The loss is uniform from 0 to twice its measured mean. The utilisation is
/// uniform over its measured range for jobs of one process, and has a truncated normal distribution for other jobs. Unmeasured
/// parameters keep the paper's values.
#[must_use]
pub fn measured_sharing(of: &[&Consolidation]) -> ProcessorSharing {
    let paper = ProcessorSharing::default();
    let losses: Vec<f64> = of.iter().map(|c| c.foreground_mean_loss.max(0.0)).collect();
    let all = of.iter().flat_map(|c| &c.background_utilisations);
    let (single, several): (Vec<_>, Vec<_>) = all.partition(|(processes, _)| *processes == 1);
    let x = |of: Vec<&(u32, f64)>| of.into_iter().map(|(_, x)| *x).collect::<Vec<_>>();
    let (single, several) = (x(single), x(several));
    let range = |of: &[f64], paper| Estimate::from_samples(of).map_or(paper, |all| all.range);
    ProcessorSharing {
        loss: Estimate::from_samples(&losses)
            .map_or(paper.loss, |all| (0.0, (2.0 * all.mean).min(1.0))),
        single: range(&single, paper.single),
        several_normal: normal(&several).unwrap_or(paper.several_normal),
        several_within: range(&several, paper.several_within),
        each_process: paper.each_process,
    }
}

#[cfg(test)]
mod tests {
    use dormouse_model::{Notice, ProcessCpuUse};
    use dormouse_units::{Bytes, Ppm, Span, Usage, VmId};

    use super::super::testing::{instant, start, submitted};
    use super::*;
    use dormouse_model::Submission;

    fn submission(usage: u32) -> Submission {
        Submission {
            number: 1,
            submitted: Time::ZERO,
            processes: 2,
            runtime: Span::from_secs(1000),
            estimate: Span::from_secs(1000),
            usage: Usage::Uniform(Ppm::new(usage)),
            memory: Bytes::ZERO,
            priority: 0,
            after: None,
            is_cut: false,
            fails: false,
        }
    }

    /// A job with a CPU use of 50 % runs for 200 s below a job of 60 % on one of its two
    /// processors, and then alone for 100 s.
    #[test]
    fn the_x_is_the_one_under_which_a_job_came_as_far_as_it_did() {
        let submissions = [submission(600_000), submission(500_000)];
        let (task, vm) = (TaskId::new(0), VmId::new(0));
        let starts = vec![start(0, Tier::Foreground, &[0, 1]), start(1, Tier::Background, &[1, 2])];
        let steps = [
            submitted(0, &submissions[0]),
            submitted(1, &submissions[1]),
            instant(0, vec![], starts),
            instant(200, vec![Notice::TaskFinished { task, vm }], vec![]),
            instant(300, vec![], vec![]),
        ];
        let seen = background_stays(&steps, SubmittedJobs::alone(&submissions));
        let rooms: Vec<_> = seen[&TaskId::new(1)].iter().map(|s| (s.seconds, s.room)).collect();
        assert_eq!(rooms, [(200.0, 0.8), (100.0, f64::INFINITY)]);
        // 100 s alone, and 200 s at x · .8 = .6 of its speed: 220 s of its work, which takes two
        // processes .5 · .1 of a core each, at speed-up 10.
        let used = |process| ProcessCpuUse {
            process,
            processor: process + 1,
            tier: Tier::Background,
            shared: true,
            wall_us: 30_000_000,
            wanted_us: 30_000_000,
            promised_us: 3_000_000,
            cpu_us: 220 * 100_000 / 20,
            may_wait_us: 0,
        };
        let mut facts = LiveFacts { share: Ppm::new(100_000), ..LiveFacts::default() };
        facts.jobs.uses = vec![(TaskId::new(1), used(0)), (TaskId::new(1), used(1))];
        let all = utilisations(
            &steps,
            SubmittedJobs::alone(&submissions),
            &facts,
            Speedup::times_real(10),
        );
        assert!(matches!(all[..], [(2, x)] if (x - 0.75).abs() < 1e-9), "{all:?}");
        // More than all, by an accident of its phases; and too short to say anything.
        assert_eq!(
            utilisations(
                &steps,
                SubmittedJobs::alone(&submissions),
                &facts,
                Speedup::times_real(100)
            ),
            [(2, 1.0)]
        );
        assert_eq!(
            utilisations(
                &steps[..3],
                SubmittedJobs::alone(&submissions),
                &facts,
                Speedup::times_real(10)
            ),
            []
        );
    }

    #[test]
    fn the_model_gets_what_was_measured() {
        let of = |loss, x: &[(u32, f64)]| Consolidation {
            foreground_mean_loss: loss,
            background_utilisations: x.to_vec(),
            ..Consolidation::default()
        };
        let (one, two) = (of(0.01, &[(1, 0.9), (4, 0.5)]), of(0.03, &[(1, 0.8), (2, 0.7)]));
        let sharing = measured_sharing(&[&one, &two]);
        assert_eq!((sharing.single, sharing.several_within), ((0.8, 0.9), (0.5, 0.7)));
        assert!((sharing.loss.1 - 0.04).abs() < 1e-9 && sharing.loss.0 == 0.0);
        assert!((sharing.several_normal.0 - 0.6).abs() < 1e-9);
        assert_eq!(measured_sharing(&[]), ProcessorSharing::default());
    }
}
