//! Calls of the provider's API, which the desk of a run answers, on their way to the run's conductor.

use std::fmt;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use dormouse_ec2::{ApiDesk, DeskPolicy};
use dormouse_ec2_wire::{ApiError, WireValue};
use dormouse_model::Event;
use dormouse_units::Time;
use tokio::sync::{mpsc, oneshot};

use crate::log::journal::OnceDurable;
use crate::messages::interruption::InjectedInterruption;
use crate::networks::PacketExchange;

/// The provider's API of a run: the desk that answers it, and the calls that come during the run. The VMs of such a run have
/// cells, in which they run programs of their own.
#[derive(Debug)]
pub struct RunApi {
    /// The desk, which is the run's policy as well.
    pub desk: DeskPolicy,
    /// Requests of callers; `None` once the run has begun to take them.
    pub requests: Option<mpsc::UnboundedReceiver<DeskRequest>>,
    /// Folder for the instances' consoles, a file for each.
    pub consoles: PathBuf,
}

impl RunApi {
    /// The part of the API that the conductor needs.
    pub(crate) fn run_desk(&self) -> RunDesk {
        RunDesk {
            desk: self.desk.clone(),
            consoles: self.consoles.clone(),
            exchange: Arc::default(),
        }
    }
}

/// The desk of a run, and the folder for its instances' consoles.
#[derive(Clone, Debug)]
pub(crate) struct RunDesk {
    pub(crate) desk: DeskPolicy,
    pub(crate) consoles: PathBuf,
    /// Passes packets between instances on different workers.
    pub(crate) exchange: Arc<PacketExchange>,
}

/// The desk's answer to a call.
pub type ApiAnswer = Result<WireValue, ApiError>;

/// A request of a caller of the provider's API.
#[derive(Debug)]
pub enum DeskRequest {
    /// A call that changes something, as an event; it is answered once it is in the log. The error says why the run can't take
    /// it.
    Call {
        /// The call: an [`Event::Called`].
        event: Event,
        /// Where the answer goes.
        reply: oneshot::Sender<Result<ApiAnswer, String>>,
    },
    /// Something that changes nothing: it looks at the desk at the present time of the run.
    Look(DeskLook),
    /// An interruption of a spot instance, by its id; the answer says whether it is interrupted, and comes once that is in the log.
    Interrupt {
        /// Id of the instance.
        instance: String,
        /// The reason, which goes into the log.
        why: String,
        /// Where the answer goes.
        reply: oneshot::Sender<bool>,
    },
    /// The end of the run: its instances end, and no more calls come.
    End,
}

/// A function that looks at the desk, at a time of the run.
type LookFunction = Box<dyn FnOnce(&mut ApiDesk, Time) + Send>;

/// A look at the desk, at a time of the run.
pub struct DeskLook(LookFunction);

impl DeskLook {
    /// Makes a look that calls a function with the desk and the time.
    pub fn new(look: impl FnOnce(&mut ApiDesk, Time) + Send + 'static) -> Self {
        Self(Box::new(look))
    }

    /// Looks at the desk.
    pub(crate) fn look(self, desk: &DeskPolicy, now: Time) {
        desk.with_desk(|desk| {
            desk.set_now(now);
            (self.0)(desk, now);
        });
    }
}

impl fmt::Debug for DeskLook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeskLook")
    }
}

/// The answer to a caller, which is sent once the event of the call is in the log.
#[derive(Debug)]
pub(crate) struct DurableReply<T> {
    pub(crate) answer: T,
    pub(crate) reply: oneshot::Sender<T>,
}

impl<T: fmt::Debug + Send + Sync> OnceDurable for DurableReply<T> {
    fn on_durable(self: Box<Self>) {
        // Whoever has left may ask again with the same token.
        let _ = self.reply.send(self.answer);
    }
}

/// Output of an instance, which is added to the file of its console.
#[derive(Debug)]
pub(crate) struct ConsoleOutput {
    pub(crate) folder: PathBuf,
    pub(crate) instance: String,
    pub(crate) text: String,
}

impl OnceDurable for ConsoleOutput {
    fn on_durable(self: Box<Self>) {
        let Self { folder, instance, text } = *self;
        let path = folder.join(format!("{instance}.log"));
        let written = std::fs::create_dir_all(&folder).and_then(|()| {
            let mut file = std::fs::File::options().create(true).append(true).open(&path)?;
            file.write_all(text.as_bytes())
        });
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "an instance's console can't be written");
        }
    }
}

/// Makes the interruption of a spot VM, for a reason that the log keeps.
pub(crate) fn interruption_of(vm: dormouse_units::VmId, why: String) -> InjectedInterruption {
    InjectedInterruption {
        target: dormouse_cloud::InterruptionTarget::Vm(vm),
        action: dormouse_cloud::InterruptionAction::Preempt,
        why,
    }
}
