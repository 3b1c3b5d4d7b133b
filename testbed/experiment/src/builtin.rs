//! Built-in experiments: a job of the Burst-HADS paper, plain or in a scenario; the bathtub paper's
//! batch service; parallel jobs; both; or requests for VMs.

use dormouse_model::TenantWork;

/// A built-in experiment, such as `j60-sc2`.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinExperiment {
    work: TenantWork,
    workload: BuiltinPart,
    scenario: Option<BuiltinPart>,
}

#[derive(Clone, Copy, Debug)]
struct BuiltinPart {
    name: &'static str,
    text: &'static str,
}

macro_rules! part {
    ($name:literal) => {
        BuiltinPart {
            name: $name,
            text: include_str!(concat!("../../experiments/", $name, ".toml")),
        }
    };
}

const JOBS: [BuiltinPart; 4] = [part!("j60"), part!("j80"), part!("j100"), part!("ed200")];
/// Bags with interruptions of their own, to which no scenario can be added.
const TAKEN: [BuiltinPart; 9] = [
    part!("j60-faults"),
    part!("acc-live"),
    part!("bathtub-live"),
    part!("bathtub-nanoconfinement"),
    part!("bathtub-shapes"),
    part!("bathtub-lulesh"),
    part!("bathtub-bags"),
    part!("bathtub-long"),
    part!("bathtub-service-live"),
];
const BATCHES: [BuiltinPart; 4] =
    [part!("batch-small"), part!("fw-like"), part!("jw-like"), part!("kth-sp2")];
const SHARED: [BuiltinPart; 3] =
    [part!("shared-small"), part!("shared-background"), part!("provider-j60")];
const PROVIDERS: [BuiltinPart; 11] = [
    part!("provider-testbed"),
    part!("provider-opie"),
    part!("provider-saturated"),
    part!("provider-filter"),
    part!("provider-retry"),
    part!("provider-by-second"),
    part!("provider-hibernate"),
    part!("provider-diurnal"),
    part!("provider-bursts"),
    part!("provider-large"),
    part!("provider-region-100k"),
];
const SCENARIOS: [BuiltinPart; 5] =
    [part!("sc1"), part!("sc2"), part!("sc3"), part!("sc4"), part!("sc5")];

impl BuiltinPart {
    /// Splits the text into its first line, a comment with the description, and the rest.
    fn split(self) -> (&'static str, &'static str) {
        let (about, body) = self.text.split_once('\n').unwrap_or((self.text, ""));
        (about.trim_start_matches(['#', ' ']), body)
    }

    /// Whether the experiment's text has interruptions of its own.
    fn body_has_scenario(self) -> bool {
        self.text.contains("[[interruption]]")
    }
}

impl BuiltinExperiment {
    /// All built-in experiments, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        let bags =
            JOBS.into_iter().flat_map(|workload| {
                std::iter::once(None)
                    .chain(SCENARIOS.into_iter().map(Some))
                    .map(move |scenario| Self { work: TenantWork::Bag, workload, scenario })
            });
        let batch = |workload| Self { work: TenantWork::Jobs, workload, scenario: None };
        let shared = |workload| Self { work: TenantWork::All, workload, scenario: None };
        let provider = |workload| Self { work: TenantWork::Requests, workload, scenario: None };
        let taken = TAKEN.into_iter().map(|workload| Self {
            work: TenantWork::Bag,
            workload,
            scenario: None,
        });
        let alone = bags.chain(taken).chain(BATCHES.into_iter().map(batch));
        alone.chain(SHARED.into_iter().map(shared)).chain(PROVIDERS.into_iter().map(provider))
    }

    /// Kinds of work: a bag of tasks, parallel jobs, requests for VMs, or several of these.
    pub const fn work(&self) -> TenantWork {
        self.work
    }

    /// The built-in experiment with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|builtin| builtin.name() == name)
    }

    /// Name of the experiment: the workload's name, followed by the scenario's name if there is a
    /// scenario.
    pub fn name(&self) -> String {
        match self.scenario {
            None => self.workload.name.to_owned(),
            Some(scenario) => format!("{}-{}", self.workload.name, scenario.name),
        }
    }

    /// Description in one line.
    pub fn description(&self) -> String {
        let (about, _) = self.workload.split();
        match (self.work, self.scenario) {
            (TenantWork::Jobs | TenantWork::Requests, _) => about.to_owned(),
            (_, None) if self.workload.body_has_scenario() => about.to_owned(),
            (_, None) => format!("{about}; no hibernations"),
            (_, Some(scenario)) => format!("{about}; {}", scenario.split().0),
        }
    }

    /// Complete text of the experiment file.
    pub fn text(&self) -> String {
        let head = format!(
            "name = \"{}\"\ndescription = \"{}\"\nseed = 1\n",
            self.name(),
            self.description()
        );
        let scenario = self.scenario.map_or("", |scenario| scenario.split().1);
        format!("{head}{}{scenario}", self.workload.split().1)
    }
}
