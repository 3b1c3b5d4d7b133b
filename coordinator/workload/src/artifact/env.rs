//! `env.json`: the instance types on offer.

use std::collections::BTreeMap;

use dormouse_cloud::{BurstableTerms, InstanceType, Types, VmLimits};
use dormouse_documents::{InputError, Node, read_whole};
use dormouse_units::{Bytes, Credits, Ppm, Price, TypeName};
use schemars::JsonSchema;
use serde::Deserialize;

use super::round_bytes;

#[derive(Deserialize, JsonSchema)]
struct EnvFile {
    instances: BTreeMap<TypeName, EnvType>,
}

#[derive(Deserialize, JsonSchema)]
struct EnvType {
    #[schemars(range(min = 0.001, max = 1e9), example = 22.09)]
    gflops: f64,
    /// Memory of a VM of the type, in GiB.
    #[schemars(range(min = 0.001, max = 1e6), example = 3.75)]
    memory: f64,
    #[schemars(range(min = 1, max = 4096), example = 2)]
    vcpu: u32,
    prices: EnvPrices,
    restrictions: EnvRestrictions,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct EnvPrices {
    on_demand: Option<Price>,
    preemptible: Option<Price>,
}

#[derive(Deserialize, JsonSchema)]
struct EnvRestrictions {
    limits: EnvLimits,
    markets: EnvMarkets,
    burstable: Option<EnvBurstable>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct EnvLimits {
    #[schemars(range(max = 100_000))]
    on_demand: Option<u32>,
    #[schemars(range(max = 100_000))]
    preemptible: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct EnvMarkets {
    on_demand: Option<YesNo>,
    preemptible: Option<YesNo>,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum YesNo {
    Yes,
    No,
}

#[derive(Deserialize, JsonSchema)]
struct EnvBurstable {
    burstable: Option<YesNo>,
    /// Credits earned an hour; 0 for a type that isn't burstable.
    #[schemars(range(max = 100_000), example = 36)]
    cpu_credit_rate: Option<u64>,
    /// Speed without credits in per cent; 0 for a type that isn't burstable.
    #[schemars(range(min = 0.0, max = 100.0), example = 20)]
    baseline: Option<f64>,
}

/// The instance types of an `env.json`: those on offer in at least one market.
///
/// # Errors
///
/// All that is wrong with the file.
pub fn types(root: &Node) -> Result<Types, InputError> {
    let file: EnvFile = read_whole(root)?;
    let mut types = Types::new();
    for (name, kind) in &file.instances {
        let burstable = burstable_of(kind).map_err(|key| {
            let kind = root.inside(["instances", name.as_str(), "restrictions", "burstable"]);
            let what = format!("'{key}' is missing or 0, and the type is burstable");
            InputError::new(
                &kind.place,
                what,
                "give cpu_credit_rate and baseline, both above 0, or make the type not burstable",
            )
        })?;
        types.extend(instance_type(name, kind, burstable).map(|kind| (name.clone(), kind)));
    }
    if types.is_empty() {
        let what = "no instance type is offered in any market";
        let remedy = "set a market to \"yes\" and its limit above 0";
        return Err(InputError::new(root.place_of("instances"), what, remedy));
    }
    Ok(types)
}

fn instance_type(
    name: &TypeName,
    kind: &EnvType,
    burstable: Option<BurstableTerms>,
) -> Option<InstanceType> {
    let EnvRestrictions { limits, markets, .. } = &kind.restrictions;
    let offer = |open: Option<YesNo>, price: Option<Price>, limit: Option<u32>| {
        let price = price.filter(|_| open == Some(YesNo::Yes));
        (price, price.and(limit).unwrap_or(0))
    };
    let (on_demand, on_demand_limit) =
        offer(markets.on_demand, kind.prices.on_demand, limits.on_demand);
    let (spot, spot_limit) =
        offer(markets.preemptible, kind.prices.preemptible, limits.preemptible);
    if on_demand_limit + spot_limit == 0 {
        return None;
    }
    Some(InstanceType {
        name: name.clone(),
        vcpus: kind.vcpu,
        memory: round_bytes(kind.memory * f64::from(1 << 30)),
        disk: Bytes::ZERO,
        mflops: round_bytes(kind.gflops * 1e3).get(),
        on_demand,
        spot,
        limits: VmLimits { spot: spot_limit, on_demand: on_demand_limit },
        burstable,
    })
}

/// Terms of the CPU credits of a burstable type; `None` for other types.
///
/// # Errors
///
/// The key that is missing or 0.
fn burstable_of(kind: &EnvType) -> Result<Option<BurstableTerms>, &'static str> {
    let said = kind.restrictions.burstable.as_ref();
    let Some(said) = said.filter(|said| said.burstable == Some(YesNo::Yes)) else {
        return Ok(None);
    };
    let rate = said.cpu_credit_rate.filter(|rate| *rate > 0).ok_or("cpu_credit_rate")?;
    let percent = said.baseline.filter(|percent| *percent > 0.0).ok_or("baseline")?;
    let baseline = Ppm::from_f64(percent / 100.0).unwrap_or(Ppm::ONE);
    Ok(Some(BurstableTerms::new(baseline, Credits::whole_credits(rate))))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use dormouse_documents::from_json;

    use super::*;

    /// An instance type in the form that the authors' `env.json` has.
    const ENV: &str = r#"{"instances": {"c3.large": {
  "memory": 3.75, "vcpu": 2, "gflops": 22.09,
  "prices": {"on-demand": 0.105, "preemptible": 0.0299},
  "restrictions": {
    "limits": {"on-demand": 5, "preemptible": 5}, "markets": {"on-demand": "yes", "preemptible": "yes"},
    "burstable": {"burstable": "no", "cpu_credit_rate": 0, "baseline": 0}
  }}}}"#;

    fn read(from: &str, to: &str) -> Result<Types, InputError> {
        assert!(ENV.contains(from), "{from}");
        types(&from_json("env.json", &ENV.replacen(from, to, 1)).unwrap())
    }

    #[test]
    fn a_type_that_is_not_burstable_may_have_zeros_and_one_that_is_may_not() {
        let kind = |read: Result<Types, InputError>| read.unwrap().into_values().next().unwrap();
        assert_eq!(kind(read("", "")).burstable, None);
        let said = r#""no", "cpu_credit_rate": 0, "baseline": 0"#;
        let burstable = kind(read(said, r#""yes", "cpu_credit_rate": 36, "baseline": 20"#));
        let t3 = BurstableTerms::new(Ppm::new(200_000), Credits::whole_credits(36));
        assert_eq!(burstable.burstable, Some(t3));
        for (to, key) in [
            (r#""yes", "cpu_credit_rate": 0, "baseline": 20"#, "cpu_credit_rate"),
            (r#""yes", "cpu_credit_rate": 36, "baseline": 0"#, "baseline"),
            (r#""yes", "baseline": 20"#, "cpu_credit_rate"),
        ] {
            let error = read(said, to).unwrap_err().to_string();
            let place = "env.json:6:5: instances.c3.large.restrictions.burstable: ";
            assert!(error.starts_with(&format!("{place}'{key}' is missing or 0")), "{error}");
        }
    }

    #[test]
    fn a_mistake_has_its_line() {
        let error = read("\"vcpu\": 2", "\"vcpu\": 0").unwrap_err();
        let place = "env.json:2:19: instances.c3.large.vcpu: 0 is out of range";
        assert!(error.to_string().starts_with(place), "{error}");
        assert!(error.with_lines().ends_with("\n   |                   ^"), "{error}");
        let error = read("\"yes\"", "\"no\"").unwrap();
        assert_eq!(error.into_values().next().unwrap().on_demand, None);
    }
}
