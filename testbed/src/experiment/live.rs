//! `[live]`: how an experiment is run on real machines.

use dormouse_policies::Bag;
use dormouse_units::{Ppm, Span, TaskId};
use serde::{Deserialize, Serialize};

use super::InputError;
use super::document::{Node, Value};
use super::reader::Section;

/// What a live run needs to know beside the setup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Live {
    /// Emulated seconds per real second.
    pub speedup: f64,
    /// What the tasks really run.
    pub tasks: Program,
    /// How a VM is hibernated.
    pub hibernate: Hibernate,
    /// How many workers to wait for.
    pub workers: u32,
    /// Parallel jobs may come from outside while it runs: it ends only when it is told to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// Share of the hosts' processors kept for agents and CRIU.
    pub reserve: Ppm,
    /// Host cores per reference vCPU; `None`: as much as fits.
    pub share: Option<Ppm>,
    /// Real time of silence after which a worker counts as lost.
    pub lost_after: Span,
    /// The part of its time by which a task may miss what it was promised in a faithful run.
    #[serde(default = "worst_error")]
    pub worst_error: f64,
    /// The same for the mean over all tasks.
    #[serde(default = "mean_error")]
    pub mean_error: f64,
}

const fn worst_error() -> f64 {
    0.05
}

/// As [`worst_error`].
const fn mean_error() -> f64 {
    0.005
}

/// Who said at what speed an experiment is run live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpeedupSaid {
    /// Nobody: it is the standard one.
    #[default]
    Nobody,
    /// The experiment's file.
    Experiment,
    /// The command line.
    CommandLine,
}

impl SpeedupSaid {
    /// Of a document with everything set that was asked for.
    pub(crate) fn of(root: &Node) -> Self {
        let inside = |node: &'_ Node, key: &str| match &node.value {
            Value::Table(table) => table.get(key).cloned(),
            _ => None,
        };
        match inside(root, "live").and_then(|live| inside(&live, "speedup")) {
            None => Self::Nobody,
            // What a file says stands on a line of it.
            Some(node) if node.place.at.is_none() => Self::CommandLine,
            Some(_) => Self::Experiment,
        }
    }
}

/// How a VM is hibernated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hibernate {
    /// Frozen in place.
    #[default]
    Freeze,
}

/// The real program of the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
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

/// NAS problem classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

const CLASSES: [(&str, Class); 4] =
    [("S", Class::S), ("W", Class::W), ("A", Class::A), ("B", Class::B)];

#[derive(Clone, Copy)]
enum Kind {
    Vector,
    Ed,
    Nas(Kernel),
}

const KINDS: [(&str, Kind); 8] = [
    ("vector", Kind::Vector),
    ("ed", Kind::Ed),
    ("ep", Kind::Nas(Kernel::Ep)),
    ("is", Kind::Nas(Kernel::Is)),
    ("cg", Kind::Nas(Kernel::Cg)),
    ("mg", Kind::Nas(Kernel::Mg)),
    ("ft", Kind::Nas(Kernel::Ft)),
    ("sp", Kind::Nas(Kernel::Sp)),
];

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
            worst_error: worst_error(),
            mean_error: mean_error(),
        }
    }
}

/// Reads `[live]`.
pub(crate) fn read(mut section: Section<'_>) -> Result<Live, InputError> {
    let standard = Live::default();
    let live = Live {
        speedup: section.number("speedup", 0.001..=1e6)?.unwrap_or(standard.speedup),
        tasks: section.get("tasks").map(program).transpose()?.unwrap_or(standard.tasks),
        hibernate: section
            .choice("hibernate", &[("freeze", Hibernate::Freeze)])?
            .unwrap_or_default(),
        workers: section.count("workers", 1..=10_000)?.unwrap_or(standard.workers),
        open: section.flag("open")?.unwrap_or(standard.open),
        reserve: section.fraction("reserve", 0.0..=0.9)?.unwrap_or(standard.reserve),
        share: section.fraction("share", 0.001..=1.0)?,
        lost_after: section.span("lost-after")?.unwrap_or(standard.lost_after),
        worst_error: section.number("worst-error", 0.0..=1.0)?.unwrap_or(standard.worst_error),
        mean_error: section.number("mean-error", 0.0..=1.0)?.unwrap_or(standard.mean_error),
    };
    section.finish()?;
    Ok(live)
}

fn program(node: &Node) -> Result<Program, InputError> {
    let mut section = Section::of(node)?;
    let kind = section.choice("kind", &KINDS)?;
    let kind = section.need("kind", kind, "\"vector\"")?;
    let class = match kind {
        Kind::Vector => None,
        Kind::Ed | Kind::Nas(_) => {
            let class = section.choice("class", &CLASSES)?;
            Some(section.need("class", class, "\"S\"")?)
        }
    };
    section.finish()?;
    Ok(match (kind, class) {
        (Kind::Ed, Some(class)) => Program::Ed { class },
        (Kind::Nas(kernel), Some(class)) => Program::Nas { kernel, class },
        (_, _) => Program::Vector,
    })
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
