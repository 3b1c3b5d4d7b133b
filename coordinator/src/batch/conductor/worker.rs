//! The conductor's dealings with the worker that is the machine.

use dormouse_batch::{JobId, Tier};
use dormouse_proto::v1;
use dormouse_units::{Attempt, HostId};
use ractor::{Actor, ActorRef};

use super::{BatchState, Worker};
use crate::admission::check_criu;
use crate::batch::MachineReport;
use crate::batch::run::Order;
use crate::conductor::ConductorMsg;
use crate::facts::HostLoad;
use crate::link::Link;
use crate::session::{Connection, NoSession, Session, SessionArgs, SessionMsg};
use crate::wire::Heard;
use crate::{CoordinatorError, NEWS};

/// The machine's number on its worker, and the worker's in the run: there is one of each.
pub(super) const MACHINE: u32 = 0;
const HOST: HostId = HostId::new(0);

impl BatchState {
    pub(super) async fn hello(
        &mut self,
        myself: &ActorRef<ConductorMsg>,
        hello: v1::Hello,
        ack: u64,
        connection: Connection,
    ) -> Result<ActorRef<SessionMsg>, NoSession> {
        let over = |why: &str| v1::Goodbye { why: why.to_owned(), over: true };
        if self.over.is_some() {
            return Err(over("the run is over").into());
        }
        if let Some(worker) = &self.worker {
            if (&worker.name, worker.incarnation) != (&hello.worker, hello.incarnation) {
                let why = "a machine for parallel jobs is one worker, and there is one".to_owned();
                return Err(NoSession::Refused(why));
            }
            let session = worker.session.clone();
            let welcome = self.welcome();
            let _ = session.cast(SessionMsg::Attach { connection, ack, welcome });
            return Ok(session);
        }
        check_criu(&hello, self.plan.needs_criu).map_err(NoSession::Refused)?;
        let link = Link::default();
        let lost_after = self.plan.lost_after;
        let args = SessionArgs { host: HOST, link, conductor: myself.clone(), lost_after };
        let session = match Actor::spawn_linked(None, Session, args, self.warden.clone()).await {
            Ok((session, _)) => session,
            Err(error) => {
                let why = error.to_string();
                let _ = self.failed.send(CoordinatorError::Part { part: "session", why });
                return Err(over("the coordinator can't open a session").into());
            }
        };
        let cores = f64::from(hello.millicores) / 1000.0;
        tracing::info!(target: NEWS, "worker {} joined as the machine, with {cores} cores", hello.worker);
        self.worker = Some(Worker {
            name: hello.worker,
            incarnation: hello.incarnation,
            millicores: hello.millicores,
            session: session.clone(),
            lost: false,
            has_machine: false,
        });
        let welcome = self.welcome();
        let _ = session.cast(SessionMsg::Attach { connection, ack, welcome });
        Ok(session)
    }

    fn welcome(&self) -> v1::Welcome {
        v1::Welcome {
            run: self.plan.run.clone(),
            host: HOST.get(),
            emulated_us_per_second: self.plan.speedup.emulated_us_per_second(),
            now_us: self.clock.now().as_micros(),
            programs: Vec::new(),
            lost_after_ms: u32::try_from(self.plan.lost_after.as_millis()).unwrap_or(u32::MAX),
            hold_checkpoints: false,
            noop: false,
        }
    }

    pub(super) fn heard(&mut self, through: u64, heard: Vec<(u64, Heard)>) {
        if self.worker.as_ref().is_none_or(|w| w.lost) {
            return;
        }
        self.durable = through;
        for (_, heard) in heard {
            match heard {
                Heard::Ready { .. } => self.create_machine(),
                Heard::Report { report, .. } => {
                    use dormouse_engine::Report;
                    match report {
                        Report::VmCreated { .. } => self.begin(),
                        Report::VmDestroyed { .. } => self.put(MachineReport::Destroyed, None),
                        Report::VmFailed { why, .. } => {
                            self.put(MachineReport::Broken { why }, None);
                        }
                        // Those of another kind of VM.
                        _ => {}
                    }
                }
                Heard::Load(load) => self.facts.load = Some(HostLoad::of(load)),
                Heard::Batch(report, due) => self.put(report, due),
            }
        }
        self.hear_what_is_due();
    }

    fn create_machine(&mut self) {
        let Some(worker) = &mut self.worker else { return };
        let core = self.plan.core(worker.millicores);
        if core.get() == 0 {
            let why = format!(
                "{} processors on {} thousandths of a core are nothing each; give it fewer",
                self.plan.processors, worker.millicores
            );
            let _ = self.failed.send(CoordinatorError::Invalid { why });
            return;
        }
        self.facts.core = core;
        worker.has_machine = true;
        let create = v1::CreateMachine {
            vm: MACHINE,
            processors: self.plan.processors,
            core_ppm: core.get(),
        };
        self.command(v1::command::Command::CreateMachine(create));
    }

    pub(super) fn command_of(&self, order: Order) -> v1::command::Command {
        use v1::command::Command;
        let of = |job: JobId, attempt: Attempt| v1::JobRef {
            vm: MACHINE,
            job: job.get(),
            attempt: attempt.get(),
            at_us: self.last.as_micros(),
        };
        match order {
            Order::Start { job, attempt, tier, on } => {
                let submission = self.run.submission(job);
                let args = submission.map(|s| self.plan.program(s, self.facts.core));
                let tier = match tier {
                    Tier::Foreground => v1::Tier::Foreground,
                    Tier::Background => v1::Tier::Background,
                };
                Command::StartJob(v1::StartJob {
                    job: Some(of(job, attempt)),
                    program: Some(v1::Program { args: args.unwrap_or_default() }),
                    on: on.to_vec(),
                    tier: tier.into(),
                    plan: submission.map(|s| self.plan.plan(s)),
                })
            }
            Order::Promote { job, attempt } => Command::PromoteJob(of(job, attempt)),
            Order::Move { job, attempt, on } => {
                Command::MoveJob(v1::MoveJob { job: Some(of(job, attempt)), on: on.to_vec() })
            }
            Order::Kill { job, attempt } => Command::KillJob(of(job, attempt)),
        }
    }

    pub(super) fn lose(&mut self, why: String) {
        let Some(worker) = self.worker.as_mut().filter(|w| !w.lost) else { return };
        (worker.lost, worker.has_machine) = (true, false);
        tracing::warn!(worker = worker.name, why, "the machine is lost");
        let words = format!("its machine, worker {}, was lost: {why}", worker.name);
        let _ = worker.session.cast(SessionMsg::Dismiss { why });
        self.cancel(words);
    }
}
