//! A model of a stream of requests.

use dormouse_cloud::Market;
use dormouse_model::VmRequest;
use dormouse_units::{Ppm, RandomStream, Span, Time, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arrivals::{ArrivalTimes, RequestArrivals};
use super::law::DurationLaw;

/// Model by which requests for VMs are drawn at random. Arrival times, types, markets and durations are each drawn
/// from a seeded stream of their own, so that a change of one law does not change the other draws.
///
/// It ends after `requests` requests or after `lasts`, whichever comes first; one of them is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "RequestModel")]
pub struct RequestModel {
    /// Number of requests after which the model ends; if it is not given, only `lasts` ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000), example = 1_000_000)]
    pub requests: Option<u64>,
    /// Time from which on no further request arrives; if it is not given, only the number of requests ends the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("least" = "1us"), example = "30d")]
    pub lasts: Option<Span>,
    /// Process by which the requests arrive over time.
    pub arrivals: RequestArrivals,
    /// Law of the time for which VMs are wanted, counted from when they are ready. A draw below `least` or above
    /// `most` is repeated, so that the mean of the drawn times differs from `mean`.
    pub duration: DurationLaw,
    /// Law of the time for which preemptible VMs are wanted; if it is not given, the law in `duration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptible_duration: Option<DurationLaw>,
    /// Share of requests for preemptible (spot) VMs, unless their type has a share of its own.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0), example = 0.5)]
    pub preemptible: Ppm,
    /// The instance types that are requested.
    #[schemars(length(min = 1))]
    pub mix: Vec<TypeShare>,
}

/// An instance type that requests are drawn for, with its weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "RequestedType")]
pub struct TypeShare {
    /// Name of the instance type.
    #[serde(rename = "type")]
    pub kind: TypeName,
    /// Weight of the type: it is requested with this probability, divided by the sum of all types' weights.
    #[serde(default = "whole_part")]
    #[schemars(range(max = 1000.0), extend("exclusiveMinimum" = 0.0), example = 3)]
    pub weight: Ppm,
    /// Share of requests for preemptible VMs among the type's requests; if it is not given, the share of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0), example = 0.5)]
    pub preemptible: Option<Ppm>,
}

const fn whole_part() -> Ppm {
    Ppm::ONE
}

impl RequestModel {
    /// The share of preemptible requests among those of a type.
    #[must_use]
    pub fn preemptible_of(&self, share: &TypeShare) -> Ppm {
        share.preemptible.unwrap_or(self.preemptible)
    }

    /// The law of durations in a market.
    #[must_use]
    pub fn duration_in(&self, market: Market) -> &DurationLaw {
        match (&self.preemptible_duration, market) {
            (Some(law), Market::Spot) => law,
            _ => &self.duration,
        }
    }
}

/// Generator of the requests of a model.
#[derive(Clone, Debug)]
pub(super) struct DrawnRequests {
    model: RequestModel,
    /// Cumulative weights of the mix's types.
    sums: Vec<u64>,
    seed: u64,
    times: ArrivalTimes,
    types: RandomStream,
    markets: RandomStream,
    /// Number that the next request will have.
    next: u64,
}

impl DrawnRequests {
    pub(super) fn new(model: RequestModel, seed: u64) -> Self {
        let weights = model.mix.iter().scan(0_u64, |sum, share| {
            *sum += u64::from(share.weight.get());
            Some(*sum)
        });
        Self {
            sums: weights.collect(),
            seed,
            times: ArrivalTimes::new(&model.arrivals, seed),
            types: RandomStream::new(seed, "request-type", 0),
            markets: RandomStream::new(seed, "request-market", 0),
            next: 0,
            model,
        }
    }
}

impl Iterator for DrawnRequests {
    type Item = (Time, VmRequest);

    fn next(&mut self) -> Option<(Time, VmRequest)> {
        if self.model.requests.is_some_and(|requests| self.next >= requests) {
            return None;
        }
        let end = self.model.lasts.map_or(Time::from_micros(u64::MAX), |lasts| Time::ZERO + lasts);
        let at = self.times.next(end)?;
        let total = usize::try_from(*self.sums.last()?).ok()?;
        let drawn = self.types.draw_below(total) as u64;
        let share = self.model.mix.get(self.sums.partition_point(|sum| *sum <= drawn))?;
        let is_spot =
            self.markets.draw_below(1_000_000) < self.model.preemptible_of(share).get() as usize;
        let market = if is_spot { Market::Spot } else { Market::OnDemand };
        // Each request has its own stream: draws that are repeated for one move no other.
        let mut chance = RandomStream::new(self.seed, "request-duration", self.next);
        let duration = self.model.duration_in(market).draw(&mut chance);
        self.next += 1;
        Some((at, VmRequest { kind: share.kind.clone(), market, duration }))
    }
}
