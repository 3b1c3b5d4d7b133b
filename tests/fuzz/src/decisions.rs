//! Answers of schedulers that are programs, and what a run does with them.

use std::collections::VecDeque;
use std::sync::LazyLock;

use dormouse_experiment::{Experiment, of_text};
use dormouse_model::{Decision, Notice, Submission};
use dormouse_policies::{Delivery, Policy};
use dormouse_program::{HelloAnswer, ProgramAnswer, read_line};
use dormouse_report::virtual_run::{model, play_out};
use dormouse_units::Time;

type JobsError = dormouse_report::jobs::JobsError;

/// Number of steps after which a run is broken off: the decisions may keep it going for ever.
const STEPS: usize = 500;

static EXPERIMENT: LazyLock<Experiment> = LazyLock::new(|| {
    of_text("fuzz.toml", include_str!("../experiments/bag.toml")).expect("the experiment is right")
});

/// Reads each line as the answer of a scheduler at one decision time, and executes it in a run, which refuses what
/// can't be done.
pub(crate) fn decisions(bytes: &[u8]) {
    let mut answers = VecDeque::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let _ = read_line::<HelloAnswer>(line);
        if let Ok(ProgramAnswer { decisions }) = read_line(line) {
            answers.push_back(decisions);
        }
    }
    if answers.is_empty() {
        return;
    }
    let mut run = EXPERIMENT.run(Some(Box::new(Said { answers })));
    let (mut steps, none) = (0, None::<std::iter::Empty<Result<Submission, JobsError>>>);
    let _ = play_out(&EXPERIMENT, &mut run, &mut model(&EXPERIMENT), none, |_| {
        steps += 1;
        match steps < STEPS {
            true => Ok(()),
            false => Err(JobsError::Scheduler("it goes on".to_owned())),
        }
    });
}

/// A policy that decides what the input says, one answer each time that it is asked.
#[derive(Debug)]
struct Said {
    answers: VecDeque<Vec<Decision>>,
}

impl Policy for Said {
    fn hearing(&self) -> Delivery {
        Delivery::Immediate
    }

    fn handle(&mut self, _: Time, _: &[Notice], out: &mut Vec<Decision>) {
        out.extend(self.answers.pop_front().into_iter().flatten());
    }
}
