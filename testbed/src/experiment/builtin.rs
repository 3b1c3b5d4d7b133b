//! The experiments that come with the program: a job of the paper, plain or in a scenario.

/// A built-in experiment, such as `j60-sc2`.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    job: Part,
    scenario: Option<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    name: &'static str,
    text: &'static str,
}

macro_rules! part {
    ($name:literal) => {
        Part { name: $name, text: include_str!(concat!("../../experiments/", $name, ".toml")) }
    };
}

const JOBS: [Part; 4] = [part!("j60"), part!("j80"), part!("j100"), part!("ed200")];
const SCENARIOS: [Part; 5] = [part!("sc1"), part!("sc2"), part!("sc3"), part!("sc4"), part!("sc5")];

impl Part {
    /// Its first line, a comment, says what it is; the rest is its body.
    fn split(self) -> (&'static str, &'static str) {
        let (about, body) = self.text.split_once('\n').unwrap_or((self.text, ""));
        (about.trim_start_matches(['#', ' ']), body)
    }
}

impl Builtin {
    /// All of them, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        JOBS.into_iter().flat_map(|job| {
            std::iter::once(None)
                .chain(SCENARIOS.into_iter().map(Some))
                .map(move |scenario| Self { job, scenario })
        })
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|builtin| builtin.name() == name)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        match self.scenario {
            None => self.job.name.to_owned(),
            Some(scenario) => format!("{}-{}", self.job.name, scenario.name),
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub fn description(&self) -> String {
        let (job, _) = self.job.split();
        match self.scenario {
            None => format!("{job}; no hibernations"),
            Some(scenario) => format!("{job}; {}", scenario.split().0),
        }
    }

    /// The complete experiment file.
    #[must_use]
    pub fn text(&self) -> String {
        let head = format!(
            "name = \"{}\"\ndescription = \"{}\"\nseed = 1\n",
            self.name(),
            self.description()
        );
        let scenario = self.scenario.map_or("", |scenario| scenario.split().1);
        format!("{head}{}{scenario}", self.job.split().1)
    }
}
