//! `dormouse workload requests`, and what `stats` says of a CSV file: VMs that a provider's customers
//! request.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use clap::Args;
use dormouse_cloud::Host;
use dormouse_model::Request;
use dormouse_units::Time;
use dormouse_workload::{RequestCsv, RequestStatistics, RequestWriter};

use super::failure::Failure;
use super::print::show;
use super::workload::{bad, refused};
use dormouse_experiment::{Experiment, Override, Source, open};

#[derive(Debug, Args)]
pub(crate) struct RequestsArgs {
    /// A TOML file, or the name of a built-in experiment, with workload.kind = "requests"
    experiment: String,
    /// Set any key of the experiment by its path, such as seed=2 or workload.model.preemptible=0.5
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    /// Write them into this CSV file, which workload.csv reads in again
    #[arg(short, long)]
    out: Option<PathBuf>,
    /// Print their figures as JSON
    #[arg(long)]
    json: bool,
}

impl RequestsArgs {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let overrides =
            self.set.iter().map(|text| Override::set(text)).collect::<Result<_, _>>()?;
        let experiment = Some(self.experiment.as_str());
        let loaded = open(&Source { experiment, overrides, ..Source::default() })?;
        let figures = match &self.out {
            None => figures(&loaded.experiment, |_| Ok(())),
            Some(out) => write(&loaded.experiment, out).inspect_err(|_| {
                // Half of a stream would pass for a whole one.
                let _ = fs::remove_file(out);
            }),
        }?;
        show(self.json, &figures, || figures.to_string().trim_end().to_owned())
    }
}

/// Writes the requests of an experiment as CSV.
fn write(experiment: &Experiment, out: &Path) -> Result<RequestStatistics, Failure> {
    let file = File::create(out).map_err(refused(out))?;
    let mut csv = RequestWriter::new(file).map_err(refused(out))?;
    let figures =
        figures(experiment, |(at, request)| csv.write(*at, request).map_err(refused(out)))?;
    csv.finish().map_err(refused(out))?;
    Ok(figures)
}

/// The requests of an experiment in figures, each of which is seen before.
fn figures(
    experiment: &Experiment,
    mut see: impl FnMut(&(Time, Request)) -> Result<(), Failure>,
) -> Result<RequestStatistics, Failure> {
    let Some(requests) = experiment.requests().map_err(bad)? else {
        let what = "nobody requests VMs in it; give one with workload.kind = \"requests\"";
        return Err(Failure::BadInput(format!("{}: {what}", experiment.name)));
    };
    let vcpus = |hosts: &[Host]| hosts.iter().map(|host| u64::from(host.vcpus)).sum();
    let capacity = Some(&experiment.hosts[..]).filter(|hosts| !hosts.is_empty()).map(vcpus);
    let types = &experiment.setup.catalogue.types;
    let mut figures = RequestStatistics::new(Some(types), capacity);
    for request in requests {
        let request = request.map_err(bad)?;
        see(&request)?;
        figures.add(request.0, &request.1);
    }
    Ok(figures)
}

/// Whether a file of this name holds requests.
pub(crate) fn is_csv(file: &Path) -> bool {
    let name = file.to_string_lossy();
    name.ends_with(".csv") || name.ends_with(".csv.gz")
}

/// The requests of a CSV file in figures.
pub(crate) fn stats(file: &Path, as_json: bool) -> Result<(), Failure> {
    let mut figures = RequestStatistics::new(None, None);
    for request in RequestCsv::of(file, File::open(file), None).map_err(bad)? {
        let (at, request) = request.map_err(bad)?;
        figures.add(at, &request);
    }
    show(as_json, &figures, || figures.to_string().trim_end().to_owned())
}
