//! What no time in a log can be.

use dormouse_model::{Event, Report, Setup, Step};
use dormouse_units::{Span, Time};

/// Longer than anything a machine reports the real time of: a year.
const MOST_REAL_US: u64 = 365 * 86_400 * 1_000_000;

/// Until when a run can go: as virtual runs do, a hundred deadlines and a day, and for as long as
/// it stood without a coordinator. One that parallel jobs share can go on as long as these do.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    latest: Time,
    /// The time at which its coordinator was back for the last time, and how long it was away.
    away: (Time, Span),
}

impl Bounds {
    pub(super) fn new(setup: &Setup) -> Self {
        let latest = match setup.jobs {
            None => Time::ZERO + setup.bag.deadline.times(100) + Span::from_secs(86_400),
            Some(_) => Time::from_micros(u64::MAX),
        };
        Self { latest, away: (Time::ZERO, Span::ZERO) }
    }

    /// The time for which a report that comes now may have waited for its coordinator: it comes as
    /// soon as that is back.
    pub(super) fn held_up(&self, now: Time, lateness: Span) -> Span {
        let (back, outage) = self.away;
        if now <= back + lateness { outage } else { Span::ZERO }
    }

    /// What of the times of a step can't be.
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

/// The lengths of real time in a report.
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
