//! Recorded spot prices on one clock, from `[cloud.prices]`; drawn prices, which differ from run to
//! run; and the files of both.
//!
//! Records with dates have the same calendar time at the same time of a run: the run begins at the
//! beginning of the last record, or `start` later; ADAPT knows the prices before the run. Plain
//! numbers of seconds count from the first row of each record.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dormouse_cloud::{DrawnStart, GeneratedPrices, PriceRecord, PriceTrace, RecordDates, Types};
use dormouse_documents::{InputError, Mistakes, Node, Place};
use dormouse_units::{Price, Span, Time, TypeName};
use serde::{Deserialize, Serialize};

use super::cloud::is_spot_type;
use super::price_history::{Pick, SharedFiles};
use super::sections::{PricesPart, PricesSection};
use super::{Experiment, zones};

/// Recorded prices of types.
#[derive(Debug, Default)]
pub(super) struct RecordedPrices {
    /// Prices that are the same in every run.
    pub(super) fixed: BTreeMap<TypeName, PriceTrace>,
    /// Price records in which the beginning of each run is drawn at random.
    pub(super) drawn: BTreeMap<TypeName, DrawnStart>,
    /// Files that the prices were read from.
    pub(super) files: Vec<PriceFile>,
    /// Oddities of the files that were corrected, each with its path.
    pub(super) notes: Vec<String>,
}

/// A price file that was read.
struct ReadPrices<'a> {
    kind: TypeName,
    place: Place,
    file: &'a str,
    path: PathBuf,
    part: Option<&'a PricesPart>,
    record: PriceRecord,
    length: Span,
    /// Notes on skipped lines and oddities.
    notes: Vec<String>,
}

/// Resolves the sections with recorded prices, by instance type.
pub(super) fn check(
    sections: &BTreeMap<TypeName, PricesSection>,
    cloud: &Node,
    types: &Types,
    found: &mut Mistakes,
) -> RecordedPrices {
    let (mut all, mut files) = (RecordedPrices::default(), Vec::new());
    let mut shared = SharedFiles::default();
    let each = |(name, section)| {
        zones::meant(name, types, sections).into_iter().map(move |kind| (name, kind, section))
    };
    for (name, kind, section) in sections.iter().flat_map(each) {
        let place = cloud.inside(["prices", name.as_str()]).place.clone();
        let zone = kind.zone().filter(|_| *name != kind);
        if !is_spot_type(&kind, &place, Some(types), found) {
            continue;
        }
        match section {
            PricesSection::Rows(rows) => {
                let rows = found.take(price_rows(rows, &place));
                all.fixed.extend(rows.map(|rows| (kind, rows)));
            }
            PricesSection::Whole(file) => {
                files.extend(found.take(read(&mut shared, (&kind, zone), (place, file, None))));
            }
            PricesSection::Part(part) => {
                files.extend(found.take(read(
                    &mut shared,
                    (&kind, zone),
                    (place, &part.file, Some(part)),
                )));
            }
        }
    }
    let Some(clock) = found.take(common_clock(&files)) else { return all };
    for file in &files {
        let odd = file.notes.clone();
        all.notes.extend(odd.iter().map(|what| format!("{}: {what}", file.path.display())));
        let Some(trace) = found.take(file.prices_from_start(clock)) else { continue };
        all.files.push(PriceFile {
            kind: file.kind.clone(),
            file: file.file.to_owned(),
            lasts: file.length.saturating_sub(file.start(clock)),
            begins: file.record.dates().map(|dates| dates.second_after(file.start(clock))),
            notes: odd,
        });
        match file.is_drawn() {
            false => drop(all.fixed.insert(file.kind.clone(), trace)),
            true => {
                let length =
                    clock.filter(|_| file.is_dated()).map_or(file.length, RecordDates::length);
                let drawn = DrawnStart { record: trace, length };
                all.drawn.insert(file.kind.clone(), drawn);
            }
        }
    }
    all
}

/// Reads the price file of an instance type. If `zone` is given, the prices of this zone are read,
/// or all prices if the file has no zones.
fn read<'a>(
    shared: &mut SharedFiles,
    (kind, zone): (&TypeName, Option<&str>),
    (place, file, part): (Place, &'a str, Option<&'a PricesPart>),
) -> Result<ReadPrices<'a>, InputError> {
    let of = |part: &PricesPart| {
        let (kind, zone, product) = (part.kind.clone(), part.zone.clone(), part.product.clone());
        Pick { kind, zone, product, columns: vec![part.columns.clone().into_iter().collect()] }
    };
    if part.is_some_and(|part| part.start.is_some() && part.drawn_start) {
        let remedy = "keep either start or drawn-start";
        return Err(InputError::new(
            &place,
            "it has both a start and drawn-start, which draws the start",
            remedy,
        ));
    }
    let path = place.file(file);
    let (pick, mut notes) = (part.map(of).unwrap_or_default(), Vec::new());
    let (record, length) = shared.record(&path, &pick, (kind, zone), &mut notes)?;
    notes.extend(record.describe_oddities());
    let kind = kind.clone();
    Ok(ReadPrices { kind, place, file, path, part, record, length, notes })
}

/// Common time span of all records with dates; `None` if no record has dates.
///
/// # Errors
///
/// There is no common time, or only some of the records have a drawn beginning.
fn common_clock(files: &[ReadPrices<'_>]) -> Result<Option<RecordDates>, InputError> {
    let dated: Vec<(&ReadPrices<'_>, RecordDates)> =
        files.iter().filter_map(|file| Some((file, file.record.dates()?))).collect();
    for (n, (file, dates)) in dated.iter().enumerate() {
        let apart = dated[..n].iter().find(|(_, other)| other.common_part(*dates).is_none());
        if let Some((other, others)) = apart {
            let what = format!(
                "the prices of {} are of {dates}, and those of {} of {others}: at no time are both known",
                file.file, other.file
            );
            let remedy = "give records of the same time; or write the times of one as seconds from its \
                          beginning, if it is to begin with the run whenever it was";
            return Err(InputError::new(&file.place, what, remedy));
        }
    }
    let fixed = dated.iter().find(|(file, _)| !file.is_drawn());
    let drawn = dated.iter().find(|(file, _)| file.is_drawn());
    if let (Some((fixed, _)), Some((drawn, _))) = (fixed, drawn) {
        let what = format!(
            "{} has no drawn start, and {} has one: both have dates",
            fixed.file, drawn.file
        );
        let remedy = "write drawn-start = true for all records with dates, or for none";
        return Err(InputError::new(&fixed.place, what, remedy));
    }
    let start = |file: &ReadPrices<'_>| file.start(None);
    if let Some((first, others)) = dated.split_first()
        && let Some((other, _)) = others.iter().find(|(file, _)| start(file) != start(first.0))
    {
        let (one, two) = (start(first.0), start(other));
        let what = format!(
            "{} starts {one} and {} {two} after the same time: both have dates",
            first.0.file, other.file
        );
        let remedy = "write the same start for all records with dates";
        return Err(InputError::new(&other.place, what, remedy));
    }
    // If each two intervals overlap, all do.
    Ok(dated
        .iter()
        .map(|(_, dates)| *dates)
        .reduce(|all, dates| all.common_part(dates).unwrap_or(all)))
}

impl ReadPrices<'_> {
    fn is_drawn(&self) -> bool {
        self.part.is_some_and(|part| part.drawn_start)
    }

    fn is_dated(&self) -> bool {
        self.record.dates().is_some()
    }

    /// Time from the beginning of the record to the beginning of the common time span of all records.
    fn span_before(&self, clock: Option<RecordDates>) -> Span {
        let both = self.record.dates().zip(clock);
        both.map(|(own, clock)| own.time_before(clock)).unwrap_or_default()
    }

    /// Time from the record's first row to the beginning of the run, or to where the beginning is drawn
    /// from.
    fn start(&self, clock: Option<RecordDates>) -> Span {
        let start = self.part.and_then(|part| part.start.as_deref());
        self.span_before(clock) + start.and_then(|start| start.parse().ok()).unwrap_or_default()
    }

    /// Prices from the start on, scaled if a scale is given.
    ///
    /// # Errors
    ///
    /// The record ends before the start.
    fn prices_from_start(&self, clock: Option<RecordDates>) -> Result<PriceTrace, InputError> {
        let trace = self.record.from(self.start(clock)).ok_or_else(|| {
            let before = self.span_before(clock);
            let ends = self.length.saturating_sub(before);
            let since = match before {
                Span::ZERO => "its first row",
                _ => "the first row of the record that begins last",
            };
            let what = format!("the record ends {ends} after {since}");
            InputError::new(&self.place, what, "give an earlier start")
        })?;
        let scaled = self.part.and_then(|part| part.scale).map(|by| trace.scaled_by(by));
        Ok(scaled.unwrap_or(trace))
    }
}

/// Prices written in the experiment.
///
/// # Errors
///
/// There are no prices.
fn price_rows(rows: &[(String, f64)], place: &Place) -> Result<PriceTrace, InputError> {
    let row = |(from, usd): &(String, f64)| {
        let from: Span = from.parse().ok()?;
        Some((Time::ZERO + from, Price::from_usd_per_hour(*usd)?))
    };
    match rows.iter().map(row).collect::<Option<Vec<_>>>() {
        Some(rows) if !rows.is_empty() => Ok(PriceTrace::new(rows)),
        unreadable => {
            let what = match unreadable {
                Some(_) => "it has no prices",
                None => "one of these is not a time with a price",
            };
            let remedy = "write rows like: [[\"0s\", 0.30], [\"90m\", 0.35]]";
            Err(InputError::new(place, what, remedy))
        }
    }
}

/// Spot prices that each run draws with its seed, by type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct DrawnPrices {
    /// Prices that are drawn from a model.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub generated: BTreeMap<TypeName, GeneratedPrices>,
    /// Recorded prices in which the beginning of each run is drawn.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub recorded: BTreeMap<TypeName, DrawnStart>,
}

impl DrawnPrices {
    /// Whether no type has drawn prices.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.generated.is_empty() && self.recorded.is_empty()
    }

    /// The prices of a run with this seed.
    pub fn draw(&self, seed: u64) -> impl Iterator<Item = (TypeName, PriceTrace)> {
        let generated =
            self.generated.iter().map(move |(kind, of)| (kind.clone(), of.draw_trace(kind, seed)));
        let recorded =
            self.recorded.iter().map(move |(kind, of)| (kind.clone(), of.draw_trace(seed)));
        generated.chain(recorded)
    }
}

/// Dates at which the experiment's prices begin, in seconds since 1970.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PriceDates {
    /// Date at which the prices of every run begin; `None` if the prices have no dates, or if each run draws its own
    /// date.
    pub(crate) fixed: Option<i64>,
    /// Date at which the prices begin, or the earliest possible one if each run draws its own; `None` if the prices
    /// have no dates.
    pub(crate) earliest: Option<i64>,
}

/// A file with spot prices of a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PriceFile {
    /// Instance type of the prices.
    #[serde(rename = "type")]
    pub kind: TypeName,
    /// The file as the experiment names it.
    pub file: String,
    /// Time from the beginning of the run to the last recorded price; if the beginning is drawn,
    /// from the earliest possible beginning.
    pub lasts: Span,
    /// Date of the beginning of the run in seconds since 1970; if the beginning is drawn, the
    /// earliest possible date. `None` if the file has no dates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<i64>,
    /// One sentence for each oddity that was corrected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Experiment {
    /// Time of the last recorded price of a file, by the run's clock; the last price stays valid
    /// for ever.
    #[must_use]
    pub fn prices_end(&self, file: &PriceFile) -> Time {
        let drawn = self.drawn_prices.recorded.get(&file.kind);
        let start = drawn.map(|drawn| drawn.draw_start(self.setup.seed)).unwrap_or_default();
        Time::ZERO + file.lasts.saturating_sub(start)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use std::fs;

    use super::super::{Experiment, ExperimentSource, open};
    use super::*;

    /// Text of a price file: 20 hourly prices of 1, 2, 3… cents from the hour `first` of a day on.
    fn hours(first: u32, dated: bool) -> String {
        let row = |n: u32| {
            let (hour, price) = (first + n, n + 1);
            match dated {
                true => {
                    format!("2020-01-{:02} {:02}:00:00,0.{price:02}\n", 1 + hour / 24, hour % 24)
                }
                false => format!("{},0.{price:02}\n", hour * 3_600),
            }
        };
        (0..=20).map(row).collect()
    }

    /// An experiment whose types a and b have these records of prices.
    fn opened(a: &str, b: &str, seed: u64) -> Result<Experiment, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("early.csv", hours(0, true)),
            ("late.csv", hours(5, true)),
            ("never.csv", hours(21, true)),
            ("bare.csv", hours(7, false)),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let kind = |name: &str| {
            format!(
                "[[cloud.type]]\nname = \"{name}\"\nvcpus = 1\nmemory = \"1 GiB\"\nspot = 0.03\n"
            )
        };
        let text = format!(
            "name = \"x\"\nseed = {seed}\n[cloud]\nprices = {{ a = {a}, b = {b} }}\n{}{}[workload]\ndeadline = \"2h\"\n\
             task = [{{ runtime = \"10m\" }}]\n[scheduler]\nname = \"fifo\"\n\
             fleet = [{{ type = \"a\", market = \"spot\", count = 1 }}]\n",
            kind("a"),
            kind("b")
        );
        let path = folder.path().join("x.toml");
        fs::write(&path, text).unwrap();
        let source = ExperimentSource { experiment: path.to_str(), ..ExperimentSource::default() };
        open(&source).map(|loaded| loaded.experiment).map_err(|error| error.to_string())
    }

    /// Prices of both types at these hours of the run, in cents.
    fn cents(of: &Experiment, hours: [u64; 2]) -> [[u64; 2]; 2] {
        let prices = |kind: &str| {
            let trace = &of.setup.terms.prices[kind];
            hours.map(|h| {
                trace.price_at(Time::from_secs(3_600 * h + 1)).unwrap().as_nanos_per_hour()
                    / 10_000_000
            })
        };
        [prices("a"), prices("b")]
    }

    #[test]
    fn records_with_dates_share_a_clock_and_others_begin_with_the_run() {
        let both = |a: &str, b: &str| cents(&opened(a, b, 1).unwrap(), [0, 3]);
        let (early, late, bare) = ("\"early.csv\"", "\"late.csv\"", "\"bare.csv\"");
        assert_eq!(both(early, early), [[1, 4], [1, 4]]);
        assert_eq!(both(early, late), [[6, 9], [1, 4]]);
        assert_eq!(both(late, early), [[1, 4], [6, 9]]);
        assert_eq!(both(early, bare), [[1, 4], [1, 4]]);
        let start = |file: &str| format!("{{ file = \"{file}\", start = \"2h\" }}");
        assert_eq!(both(&start("early.csv"), &start("late.csv")), [[8, 11], [3, 6]]);
        assert_eq!(both(&start("early.csv"), &start("bare.csv")), [[3, 6], [3, 6]]);
        let rows = "[[\"0s\", 0.5]]";
        assert_eq!(both(early, rows), [[1, 4], [50, 50]]);
    }

    #[test]
    fn a_start_is_drawn_once_for_all_records_with_dates_over_what_they_have_in_common() {
        let drawn = |file: &str| format!("{{ file = \"{file}\", drawn-start = true }}");
        let mut begins = std::collections::BTreeSet::new();
        for seed in 0..60 {
            let of = opened(&drawn("early.csv"), &drawn("late.csv"), seed).unwrap();
            let [[a, _], [b, _]] = cents(&of, [0, 1]);
            assert_eq!(a, b + 5, "they are of the same hour");
            begins.insert(b);
        }
        // They have 15 hours in common.
        assert!(begins.len() > 10 && begins.iter().all(|b| (1..=16).contains(b)), "{begins:?}");
        // One without dates is drawn from by itself.
        let of = opened(&drawn("early.csv"), &drawn("bare.csv"), 3).unwrap();
        let [a, b] = cents(&of, [0, 1]);
        assert_eq!(a, b);
    }

    #[test]
    fn records_without_a_common_clock_are_refused_with_both_their_times() {
        let refused = |a: &str, b: &str| opened(a, b, 1).unwrap_err();
        let apart = refused("\"early.csv\"", "\"never.csv\"");
        for part in [
            "x.toml:4:",
            "never.csv are of 2020-01-01 21:00:00 to 2020-01-02 17:00:00",
            "early.csv of 2020-01-01 00:00:00 to 2020-01-01 20:00:00",
            "give records of the same time",
        ] {
            assert!(apart.contains(part), "no '{part}' in {apart}");
        }
        let drawn = "{ file = \"late.csv\", drawn-start = true }";
        let mixed = refused("\"early.csv\"", drawn);
        assert!(
            mixed.contains("early.csv has no drawn start") && mixed.contains("or for none"),
            "{mixed}"
        );
        assert!(opened("\"bare.csv\"", drawn, 1).is_ok(), "the other has no dates");
        let (late, too) = (
            "{ file = \"early.csv\", start = \"16h\" }",
            "{ file = \"late.csv\", start = \"16h\" }",
        );
        let apart = refused(late, "\"late.csv\"");
        assert!(apart.contains("early.csv starts 16h and late.csv 0s after"), "{apart}");
        let ended = refused(late, too);
        assert!(
            ended.contains("ends 15h after the first row of the record that begins last"),
            "{ended}"
        );
    }
}
