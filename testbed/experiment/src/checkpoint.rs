//! Rules for checkpoints of tasks and jobs, from `[checkpoint]`.

use dormouse_cloud::{InterruptionModel, Lifetimes, Market};
use dormouse_documents::{Mistakes, Node, missing};
use dormouse_model::{
    Bag, CheckpointConfig, CheckpointOn, CheckpointScheme, LifetimePlans, OfType,
};
use dormouse_policies::dp::ProblemError;
use dormouse_policies::{Fleet, check_lifetime_plans, finest_step};
use dormouse_units::{Ppm, Span};

use super::lifetimes;
use super::sections::{CheckpointSection, Policy};

/// Default overhead: ten per cent of a task's run time (the Burst-HADS paper).
const OVERHEAD: Ppm = Ppm::new(100_000);

/// Time before the end of an hour at which ACC ends an instance, and interval of ADAPT's decisions;
/// the paper on ACC and ADAPT gives neither.
const LOOK: Span = Span::from_secs(60);
const EVERY: Span = Span::from_secs(600);
const HOUR: Span = Span::from_secs(3_600);
/// Time before the price passes the bid at which OPT has its checkpoint.
const AHEAD: Span = Span::from_micros(1);
/// Longest time step of the dynamic program, if a bag's checkpoints don't take less.
const STEP: Span = Span::from_secs(60);
/// Number of time steps in the shortest checkpoint.
const STEPS_OF_A_CHECKPOINT: u64 = 4;
const MOST_STEPS_OF_A_TASK: u64 = 2_000;

/// Other parts of the experiment on which checkpoints depend.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CheckpointContext<'a> {
    /// Models of the interruptions of spot VMs; `None` after an error in their sections.
    pub(crate) interruptions: Option<&'a [InterruptionModel]>,
    /// Time from the notice of a VM's end to this end.
    pub(crate) notice: Span,
    /// Time that a task needs to continue on another VM after an interruption.
    pub(crate) restart: Span,
    /// The bag that is checkpointed, if it is known.
    pub(crate) bag: Option<&'a Bag>,
    /// VMs that the scheduler launches, if its fleet is given.
    pub(crate) fleet: &'a [Fleet],
}

/// Resolves the section `[checkpoint]`, which stands at `node` of the document.
pub(crate) fn check(
    section: CheckpointSection,
    node: &Node,
    amid: &CheckpointContext<'_>,
    found: &mut Mistakes,
) -> Option<CheckpointConfig> {
    let CheckpointSection {
        policy, fixed, per_megabyte, on, at_hibernation, at_notice, never, ..
    } = section;
    for (key, own, word) in [
        ("overhead", Policy::Budget, "budget"),
        ("period", Policy::Every, "every"),
        ("of", Policy::Every, "every"),
        ("points", Policy::Points, "points"),
        ("bid", Policy::Acc, "acc"),
        ("look", Policy::Acc, "acc"),
        ("every", Policy::Adapt, "adapt"),
        ("knows", Policy::Adapt, "adapt"),
        ("mttf", Policy::YoungDaly, "young-daly"),
        ("lifetimes", Policy::Dp, "dp"),
        ("step", Policy::Dp, "dp"),
        ("restart", Policy::Dp, "dp"),
        ("mode", Policy::Dp, "dp"),
    ] {
        // A budget beside "none" was set aside for a while, and is no mistake.
        let set_aside = (own, policy) == (Policy::Budget, Policy::None);
        let is_opt = key == "look" && policy == Policy::Opt;
        let is_budget = key == "overhead" && policy == Policy::BudgetIntervals;
        let means = key == "lifetimes" && policy == Policy::YoungDaly && section.mttf.is_none();
        if own != policy && !set_aside && !means && !is_opt && !is_budget && node.get(key).is_some()
        {
            let what = format!("'{key}' is of policy \"{word}\", which is not this one");
            let remedy = format!("take it out, or write policy = \"{word}\"");
            found.add(node.place_of(key), what, remedy);
        }
    }
    if never && (policy != Policy::None || at_hibernation || at_notice) {
        let what = "nothing can be kept, and checkpoints are asked for";
        found.add(node.place_of("never"), what, "write policy = \"none\", or leave never out");
    }
    let scheme = resolve_scheme(section, node, amid, found)?;
    let on = on.unwrap_or_default();
    let config = CheckpointConfig {
        scheme,
        fixed,
        per_megabyte,
        on,
        at_hibernation,
        at_notice,
        never,
        ..CheckpointConfig::NONE
    };
    check_plannable(&config, node, amid, found)?;
    Some(config)
}

/// Default time step of the dynamic program for a bag: with a step several times as long as a
/// checkpoint, a checkpoint rounded up to a step would never be worth taking.
fn default_step(
    section: &CheckpointSection,
    bag: Option<&Bag>,
    laws: &[OfType<Lifetimes>],
) -> Span {
    let tasks = || bag.into_iter().flat_map(|bag| bag.tasks.iter());
    let (fixed, per_megabyte) = (section.fixed, section.per_megabyte);
    let config = CheckpointConfig { fixed, per_megabyte, ..CheckpointConfig::NONE };
    let Some(shortest) = tasks().map(|task| config.checkpoint_cost(task.memory)).min() else {
        return STEP;
    };
    let longest = tasks().flat_map(|task| task.runtime.values()).max().copied();
    // The step has to distinguish old VMs from young ones.
    let of_laws = laws.iter().map(|law| finest_step(&law.of, longest.unwrap_or_default()));
    let of_laws = of_laws.max().unwrap_or_default();
    let parts = |of: Span, n: u64| Span::from_micros(of.as_micros() / n);
    let finest =
        parts(longest.unwrap_or_default(), MOST_STEPS_OF_A_TASK).max(Span::from_micros(1_000));
    parts(shortest, STEPS_OF_A_CHECKPOINT).max(finest).min(STEP).max(of_laws)
}

/// Checks that the longest task has few enough time steps for the plan of its checkpoints; else adds a mistake.
fn check_plannable(
    config: &CheckpointConfig,
    node: &Node,
    amid: &CheckpointContext<'_>,
    found: &mut Mistakes,
) -> Option<()> {
    let (CheckpointScheme::Dp(plans), Some(bag)) = (&config.scheme, amid.bag) else {
        return Some(());
    };
    let longest = bag.tasks.iter().flat_map(|task| task.runtime.values()).max();
    let largest = bag.tasks.iter().map(|task| task.memory).max();
    let (longest, cost) = (*longest?, config.checkpoint_cost(largest?));
    let finest = plans.laws.iter().map(|law| finest_step(&law.of, longest)).max();
    if let Some(finest) = finest.filter(|finest| plans.step < *finest) {
        let at_least = Span::from_secs(finest.as_micros().div_ceil(1_000_000));
        let what = format!(
            "in steps of {} there are too many ages of VMs for tasks of {longest}",
            plans.step
        );
        let remedy = format!("write at least \"{at_least}\", or leave step out");
        found.add(node.place_of("step"), what, remedy);
        return None;
    }
    let error = match check_lifetime_plans(plans, longest, cost) {
        Ok(()) => return Some(()),
        Err(ProblemError::NeverEnds { .. }) => {
            let what =
                format!("no VM lives for a step of {} and a checkpoint of {cost}", plans.step);
            found.add(node.place_of("step"), what, "write a smaller step, or longer lifetimes");
            return None;
        }
        Err(error) => error,
    };
    let what = format!("a task of {longest} in steps of {}: {error}", plans.step);
    found.add(node.place_of("step"), what, "write a larger step");
    None
}

/// Resolves the checkpoints of parallel jobs; `None`: the jobs take no checkpoints. Their machine
/// is never preempted, so there is no key `on`, and the cost of their memory is not given.
pub(crate) fn check_of_jobs(
    section: CheckpointSection,
    node: &Node,
    found: &mut Mistakes,
) -> Option<CheckpointConfig> {
    for (key, why) in [
        ("on", "the machine of parallel jobs is on demand, and there is no other"),
        ("per-megabyte", "parallel jobs don't say what memory they have"),
        ("at-hibernation", "the machine of parallel jobs is on demand, and never hibernates"),
    ] {
        if node.get(key).is_some() {
            let remedy = "take it out; a checkpoint of a job costs 'fixed'";
            found.add(node.place_of(key), why, remedy);
        }
    }
    let policy = section.policy;
    if matches!(policy, Policy::Edge | Policy::Adapt | Policy::Opt | Policy::Acc | Policy::Dp) {
        let what =
            "the machine of parallel jobs is on demand: neither is it taken away, nor has it a bid";
        let remedy = "write another policy, such as: policy = \"every\"";
        found.add(node.place_of("policy"), what, remedy);
        return None;
    }
    let config = check(
        section,
        node,
        &CheckpointContext { interruptions: Some(&[]), ..CheckpointContext::default() },
        found,
    )?;
    let config = CheckpointConfig { per_megabyte: Span::ZERO, on: CheckpointOn::All, ..config };
    (config.scheme != CheckpointScheme::None {}).then_some(config)
}

fn resolve_scheme(
    section: CheckpointSection,
    node: &Node,
    amid: &CheckpointContext<'_>,
    found: &mut Mistakes,
) -> Option<CheckpointScheme> {
    match section.policy {
        Policy::Budget => Some(CheckpointScheme::Budget(section.overhead.unwrap_or(OVERHEAD))),
        Policy::BudgetIntervals => {
            Some(CheckpointScheme::BudgetIntervals(section.overhead.unwrap_or(OVERHEAD)))
        }
        Policy::None => Some(CheckpointScheme::None {}),
        Policy::Hour => Some(CheckpointScheme::Hour {}),
        Policy::Edge => Some(CheckpointScheme::Edge {}),
        Policy::Adapt => {
            let (every, knows) =
                (section.every.unwrap_or(EVERY), section.knows.unwrap_or_default());
            Some(CheckpointScheme::Adapt { every, knows })
        }
        Policy::Opt => Some(CheckpointScheme::Opt { look: section.look.unwrap_or(AHEAD) }),
        Policy::Acc => {
            let look = section.look.unwrap_or(LOOK);
            if section.fixed + look >= HOUR {
                let what = format!(
                    "a checkpoint of {} and a look {look} before an hour ends",
                    section.fixed
                );
                found.add(node.place_of("look"), what, "let both together be less than an hour");
            }
            let mut bids =
                amid.fleet.iter().filter(|vms| vms.market == Market::Spot).map(|vms| vms.bid);
            let first = bids.next().flatten();
            let has_bids = first.is_some() && bids.clone().all(|bid| bid.is_some());
            if section.bid.is_none() && !has_bids {
                missing(node, "bid", "0.32", found);
                return None;
            }
            // VMs with different bids use their own.
            let shared = first.filter(|_| bids.all(|bid| bid == first));
            Some(CheckpointScheme::Acc { bid: section.bid.or(shared), look })
        }
        Policy::YoungDaly => {
            let mttf = match section.mttf {
                Some(of) => vec![OfType { kind: None, of }],
                None => {
                    let laws = lifetimes::laws(&section, node, amid.interruptions, found)?;
                    lifetimes::means(laws, node, found)?
                }
            };
            Some(CheckpointScheme::YoungDaly { mttf })
        }
        Policy::Dp => {
            let laws = lifetimes::laws(&section, node, amid.interruptions, found)?;
            let step = section.step.unwrap_or_else(|| default_step(&section, amid.bag, &laws));
            let said = Some(amid.restart).filter(|restart| *restart > Span::ZERO);
            let restart = section.restart.or(said).unwrap_or(step);
            let (notice, mode) = (amid.notice, section.mode.unwrap_or_default());
            Some(CheckpointScheme::Dp(LifetimePlans { laws, notice, step, restart, mode }))
        }
        Policy::Every => {
            let Some(period) = section.period else {
                missing(node, "period", "\"10m\"", found);
                return None;
            };
            if period < section.fixed {
                let what = format!("a checkpoint every {period} that costs {}", section.fixed);
                let remedy = format!("write at least \"{}\"", section.fixed);
                found.add(node.place_of("period"), what, remedy);
            }
            Some(CheckpointScheme::Every { period, of: section.of.unwrap_or_default() })
        }
        Policy::Points => {
            let Some(points) = section.points else {
                missing(node, "points", "[0.25, 0.5, 0.75]", found);
                return None;
            };
            let like = "write fractions of the work, ascending, each above 0 and below 1";
            let mut last = Ppm::ZERO;
            for (n, point) in points.iter().enumerate() {
                let place = node.place_of(&format!("points.{n}"));
                let x = point.as_f64();
                if *point == Ppm::ZERO || *point >= Ppm::ONE {
                    found.add(place, format!("{x} is out of range"), like);
                } else if *point <= last {
                    found.add(place, format!("{x} does not come after the one before it"), like);
                }
                last = *point;
            }
            Some(CheckpointScheme::Points(points.into()))
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use dormouse_cloud::{Exponential, Lifetimes};
    use dormouse_documents::{conform, from_toml, read, schema_of};
    use dormouse_model::AdaptKnowledge;
    use dormouse_model::DpMode;
    use dormouse_model::PeriodUnit;
    use dormouse_units::Price;

    use super::*;

    fn by(
        check: impl FnOnce(CheckpointSection, &Node, &mut Mistakes) -> Option<CheckpointConfig>,
        text: &str,
    ) -> Result<Option<CheckpointConfig>, String> {
        let node = from_toml("x.toml", text).unwrap();
        let mut found = Mistakes::default();
        conform(&schema_of::<CheckpointSection>(), &node, &mut found);
        let section = read(&node, &mut found);
        let config = section.and_then(|section| check(section, &node, &mut found));
        found.or(Some(config)).map_err(|error| error.to_string())
    }

    fn said(text: &str) -> Result<CheckpointConfig, String> {
        let amid = CheckpointContext { interruptions: Some(&[]), ..CheckpointContext::default() };
        by(|section, node, found| check(section, node, &amid, found), text).map(Option::unwrap)
    }

    #[test]
    fn every_policy_is_read() {
        let scheme = |text: &str| said(text).map(|config| config.scheme);
        let minutes = |n: u64| Span::from_secs(60 * n);
        assert_eq!(scheme(""), Ok(CheckpointScheme::Budget(Ppm::new(100_000))));
        assert_eq!(
            scheme("policy = \"budget\"\noverhead = 0"),
            Ok(CheckpointScheme::Budget(Ppm::ZERO))
        );
        let intervals = Ok(CheckpointScheme::BudgetIntervals(Ppm::new(200_000)));
        assert_eq!(scheme("policy = \"budget-intervals\"\noverhead = 0.2"), intervals);
        assert_eq!(scheme("policy = \"none\"\noverhead = 0.2"), Ok(CheckpointScheme::None {}));
        let every = |of| Ok(CheckpointScheme::Every { period: minutes(10), of });
        assert_eq!(scheme("policy = \"every\"\nperiod = \"10m\""), every(PeriodUnit::Time));
        let work = "policy = \"every\"\nperiod = \"10m\"\nof = \"work\"";
        assert_eq!(scheme(work), every(PeriodUnit::Work));
        let points = CheckpointScheme::Points([250_000, 500_000].map(Ppm::new).into());
        assert_eq!(scheme("policy = \"points\"\npoints = [0.25, 0.5]"), Ok(points));
        assert_eq!(scheme("policy = \"hour\""), Ok(CheckpointScheme::Hour {}));
        let acc = CheckpointScheme::Acc { bid: Price::from_usd_per_hour(0.32), look: minutes(2) };
        assert_eq!(scheme("policy = \"acc\"\nbid = 0.32\nlook = \"2m\""), Ok(acc));
        let adapt = |knows| Ok(CheckpointScheme::Adapt { every: minutes(10), knows });
        assert_eq!(scheme("policy = \"adapt\""), adapt(AdaptKnowledge::Past));
        let all = "policy = \"adapt\"\nknows = \"whole-record\"";
        assert_eq!(scheme(all), adapt(AdaptKnowledge::WholeRecord));
        assert_eq!(scheme("policy = \"edge\""), Ok(CheckpointScheme::Edge {}));
        assert_eq!(scheme("policy = \"opt\""), Ok(CheckpointScheme::Opt { look: AHEAD }));
        let mttf = |of| Ok(CheckpointScheme::YoungDaly { mttf: vec![OfType { kind: None, of }] });
        assert_eq!(scheme("policy = \"young-daly\"\nmttf = \"1h\""), mttf(minutes(60)));
        let mean = "policy = \"young-daly\"\nlifetimes = { uniform = { to = \"2h\" } }";
        assert_eq!(scheme(mean), mttf(minutes(60)));
        let dp = "policy = \"dp\"\nlifetimes = { mean = \"6h\" }\nmode = \"artifact\"";
        let mean = minutes(360);
        let of = Lifetimes::Exponential(Exponential { mean });
        let plans = LifetimePlans {
            laws: vec![OfType { kind: None, of }],
            notice: Span::ZERO,
            step: minutes(1),
            restart: minutes(1),
            mode: DpMode::Artifact,
        };
        assert_eq!(scheme(dp), Ok(CheckpointScheme::Dp(plans)));
    }

    #[test]
    fn those_of_jobs_are_taken_on_their_machine_and_cost_what_is_fixed() {
        let said = |text: &str| by(check_of_jobs, text);
        assert_eq!(said("policy = \"none\""), Ok(None));
        let every = said("policy = \"every\"\nperiod = \"5m\"\nfixed = \"2s\"").unwrap().unwrap();
        let cost = every.checkpoint_cost(dormouse_units::Bytes::new(1 << 40));
        assert_eq!((every.on, cost), (CheckpointOn::All, Span::from_secs(2)));
        for (text, part) in [
            ("on = \"spot\"", "x.toml:1:1: on: the machine of parallel jobs is on demand"),
            ("per-megabyte = \"1s\"", "don't say what memory"),
        ] {
            let error = said(text).unwrap_err();
            assert!(error.contains(part) && error.contains("take it out"), "{text}: {error}");
        }
        let error = said("policy = \"dp\"\nlifetimes = { mean = \"1h\" }").unwrap_err();
        assert!(error.contains("policy: the machine of parallel jobs is on demand"), "{error}");
        let error = said("policy = \"young-daly\"").unwrap_err();
        assert!(error.contains("it needs the lifetimes"), "{error}");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place_and_what_would_be_right() {
        for (text, part, remedy) in [
            ("policy = \"evry\"", "x.toml:1:1: policy: there is no policy 'evry'", "every"),
            ("policy = \"every\"", "'period' is missing", "period = \"10m\""),
            ("policy = \"every\"\nperiod = \"5s\"", "x.toml:2:1: period: a checkpoint", "12.995s"),
            ("policy = \"points\"", "'points' is missing", "[0.25, 0.5, 0.75]"),
            ("policy = \"points\"\npoints = 3", "is not a list", "[0.25, 0.5, 0.75]"),
            ("policy = \"points\"\npoints = [0.5, 0.5]", "0.5 does not come after", "ascending"),
            ("policy = \"points\"\npoints = [0.5, 1]", "1 is out of range", "below 1"),
            ("period = \"10m\"", "'period' is of policy \"every\"", "policy = \"every\""),
            ("policy = \"every\"\nperiod = \"1h\"\noverhead = 1", "'overhead' is of", "budget"),
            ("policy = \"hour\"\nlook = \"1m\"", "'look' is of policy \"acc\"", "acc"),
            ("policy = \"acc\"\nlook = \"1h\"", "x.toml:2:1: look: a checkpoint of", "an hour"),
            ("policy = \"acc\"", "'bid' is missing", "bid = 0.32"),
            ("policy = \"dp\"", "x.toml:1:1: policy: it needs the lifetimes", "mean = \"6h\""),
            ("policy = \"young-daly\"", "it needs the lifetimes", "mean = \"6h\""),
            ("policy = \"young-daly\"\nmttf = \"0s\"", "x.toml:2:1: mttf", "1s"),
            ("policy = \"dp\"\nlifetimes = {}", "it needs one law", "give one of"),
            ("policy = \"dp\"\nmttf = \"1h\"", "'mttf' is of policy", "young-daly"),
            ("policy = \"dp\"\nstep = \"0s\"", "x.toml:2:1: step", "1ms"),
            ("policy = \"dp\"\nmode = \"x\"", "x.toml:2:1: mode", "artifact"),
            ("policy = \"hour\"\nstep = \"1m\"", "'step' is of policy \"dp\"", "dp"),
            (
                "policy = \"young-daly\"\nmttf = \"1h\"\nlifetimes = { mean = \"1h\" }",
                "'lifetimes' is of policy",
                "take it out",
            ),
            ("policy = \"acc\"\nbid = -1", "x.toml:2:1: bid", "0"),
            ("policy = \"adapt\"\nevery = \"1us\"", "x.toml:2:1: every", "1s"),
            ("policy = \"adapt\"\nknows = \"all\"", "x.toml:2:1: knows", "whole-record"),
            ("policy = \"edge\"\nknows = \"past\"", "'knows' is of policy \"adapt\"", "adapt"),
        ] {
            let error = said(text).unwrap_err();
            assert!(error.contains(part) && error.contains(remedy), "{text}: {error}");
        }
    }
}
