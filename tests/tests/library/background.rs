//! Spot VMs in the background of others, as the record and the checker see them.

use dormouse_analysis::{RunRecord, check_bag};
use dormouse_cloud::{InterruptionAction, InterruptionTarget};
use dormouse_engine::tenants_view;
use dormouse_experiment::Experiment;
use dormouse_model::{Effect, Event, Step, TenantWork, Tenants};
use dormouse_units::{Ppm, Span, Time, VmId};

use super::runs::{played, with};

const NAME: &str = "shared-background";

/// The steps without what the bag's tenant does not see.
fn of_bag(steps: &[Step]) -> Vec<Step> {
    let tenants = Tenants::from([TenantWork::Bag, TenantWork::Jobs]);
    let bag = tenants.with_bag().unwrap();
    steps.iter().map(|step| tenants_view(step, &tenants, bag)).collect()
}

fn violations(experiment: &Experiment, steps: &[Step]) -> Vec<String> {
    let found = check_bag(&experiment.setup, steps, Span::ZERO, false);
    found.into_iter().map(|violation| violation.what).collect()
}

#[test]
fn what_no_background_can_be_is_found() {
    let experiment = with(NAME, &[]).unwrap();
    let good = of_bag(&played(&experiment).0);
    assert_eq!(violations(&experiment, &good), Vec::<String>::new());
    let damaged = |damage: &dyn Fn(&mut Effect), words: &str| {
        let mut bad = good.clone();
        bad.iter_mut().flat_map(|step| &mut step.effects).for_each(damage);
        let found = violations(&experiment, &bad);
        assert!(found.iter().any(|what| what.contains(words)), "no '{words}' in {found:?}");
    };
    let supplied = |effect: &mut Effect, share: Option<Ppm>, vcpu: Option<u32>| {
        if let Effect::Supplied { share: s, vcpu: v, .. } = effect {
            (*s, *v) = (share.unwrap_or(*s), vcpu.unwrap_or(*v));
        }
    };
    damaged(&|effect| supplied(effect, Some(Ppm::new(1_000_001)), None), "more than it");
    damaged(&|effect| supplied(effect, None, Some(2)), "no vCPU 2");
    let placed = |effect: &mut Effect, on: [u32; 2]| {
        if let Effect::Placed { processors, .. } = effect {
            *processors = on.to_vec();
        }
    };
    damaged(&|effect| placed(effect, [0, 1]), "whose background is held by");
    damaged(&|effect| placed(effect, [9, 10]), "no processor 10");
    let swapped = |effect: &mut Effect| {
        if let Effect::Placed { tier, .. } = effect {
            *tier = match tier {
                dormouse_units::Tier::Foreground => dormouse_units::Tier::Background,
                dormouse_units::Tier::Background => dormouse_units::Tier::Foreground,
            };
        }
    };
    damaged(&swapped, "is in the foreground of its processors");
}

#[test]
fn the_record_has_what_each_was_left() {
    let experiment = with(NAME, &[]).unwrap();
    let steps = played(&experiment).0;
    let mut record = RunRecord::new(&experiment.setup);
    steps.iter().for_each(|step| record.see(step));
    let behind: Vec<_> = record.vms.values().filter(|vm| vm.is_background).collect();
    assert_eq!(behind.len(), 2);
    for vm in behind {
        let (there, had) = vm.supplied(record.end());
        let alive = vm.ended.unwrap().0.since(vm.ready.unwrap());
        assert_eq!(there, alive.times(2), "both of its vCPUs, all the time");
        assert!(had > Span::ZERO && had < there, "{had} of {there}");
        // Whenever it was left nothing, by the instants at which that was said.
        let by_hand: u64 = (0..2)
            .map(|vcpu| {
                let mut all: Vec<_> = vm.supplies.iter().filter(|it| it.1 == vcpu).collect();
                let first = (vm.ready.unwrap(), vcpu, vm.supply_at(vm.ready.unwrap(), vcpu));
                all.retain(|it| it.0 > first.0);
                all.insert(0, &first);
                let ends = all.iter().skip(1).map(|it| it.0).chain([vm.ended.unwrap().0]);
                let spans = all.iter().zip(ends);
                spans.map(|(it, end)| it.2.scale_number(end.since(it.0).as_micros())).sum::<u64>()
            })
            .sum();
        assert_eq!(had.as_micros(), by_hand);
    }
}

#[test]
fn who_makes_room_for_anothers_vm_may_have_been_told_to_hibernate() {
    let hosts = "cloud.hosts=[{ vcpus = 40 }]";
    let experiment = with(NAME, &["cloud.spot=\"own\"", hosts]).unwrap();
    let steps = played(&experiment).0;
    let spot = |step: &Step| {
        step.effects.iter().find_map(|effect| match effect {
            Effect::VmReady { vm } if vm.get() == 0 => Some(*vm),
            _ => None,
        })
    };
    let ready = steps.iter().position(|step| spot(step).is_some()).unwrap();
    let (asked, target) = (steps[ready].at, InterruptionTarget::Vm(VmId::new(0)));
    let step = |seq: u64, effect: Effect| Step {
        seq,
        at: asked,
        event: Event::Tick,
        notices: Vec::new(),
        decisions: Vec::new(),
        answers: Vec::new(),
        effects: vec![effect],
    };
    let hibernates = Effect::Interrupted {
        asked,
        action: InterruptionAction::Hibernate,
        target,
        vms: vec![VmId::new(0)],
        left: Vec::new(),
    };
    // A machine of the jobs takes its room before it is frozen.
    let displaced = Effect::Displaced {
        vm: VmId::new(0),
        by: VmId::new(3),
        action: InterruptionAction::Preempt,
    };
    let mut log = steps[..=ready].to_vec();
    let next = log.len() as u64;
    log.extend([step(next, hibernates), step(next + 1, displaced)]);
    assert_eq!(violations(&experiment, &of_bag(&log)), Vec::<String>::new());
    assert!(asked > Time::ZERO);
}
