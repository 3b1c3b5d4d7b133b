//! The provider as a pure state machine: instance types and prices, placement of VMs,
//! interruptions, and billing.
//!
//! Nothing here reads a clock, does I/O or draws from an unseeded generator: every entry point gets
//! the time, and seeded streams are the only source of randomness.

mod act_events;
mod acts;
mod advisor_class;
mod availability;
mod billing;
mod catalogue;
mod catalogue_file;
mod catalogue_json;
mod coming_interruptions;
mod ec2_2020;
mod ec2_2026;
mod gce_2019;
mod hosts;
mod interruption;
mod launch;
pub mod lifetimes;
mod price_model;
mod price_record;
mod prices;
mod provider;
mod rebalancing;
mod stopped_disk;
mod surplus;
mod tariff;
mod terms;
mod vm;
mod weekly;

pub use act_events::are_cloud_events;
pub use acts::{WrittenAct, are_acts, read_acts};
pub use advisor_class::AdvisorClass;
pub use availability::SpotAvailability;
pub use billing::{BillingMeter, BillingTerms, ChargedInterval};
pub use catalogue::{BurstableTerms, Catalogue, InstanceType, Market, Types, VmLimits};
pub use catalogue_file::{
    CatalogueFile, SpotAdvice, are_types, is_described, read_advisor, read_types,
};
pub use coming_interruptions::ComingInterruptions;
pub use ec2_2020::{BUILT_IN, built_in};
pub use hosts::{
    CostName, HostFilter, HostFleet, HostScheduler, HostTiers, PlacedVm, Placement,
    PlacementRequest, PlacementRule, Placer, PlacerName, Placing, PlainScheduler, ResourceVector,
    ScaledWeigher, SchedulerName, TieBreak, VictimTies, ViewSource, Weigher, YieldedRoom, tables,
};
pub use interruption::{
    Interruption, InterruptionAction, InterruptionModel, InterruptionScope, InterruptionTarget,
};
pub use launch::{GrantedLaunch, LaunchError, LaunchRequest};
pub use lifetimes::{
    Bathtub, Empirical, Exponential, GompertzMakeham, Lifetime, Lifetimes, Uniform, Weibull,
};
pub use price_model::{BadModel, GeneratedPrices, PriceModel};
pub use price_record::{
    PriceHistories, PriceQuery, PriceRecord, PriceStatistics, RecordDates, SeriesName,
    count_trace_prices, list_names, looks_like_prices, read_prices,
};
pub use prices::{DrawnStart, ListedPrices, PriceTrace, Prices, RecordedSpotPrices};
pub use provider::{AvailabilityChange, PriceChange, Provider};
pub use rebalancing::RebalanceRule;
pub use stopped_disk::StoppedDisk;
pub use surplus::SurplusAccount;
pub use tariff::{
    BySecondsOfUse, ByTheHour, ByTheSecond, ByTheStartedHour, EndedBy, Tariff, TariffName,
};
pub use terms::{PreemptionAction, ProviderTerms, SpotPlaces};
pub use vm::{ProviderVm, ProviderVmState};
pub use weekly::WeeklyRates;
