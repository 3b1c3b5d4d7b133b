//! `dormouse advise bid`.

use std::path::PathBuf;

use clap::Args;
use dormouse_cloud::PriceTrace;
use dormouse_spot::{
    SpotJob, SpotRecord, SpotScheme, TypeAdvice, best_type, expected_execution, lowest_bid,
    type_advice,
};
use dormouse_units::{Price, Span, Time};
use dormouse_view::{TableColumn, TypedTable};
use serde_json::json;

use super::job::in_minutes;
use super::told::{Advice, Where};
use crate::cli::failure::Failure;
use dormouse_experiment::{Pick, PriceSeries, price_series};

#[derive(Debug, Args)]
pub(crate) struct BidArgs {
    /// Records of spot prices of the types to choose from, such as m1.small.csv: rows of time and price, with or
    /// without columns of type, zone and product; or answers of EC2's price-history call (JSON, text)
    #[arg(required = true, value_name = "PRICES")]
    records: Vec<PathBuf>,
    #[command(flatten)]
    pick: Pick,
    /// On-demand prices of these types, dollars an hour: the least of them is the bid (Eq. 7)
    #[arg(long, value_delimiter = ',', required_unless_present = "bid", conflicts_with = "bid")]
    on_demand: Vec<Price>,
    /// The bid, dollars an hour, in place of the least on-demand price
    #[arg(long)]
    bid: Option<Price>,
    /// The job's work
    #[arg(long, default_value = "500m")]
    job: Span,
    /// How long a checkpoint takes
    #[arg(long, default_value = "5m")]
    checkpoint: Span,
    /// Time that it takes to continue on another instance
    #[arg(long, default_value = "5m")]
    restart: Span,
    #[command(flatten)]
    to: Where,
}

impl BidArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let Some(bid) = self.bid.or_else(|| lowest_bid(self.on_demand.iter().copied())) else {
            return Err(Failure::BadInput("give --on-demand prices or a --bid".to_owned()));
        };
        let (work, checkpoint, restart) = (self.job, self.checkpoint, self.restart);
        if work == Span::ZERO {
            return Err(Failure::BadInput("--job 0s: give a job with some work".to_owned()));
        }
        let job = SpotJob { checkpoint, restart, ..SpotJob::with_work(work) };
        let (mut traces, mut odd) = (Vec::new(), Vec::new());
        for path in &self.records {
            for PriceSeries { name, record, length } in price_series(path, &self.pick, &mut odd)? {
                traces.push((
                    name,
                    record.from(Span::ZERO).unwrap_or_default(),
                    Time::ZERO + length,
                ));
            }
        }
        let all: Vec<TypeAdvice> = traces
            .iter()
            .map(|(_, trace, until)| type_advice(&SpotRecord::new(trace, bid, *until), &job))
            .collect();
        let best = best_type(&all);
        let verdict = match best.and_then(|n| Some((&traces[n].0, all[n].expected_s?))) {
            Some((name, s)) => format!(
                "Bid {bid} for {name}: a job of {} is expected to run for {:.1} min there, its waits not counted.",
                in_minutes(work),
                s / 60.0
            ),
            None if traces.iter().all(|(.., until)| until.since(Time::ZERO) < work) => {
                format!("No record is as long as a job of {}: give longer ones.", in_minutes(work))
            }
            None => format!(
                "A bid of {bid} held no type for as long as a job of {} takes: bid more, or checkpoint it.",
                in_minutes(work)
            ),
        };
        let verdict =
            [verdict].into_iter().chain(odd.iter().cloned()).collect::<Vec<_>>().join("\n");
        let minutes = |s: f64| s / 60.0;
        let mut table = TypedTable::with_rows(traces.iter().map(|(name, ..)| name).zip(&all))
            .column(TableColumn::text("type"), |(name, _)| name.as_str())
            .column(
                TableColumn::number("available, %").named("available_pct").digits(1),
                |(_, of)| of.available * 100.0,
            )
            .column(TableColumn::count("times taken away").named("taken"), |(_, of)| {
                of.taken as u64
            })
            .column(
                TableColumn::number("expected time to run, min").named("expected_min").digits(1),
                |(_, of)| of.expected_s.map(minutes),
            );
        table =
            table.column(TableColumn::count("jobs tried").named("jobs"), |(_, of)| of.jobs as u64);
        for (n, scheme) in SpotScheme::ALL.into_iter().enumerate() {
            let (name, key) = (scheme.name(), scheme.name().to_lowercase());
            let usd =
                TableColumn::number(format!("{name}, $")).named(format!("{key}_usd")).digits(3);
            let min =
                TableColumn::number(format!("{name}, min")).named(format!("{key}_min")).digits(0);
            let done = TableColumn::count(format!("{name} done")).named(format!("{key}_done"));
            let of = move |of: &TypeAdvice| of.schemes.get(n).copied().filter(|it| it.done > 0);
            table = table
                .column(usd, move |(_, it)| of(it).map(|it| it.cost_usd))
                .column(min, move |(_, it)| of(it).map(|it| minutes(it.took_s)));
            if scheme.may_never_end() {
                table = table.column(done, move |(_, it)| of(it).map_or(0, |it| it.done as u64));
            }
        }
        // What there would be at other bids is asked for most where none is good.
        let curves = traces
            .iter()
            .map(|(name, trace, until)| (name.clone(), expectations(trace, *until, &job)));
        let json = json!({ "bid": bid, "type": best.map(|n| &traces[n].0), "notes": odd });
        let words = ["bid, $ an hour", "expected time to run, min"];
        Advice { title: "Bid", verdict, table: table.into(), words, curves: curves.collect(), json }
            .tell(&self.to)
    }
}

/// Points of the expected execution in minutes over the bid: at most 200, between the lowest price and the highest.
fn expectations(trace: &PriceTrace, until: Time, job: &SpotJob) -> Vec<(f64, f64)> {
    let prices = || trace.steps().iter().map(|(_, price)| price.as_nanos_per_hour());
    let (Some(least), Some(most)) = (prices().min(), prices().max()) else { return Vec::new() };
    let bids = (0..=200).map(|n| least + (most - least) / 200 * n).chain([most]);
    let expected = |nanos: u64| {
        let bid = Price::from_nanos_per_hour(nanos);
        let record = SpotRecord::new(trace, bid, until);
        let s = expected_execution(&record, job.work, job.restart)?;
        Some((nanos as f64 / 1e9, s / 60.0))
    };
    bids.filter_map(expected).collect()
}
