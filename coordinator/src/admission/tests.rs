//! Runs that fit are admitted; others are refused with numbers that would fit.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_cloud::{
    BurstableTerms, Catalogue, InstanceType, LaunchRequest, ProviderTerms, VmLimits,
};
use dormouse_model::{Bag, CheckpointConfig, CheckpointScheme, Task};
use dormouse_units::{Credits, TypeName};
use proptest::prelude::*;

use super::*;

fn kind(name: &str, burstable: Option<BurstableTerms>) -> InstanceType {
    InstanceType {
        name: name.into(),
        vcpus: 2,
        memory: Bytes::new(1 << 32),
        disk: Bytes::ZERO,
        mflops: 1,
        on_demand: None,
        spot: None,
        limits: VmLimits { spot: 0, on_demand: 0 },
        burstable,
    }
}

/// Makes a setup of equal tasks, each of which takes 100 s on type `fast`, 200 s on type `slow`, and 10 MB of memory.
fn setup(tasks: usize) -> Setup {
    let credits = Credits::whole_credits(1);
    let burstable = BurstableTerms {
        baseline: Ppm::new(200_000),
        earned_per_hour: credits,
        initial: credits,
        cap: credits,
        surplus: None,
    };
    let types = [kind("fast", None), kind("slow", Some(burstable))];
    let runtime: BTreeMap<_, _> = [
        (TypeName::from("fast"), Span::from_secs(100)),
        (TypeName::from("slow"), Span::from_secs(200)),
    ]
    .into();
    let task = Task {
        name: "B1".to_owned(),
        memory: Bytes::new(10_000_000),
        runtime,
        submitted: Span::ZERO,
        after: Vec::new(),
    };
    Setup {
        seed: 1,
        catalogue: Catalogue {
            types: types.map(|t| (t.name.clone(), t)).into(),
            boot: Span::ZERO,
            hibernation: Span::ZERO,
        },
        bag: Bag { tasks: vec![task; tasks].into(), deadline: Span::from_secs(2_700) },
        checkpoint: CheckpointConfig {
            scheme: CheckpointScheme::Budget(Ppm::ZERO),
            fixed: Span::ZERO,
            per_megabyte: Span::ZERO,
            on: dormouse_model::CheckpointOn::All,
            ..CheckpointConfig::NONE
        },
        noise: None,
        jobs: None,
        requests: false,
        interruptions: Vec::new(),
        preemption_notice: Span::ZERO,
        terms: ProviderTerms::default(),
    }
}

fn room(millicores: u32) -> WorkerOffer {
    WorkerOffer { name: "w".to_owned(), millicores, memory: Bytes::new(1 << 30) }
}

/// Makes the demand of `vcpus` VMs of one vCPU each, without a type.
fn singles(vcpus: u32) -> &'static RunDemand {
    vms(&vec![1; vcpus as usize])
}

fn vms(vms: &[u32]) -> &'static RunDemand {
    Box::leak(Box::new(RunDemand { vms: vms.to_vec(), ..RunDemand::default() }))
}

fn request<'a>(
    hosts: &'a [WorkerOffer],
    setup: &'a Setup,
    demand: u32,
    speedup: f64,
) -> AdmissionRequest<'a> {
    AdmissionRequest {
        hosts,
        speedup: Speedup::from_f64(speedup).expect("a sensible factor"),
        demand: singles(demand),
        reserve: Ppm::new(250_000),
        share: None,
        setup,
        repetition_us: &[],
        noop: false,
    }
}

#[test]
fn the_share_is_what_the_busy_vcpus_leave_each_other() {
    let (hosts, setup) = ([room(2_000)], setup(3));
    let admitted = request(&hosts, &setup, 12, 30.0).admit_run().expect("it fits");
    assert_eq!(admitted.share, Ppm::new(125_000));
    assert_eq!(admitted.offers[0].vcpus, 12);
    // 0.125 × 100 s / 30.
    assert_eq!(admitted.cpu_us, [416_666; 3]);
    let idle = request(&hosts, &setup, 1, 30.0).admit_run().expect("it fits");
    assert_eq!(idle.share, Ppm::ONE, "never more than a core per vCPU");
}

#[test]
fn parts_of_a_vcpu_that_no_host_can_hold_do_not_count() {
    let (hosts, setup) = ([room(1_000), room(1_000)], setup(1));
    let admitted = request(&hosts, &setup, 5, 30.0).admit_run().expect("it fits");
    assert_eq!(admitted.share, Ppm::new(250_000), "0.3 would hold two on each host: four");
    assert_eq!(admitted.offers.iter().map(|o| o.vcpus).sum::<u32>(), 6);
}

#[test]
fn too_fast_is_refused_with_the_speed_that_fits() {
    let (hosts, setup) = ([room(2_000)], setup(1));
    let no = request(&hosts, &setup, 12, 1_000.0).admit_run().expect_err("12.5 ms is too little");
    let text = no.to_string();
    assert!(text.contains("task 0 ('B1') would be given 12500 µs"), "{text}");
    assert!(text.contains("use --speedup 625 or less"), "{text}");
    assert!(request(&hosts, &setup, 12, 625.0).admit_run().is_ok());
    assert!(request(&hosts, &setup, 12, 626.0).admit_run().is_err());
    let slow = AdmissionRequest { repetition_us: &[500_000], ..request(&hosts, &setup, 12, 30.0) };
    let text = slow.admit_run().expect_err("416 ms is less than a repetition").to_string();
    assert!(text.contains("500000 µs that one repetition"), "{text}");
    assert!(text.contains("use --speedup 25 or less"), "{text}");
}

#[test]
fn a_quota_the_kernel_cannot_keep_is_refused_with_the_cores_that_are_missing() {
    let (hosts, setup) = ([room(2_000)], setup(1));
    // 1.5 / 80 = 0.01875 of a core; × 100/200 × 0.2 = 0.1875 %.
    let no = request(&hosts, &setup, 80, 30.0).admit_run().expect_err("0.1875 % is too little");
    let text = no.to_string();
    assert!(text.contains("on slow in baseline mode would get 0.1875 % of a core"), "{text}");
    // 80 vCPUs × 0.025 / 0.75 = 2.67 cores.
    assert!(text.contains("0.67 more cores are missing"), "{text}");
    assert!(request(&[room(2_670)], &setup, 80, 30.0).admit_run().is_ok());
}

#[test]
fn a_given_share_that_does_not_fit_is_refused() {
    let (hosts, setup) = ([room(2_000)], setup(1));
    let fixed =
        |ppm| AdmissionRequest { share: Some(Ppm::new(ppm)), ..request(&hosts, &setup, 12, 30.0) };
    assert_eq!(fixed(100_000).admit_run().expect("it fits").offers[0].vcpus, 15);
    let text = fixed(500_000).admit_run().expect_err("3 vCPUs only").to_string();
    assert!(text.contains("the hosts hold 3"), "{text}");
    assert!(text.contains("6.00 more cores are missing"), "{text}");
    assert!(fixed(0).admit_run().is_err() && fixed(1_500_000).admit_run().is_err());
}

#[test]
fn memory_that_is_not_there_is_refused() {
    let (hosts, mut setup) = ([room(2_000)], setup(12));
    for task in Arc::make_mut(&mut setup.bag.tasks) {
        task.memory = Bytes::new(1 << 27);
    }
    let no = request(&hosts, &setup, 12, 30.0).admit_run().expect_err("1.5 GiB of 1 GiB");
    assert!(matches!(no, AdmissionError::Memory { .. }), "{no}");
}

#[test]
fn a_vm_that_fits_on_no_host_is_refused_however_many_hosts_there_are() {
    let (hosts, setup) = (vec![room(60); 30], setup(30));
    let demand = RunDemand {
        vms: vec![2; 15],
        kinds: ["fast".into(), "slow".into()].into(),
        ..RunDemand::default()
    };
    let fixed = AdmissionRequest {
        demand: &demand,
        share: Some(Ppm::new(40_000)),
        ..request(&hosts, &setup, 0, 30.0)
    };
    let text = fixed.admit_run().expect_err("each holds a vCPU, and a VM has two").to_string();
    for words in ["type slow has 2 vCPUs, but no host holds more than 1", "0.06 cores", "25 % kept"]
    {
        assert!(text.contains(words), "no '{words}' in: {text}");
    }
    let free = AdmissionRequest { share: None, ..fixed };
    let admitted =
        AdmissionRequest { noop: true, ..free }.admit_run().expect("at a smaller share it fits");
    assert_eq!((admitted.share, admitted.offers[0].vcpus), (Ppm::new(22_500), 2));
    // Then the quota is too small: 0.0225 × 100/200 × 0.2 of a core.
    let no = free.admit_run().expect_err("0.225 % is too little");
    assert!(matches!(no, AdmissionError::Quota { .. }), "{no}");
}

#[test]
fn a_vm_whose_tasks_find_no_memory_on_any_host_is_refused() {
    let mut setup = setup(3);
    for task in Arc::make_mut(&mut setup.bag.tasks) {
        task.memory = Bytes::new(600 << 20);
    }
    let (hosts, demand) = (
        vec![room(2_000); 9],
        RunDemand { vms: vec![2], kinds: ["fast".into()].into(), ..RunDemand::default() },
    );
    let request = AdmissionRequest { demand: &demand, ..request(&hosts, &setup, 0, 30.0) };
    let text = request.admit_run().expect_err("two of 600 MiB in 1 GiB").to_string();
    for words in ["type fast has 2 vCPUs, but no host holds more than 1", "add memory"] {
        assert!(text.contains(words), "no '{words}' in: {text}");
    }
    let larger = [WorkerOffer { memory: Bytes::new(1_200 << 20), ..room(2_000) }];
    assert_eq!(
        AdmissionRequest { hosts: &larger, ..request }.admit_run().expect("it fits").offers[0]
            .vcpus,
        2
    );
}

#[test]
fn vms_are_placed_one_by_one() {
    let (hosts, setup) = ([room(1_000), room(1_000)], setup(1));
    let fixed = |demand| AdmissionRequest {
        demand,
        share: Some(Ppm::new(187_500)),
        ..request(&hosts, &setup, 0, 30.0)
    };
    // Four vCPUs on each: two halves and two quarters fit, in this order.
    assert!(fixed(vms(&[2, 2, 2, 2])).admit_run().is_ok());
    assert!(fixed(vms(&[4, 2, 2])).admit_run().is_ok());
    let text =
        fixed(vms(&[2, 2, 4])).admit_run().expect_err("both hosts are half full").to_string();
    for words in
        ["3 VMs of 8 vCPUs together", "only 2 of them", "the next has 4 vCPUs", "hold 4, 4"]
    {
        assert!(text.contains(words), "no '{words}' in: {text}");
    }
    let free =
        AdmissionRequest { share: None, ..fixed(vms(&[2, 2, 4])) }.admit_run().expect("it fits");
    assert_eq!(free.share, Ppm::new(125_000), "six vCPUs on each");
}

proptest! {
    #[test]
    fn what_is_admitted_fits(cores in prop::collection::vec(100_u32..64_000, 1..5), demand in 1_u32..200) {
        let (hosts, setup): (Vec<_>, _) = (cores.into_iter().map(room).collect(), setup(1));
        let noop = AdmissionRequest { noop: true, ..request(&hosts, &setup, demand, 30.0) };
        if let Ok(admitted) = noop.admit_run() {
            prop_assert!(admitted.offers.iter().map(|o| o.vcpus).sum::<u32>() >= demand);
            for (host, offer) in hosts.iter().zip(&admitted.offers) {
                let used = u64::from(offer.vcpus) * u64::from(admitted.share.get());
                prop_assert!(used * 4 <= u64::from(host.millicores) * 3_000);
            }
        }
    }
}

#[test]
fn a_host_offers_no_more_than_it_may() {
    let (hosts, setup) = ([room(2_000)], setup(1));
    let said = ResourceVector { disk: Bytes::new(7), ..ResourceVector::new(3, Bytes::new(5)) };
    let demand = RunDemand::of_hosts(&[said], [].into());
    let request =
        AdmissionRequest { share: Some(Ppm::new(250_000)), ..request(&hosts, &setup, 3, 30.0) };
    let offered = |demand: &RunDemand| {
        AdmissionRequest { demand, ..request }.admit_run().expect("it fits").offers[0].vcpus
    };
    assert_eq!(
        (offered(&demand), offered(&RunDemand { hosts: Vec::new(), ..demand.clone() })),
        (3, 6)
    );
}

#[test]
fn the_memory_of_a_machine_for_parallel_jobs_is_on_one_host() {
    use dormouse_model::UsageInformation;
    let mib = |n: u64| Bytes::new(n << 20);
    let of_jobs =
        |each| Setup::of_jobs(4, UsageInformation::Exact, 1).with_memory_of_jobs(Some(each), 2);
    let hosts = [room(1_000), WorkerOffer { memory: mib(100), ..room(4_000) }];
    let kinds = [dormouse_model::MACHINE.into()].into();
    let demand = RunDemand { vms: vec![4], kinds, ..RunDemand::default() };
    let admit = |setup: &Setup, hosts: &[WorkerOffer]| {
        AdmissionRequest { demand: &demand, ..request(hosts, setup, 0, 30.0) }.admit_run()
    };
    // The small one has the memory: its vCPUs are what the machine's are made of.
    let fits = admit(&of_jobs(mib(200)), &hosts).expect("the first host has room");
    assert_eq!((fits.share, fits.offers[0].memory), (Ppm::new(187_500), mib(1_024)));
    assert_eq!(fits.offers[1].memory, mib(100));
    let large = admit(&of_jobs(mib(25)), &hosts).expect("the second has, too");
    assert_eq!(large.share, Ppm::new(750_000));
    let no = admit(&of_jobs(mib(257)), &hosts).expect_err("no host has it").to_string();
    assert!(no.contains("1 GiB of memory, but no host has more than 1 GiB"), "{no}");
    // Beside it a bag's tasks have the rest.
    let beside = setup(4).with_jobs(4, UsageInformation::Exact);
    let beside = beside.with_memory_of_jobs(Some(mib(250)), 2);
    let text = request(&hosts[..1], &beside, 12, 30.0).admit_run().expect_err("24 MiB are left");
    let text = text.to_string();
    assert!(text.contains("may need 38.15 MiB"), "{text}");
    assert!(text.contains("the hosts have 24 MiB"), "{text}");
    // Where nobody says, it is as before.
    let silent = Setup::of_jobs(4, UsageInformation::Exact, 1);
    let offers = admit(&silent, &hosts).expect("nothing is asked for").offers;
    assert!(offers.iter().all(|offer| offer.memory == Bytes::new(u64::MAX)), "{offers:?}");
}

/// The nominal memory of the bag's VMs exceeds that of every host. The memory that tasks really fill decides on which
/// host the machine for parallel jobs is placed, and what fits beside it.
#[test]
fn a_machine_beside_a_bag_goes_where_its_memory_is() {
    use dormouse_cloud::{Market, Provider};
    use dormouse_model::UsageInformation;
    use dormouse_units::{HostId, Time, VmId};
    let mib = |n: u64| Bytes::new(n << 20);
    let shared = |each| {
        let mut setup = setup(4).with_jobs(4, UsageInformation::Exact);
        for kind in setup.catalogue.types.values_mut() {
            kind.on_demand = kind.on_demand.or(Some(dormouse_units::Price::default()));
            kind.limits.on_demand = 9;
        }
        Arc::make_mut(&mut setup.bag.tasks).iter_mut().for_each(|task| task.memory = mib(50));
        setup.with_memory_of_jobs(Some(mib(each)), 2)
    };
    let kinds = ["fast".into(), dormouse_model::MACHINE.into()].into();
    let demand = RunDemand { vms: vec![2, 4, 2], kinds, ..RunDemand::default() };
    let hosts = [WorkerOffer { memory: mib(300), ..room(4_000) }, room(2_000)];
    let admit = |setup: &Setup, hosts: &[WorkerOffer]| {
        let share = Some(Ppm::new(250_000));
        AdmissionRequest { demand: &demand, share, ..request(hosts, setup, 0, 30.0) }.admit_run()
    };
    for (each, on) in [(50, 0), (200, 1)] {
        let setup = shared(each);
        let offers = admit(&setup, &hosts).expect("there is room").offers;
        let mut provider = Provider::new(setup.catalogue.clone(), &setup.terms)
            .with_filling(setup.memory_filled());
        for (host, offer) in (0..).map(HostId::new).zip(offers) {
            provider.host_joined(host, offer);
        }
        let mut launch = |vm, kind: &str| {
            let id = VmId::new(vm);
            let (kind, market) = (&kind.into(), Market::OnDemand);
            let asked = LaunchRequest { kind, market, bid: None, limited: true };
            provider.launch_vm(Time::ZERO, id, &asked).map(|it| it.host)
        };
        // The larger host by its processors is the smaller one by its memory.
        assert_eq!(launch(0, dormouse_model::MACHINE), Ok(HostId::new(on)), "{each}");
        assert_eq!(launch(1, "fast"), Ok(HostId::new(0)), "{each}");
    }
    let no =
        |each, hosts: &[WorkerOffer]| admit(&shared(each), hosts).expect_err("no room").to_string();
    let none = no(257, &hosts);
    assert!(none.contains("1 GiB of memory, but no host has more than 1 GiB"), "{none}");
    // Who has the memory has no processors.
    let small = [hosts[0].clone(), room(500)];
    let none = no(200, &small);
    assert!(none.contains("4 processors and 800 MiB of memory, but no host holds both"), "{none}");
    // Beside a VM of the bag there is too little for the machine, whatever all hosts have together.
    let tight = [
        WorkerOffer { memory: mib(850), ..room(4_000) },
        WorkerOffer { memory: mib(200), ..room(300) },
    ];
    let none = no(200, &tight);
    assert!(none.contains("only 1 of them find a host"), "{none}");
}

#[test]
fn processors_of_jobs_have_a_quota_that_can_be_kept_at_their_baseline() {
    use dormouse_model::UsageInformation;
    let credits = Credits::whole_credits(1);
    let admit = |baseline: u32, noop: bool| {
        let baseline = Ppm::new(baseline);
        let burstable = BurstableTerms {
            baseline,
            earned_per_hour: credits,
            initial: credits,
            cap: credits,
            surplus: None,
        };
        let setup = Setup::of_jobs(4, UsageInformation::Exact, 1);
        let setup = setup.with_credits_of_jobs(Some(burstable));
        let kinds = [dormouse_model::MACHINE.into()].into();
        let demand = RunDemand { vms: vec![4], kinds, ..RunDemand::default() };
        let hosts = [room(1_000)];
        let request =
            AdmissionRequest { demand: &demand, noop, ..request(&hosts, &setup, 0, 30.0) };
        request.admit_run().map_err(|no| no.to_string())
    };
    // 0.1875 of a core each.
    assert!(admit(20_000, false).is_ok());
    let no = admit(10_000, false).expect_err("less than a millisecond in 400");
    assert!(no.contains("a processor of the parallel jobs at its baseline"), "{no}");
    assert!(no.contains("0.1875 of a core × 0.01"), "{no}");
    assert!(admit(10_000, true).is_ok(), "nothing is computed");
}
