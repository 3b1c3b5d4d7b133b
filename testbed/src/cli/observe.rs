//! `dormouse status`, `events`, `submit`, `close` and `cancel`: requests to a live run while it is under way.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use dormouse_analysis::RunMode;
use dormouse_coordinator::{RemoteCoordinator, RemoteError, address_of};
use dormouse_identity::Role;
use dormouse_proto::v1;
use dormouse_units::Time;
use dormouse_units::printable;
use serde_json::json;
use tokio::runtime::Builder;

use super::args::{EventsArgs, RunningArgs, SubmitArgs};
use super::failure::Failure;
use super::print::{print, print_to_reader};
use super::run_folders;
use dormouse_experiment::chain;
use dormouse_experiment::command_line;
use dormouse_report::output::{is_unfinished, read_header};

fn wait<T>(until: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime
        .map_err(|error| Failure::Broken(format!("the runtime can't be started: {error}")))?
        .block_on(until)
}

/// Connects to the coordinator of a run, which must be under way, with the token of this role, and sends a request.
pub(super) fn ask<T, E: Into<Failure>>(
    at: &RunningArgs,
    role: Role,
    what: impl AsyncFnOnce(&mut RemoteCoordinator) -> Result<T, E>,
) -> Result<T, Failure> {
    wait(async {
        let mut remote = dial(at, role).await?.ok_or_else(|| Failure::Broken(unserved(&at.run)))?;
        what(&mut remote).await.map_err(Into::into)
    })
}

/// Explains why no coordinator serves the run in a folder, and which commands can be used instead.
fn unserved(dir: &str) -> String {
    let folder = Path::new(dir);
    if !run_folders::is_a_run(folder) {
        return format!("{dir}: no run has begun in it; {}", run_folders::meant(folder));
    }
    let on = |verb: &str| command_line(["dormouse", verb, dir]);
    let (events, check) = (on("events"), on("check"));
    if read_header(folder).is_ok_and(|header| header.mode == RunMode::Virtual) {
        return format!(
            "{dir}: no coordinator serves a virtual run, which is over at once; `{check}` checks its results"
        );
    }
    if is_unfinished(folder) {
        return format!(
            "{dir}: no coordinator serves this run: it was stopped; `{}` continues it, `{events}` prints \
             its events",
            on("resume")
        );
    }
    format!(
        "{dir}: no coordinator serves this run: it is over; `{check}` checks its results, `{events}` prints its events"
    )
}

/// Connects to the coordinator of a run; `None`: no coordinator serves the run in that folder.
async fn dial(at: &RunningArgs, role: Role) -> Result<Option<RemoteCoordinator>, Failure> {
    let folder = Path::new(&at.run);
    let (address, file) = if folder.is_dir() {
        let Some(address) = address_of(folder)? else { return Ok(None) };
        (address, at.secret_file.clone().unwrap_or_else(|| folder.join(role.file())))
    } else {
        let wrong = |why: String| {
            let meant = run_folders::meant(folder);
            Failure::BadInput(format!(
                "'{}' is neither a folder nor an address: for a run on another host, {why}; for one on this host, {meant}",
                at.run
            ))
        };
        let address = super::args::host_port(&at.run).map_err(wrong)?;
        (address, super::worker::secret_file(at.secret_file.as_deref(), "this")?)
    };
    let token = super::worker::read_token(&file, role)?;
    Ok(Some(RemoteCoordinator::dial_coordinator(&address, token).await?))
}

/// Prints the state of a live run.
pub(crate) fn status(at: &RunningArgs, as_json: bool) -> Result<(), Failure> {
    let is = ask(at, Role::Observer, async |remote| remote.get_status().await)?;
    // What is said of one from elsewhere has no header.
    let calendar = read_header(Path::new(&at.run)).map(|header| header.calendar);
    let (calendar, now) = (calendar.unwrap_or_default(), Time::from_micros(is.emulated_now_us));
    let (now_s, age_s) = (is.emulated_now_us as f64 / 1e6, is.real_age_us as f64 / 1e6);
    let cost_usd = is.cost_nanos as f64 / 1e9;
    if as_json {
        let mut status = json!({
            "experiment": is.experiment, "now_s": now_s, "tasks": is.tasks,
            "completed": is.completed, "running": is.running, "vms": is.vms,
            "workers": is.workers, "cost_usd": cost_usd, "over": is.over, "age_s": age_s,
        });
        if is.workers_lost > 0 {
            status["workers_lost"] = json!(is.workers_lost);
        }
        if is.workers_awaited > 0 {
            status["workers_back"] = json!(is.workers_back);
            status["workers_awaited"] = json!(is.workers_awaited);
        }
        if let Some(date) = calendar.date_at(now) {
            status["date"] = json!(date);
        }
        return print(&status.to_string());
    }
    let over = match (is.over, is.workers_awaited) {
        (true, _) => "; it is over".to_owned(),
        (false, 0) => String::new(),
        (false, of) => {
            format!("; it continues once its workers are back: {} of {of} are", is.workers_back)
        }
    };
    let gone = match is.workers_lost {
        0 => "",
        1 => "; 1 worker is gone",
        n => &format!("; {n} workers are gone"),
    };
    let thinks = match is.real_age_us {
        0 => String::new(),
        _ => format!("; so it was {age_s:.1} s ago, since when its scheduler thinks"),
    };
    let date = calendar.in_brackets(now);
    print(&format!(
        "{} at {now_s:.1} s{date}: {} of {} tasks are over, {} are on {} VMs of {} workers; \
         ${cost_usd:.4} so far{gone}{over}{thinks}",
        is.experiment, is.completed, is.tasks, is.running, is.vms, is.workers
    ))
}

/// Cancels a run that is under way.
pub(crate) fn cancel(at: &RunningArgs, why: Option<&str>) -> Result<(), Failure> {
    ask(at, Role::Operator, async |remote| {
        remote.cancel_run(why.unwrap_or_default().to_owned()).await
    })?;
    print("it is told to end; its coordinator writes the results")
}

/// Tells a run that accepts parallel jobs that no more jobs will be submitted.
pub(crate) fn close(at: &RunningArgs) -> Result<(), Failure> {
    ask(at, Role::Operator, RemoteCoordinator::close)?;
    print("it is closed: it ends once all its jobs have")
}

/// Submits one more parallel job to a run that takes jobs.
pub(crate) fn submit(args: &SubmitArgs) -> Result<(), Failure> {
    let SubmitArgs { at, processors, runtime, estimate, usage, memory, key } = args;
    let key = key.clone().unwrap_or_else(new_key);
    let request = v1::SubmitRequest {
        key: key.clone(),
        processes: *processors,
        emulated_runtime_us: runtime.as_micros(),
        emulated_estimate_us: estimate.unwrap_or(*runtime).as_micros(),
        usage_ppm: usage.iter().map(|part| part.get()).collect(),
        memory_bytes_each: memory.unwrap_or_default().get(),
    };
    let taken = ask(at, Role::Operator, async |remote| {
        remote.submit_job(request).await.map_err(|error| match error {
            // Whether it was taken is not known: asked again, it is the same job.
            error @ RemoteError::Silent { .. } => Failure::Broken(format!(
                "{}; run the same command with --key {key}: the job is submitted once, even if it \
                 was accepted before",
                chain(&error)
            )),
            error => error.into(),
        })
    })?;
    let v1::SubmitReply { number, emulated_at_us: at_us, known } = taken;
    let before = if known { "was submitted before" } else { "is submitted" };
    print(&format!("job {number} {before}, at {:.1} s", at_us as f64 / 1e6))
}

/// Makes a key that no other submission has.
fn new_key() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", since.as_nanos(), std::process::id())
}

/// Prints the events of a run, the lines of its log.
pub(crate) fn events(args: &EventsArgs) -> Result<(), Failure> {
    let EventsArgs { at, from, follow } = args;
    wait(async {
        let Some(mut remote) = dial(at, Role::Observer).await? else {
            return from_file(Path::new(&at.run), *from);
        };
        let wanted = v1::EventsRequest { from_seq: *from, header: false, follow: *follow };
        let mut events = remote.read_events(wanted).await?;
        while let Some(event) = events.next().await? {
            // Such as `grep -m 1` once it has seen what it looks for.
            if !print_to_reader(&event.line)? {
                break;
            }
        }
        Ok(())
    })
}

/// Prints the events of a run without a coordinator from its log file.
fn from_file(dir: &Path, from: u64) -> Result<(), Failure> {
    run_folders::check(dir)?;
    let path = dir.join(dormouse_log::FILE);
    let unreadable = |error| Failure::BadInput(format!("{}: {error}", path.display()));
    let mut file = BufReader::new(File::open(&path).map_err(unreadable)?);
    let mut out = std::io::stdout().lock();
    // The first line is the header.
    for number in 0.. {
        let mut line = Vec::new();
        file.read_until(b'\n', &mut line).map_err(unreadable)?;
        let text = String::from_utf8_lossy(&line);
        // A torn tail is no event; or the reader has gone away.
        if !line.ends_with(b"\n")
            || (number > from && out.write_all(printable(&text).as_bytes()).is_err())
        {
            break;
        }
    }
    Ok(())
}
