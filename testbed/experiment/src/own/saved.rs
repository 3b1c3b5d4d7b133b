//! Checkpoints of a bag whose programs save their work themselves, only at a notice, or never.

use std::collections::BTreeSet;

use dormouse_model::{CheckpointConfig, CheckpointScheme};
use dormouse_tasks::own::Saves;

use super::programs::CollectedPrograms;

impl CollectedPrograms {
    /// Returns the checkpoint configuration of a bag of `tasks` tasks with these programs. If it
    /// differs from `written`, the configuration from `[checkpoint]`, `written` is stored as well.
    pub(crate) fn saved(&mut self, written: CheckpointConfig, tasks: usize) -> CheckpointConfig {
        let (mut savers, mut unsaved) = (BTreeSet::new(), BTreeSet::new());
        for (task, program) in &self.programs {
            match program.saves {
                Saves::None => unsaved.insert(*task),
                Saves::Notice { .. } => savers.insert(*task),
                Saves::Criu | Saves::Own => continue,
            };
        }
        let mut saved = written.clone();
        saved.at_notice |= !savers.is_empty() && !written.never;
        let is_all = savers.len() + unsaved.len() == tasks && tasks > 0;
        if is_all {
            (saved.scheme, saved.at_hibernation) = (CheckpointScheme::None {}, false);
            saved.never |= savers.is_empty();
            saved.at_notice &= !saved.never;
        }
        if !saved.never {
            saved.unsaved = unsaved;
            // The work of other tasks is saved at regular times.
            if !is_all {
                saved.savers = savers;
            }
        }
        self.tasks.written_checkpoint = (saved != written).then_some(written);
        saved
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use dormouse_tasks::own::OwnProgram;
    use dormouse_units::{Bytes, Span, TaskId};

    use super::*;

    fn saved(saves: &[Saves], tasks: usize, never: bool) -> (CheckpointConfig, bool) {
        let program = |saves: &Saves| OwnProgram {
            argv: vec!["solve".to_owned()],
            env: BTreeMap::new(),
            inputs: Vec::new(),
            handed: Vec::new(),
            outputs: Vec::new(),
            mounts: Vec::new(),
            quota: Bytes::new(1),
            processes: 1,
            saves: saves.clone(),
            verify: None,
            deterministic: false,
        };
        let programs = (0..).map(TaskId::new).zip(saves.iter().map(|it| Arc::new(program(it))));
        let mut own = CollectedPrograms::default();
        own.programs = programs.collect();
        let saved = own.saved(written(never), tasks);
        (saved, own.tasks.written_checkpoint == Some(written(never)))
    }

    fn written(never: bool) -> CheckpointConfig {
        let scheme = if never { CheckpointScheme::None {} } else { CheckpointScheme::Hour {} };
        let fixed = Span::from_secs(7);
        CheckpointConfig { scheme, fixed, at_hibernation: !never, never, ..CheckpointConfig::NONE }
    }

    #[test]
    fn programs_that_save_at_a_notice_are_kept_then_and_by_the_clock_only_beside_others() {
        let notice = Saves::Notice { signal: None, file: None };
        let (alone, is_other) = saved(&[notice.clone(), Saves::None], 2, false);
        assert!(is_other && alone.at_notice && !alone.never && !alone.at_hibernation);
        assert_eq!((&alone.scheme, alone.fixed), (&CheckpointScheme::None {}, Span::from_secs(7)));
        let [first, second] = [0, 1].map(TaskId::new);
        assert!(alone.is_saved_by_program(first) && !alone.is_saved_by_program(second));
        assert!(alone.keeps_nothing_of(second) && !alone.keeps_nothing_of(first));
        // The third task is a kernel.
        let (beside, _) = saved(&[notice.clone(), Saves::Own], 3, false);
        assert!(
            beside.at_notice && beside.at_hibernation && beside.scheme == CheckpointScheme::Hour {}
        );
        let saves = [0, 1, 2].map(|task| beside.is_saved_by_program(TaskId::new(task)));
        let has_scheme = [0, 1, 2].map(|task| beside.has_scheme_for(TaskId::new(task)));
        assert_eq!((saves, has_scheme), ([true, false, false], [false, true, true]));
        let (nothing, _) = saved(&[Saves::None], 1, false);
        assert!(nothing.never && !nothing.at_notice && nothing.scheme == CheckpointScheme::None {});
        assert_eq!(saved(&[Saves::Own], 1, false), (written(false), false));
        assert_eq!(saved(&[notice], 1, true), (written(true), false));
    }
}
