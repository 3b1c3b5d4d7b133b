//! Reader of spot price files.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Cursor;

use dormouse_input::{
    Chosen, FileFlaw, FlawedRow, ItemsAt, JsonItems, LeftOut, Moment, Packing, Row, Rows, Source,
};

use super::columns::{COLUMNS, RowCells, parse_price};
use super::json::ColumnKeys;
use super::printed::{PrintedForm, TurnedAnswer};
use super::record::{NewestFirst, PriceRecord};
use super::spot_trace;
use crate::SpotAvailability;

/// Greatest number of prices in one series: one a minute for more than a year. All prices become part of the run's log.
const MOST_OF_SERIES: usize = 600_000;
/// Greatest number of prices in all selected series.
const MAX_PRICES: usize = 10_000_000;
/// Greatest size of an answer that is printed for people, in bytes.
const LONGEST_PRINTED: u64 = 256 << 20;
/// Key of the list of prices in the JSON response of AWS's DescribeSpotPriceHistory.
const LIST: &str = "SpotPriceHistory";
const TIME_REMEDY: &str =
    "write a time like 2020-01-02T03:04:05.000Z or 2009-12-01 01:43:17, or seconds";
const PRICE_REMEDY: &str = "write dollars an hour, like 0.0347";

/// Selection of prices in a file, and the user's choice of columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceQuery {
    /// The instance type whose prices are selected; `None`: any.
    pub kind: Option<String>,
    /// The zone whose prices are selected; `None`: any.
    pub zone: Option<String>,
    /// The product, such as `Linux/UNIX`; `None`: any.
    pub product: Option<String>,
    /// User's choice of headings for `time`, `price`, `type`, `zone` and `product`.
    pub columns: Chosen,
}

impl PriceQuery {
    /// Names of the selected type, zone and product; `None`: any.
    const fn wanted_names(&self) -> [&Option<String>; 3] {
        [&self.kind, &self.zone, &self.product]
    }
}

/// Properties shared by the prices of a series; empty if the file lacks them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeriesName {
    /// The instance type.
    pub kind: String,
    /// The zone, or the region if the file has no zones.
    pub zone: String,
    /// The product, such as `Linux/UNIX`.
    pub product: String,
}

impl fmt::Display for SeriesName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [&self.kind, &self.zone, &self.product];
        let said: Vec<_> = all.iter().filter(|word| !word.is_empty()).map(|w| w.as_str()).collect();
        f.write_str(&said.join(" "))
    }
}

/// The selected price series of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceHistories {
    /// The selected series by name.
    pub series: BTreeMap<SeriesName, PriceRecord>,
    /// Entries of the selected series without a price, by reason.
    pub left_out: LeftOut,
    /// Description of the file's format and columns.
    pub form: String,
}

/// Reads the prices of a file: the response of the provider's price-history call, as JSON (the
/// response itself, its list alone, several one after the other or in a list, or an entry a line) or as the text, YAML
/// or table of its tool, or rows with or without a heading, with cells separated by commas, semicolons or
/// tabs. Only selected prices are kept.
///
/// # Errors
///
/// The file can't be read, is none of these, has prices but no selected one, or an entry of a
/// selected series can't be used.
pub fn read_prices(mut source: Source, query: &PriceQuery) -> Result<PriceHistories, FileFlaw> {
    match source.is_json()? {
        true if SpotAvailability::is_trace(source.next_bytes()?) => read_trace(source, query),
        true => {
            let form =
                format!("JSON of the price-history call{}", describe_packing(source.packing()));
            read_json(source, query, form)
        }
        false => match PrintedForm::detect(source.next_bytes()?) {
            Some(printed) => read_printed(source, query, printed),
            None => read_rows(source, query),
        },
    }
}

/// Reads what the tool of the price-history call prints for people.
fn read_printed(
    source: Source,
    query: &PriceQuery,
    printed: PrintedForm,
) -> Result<PriceHistories, FileFlaw> {
    let form = format!("{}{}", printed.in_words(), describe_packing(source.packing()));
    let text = source.into_text(LONGEST_PRINTED)?;
    let source = |text: String| Source::new(Cursor::new(text.into_bytes()));
    match printed.turn(&text) {
        TurnedAnswer::Json(entries) => read_json(source(entries)?, query, form),
        TurnedAnswer::Rows(rows) => read_rows(source(rows)?, query),
    }
}

/// True if a file that begins with these unpacked bytes looks like a file of spot prices.
#[must_use]
pub fn looks_like_prices(begins: &[u8]) -> bool {
    let Ok(mut source) = Source::new(Cursor::new(begins.to_vec())) else { return false };
    let none = Chosen::default();
    if source.is_json().unwrap_or(false) {
        let mut items = JsonItems::new(source, ItemsAt::ListOrDocuments(LIST));
        return match items.next_item() {
            Ok(Some(item)) => {
                let entry = ColumnKeys::new(&none).read(item.bytes);
                let is_entry = entry.is_ok_and(|entry| entry[0].is_some() && entry[1].is_some());
                is_entry || is_page(item.bytes)
            }
            // An answer without prices is one all the same.
            Ok(None) => is_page(begins),
            Err(_) => false,
        };
    }
    if PrintedForm::detect(begins).is_some() {
        return true;
    }
    let rows = Rows::new(source);
    rows.is_ok_and(|rows| {
        rows.first().is_some_and(|row| RowCells::from_first_row(&row, &none).is_ok())
    })
}

fn read_json(source: Source, query: &PriceQuery, form: String) -> Result<PriceHistories, FileFlaw> {
    let is_known = |name: &str| COLUMNS.iter().any(|column| column.name == name);
    if let Some((name, _)) = query.columns.iter().find(|(name, _)| !is_known(name)) {
        let names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
        let what = format!("no column is called '{name}' here");
        return Err(FileFlaw::whole(what, format!("write one of {}", names.join(", "))));
    }
    let (mut keys, mut all) = (ColumnKeys::new(&query.columns), SeriesCollection::new(query));
    let mut items = JsonItems::new(source, ItemsAt::ListOrDocuments(LIST));
    while let Some(item) = items.next_item()? {
        let amid = (item.key, item.line, item.is_document);
        read_entry(item.bytes, amid, &mut keys, &mut all)?;
    }
    keys.all_are_there()?;
    all.finish_series(NewestFirst::Usually, form)
}

/// Reads an entry that begins on a line under a key, or a page of entries in a list of pages; `is_document` is true if it
/// stands in no list.
fn read_entry(
    bytes: &[u8],
    (key, line, is_document): (&str, u64, bool),
    keys: &mut ColumnKeys<'_>,
    all: &mut SeriesCollection<'_>,
) -> Result<(), FileFlaw> {
    let flaw = |line: u64, what: String, remedy: &str| {
        let (what, row) = (format!("{key}: {what}"), String::new());
        FlawedRow { line, row, what, remedy: remedy.to_owned() }
    };
    let entry = keys.read(bytes).map_err(|error| {
        let line = line + error.line().saturating_sub(1) as u64;
        flaw(line, format!("not valid JSON: {error}"), "correct the file, or download it again")
    })?;
    if entry[..2] == [None, None] && !is_document && is_page(bytes) {
        let mut items =
            JsonItems::new(Source::new(Cursor::new(bytes.to_vec()))?, ItemsAt::List(LIST));
        while let Some(item) = items.next_item()? {
            let key = format!("{key}.{}", item.key);
            let amid = (key.as_str(), line + item.line.saturating_sub(1), true);
            read_entry(item.bytes, amid, keys, all)?;
        }
        return Ok(());
    }
    if is_document && entry[..2] == [None, None] {
        let what = format!("it is JSON without a list '{LIST}'");
        let remedy =
            format!("give an object with a list '{LIST}', the list itself, or an entry a line");
        return Err(FileFlaw::whole(what, remedy));
    }
    let of = |n: usize| entry[n].as_deref().unwrap_or_default();
    let Some(slot) = all.find_series([of(2), of(3), of(4)]) else { return Ok(()) };
    if of(1).is_empty() {
        all.left_out.add("without a price", line);
        return Ok(());
    }
    if of(0).is_empty() {
        keys.all_are_there()?;
    }
    let at = Moment::read(of(0).trim()).ok_or_else(|| {
        flaw(line, format!("'{}' is not a time", shorten_text(of(0))), TIME_REMEDY)
    })?;
    let price = parse_price(of(1).trim()).ok_or_else(|| {
        flaw(line, format!("'{}' is not a price", shorten_text(of(1))), PRICE_REMEDY)
    })?;
    let flaw = |what, remedy: &str| flaw(line, what, remedy);
    all.add_price(slot, at, price, flaw)
}

/// True if this JSON is a whole answer of the price-history call.
fn is_page(bytes: &[u8]) -> bool {
    bytes.windows(LIST.len()).any(|word| word == LIST.as_bytes())
}

/// Reads the spot prices of an availability trace, which covers a single instance type.
fn read_trace(source: Source, query: &PriceQuery) -> Result<PriceHistories, FileFlaw> {
    let packing = source.packing();
    if query.wanted_names().iter().any(|wanted| wanted.is_some()) {
        let remedy = "leave type, zone and product out: a trace of availability is of one type";
        return Err(FileFlaw::whole("it does not name the instance type of its prices", remedy));
    }
    let mut all = SeriesCollection::new(query);
    let form = format!("prices of a trace of availability{}", describe_packing(packing));
    for (at, written) in spot_trace::read_prices(&source.into_text(spot_trace::LONGEST)?)? {
        let price = parse_price(&written)
            .ok_or_else(|| FileFlaw::whole(format!("'{written}' is not a price"), PRICE_REMEDY))?;
        let Some(slot) = all.find_series([""; 3]) else { continue };
        let flaw = |what, remedy: &str| FlawedRow {
            line: 1,
            row: String::new(),
            what,
            remedy: remedy.to_owned(),
        };
        all.add_price(slot, at, price, flaw)?;
    }
    if all.kept == 0 {
        let remedy = "give a record of prices, or name this file at [cloud.availability]";
        return Err(FileFlaw::whole("it is a trace of availability without prices", remedy));
    }
    all.finish_series(NewestFirst::Never, form)
}

fn read_rows(source: Source, query: &PriceQuery) -> Result<PriceHistories, FileFlaw> {
    let mut rows = Rows::new(source)?;
    let mut all = SeriesCollection::new(query);
    let Some(first) = rows.first() else {
        return all.finish_series(NewestFirst::WhereMostAre, "an empty file".to_owned());
    };
    let cells = RowCells::from_first_row(&first, &query.columns)?;
    let heading: Vec<String> = first.cells().map(str::to_owned).collect();
    let pairs = query.wanted_names().into_iter().zip(&cells.places[2..]);
    if pairs.into_iter().any(|(wanted, place)| wanted.is_some() && place.is_none()) {
        let remedy = "leave type, zone and product out: the file is of one of each; or say which \
                      column has them: --column zone=NAME";
        return Err(FileFlaw::whole("its rows do not name an instance type", remedy));
    }
    let heading_is =
        |words: [&str; 2]| heading.iter().map(|cell| cell.to_ascii_lowercase()).eq(words);
    // Rows of our own form have always meant the last of a time, whatever their order.
    let is_own = cells.are_two()
        && cells.places[..2] == [Some(0), Some(1)]
        && (!cells.has_heading || heading_is(["time", "price"]));
    let newest_first = if is_own { NewestFirst::Never } else { NewestFirst::WhereMostAre };
    if cells.has_heading {
        rows.skip_first();
    }
    let between = rows.separator().name();
    let form = format!("rows with {between}{}: {}", describe_packing(rows.packing()), cells.said);
    while let Some(row) = rows.next_row()? {
        let of = |n: usize| cells.cell_text(&row, n);
        let Some(slot) = all.find_series([of(2), of(3), of(4)]) else { continue };
        let is_whole = row.len() >= cells.width();
        if is_whole && cells.has_heading && row.cells().eq(heading.iter().map(String::as_str)) {
            all.left_out.add("that repeat the heading", row.line());
            continue;
        }
        if row.cell(0) == "NEXTTOKEN" {
            all.left_out.add("that hold the call's token", row.line());
            continue;
        }
        // With a query or a limit of items, `aws` writes so where there is no token.
        if row.cell(0) == "None" && row.cells().skip(1).all(str::is_empty) {
            all.left_out.add("that hold the call's None, in place of a token", row.line());
            continue;
        }
        if is_whole && of(1).is_empty() && !of(0).is_empty() {
            all.left_out.add("without a price", row.line());
            continue;
        }
        let price_at = cells.places[1].unwrap_or_default();
        let (at, price) = (Moment::read(of(0)), parse_price(&row.number(price_at)));
        let (Some(at), Some(price)) = (at, price) else {
            return Err(no_price(&row, &cells, at.is_some()).into());
        };
        all.add_price(slot, at, price, |what, remedy: &str| row.flaw(what, remedy))?;
    }
    all.finish_series(newest_first, form)
}

/// Makes the error for a row that lacks a time or a price.
fn no_price(row: &Row<'_>, cells: &RowCells, has_time: bool) -> FlawedRow {
    if cells.are_two() {
        let begins = shorten_text(row.flaw("", "").row.trim());
        let remedy = "write it like: 2009-12-01 01:43:17,0.425, or with seconds: 6000,0.425";
        return row.flaw(format!("'{begins}' is not a time and a price"), remedy);
    }
    match has_time {
        true => row.flaw(
            format!("'{}' is not a price", shorten_text(cells.cell_text(row, 1))),
            PRICE_REMEDY,
        ),
        false => row.flaw(
            format!("'{}' is not a time", shorten_text(cells.cell_text(row, 0))),
            TIME_REMEDY,
        ),
    }
}

fn describe_packing(packing: Packing) -> String {
    match packing {
        Packing::Plain => String::new(),
        other => format!(" ({other})"),
    }
}

/// The beginning of a text, short enough for a one-line message.
fn shorten_text(text: &str) -> String {
    text.chars().take(60).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Series collected while a file is read.
struct SeriesCollection<'q> {
    query: &'q PriceQuery,
    /// Index in `slots` of each series, by name.
    names: BTreeMap<SeriesName, usize>,
    /// Series with their prices; `None`: the series is not selected.
    slots: Vec<(SeriesName, Option<PriceRecord>)>,
    /// Index of the series that the last entry belongs to; the next entry mostly belongs to the same one.
    last: Option<usize>,
    kept: usize,
    is_dated: Option<bool>,
    left_out: LeftOut,
}

impl<'q> SeriesCollection<'q> {
    fn new(query: &'q PriceQuery) -> Self {
        Self {
            query,
            names: BTreeMap::new(),
            slots: Vec::new(),
            last: None,
            kept: 0,
            is_dated: None,
            left_out: LeftOut::default(),
        }
    }

    /// Index of the series of this type, zone and product; `None`: it is not selected.
    fn find_series(&mut self, [kind, zone, product]: [&str; 3]) -> Option<usize> {
        let is_last = |slot: &usize| {
            let (name, _) = &self.slots[*slot];
            name.kind == kind && name.zone == zone && name.product == product
        };
        let slot = match self.last.filter(is_last) {
            Some(slot) => slot,
            None => {
                let [kind, zone, product] = [kind, zone, product].map(str::to_owned);
                self.slot_of(SeriesName { kind, zone, product })
            }
        };
        self.last = Some(slot);
        self.slots[slot].1.is_some().then_some(slot)
    }

    /// Index of a series, which is created if necessary.
    fn slot_of(&mut self, name: SeriesName) -> usize {
        if let Some(slot) = self.names.get(&name) {
            return *slot;
        }
        let words = [&name.kind, &name.zone, &name.product];
        let is_of = |(wanted, word): (&Option<String>, &String)| {
            wanted.as_ref().is_none_or(|wanted| wanted == word)
        };
        let is_wanted = self.query.wanted_names().into_iter().zip(words).all(is_of);
        self.slots.push((name.clone(), is_wanted.then(PriceRecord::default)));
        self.names.insert(name, self.slots.len() - 1);
        self.slots.len() - 1
    }

    /// Adds a price to a series; `flaw` makes the error for a bad entry.
    fn add_price(
        &mut self,
        slot: usize,
        at: Moment,
        price: dormouse_units::Price,
        flaw: impl Fn(String, &str) -> FlawedRow,
    ) -> Result<(), FileFlaw> {
        let at = at.assume_dated();
        // Nobody can know what a bare number is counted from beside dates.
        if *self.is_dated.get_or_insert(at.has_zone.is_some()) != at.has_zone.is_some() {
            let what = "it has both dates and bare numbers of seconds".to_owned();
            return Err(flaw(what, "write all times in the same form").into());
        }
        let Some((name, Some(record))) = self.slots.get_mut(slot) else { return Ok(()) };
        if record.row_count() == MOST_OF_SERIES {
            let what = format!("it has more than {MOST_OF_SERIES} prices of one series ({name})");
            return Err(flaw(what, "leave out the rows after the end of the run").into());
        }
        if self.kept == MAX_PRICES {
            let what = format!("it has more than {MAX_PRICES} prices");
            return Err(flaw(what, "choose one: give a type, zone and product").into());
        }
        record.push(at, price);
        self.kept += 1;
        Ok(())
    }

    /// Sorts the prices of the selected series, and returns all series that have prices.
    fn finish_series(
        self,
        newest_first: NewestFirst,
        form: String,
    ) -> Result<PriceHistories, FileFlaw> {
        let is_other = self.slots.iter().all(|(_, record)| record.is_none());
        if is_other && !self.slots.is_empty() {
            let mut names: Vec<_> = self.slots.iter().map(|(name, _)| name.clone()).collect();
            names.sort();
            let what = "it has no prices of this type, zone and product";
            let listed = list_names(names.iter().map(SeriesName::to_string));
            return Err(FileFlaw::whole(what, format!("it has prices of {listed}")));
        }
        let some = self.slots.into_iter().filter_map(|(name, record)| {
            let record = record.filter(|record| record.row_count() > 0)?;
            Some((name, record.finish_record(newest_first)))
        });
        Ok(PriceHistories { series: some.collect(), left_out: self.left_out, form })
    }
}

/// Lists at most the first few names, for a one-line message.
#[must_use]
pub fn list_names(names: impl ExactSizeIterator<Item = String>) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let first = names.take(SHOWN).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}
