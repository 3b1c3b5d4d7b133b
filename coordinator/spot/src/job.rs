//! A job under each scheme, over a record of prices (ACC paper, sections V and VI), and the time of its next checkpoint.

use dormouse_model::AdaptKnowledge;
use dormouse_units::{Money, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SpotRecord;
use super::record::HOUR;

/// One divisible job, with the parameters of its schemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpotJob {
    /// Run time of the work alone, without checkpoints and restarts.
    pub work: Span,
    /// Time that a checkpoint takes (t_c).
    pub checkpoint: Span,
    /// Time that a restart on another instance takes (t_r).
    pub restart: Span,
    /// Time before the end of an hour at which ACC reads the price to decide if it ends the
    /// instance (t_w).
    pub look: Span,
    /// Time between two decisions of ADAPT.
    pub every: Span,
    /// The prices that ADAPT may use.
    pub knows: AdaptKnowledge,
    /// Time between two price queries of ACC after it has ended an instance; zero: ACC learns of each change at once.
    pub query: Span,
}

impl SpotJob {
    /// Makes a job with our choices for parameters that the paper doesn't give. Checkpoints and restarts take 5 min, and the price
    /// is read 1 min before an hour ends. ADAPT decides every 10 min from the prices known by then, and an instance is launched at
    /// the first price that is not above the bid.
    #[must_use]
    pub fn with_work(work: Span) -> Self {
        let minutes = |n: u64| Span::from_secs(60 * n);
        Self {
            work,
            checkpoint: minutes(5),
            restart: minutes(5),
            look: minutes(1),
            every: minutes(10),
            knows: AdaptKnowledge::Past,
            query: Span::ZERO,
        }
    }
}

/// Schemes that decide when a simulated job is checkpointed. All schemes but ACC bid what the user bids. ACC bids so much that the
/// provider never takes the instance, and ends the instance itself.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SpotScheme {
    /// The job is never checkpointed.
    None,
    /// A checkpoint always ends exactly when the price passes the bid, which no real scheme can know.
    Opt,
    /// A checkpoint just before each hour of the instance ends.
    Hour,
    /// A checkpoint whenever the price rises.
    Edge,
    /// A checkpoint at regular times, where it is expected to save more time than it takes, judged by the past uptimes of instances
    /// at this bid. Before any uptime is known no checkpoint is taken, which is our choice, as the paper does not say.
    Adapt,
    /// Application-centric: a checkpoint before an hour ends, if the price is then above the bid; if it still is at the hour's end,
    /// the instance is ended.
    Acc,
}

impl SpotScheme {
    /// All schemes, in the order of declaration.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Opt, Self::Hour, Self::Edge, Self::Adapt, Self::Acc];

    /// True if a job without checkpoints may never end when instances are taken often.
    #[must_use]
    pub const fn may_never_end(self) -> bool {
        matches!(self, Self::None | Self::Edge)
    }

    /// The scheme's name in the paper.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Opt => "OPT",
            Self::Hour => "HOUR",
            Self::Edge => "EDGE",
            Self::Adapt => "ADAPT",
            Self::Acc => "ACC",
        }
    }
}

/// Result of a job that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Time from the job's beginning to its end, including waiting for the price.
    pub took: Span,
    /// Cost of the job's instances.
    pub cost: Money,
    /// Number of instance hours paid for.
    pub hours: u64,
    /// Number of instances after the first.
    pub restarts: u32,
    /// Number of completed checkpoints.
    pub checkpoints: u32,
    /// Work that had to be repeated.
    pub lost: Span,
    /// Number of times that ACC ended an instance without a checkpoint, because the price exceeded
    /// the bid between ACC's two looks.
    pub unkept: u32,
}

/// State of a job that is simulated over a price record.
struct SpotJobRun<'a> {
    job: SpotJob,
    record: &'a SpotRecord<'a>,
    /// Work kept by a checkpoint (`kept`), and work done since that checkpoint (`since`).
    kept: Span,
    since: Span,
    outcome: Outcome,
}

impl SpotJob {
    /// Simulates the job from `start`; `None`: it does not end within the record.
    ///
    /// The computation time grows with the number of the job's instances, their hours and
    /// checkpoints.
    #[must_use]
    pub fn run(&self, scheme: SpotScheme, record: &SpotRecord<'_>, start: Time) -> Option<Outcome> {
        let (kept, since) = (Span::ZERO, Span::ZERO);
        let mut way = SpotJobRun { job: *self, record, kept, since, outcome: Outcome::default() };
        let mut at = start;
        loop {
            let (launched, until) = match scheme {
                SpotScheme::Acc if at != start => record.next_queried(at, self.query)?,
                _ => record.next_available(at)?,
            };
            let ready = if at == start { launched } else { launched + self.restart };
            let left = match scheme {
                SpotScheme::Acc => way.until_ended(launched, ready)?,
                _ => way.until_taken(scheme, (launched, until), ready),
            };
            match left {
                Ok(done) => {
                    return (done <= record.known_until())
                        .then(|| Outcome { took: done.since(start), ..way.outcome });
                }
                Err(ended) if ended >= record.known_until() => return None,
                Err(ended) => at = ended,
            }
            way.outcome.restarts += 1;
            way.outcome.lost += way.since;
            way.since = Span::ZERO;
        }
    }
}

impl SpotJobRun<'_> {
    fn remaining_work(&self) -> Span {
        self.job.work.saturating_sub(self.kept + self.since)
    }

    fn keep_work(&mut self) {
        self.kept += std::mem::take(&mut self.since);
        self.outcome.checkpoints += 1;
    }

    /// Adds the cost of `hours` hours of an instance.
    fn pay_hours(&mut self, launched: Time, hours: u64) {
        self.outcome.cost += self.record.cost_of_hours(launched, hours);
        self.outcome.hours += hours;
    }

    fn finish_at(&mut self, launched: Time, at: Time) -> Time {
        let hours = at.since(launched).as_micros().div_ceil(HOUR.as_micros());
        self.pay_hours(launched, hours.max(1));
        at
    }

    /// Simulates the job on an instance that the provider preempts: `Ok` with the end of the job, or `Err` with the time of the
    /// preemption.
    fn until_taken(
        &mut self,
        scheme: SpotScheme,
        (launched, until): (Time, Time),
        mut now: Time,
    ) -> Result<Time, Time> {
        while now < until {
            let done = now + self.remaining_work();
            let SpotJob { checkpoint: cost, every, knows, .. } = self.job;
            let (begins, since) = (launched, now);
            let work = UnkeptWork { begins, since, from: now, done, cost, every, knows };
            let next = scheme.next(self.record, &work).filter(|at| *at <= until);
            if done <= next.unwrap_or(until).min(until) {
                return Ok(self.finish_at(launched, done));
            }
            let Some(at) = next else {
                self.since += until.since(now);
                break;
            };
            self.since += at.since(now);
            now = at + self.job.checkpoint;
            if now <= until {
                self.keep_work();
            }
        }
        self.pay_hours(launched, until.since(launched).as_micros() / HOUR.as_micros());
        Err(until)
    }

    /// Simulates the job on an instance that its user ends: `Ok` with the end of the job, or `Err`
    /// with the time at which the instance is ended; `None` if the record ends before.
    fn until_ended(&mut self, launched: Time, mut now: Time) -> Option<Result<Time, Time>> {
        for hours in 1.. {
            let ends = launched + HOUR.times(hours);
            let last_look = ends - self.job.look;
            let first_look = last_look - self.job.checkpoint;
            if now + self.remaining_work() <= first_look {
                break;
            }
            if last_look >= self.record.known_until() {
                return if now + self.remaining_work() <= self.record.known_until() {
                    break;
                } else {
                    None
                };
            }
            if self.record.is_above(first_look) && first_look >= now {
                self.since += first_look.since(now);
                self.keep_work();
                now = last_look;
            }
            if now + self.remaining_work() <= last_look {
                break;
            }
            if self.record.is_above(last_look) {
                self.since += last_look.since(now);
                self.outcome.unkept += u32::from(self.since > Span::ZERO);
                self.pay_hours(launched, hours);
                return Some(Err(last_look));
            }
        }
        let done = now + self.remaining_work();
        Some(Ok(self.finish_at(launched, done)))
    }
}

/// Work on an instance since its last checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct UnkeptWork {
    /// Time from which the instance is charged; its hours are counted from this time.
    pub begins: Time,
    /// Time since which the work is unkept: the end of the last checkpoint on the instance, or the
    /// beginning of work.
    pub since: Time,
    /// Earliest time at which a checkpoint may begin.
    pub from: Time,
    /// Time at which all work is done without further delays.
    pub done: Time,
    /// Time that a checkpoint takes (t_c).
    pub cost: Span,
    /// Time between two decisions of ADAPT.
    pub every: Span,
    /// Prices that ADAPT may use.
    pub knows: AdaptKnowledge,
}

impl SpotScheme {
    /// Time at which the next checkpoint begins; `None`: never, or the next look decides (ACC).
    /// There is no checkpoint without work to keep.
    pub fn next(self, record: &SpotRecord<'_>, work: &UnkeptWork) -> Option<Time> {
        let UnkeptWork { begins, since, done, cost, every, knows, .. } = *work;
        let from = work.from.max(since + Span::from_micros(1));
        match self {
            Self::None | Self::Acc => None,
            Self::Opt => {
                let (_, until) = record.next_available(since)?;
                Some(until - cost).filter(|at| *at >= from && done > until)
            }
            Self::Hour => Some(before_hour_ends(begins, cost, from)),
            Self::Edge => record.next_rise(from),
            Self::Adapt => {
                let every = every.max(Span::from_micros(1));
                let first = from.since(begins).as_micros().div_ceil(every.as_micros());
                let times = (first..).map(|n| begins + every.times(n));
                times.take_while(|at| *at < done).find(|at| {
                    let taken =
                        record.part_taken((knows, *at), at.since(begins), [cost, every + cost]);
                    at.since(since).as_secs_f64() * taken > cost.as_secs_f64()
                })
            }
        }
    }
}

/// The first time at or after `from` that is `lead` before the end of an hour; hours are counted from `begins`.
pub fn before_hour_ends(begins: Time, lead: Span, from: Time) -> Time {
    let hours = (from + lead).since(begins).as_micros().div_ceil(HOUR.as_micros());
    begins + HOUR.times(hours) - lead
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_end_where_they_end() {
        let at = Time::from_secs;
        let lead = Span::from_secs(300);
        let points = [10, 3_309, 3_310, 3_311, 3_610].map(|from| {
            before_hour_ends(at(10), lead, at(from)).since(Time::ZERO).as_micros() / 1_000_000
        });
        assert_eq!(points, [3_310, 3_310, 3_310, 6_910, 6_910]);
        // A lead of more than an hour is before the end of a later hour.
        assert_eq!(before_hour_ends(at(10), Span::from_secs(4_000), at(10)), at(3_210));
    }
}
