//! Runs the recorder of a run on another thread, so that the run does not wait for its files.

use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use dormouse_model::Step;

use super::RunRecorder;
use crate::jobs::JobsError;
use crate::output::OutputError;

/// Number of steps that are handed over at a time: waking a thread takes as long as making some of
/// them.
const PIECE: usize = 256;
/// Greatest number of pieces of steps that wait for the recorder: a run that is faster than its recorder waits for it.
const WAITING: usize = 2;

/// A piece of new steps, followed by recorded steps whose memory is reused.
#[derive(Debug, Default)]
struct StepPiece {
    steps: Vec<Step>,
    used: usize,
}

/// Hands the steps of a run to its recorder on another thread. Call [`Self::take`] for each step,
/// then [`Self::finish`].
#[derive(Debug)]
pub(crate) struct RecorderThread<'scope, 'a> {
    folder: PathBuf,
    wants_all: bool,
    piece: StepPiece,
    to: SyncSender<StepPiece>,
    /// Channel by which recorded pieces come back, so that their memory is reused.
    back: Receiver<StepPiece>,
    thread: ScopedJoinHandle<'scope, Result<RunRecorder<'a>, JobsError>>,
}

impl<'scope, 'a: 'scope> RecorderThread<'scope, 'a> {
    /// Starts the recorder's thread.
    ///
    /// # Errors
    ///
    /// The system refuses a thread.
    pub(crate) fn start(
        scope: &'scope Scope<'scope, '_>,
        recorder: RunRecorder<'a>,
    ) -> Result<Self, JobsError> {
        let (wants_all, folder) = (recorder.wants_all(), recorder.folder.clone());
        let (to, from) = sync_channel(WAITING);
        let (give_back, back) = channel();
        let thread = Builder::new()
            .name("recorder".to_owned())
            .spawn_scoped(scope, move || record_pieces(recorder, &from, &give_back))
            .map_err(|error| OutputError::io("start a thread that writes into", &folder, error))?;
        Ok(Self { folder, wants_all, piece: StepPiece::default(), to, back, thread })
    }

    /// Takes a step to be recorded, and leaves an already recorded step in its place, whose memory
    /// can be reused.
    ///
    /// # Errors
    ///
    /// The recorder has failed: [`Self::finish`] returns the reason.
    pub(crate) fn take(&mut self, step: &mut Step) -> Result<(), JobsError> {
        if !self.wants_all && !RunRecorder::is_needed(step) {
            return Ok(());
        }
        let StepPiece { steps, used } = &mut self.piece;
        if *used == steps.len() {
            steps.push(Step::blank());
        }
        std::mem::swap(step, &mut steps[*used]);
        *used += 1;
        if *used < PIECE {
            return Ok(());
        }
        let next = self.back.try_recv().unwrap_or_default();
        let piece = std::mem::replace(&mut self.piece, next);
        let stopped = |_| OutputError::io("write into", &self.folder, ErrorKind::BrokenPipe.into());
        Ok(self.to.send(piece).map_err(stopped)?)
    }

    /// Waits until all steps are recorded and returns the recorder.
    ///
    /// # Errors
    ///
    /// The recorder has failed.
    pub(crate) fn finish(self) -> Result<RunRecorder<'a>, JobsError> {
        let Self { piece, to, thread, .. } = self;
        // The recorder only refuses a piece if it has failed.
        let _ = to.send(piece);
        drop(to);
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

fn record_pieces<'a>(
    mut recorder: RunRecorder<'a>,
    from: &Receiver<StepPiece>,
    back: &Sender<StepPiece>,
) -> Result<RunRecorder<'a>, JobsError> {
    for mut piece in from {
        for step in piece.steps.iter().take(piece.used) {
            recorder.see(step)?;
        }
        piece.used = 0;
        // The run may be over and need no pieces any more.
        let _ = back.send(piece);
    }
    Ok(recorder)
}
