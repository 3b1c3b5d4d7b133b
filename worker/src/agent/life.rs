//! One incarnation: from the first welcome to the end, commands to VMs.

mod commands;
mod machines;

use std::time::Duration;

use dormouse_proto::v1::{Command, Ready, Welcome, command, report};
use dormouse_units::Speedup;
use tokio::sync::mpsc;

pub use commands::refused;
pub use machines::Machines;

use commands::Reading;

use super::{
    AgentError, Result, bounds, noop::Noop, report::report, session::Heard, vm::CommandStamp,
};

/// Time between two counts of what the host does beside the VMs.
const COUNT_EVERY: Duration = Duration::from_secs(2);

/// How a life ends.
#[derive(Debug)]
pub enum End {
    /// The run is over.
    Over {
        /// In the coordinator's words.
        why: String,
    },
    /// Everything here is given up for lost: come back as somebody new.
    Rejoin {
        /// The reason, in words.
        why: String,
    },
    /// The coordinator was away for too long.
    Lost {
        /// Time for which nothing was heard.
        after: Duration,
        /// Why the last attempt failed.
        why: String,
    },
    /// The coordinator doesn't take this worker, however often it comes.
    Refused {
        /// In the coordinator's words.
        why: String,
    },
    /// Somebody on this host has ended it.
    Terminated,
}

/// Waits for the first welcome; how the life ends if something else comes.
pub async fn welcomed(
    heard: &mut mpsc::UnboundedReceiver<Heard>,
) -> std::result::Result<Welcome, End> {
    match heard.recv().await {
        Some(Heard::Welcome(welcome)) => Ok(welcome),
        Some(other) => Err(ended(other)),
        None => Err(session_gone()),
    }
}

/// Lives from a welcome on until the session, `terminated` or an error ends it. No VM is left then.
///
/// # Errors
/// The coordinator does not keep the protocol, or the machines fail.
pub async fn go_on(
    welcome: Welcome,
    machines: impl Machines,
    heard: &mut mpsc::UnboundedReceiver<Heard>,
    terminated: impl Future<Output = ()>,
) -> Result<End> {
    let noop = welcome.noop.then(Noop::default);
    let mut life = Life { noop, machines, welcome };
    let end = life.go_on(heard, terminated).await;
    life.machines.clean_up().await;
    end
}

struct Life<M> {
    welcome: Welcome,
    machines: M,
    noop: Option<Noop>,
}

impl<M: Machines> Life<M> {
    async fn go_on(
        &mut self,
        heard: &mut mpsc::UnboundedReceiver<Heard>,
        terminated: impl Future<Output = ()>,
    ) -> Result<End> {
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
        let measuring = self.machines.measure(programs);
        tokio::pin!(measuring, terminated);
        let mut measured = self.noop.is_some();
        if measured {
            let real_repetition_us = vec![0; self.welcome.programs.len()];
            self.machines.report(report(report::Report::Ready(Ready { real_repetition_us })));
        }
        let mut count = tokio::time::interval(COUNT_EVERY);
        loop {
            tokio::select! {
                biased;
                () = &mut terminated => return Ok(End::Terminated),
                () = self.machines.abandoned() => {
                    // Never go on with VMs that nobody owns.
                    let what = "who supervises the VMs has ended".to_owned();
                    return Err(AgentError::Bug { what });
                }
                _ = count.tick(), if measured => {
                    self.machines.check()?;
                    if let Some(load) = self.machines.load() {
                        self.machines.report(report(report::Report::HostLoad(load)));
                    }
                }
                found = &mut measuring, if !measured => {
                    measured = true;
                    let real_repetition_us = found?;
                    let ready = Ready { real_repetition_us };
                    self.machines.report(report(report::Report::Ready(ready)));
                }
                said = heard.recv() => match said {
                    Some(Heard::Commands(first, commands)) => {
                        // Without its folder all that it is told would fail, again and again: its
                        // work goes elsewhere once it has left.
                        self.machines.check()?;
                        for (number, command) in (first..).zip(commands) {
                            self.obey(number, command)?;
                        }
                    }
                    Some(Heard::Welcome(again)) => {
                        if again.run != self.welcome.run {
                            let why = format!("the coordinator now runs {}", again.run);
                            return Ok(End::Rejoin { why });
                        }
                    }
                    Some(other) => return Ok(ended(other)),
                    None => return Ok(session_gone()),
                }
            }
        }
    }

    fn obey(&mut self, number: u64, command: Command) -> Result<()> {
        let asked = CommandStamp::from_command(&command);
        let command = match commands::known(number, command) {
            Ok(command) => command,
            Err(unsupported) => {
                self.machines.report(*unsupported);
                return Ok(());
            }
        };
        let is_fault = matches!(command, command::Command::Fault(_));
        if let Some(noop) = self.noop.as_mut().filter(|_| !is_fault) {
            noop.obey(command, |report| self.machines.report(report));
            return Ok(());
        }
        match commands::read(number, command)? {
            Reading::Create(create) => self.machines.create(create, asked),
            Reading::Ask(vm, ask) => self.machines.ask(vm, ask, asked),
            Reading::Fault(fault) => {
                self.machines.fault(fault);
                Ok(())
            }
            Reading::Refused(said) => {
                if let Some(said) = said {
                    self.machines.report(*said);
                }
                Ok(())
            }
        }
    }
}

/// The speed-up of a run; `None`: its clock stands still.
#[must_use]
pub fn speedup_of(welcome: &Welcome) -> Option<Speedup> {
    Speedup::from_emulated_us_per_second(welcome.emulated_us_per_second)
}

fn ended(heard: Heard) -> End {
    match heard {
        Heard::Goodbye { why, over: true } => End::Over { why },
        Heard::Goodbye { why, over: false } => End::Rejoin { why },
        Heard::Refused { why } => End::Refused { why },
        Heard::Lost { after, why } => End::Lost { after, why },
        Heard::Welcome(_) | Heard::Commands(..) => {
            End::Rejoin { why: "the session began with something else than a welcome".to_owned() }
        }
    }
}

fn session_gone() -> End {
    End::Lost { after: Duration::ZERO, why: "the session's thread has ended".to_owned() }
}
