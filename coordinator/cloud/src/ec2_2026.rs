//! Common EC2 types of 2026, as a catalogue: Linux, us-east-1.
//!
//! Prices on demand are those of July 2026. Spot prices differ by zone and hour, and by up to twice
//! between zones: these are typical ones, the prices on demand less the mean saving that the
//! provider's spot advisor gave in June 2025. A run that studies prices needs recorded prices.
//! Baselines and credits are those of the provider's user guide.

use dormouse_units::{Bytes, Credits, Ppm, Price};

use crate::{BurstableTerms, InstanceType, Types, VmLimits};

/// Row of the catalogue: name, vCPUs, memory in MiB, on-demand and spot price in 10^-5 $/h; for a burstable type also its baseline
/// in thousandths of a vCPU, credits per hour in tenths, and credits at launch.
type Row = (&'static str, u32, u64, u64, Option<u64>, Option<(u32, u64, u64)>);

/// Limit of VMs of a type at a time. Real quotas limit the vCPUs of a family of types, and few users reach them.
const LIMIT: u32 = 1_000;

/// Computing power of a vCPU in mega-flops, the same for every type; users' types that do not state
/// it have this value too.
const MFLOPS: u64 = 10_000;

/// Prices of a surplus vCPU-hour in unlimited mode, in 10^-5 $: of Arm types, and of others.
const SURPLUS: (u64, u64) = (4_000, 5_000);

const TYPES: [Row; 72] = [
    ("t2.nano", 1, 512, 580, None, Some((50, 30, 30))),
    ("t2.micro", 1, 1_024, 1_160, Some(310), Some((100, 60, 30))),
    ("t2.small", 1, 2_048, 2_300, Some(710), Some((200, 120, 30))),
    ("t2.medium", 2, 4_096, 4_640, Some(1_670), Some((200, 240, 60))),
    ("t2.large", 2, 8_192, 9_280, Some(3_340), Some((300, 360, 60))),
    ("t2.xlarge", 4, 16_384, 18_560, Some(5_940), Some((225, 540, 120))),
    ("t2.2xlarge", 8, 32_768, 37_120, Some(10_390), Some((170, 816, 240))),
    ("t3.nano", 2, 512, 520, Some(110), Some((50, 60, 0))),
    ("t3.micro", 2, 1_024, 1_040, Some(320), Some((100, 120, 0))),
    ("t3.small", 2, 2_048, 2_080, Some(730), Some((200, 240, 0))),
    ("t3.medium", 2, 4_096, 4_160, Some(1_830), Some((200, 240, 0))),
    ("t3.large", 2, 8_192, 8_320, Some(3_160), Some((300, 360, 0))),
    ("t3.xlarge", 4, 16_384, 16_640, Some(6_660), Some((400, 960, 0))),
    ("t3.2xlarge", 8, 32_768, 33_280, Some(11_650), Some((400, 1_920, 0))),
    ("t3a.nano", 2, 512, 470, Some(160), Some((50, 60, 0))),
    ("t3a.micro", 2, 1_024, 940, Some(380), Some((100, 120, 0))),
    ("t3a.small", 2, 2_048, 1_880, Some(600), Some((200, 240, 0))),
    ("t3a.medium", 2, 4_096, 3_760, Some(1_200), Some((200, 240, 0))),
    ("t3a.large", 2, 8_192, 7_520, Some(2_480), Some((300, 360, 0))),
    ("t3a.xlarge", 4, 16_384, 15_040, Some(4_960), Some((400, 960, 0))),
    ("t3a.2xlarge", 8, 32_768, 30_080, Some(11_430), Some((400, 1_920, 0))),
    ("t4g.nano", 2, 512, 420, Some(180), Some((50, 60, 0))),
    ("t4g.micro", 2, 1_024, 840, Some(430), Some((100, 120, 0))),
    ("t4g.small", 2, 2_048, 1_680, Some(820), Some((200, 240, 0))),
    ("t4g.medium", 2, 4_096, 3_360, Some(1_210), Some((200, 240, 0))),
    ("t4g.large", 2, 8_192, 6_720, Some(1_880), Some((300, 360, 0))),
    ("t4g.xlarge", 4, 16_384, 13_440, Some(4_970), Some((400, 960, 0))),
    ("t4g.2xlarge", 8, 32_768, 26_880, Some(9_140), Some((400, 1_920, 0))),
    ("m5.large", 2, 8_192, 9_600, Some(3_260), None),
    ("m5.xlarge", 4, 16_384, 19_200, Some(6_530), None),
    ("m5.2xlarge", 8, 32_768, 38_400, Some(17_660), None),
    ("m5.4xlarge", 16, 65_536, 76_800, Some(32_260), None),
    ("m6i.large", 2, 8_192, 9_600, Some(3_550), None),
    ("m6i.xlarge", 4, 16_384, 19_200, Some(8_640), None),
    ("m6i.2xlarge", 8, 32_768, 38_400, Some(16_130), None),
    ("m6i.4xlarge", 16, 65_536, 76_800, Some(26_110), None),
    ("m6g.large", 2, 8_192, 7_700, Some(3_080), None),
    ("m6g.xlarge", 4, 16_384, 15_400, Some(4_930), None),
    ("m6g.2xlarge", 8, 32_768, 30_800, Some(11_090), None),
    ("m6g.4xlarge", 16, 65_536, 61_600, Some(20_940), None),
    ("m7i.large", 2, 8_192, 10_080, Some(3_230), None),
    ("m7i.xlarge", 4, 16_384, 20_160, Some(9_480), None),
    ("m7i.2xlarge", 8, 32_768, 40_320, Some(15_320), None),
    ("m7i.4xlarge", 16, 65_536, 80_640, Some(38_710), None),
    ("m7g.large", 2, 8_192, 8_160, Some(2_940), None),
    ("m7g.xlarge", 4, 16_384, 16_320, Some(6_200), None),
    ("m7g.2xlarge", 8, 32_768, 32_640, Some(11_750), None),
    ("m7g.4xlarge", 16, 65_536, 65_280, Some(24_810), None),
    ("c5.large", 2, 4_096, 8_500, Some(3_490), None),
    ("c5.xlarge", 4, 8_192, 17_000, Some(7_480), None),
    ("c5.2xlarge", 8, 16_384, 34_000, Some(14_960), None),
    ("c5.4xlarge", 16, 32_768, 68_000, Some(23_120), None),
    ("c6i.large", 2, 4_096, 8_500, Some(3_140), None),
    ("c6i.xlarge", 4, 8_192, 17_000, Some(6_800), None),
    ("c6i.2xlarge", 8, 16_384, 34_000, Some(16_660), None),
    ("c6i.4xlarge", 16, 32_768, 68_000, Some(29_240), None),
    ("c6g.large", 2, 4_096, 6_800, Some(2_790), None),
    ("c6g.xlarge", 4, 8_192, 13_600, Some(5_300), None),
    ("c6g.2xlarge", 8, 16_384, 27_200, Some(9_250), None),
    ("c6g.4xlarge", 16, 32_768, 54_400, Some(15_780), None),
    ("c7g.large", 2, 4_096, 7_250, Some(3_700), None),
    ("c7g.xlarge", 4, 8_192, 14_500, Some(5_510), None),
    ("c7g.2xlarge", 8, 16_384, 29_000, Some(8_990), None),
    ("c7g.4xlarge", 16, 32_768, 58_000, Some(16_820), None),
    ("r5.large", 2, 16_384, 12_600, Some(5_040), None),
    ("r5.xlarge", 4, 32_768, 25_200, Some(7_810), None),
    ("r5.2xlarge", 8, 65_536, 50_400, Some(19_660), None),
    ("r5.4xlarge", 16, 131_072, 100_800, Some(35_280), None),
    ("r6i.large", 2, 16_384, 12_600, Some(4_030), None),
    ("r6i.xlarge", 4, 32_768, 25_200, Some(10_580), None),
    ("r6i.2xlarge", 8, 65_536, 50_400, Some(22_680), None),
    ("r6i.4xlarge", 16, 131_072, 100_800, Some(42_340), None),
];

/// The instance types of the catalogue `ec2-2026`, by name.
pub(super) fn all_types() -> Types {
    let types = TYPES.into_iter().map(instance_type);
    types.map(|kind| (kind.name.clone(), kind)).collect()
}

fn instance_type((name, vcpus, mib, on_demand, spot, burst): Row) -> InstanceType {
    let price = |units: u64| Price::from_nanos_per_hour(units * 10_000);
    let bursts = |(baseline, tenths, launch): (u32, u64, u64)| {
        let earned = Credits::from_vcpu_micros(tenths * 6_000_000);
        let surplus = if name.starts_with("t4g") { SURPLUS.0 } else { SURPLUS.1 };
        BurstableTerms {
            initial: Credits::whole_credits(launch),
            // The older types are in standard mode unless their user says otherwise.
            surplus: (!name.starts_with("t2")).then(|| price(surplus)),
            ..BurstableTerms::new(Ppm::new(baseline * 1_000), earned)
        }
    };
    InstanceType {
        name: name.into(),
        vcpus,
        memory: Bytes::new(mib << 20),
        disk: Bytes::ZERO,
        mflops: u64::from(vcpus) * MFLOPS,
        on_demand: Some(price(on_demand)),
        spot: spot.map(price),
        limits: VmLimits { spot: LIMIT, on_demand: LIMIT },
        burstable: burst.map(bursts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burstable_types_earn_what_their_baselines_take() {
        for kind in all_types().values() {
            let Some(burstable) = kind.burstable else { continue };
            // The provider's rule: an hour's credits are 60 minutes of all vCPUs at the baseline.
            let hour = u64::from(burstable.baseline.get()) * u64::from(kind.vcpus) * 3_600;
            assert_eq!(burstable.earned_per_hour.as_vcpu_micros(), hour, "{}", kind.name);
            assert!(kind.spot < kind.on_demand, "{}", kind.name);
        }
        assert_eq!(all_types().len(), 72);
    }
}
