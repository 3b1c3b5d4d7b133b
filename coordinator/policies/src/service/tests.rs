use dormouse_cloud::{Bathtub, Lifetimes};
use dormouse_model::{Decision, Notice, StartReason};
use dormouse_units::{Ppm, Price, Span, TaskId, Time, VmId};

use super::scheduler::BatchServicePolicy;
use super::{ReusePolicy, ServiceConfig};
use crate::{BagSchedulerConfig, GivenUp, Policy};

const HOUR: u64 = 3_600;

fn bathtub() -> Lifetimes {
    let s = Span::from_secs;
    Lifetimes::Bathtub(Bathtub {
        a: Ppm::new(413_700),
        b: s(24 * HOUR),
        tau1: s(3_240),
        tau2: s(2_736),
    })
}

/// Configuration with jobs of six hours on one VM each.
fn config() -> ServiceConfig {
    let first_estimate = Some(Span::from_secs(6 * HOUR));
    ServiceConfig {
        vms: 4,
        first_estimate,
        spare: Span::from_secs(24 * HOUR),
        ..Default::default()
    }
}

struct Bench(BatchServicePolicy);

impl Bench {
    fn new(tasks: u32, config: ServiceConfig) -> Self {
        Self::submitted(&vec![0; tasks as usize], config)
    }

    /// Test bench of the service whose tasks are submitted at the times `at`, in seconds.
    fn submitted(at: &[u64], config: ServiceConfig) -> Self {
        let kind = ("x".into(), Some(bathtub()));
        let at: Vec<Time> = at.iter().copied().map(Time::from_secs).collect();
        Self(BatchServicePolicy::new(&BagSchedulerConfig::default(), config, &at, kind))
    }

    /// Passes a notice to the service at `secs` seconds and returns its decisions, without wake-ups.
    fn hears(&mut self, secs: u64, notice: Notice) -> Vec<Decision> {
        let mut out = Vec::new();
        self.0.handle(Time::from_secs(secs), &[notice], &mut out);
        out.retain(|decision| !matches!(decision, Decision::Wake { .. }));
        out
    }

    fn ready(&mut self, secs: u64, vm: u32) -> Vec<Decision> {
        self.hears(secs, Notice::VmReady { vm: VmId::new(vm) })
    }

    fn lost(&mut self, secs: u64, vm: u32) -> Vec<Decision> {
        self.hears(secs, Notice::VmLost { vm: VmId::new(vm) })
    }

    fn finished(&mut self, secs: u64, task: u32, vm: u32) -> Vec<Decision> {
        self.hears(secs, Notice::TaskFinished { task: TaskId::new(task), vm: VmId::new(vm) })
    }
}

/// Decisions as text in short: launches (+vm), terminations (-vm), starts (task@vm) and stops.
fn short(decisions: &[Decision]) -> String {
    let one = |decision: &Decision| match decision {
        Decision::Launch { vm, .. } => format!("+{}", vm.get()),
        Decision::Terminate { vm, .. } => format!("-{}", vm.get()),
        Decision::Start { task, on, .. } => format!("{}@{}", task.get(), on.vm.get()),
        Decision::Stop { task, vm, .. } => format!("!{}@{}", task.get(), vm.get()),
        other => format!("{other:?}"),
    };
    decisions.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_job_starts_once_all_its_vms_are_ready_and_again_if_one_is_lost() {
    let mut bench = Bench::new(4, ServiceConfig { vms_per_job: 2, ..config() });
    assert_eq!(short(&bench.hears(0, Notice::Begin)), "+0 +1 +2 +3");
    assert_eq!(short(&bench.ready(60, 1)), "");
    assert_eq!(short(&bench.ready(61, 0)), "0@0 1@1");
    assert_eq!(short(&bench.ready(62, 2)), "");
    assert_eq!(short(&bench.ready(62, 3)), "2@2 3@3");
    // The other task is stopped, its VM is young and still as good as a new one.
    assert_eq!(short(&bench.lost(100, 1)), "!0@0 +4");
    assert_eq!(short(&bench.ready(160, 4)), "0@0 1@4");
    // One part ends: the job's VMs are kept for the other.
    assert_eq!(short(&bench.finished(400, 2, 2)), "");
    assert_eq!(short(&bench.lost(410, 2)), "");
    assert_eq!(short(&bench.finished(420, 3, 3)), "");
    assert_eq!(short(&bench.finished(500, 0, 0)), "");
    assert_eq!(short(&bench.finished(500, 1, 4)), "-0 -3 -4");
}

#[test]
fn parts_that_have_ended_are_not_run_again() {
    let mut bench = Bench::new(2, ServiceConfig { vms_per_job: 2, vms: 2, ..config() });
    bench.hears(0, Notice::Begin);
    bench.ready(60, 0);
    bench.ready(60, 1);
    bench.finished(1_000, 0, 0);
    assert_eq!(short(&bench.lost(1_100, 1)), "1@0");
    assert_eq!(short(&bench.finished(9_000, 1, 0)), "-0");
}

#[test]
fn old_vms_are_given_back_and_those_in_the_middle_of_their_lives_reused() {
    let one = |reuse| Bench::new(3, ServiceConfig { vms: 1, reuse, ..config() });
    let mut by_age = one(ReusePolicy::default());
    by_age.hears(0, Notice::Begin);
    by_age.ready(0, 0);
    let second = by_age.finished(6 * HOUR, 0, 0);
    assert_eq!(short(&second), "1@0");
    let expected = Some(Span::from_secs(6 * HOUR));
    let reason = StartReason::Reused { job: 1, age: Span::from_secs(6 * HOUR), expected };
    assert!(matches!(second[..], [Decision::Start { reason: said, .. }] if said == reason));
    // At 20 h a job that takes six hours is better off on a new VM.
    let third = by_age.finished(20 * HOUR, 1, 0);
    assert_eq!(short(&third), "-0 +1");
    let start = by_age.ready(20 * HOUR, 1);
    assert!(
        matches!(
            start[..],
            [Decision::Start {
                reason: StartReason::NewVm { job: 2, declined: 1, expected: Some(_) },
                ..
            }]
        ),
        "{start:?}"
    );
    for (reuse, then) in [(ReusePolicy::Always, "1@0"), (ReusePolicy::Never, "-0 +1")] {
        for at in [HOUR, 20 * HOUR] {
            let mut bench = one(reuse);
            bench.hears(0, Notice::Begin);
            bench.ready(0, 0);
            assert_eq!(short(&bench.finished(at, 0, 0)), then, "{reuse:?} {at}");
        }
    }
}

#[test]
fn the_length_of_jobs_is_learned_from_those_that_ended() {
    let first_estimate = None;
    let mut bench = Bench::new(4, ServiceConfig { vms: 1, first_estimate, ..config() });
    bench.hears(0, Notice::Begin);
    bench.ready(0, 0);
    // Jobs turn out to take six hours: too long for a VM of 19 h.
    bench.finished(6 * HOUR, 0, 0);
    bench.finished(12 * HOUR, 1, 0);
    assert_eq!(short(&bench.finished(19 * HOUR, 2, 0)), "-0 +1");
}

#[test]
fn spares_are_kept_for_their_time() {
    let spare = Span::from_secs(HOUR);
    let mut bench = Bench::new(2, ServiceConfig { vms: 2, spare, ..config() });
    bench.hears(0, Notice::Begin);
    bench.ready(0, 0);
    bench.ready(0, 1);
    bench.finished(HOUR, 0, 0);
    assert_eq!(short(&bench.hears(2 * HOUR, Notice::Wake { token: 0 })), "-0");
    assert_eq!(short(&bench.lost(3 * HOUR, 1)), "+2");
    assert_eq!(short(&bench.ready(3 * HOUR, 2)), "1@2");
    // A wake-up for a VM that is at work means nothing.
    assert_eq!(short(&bench.hears(4 * HOUR, Notice::Wake { token: 2 })), "");
}

#[test]
fn what_is_about_to_leave_gets_no_work() {
    let mut bench = Bench::new(2, ServiceConfig { vms: 1, ..config() });
    bench.hears(0, Notice::Begin);
    bench.ready(0, 0);
    let vm = VmId::new(0);
    // The job runs on: it may be done in time.
    let at = Time::from_secs(130);
    assert_eq!(short(&bench.hears(100, Notice::VmPreempting { vm, at })), "");
    assert_eq!(short(&bench.finished(120, 0, 0)), "-0 +1");
    bench.ready(180, 1);
    let vm = VmId::new(1);
    assert_eq!(short(&bench.hears(200, Notice::VmHibernating { vm })), "");
    assert_eq!(short(&bench.hears(201, Notice::VmHibernated { vm })), "!1@1 -1 +2");
}

#[test]
fn a_job_that_always_loses_its_vm_is_given_up() {
    let mut bench = Bench::new(1, ServiceConfig { max_preemptions: 3, ..config() });
    bench.hears(0, Notice::Begin);
    for n in 0..2 {
        assert_eq!(short(&bench.ready(60, n)), format!("0@{n}"));
        assert_eq!(short(&bench.lost(70, n)), format!("+{}", n + 1));
    }
    bench.ready(80, 2);
    assert_eq!(short(&bench.lost(90, 2)), "");
}

#[test]
fn refused_launches_are_tried_again_and_then_no_more() {
    let mut bench = Bench::new(2, ServiceConfig { vms_per_job: 2, ..config() });
    bench.hears(0, Notice::Begin);
    let refused =
        |vm| Notice::LaunchRefused { vm: VmId::new(vm), why: String::new(), unavailable: false };
    assert_eq!(short(&bench.hears(0, refused(1))), "");
    // The VM that the job got waits for the other one.
    assert_eq!(short(&bench.ready(60, 0)), "");
    let retry = Notice::Wake { token: super::scheduler::RETRY };
    assert_eq!(short(&bench.hears(120, retry)), "+2");
    assert_eq!(short(&bench.ready(180, 2)), "0@0 1@2");
}

/// Launches that were given up are tried again once a job has begun on a VM that was granted since.
#[test]
fn a_job_that_begins_has_launches_tried_again() {
    let general = BagSchedulerConfig { max_retries: 0, ..BagSchedulerConfig::default() };
    let (config, kind) = (ServiceConfig { vms: 2, ..config() }, ("x".into(), Some(bathtub())));
    let mut bench = Bench(BatchServicePolicy::new(&general, config, &[Time::ZERO; 2], kind));
    assert_eq!(short(&bench.hears(0, Notice::Begin)), "+0 +1");
    let refused =
        |vm| Notice::LaunchRefused { vm: VmId::new(vm), why: String::new(), unavailable: false };
    assert_eq!(short(&bench.hears(0, refused(1))), "");
    assert_eq!(bench.0.given_up(), Some(GivenUp::Launches));
    assert_eq!(short(&bench.ready(60, 0)), "0@0 +2");
    assert_eq!(bench.0.given_up(), None);
    // A job that has begun, and whose VM is lost, changes nothing.
    assert_eq!(short(&bench.hears(60, refused(2))), "");
    bench.lost(70, 0);
    assert_eq!(bench.0.given_up(), Some(GivenUp::Launches));
}

/// Launches for a new bag are tried even if those for the bag before were refused so often that they were
/// given up, and even if an old wake-up is still pending; so they are after a change of price.
#[test]
fn a_new_bag_and_a_new_price_have_launches_tried_again() {
    let general = BagSchedulerConfig { max_retries: 1, ..BagSchedulerConfig::default() };
    let (config, kind) = (ServiceConfig { vms: 1, ..config() }, ("x".into(), Some(bathtub())));
    let at = [0, HOUR].map(Time::from_secs);
    let mut bench = Bench(BatchServicePolicy::new(&general, config, &at, kind));
    let refused =
        |vm| Notice::LaunchRefused { vm: VmId::new(vm), why: String::new(), unavailable: false };
    let wake = |token| Notice::Wake { token };
    let retry = || wake(super::scheduler::RETRY);
    assert_eq!(short(&bench.hears(0, Notice::Begin)), "+0");
    assert_eq!(short(&bench.hears(0, refused(0))), "");
    let first = general.retry_after.as_micros() / 1_000_000;
    // A wake-up before the one that was asked for changes nothing.
    assert_eq!(short(&bench.hears(first - 1, retry())), "");
    assert_eq!(short(&bench.hears(first, retry())), "+1");
    assert_eq!(short(&bench.hears(first, refused(1))), "");
    assert_eq!(bench.0.given_up(), Some(GivenUp::Launches));
    let price = Notice::Price { kind: "x".into(), price: Price::default() };
    assert_eq!(short(&bench.hears(600, price)), "+2");
    assert_eq!(short(&bench.hears(600, refused(2))), "");
    assert_eq!(short(&bench.hears(HOUR, wake(super::scheduler::NEXT_BAG))), "+3");
    assert_eq!(bench.0.given_up(), None);
}

/// The spare VMs of one bag run the jobs of the next bag, unless no spares are kept.
#[test]
fn spares_serve_the_next_bag() {
    for (spare, idle, next) in [(600, "", "1@0"), (0, "-0", "+1")] {
        let config = ServiceConfig { spare: Span::from_secs(spare), ..config() };
        let mut bench = Bench::submitted(&[0, 2 * HOUR], config);
        let mut out = Vec::new();
        bench.0.handle(Time::ZERO, &[Notice::Begin], &mut out);
        let wakes =
            |d: &Decision| matches!(d, Decision::Wake { at, .. } if at.as_secs_f64() == 7_200.0);
        let Some(Decision::Wake { token, .. }) = out.iter().find(|d| wakes(d)) else {
            panic!("nobody asks for the next bag: {out:?}")
        };
        let comes = Notice::Wake { token: *token };
        assert_eq!(short(&bench.ready(60, 0)), "0@0");
        // The first bag's VMs are kept, or not, though no job is left.
        assert_eq!(short(&bench.finished(2 * HOUR - 300, 0, 0)), idle);
        assert_eq!(short(&bench.hears(2 * HOUR, comes)), next);
    }
    // Spares are given back after their time all the same.
    let mut bench =
        Bench::submitted(&[0, 2 * HOUR], ServiceConfig { spare: Span::from_secs(600), ..config() });
    bench.hears(0, Notice::Begin);
    bench.ready(60, 0);
    bench.finished(HOUR, 0, 0);
    assert_eq!(short(&bench.hears(HOUR + 600, Notice::Wake { token: 0 })), "-0");
}
