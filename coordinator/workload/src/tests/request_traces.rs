//! Traces that others published, read as requests: small files with the columns of each trace, and expected values
//! computed by hand.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use dormouse_cloud::{InstanceType, Market, PlacementRule, Types, VmLimits};
use dormouse_units::{Bytes, Price};

use crate::{
    Offer, RequestFile, RequestFormat, RequestRules, RequestSource, RequestStream, RequestsWanted,
};

const GIB: u64 = 1 << 30;

/// Types of 1, 2, 4 and 32 vCPUs with 2, 8, 16 and 128 GiB; the last is not in the spot market.
fn offer() -> Arc<Offer> {
    let kind = |name: &str, vcpus: u32, gib: u64, spot: bool| InstanceType {
        name: name.into(),
        vcpus,
        memory: Bytes::new(gib * GIB),
        disk: Bytes::ZERO,
        mflops: 1_000,
        on_demand: Some(Price::from_nanos_per_hour(100_000_000 * u64::from(vcpus))),
        spot: spot.then(|| Price::from_nanos_per_hour(30_000_000 * u64::from(vcpus))),
        limits: VmLimits { spot: 100, on_demand: 100 },
        burstable: None,
    };
    let types = [
        kind("tiny", 1, 2, true),
        kind("small", 2, 8, true),
        kind("medium", 4, 16, true),
        kind("huge", 32, 128, false),
    ];
    let types: Types = types.into_iter().map(|kind| (kind.name.clone(), kind)).collect();
    Arc::new(Offer::new(&types, &[], &PlacementRule::default()))
}

/// A request in seconds: when it comes, its type, its market (`s` or `d`) and its duration.
type Wanted = (f64, &'static str, char, f64);

struct Got {
    format: RequestFormat,
    requests: Vec<(f64, String, char, f64)>,
    said: String,
}

/// Requests read from a file with this text by these rules; `table` is the content of the file `types.csv`.
fn got(text: &str, table: &'static str, rules: &RequestRules) -> Result<Got, String> {
    // The name says which content is meant: the opener is a function without a state.
    thread_local! {
        static FILES: std::cell::RefCell<BTreeMap<String, Vec<u8>>> = const { std::cell::RefCell::new(BTreeMap::new()) };
    }
    FILES.with_borrow_mut(|files| {
        files.insert("trace.csv".to_owned(), text.as_bytes().to_vec());
        files.insert("types.csv".to_owned(), table.as_bytes().to_vec());
    });
    let open = |path: &Path| -> io::Result<Box<dyn Read + Send>> {
        let bytes = FILES.with_borrow(|files| files.get(&path.display().to_string()).cloned());
        Ok(Box::new(Cursor::new(bytes.unwrap_or_default())))
    };
    let path = Path::new("trace.csv");
    let mut file =
        RequestFile::open(path, rules, Some(offer()), open).map_err(|e| e.to_string())?;
    let requests = file.by_ref().map(|request| {
        let (at, request) = request.map_err(|e| e.to_string())?;
        let market = if request.market == Market::Spot { 's' } else { 'd' };
        let kind = request.kind.as_str().to_owned();
        Ok((at.as_secs_f64(), kind, market, request.duration.as_secs_f64()))
    });
    let requests = requests.collect::<Result<_, String>>()?;
    Ok(Got { format: file.format(), requests, said: file.read().to_string() })
}

fn assert_got(got: &Got, format: RequestFormat, wanted: &[Wanted], said: &[&str]) {
    let own = |(at, kind, market, duration): &Wanted| (*at, (*kind).to_owned(), *market, *duration);
    let wanted: Vec<_> = wanted.iter().map(own).collect();
    assert_eq!((got.format, &got.requests), (format, &wanted), "{}", got.said);
    for part in said {
        assert!(got.said.contains(part), "'{part}' is not said: {}", got.said);
    }
    if said.is_empty() {
        assert!(!got.said.contains(';'), "{}", got.said);
    }
}

fn rules(change: impl FnOnce(&mut RequestRules)) -> RequestRules {
    let mut rules = RequestRules::default();
    change(&mut rules);
    rules
}

/// Rules for a trace whose largest machine has 32 vCPUs and 128 GiB.
fn of_machine() -> RequestRules {
    rules(|r| {
        (r.machine_vcpus, r.machine_memory) = (Some(32), Some(Bytes::new(128 * GIB)));
    })
}

/// Rows of Azure's VM table, out of order, with six VMs: one that began before the trace, one that ran until its end,
/// one never deleted, one with no duration, and one larger than every type.
const AZURE: &str = "\
vmA,subA,depA,600,4200,91.7,0.7,20.7,Delay-insensitive,2,4
vmB,subA,depA,0,900,50,10,40,Interactive,1,1.75
vmC,subB,depB,1200,1500,50,10,40,Unknown,>24,>64
vmD,subB,depC,300,8700,50,10,40,Unknown,4,32
vmE,subB,depC,900,900,50,10,40,Unknown,2,4
vmF,subC,depD,2400,,50,10,40,Unknown,>24,112
";

#[test]
fn the_azure_public_dataset_is_a_request_a_vm() {
    let found = got(AZURE, "", &RequestRules::default()).expect("read");
    let wanted = [
        (0.0, "tiny", 'd', 900.0),
        // 32 GiB are more than medium has.
        (300.0, "huge", 'd', 8_400.0),
        (600.0, "small", 'd', 3_600.0),
        (1_200.0, "huge", 'd', 300.0),
        // It ends with the trace, whose last moment is 8700 s.
        (2_400.0, "huge", 'd', 6_300.0),
    ];
    let said = [
        "left out: 1 without any duration (line 5)",
        "1 there before the trace began, and counted from its beginning (line 2)",
        "1 still there at the end of the trace, and counted until then (line 6)",
        "1 end with the trace itself",
    ];
    assert_got(&found, RequestFormat::AzureVms, &wanted, &said);
}

#[test]
fn sizes_can_be_mapped_and_those_that_fit_no_type_are_counted() {
    let more = "vmG,s,d,60,120,1,1,1,Unknown,64,256\nvmH,s,d,90,120,1,1,1,Unknown,2,4\n";
    let map = rules(|r| {
        r.types_map.insert("2/4".to_owned(), "medium".into());
    });
    let found = got(more, "", &map).expect("read");
    let said = [
        "left out: 1 of a size that no type for their market holds (line 1)",
        "first request: 90 s",
    ];
    assert_got(&found, RequestFormat::AzureVms, &[(0.0, "medium", 'd', 30.0)], &said);
    let kept = rules(|r| r.keep_times = true);
    let found = got(more, "", &kept).expect("read");
    assert_eq!(found.requests, [(90.0, "small".to_owned(), 'd', 30.0)]);
    // With a heading it is a table like any other.
    let heading = "vmid,subscriptionid,deploymentid,vmcreated,vmdeleted,maxcpu,avgcpu,p95maxcpu,\
                   vmcategory,vmcorecountbucket,vmmemorybucket\n";
    let found = got(&format!("{heading}{more}"), "", &map).expect("read");
    assert_got(&found, RequestFormat::Table, &[(0.0, "medium", 'd', 30.0)], &said[1..]);
    for (row, says) in [
        (
            "vmI,s,d,60,120,1,1,1,Unknown,2\n",
            "line 3: 'vmI,s,d,60,120,1,1,1,Unknown,2' has 10 cells, not 11",
        ),
        ("vmI,s,d,soon,120,1,1,1,Unknown,2,4\n", "line 3: its beginning, 'soon', is not a time"),
        (
            "vmI,s,d,60,120,1,1,1,Unknown,two,4\n",
            "line 3: its number of vCPUs, 'two', is not a number",
        ),
    ] {
        let error = got(&format!("{more}{row}"), "", &map).err().expect(row);
        assert!(error.starts_with("trace.csv, ") && error.contains(says), "{error}");
    }
}

/// Rows of Azure's packing trace, with times in days: a VM that began before the trace, one with low priority, one
/// without an end, and one that ended before the trace.
const PACKING: &str = "\
vmId,tenantId,vmTypeId,priority,starttime,endtime
1,7,10,0,-1.5,0.25
2,7,11,1,0.5,0.75
3,8,10,0,0.25,NULL
4,8,11,0,-3,-1
5,8,12,0,1,1.125
";

/// Table of VM types of Azure's packing trace; type 10 takes an eighth of the smaller machine, and a sixteenth of the
/// largest.
const PACKING_TYPES: &str = "\
id,vmTypeId,machineId,core,memory,hdd,ssd,nic
0,10,0,0.125,0.125,,0.1,0.1
1,10,1,0.0625,0.0625,,0.1,0.1
2,11,1,0.03125,0.015625,,0.1,0.1
3,12,1,2,2,,0.1,0.1
";

#[test]
fn the_azure_trace_for_packing_has_days_priorities_and_types_of_its_own() {
    let with_table = RequestRules { types: Some("types.csv".into()), ..of_machine() };
    let found = got(PACKING, PACKING_TYPES, &with_table).expect("read");
    // The trace ends with the VM that fits no type, after 1.125 days.
    let end = 1.125 * 86_400.0;
    let wanted = [
        // A sixteenth of 32 vCPUs and 128 GiB: 2 vCPUs and 8 GiB.
        (0.0, "small", 'd', 21_600.0),
        (21_600.0, "small", 'd', end - 21_600.0),
        // 1 vCPU and 2 GiB.
        (43_200.0, "tiny", 's', 21_600.0),
    ];
    let said = [
        "1 of a size that no type for their market holds (line 6)",
        "1 that ended before the trace began (line 5)",
        "1 still there at the end",
        "1 there before",
    ];
    assert_got(&found, RequestFormat::AzurePacking, &wanted, &said);
    let map = rules(|r| {
        for (own, kind) in [("10", "medium"), ("11", "tiny"), ("12", "huge")] {
            r.types_map.insert(own.to_owned(), kind.into());
        }
    });
    let found = got(PACKING, "", &map).expect("read");
    let wanted = [
        (0.0, "medium", 'd', 21_600.0),
        (21_600.0, "medium", 'd', end - 21_600.0),
        (43_200.0, "tiny", 's', 21_600.0),
        (86_400.0, "huge", 'd', 10_800.0),
    ];
    assert_got(&found, RequestFormat::AzurePacking, &wanted, &said[1..]);
    let error = got(PACKING, "", &RequestRules::default()).err().expect("numbers are no types");
    assert!(error.contains("its types are numbers") && error.contains("types = \"vmType.csv\""));
    let some = rules(|r| {
        r.types_map.insert("10".to_owned(), "tiny".into());
    });
    let error = got(PACKING, "", &some).err().expect("11 is not mapped");
    assert!(error.contains("line 3: there is no instance type '11'"), "{error}");
    assert!(error.contains("types-map = { \"11\" = \"TYPE\" }"), "{error}");
}

/// Events of Google's trace of 2019 with five instances: one evicted and scheduled again, one that began before the
/// trace, one that does not end, one inside an alloc instance, and one killed while it waits. Sizes are parts of 32
/// vCPUs and 128 GiB.
const EVENTS_2019: &str = "\
time,type,collection_id,priority,alloc_collection_id,instance_index,machine_id,resource_request_cpus,resource_request_memory
0,3,900,200,0,0,1,0.03125,0.015625
600000000,0,901,103,0,0,,0.0625,0.0625
610000000,3,901,103,0,0,5,0.0625,0.0625
620000000,SCHEDULE,901,103,0,1,5,0.125,0.125
630000000,3,902,360,903,0,6,0.01,0.01
640000000,4,901,103,0,0,5,0.0625,0.0625
650000000,3,901,103,0,0,7,0.0625,0.0625
655000000,10,901,103,0,0,7,0.0625,0.09
660000000,0,904,25,0,0,,0.5,0.5
670000000,7,904,25,0,0,,0.5,0.5
680000000.,,,,,,,,
";

/// Events of Google's trace of 2019 without the last row, which is broken, and with the ends of the running instances.
fn events_2019() -> String {
    let whole = EVENTS_2019.lines().filter(|line| !line.contains("680000000."));
    let ends = "700000000,6,901,103,0,0,7,0.0625,0.0625\n710000000,5,900,200,0,0,1,,\n";
    whole.map(|line| format!("{line}\n")).collect::<String>() + ends
}

#[test]
fn googles_events_of_2019_are_a_request_from_schedule_to_end() {
    let wanted = [
        (0.0, "tiny", 'd', 710.0),
        (610.0, "small", 's', 30.0),
        (620.0, "medium", 's', 90.0),
        (650.0, "small", 's', 50.0),
    ];
    let said = [
        "left out: 1 inside an alloc instance, which has a request of its own (line 6)",
        "1 resized while they ran, and counted as they began (line 9)",
        "1 still there at the end of the trace, and counted until then (line 5)",
        "1 there before the trace began, and counted from its beginning (line 2)",
    ];
    let csv = events_2019();
    let found = got(&csv, "", &of_machine()).expect("read");
    assert_got(&found, RequestFormat::Google2019, &wanted, &said);
    // The same as BigQuery writes it: numbers in quotes, the request an object.
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heading = rows.next().expect("a heading");
    let json = rows.map(|row| {
        let pairs = heading.iter().zip(&row).filter(|(key, _)| !key.starts_with("resource"));
        let pairs: Vec<_> = pairs.map(|(key, cell)| format!("\"{key}\":\"{cell}\"")).collect();
        let request = match row[7] {
            "" => "null".to_owned(),
            cpus => format!("{{\"cpus\":{cpus},\"memory\":{}}}", row[8]),
        };
        format!("{{{},\"resource_request\":{request}}}\n", pairs.join(","))
    });
    let json: String = json.collect();
    let found = got(&json, "", &of_machine()).expect("read");
    let said = said.map(|said| said.replace("line 6", "line 5").replace("line 9", "line 8"));
    let first = [said[0].as_str(), said[1].as_str()];
    assert_got(&found, RequestFormat::Google2019Json, &wanted, &first);
    // Best effort ends at 115 unless it is said; 102 leaves nothing in the spot market.
    let none = RequestRules { spot_priority: Some(102), ..of_machine() };
    assert!(got(&csv, "", &none).expect("read").requests.iter().all(|request| request.2 == 'd'));
}

#[test]
fn flaws_of_events_are_named_with_their_lines() {
    for (text, rules, says) in [
        (
            EVENTS_2019.to_owned(),
            of_machine(),
            "line 12: its time, '680000000.', is not a number of",
        ),
        (
            events_2019(),
            RequestRules::default(),
            "trace.csv: its sizes are shares of the largest machine, whose size is not given; \
             give its size, such as machine-vcpus = 64",
        ),
        (
            events_2019() + "5,0,901,103,0,0,7,,\n",
            of_machine(),
            "line 14: its time, 5, is before that of the event above it, 710000000; sort the events by time",
        ),
        (
            events_2019() + "800000000,JUMP,1,1,0,0,,,\n",
            of_machine(),
            "'JUMP' is not the type of an event",
        ),
        (
            "{\"time\":\"5\",\"collection_id\":\"1\",\"type\":\"3\"}\n".to_owned(),
            of_machine(),
            "line 1: its instance_index, '', is not a whole number",
        ),
        ("{\"a\":1}\n".to_owned(), of_machine(), "is JSON, but not an event of an instance"),
        (
            "time,type,collection_id,instance_index\n5,0,1,1\n".to_owned(),
            of_machine(),
            "trace.csv has no requests",
        ),
    ] {
        let error = got(&text, "", &rules).err().expect(says);
        assert!(error.contains(says), "{error}\n{says}");
        assert!(!error.contains('\n') && error.starts_with("trace.csv"), "{error}");
    }
}

/// Events of Google's trace of 2011 with six tasks: a free one that is evicted, one of production, one that is lost,
/// one that does not end, one that began in an earlier part of the trace, and one killed while it waits.
const EVENTS_2011: &str = "\
600000000,,3418309,0,4155527081,0,user,3,0,0.03125,0.01,0.0001,0
601000000,,3418309,0,4155527081,1,user,3,0,0.03125,0.01,0.0001,0
602000000,,3418314,0,3938719206,1,user,3,9,0.0625,0.03,0.0001,0
602500000,,3418314,1,,1,user,3,9,,,,0
603000000,2,3418319,0,351618647,1,user,0,8,0.125,0.125,0.0001,0
604000000,,3418320,0,431052910,1,user,0,1,0.125,0.125,0.0001,1
631000000,,3418309,0,4155527081,2,user,3,0,0.03125,0.01,0.0001,0
632000000,,3418300,5,4155527081,4,user,3,0,0.03125,0.01,0.0001,0
633000000,,3418300,6,,5,user,3,0,0.03125,0.01,0.0001,0
652000000,,3418314,0,3938719206,4,user,3,9,0.0625,0.03,0.0001,0
703000000,,3418319,0,351618647,6,user,0,8,0.125,0.125,0.0001,0
";

#[test]
fn googles_events_of_2011_have_no_heading() {
    let wanted = [
        (0.0, "tiny", 's', 30.0),
        (1.0, "small", 'd', 50.0),
        (2.0, "medium", 'd', 100.0),
        (3.0, "medium", 's', 99.0),
    ];
    let said = [
        "1 without a resource request (line 4)",
        "1 whose beginning is not in the file (line 8)",
        "1 still there at the end of the trace, and counted until then (line 6)",
        "times count from the first request: 601 s of the file",
    ];
    let found = got(EVENTS_2011, "", &of_machine()).expect("read");
    assert_got(&found, RequestFormat::Google2011, &wanted, &said);
    let heading = "#Time stamp (microseconds),Missing info,jobID,Task index,machine ID,Event type \
                   (0-SUBMIT 1-SCHEDULE),username,Scheduling class,Priority,CPU cores (%),RAM (%),disk \
                   (%),different-machine constraint\n";
    let found = got(&format!("{heading}{EVENTS_2011}"), "", &of_machine()).expect("read");
    assert_got(&found, RequestFormat::Google2011, &wanted, &said[3..]);
}

#[test]
fn our_columns_may_stand_in_any_order() {
    let own = [(0.0, "small", 's', 60.0), (5.0, "tiny", 'd', 120.0)];
    for text in [
        "duration,market,at,type\n60,spot,0,small\n2m,normal,5,tiny\n",
        "At;Type;Market;Duration;note\n0;small;spot;60,0;x\n5,0;tiny;on-demand;120;y\n",
        "\u{feff}at\tinstance_type\tpreemptible\tduration\r\n0\tsmall\ttrue\t1m\r\n5\ttiny\tfalse\t2m\r\n",
    ] {
        let found = got(text, "", &RequestRules::default()).expect(text);
        assert_got(&found, RequestFormat::Own, &own, &[]);
    }
    // Without a market all are in the on-demand market; names of others are mapped.
    let map = rules(|r| {
        r.types_map.insert("Standard_D2".to_owned(), "small".into());
    });
    let found = got("at,type,duration\n3,Standard_D2,60\n", "", &map).expect("read");
    assert_got(&found, RequestFormat::Own, &[(3.0, "small", 'd', 60.0)], &[]);
}

#[test]
fn tables_of_vms_have_other_names_for_their_columns() {
    let text = "created,deleted,vm_type,is_spot\n\
                2020-03-01T10:00:00Z,2020-03-01T10:30:00Z,small,yes\n\
                2020-03-01 09:00:00,2020-03-01 11:00:00,tiny,no\n";
    let wanted = [(0.0, "tiny", 'd', 7_200.0), (3_600.0, "small", 's', 1_800.0)];
    let said = ["times count from the first request: 2020-03-01 09:00:00, UTC"];
    let found = got(text, "", &RequestRules::default()).expect("read");
    assert_got(&found, RequestFormat::Table, &wanted, &said);
    let sizes = "start_h,lifetime_h,vcpus,memory_gb\n1.5,0.5,2,8\n1,2,1,1\n";
    let wanted = [(0.0, "tiny", 'd', 7_200.0), (1_800.0, "small", 'd', 1_800.0)];
    let found = got(sizes, "", &RequestRules::default()).expect("read");
    assert_got(&found, RequestFormat::Table, &wanted, &["first request: 3600 s of the file"]);
    let named = "begun,took,what\n10,20,tiny\n5,6,small\n";
    let columns = rules(|r| {
        for (name, heading) in [("at", "begun"), ("duration", "took"), ("type", "what")] {
            r.columns.insert(name.to_owned(), heading.to_owned());
        }
    });
    let found = got(named, "", &columns).expect("read");
    let wanted = [(0.0, "small", 'd', 6.0), (5.0, "tiny", 'd', 20.0)];
    assert_got(&found, RequestFormat::Table, &wanted, &["first request: 5 s"]);
    let error = got(named, "", &RequestRules::default()).err().expect("unknown names");
    assert!(error.contains("line 1: 'begun,took,what' is not the header of requests"), "{error}");
    let backwards = "start,end,type\n10,20,tiny\n50,40,tiny\n";
    let found = got(backwards, "", &RequestRules::default()).expect("read");
    assert!(
        found.said.contains("left out: 1 that end before they begin (line 3)"),
        "{}",
        found.said
    );
}

proptest::proptest! {
    /// Random text after the first rows of a trace is read, or refused with a message of one line.
    #[test]
    fn no_rows_upset_the_readers(
        which in 0_usize..5,
        rows in "([-0-9.,a-zE>:\"{}]{0,40}(,[-0-9.>]{0,19}){0,13}\n){0,6}",
    ) {
        let starts = [AZURE, PACKING, EVENTS_2011, "start,end,vcpus,memory\n0,1,1,1\n", "at,duration,type\n"];
        let map = RequestRules {
            types_map: [("10", "tiny"), ("11", "tiny"), ("12", "huge")]
                .map(|(own, kind)| (own.to_owned(), kind.into())).into(),
            ..of_machine()
        };
        if let Err(error) = got(&format!("{}{rows}", starts[which]), "", &map) {
            proptest::prop_assert!(error.starts_with("trace.csv") && !error.contains('\n'), "{error}");
        }
        let _ = got(&rows, "", &map);
    }
}

/// A stream from a file reports on the reading, and a source keeps its rules when it is written as JSON.
#[test]
fn rules_are_kept_with_the_source() {
    let source = RequestSource::Csv { csv: "azure".into(), rules: Box::new(of_machine()) };
    let json = serde_json::to_string(&source).expect("JSON");
    assert_eq!(serde_json::from_str::<RequestSource>(&json).expect("the same"), source);
    let plain = RequestSource::Csv { csv: "azure".into(), rules: Box::default() };
    let json = serde_json::to_string(&plain).expect("JSON");
    assert_eq!(json, r#"{"source":"csv","csv":"azure"}"#);
    let open = |_: &Path| -> io::Result<Box<dyn Read + Send>> { Ok(Box::new(AZURE.as_bytes())) };
    let wanted = RequestsWanted { source: &plain, offer: None, seed: 1, open };
    let mut stream = RequestStream::open(&wanted).expect("opened");
    let all: Vec<_> = stream.by_ref().collect::<Result<_, _>>().expect("read");
    // Without an offer a size stands for a type.
    assert_eq!(all[0].1.kind.as_str(), "1 vCPUs 1.75 GiB");
    let read = stream.read().expect("of a file");
    assert_eq!((all.len(), read.left_out.total(), read.changed.total()), (5, 1, 2));
}
