//! The programs of the tasks of a bag, by the names that people give them.

use dormouse_units::{Bytes, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::run::NasKernel;

/// What the tasks of a bag really run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", try_from = "Written")]
pub enum BagProgram {
    /// Vector operations over the task's memory.
    Vector,
    /// GridNPB ED: the SP solver, each task with its own parameter.
    Ed {
        /// NAS class of the solver's problem.
        class: Class,
    },
    /// A NAS kernel.
    Nas {
        /// NAS kernel that the tasks run.
        kernel: NasKernel,
        /// NAS class of the kernel's problem.
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
    kernel: Option<NasKernel>,
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

impl TryFrom<Written> for BagProgram {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, &'static str> {
        let kernel = match written.kind {
            Kind::Vector | Kind::Ed => None,
            Kind::Ep => Some(NasKernel::Ep),
            Kind::Is => Some(NasKernel::Is),
            Kind::Cg => Some(NasKernel::Cg),
            Kind::Mg => Some(NasKernel::Mg),
            Kind::Ft => Some(NasKernel::Ft),
            Kind::Sp => Some(NasKernel::Sp),
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

impl JsonSchema for BagProgram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Program".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Written::json_schema(generator)
    }
}

impl BagProgram {
    /// The arguments of a task's program, without the amount of work: of this task, which has this much
    /// memory.
    #[must_use]
    pub fn arguments(&self, task: TaskId, memory: Bytes) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Vector => &["vector", "--memory", &format!("{}B", memory.get())],
            Self::Ed { class } => {
                let id = task.get() % class.ed_references();
                &["ed", "--class", class.letter(), "--id", &id.to_string()]
            }
            Self::Nas { kernel, class } => &[kernel.name(), "--class", class.letter()],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}
