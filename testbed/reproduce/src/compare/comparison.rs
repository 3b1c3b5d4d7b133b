//! A comparison of schedulers, or of ways to save work, on the same experiments with the same
//! seeds.

use std::collections::BTreeSet;

use dormouse_analysis::RunSample;
use dormouse_experiment::{Experiment, label_of, names_a_program};
use dormouse_model::CheckpointConfig;
use dormouse_view::{TableColumn, TypedTable};

use crate::measures::ShownFigures;
use crate::runs::{self, RunRow};
use crate::sweep::{OwnProgram, Samples, SharedInputs, SweepCell, SweepError};

/// Key of an experiment with its scheduler's name.
const SCHEDULER: &str = "scheduler.name";
/// Heading of the column with ways to save work.
const SAVED_BY: &str = "saved by";

/// Whether a `--set` sets a key that only scheduler programs have.
fn is_of_programs(set: &str) -> bool {
    let own = ["parameters", "env", "limit", "label", "processors"];
    let inside = |name| set.strip_prefix(name);
    let key = inside("scheduler.").or_else(|| inside("policy.")).unwrap_or_default();
    let first = key.split(['.', '=']).next().unwrap_or_default().trim();
    own.contains(&first)
}

/// Refuses a list that names something twice.
fn refuse_duplicates(option: &str, list: &[String]) -> Result<(), SweepError> {
    let mut seen = BTreeSet::new();
    match list.iter().find(|name| !seen.insert(*name)) {
        Some(twice) => {
            Err(SweepError::BadInput(format!("{option}: {twice} is named twice; leave one out")))
        }
        None => Ok(()),
    }
}

/// Settings by which the tasks of an experiment save their work in this way, in virtual time; `None` if the way is
/// unknown. For CRIU and for programs that save their work themselves, the experiment's own settings hold.
fn settings_of(word: &str, experiment: &Experiment) -> Option<Vec<String>> {
    let when = match word {
        "criu" | "own" => return Some(Vec::new()),
        "notice" => "at-notice",
        "none" => "never",
        _ => return None,
    };
    let CheckpointConfig { fixed, per_megabyte, .. } = &experiment.setup.checkpoint;
    let costs = format!("fixed = \"{fixed}\", per-megabyte = \"{per_megabyte}\"");
    Some(vec![format!("checkpoint={{ policy = \"none\", {when} = true, {costs} }}")])
}

/// A comparison of schedulers, or of ways to save work, on experiments: all are compared with the
/// first.
#[derive(Clone, Debug)]
pub struct SchedulerComparison {
    /// Experiments: files or built-in names.
    pub on: Vec<String>,
    /// Names of the schedulers or ways to save work; the others are compared with the first.
    pub schedulers: Vec<String>,
    /// One cell for each scheduler on each experiment, grouped by experiment.
    pub cells: Vec<SweepCell>,
    /// Heading of the column with the schedulers or ways to save work.
    pub compared: &'static str,
}

impl SchedulerComparison {
    /// The cells of a comparison of schedulers.
    ///
    /// # Errors
    ///
    /// There are fewer than two schedulers, something is named twice, an experiment is wrong, or it
    /// can't be run under a scheduler.
    pub fn new(
        (on, own): (&[String], &OwnProgram),
        schedulers: &[String],
        set: &[String],
        shared: &SharedInputs,
    ) -> Result<Self, SweepError> {
        let bad = |what: String| Err(SweepError::BadInput(what));
        if schedulers.len() < 2 {
            return bad("--schedulers: name two or more, such as burst-hads,hads".to_owned());
        }
        refuse_duplicates("--schedulers", schedulers)?;
        refuse_duplicates("--on", on)?;
        // A scheduler program is labelled with its file name, unless two have the same.
        let labels: Vec<String> = schedulers.iter().map(|word| label_of(word)).collect();
        let are_different = labels.iter().collect::<BTreeSet<_>>().len() == labels.len();
        let labels = if are_different { labels } else { schedulers.to_vec() };
        for text in set {
            let key = text.split('=').next().unwrap_or_default().trim();
            if ["seed", SCHEDULER].contains(&key) {
                let option = if key == "seed" { "--seeds" } else { "--schedulers" };
                return bad(format!("--set {text}: use {option} for that"));
            }
        }
        let mut cells = Vec::new();
        for name in on {
            for (scheduler, label) in schedulers.iter().zip(&labels) {
                // The name comes first: the other settings may be keys of that program.
                let named = [format!("{SCHEDULER}={scheduler}")];
                let is_its = |set: &&String| names_a_program(scheduler) || !is_of_programs(set);
                let set: Vec<_> = named.iter().chain(set.iter().filter(is_its)).cloned().collect();
                let said_with = |set: &str| if set == named[0] { "--schedulers" } else { "--set" };
                let case = format!("{name}/{label}");
                let cell = SweepCell::load_as_said(&case, (name, own), &set, &said_with)?;
                cell.check(cell.experiment.setup.seed, shared)?;
                cells.push(cell);
            }
        }
        Ok(Self { on: on.to_vec(), schedulers: labels, cells, compared: "scheduler" })
    }

    /// The cells of a comparison of ways to save work, under the experiments' schedulers or under
    /// `scheduler`.
    ///
    /// # Errors
    ///
    /// There are fewer than two ways, something is named twice or unknown, or an experiment is
    /// wrong.
    pub fn of_saves(
        (on, own): (&[String], &OwnProgram),
        saves: &[String],
        (scheduler, set): (Option<&str>, &[String]),
        shared: &SharedInputs,
    ) -> Result<Self, SweepError> {
        let bad = |what: String| Err(SweepError::BadInput(what));
        if saves.len() < 2 {
            return bad("--saves: name two or more, such as criu,notice,none".to_owned());
        }
        refuse_duplicates("--saves", saves)?;
        refuse_duplicates("--on", on)?;
        if let Some(text) = set.iter().find(|text| text.trim_start().starts_with("checkpoint=")) {
            return bad(format!(
                "--set {text}: set its keys one by one, such as checkpoint.fixed=13s"
            ));
        }
        let named = scheduler.map(|name| format!("{SCHEDULER}={name}"));
        let set: Vec<_> = named.into_iter().chain(set.iter().cloned()).collect();
        let mut cells = Vec::new();
        for name in on {
            let as_it_is = SweepCell::load_as_said(name, (name, own), &set, &|_| "--set")?;
            if as_it_is.experiment.scheduler.is_none() {
                return bad(format!(
                    "--on {name}: it has no bag of tasks whose work could be saved; name an \
                     experiment that has"
                ));
            }
            for word in saves {
                let Some(settings) = settings_of(word, &as_it_is.experiment) else {
                    return bad(format!(
                        "--saves: there is no '{word}'; name some of criu, notice, own, none"
                    ));
                };
                let set: Vec<_> = set.iter().cloned().chain(settings).collect();
                let said_with =
                    |text: &str| if text.starts_with("checkpoint=") { "--saves" } else { "--set" };
                let case = format!("{name}/{word}");
                let mut cell = SweepCell::load_as_said(&case, (name, own), &set, &said_with)?;
                // The way in which programs save their work is what is compared.
                if let Some(written) = cell.experiment.own_tasks.written_checkpoint.take() {
                    cell.experiment.setup.checkpoint = written;
                }
                cells.push(cell);
            }
        }
        for cell in &cells {
            cell.check(cell.experiment.setup.seed, shared)?;
        }
        Ok(Self { on: on.to_vec(), schedulers: saves.to_vec(), cells, compared: SAVED_BY })
    }

    /// Cells of each experiment with the samples of its schedulers, in the order of the schedulers.
    pub(super) fn by_experiment<'a>(
        &'a self,
        samples: &'a Samples,
    ) -> impl Iterator<Item = (&'a str, &'a [Vec<RunSample>])> {
        self.on.iter().map(String::as_str).zip(samples.chunks(self.schedulers.len()))
    }

    /// The scheduler that the others are compared with.
    pub(super) fn first(&self) -> &str {
        self.schedulers.first().map(String::as_str).unwrap_or_default()
    }

    /// The figures shown to people; for ways to save work also lost work and checkpoints.
    pub fn measures(&self, samples: &Samples) -> ShownFigures {
        let of_saves = ["work_lost_s", "checkpoints", "hibernations"];
        let always = if self.compared == SAVED_BY { &of_saves[..] } else { &[] };
        ShownFigures::of_runs(samples, always)
    }

    /// Table of all runs with their figures, one row each; seeds are 1 to `seeds`.
    pub fn runs(&self, samples: &Samples, seeds: u64) -> TypedTable {
        let labels = ["experiment".to_owned(), self.compared.replace(' ', "_")];
        let cells = self.by_experiment(samples).flat_map(|(on, samples)| {
            let cells = self.schedulers.iter().zip(samples);
            cells.map(move |(scheduler, samples)| ([on, scheduler], samples))
        });
        let runs = cells.flat_map(|(labels, samples)| {
            (1..=seeds).zip(samples).map(move |(seed, sample)| RunRow {
                labels: labels.map(str::to_owned).into(),
                seed,
                sample,
            })
        });
        runs::table(labels.map(TableColumn::text).into(), runs.collect())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_has_to_make_sense() {
        let of = |on: &[&str], schedulers: &[&str], set: &[&str]| {
            let [on, schedulers, set] = [on, schedulers, set]
                .map(|l| l.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
            SchedulerComparison::new(
                (&on, &OwnProgram::default()),
                &schedulers,
                &set,
                &SharedInputs::default(),
            )
            .map_err(|e| e.to_string())
        };
        let cells = of(&["j60", "j60-sc2"], &["burst-hads", "hads"], &[]).unwrap().cells;
        let cases: Vec<_> = cells.iter().map(|cell| cell.case.as_str()).collect();
        assert_eq!(cases, ["j60/burst-hads", "j60/hads", "j60-sc2/burst-hads", "j60-sc2/hads"]);
        for (on, schedulers, set, says) in [
            (&["j60"][..], &["hads"][..], &[][..], "two or more"),
            (&["j60"], &["hads", "hads"], &[], "hads is named twice"),
            (&["j60", "j60"], &["hads", "burst-hads"], &[], "j60 is named twice"),
            (&["j60"], &["hads", "burst-hads"], &["seed=3"], "--seeds"),
            (&["j60"], &["hads", "easy"], &[], "easy"),
        ] {
            let error = of(on, schedulers, set).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn what_saves_work_is_compared_on_the_same_interruptions() {
        let of = |saves: &[&str], set: &[&str]| {
            let [saves, set] =
                [saves, set].map(|l| l.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
            let on = ["j60-sc2".to_owned()];
            SchedulerComparison::of_saves(
                (&on, &OwnProgram::default()),
                &saves,
                (None, &set),
                &SharedInputs::default(),
            )
            .map_err(|e| e.to_string())
        };
        let cells = of(&["criu", "own", "notice", "none"], &["checkpoint.fixed=7s"]).unwrap().cells;
        let [criu, own, notice, none] = &cells[..] else { panic!("four cells") };
        let of_cell = |cell: &SweepCell| cell.experiment.setup.checkpoint.clone();
        assert_eq!(of_cell(criu), of_cell(own));
        for (cell, at_notice, never) in [(notice, true, false), (none, false, true)] {
            let is = of_cell(cell);
            assert_eq!((is.at_notice, is.never, is.fixed), (at_notice, never, of_cell(criu).fixed));
            assert_eq!(cell.experiment.setup.interruptions, criu.experiment.setup.interruptions);
        }
        for (saves, says) in [
            (&["criu"][..], "two or more"),
            (&["criu", "criu"], "criu is named twice"),
            (&["criu", "crui"], "there is no 'crui'"),
        ] {
            let error = of(saves, &[]).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        assert!(of(&["criu", "none"], &["checkpoint={ policy = \"hour\" }"]).is_err());
    }
}
