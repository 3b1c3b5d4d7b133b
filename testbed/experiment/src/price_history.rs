//! Records of spot prices in files: rows of CSV, or the JSON of the EC2 price-history call.

use std::collections::BTreeMap;
use std::path::Path;

use dormouse_cloud::{BadPrice, PriceRecord};
use dormouse_documents::{InputError, Place, not_json};
use dormouse_units::Span;
use serde::Deserialize;

use super::files;

/// Which prices of a file that holds several kinds are meant; what is not given may be any, if all are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Pick {
    /// Of a JSON file of several types: this one
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Of a JSON file of several zones: this one, such as us-east-1a
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// Of a JSON file of several products: this one, such as Linux/UNIX
    #[arg(long, value_name = "PRODUCT")]
    pub product: Option<String>,
}

/// What the call answers; `NextToken` and what else may be there is of no concern.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct History {
    spot_price_history: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    #[serde(default)]
    availability_zone: String,
    #[serde(default)]
    instance_type: String,
    #[serde(default)]
    product_description: String,
    spot_price: String,
    timestamp: String,
}

impl Entry {
    fn is_picked(&self, pick: &Pick) -> bool {
        let is = |wanted: &Option<String>, has: &str| wanted.as_deref().is_none_or(|w| w == has);
        is(&pick.kind, &self.instance_type)
            && is(&pick.zone, &self.availability_zone)
            && is(&pick.product, &self.product_description)
    }

    fn series(&self) -> String {
        let all = [&self.instance_type, &self.availability_zone, &self.product_description];
        let said: Vec<_> = all.iter().filter(|word| !word.is_empty()).map(|w| w.as_str()).collect();
        said.join(" ")
    }
}

/// The prices of a file and the time from its first to its last.
///
/// # Errors
///
/// It can't be read, has none, or has several kinds and it is not said which.
pub fn read_record(path: &Path, pick: &Pick) -> Result<(PriceRecord, Span), InputError> {
    let record = match is_json(path) {
        true => one(path, history(path, pick)?)?,
        false if *pick != Pick::default() => {
            let remedy = "leave type, zone and product out: a CSV file is of one of each";
            return Err(InputError::new(&of(path), "its rows do not say of what they are", remedy));
        }
        false => files::read_rows(path, PriceRecord::read)?,
    };
    with_length(path, record)
}

fn with_length(path: &Path, record: PriceRecord) -> Result<(PriceRecord, Span), InputError> {
    match record.length() {
        Some(length) => Ok((record, length)),
        None => {
            let remedy = "write rows like: 2009-12-01 01:43:17,0.425";
            Err(InputError::new(&of(path), "it has no prices", remedy))
        }
    }
}

/// A series of prices of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceSeries {
    /// What tells it from others: its file's name, or its type, zone and product.
    pub name: String,
    /// The prices over time.
    pub record: PriceRecord,
    /// From the first to the last.
    pub length: Span,
}

/// All series of a file that are picked: the one of a CSV file, or those of each type, zone and product of a JSON
/// file. What is odd about them is noted.
///
/// # Errors
///
/// It can't be read, or has none.
pub fn price_series(
    path: &Path,
    pick: &Pick,
    notes: &mut Vec<String>,
) -> Result<Vec<PriceSeries>, InputError> {
    let several = if is_json(path) { history(path, pick)? } else { BTreeMap::new() };
    let all: Vec<(String, PriceRecord, Span)> = if several.len() > 1 {
        let with_length = |(name, record)| {
            let (record, length) = with_length(path, record)?;
            Ok((name, record, length))
        };
        several.into_iter().map(with_length).collect::<Result<_, InputError>>()?
    } else {
        let (record, length) = read_record(path, pick)?;
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        vec![(name, record, length)]
    };
    let is_one = all.len() == 1;
    let series = all.into_iter().map(|(name, record, length)| {
        let whose = if is_one { String::new() } else { format!("{name}: ") };
        notes.extend(record.oddities().map(|what| format!("{}: {whose}{what}", path.display())));
        PriceSeries { name, record, length }
    });
    Ok(series.collect())
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"))
}

fn of(path: &Path) -> Place {
    Place::of(&path.display().to_string())
}

/// The series that are picked, by type, zone and product; of a file without any prices none.
fn history(path: &Path, pick: &Pick) -> Result<BTreeMap<String, PriceRecord>, InputError> {
    let text = files::read_text(path)?;
    let read: Result<History, _> = serde_json::from_str(&text);
    let source = path.display().to_string();
    let History { spot_price_history: all } =
        read.map_err(|error| not_json(&source, &text, &error))?;
    let mut series: BTreeMap<String, PriceRecord> = BTreeMap::new();
    for (n, entry) in all.iter().enumerate().filter(|(_, entry)| entry.is_picked(pick)) {
        let record = series.entry(entry.series()).or_default();
        record.add(&entry.timestamp, &entry.spot_price).map_err(|bad| {
            let (what, is, remedy) = match bad {
                BadPrice::Time => {
                    (&entry.timestamp, "time", "a time like 2020-01-02T03:04:05.000Z")
                }
                BadPrice::Price => (&entry.spot_price, "price", "dollars an hour, like \"0.0347\""),
            };
            let place = of(path).key(&format!("SpotPriceHistory.{n}"));
            InputError::new(&place, format!("'{what}' is no {is}"), format!("write {remedy}"))
        })?;
    }
    if series.is_empty() && !all.is_empty() {
        let mut known: Vec<String> = all.iter().map(Entry::series).collect();
        known.sort();
        known.dedup();
        let what = "it has no prices of this type, zone and product";
        return Err(InputError::new(
            &of(path),
            what,
            format!("it has those of {}", listed(&known)),
        ));
    }
    // The newest is first in what the call answers; somebody may have turned it round.
    Ok(series.into_iter().map(|(name, record)| (name, record.oldest_first())).collect())
}

/// The only one of these series of a file; an empty one of none.
fn one(path: &Path, series: BTreeMap<String, PriceRecord>) -> Result<PriceRecord, InputError> {
    let names: Vec<String> = series.keys().cloned().collect();
    let mut records = series.into_values();
    match (records.next(), records.next()) {
        (record, None) => Ok(record.unwrap_or_default()),
        (_, Some(_)) => {
            let what = format!("it has prices of {}", listed(&names));
            Err(InputError::new(&of(path), what, "say which: give a type, zone and product"))
        }
    }
}

/// Some of them, for a line.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let first = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
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
        let read = read_record(&path, pick).map_err(|error| error.to_string());
        read.map(|(record, length)| {
            let notes = record.oddities().into_iter().collect();
            (record, length, notes)
        })
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
        assert!(none.contains("it has those of m1.small us-east-1a"), "{none}");
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
