//! Upper bounds for the times in a log.

use dormouse_model::{Event, Report, Setup, Step};
use dormouse_units::{Span, Time};

/// Longest real time that a machine can plausibly report: a year, in microseconds.
const MOST_REAL_US: u64 = 365 * 86_400 * 1_000_000;

/// Latest time that a run can reach: one day and a hundred times the bag's deadline, as in virtual runs, plus the time without a
/// coordinator. The time of a run with parallel jobs is not bounded.
#[derive(Clone, Debug)]
pub(super) struct TimeBounds {
    latest: Time,
    /// Time at which the coordinator last came back, and how long it had been away before.
    away: (Time, Span),
}

impl TimeBounds {
    pub(super) fn new(setup: &Setup) -> Self {
        let latest = match setup.jobs {
            None => Time::ZERO + setup.bag.deadline.times(100) + Span::from_secs(86_400),
            Some(_) => Time::from_micros(u64::MAX),
        };
        Self { latest, away: (Time::ZERO, Span::ZERO) }
    }

    /// How long a report that arrives at `now` may have waited for its coordinator: the outage, if
    /// the coordinator has just come back.
    pub(super) fn held_up(&self, now: Time, lateness: Span) -> Span {
        let (back, outage) = self.away;
        if now <= back + lateness { outage } else { Span::ZERO }
    }

    /// Describes what is impossible about the times of a step; `None` if all times are possible.
    pub(super) fn broken_by(&mut self, step: &Step) -> Option<String> {
        if let Event::Resumed { outage, away_real_us } = step.event {
            if away_real_us > MOST_REAL_US {
                return Some(format!("it was away for {away_real_us} µs, more than a year"));
            }
            self.latest += outage;
            self.away = (step.at, outage);
        }
        if step.at > self.latest {
            let latest = self.latest;
            return Some(format!("its time is past any end of this run, {latest} at the latest"));
        }
        let Event::Machine { report, .. } = &step.event else { return None };
        let us = real_us(report).into_iter().find(|us| *us > MOST_REAL_US)?;
        Some(format!("{us} µs of real time are reported, more than a year"))
    }
}

/// All real times in a report, in microseconds.
fn real_us(report: &Report) -> Vec<u64> {
    match *report {
        Report::VmFrozen { real_took_us, .. } | Report::VmThawed { real_took_us, .. } => {
            vec![real_took_us]
        }
        Report::TaskStarted { real_took_us, real_inputs_us, .. } => {
            vec![real_took_us, real_inputs_us]
        }
        Report::TaskFinished { real_cpu_us, .. }
        | Report::TaskFailed { real_cpu_us, .. }
        | Report::TaskStopped { real_cpu_us, .. } => vec![real_cpu_us],
        Report::CheckpointTaken {
            real_held_us, real_dump_us, real_owed_us, real_criu_us, ..
        } => vec![real_held_us, real_dump_us, real_owed_us, real_criu_us],
        _ => Vec::new(),
    }
}
