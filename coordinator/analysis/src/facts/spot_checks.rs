//! Evidence on the hosts of a run: the jails that they report, and answers that other hosts
//! computed again.

use std::collections::{BTreeMap, BTreeSet};

use super::unit_cost::UnitCosts;
use dormouse_model::{CheckFinding, Effect, Event, Report, Step};
use dormouse_units::{HostId, Ppm, TaskId};

/// A task that another host computed again, in full or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotCheck {
    /// Task whose answer was checked.
    pub task: TaskId,
    /// Host that had reported the answer.
    pub of: HostId,
    /// Host that was commanded to compute the answer again.
    pub by: HostId,
    /// Whether the whole task was computed again.
    pub whole: bool,
    /// Outcome of the spot check.
    pub finding: CheckFinding,
}

/// Evidence on the hosts of a run, beside their measurements. Call [`Self::see`] for each step in
/// order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostEvidence {
    /// Hosts whose tasks are not fully jailed, with the missing parts, as the hosts report them.
    pub unjailed: BTreeMap<HostId, String>,
    /// Tasks that were computed again on another host to check their results, in the order of time.
    pub checks: Vec<SpotCheck>,
    /// CPU time of the spot checks, real microseconds.
    pub checks_us: u64,
    /// CPU time of all attempts, real microseconds.
    pub attempts_us: u64,
    /// Number of tasks that finished with a verified answer.
    pub answers: u64,
    /// Name of each host, and whether the host is still connected.
    names: BTreeMap<HostId, (String, bool)>,
    /// Machine name that each host reports.
    machines: BTreeMap<HostId, String>,
    /// CPU time per unit of work on each host.
    costs: UnitCosts,
}

impl HostEvidence {
    /// Adds the evidence in the next step of the run.
    pub fn see(&mut self, step: &Step) {
        match &step.event {
            Event::HostJoined { host, name, .. } => {
                // Only the worker's name counts: each of its lives has a suffix of its own.
                let name = name.rsplit_once('@').map_or(name.as_str(), |(name, _)| name);
                self.names.insert(*host, (name.to_owned(), true));
            }
            Event::HostLost { host, .. } => {
                if let Some((_, is_there)) = self.names.get_mut(host) {
                    *is_there = false;
                }
            }
            Event::JailLacking { host, lacks } => {
                self.unjailed.insert(*host, lacks.clone());
            }
            Event::SpotCheck { task, of, by, whole, real_cpu_us, finding } => {
                let (task, of, by, whole, finding) = (*task, *of, *by, *whole, finding.clone());
                self.checks_us = self.checks_us.saturating_add(*real_cpu_us);
                self.checks.push(SpotCheck { task, of, by, whole, finding });
            }
            Event::HostLoad { host, load, .. } => {
                self.machines.insert(*host, load.machine.clone());
            }
            Event::Machine { host, report, .. } if !step.effects.contains(&Effect::Stale) => {
                self.see_end(report);
                self.costs.see(*host, report);
            }
            _ => {}
        }
    }

    fn see_end(&mut self, report: &Report) {
        let (Report::TaskFinished { real_cpu_us, .. }
        | Report::TaskFailed { real_cpu_us, .. }
        | Report::TaskStopped { real_cpu_us, .. }) = report
        else {
            return;
        };
        self.attempts_us = self.attempts_us.saturating_add(*real_cpu_us);
        self.answers += u64::from(matches!(report, Report::TaskFinished { verified: true, .. }));
    }

    fn host_in_words(&self, host: HostId) -> String {
        match self.names.get(&host) {
            Some((name, _)) => format!("{host} ({name})"),
            None => host.to_string(),
        }
    }

    /// One sentence for each answer that another host did not confirm.
    #[must_use]
    pub fn differences(&self) -> Vec<String> {
        let differing = self.checks.iter().filter_map(|check| match &check.finding {
            CheckFinding::Differs { why } => Some((check, why)),
            _ => None,
        });
        let say = |(check, why): (&SpotCheck, &String)| {
            let SpotCheck { task, of, by, .. } = check;
            let (of, by) = (self.host_in_words(*of), self.host_in_words(*by));
            format!(
                "the answer of {task} that {of} reported is not what {by} computed again: {why}"
            )
        };
        differing.map(say).collect()
    }

    /// Sentences on the evidence behind the run's verdict. `most` is the part of the CPU time
    /// allowed for spot checks (`live.spot-checks`); `None` if the coordinator knew no spot checks.
    #[must_use]
    pub fn sentences(&self, most: Option<Ppm>) -> Vec<String> {
        let jails = self.unjailed.iter().map(|(host, lacks)| {
            let name = self.host_in_words(*host);
            format!("{name} ran its tasks without {lacks}: what they did to it is not known")
        });
        let costs = self.costs.findings(|host| self.host_in_words(host));
        jails.chain(costs).chain(most.map(|most| self.on_checks(most))).collect()
    }

    fn on_checks(&self, most: Ppm) -> String {
        let nobody = "not checked by another host";
        if most == Ppm::ZERO {
            return format!("{nobody}: live.spot-checks is 0");
        }
        if self.checks.is_empty() {
            let there = self.names.values().filter(|(_, is_there)| *is_there).count();
            return match there {
                0 | 1 => format!("{nobody}: there was none"),
                _ => format!(
                    "{nobody}: no answer could be (a program of your own that is not deterministic, or would take \
                     more than live.spot-checks; a job of too many processes and phases; a kernel without work)"
                ),
            };
        }
        let count = |is: fn(&CheckFinding) -> bool| {
            self.checks.iter().filter(|check| is(&check.finding)).count()
        };
        let differ = count(|it| matches!(it, CheckFinding::Differs { .. }));
        let unanswered = count(|it| matches!(it, CheckFinding::Unanswered { .. }));
        let computed = self.checks.len() - unanswered;
        let is_whole = |check: &&SpotCheck| {
            check.whole && !matches!(check.finding, CheckFinding::Unanswered { .. })
        };
        let whole = self.checks.iter().filter(is_whole);
        let how = match whole.count() {
            0 => "in part on another host".to_owned(),
            all if all == computed => "in full on another host".to_owned(),
            some => format!("on another host, {some} in full and the others in part"),
        };
        let unchecked = match self.answers.saturating_sub(self.checks.len() as u64) {
            0 => String::new(),
            n => format!("; {n} were not checked by another host"),
        };
        let came = match differ {
            0 if computed == 0 => String::new(),
            0 => ", all as reported".to_owned(),
            n => format!(", {n} not as reported"),
        };
        let silent = match unanswered {
            0 => String::new(),
            n => format!("; {n} more were not answered"),
        };
        #[expect(clippy::cast_precision_loss, reason = "a part for people")]
        let part = self.checks_us as f64 / self.attempts_us.max(1) as f64;
        format!(
            "{computed} of {} tasks were computed again {how} ({:.1} % of the CPU time){came}{silent}{unchecked}{}",
            self.answers,
            part * 100.0,
            self.on_witnesses()
        )
    }

    /// Remarks on the independence of the checks: hosts on one machine, or two hosts that only
    /// checked each other.
    fn on_witnesses(&self) -> String {
        let is_answered =
            |check: &&SpotCheck| !matches!(check.finding, CheckFinding::Unanswered { .. });
        let answered: Vec<&SpotCheck> = self.checks.iter().filter(is_answered).collect();
        let machine = |host| self.machines.get(&host).filter(|machine| !machine.is_empty());
        let near = answered.iter().filter(|check| {
            machine(check.of).is_some_and(|machine_of| machine(check.by) == Some(machine_of))
        });
        let mut said = match near.count() {
            0 => String::new(),
            n => format!("; {n} of these on the same machine"),
        };
        let hosts: BTreeSet<HostId> =
            answered.iter().flat_map(|check| [check.of, check.by]).collect();
        if let [one, other] = Vec::from_iter(hosts)[..] {
            let (one, other) = (self.host_in_words(one), self.host_in_words(other));
            said += &format!(
                "; {one} and {other} have only each other as witness: what both lie about is not found"
            );
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: HostId = HostId::new(1);
    const TWO: HostId = HostId::new(2);

    fn hosts(there: usize) -> HostEvidence {
        let names = [(ONE, "a"), (TWO, "b")].into_iter().take(there);
        let names = names.map(|(host, name)| (host, (name.to_owned(), true))).collect();
        HostEvidence { names, answers: 20, attempts_us: 1_000_000, ..HostEvidence::default() }
    }

    fn check(finding: CheckFinding) -> SpotCheck {
        SpotCheck { task: TaskId::new(7), of: ONE, by: TWO, whole: false, finding }
    }

    #[test]
    fn it_is_said_what_was_checked_and_that_nothing_was() {
        let three = Some(Ppm::new(30_000));
        assert_eq!(hosts(2).sentences(None), [""; 0], "an older coordinator's");
        let said = |of: &HostEvidence, most| of.sentences(most).join("|");
        assert_eq!(said(&hosts(1), three), "not checked by another host: there was none");
        let none = said(&hosts(2), three);
        assert!(none.starts_with("not checked by another host: no answer could be ("), "{none}");
        let off = said(&hosts(2), Some(Ppm::ZERO));
        assert_eq!(off, "not checked by another host: live.spot-checks is 0");
        let mut of = hosts(2);
        of.checks = vec![check(CheckFinding::Equal), check(CheckFinding::Equal)];
        of.checks_us = 12_000;
        let all =
            "2 of 20 tasks were computed again in part on another host (1.2 % of the CPU time)";
        let pair = "host1 (a) and host2 (b) have only each other as witness: what both lie about is not found";
        let rest = format!("18 were not checked by another host; {pair}");
        assert_eq!(said(&of, three), format!("{all}, all as reported; {rest}"));
        assert_eq!(of.differences(), [""; 0]);
        of.checks[1].whole = true;
        let both = "again on another host, 1 in full and the others in part (1.2 %";
        assert!(said(&of, three).contains(both), "{}", said(&of, three));
        of.checks[0].whole = true;
        assert!(said(&of, three).contains("again in full on another host (1.2 %"));
        of.checks.iter_mut().for_each(|check| check.whole = false);
        of.checks[1] = check(CheckFinding::Differs { why: "x".to_owned() });
        of.checks.push(check(CheckFinding::Unanswered { why: "y".to_owned() }));
        let said_all = format!(
            "{all}, 1 not as reported; 1 more were not answered; 17 were not checked by another host; {pair}"
        );
        assert_eq!(said(&of, three), said_all);
        // Three of them, and two on one machine.
        of.checks[0].by = HostId::new(3);
        let machines = [(ONE, "m"), (TWO, "m"), (HostId::new(3), "n")];
        of.machines = machines.map(|(host, name)| (host, name.to_owned())).into();
        let three_hosts = said(&of, three);
        assert!(!three_hosts.contains("witness"), "{three_hosts}");
        assert!(three_hosts.contains("; 1 of these on the same machine"), "{three_hosts}");
        let differs =
            "the answer of task7 that host1 (a) reported is not what host2 (b) computed again: x";
        assert_eq!(of.differences(), [differs]);
        of.unjailed.insert(ONE, "a jail".to_owned());
        let jail = &of.sentences(three)[0];
        assert!(jail.starts_with("host1 (a) ran its tasks without a jail"), "{jail}");
    }
}
