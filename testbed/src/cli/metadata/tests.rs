use clap::Parser as _;
use dormouse_cloud::{
    Interruption as CloudInterruption, InterruptionAction, RebalanceRule, Types, built_in,
};
use dormouse_units::Span;

use super::*;
use crate::cli::command::{Cli, Command};

/// 2026-06-09T10:13:20Z.
const NOW: UnixTime = UnixTime::from_micros(1_781_000_000_000_000);

fn args(words: &[&str]) -> MetadataArgs {
    let typed = ["dormouse", "metadata"].iter().chain(words);
    match Cli::try_parse_from(typed).expect("words").command {
        Command::Metadata(args) => *args,
        other => panic!("{other:?}"),
    }
}

fn acts(words: &[&str]) -> Vec<(u64, Option<VmAnnouncement>)> {
    let all = mocked(&args(words), NOW).into_iter();
    all.map(|Act { after, what, .. }| (after.as_secs(), what)).collect()
}

fn at(seconds: u64) -> UnixTime {
    later(NOW, Duration::from_secs(seconds))
}

#[test]
fn the_mock_s_words_say_what_is_announced_when() {
    let stop = VmAnnouncement::Interruption(InterruptionNotice {
        taking: TakingAction::Stop,
        at: at(125),
    });
    let spot = ["spot", "--action", "stop", "--mock-delay-sec", "5"];
    assert_eq!(acts(&spot), [(0, Some(VmAnnouncement::Rebalance(at(0)))), (5, Some(stop.clone()))]);
    // A time is rather than a delay, and the recommendation may come later than the notice.
    let times = ["-d", "90", "--mock-trigger-time", "2026-06-09T10:13:25Z"];
    let late = ["spot", "-a", "stop", "--rebalance-delay-sec", "7"];
    let expected = [(5, Some(stop)), (7, Some(VmAnnouncement::Rebalance(at(7))))];
    assert_eq!(acts(&[&times[..], &late].concat()), expected);
    let past = acts(&["events", "--mock-trigger-time", "2020-01-01T00:00:00Z"]);
    let [(0, Some(VmAnnouncement::Maintenance(event)))] = &past[..] else { panic!("{past:?}") };
    assert_eq!((event.code.as_str(), event.not_after), ("system-reboot", at(7 * 86_400)));
    assert_eq!(acts(&[]).len(), 3);
}

fn scenario(types: Types, targets: Vec<InterruptionTarget>) -> SpotScenario {
    let act =
        |target| CloudInterruption { at: Time::ZERO, target, action: InterruptionAction::Preempt };
    let acts = targets.into_iter().map(act).collect();
    SpotScenario {
        interruptions: vec![InterruptionModel::Schedule { acts }],
        types,
        notice: Span::from_secs(120),
        rebalancing: RebalanceRule::default(),
        metadata: MetadataSettings::default(),
        seed: 1,
        notes: Vec::new(),
    }
}

#[test]
fn the_vm_is_of_a_type_to_which_something_happens() {
    let found = |words: &[&str], scenario: &SpotScenario| {
        kind(&args(words), Some(scenario)).map(|kind| kind.to_string()).ok()
    };
    let all = |types: &Types| {
        scenario(
            types.clone(),
            vec![InterruptionTarget::All, InterruptionTarget::Type("c4.large".into())],
        )
    };
    let none = Types::default();
    assert_eq!(found(&[], &all(&none)).as_deref(), Some("c4.large"));
    assert_eq!(found(&["--type", "r5.large"], &all(&none)).as_deref(), Some("r5.large"));
    assert_eq!(
        found(&["--zone", "eu-west-1b"], &scenario(none, vec![InterruptionTarget::All])).as_deref(),
        Some("m5.large@eu-west-1b")
    );
    let types = built_in("ec2-2020").expect("a catalogue");
    assert_eq!(found(&[], &all(&types)).as_deref(), Some("c4.large"));
    assert_eq!(found(&["--type", "c3.large"], &all(&types)).as_deref(), Some("c3.large"));
    assert_eq!(found(&["--type", "x9.large"], &all(&types)), None);
}

#[test]
fn a_scenario_s_times_are_those_at_which_it_happens() {
    let speedup = Speedup::times_real(60);
    let clock = ScenarioClock { zero: NOW, speedup, times: MetadataTimes::Real };
    let heard = Some(Interrupted::Preempted { at: Time::from_secs(180) });
    let act = clock.act((Time::from_secs(60), heard));
    let taken = InterruptionNotice { taking: TakingAction::Terminate, at: at(3) };
    assert_eq!(
        (act.after, act.what),
        (Duration::from_secs(1), Some(VmAnnouncement::Interruption(taken)))
    );
    let clock = ScenarioClock { times: MetadataTimes::Emulated, ..clock };
    let act = clock.act((Time::from_secs(60), heard));
    let taken = InterruptionNotice { taking: TakingAction::Terminate, at: at(180) };
    assert_eq!(act.what, Some(VmAnnouncement::Interruption(taken)));
}
