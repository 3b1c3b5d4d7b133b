//! Tests with files of spot prices of every format, and the prices that each contains.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::io::Cursor;

use dormouse_input::Source;
use dormouse_units::{Price, Span, Time};

use super::*;

fn source(bytes: &[u8]) -> Source {
    Source::new(Cursor::new(bytes.to_vec())).unwrap()
}

fn read(text: &str) -> Result<PriceHistories, String> {
    read_with(text, &PriceQuery::default())
}

fn read_with(text: &str, query: &PriceQuery) -> Result<PriceHistories, String> {
    read_prices(source(text.as_bytes()), query).map_err(|error| error.to_string())
}

/// Reads a file that contains a single price record.
fn record(text: &str) -> PriceRecord {
    only(read(text).unwrap())
}

fn only(all: PriceHistories) -> PriceRecord {
    let [record] = all.series.into_values().collect::<Vec<_>>().try_into().unwrap();
    record
}

/// Prices of a record in dollars an hour, each with its seconds since the first price.
fn steps(record: &PriceRecord) -> Vec<(u64, f64)> {
    let trace = record.from(Span::ZERO).unwrap();
    let usd = |price: &Price| price.as_nanos_per_hour() as f64 / 1e9;
    trace.steps().iter().map(|(at, price)| (at.as_micros() / 1_000_000, usd(price))).collect()
}

fn price(text: &str) -> Price {
    text.parse().unwrap()
}

#[test]
fn a_record_may_be_unsorted_and_repeat_itself_and_the_run_begins_where_it_is_told() {
    let text = "time,price\n2009-12-01 00:10:00,0.3\n2009-12-01 00:00:00,0.1\n\
                2009-12-01 00:05:00,0.2\n2009-12-01 00:05:00,0.2\n2009-12-01 00:07:00,0.2\n";
    let one = record(text);
    let s = Time::from_secs;
    let odd = one.describe_oddities().unwrap();
    let astray = "1 of 4 rows are earlier than the one before and were sorted in; 1 row repeats the \
                  time and the price of another, and was left out";
    assert_eq!(odd, astray);
    assert_eq!(
        one.from(Span::ZERO).unwrap().steps(),
        [(s(0), price("0.1")), (s(300), price("0.2")), (s(600), price("0.3"))]
    );
    assert_eq!(
        one.from(Span::from_secs(450)).unwrap().steps(),
        [(s(0), price("0.2")), (s(150), price("0.3"))]
    );
    assert_eq!(one.from(Span::from_secs(3_600)), None);
    assert_eq!(one.length(), Some(Span::from_secs(600)));
    let zones =
        record("2009-12-01 00:00:00Z,1\n2009-12-01 02:00:00+01:00,2\n2009-12-01 00:30:00,3\n");
    let odd = zones.describe_oddities().unwrap();
    assert!(odd.contains("2 rows name their time zone and 1 do not"), "{odd}");
    assert!(odd.contains("times are of 2 zones"), "{odd}");
    let half_hours = [0, 1_800, 3_600].map(s);
    let all = zones.from(Span::ZERO).unwrap();
    assert_eq!(all.steps().iter().map(|step| step.0).collect::<Vec<_>>(), half_hours);
    let other = record("\u{feff}Time,Price\n6000,1\n6000,2\n6000,2\n6000,1\n6000,3\n");
    let odd = other.describe_oddities().unwrap();
    assert!(odd.contains("of 3 rows have the time of another, 2 of them another price"), "{odd}");
    assert!(odd.contains("2 rows repeat the time and the price of another"), "{odd}");
    assert_eq!(steps(&other), [(0, 3.0)], "the last of a time holds");
    // Rows of our own form are taken as they stand; those of others may begin with the newest.
    let (own, others) =
        ("5000,0.01\n0,0.03\n0,0.02\n", "timestamp,price\n5000,0.01\n0,0.03\n0,0.02\n");
    assert_eq!(steps(&record(own)), [(0, 0.02), (5_000, 0.01)]);
    assert_eq!(steps(&record(others)), [(0, 0.03), (5_000, 0.01)]);
    assert!(record(own).describe_oddities().unwrap().starts_with("1 of 3 rows are earlier"));
    let error = read("6000,0.4\n6001;0.5\n").unwrap_err();
    let said =
        "line 2: '6001;0.5' is not a time and a price; write it like: 2009-12-01 01:43:17,0.425";
    assert!(error.starts_with(said), "{error}");
    let mixed = read("6000,1\n2009-12-01 00:00:00,1\n").unwrap_err();
    assert!(mixed.starts_with("line 2: it has both dates and bare numbers"), "{mixed}");
    let empty = read("\n").unwrap();
    assert_eq!((empty.series.len(), PriceRecord::default().describe_oddities()), (0, None));
}

/// The provider writes an unchanged price down again after a day and some seconds.
#[test]
fn a_price_that_is_repeated_daily_leaves_no_gap() {
    let day = 86_400;
    let daily =
        |late: i64| (0..11).map(|n| format!("{},0.0161\n", n * (day + late))).collect::<String>();
    for late in [0, 67, 3_600] {
        assert_eq!(record(&daily(late)).describe_oddities(), None, "{late}");
    }
    // Of ten daily prices one is missing: still within two days and some seconds of the usual.
    let hourly = |text: &str| record(text).describe_oddities();
    let gap = "2009-12-01 00:00:00,1\n2009-12-01 01:00:00,2\n2009-12-01 02:00:00,1\n\
               2009-12-04 02:00:00,2\n2009-12-04 03:00:00,1\n";
    let odd = hourly(gap).unwrap();
    let longest = "3.0 days, from 2009-12-01 02:00:00 to 2009-12-04 02:00:00";
    assert!(odd.contains("for more than 2 days 1 times") && odd.contains(longest), "{odd}");
    let less = gap.replace("12-04", "12-03");
    assert_eq!(hourly(&less), None, "two days are none");
    let even = (0..40).map(|day| format!("{},0.{day}\n", day * 200_000)).collect::<String>();
    assert_eq!(hourly(&even), None, "that is how it is written");
}

#[test]
fn columns_are_told_by_their_headings() {
    for (text, wanted) in [
        (
            "Timestamp,Region,SpotPrice\n2026-02-27 21:02:32+00:00,us-east-1,0.0047\n\
             2026-02-27 20:18:33+00:00,us-east-1,0.0035\n2026-02-27 17:17:33+00:00,us-east-1,0.0042\n",
            vec![(0, 0.0042), (10_860, 0.0035), (13_499, 0.0047)],
        ),
        (
            "Timestamp,AvailabilityZone,InstanceType,ProductDescription,SpotPrice\n\
             2024-05-01T10:00:00.000Z,us-east-1a,m5.large,Linux/UNIX,0.035\n\
             2024-05-01T06:00:00.000Z,us-east-1a,m5.large,Linux/UNIX,0.034\n",
            vec![(0, 0.034), (14_400, 0.035)],
        ),
        (
            "timestamp,price\n2024-05-01T06:00:00Z,0.034\n2024-05-01T10:00:00Z,0.035\n",
            vec![(0, 0.034), (14_400, 0.035)],
        ),
        (
            "spot_price;Availability Zone;date\r\n0,034;us-east-1a;2024-05-01 06:00:00\r\n\
             0,035;us-east-1a;2024-05-01 10:00:00\r\n",
            vec![(0, 0.034), (14_400, 0.035)],
        ),
        (
            ",AvailabilityZone,InstanceType,Nets,SpotPrice,PricePerInterface,Timestamp\n\
             0,us-east-1b,m5n.16xlarge,15,2.0791,0.1432,2024-02-01 18:48:32+00:00\n\
             1,us-east-1b,m5n.16xlarge,15,2.0463,0.27442,2024-02-01 18:40:32+00:00\n",
            vec![(0, 2.0463), (480, 2.0791)],
        ),
    ] {
        let one = record(text);
        assert_eq!(steps(&one), wanted, "{text}");
        assert_eq!(one.describe_oddities(), None, "{text}");
        assert!(looks_like_prices(text.as_bytes()), "{text}");
    }
    let chosen = |text: &str, columns: &str| {
        let query = PriceQuery { columns: columns.parse().unwrap(), ..PriceQuery::default() };
        read_with(text, &query)
    };
    let odd_names = "when,what,cost now\n60,x,0.2\n0,x,0.1\n";
    let found = only(chosen(odd_names, "time=when,price=cost now").unwrap());
    assert_eq!(steps(&found), [(0, 0.1), (60, 0.2)]);
    let found = only(chosen("0.1,0\n0.2,60\n", "time=2,price=1").unwrap());
    assert_eq!(steps(&found), [(0, 0.1), (60, 0.2)]);
    let error = read(odd_names).unwrap_err();
    assert!(error.contains("'when,what,cost now' is not a time and a price"), "{error}");
    let error = read("Timestamp,InstanceType\n").unwrap_err();
    assert!(
        error.contains("there is no column 'price'; it has 'Timestamp', 'InstanceType'"),
        "{error}"
    );
}

#[test]
fn cells_of_rows_without_a_heading_are_told_by_what_is_in_them() {
    let m5 = vec![(0, 0.034), (14_400, 0.035)];
    for (text, name) in [
        (
            "SPOTPRICEHISTORY\tus-east-1a\tm5.large\tLinux/UNIX\t0.035000\t2024-05-01T10:00:00+00:00\n\
             SPOTPRICEHISTORY\tus-east-1a\tm5.large\tLinux/UNIX\t0.034000\t2024-05-01T06:00:00+00:00\n",
            "m5.large us-east-1a Linux/UNIX",
        ),
        (
            "use1-az4\tm5.large\tRed Hat Enterprise Linux\t0.034000\t2024-05-01T06:00:00+00:00\n\
             use1-az4\tm5.large\tRed Hat Enterprise Linux\t0.035000\t2024-05-01T10:00:00+00:00\nNEXTTOKEN\tx\n",
            "m5.large use1-az4 Red Hat Enterprise Linux",
        ),
        (
            "SPOTINSTANCEPRICE\t0.034\t2024-05-01T06:00:00+0000\tm5.large\tWindows\tus-east-1a\n\
             SPOTINSTANCEPRICE\t0.035\t2024-05-01T10:00:00+0000\tm5.large\tWindows\tus-east-1a\n",
            "m5.large us-east-1a Windows",
        ),
        (
            "us-east-1,us-east-1c,2024-05-01T06:00:00.000Z,m5.large,0.034\n\
             us-east-1,us-east-1c,2024-05-01T10:00:00.000Z,m5.large,0.035\n",
            "m5.large us-east-1c",
        ),
        (
            "2024-05-01 06:00:00+00:00,m5.large,Linux/UNIX,us-east-1c,0.034\n\
             2024-05-01 10:00:00+00:00,m5.large,Linux/UNIX,us-east-1c,0.035\n",
            "m5.large us-east-1c Linux/UNIX",
        ),
    ] {
        let all = read(text).unwrap();
        let names: Vec<_> = all.series.keys().map(SeriesName::to_string).collect();
        assert_eq!(names, [name], "{text}");
        assert_eq!(steps(&only(all)), m5, "{text}");
        assert!(looks_like_prices(text.as_bytes()), "{text}");
    }
    let turned = record("0.034,2024-05-01T06:00:00Z\n0.035,2024-05-01T10:00:00Z\n");
    assert_eq!(steps(&turned), m5);
    let daily = record("2024-05-01,0.034\n2024-05-02,0.035\n");
    assert_eq!(steps(&daily), [(0, 0.034), (86_400, 0.035)]);
    let unix = record("1714521600.25,0.034\n1714521660.75,0.035\n");
    assert_eq!(steps(&unix), [(0, 0.034), (60, 0.035)]);
    assert!(read("0.5,0.034\n1.5,0.035\n").is_err(), "two prices are no time and price");
    for text in
        ["a,b\n", "lifetime_s,end_event\n5,stop\n", "1,2,3\n", "", "; UnixStartTime: 0\n1 0 5\n"]
    {
        assert!(!looks_like_prices(text.as_bytes()), "{text}");
    }
}

const ENTRIES: &str = r#"[
 {"AvailabilityZone": "us-east-1a", "InstanceType": "m5.large", "ProductDescription": "Linux/UNIX", "SpotPrice": "0.0350", "Timestamp": "2024-05-01T10:00:00+00:00"},
 {"AvailabilityZone": "us-east-1a", "InstanceType": "m5.large", "ProductDescription": "Linux/UNIX", "SpotPrice": "0.0340", "Timestamp": "2024-05-01T06:00:00+00:00"}
]"#;

#[test]
fn json_may_be_the_answer_of_the_call_its_list_or_what_programs_print_of_it() {
    let answer =
        format!("{{\"NextToken\": \"\", \"SpotPriceHistory\": {ENTRIES}, \"Meta\": {{}}}}");
    let boto = answer.replace("\"0.0350\"", "0.035").replace("2024-05-01T10", "2024-05-01 10");
    let own = ENTRIES.replace("Timestamp", "time").replace("SpotPrice", "price");
    for text in [ENTRIES, &answer, &boto, &own] {
        let one = record(text);
        assert_eq!(
            (steps(&one), one.describe_oddities()),
            (vec![(0, 0.034), (14_400, 0.035)], None),
            "{text}"
        );
        assert!(looks_like_prices(text.as_bytes()), "{text}");
    }
    // Pages of an answer, one after the other, of which one was fetched twice.
    let pages = record(&format!("{answer}\n{answer}"));
    assert_eq!((pages.row_count(), steps(&pages)), (2, vec![(0, 0.034), (14_400, 0.035)]));
    assert!(pages.describe_oddities().unwrap().contains("2 rows repeat"));
    let none = read("{\"SpotPriceHistory\": []}").unwrap();
    assert!(none.series.is_empty());
    let chosen = ENTRIES.replace("SpotPrice", "cost");
    let query = PriceQuery { columns: "price=cost".parse().unwrap(), ..PriceQuery::default() };
    assert_eq!(steps(&only(read_with(&chosen, &query).unwrap())).len(), 2);
    for (columns, words) in [
        (
            "foo=Foo",
            "no column is called 'foo' here; write one of time, price, type, zone, product",
        ),
        ("price=Foo", "no entry has the key 'Foo'; they have 'AvailabilityZone', "),
        ("time=Foo", "no entry has the key 'Foo'"),
        ("zone=Foo", "no entry has the key 'Foo'"),
    ] {
        let query = PriceQuery { columns: columns.parse().unwrap(), ..PriceQuery::default() };
        let error = read_with(ENTRIES, &query).unwrap_err();
        assert!(error.starts_with(words), "{error}");
    }
    let null = read(&ENTRIES.replace("\"0.0350\"", "null")).unwrap();
    assert_eq!(null.left_out.to_string(), "1 without a price (line 2)");
    for (from, to, words) in [
        ("\"0.0340\"", "\"cheap\"", "line 3: 1: 'cheap' is not a price"),
        ("2024-05-01T06:00:00+00:00", "yesterday", "line 3: 1: 'yesterday' is not a time"),
        ("\"Timestamp\": \"2024-05-01T06:00:00+00:00\"", "\"Time", "line 4: not valid JSON"),
        ("\"SpotPrice\": \"0.0340\"", "\"SpotPrice\" \"0.0340\"", "line 3: 1: not valid JSON"),
    ] {
        let error = read(&ENTRIES.replace(from, to)).unwrap_err();
        assert!(error.starts_with(words), "{error}");
    }
    let other = read("{\"Prices\": []}").unwrap_err();
    assert!(other.contains("without a list 'SpotPriceHistory'"), "{other}");
}

#[test]
fn an_entry_a_line_and_the_last_line_of_a_query_are_read() {
    let line = |at: &str, price: &str| {
        format!(
            "{{\"InstanceType\": \"m5.large\", \"SpotPrice\": \"{price}\", \"Timestamp\": \"{at}\"}}\n"
        )
    };
    let lines = line("2024-05-01T10:00:00Z", "0.035") + &line("2024-05-01T06:00:00Z", "0.034");
    assert!(looks_like_prices(lines.as_bytes()));
    assert_eq!(steps(&record(&lines)), [(0, 0.034), (14_400, 0.035)]);
    let queried =
        "2024-05-01T06:00:00+00:00\t0.034\tz-1a\n2024-05-01T10:00:00+00:00\t0.035\tz-1a\nNone\n";
    let all = read(queried).unwrap();
    assert_eq!(
        all.left_out.to_string(),
        "1 that hold the call's None, in place of a token (line 3)"
    );
    assert_eq!(steps(&only(all)), [(0, 0.034), (14_400, 0.035)]);
}

/// Two records with times in seconds since 1970 have a common clock, as two records with dates have.
#[test]
fn seconds_since_1970_are_dates() {
    let (seconds, milliseconds, dates) = (
        record("timestamp,price\n1544001800,0.10\n1544005400,0.90\n"),
        record("timestamp,price\n1544001800000,0.10\n1544005400999,0.90\n"),
        record("timestamp,price\n2018-12-05T09:23:20Z,0.10\n2018-12-05T10:23:20Z,0.90\n"),
    );
    assert!(dates.dates().is_some());
    assert_eq!((&seconds, &milliseconds), (&dates, &dates));
    assert_eq!(record("0,0.1\n999999999,0.2\n").dates(), None, "thirty years from the first");
    let mixed = read("time,price\n6000,1\n1544001800,1\n").unwrap_err();
    assert!(mixed.starts_with("line 3: it has both dates and bare numbers"), "{mixed}");
}

#[test]
fn only_what_is_wanted_is_kept_and_read() {
    let text = "time,price,type,zone\n0,0.1,a.x,z-1a\n0,dear,b.x,z-1a\n60,,a.x,z-1a\n60,0.2,a.x,z-1b\n\
                time,price,type,zone\n90,0.3,a.x,z-1a\n";
    let query = |kind: &str| PriceQuery { kind: Some(kind.to_owned()), ..PriceQuery::default() };
    let both = read_with(text, &query("a.x")).unwrap();
    let names: Vec<_> = both.series.keys().map(SeriesName::to_string).collect();
    assert_eq!(names, ["a.x z-1a", "a.x z-1b"]);
    assert_eq!(both.left_out.to_string(), "1 without a price (line 4)");
    let error = read_with(text, &query("b.x")).unwrap_err();
    assert!(error.starts_with("line 3: 'dear' is not a price"), "{error}");
    let error = read_with(text, &query("c.x")).unwrap_err();
    assert!(error.contains("it has prices of a.x z-1a, a.x z-1b, b.x z-1a"), "{error}");
    let error = read_with("0,0.1\n", &query("a.x")).unwrap_err();
    assert!(error.contains("leave type, zone and product out"), "{error}");
}

#[test]
fn a_record_is_written_with_its_dates_and_reads_back() {
    let boto = r#"{"SpotPriceHistory": [
        {"Timestamp": "2016-04-24 21:11:06+00:00", "SpotPrice": "0.016100"},
        {"Timestamp": "2016-04-23 21:10:32+00:00", "SpotPrice": "0.016200"}]}"#;
    let dated = record(boto);
    let text = dated.to_csv();
    assert_eq!(text, "time,price\n2016-04-23 21:10:32,0.0162\n2016-04-24 21:11:06,0.0161\n");
    for text in [
        text.as_str(),
        "time,price\n6000,0.4\n6060,0.4\n7000,0.41\n",
        "2009-12-01 00:10:00+01:00,0.3\n2009-12-01 00:00:00,0.1\n2009-12-01 00:00:00,0.2\n",
    ] {
        let first = record(text);
        let again = record(&first.to_csv());
        assert_eq!(again.from(Span::ZERO), first.from(Span::ZERO), "{text}");
        assert_eq!((again.dates(), again.length()), (first.dates(), first.length()), "{text}");
        assert_eq!(again.row_count(), first.row_count(), "{text}");
    }
}

#[test]
fn packed_files_are_unpacked() {
    // "0,0.4\n60,0.5\n" by gzip.
    let hex = "1f8b08000000000002ff33d031d033e132330052a65c009e2531c50d000000";
    let pair = |n: usize| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..hex.len() / 2).map(pair).collect();
    let all = read_prices(source(&bytes), &PriceQuery::default()).unwrap();
    assert!(all.form.starts_with("rows with commas (gzip): time from column 1"), "{}", all.form);
    assert_eq!(steps(&only(all)), [(0, 0.4), (60, 0.5)]);
}

/// Prices in an availability trace (cases/spot-traces-prices), and traces that lack some fields.
#[test]
fn prices_of_a_trace_of_availability_are_read() {
    let trace = r#"{"metadata": {"gap_seconds": 600, "start_time": 1682150400.0}, "data": [1,1,0,1],
        "prices": [0.918, 0.918, 1.2, 0.95]}"#;
    let all = read_prices(source(trace.as_bytes()), &PriceQuery::default()).unwrap();
    assert_eq!(all.form, "prices of a trace of availability");
    let record = only(all);
    assert_eq!(steps(&record), [(0, 0.918), (1_200, 1.2), (1_800, 0.95)]);
    assert!(record.dates().is_some(), "it says when it began");
    let undated = trace.replace(", \"start_time\": 1682150400.0", "");
    let record = only(read_prices(source(undated.as_bytes()), &PriceQuery::default()).unwrap());
    assert_eq!(steps(&record), [(0, 0.918), (1_200, 1.2), (1_800, 0.95)]);
    for (text, part) in [
        (
            r#"{"metadata": {"gap_seconds": 600}, "data": [1]}"#,
            "a trace of availability without prices",
        ),
        (r#"{"metadata": {"gap_seconds": 0}, "data": [1], "prices": [1]}"#, "gap_seconds is 0"),
        (
            r#"{"metadata": {"gap_seconds": 6}, "data": [1], "prices": ["x"]}"#,
            "its prices can't be read",
        ),
        (
            r#"{"metadata": {"gap_seconds": 6}, "data": [1], "prices": [-1]}"#,
            "number 0 of prices is -1",
        ),
    ] {
        let error = read_with(text, &PriceQuery::default()).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
    let of_type = PriceQuery { kind: Some("a.x".to_owned()), ..PriceQuery::default() };
    let error = read_with(trace, &of_type).unwrap_err();
    assert!(error.contains("does not name the instance type of its prices"), "{error}");
}

/// The same two prices in every form that the command-line tool prints (`--output json`, `yaml`, `yaml-stream`, `text`,
/// `table`, with a query and without) and that people store.
#[test]
fn every_form_that_the_tool_prints_has_the_same_prices() {
    let [late, early] = [("10", "0.035000"), ("06", "0.034000")].map(|(hour, price)| {
        [
            ("AvailabilityZone", "us-east-1a".to_owned()),
            ("InstanceType", "m5.large".to_owned()),
            ("ProductDescription", "Linux/UNIX".to_owned()),
            ("SpotPrice", price.to_owned()),
            ("Timestamp", format!("2024-05-01T{hour}:00:00+00:00")),
        ]
    });
    let both = [&late, &early];
    let json = both.map(|entry| {
        let pairs: Vec<_> =
            entry.iter().map(|(key, text)| format!("\"{key}\": \"{text}\"")).collect();
        format!("{{{}}}", pairs.join(", "))
    });
    let page = |entry: &str, token: &str| {
        format!("{{\"NextToken\": \"{token}\", \"SpotPriceHistory\": [{entry}]}}")
    };
    let pages = [page(&json[0], "abc"), page(&json[1], "")];
    let yaml: String = both
        .iter()
        .flat_map(|entry| {
            entry.iter().enumerate().map(|(n, (key, text))| {
                format!("{} {key}: '{text}'\n", if n == 0 { "-" } else { " " })
            })
        })
        .collect();
    let row = |entry: &[(&str, String); 5]| {
        let cells: Vec<_> = entry.iter().map(|(_, text)| format!("  {text}  ")).collect();
        format!("||{}||\n", cells.join("|"))
    };
    let heading = late.iter().map(|(key, _)| format!(" {key} ")).collect::<Vec<_>>().join("|");
    let (rule, title) = ("-----------------", "|  DescribeSpotPriceHistory  |\n");
    let table = format!(
        "{rule}\n{title}|+---+---+|\n||{heading}||\n|+---+---+|\n{}{}|+---+|\n",
        row(&late),
        row(&early)
    );
    let text = both.map(|entry| {
        let cells: Vec<_> = entry.iter().map(|(_, text)| text.as_str()).collect();
        format!("SPOTPRICEHISTORY\t{}\n", cells.join("\t"))
    });
    let forms = [
        format!("[{}, {}]", json[0], json[1]),
        format!("{}\n{}\n", json[0], json[1]),
        format!("[{}, {}]", pages[0], pages[1]),
        format!("{}\n{}\n", pages[0], pages[1]),
        format!("SpotPriceHistory:\n{yaml}"),
        format!("{yaml}NextToken: abc\n"),
        format!("- SpotPriceHistory:\n{yaml}"),
        table.clone(),
        format!("{}NEXTTOKEN\tabc\n{}None\n", text[0], text[1]),
    ];
    for form in forms {
        let all = read_prices(source(form.as_bytes()), &PriceQuery::default()).unwrap();
        let names: Vec<_> = all.series.keys().map(SeriesName::to_string).collect();
        assert_eq!(names, ["m5.large us-east-1a Linux/UNIX"], "{form}");
        let record = only(all);
        assert_eq!(steps(&record), [(0, 0.034), (4 * 3_600, 0.035)], "{form}");
        assert!(record.dates().is_some(), "{form}");
        assert!(looks_like_prices(form.as_bytes()), "{form}");
    }
    // Of a query there are no names, in a table as in a text.
    let query = format!(
        "{rule}\n{title}+---+---+\n|  {}|  0.035  |\n|  {}|  0.034  |\n",
        late[4].1, early[4].1
    );
    assert_eq!(steps(&record(&query)), [(0, 0.034), (4 * 3_600, 0.035)]);
    // Each key of an entry that is not needed may be missing; a flaw is on the line of its entry.
    for key in ["AvailabilityZone", "InstanceType", "ProductDescription"] {
        let without = |text: &str| {
            let lines = text.lines().filter(|line| !line.contains(key));
            lines.map(|line| format!("{line}\n")).collect::<String>()
        };
        let yaml = format!("SpotPriceHistory:\n{}", without(&yaml.replace("- A", "-\n  A")));
        assert_eq!(steps(&record(&yaml)), [(0, 0.034), (4 * 3_600, 0.035)], "{yaml}");
    }
    let error =
        read(&format!("SpotPriceHistory:\n{}", yaml.replace("0.034000", "dear"))).unwrap_err();
    assert!(error.contains("line 7") && error.contains("'dear' is not a price"), "{error}");
    let error = read(&table.replace("0.034000", "dear")).unwrap_err();
    assert!(error.contains("line 7") && error.contains("'dear' is not a price"), "{error}");
    let wrong = format!("[{}, {}]", pages[0], pages[1].replace("0.034000", "dear"));
    assert!(read(&wrong).unwrap_err().contains("'dear' is not a price"));
}
