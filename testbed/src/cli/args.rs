//! Arguments of the subcommands that have no file of their own.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use dormouse_identity::{Role, TokenId};
use dormouse_units::{Bytes, Ppm, Span};

use super::input_args::InputArgs;
use super::known_name::EXPERIMENT;
use super::known_name::SCHEDULER;
use super::own_args::OwnArgs;

/// Options for live runs only.
#[derive(Debug, Args)]
pub(crate) struct LiveArgs {
    /// Number of workers to wait for before the run begins [default: as the experiment says]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Live runs")]
    pub(crate) workers: Option<String>,
    /// Accept parallel jobs from `dormouse submit` during the run, and end it only after `dormouse close`
    #[arg(long, help_heading = "Live runs")]
    pub(crate) open: bool,
}

#[derive(Debug, Args)]
#[command(
    mut_arg("experiment", |arg| arg.index(1).required_unless_present("on")),
    mut_arg("workers", |arg| arg.requires("live").help(
        "Workers to start on this host, of live runs [default: as the experiment says]"
    )),
    mut_arg("open", |arg| arg.requires("live").help(
        "Take parallel jobs from `dormouse submit` while it runs live, and end only after `dormouse \
         close`"
    )),
    mut_arg("http", |arg| arg.requires("live")),
    mut_arg("open_page", |arg| arg.requires("live")),
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) what: WhatArgs,
    /// Run under a virtual clock, with modelled machines (the default)
    #[arg(long = "virtual", conflicts_with = "live", help_heading = "What is run")]
    pub(crate) _virtual: bool,
    /// Run on real processes under a dilated clock, on this host; needs root
    #[arg(id = "live", long = "live", help_heading = "Live runs")]
    pub(crate) is_live: bool,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// File with the measurements of `dormouse calibrate`, from which the speed-up is chosen [default: calibration.json in
    /// $DORMOUSE_HOME, or in /var/lib/dormouse]
    #[arg(long, value_name = "FILE", requires = "live", help_heading = "Live runs")]
    pub(crate) calibration: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// The experiment whose cloud, scheduler and interruptions the command runs under, in place of the experiment's tasks
    #[arg(long, value_name = "EXPERIMENT", requires = "command", conflicts_with = "experiment", value_parser = EXPERIMENT, hide_possible_values = true, help_heading = "A program of your own")]
    pub(crate) on: Option<String>,
    #[command(flatten)]
    pub(crate) own: OwnArgs,
}

/// Options for the page of a live run.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct PageArgs {
    /// Serve a page of the run, and its metrics, at this address, such as 127.0.0.1:7381
    ///
    /// Port 0 is any free one. From other hosts the page asks for a token of the run.
    #[arg(long, value_name = "ADDRESS", value_parser = page_at, help_heading = "Live runs")]
    pub(crate) http: Option<SocketAddr>,
    /// Open the page in the browser
    #[arg(long, help_heading = "Live runs")]
    pub(crate) open_page: bool,
}

/// Options for the output of a command; errors are always printed.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Say {
    /// Print nothing but errors
    #[arg(long, short, conflicts_with = "json", help_heading = "Results")]
    pub(crate) quiet: bool,
    /// Print summary.json instead of the table
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(mut_arg("json", |json| json.help("Print the table as JSON")))]
pub(crate) struct CalibrateArgs {
    /// Greatest allowed error of a task's time, as a part of that time
    #[arg(long, value_name = "PART", default_value = "0.05", allow_hyphen_values = true, value_parser = |text: &str| within(text, 0.0001, 1.0))]
    pub(crate) error: f64,
    /// Greatest allowed mean error of the tasks' times, as a part of them
    #[arg(long, value_name = "PART", default_value = "0.005", allow_hyphen_values = true, value_parser = |text: &str| within(text, 0.0001, 1.0))]
    pub(crate) mean: f64,
    /// Speed-ups to measure at, comma-separated [default: 10,20,30,50,100,200; --quick: 20,50,100]
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, value_parser = |text: &str| within(text, 1.0, 1_000.0))]
    pub(crate) speedups: Vec<f64>,
    /// Loads to measure at, comma-separated [default: 0.25,0.5,1; --quick: 0.5,1]
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, value_parser = |text: &str| within(text, 0.01, 10.0))]
    pub(crate) loads: Vec<f64>,
    /// Number of runs of each setting, each with its own seed
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeat: u32,
    /// Make fewer and shorter runs, which take about a minute
    #[arg(long)]
    pub(crate) quick: bool,
    /// File for the measured table; entries of this host that it has already are kept [default: calibration.json in $DORMOUSE_HOME,
    /// or in /var/lib/dormouse]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) say: Say,
}

fn within(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let wrong = || format!("write a number from {least} to {most}");
    let number: f64 = text.trim().parse().map_err(|_| wrong())?;
    if (least..=most).contains(&number) { Ok(number) } else { Err(wrong()) }
}

/// Default ports of a coordinator, and of a run's page.
const PORTS: (u16, u16) = (7380, 7381);

/// Parses an address on which to listen for workers.
pub(super) fn listen_at(text: &str) -> Result<SocketAddr, String> {
    address_at(text, PORTS.0)
}

/// Parses an address at which to serve a page.
fn page_at(text: &str) -> Result<SocketAddr, String> {
    address_at(text, PORTS.1)
}

/// Parses an address of this host; `port` is used if it names none.
pub(super) fn address_at(text: &str, port: u16) -> Result<SocketAddr, String> {
    let text = text.trim();
    let alone = || text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, port));
    text.parse().or_else(|_| alone()).map_err(|_| {
        format!(
            "write an address of this host and a port, such as 0.0.0.0:{port}, or the address alone"
        )
    })
}

pub(super) fn host_port(text: &str) -> Result<String, String> {
    let named = |host: &str| {
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or_else(|| {
            // An address with colons of its own needs its brackets.
            if host.contains(':') { "" } else { host }
        });
        let plain = |c: char| c.is_alphanumeric() || "-._:%".contains(c);
        !host.is_empty() && host.chars().all(plain)
    };
    let port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    match text.rsplit_once(':') {
        Some((host, number)) if named(host) && port(number) => Ok(text.to_owned()),
        _ => Err("write HOST:PORT, such as 10.0.0.5:7380".to_owned()),
    }
}

/// Options that name a running run.
#[derive(Debug, Args)]
pub(crate) struct RunningArgs {
    /// The folder of the run, or its coordinator's address, HOST:PORT
    #[arg(value_name = "DIR|ADDRESS")]
    pub(crate) run: String,
    /// File with a token of the run: a copy of `secret.observer`, or of `secret.operator` to act on the run; - for standard input
    /// [default: the file in the run's folder; with an address, the file that $DORMOUSE_SECRET_FILE names]
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
}

/// Options that name the folder of an earlier run.
#[derive(Debug, Args)]
pub(crate) struct RecordedArgs {
    /// The folder of the run
    pub(crate) dir: PathBuf,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) at: RunningArgs,
    /// Number of the first event to print
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) from: u64,
    /// Print new events, too, until the run is over
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CoordinatorArgs {
    #[command(flatten)]
    pub(crate) what: WhatArgs,
    /// Where to listen for workers, such as 0.0.0.0; port 0 is any free one, without a port it is 7380
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7380", value_parser = listen_at)]
    pub(crate) listen: SocketAddr,
    /// Begin the run, or continue it if the folder of its results holds this run unfinished; a finished run is
    /// left as it is, with status 0
    #[arg(long, conflicts_with = "force")]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The folder of the run
    pub(crate) dir: PathBuf,
    /// Where to serve the page [default: any free port of this host]
    #[arg(long, value_name = "ADDRESS", value_parser = page_at)]
    pub(crate) http: Option<SocketAddr>,
    /// Play the run from its beginning, at this multiple of its clock's speed
    #[arg(long, value_name = "X", allow_hyphen_values = true, value_parser = |text: &str| within(text, 0.001, 1e6))]
    pub(crate) speed: Option<f64>,
    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open_page: bool,
    /// A file of the token that browsers of other hosts have to show [default: the files of the run's observer and operator]
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    pub(crate) at: RunningArgs,
    /// Number of the job's processes; each needs a processor
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) processors: u32,
    /// Run time of the job on processors of its own, in emulated time, such as 90s
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Span,
    /// Run time that the job's user estimates [default: the run time itself]
    #[arg(long, value_name = "TIME")]
    pub(crate) estimate: Option<Span>,
    /// Part of a processor that each of the job's processes uses: one value for all of them, or a list with one value each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1", value_parser = usage)]
    pub(crate) usage: Vec<Ppm>,
    /// Memory that each of the job's processes needs, such as "512 MiB" [default: not known]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// A name of the submission: a submission that is sent again under its name is the same job [default: a new name]
    #[arg(long)]
    pub(crate) key: Option<String>,
}

fn usage(text: &str) -> Result<Ppm, String> {
    within(text, 0.01, 1.0).and_then(|part| {
        Ppm::from_f64(part)
            .ok_or_else(|| "it is not a share; write a number from 0.01 to 1".to_owned())
    })
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The folder of the run
    pub(crate) dir: PathBuf,
    /// Address on which to listen for the run's workers on other hosts [default: resume on workers of this host]
    #[arg(long, value_name = "ADDRESS", value_parser = listen_at)]
    pub(crate) listen: Option<SocketAddr>,
    /// Resume even if the log is not as it was sealed: it is sealed again as it is now, which `dormouse check` finds
    #[arg(long)]
    pub(crate) reseal: bool,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    #[command(flatten)]
    pub(crate) say: Say,
}

#[derive(Debug, Args)]
pub(crate) struct TwinArgs {
    /// The folder of the run
    pub(crate) dir: PathBuf,
    /// Print every task and VM, not just those that differ most
    #[arg(long, conflicts_with = "json")]
    pub(crate) all: bool,
    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder in which to leave twin.csv, with one line for each task or job
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// The experiment that is run, and the place of its results.
#[derive(Debug, Args)]
pub(crate) struct WhatArgs {
    /// A TOML file, or the name of a built-in experiment
    #[arg(required_unless_present = "job", value_parser = EXPERIMENT, hide_possible_values = true)]
    pub(crate) experiment: Option<String>,
    /// Random seed
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "What is run")]
    pub(crate) seed: Option<String>,
    /// Emulated seconds per real second, of live runs [default: the experiment's, or less]
    ///
    /// Without it, `run --live` of a bag takes the highest speed-up, up to the experiment's, at which the errors that `dormouse
    /// calibrate` measured are within live.worst-error and live.mean-error. Other runs, and runs on a host that is not calibrated,
    /// take the experiment's.
    #[arg(long, value_name = "X", allow_hyphen_values = true, help_heading = "Live runs")]
    pub(crate) speedup: Option<String>,
    /// Where the results go [default: runs/NAME-SCHEDULER-sSEED, followed by the options that were set]
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub(crate) out: Option<PathBuf>,
    /// Begin even a live run that takes more than 12 hours of real time
    #[arg(long, help_heading = "Live runs")]
    pub(crate) allow_long: bool,
    /// Replace another run, or write into a folder that holds other things
    #[arg(long, help_heading = "Results")]
    pub(crate) force: bool,
    /// The scheduler: a name from `dormouse list`, or the path of a program of your own, such as ./mine.py
    #[arg(long, value_name = "NAME", value_parser = SCHEDULER, hide_possible_values = true, help_heading = "What is run")]
    pub(crate) scheduler: Option<String>,
    /// Set any key of the experiment by its path, such as scheduler.alpha=0.7
    #[arg(
        long,
        value_name = "KEY=VALUE",
        allow_hyphen_values = true,
        help_heading = "What is run"
    )]
    pub(crate) set: Vec<String>,
    /// A job file of the Burst-HADS artifact
    #[arg(long, value_name = "FILE", help_heading = "What is run")]
    pub(crate) job: Option<PathBuf>,
    /// An environment file of the Burst-HADS artifact
    #[arg(long, value_name = "FILE", requires = "job", help_heading = "What is run")]
    pub(crate) env: Option<PathBuf>,
    /// A plan to run: plan.json of a run, or one stored with the artifact
    #[arg(long, value_name = "FILE", help_heading = "What is run")]
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    #[command(flatten)]
    pub(crate) say: Say,
}

#[derive(Debug, Args)]
pub(crate) struct IdentityArgs {
    /// Folder for the keys and tokens of the identity; it is created
    pub(crate) dir: PathBuf,
    /// Real time for which the tokens of the identity are valid; a worker that has joined stays
    #[arg(long, value_name = "TIME", default_value = "365d")]
    pub(crate) valid: Span,
}

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// The folder of the run, or of the identity
    pub(crate) dir: PathBuf,
    /// Role that the token gives: worker (may join), observer (may read), operator (may also act)
    #[arg(long, default_value = "observer")]
    pub(crate) role: Role,
    /// Replace the token: the old one stops working, and workers that joined with it leave
    #[arg(long, group = "new")]
    pub(crate) renew: bool,
    /// Make a token with which one worker can join, once; the other tokens stay valid
    #[arg(long, group = "new", conflicts_with = "role")]
    pub(crate) once: bool,
    /// Refuse the token of this name, and who has joined with it; audit.jsonl in the folder has the names
    #[arg(long, value_name = "NAME", conflicts_with_all = ["new", "role"])]
    pub(crate) refuse: Option<TokenId>,
    /// Time for which a new token is valid, real time
    #[arg(long, value_name = "TIME", default_value = "7d", requires = "new")]
    pub(crate) valid: Span,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_alone_has_a_port() {
        let all = [("0.0.0.0", "0.0.0.0:7380"), ("::", "[::]:7380"), ("[::1]:5", "[::1]:5")];
        for (text, address) in all {
            assert_eq!(listen_at(text).map(|at| at.to_string()), Ok(address.to_owned()));
        }
        assert_eq!(page_at("127.0.0.1").map(|at| at.port()), Ok(7381));
        for text in ["7380", "0.0.0.0:", "lab1", ""] {
            let no = listen_at(text).expect_err("no address");
            assert!(no.contains("0.0.0.0:7380"), "{no}");
        }
    }
}
