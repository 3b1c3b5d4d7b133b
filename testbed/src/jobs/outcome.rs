//! What came of the parallel jobs of a run: their part of its summary, and all of it where they
//! are alone.

use std::path::PathBuf;

use dormouse_engine::Work;
use dormouse_workload::Skipped;
use serde_json::{Value, json};

use super::figures::Figures;
use super::history::History;
use super::{gantt, report};
use crate::experiment::Batch;
use crate::fidelity::Consolidation;
use crate::output::{Fidelity, Header, JobsPart, OutputError, Rows, Staging, Style};

/// Which EASY this is, in a line; its definition is the documentation of `dormouse_policies::batch`.
const VARIANT: &str =
    "extra nodes; estimates as given; no kill at the estimate; ties by order of submission";

/// Everything that outputs are made of.
#[derive(Debug)]
pub struct JobsOutcome<'a> {
    /// The first line of the log.
    pub header: &'a Header,
    /// What the jobs are, who schedules them and where.
    pub batch: &'a Batch,
    /// What it came to.
    pub figures: Figures,
    /// Its first jobs.
    pub history: History,
    /// The digest of all decisions.
    pub decisions_sha256: String,
    /// Most jobs in the system at once.
    pub most_in_system: usize,
    /// What was left out of the log it ran.
    pub skipped: Option<Skipped>,
    /// Jobs whose answer was right. Nothing has one in virtual time: there, all that ended.
    pub verified: u64,
    /// Jobs that did not end.
    pub failed: u64,
    /// Why the run was ended before its time, if it was.
    pub cancelled: Option<String>,
    /// Checkpoints of jobs that were kept.
    pub checkpoints: u32,
    /// How often a job began with one.
    pub restores: u32,
    /// How faithful the emulation was; `None` in virtual time.
    pub fidelity: Option<Fidelity>,
    /// What two jobs on one processor cost each other; `None` in virtual time.
    pub consolidation: Option<Consolidation>,
    /// Real seconds it took.
    pub wall_s: f64,
}

impl JobsOutcome<'_> {
    /// Writes everything that was not written on the way, and puts the folder in place.
    ///
    /// # Errors
    ///
    /// The system refuses; nothing is left then.
    pub fn write(&self, staging: Staging) -> Result<PathBuf, OutputError> {
        let gantt = gantt::gantt(self);
        staging.write("gantt.svg", &gantt)?;
        staging.write("report.html", &report::report(self, gantt))?;
        staging.write("summary.json", &format!("{:#}\n", self.summary()))?;
        staging.commit()
    }

    /// Processors of the machine.
    #[must_use]
    pub const fn machine(&self) -> u32 {
        self.batch.workload.processors
    }

    /// All jobs: those that ended, and those that did not.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.figures.jobs() + self.failed
    }

    /// The content of `summary.json`. Cost and deadline are not: parallel jobs have neither.
    #[must_use]
    pub fn summary(&self) -> Value {
        let Self { header, figures, .. } = self;
        let experiment = &header.experiment;
        let mut summary = json!({
            "experiment": experiment.name,
            "scheduler": self.batch.scheduler.name,
            "mode": header.mode,
            "seed": experiment.setup.seed,
            "speedup": header.live_speedup(),
            "makespan_s": figures.makespan().as_secs_f64(),
            "cost_usd": null,
            "deadline_s": null,
            "deadline_met": null,
            "tasks": {
                "total": self.total(),
                "completed": figures.jobs(),
                "verified": self.verified,
                "failed": self.failed,
            },
            "mean_response_s": figures.response.mean(),
            "mean_bounded_slowdown": figures.slowdown.mean(),
            "mean_wait_s": figures.wait.mean(),
            "processors": self.machine(),
            "utilisation": figures.utilisation(self.machine()),
            "counts": {
                "migrations": figures.migrations,
                "kills": figures.kills,
                "swaps": figures.swaps,
                "background_only": figures.background_only,
                "checkpoints": self.checkpoints,
                "restores": self.restores,
            },
            "easy_variant": VARIANT,
        });
        let Some(object) = summary.as_object_mut() else { return summary };
        object.insert("most_jobs_in_system".into(), json!(self.most_in_system));
        if let Some(skipped) = &self.skipped {
            object.insert("left_out".into(), json!(skipped));
        }
        if let Some(fidelity) = &self.fidelity {
            object.insert("fidelity".into(), json!(fidelity));
        }
        if let Some(consolidation) = &self.consolidation {
            object.insert("consolidation".into(), json!(consolidation));
        }
        if let Some(why) = &self.cancelled {
            object.insert("cancelled".into(), json!(why));
        }
        object.insert("decisions_sha256".into(), json!(self.decisions_sha256));
        object.insert("command".into(), json!(header.command));
        object.insert("wall_s".into(), json!(self.wall_s));
        summary
    }

    /// What is said of them where a bag shares their run.
    #[must_use]
    pub fn part(&self) -> JobsPart {
        let Self { figures, batch, skipped, .. } = self;
        let mut summary = self.summary();
        if let Some(own) = summary.as_object_mut() {
            // What the whole run says.
            for key in [
                "experiment",
                "mode",
                "seed",
                "speedup",
                "command",
                "wall_s",
                "fidelity",
                "cancelled",
                "decisions_sha256",
            ] {
                own.remove(key);
            }
            own.insert("work".to_owned(), json!(Work::Jobs.name()));
        }
        let of_log = skipped.filter(|s| s.malformed() + s.never_ran > 0);
        let of_log = of_log.map(|skipped| format!("; of their log: {skipped}"));
        let line = format!(
            "{} under {} on {} processors: {:.1} s to the end of each, slowdown {:.2} (means){}",
            figures.jobs(),
            batch.scheduler.name,
            self.machine(),
            figures.response.mean(),
            figures.slowdown.mean(),
            of_log.unwrap_or_default(),
        );
        let complete = self.failed == 0 && self.verified == figures.jobs();
        JobsPart { summary, gantt: gantt::gantt(self), line, complete }
    }

    /// The table.
    #[must_use]
    pub fn table(&self, style: Style) -> String {
        let Self { header, figures, .. } = self;
        let mut rows = Rows::new(style);
        let mut row = |name: &str, value: String| rows.row(name, &value);
        row("experiment", header.in_words());
        let (verified, total) = (self.verified, self.total());
        let completed = header.mode.completed();
        let jobs = format!("{verified} of {total} {completed}, on {} processors", self.machine());
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
                self.machine()
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
        if let Some(fidelity) = &self.fidelity {
            rows.emulation(fidelity, "");
        }
        rows.into_text()
    }
}
