//! Dumps of programs of a simulated VM, and what goes wrong with them.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use dormouse_proto::v1::CheckpointRef;
use dormouse_worker::{
    agent::in_process::{
        AttemptDump, BoxedFuture, CheckpointUpload, DumpFailure, DumpMachine, DumpMoments,
        DumpSteps, DumpWay, JobDeparture, LaunchPass, SnapshotError, TakenCheckpoint,
        compare_stored, dump_and_leave, dump_program, send_until_answered,
    },
    criu::AfterDump,
};
use tokio::time::{Instant, timeout};

use super::{
    host::{Host, STILL},
    vm::SimulatedVm,
};
use crate::worker::{machine::image_of, uplink::Uplink};

/// Usual time that CRIU needs to seize a process; the next constants are those to dump a process, and a whole job.
const SEIZE: Duration = Duration::from_millis(2);
const DUMP: Duration = Duration::from_millis(20);
const DUMP_JOB: Duration = Duration::from_millis(40);

impl<U: Uplink> DumpSteps for SimulatedVm<U> {
    async fn dump_once(
        &self,
        dump: &AttemptDump,
        moments: &mut DumpMoments,
    ) -> Result<TakenCheckpoint, DumpFailure> {
        let _use = self.host.use_criu();
        let ended = || DumpFailure::harmless("it has ended");
        self.kernel.outlive(self.kernel.time(SEIZE)).await.ok_or_else(ended)?;
        moments.enter()?;
        if !dump.process.is_alive() {
            return Err(ended());
        }
        let pid = dump.process.pid();
        self.kernel.set_standing(pid, true);
        let stopped_at = Instant::now();
        let usual = if dump.way == DumpWay::Job { DUMP_JOB } else { DUMP };
        let takes = self.kernel.time(usual) + self.host.slower();
        self.kernel.outlive(takes).await.ok_or_else(ended)?;
        let rates = self.host.plan.rates;
        let (damaging, fails) =
            (self.kernel.happens(rates.damage), self.kernel.happens(rates.dump));
        if damaging || fails {
            return Err(DumpFailure { why: "CRIU failed".to_owned(), damaging });
        }
        let reported = dump.page.as_ref().and_then(|page| page.progress());
        let mut progress = moments.count(&reported.unwrap_or_default());
        // What CRIU saves is no more than has been done.
        let done = self.kernel.look(|vcpus| vcpus.programs.get(&pid).map(|it| it.done_ppm()));
        progress.progress_ppm = progress.progress_ppm.min(done.unwrap_or(0));
        let args = self.kernel.args(pid).ok_or_else(ended)?;
        let program = args.first().map_or("", String::as_str);
        let kept = self.host.disk.keep(&dump.name, program, progress);
        let (manifest, bytes) = kept.map_err(DumpFailure::harmless)?;
        let image = image_of(&manifest).ok_or_else(ended)?;
        self.host.witness().checkpoint_made(image);
        if dump.after == AfterDump::Kill {
            self.kernel.kill(pid);
        }
        let took = stopped_at.elapsed();
        Ok(TakenCheckpoint {
            number: image.number.get(),
            ppm: image.done.get(),
            bytes: 1,
            stopped_at,
            dump: took,
            took,
            foreign_ns: 0,
            upload: Box::new(SimulatedUpload { host: Arc::clone(&self.host), bytes }),
        })
    }
}

impl<U: Uplink> DumpMachine for SimulatedVm<U> {
    fn dump_attempt(
        self: Arc<Self>,
        dump: AttemptDump,
        moments: DumpMoments,
    ) -> BoxedFuture<Result<TakenCheckpoint, SnapshotError>> {
        self.inside(|vm| dump_program(vm, dump, moments))
    }

    fn leave_seats(
        self: Arc<Self>,
        dump: AttemptDump,
        moments: DumpMoments,
    ) -> BoxedFuture<JobDeparture> {
        if let Some((task, attempt)) = self.kernel.key(dump.process.pid()) {
            self.host.witness().leaves_seats(task, attempt);
        }
        self.inside(|vm| dump_and_leave(vm, dump, moments))
    }
}

/// A checkpoint that is being sent to the coordinator.
#[derive(Debug)]
struct SimulatedUpload<U: Uplink> {
    host: Arc<Host<U>>,
    bytes: Vec<u8>,
}

impl<U: Uplink> CheckpointUpload for SimulatedUpload<U> {
    fn send(
        self: Box<Self>,
        pass: LaunchPass,
        reference: CheckpointRef,
        _: Arc<AtomicU64>,
    ) -> BoxedFuture<Result<u64, String>> {
        let Self { host, bytes } = *self;
        let shared = Arc::clone(&host.shared);
        shared.inside(async move {
            let (length, sent) = (bytes.len() as u64, host.reports.liar().stores(bytes));
            let send = || async {
                let stored = timeout(STILL, host.line.put_checkpoint(&reference, &sent)).await;
                Ok(compare_stored(length, stored.map_err(|_| "it is stuck".to_owned())??)?)
            };
            send_until_answered(&pass, send).await
        })
    }
}
