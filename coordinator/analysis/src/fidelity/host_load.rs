//! Load that other processes put on the hosts during a run.

use std::collections::BTreeMap;
use std::time::Duration;

use dormouse_model::LoadReport;

/// Load of one machine, which may carry several workers. Times are core microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct MachineLoad {
    /// Core time that the machine offered, in core microseconds.
    there: f64,
    busy: f64,
    ours: f64,
}

/// Part of all machines' core time that processes outside the run used; `None` if no worker could
/// measure it. `coordinator` is the coordinator's machine, by the name that hosts report, with the
/// CPU time that the coordinator used.
pub fn other_load<'a>(
    loads: impl IntoIterator<Item = &'a LoadReport>,
    coordinator: (&str, Duration),
) -> Option<f64> {
    let mut machines = load_by_machine(loads);
    if let Some(machine) = machines.get_mut(coordinator.0) {
        machine.ours += coordinator.1.as_secs_f64() * 1e6;
    }
    let (mut there, mut other) = (0.0, 0.0);
    for machine in machines.values() {
        there += machine.there;
        other += (machine.busy - machine.ours).max(0.0);
    }
    (there > 0.0).then(|| other / there)
}

fn load_by_machine<'a>(
    loads: impl IntoIterator<Item = &'a LoadReport>,
) -> BTreeMap<&'a str, MachineLoad> {
    let mut machines = BTreeMap::<&str, MachineLoad>::new();
    for load in loads {
        let machine = machines.entry(&load.machine).or_default();
        let there = load.elapsed_us as f64 * f64::from(load.millicores) / 1000.0;
        // Each worker of a machine sees the same cores, for as long as it is there.
        machine.there = machine.there.max(there);
        machine.busy = machine.busy.max(load.busy_us as f64);
        machine.ours += load.ours_us as f64;
    }
    machines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_of_one_machine_see_the_same_cores_and_add_up_what_is_theirs() {
        let load = |machine: &str, busy_us, ours_us| LoadReport {
            elapsed_us: 1_000_000,
            millicores: 2_000,
            busy_us,
            ours_us,
            machine: machine.to_owned(),
        };
        let share = |loads: Vec<LoadReport>| other_load(&loads, ("c", Duration::from_secs(1)));
        let close = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 1e-9);
        let (one, two) = (load("a", 1_600_000, 700_000), load("a", 1_500_000, 500_000));
        assert!(close(share(vec![one.clone(), two.clone()]), 0.2));
        let quiet = load("b", 300_000, 400_000);
        let all = vec![one, two, quiet];
        assert!(close(other_load(&all, ("a", Duration::from_millis(200))), 0.05));
        assert!(close(share(all), 0.1));
        assert_eq!(share(Vec::new()), None);
    }
}
