//! `[live]`: how an experiment is run on real machines.

use dormouse_documents::Node;
use dormouse_host::calibration::SpeedupSaid;
use dormouse_policies::Bag;
use dormouse_tell::fidelity::Allowed;
use dormouse_units::{Ppm, Span, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an experiment is run on real processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Live {
    /// Emulated seconds per real second.
    #[schemars(range(min = 0.001, max = 1e6))]
    pub speedup: f64,
    /// What the tasks really run.
    pub tasks: Program,
    /// How a VM is hibernated.
    pub hibernate: Hibernate,
    /// How many workers to wait for.
    #[schemars(range(min = 1, max = 10_000))]
    pub workers: u32,
    /// Parallel jobs may come from outside while it runs: it ends only when it is told to.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// Share of the hosts' processors kept for agents and CRIU.
    #[schemars(range(min = 0.0, max = 0.9))]
    pub reserve: Ppm,
    /// Host cores per reference vCPU; as much as fits where it is not given.
    #[schemars(range(min = 0.001, max = 1.0))]
    pub share: Option<Ppm>,
    /// Real time of silence after which a worker counts as lost.
    pub lost_after: Span,
    /// The part of its time by which a task may miss what it was promised in a faithful run.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub worst_error: f64,
    /// The same for the mean over all tasks.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mean_error: f64,
}

impl Live {
    /// By how much a faithful run may miss what it promised.
    #[must_use]
    pub const fn allowed(&self) -> Allowed {
        let Self { worst_error, mean_error, speedup, .. } = *self;
        Allowed { worst_error, mean_error, speedup }
    }
}

/// Who said at what speed-up it is run live, of a document with everything set that was asked for.
pub(crate) fn speedup_said(root: &Node) -> SpeedupSaid {
    match root.get("live").and_then(|live| live.get("speedup")) {
        None => SpeedupSaid::Nobody,
        // What a file says stands on a line of it.
        Some(node) if node.place.at.is_none() => SpeedupSaid::CommandLine,
        Some(_) => SpeedupSaid::Experiment,
    }
}

/// How a VM is hibernated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hibernate {
    /// Frozen in place.
    #[default]
    Freeze,
}

/// The real program of the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", try_from = "Written")]
pub enum Program {
    /// Vector operations over the task's memory.
    Vector,
    /// GridNPB ED: the SP solver, each task with its own parameter.
    Ed {
        /// NAS class.
        class: Class,
    },
    /// A NAS kernel.
    Nas {
        /// The kernel.
        kernel: Kernel,
        /// NAS class.
        class: Class,
    },
}

/// A program as people write it: a kernel is a `kind` of its own. In logs its kind is `nas`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    /// The program, by its name.
    kind: Kind,
    /// NAS class; all but `vector` need it.
    class: Option<Class>,
    #[schemars(skip)]
    kernel: Option<Kernel>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// Vector operations over the task's memory.
    Vector,
    /// GridNPB ED: the SP solver, each task with its own parameter.
    Ed,
    /// The NAS kernel EP.
    Ep,
    /// The NAS kernel IS.
    Is,
    /// The NAS kernel CG.
    Cg,
    /// The NAS kernel MG.
    Mg,
    /// The NAS kernel FT.
    Ft,
    /// The NAS kernel SP.
    Sp,
    #[schemars(skip)]
    Nas,
}

impl TryFrom<Written> for Program {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, &'static str> {
        let kernel = match written.kind {
            Kind::Vector | Kind::Ed => None,
            Kind::Ep => Some(Kernel::Ep),
            Kind::Is => Some(Kernel::Is),
            Kind::Cg => Some(Kernel::Cg),
            Kind::Mg => Some(Kernel::Mg),
            Kind::Ft => Some(Kernel::Ft),
            Kind::Sp => Some(Kernel::Sp),
            Kind::Nas => Some(written.kernel.ok_or("'kernel' is missing")?),
        };
        if matches!(written.kind, Kind::Vector) {
            return match written.class {
                None => Ok(Self::Vector),
                Some(_) => Err("'class' is of NAS programs, not of vector"),
            };
        }
        let class = written.class.ok_or("'class' is missing")?;
        Ok(kernel.map_or(Self::Ed { class }, |kernel| Self::Nas { kernel, class }))
    }
}

impl JsonSchema for Program {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Program".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Written::json_schema(generator)
    }
}

/// NAS problem classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the classes have no other names")]
pub enum Class {
    S,
    W,
    A,
    B,
}

/// NAS kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the kernels have no other names")]
pub enum Kernel {
    Ep,
    Is,
    Cg,
    Mg,
    Ft,
    Sp,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            speedup: 30.0,
            tasks: Program::Vector,
            hibernate: Hibernate::Freeze,
            workers: 1,
            open: false,
            reserve: Ppm::new(250_000),
            share: None,
            lost_after: Span::from_secs(5),
            worst_error: 0.05,
            mean_error: 0.005,
        }
    }
}

impl Class {
    const fn letter(self) -> &'static str {
        match self {
            Self::S => "S",
            Self::W => "W",
            Self::A => "A",
            Self::B => "B",
        }
    }
}

impl Class {
    /// How many tasks of GridNPB ED there are reference values for, from 0. A bag with more
    /// tasks runs these again: a task without a reference could not be verified.
    const fn ed_references(self) -> u32 {
        match self {
            Self::S | Self::W => 100,
            Self::A => 5,
            Self::B => 1,
        }
    }
}

impl Kernel {
    const fn word(self) -> &'static str {
        match self {
            Self::Ep => "ep",
            Self::Is => "is",
            Self::Cg => "cg",
            Self::Mg => "mg",
            Self::Ft => "ft",
            Self::Sp => "sp",
        }
    }
}

impl Program {
    /// The arguments of a task's program, without the amount of work.
    #[must_use]
    pub fn arguments(&self, task: TaskId, bag: &Bag) -> Vec<String> {
        let words: Vec<String> = match self {
            Self::Vector => {
                let memory = bag.tasks.get(task.get() as usize).map_or(0, |t| t.memory.get());
                vec!["vector".into(), "--memory".into(), format!("{memory}B")]
            }
            Self::Ed { class } => vec![
                "ed".into(),
                "--class".into(),
                class.letter().into(),
                "--id".into(),
                (task.get() % class.ed_references()).to_string(),
            ],
            Self::Nas { kernel, class } => {
                vec![kernel.word().into(), "--class".into(), class.letter().into()]
            }
        };
        words
    }

    /// The programs of all tasks of a bag, by id.
    #[must_use]
    pub fn all(&self, bag: &Bag) -> Vec<Vec<String>> {
        (0..).map(TaskId::new).take(bag.tasks.len()).map(|task| self.arguments(task, bag)).collect()
    }
}
