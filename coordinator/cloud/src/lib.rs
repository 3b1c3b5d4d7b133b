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
mod surplus;
mod tariff;
mod terms;
mod vm;

pub use act_events::are_cloud_events;
pub use acts::{WrittenAct, are_acts, read_acts};
pub use advisor_class::AdvisorClass;
pub use availability::Availability;
pub use billing::{Billing, Charge, Meter};
pub use catalogue::{Burstable, Catalogue, InstanceType, Limits, Market, Types};
pub use catalogue_file::{
    Advice, CatalogueFile, are_types, is_described, read_advisor, read_types,
};
pub use ec2_2020::{BUILT_IN, built_in};
pub use hosts::{
    CostName, Filter, Fleet, Host, Placed, Placement, PlacementRule, Placer, PlacerName, Placing,
    Plain, Scheduler, SchedulerName, States, Tiers, Ties, VictimTies, Want, Weighed, Weigher,
    Yields, tables,
};
pub use interruption::{Action, Interruption, InterruptionModel, Interruptions, Scope, Target};
pub use launch::{LaunchError, LaunchRequest, Launched};
pub use lifetimes::{
    Bathtub, Empirical, Exponential, GompertzMakeham, Lifetime, Lifetimes, Uniform, Weibull,
};
pub use price_model::{BadModel, GeneratedPrices, PriceModel};
pub use price_record::{
    Dates, PriceHistories, PriceQuery, PriceRecord, PriceStatistics, SeriesName,
    count_trace_prices, listed, looks_like_prices, read_prices,
};
pub use prices::{DrawnStart, Listed, PriceTrace, Prices, Recorded};
pub use provider::{AvailabilityChange, PriceChange, Provider};
pub use rebalancing::Rebalancing;
pub use surplus::Surplus;
pub use tariff::{
    BySecondsOfUse, ByTheHour, ByTheSecond, ByTheStartedHour, EndedBy, Tariff, TariffName,
};
pub use terms::{Preemption, SpotPlaces, Terms};
pub use vm::{Vm, VmState};
