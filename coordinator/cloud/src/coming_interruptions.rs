//! The interruptions that a run's models bring, drawn from random streams and in order of time.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use dormouse_units::{RandomStream, Span, Time, TypeName, VmId, ZoneName};

use crate::{
    Interruption, InterruptionAction, InterruptionModel, InterruptionScope, InterruptionTarget,
    Lifetimes, RebalanceRule, WeeklyRates,
};

/// The coming interruptions in order. Each target and action has its own random stream, so that an
/// additional VM doesn't change the interruptions of other VMs.
#[derive(Debug, Default)]
pub struct ComingInterruptions {
    processes: Vec<InterruptionProcess>,
    per_vm: Vec<(Option<Span>, Option<Span>)>,
    /// Weekly rates at which each VM is interrupted by itself, with the index of their interruption model.
    weekly_per_vm: Vec<(u32, Option<TypeName>, InterruptionAction, Arc<WeeklyRates>)>,
    schedule: VecDeque<Interruption>,
    lifetimes: Vec<(Option<TypeName>, Lifetimes)>,
    /// Recorded lifetimes to use, by instance type, with the number used so far.
    replays: Vec<(Option<TypeName>, Vec<Option<Span>>, usize)>,
    /// Ends of VMs' lifetimes, and recommendations before interruptions.
    ends: BTreeSet<Interruption>,
    /// Rule for recommendations to replace spot VMs.
    rebalancing: RebalanceRule,
    seed: u64,
}

#[derive(Debug)]
struct InterruptionProcess {
    next: Interruption,
    pace: EventPace,
    stream: RandomStream,
}

/// How often the events of a process come.
#[derive(Clone, Debug)]
enum EventPace {
    /// Events come at the same mean distance at all times.
    Mean(Span),
    /// Events come at rates that change within the week.
    Weekly(Arc<WeeklyRates>),
}

impl EventPace {
    /// Time of the first event after `from`; the end of all time if there is none.
    fn draw_after(&self, from: Time, stream: &mut RandomStream) -> Time {
        match self {
            Self::Mean(mean) => from + stream.draw_exponential(*mean),
            Self::Weekly(rates) => {
                rates.draw_after(from, stream).unwrap_or(Time::from_micros(u64::MAX))
            }
        }
    }
}

/// The random stream of one target's events of this purpose.
fn stream_of(seed: u64, purpose: &str, target: &InterruptionTarget) -> RandomStream {
    match target {
        InterruptionTarget::Type(name) => RandomStream::named_stream(seed, purpose, name.as_str()),
        InterruptionTarget::Vm(vm) => RandomStream::new(seed, purpose, u64::from(vm.get())),
        InterruptionTarget::Zone(zone) => {
            RandomStream::named_stream(seed, &format!("{purpose} zone"), zone.as_str())
        }
        InterruptionTarget::All => RandomStream::named_stream(seed, purpose, "all"),
    }
}

impl InterruptionProcess {
    fn new(
        seed: u64,
        from: Time,
        target: InterruptionTarget,
        action: InterruptionAction,
        mean: Span,
    ) -> Self {
        let purpose = match action {
            InterruptionAction::Hibernate => "hibernate",
            InterruptionAction::Resume => "resume",
            InterruptionAction::Preempt => "preempt",
            InterruptionAction::Rebalance => "rebalance",
        };
        let stream = stream_of(seed, purpose, &target);
        Self::begin(from, target, action, (EventPace::Mean(mean), stream))
    }

    fn begin(
        from: Time,
        target: InterruptionTarget,
        action: InterruptionAction,
        (pace, mut stream): (EventPace, RandomStream),
    ) -> Self {
        let at = pace.draw_after(from, &mut stream);
        Self { next: Interruption { at, target, action }, pace, stream }
    }

    fn draw_next(&mut self) -> Interruption {
        let at = self.pace.draw_after(self.next.at, &mut self.stream);
        let due = self.next.clone();
        self.next.at = at;
        due
    }
}

/// The preemption of a VM at the end of its lifetime.
const fn end_of(vm: VmId, at: Time) -> Interruption {
    Interruption { at, target: InterruptionTarget::Vm(vm), action: InterruptionAction::Preempt }
}

/// True if VMs of a type are selected by `only`; a name without a zone selects every zone.
fn is_meant(only: Option<&TypeName>, kind: &TypeName) -> bool {
    only.is_none_or(|only| only == kind || only.as_str() == kind.without_zone())
}

impl ComingInterruptions {
    /// Starts the interruptions of `models` over these spot types under `seed`.
    #[must_use]
    pub fn new(models: &[InterruptionModel], spot_types: &[TypeName], seed: u64) -> Self {
        let mut all = Self { seed, ..Self::default() };
        for (n, model) in (0_u32..).zip(models) {
            match model {
                InterruptionModel::Poisson {
                    hibernate_every,
                    resume_every,
                    scope: InterruptionScope::Type,
                } => {
                    for name in spot_types {
                        let target = InterruptionTarget::Type(name.clone());
                        all.add_process(Time::ZERO, &target, *hibernate_every, *resume_every);
                    }
                }
                InterruptionModel::Poisson {
                    hibernate_every,
                    resume_every,
                    scope: InterruptionScope::Vm,
                } => {
                    all.per_vm.push((*hibernate_every, *resume_every));
                }
                InterruptionModel::Poisson {
                    hibernate_every,
                    resume_every,
                    scope: InterruptionScope::Zone,
                } => {
                    let zones: BTreeSet<_> = spot_types.iter().filter_map(TypeName::zone).collect();
                    for zone in zones {
                        let target = InterruptionTarget::Zone(ZoneName::from(zone));
                        all.add_process(Time::ZERO, &target, *hibernate_every, *resume_every);
                    }
                }
                InterruptionModel::Poisson {
                    hibernate_every,
                    resume_every,
                    scope: InterruptionScope::All,
                } => {
                    all.add_process(
                        Time::ZERO,
                        &InterruptionTarget::All,
                        *hibernate_every,
                        *resume_every,
                    );
                }
                InterruptionModel::Lifetime { kind, lifetimes } => {
                    all.lifetimes.push((kind.clone(), lifetimes.clone()));
                }
                InterruptionModel::Replay { kind, lives } => {
                    all.replays.push((kind.clone(), lives.clone(), 0));
                }
                InterruptionModel::Schedule { acts } => all.schedule.extend(acts.iter().cloned()),
                InterruptionModel::Weekly { kind, action, scope, rates } => {
                    let meant = spot_types.iter().filter(|of| is_meant(kind.as_ref(), of));
                    let targets: BTreeSet<_> = match scope {
                        InterruptionScope::Vm => {
                            all.weekly_per_vm.push((n, kind.clone(), *action, rates.clone()));
                            continue;
                        }
                        InterruptionScope::Type => {
                            meant.cloned().map(InterruptionTarget::Type).collect()
                        }
                        InterruptionScope::Zone => {
                            let zones = meant.filter_map(TypeName::zone).map(ZoneName::from);
                            zones.map(InterruptionTarget::Zone).collect()
                        }
                        InterruptionScope::All => BTreeSet::from([InterruptionTarget::All]),
                    };
                    for target in targets {
                        all.add_weekly(Time::ZERO, target, (n, *action, rates));
                    }
                }
            }
        }
        all.schedule.make_contiguous().sort();
        all
    }

    /// Adds recommendations to replace spot VMs: some precede an interruption, others are false
    /// alarms.
    #[must_use]
    pub fn with_recommendations(mut self, rebalancing: RebalanceRule) -> Self {
        self.rebalancing = rebalancing;
        let processes = self.processes.iter().map(|process| &process.next);
        let known: Vec<_> = processes.chain(&self.schedule).cloned().collect();
        for act in known {
            self.add_recommendation(Time::ZERO, &act);
        }
        self
    }

    /// Adds the recommendation before an interruption that is known from `now` on.
    fn add_recommendation(&mut self, now: Time, act: &Interruption) {
        self.ends.extend(self.rebalancing.draw_recommendation(self.seed, now, act));
    }

    /// Adds the end of a VM that is known from `now` on.
    fn ends_at(&mut self, now: Time, end: Interruption) {
        self.add_recommendation(now, &end);
        self.ends.insert(end);
    }

    fn add_process(
        &mut self,
        from: Time,
        target: &InterruptionTarget,
        hibernate: Option<Span>,
        resume: Option<Span>,
    ) {
        for (action, mean) in
            [(InterruptionAction::Hibernate, hibernate), (InterruptionAction::Resume, resume)]
        {
            if let Some(mean) = mean {
                let process =
                    InterruptionProcess::new(self.seed, from, target.clone(), action, mean);
                self.add_recommendation(from, &process.next);
                self.processes.push(process);
            }
        }
    }

    /// Adds the events of one target by the weekly rates of model `n`.
    fn add_weekly(
        &mut self,
        from: Time,
        target: InterruptionTarget,
        (n, action, rates): (u32, InterruptionAction, &Arc<WeeklyRates>),
    ) {
        let stream = stream_of(self.seed, &format!("weekly {n}"), &target);
        let pace = EventPace::Weekly(Arc::clone(rates));
        let process = InterruptionProcess::begin(from, target, action, (pace, stream));
        self.add_recommendation(from, &process.next);
        self.processes.push(process);
    }

    /// Records that a spot VM of this type is usable: under scope `vm` the random times of its own
    /// interruptions begin, its lifetime is drawn, and false recommendations may follow.
    pub fn vm_started(&mut self, now: Time, vm: VmId, kind: &TypeName) {
        let mut ends = Vec::new();
        for (n, (only, lifetimes)) in (0_u64..).zip(&self.lifetimes) {
            let mut chance =
                RandomStream::new(self.seed, "lifetime", (n << 32) | u64::from(vm.get()));
            if is_meant(only.as_ref(), kind)
                && let Some(life) = lifetimes.law().draw_lifetime(&mut chance)
            {
                ends.push(end_of(vm, now + life));
            }
        }
        for (only, lives, lived) in &mut self.replays {
            if is_meant(only.as_ref(), kind) && !lives.is_empty() {
                let life = lives[*lived % lives.len()];
                *lived += 1;
                ends.extend(life.map(|life| end_of(vm, now + life)));
            }
        }
        for end in ends {
            self.ends_at(now, end);
        }
        for (hibernate, resume) in self.per_vm.clone() {
            self.add_process(now, &InterruptionTarget::Vm(vm), hibernate, resume);
        }
        for (n, only, action, rates) in self.weekly_per_vm.clone() {
            if is_meant(only.as_ref(), kind) {
                self.add_weekly(now, InterruptionTarget::Vm(vm), (n, action, &rates));
            }
        }
        if let Some(mean) = self.rebalancing.false_every {
            let (target, action) = (InterruptionTarget::Vm(vm), InterruptionAction::Rebalance);
            self.processes.push(InterruptionProcess::new(self.seed, now, target, action, mean));
        }
    }

    /// Records that a VM is gone: the VM has no more interruptions of its own.
    pub fn vm_ended(&mut self, vm: VmId) {
        self.processes.retain(|p| p.next.target != InterruptionTarget::Vm(vm));
        self.ends.retain(|end| end.target != InterruptionTarget::Vm(vm));
    }

    /// Time of the next interruption; `None`: there is none.
    #[must_use]
    pub fn next_at(&self) -> Option<Time> {
        let processes = self.processes.iter().map(|p| p.next.at).min();
        let (schedule, ends) = (self.schedule.front(), self.ends.first());
        Time::sooner_of(Time::sooner_of(processes, schedule.map(|i| i.at)), ends.map(|i| i.at))
    }

    /// The next interruption if it is due by `now`; among interruptions of the same time, the one
    /// with the lowest target comes first.
    pub fn pop_due(&mut self, now: Time) -> Option<Interruption> {
        let others = self.processes.iter().map(|p| &p.next).chain(self.schedule.front()).min();
        if self.ends.first().is_some_and(|end| others.is_none_or(|other| end < other)) {
            let is_due = self.ends.first().is_some_and(|end| end.at <= now);
            return if is_due { self.ends.pop_first() } else { None };
        }
        let process = self.processes.iter_mut().min_by(|a, b| a.next.cmp(&b.next));
        let due = match (process, self.schedule.front()) {
            (Some(p), act) if act.is_none_or(|act| p.next < *act) => p,
            (_, Some(act)) if act.at <= now => return self.schedule.pop_front(),
            _ => return None,
        };
        if due.next.at > now {
            return None;
        }
        let act = due.draw_next();
        let next = due.next.clone();
        self.add_recommendation(act.at, &next);
        Some(act)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(
        models: &[InterruptionModel],
        types: &[&str],
        seed: u64,
        until: Time,
    ) -> Vec<Interruption> {
        let types: Vec<_> = types.iter().map(|&t| t.into()).collect();
        let mut all = ComingInterruptions::new(models, &types, seed);
        std::iter::from_fn(|| all.pop_due(until)).collect()
    }

    fn sc(k_h: u64, k_r: u64) -> InterruptionModel {
        let every = |k| (k > 0).then(|| Span::from_micros(2_700_000_000 / k));
        InterruptionModel::Poisson {
            hibernate_every: every(k_h),
            resume_every: every(k_r),
            scope: InterruptionScope::Type,
        }
    }

    #[test]
    fn another_type_moves_nobody() {
        let until = Time::from_secs(2_700);
        let only = |name: &str, all: Vec<Interruption>| {
            all.into_iter()
                .filter(|i| i.target == InterruptionTarget::Type(name.into()))
                .collect::<Vec<_>>()
        };
        let alone = drain(&[sc(5, 5)], &["c3.large"], 1, until);
        let with = drain(&[sc(5, 5)], &["c3.large", "c4.large"], 1, until);
        assert!(!alone.is_empty());
        assert_eq!(alone, only("c3.large", with));
    }

    #[test]
    fn k_events_are_expected_by_the_deadline() {
        let until = Time::from_secs(2_700);
        let n: usize = (0..400).map(|seed| drain(&[sc(5, 0)], &["x"], seed, until).len()).sum();
        assert!((1_900..2_100).contains(&n), "{n} events over 400 seeds, 2000 expected");
    }

    #[test]
    fn every_vm_has_its_own_end() {
        let (s, a, b) = (Time::from_secs, VmId::new(1), VmId::new(2));
        let of = |kind: Option<&str>, life| InterruptionModel::Lifetime {
            kind: kind.map(TypeName::from),
            lifetimes: Lifetimes::Empirical(crate::Empirical {
                recorded: vec![Span::from_secs(life)],
            }),
        };
        let act = Interruption {
            at: s(150),
            target: InterruptionTarget::Vm(b),
            action: InterruptionAction::Hibernate,
        };
        let schedule = InterruptionModel::Schedule { acts: vec![act.clone()] };
        let models = [of(None, 100), of(Some("y"), 10), schedule];
        let mut all = ComingInterruptions::new(&models, &[], 1);
        let end = |at, vm| Interruption {
            at: s(at),
            target: InterruptionTarget::Vm(vm),
            action: InterruptionAction::Preempt,
        };
        all.vm_started(s(20), a, &"x".into());
        all.vm_started(s(70), b, &"y".into());
        all.vm_started(s(70), VmId::new(3), &"y".into());
        assert_eq!((all.next_at(), all.pop_due(s(79))), (Some(s(80)), None));
        all.vm_ended(VmId::new(3));
        assert_eq!(
            [all.pop_due(s(500)), all.pop_due(s(500))],
            [Some(end(80, b)), Some(end(120, a))]
        );
        assert_eq!([all.pop_due(s(500)), all.pop_due(s(500))], [Some(act), Some(end(170, b))]);
        assert_eq!((all.next_at(), all.pop_due(s(500))), (None, None));
    }

    #[test]
    fn what_is_known_beforehand_is_recommended_before() {
        let (s, a) = (Time::from_secs, VmId::new(1));
        let lives = vec![Some(Span::from_secs(300)), Some(Span::from_secs(50))];
        let act = Interruption {
            at: s(200),
            target: InterruptionTarget::All,
            action: InterruptionAction::Hibernate,
        };
        let models = [
            InterruptionModel::Replay { kind: None, lives },
            InterruptionModel::Schedule { acts: vec![act.clone()] },
        ];
        let ahead = RebalanceRule::exactly_before(Some(Span::from_secs(120)));
        let mut all = ComingInterruptions::new(&models, &[], 1).with_recommendations(ahead);
        let rebalance = |at, target| {
            Some(Interruption { at: s(at), target, action: InterruptionAction::Rebalance })
        };
        all.vm_started(s(20), a, &"x".into());
        assert_eq!(all.pop_due(s(500)), rebalance(80, InterruptionTarget::All));
        assert_eq!(all.pop_due(s(500)), rebalance(200, InterruptionTarget::Vm(a)));
        assert_eq!(all.pop_due(s(500)), Some(act));
        assert_eq!(all.pop_due(s(500)), Some(end_of(a, s(320))));
        // What is nearer than that is recommended as soon as it is known.
        let b = VmId::new(2);
        all.vm_started(s(400), b, &"x".into());
        assert_eq!(all.pop_due(s(500)), rebalance(400, InterruptionTarget::Vm(b)));
        assert_eq!(all.pop_due(s(500)), Some(end_of(b, s(450))));
    }

    #[test]
    fn a_recommendation_moves_no_interruption() {
        let until = Time::from_secs(2_700);
        let types = ["c3.large".into()];
        let plain = drain(&[sc(5, 5)], &["c3.large"], 1, until);
        let ahead = RebalanceRule::exactly_before(Some(Span::from_secs(60)));
        let mut with = ComingInterruptions::new(&[sc(5, 5)], &types, 1).with_recommendations(ahead);
        let all: Vec<_> = std::iter::from_fn(|| with.pop_due(until)).collect();
        assert!(all.windows(2).all(|pair| pair[0].at <= pair[1].at));
        let (recommended, rest): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|act| act.action == InterruptionAction::Rebalance);
        assert_eq!(rest, plain);
        let hibernations =
            plain.iter().filter(|act| act.action == InterruptionAction::Hibernate).count();
        assert!(recommended.len() >= hibernations && hibernations > 0);
    }

    #[test]
    fn recommendations_come_to_nothing_while_a_vm_is_there() {
        let (s, a) = (Time::from_secs, VmId::new(1));
        let false_every = Some(Span::from_secs(3_600));
        let rebalancing = RebalanceRule { false_every, ..RebalanceRule::default() };
        let heard = |seed| {
            let mut all =
                ComingInterruptions::new(&[], &[], seed).with_recommendations(rebalancing);
            all.vm_started(s(20), a, &"x".into());
            let until = s(20 + 36_000);
            let heard: Vec<_> = std::iter::from_fn(|| all.pop_due(until)).collect();
            all.vm_ended(a);
            assert_eq!(all.next_at(), None, "one that is gone hears none");
            assert!(heard.iter().all(|act| act.action == InterruptionAction::Rebalance
                && act.target == InterruptionTarget::Vm(a)));
            heard.len()
        };
        let n: usize = (0..400).map(heard).sum();
        assert!((3_850..4_150).contains(&n), "{n} in 4000 hours, 4000 expected");
    }

    #[test]
    fn lives_are_lived_again_in_their_order() {
        let s = Time::from_secs;
        let lives = vec![Some(Span::from_secs(100)), None, Some(Span::from_secs(10))];
        let model = InterruptionModel::Replay { kind: Some("x".into()), lives };
        let mut all = ComingInterruptions::new(&[model], &[], 1);
        for (n, kind) in ["x", "y", "x", "x", "x"].into_iter().enumerate() {
            all.vm_started(s(20), VmId::new(u32::try_from(n).unwrap_or(0)), &kind.into());
        }
        let ends: Vec<_> = std::iter::from_fn(|| all.pop_due(s(500))).collect();
        assert_eq!(
            ends,
            [
                end_of(VmId::new(3), s(30)),
                end_of(VmId::new(0), s(120)),
                end_of(VmId::new(4), s(120))
            ]
        );
    }

    #[test]
    fn a_schedule_comes_out_in_order_among_the_others() {
        let act = |s, action| Interruption {
            at: Time::from_secs(s),
            target: InterruptionTarget::Type("x".into()),
            action,
        };
        let acts =
            vec![act(900, InterruptionAction::Resume), act(600, InterruptionAction::Hibernate)];
        let got = drain(
            &[InterruptionModel::Schedule { acts }, sc(5, 0)],
            &["x"],
            3,
            Time::from_secs(2_700),
        );
        assert!(got.windows(2).all(|w| w[0].at <= w[1].at));
        assert!(
            got.contains(&act(600, InterruptionAction::Hibernate))
                && got.contains(&act(900, InterruptionAction::Resume))
        );
    }
}
