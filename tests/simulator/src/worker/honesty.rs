//! Workers that do not tell the truth.

use dormouse_proto::v1::{
    CheckpointTaken, CreditBalance, Report, TaskFinished, TaskRef, TaskStopped, VmRef, VmTook,
    report,
};
use dormouse_units::Ppm;
use dormouse_worker::agent::in_process::Ask;
use serde::{Deserialize, Serialize};

use super::chance::Chance;

/// What a worker does that an honest one does not, each in this part of the cases in which it could.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Honesty {
    /// Nothing.
    #[default]
    Honest,
    /// It says that a task has finished that has just begun, and knows no answer.
    Unworked(Ppm),
    /// It says that a wrong answer is right.
    WrongAnswers(Ppm),
    /// It reports of VMs and tasks that it never had.
    Inventions(Ppm),
    /// The numbers of its reports jump, or repeat.
    Miscounts(Ppm),
    /// What it stores as a checkpoint is none.
    GarbageCheckpoints(Ppm),
    /// It does not answer a command.
    Silence(Ppm),
    /// It says one thing a hundred times.
    Floods(Ppm),
}

/// The numbers of VMs, tasks and attempts that are invented are below this: some of them exist.
const INVENTED: usize = 8;
const FLOOD: usize = 100;
/// The numbers of reports jump by less than this.
const JUMP: usize = 5;

/// The part of a worker that lies.
#[derive(Debug)]
pub(super) struct Liar {
    honesty: Honesty,
    chance: Chance,
}

impl Liar {
    pub(super) const fn new(honesty: Honesty, chance: Chance) -> Self {
        Self { honesty, chance }
    }

    /// What is said where this is to be reported.
    pub(super) fn says(&mut self, report: Report) -> Vec<Report> {
        match self.honesty {
            Honesty::Unworked(rate) if self.chance.happens(rate) => {
                let finished = match &report.report {
                    Some(report::Report::TaskStarted(started)) => {
                        Some(unworked(started.task, self.chance.bits()))
                    }
                    _ => None,
                };
                std::iter::once(report).chain(finished).collect()
            }
            Honesty::WrongAnswers(rate) if self.chance.happens(rate) => vec![wrong(report)],
            Honesty::Inventions(rate) if self.chance.happens(rate) => {
                let invented = self.invention();
                vec![report, invented]
            }
            Honesty::Floods(rate) if self.chance.happens(rate) => vec![report; FLOOD],
            _ => vec![report],
        }
    }

    /// Whether a command is not answered, nor obeyed.
    pub(super) fn ignores(&mut self, ask: &Ask) -> bool {
        let Honesty::Silence(rate) = self.honesty else { return false };
        !matches!(ask, Ask::SetMode(_) | Ask::SetSupply(_) | Ask::Announce(_))
            && self.chance.happens(rate)
    }

    /// What is stored as a checkpoint.
    pub(super) fn stores(&mut self, image: Vec<u8>) -> Vec<u8> {
        match self.honesty {
            Honesty::GarbageCheckpoints(rate) if self.chance.happens(rate) => {
                let garbled = |byte: u8| byte ^ self.chance.bits().to_le_bytes()[0];
                image.into_iter().map(garbled).collect()
            }
            _ => image,
        }
    }

    /// Whether the worker's numbers are to be distrusted at all.
    pub(super) const fn miscounts(&self) -> bool {
        matches!(self.honesty, Honesty::Miscounts(_))
    }

    /// The number that is said in place of this one.
    pub(super) fn number(&mut self, first: u64) -> u64 {
        match self.honesty {
            Honesty::Miscounts(rate) if self.chance.happens(rate) => {
                let by = self.chance.below(JUMP) as u64;
                if self.chance.below(2) == 0 { first + by } else { first.saturating_sub(by) }
            }
            _ => first,
        }
    }

    /// Whether a message is sent twice.
    pub(super) fn repeats(&mut self) -> bool {
        matches!(self.honesty, Honesty::Miscounts(rate) if self.chance.happens(rate))
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

/// The end of a task of which nothing has been computed.
fn unworked(task: Option<TaskRef>, guess: u64) -> Report {
    let result = format!("{{\"kind\":\"vector\",\"digest\":\"{guess:016x}\"}}");
    let finished =
        TaskFinished { task, verified: true, result: Some(result), ..TaskFinished::default() };
    Report { report: Some(report::Report::TaskFinished(finished)) }
}

/// A report with a digest of another answer.
fn wrong(mut report: Report) -> Report {
    if let Some(report::Report::TaskFinished(finished)) = &mut report.report
        && let Some(result) = &mut finished.result
        && let Ok(mut answer) = serde_json::from_str::<dormouse_tasks::result::TaskResult>(result)
    {
        answer.digest = answer.digest.map(|digest| digest.chars().rev().collect());
        *result = serde_json::to_string(&answer).unwrap_or_default();
    }
    report
}
