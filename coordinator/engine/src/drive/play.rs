//! Plays a run and its machines in virtual time, from one event to the next.

use dormouse_cloud::ResourceVector;
use dormouse_model::{Command, Event, Step};
use dormouse_units::{Bytes, HostId, Time};

use super::followers::WaitingFollowers;
use super::turn::{AgendaKind, RunAgenda};
use super::world::{MachineWorld, Reports};
use crate::Run;

/// A host of unlimited capacity, for runs that only the provider's limits bound.
pub const BOUNDLESS: ResourceVector = ResourceVector::new(u32::MAX, Bytes::new(u64::MAX));

/// Reasons why a virtual run ended without finishing its tasks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlayError<E> {
    /// An event from outside couldn't be read, or the caller's function for steps ended the run.
    #[error(transparent)]
    Outside(E),
    /// A scheduler program failed, or a step of a followed log was not reproduced. The last step was not shown to `see`.
    #[error("{0}")]
    Scheduler(String),
    /// Nothing will happen any more, though tasks are left.
    #[error("{unfinished} tasks are left and nothing will ever happen again{why}")]
    Stuck {
        /// Number of unfinished tasks.
        unfinished: usize,
        /// What the unfinished tasks wait for, if known.
        why: &'static str,
    },
    /// The run continued past the time limit.
    #[error("{unfinished} tasks are left at the time limit of {limit}")]
    Limit {
        /// Number of unfinished tasks.
        unfinished: usize,
        /// The time limit of the run.
        limit: Time,
    },
}

/// Makes the events with which a modelled run begins: the joining of these hosts, and the beginning of the run.
#[must_use]
pub fn beginning_events(hosts: &[ResourceVector]) -> Vec<(Time, Event)> {
    let join = |(n, &offer): (u32, &ResourceVector)| {
        let (host, name) = (HostId::new(n), format!("model-{n}"));
        (Time::ZERO, Event::HostJoined { host, name, offer })
    };
    (0..).zip(hosts).map(join).chain([(Time::ZERO, Event::Begin)]).collect()
}

/// Plays a run to its end in virtual time. `outside` has the events that come neither from machines nor from the run
/// itself (hosts, the beginning, submissions, a cancellation), in order of time; at equal times they come first, but
/// a cancellation last. `see` is shown every step as it is made.
///
/// # Errors
///
/// The run ended with tasks left: it was cancelled then, and its log says why. Or `outside` or `see` failed, and
/// nothing more was done.
pub fn play_run<E>(
    run: &mut Run,
    world: &mut impl MachineWorld,
    outside: impl IntoIterator<Item = Result<(Time, Event), E>>,
    limit: Time,
    see: impl FnMut(&Step) -> Result<(), E>,
) -> Result<(), PlayError<E>> {
    play_following(run, world, outside, WaitingFollowers::default(), limit, see)
}

/// Plays a run as [`play_run`] does, with parallel jobs that follow others: each is submitted once its predecessors
/// have ended, at equal times after the events from outside. The event that all jobs are submitted comes after the
/// last of them.
///
/// # Errors
///
/// See [`play_run`].
pub fn play_following<E>(
    run: &mut Run,
    world: &mut impl MachineWorld,
    outside: impl IntoIterator<Item = Result<(Time, Event), E>>,
    followers: WaitingFollowers,
    limit: Time,
    mut see: impl FnMut(&Step) -> Result<(), E>,
) -> Result<(), PlayError<E>> {
    play_handing_over(run, world, outside, followers, limit, |step| see(step))
}

/// Plays a run as [`play_following`] does, where `see` may keep a step by leaving another in its place, whose memory
/// is reused for the next step.
///
/// # Errors
///
/// See [`play_run`].
pub fn play_handing_over<E>(
    run: &mut Run,
    world: &mut impl MachineWorld,
    outside: impl IntoIterator<Item = Result<(Time, Event), E>>,
    followers: WaitingFollowers,
    limit: Time,
    see: impl FnMut(&mut Step) -> Result<(), E>,
) -> Result<(), PlayError<E>> {
    let (reports, step, commands) = (Reports::new(), Step::blank(), Vec::new());
    let mut player =
        RunPlayer { run, world, followers, reports, now: Time::ZERO, step, commands, see };
    let (mut outside, has_followers) = (outside.into_iter(), !player.followers.is_empty());
    let mut is_all_submitted = false;
    let mut first = outside.next().transpose().map_err(PlayError::Outside)?;
    loop {
        while let Some((host, report)) = player.reports.pop_front() {
            player.feed_event(player.now, Event::Machine { host, number: 0, report })?;
        }
        if player.run.over_at().is_some() {
            return Ok(());
        }
        let agenda = player.make_agenda(first.as_ref());
        let turn = agenda.first_due();
        if let Some((_, AgendaKind::Outside | AgendaKind::Cancel)) = turn
            && let Some((at, event)) = first.take()
        {
            first = outside.next().transpose().map_err(PlayError::Outside)?;
            let event = match event {
                Event::AllSubmitted if !player.followers.is_empty() => {
                    is_all_submitted = true;
                    continue;
                }
                // Jobs have their ids in the order in which they come.
                Event::Submitted { key, job, .. } if has_followers => {
                    Event::Submitted { task: player.run.next_task(), key, job }
                }
                event => event,
            };
            player.feed_event(at.max(player.now), event)?;
            continue;
        }
        if let Some((_, AgendaKind::Follower)) = turn
            && let Some(job) = player.followers.take_due()
        {
            let (at, task) = (job.submitted.max(player.now), player.run.next_task());
            player.feed_event(at, WaitingFollowers::submission_event(task, job))?;
            if is_all_submitted && player.followers.is_empty() {
                player.feed_event(at, Event::AllSubmitted)?;
            }
            continue;
        }
        // Jobs that are held back for others are left, too.
        let unfinished = player.run.unfinished_count() + player.followers.len();
        let nothing_comes = first.is_none() && agenda.follower.is_none();
        let failed = match turn {
            Some(_) if nothing_comes && player.is_stuck() => {
                PlayError::Stuck { unfinished, why: player.run.why_stuck() }
            }
            Some((at, _)) if at > limit => PlayError::Limit { unfinished, limit },
            Some((at, AgendaKind::Tick)) => {
                player.feed_event(at, Event::Tick)?;
                continue;
            }
            Some((at, AgendaKind::InstantOver)) => {
                player.feed_event(at, Event::InstantOver)?;
                continue;
            }
            Some((at, AgendaKind::Machine)) => {
                player.now = at;
                player.world.step_machines(at, &mut player.reports);
                continue;
            }
            // Whatever comes has come above.
            None | Some((_, AgendaKind::Outside | AgendaKind::Follower | AgendaKind::Cancel)) => {
                PlayError::Stuck { unfinished, why: player.run.why_stuck() }
            }
        };
        let why = match &failed {
            PlayError::Stuck { unfinished, why } => {
                format!("{unfinished} tasks are left and nothing will ever happen again{why}")
            }
            PlayError::Limit { unfinished, limit } => {
                format!("{unfinished} tasks are left at the time limit of {limit}")
            }
            PlayError::Outside(_) | PlayError::Scheduler(_) => return Err(failed),
        };
        player.feed_event(player.now, Event::Cancel { why })?;
        return Err(failed);
    }
}

struct RunPlayer<'a, W, S> {
    run: &'a mut Run,
    world: &'a mut W,
    followers: WaitingFollowers,
    reports: Reports,
    now: Time,
    /// The last step that was made; `commands` are the commands of this step.
    step: Step,
    commands: Vec<Command>,
    see: S,
}

impl<W: MachineWorld, S> RunPlayer<'_, W, S> {
    // Where it is called the event is made, and need not be moved on from there.
    #[inline(always)]
    fn feed_event<E>(&mut self, now: Time, event: Event) -> Result<(), PlayError<E>>
    where
        S: FnMut(&mut Step) -> Result<(), E>,
    {
        if let Event::HostLost { host, .. } = &event {
            self.world.host_lost(*host);
        }
        self.run.handle_into(now, event, &mut self.step, &mut self.commands);
        self.finish_step(now)
    }

    /// Ends the step of an event: shows it and executes the run's commands.
    fn finish_step<E>(&mut self, now: Time) -> Result<(), PlayError<E>>
    where
        S: FnMut(&mut Step) -> Result<(), E>,
    {
        self.now = now;
        if let Some(why) = self.run.failure_reason() {
            return Err(PlayError::Scheduler(why.to_owned()));
        }
        self.followers.take_step(&self.step);
        (self.see)(&mut self.step).map_err(PlayError::Outside)?;
        for command in self.commands.drain(..) {
            self.world.execute_command(now, command, &mut self.reports);
        }
        Ok(())
    }

    /// Returns whether no task can make progress any more, unless something comes from outside.
    fn is_stuck(&self) -> bool {
        let is_stuck = match self.followers.is_empty() {
            true => self.run.is_stuck(),
            false => self.run.is_stuck_unless_submitted_to(),
        };
        is_stuck && self.world.is_idle()
    }

    /// Computes the agenda of the run and its machines; `outside` is the next event from outside. Times before now
    /// count as now.
    fn make_agenda(&mut self, outside: Option<&(Time, Event)>) -> RunAgenda {
        let now = self.now;
        let tick = self.run.next_wakeup().map(|at| at.max(now));
        let instant = self.run.pending_instant().map(|at| at.max(now));
        // Before an instant is over it need not be known when machines go on after it.
        let is_over = instant == Some(now) && tick != Some(now) && !self.world.is_due(now);
        let machine = if is_over { None } else { self.world.next_at() };
        let (outside, cancel) = match outside {
            Some((at, Event::Cancel { .. })) => (None, Some(*at)),
            other => (other.map(|(at, _)| *at), None),
        };
        RunAgenda { outside, follower: self.followers.next(), tick, machine, instant, cancel }
    }
}
