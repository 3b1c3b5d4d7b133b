//! The two kinds of experiments, told apart here and nowhere else: a bag of tasks on the VMs of
//! a cloud, or a batch of parallel jobs on a machine of two-tier processors.

use serde::{Deserialize, Serialize};

use super::batch::{self, BatchExperiment};
use super::document::{Node, Value};
use super::load::{document, read_bag};
use super::reader::text;
use super::suggest::instead;
use super::{InputError, Loaded, Place, Source};

/// The kind of an experiment: what it schedules, on what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Independent tasks on the VMs of a cloud.
    #[default]
    Bag,
    /// Parallel jobs on the processors of a machine.
    Batch,
}

/// An experiment of either kind.
#[derive(Clone, Debug)]
pub enum Opened {
    /// A bag of tasks.
    Bag(Box<Loaded>),
    /// A batch of parallel jobs.
    Batch(Box<BatchExperiment>),
}

/// Loads and checks an experiment of either kind.
///
/// # Errors
///
/// The first thing that is wrong with it.
pub fn open(source: &Source<'_>) -> Result<Opened, InputError> {
    let root = document(source)?;
    match Kind::of(&root)? {
        Kind::Bag => read_bag(&root, source.plan).map(|loaded| Opened::Bag(loaded.into())),
        Kind::Batch => {
            if let Some(plan) = source.plan {
                let place = Place::of(&format!("--plan {}", plan.display()));
                let what = "jobs in a queue have no plan";
                return Err(InputError::new(&place, what, "leave it out"));
            }
            batch::read(&root).map(|batch| Opened::Batch(batch.into()))
        }
    }
}

impl Kind {
    /// Of an experiment, by `workload.kind`: a bag where nothing else is said. What several tenants
    /// share has a bag.
    fn of(root: &Node) -> Result<Self, InputError> {
        let inside = |node: &'_ Node, key: &str| match &node.value {
            Value::Table(table) => table.get(key).cloned(),
            _ => None,
        };
        let Some(kind) = inside(root, "workload").and_then(|w| inside(&w, "kind")) else {
            return Ok(Self::Bag);
        };
        match text(&kind)? {
            "bag" => Ok(Self::Bag),
            word if batch::KINDS.contains(&word) => Ok(Self::Batch),
            word => {
                let what = format!("there is no kind '{word}'");
                let known: Vec<_> = ["bag"].into_iter().chain(batch::KINDS).collect();
                Err(InputError::new(&kind.place, what, instead(word, &known)))
            }
        }
    }
}
