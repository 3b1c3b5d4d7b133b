//! The three answers at the beginning of a run's page: what happened, what it cost, and what went wrong.

use std::cmp::Ordering;

use dormouse_analysis::outcome::wording;
use dormouse_analysis::requests::{LostRevenue, RequestTally};
use dormouse_cloud::Market;
use dormouse_engine::RunCounts;
use dormouse_model::VmEnd;
use dormouse_units::{Money, Span, Time};
use dormouse_view::{PageAnswer, TextTone, TimeUnit, number};

use super::beside::{JobsUnderEasy, RunsBeside, SEEDS};
use super::outcome::{BagResults, RunResults};
use super::requests::{customers_word, percent, refused_share, vcpu_shares};
use super::{RequestsOutcome, dates, emulation};
use crate::jobs::JobsOutcome;

const HAPPENED: &str = "What happened?";
const WRONG: &str = "What went wrong?";

/// Answers on a run with a bag.
pub(super) fn of_bag(of: &BagResults<'_>, beside: &RunsBeside) -> Vec<PageAnswer> {
    let vms = of.record.vms.len();
    let vms = counted(vms as u64, ["VM", "VMs"]);
    let cost = PageAnswer::new(
        "What did it cost?",
        format!("{} for {vms}.", number::dollars(of.record.cost())),
    );
    let cost = beside.answer(of, cost);
    let sure = certainty(of.of, beside.standing());
    vec![bag_happened(of), cost, bag_wrong(of), beside.spread(of.of.time_unit(), sure)]
}

/// The answer how far one run can be trusted, with where it stands among those under other seeds if they were made, and the
/// command that tells more.
fn certainty(run: &RunResults<'_>, standing: Option<String>) -> PageAnswer {
    let experiment = &run.header.experiment;
    let seed = experiment.setup.seed;
    let answer = |said: String| PageAnswer::new("How sure is that?", said);
    if run.header.live_speedup().is_some() {
        let said = format!(
            "One live run, seed {seed}. The same decisions in virtual time, without this host:"
        );
        return answer(said).command("dormouse twin DIR");
    }
    let chance = || format!("One run, seed {seed}: chance has a part in every figure here.");
    let is_placed = standing.is_some();
    let said = standing.map_or_else(chance, |standing| format!("One run, seed {seed}. {standing}"));
    // A file's path is in the command; other commands than `run` have no experiment at this place.
    let named = run.header.command.strip_prefix("dormouse run ");
    let named =
        named.and_then(|words| words.split(' ').next()).filter(|word| !word.starts_with('-'));
    match named {
        None => answer(said),
        Some(name) => {
            let more = if is_placed { "" } else { " Means of 30 seeds with their intervals:" };
            answer(format!("{said}{more}"))
                .command(format!("dormouse sweep {name} --seeds {SEEDS}"))
        }
    }
}

fn bag_happened(of: &BagResults<'_>) -> PageAnswer {
    let unit = of.of.time_unit();
    let time = |span: Span| dates::round(unit, span);
    let mut said = Vec::new();
    if of.has_tasks() {
        let (outcomes, deadline) = (of.record.outcomes(), of.deadline());
        let end = of.record.makespan().filter(|_| outcomes.is_complete());
        said.push(match end.map(|end| end.since(Time::ZERO)) {
            Some(took) => {
                let all = match outcomes.total {
                    1 => "The task was".to_owned(),
                    n => format!("All {n} tasks were"),
                };
                let by = match took.cmp(&deadline) {
                    Ordering::Equal => "at the deadline".to_owned(),
                    Ordering::Less => {
                        format!("{} before the deadline", time(deadline.saturating_sub(took)))
                    }
                    Ordering::Greater => {
                        format!("{} after the deadline", time(took.saturating_sub(deadline)))
                    }
                };
                format!("{all} done after {}, {by} of {}.", time(took), time(deadline))
            }
            None => format!(
                "{} of {} tasks were done, so that the deadline of {} is missed.",
                outcomes.done(),
                outcomes.total,
                time(deadline)
            ),
        });
    } else {
        said.push("Callers of EC2's API used VMs; there were no tasks.".to_owned());
    }
    if of.has_tasks() && !of.record.outcomes().is_complete() {
        said.push(format!("Outcomes of tasks: {}.", of.record.outcomes().on_a_tile()));
    }
    said.extend(of.of.jobs.as_ref().map(|jobs| jobs_done(jobs)));
    said.extend(of.of.requests.as_ref().map(requests_done));
    let broke = of.of.broke().map(|why| format!("The run was ended before its time: {why}."));
    said.extend(broke);
    said.extend(of.of.fidelity.as_ref().map(|it| format!("{}.", emulation::verdict(it))));
    let is_good = of.deadline_met() && of.of.fidelity.as_ref().is_none_or(|it| it.faithful);
    let mut answer = PageAnswer::new(HAPPENED, said.join(" "));
    let end = of.record.makespan().filter(|_| of.record.outcomes().is_complete());
    if let Some(took) = end.map(|end| end.since(Time::ZERO)).filter(|_| of.has_tasks()) {
        let deadline = of.deadline();
        let share = took.as_secs_f64() / deadline.as_secs_f64().max(1e-9);
        let figure = format!("{} of {}", time(took), time(deadline));
        let tone = TextTone::verdict(took <= deadline);
        answer = answer.gauge("time used", figure, share, tone);
    }
    if of.has_tasks() { answer.verdict(is_good) } else { answer }
}

fn bag_wrong(of: &BagResults<'_>) -> PageAnswer {
    let record = of.record;
    let RunCounts { hibernations, resumes, preemptions, above_bid, .. } = record.counts;
    let RunCounts { hosts_lost, attempts_failed, launches_refused, .. } = record.counts;
    let RunCounts { checkpoints_failed, rejected, .. } = record.counts;
    let outcomes = record.outcomes();
    let ended_with_host = |end: &Option<(Time, VmEnd, _)>| {
        end.as_ref().is_some_and(|(_, why, _)| *why == VmEnd::HostLost)
    };
    let vms_lost = record.vms.values().filter(|vm| ended_with_host(&vm.ended)).count() as u64;
    let left = outcomes.total - outcomes.done() - outcomes.failed();
    let resumed = match resumes {
        0 => "hibernations of VMs, none resumed".to_owned(),
        n => format!("hibernations of VMs, {n} resumed"),
    };
    let mut answer = PageAnswer::new(WRONG, "")
        .count(outcomes.failed(), ["task failed", "tasks failed"])
        .count(left, ["task was left", "tasks were left"])
        .count(hibernations, ["hibernation of a VM", &resumed])
        .count(preemptions, ["VM preempted", "VMs preempted"])
        .count(above_bid, ["VM given back above its bid", "VMs given back above their bids"])
        .count(hosts_lost, wording::COUNTED_HOSTS_LOST)
        .count(vms_lost, wording::COUNTED_VMS_LOST)
        .count(attempts_failed, ["attempt failed", "attempts failed"])
        .count(checkpoints_failed, ["checkpoint failed", "checkpoints failed"])
        .count(launches_refused, ["launch refused", "launches refused"])
        .count(
            rejected,
            ["decision rejected (a bug of the policy)", "decisions rejected (a bug of the policy)"],
        );
    if let Some(requests) = &of.of.requests {
        answer = requests_wrong(requests, answer);
    }
    if let Some(jobs) = &of.of.jobs {
        answer = jobs_wrong(jobs, answer);
    }
    let lost = record.work_lost();
    if lost > Span::ZERO {
        answer = answer.item(dates::round(of.of.time_unit(), lost), wording::OF_WORK_LOST);
    }
    if of.has_tasks() && !of.deadline_met() {
        answer = answer.item("the deadline", "missed");
    }
    answer = run_wrong(
        answer,
        of.of.fidelity.as_ref().is_none_or(|it| it.faithful),
        of.of.broke().is_some(),
    );
    let is_done = outcomes.is_complete() && of.has_tasks();
    let all = if is_done { "Every task was done all the same." } else { "" };
    finish(answer, all, wording::NOTHING_WRONG)
}

/// Answers on a run of parallel jobs.
pub(super) fn of_jobs(run: &RunResults<'_>, jobs: &JobsOutcome<'_>) -> Vec<PageAnswer> {
    let (f, unit) = (&jobs.figures, run.time_unit());
    let time = |s: f64| unit.words(s, 0);
    let mut happened = vec![
        jobs_done(jobs),
        format!("The last one ended after {}.", time(f.makespan().as_secs_f64())),
    ];
    happened.extend(run.requests.as_ref().map(requests_done));
    happened
        .extend(jobs.cancelled.as_ref().map(|why| format!("It was ended before its time: {why}.")));
    happened.extend(jobs.fidelity.as_ref().map(|it| format!("{}.", emulation::verdict(it))));
    let is_good =
        jobs.outcomes().is_complete() && jobs.fidelity.as_ref().is_none_or(|it| it.faithful);
    let (mean, wait) = (f.response.mean(), f.wait.mean());
    let mut waited = PageAnswer::new(
        "How long did jobs take?",
        format!("{} on average from submission to end.", time(mean)),
    );
    if mean > 0.0 {
        let figure = format!("{} of {}", time(wait), time(mean));
        waited = waited.gauge("of it waiting for processors", figure, wait / mean, TextTone::Plain);
    }
    if let Some(easy) = JobsUnderEasy::of(run, jobs) {
        waited = easy.answer(mean, unit, waited);
    }
    let waited = waited.item(
        format!("{:.2}", f.slowdown.mean()),
        "mean slowdown (1 is best), bounded: jobs below 10 s count as 10 s",
    );
    let mut wrong = jobs_wrong(jobs, PageAnswer::new(WRONG, ""));
    if let Some(requests) = &run.requests {
        wrong = requests_wrong(requests, wrong);
    }
    let is_faithful = jobs.fidelity.as_ref().is_none_or(|it| it.faithful);
    wrong = run_wrong(wrong, is_faithful, jobs.cancelled.is_some());
    let all = if jobs.outcomes().is_complete() { "Every job ended all the same." } else { "" };
    let wrong =
        finish(wrong, all, "Nothing: no job failed or was killed, and no decision was rejected.");
    let used = f.utilisation(jobs.machine());
    let (busy, machine) = (f.work_rate(), jobs.machine());
    let mut happened = PageAnswer::new(HAPPENED, happened.join(" ")).verdict(is_good).gauge(
        "processors kept busy, on average",
        format!("{busy:.1} of {machine}"),
        used,
        TextTone::Plain,
    );
    if used > 1.0 {
        let why = "two jobs share a processor, and the one in the background uses what the other leaves idle";
        happened = happened.item(format!("More than {machine}:"), why);
    }
    vec![happened, waited, wrong, certainty(run, None)]
}

/// Answers on a run of requests for VMs alone.
pub(super) fn of_requests(run: &RunResults<'_>, of: &RequestsOutcome) -> Vec<PageAnswer> {
    let f = &of.figures;
    let (normal, spot) = (f.market_tally(Market::OnDemand), f.market_tally(Market::Spot));
    let mut happened = vec![requests_done(of)];
    happened
        .extend(f.cancelled.as_ref().map(|why| format!("It was ended before its time: {why}.")));
    happened.extend(run.fidelity.as_ref().map(|it| format!("{}.", emulation::verdict(it))));
    let (all_earned, all_missed) = (f.all().revenue, f.lost.all());
    let missed = match all_missed > Money::ZERO {
        true => {
            format!("; {} with all that it missed", number::dollars(all_earned + all_missed))
        }
        false => String::new(),
    };
    let earned = format!(
        "{}: {} by normal VMs and {} by preemptible ones{missed}.",
        number::dollars(all_earned),
        number::dollars(normal.revenue),
        number::dollars(spot.revenue)
    );
    let mut earned = PageAnswer::new("What did it earn?", earned);
    if all_missed > Money::ZERO {
        let share = all_earned.as_usd() / (all_earned + all_missed).as_usd();
        earned = earned.gauge("earned of that", percent(share), share, TextTone::Plain);
    }
    let LostRevenue { uncharged, failed, failed_preemptible, cut_short } = f.lost;
    let missed = [
        (failed, "missed by normal requests that failed"),
        (failed_preemptible, "missed by preemptible requests that failed"),
        (cut_short, "missed by VMs that the provider ended, for the rest of their time"),
        (uncharged, wording::MISSED_UNCHARGED),
    ];
    let missed = missed.into_iter().filter(|(money, _)| *money > Money::ZERO);
    let earned =
        missed.fold(earned, |answer, (money, what)| answer.item(number::dollars(money), what));
    let mut wrong = requests_wrong(of, PageAnswer::new(WRONG, ""));
    let worst = f.by_type.iter().filter(|(_, tally)| tally.refused > 0);
    let worst = worst.filter_map(|(of, tally)| Some((of, refused_share(tally)?)));
    if let Some(((kind, market), share)) = worst.max_by(|a, b| a.1.total_cmp(&b.1)) {
        let what = format!(
            "of requests for {} {kind} VMs failed, the most of all",
            customers_word(*market)
        );
        wrong = wrong.item(percent(share), what);
    }
    if let Some(mean) = f.waits.mean_s().filter(|mean| *mean > 0.0) {
        // Waits are seconds where the run is hours, and a quantity of their own.
        let most = f.waits.largest().as_secs_f64();
        let unit = TimeUnit::for_longest(most);
        let what = format!(
            "mean wait of {} normal requests until VMs had left for them, {} at most",
            number::grouped(&f.waits.count().to_string()),
            unit.words(most, 0)
        );
        wrong = wrong.item(unit.words(mean, 0), what);
    }
    let is_good = normal.refused == 0 && run.fidelity.as_ref().is_none_or(|it| it.faithful);
    let is_faithful = run.fidelity.as_ref().is_none_or(|it| it.faithful);
    wrong = run_wrong(wrong, is_faithful, f.cancelled.is_some());
    let all = if normal.refused == 0 { "Every normal request got its VM." } else { "" };
    let wrong =
        finish(wrong, all, "Nothing: no request failed, and no VM was ended before its time.");
    let mut happened = PageAnswer::new(HAPPENED, happened.join(" ")).verdict(is_good);
    if let Some((normal, spot)) = vcpu_shares(f) {
        let name = format!("hosts' vCPUs in use ({} by normal VMs)", percent(normal));
        let share = normal + spot;
        happened = happened.gauge(name, percent(share), share, TextTone::Plain);
    }
    for (tally, kind) in [(&normal, "normal"), (&spot, "preemptible")] {
        if let Some(share) = refused_share(tally) {
            let tone = if tally.refused > 0 { TextTone::Bad } else { TextTone::Plain };
            let name = format!("{kind} requests that failed (best: 0 %)");
            happened = happened.gauge(name, percent(share), share, tone);
        }
    }
    if let Some(wanted) = f.wanted_share() {
        // A share above 1 is no share: it is how many times what there is was wanted.
        happened = match wanted > 1.0 {
            true => happened.item(
                format!("{wanted:.1} times"),
                "what the hosts can give was requested, in vCPU time until the last request",
            ),
            false => happened.item(
                percent(wanted),
                "of what the hosts can give was requested, in vCPU time until the last request",
            ),
        };
    }
    vec![happened, earned, wrong, certainty(run, None)]
}

/// Lists what became of requests that was not as they were made.
fn requests_wrong(of: &RequestsOutcome, answer: PageAnswer) -> PageAnswer {
    let f = &of.figures;
    let (normal, spot) = (f.market_tally(Market::OnDemand), f.market_tally(Market::Spot));
    let answer = answer
        .count(normal.refused, ["normal request failed", "normal requests failed"])
        .count(spot.refused, ["preemptible request failed", "preemptible requests failed"])
        .count(
            normal.terminated,
            ["normal VM ended by the provider", "normal VMs ended by the provider"],
        )
        .count(spot.terminated, ["preemptible VM terminated", "preemptible VMs terminated"])
        .count(
            f.all().hibernations,
            ["hibernation of a requested VM", "hibernations of requested VMs"],
        );
    match f.work_lost_vcpu_h() {
        lost if lost >= 0.05 => answer.item(
            format!("{} vCPU h", number::grouped(&number::fixed(lost, 1))),
            wording::OF_WORK_LOST_OF_REQUESTS,
        ),
        _ => answer,
    }
}

/// Lists what became of jobs that cost them time.
fn jobs_wrong(jobs: &JobsOutcome<'_>, answer: PageAnswer) -> PageAnswer {
    answer
        .count(jobs.failed, ["job did not end", "jobs did not end"])
        .count(
            jobs.figures.kills,
            [
                "job killed in the background, and begun anew",
                "kills of jobs in the background, which begin anew",
            ],
        )
        .count(
            jobs.rejected,
            [
                "decision of the jobs' scheduler rejected",
                "decisions of the jobs' scheduler rejected",
            ],
        )
}

/// The sentence on how many jobs are done.
fn jobs_done(jobs: &JobsOutcome<'_>) -> String {
    let outcomes = jobs.outcomes();
    let under = jobs.batch.scheduler_name();
    match (outcomes.total, outcomes.is_complete()) {
        (1, true) => format!("The job ended under {under}."),
        (n, true) => format!("All {} jobs ended under {under}.", number::grouped(&n.to_string())),
        (n, false) => format!("{} of {n} jobs ended under {under}.", outcomes.done()),
    }
}

/// The sentence on how many requests failed.
fn requests_done(of: &RequestsOutcome) -> String {
    let f = &of.figures;
    let part = |of: &RequestTally, kind: &str| {
        let all = number::grouped(&of.requests.to_string());
        match of.refused {
            0 => format!("none of {all} {kind} requests failed"),
            n => {
                #[expect(clippy::cast_precision_loss, reason = "a share for people")]
                let share = percent(n as f64 / of.requests.max(1) as f64);
                format!(
                    "{} of {all} {kind} requests failed ({share})",
                    number::grouped(&n.to_string())
                )
            }
        }
    };
    let (normal, spot) = (f.market_tally(Market::OnDemand), f.market_tally(Market::Spot));
    let parts = [(&normal, "normal"), (&spot, "preemptible")];
    let parts = parts.into_iter().filter(|(of, _)| of.requests > 0);
    let parts: Vec<_> = parts.map(|(of, kind)| part(of, kind)).collect();
    let ended = match spot.terminated {
        0 => String::new(),
        1 => "; 1 preemptible VM was ended by the provider before its time".to_owned(),
        n => format!(
            "; {} preemptible VMs were ended by the provider before their time",
            number::grouped(&n.to_string())
        ),
    };
    let mut said = format!("{}{ended}.", parts.join(" and "));
    if parts.is_empty() {
        "There were no requests.".clone_into(&mut said);
    }
    number::capitalise(&said)
}

/// Lists what went wrong with a run as a whole.
fn run_wrong(answer: PageAnswer, is_faithful: bool, was_ended: bool) -> PageAnswer {
    let answer = if is_faithful { answer } else { answer.item("the emulation", "not faithful") };
    if was_ended { answer.item("the run", "ended before its time") } else { answer }
}

/// The answer with its sentence: `none` if nothing went wrong, or `all` if something did.
fn finish(answer: PageAnswer, all: &str, none: &str) -> PageAnswer {
    if answer.items.is_empty() {
        return PageAnswer { sentence: none.to_owned(), tone: TextTone::Good, ..answer };
    }
    PageAnswer { sentence: all.to_owned(), ..answer }
}

/// A number with its noun.
fn counted(n: u64, [one, more]: [&str; 2]) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{} {more}", number::grouped(&n.to_string())),
    }
}
