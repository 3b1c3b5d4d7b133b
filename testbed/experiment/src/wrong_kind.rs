//! Check for a scheduler of another kind than the work, from which other mistakes would follow.

use dormouse_cloud::SchedulerName as PlacedBy;
use dormouse_documents::{Mistakes, Node, instead};
use dormouse_policies::BagSchedulerName;
use dormouse_policies::batch::Algorithm;

/// Kinds of work, by their schedulers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchedulerKind {
    Bag,
    Jobs,
    Requests,
}

impl SchedulerKind {
    const ALL: [Self; 3] = [Self::Bag, Self::Jobs, Self::Requests];

    /// Kind of a workload, by its key `kind`.
    fn from_key(workload: &str) -> Option<Self> {
        match workload {
            "bag" => Some(Self::Bag),
            "swf" | "model" | "jobs" => Some(Self::Jobs),
            "requests" => Some(Self::Requests),
            _ => None,
        }
    }

    fn schedulers(self) -> Vec<&'static str> {
        match self {
            Self::Bag => BagSchedulerName::ALL.map(BagSchedulerName::as_str).to_vec(),
            Self::Jobs => Algorithm::ALL.map(Algorithm::name).to_vec(),
            Self::Requests => PlacedBy::ALL.map(PlacedBy::name).to_vec(),
        }
    }

    const fn does(self) -> &'static str {
        match self {
            Self::Bag => "schedules a bag of tasks",
            Self::Jobs => "schedules parallel jobs",
            Self::Requests => "places VMs that are requested",
        }
    }

    const fn is(self) -> &'static str {
        match self {
            Self::Bag => "this is a bag of tasks",
            Self::Jobs => "these are parallel jobs",
            Self::Requests => "these are requests for VMs",
        }
    }
}

/// Adds a mistake if the only scheduler of an experiment is of another kind than its work; returns
/// whether it is.
pub(crate) fn has(root: &Node, found: &mut Mistakes) -> bool {
    let Some((node, key, kind)) = scheduler_of(root) else { return false };
    let Some(word) = node.text(key) else { return false };
    let is_of = |kind: &SchedulerKind| kind.schedulers().contains(&word);
    let Some(other) = SchedulerKind::ALL.into_iter().find(is_of).filter(|_| !is_of(&kind)) else {
        return false;
    };
    let what = format!("{word} {}, and {}", other.does(), kind.is());
    found.add(node.place_of(key), what, instead(word, &kind.schedulers()));
    true
}

/// The table that names the scheduler, the key of the name in this table, and the kind of work that
/// the scheduler schedules; `None` with several tenants.
fn scheduler_of(root: &Node) -> Option<(&Node, &'static str, SchedulerKind)> {
    if root.get("tenant").is_some() {
        return None;
    }
    let kind = SchedulerKind::from_key(root.get("workload")?.text("kind")?)?;
    Some(match kind {
        SchedulerKind::Requests => (root.get("cloud")?.get("placement")?, "scheduler", kind),
        SchedulerKind::Bag | SchedulerKind::Jobs => (root.get("scheduler")?, "name", kind),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{ExperimentSource, Override, open};

    #[test]
    fn a_scheduler_of_another_kind_is_the_one_thing_that_is_said() {
        for (experiment, scheduler, words) in [
            ("j60", "easy", "easy schedules parallel jobs, and this is a bag of tasks"),
            ("j60", "opie", "opie places VMs that are requested, and this is a bag of tasks"),
            ("batch-small", "hads", "hads schedules a bag of tasks, and these are parallel jobs"),
            ("provider-testbed", "easy", "and these are requests for VMs; there are"),
        ] {
            let overrides = vec![Override::text("--scheduler", "scheduler.name", scheduler)];
            let source = ExperimentSource {
                experiment: Some(experiment),
                overrides,
                ..ExperimentSource::default()
            };
            let Err(error) = open(&source) else { panic!("{experiment} under {scheduler}") };
            let said = error.to_string();
            assert!(said.contains(words) && said.lines().count() == 1, "{said}");
            assert!(said.starts_with("--scheduler: "), "{said}");
        }
    }
}
