//! Evidence on the hosts of a run: the jails that they say they have, and the answers that other hosts computed again.

use std::collections::BTreeMap;

use dormouse_model::{CheckFinding, Effect, Event, Report, Step};
use dormouse_units::{HostId, Ppm, TaskId};

/// A part of a task that was computed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotCheck {
    /// The task whose answer was looked at.
    pub task: TaskId,
    /// The host that had reported its answer.
    pub of: HostId,
    /// The host that was to compute it again.
    pub by: HostId,
    /// The outcome of the check.
    pub finding: CheckFinding,
}

/// Evidence on the hosts of a run, beside what they measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostEvidence {
    /// Hosts whose tasks are not in a whole jail, and what of it is lacking, as they say.
    pub unjailed: BTreeMap<HostId, String>,
    /// The spot checks, in order.
    pub checks: Vec<SpotCheck>,
    /// CPU time that they took, real microseconds.
    pub checks_us: u64,
    /// CPU time of all attempts, real microseconds.
    pub attempts_us: u64,
    /// Number of tasks that finished with an answer that counts.
    pub answers: u64,
    /// The names of the hosts, and whether they are there.
    names: BTreeMap<HostId, (String, bool)>,
}

impl HostEvidence {
    /// Takes in a step.
    pub fn see(&mut self, step: &Step) {
        match &step.event {
            Event::HostJoined { host, name, .. } => {
                // The worker's name alone: its lives have others.
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
            Event::SpotCheck { task, of, by, real_cpu_us, finding } => {
                let (task, of, by, finding) = (*task, *of, *by, finding.clone());
                self.checks_us = self.checks_us.saturating_add(*real_cpu_us);
                self.checks.push(SpotCheck { task, of, by, finding });
            }
            Event::Machine { report, .. } if !step.effects.contains(&Effect::Stale) => {
                self.see_end(report);
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

    fn name(&self, host: HostId) -> String {
        match self.names.get(&host) {
            Some((name, _)) => format!("{host} ({name})"),
            None => host.to_string(),
        }
    }

    /// A sentence for each answer that another host did not confirm.
    #[must_use]
    pub fn differences(&self) -> Vec<String> {
        let differing = self.checks.iter().filter_map(|check| match &check.finding {
            CheckFinding::Differs { why } => Some((check, why)),
            _ => None,
        });
        let say = |(check, why): (&SpotCheck, &String)| {
            let SpotCheck { task, of, by, .. } = check;
            let (of, by) = (self.name(*of), self.name(*by));
            format!(
                "the answer of {task} that {of} reported is not what {by} computed again: {why}"
            )
        };
        differing.map(say).collect()
    }

    /// Sentences on what the verdict of a run rests on, of whose CPU time at most this part was to be spent on spot checks;
    /// `None`: its coordinator knew of none.
    #[must_use]
    pub fn sentences(&self, most: Option<Ppm>) -> Vec<String> {
        let jails = self.unjailed.iter().map(|(host, lacks)| {
            let name = self.name(*host);
            format!("{name} ran its tasks without {lacks}: what they did to it is not known")
        });
        jails.chain(most.map(|most| self.on_checks(most))).collect()
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
                _ => format!("{nobody}: no answer could be"),
            };
        }
        let count = |is: fn(&CheckFinding) -> bool| {
            self.checks.iter().filter(|check| is(&check.finding)).count()
        };
        let differ = count(|it| matches!(it, CheckFinding::Differs { .. }));
        let unanswered = count(|it| matches!(it, CheckFinding::Unanswered { .. }));
        let computed = self.checks.len() - unanswered;
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
            "{computed} of {} tasks were computed again in part on another host ({:.1} % of the CPU time)\
             {came}{silent}",
            self.answers,
            part * 100.0
        )
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
        SpotCheck { task: TaskId::new(7), of: ONE, by: TWO, finding }
    }

    #[test]
    fn it_is_said_what_was_checked_and_that_nothing_was() {
        let three = Some(Ppm::new(30_000));
        assert_eq!(hosts(2).sentences(None), [""; 0], "an older coordinator's");
        let said = |of: &HostEvidence, most| of.sentences(most).join("|");
        assert_eq!(said(&hosts(1), three), "not checked by another host: there was none");
        assert_eq!(said(&hosts(2), three), "not checked by another host: no answer could be");
        let off = said(&hosts(2), Some(Ppm::ZERO));
        assert_eq!(off, "not checked by another host: live.spot-checks is 0");
        let mut of = hosts(2);
        of.checks = vec![check(CheckFinding::Equal), check(CheckFinding::Equal)];
        of.checks_us = 12_000;
        let all =
            "2 of 20 tasks were computed again in part on another host (1.2 % of the CPU time)";
        assert_eq!(said(&of, three), format!("{all}, all as reported"));
        assert_eq!(of.differences(), [""; 0]);
        of.checks[1] = check(CheckFinding::Differs { why: "x".to_owned() });
        of.checks.push(check(CheckFinding::Unanswered { why: "y".to_owned() }));
        assert_eq!(said(&of, three), format!("{all}, 1 not as reported; 1 more were not answered"));
        let differs =
            "the answer of task7 that host1 (a) reported is not what host2 (b) computed again: x";
        assert_eq!(of.differences(), [differs]);
        of.unjailed.insert(ONE, "a jail".to_owned());
        let jail = &of.sentences(three)[0];
        assert!(jail.starts_with("host1 (a) ran its tasks without a jail"), "{jail}");
    }
}
