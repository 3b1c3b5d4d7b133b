//! The command that makes a cell's run by itself.

use dormouse_vm::Sharing;

use super::cell::Cell;
use super::evaluate::Options;
use super::setting::{BackgroundFill, Draws, Estimates, Room, Setting, Shape, Usage};
use super::workloads::Source;
use crate::command_line::command_line;

impl Cell {
    /// `dormouse run` with the same jobs, machine and scheduler: the same decisions come of it. Its
    /// means are over all jobs, a cell's leave the warm-up out. `None` where experiment files have no
    /// word for the setting, or for the first jobs of a log.
    #[must_use]
    pub fn command(&self, options: &Options) -> Option<String> {
        if self.source == Source::Kth && options.most_jobs.is_some() {
            return None;
        }
        let mut sets = self.source.sets(options.kth.as_deref(), options.most_jobs);
        sets.push(format!("workload.load={}", f64::from(self.load) / 100.0));
        sets.extend(self.setting.sets(self.source)?);
        if self.algorithm.promotion().is_some() {
            sets.extend(of_sharing(&self.setting.sharing(options.sharing)));
        }
        let (name, seed) = (self.source.name().to_owned(), options.seed.to_string());
        let scheduler = self.algorithm.name().to_owned();
        let begin = ["dormouse".into(), "run".into(), name, "--seed".into(), seed];
        let words = begin.into_iter().chain(["--scheduler".into(), scheduler]);
        Some(command_line(words.chain(sets.into_iter().flat_map(|set| ["--set".into(), set]))))
    }
}

impl Setting {
    /// How the built-in experiment of a workload is told of it, but for the sharing.
    fn sets(&self, source: Source) -> Option<Vec<String>> {
        let Self { estimates, usage, information, draws: _, room, fill, shape, cost } = *self;
        if (room, fill, shape) != (Room::default(), BackgroundFill::default(), Shape::default()) {
            return None;
        }
        let mut sets = Vec::new();
        match estimates {
            Estimates::Given => {}
            Estimates::Exact if source != Source::Kth => {
                sets.push("workload.estimates=exact".to_owned());
            }
            Estimates::Exact | Estimates::Double => return None,
        }
        match usage {
            Usage::EachProcess => {}
            Usage::Full => sets.push("workload.usage=full".to_owned()),
            Usage::EachJob => return None,
        }
        if information != Default::default() {
            sets.push("scheduler.usage-information=absent".to_owned());
        }
        if cost != Default::default() {
            sets.push(format!("scheduler.migration-cost={}s", cost.0));
        }
        Some(sets)
    }

    /// The distributions that it has where those of the model are `given`.
    pub(super) fn sharing(&self, given: Sharing) -> Sharing {
        let mut sharing = given;
        sharing.each_process |= self.draws == Draws::EachProcess;
        if self.draws == Draws::Low {
            sharing.several_normal.0 = 0.30;
        }
        sharing
    }
}

/// What of `[sharing]` is not as the paper has it.
fn of_sharing(sharing: &Sharing) -> Vec<String> {
    let standard = Sharing::default();
    let mut sets = Vec::new();
    for (key, ours, papers) in [
        ("loss", sharing.loss, standard.loss),
        ("single", sharing.single, standard.single),
        ("several-normal", sharing.several_normal, standard.several_normal),
        ("several-within", sharing.several_within, standard.several_within),
    ] {
        if ours != papers {
            sets.push(format!("sharing.{key}=[{}, {}]", ours.0, ours.1));
        }
    }
    if sharing.each_process != standard.each_process {
        sets.push(format!("sharing.each-process={}", sharing.each_process));
    }
    sets
}
