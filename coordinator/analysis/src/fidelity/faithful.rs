//! Findings that make a live run unfaithful, apart from the VMs' shares of processors; a large
//! distance from the run's virtual twin is such a finding.

use std::time::Duration;

use dormouse_engine::RunCounts;
use dormouse_model::Setup;
use dormouse_units::{HostId, Span};
use serde::{Deserialize, Serialize};

use super::AllowedErrors;
use super::figures::{percent, total_us};
use crate::facts::VmKill;
use crate::{LiveFacts, RunRecord};

/// An injected event that takes effect later than this, in real time, is noted.
const LATE: Duration = Duration::from_millis(500);

/// One sentence for each finding in a run of a bag: troubles of any run, late decisions,
/// interruptions and VMs.
#[must_use]
pub fn notes(
    setup: &Setup,
    allowed: &AllowedErrors,
    record: &RunRecord,
    facts: &LiveFacts,
) -> Vec<String> {
    let mut notes = troubles(record.cancelled.as_deref(), &record.counts, facts);
    late_decisions(setup, allowed, facts, &mut notes);
    late_interruptions(facts, &mut notes);
    late_kills(allowed, facts, &mut notes);
    if facts.made_late > 0 && setup.catalogue.boot > Span::ZERO {
        let n = facts.made_late;
        notes.push(format!("{n} VMs were made by their hosts later than they should have booted"));
    }
    notes
}

/// One sentence for each trouble that runs of any kind may have.
#[must_use]
pub fn troubles(cancelled: Option<&str>, counts: &RunCounts, facts: &LiveFacts) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(why) = cancelled {
        notes.push(format!("the run was ended before its time: {why}"));
    }
    notes.extend(note_on_outages(facts));
    notes.extend(notes_on_hosts(facts));
    notes.extend(facts.evidence.differences());
    if let Some(why) = &facts.last_refusal {
        notes.push(format!("{} launches were refused, the last: {why}", facts.refusals));
    }
    if facts.vms_lost > 0 {
        let n = facts.vms_lost;
        notes.push(format!("{n} VMs were lost with their host, or could not be made or kept"));
    }
    if counts.checkpoints_failed > 0 {
        notes.push(format!("{} checkpoints failed", counts.checkpoints_failed));
    }
    if let Some(why) = &facts.last_failure {
        notes.push(format!("{} attempts failed, the last: {why}", counts.attempts_failed));
    }
    notes
}

/// Sentences on hosts with impossible measurements, and on hosts that never reported the load of other programs: an
/// unknown load does not count as zero.
fn notes_on_hosts(facts: &LiveFacts) -> Vec<String> {
    let disbelieved = facts.disbelieved.iter();
    let mut notes: Vec<_> =
        disbelieved.map(|(host, why)| format!("{host} is not believed: {why}")).collect();
    let is_silent =
        |host: &HostId| !facts.loads.contains_key(host) && !facts.disbelieved.contains_key(host);
    let hosts = facts.hosts.iter().filter(|(_, host)| host.lost.is_none());
    let silent: Vec<_> =
        hosts.filter(|(host, _)| is_silent(host)).map(|(_, it)| it.name.as_str()).collect();
    if !silent.is_empty() {
        let names = silent.join(", ");
        notes.push(format!("what else their hosts did, these workers did not say: {names}"));
    }
    notes
}

/// A sentence on outages of the coordinator, in which nothing was decided and before which measurements are unknown; `None` if
/// there were none.
fn note_on_outages(facts: &LiveFacts) -> Option<String> {
    let n = facts.outages.len();
    let away_us: u64 = total_us(facts.outages.iter().map(|it| it.away_real_us));
    let passed = facts.outages.iter().fold(Span::ZERO, |sum, it| sum + it.outage);
    let times = if n == 1 { "once".to_owned() } else { format!("{n} times") };
    (n > 0).then(|| {
        format!(
            "the run was resumed {times}: its coordinator was away for up to {:.1} s, in which \
             {:.0} s passed for its VMs without a decision; how late its clock and its journal were \
             before is not known",
            away_us as f64 / 1e6,
            passed.as_secs_f64()
        )
    })
}

/// Adds a note if the clock or the journal was late by more than `worst_error` times the shortest task's run time, or by
/// [`LATE`] in a run without tasks: decisions were then late.
fn late_decisions(
    setup: &Setup,
    allowed: &AllowedErrors,
    facts: &LiveFacts,
    notes: &mut Vec<String>,
) {
    let tasks = setup.bag.tasks.iter().flat_map(|task| task.runtime.values());
    let Some(shortest) = tasks.min().map(|span| allowed.speedup.to_real(*span)) else {
        return late_without_tasks(facts, notes);
    };
    let bearable = shortest.as_secs_f64() * allowed.worst_error * 1e6;
    for (what, late_us) in
        [("the clock rang", facts.clock_late_us), ("the journal was", facts.journal_late_us)]
    {
        if late_us as f64 > bearable {
            notes.push(format!(
                "{what} up to {} ms late, where {:.0} ms are {:.0} % of the shortest task",
                late_us / 1000,
                bearable / 1000.0,
                allowed.worst_error * 100.0
            ));
        }
    }
}

/// Adds a note if the clock or the journal of a run without tasks was late by more than [`LATE`].
fn late_without_tasks(facts: &LiveFacts, notes: &mut Vec<String>) {
    let late =
        [("the clock rang", facts.clock_late_us), ("the journal was", facts.journal_late_us)];
    for (what, late_us) in late {
        if u128::from(late_us) > LATE.as_micros() {
            notes.push(format!("{what} up to {} ms late", late_us / 1000));
        }
    }
}

fn late_interruptions(facts: &LiveFacts, notes: &mut Vec<String>) {
    let took = facts.freezes.iter().chain(&facts.thaws).map(|l| Duration::from_micros(l.real_us));
    if let Some(worst) = took.max().filter(|&worst| worst > LATE) {
        notes.push(format!("freezing or thawing a VM took up to {} ms", worst.as_millis()));
    }
}

/// Notes VMs that ran beyond their notice, on processors that other VMs already had.
fn late_kills(allowed: &AllowedErrors, facts: &LiveFacts, notes: &mut Vec<String>) {
    let late = |kill: &VmKill| kill.gone.map(|gone| allowed.speedup.to_real(gone.since(kill.due)));
    let worst = facts.kills.iter().filter_map(late).max().unwrap_or_default();
    if worst > LATE {
        let ms = worst.as_secs_f64() * 1e3;
        notes.push(format!("a VM that was taken away was there for another {ms:.0} ms"));
    }
}

/// Factor by which the differences between a faithful run and its twin may exceed the errors that
/// the run's tasks and jobs may have. The twin has no delays from process starts, CRIU or late
/// messages; quiet runs are within 5 % for each task and within 0.5 % on average.
const TIMES: f64 = 2.0;

/// Distance of a live run from its twin. Differences are parts of the twin's value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwinDistance {
    /// Whether the run and its twin ever decided differently: from then on they can't be compared.
    pub diverged: bool,
    /// Difference of the run's makespan from its twin's, as a fraction of the twin's; `None` if the run or its twin left work
    /// undone.
    pub makespan: Option<f64>,
    /// Difference of the run's cost from its twin's, as a fraction of the twin's; `None` for parallel jobs.
    pub cost: Option<f64>,
    /// Mean difference between the live and the simulated times of tasks and jobs that nothing interrupted, as a fraction of
    /// the simulated times; `None` if there are none.
    pub undisturbed_mean: Option<f64>,
    /// The difference furthest from zero between the live and the simulated time of a task or job that nothing interrupted, as
    /// a fraction of the simulated time; `None` if there are none.
    pub undisturbed_worst: Option<f64>,
}

impl TwinDistance {
    /// One sentence for each difference that is too large for a faithful run.
    pub(super) fn notes(&self, allowed: &AllowedErrors) -> Vec<String> {
        let Self { diverged, makespan, cost, undisturbed_mean, undisturbed_worst } = *self;
        let (worst, mean) = (allowed.worst_error * TIMES, allowed.mean_error * TIMES);
        let whole = |difference: Option<f64>| difference.filter(|_| !diverged);
        let all = [
            ("the makespan", whole(makespan), worst),
            ("the cost", whole(cost), worst),
            ("the mean time of undisturbed tasks", undisturbed_mean, mean),
            ("the time of an undisturbed task", undisturbed_worst, worst),
        ];
        let far = all.into_iter().filter_map(|(what, difference, most)| {
            Some((what, difference.filter(|is| is.abs() > most)?, most))
        });
        let sentence = |(what, is, most): (&str, f64, f64)| {
            format!(
                "{what} is {} {} than in the twin in virtual time; at most {} is allowed",
                percent(is.abs()),
                if is > 0.0 { "more" } else { "less" },
                percent(most)
            )
        };
        far.map(sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Speedup, Time, VmId};

    use super::*;

    #[test]
    fn outages_of_a_hostile_log_are_summed_up() {
        let outage = |away_real_us| crate::CoordinatorOutage {
            at: Time::ZERO,
            outage: Span::from_micros(u64::MAX),
            away_real_us,
        };
        let facts =
            LiveFacts { outages: vec![outage(u64::MAX), outage(7)], ..LiveFacts::default() };
        let said = note_on_outages(&facts).expect("it was away");
        assert!(said.contains("resumed 2 times"), "{said}");
    }

    #[test]
    fn a_vm_that_stays_beyond_its_notice_is_a_note() {
        let allowed = AllowedErrors {
            worst_error: 0.05,
            mean_error: 0.005,
            speedup: Speedup::times_real(20),
        };
        let said = |gone_s: Option<u64>| {
            let (due, gone) = (Time::from_secs(100), gone_s.map(Time::from_secs));
            let kills = vec![VmKill { vm: VmId::new(3), due, gone }];
            let mut notes = Vec::new();
            late_kills(&allowed, &LiveFacts { kills, ..LiveFacts::default() }, &mut notes);
            notes
        };
        assert_eq!(said(None), Vec::<String>::new(), "its host was lost");
        assert_eq!(said(Some(110)), Vec::<String>::new(), "half a second");
        assert_eq!(said(Some(112)), ["a VM that was taken away was there for another 600 ms"]);
    }
}

#[cfg(test)]
mod twin_distance_tests {
    use dormouse_units::Speedup;

    use super::*;

    #[test]
    fn a_run_that_is_far_from_its_twin_is_said_unless_it_decided_otherwise() {
        let allowed = AllowedErrors {
            worst_error: 0.05,
            mean_error: 0.005,
            speedup: Speedup::times_real(30),
        };
        let near = TwinDistance {
            diverged: false,
            makespan: Some(0.09),
            cost: None,
            undisturbed_mean: Some(-0.009),
            undisturbed_worst: Some(0.08),
        };
        assert_eq!(near.notes(&allowed), Vec::<String>::new());
        let far = TwinDistance { makespan: Some(-0.4), ..near };
        let said = far.notes(&allowed);
        assert!(said.len() == 1 && said[0].contains("the makespan is 40.0 % less"), "{said:?}");
        assert_eq!(TwinDistance { diverged: true, ..far }.notes(&allowed), Vec::<String>::new());
        let tasks = TwinDistance { undisturbed_worst: Some(-0.3), diverged: true, ..near };
        assert_eq!(tasks.notes(&allowed).len(), 1);
    }
}
