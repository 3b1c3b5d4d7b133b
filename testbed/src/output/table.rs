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

/// A table of names and values, a line each.
#[derive(Debug)]
pub(crate) struct Rows {
    style: Style,
    text: String,
}

impl Rows {
    pub(crate) const fn new(style: Style) -> Self {
        Self { style, text: String::new() }
    }

    /// A value, or a further line of the one before where it has no name.
    pub(crate) fn row(&mut self, name: &str, value: &str) {
        let name = self.style.dim(&format!("{name:<13}"));
        // Writing to a String can't fail.
        let _ = writeln!(self.text, "  {name} {value}");
    }

    /// How faithful a live run was: the verdict, the errors in words, and what is to be noted.
    pub(crate) fn emulation(&mut self, fidelity: &Fidelity, errors: &str) {
        let word = if fidelity.faithful { "faithful" } else { "NOT FAITHFUL" };
        let verdict = self.style.verdict(fidelity.faithful, word);
        let share = fidelity.worst_share_error * 100.0;
        self.row("emulation", &format!("{verdict}, {errors}worst share error {share:.1} %"));
        for note in &fidelity.notes {
            self.row("", note);
        }
    }

    /// The whole text, without its last line break.
    pub(crate) fn into_text(self) -> String {
        self.text.trim_end().to_owned()
    }
}

impl Outcome<'_> {
    /// The table.
    #[must_use]
    pub fn table(&self, style: Style) -> String {
        let Self { header, record, .. } = self;
        let mut rows = Rows::new(style);
        let mut row = |name: &str, value: String| rows.row(name, &value);
        row("experiment", header.in_words());
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
        let tasks = format!("{finished} of {total} {}", self.header.mode.completed());
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
        if let Some(fidelity) = self.fidelity {
            let errors = format!(
                "tasks {:+.1} % on average, {:+.1} % at worst; ",
                fidelity.tasks.mean_task_error * 100.0,
                fidelity.tasks.worst_task_error * 100.0
            );
            rows.emulation(fidelity, &errors);
        }
        rows.into_text()
    }
}
