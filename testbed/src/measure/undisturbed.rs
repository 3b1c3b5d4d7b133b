//! An experiment in which one task runs alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_cloud::{InstanceType, Market};
use dormouse_experiment::{Experiment, RuntimeSaid};
use dormouse_model::{CheckpointConfig, CheckpointOn, CheckpointScheme, PeriodUnit};
use dormouse_policies::BagSchedulerConfig;
use dormouse_tasks::own::Saves;
use dormouse_units::{Span, TaskId, TypeName};
use serde_json::json;

/// Real time after which the first checkpoint is tried: programs have set themselves up by then.
const TRIED_AFTER: std::time::Duration = std::time::Duration::from_secs(2);
/// Deadline of a measured task: as long as any run may take.
const DEADLINE: Span = Span::from_secs(7 * 86_400);

/// The experiment in which a task of another experiment runs alone, on one on-demand VM of full speed that is ready at
/// once. If CRIU is to save the task's work, a checkpoint is tried.
///
/// # Errors
///
/// The task runs no program of the user's own, or no type that is sold on demand has enough memory for it; in words.
pub fn undisturbed(of: &Experiment, task: TaskId) -> Result<Experiment, String> {
    let place = task.get() as usize;
    let (Some(spec), Some(program)) = (of.setup.bag.tasks.get(place), of.own_programs.get(&task))
    else {
        return Err(format!("{task} does not run a program of your own"));
    };
    if let Some(handed) = program.handed.first() {
        let (name, output) = (&spec.name, &handed.output);
        return Err(format!(
            "{name} needs {output} of {}, which is not there when it is measured alone; give its runtime",
            handed.from
        ));
    }
    let kind = kind_for(of, spec.memory.get()).ok_or_else(|| {
        let (name, memory) = (&spec.name, spec.memory);
        format!(
            "no type of full speed that is sold on demand has {memory} for {name}; offer one under [cloud], or give \
             the task less memory"
        )
    })?;
    let config = json!({
        "name": "fifo", "fleet": [{ "type": kind.as_str(), "market": "on-demand", "count": 1 }],
    });
    let scheduler: BagSchedulerConfig =
        dormouse_units::written::read(&config).map_err(|error| error.to_string())?;
    let mut alone = of.clone();
    let longest = spec.runtime.values().max().copied().unwrap_or(Span::from_secs(600));
    let mut spec = spec.clone();
    spec.submitted = Span::ZERO;
    spec.after.clear();
    spec.runtime = BTreeMap::from([(kind, longest)]);
    alone.setup.bag.tasks = [spec].into();
    alone.setup.bag.deadline = DEADLINE;
    alone.setup.noise = None;
    alone.setup.interruptions = Vec::new();
    alone.setup.catalogue.boot = Span::ZERO;
    alone.setup.checkpoint = match program.saves {
        Saves::Criu => CheckpointConfig {
            scheme: CheckpointScheme::Every {
                period: of.live.speedup.to_emulated(TRIED_AFTER),
                of: PeriodUnit::Time,
            },
            on: CheckpointOn::All,
            ..CheckpointConfig::NONE
        },
        _ => CheckpointConfig::NONE,
    };
    alone.scheduler = Some(scheduler);
    (alone.jobs, alone.requests) = (None, None);
    (alone.hosts, alone.faults) = (Vec::new(), Vec::new());
    (alone.live.workers, alone.live.open) = (1, false);
    alone.own_programs = BTreeMap::from([(TaskId::new(0), Arc::clone(program))]);
    let known = of.own_tasks.tasks.get(&task).copied();
    alone.own_tasks.tasks = known.into_iter().map(|known| (TaskId::new(0), known)).collect();
    if let Some(known) = alone.own_tasks.tasks.get_mut(&TaskId::new(0)) {
        known.runtime = RuntimeSaid::Unknown;
    }
    Ok(alone)
}

/// The cheapest type of full speed that is sold on demand and has at least `memory` bytes of memory; `None` if there is no such
/// type.
fn kind_for(of: &Experiment, memory: u64) -> Option<TypeName> {
    let fits = |kind: &InstanceType| {
        kind.burstable.is_none() && kind.limits.on_demand > 0 && kind.memory.get() >= memory
    };
    let types = of.setup.catalogue.types.iter().filter(|(_, kind)| fits(kind));
    let priced = types.filter_map(|(name, kind)| Some((kind.price(Market::OnDemand)?, name)));
    priced.min().map(|(_, name)| name.clone())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use dormouse_experiment::{ExperimentSource, Override, OwnSaid, open};

    use super::*;

    #[test]
    fn a_task_is_alone_on_a_vm_that_nobody_takes_away() {
        let keys = [("command", "[\"sleep\", \"{n}\"]"), ("count", "3"), ("runtime", "\"90s\"")];
        let key = |(path, value): (&str, &str)| Override {
            option: "COMMAND",
            path: path.to_owned(),
            value: value.to_owned(),
        };
        let own = OwnSaid { keys: keys.map(key).to_vec(), replaces_tasks: true };
        let source =
            ExperimentSource { experiment: Some("j60-sc2"), own, ..ExperimentSource::default() };
        let experiment = open(&source).unwrap().experiment;
        let alone = undisturbed(&experiment, TaskId::new(2)).unwrap();
        assert_eq!(alone.setup.bag.tasks.len(), 1);
        assert_eq!(alone.own_programs[&TaskId::new(0)].argv, ["sleep", "2"]);
        assert!(alone.setup.interruptions.is_empty() && alone.scheduler_name() == "fifo");
        let every = CheckpointScheme::Every { period: Span::from_secs(60), of: PeriodUnit::Time };
        assert_eq!(alone.setup.checkpoint.scheme, every, "2 s at a speed-up of 30");
        assert!(undisturbed(&experiment, TaskId::new(3)).is_err());
    }
}
