//! The disks of hibernated VMs on the bill, beside a reckoning from the steps alone.

use std::collections::BTreeMap;

use dormouse_experiment::Experiment;
use dormouse_model::{Effect, Step};
use dormouse_units::VmId;

use super::runs::{played, record_of, sound, under};

/// Dollars for the disk of each VM: its gibibytes of memory and 8 more at $.08 a month of 720 hours, from when it froze
/// until it was resumed or ended.
fn reckoned(experiment: &Experiment, steps: &[Step]) -> BTreeMap<VmId, f64> {
    let (mut since, mut dollars, mut hourly) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for step in steps {
        let hours = step.at.as_secs_f64() / 3_600.0;
        for effect in &step.effects {
            match effect {
                Effect::VmLaunched { vm, kind, .. } => {
                    let memory = experiment.setup.catalogue.types[kind].memory.get();
                    let gib = memory as f64 / f64::from(1 << 30) + 8.0;
                    hourly.insert(*vm, gib * 0.08 / 720.0);
                    dollars.insert(*vm, 0.0);
                }
                Effect::VmHibernated { vm, .. } => drop(since.insert(*vm, hours)),
                Effect::VmResumed { vm, .. } | Effect::VmEnded { vm, .. } => {
                    let stood = since.remove(vm).map_or(0.0, |from: f64| hours - from);
                    dollars.entry(*vm).and_modify(|sum| *sum += stood * hourly[vm]);
                }
                _ => {}
            }
        }
    }
    dollars
}

#[test]
fn a_hibernated_vm_is_charged_for_its_disk_and_nothing_else_changes() {
    let disk = "cloud.stopped-disk={ size = \"8 GiB\", price = 0.08 }";
    let (mut resumed, mut never) = (0, 0);
    for (on, scheduler) in [
        ("j60-sc2", "hads"),
        ("j60-sc2", "burst-hads"),
        ("j60-sc5", "hads"),
        ("j60-sc5", "burst-hads"),
    ] {
        for (seed, tariff) in (1..=4).zip(["second", "ec2", "gce", "hour"]) {
            let tariff = format!("cloud.tariff=\"{tariff}\"");
            let with = under(on, scheduler, seed, &[disk, &tariff]);
            let (steps, record) = sound(&with);
            let right = reckoned(&with, &steps);
            let mut sum = 0.0;
            for (id, vm) in &record.vms {
                let (charged, right) = (vm.meter().disk_cost().as_usd(), right[id]);
                // The hour's price is rounded to a billionth of a dollar.
                assert!((charged - right).abs() < 1e-8, "{id}: ${charged}, ${right} by hand");
                assert_eq!(charged > 0.0, !vm.hibernations.is_empty(), "{id}");
                resumed += vm.hibernations.iter().filter(|it| it.resumed.is_some()).count();
                never += vm.hibernations.iter().filter(|it| it.resumed.is_none()).count();
                sum += charged;
            }
            let disks = record.stopped_disks_cost().unwrap().as_usd();
            assert!((disks - sum).abs() < 1e-12, "{disks} {sum}");
            // Without the key the decisions are the same, and the bill is less by the disks.
            let without = under(on, scheduler, seed, &[&tariff]);
            let (steps, run) = played(&without);
            let plain = record_of(&without, &steps);
            assert_eq!(run.digest(), record.digest());
            assert_eq!(plain.stopped_disks_cost(), None);
            let more = record.cost().as_usd() - plain.cost().as_usd();
            assert!((more - disks).abs() < 1e-12, "{more} {disks}");
        }
    }
    assert!(resumed > 5 && never > 5, "{resumed} {never}");
}
