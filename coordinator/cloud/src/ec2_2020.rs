//! Built-in catalogues, and the EC2 types of 2020.

use dormouse_units::{Bytes, Credits, Ppm, Price};

use crate::ec2_2026;
use crate::gce_2019;
use crate::{BurstableTerms, InstanceType, Types, VmLimits};

/// Row of a built-in catalogue: name, mega-flops, vCPUs, memory in MiB, on-demand and spot price in 10^-5 $/h.
type Row = (&'static str, u64, u32, u64, u64, Option<u64>);

/// Types as in the code and data of the authors of Burst-HADS, but with t3.large as in their paper and at the provider.
const EC2_2020: [Row; 4] = [
    ("c3.large", 22_090, 2, 3_840, 10_500, Some(2_970)),
    ("c3.xlarge", 40_730, 4, 7_680, 21_000, Some(7_650)),
    ("c4.large", 44_460, 2, 3_840, 10_000, Some(3_100)),
    ("t3.large", 38_000, 2, 8_192, 8_320, None),
];

/// Types as in Table II of the Burst-HADS paper; computing power, which the table lacks, as in `EC2_2020`.
const EC2_2020_PAPER: [Row; 4] = [
    ("c3.large", 22_090, 2, 3_840, 10_500, Some(2_990)),
    ("c3.xlarge", 40_730, 4, 7_680, 19_900, Some(6_340)),
    ("c4.large", 44_460, 2, 3_840, 10_000, Some(3_660)),
    ("t3.large", 38_000, 2, 8_192, 8_320, None),
];

/// Types exactly as in the code and data of the authors of Burst-HADS, in which t3.large is as large as a t3.xlarge.
const EC2_2020_ARTIFACT: [Row; 4] = {
    let [large, xlarge, c4, _] = EC2_2020;
    [large, xlarge, c4, ("t3.large", 38_000, 4, 16_384, 8_320, None)]
};

/// Names of the built-in catalogues.
pub const BUILT_IN: [&str; 5] =
    ["ec2-2020", "ec2-2020-paper", "ec2-2020-artifact", "ec2-2026", "gce-2019"];

/// Baseline share and credits per hour of a burstable type: 36 credits are the provider's figure
/// for a t3.large, 20 % is from Table II of the Burst-HADS paper.
const T3: (Ppm, u64) = (Ppm::new(200_000), 36);
/// Baseline share and credits per hour of a t3.large in the code of the authors of Burst-HADS,
/// whose planner takes baseline mode to be three times as slow.
const T3_ARTIFACT: (Ppm, u64) = (Ppm::new(333_333), 96);

/// The instance types of the built-in catalogue of this name; `None` if there is no such catalogue.
#[must_use]
pub fn built_in(name: &str) -> Option<Types> {
    // "Five of each" is what the text says; ED200's printed makespans need three (the artifact).
    let (rows, limit, t3) = match name {
        "ec2-2020" => (EC2_2020, 3, T3),
        "ec2-2020-paper" => (EC2_2020_PAPER, 5, T3),
        "ec2-2020-artifact" => (EC2_2020_ARTIFACT, 3, T3_ARTIFACT),
        "ec2-2026" => return Some(ec2_2026::all_types()),
        "gce-2019" => return Some(gce_2019::all_types()),
        _ => return None,
    };
    Some(rows.into_iter().map(|row| (row.0.into(), instance_type(row, limit, t3))).collect())
}

fn instance_type(row: Row, limit: u32, (baseline, credits): (Ppm, u64)) -> InstanceType {
    let (name, mflops, vcpus, mib, on_demand, spot) = row;
    let price = |units: u64| Price::from_nanos_per_hour(units * 10_000);
    InstanceType {
        name: name.into(),
        vcpus,
        memory: Bytes::new(mib << 20),
        disk: Bytes::ZERO,
        mflops,
        on_demand: Some(price(on_demand)),
        spot: spot.map(price),
        limits: VmLimits { spot: limit, on_demand: limit },
        burstable: spot
            .is_none()
            .then(|| BurstableTerms::new(baseline, Credits::whole_credits(credits))),
    }
}
