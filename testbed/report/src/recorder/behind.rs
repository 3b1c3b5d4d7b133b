//! The recorder of a run on a thread of its own: the run goes on while what came of it is written.

use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use dormouse_model::Step;

use super::RunRecorder;
use crate::jobs::JobsError;
use crate::output::OutputError;

/// Steps that are handed over at a time: to wake a thread takes as long as to make some of them.
const PIECE: usize = 256;
/// Pieces that wait at most: a run that is faster than what is written of it waits for that.
const WAITING: usize = 2;

/// Some steps, each of which has memory to be used again behind it.
#[derive(Debug, Default)]
struct Piece {
    steps: Vec<Step>,
    used: usize,
}

/// Hands the steps of a run over to its recorder.
#[derive(Debug)]
pub(crate) struct Behind<'scope, 'a> {
    folder: PathBuf,
    wants_all: bool,
    piece: Piece,
    to: SyncSender<Piece>,
    /// Pieces that were taken in.
    back: Receiver<Piece>,
    thread: ScopedJoinHandle<'scope, Result<RunRecorder<'a>, JobsError>>,
}

impl<'scope, 'a: 'scope> Behind<'scope, 'a> {
    /// Starts the thread of a recorder.
    ///
    /// # Errors
    ///
    /// The system has no thread for it.
    pub(crate) fn start(
        scope: &'scope Scope<'scope, '_>,
        recorder: RunRecorder<'a>,
    ) -> Result<Self, JobsError> {
        let (wants_all, folder) = (recorder.wants_all(), recorder.folder.clone());
        let (to, from) = sync_channel(WAITING);
        let (give_back, back) = channel();
        let thread = Builder::new()
            .name("recorder".to_owned())
            .spawn_scoped(scope, move || record(recorder, &from, &give_back))
            .map_err(|error| OutputError::io("start a thread that writes into", &folder, error))?;
        Ok(Self { folder, wants_all, piece: Piece::default(), to, back, thread })
    }

    /// Takes a step, in whose place it leaves one that is over.
    ///
    /// # Errors
    ///
    /// The recorder takes no more, as it has failed: [`Self::finish`] says why.
    pub(crate) fn take(&mut self, step: &mut Step) -> Result<(), JobsError> {
        if !self.wants_all && !RunRecorder::heeds(step) {
            return Ok(());
        }
        let Piece { steps, used } = &mut self.piece;
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

    /// Waits until all steps are taken in; gives the recorder back.
    ///
    /// # Errors
    ///
    /// The recorder has failed.
    pub(crate) fn finish(self) -> Result<RunRecorder<'a>, JobsError> {
        let Self { piece, to, thread, .. } = self;
        // It takes no more only where it has failed.
        let _ = to.send(piece);
        drop(to);
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

fn record<'a>(
    mut recorder: RunRecorder<'a>,
    from: &Receiver<Piece>,
    back: &Sender<Piece>,
) -> Result<RunRecorder<'a>, JobsError> {
    for mut piece in from {
        for step in piece.steps.iter().take(piece.used) {
            recorder.see(step)?;
        }
        piece.used = 0;
        // The run may be over, and want none any more.
        let _ = back.send(piece);
    }
    Ok(recorder)
}
