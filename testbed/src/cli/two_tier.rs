//! `dormouse reproduce measy/two-tier`.

use dormouse_host::two_tier::{PAIRS, TwoTierError, TwoTierHost, USAGES, measure};

use super::failure::Failure;
use super::print::print;
use super::reproduce::TwoTierArgs;
use super::worker::task_program;
use crate::said;
use crate::two_tier::{table, write};
use dormouse_experiment::command_line;
use dormouse_report::output::make_folder;

/// Measures two-tier sharing on this host, writes the results and prints them. Must be called while the process has a single
/// thread, because it first starts the process that removes its control groups if it is killed (the guardian).
pub(super) fn reproduce(args: &TwoTierArgs) -> Result<(), Failure> {
    let broken = |error: TwoTierError| Failure::Broken(dormouse_experiment::chain(&error));
    let (asked, quiet) = (&args.usages, args.common.say.quiet);
    let usages = if asked.is_empty() { &USAGES[..] } else { asked };
    let seeds = args.seeds.unwrap_or(PAIRS);
    let out = args.common.folder("reproduce-measy-two-tier", None);

    let host = TwoTierHost::prepare(&task_program()?).map_err(broken)?;
    if host.cores() < 2 && !quiet {
        said::note("this host has one processor: jobs of several processes are left out");
    }
    let measured = args.common.watched(|show| {
        measure(&host, usages, seeds, |n, of| show("measured", n, of)).map_err(broken)
    });
    drop(host);
    let measured = measured?;
    make_folder(&out)?;
    write(&measured, &command(usages, seeds), &out).map_err(broken)?;
    if quiet {
        return Ok(());
    }
    print(&table(&measured, super::terminal::stdout()))?;
    print(&format!("\n  results in {}", out.display()))
}

/// The command that repeats the measurement.
fn command(usages: &[u32], seeds: u64) -> String {
    let list: Vec<String> = usages.iter().map(ToString::to_string).collect();
    let (seeds, list) = (seeds.to_string(), list.join(","));
    let what = ["dormouse", "reproduce", "measy/two-tier"];
    command_line(what.into_iter().chain(["--seeds", &seeds, "--usages", &list]))
}
