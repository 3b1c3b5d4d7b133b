//! `dormouse ec2`: an experiment's cloud behind EC2's API, until a signal ends it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dormouse_analysis::RunMode;
use dormouse_ec2::DeskConfig;
use dormouse_ec2_server::{AccessSecrets, ClockMode, Ec2Endpoint, EndpointSetup};
use dormouse_experiment::{LoadedExperiment, Override, Sources, command_line, open_cloud, option};
use dormouse_model::Calendar;
use dormouse_report::output::{
    LogHeader, ReplacedContent, StagedFolder, has_steps, is_unfinished, read_header,
};
use dormouse_report::run_view::RunResults;
use dormouse_units::{Ppm, Speedup};
use dormouse_worker::agent::find_ssh_server;
use tokio::runtime::Builder;

use super::args::Say;
use super::awaited_run::{note_end, remove_notes};
use super::ec2_args::Ec2Args;
use super::experiment_keys;
use super::failure::Failure;
use super::preflight::{self, ANY_PORT};
use super::print::print;
use super::run::end;
use crate::called::RecordedCloud;
use crate::live::{Conduct, claim_addresses, conduct_calls, rehearse_calls};
use crate::said;

/// The date at which a run begins if its prices have no dates: 2026-01-01, in seconds since 1970.
const DEFAULT_BEGIN: i64 = 1_767_225_600;

/// Serves the cloud of an experiment. A run that listens for workers leaves a note for those that wait for it, as `dormouse
/// coordinator` does.
pub(crate) fn ec2(args: &Ec2Args) -> Result<(), Failure> {
    let run = args.out.as_deref().filter(|_| args.listen_workers.is_some());
    run.iter().for_each(|run| remove_notes(run));
    let done = serve_experiment(args);
    run.iter().for_each(|run| note_end(run, &done));
    done
}

fn serve_experiment(args: &Ec2Args) -> Result<(), Failure> {
    args.inputs.apply()?;
    let (name, clock) = experiment_and_clock(args)?;
    let secrets = args.secret_file.as_deref().map(AccessSecrets::read).transpose();
    let secrets = secrets.map_err(|error| Failure::BadInput(error.to_string()))?;
    let mut loaded = opened(args, name)?;
    let claimed = match clock {
        ClockMode::Live(speedup) => runs_live(&mut loaded, speedup, args.listen_workers.is_some())?,
        ClockMode::Paced(_) | ClockMode::Manual if needs_live(args) => {
            let why = "--workers and --listen-workers are of live runs: add --clock live";
            return Err(Failure::BadInput(why.to_owned()));
        }
        ClockMode::Paced(_) | ClockMode::Manual => None,
    };
    if !args.quiet {
        loaded.notes.iter().for_each(|note| said::note(note));
    }
    let header = header(args, (name, clock), loaded);
    let folder = args.out.clone().unwrap_or_else(|| {
        let experiment = &header.experiment;
        PathBuf::from("runs").join(format!("{}-ec2-s{}", experiment.name, experiment.setup.seed))
    });
    if matches!(clock, ClockMode::Live(_)) {
        let setup = EndpointSetup { listen: args.listen, clock, secrets };
        let served = serve_live(args, &header, &folder, setup);
        drop(claimed);
        return served;
    }
    let (staging, cloud) = match args.resume && folder.join(dormouse_log::FILE).is_file() {
        true => gone_on(&folder, &header)?,
        false => {
            let staging =
                StagedFolder::begin_in_place(&folder, ReplacedContent::by(&header, args.force))?;
            let cloud = RecordedCloud::begin(&header, staging.path())?;
            (staging, cloud)
        }
    };
    let setup = EndpointSetup { listen: args.listen, clock, secrets };
    let cloud = serve(setup, cloud)?;
    let record = cloud.close().ok_or_else(|| {
        let why = "the run's log was closed before the run's end (a bug of this program); start `dormouse ec2` again";
        Failure::Broken(why.to_owned())
    })?;
    let results = record.finish(&header)?;
    end(Say { quiet: args.quiet, json: false }, &results, staging)
}

/// Whether an option is given that only a live run has.
const fn needs_live(args: &Ec2Args) -> bool {
    args.workers.is_some() || args.listen_workers.is_some()
}

/// The run in a folder, continued from its log after it was killed.
fn gone_on(folder: &Path, header: &LogHeader) -> Result<(StagedFolder, RecordedCloud), Failure> {
    let dir = folder.display();
    if !is_unfinished(folder) {
        let why = format!("{dir}: the run is over, and its results are there; give another --out");
        return Err(Failure::BadInput(why));
    }
    let former = read_header(folder)?;
    if former.experiment != header.experiment {
        let why = format!(
            "{dir}: it holds another run, that of `{}`; give another --out",
            former.command
        );
        return Err(Failure::BadInput(why));
    }
    let staging = StagedFolder::go_on(folder)?;
    let cloud = RecordedCloud::go_on(&former, staging.path())?;
    match cloud {
        Some(cloud) => Ok((staging, cloud)),
        None => {
            let why = format!(
                "{dir}: its calls come out otherwise than its log says; give another --out"
            );
            Err(Failure::Broken(why))
        }
    }
}

/// Serves the cloud of a live run, whose instances run on workers, until a signal ends the run.
fn serve_live(
    args: &Ec2Args,
    header: &LogHeader,
    folder: &Path,
    endpoint: EndpointSetup,
) -> Result<(), Failure> {
    let say = Say { quiet: args.quiet, json: false };
    if args.resume {
        let why =
            "--resume is not played with --clock live: begin the run anew, with another --out";
        return Err(Failure::BadInput(why.to_owned()));
    }
    if args.listen_workers.is_none() {
        preflight::check(&header.experiment.name, false, say)?;
    }
    let began = Instant::now();
    let mut staging =
        StagedFolder::begin_in_place(folder, ReplacedContent::by(header, args.force))?;
    let conduct = Conduct {
        header,
        scheduler: None,
        rehearsal: rehearse_calls(header),
        submissions: Vec::new(),
        requests: Vec::new(),
        listen: args.listen_workers.unwrap_or(ANY_PORT),
        local_workers: match args.listen_workers {
            Some(_) => 0,
            None => header.experiment.live.workers,
        },
        out: staging.path().to_path_buf(),
        resume: false,
        page: None,
        sources: Sources::new(),
    };
    super::log::begin(args.listen_workers.is_some() && !args.quiet, Some(staging.path()));
    let conducted = conduct_calls(conduct, endpoint, |url| {
        // Whoever does not read it can still call the endpoint.
        let _ = print(&format!("AWS_ENDPOINT_URL={url}"));
    });
    let (results, _) = conducted.inspect_err(|error| {
        if !error.is_bad_input() && has_steps(staging.path()) {
            staging.settle();
        }
    })?;
    let wall_s = began.elapsed().as_secs_f64();
    end(say, &RunResults { wall_s, ..results }, staging)
}

/// Makes an experiment one whose instances run, at this speed-up; fails if it declares what their programs use, as that is measured.
/// Only the hosts of workers from elsewhere know whether they have an ssh server. Returns the claim of the run on its public
/// addresses.
fn runs_live(
    loaded: &mut LoadedExperiment,
    speedup: Speedup,
    are_elsewhere: bool,
) -> Result<Option<TcpListener>, Failure> {
    loaded.experiment.live.speedup = speedup;
    let (block, claim) = claim_addresses().unzip();
    if let Some(config) = &mut loaded.experiment.ec2 {
        if config.vcpu_use != Ppm::ZERO {
            let why = "cloud.vcpu-use is not played with --clock live, which measures what programs use: leave the key out";
            return Err(Failure::BadInput(why.to_owned()));
        }
        config.runs_programs = true;
        config.has_ssh = are_elsewhere || find_ssh_server(&lent_folders()).is_some();
        config.public_block = block;
    }
    // Live instances are in standard mode: what their programs use is measured, and no surplus is charged.
    let types = loaded.experiment.setup.catalogue.types.values_mut();
    types.filter_map(|kind| kind.burstable.as_mut()).for_each(|it| it.surplus = None);
    Ok(claim)
}

/// Folders that the workers of a live run let programs read.
fn lent_folders() -> Vec<PathBuf> {
    let said = std::env::var_os("DORMOUSE_ALLOW_MOUNTS").unwrap_or_default();
    std::env::split_paths(&said).collect()
}

/// Serves the cloud until a signal ends the process.
fn serve(setup: EndpointSetup, cloud: RecordedCloud) -> Result<RecordedCloud, Failure> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::Broken(format!("the runtime can't be started: {error}")))?;
    let served: Result<_, Failure> = runtime.block_on(async {
        let mut signals = dormouse_coordinator::ProcessSignals::of_this_process()
            .map_err(|error| Failure::Broken(format!("signals can't be received: {error}")))?;
        let endpoint = Ec2Endpoint::bind(setup, cloud).await;
        let endpoint = endpoint.map_err(|error| Failure::BadInput(error.to_string()))?;
        print(&format!("AWS_ENDPOINT_URL={}", endpoint.url()))?;
        Ok(endpoint.serve_until(signals.next()).await)
    });
    served?.ok_or_else(|| Failure::Broken("the run broke while it answered a call (a bug of this program); start `dormouse ec2` again".to_owned()))
}

/// The experiment and the clock of a command line. A file that follows the clock's name is the experiment, though it is read as the clock's second word.
fn experiment_and_clock(args: &Ec2Args) -> Result<(&str, ClockMode), Failure> {
    match (&args.experiment, &args.clock[..]) {
        (Some(name), words) => Ok((name, clock_mode(words)?)),
        (None, [words @ .., name]) if !words.is_empty() && name.parse::<f64>().is_err() => {
            Ok((name, clock_mode(words)?))
        }
        (None, _) => {
            let why =
                "an experiment is missing: give a TOML file, or a name that `dormouse list` has";
            Err(Failure::BadInput(why.to_owned()))
        }
    }
}

/// Parses the words of `--clock`.
fn clock_mode(words: &[String]) -> Result<ClockMode, Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let factor = |text: &str| text.parse().ok().and_then(Speedup::from_f64);
    let mode = match words[..] {
        ["manual"] => Some(ClockMode::Manual),
        ["paced"] => Some(ClockMode::Paced(Speedup::times_real(60))),
        ["paced", x] => factor(x).map(ClockMode::Paced),
        ["live"] => Some(ClockMode::Live(Speedup::ONE)),
        ["live", x] => factor(x).map(ClockMode::Live),
        _ => None,
    };
    mode.ok_or_else(|| {
        let why =
            "--clock is `manual`, or `paced X` or `live X` with a number from 0.001 to 1000000";
        Failure::BadInput(why.to_owned())
    })
}

/// Loads the experiment whose cloud is called. Its clock begins at the date of its prices, or at the beginning of 2026.
fn opened(args: &Ec2Args, name: &str) -> Result<LoadedExperiment, Failure> {
    experiment_keys::check(&args.set)?;
    let options = [("--seed", "seed", &args.seed), ("--workers", "live.workers", &args.workers)];
    let given = options.into_iter().filter_map(|(option, path, value)| {
        Some(Override { option, path: path.to_owned(), value: value.clone()? })
    });
    let mut overrides: Vec<Override> = given.collect();
    for text in &args.set {
        overrides.push(Override::set(text)?);
    }
    let mut loaded = open_cloud(name, &overrides)?;
    let began = loaded.experiment.calendar().began.unwrap_or(DEFAULT_BEGIN);
    let begins_unix_us = began.saturating_mul(1_000_000);
    let config = loaded.experiment.ec2.unwrap_or_default();
    loaded.experiment.ec2 = Some(DeskConfig { begins_unix_us, ..config });
    Ok(loaded)
}

fn header(args: &Ec2Args, (name, clock): (&str, ClockMode), loaded: LoadedExperiment) -> LogHeader {
    let mut words = vec!["dormouse".to_owned(), "ec2".to_owned(), name.to_owned()];
    option(&mut words, "--seed", &args.seed);
    option(&mut words, "--workers", &args.workers);
    option(&mut words, "--set", &args.set);
    args.inputs.words(&mut words);
    let mode = match clock {
        ClockMode::Live(speedup) => {
            words.extend(["--clock".to_owned(), "live".to_owned(), speedup.as_f64().to_string()]);
            RunMode::Live
        }
        ClockMode::Paced(_) | ClockMode::Manual => RunMode::Virtual,
    };
    let header = LogHeader::new(mode, command_line(&words), loaded.experiment);
    let config = header.experiment.ec2.unwrap_or_default();
    let began = Some(config.begins_unix_us.div_euclid(1_000_000));
    LogHeader { calendar: Calendar { began, ..header.calendar }, ..header }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_manual_or_paced() {
        let mode = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            clock_mode(&words).ok()
        };
        assert_eq!(mode("manual"), Some(ClockMode::Manual));
        assert_eq!(mode("paced"), Some(ClockMode::Paced(Speedup::times_real(60))));
        assert_eq!(mode("paced 60"), Some(ClockMode::Paced(Speedup::times_real(60))));
        assert_eq!(mode("live"), Some(ClockMode::Live(Speedup::ONE)));
        assert_eq!(mode("live 10"), Some(ClockMode::Live(Speedup::times_real(10))));
        for wrong in ["live 0", "live x", "manual 60", "paced 0", "paced x", "real", "paced 60 60"]
        {
            assert_eq!(mode(wrong), None, "{wrong}");
        }
    }

    #[derive(clap::Parser)]
    struct Ec2CommandLine {
        #[command(flatten)]
        args: Ec2Args,
    }

    #[test]
    fn a_file_after_the_clock_is_the_experiment() {
        let read = |line: &str| {
            let words = ["ec2"].into_iter().chain(line.split(' '));
            let args = <Ec2CommandLine as clap::Parser>::try_parse_from(words).ok()?.args;
            experiment_and_clock(&args).ok().map(|(name, clock)| (name.to_owned(), clock))
        };
        let paced = |times| ClockMode::Paced(Speedup::times_real(times));
        for (line, clock) in [
            ("x.toml", paced(60)),
            ("x.toml --clock manual", ClockMode::Manual),
            ("--clock manual x.toml", ClockMode::Manual),
            ("--clock paced x.toml", paced(60)),
            ("--clock paced 5 x.toml", paced(5)),
            ("--clock live x.toml", ClockMode::Live(Speedup::ONE)),
        ] {
            assert_eq!(read(line), Some(("x.toml".to_owned(), clock)), "{line}");
        }
        for line in ["--clock manual", "--clock paced 5", "x.toml --clock manual 5"] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn workers_are_of_live_runs() {
        let refused = |line: &str| {
            let words = ["ec2", "j60"].into_iter().chain(line.split(' '));
            let args = <Ec2CommandLine as clap::Parser>::try_parse_from(words);
            let args = args.unwrap_or_else(|error| panic!("{error}")).args;
            match serve_experiment(&args) {
                Err(Failure::BadInput(why)) => why,
                done => panic!("{line}: {done:?}"),
            }
        };
        for line in ["--workers 3", "--clock manual --listen-workers 0.0.0.0"] {
            assert!(refused(line).contains("add --clock live"), "{}", refused(line));
        }
        let wrong = refused("--clock live --workers 0");
        assert!(wrong.contains("--workers"), "{wrong}");
    }

    #[test]
    fn use_is_not_declared_where_it_is_measured() {
        let live = |set: &str| {
            let change = Override::set(set).expect("it is a key and a value");
            let mut loaded = open_cloud("j60", &[change]).expect("it is right");
            runs_live(&mut loaded, Speedup::ONE, false)
        };
        let refused = live("cloud.vcpu-use=0.4");
        let is_named = |why: &str| why.starts_with("cloud.vcpu-use is not played");
        assert!(matches!(&refused, Err(Failure::BadInput(why)) if is_named(why)));
        assert!(live("cloud.vcpu-use=0").is_ok());
    }

    #[test]
    fn what_an_experiment_has_of_work_can_not_be_set() {
        for set in ["workload.deadline=1h", "scheduler.name=hads", "tenant.0.name=x"] {
            let change = Override::set(set).expect("it is a key and a value");
            let error = open_cloud("j60", &[change]).expect_err("it is refused");
            assert!(error.to_string().contains("leave this key out"), "{error}");
        }
        let vcpus = Override::set("cloud.account-vcpus.spot=7").expect("it is a key and a value");
        let loaded = open_cloud("j60", &[vcpus]).expect("it is right");
        let config = loaded.experiment.ec2.expect("it is behind the API");
        assert_eq!((config.spot_vcpus, config.on_demand_vcpus), (Some(7), Some(256)));
    }
}
