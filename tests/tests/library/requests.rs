//! VMs that customers request: the figures of a run are compared with a second computation from its steps, and its
//! checks must find mistakes.

use dormouse_analysis::explain::RequestStory;
use dormouse_analysis::requests::{RequestFigures, RequestsTables, UsageFlow, UsageLevel};
use dormouse_analysis::{RequestsChecker, RuleViolation, RunRecord};
use dormouse_cloud::{Market, TariffName};
use dormouse_experiment::Experiment;
use dormouse_model::{Effect, Event, Notice, Step, VmEnd, VmRequest};
use dormouse_units::{Money, Price, RandomStream, Span, Time, VmId};

use super::runs::{played, with};

/// A random provider with some hosts, and random requests.
fn experiment(seed: u64) -> Experiment {
    let random = &mut RandomStream::new(seed, "requests", 0);
    let pick = |random: &mut RandomStream, of: &[&'static str]| of[random.draw_below(of.len())];
    let scheduler = pick(random, &["opie", "opie", "retry", "filter"]);
    let cost = pick(random, &["period", "age", "number"]);
    let tariff = pick(random, &["hour", "second", "ec2", "gce"]);
    let (boot, notice) = (pick(random, &["0s", "40s"]), pick(random, &["0s", "30s", "5m"]));
    let hosts = 1 + random.draw_below(3);
    // Some make room by hibernating.
    let preemption = if seed.is_multiple_of(3) { "hibernate" } else { "terminate" };
    let (mut at, mut requests) = (0, String::new());
    for _ in 0..60 {
        at += random.draw_below(900);
        let kind = pick(random, &["small", "small", "medium", "large"]);
        let market = pick(random, &["spot", "spot", "on-demand"]);
        let (duration, count) = (60 + random.draw_below(12_000), 1 + random.draw_below(3));
        requests += &format!(
            "  {{ at = \"{at}s\", type = \"{kind}\", market = \"{market}\", duration = \"{duration}s\", \
             count = {count} }},\n"
        );
    }
    let text = format!(
        r#"name = "random"
seed = {seed}
[cloud]
boot = "{boot}"
preemption-notice = "{notice}"
preemption = "{preemption}"
tariff = "{tariff}"
placement = {{ scheduler = "{scheduler}", cost = "{cost}" }}
hosts = [{{ vcpus = 8, memory = "16 GB", disk = "1000 GB", count = {hosts} }}]
type = [
  {{ name = "small", vcpus = 1, memory = "2 GB", disk = "20 GB", on-demand = 0.06, spot = 0.018 }},
  {{ name = "medium", vcpus = 2, memory = "4 GB", disk = "40 GB", on-demand = 0.12, spot = 0.036 }},
  {{ name = "large", vcpus = 4, memory = "8 GB", disk = "80 GB", on-demand = 0.24, spot = 0.072 }},
]
[workload]
kind = "requests"
request = [
{requests}]
"#
    );
    of_text(&text)
}

fn of_text(text: &str) -> Experiment {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("provider.toml");
    std::fs::write(&file, text).unwrap();
    with(file.to_str().unwrap(), &[]).unwrap()
}

/// The figures of a run's requests, with its `requests.csv`.
fn recorded(experiment: &Experiment, steps: &[Step]) -> (RequestFigures, String) {
    let mut csv = Vec::new();
    let setup = experiment.whole_setup();
    let tenants = experiment.tenants();
    let mut record = RunRecord::shared(&setup, tenants.clone()).forgetting();
    let mut tables = RequestsTables::begin(|_| Ok(&mut csv), &setup, tenants).unwrap();
    for step in steps {
        record.see(step);
        tables.see(&record, step).unwrap();
    }
    let figures = tables.finish().unwrap();
    (figures, String::from_utf8(csv).unwrap())
}

fn checked(experiment: &Experiment, steps: &[Step]) -> Vec<RuleViolation> {
    let setup = experiment.whole_setup();
    let mut checker = RequestsChecker::new(&setup, experiment.tenants(), Span::ZERO);
    steps.iter().for_each(|step| checker.see(step));
    checker.finish(true)
}

/// The fate of a request, computed by the test. A provider without other tenants gives the VM the request's number.
struct ByHand {
    asks: VmRequest,
    arrived: Time,
    vcpus: u64,
    price: Price,
    is_refused: bool,
    ready: Option<Time>,
    /// The times in which the VM ran.
    runs: Vec<(Time, Time)>,
    ended: Option<(Time, VmEnd, Money)>,
    victims: usize,
    displaced_by: Option<VmId>,
}

impl ByHand {
    fn all(experiment: &Experiment, steps: &[Step]) -> Vec<Self> {
        let effects = || steps.iter().flat_map(|s| s.effects.iter().map(move |e| (s.at, e)));
        let arrivals = steps.iter().filter_map(|step| match &step.event {
            Event::Requested { asks, .. } => Some((step.at, asks.clone())),
            _ => None,
        });
        let one = |(vm, (arrived, asks)): (u32, (Time, VmRequest))| {
            let vm = VmId::new(vm);
            let offer = experiment.setup.catalogue.get(&asks.kind).unwrap();
            let refused = steps
                .iter()
                .flat_map(|step| &step.notices)
                .any(|notice| matches!(notice, Notice::LaunchRefused { vm: of, .. } if *of == vm));
            Self {
                vcpus: offer.vcpus.into(),
                price: offer.price(asks.market).unwrap(),
                asks,
                arrived,
                is_refused: refused,
                ready: effects()
                    .find_map(|(at, effect)| (*effect == Effect::VmReady { vm }).then_some(at)),
                runs: runs_of(vm, effects()),
                ended: effects().find_map(|(at, effect)| match effect {
                    Effect::VmEnded { vm: of, why, cost } if *of == vm => Some((at, *why, *cost)),
                    _ => None,
                }),
                victims: effects()
                    .filter(|(_, e)| matches!(e, Effect::Displaced { by, .. } if *by == vm))
                    .count(),
                displaced_by: effects()
                    .filter_map(|(_, effect)| match effect {
                        Effect::Displaced { vm: of, by, .. } if *of == vm => Some(*by),
                        _ => None,
                    })
                    .next_back(),
            }
        };
        (0..).zip(arrivals).map(one).collect()
    }

    fn ran(&self) -> Span {
        self.runs.iter().map(|(from, until)| until.since(*from)).sum()
    }

    /// Microseconds for which the VM ran between two times.
    fn within(&self, from: Time, until: Time) -> u128 {
        let of = |(began, ended): &(Time, Time)| until.min(*ended).since(from.max(*began));
        self.runs.iter().map(of).map(|span| u128::from(span.as_micros())).sum()
    }

    /// The length of each run of the VM, and whether the provider ended it.
    fn uses(&self) -> impl Iterator<Item = (Span, bool)> {
        let last = self.runs.len().saturating_sub(1);
        let is_taken = move |n| n < last || self.is_terminated();
        let runs = self.runs.iter().enumerate();
        runs.map(move |(n, (from, until))| (until.since(*from), is_taken(n)))
    }

    fn is_terminated(&self) -> bool {
        self.ended.is_some_and(|(_, why, _)| why == VmEnd::Preempted)
    }
}

/// The times in which a VM runs: from when it is ready or resumed until it is hibernated or gone.
fn runs_of<'a>(vm: VmId, effects: impl Iterator<Item = (Time, &'a Effect)>) -> Vec<(Time, Time)> {
    let (mut runs, mut since) = (Vec::new(), None);
    for (at, effect) in effects {
        match effect {
            Effect::VmReady { vm: of } | Effect::VmResumed { vm: of, .. } if *of == vm => {
                since = Some(at);
            }
            Effect::VmHibernated { vm: of, .. } | Effect::VmEnded { vm: of, .. } if *of == vm => {
                runs.extend(since.take().map(|since| (since, at)));
            }
            _ => {}
        }
    }
    runs
}

#[test]
fn figures_are_those_of_a_reckoning_by_hand() {
    let (mut terminated, mut failed, mut waited, mut hibernated) = (0, 0, 0, 0);
    for seed in 0..60 {
        let experiment = experiment(seed);
        let (steps, run) = played(&experiment);
        let (figures, csv) = recorded(&experiment, &steps);
        let all = ByHand::all(&experiment, &steps);
        let tariff = experiment.setup.terms.tariff;
        let hour = Span::from_secs(3_600).as_micros();
        for market in [Market::OnDemand, Market::Spot] {
            let of = || all.iter().filter(|it| it.asks.market == market);
            let tally = figures.market_tally(market);
            let count = |is: fn(&ByHand) -> bool| of().filter(|it| is(it)).count() as u64;
            assert_eq!(tally.requests, count(|_| true), "seed {seed}");
            assert_eq!(tally.refused, count(|it| it.is_refused), "seed {seed}");
            assert_eq!(tally.granted, count(|it| !it.is_refused), "seed {seed}");
            assert_eq!(tally.terminated, count(ByHand::is_terminated), "seed {seed}");
            let whole = |it: &ByHand| it.ran() == it.asks.duration;
            assert_eq!(
                tally.completed,
                count(whole) - count(|it| { it.ran() == it.asks.duration && it.is_terminated() })
            );
            let owed = |it: &ByHand| {
                let of_use = |(ran, is_taken): (Span, bool)| {
                    let (hours, rest) = (ran.as_micros() / hour, ran.as_micros() % hour);
                    let started = hours + u64::from(rest > 0);
                    let charged = hours + u64::from(rest > 0 && !is_taken);
                    match tariff {
                        TariffName::Second | TariffName::Azure => it.price.for_span(ran),
                        TariffName::Ec2 | TariffName::Gce => {
                            let first = if tariff == TariffName::Ec2 { 3_600 } else { 60 };
                            let is_free = is_taken && ran < Span::from_secs(first);
                            let least = Span::from_secs(if ran > Span::ZERO { 60 } else { 0 });
                            it.price.for_span(if is_free { Span::ZERO } else { ran.max(least) })
                        }
                        TariffName::Hour => it.price.for_span(Span::from_micros(charged * hour)),
                        TariffName::StartedHour => {
                            it.price.for_span(Span::from_micros(started * hour))
                        }
                    }
                };
                it.uses().map(of_use).sum::<Money>()
            };
            assert_eq!(tally.revenue, of().map(owed).sum(), "seed {seed}");
        }
        assert_eq!(figures.all().revenue, run.owed_now(run.over_at().unwrap()), "seed {seed}");
        assert_eq!(figures.left(), 0);
        assert_eq!(Some(figures.last_end), run.makespan());
        // Losses, each by itself.
        let of_terminated = || all.iter().filter(|it| it.is_terminated());
        let rest = |it: &ByHand| it.price.for_span(it.asks.duration.saturating_sub(it.ran()));
        assert_eq!(figures.lost.cut_short, of_terminated().map(rest).sum());
        let part = |it: &ByHand| {
            let taken = it.uses().filter(|(_, is_taken)| *is_taken);
            let of_use = |(ran, _): (Span, bool)| match tariff {
                TariffName::Hour => Span::from_micros(ran.as_micros() % hour),
                TariffName::Ec2 if ran.as_micros() < hour => ran,
                TariffName::Gce if ran < Span::from_secs(60) => ran,
                _ => Span::ZERO,
            };
            taken.map(|of| it.price.for_span(of_use(of))).sum::<Money>()
        };
        let uncharged: Money = all.iter().map(part).sum();
        assert_eq!(figures.lost.uncharged, uncharged);
        let missed = |market| {
            let refused = all.iter().filter(move |it| it.is_refused && it.asks.market == market);
            refused.map(|it| it.price.for_span(it.asks.duration)).sum::<Money>()
        };
        assert_eq!(figures.lost.failed, missed(Market::OnDemand));
        assert_eq!(figures.lost.failed_preemptible, missed(Market::Spot));
        hibernated += figures.all().hibernations;
        let work = |it: &ByHand| u128::from(it.vcpus) * u128::from(it.ran().as_micros());
        assert_eq!(figures.work_lost_vcpu_us, of_terminated().map(work).sum());
        let by: u64 = figures.terminations.values().sum();
        assert_eq!((by, figures.terminations.len() < 2), (of_terminated().count() as u64, true));
        // Waits: the least that are not shorter than 99 % of all.
        let boot = experiment.setup.catalogue.boot;
        let late = |it: &ByHand| Some(it.ready?.since(it.arrived).saturating_sub(boot));
        let mut waits: Vec<Span> =
            all.iter().filter(|it| it.victims > 0).filter_map(late).collect();
        waits.sort_unstable();
        assert_eq!(figures.waits.count(), waits.len() as u64);
        assert_eq!(figures.waits.largest(), waits.last().copied().unwrap_or_default());
        let place = (waits.len() * 99).div_ceil(100).max(1) - 1;
        assert_eq!(figures.waits.at(99), waits.get(place).copied());
        used_is_what_ran(&experiment, &figures, &all);
        rows_say_what_became(&csv, &all);
        assert_eq!(checked(&experiment, &steps), [], "seed {seed}");
        terminated += of_terminated().count();
        failed += all.iter().filter(|it| it.is_refused).count();
        waited += waits.iter().filter(|wait| **wait > Span::ZERO).count();
    }
    // All of it happens.
    assert!(terminated > 150 && failed > 200 && waited > 50, "{terminated} {failed} {waited}");
    assert!(hibernated > 30, "{hibernated}");
}

/// Checks the used vCPUs and memory over time, bin by bin.
fn used_is_what_ran(experiment: &Experiment, figures: &RequestFigures, all: &[ByHand]) {
    let used = |market: Market, from, until| {
        let of = all.iter().filter(|it| it.asks.market == market);
        of.map(|it| u128::from(it.vcpus) * it.within(from, until)).sum::<u128>()
    };
    let memory = |from, until| {
        let of = |it: &ByHand| {
            let kind = experiment.setup.catalogue.get(&it.asks.kind).unwrap();
            u128::from(kind.memory.get()) * it.within(from, until)
        };
        all.iter().filter(|it| it.asks.market == Market::Spot).map(of).sum::<u128>()
    };
    let bins: Vec<_> = figures.usage.bins().collect();
    assert!(bins.len() > 500 && bins.len() <= 2_000);
    for (n, (from, until, bin)) in bins.iter().enumerate().step_by(7) {
        assert_eq!(bin.integral(UsageLevel::NormalVcpus), used(Market::OnDemand, *from, *until));
        assert_eq!(bin.integral(UsageLevel::PreemptibleVcpus), used(Market::Spot, *from, *until));
        assert_eq!(bin.integral(UsageLevel::PreemptibleMemory), memory(*from, *until));
        let is_in = |at: Time| *from <= at && (at < *until || n + 1 == bins.len());
        let ended = |it: &&ByHand| it.ended.is_some_and(|(at, ..)| is_in(at));
        let count = all.iter().filter(|it| it.is_terminated()).filter(ended).count();
        assert_eq!(bin.count(UsageFlow::Terminations), count as i64, "{from} to {until}");
        let failed = |it: &&ByHand| it.is_refused && it.asks.market == Market::OnDemand;
        let count = all.iter().filter(failed).filter(|it| is_in(it.arrived)).count();
        assert_eq!(bin.count(UsageFlow::FailedNormal), count as i64, "{from} to {until}");
    }
    let last = all.iter().map(|it| it.arrived).max().unwrap();
    let (at, until_last) = figures.usage.until_last_arrival().unwrap();
    assert_eq!(at, last);
    assert_eq!(
        until_last.integral(UsageLevel::NormalVcpus),
        used(Market::OnDemand, Time::ZERO, last)
    );
    let vcpus: u64 = experiment.hosts.iter().map(|host| u64::from(host.vcpus)).sum();
    let whole = u128::from(vcpus) * u128::from(last.as_micros());
    assert_eq!(until_last.integral(UsageLevel::HostVcpus), whole);
}

fn rows_say_what_became(csv: &str, all: &[ByHand]) {
    let mut lines = csv.lines();
    let columns = "request,arrived_s,type,market,duration_s,host,ready_s,ended_s,end,waited_s,\
                   displaced_by,cost_usd";
    assert_eq!(lines.next(), Some(columns));
    let mut seen = 0;
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let it = &all[cells[0].parse::<usize>().unwrap()];
        let seconds = |text: &str| {
            (!text.is_empty()).then(|| Span::from_secs_f64(text.parse().unwrap()).unwrap())
        };
        assert_eq!(seconds(cells[1]), Some(it.arrived.since(Time::ZERO)));
        assert_eq!(seconds(cells[6]), it.ready.map(|at| at.since(Time::ZERO)));
        let end = match it.ended {
            None => "refused",
            Some((_, VmEnd::Preempted, _)) => "displaced",
            Some(_) => "completed",
        };
        assert_eq!((cells[8], cells[2]), (end, it.asks.kind.as_str()), "{line}");
        let by = it.displaced_by.map(|vm| vm.to_string()).unwrap_or_default();
        assert_eq!(cells[10], by);
        let cost = it.ended.map_or(0.0, |(.., cost)| cost.as_usd());
        assert!((cells[11].parse::<f64>().unwrap() - cost).abs() < 1e-9);
        seen += 1;
    }
    assert_eq!(seen, all.len(), "a row each");
}

/// An experiment with two hosts full of spot VMs, and three on-demand VMs that each need a whole host.
const FULL: &str = r#"name = "full"
[cloud]
boot = "60s"
preemption-notice = "30s"
tariff = "hour"
placement = { scheduler = "opie" }
hosts = [{ vcpus = 4, memory = "16 GB", disk = "100 GB", count = 2 }]
type = [
  { name = "small", vcpus = 1, memory = "2 GB", disk = "20 GB", on-demand = 0.05, spot = 0.01 },
  { name = "large", vcpus = 4, memory = "8 GB", disk = "80 GB", on-demand = 0.2, spot = 0.04 },
]
[workload]
kind = "requests"
request = [
  { at = "0s", type = "small", market = "spot", duration = "2h", count = 8 },
  { at = "30m", type = "large", market = "on-demand", duration = "1h" },
  { at = "31m", type = "large", market = "on-demand", duration = "1h" },
  { at = "32m", type = "large", market = "on-demand", duration = "1h" },
]
"#;

#[test]
fn a_log_that_was_changed_is_noticed() {
    let experiment = of_text(FULL);
    let (steps, _) = played(&experiment);
    assert_eq!(checked(&experiment, &steps), []);
    let noticed = |what: &str, change: &dyn Fn(&mut Vec<Step>)| {
        let mut changed = steps.clone();
        change(&mut changed);
        assert_ne!(changed, steps, "{what}");
        let found = checked(&experiment, &changed);
        assert!(found.iter().any(|wrong| wrong.what.contains(what)), "{what}: {found:?}");
    };
    let each = |steps: &mut Vec<Step>, change: &dyn Fn(&mut Effect)| {
        steps.iter_mut().flat_map(|step| &mut step.effects).for_each(change);
    };
    noticed("its intervals", &|steps| {
        each(steps, &|effect| {
            if let Effect::VmEnded { cost, .. } = effect {
                *cost += Money::from_nanos(1);
            }
        });
    });
    noticed("has less than its VMs take", &|steps| {
        for step in steps {
            if let Event::HostJoined { offer, .. } = &mut step.event {
                offer.vcpus = 3;
            }
        }
    });
    noticed("is taken away without a cause in the log", &|steps| {
        for step in steps {
            step.effects.retain(|effect| !matches!(effect, Effect::Displaced { .. }));
        }
    });
    noticed("is not a spot VM", &|steps| {
        each(steps, &|effect| {
            if let Effect::VmLaunched { market, .. } = effect {
                *market = Market::OnDemand;
            }
        });
    });
    noticed("is refused though", &|steps| {
        // The first of the large ones is not granted.
        let is_it = |step: &&mut Step| {
            step.effects.iter().any(|effect| matches!(effect, Effect::Displaced { .. }))
        };
        let step = steps.iter_mut().find(is_it).unwrap();
        step.effects.clear();
        step.notices.push(Notice::LaunchRefused {
            vm: VmId::new(8),
            why: "full".to_owned(),
            unavailable: false,
        });
    });
    noticed("is given back after", &|steps| {
        let at = steps.iter().position(|step| {
            let ends = |e: &Effect| matches!(e, Effect::VmEnded { why: VmEnd::Terminated, .. });
            step.effects.iter().any(ends)
        });
        let ended: Vec<Effect> = std::mem::take(&mut steps[at.unwrap()].effects);
        steps[at.unwrap() - 1].effects.extend(ended);
    });
    noticed("never came to an end", &|steps| steps.truncate(steps.len() / 2));
}

#[test]
fn what_became_of_a_request_is_told() {
    let experiment = of_text(FULL);
    let (steps, _) = played(&experiment);
    let setup = experiment.whole_setup();
    let told = |what: &str| {
        let mut story = RequestStory::find(&setup, experiment.tenants(), what)?;
        steps.iter().for_each(|step| story.see(step));
        Some(story.told()?.to_string())
    };
    // The four VMs of a host had 29 minutes of a charged hour behind them.
    let by = told("request8").unwrap();
    assert_eq!(by, told("vm8").unwrap());
    assert_eq!(by.matches("leaves for it: 1740.0 s of a charged hour").count(), 4, "{by}");
    assert!(by.contains("having waited 30.0 s for others to leave"), "{by}");
    let victim = steps.iter().flat_map(|step| &step.effects).find_map(|effect| match effect {
        Effect::Displaced { vm, .. } => Some(*vm),
        _ => None,
    });
    let victim = told(&victim.unwrap().to_string()).unwrap();
    assert!(
        victim.contains("told to leave: vm8 (request8, on-demand large) has its room"),
        "{victim}"
    );
    assert!(victim.contains("Lost: 0.492 vCPU h of work"), "{victim}");
    let failed = told("request10").unwrap();
    assert!(
        failed.contains("refused: no host has 4 vCPUs") && failed.contains("$0.2000"),
        "{failed}"
    );
    assert_eq!((told("request11"), told("task0")), (None, None));
}
