//! The arguments of `dormouse metadata`. Options that amazon-ec2-metadata-mock also has have the same names here.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use dormouse_input::Moment;
use dormouse_units::Speedup;

#[derive(Debug, Args)]
pub(crate) struct MetadataArgs {
    /// What happens to the VM: an experiment, or a file with its [[interruption]] alone
    #[arg(long, value_name = "FILE", conflicts_with_all = TIMES)]
    pub(crate) scenario: Option<String>,
    /// The number of the VM, which a scenario may name
    #[arg(long, value_name = "N", default_value_t = 0, global = true, help_heading = "The VM")]
    pub(crate) vm: u32,
    /// The type of the VM, such as c3.large [default: a spot type to which something happens in the scenario, else m5.large]
    #[arg(long = "type", value_name = "TYPE", global = true, help_heading = "The VM")]
    pub(crate) kind: Option<String>,
    /// The zone of the VM [default: one of the scenario, else us-east-1a]
    #[arg(long, value_name = "ZONE", global = true, help_heading = "The VM")]
    pub(crate) zone: Option<String>,
    /// How much faster than real time the scenario goes [default: 1]
    #[arg(long, value_name = "X", value_parser = speedup, requires = "scenario")]
    pub(crate) speedup: Option<Speedup>,
    /// A tag of the VM, in addition to the tags that the scenario gives
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = tag, global = true, help_heading = "The VM")]
    pub(crate) tags: Vec<(String, String)>,
    /// A file whose text is the VM's user data
    #[arg(long, value_name = "FILE", global = true, help_heading = "The VM")]
    pub(crate) user_data: Option<PathBuf>,
    /// Where to listen: a name or an address of this host
    #[arg(
        long,
        short = 'n',
        value_name = "HOST",
        default_value = "127.0.0.1",
        global = true,
        help_heading = "The service"
    )]
    pub(crate) hostname: String,
    /// The port to listen on; 0 is any that is free
    #[arg(
        long,
        short = 'p',
        value_name = "PORT",
        default_value_t = 1338,
        global = true,
        help_heading = "The service"
    )]
    pub(crate) port: u16,
    /// Demand tokens: version 2 of EC2's service alone
    #[arg(long, short = 'I', global = true, help_heading = "The service")]
    pub(crate) imdsv2: bool,
    #[command(flatten)]
    pub(crate) times: MockTimes,
    #[command(subcommand)]
    pub(crate) mock: Option<Mock>,
}

/// Names of the options that set times of announcements without a scenario.
const TIMES: [&str; 4] =
    ["mock_delay_sec", "mock_trigger_time", "rebalance_delay_sec", "rebalance_trigger_time"];

/// Options for the times of announcements without a scenario.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct MockTimes {
    /// Announce the interruption and the maintenance this many seconds from now [default: 0]
    #[arg(
        long,
        short = 'd',
        value_name = "SECONDS",
        global = true,
        help_heading = "When it is announced"
    )]
    pub(crate) mock_delay_sec: Option<u64>,
    /// Announce the interruption and the maintenance at this time, such as 2026-01-07T01:03:47Z, whatever --mock-delay-sec says
    #[arg(long, value_name = "TIME", value_parser = moment, global = true, help_heading = "When it is announced")]
    pub(crate) mock_trigger_time: Option<Moment>,
    /// Recommend to replace the VM this many seconds from now [default: 0]
    #[arg(long, value_name = "SECONDS", global = true, help_heading = "When it is announced")]
    pub(crate) rebalance_delay_sec: Option<u64>,
    /// Recommend to replace the VM at this time, whatever --rebalance-delay-sec says
    #[arg(long, value_name = "TIME", value_parser = moment, global = true, help_heading = "When it is announced")]
    pub(crate) rebalance_trigger_time: Option<Moment>,
}

/// The announcements made without a scenario; both if none is named.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Mock {
    /// Announce the interruption of a spot VM, and recommend to replace it
    Spot(SpotArgs),
    /// Announce maintenance of the VM's host
    #[command(visible_alias = "scheduledevents")]
    Events(EventsArgs),
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SpotArgs {
    /// What happens to the VM
    #[arg(long, short = 'a', value_enum, default_value_t)]
    pub(crate) action: SpotAction,
    /// Time of the change, such as 2026-01-07T01:03:47Z [default: two minutes after the announcement]
    #[arg(long, short = 't', value_name = "TIME", value_parser = moment)]
    pub(crate) time: Option<Moment>,
    /// The time that the recommendation names [default: the time at which it is announced]
    #[arg(long, short = 'r', value_name = "TIME", value_parser = moment)]
    pub(crate) rebalance_rec_time: Option<Moment>,
}

/// The act that is announced for a spot VM.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum SpotAction {
    /// The VM ends for good
    #[default]
    Terminate,
    /// The VM is stopped; its disk is kept
    Stop,
    /// The VM is frozen; its memory is kept
    Hibernate,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct EventsArgs {
    /// Kind of the maintenance, in EC2's words
    #[arg(long, short = 'o', value_enum, default_value_t)]
    pub(crate) code: EventCode,
    /// State of the maintenance event
    #[arg(long, short = 't', value_enum, default_value_t)]
    pub(crate) state: EventState,
    /// Earliest time at which the maintenance begins [default: now]
    #[arg(long, short = 'b', value_name = "TIME", value_parser = moment)]
    pub(crate) not_before: Option<Moment>,
    /// Latest time at which the maintenance ends [default: in 7 days]
    #[arg(long, short = 'a', value_name = "TIME", value_parser = moment)]
    pub(crate) not_after: Option<Moment>,
    /// Latest time at which the maintenance begins [default: in 9 days]
    #[arg(long, short = 'l', value_name = "TIME", value_parser = moment)]
    pub(crate) not_before_deadline: Option<Moment>,
}

/// EC2's words for kinds of maintenance.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum EventCode {
    InstanceReboot,
    #[default]
    SystemReboot,
    SystemMaintenance,
    InstanceRetirement,
    InstanceStop,
}

/// State of a maintenance event.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum EventState {
    /// The event is announced, or under way
    #[default]
    Active,
    /// The event is over
    Completed,
    /// The event was cancelled
    Canceled,
}

fn moment(text: &str) -> Result<Moment, String> {
    let date = Moment::read(text).filter(|moment| moment.has_zone.is_some() && moment.second >= 0);
    date.ok_or_else(|| "write it like 2026-01-07T01:03:47Z".to_owned())
}

fn speedup(text: &str) -> Result<Speedup, String> {
    let factor = text.trim().parse().ok().and_then(Speedup::from_f64);
    factor.ok_or_else(|| "write a number from 0.001 to 1000000".to_owned())
}

fn tag(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let pair = pair.map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "write it like Name=worker".to_owned())
}
