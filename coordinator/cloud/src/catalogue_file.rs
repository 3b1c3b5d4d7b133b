//! Reader of catalogues of instance types: tables, and responses of the provider's API.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_input::{Chosen, ColumnPlaces, FileFlaw, LeftOut, Row, Rows, Source, WantedColumn};
use dormouse_units::{Bytes, Credits, Ppm, Price, TypeName, ZoneName};
use serde::Deserialize;

use crate::catalogue_json::UnpricedList;
use crate::{BurstableTerms, InstanceType, Types, VmLimits, built_in};

/// Longest JSON file that is read, in bytes.
const LONGEST: u64 = 256 << 20;
/// The built-in catalogue that supplies what an API response lacks: prices and burst rules.
const KNOWN: &str = "ec2-2026";
/// Default limit of VMs of a type at a time in each market.
pub(crate) const LIMIT: u32 = 1_000;
/// Greatest memory in GiB that a number without a unit may mean; above, another unit was meant.
const MOST_GIB: f64 = 32_768.0;

const COLUMNS: [WantedColumn; 13] = [
    WantedColumn {
        name: "name",
        known_as: &["name", "type", "instance type", "api name", "machine type"],
        is_needed: true,
    },
    WantedColumn { name: "vcpus", known_as: &["vcpus", "vcpu", "cpus", "cores"], is_needed: true },
    WantedColumn {
        name: "memory",
        known_as: &[
            "memory",
            "memory gib",
            "ram gb",
            "ram",
            "memory gb",
            "memory mib",
            "memory mb",
            "ram mib",
            "ram mb",
        ],
        is_needed: true,
    },
    WantedColumn {
        name: "on-demand",
        known_as: &["on demand", "on demand price", "on demand usd per hour", "price"],
        is_needed: false,
    },
    WantedColumn {
        name: "spot",
        known_as: &["spot", "spot price", "spot usd per hour", "typical spot usd"],
        is_needed: false,
    },
    WantedColumn {
        name: "baseline",
        known_as: &["baseline", "baseline per vcpu"],
        is_needed: false,
    },
    WantedColumn {
        name: "credits-per-hour",
        known_as: &["credits per hour", "cpu credits per hour"],
        is_needed: false,
    },
    WantedColumn {
        name: "most-credits",
        known_as: &["most credits", "max credits"],
        is_needed: false,
    },
    WantedColumn {
        name: "initial-credits",
        known_as: &["initial credits", "launch credits"],
        is_needed: false,
    },
    WantedColumn { name: "surplus-price", known_as: &["surplus price"], is_needed: false },
    WantedColumn { name: "gflops", known_as: &["gflops"], is_needed: false },
    WantedColumn { name: "limit", known_as: &["limit", "quota"], is_needed: false },
    WantedColumn { name: "zone", known_as: &["availability zone", "zone", "az"], is_needed: false },
];

/// Content of a catalogue file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogueFile {
    /// The instance types of the file, by name.
    pub types: Types,
    /// Instance types of the file that were left out, by reason.
    pub left_out: LeftOut,
    /// Format of the file, in words.
    pub form: &'static str,
    /// Columns that were found with their headings, as text; empty if none was.
    pub columns: String,
    /// Headings of unused columns.
    pub unused: Vec<String>,
}

/// The fields that are used of an entry in a response of `describe-instance-types`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DescribedType {
    instance_type: String,
    v_cpu_info: VCpuInfo,
    memory_info: MemoryInfo,
    #[serde(default)]
    supported_usage_classes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct VCpuInfo {
    #[serde(rename = "DefaultVCpus")]
    default_vcpus: u32,
}

#[derive(Deserialize)]
struct MemoryInfo {
    #[serde(rename = "SizeInMiB")]
    size_in_mib: u64,
}

/// Layouts in which a response of `describe-instance-types` may be stored.
#[derive(Deserialize)]
#[serde(untagged)]
enum TypesResponse {
    Whole {
        #[serde(rename = "InstanceTypes")]
        instance_types: Vec<DescribedType>,
    },
    List(Vec<DescribedType>),
    One(DescribedType),
}

/// True if a file that begins with these bytes is a list of instance types in the JSON of Amazon, Google or Microsoft.
#[must_use]
pub fn is_described(begins: &[u8]) -> bool {
    let text = String::from_utf8_lossy(begins);
    let is_amazon = text.contains("\"InstanceType\"")
        && !text.contains("\"SpotPrice\"")
        && !text.contains("\"spot_advisor\"");
    is_amazon || UnpricedList::detect(&text).is_some()
}

/// True if this row is the heading of a table of instance types.
#[must_use]
pub fn are_types(first: &Row<'_>) -> bool {
    let columns = ColumnPlaces::from_heading(first, &COLUMNS, &Chosen::default());
    columns.is_ok_and(|columns| columns.is_some_and(|columns| columns.has_heading()))
}

/// Reads a catalogue: rows under a heading with `name`, `vcpus` and `memory` (GiB, or with a unit),
/// and prices in dollars an hour; with a column of zones each row is a type of its own,
/// `TYPE@ZONE`. The JSON of EC2's `describe-instance-types` is read too. It has no prices: prices
/// and burst rules come from the built-in catalogue `ec2-2026`, and types that this catalogue lacks
/// are left out. Lists of Google's and Microsoft's types in JSON give types without a price.
///
/// # Errors
///
/// The file can't be read, or the first entry that can't be used.
pub fn read_types(mut source: Source, chosen: &Chosen) -> Result<CatalogueFile, FileFlaw> {
    let read = match source.is_json()? {
        true => {
            let text = source.into_text(LONGEST)?;
            match UnpricedList::detect(&text) {
                Some(list) => list.read(&text)?,
                None => read_described(&text)?,
            }
        }
        false => read_rows(source, chosen)?,
    };
    if read.types.is_empty() {
        let what = match read.left_out.is_empty() {
            true => "it has no instance types".to_owned(),
            false => format!("none of its instance types can be used: {}", read.left_out),
        };
        return Err(FileFlaw::whole(what, "write rows like: name,vcpus,memory,on-demand,spot"));
    }
    Ok(read)
}

fn read_described(text: &str) -> Result<CatalogueFile, FileFlaw> {
    let answer: TypesResponse = serde_json::from_str(text).map_err(|_| {
        let what = "it is not an answer of the EC2 call describe-instance-types";
        let remedy = "make one with: aws ec2 describe-instance-types --output json";
        FileFlaw::whole(what, remedy)
    })?;
    let all = match answer {
        TypesResponse::Whole { instance_types } => instance_types,
        TypesResponse::List(list) => list,
        TypesResponse::One(one) => vec![one],
    };
    let known = built_in(KNOWN).unwrap_or_default();
    let mut file =
        CatalogueFile { form: "the EC2 call describe-instance-types", ..CatalogueFile::default() };
    for DescribedType { instance_type, v_cpu_info, memory_info, supported_usage_classes } in all {
        let Some(priced) = known.get(instance_type.as_str()) else {
            let why = "without a price, as the catalogue ec2-2026 does not have them";
            file.left_out.add_unplaced(why);
            continue;
        };
        let is_sold = |class: &str| {
            supported_usage_classes.is_empty()
                || supported_usage_classes.iter().any(|it| it == class)
        };
        let kind = InstanceType {
            vcpus: v_cpu_info.default_vcpus,
            memory: Bytes::new(memory_info.size_in_mib << 20),
            spot: priced.spot.filter(|_| is_sold("spot")),
            on_demand: priced.on_demand.filter(|_| is_sold("on-demand")),
            ..priced.clone()
        };
        file.types.insert(kind.name.clone(), kind);
    }
    Ok(file)
}

fn read_rows(source: Source, chosen: &Chosen) -> Result<CatalogueFile, FileFlaw> {
    let mut rows = Rows::new(source)?;
    let mut file = CatalogueFile { form: "rows", ..CatalogueFile::default() };
    let Some(first) = rows.first() else { return Ok(file) };
    let right = "begin with a row of names, such as: name,vcpus,memory,on-demand,spot";
    let columns = ColumnPlaces::from_heading(&first, &COLUMNS, chosen)
        .map_err(|no| first.flaw(no.what, no.remedy))?;
    let columns = columns.ok_or_else(|| first.flaw("its first row names no columns", right))?;
    file.columns = columns.to_string();
    file.unused = columns.unused_headings().map(str::to_owned).collect();
    let mut is_mib = false;
    if columns.has_heading() {
        let heading = columns.cell(&first, 2).to_ascii_lowercase();
        is_mib = ["mib", "mb"].iter().any(|unit| heading.trim_end_matches(')').ends_with(unit));
        rows.skip_first();
    }
    let mut named: BTreeMap<(ZoneName, TypeName), InstanceType> = BTreeMap::new();
    while let Some(row) = rows.next_row()? {
        // Lists of accelerators have rows of no type of their own among others.
        if [0, 1].iter().all(|n| columns.cell(&row, *n).is_empty()) {
            file.left_out.add("without a name and vCPUs", row.line());
            continue;
        }
        let kind = instance_type(&row, &columns, is_mib)?;
        let zone = columns.cell(&row, 12);
        if zone.contains(['@', ',', '"']) {
            let what = format!("'{zone}' is not fit for a zone");
            return Err(row.flaw(what, "use letters, digits and '-', such as us-east-1a").into());
        }
        if kind.on_demand.is_none() && kind.spot.is_none() {
            file.left_out.add("without a price", row.line());
        } else if named.insert((ZoneName::from(zone), kind.name.clone()), kind).is_some() {
            let what = "a type of this name is there already";
            return Err(row.flaw(what, "name each type once, or once in each zone").into());
        }
    }
    file.types = name_by_zone(named);
    Ok(file)
}

/// Types by name; with several zones a type's name has its zone, `TYPE@ZONE`.
pub(crate) fn name_by_zone(named: BTreeMap<(ZoneName, TypeName), InstanceType>) -> Types {
    let zones: BTreeSet<&ZoneName> = named.keys().map(|(zone, _)| zone).collect();
    let has_zones = zones.len() > 1;
    let each = named.into_iter().map(|((zone, name), kind)| {
        let name = match has_zones && !zone.as_str().is_empty() {
            true => name.in_zone(&zone),
            false => name,
        };
        (name.clone(), InstanceType { name, ..kind })
    });
    each.collect()
}

/// The type of a row. `is_mib` is true if bare numbers in the memory column are MiB, else they are
/// GiB.
fn instance_type(
    row: &Row<'_>,
    columns: &ColumnPlaces,
    is_mib: bool,
) -> Result<InstanceType, FileFlaw> {
    // An empty cell is one that is not given; each of the others has to be what it says.
    let cell = |n: usize| columns.place(n).map(|at| row.number(at)).filter(|cell| !cell.is_empty());
    let number = |n: usize, what: &str| -> Result<Option<f64>, FileFlaw> {
        let Some(cell) = cell(n) else { return Ok(None) };
        let number = cell.parse::<f64>().ok().filter(|number| (0.0..=1e12).contains(number));
        let wrong = || row.flaw(format!("'{cell}' is not a {what}"), "write a number, such as 2");
        Ok(Some(number.ok_or_else(wrong)?))
    };
    let price = |n: usize| -> Result<Option<Price>, FileFlaw> {
        let number = number(n, "price")?.filter(|price| *price > 0.0);
        Ok(number.and_then(Price::from_usd_per_hour))
    };
    let name = columns.cell(row, 0);
    if name.is_empty() {
        return Err(row.flaw("it has no name", "name the type, such as m5.large").into());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range, or refused"
    )]
    let whole = |number: f64| {
        (number.fract() == 0.0 && (1.0..=1e6).contains(&number)).then_some(number as u32)
    };
    let wrong = |what: &str, remedy: &str| row.flaw(what, remedy);
    let vcpus = number(1, "number of vCPUs")?
        .ok_or_else(|| wrong("its number of vCPUs is missing", "write one, such as 2"))?;
    let vcpus = whole(vcpus).ok_or_else(|| {
        let what = format!("'{vcpus}' is not a number of vCPUs");
        wrong(&what, "write a whole number from 1 to 1000000")
    })?;
    let memory = parse_memory(row, cell(2).as_deref().unwrap_or_default(), is_mib)?;
    let limit = match number(11, "limit")? {
        None => LIMIT,
        // None can be had.
        Some(0.0) => 0,
        Some(number) => whole(number).ok_or_else(|| {
            wrong(&format!("{number} is not a number of VMs"), "write a whole one, such as 20")
        })?,
    };
    let baseline = number(5, "baseline")?.filter(|part| *part > 0.0);
    let burstable = match (baseline, number(6, "number of credits")?) {
        (Some(baseline), Some(earned)) => {
            let part = Ppm::from_f64(baseline).filter(|part| *part <= Ppm::ONE);
            let part = part.ok_or_else(|| {
                wrong(
                    "its baseline is above 1",
                    "write a share from 0 to 1, \
                         such as 0.2",
                )
            })?;
            let credits = |number: f64| Credits::from_vcpu_micros((number * 6e7).round() as u64);
            let standard = BurstableTerms::new(part, credits(earned));
            let cap = number(7, "number of credits")?.map(credits);
            let initial = number(8, "number of credits")?.map(credits);
            Some(BurstableTerms {
                cap: cap.unwrap_or(standard.cap),
                initial: initial.unwrap_or(standard.initial),
                surplus: price(9)?,
                ..standard
            })
        }
        (None, None) => None,
        _ => {
            let what = "it has either a baseline or credits per hour";
            let remedy = "give both for a burstable type, and none for another";
            return Err(wrong(what, remedy).into());
        }
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    let mflops = number(10, "number of gflops")?.map(|gflops| (gflops * 1e3).round() as u64);
    Ok(InstanceType {
        name: TypeName::from(name),
        vcpus,
        memory,
        disk: Bytes::ZERO,
        mflops: mflops.filter(|mflops| *mflops > 0).unwrap_or(u64::from(vcpus) * 10_000),
        on_demand: price(3)?,
        spot: price(4)?,
        limits: VmLimits { spot: limit, on_demand: limit },
        burstable,
    })
}

/// Parses an amount of memory with its unit, or a bare number in GiB or, if `is_mib`, MiB.
fn parse_memory(row: &Row<'_>, text: &str, is_mib: bool) -> Result<Bytes, FileFlaw> {
    let none = || row.flaw("its memory is missing", "write GiB, such as 8, or \"512 MiB\"");
    if let Ok(memory) = text.parse::<Bytes>() {
        return (memory > Bytes::ZERO).then_some(memory).ok_or_else(|| none().into());
    }
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1e12).contains(number));
    let number = number.filter(|number| *number > 0.0).ok_or_else(none)?;
    let gib = if is_mib { number / 1024.0 } else { number };
    if gib > MOST_GIB {
        let what = format!("its memory, {text}, would be {gib} GiB");
        let remedy = "write the unit, such as \"512 MiB\", or name it in the heading: memory MiB";
        return Err(row.flaw(what, remedy).into());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    let bytes = (gib * f64::from(1 << 30)).round() as u64;
    Ok(Bytes::new(bytes))
}

/// The spot advisor's data on a type in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SpotAdvice {
    /// Mean discount of a spot VM from the on-demand price, in percent; negative if the spot VM cost more.
    #[serde(rename = "s")]
    pub saving_percent: i32,
    /// Number of the advisor's range of interruption frequency in the last month: 0 is below 5 %, 1 is 5–10 %, 2 is 10–15 %, 3 is
    /// 15–20 %, and 4 is above 20 %.
    #[serde(rename = "r")]
    pub interruptions: u32,
}

/// The advisor's file: data by region, operating system and type.
#[derive(Deserialize)]
struct SpotAdvisorFile {
    spot_advisor: BTreeMap<String, BTreeMap<String, BTreeMap<String, SpotAdvice>>>,
}

/// Reads the provider's spot advisor file, spot-advisor-data.json, for the Linux types of a region.
///
/// # Errors
///
/// The file can't be read, is of another kind, or lacks the region.
pub fn read_advisor(
    source: Source,
    region: &str,
) -> Result<BTreeMap<String, SpotAdvice>, FileFlaw> {
    let text = source.into_text(LONGEST)?;
    let SpotAdvisorFile { mut spot_advisor } = serde_json::from_str(&text).map_err(|error| {
        let what = format!("it is not data of the spot advisor: {error}");
        FileFlaw::whole(what, "give the provider's spot-advisor-data.json")
    })?;
    let known: Vec<String> = spot_advisor.keys().cloned().collect();
    let of_region = spot_advisor.remove(region).and_then(|mut systems| systems.remove("Linux"));
    of_region.ok_or_else(|| {
        let what = format!("it has no Linux data of the region '{region}'");
        FileFlaw::whole(what, format!("it has {}", known.join(", ")))
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn source(text: &str) -> Source {
        Source::new(Cursor::new(text.as_bytes().to_vec())).unwrap()
    }

    fn read(text: &str) -> Result<CatalogueFile, String> {
        read_types(source(text), &Chosen::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_have_the_columns_that_they_have() {
        let text = "Instance Type;vCPUs;Memory GiB;Spot price;On Demand;baseline;credits per hour\n\
                    a.small;2;0,5;0,0011;0,0052;0,05;6\n\
                    a.large;4;16;0,1;;;\n\
                    a.none;4;16;;;;\n";
        let CatalogueFile { types, left_out, form, columns, unused } = read(text).unwrap();
        assert!(columns.starts_with("name from 'Instance Type', vcpus from 'vCPUs'"), "{columns}");
        assert_eq!(unused, Vec::<String>::new());
        assert_eq!((types.len(), form), (2, "rows"));
        assert_eq!(left_out.to_string(), "1 without a price (line 4)");
        let small = &types["a.small"];
        assert_eq!((small.vcpus, small.memory), (2, Bytes::new(512 << 20)));
        assert_eq!(
            (small.spot, small.on_demand),
            (Price::from_usd_per_hour(0.0011), Price::from_usd_per_hour(0.0052))
        );
        let burstable = small.burstable.unwrap();
        assert_eq!(
            (burstable.earned_per_hour, burstable.cap),
            (Credits::whole_credits(6), Credits::whole_credits(144))
        );
        assert_eq!((types["a.large"].on_demand, types["a.large"].burstable), (None, None));
    }

    /// SkyPilot's catalogue has a row for each type in each zone (cases/types-skypilot-catalog);
    /// each row becomes a type.
    #[test]
    fn types_of_several_zones_are_of_each() {
        let text = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone\n\
                    m5.large,,,2.0,8.0,,0.096,0.0353,us-east-1,us-east-1a\n\
                    m5.large,,,2.0,8.0,,0.096,0.0401,us-east-1,us-east-1b\n\
                    ,V100,1.0,,,,2.5,0.8,us-east-1,us-east-1a\n\
                    p3.2xlarge,V100,1.0,8.0,61.0,\"{'Gpus': [{'Name': 'V100'}]}\",3.06,,us-east-1,us-east-1a\n";
        let CatalogueFile { types, left_out, .. } = read(text).unwrap();
        let spot = |name: &str| types[name].spot;
        assert_eq!(types.len(), 3);
        assert_eq!(spot("m5.large@us-east-1a"), Price::from_usd_per_hour(0.0353));
        assert_eq!(spot("m5.large@us-east-1b"), Price::from_usd_per_hour(0.0401));
        assert_eq!(spot("p3.2xlarge@us-east-1a"), None);
        assert_eq!(left_out.to_string(), "1 without a name and vCPUs (line 4)");
        // One zone needs no name.
        let one: String =
            text.lines().filter(|line| !line.ends_with("1b")).map(|l| format!("{l}\n")).collect();
        assert_eq!(read(&one).unwrap().types["m5.large"].spot, Price::from_usd_per_hour(0.0353));
        let twice = text.replace("us-east-1b", "us-east-1a");
        let error = read(&twice).unwrap_err();
        assert!(error.contains("line 3: a type of this name is there already"), "{error}");
    }

    #[test]
    fn an_answer_of_the_provider_gets_its_prices_from_the_built_in_catalogue() {
        let one = |name: &str, classes: &str| {
            format!(
                r#"{{"InstanceType": "{name}", "VCpuInfo": {{"DefaultVCpus": 2}}, "MemoryInfo": {{"SizeInMiB": 8192}},
                "SupportedUsageClasses": [{classes}], "BurstablePerformanceSupported": true}}"#
            )
        };
        let (both, alone) = (r#""on-demand", "spot""#, r#""on-demand""#);
        let list = format!(
            "[{}, {}, {}]",
            one("t3.large", both),
            one("m5.large", alone),
            one("x9.huge", both)
        );
        for text in [format!("{{\"InstanceTypes\": {list}}}"), list] {
            let CatalogueFile { types, left_out, .. } = read(&text).unwrap();
            assert_eq!((types.len(), left_out.total()), (2, 1));
            assert!(types["t3.large"].burstable.is_some() && types["t3.large"].spot.is_some());
            assert_eq!(types["m5.large"].spot, None);
        }
        let error = read(&format!("[{}]", one("x9.huge", both))).unwrap_err();
        assert!(
            error.contains("none of its instance types can be used: 1 without a price"),
            "{error}"
        );
        assert!(is_described(one("t3.large", both).as_bytes()));
    }

    #[test]
    fn memory_is_in_the_unit_of_its_heading_and_a_limit_may_be_none() {
        for (heading, cell, mib) in [
            ("memory mib", "512", 512),
            ("Memory (MB)", "8192", 8192),
            ("RAM MB", "1024", 1024),
            ("memory mib", "2 GiB", 2048),
            ("memory", "0.5", 512),
            ("RAM GB", "4", 4096),
        ] {
            let text = format!("name,vcpus,{heading},spot,limit\na,2,{cell},1,0\nb,2,{cell},1,\n");
            let types = read(&text).unwrap().types;
            assert_eq!(types["a"].memory, Bytes::new(mib << 20), "{text}");
            assert_eq!((types["a"].limits.spot, types["a"].limits.on_demand), (0, 0));
            assert_eq!(types["b"].limits.spot, LIMIT);
        }
    }

    #[test]
    fn what_is_no_catalogue_is_refused_with_its_place() {
        for (text, part) in [
            ("", "it has no instance types"),
            ("name,vcpus\n", "there is no column 'memory'"),
            ("a.small,2,8\n", "its first row names no columns"),
            ("name,vcpus,memory,spot\n,2,8,1\n", "line 2: it has no name"),
            ("name,vcpus,memory,spot\na,two,8,1\n", "line 2: 'two' is not a number of vCPUs"),
            ("name,vcpus,memory,spot\na,2.5,8,1\n", "line 2: '2.5' is not a number of vCPUs"),
            ("name,vcpus,memory,spot\na,,8,1\n", "line 2: its number of vCPUs is missing"),
            ("name,vcpus,memory,spot\na,2,lots,1\n", "its memory is missing"),
            (
                "name,vcpus,memory,spot\na,2,65536,1\n",
                "line 2: its memory, 65536, would be 65536 GiB; write the unit",
            ),
            ("name,vcpus,memory,spot,limit\na,2,8,1,2.5\n", "line 2: 2.5 is not a number of VMs"),
            ("name,vcpus,memory,spot\na,2,8,cheap\n", "'cheap' is not a price"),
            ("name,vcpus,memory,spot\na,2,8,1\na,2,8,1\n", "line 3: a type of this name"),
            (
                "name,vcpus,memory,spot,baseline\na,2,8,1,0.2\n",
                "it has either a baseline or credits",
            ),
            ("{\"a\": 1}", "not an answer of the EC2 call describe-instance-types"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_spot_advisor_says_what_a_region_s_types_save() {
        // One type of the real file costs more than on demand.
        let text = r#"{"spot_advisor": {"us-east-1": {"Linux": {"m5.large": {"s": 66, "r": 1}}, "Windows": {}},
                       "ca-central-1": {"Linux": {"p5.48xlarge": {"s": -62, "r": 4}}}},
                       "ranges": []}"#;
        let advice = read_advisor(source(text), "us-east-1").unwrap();
        assert_eq!(advice["m5.large"], SpotAdvice { saving_percent: 66, interruptions: 1 });
        let error = read_advisor(source(text), "eu-west-1").unwrap_err().to_string();
        assert!(error.contains("'eu-west-1'; it has ca-central-1, us-east-1"), "{error}");
    }
}
