//! `dormouse status`, `events` and `cancel`: looking on at a live run.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use dormouse_coordinator::{Remote, RemoteError, address_of};
use dormouse_proto::v1;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use super::args::{EventsArgs, RunningArgs};
use super::failure::Failure;
use super::print::print;

use crate::command_line::command_line;

/// The file of the secret in a run's folder.
const SECRET: &str = "secret";

pub(super) fn failed(error: &RemoteError) -> Failure {
    Failure::Broken(crate::chain::chain(error))
}

pub(super) fn runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Broken(format!("the runtime: {error}")))
}

/// The coordinator that is meant; `None`: nobody serves the run in that folder.
async fn dial(at: &RunningArgs) -> Result<Option<Remote>, Failure> {
    let folder = Path::new(&at.run);
    let (address, secret) = if folder.is_dir() {
        let Some(address) = address_of(folder).map_err(|e| failed(&e))? else { return Ok(None) };
        (address, at.secret_file.clone().unwrap_or_else(|| folder.join(SECRET)))
    } else {
        let wrong = |why: String| Failure::BadInput(format!("'{}' is no folder: {why}", at.run));
        let address = super::args::host_port(&at.run).map_err(wrong)?;
        (address, super::worker::secret_file(at.secret_file.as_deref(), "this")?)
    };
    let secret = super::worker::read_secret(&secret)?;
    Remote::dial(&address, secret).await.map(Some).map_err(|e| failed(&e))
}

pub(super) async fn must_dial(at: &RunningArgs) -> Result<Remote, Failure> {
    dial(at).await?.ok_or_else(|| {
        let dir = &at.run;
        let resume = command_line(["dormouse", "resume", dir]);
        let events = command_line(["dormouse", "events", dir]);
        Failure::Broken(format!(
            "{dir}: no coordinator serves this run: it is over, or was stopped (`{resume}` goes on \
             with one that was); `{events}` prints its events"
        ))
    })
}

/// Says how a run goes.
pub(crate) fn status(at: &RunningArgs, as_json: bool) -> Result<(), Failure> {
    let status = runtime()?.block_on(async {
        let mut remote = must_dial(at).await?;
        remote.status().await.map_err(|e| failed(&e))
    })?;
    let v1::StatusReply {
        experiment,
        tasks,
        completed,
        running,
        vms,
        workers,
        over,
        real_age_us,
        ..
    } = status;
    let age_s = real_age_us as f64 / 1e6;
    let (now_s, cost_usd) = (status.emulated_now_us as f64 / 1e6, status.cost_nanos as f64 / 1e9);
    if as_json {
        let status = json!({
            "experiment": experiment, "now_s": now_s, "tasks": tasks, "completed": completed,
            "running": running, "vms": vms, "workers": workers, "cost_usd": cost_usd, "over": over,
            "age_s": age_s,
        });
        return print(&status.to_string());
    }
    let over = if over { "; it is over" } else { "" };
    let thinks = match real_age_us {
        0 => String::new(),
        _ => format!("; so it was {age_s:.1} s ago, since when its scheduler thinks"),
    };
    print(&format!(
        "{experiment} at {now_s:.1} s: {completed} of {tasks} tasks are done, {running} are on {vms} \
         VMs of {workers} workers; ${cost_usd:.4} so far{over}{thinks}"
    ))
}

/// Ends a run before its time.
pub(crate) fn cancel(at: &RunningArgs, why: Option<&str>) -> Result<(), Failure> {
    runtime()?.block_on(async {
        let mut remote = must_dial(at).await?;
        remote.cancel(why.unwrap_or_default().to_owned()).await.map_err(|e| failed(&e))
    })?;
    print("it is told to end; its coordinator writes the results")
}

/// Prints the events of a run, as its log has them.
pub(crate) fn events(args: &EventsArgs) -> Result<(), Failure> {
    let EventsArgs { at, from, follow } = args;
    runtime()?.block_on(async {
        let Some(mut remote) = dial(at).await? else { return from_file(Path::new(&at.run), *from) };
        let wanted = v1::EventsRequest { from_seq: *from, header: false, follow: *follow };
        let mut events = remote.events(wanted).await.map_err(|e| failed(&e))?;
        while let Some(event) = events.next().await.map_err(|e| failed(&e))? {
            print(&event.line)?;
        }
        Ok(())
    })
}

/// Those of a run that nobody serves any more.
fn from_file(dir: &Path, from: u64) -> Result<(), Failure> {
    let path = dir.join(dormouse_log::FILE);
    let unreadable = |error| Failure::BadInput(format!("{}: {error}", path.display()));
    let mut file = BufReader::new(File::open(&path).map_err(unreadable)?);
    let mut out = std::io::stdout().lock();
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        // A torn tail is no event.
        if file.read_until(b'\n', &mut line).map_err(unreadable)? == 0 || !line.ends_with(b"\n") {
            return Ok(());
        }
        // The first line is the header.
        if number > from && out.write_all(&line).is_err() {
            // Its reader has gone away.
            return Ok(());
        }
        number += 1;
    }
}
