//! The time and memory that a provider needs for the VMs that are requested from it: whole runs in virtual time,
//! without outputs.
//!
//! `cargo bench -p dormouse-tests --bench provider [-- HOSTS REQUESTS HOURS]`

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "a benchmark reads the clock and prints"
)]

#[path = "floor/requests.rs"]
mod requests;

use std::convert::Infallible;
use std::error::Error;
use std::time::Instant;

use dormouse_cloud::{
    Catalogue, InstanceType, Market, Placement, PlacementRule, ProviderTerms, ResourceVector,
    TariffName, VmLimits,
};
use dormouse_engine::Run;
use dormouse_engine::drive::{ModelledMachines, RequestEvents, beginning_events, play_run};
use dormouse_model::{Bag, CheckpointConfig, Effect, Setup, Step, TenantWork, VmEnd, VmRequest};
use dormouse_policies::requests::Customers;
use dormouse_samples::Samples;
use dormouse_units::{Bytes, Price, RandomStream, RequestId, Span, Time, TypeName};

/// Number of vCPUs of each host.
const VCPUS: u32 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<u64> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let (hosts, requests, hours) = match args[..] {
        [] => (100_000, 1_000_000, 6),
        [hosts, requests, hours] => (hosts, requests, hours),
        _ => return Err("give HOSTS REQUESTS HOURS, or nothing".into()),
    };
    // As many as fill the hosts with preemptible VMs and one half of them with others.
    let seconds = hours * 3_600;
    let vcpus_wanted = (hosts * u64::from(VCPUS)) as f64 * 1.5;
    let mean_size = 7.0 / 3.0;
    let mean_s = (vcpus_wanted / mean_size * seconds as f64 / requests as f64) as u64;
    let began = Instant::now();
    let room = ResourceVector {
        disk: Bytes::new(160 << 30),
        ..ResourceVector::new(VCPUS, Bytes::new(16_000_000_000))
    };
    let hosts = vec![room; usize::try_from(hosts).unwrap_or_default()];
    let mut run =
        Run::of_tenants(setup(), vec![(TenantWork::Requests, Box::new(Customers::new()))])
            .without_digest();
    let stream = (0..requests).map(|n| Ok::<_, Infallible>(request(n, requests, seconds, mean_s)));
    let outside = beginning_events(&hosts).into_iter().map(Ok);
    let outside = outside.chain(RequestEvents::from(stream, RequestId::new(0)));
    let (mut steps, mut granted, mut preempted) = (0_u64, 0_u64, 0_u64);
    let see = |step: &Step| {
        steps += 1;
        for effect in &step.effects {
            granted += u64::from(matches!(effect, Effect::VmLaunched { .. }));
            preempted += u64::from(matches!(effect, Effect::VmEnded { why: VmEnd::Preempted, .. }));
        }
        Ok(())
    };
    let limit = Time::from_micros(u64::MAX);
    let end = play_run(&mut run, &mut ModelledMachines::default(), outside, limit, see);
    let took = began.elapsed();
    let peak = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = peak.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned();
    println!(
        "{} hosts, {requests} requests in {hours} h of {mean_s} s each: {took:.2?}, {steps} steps, \
         {granted} granted, {preempted} preempted, {peak}, {}",
        hosts.len(),
        if end.is_ok() { "over" } else { "failed" },
    );
    if !args.is_empty() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let began = Instant::now();
    requests::provider(&folder.path().join("floor.csv"))?;
    let floor = began.elapsed().as_secs_f64();
    println!("counted vCPUs: {floor:.2} s");
    Samples { ours: vec![took.as_secs_f64()], peer: vec![floor] }.report_costs("provider-100k")?;
    Ok(())
}

fn request(n: u64, of: u64, seconds: u64, mean_s: u64) -> (Time, VmRequest) {
    let mut chance = RandomStream::new(1, "request", n);
    let at = Time::from_micros(n * (seconds * 1_000_000 / of));
    let kind = ["small", "medium", "large"][chance.draw_below(3)];
    let market = if chance.draw_below(2) == 0 { Market::Spot } else { Market::OnDemand };
    let duration = Span::from_micros(1 + (chance.draw_below(2_000_000) as u64) * mean_s);
    (at, VmRequest { kind: TypeName::from(kind), market, duration })
}

fn setup() -> Setup {
    let kind = |name: &str, vcpus: u32| InstanceType {
        name: name.into(),
        vcpus,
        memory: Bytes::new(2_000_000_000 * u64::from(vcpus)),
        disk: Bytes::new(20_000_000_000 * u64::from(vcpus)),
        mflops: 1,
        on_demand: Some(Price::from_nanos_per_hour(50_000_000 * u64::from(vcpus))),
        spot: Some(Price::from_nanos_per_hour(10_000_000 * u64::from(vcpus))),
        limits: VmLimits { spot: 0, on_demand: 0 },
        burstable: None,
    };
    let types = [kind("small", 1), kind("medium", 2), kind("large", 4)];
    Setup {
        seed: 1,
        catalogue: Catalogue {
            types: types.into_iter().map(|kind| (kind.name.clone(), kind)).collect(),
            boot: Span::from_secs(60),
            hibernation: Span::from_secs(60),
        },
        bag: Bag { tasks: [].into(), deadline: Span::ZERO },
        noise: None,
        jobs: None,
        requests: true,
        checkpoint: CheckpointConfig::NONE,
        interruptions: Vec::new(),
        preemption_notice: Span::from_secs(120),
        terms: ProviderTerms {
            placement: Placement::Rule(PlacementRule::default()),
            tariff: TariffName::Hour,
            ..ProviderTerms::default()
        },
    }
}
