//! Burstable VMs in unlimited mode: they never slow down, and credits spent beyond those earned are billed.

use dormouse_analysis::RunRecord;
use dormouse_experiment::Experiment;
use dormouse_model::Effect;
use dormouse_units::{Credits, Money, Time, VmId};

use super::runs::{sound, with};

/// Tasks of 2 h on a t3.large that boots at once.
fn experiment(cloud: &str, tasks: u32, rest: &str) -> Result<Experiment, String> {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        r#"name = "unlimited"
[cloud]
boot = "0s"
hibernation = "0s"
{cloud}
[workload]
kind = "bag"
deadline = "40h"
[[workload.task]]
count = {tasks}
runtime = "2h"
[checkpoint]
policy = "none"
[scheduler]
name = "fifo"
{rest}
"#
    );
    let file = folder.path().join("unlimited.toml");
    std::fs::write(&file, text).unwrap();
    with(file.to_str().unwrap(), &[]).map_err(|error| error.to_string())
}

const T3: &str = "fleet = [{ type = \"t3.large\", market = \"on-demand\" }]";

fn surcharge(record: &RunRecord) -> (Time, f64, f64) {
    let vm = &record.vms[&VmId::new(0)];
    let by_time = vm.charges().iter().map(|charge| charge.cost()).sum::<Money>();
    assert_eq!(record.cost(), by_time + vm.surcharge);
    (record.makespan().unwrap(), by_time.as_usd(), vm.surcharge.as_usd())
}

#[test]
fn surplus_credits_are_on_the_bill_and_nothing_is_slower() {
    let hours = |h: u64| Time::from_secs(3_600 * h);
    // A vCPU spends 60 credits an hour and 36 are earned: in 2 h 48, .8 vCPU-hours, $.04.
    let one = experiment("catalogue = \"ec2-2026\"\nonly = [\"t3.large\"]", 1, T3).unwrap();
    let (steps, record) = sound(&one);
    assert_eq!(surcharge(&record), (hours(2), 0.1664, 0.04));
    let charged = Effect::SurplusCharged {
        vm: VmId::new(0),
        credits: Credits::whole_credits(48),
        cost: Money::from_nanos(40_000_000),
    };
    assert!(steps.iter().flat_map(|step| &step.effects).any(|effect| *effect == charged));
    assert!(record.vms[&VmId::new(0)].credits.iter().all(|(_, balance)| *balance == Credits::ZERO));
    // Both vCPUs for 4 h: 84 credits an hour beyond what is earned, 5.6 vCPU-hours.
    let four = experiment("catalogue = \"ec2-2026\"\nonly = [\"t3.large\"]", 4, T3).unwrap();
    assert_eq!(surcharge(&sound(&four).1), (hours(4), 0.3328, 0.28));
    // In standard mode it begins without credits, at 30 % of its speed.
    let standard = "catalogue = \"ec2-2026\"\nonly = [\"t3.large\"]\nunlimited = false";
    let (makespan, _, surplus) = surcharge(&sound(&experiment(standard, 1, T3).unwrap()).1);
    assert!(makespan > hours(3) && surplus == 0.0, "{makespan} {surplus}");
}

#[test]
fn a_vm_that_hibernates_pays_its_surplus_then() {
    let cloud = "catalogue = \"ec2-2026\"\nonly = [\"t3.large\"]";
    let rest = "fleet = [{ type = \"t3.large\", market = \"spot\" }]\n\
                [[interruption]]\nmodel = \"schedule\"\n\
                acts = [{ at = \"1h\", action = \"hibernate\", all = true }]";
    let (steps, record) = sound(&experiment(cloud, 1, rest).unwrap());
    let charged: Vec<_> = steps
        .iter()
        .flat_map(|step| step.effects.iter().map(|effect| (step.at, effect)))
        .filter_map(|(at, effect)| match effect {
            Effect::SurplusCharged { vm, credits, .. } => Some((at, vm.get(), *credits)),
            _ => None,
        })
        .collect();
    // 24 credits in the hour; the VM that takes its place begins anew, for 2 h.
    let second = record.vms[&VmId::new(1)].ended.unwrap().0;
    let hour = Time::from_secs(3_600);
    assert_eq!(charged[0], (hour, 0, Credits::whole_credits(24)));
    assert_eq!(charged.last().copied(), Some((second, 1, Credits::whole_credits(48))));
}

#[test]
fn the_prices_of_surplus_and_the_modes_can_be_said() {
    let own = "[[cloud.type]]\nname = \"t3.large\"\nvcpus = 2\nmemory = \"8 GiB\"\non-demand = 0.1\n\
               burstable = { baseline = 0.3, credits-per-hour = 36";
    for (cloud, rest, dollars) in [
        (format!("{own}, surplus-price = 0.1 }}"), T3, 0.08),
        (format!("unlimited = true\n{own} }}"), T3, 0.04),
        (format!("unlimited = false\n{own}, surplus-price = 0.1 }}"), T3, 0.0),
    ] {
        let (_, _, surplus) = surcharge(&sound(&experiment(&cloud, 1, rest).unwrap()).1);
        assert_eq!(surplus, dollars, "{cloud}");
    }
}

#[test]
fn a_catalogue_may_be_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let of = |text: &str, name: &str, more: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        let file = folder.path().join(name);
        experiment(&format!("catalogue = \"{}\"\n{more}", file.display()), 1, T3)
    };
    let rows = "name,vcpus,memory_gib,on_demand,spot\nt3.large,2,8,0.08,0.02\nm9.huge,64,512,9,3\n";
    let types = &of(rows, "types.csv", "").unwrap().setup.catalogue.types;
    assert_eq!(types.len(), 2);
    let described = r#"{"InstanceTypes": [{"InstanceType": "t3.large", "VCpuInfo": {"DefaultVCpus": 2},
        "MemoryInfo": {"SizeInMiB": 8192}, "SupportedUsageClasses": ["on-demand", "spot"]}]}"#;
    std::fs::write(
        folder.path().join("advisor.json"),
        r#"{"spot_advisor": {"eu-west-1": {"Linux": {"t3.large": {"s": 50, "r": 2}}}}}"#,
    )
    .unwrap();
    let advisor = folder.path().join("advisor.json");
    let more = format!("advisor = \"{}\"\nregion = \"eu-west-1\"", advisor.display());
    let types = of(described, "answer", &more).unwrap().setup.catalogue.types;
    assert_eq!(types["t3.large"].spot, "0.0416".parse().ok());
    for (text, more, part) in [
        (rows, "only = [\"t3.larg\"]", "the catalogue has no type 't3.larg'"),
        ("name,vcpus\na,2\n", "", "there is no column 'memory'"),
        (rows, "advisor = \"nowhere.json\"", "nowhere.json"),
    ] {
        let error = of(text, "types.csv", more).unwrap_err();
        assert!(error.contains(part), "{part}: {error}");
    }
}
