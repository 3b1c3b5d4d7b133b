//! Reader of the instance types that Google's and Microsoft's command lines list as JSON. They have sizes and no prices.

use std::collections::BTreeMap;

use dormouse_input::{FileFlaw, LeftOut};
use dormouse_units::{Bytes, TypeName, ZoneName};
use serde::Deserialize;

use crate::catalogue_file::{LIMIT, name_by_zone};
use crate::{CatalogueFile, InstanceType, VmLimits};

/// Reason for types that are left out as they lack a figure, or have one that no machine has.
const INCOMPLETE: &str = "without a usable name, vCPUs or memory";
/// Numbers of vCPUs that a type may have.
const VCPUS: std::ops::RangeInclusive<u32> = 1..=1_000_000;
/// Greatest memory that a type may have, as in a table of types.
const MOST_MEMORY: Bytes = Bytes::new(32_768 << 30);

/// A list of instance types in JSON that has no prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnpricedList {
    /// The list is in the JSON of Google's `gcloud compute machine-types list --format json`.
    Google,
    /// The list is in the JSON of Microsoft's `az vm list-skus -o json`.
    AzureSkus,
    /// The list is in the JSON of Microsoft's `az vm list-sizes -o json`.
    AzureSizes,
}

impl UnpricedList {
    /// The list that this text, or its beginning, is; `None` if the text is another.
    pub(crate) fn detect(text: &str) -> Option<Self> {
        let has = |key: &str| text.contains(&format!("\"{key}\""));
        match () {
            () if has("guestCpus") || has("compute#machineType") => Some(Self::Google),
            () if has("capabilities") && has("resourceType") => Some(Self::AzureSkus),
            () if has("numberOfCores") => Some(Self::AzureSizes),
            () => None,
        }
    }

    /// Format and columns of this kind of list of instance types, in words, and the command that prints the list.
    const fn in_words(self) -> [&'static str; 3] {
        match self {
            Self::Google => [
                "JSON of gcloud compute machine-types list",
                "names are 'name', vCPUs are 'guestCpus', memory is 'memoryMb' in MiB, zones are 'zone'",
                "gcloud compute machine-types list --format json",
            ],
            Self::AzureSkus => [
                "JSON of az vm list-skus",
                "names are 'name', vCPUs are the capability 'vCPUs', memory is the capability 'MemoryGB' in GiB, zones are \
                 'locations'",
                "az vm list-skus --resource-type virtualMachines -o json",
            ],
            Self::AzureSizes => [
                "JSON of az vm list-sizes",
                "names are 'name', vCPUs are 'numberOfCores', memory is 'memoryInMB' in MiB",
                "az vm list-sizes --location eastus -o json",
            ],
        }
    }

    /// Reads the list of instance types in `text`. With several zones each type is one of its zone, `TYPE@ZONE`; no type has a
    /// price.
    ///
    /// # Errors
    ///
    /// The text is not such a list.
    pub(crate) fn read(self, text: &str) -> Result<CatalogueFile, FileFlaw> {
        let [form, columns, command] = self.in_words();
        let mut left_out = LeftOut::default();
        let types = match self {
            Self::Google => entries::<GoogleType>(text)
                .map(|all| all.into_iter().map(GoogleType::described).collect::<Vec<_>>()),
            Self::AzureSizes => entries::<AzureSize>(text)
                .map(|all| all.into_iter().map(AzureSize::described).collect()),
            Self::AzureSkus => entries::<AzureSku>(text).map(|all| azure_skus(all, &mut left_out)),
        };
        let types = types.map_err(|error| {
            let what = format!("it is not the list that '{command}' prints: {error}");
            FileFlaw::whole(what, "write it again with that command")
        })?;
        let mut named = BTreeMap::new();
        for described in types {
            let DescribedSize { name, vcpus, memory, zone, has_spot } = described;
            let whole =
                name.filter(|name| is_plain_name(name)).zip(vcpus.filter(|n| VCPUS.contains(n)));
            let Some(((name, vcpus), memory)) =
                whole.zip(memory.filter(|it| *it > Bytes::ZERO && *it <= MOST_MEMORY))
            else {
                left_out.add_unplaced(INCOMPLETE);
                continue;
            };
            let kind = InstanceType {
                name: TypeName::from(name.as_str()),
                vcpus,
                memory,
                disk: Bytes::ZERO,
                mflops: u64::from(vcpus) * 10_000,
                on_demand: None,
                spot: None,
                limits: VmLimits { spot: if has_spot { LIMIT } else { 0 }, on_demand: LIMIT },
                burstable: None,
            };
            let zone = ZoneName::from(zone.as_deref().unwrap_or_default());
            if named.insert((zone, kind.name.clone()), kind).is_some() {
                left_out.add_unplaced("listed before");
            }
        }
        let types = name_by_zone(named);
        Ok(CatalogueFile { types, left_out, form, columns: columns.to_owned(), unused: Vec::new() })
    }
}

/// Size of an instance type, as far as a list gives it.
#[derive(Clone, Debug, Default)]
struct DescribedSize {
    name: Option<String>,
    vcpus: Option<u32>,
    memory: Option<Bytes>,
    /// Zone or location in which the type is sold.
    zone: Option<String>,
    /// False if the type is never sold as a spot VM.
    has_spot: bool,
}

/// Layouts in which a list is stored: as its command prints it, as the provider's API answers, by zone, and one entry
/// alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredList<T> {
    List(Vec<T>),
    Answer {
        #[serde(alias = "value")]
        items: Vec<T>,
    },
    ByZone {
        items: BTreeMap<String, ZoneTypes<T>>,
    },
    One(T),
}

/// The types of a zone in an aggregated answer.
#[derive(Deserialize)]
struct ZoneTypes<T> {
    #[serde(rename = "machineTypes", default = "Vec::new")]
    machine_types: Vec<T>,
}

/// All entries of a list, in their order.
fn entries<T: for<'de> Deserialize<'de>>(text: &str) -> Result<Vec<T>, serde_json::Error> {
    // The position of a mistake in the JSON itself is known before its layout is guessed.
    serde_json::from_str::<serde::de::IgnoredAny>(text)?;
    Ok(match serde_json::from_str(text)? {
        StoredList::List(all) | StoredList::Answer { items: all } => all,
        StoredList::ByZone { items } => {
            items.into_values().flat_map(|zone| zone.machine_types).collect()
        }
        StoredList::One(one) => vec![one],
    })
}

/// The fields that are used of a machine type of Compute Engine.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoogleType {
    name: Option<String>,
    guest_cpus: Option<u32>,
    memory_mb: Option<u64>,
    /// The zone's name, or its address.
    zone: Option<String>,
}

impl GoogleType {
    fn described(self) -> DescribedSize {
        let zone = self.zone.map(|zone| zone.rsplit('/').next().unwrap_or_default().to_owned());
        DescribedSize {
            name: self.name,
            vcpus: self.guest_cpus,
            memory: self.memory_mb.and_then(mebibytes),
            zone: zone.filter(|zone| is_plain_name(zone)),
            has_spot: true,
        }
    }
}

/// The fields that are used of a size of Azure's virtual machines.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AzureSize {
    name: Option<String>,
    number_of_cores: Option<u32>,
    #[serde(rename = "memoryInMB", alias = "memoryInMb")]
    memory_in_mb: Option<u64>,
}

impl AzureSize {
    fn described(self) -> DescribedSize {
        DescribedSize {
            name: self.name,
            vcpus: self.number_of_cores,
            memory: self.memory_in_mb.and_then(mebibytes),
            zone: None,
            has_spot: true,
        }
    }
}

/// The fields that are used of a resource SKU of Azure.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AzureSku {
    resource_type: Option<String>,
    name: Option<String>,
    #[serde(default)]
    locations: Vec<String>,
    #[serde(default)]
    capabilities: Option<Vec<AzureCapability>>,
    #[serde(default)]
    restrictions: Option<Vec<AzureRestriction>>,
}

#[derive(Deserialize)]
struct AzureCapability {
    name: Option<String>,
    value: Option<String>,
}

#[derive(Deserialize)]
struct AzureRestriction {
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl AzureSku {
    fn capability(&self, name: &str) -> Option<&str> {
        let all = self.capabilities.iter().flatten();
        all.filter(|it| it.name.as_deref() == Some(name)).find_map(|it| it.value.as_deref())
    }

    /// The type once for each of its locations.
    fn described(self) -> Vec<DescribedSize> {
        let gib = self.capability("MemoryGB").and_then(|text| text.parse::<f64>().ok());
        let of_one = DescribedSize {
            vcpus: self.capability("vCPUs").and_then(|text| text.parse().ok()),
            memory: gib.and_then(gibibytes),
            has_spot: self.capability("LowPriorityCapable") != Some("False"),
            zone: None,
            name: self.name,
        };
        let named = self.locations.into_iter().filter(|location| is_plain_name(location));
        let mut all: Vec<_> =
            named.map(|zone| DescribedSize { zone: Some(zone), ..of_one.clone() }).collect();
        if all.is_empty() {
            all.push(of_one);
        }
        all
    }
}

/// The virtual machines among these SKUs that the subscription may use.
fn azure_skus(all: Vec<AzureSku>, left_out: &mut LeftOut) -> Vec<DescribedSize> {
    let mut types = Vec::new();
    for sku in all {
        let is_machine = sku.resource_type.as_deref().is_none_or(|kind| kind == "virtualMachines");
        let mut restricted = sku.restrictions.iter().flatten();
        if !is_machine {
            left_out.add_unplaced("other resources than virtual machines");
        } else if restricted.any(|it| it.kind.as_deref() == Some("Location")) {
            left_out.add_unplaced("restricted: not available in their location");
        } else {
            types.extend(sku.described());
        }
    }
    types
}

/// True if this is a name that an instance type or a zone may have.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['@', ',', '"'])
}

fn mebibytes(number: u64) -> Option<Bytes> {
    number.checked_mul(1 << 20).map(Bytes::new)
}

/// This number of gibibytes, rounded to a byte; `None` if no machine has so many.
fn gibibytes(number: f64) -> Option<Bytes> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    let bytes = (number * f64::from(1 << 30)).round() as u64;
    (0.0..=1e6).contains(&number).then_some(Bytes::new(bytes))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use dormouse_input::{Chosen, Source};
    use serde_json::{Value, json};

    use super::*;
    use crate::read_types;

    /// Reads a file of this JSON.
    fn read(json: &Value) -> Result<CatalogueFile, String> {
        let text = json.to_string().into_bytes();
        let source = Source::new(Box::new(std::io::Cursor::new(text))).unwrap();
        read_types(source, &Chosen::default()).map_err(|error| error.to_string())
    }

    /// Entries of Compute Engine's documented resource `machineType`.
    fn google() -> Value {
        let of = |name: &str, zone: &str, cpus: u32, mb: u32| {
            json!({"kind": "compute#machineType", "id": "801016", "creationTimestamp": "1969-12-31T16:00:00.000-08:00",
                "name": name, "description": "words", "guestCpus": cpus, "memoryMb": mb, "imageSpaceGb": 0,
                "maximumPersistentDisks": 128, "maximumPersistentDisksSizeGb": "263168", "zone": zone,
                "selfLink": format!("https://www.googleapis.com/compute/v1/projects/p/zones/{zone}/machineTypes/{name}"),
                "isSharedCpu": false, "architecture": "X86_64"})
        };
        json!([
            of("n1-standard-4", "us-central1-a", 4, 15_360),
            of("n1-standard-4", "us-central1-b", 4, 15_360),
            of("e2-micro", "us-central1-a", 2, 1_024),
        ])
    }

    /// Entries of Azure's documented `ResourceSku`.
    fn skus() -> Value {
        let of = |kind: &str, name: &str, location: &str, low: &str| {
            json!({"apiVersions": null, "capacity": null, "costs": null, "family": "standardDSv3Family", "kind": null,
                "locationInfo": [{"location": location, "zoneDetails": [], "zones": ["1", "2", "3"]}],
                "locations": [location], "name": name, "resourceType": kind, "restrictions": [], "size": "D2s_v3",
                "tier": "Standard", "capabilities": [{"name": "MaxResourceVolumeMB", "value": "16384"},
                {"name": "vCPUs", "value": "2"}, {"name": "MemoryGB", "value": "3.5"},
                {"name": "LowPriorityCapable", "value": low}]})
        };
        let mut closed = of("virtualMachines", "Standard_M8", "eastus", "True");
        closed["restrictions"] = json!([{"type": "Location", "reasonCode": "NotAvailableForSubscription",
            "values": ["eastus"], "restrictionInfo": {"locations": ["eastus"]}}]);
        json!([
            of("disks", "Premium_LRS", "eastus", "False"),
            of("virtualMachines", "Standard_D2s_v3", "eastus", "True"),
            of("virtualMachines", "Standard_B1s", "eastus", "False"),
            closed,
        ])
    }

    fn sizes() -> Value {
        json!([{"maxDataDiskCount": 4, "memoryInMB": 3_584, "name": "Standard_D1_v2", "numberOfCores": 1,
            "osDiskSizeInMB": 1_047_552, "resourceDiskSizeInMB": 51_200}])
    }

    #[test]
    fn machine_types_of_google_are_types_of_their_zones() {
        let file = read(&google()).unwrap();
        let names: Vec<_> = file.types.keys().map(TypeName::as_str).collect();
        assert_eq!(
            names,
            [
                "e2-micro@us-central1-a",
                "n1-standard-4@us-central1-a",
                "n1-standard-4@us-central1-b"
            ]
        );
        let four = &file.types["n1-standard-4@us-central1-b"];
        assert_eq!((four.vcpus, four.memory), (4, Bytes::new(15 << 30)));
        assert_eq!((four.on_demand, four.spot, four.limits.spot), (None, None, LIMIT));
        assert!(file.columns.contains("'guestCpus'") && file.left_out.is_empty());
        // One zone needs no name; the API's own answers, a list, by zone and of one type alone, are read, too.
        let one = read(&json!([google()[0]])).unwrap();
        assert!(one.types.contains_key("n1-standard-4"));
        assert_eq!(read(&google()[0]).unwrap(), one);
        assert_eq!(
            read(&json!({"kind": "compute#machineTypeList", "items": google()})).unwrap(),
            file
        );
        let by_zone = json!({"items": {"zones/us-central1-a": {"machineTypes": [google()[0], google()[2]]},
            "zones/us-central1-b": {"machineTypes": [google()[1]]},
            "zones/us-central1-z": {"warning": {"code": "NO_RESULTS_ON_PAGE"}}}});
        assert_eq!(read(&by_zone).unwrap(), file);
        let mut address = google();
        address[1]["zone"] =
            json!("https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-b");
        assert_eq!(read(&address).unwrap(), file);
    }

    #[test]
    fn skus_of_azure_are_its_machines_that_can_be_had() {
        let file = read(&skus()).unwrap();
        let names: Vec<_> = file.types.keys().map(TypeName::as_str).collect();
        assert_eq!(names, ["Standard_B1s", "Standard_D2s_v3"]);
        assert_eq!(file.types["Standard_D2s_v3"].memory, Bytes::new(7 << 29));
        // A type that is never sold as a spot VM has the limit 0.
        let limits = ["Standard_B1s", "Standard_D2s_v3"].map(|name| file.types[name].limits.spot);
        assert_eq!(limits, [0, LIMIT]);
        let said = file.left_out.to_string();
        assert!(said.contains("1 other resources") && said.contains("1 restricted"), "{said}");
        let mut two = skus();
        two[2]["locations"] = json!(["westus", "eastus"]);
        let names: Vec<_> = read(&two).unwrap().types.into_keys().collect();
        let right = ["Standard_B1s@eastus", "Standard_B1s@westus", "Standard_D2s_v3@eastus"];
        assert_eq!(names, right.map(TypeName::from));
    }

    #[test]
    fn sizes_of_azure_are_read_as_printed_and_as_answered() {
        let file = read(&sizes()).unwrap();
        let one = &file.types["Standard_D1_v2"];
        assert_eq!((one.vcpus, one.memory), (1, Bytes::new(3_584 << 20)));
        assert_eq!(read(&json!({"value": sizes()})).unwrap(), file);
        let old = sizes().to_string().replace("memoryInMB", "memoryInMb");
        assert_eq!(read(&serde_json::from_str(&old).unwrap()).unwrap(), file);
    }

    /// Each field of an entry is taken away in turn: a name, vCPUs and memory are needed, and nothing else.
    #[test]
    fn what_is_not_there_is_counted_where_it_is_needed_and_else_not_missed() {
        for (all, needed) in [
            (google(), &["name", "guestCpus", "memoryMb"][..]),
            (sizes(), &["name", "numberOfCores", "memoryInMB"]),
            (skus(), &["name", "capabilities"]),
        ] {
            let entries = all.as_array().unwrap();
            let keys: Vec<_> = entries[0].as_object().unwrap().keys().cloned().collect();
            for key in keys {
                for value in [None, Some(Value::Null)] {
                    // A whole entry stays, so that the file is still told by its content.
                    let mut some = vec![entries[entries.len() - 1].clone(), entries[0].clone()];
                    if all == skus() {
                        some = vec![entries[2].clone(), entries[1].clone()];
                    }
                    let entry = some[1].as_object_mut().unwrap();
                    match &value {
                        None => entry.remove(&key),
                        Some(null) => entry.insert(key.clone(), null.clone()),
                    };
                    let is_list = key == "locations" && value.is_some();
                    let file = match read(&json!(some)) {
                        Err(error) if is_list => {
                            assert!(error.contains("is not the list that"), "{error}");
                            continue;
                        }
                        file => file.unwrap_or_else(|error| panic!("{key}: {error}")),
                    };
                    let missed = file.left_out.to_string().contains(INCOMPLETE);
                    assert_eq!(missed, needed.contains(&key.as_str()), "{key}: {}", file.left_out);
                }
            }
        }
    }

    #[test]
    fn what_is_no_such_list_is_refused_with_the_command_that_makes_one() {
        let mut words = google();
        words[0]["guestCpus"] = json!("four");
        let error = read(&words).unwrap_err();
        assert!(error.contains("gcloud compute machine-types list --format json"), "{error}");
        let broken = google().to_string().replace("}]", "}");
        let source = Source::new(Box::new(std::io::Cursor::new(broken.into_bytes()))).unwrap();
        let error = read_types(source, &Chosen::default()).unwrap_err().to_string();
        assert!(error.contains("is not the list that") && error.contains("line 1"), "{error}");
        let none = json!([{"name": "n1", "guestCpus": 0, "memoryMb": 1}]);
        let error = read(&none).unwrap_err();
        assert!(error.contains("1 without a usable name, vCPUs or memory"), "{error}");
    }
}
