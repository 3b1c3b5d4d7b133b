//! Google's n1-highcpu types at the prices of the bathtub paper (HPDC 2020).

use dormouse_units::{Bytes, Price};

use crate::{InstanceType, Types, VmLimits};

/// Price of a vCPU hour in 10^-5 $: on demand, and preemptible.
const PRICES: (u64, u64) = (3_545, 750);

/// Memory per vCPU in MiB: 0.9 GiB.
const MEMORY: u64 = 921;

/// Computing power of a vCPU in mega-flops, taken from a c3.large's vCPU: no paper gives a value,
/// and only plans by computing power use this one.
const MFLOPS: u64 = 11_045;

/// Limit of VMs of a type at a time, more than any experiment of the paper uses.
const LIMIT: u32 = 1_000;

/// The n1-highcpu instance types by name, with their prices.
pub(super) fn all_types() -> Types {
    let of = |vcpus: u32| {
        let (n, (on_demand, spot)) = (u64::from(vcpus), PRICES);
        let price = |units: u64| Some(Price::from_nanos_per_hour(n * units * 10_000));
        let name = format!("n1-highcpu-{vcpus}");
        let kind = InstanceType {
            name: name.as_str().into(),
            vcpus,
            memory: Bytes::new((n * MEMORY) << 20),
            disk: Bytes::ZERO,
            mflops: n * MFLOPS,
            on_demand: price(on_demand),
            spot: price(spot),
            limits: VmLimits { spot: LIMIT, on_demand: LIMIT },
            burstable: None,
        };
        (kind.name.clone(), kind)
    };
    [2, 4, 8, 16, 32].map(of).into()
}
