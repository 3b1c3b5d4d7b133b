//! One session of a worker, from its first welcome to its end: passes the coordinator's commands to the VMs.

mod commands;
mod machines;
mod supervised;

use std::time::Duration;

use dormouse_proto::v1::{Command, Ready, Welcome, command, report};
use dormouse_units::Speedup;
use tokio::sync::mpsc;

pub use commands::refuse_start;
pub use machines::LifeMachines;
pub use supervised::SupervisedVms;

use commands::CommandReading;

use super::{
    AgentError, Result, bounds, noop::NoopMachines, report::make_report, session::SessionEvent,
    vm::CommandStamp,
};

/// Interval at which the worker reports the host's load.
const COUNT_EVERY: Duration = Duration::from_secs(2);

/// How a session of a worker ended.
#[derive(Debug)]
pub enum LifeEnd {
    /// The session ended because the run is over.
    Over {
        /// Reason that the coordinator gave for the end of the run.
        why: String,
    },
    /// The worker must discard its VMs and tasks as lost, and join again with a new session.
    Rejoin {
        /// Reason for joining again, in words.
        why: String,
    },
    /// The session ended because the coordinator was unreachable for too long.
    Lost {
        /// Time since the coordinator's last message.
        after: Duration,
        /// Why the last attempt to reach the coordinator failed.
        why: String,
    },
    /// The coordinator refuses this worker for good.
    Refused {
        /// Reason that the coordinator gave for refusing this worker.
        why: String,
    },
    /// A signal or a different process on this host ended the session.
    Terminated,
}

/// Waits for the first welcome of a session; returns as an error how the session ended instead.
pub async fn wait_welcome(
    heard: &mut mpsc::UnboundedReceiver<SessionEvent>,
) -> std::result::Result<Welcome, LifeEnd> {
    match heard.recv().await {
        Some(SessionEvent::Welcome(welcome)) => Ok(welcome),
        Some(other) => Err(end_of_life(other)),
        None => Err(session_gone()),
    }
}

/// Runs the worker from a welcome until its session ends, `terminated` resolves or an error occurs. All its VMs are
/// removed at the end.
///
/// # Errors
///
/// The coordinator violates the protocol, or the machines fail.
pub async fn go_on(
    welcome: Welcome,
    machines: impl LifeMachines,
    heard: &mut mpsc::UnboundedReceiver<SessionEvent>,
    terminated: impl Future<Output = ()>,
) -> Result<LifeEnd> {
    let noop = welcome.noop.then(NoopMachines::default);
    let mut life = AgentLife { noop, machines, welcome };
    let end = life.go_on(heard, terminated).await;
    life.machines.clean_up().await;
    end
}

struct AgentLife<M> {
    welcome: Welcome,
    machines: M,
    noop: Option<NoopMachines>,
}

impl<M: LifeMachines> AgentLife<M> {
    async fn go_on(
        &mut self,
        heard: &mut mpsc::UnboundedReceiver<SessionEvent>,
        terminated: impl Future<Output = ()>,
    ) -> Result<LifeEnd> {
        let programs = self.welcome.programs.clone();
        if programs.len() > bounds::PROGRAMS {
            let what = format!("{} programs to measure", programs.len());
            return Err(AgentError::Protocol { what });
        }
        for program in &programs {
            bounds::check_program(program).map_err(|why| AgentError::Protocol {
                what: format!("its program is not one that a run has ({why})"),
            })?;
        }
        let measuring = self.machines.measure_programs(programs);
        tokio::pin!(measuring, terminated);
        let mut measured = self.noop.is_some();
        if measured {
            let real_repetition_us = vec![0; self.welcome.programs.len()];
            self.machines
                .send_report(make_report(report::Report::Ready(Ready { real_repetition_us })));
        }
        let mut count = tokio::time::interval(COUNT_EVERY);
        loop {
            tokio::select! {
                biased;
                () = &mut terminated => return Ok(LifeEnd::Terminated),
                () = self.machines.wait_abandoned() => {
                    // Never go on with VMs that nobody owns.
                    let what = "who supervises the VMs has ended".to_owned();
                    return Err(AgentError::Bug { what });
                }
                _ = count.tick(), if measured => {
                    self.machines.check_host()?;
                    if let Some(load) = self.machines.host_load() {
                        self.machines.send_report(make_report(report::Report::HostLoad(load)));
                    }
                }
                found = &mut measuring, if !measured => {
                    measured = true;
                    let real_repetition_us = found?;
                    let ready = Ready { real_repetition_us };
                    self.machines.send_report(make_report(report::Report::Ready(ready)));
                }
                said = heard.recv() => match said {
                    Some(SessionEvent::Commands(first, commands)) => {
                        // Without its folder all that it is told would fail, again and again: its
                        // work goes elsewhere once it has left.
                        self.machines.check_host()?;
                        for (number, command) in (first..).zip(commands) {
                            self.handle_command(number, command)?;
                        }
                    }
                    Some(SessionEvent::Welcome(again)) => {
                        if again.run != self.welcome.run {
                            let why = format!("the coordinator now runs {}", again.run);
                            return Ok(LifeEnd::Rejoin { why });
                        }
                    }
                    Some(other) => return Ok(end_of_life(other)),
                    None => return Ok(session_gone()),
                }
            }
        }
    }

    fn handle_command(&mut self, number: u64, command: Command) -> Result<()> {
        let asked = CommandStamp::from_command(&command);
        let command = match commands::known_command(number, command) {
            Ok(command) => command,
            Err(unsupported) => {
                self.machines.send_report(*unsupported);
                return Ok(());
            }
        };
        let is_fault = matches!(command, command::Command::Fault(_));
        if let Some(noop) = self.noop.as_mut().filter(|_| !is_fault) {
            noop.execute_command(command, |report| self.machines.send_report(report));
            return Ok(());
        }
        match commands::read(number, command)? {
            CommandReading::Create(create) => self.machines.create_vm(create, asked),
            CommandReading::Ask(vm, ask) => self.machines.ask_vm(vm, ask, asked),
            CommandReading::Fault(fault) => {
                self.machines.carry_out_fault(fault);
                Ok(())
            }
            CommandReading::Refused(said) => {
                if let Some(said) = said {
                    self.machines.send_report(*said);
                }
                Ok(())
            }
        }
    }
}

/// Returns the speed-up of a run; `None`: the run's clock does not advance.
#[must_use]
pub fn speedup_of(welcome: &Welcome) -> Option<Speedup> {
    Speedup::from_emulated_us_per_second(welcome.emulated_us_per_second)
}

fn end_of_life(heard: SessionEvent) -> LifeEnd {
    match heard {
        SessionEvent::Goodbye { why, over: true } => LifeEnd::Over { why },
        SessionEvent::Goodbye { why, over: false } => LifeEnd::Rejoin { why },
        SessionEvent::Refused { why } => LifeEnd::Refused { why },
        SessionEvent::Lost { after, why } => LifeEnd::Lost { after, why },
        SessionEvent::Welcome(_) | SessionEvent::Commands(..) => LifeEnd::Rejoin {
            why: "the session began with something else than a welcome".to_owned(),
        },
    }
}

fn session_gone() -> LifeEnd {
    LifeEnd::Lost { after: Duration::ZERO, why: "the session's thread has ended".to_owned() }
}
