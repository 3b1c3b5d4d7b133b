//! Lying workers: what they report in place of the truth.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_proto::v1::{
    CheckpointTaken, CreditBalance, HostLoad, Report, TaskFinished, TaskRef, TaskStopped, VmRef,
    VmTook, report,
};
use dormouse_tasks::result::TaskResult;
use dormouse_units::Ppm;
use dormouse_worker::agent::in_process::VmCommand;
use serde::{Deserialize, Serialize};

use tokio::{sync::mpsc, time::Instant};

use super::{chance::Chance, shared::Shared};

/// The kind of lie that a worker tells, each with the part of the possible cases in which it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Honesty {
    /// The worker never lies.
    #[default]
    Honest,
    /// The worker reports a task as finished that has just begun, without an answer.
    Unworked(Ppm),
    /// The worker reports a wrong answer as right.
    WrongAnswers(Ppm),
    /// The worker reports about VMs and tasks that it never had, and the load of another machine.
    Inventions(Ppm),
    /// The numbers of the worker's reports jump, or repeat.
    Miscounts(Ppm),
    /// The worker stores garbage as a checkpoint.
    GarbageCheckpoints(Ppm),
    /// The worker neither executes nor answers a command.
    Silence(Ppm),
    /// The worker sends a report a hundred times.
    Floods(Ppm),
}

/// Invented numbers of VMs, tasks and attempts are below this: some of them exist.
const INVENTED: usize = 8;
const FLOOD: usize = 100;
/// The most lies of a process, and (next constant) the most commands that it leaves unanswered: each of these costs a
/// run many minutes.
const MOST_LIES: u32 = 12;
const MOST_SILENCES: u32 = 2;
/// Report numbers jump by less than this.
const JUMP: usize = 5;

/// The lying part of a worker.
#[derive(Debug)]
pub(super) struct Liar {
    honesty: Honesty,
    chance: Chance,
    /// Number of lies left: a run whose only worker lies must come to its end, too.
    left: u32,
}

impl Liar {
    pub(super) const fn new(honesty: Honesty, chance: Chance) -> Self {
        let left = match honesty {
            Honesty::Silence(_) => MOST_SILENCES,
            _ => MOST_LIES,
        };
        Self { honesty, chance, left }
    }

    /// Whether the worker lies this time, given the rate of its kind of lie.
    fn lies(&mut self, rate: Ppm) -> bool {
        let lies = self.left > 0 && self.chance.happens(rate);
        self.left -= u32::from(lies);
        lies
    }

    /// The reports that the worker sends in place of this true one.
    pub(super) fn says(&mut self, report: Report) -> Vec<Report> {
        let honesty = self.honesty;
        match honesty {
            Honesty::Unworked(rate) => {
                let finished = match &report.report {
                    Some(report::Report::TaskStarted(started)) if self.lies(rate) => {
                        Some(unworked(started.task, self.chance.bits()))
                    }
                    _ => None,
                };
                std::iter::once(report).chain(finished).collect()
            }
            Honesty::WrongAnswers(rate) => {
                let is_end = matches!(report.report, Some(report::Report::TaskFinished(_)));
                vec![if is_end && self.lies(rate) { wrong(report) } else { report }]
            }
            Honesty::Inventions(rate) if self.lies(rate) => match &report.report {
                Some(report::Report::HostLoad(load)) => {
                    let machine = "a machine on which it is not".to_owned();
                    let invented = HostLoad { machine, ..load.clone() };
                    vec![Report { report: Some(report::Report::HostLoad(invented)) }]
                }
                _ => {
                    let invented = self.invention();
                    vec![report, invented]
                }
            },
            Honesty::Floods(rate) if self.lies(rate) => vec![report; FLOOD],
            _ => vec![report],
        }
    }

    /// Whether the worker ignores a command: it neither executes nor answers it.
    pub(super) fn ignores(&mut self, ask: &VmCommand) -> bool {
        let Honesty::Silence(rate) = self.honesty else { return false };
        !matches!(
            ask,
            VmCommand::SetMode(_)
                | VmCommand::SetSupply(_)
                | VmCommand::Announce(_)
                | VmCommand::SetNetwork(_)
        ) && self.lies(rate)
    }

    /// The bytes that the worker stores as a checkpoint in place of this image.
    pub(super) fn stores(&mut self, image: Vec<u8>) -> Vec<u8> {
        let honesty = self.honesty;
        match honesty {
            Honesty::GarbageCheckpoints(rate) if self.lies(rate) => {
                let garbled = |byte: u8| byte ^ self.chance.bits().to_le_bytes()[0];
                image.into_iter().map(garbled).collect()
            }
            _ => image,
        }
    }

    /// Whether the worker lies about the numbers of its reports.
    pub(super) const fn miscounts(&self) -> bool {
        let honesty = self.honesty;
        matches!(honesty, Honesty::Miscounts(_))
    }

    /// The report number that the worker sends in place of this one.
    pub(super) fn number(&mut self, first: u64) -> u64 {
        let honesty = self.honesty;
        match honesty {
            Honesty::Miscounts(rate) if self.lies(rate) => {
                let by = self.chance.below(JUMP) as u64;
                if self.chance.below(2) == 0 { first + by } else { first.saturating_sub(by) }
            }
            _ => first,
        }
    }

    /// Whether a message is sent twice.
    pub(super) fn repeats(&mut self) -> bool {
        let honesty = self.honesty;
        matches!(honesty, Honesty::Miscounts(rate) if self.lies(rate))
    }

    fn invention(&mut self) -> Report {
        let mut number = || u32::try_from(self.chance.below(INVENTED)).unwrap_or(0);
        let vm = number();
        let task = Some(TaskRef { vm, task: number(), attempt: number() });
        let what = number();
        Report {
            report: Some(match what {
                0 => report::Report::VmDestroyed(VmRef { vm }),
                1 => report::Report::VmFrozen(VmTook { vm, real_took_us: 1 }),
                2 => report::Report::TaskStopped(TaskStopped { task, ..TaskStopped::default() }),
                3 => report::Report::CheckpointTaken(CheckpointTaken {
                    task,
                    checkpoint: number(),
                    done_ppm: 500_000,
                    ..CheckpointTaken::default()
                }),
                4 => report::Report::Credits(CreditBalance {
                    vm,
                    emulated_us: u64::MAX,
                    emulated_at_us: Some(u64::MAX),
                }),
                5 => report::Report::VmCreated(VmRef { vm }),
                6 => return Report { report: None },
                _ => return unworked(task, 0),
            }),
        }
    }
}

/// Sends the reports of a worker's session, or what a lying worker says in their place; the witness hears them too.
#[derive(Debug)]
pub(super) struct ReportSender {
    /// The name of the worker, and the number of its session.
    pub(super) whose: (String, u64),
    pub(super) shared: Arc<Shared>,
    pub(super) liar: Arc<Mutex<Liar>>,
    pub(super) reports: mpsc::UnboundedSender<Report>,
    /// When the session began.
    pub(super) began: Instant,
}

impl ReportSender {
    pub(super) fn liar(&self) -> MutexGuard<'_, Liar> {
        self.liar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Real time since the session began, in microseconds.
    pub(super) fn session_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Sends a report.
    pub(super) fn send_report(&self, report: Report) {
        let said = self.liar().says(report);
        for report in said {
            let (worker, incarnation) = &self.whose;
            self.shared.witness().said((worker, *incarnation), &report);
            if let Some(report::Report::Credits(said)) = &report.report {
                let whose = (worker.as_str(), *incarnation);
                self.shared.witness().balance_said(whose, said, self.session_us());
            }
            // The session ends before the VMs only when nobody wants reports any more.
            let _ = self.reports.send(report);
        }
    }
}

/// The report that a task has finished, although nothing was computed. The answer is guessed; the guess is wrong if it
/// is recomputed, or can't be checked if the worker had the choice.
fn unworked(task: Option<TaskRef>, guess: u64) -> Report {
    let digest = format!("{guess:016x}");
    let answer = match guess % 4 {
        0 => Some(answer("vector", Some(digest))),
        1 => Some(answer("cg", Some(digest))),
        2 => Some(answer("vector", None)),
        _ => None,
    };
    let text = answer.and_then(|answer| serde_json::to_string(&answer).ok());
    let result = Some(text.unwrap_or_else(|| "it is done".to_owned()));
    let finished = TaskFinished { task, verified: true, result, ..TaskFinished::default() };
    Report { report: Some(report::Report::TaskFinished(finished)) }
}

/// An answer in the form that programs of this kind write; the part that they would have computed is `digest`.
fn answer(kind: &str, digest: Option<String>) -> TaskResult {
    TaskResult {
        kind: kind.to_owned(),
        class: None,
        id: None,
        memory_bytes: None,
        verified: Some(true),
        figures: Vec::new(),
        repetitions: 1,
        cpu_seconds: 1.0,
        cpu_seconds_wanted: None,
        rank_cpu_seconds: Vec::new(),
        units: 1,
        digest,
        trail: None,
        trail_end: None,
        blocks: Vec::new(),
        trails: Vec::new(),
    }
}

/// The report, with the digest of another answer.
fn wrong(mut report: Report) -> Report {
    if let Some(report::Report::TaskFinished(finished)) = &mut report.report
        && let Some(result) = &mut finished.result
        && let Ok(mut answer) = serde_json::from_str::<TaskResult>(result)
    {
        answer.digest = answer.digest.map(|digest| digest.chars().rev().collect());
        *result = serde_json::to_string(&answer).unwrap_or_default();
    }
    report
}
