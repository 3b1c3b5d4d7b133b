//! From a name or a file and the options of the command line to an experiment.

use std::collections::BTreeMap;
use std::path::Path;

use dormouse_cloud::{Host, Market};
use dormouse_engine::jobs::Simulation;
use dormouse_engine::{MACHINE, Run, Setup, Work};
use dormouse_policies::{BagSchedulerConfig, BagSchedulerName, Plan, PlanError, Policy};
use dormouse_units::TypeName;
use serde::{Deserialize, Serialize};

use super::batch::{self, Batch};
use super::document::{self, Node, Value};
use super::overrides::Override;
use super::reader::Section;
use super::suggest::instead;
use super::{
    Builtin, InputError, Live, Place, SpeedupSaid, checkpoint, cloud, interruption, live, plan,
    scheduler, tenants, workload,
};

/// An experiment with everything resolved: all that a run is made of. It goes into the
/// first line of the event log, so that a log can be replayed by itself.
///
/// Its work is a bag of tasks, parallel jobs, or both: then they share its provider, each under a
/// scheduler of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// A sentence about the experiment, for people.
    pub description: String,
    /// Provider, bag, checkpoints, interruptions, seed. Of parallel jobs alone it has no tasks and
    /// offers nothing but their machine.
    pub setup: Setup,
    /// The scheduler of the bag and its parameters; `None`: there is no bag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<BagSchedulerConfig>,
    /// The parallel jobs and their scheduler; `None`: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Box<Batch>>,
    /// The hosts of a virtual run; none: one that holds everything.
    pub hosts: Vec<Host>,
    /// How it is run live.
    pub live: Live,
}

/// Where the parts of an experiment are to be read from.
#[derive(Clone, Debug, Default)]
pub struct Source<'a> {
    /// A file or the name of a built-in experiment; `None`: given by `overrides` alone.
    pub experiment: Option<&'a str>,
    /// Overrides, in order.
    pub overrides: Vec<Override>,
    /// A plan to run, a file: ours or one of the artifact's.
    pub plan: Option<&'a Path>,
    /// The overrides bring a workload of their own: what the experiment says of it is dropped.
    pub replaces_workload: bool,
}

/// An experiment and where its parts came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The experiment.
    pub experiment: Experiment,
    /// Who said its speed-up.
    pub speedup: SpeedupSaid,
    /// What is odd about the files that it names and was set right.
    pub notes: Vec<String>,
    scheduler: Place,
}

/// The scheduler of a bag and the plan that it begins with; `None`: there is no bag, or its
/// scheduler plans nothing.
pub type Planned = (Option<Box<dyn Policy>>, Option<Plan>);

impl Loaded {
    /// The scheduler of the bag, its plan made; `None`: there is no bag.
    ///
    /// # Errors
    ///
    /// No plan can be made, with the place of what keeps it from it.
    pub fn scheduler(&self) -> Result<Option<Box<dyn Policy>>, InputError> {
        self.experiment.scheduler().map_err(|error| plan_error(&self.scheduler, &error))
    }

    /// The scheduler of the bag, and the plan that it begins with, if it makes one.
    ///
    /// # Errors
    ///
    /// As [`Loaded::scheduler`].
    pub fn planned(&self) -> Result<Planned, InputError> {
        self.experiment.planned().map_err(|error| plan_error(&self.scheduler, &error))
    }

    /// The plan that the bag's scheduler would begin with.
    ///
    /// # Errors
    ///
    /// As [`Loaded::scheduler`].
    pub fn plan(&self) -> Result<Option<Plan>, InputError> {
        self.experiment.plan().map_err(|error| plan_error(&self.scheduler, &error))
    }
}

impl Experiment {
    /// The scheduler of its bag, its plan made; `None`: it has no bag.
    ///
    /// # Errors
    ///
    /// No plan can be made.
    pub fn scheduler(&self) -> Result<Option<Box<dyn Policy>>, PlanError> {
        self.scheduler.as_ref().map(|config| self.built(config)).transpose()
    }

    fn built(&self, config: &BagSchedulerConfig) -> Result<Box<dyn Policy>, PlanError> {
        let Setup { catalogue, bag, checkpoint, seed, .. } = &self.setup;
        dormouse_policies::build(config, catalogue, bag, checkpoint, *seed)
    }

    /// The scheduler of its bag, and the plan that it begins with, if it makes one.
    ///
    /// # Errors
    ///
    /// No plan can be made.
    pub fn planned(&self) -> Result<Planned, PlanError> {
        // Made once: a search takes longer than the run.
        let Some(plan) = self.plan()? else { return Ok((self.scheduler()?, None)) };
        let with_plan = |config: &BagSchedulerConfig| BagSchedulerConfig {
            plan: Some(plan.clone()),
            ..config.clone()
        };
        let config = self.scheduler.as_ref().map(with_plan);
        let scheduler = config.map(|config| self.built(&config)).transpose()?;
        Ok((scheduler, Some(plan)))
    }

    /// How its scheduler is called: that of its bag, if it has one, else that of its jobs.
    #[must_use]
    pub fn scheduler_name(&self) -> &'static str {
        let of_jobs = self.jobs.as_ref().map(|jobs| jobs.scheduler.name.name());
        let of_bag = self.scheduler.as_ref().map(|bag| bag.name.as_str());
        of_bag.or(of_jobs).unwrap_or_default()
    }

    /// The scheduler of its parallel jobs, and the model of their machine; `None`: it has none.
    #[must_use]
    pub fn simulation(&self) -> Option<Simulation> {
        self.jobs.as_ref().map(|jobs| jobs.simulation(self.setup.seed))
    }

    /// What of its work each of its tenants has, in their order.
    #[must_use]
    pub fn tenants(&self) -> Vec<Work> {
        match (&self.scheduler, &self.jobs) {
            (Some(_), Some(_)) => vec![Work::Bag, Work::Jobs],
            _ => vec![Work::All],
        }
    }

    /// What its run is made of.
    #[must_use]
    pub fn whole_setup(&self) -> Setup {
        match self.simulation() {
            None => self.setup.clone(),
            Some(jobs) => jobs.setup_beside(self.setup.clone()),
        }
    }

    /// Who schedules its work: the bag's scheduler, as given, and that of its jobs if it has any.
    #[must_use]
    pub fn policies(&self, bag: Option<Box<dyn Policy>>) -> Vec<(Work, Box<dyn Policy>)> {
        let jobs = self.simulation().map(|jobs| jobs.policy() as Box<dyn Policy>);
        self.tenants().into_iter().zip(bag.into_iter().chain(jobs)).collect()
    }

    /// Its run before anything has happened, under this scheduler of its bag.
    #[must_use]
    pub fn run(&self, bag: Option<Box<dyn Policy>>) -> Run {
        Run::of_tenants(self.whole_setup(), self.policies(bag))
    }

    /// Whether its tasks are checkpointed or its jobs are moved: CRIU does that in a live run.
    #[must_use]
    pub fn needs_criu(&self) -> bool {
        self.checkpoints_tasks() || self.jobs.as_ref().is_some_and(|jobs| jobs.needs_criu())
    }

    fn checkpoints_tasks(&self) -> bool {
        use BagSchedulerName::{BurstHads, Fifo, Hads, IlsOnDemand};
        let Setup { bag, checkpoint, .. } = &self.setup;
        let Some(scheduler) = &self.scheduler else { return false };
        let markets = match scheduler.name {
            // They move tasks with what these have done.
            BurstHads | Hads => return true,
            IlsOnDemand => vec![Market::OnDemand],
            Fifo => scheduler.fleet.iter().map(|fleet| fleet.market).collect(),
        };
        bag.tasks.iter().any(|task| {
            let longest = task.runtime.values().copied().max().unwrap_or_default();
            let on =
                |market: &Market| checkpoint.plan_on(*market, task.memory, longest).count() > 0;
            markets.iter().any(on)
        })
    }

    /// The plan that the scheduler of its bag would begin with, if it makes one.
    ///
    /// # Errors
    ///
    /// No plan can be made.
    pub fn plan(&self) -> Result<Option<Plan>, PlanError> {
        let planned = |config: &&BagSchedulerConfig| config.name != BagSchedulerName::Fifo;
        let Setup { catalogue, bag, checkpoint, seed, .. } = &self.setup;
        let plan = |config| dormouse_policies::plan(config, catalogue, bag, checkpoint, *seed);
        self.scheduler.as_ref().filter(planned).map(plan).transpose()
    }
}

fn plan_error(place: &Place, error: &PlanError) -> InputError {
    let remedy = match error {
        PlanError::Parameter { .. } => "change the parameter",
        PlanError::NothingOffered { .. } => {
            "offer such a type under [cloud], or take another scheduler"
        }
        PlanError::TaskTooLarge { .. } => "offer a type with more memory, or make the task smaller",
        PlanError::NoRuntime { .. } => "give the task a run time on an offered type",
        PlanError::BadPlan(_) => "give a plan made for this experiment",
        _ => "give workload.deadline more time, or raise cloud.limits",
    };
    InputError::new(place, error.to_string(), remedy)
}

/// Loads and checks an experiment.
///
/// # Errors
///
/// The first thing that is wrong with it.
pub fn open(source: &Source<'_>) -> Result<Loaded, InputError> {
    let root = document(source)?;
    if tenants::are_jobs_alone(&root)? {
        read_jobs(&root, source.plan)
    } else {
        read_bag(&root, source.plan)
    }
}

/// Loads and checks an experiment with a bag of tasks.
///
/// # Errors
///
/// The first thing that is wrong with it, or it has no bag of tasks.
pub fn load(source: &Source<'_>) -> Result<Loaded, InputError> {
    let loaded = open(source)?;
    if loaded.experiment.scheduler.is_some() {
        return Ok(loaded);
    }
    let what = format!("{} schedules parallel jobs", loaded.experiment.name);
    let remedy = "give an experiment with a bag of tasks: this works on those only";
    Err(InputError::new(&Place::of(source.experiment.unwrap_or("experiment")), what, remedy))
}

/// The document that is asked for, with everything set that was asked for.
fn document(source: &Source<'_>) -> Result<Node, InputError> {
    let mut root = root(source.experiment)?;
    if source.replaces_workload {
        drop_workload(&mut root);
    }
    for change in &source.overrides {
        change.apply(&mut root)?;
    }
    Ok(root)
}

/// Name, description and seed, which every experiment has.
fn preamble(section: &mut Section<'_>) -> Result<(String, String, u64), InputError> {
    let name = section.text("name")?;
    let name = section.need("name", name, "\"my-experiment\"")?.to_owned();
    check_name(section, &name)?;
    let description = section.text("description")?.unwrap_or_default().to_owned();
    let seed = section.whole("seed", 0..=i64::MAX as u64)?.unwrap_or(1);
    Ok((name, description, seed))
}

/// Reads an experiment of parallel jobs alone.
fn read_jobs(root: &Node, plan: Option<&Path>) -> Result<Loaded, InputError> {
    if let Some(plan) = plan {
        let place = Place::of(&format!("--plan {}", plan.display()));
        return Err(InputError::new(&place, "jobs in a queue have no plan", "leave it out"));
    }
    let mut section = Section::of(root)?;
    let (name, description, seed) = preamble(&mut section)?;
    let jobs = batch::read(&mut section)?;
    let live = section.section("live")?.map(live::read).transpose()?.unwrap_or_default();
    let place = section.place().clone();
    section.finish()?;
    let setup = jobs.simulation(seed).setup();
    let (scheduler, jobs, hosts) = (None, Some(Box::new(jobs)), Vec::new());
    let experiment = Experiment { name, description, setup, scheduler, jobs, hosts, live };
    let speedup = SpeedupSaid::of(root);
    Ok(Loaded { experiment, speedup, notes: Vec::new(), scheduler: place })
}

/// Reads the parallel jobs that share an experiment.
fn read_tenant(tenant: &Node) -> Result<Batch, InputError> {
    let mut section = Section::of(tenant)?;
    let jobs = batch::read(&mut section)?;
    if section.section("workload")?.is_some_and(|workload| !workload.has("processors")) {
        let what = "nobody says how many processors the jobs' machine has";
        let remedy = "add processors to the tenant's workload, such as: processors = 16";
        return Err(InputError::new(&tenant.place, what, remedy));
    }
    section.finish()?;
    Ok(jobs)
}

/// Reads an experiment with a bag of tasks.
pub(crate) fn read_bag(root: &Node, plan: Option<&Path>) -> Result<Loaded, InputError> {
    let shared = tenants::apart(root)?;
    let jobs = shared.as_ref().map(|shared| read_tenant(&shared.jobs)).transpose()?.map(Box::new);
    let mut section = Section::of(shared.as_ref().map_or(root, |shared| &shared.bag))?;
    let (name, description, seed) = preamble(&mut section)?;

    let workload = section.section("workload")?;
    let workload = section.need("workload", workload, "{ kind = \"bag\", name = \"j60\" }")?;
    let workload_place = workload.place().clone();
    let mut workload = workload::read(workload)?;
    let empty = empty_table();
    let cloud = cloud::read(or_empty(section.section("cloud")?, &empty)?, workload.types.take())?;
    let types = &cloud.catalogue.types;
    if jobs.is_some() && types.contains_key(&TypeName::from(MACHINE)) {
        let what = format!("a type is called '{MACHINE}', as the machine of the parallel jobs is");
        return Err(InputError::new(
            &section.place_of("cloud"),
            what,
            "give the type another name",
        ));
    }
    let bag = workload.bag(types)?;
    let interruptions = section
        .list("interruption")?
        .iter()
        .map(|node| interruption::read(node, bag.deadline, types))
        .collect::<Result<_, _>>()?;
    let scheduler_section = or_empty(section.section("scheduler")?, &empty)?;
    let mut scheduler = scheduler::read(scheduler_section, types)?;
    let checkpoint = checkpoint::read(or_empty(section.section("checkpoint")?, &empty)?)?;
    let live = live::read(or_empty(section.section("live")?, &empty)?)?;
    section.finish()?;

    let mut place = workload_place;
    if let Some(path) = plan {
        scheduler.plan = Some(plan::read(path, &scheduler, &cloud.catalogue, &bag)?);
        place = Place::of(&path.display().to_string());
    }
    let setup = Setup {
        seed,
        catalogue: cloud.catalogue,
        bag,
        jobs: None,
        checkpoint,
        interruptions,
        preemption_notice: cloud.preemption_notice,
        terms: cloud.terms,
    };
    let hosts = cloud.hosts;
    if let Some(jobs) = &jobs
        && !hosts.is_empty()
        && hosts.iter().all(|host| host.vcpus < jobs.workload.processors)
    {
        let what =
            format!("no host can hold the machine of {} processors", jobs.workload.processors);
        let remedy = "give one of cloud.hosts as many vCPUs, or the jobs fewer processors";
        return Err(InputError::new(&place, what, remedy));
    }
    let scheduler = Some(scheduler);
    let experiment = Experiment { name, description, setup, scheduler, jobs, hosts, live };
    let (speedup, notes) = (SpeedupSaid::of(root), cloud.notes);
    Ok(Loaded { experiment, speedup, notes, scheduler: place })
}

/// A name becomes part of a path.
fn check_name(section: &Section<'_>, name: &str) -> Result<(), InputError> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.is_empty() && name.len() <= 100 && name.chars().all(fine) && !name.starts_with('.') {
        return Ok(());
    }
    let remedy = "use letters, digits, '-', '_' and '.', at most 100";
    Err(InputError::new(
        &section.place_of("name"),
        format!("'{name}' is not fit for a folder"),
        remedy,
    ))
}

fn or_empty<'a>(given: Option<Section<'a>>, empty: &'a Node) -> Result<Section<'a>, InputError> {
    given.map_or_else(|| Section::of(empty), Ok)
}

fn empty_table() -> Node {
    Node { place: Place::of("experiment"), value: Value::Table(BTreeMap::new()) }
}

/// What `--job` alone stands for.
const IMPORT: &str = "name = \"import\"\ndescription = \"an imported job\"\n[cloud]\n\
    catalogue = \"ec2-2020\"\n[workload]\nkind = \"bag\"\n";

fn root(experiment: Option<&str>) -> Result<Node, InputError> {
    let Some(name) = experiment else { return document::from_toml("command line", IMPORT) };
    let path = Path::new(name);
    let like_a_path = name.contains(['/', '\\']) || path.extension().is_some_and(|e| e == "toml");
    match Builtin::named(name) {
        Some(builtin) => document::from_toml(&format!("{name} (built in)"), &builtin.text()),
        None if like_a_path || path.exists() => document::from_toml(name, &document::read(path)?),
        None => {
            let names: Vec<_> = Builtin::all().map(|b| b.name()).collect();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            let what = "no such file, and no built-in experiment of this name";
            Err(InputError::new(&Place::of(name), what, instead(name, &names)))
        }
    }
}

fn drop_workload(root: &mut Node) {
    let Value::Table(table) = &mut root.value else { return };
    let Some(Node { value: Value::Table(workload), .. }) = table.get_mut("workload") else {
        return;
    };
    for key in ["name", "task", "job", "env"] {
        workload.remove(key);
    }
}
