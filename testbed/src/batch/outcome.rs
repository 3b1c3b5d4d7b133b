//! What came out of a batch run: `summary.json` and the table at its end.

use std::fmt::Write as _;
use std::path::PathBuf;

use dormouse_workload::Skipped;
use serde_json::{Value, json};

use super::figures::Figures;
use super::history::History;
use super::log::BatchHeader;
use super::{gantt, report};
use crate::fidelity::Consolidation;
use crate::output::{Fidelity, Mode, OutputError, Staging, Style};

/// Which EASY this is, in a line; its definition is the documentation of `dormouse_policies::batch`.
const VARIANT: &str =
    "extra nodes; estimates as given; no kill at the estimate; ties by order of submission";

/// Everything that outputs are made of.
#[derive(Debug)]
pub struct BatchOutcome<'a> {
    /// The first line of the log.
    pub header: &'a BatchHeader,
    /// What it came to.
    pub figures: Figures,
    /// Its first jobs.
    pub history: History,
    /// The digest of all decisions.
    pub decisions_sha256: String,
    /// Most jobs in the system at once, where it is known.
    pub most_in_system: Option<usize>,
    /// What was left out of the log it ran.
    pub skipped: Option<Skipped>,
    /// Jobs whose answer was checked: all that ended, in virtual time.
    pub verified: u64,
    /// Jobs that did not end.
    pub failed: u64,
    /// How faithful the emulation was; `None` in virtual time.
    pub fidelity: Option<Fidelity>,
    /// What two jobs on one processor cost each other; `None` in virtual time.
    pub consolidation: Option<Consolidation>,
    /// Real seconds it took.
    pub wall_s: f64,
}

impl<'a> BatchOutcome<'a> {
    /// Of a run in virtual time; what else is known is set afterwards.
    #[must_use]
    pub fn new(
        header: &'a BatchHeader,
        figures: Figures,
        history: History,
        decisions_sha256: String,
    ) -> Self {
        let verified = figures.jobs();
        Self {
            header,
            figures,
            history,
            decisions_sha256,
            most_in_system: None,
            skipped: None,
            verified,
            failed: 0,
            fidelity: None,
            consolidation: None,
            wall_s: 0.0,
        }
    }

    /// Writes everything that was not written on the way, and puts the folder in place.
    ///
    /// # Errors
    ///
    /// The system refuses; nothing is left then.
    pub fn write(&self, staging: Staging) -> Result<PathBuf, OutputError> {
        staging.write("gantt.svg", &gantt::gantt(self))?;
        staging.write("report.html", &report::report(self))?;
        staging.write("summary.json", &format!("{:#}\n", self.summary()))?;
        staging.commit()
    }

    /// Emulated seconds per real second; `None` in virtual time.
    #[must_use]
    pub fn speedup(&self) -> Option<f64> {
        (self.header.mode == Mode::Live).then_some(self.header.experiment.live.speedup)
    }

    /// The content of `summary.json`. Cost and deadline are not: a batch has neither.
    #[must_use]
    pub fn summary(&self) -> Value {
        let Self { header, figures, .. } = self;
        let experiment = &header.experiment;
        let mut summary = json!({
            "experiment": experiment.name,
            "scheduler": experiment.scheduler.name,
            "mode": header.mode,
            "seed": experiment.seed,
            "speedup": self.speedup(),
            "makespan_s": figures.makespan().as_secs_f64(),
            "cost_usd": null,
            "deadline_s": null,
            "deadline_met": null,
            "tasks": {
                "total": figures.jobs() + self.failed,
                "completed": figures.jobs(),
                "verified": self.verified,
                "failed": self.failed,
            },
            "mean_response_s": figures.response.mean(),
            "mean_bounded_slowdown": figures.slowdown.mean(),
            "mean_wait_s": figures.wait.mean(),
            "processors": header.machine,
            "utilisation": figures.utilisation(header.machine),
            "counts": {
                "migrations": figures.migrations,
                "kills": figures.kills,
                "swaps": figures.swaps,
                "background_only": figures.background_only,
            },
            "easy_variant": VARIANT,
        });
        let Some(object) = summary.as_object_mut() else { return summary };
        if let Some(most) = self.most_in_system {
            object.insert("most_jobs_in_system".into(), json!(most));
        }
        if let Some(skipped) = &self.skipped {
            object.insert("left_out".into(), json!(skipped));
        }
        if let Some(fidelity) = &self.fidelity {
            object.insert("fidelity".into(), json!(fidelity));
        }
        if let Some(consolidation) = &self.consolidation {
            object.insert("consolidation".into(), json!(consolidation));
        }
        object.insert("decisions_sha256".into(), json!(self.decisions_sha256));
        object.insert("command".into(), json!(header.command));
        object.insert("wall_s".into(), json!(self.wall_s));
        summary
    }

    /// The table.
    #[must_use]
    pub fn table(&self, style: Style) -> String {
        let Self { header, figures, .. } = self;
        let experiment = &header.experiment;
        let mut text = String::new();
        let mut row = |name: &str, value: String| {
            let _ = writeln!(text, "  {} {value}", style.dim(&format!("{name:<13}")));
        };
        let speed = self.speedup().map(|x| format!(", {x}x")).unwrap_or_default();
        let name = &experiment.name;
        row(
            "experiment",
            format!(
                "{name} under {}, {}{speed}, seed {}",
                experiment.scheduler.name, header.mode, experiment.seed
            ),
        );
        let (done, total) = (figures.jobs(), figures.jobs() + self.failed);
        let verified = self.verified;
        let jobs = format!(
            "{done} of {total} completed, {verified} verified, on {} processors",
            header.machine
        );
        row("jobs", style.verdict(verified == total, &jobs));
        row("response", format!("{:.1} s on average", figures.response.mean()));
        row("slowdown", format!("{:.2} on average (bounded)", figures.slowdown.mean()));
        row("wait", format!("{:.1} s on average", figures.wait.mean()));
        row(
            "makespan",
            format!(
                "{:.0} s, {:.1} processors' worth of work on {}",
                figures.makespan().as_secs_f64(),
                figures.work_rate(),
                header.machine
            ),
        );
        let Figures { swaps, kills, migrations, background_only, .. } = figures;
        row(
            "promotions",
            format!(
                "{swaps} swaps, {kills} kills, {migrations} migrations; {background_only} jobs \
                 ended in the background"
            ),
        );
        if let Some(skipped) = self.skipped.filter(|s| s.malformed() + s.never_ran > 0) {
            row("log", skipped.to_string());
        }
        if let Some(consolidation) = &self.consolidation {
            row("sharing", consolidation.line());
        }
        if let Some(Fidelity { faithful, worst_share_error, notes, .. }) = &self.fidelity {
            let word = if *faithful { "faithful" } else { "NOT FAITHFUL" };
            let worst = format!("worst share error {:.1} %", worst_share_error * 100.0);
            row("emulation", format!("{}, {worst}", style.verdict(*faithful, word)));
            for note in notes {
                row("", note.clone());
            }
        }
        text.trim_end().to_owned()
    }
}
