//! Tests of what the disk keeps of the store of a coordinator, living or dead.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use dormouse_coordinator::LogDisk as _;

use super::{MountedDisk, SimulatedDisk};
use crate::death::{Death, PowerLoss};
use crate::draw::Draw;
use crate::faults::CrashPoint;
use crate::oracle::Oracle;
use crate::stage::Stage;
use crate::trace::{Lines, Trace};
use crate::witness::Witness;

fn stage() -> Stage {
    let make = Arc::new(|| panic!("there is no log"));
    let oracle = Oracle::new(make, Witness::default(), Default::default());
    Stage::new(Trace::new(Lines::Digested, String::new()), oracle)
}

const fn death(point: CrashPoint) -> Death {
    Death { name: "kill", point, down: 1, power: None }
}

fn store(mounted: &MountedDisk, folder: &Path, name: &str, content: &[u8]) -> std::io::Result<()> {
    let part = folder.join(format!("{name}.0.part"));
    mounted.make_folder(folder)?;
    mounted.create_file(&part)?.write_all(content)?;
    mounted.rename_file(&part, &folder.join(name))
}

#[tokio::test(start_paused = true)]
async fn a_dead_coordinator_changes_nothing_of_the_store() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (stage, folder) = (stage(), dir.path().join("7"));
    let disk = SimulatedDisk::new(stage.clone());
    let first = disk.mounted(stage.coordinator_starts());
    store(&first, &folder, "1.1", b"first").expect("it lives");
    let mut late = first.create_file(&folder.join("2.1.1.part")).expect("it lives");
    stage.arm(death(CrashPoint::Now));
    late.write_all(b"late").expect_err("it is dead");
    first.rename_file(&folder.join("2.1.1.part"), &folder.join("2.1")).expect_err("it is dead");
    first.remove_file(&folder.join("1.1")).expect_err("it is dead");
    first.remove_folder(&folder).expect_err("it is dead");
    store(&first, &folder, "3.1", b"third").expect_err("it is dead");
    assert_eq!(fs::read(folder.join("1.1")).expect("it is there"), b"first");
    let second = disk.mounted(stage.coordinator_starts());
    store(&second, &folder, "2.2", b"second").expect("it lives");
}

#[tokio::test(start_paused = true)]
async fn a_coordinator_dies_in_the_middle_of_a_checkpoint_and_between_its_steps() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut left = BTreeSet::new();
    for (n, part) in [(0, 500_000), (0, 1_000_000), (1, 0), (1, 1_000_000)] {
        let (stage, folder) = (stage(), dir.path().join(format!("{n}-{part}")));
        let disk = SimulatedDisk::new(stage.clone());
        let mounted = disk.mounted(stage.coordinator_starts());
        stage.arm(death(CrashPoint::AtFile { more: n, part }));
        store(&mounted, &folder, "1.1", b"content").expect_err("it dies");
        let part = fs::read(folder.join("1.1.0.part")).ok();
        left.insert((part, folder.join("1.1").exists()));
    }
    let all = |name: &[u8]| Some(name.to_vec());
    let expected = [(all(b"con"), false), (all(b"content"), false), (None, true)];
    assert_eq!(left, BTreeSet::from(expected));
}

/// The contents that power cuts leave of two checkpoints: an old one that was removed again, and a new one.
fn after_power_cuts(tears: bool) -> BTreeSet<[Option<Vec<u8>>; 2]> {
    let mut chance = Draw::new(1, "test", 1);
    let loss = |tears_checkpoints| PowerLoss {
        kept: 0,
        garbage: 0,
        tears_checkpoints,
        tears_seal: false,
        tears_log: false,
    };
    let mut seen = BTreeSet::new();
    for _ in 0..200 {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (stage, folder) = (stage(), dir.path().join("7"));
        let disk = SimulatedDisk::new(stage.clone());
        let mounted = disk.mounted(stage.coordinator_starts());
        store(&mounted, &folder, "1.1", b"former").expect("it lives");
        disk.power_cut(&loss(false), &mut chance).expect("room");
        mounted.remove_file(&folder.join("1.1")).expect("it lives");
        store(&mounted, &folder, "2.1", b"new").expect("it lives");
        let damaged = disk.power_cut(&loss(tears), &mut chance).expect("room");
        let content = |name: &str| fs::read(folder.join(name)).ok();
        let is_whole = content("2.1").as_deref() == Some(b"new");
        assert_eq!(damaged.is_empty(), is_whole, "{damaged:?}");
        seen.insert(["1.1", "2.1"].map(content));
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn a_power_cut_undoes_what_was_done_to_the_store() {
    let whole = BTreeSet::from([[None, Some(b"new".to_vec())]]);
    assert_eq!(after_power_cuts(false), whole);
    let seen = after_power_cuts(true);
    assert!(seen.iter().any(|[former, _]| former.as_deref() == Some(b"former")), "it is back");
    assert!(seen.iter().any(|[_, new]| new.is_none()), "it is gone");
    let torn = |new: &Option<Vec<u8>>| new.as_deref().is_some_and(|new| new != b"new");
    assert!(seen.iter().any(|[_, new]| torn(new)), "it is torn");
}
