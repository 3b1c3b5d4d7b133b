//! Random tests of the attempts on a VM: any commands, with any outcomes.
#![allow(clippy::allow_attributes, clippy::panic, clippy::expect_used, reason = "tests panic")]

mod backend;

use std::time::Duration;

use backend::{Backend, How, VCPUS, key};
use dormouse_units::Tier;
use proptest::prelude::*;

use crate::life::{AttemptKind, AttemptStart, VmEvent};

#[derive(Clone, Debug)]
enum Op {
    Command(VmEvent),
    Destroy,
    /// The piece of work under way that the number picks advances in this way.
    Advance(usize, How),
    Exit(u32, bool),
    Hang(u32),
    GoOn(u32),
    Pass(u64),
}

fn event() -> impl Strategy<Value = VmEvent> {
    let task = 0..4_u32;
    let tier = prop_oneof![Just(Tier::Foreground), Just(Tier::Background)];
    let on = prop_oneof![Just(vec![0]), Just(vec![1]), Just(vec![0, 1]), Just(vec![1, 0])];
    let kind = prop_oneof![Just(AttemptKind::Task), Just(AttemptKind::Job)];
    let start = (task.clone(), kind, on, tier).prop_map(|(n, kind, on, tier)| {
        VmEvent::Start(AttemptStart { key: key(n), kind, on, tier })
    });
    prop_oneof![
        6 => start,
        3 => (task.clone(), any::<bool>()).prop_map(|(n, keep)| VmEvent::Stop { key: key(n), keep }),
        2 => (task.clone(), 0..VCPUS).prop_map(|(n, to)| VmEvent::Move { key: key(n), on: vec![to] }),
        1 => task.clone().prop_map(|n| VmEvent::Promote(key(n))),
        4 => task.prop_map(|n| VmEvent::CheckpointDue(key(n))),
        2 => Just(VmEvent::Freeze),
        2 => Just(VmEvent::Thaw),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let how = prop_oneof![6 => Just(How::Well), 1 => Just(How::Badly), 1 => Just(How::Worse)];
    prop_oneof![
        80 => event().prop_map(Op::Command),
        1 => Just(Op::Destroy),
        100 => (any::<usize>(), how).prop_map(|(which, how)| Op::Advance(which, how)),
        5 => (0..4_u32, any::<bool>()).prop_map(|(n, ok)| Op::Exit(n, ok)),
        2 => (0..4_u32).prop_map(Op::Hang),
        10 => (0..4_u32).prop_map(Op::GoOn),
        5 => (0..15_000_u64).prop_map(Op::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn whatever_comes_every_attempt_ends_once_and_nothing_is_left(
        checkpoints in prop::bool::weighted(0.9),
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let mut backend = Backend::new(checkpoints);
        for op in ops {
            match op {
                Op::Command(event) => backend.command(event),
                Op::Destroy => backend.destroy(),
                Op::Advance(which, how) => backend.advance(which, how),
                Op::Exit(n, ok) => backend.exit(key(n), ok),
                Op::Hang(n) => backend.hang(key(n)),
                Op::GoOn(n) => backend.go_on(key(n)),
                Op::Pass(ms) => backend.pass(Duration::from_millis(ms)),
            }
        }
        backend.come_to_rest();
    }
}
