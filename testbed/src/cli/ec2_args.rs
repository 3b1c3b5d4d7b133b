//! The arguments of `dormouse ec2`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::args::{address_at, listen_at};
use super::input_args::InputArgs;
use super::known_name::EXPERIMENT;

/// Default TCP port of the endpoint of `dormouse ec2`.
const PORT: u16 = 7382;

#[derive(Debug, Args)]
pub(crate) struct Ec2Args {
    /// A TOML file, or the name of a built-in experiment, whose cloud is called: its types, zones, prices, capacity and
    /// interruptions
    #[arg(value_parser = EXPERIMENT, hide_possible_values = true, required_unless_present = "clock")]
    pub(crate) experiment: Option<String>,
    /// Where to listen; port 0 is any free one, without a port it is 7382. On addresses other than loopback, signatures are checked
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:7382",
        value_parser = |text: &str| address_at(text, PORT),
        help_heading = "The service"
    )]
    pub(crate) listen: SocketAddr,
    /// How the emulated clock moves: `paced X`, X times as fast as the host's clock; `manual`, only at POST /_dormouse/advance; or
    /// `live X`, in which instances run programs on this host, at X times the host's clock (1 without X)
    #[arg(
        long,
        num_args = 1..=2,
        value_names = ["paced|manual|live", "X"],
        default_values = ["paced", "60"],
        help_heading = "The service"
    )]
    pub(crate) clock: Vec<String>,
    /// Number of workers to wait for before a live run begins [default: as the experiment says]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "The service")]
    pub(crate) workers: Option<String>,
    /// Where a live run listens for workers of other hosts, such as 0.0.0.0; without a port it is 7380 [default: it starts workers
    /// on this host]
    #[arg(long, value_name = "ADDRESS", value_parser = listen_at, help_heading = "The service")]
    pub(crate) listen_workers: Option<SocketAddr>,
    /// A file with the access keys that may call, each with its secret on a line: signatures are checked [default: on loopback
    /// they are not]
    #[arg(long, value_name = "FILE", help_heading = "The service")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Random seed
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "What is run")]
    pub(crate) seed: Option<String>,
    /// Set any key of the experiment by its path, such as cloud.boot=30s
    #[arg(
        long,
        value_name = "KEY=VALUE",
        allow_hyphen_values = true,
        help_heading = "What is run"
    )]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    /// Folder for the results of the run, which is complete once a signal has ended the run [default: runs/NAME-ec2-sSEED]
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub(crate) out: Option<PathBuf>,
    /// Replace another run, or write into a folder that holds other things
    #[arg(long, help_heading = "Results")]
    pub(crate) force: bool,
    /// Begin the run, or continue it if --out holds this run and it was killed: calls that were answered stay answered
    #[arg(long, requires = "out", conflicts_with = "force", help_heading = "Results")]
    pub(crate) resume: bool,
    /// Print nothing but the endpoint and errors
    #[arg(long, short, help_heading = "Results")]
    pub(crate) quiet: bool,
}
