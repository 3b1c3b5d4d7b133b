//! Events of one instant have the same order in live and in virtual runs: requests and wake-ups, requests that came due
//! while the coordinator was away, and a clock that is stopped until the machine for parallel jobs is ready.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use crate::common::*;
use dormouse_cloud::Market;
use dormouse_coordinator::admission::RunDemand;
use dormouse_coordinator::{LiveRunPlan, replay_log};
use dormouse_engine::Run;
use dormouse_engine::drive::{
    BOUNDLESS, ModelledMachines, RequestEvents, TwoTierLaw, beginning_events, play_run,
};
use dormouse_model::{
    Decision, Effect, Event, Notice, Setup, StartReason, Step, Submission, TenantWork,
    UsageInformation, VmRequest,
};
use dormouse_policies::Policy;
use dormouse_policies::batch::{Algorithm, BatchScheduler, Config};
use dormouse_policies::requests::Customers;
use dormouse_units::{
    Bytes, Mode, Ppm, RequestId, Seats, Span, Speedup, TaskId, Time, Usage, VmId,
};
use dormouse_vm::ProcessorSharing;
use tokio::sync::mpsc;

/// Law of shared processors; no run here shares a processor.
const LAW: TwoTierLaw =
    TwoTierLaw { sharing: ProcessorSharing::PERFECT, migration_cost: Span::ZERO, seed: 1 };
/// Time limit of the virtual runs, longer than any of them.
const LIMIT: Time = Time::from_secs(1_000_000);

/// Test policy that wakes up at these seconds, and starts its only task at the last of them.
#[derive(Debug)]
struct Waker(&'static [u64]);

impl Policy for Waker {
    fn handle(&mut self, _: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        let (vm, last) = (VmId::new(0), self.0.last().copied().unwrap_or_default());
        for notice in heard {
            match notice {
                Notice::Begin => {
                    let (kind, market) = (KIND.into(), Market::OnDemand);
                    out.push(Decision::Launch { vm, kind, market, bid: None });
                    let wake = |s: &u64| Decision::Wake { at: Time::from_secs(*s), token: *s };
                    out.extend(self.0.iter().map(wake));
                }
                Notice::Wake { token } if *token == last => {
                    let (task, on) = (TaskId::new(0), Seats::first_free(vm));
                    let (mode, reason) = (Mode::Burst, StartReason::Planned);
                    out.push(Decision::Start { task, on, mode, reason });
                }
                _ => {}
            }
        }
    }
}

/// Makes requests for VMs at these seconds, each for 7 s.
fn requests(at: &[u64]) -> Vec<(Time, VmRequest)> {
    let (kind, market) = (KIND.into(), Market::OnDemand);
    let asks = VmRequest { kind, market, duration: Span::from_secs(7) };
    at.iter().map(|s| (Time::from_secs(*s), asks.clone())).collect()
}

fn shared() -> Setup {
    Setup { requests: true, ..setup(1, 1) }
}

fn tenants(wakes: &'static [u64]) -> Vec<(TenantWork, Box<dyn Policy>)> {
    vec![
        (TenantWork::Bag, Box::new(Waker(wakes))),
        (TenantWork::Requests, Box::new(Customers::new())),
    ]
}

/// Makes a live run of a bag and of customers; its durable steps come from the returned receiver.
fn with_customers(
    wakes: &'static [u64],
    at: &[u64],
    out: &Path,
) -> (LiveRunPlan, mpsc::UnboundedReceiver<Step>) {
    let (steps, seen) = mpsc::unbounded_channel();
    let bag = live(1, 1, out);
    let demand = RunDemand { vms: vec![1; 6], ..bag.demand.clone() };
    let (setup, policies, requests) = (shared(), tenants(wakes), requests(at));
    let mut live = LiveRunPlan { setup, policies, requests, demand, ..bag };
    live.observer.steps = Some(steps);
    (live, seen)
}

fn steps_of(log: &Path) -> Vec<Step> {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the requests of a run and the bag's wake-ups, in the order of the steps.
fn comes(steps: &[Step], wakes: &[u64]) -> Vec<(Time, &'static str)> {
    let in_step = |step: &Step| {
        let requested = matches!(step.event, Event::Requested { .. }).then_some("request");
        // Two tenants: the bag's numbers are twice its own.
        let is_bags = |notice: &&Notice| matches!(notice, Notice::Wake { token } if token % 2 == 0 && wakes.contains(&(token / 2)));
        let woken = step.notices.iter().filter(is_bags).map(|_| "wake");
        let at = step.at;
        requested.into_iter().chain(woken).map(move |what| (at, what)).collect::<Vec<_>>()
    };
    steps.iter().flat_map(in_step).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_due_with_a_timer_are_heard_before_it_as_in_virtual_time() {
    const WAKES: &[u64] = &[10, 20, 30, 40];
    const REQUESTS: &[u64] = &[10, 15, 20, 20, 40];
    let dir = tempfile::tempdir().unwrap();
    let (live, _steps) = with_customers(WAKES, REQUESTS, dir.path());
    let (under, mut worker, _) = joined("w", live).await;
    worker.obey_to_the_end().await;
    let done = under.outcome().await.unwrap();
    let heard = comes(&steps_of(&done.log), WAKES);

    let mut run = Run::of_tenants(shared(), tenants(WAKES));
    let mut world = ModelledMachines::new(LAW);
    let requested =
        requests(REQUESTS).into_iter().map(|(at, asks)| Ok::<_, Infallible>((at, asks)));
    let requested = RequestEvents::from(requested, RequestId::new(0));
    let outside = beginning_events(&[BOUNDLESS]).into_iter().map(Ok).chain(requested);
    let mut steps = Vec::new();
    let see = |step: &Step| {
        steps.push(step.clone());
        Ok(())
    };
    play_run(&mut run, &mut world, outside, LIMIT, see).unwrap();
    assert_eq!(heard, comes(&steps, WAKES));
    let at = |s: u64, what| (Time::from_secs(s), what);
    assert_eq!(heard[..2], [at(10, "request"), at(10, "wake")], "{heard:?}");
    assert_eq!(heard.len(), WAKES.len() + REQUESTS.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_came_due_without_a_coordinator_are_heard_as_it_goes_on_in_their_order() {
    const WAKES: &[u64] = &[90];
    const REQUESTS: &[u64] = &[3, 12, 13, 13, 80];
    /// Real time for which the coordinator is away: 21 s of the run at speed-up 30.
    const OUTAGE: Duration = Duration::from_millis(700);
    let dir = tempfile::tempdir().unwrap();
    let (live, mut steps) = with_customers(WAKES, REQUESTS, dir.path());
    let (runtime, coordinator) = start_apart(live).await;
    let address = coordinator.at.address;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.join().await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let is_first = |step: &Step| matches!(step.event, Event::Requested { .. });
    while !is_first(&within("the first request", steps.recv()).await.unwrap()) {}
    kill(runtime).await;
    worker.disconnect();
    // This is the outage itself: nothing is waited for.
    tokio::time::sleep(OUTAGE).await;
    let (mut again, _steps) = with_customers(WAKES, REQUESTS, dir.path());
    (again.listen, again.resume) = (address, true);
    let coordinator = Under::start(again).await;
    worker.connect().await.unwrap();
    worker.welcome().await;
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    let steps = steps_of(&done.log);
    let resumed = steps.iter().position(|step| matches!(step.event, Event::Resumed { .. }));
    let (before, after) = steps.split_at(resumed.unwrap());
    let (goes_on, s) = (after[0].at, Time::from_secs);
    assert!(goes_on > s(20), "the VM went on, and the clock with it: {goes_on}");
    let requests = |steps: &[Step]| -> Vec<Time> {
        comes(steps, WAKES)
            .into_iter()
            .filter(|(_, what)| *what == "request")
            .map(|it| it.0)
            .collect()
    };
    assert_eq!(requests(before), [s(3)]);
    assert_eq!(requests(after), [goes_on, goes_on, goes_on, s(80)]);
    // Each once, in the order of the experiment.
    let ids = steps.iter().filter_map(|step| match step.event {
        Event::Requested { request, .. } => Some(request.get()),
        _ => None,
    });
    assert!(ids.eq(0..5));
    let again = |_: &_| Ok(Run::of_tenants(shared(), tenants(WAKES)));
    assert_eq!(replay_log(&done.log, again).unwrap().difference, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_stands_until_the_machine_of_parallel_jobs_is_there_as_in_virtual_time() {
    /// Real time that the worker takes to create the machine; at speed-up 1,000 the first jobs would be due meanwhile.
    const BIRTH: Duration = Duration::from_millis(100);
    const MACHINE: u32 = 4;
    let setup = || Setup::of_jobs(MACHINE, UsageInformation::Exact, 1);
    let kind = setup().jobs.unwrap().machine;
    let policy = || -> Box<dyn Policy> {
        Box::new(BatchScheduler::new(Config::new(Algorithm::Easy, MACHINE), kind.clone()))
    };
    let job = |number: u64| Submission {
        number,
        submitted: Time::from_secs(10 * number),
        processes: 1,
        runtime: Span::from_secs(50),
        estimate: Span::from_secs(60),
        usage: Usage::Uniform(Ppm::ONE),
        memory: Bytes::ZERO,
        priority: 0,
        after: None,
        is_cut: false,
        fails: false,
    };
    let dir = tempfile::tempdir().unwrap();
    let live = LiveRunPlan {
        setup: setup(),
        policies: vec![(TenantWork::All, policy())],
        submissions: (1..=3).map(job).collect(),
        demand: RunDemand {
            vms: vec![MACHINE],
            kinds: [kind.clone()].into(),
            ..RunDemand::default()
        },
        programs: Vec::new(),
        noop: false,
        speedup: Speedup::from_f64(1_000.0).unwrap(),
        ..live(0, 1, dir.path())
    };
    let (under, mut worker, _) = joined("w", live).await;
    let vm = created(&worker.commands().await);
    // The worker is this slow; nothing is waited for.
    tokio::time::sleep(BIRTH).await;
    worker.report(vm_created(vm)).await;
    worker.obey_to_the_end().await;
    let done = under.outcome().await.unwrap();

    let begins = |steps: &[Step]| -> Vec<(Time, &'static str)> {
        let in_step = |step: &Step| {
            let event = match &step.event {
                Event::Begin => Some("begins"),
                Event::Submitted { .. } => Some("job"),
                _ => None,
            };
            let is_ready = |effect: &Effect| matches!(effect, Effect::VmReady { .. });
            let ready = step.effects.iter().any(is_ready).then_some("ready");
            let at = step.at;
            event.into_iter().chain(ready).map(move |what| (at, what)).collect::<Vec<_>>()
        };
        steps.iter().flat_map(in_step).collect()
    };
    let mut run = Run::new(setup(), policy());
    let mut world = ModelledMachines::new(LAW);
    let submitted = (1..=3).map(job).map(|job| {
        let (task, at) = (TaskId::new(u32::try_from(job.number).unwrap() - 1), job.submitted);
        (at, Event::Submitted { task, key: None, job: job.into() })
    });
    let outside = beginning_events(&[BOUNDLESS]).into_iter().chain(submitted);
    let outside = outside.chain([(Time::from_secs(30), Event::AllSubmitted)]);
    let mut steps = Vec::new();
    let see = |step: &Step| {
        steps.push(step.clone());
        Ok(())
    };
    play_run(&mut run, &mut world, outside.map(Ok::<_, Infallible>), LIMIT, see).unwrap();
    assert_eq!(begins(&steps_of(&done.log)), begins(&steps));
    assert_eq!(begins(&steps)[..2], [(Time::ZERO, "begins"), (Time::ZERO, "ready")]);
}
