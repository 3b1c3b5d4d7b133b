//! Tests of files of lifetimes in every form, each with the VMs that it contains.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::io::Cursor;

use dormouse_input::{FileFlaw, FlawedRow, Source};

use super::*;
use crate::read::MOST_ROWS;

const HEAD: &str = "machine_type,zone,workload,end_event,lifetime_s,hr_of_day,insert_time\n";

fn read_as(text: &str, query: &LifeQuery) -> Result<Record, FileFlaw> {
    let source = Source::new(Cursor::new(text.as_bytes().to_vec())).unwrap();
    read_lifetimes(source, query)
}

fn plain(text: &str) -> Record {
    read_as(text, &LifeQuery::default()).unwrap()
}

fn error(text: &str) -> String {
    read_as(text, &LifeQuery::default()).unwrap_err().to_string()
}

fn skipping() -> LifeQuery {
    LifeQuery { skips_malformed: true, ..LifeQuery::default() }
}

fn rows(rows: &str) -> Record {
    plain(&format!("{HEAD}{rows}"))
}

/// Seconds of each VM, and whether it was preempted.
fn lives(record: &Record) -> Vec<(f64, bool)> {
    record.lives.iter().map(|life| (life.span.as_secs_f64(), life.was_taken)).collect()
}

#[test]
fn rows_are_read_by_the_names_of_their_columns() {
    let record =
        rows("a,z,idle,preempted,36.5,0,t1\r\n,,,stop, 7200 ,,\n\n\"b,\",z,x,stop,1e3,23,t2\n");
    let of = |n: usize| {
        let RecordedLife { span, was_taken, kind, hour, .. } = &record.lives[n];
        (span.as_micros(), *was_taken, kind.as_str(), hour.as_str())
    };
    assert_eq!(record.lives.len(), 3);
    assert_eq!(of(0), (36_500_000, true, "a", "0"));
    assert_eq!(of(1), (7_200_000_000, false, "", ""));
    assert_eq!(of(2), (1_000_000_000, false, "b,", "23"));
    assert_eq!(record.remarks, Vec::<String>::new());
    let least = plain("\u{feff}end_event,lifetime_s\nstop,1\nstop,1\n");
    assert_eq!((least.lives.len(), least.repeated), (2, 0));
}

#[test]
fn the_same_launch_twice_is_one_vm() {
    let twice = rows("a,z,i,stop,5,1,t1\na,z,i,stop,6,1,t1\na,z,i,stop,5,1,t1\n");
    assert_eq!((twice.lives.len(), twice.repeated), (2, 1));
    // Without a time of launch, two equal rows may be two VMs.
    let alike = rows("a,z,i,stop,5,1,\na,z,i,stop,5,1,\n");
    assert_eq!((alike.lives.len(), alike.repeated), (2, 0));
}

#[test]
fn what_is_no_life_is_refused_or_left_out() {
    for (row, words) in [
        ("a,z,i,preempted,0,1,t", "'0' is not a lifetime"),
        ("a,z,i,preempted,-3,1,t", "'-3' is not a lifetime"),
        ("a,z,i,preempted,nan,1,t", "'nan' is not a lifetime"),
        ("a,z,i,preempted,inf,1,t", "'inf' is not a lifetime"),
        ("a,z,i,preempted,1e300,1,t", "'1e300' is not a lifetime"),
        ("a,z,i,preempted,,1,t", "'' is not a lifetime"),
        ("a,z,i,died,3,1,t", "'died' is not a known end of a VM"),
        ("a,z,i,preempted,3,24,t", "'24' is not an hour"),
        ("a,z,i,preempted,3", "it has 5 columns, and the first row names 7"),
        ("\u{1}\u{2}", "it has 1 columns"),
    ] {
        let text = format!("{HEAD}a,z,i,stop,5,1,t1\n{row}\n");
        let Err(FileFlaw::Row(flaw)) = read_as(&text, &LifeQuery::default()) else {
            panic!("{row}")
        };
        let FlawedRow { line, row: whole, what, .. } = &flaw;
        assert!(*line == 3 && whole == row && what.contains(words), "{flaw}");
        let record = read_as(&text, &skipping()).unwrap();
        assert_eq!((record.lives.len(), record.unusable.as_slice()), (1, &[flaw][..]));
    }
    for (text, column) in
        [("", "lifetime_s"), ("a,b\n1,2\n", "lifetime_s"), ("lifetime_s\n5\n", "end_event")]
    {
        let error = read_as(text, &skipping()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line 1: there is no column '{column}'")), "{error}");
    }
    let many = format!("end_event,lifetime_s\n{}", "stop,1\n".repeat(MOST_ROWS + 1));
    assert!(error(&many).contains("more than 100000 rows"));
    assert!(error("\u{0}ELF\n").contains("not text in UTF-8"));
}

#[test]
fn headings_separators_and_units_are_told() {
    for (text, remark) in [
        ("\u{feff}lifetime_s,end_event\n7200,preempted\n3600.5,stop\n", None),
        ("Lifetime_s,End_Event\n7200,Preempted\n3600.5,Stop\n", None),
        ("lifetime_s;end_event\r\n7200,0;preempted\r\n3600,5;stop\r\n", None),
        ("lifetime_s\tend_event\n7200\tPREEMPTED\n3600.5\tstopped\n", None),
        (
            "lifetime_min,preempted\n120,true\n60.0083333333,false\n",
            Some("'lifetime_min' in minutes"),
        ),
        (
            "uptime (h),preempted\n2,1\n1.0001388889,0\n",
            Some("lifetimes are 'uptime (h)' in hours, ends are 'preempted'"),
        ),
        ("hours,preempted\n2,1\n1.0001388889,0\n", Some("lifetimes are 'hours' in hours")),
        ("time_in_sec,evicted\n7200,yes\n3600.5,no\n", Some("'time_in_sec' in seconds")),
    ] {
        let record = plain(text);
        let near = |(s, taken): (f64, bool)| ((s * 100.0).round() / 100.0, taken);
        let found: Vec<_> = lives(&record).into_iter().map(near).collect();
        assert_eq!(found, [(7_200.0, true), (3_600.5, false)], "{text}");
        let said = record.remarks.join("; ");
        assert!(remark.map_or(said.is_empty(), |words| said.contains(words)), "{said}");
        assert!(looks_like_lifetimes(text.as_bytes()), "{text}");
    }
    let error = error("lifetime,end_event\n5,stop\n");
    assert!(error.contains("its column 'lifetime' says no unit; say it: --unit"), "{error}");
    for text in ["a,b\n", "time,price\n1,2\n", "5\n6\n", "", "{\"SpotPriceHistory\": []}", "[1]"] {
        assert!(!looks_like_lifetimes(text.as_bytes()), "{text}");
    }
}

/// A file with the columns created and deleted, a rounded lifetime in hours, and a boolean for preemption.
const LIVES: &str = "instance_id,machine_type,zone,created,deleted,lifetime_hours,preempted\n\
    a1,n1-standard-2,us-east1-b,2019-03-25T12:22:36-07:00,2019-03-25T13:09:53-07:00,0.79,true\n\
    a2,n1-standard-2,us-east1-b,2019-03-25T12:22:36-07:00,2019-03-26T12:22:36-07:00,24.0,false\n";

#[test]
fn columns_units_and_ends_can_be_chosen() {
    let both = plain(LIVES);
    assert_eq!(lives(&both), [(2_844.0, true), (86_400.0, false)]);
    assert_eq!(both.lives[0].kind, "n1-standard-2");
    // Without a lifetime it is from the launch to the end.
    let by_times = LIVES.replace("lifetime_hours", "x");
    assert_eq!(lives(&plain(&by_times)), [(2_837.0, true), (86_400.0, false)]);
    let query = |columns: &str, unit: Unit, end: &str| LifeQuery {
        columns: columns.parse().unwrap(),
        unit: Some(unit),
        end: Some(end.parse().unwrap()),
        ..LifeQuery::default()
    };
    let own = "how long,why\n30,outbid\n45,user\n";
    let chosen = read_as(own, &query("lifetime=how long", Unit::Minute, "why=outbid")).unwrap();
    assert_eq!(lives(&chosen), [(1_800.0, true), (2_700.0, false)]);
    let days = "a;b;c\n0,5;1;x\n2;2,5;y\n";
    let chosen = read_as(days, &query("created=a,deleted=b", Unit::Day, "c=x")).unwrap();
    assert_eq!(lives(&chosen), [(43_200.0, true), (43_200.0, false)]);
    let days = "start,end,c\n0.5,1,x\n2,2.5,y\n";
    let chosen = read_as(days, &query("created=start", Unit::Day, "c=x")).unwrap();
    assert_eq!(lives(&chosen), [(43_200.0, true), (43_200.0, false)]);
    let error = read_as(own, &query("lifetime=age", Unit::Day, "why=x")).unwrap_err().to_string();
    assert!(error.contains("it has no column 'age'; it has 'how long', 'why'"), "{error}");
}

#[test]
fn times_are_of_one_kind_and_milliseconds_are_not_taken_for_seconds() {
    let head = "created,deleted,preempted\n";
    let said = error(&format!("{head}1553541756123,1553541766123,true\n"));
    assert!(said.contains("these are milliseconds: divide by 1000"), "{said}");
    let mixed = format!("{head}0,60,true\n2024-01-01 00:00:00,2024-01-01 02:00:00,true\n");
    let said = error(&mixed);
    assert!(said.starts_with("line 3: the file has both dates and bare numbers"), "{said}");
    let living = error(&mixed.replace(",2024-01-01 02:00:00,true", ",,false"));
    assert!(living.contains("both dates and bare numbers"), "{living}");
    let by_heading = plain("lifetime_ms,preempted\n1500,yes\n");
    assert_eq!(lives(&by_heading), [(1.5, true)]);
    let unit = LifeQuery { unit: Some(Unit::Millisecond), ..LifeQuery::default() };
    let told = read_as(&format!("{head}1553541756123,1553541766123,true\n"), &unit).unwrap();
    assert_eq!(lives(&told), [(10.0, true)]);
}

#[test]
fn a_vm_that_has_not_ended_lived_until_the_last_time_of_the_file() {
    let text = "launched,terminated,interrupted\n2024-01-01 00:00:00,2024-01-01 02:00:00.5,true\n\
                2024-01-01 01:00:00,,\n2024-01-01 03:00:00,NULL,\n2024-01-01 02:00:00,2024-01-01 02:30:00,false\n";
    let record = plain(text);
    assert_eq!(lives(&record), [(7_200.5, true), (7_200.0, false), (1_800.0, false)]);
    let said = record.to_string();
    for words in [
        "3 VMs, 1 preempted",
        "1 launched at the end of the record, and living (line 4)",
        "lifetimes are from 'launched' to 'terminated', ends are 'interrupted'",
        "1 of them had not ended: their ages are of the file's last time",
    ] {
        assert!(said.contains(words), "{said}");
    }
    let turned = "created,deleted,preempted\n5,3,1\n";
    assert!(error(turned).contains("'3' is not later than '5'"));
    let mixed = "created,deleted,preempted\n2024-01-01 00:00:00,3,1\n";
    assert!(error(mixed).contains("is a date, and the other a number"));
}

#[test]
fn lifetimes_alone_are_of_preempted_vms_where_nothing_else_is_asked() {
    let query = LifeQuery { may_lack_ends: true, ..LifeQuery::default() };
    for text in ["60\n0\n3600.5\n", "lifetime_s\n60\n0\n3600.5\n", "seconds\n60\n\n0\n3600.5\n"] {
        let record = read_as(text, &query).unwrap();
        assert_eq!(lives(&record), [(60.0, true), (0.0, true), (3_600.5, true)], "{text}");
        assert_eq!(record.remarks, Vec::<String>::new());
    }
    let hours = read_as("lifetime_h\n2\n", &query).unwrap();
    assert_eq!(lives(&hours), [(7_200.0, true)]);
    let two = read_as("machine_type,lifetime_s\na,5\n", &query).unwrap();
    assert!(two.remarks[0].contains("all are taken to be ends by preemption"), "{two}");
    let bad = read_as("60\nsoon\n", &query).unwrap_err().to_string();
    assert!(bad.starts_with("line 2: 'soon' is not a lifetime; write seconds"), "{bad}");
}

#[test]
fn the_json_of_googles_vms_is_read_as_it_is() {
    let vm = |name: &str, end: &str, more: &str| {
        format!(
            "\"{name}\": {{\"instance_data\": {{\"NAME\": \"{name}\", \"ZONE\": \"zones/us-east1-b\", \
             \"MACHINE_TYPE\": \"n1-highcpu-16\"}}, \"time_in_sec\": 2836.621, \"insert\": {{}}{end}, \
             \"day_of_week\": \"Monday\", \"hr_of_day\": 13, \"idle_vs_nonidle\": \"idle\"{more}}}"
        )
    };
    let (stop, taken) = (", \"stop\": {}", ", \"compute.instances.preempted\": {\"id\": \"1\"}");
    let both = format!("{stop}{taken}");
    let all = [vm("a", taken, ""), vm("b", stop, ""), vm("c", &both, ""), vm("d", "", "")];
    let text = format!("{{{}}}", all.join(",\n "));
    let record = plain(&text);
    assert!(looks_like_lifetimes(text.as_bytes()));
    let taken: Vec<_> = record.lives.iter().map(|life| life.was_taken).collect();
    assert_eq!(taken, [true, false, true, false]);
    let RecordedLife { span, kind, zone, workload, hour, .. } = &record.lives[0];
    assert_eq!(span.as_micros(), 2_836_621_000);
    assert_eq!([kind, zone, workload, hour], ["n1-highcpu-16", "us-east1-b", "idle", "13"]);
    let said = record.to_string();
    assert!(said.contains("1 of them were both stopped and preempted"), "{said}");
    assert!(said.contains("1 of them have no end"), "{said}");
    let none = error("{\"a\": {\"time_in_sec\": 5},\n\"b\": {\"x\": 1}}");
    assert!(none.contains("line 2: b: it is not a VM with a lifetime"), "{none}");
    assert!(error("[{\"time_in_sec\": 5}]").contains("it is a JSON list"));
}

/// The column `hr_of_day` of the authors' record is the hour of the VM's end in California; the launch was at another
/// hour.
#[test]
fn the_hour_is_that_of_the_launch_by_the_clock_of_the_zone() {
    let record = rows(
        "a,us-central1-c,non-idle,preempted,88810.972,14,2019-03-25T13:37:33.863-07:00\n\
         a,us-east1-b,non-idle,preempted,60,21,2019-03-25T21:30:00-07:00\n\
         a,us-west1-a,non-idle,preempted,60,21,2019-03-25T21:30:00-07:00\n\
         a,us-east1-b,non-idle,preempted,60,7,t1\n\
         a,us-east1-b,non-idle,preempted,60,,2019-03-25T21:30:00-07:00\n",
    );
    let when: Vec<_> = record.lives.iter().map(|l| (l.hour.as_str(), l.day.as_str())).collect();
    let tuesday = ("0", "Tuesday");
    assert_eq!(when, [("15", "Monday"), tuesday, ("21", "Monday"), ("7", ""), tuesday]);
    assert_eq!(record.other_hours, 2);
    assert!(record.to_string().contains("2 of them were launched in another hour"), "{record}");
    let json = "{\"a\": {\"instance_data\": {\"ZONE\": \"us-east1-b\", \"MACHINE_TYPE\": \"m\"}, \
                \"time_in_sec\": 60, \"insert\": {\"insertTime\": \"2019-03-25T21:30:00-07:00\"}, \
                \"stop\": {}, \"hr_of_day\": 21}}";
    let record = plain(json);
    assert_eq!((record.lives[0].hour.as_str(), record.other_hours), ("0", 1));
}

#[test]
fn only_what_was_left_out_is_said() {
    let none = rows("a,z,i,stop,5,1,t1\na,z,i,preempted,6,1,t2\n").to_string();
    assert_eq!(none, "2 VMs, 1 preempted and 1 stopped by their users");
    let repeated = rows("a,z,i,stop,5,1,t1\na,z,i,stop,5,1,t1\n").to_string();
    let says =
        "1 VMs, 0 preempted and 1 stopped by their users; left out: 1 rows that repeat another";
    assert_eq!(repeated, says);
}
