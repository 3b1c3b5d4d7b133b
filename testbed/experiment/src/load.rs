//! Loads an experiment from a name or file and the options of the command line.

use std::path::Path;

use dormouse_cloud::{InterruptionModel, Market, ResourceVector, Types};
use dormouse_documents::{
    InputError, Mistakes, Node, Override, Place, Value, conform, from_toml, read,
};
use dormouse_ec2::DeskConfig;
use dormouse_host::calibration::SpeedupSaid;
use dormouse_model::{Bag, CheckpointConfig, MACHINE, MetadataSettings, Setup};
use dormouse_policies::{BagSchedulerConfig, BagSchedulerName, PlanError, Policy};
use dormouse_tasks::BagProgram;
use dormouse_units::{Ppm, Span, Speedup, TypeName};
use serde::de::DeserializeOwned;

use super::live::speedup_said;
use super::no_experiment::no_experiment;
use super::own::{self, CollectedPrograms, OwnSaid, Sources};
use super::recorded_prices::{DrawnPrices, PriceDates, PriceFile};
use super::sections::{AccountVcpus, CheckpointSection, InterruptionSection, WorkloadSection};
use super::tenants::{self, WorkSections};
use super::{
    BatchSetup, BuiltinExperiment, Experiment, Live, Planned, checkpoint,
    cloud::{self, ResolvedCloud},
    extent, fault, files, interruption, jobs, named_program, plan, requests, scheduler, schema,
    unknown, workflow,
    workload::{self, WrittenBag},
    wrong_kind,
};

/// Where the parts of an experiment come from: a file or a built-in experiment, overrides, a plan, and a program of the user's.
#[derive(Clone, Debug, Default)]
pub struct ExperimentSource<'a> {
    /// A file, or the name of a built-in experiment; `None` if `overrides` give everything.
    pub experiment: Option<&'a str>,
    /// Overrides in order.
    pub overrides: Vec<Override>,
    /// File with a plan to run, in the format of Dormouse or of the Burst-HADS artifact.
    pub plan: Option<&'a Path>,
    /// Whether the overrides contain a workload: the experiment's own workload is then dropped.
    pub replaces_workload: bool,
    /// A user's own program given beside the experiment.
    pub own: OwnSaid,
    /// True if the experiment is loaded in order to be measured: run times given as `measured` may be unknown.
    pub is_unmeasured: bool,
}

/// An experiment, with the sources of its parts.
#[derive(Clone, Debug)]
pub struct LoadedExperiment {
    /// The experiment with everything resolved.
    pub experiment: Experiment,
    /// Source of the experiment's speed-up.
    pub speedup: SpeedupSaid,
    /// Corrected oddities of the files that the experiment names.
    pub notes: Vec<String>,
    /// Contents of the input files of the experiment's tasks.
    pub sources: Sources,
    /// Emulated seconds for one second of a whole core, if run times of users' own programs were measured; `None`:
    /// none was measured. In a live run whose vCPUs have a share of a core, the speed-up is this share of the value.
    pub pace: Option<Speedup>,
    scheduler: Place,
}

impl LoadedExperiment {
    /// Scheduler of the bag, with the experiment's plan made; `None` if there is no bag.
    ///
    /// # Errors
    ///
    /// No plan can be made, with the place of the reason.
    pub fn scheduler(&self) -> Result<Option<Box<dyn Policy>>, InputError> {
        self.experiment.scheduler().map_err(|error| plan_error(&self.scheduler, &error))
    }

    /// Scheduler of the bag, with the plan that it begins with, if the scheduler makes one.
    ///
    /// # Errors
    ///
    /// As [`LoadedExperiment::scheduler`].
    pub fn planned(&self) -> Result<Planned, InputError> {
        self.experiment.planned().map_err(|error| plan_error(&self.scheduler, &error))
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
        PlanError::OutlivesVms { .. } => {
            "give [checkpoint] a policy, buy on-demand VMs, or make the task shorter"
        }
        PlanError::BadPlan(_) => "give a plan made for this experiment",
        PlanError::TakesNoPlan { .. } => "leave the plan out",
        _ => "give workload.deadline more time, or raise cloud.limits",
    };
    InputError::new(place, error.to_string(), remedy)
}

/// Loads and checks an experiment.
///
/// # Errors
///
/// All mistakes of the experiment.
pub fn open(source: &ExperimentSource<'_>) -> Result<LoadedExperiment, InputError> {
    let mut root = root(source.experiment)?;
    if source.replaces_workload {
        drop_workload(&mut root);
    }
    source.own.apply(&mut root)?;
    if source.is_unmeasured {
        own::forget_measured(&mut root);
    }
    for change in &source.overrides {
        if named_program::apply(&mut root, change) {
            continue;
        }
        let change = named_program::placed_by(&mut root, change);
        // Papers and people call a scheduler "policy".
        change.apply(&mut root, &schema::EXPERIMENT, &[("policy", "scheduler")])?;
    }
    of_document(root, source.plan)
}

/// Loads and checks the cloud of an experiment; the tasks, jobs and requests of the experiment are
/// ignored, and may be missing.
///
/// # Errors
///
/// All mistakes in the rest of the experiment.
pub fn open_cloud(
    experiment: &str,
    overrides: &[Override],
) -> Result<LoadedExperiment, InputError> {
    if let Some(of_work) = overrides.iter().find(|change| tenants::is_of_work(&change.path)) {
        let place = Place::whole(&format!("{} {}", of_work.option, of_work.path));
        let what =
            "behind EC2's API an experiment has no work of its own: its callers are the work";
        return Err(InputError::new(&place, what, "leave this key out"));
    }
    let mut root = root(Some(experiment))?;
    // Numbers of interruptions by the deadline are those of a time that goes on.
    let deadline = root.get("workload").and_then(|work| work.text("deadline")?.parse().ok());
    tenants::drop_work(&mut root);
    for change in overrides {
        change.apply(&mut root, &schema::EXPERIMENT, &[])?;
    }
    let mut found = Mistakes::default();
    conform(&schema::EXPERIMENT, &root, &mut found);
    check_name(&root, &mut found);
    let work = WorkSections { deadline, ..WorkSections::default() };
    let vcpus = root.get("cloud").and_then(|cloud| cloud.get("account-vcpus"));
    let vcpus = vcpus.and_then(|node| read::<AccountVcpus>(node, &mut found)).unwrap_or_default();
    let vcpu_use = root.get("cloud").and_then(|cloud| cloud.get("vcpu-use"));
    let vcpu_use = vcpu_use.and_then(|node| read::<Ppm>(node, &mut found)).unwrap_or_default();
    let loaded = check_document(&root, &work, None, &mut found);
    let loaded = found.or(loaded)?;
    let config = DeskConfig {
        on_demand_vcpus: Some(vcpus.on_demand),
        spot_vcpus: Some(vcpus.spot),
        vcpu_use,
        ..DeskConfig::default()
    };
    Ok(LoadedExperiment { experiment: loaded.experiment.behind_ec2(config), ..loaded })
}

/// Parses the experiment in a text; `name` is used in messages.
///
/// # Errors
///
/// All mistakes of the experiment.
pub fn of_text(name: &str, text: &str) -> Result<Experiment, InputError> {
    Ok(of_document(from_toml(name, text)?, None)?.experiment)
}

/// Loads and checks an experiment with a bag of tasks.
///
/// # Errors
///
/// All mistakes of the experiment, or that the experiment has no bag of tasks.
pub fn load(source: &ExperimentSource<'_>) -> Result<LoadedExperiment, InputError> {
    let loaded = open(source)?;
    if loaded.experiment.scheduler.is_some() {
        return Ok(loaded);
    }
    let what = format!("{} schedules parallel jobs", loaded.experiment.name);
    let remedy = "give an experiment with a bag of tasks: this works on those only";
    Err(InputError::new(&Place::whole(source.experiment.unwrap_or("experiment")), what, remedy))
}

/// Loads the experiment in a document: checks each key separately, then resolves each section that
/// has no mistake so far.
fn of_document(mut root: Node, plan: Option<&Path>) -> Result<LoadedExperiment, InputError> {
    let mut found = Mistakes::default();
    tenants::complete(&mut root);
    if wrong_kind::has(&root, &mut found) {
        return found.or(None);
    }
    conform(&schema::EXPERIMENT, &root, &mut found);
    check_name(&root, &mut found);
    let work = tenants::work(&root, &mut found);
    let loaded = work.and_then(|work| check_document(&root, &work, plan, &mut found));
    found.or(loaded)
}

/// Resolved sections that all kinds of work share.
struct ResolvedParts {
    setup: Setup,
    scheduler: Option<BagSchedulerConfig>,
    drawn_prices: DrawnPrices,
    price_files: Vec<PriceFile>,
    hosts: Vec<ResourceVector>,
    place: Place,
    notes: Vec<String>,
    own: CollectedPrograms,
    sources: Sources,
}

fn check_document(
    root: &Node,
    work: &WorkSections,
    plan: Option<&Path>,
    found: &mut Mistakes,
) -> Option<LoadedExperiment> {
    let jobs = work.jobs.as_ref().map(|node| (node, jobs::check(node, found)));
    let seed = root.get("seed").and_then(|node| read(node, found)).unwrap_or(1);
    // A program without its class is reported there.
    root.get("live").and_then(|live| read::<BagProgram>(live.get("tasks")?, found));
    let mut live = section::<Live>(root, "live", found);
    if let Some(live) = &live {
        metadata_settings(root, &live.metadata, found);
    }
    let as_given = live.clone().unwrap_or_default();
    let of_bag = work.bag.as_ref().map(|node| resolve_bag(node, seed, (plan, &as_given), found));
    let of_requests = match (&work.requests, &of_bag) {
        (Some(node), None) => Some(resolve_provider(node, seed, Span::ZERO, found)),
        _ => None,
    };
    if let (Some(plan), None) = (plan, &of_bag) {
        let place = Place::whole(&format!("--plan {}", plan.display()));
        found.add(&place, "only a bag of tasks has a plan", "leave it out");
    }
    let jobs = match jobs {
        None => None,
        Some((_, jobs)) => Some(Box::new(jobs?)),
    };
    let parts = match (of_bag.or(of_requests), &jobs) {
        (Some(parts), _) => parts?,
        (None, Some(jobs)) => ResolvedParts {
            setup: jobs.simulation(seed).make_setup(),
            drawn_prices: DrawnPrices::default(),
            price_files: Vec::new(),
            scheduler: None,
            hosts: Vec::new(),
            place: root.place.clone(),
            notes: Vec::new(),
            own: CollectedPrograms::default(),
            sources: Sources::new(),
        },
        // Its cloud alone.
        (None, None) => resolve_provider(root, seed, work.deadline.unwrap_or_default(), found)?,
    };
    let ResolvedParts { mut setup, drawn_prices, price_files, scheduler, hosts, place, .. } = parts;
    let (mut notes, own, sources) = (parts.notes, parts.own, parts.sources);
    if let Some(live) = live.as_mut().filter(|_| !hosts.is_empty()) {
        a_worker_each(root, live, &hosts, found);
    }
    if let (Some(jobs), true) = (&jobs, work.bag.is_some() || work.requests.is_some()) {
        check_machine_beside_bag(root, jobs, &setup, &hosts, found);
    }
    let requests = match &work.requests {
        None => None,
        Some(node) => Some(Box::new(requests::check(node, &setup, &hosts, found)?)),
    };
    setup.requests = requests.is_some();
    let text = |key| root.text(key).unwrap_or_default().to_owned();
    let (name, description) = (text("name"), text("description"));
    let live = live?;
    let pace = own.tasks.has_measured().then(|| own.pace.unwrap_or(live.speedup));
    let faults = fault::faults(root, &live, &setup.catalogue.types, found);
    let mut experiment = Experiment {
        name,
        description,
        setup,
        scheduler,
        jobs,
        requests,
        drawn_prices,
        price_files,
        hosts,
        live,
        faults,
        own_programs: own.programs,
        own_tasks: own.tasks,
        ec2: None,
    };
    experiment.seed(seed);
    extent::check(&experiment, root, found);
    unknown::check(&experiment, root, found);
    let speedup = speedup_said(root);
    notes.extend(found.take_notes());
    Some(LoadedExperiment { experiment, speedup, notes, sources, pace, scheduler: place })
}

/// Checks the settings of the metadata endpoint.
pub(crate) fn metadata_settings(root: &Node, said: &MetadataSettings, found: &mut Mistakes) {
    if let Some((keys, what, remedy)) = said.first_flaw() {
        let place = &root.inside(["live", "metadata"].into_iter().chain(keys)).place;
        found.add(place, what, remedy);
    }
}

/// The section with this key, or its default if it is not given.
pub(crate) fn section<T: Default + DeserializeOwned>(
    root: &Node,
    key: &str,
    found: &mut Mistakes,
) -> Option<T> {
    root.get(key).map_or_else(|| Some(T::default()), |node| read(node, found))
}

/// Resolves the sections of a bag.
fn resolve_bag(
    node: &Node,
    seed: u64,
    (plan, live): (Option<&Path>, &Live),
    found: &mut Mistakes,
) -> Option<ResolvedParts> {
    let place = node.place_of("workload").clone();
    let at = |key: &str| node.get(key).unwrap_or(node);
    let workload = match node.get("workload").and_then(|inside| read(inside, found)) {
        Some(WorkloadSection::Bag(section)) => Some(section),
        _ => None,
    };
    let imported =
        workload.as_ref().and_then(|section| workload::types(section, at("workload"), found));
    let checkpoint = section::<CheckpointSection>(node, "checkpoint", found);
    let cloud = section(node, "cloud", found)
        .and_then(|section| cloud::check(section, at("cloud"), imported, found));
    // Mistakes elsewhere are reported even if the types are not known.
    let types = cloud.as_ref().map(|cloud| &cloud.catalogue.types);
    let mut scheduler = scheduler::check(node.get("scheduler"), types, found);
    let noise = workload
        .as_ref()
        .and_then(|section| workload::noise(section.noise?, at("workload"), found));
    let follows = workload.as_ref().and_then(|section| workflow::place(section, at("workload")));
    if let (Some(place), Some(scheduler)) = (&follows, &scheduler)
        && !scheduler.name.takes_workflows()
    {
        workflow::refused(scheduler.name, place, found);
    }
    let later = workload.as_ref().filter(|_| follows.is_none());
    let later = later.and_then(|section| workload::later(section, at("workload")));
    if let (Some(place), Some(scheduler)) = (later, &scheduler)
        && (plan.is_some() || !scheduler.name.takes_later_tasks())
    {
        let (what, remedy) = takes_all_at_once(scheduler.name, plan.is_some());
        found.add(&place, what, remedy);
    }
    let written = workload
        .and_then(|section| workload::check(&section, at("workload"), (types, live), found));
    let (bag, mut own, sources) = match written {
        Some(WrittenBag { bag, own, sources }) => (Some(bag), own, sources),
        None => (None, CollectedPrograms::default(), Sources::new()),
    };
    let deadline = bag.as_ref().map(|bag| bag.deadline).unwrap_or_default();
    let most_vms = match (&bag, types, &scheduler) {
        (Some(bag), Some(types), Some(scheduler)) => most_vms(bag, types, scheduler),
        _ => u32::MAX,
    };
    let before = found.count();
    let dates = cloud.as_ref().map(ResolvedCloud::dates).unwrap_or_default();
    let interruptions = interruptions(node, (deadline, most_vms, dates), types, found);
    let right = (found.count() == before).then_some(&interruptions[..]);
    if let Some(scheduler) = &mut scheduler {
        scheduler::laws(scheduler, node.get("scheduler"), right, found);
    }
    if let (Some(scheduler), Some(cloud)) = (&mut scheduler, &cloud) {
        default_bids(scheduler, cloud, at("cloud"), found);
    }
    let checkpoint = checkpoint.and_then(|section| {
        let boot = cloud.as_ref().map(|cloud| cloud.catalogue.boot).unwrap_or_default();
        let restore = scheduler.as_ref().map(|scheduler| scheduler.restore).unwrap_or_default();
        let amid = checkpoint::CheckpointContext {
            interruptions: right,
            notice: cloud.as_ref().map(|cloud| cloud.preemption_notice).unwrap_or_default(),
            restart: boot + restore,
            bag: bag.as_ref(),
            fleet: scheduler.as_ref().map(|scheduler| &scheduler.fleet[..]).unwrap_or_default(),
        };
        checkpoint::check(section, at("checkpoint"), &amid, found)
    });
    let (mut cloud, bag, mut scheduler, checkpoint) = (cloud?, bag?, scheduler?, checkpoint?);
    let checkpoint = own.saved(checkpoint, bag.tasks.len());
    if scheduler.name == BagSchedulerName::Acc && cloud.terms.billing.boot {
        let what = "acc counts the hours of a VM from when it has booted, and not from its launch";
        let remedy = "set cloud.bill-boot to false, or take another scheduler";
        found.add(at("scheduler").place_of("name"), what, remedy);
    }
    let mut begins_at = place;
    if let Some(path) = plan {
        begins_at = Place::whole(&path.display().to_string());
        let given = (&cloud.catalogue, &bag, &checkpoint);
        scheduler.plan = Some(found.take(plan::read(path, &scheduler, given, &mut cloud.notes))?);
    }
    let setup = Setup {
        seed,
        catalogue: cloud.catalogue,
        bag,
        noise,
        jobs: None,
        requests: false,
        checkpoint,
        interruptions,
        preemption_notice: cloud.preemption_notice,
        terms: cloud.terms,
    };
    let (scheduler, place) = (Some(scheduler), begins_at);
    let ResolvedCloud { drawn_prices, price_files, hosts, notes, .. } = cloud;
    Some(ResolvedParts {
        setup,
        drawn_prices,
        price_files,
        scheduler,
        hosts,
        place,
        notes,
        own,
        sources,
    })
}

/// Reason why tasks can't be submitted after the beginning of a run under this scheduler or plan,
/// and the remedy.
fn takes_all_at_once(name: BagSchedulerName, is_planned: bool) -> (String, String) {
    if is_planned {
        let what = "a plan begins all tasks as it says, whenever they are submitted";
        return (what.to_owned(), "leave --plan or submitted out".to_owned());
    }
    let all = BagSchedulerName::ALL.into_iter().filter(|name| name.takes_later_tasks());
    let others: Vec<&str> = all.map(BagSchedulerName::as_str).collect();
    let what = format!("{} takes all tasks at the beginning", name.as_str());
    (what, format!("leave submitted out, or take the scheduler {}", others.join(" or ")))
}

/// Gives spot VMs of a fleet without a bid the default bid, so that their scheduler knows it.
fn default_bids(
    scheduler: &mut BagSchedulerConfig,
    cloud: &ResolvedCloud,
    node: &Node,
    found: &mut Mistakes,
) {
    let Some(part) = cloud.terms.default_bid else { return };
    if scheduler.name == BagSchedulerName::Acc {
        let what = "under acc no provider is told a bid";
        found.add(node.place_of("default-bid"), what, "leave it out, or take another scheduler");
    }
    for fleet in scheduler.fleet.iter_mut().filter(|fleet| fleet.market == Market::Spot) {
        let kind = cloud.catalogue.types.get(&fleet.kind);
        let whole = kind.and_then(|kind| kind.price(Market::OnDemand));
        fleet.bid = fleet.bid.or(whole.map(|price| price.part(part)));
    }
}

/// Resolves the interruptions of spot VMs.
pub(crate) fn interruptions(
    node: &Node,
    (deadline, most_vms, dates): (Span, u32, PriceDates),
    types: Option<&Types>,
    found: &mut Mistakes,
) -> Vec<InterruptionModel> {
    let Some(Node { value: Value::List(list), .. }) = node.get("interruption") else {
        return Vec::new();
    };
    let check = |node: &Node| {
        let section: InterruptionSection = read(node, found)?;
        interruption::check(&section, node, (deadline, most_vms, dates), types, found)
    };
    list.iter().filter_map(check).collect()
}

/// Resolves the sections of a provider without a bag.
fn resolve_provider(
    node: &Node,
    seed: u64,
    deadline: Span,
    found: &mut Mistakes,
) -> Option<ResolvedParts> {
    let at = node.get("cloud").unwrap_or(node);
    let cloud =
        section(node, "cloud", found).and_then(|section| cloud::check(section, at, None, found));
    let types = cloud.as_ref().map(|cloud| &cloud.catalogue.types);
    let dates = cloud.as_ref().map(ResolvedCloud::dates).unwrap_or_default();
    let interruptions = interruptions(node, (deadline, u32::MAX, dates), types, found);
    let cloud = cloud?;
    let setup = Setup {
        seed,
        catalogue: cloud.catalogue,
        bag: Bag { tasks: [].into(), deadline: Span::ZERO },
        noise: None,
        jobs: None,
        requests: true,
        checkpoint: CheckpointConfig::NONE,
        interruptions,
        preemption_notice: cloud.preemption_notice,
        terms: cloud.terms,
    };
    let place = node.place_of("workload").clone();
    let ResolvedCloud { drawn_prices, price_files, hosts, notes, .. } = cloud;
    Some(ResolvedParts {
        setup,
        drawn_prices,
        price_files,
        scheduler: None,
        hosts,
        place,
        notes,
        own: CollectedPrograms::default(),
        sources: Sources::new(),
    })
}

/// Upper bound of the number of VMs that a bag's scheduler launches: the greatest number at a time,
/// and one more for each attempt at each task.
fn most_vms(bag: &Bag, types: &Types, scheduler: &BagSchedulerConfig) -> u32 {
    let at_once = types.values().map(|kind| kind.limits.spot.saturating_add(kind.limits.on_demand));
    let at_once = at_once.fold(0_u32, u32::saturating_add);
    let tasks = u32::try_from(bag.tasks.len()).unwrap_or(u32::MAX);
    at_once.saturating_add(tasks.saturating_mul(scheduler.max_failures.saturating_add(1)))
}

/// Sets the number of workers to the number of the provider's hosts: in a live run each worker acts
/// as one host.
fn a_worker_each(root: &Node, live: &mut Live, hosts: &[ResourceVector], found: &mut Mistakes) {
    let count = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
    match root.get("live").and_then(|live| live.get("workers")) {
        None => live.workers = count,
        Some(said) if live.workers != count => {
            let what = format!(
                "the provider has {count} hosts (cloud.hosts), and live each of them is a worker"
            );
            found.add(&said.place, what, "leave it out, or give cloud.hosts as many");
        }
        Some(_) => {}
    }
}

/// Checks that the machine of parallel jobs beside a bag fits on the provider's hosts.
fn check_machine_beside_bag(
    root: &Node,
    jobs: &BatchSetup,
    setup: &Setup,
    hosts: &[ResourceVector],
    found: &mut Mistakes,
) {
    if setup.catalogue.types.contains_key(&TypeName::from(MACHINE)) {
        let what = format!("a type is called '{MACHINE}', as the machine of the parallel jobs is");
        found.add(root.place_of("cloud"), what, "give the type another name");
    }
    if !hosts.is_empty() && hosts.iter().all(|host| host.vcpus < jobs.workload.processors) {
        let what =
            format!("no host can hold the machine of {} processors", jobs.workload.processors);
        let remedy = "give one of cloud.hosts as many vCPUs, or the jobs fewer processors";
        found.add(root.place_of("cloud.hosts"), what, remedy);
    }
}

/// Checks the name, which becomes part of a path.
fn check_name(root: &Node, found: &mut Mistakes) {
    let Some(name) = root.text("name") else { return };
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 100 || !name.chars().all(fine) || name.starts_with('.') {
        let remedy = "use letters, digits, '-', '_' and '.', at most 100";
        found.add(root.place_of("name"), format!("'{name}' is not fit for a folder"), remedy);
    }
}

/// Text of the experiment that is used for `--job` without an experiment.
const IMPORT: &str = "name = \"import\"\ndescription = \"an imported job\"\n[cloud]\n\
    catalogue = \"ec2-2020\"\n[workload]\nkind = \"bag\"\n";

/// The document of a file or built-in experiment; without a name, that of an imported job alone.
pub(crate) fn root(experiment: Option<&str>) -> Result<Node, InputError> {
    let Some(name) = experiment else { return from_toml("command line", IMPORT) };
    let path = Path::new(name);
    let like_a_path = name.contains(['/', '\\']) || path.extension().is_some_and(|e| e == "toml");
    let is_log = name.to_lowercase().ends_with(".swf") || name.to_lowercase().ends_with(".swf.gz");
    if is_log && BuiltinExperiment::named(name).is_none() {
        let what = "this is a log of parallel jobs, not an experiment";
        let remedy =
            format!("run it with: dormouse run kth-sp2 --scheduler easy --set workload.log={name}");
        return Err(InputError::new(&Place::whole(name), what, remedy));
    }
    match BuiltinExperiment::named(name) {
        Some(builtin) => from_toml(&format!("{name} (built in)"), &builtin.text()),
        None if path.is_file() || (like_a_path && path.exists() && !path.is_dir()) => {
            from_toml(name, &files::read_text(path)?)
        }
        None => {
            let (what, remedy) = no_experiment(name, like_a_path);
            Err(InputError::new(&Place::whole(name), what, remedy))
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
