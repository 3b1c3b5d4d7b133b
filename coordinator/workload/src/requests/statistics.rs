//! Statistics of requests, from one pass over them.

use std::collections::BTreeMap;
use std::fmt;

use dormouse_cloud::{Market, Types};
use dormouse_model::VmRequest;
use dormouse_units::{Time, TypeName};
use serde::{Serialize, Serializer};

use crate::Moments;

/// Statistics of a stream of requests.
#[derive(Clone, Debug, Default)]
pub struct RequestStatistics {
    /// vCPUs of each type, if the types are known.
    vcpus: BTreeMap<TypeName, u32>,
    /// Total vCPUs of the hosts, if there are any.
    capacity: Option<u64>,
    /// Times between requests, in seconds.
    pub gap: Moments,
    /// Durations in seconds, by market.
    pub durations: BTreeMap<Market, Moments>,
    /// Number of requests by market and type.
    pub counts: BTreeMap<Market, BTreeMap<TypeName, u64>>,
    /// Number of requests by the hour of the day in which they come; days begin with the run.
    pub hours: [u64; 24],
    /// Requested vCPU seconds, by market.
    work: BTreeMap<Market, f64>,
    first: Option<Time>,
    last: Time,
}

impl RequestStatistics {
    /// Empty statistics for a provider with these types and `capacity` vCPUs in all.
    #[must_use]
    pub fn new(types: Option<&Types>, capacity: Option<u64>) -> Self {
        let vcpus = types.into_iter().flat_map(Types::values);
        let vcpus = vcpus.map(|kind| (kind.name.clone(), kind.vcpus)).collect();
        Self { vcpus, capacity, ..Self::default() }
    }

    /// Adds a request; requests must be added in order of time.
    pub fn add(&mut self, at: Time, request: &VmRequest) {
        let VmRequest { kind, market, duration } = request;
        if self.first.is_some() {
            self.gap.add(at.since(self.last).as_secs_f64());
        }
        self.durations.entry(*market).or_default().add(duration.as_secs_f64());
        let counts = self.counts.entry(*market).or_default();
        match counts.get_mut(kind) {
            Some(count) => *count += 1,
            None => _ = counts.insert(kind.clone(), 1),
        }
        let hour = at.as_micros() / 3_600_000_000 % 24;
        if let Some(count) = usize::try_from(hour).ok().and_then(|hour| self.hours.get_mut(hour)) {
            *count += 1;
        }
        if let Some(vcpus) = self.vcpus.get(kind) {
            *self.work.entry(*market).or_default() += f64::from(*vcpus) * duration.as_secs_f64();
        }
        self.first = self.first.or(Some(at));
        self.last = at;
    }

    /// Number of requests in a market.
    #[must_use]
    pub fn count(&self, market: Market) -> u64 {
        self.durations.get(&market).map_or(0, Moments::count)
    }

    /// Number of requests in all markets.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.durations.values().map(Moments::count).sum()
    }

    /// The coefficient of variation of the times between requests: 1 for a Poisson process, more
    /// for bursts; zero for fewer than three requests.
    #[must_use]
    pub fn gap_variation(&self) -> f64 {
        if self.gap.mean() > 0.0 { self.gap.deviation() / self.gap.mean() } else { 0.0 }
    }

    /// Mean number of vCPUs that a market's requests would occupy from the first request to the
    /// last if all were granted; `None` if the types' vCPUs are unknown or that time is zero.
    #[must_use]
    pub fn vcpus_wanted(&self, market: Market) -> Option<f64> {
        let span = self.last.since(self.first?).as_secs_f64();
        let is_known = !self.vcpus.is_empty() && span > 0.0;
        is_known.then(|| self.work.get(&market).copied().unwrap_or_default() / span)
    }

    /// Requested vCPUs over the hosts' vCPUs; `None` unless both are known.
    #[must_use]
    pub fn offered_load(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let capacity = self.capacity.filter(|vcpus| *vcpus > 0)? as f64;
        let wanted = self.vcpus_wanted(Market::Spot)? + self.vcpus_wanted(Market::OnDemand)?;
        Some(wanted / capacity)
    }
}

const MARKETS: [Market; 2] = [Market::OnDemand, Market::Spot];

impl fmt::Display for RequestStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "requests              {}", self.requests())?;
        for market in MARKETS {
            writeln!(f, "  {:<20}{}", market.to_string(), self.count(market))?;
            for (kind, count) in self.counts.get(&market).into_iter().flatten() {
                writeln!(f, "    {:<18}{count}", kind.as_str())?;
            }
        }
        for market in MARKETS {
            if let Some(vcpus) = self.vcpus_wanted(market) {
                writeln!(f, "{:<22}{vcpus:.1}", format!("vCPUs of {market}"))?;
            }
        }
        if let (Some(load), Some(capacity)) = (self.offered_load(), self.capacity) {
            writeln!(f, "offered load          {load:.4} of {capacity} vCPUs")?;
        }
        writeln!(f, "gaps, deviation/mean  {:.4}", self.gap_variation())?;
        writeln!(f, "{:<22}{:>14}{:>14}{:>14}{:>14}", "", "mean", "deviation", "least", "most")?;
        let durations = MARKETS
            .iter()
            .filter_map(|market| Some((format!("{market} / s"), self.durations.get(market)?)));
        for (name, of) in std::iter::once(("gap / s".to_owned(), &self.gap)).chain(durations) {
            let (mean, deviation, (least, most)) = (of.mean(), of.deviation(), of.range());
            writeln!(f, "{name:<22}{mean:>14.3}{deviation:>14.3}{least:>14.3}{most:>14.3}")?;
        }
        for (name, hours) in ["0 to 11 h", "12 to 23 h"].iter().zip(self.hours.chunks(12)) {
            let hours: Vec<_> = hours.iter().map(u64::to_string).collect();
            writeln!(f, "{name:<22}{}", hours.join(" "))?;
        }
        Ok(())
    }
}

impl Serialize for RequestStatistics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct OfMarket<'a> {
            requests: u64,
            types: Option<&'a BTreeMap<TypeName, u64>>,
            duration_s: Option<&'a Moments>,
            vcpus_wanted: Option<f64>,
        }
        #[derive(Serialize)]
        struct RequestFigures<'a> {
            requests: u64,
            markets: BTreeMap<String, OfMarket<'a>>,
            gap_s: &'a Moments,
            gap_variation: f64,
            vcpus: Option<u64>,
            offered_load: Option<f64>,
            by_hour: &'a [u64; 24],
        }
        let of = |market: Market| OfMarket {
            requests: self.count(market),
            types: self.counts.get(&market),
            duration_s: self.durations.get(&market),
            vcpus_wanted: self.vcpus_wanted(market),
        };
        let figures = RequestFigures {
            requests: self.requests(),
            markets: MARKETS.into_iter().map(|market| (market.to_string(), of(market))).collect(),
            gap_s: &self.gap,
            gap_variation: self.gap_variation(),
            vcpus: self.capacity,
            offered_load: self.offered_load(),
            by_hour: &self.hours,
        };
        figures.serialize(serializer)
    }
}
