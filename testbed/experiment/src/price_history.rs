//! Records of spot prices in files, of whatever form: see [`dormouse_cloud::read_prices`].

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use dormouse_cloud::{
    PriceHistories, PriceQuery, PriceRecord, SeriesName, list_names, read_prices,
};
use dormouse_documents::{InputError, Place};
use dormouse_input::Chosen;
use dormouse_units::{Span, TypeName};

use super::files;

/// Selection of prices from a file, by type, zone and product. A property that is not given does not restrict the
/// selection.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "The columns of the file")]
pub struct Pick {
    /// Type to read from a file of several types
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Zone to read from a file of several zones, such as us-east-1a
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// Product to read from a file of several products, such as Linux/UNIX
    #[arg(long, value_name = "PRODUCT")]
    pub product: Option<String>,
    /// Column (or key of JSON entries) of time, price, type, zone or product, by its heading or number, where it is
    /// not recognised automatically: price=SpotPrice
    #[arg(long = "column", value_name = "NAME=HEADING")]
    pub columns: Vec<Chosen>,
}

impl Pick {
    fn query(&self) -> PriceQuery {
        let chosen = self.columns.iter().flat_map(Chosen::iter);
        let columns = chosen.map(|(name, heading)| (name.to_owned(), heading.to_owned())).collect();
        let (kind, zone, product) = (self.kind.clone(), self.zone.clone(), self.product.clone());
        PriceQuery { kind, zone, product, columns }
    }
}

/// A series of prices from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceSeries {
    /// Name that distinguishes the series: its file's name, or its type, zone and product.
    pub name: String,
    /// Prices over time.
    pub record: PriceRecord,
    /// Time from the first to the last price.
    pub length: Span,
}

/// Reads the prices of a file, and the time from the first to the last; skipped lines are noted.
///
/// # Errors
///
/// The file can't be read, has no prices, or has several series, of which none is selected.
pub fn read_record(
    path: &Path,
    pick: &Pick,
    notes: &mut Vec<String>,
) -> Result<(PriceRecord, Span), InputError> {
    let mut all = picked_series(path, pick, notes)?;
    let place = file_place(path);
    if all.len() > 1 {
        let names = list_names(all.iter().map(|(name, ..)| name.to_string()));
        let remedy = "say which: give a type, zone and product";
        return Err(InputError::new(&place, format!("it has prices of {names}"), remedy));
    }
    let only = all.pop().map(|(_, record, length)| (record, length));
    only.ok_or_else(|| without_prices(path))
}

fn without_prices(path: &Path) -> InputError {
    let remedy = "write rows like: 2009-12-01 01:43:17,0.425";
    InputError::new(&file_place(path), "it has no prices", remedy)
}

/// All selected series of a file, one for each type, zone and product in it. Oddities are noted.
///
/// # Errors
///
/// The file can't be read, or has no prices.
pub fn price_series(
    path: &Path,
    pick: &Pick,
    notes: &mut Vec<String>,
) -> Result<Vec<PriceSeries>, InputError> {
    match all_series(path, pick, notes)? {
        none if none.is_empty() => Err(without_prices(path)),
        some => Ok(some),
    }
}

/// All selected series of a file, like [`price_series`]; empty for a file without prices.
///
/// # Errors
///
/// The file can't be read.
pub fn all_series(
    path: &Path,
    pick: &Pick,
    notes: &mut Vec<String>,
) -> Result<Vec<PriceSeries>, InputError> {
    let mut said = Vec::new();
    let all = picked_series(path, pick, &mut said)?;
    notes.extend(said.into_iter().map(|what| format!("{}: {what}", path.display())));
    let (is_one, mut odd) = (all.len() == 1, Vec::new());
    let series = all.into_iter().map(|(name, record, length)| {
        let file = || path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let stem = || without_ending(&file()).to_owned();
        let name = if is_one { stem() } else { name.to_string() };
        let whose = if is_one { String::new() } else { format!("{name}: ") };
        odd.extend(
            record.describe_oddities().map(|what| format!("{}: {whose}{what}", path.display())),
        );
        PriceSeries { name, record, length }
    });
    let series = series.collect();
    let more = odd.len().saturating_sub(MOST_NOTES);
    notes.extend(odd.into_iter().take(MOST_NOTES));
    if more > 0 {
        notes.push(format!("{}: {more} more of its series are odd", path.display()));
    }
    Ok(series)
}

/// Greatest number of notes on the series of one file.
const MOST_NOTES: usize = 8;

fn file_place(path: &Path) -> Place {
    Place::whole(&path.display().to_string())
}

/// Selected series by type, zone and product, each with its length; skipped lines are noted.
fn picked_series(
    path: &Path,
    pick: &Pick,
    notes: &mut Vec<String>,
) -> Result<Vec<(SeriesName, PriceRecord, Span)>, InputError> {
    let query = pick.query();
    let PriceHistories { series, left_out, .. } =
        files::read_file(path, |source| read_prices(source, &query))?;
    if !left_out.is_empty() {
        notes.push(format!("rows left out: {left_out}"));
    }
    let with_length = |(name, record): (SeriesName, PriceRecord)| {
        let length = record.length()?;
        Some((name, record, length))
    };
    Ok(series.into_iter().filter_map(with_length).collect())
}

/// All series of a file, and notes on skipped lines.
#[derive(Debug, Default)]
struct WholeFile {
    series: Vec<(SeriesName, PriceRecord, Span)>,
    notes: Vec<String>,
}

/// Price files that several types share. A file that is named a second time is read once more as a
/// whole, and never again.
#[derive(Debug, Default)]
pub(crate) struct SharedFiles {
    named: BTreeSet<PathBuf>,
    whole: BTreeMap<(PathBuf, Vec<(String, String)>), WholeFile>,
}

impl SharedFiles {
    /// Prices of a type, like [`read_record`]. Unless `pick` selects others, a file with several
    /// types gives the prices of the type with the name `kind`, and a file with several zones the
    /// prices of `zone`, if given.
    ///
    /// # Errors
    ///
    /// The same errors as [`read_record`].
    pub(crate) fn record(
        &mut self,
        path: &Path,
        pick: &Pick,
        (kind, zone): (&TypeName, Option<&str>),
        notes: &mut Vec<String>,
    ) -> Result<(PriceRecord, Span), InputError> {
        let is_first = self.named.insert(path.to_owned());
        if is_first && pick.kind.is_some() && zone.is_none() {
            return read_record(path, pick, notes);
        }
        let columns = pick.columns.iter().flat_map(Chosen::iter);
        let columns = columns.map(|(name, heading)| (name.to_owned(), heading.to_owned()));
        let whole = match self.whole.entry((path.to_owned(), columns.collect())) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let of_columns = Pick { columns: pick.columns.clone(), ..Pick::default() };
                let mut notes = Vec::new();
                let series = picked_series(path, &of_columns, &mut notes)?;
                entry.insert(WholeFile { series, notes })
            }
        };
        let has_kind = || whole.series.iter().any(|(name, ..)| name.kind == kind.without_zone());
        let has_zones = || whole.series.iter().any(|(name, ..)| !name.zone.is_empty());
        let own_kind = pick.kind.is_none() && has_kind();
        let own_zone = zone.filter(|_| pick.zone.is_none() && has_zones());
        let pick = Pick {
            kind: if own_kind { Some(kind.without_zone().to_owned()) } else { pick.kind.clone() },
            zone: own_zone.map(str::to_owned).or_else(|| pick.zone.clone()),
            ..pick.clone()
        };
        let is = |wanted: &Option<String>, has: &str| wanted.as_deref().is_none_or(|w| w == has);
        let mut picked = whole.series.iter().filter(|(name, ..)| {
            is(&pick.kind, &name.kind)
                && is(&pick.zone, &name.zone)
                && is(&pick.product, &name.product)
        });
        match (picked.next(), picked.next()) {
            (Some((_, record, length)), None) => {
                notes.extend(whole.notes.iter().cloned());
                Ok((record.clone(), *length))
            }
            // The error lists the series to pick from.
            _ => read_record(path, &pick, notes),
        }
    }
}

/// Name of a file without `.csv`, `.json` and the like, and without the extension of its packing.
#[must_use]
pub fn without_ending(file: &str) -> &str {
    const PACKED: [&str; 4] = ["gz", "zip", "xz", "zst"];
    const FORMS: [&str; 4] = ["csv", "json", "tsv", "txt"];
    let without = |name: &'_ str, endings: [&str; 4]| {
        let parts = name
            .rsplit_once('.')
            .filter(|(_, ending)| endings.iter().any(|known| known.eq_ignore_ascii_case(ending)));
        parts.map_or(name.len(), |(stem, _)| stem.len())
    };
    let unpacked = &file[..without(file, PACKED)];
    &unpacked[..without(unpacked, FORMS)]
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use std::fs;

    use dormouse_units::Time;

    use super::*;

    const TWO: &str = r#"{"NextToken": "", "SpotPriceHistory": [
        {"AvailabilityZone": "us-east-1a", "InstanceType": "m1.small", "ProductDescription": "Linux/UNIX",
         "SpotPrice": "0.0347", "Timestamp": "2020-01-02T03:10:00.000Z"},
        {"AvailabilityZone": "us-east-1b", "InstanceType": "m1.small", "ProductDescription": "Linux/UNIX",
         "SpotPrice": "0.5", "Timestamp": "2020-01-02T03:07:00.000Z"},
        {"AvailabilityZone": "us-east-1a", "InstanceType": "m1.small", "ProductDescription": "Linux/UNIX",
         "SpotPrice": "0.03", "Timestamp": "2020-01-02T04:04:05+01:00"}]}"#;

    fn read(
        name: &str,
        text: &str,
        pick: &Pick,
    ) -> Result<(PriceRecord, Span, Vec<String>), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let mut notes = Vec::new();
        let (record, length) =
            read_record(&path, pick, &mut notes).map_err(|error| error.to_string())?;
        notes.extend(record.describe_oddities());
        Ok((record, length, notes))
    }

    fn zone(zone: &str) -> Pick {
        Pick { zone: Some(zone.to_owned()), ..Pick::default() }
    }

    #[test]
    fn the_json_of_the_provider_s_call_is_a_record_once_it_is_said_of_what() {
        let (record, length, notes) = read("x.json", TWO, &zone("us-east-1a")).unwrap();
        assert_eq!((length, notes.len()), (Span::from_secs(355), 1));
        assert!(
            notes[0].ends_with("times are of 2 zones: all were made those of UTC"),
            "{notes:?}"
        );
        let steps = record.from(Span::ZERO).unwrap().steps().to_vec();
        let price = |text: &str| text.parse().unwrap();
        assert_eq!(steps, [(Time::ZERO, price("0.03")), (Time::from_secs(355), price("0.0347"))]);
        let several = read("x.json", TWO, &Pick::default()).unwrap_err();
        assert!(several.contains("m1.small us-east-1b Linux/UNIX"), "{several}");
        let none = read("x.json", TWO, &zone("us-east-1c")).unwrap_err();
        assert!(none.contains("it has prices of m1.small us-east-1a"), "{none}");
    }

    #[test]
    fn all_series_of_a_file_can_be_had() {
        let folder = tempfile::tempdir().unwrap();
        let (json, csv) = (folder.path().join("x.json"), folder.path().join("y.csv"));
        fs::write(&json, TWO).unwrap();
        fs::write(&csv, "0,0.4\n60,0.5\n").unwrap();
        let mut notes = Vec::new();
        let mut names = |path: &Path, pick: &Pick| {
            let all = price_series(path, pick, &mut notes).unwrap();
            all.into_iter().map(|it| (it.name, it.length)).collect::<Vec<_>>()
        };
        let s = Span::from_secs;
        let both = names(&json, &Pick::default());
        let [a, b] = ["a", "b"].map(|zone| format!("m1.small us-east-1{zone} Linux/UNIX"));
        assert_eq!(both, [(a, s(355)), (b, s(0))]);
        assert_eq!(names(&json, &zone("us-east-1a")), [("x".to_owned(), s(355))]);
        assert_eq!(names(&csv, &Pick::default()), [("y".to_owned(), s(60))]);
        assert!(
            notes[0].contains("x.json: m1.small us-east-1a Linux/UNIX: times are of 2 zones"),
            "{notes:?}"
        );
    }

    #[test]
    fn a_name_is_that_of_its_file_without_what_says_its_form() {
        for (file, name) in [
            ("eu-west-1.linux.m1.xlarge.csv", "eu-west-1.linux.m1.xlarge"),
            ("m1.small-us-east-1c", "m1.small-us-east-1c"),
            ("m1.small.JSON.gz", "m1.small"),
            ("2022-05.tsv.zst", "2022-05"),
        ] {
            assert_eq!(without_ending(file), name);
        }
    }

    #[test]
    fn a_history_may_have_been_turned_round() {
        let entry = |price: &str, at: &str| {
            format!(r#"{{"SpotPrice": "{price}", "Timestamp": "2020-01-02T{at}Z"}}"#)
        };
        let mut entries = [("0.3", "03:00:00"), ("0.2", "02:00:00"), ("0.1", "01:00:00")]
            .map(|(price, at)| entry(price, at));
        let whole =
            |entries: &[String]| format!("{{\"SpotPriceHistory\": [{}]}}", entries.join(","));
        let newest_first = read("x.json", &whole(&entries), &Pick::default()).unwrap();
        entries.reverse();
        let oldest_first = read("x.json", &whole(&entries), &Pick::default()).unwrap();
        assert_eq!(newest_first, oldest_first);
        assert_eq!(oldest_first.2, Vec::<String>::new(), "nothing is odd about it");
    }

    #[test]
    fn broken_histories_are_refused_with_their_place() {
        let with = |from: &str, to: &str| {
            read("x.json", &TWO.replace(from, to), &zone("us-east-1a")).unwrap_err()
        };
        for (error, part) in [
            (with("0.0347", "cheap"), "SpotPriceHistory.0: 'cheap'"),
            (with("2020-01-02T04:04:05+01:00", "yesterday"), "SpotPriceHistory.2: 'yesterday'"),
            (with("]}", "]"), "x.json:"),
            (with("SpotPriceHistory", "Prices"), "SpotPriceHistory"),
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
        let empty = read("x.json", r#"{"SpotPriceHistory": []}"#, &Pick::default()).unwrap_err();
        assert!(empty.contains("it has no prices"), "{empty}");
        let csv = read("x.csv", "6000,0.4\n", &zone("us-east-1a")).unwrap_err();
        assert!(csv.contains("leave type, zone and product out"), "{csv}");
    }
}
