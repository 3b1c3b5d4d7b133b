//! Programs of the tasks of a bag, by their names in experiments.

use dormouse_units::{Bytes, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::class::ProblemClass;
use crate::run::NasKernel;

/// Which program the tasks of a bag really run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", try_from = "WrittenProgram")]
pub enum BagProgram {
    /// Vector operations over the task's memory.
    Vector,
    /// GridNPB ED: the SP solver, each task with its own parameter.
    Ed {
        /// NAS class of the solver's problem.
        class: ProblemClass,
    },
    /// A NAS kernel.
    Nas {
        /// NAS kernel that the tasks run.
        kernel: NasKernel,
        /// NAS class of the kernel's problem.
        class: ProblemClass,
    },
}

/// A program as people write it in an experiment file: each NAS kernel is a `kind` of its own. In logs the `kind` of all kernels is
/// `nas`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Written")]
struct WrittenProgram {
    /// Name of the program.
    kind: WrittenKind,
    /// NAS class of the problem; all programs but `vector` need one.
    class: Option<ProblemClass>,
    #[schemars(skip)]
    kernel: Option<NasKernel>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Kind")]
enum WrittenKind {
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

impl TryFrom<WrittenProgram> for BagProgram {
    type Error = &'static str;

    fn try_from(written: WrittenProgram) -> Result<Self, &'static str> {
        let kernel = match written.kind {
            WrittenKind::Vector | WrittenKind::Ed => None,
            WrittenKind::Ep => Some(NasKernel::Ep),
            WrittenKind::Is => Some(NasKernel::Is),
            WrittenKind::Cg => Some(NasKernel::Cg),
            WrittenKind::Mg => Some(NasKernel::Mg),
            WrittenKind::Ft => Some(NasKernel::Ft),
            WrittenKind::Sp => Some(NasKernel::Sp),
            WrittenKind::Nas => Some(written.kernel.ok_or("'kernel' is missing")?),
        };
        if matches!(written.kind, WrittenKind::Vector) {
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
        WrittenProgram::json_schema(generator)
    }
}

impl BagProgram {
    /// Returns the arguments of the program for task `task` with `memory` bytes, without the amount of work.
    #[must_use]
    pub fn arguments(&self, task: TaskId, memory: Bytes) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Vector => &["vector", "--memory", &format!("{}B", memory.get())],
            Self::Ed { class } => {
                let id = task.get() % class.ed_references();
                &["ed", "--class", class.class_letter(), "--id", &id.to_string()]
            }
            Self::Nas { kernel, class } => &[kernel.name(), "--class", class.class_letter()],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}
