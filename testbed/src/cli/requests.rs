//! `dormouse workload requests`, and `dormouse workload stats` for a file of requests: VMs that a provider's customers
//! request.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use dormouse_cloud::ResourceVector;
use dormouse_input::Chosen;
use dormouse_model::VmRequest;
use dormouse_units::Time;
use dormouse_workload::{
    RequestFile, RequestRules, RequestStatistics, RequestWriter, RequestsRead,
};
use serde::Serialize;

use super::failure::Failure;
use super::input_args::InputArgs;
use super::known_name::EXPERIMENT;
use super::print::show;
use super::workload::{bad, refused};
use dormouse_experiment::{Experiment, ExperimentSource, Override, open};

#[derive(Debug, Args)]
pub(crate) struct RequestsArgs {
    /// A TOML file, or the name of a built-in experiment, with workload.kind = "requests"
    #[arg(value_parser = EXPERIMENT, hide_possible_values = true)]
    experiment: String,
    /// Set any key of the experiment by its path, such as seed=2 or workload.model.preemptible=0.5
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    #[command(flatten)]
    inputs: InputArgs,
    /// Write the requests into this CSV file, which workload.csv reads in again
    #[arg(short, long)]
    out: Option<PathBuf>,
    /// Print the figures of the requests as JSON
    #[arg(long)]
    json: bool,
}

impl RequestsArgs {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        self.inputs.apply()?;
        let overrides =
            self.set.iter().map(|text| Override::set(text)).collect::<Result<_, _>>()?;
        let experiment = Some(self.experiment.as_str());
        let loaded =
            open(&ExperimentSource { experiment, overrides, ..ExperimentSource::default() })?;
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

/// Writes the requests of an experiment as CSV, and returns their figures.
fn write(experiment: &Experiment, out: &Path) -> Result<Figures, Failure> {
    let file = File::create(out).map_err(refused(out))?;
    let mut csv = RequestWriter::new(file).map_err(refused(out))?;
    let figures =
        figures(experiment, |(at, request)| csv.write(*at, request).map_err(refused(out)))?;
    csv.finish().map_err(refused(out))?;
    Ok(figures)
}

/// The figures of an experiment's requests; `see` is called with each request before it is counted.
fn figures(
    experiment: &Experiment,
    mut see: impl FnMut(&(Time, VmRequest)) -> Result<(), Failure>,
) -> Result<Figures, Failure> {
    let Some(mut requests) = experiment.requests().map_err(bad)? else {
        let what = "it has no requests for VMs; give one with workload.kind = \"requests\"";
        return Err(Failure::BadInput(format!("{}: {what}", experiment.name)));
    };
    let vcpus = |hosts: &[ResourceVector]| hosts.iter().map(|host| u64::from(host.vcpus)).sum();
    let capacity = Some(&experiment.hosts[..]).filter(|hosts| !hosts.is_empty()).map(vcpus);
    let types = &experiment.setup.catalogue.types;
    let mut of = RequestStatistics::new(Some(types), capacity);
    for request in requests.by_ref() {
        let request = request.map_err(bad)?;
        see(&request)?;
        of.add(request.0, &request.1);
    }
    Ok(Figures { of, file: requests.read().filter(|read| !read.is_plain()).cloned() })
}

/// Whether a file holds requests, by its beginning or by its name.
pub(crate) fn is_file_of_requests(path: &Path) -> bool {
    let name = path.to_string_lossy();
    let is_begun =
        File::open(path).and_then(|file| RequestFile::is_begun(file, &Chosen::default()));
    is_begun.unwrap_or(false) || name.ends_with(".csv") || name.ends_with(".csv.gz")
}

/// Prints the figures of the requests in a file.
pub(crate) fn stats(path: &Path, columns: &[Chosen], as_json: bool) -> Result<(), Failure> {
    let mut of = RequestStatistics::new(None, None);
    let chosen = columns.iter().flat_map(Chosen::iter);
    let columns = chosen.map(|(name, heading)| (name.to_owned(), heading.to_owned())).collect();
    let rules = RequestRules { columns, ..RequestRules::default() };
    let mut file = RequestFile::open(path, &rules, None, open_file).map_err(bad)?;
    for request in file.by_ref() {
        let (at, request) = request.map_err(bad)?;
        of.add(at, &request);
    }
    let figures = Figures { of, file: Some(file.read().clone()).filter(|read| !read.is_plain()) };
    show(as_json, &figures, || figures.to_string().trim_end().to_owned())
}

fn open_file(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(File::open(path)?))
}

/// Figures of requests, and the oddities of their file.
#[derive(Debug, Serialize)]
struct Figures {
    #[serde(flatten)]
    of: RequestStatistics,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<RequestsRead>,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.of)?;
        self.file.iter().try_for_each(|file| writeln!(f, "file                  {file}"))
    }
}
