//! The metadata of an Azure VM.

use serde_json::{Value, json};

use crate::{Facts, Market};

/// All of it.
pub(super) fn instance(facts: &Facts) -> Value {
    let (priority, eviction) = match facts.market {
        Market::Spot => ("Spot", "Delete"),
        Market::OnDemand => ("Regular", ""),
    };
    let address = facts.address.to_string();
    json!({
        "compute": {
            "azEnvironment": "AzurePublicCloud",
            "evictionPolicy": eviction,
            "location": facts.place.region,
            "name": facts.name(),
            "osType": "Linux",
            "priority": priority,
            "provider": "Microsoft.Compute",
            "resourceGroupName": "dormouse",
            "subscriptionId": "00000000-0000-0000-0000-000000000000",
            "tags": "",
            "vmId": facts.uuid("vm"),
            "vmSize": facts.kind,
            "zone": facts.place.zone,
        },
        "network": {
            "interface": [{
                "ipv4": {
                    "ipAddress": [{ "privateIpAddress": address, "publicIpAddress": "" }],
                    "subnet": [{ "address": "10.0.0.0", "prefix": "8" }],
                },
                "ipv6": { "ipAddress": [] },
                "macAddress": facts.mac().replace(':', "").to_uppercase(),
            }],
        },
    })
}
