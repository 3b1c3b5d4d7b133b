//! The metadata of an Azure VM.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::versions::AzureVersion;
use crate::{VmFacts, VmMarket};

const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
const RESOURCE_GROUP: &str = "dormouse";

/// All metadata in this version: keys of later versions are missing, and unknown values are empty
/// texts.
pub(super) fn instance_document(facts: &VmFacts, version: AzureVersion) -> Value {
    let address = facts.address.to_string();
    json!({
        "compute": compute_document(facts, version),
        "network": {
            "interface": [{
                "ipv4": {
                    "ipAddress": [{ "privateIpAddress": address, "publicIpAddress": "" }],
                    "subnet": [{ "address": "10.0.0.0", "prefix": "8" }],
                },
                "ipv6": { "ipAddress": [] },
                "macAddress": facts.mac_address().replace(':', "").to_uppercase(),
            }],
        },
    })
}

/// The known properties of the VM, each from the version that introduced it.
fn compute_document(facts: &VmFacts, version: AzureVersion) -> Value {
    let (priority, eviction) = match facts.market {
        VmMarket::Spot => ("Spot", "Delete"),
        VmMarket::OnDemand => ("Regular", ""),
    };
    let name = facts.name();
    let resource = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/{RESOURCE_GROUP}/providers/Microsoft.Compute\
         /virtualMachines/{name}"
    );
    let tags: Vec<String> =
        facts.tags.iter().map(|(key, value)| format!("{key}:{value}")).collect();
    let tag = |(name, value): (&String, &String)| json!({ "name": name, "value": value });
    let user_data = STANDARD.encode(facts.user_data.as_deref().unwrap_or_default());
    let (nothing, of_nobody) = (json!(""), json!({ "id": "" }));
    let keys = [
        ("azEnvironment", "2018-10-01", json!("AzurePublicCloud")),
        ("additionalCapabilities", "2021-11-01", json!({ "hibernationEnabled": "false" })),
        ("customData", "2019-02-01", nothing.clone()),
        ("evictionPolicy", "2020-12-01", json!(eviction)),
        ("extendedLocation", "2021-03-01", json!({ "type": "", "name": "" })),
        ("host", "2021-11-15", of_nobody.clone()),
        ("hostGroup", "2021-11-15", of_nobody.clone()),
        ("isHostCompatibilityLayerVm", "2020-06-01", json!("false")),
        ("licenseType", "2020-09-01", nothing.clone()),
        ("location", "2017-03-01", json!(facts.place.region)),
        ("name", "2017-03-01", json!(name)),
        ("offer", "2017-03-01", nothing.clone()),
        ("osProfile", "2020-07-15", os_profile(&name, version)),
        ("osType", "2017-03-01", json!("Linux")),
        ("physicalZone", "2023-11-15", nothing.clone()),
        ("placementGroupId", "2017-08-01", nothing.clone()),
        ("plan", "2018-04-02", json!({ "name": "", "product": "", "publisher": "" })),
        ("platformFaultDomain", "2017-03-01", json!("0")),
        ("platformSubFaultDomain", "2021-10-01", nothing.clone()),
        ("platformUpdateDomain", "2017-03-01", json!("0")),
        ("priority", "2020-12-01", json!(priority)),
        ("provider", "2018-10-01", json!("Microsoft.Compute")),
        ("publicKeys", "2018-04-02", json!([])),
        ("publisher", "2017-03-01", nothing.clone()),
        ("resourceGroupName", "2017-08-01", json!(RESOURCE_GROUP)),
        ("resourceId", "2019-03-11", json!(resource)),
        ("securityProfile", "2020-06-01", security_profile(version)),
        ("sku", "2017-03-01", nothing.clone()),
        ("subscriptionId", "2017-08-01", json!(SUBSCRIPTION)),
        ("tags", "2017-08-01", json!(tags.join(";"))),
        ("tagsList", "2019-06-04", facts.tags.iter().map(tag).collect()),
        ("userData", "2021-01-01", json!(user_data)),
        ("version", "2017-03-01", nothing.clone()),
        ("virtualMachineScaleSet", "2021-03-01", of_nobody),
        ("vmId", "2017-03-01", json!(facts.azure_uuid("vm"))),
        ("vmScaleSetName", "2017-12-01", nothing),
        ("vmSize", "2017-03-01", json!(facts.kind)),
        ("zone", "2017-12-01", json!(facts.place.zone)),
    ];
    let known = keys.into_iter().filter(|(_, since, _)| version.includes_since(since));
    Value::Object(known.map(|(key, _, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}

fn os_profile(name: &str, version: AzureVersion) -> Value {
    let mut profile = json!({ "adminUsername": "", "computerName": name });
    if version.includes_since("2020-10-01") {
        profile["disablePasswordAuthentication"] = json!("true");
    }
    profile
}

fn security_profile(version: AzureVersion) -> Value {
    let mut profile = json!({ "secureBootEnabled": "false", "virtualTpmEnabled": "false" });
    for (key, since, value) in
        [("encryptionAtHost", "2021-11-01", "false"), ("securityType", "2021-12-13", "")]
    {
        if version.includes_since(since) {
            profile[key] = json!(value);
        }
    }
    profile
}
