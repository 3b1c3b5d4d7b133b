//! Columns of price tables: time, price, type, zone and product.

use dormouse_input::{Chosen, ColumnPlaces, FileFlaw, Moment, Row, WantedColumn};
use dormouse_units::Price;

/// The columns of a price table, in the order of [`RowCells`].
pub(super) const COLUMNS: [WantedColumn; 5] = [
    WantedColumn {
        name: "time",
        known_as: &[
            "time",
            "Timestamp",
            "datetime",
            "date",
            "date and time",
            "time UTC",
            "timestamp UTC",
            "start time",
            "created at",
        ],
        is_needed: true,
    },
    WantedColumn {
        name: "price",
        known_as: &[
            "SpotPrice",
            "price",
            "spot",
            "price USD",
            "spot price USD",
            "price per hour",
            "spot price per hour",
            "USD per hour",
            "hourly price",
            "usd",
        ],
        is_needed: true,
    },
    WantedColumn {
        name: "type",
        known_as: &[
            "InstanceType",
            "type",
            "instance",
            "InstanceCode",
            "machine type",
            "VM size",
            "vm type",
            "instance type name",
        ],
        is_needed: false,
    },
    WantedColumn {
        name: "zone",
        known_as: &[
            "AvailabilityZone",
            "zone",
            "az",
            "AvailabilityZoneId",
            "zone id",
            "region",
            "location",
        ],
        is_needed: false,
    },
    WantedColumn {
        name: "product",
        known_as: &["ProductDescription", "product", "os", "operating system", "platform"],
        is_needed: false,
    },
];

/// First words of each row in the output of the provider's tools.
const LEADING: [&str; 2] = ["SPOTPRICEHISTORY", "SPOTINSTANCEPRICE"];
/// Remedy for rows whose columns can't be recognised.
const SAY_WHICH: &str = "name the columns in the first row, such as time,price, or say which they are: --column \
                         time=1 --column price=2";

/// Positions of a price table's used cells in each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowCells {
    /// Index of time, price, type, zone and product; `None`: the file lacks it.
    pub(super) places: [Option<usize>; 5],
    /// Description of the columns, each with its heading or number.
    pub(super) said: String,
    /// True if the first row is a heading.
    pub(super) has_heading: bool,
}

impl RowCells {
    /// Determines from the first row of a file which cells are used.
    pub(super) fn from_first_row(first: &Row<'_>, chosen: &Chosen) -> Result<Self, FileFlaw> {
        if let Some(columns) = ColumnPlaces::from_heading(first, &COLUMNS, chosen)? {
            let places = [0, 1, 2, 3, 4].map(|n| columns.place(n));
            let (said, has_heading) = (columns.to_string(), columns.has_heading());
            return Ok(Self { places, said, has_heading });
        }
        let Some(places) = recognise_cells(first) else {
            let whole = first.flaw("", "").row;
            if whole.contains(['\u{fffd}', '\0']) {
                return Err(FileFlaw::whole(
                    "it is not text in UTF-8",
                    "save it as UTF-8 text, or give another file of prices",
                ));
            }
            let begins: String = whole.chars().take(60).collect();
            let what = format!("'{}' is not a time and a price", begins.trim());
            return Err(FileFlaw::Row(first.flaw(what, SAY_WHICH)));
        };
        let named = COLUMNS.iter().zip(&places);
        let said = named.filter_map(|(column, place)| {
            place.map(|place| format!("{} from column {}", column.name, place + 1))
        });
        let said = said.collect::<Vec<_>>().join(", ");
        Ok(Self { places, said, has_heading: false })
    }

    /// True if the used cells of a row are only a time and a price.
    pub(super) fn are_two(&self) -> bool {
        self.places[2..].iter().all(Option::is_none)
    }

    /// Number of cells that a row must have.
    pub(super) fn width(&self) -> usize {
        self.places[..2].iter().flatten().max().map_or(0, |most| most + 1)
    }

    /// Text of a cell by its index in [`COLUMNS`]; empty if the file lacks it.
    pub(super) fn cell_text<'a>(&self, row: &Row<'a>, n: usize) -> &'a str {
        self.places[n].map_or("", |place| row.cell(place))
    }
}

/// Parses a price in dollars an hour.
pub(super) fn parse_price(text: &str) -> Option<Price> {
    text.parse().ok().or_else(|| {
        // Programs write small numbers as 5e-05.
        let is_number = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
        Price::from_usd_per_hour(text.parse().ok().filter(|_| is_number)?)
    })
}

/// Recognises time, price, type, zone and product in a row without a heading, by the content of its
/// cells; `None` if this fails.
fn recognise_cells(row: &Row<'_>) -> Option<[Option<usize>; 5]> {
    let from = usize::from(LEADING.contains(&row.cell(0)));
    let all = || (from..row.len()).map(|at| (at, row.cell(at)));
    let only = |is: fn(&str) -> bool| {
        let mut places = all().filter(|(_, cell)| is(cell)).map(|(at, _)| at);
        places.next().filter(|_| places.next().is_none())
    };
    let first = |is: fn(&str) -> bool| all().find(|(_, cell)| is(cell)).map(|(at, _)| at);
    let price_of = |at: usize| parse_price(&row.number(at)).is_some();
    let prices: Vec<usize> = (from..row.len()).filter(|at| price_of(*at)).collect();
    match (only(is_date), &prices[..]) {
        (Some(time), [price]) => {
            let zone = first(is_zone).or(first(is_region));
            let kind = first(is_type).filter(|kind| zone != Some(*kind));
            Some([Some(time), Some(*price), kind, zone, first(is_product)])
        }
        // Seconds and prices are numbers both: the time is first.
        (None, [0, 1]) if row.len() == 2 && Moment::read(row.cell(0)).is_some() => {
            Some([Some(0), Some(1), None, None, None])
        }
        _ => None,
    }
}

fn is_date(cell: &str) -> bool {
    Moment::read(cell).is_some_and(|at| at.has_zone.is_some())
}

/// True for a zone such as `us-east-1a` or `use1-az4`.
fn is_zone(cell: &str) -> bool {
    let Some((before, last)) = cell.rsplit_once('-') else { return false };
    let is_letter = |c: char| c.is_ascii_lowercase();
    let number = last.strip_prefix("az").or_else(|| last.strip_suffix(is_letter));
    is_word(before) && number.is_some_and(is_digits)
}

/// True for a region such as `us-east-1`.
fn is_region(cell: &str) -> bool {
    // A date alone looks much the same.
    !is_date(cell)
        && cell.rsplit_once('-').is_some_and(|(before, last)| {
            before.contains('-') && is_word(before) && is_digits(last)
        })
}

/// True for an instance type such as `m5.large`.
fn is_type(cell: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && is_word(part);
    cell.split_once('.').is_some_and(|(family, size)| is_part(family) && is_part(size))
        && cell.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn is_product(cell: &str) -> bool {
    ["Linux", "UNIX", "Windows"].iter().any(|word| {
        cell.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    })
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
