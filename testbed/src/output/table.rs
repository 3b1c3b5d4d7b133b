//! The table at the end of a run, for a person.

use std::fmt::Write as _;

use super::{Fidelity, Outcome};

/// Whether and how to colour.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    colour: bool,
}

impl Style {
    /// No colour.
    pub const PLAIN: Self = Self { colour: false };

    /// Colour on a terminal, unless `NO_COLOR` is set or the terminal is dumb.
    #[must_use]
    pub fn of_stdout() -> Self {
        use std::io::IsTerminal as _;
        let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        Self { colour: std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb }
    }

    /// Good or bad news.
    pub(crate) fn verdict(self, good: bool, text: &str) -> String {
        match (self.colour, good) {
            (false, _) => text.to_owned(),
            (true, true) => format!("\x1b[1;32m{text}\x1b[0m"),
            (true, false) => format!("\x1b[1;31m{text}\x1b[0m"),
        }
    }

    /// What is not the point.
    pub(crate) fn dim(self, text: &str) -> String {
        if self.colour { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() }
    }
}

impl Outcome<'_> {
    /// The table.
    #[must_use]
    pub fn table(&self, style: Style) -> String {
        let Self { header, record, .. } = self;
        let experiment = &header.experiment;
        let mut text = String::new();
        let mut row = |name: &str, value: String| {
            let _ = writeln!(text, "  {} {value}", style.dim(&format!("{name:<13}")));
        };
        let speed = self.speedup().map(|x| format!(", {x}x")).unwrap_or_default();
        row(
            "experiment",
            format!(
                "{} under {}, {}{speed}, seed {}",
                experiment.name, experiment.scheduler.name, header.mode, experiment.setup.seed
            ),
        );
        let met = if self.deadline_met() { "deadline met" } else { "DEADLINE MISSED" };
        let makespan = record.makespan().map_or_else(
            || "not all tasks finished".to_owned(),
            |end| format!("{:.1} s of {:.0} s", end.as_secs_f64(), self.deadline().as_secs_f64()),
        );
        row("makespan", format!("{makespan}  {}", style.verdict(self.deadline_met(), met)));
        let planned = self.plan.map(|plan| {
            format!("(planned {:.1} s, ${:.4})", plan.makespan.as_secs_f64(), plan.cost.as_usd())
        });
        row(
            "cost",
            format!("${:.4}  {}", record.cost().as_usd(), style.dim(&planned.unwrap_or_default())),
        );
        let (finished, total) = (record.finished(), record.tasks.len());
        let tasks = format!("{finished} of {total} completed and verified");
        row("tasks", style.verdict(finished == total, &tasks));
        if let Some(jobs) = self.jobs {
            row("jobs", style.verdict(jobs.complete, &jobs.line));
        }
        let c = &record.counts;
        row(
            "machines",
            format!(
                "{} launched, {} hibernated, {} resumed, {} preempted",
                c.vms_launched, c.hibernations, c.resumes, c.preemptions
            ),
        );
        row(
            "work",
            format!(
                "{} checkpoints, {} restores, {} migrations, {} steals, {:.0} s lost",
                c.checkpoints,
                c.restores,
                c.migrations,
                c.steals,
                self.work_lost().as_secs_f64()
            ),
        );
        for (count, what) in [
            (c.hosts_lost, "hosts lost"),
            (c.attempts_failed, "attempts failed"),
            (c.launches_refused, "launches refused"),
            (c.rejected, "decisions rejected (a bug of the policy)"),
        ] {
            if count > 0 {
                row("", style.verdict(false, &format!("{count} {what}")));
            }
        }
        if let Some(Fidelity { faithful, worst_share_error, notes, tasks, .. }) = self.fidelity {
            let word = if *faithful { "faithful" } else { "NOT FAITHFUL" };
            let worst = format!(
                "tasks {:+.1} % on average, {:+.1} % at worst; worst share error {:.1} %",
                tasks.mean_task_error * 100.0,
                tasks.worst_task_error * 100.0,
                worst_share_error * 100.0
            );
            row("emulation", format!("{}, {worst}", style.verdict(*faithful, word)));
            for note in notes {
                row("", note.clone());
            }
        }
        text.trim_end().to_owned()
    }
}
