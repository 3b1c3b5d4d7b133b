//! Checking messages of a coordinator, and requests of programs to the metadata service, as a worker does, but without
//! a host.
//!
//! The module exists so that fuzz targets reach all code that reads a message before any VM is made.

use dormouse_metadata::{EndpointSettings, HttpRequest, MetadataService, UnixTime};
use dormouse_proto::Inbox;
use dormouse_proto::v1::{Command, ToWorker, Welcome, command, to_worker::Body};
use dormouse_units::{Speedup, Time};

use super::{
    bounds::{self, OfferOccupancy},
    life::speedup_of,
    vm::CommandStamp,
};
use crate::{
    directory::TaskInput,
    metadata::{Clock, Moment, read_announcement, vm_facts},
    store::ImageKey,
    workspace::TaskName,
};

pub use crate::metadata::metadata_connection;

/// Capacity of the worker for which this module checks messages, in thousandths of a core.
const MILLICORES: u32 = 2_000;
/// Clock by which this module's checks read the VMs' times.
const CLOCK: Clock = Clock { speedup: Speedup::ONE, zero_unix_us: Some(1_600_000_000_000_000) };

/// Decodes and checks a message of a session with all its commands.
///
/// # Errors
///
/// Why the message is refused.
pub fn coordinator_message(message: ToWorker) -> Result<(), String> {
    match message.body {
        Some(Body::Welcome(welcome)) => check_welcome(&welcome),
        Some(Body::Commands(commands)) => {
            let (first, all) = (commands.first, commands.commands);
            let all = Inbox::default().take(first, all).map_err(|gap| gap.to_string())?;
            all.iter().try_fold(OfferOccupancy::default(), check_command).map(drop)
        }
        Some(Body::Heartbeat(_) | Body::Goodbye(_)) | None => Ok(()),
    }
}

fn check_welcome(welcome: &Welcome) -> Result<(), String> {
    let speedup = speedup_of(welcome).ok_or("a run whose clock has speed 0")?;
    let _ = speedup.to_real(Time::from_micros(welcome.now_us).since(Time::ZERO));
    ImageKey::new(&welcome.image_key).ok_or("no key")?;
    TaskName::new(welcome.run.as_str(), "t0").map_err(|error| error.to_string())?;
    welcome.programs.iter().try_for_each(bounds::check_program)
}

/// Checks a command on a worker whose VMs occupy `held` of its offer; returns what they occupy afterwards.
fn check_command(held: OfferOccupancy, command: &Command) -> Result<OfferOccupancy, String> {
    let asked = CommandStamp::from_command(command);
    let Some(told) = &command.command else { return Ok(held) };
    bounds::check_command(told)?;
    let decided = Moment { unix_us: 1_700_000_000_000_000, run: asked.at };
    match told {
        command::Command::CreateVm(create) => {
            let held = held.plus_other(OfferOccupancy::taken_by(create));
            held.check_fits(MILLICORES)?;
            if let Some(metadata) = &create.metadata {
                let facts = vm_facts("run", create, metadata, CLOCK, decided);
                let key = dormouse_metadata::TokenSecret::new([7; 32]);
                let mut service = MetadataService::new(facts, EndpointSettings::default(), key);
                let now = UnixTime::from_micros(decided.unix_us);
                let root =
                    HttpRequest::new(dormouse_metadata::HttpMethod::Get, "/latest/meta-data/");
                drop(service.answer_request(&root, now));
            }
            return Ok(held);
        }
        command::Command::StartTask(start) => {
            let _ = bounds::image_bytes(start);
            if let Some(own) = &start.own {
                let inputs: Result<Vec<_>, _> = own.inputs.iter().map(TaskInput::read).collect();
                inputs.map_err(|error| error.to_string())?;
            }
        }
        command::Command::Announce(said) => {
            let _ = read_announcement(said, CLOCK, decided);
        }
        _ => {}
    }
    Ok(held)
}
