//! What may be behind a difference: each changes one thing.

use dormouse_policies::BagSchedulerName;

use super::Target;

/// One change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factor {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) set: &'static [&'static str],
    applies: Applies,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Applies {
    Always,
    /// To what searches.
    Ils,
    /// To what plans with spot VMs.
    Spot,
    BurstHads,
    /// Where there are interruptions.
    Interrupted,
    /// To HADS where there are interruptions.
    HadsInterrupted,
}
use Applies::{Always, BurstHads, HadsInterrupted, Ils, Interrupted, Spot};

impl Factor {
    pub(crate) fn applies_to(&self, target: &Target) -> bool {
        match self.applies {
            Always => true,
            Ils => target.scheduler != BagSchedulerName::Hads,
            Spot => target.scheduler != BagSchedulerName::IlsOnDemand,
            BurstHads => target.scheduler == BagSchedulerName::BurstHads,
            Interrupted => {
                target.scenario.is_some() && target.scheduler != BagSchedulerName::IlsOnDemand
            }
            HadsInterrupted => {
                target.scenario.is_some() && target.scheduler == BagSchedulerName::Hads
            }
        }
    }

    pub(crate) fn settings(&self, target: &Target) -> Vec<String> {
        match self.set {
            [EMULATED_EVENTS] => target.events(EMULATED),
            [MARKET_EVENTS] => target.events(SPOT_TYPES),
            set => set.iter().map(|&text| text.to_owned()).collect(),
        }
    }

    /// Whether both can be changed at once.
    pub(crate) fn goes_with(&self, other: &Self) -> bool {
        let keys = |f: &Self| f.set.iter().map(|s| s.split('=').next().unwrap_or(s)).collect();
        let (mine, theirs): (Vec<_>, Vec<_>) = (keys(self), keys(other));
        let events =
            |keys: &[&str]| keys.iter().any(|k| [EMULATED_EVENTS, MARKET_EVENTS].contains(k));
        !(mine.iter().any(|key| theirs.contains(key)) || (events(&mine) && events(&theirs)))
    }
}

/// Stand for settings that depend on the scenario.
const EMULATED_EVENTS: &str = "emulated-events";
const MARKET_EVENTS: &str = "market-events";

/// How much rarer than λ the authors' emulator makes events: it draws with the probability of one
/// second, but once per pass of a loop that sleeps a second and then asks EC2 for the state of
/// each VM of the type. Two seconds a pass give as many hibernations as Table VI counts.
pub(crate) const EMULATED: f64 = 2.0;

/// The spot types of the catalogue: if k counted the events of the whole market.
pub(crate) const SPOT_TYPES: f64 = 3.0;

/// Charging from launch: not a setting but another sum over the same runs.
pub(crate) const BOOT_BILLED: Factor = factor(
    "boot-billed",
    "VMs are charged from their launch, boot included (the text: from the end of the boot)",
    &[],
    Always,
);

/// Burstable VMs for nothing: another sum over the same runs, so that every schedule stays as it is.
pub(crate) const BURSTABLES_UNPAID: Factor = factor(
    "burstables-unpaid",
    "the same runs, their burstable VMs left off the bill: what keeping them costs",
    &[],
    BurstHads,
);

/// Burst-HADS without burstable VMs.
pub(crate) const NO_BURSTABLES: Factor = factor(
    "no-burstables",
    "no burstable VMs (burst_rate 0)",
    &["scheduler.burst-rate=0"],
    BurstHads,
);

/// Credits are used where III-C says, not where Algorithm 4 does.
pub(crate) const BURST_ON_FREE_VCPUS: Factor = factor(
    "burst-on-free-vcpus",
    "migrations burst on burstable VMs with a vCPU free (III-C), not on idle ones only \
     (Algorithm 4)",
    &["scheduler.burst-on=free-vcpu"],
    BurstHads,
);

const fn factor(
    name: &'static str,
    about: &'static str,
    set: &'static [&'static str],
    applies: Applies,
) -> Factor {
    Factor { name, about, set, applies }
}

macro_rules! t3 {
    ($vcpus:literal, $memory:literal, $baseline:literal, $credits:literal) => {
        concat!(
            "cloud.type=[{ name = \"t3.large\", vcpus = ",
            $vcpus,
            ", memory = \"",
            $memory,
            "\", gflops = 38.0, on-demand = 0.0832, limits = { spot = 0, on-demand = 3 }, \
             burstable = { baseline = ",
            $baseline,
            ", credits-per-hour = ",
            $credits,
            " } }]"
        )
    };
}

/// The artifact's burstable type: three times as slow in baseline mode.
pub(crate) const ARTIFACT_T3: &str = t3!("4", "16 GiB", "0.333333", "96");

/// Events come half as often: fitted, not read anywhere.
pub(crate) const EVENTS_AS_EMULATED: Factor = factor(
    "events-as-emulated",
    "events half as often as λ says: fitted to the hibernations of Table VI, as an emulator would \
     have it that draws every two seconds with the probability of one",
    &[EMULATED_EVENTS],
    Interrupted,
);

/// Events come a third as often.
pub(crate) const EVENTS_OF_THE_MARKET: Factor = factor(
    "events-of-the-market",
    "k_h and k_r count the events of all spot types together, not of each",
    &[MARKET_EVENTS],
    Interrupted,
);

/// HADS does not wait for a resume.
pub(crate) const HADS_AT_ONCE: Factor = factor(
    "hads-at-once",
    "HADS migrates as soon as a VM hibernates (the authors' code), not as late as it can",
    &["scheduler.migrate=at-once"],
    HadsInterrupted,
);

/// All of them but the other sums over the same runs.
pub(crate) const FACTORS: [Factor; 25] = [
    factor(
        "no-boot",
        "booting takes no time (as in the stored plans)",
        &["cloud.boot=\"0s\""],
        Always,
    ),
    factor("no-checkpoints", "no checkpoints, so no overhead", &["checkpoint.overhead=0"], Always),
    factor(
        "five-of-each",
        "five VMs per type and market, as the text says (default: three)",
        &["cloud.limits={ spot = 5, on-demand = 5 }"],
        Always,
    ),
    factor(
        "table-ii",
        "Table II's prices, and five of each type",
        &["cloud.catalogue=ec2-2020-paper"],
        Always,
    ),
    factor(
        "table-ii-three",
        "Table II's prices, three of each type",
        &["cloud.catalogue=ec2-2020-paper", "cloud.limits={ spot = 3, on-demand = 3 }"],
        Always,
    ),
    factor(
        "alpha-0.3",
        "Eq. 1 normalised so that money weighs less (α = 0.3)",
        &["scheduler.alpha=0.3"],
        Ils,
    ),
    factor(
        "alpha-0.7",
        "Eq. 1 normalised so that money weighs more (α = 0.7)",
        &["scheduler.alpha=0.7"],
        Ils,
    ),
    factor(
        "alpha-0.9",
        "Eq. 1 normalised so that money weighs most (α = 0.9)",
        &["scheduler.alpha=0.9"],
        Ils,
    ),
    factor(
        "search-printed",
        "Algorithm 3 as printed: one destination, no move taken back",
        &["scheduler.local-search=printed"],
        Ils,
    ),
    factor(
        "relax-always",
        "the limit is relaxed in every iteration (artifact)",
        &["scheduler.relax=always"],
        Ils,
    ),
    factor(
        "spot-limit-longest",
        "D_spot after the longest tasks of a VM's share",
        &["scheduler.spot-limit=longest"],
        Spot,
    ),
    factor(
        "spot-limit-artifact",
        "D_spot after the shortest tasks on the cheapest type (artifact)",
        &["scheduler.spot-limit=artifact"],
        Spot,
    ),
    factor(
        "baseline-1/3",
        "baseline mode three times as slow, not five times (artifact)",
        &[t3!("2", "8 GiB", "0.333333", "36")],
        BurstHads,
    ),
    factor(
        "artifact-t3",
        "the burstable type of the artifact: 4 vCPUs, 96 credits/h, baseline 1/3",
        &[ARTIFACT_T3],
        BurstHads,
    ),
    NO_BURSTABLES,
    BURST_ON_FREE_VCPUS,
    factor(
        "steal-at-cycle-end",
        "idle VMs steal at the end of their allocation cycle only (III-D)",
        &["scheduler.steal=cycle-end"],
        BurstHads,
    ),
    factor(
        "cycle-60",
        "allocation cycles of 60 s: idle VMs go at once",
        &["scheduler.allocation-cycle=\"60s\""],
        BurstHads,
    ),
    factor(
        "cycle-2700",
        "allocation cycles of 2700 s: idle VMs stay",
        &["scheduler.allocation-cycle=\"2700s\""],
        BurstHads,
    ),
    factor(
        "scope-vm",
        "a hibernation hits one VM, not all of its type",
        &["interruption.0.scope=vm"],
        Interrupted,
    ),
    EVENTS_AS_EMULATED,
    EVENTS_OF_THE_MARKET,
    HADS_AT_ONCE,
    factor(
        "no-hibernation-latency",
        "a hibernated VM can resume at once",
        &["cloud.hibernation=\"0s\""],
        Interrupted,
    ),
    factor("margin-60", "60 s kept free before the deadline", &["scheduler.margin=\"60s\""], Spot),
];
