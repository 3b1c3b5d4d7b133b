//! Sources of requests for VMs.

use std::path::PathBuf;

use dormouse_cloud::Market;
use dormouse_model::VmRequest;
use dormouse_units::{Span, Time, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::RequestRules;
use super::model::RequestModel;

/// Source of requests for VMs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum RequestSource {
    /// Requests that are written down here.
    Written {
        /// The requests, in order of time.
        request: Vec<RequestSpec>,
    },
    /// A file: a CSV file of ours, or a trace that others made.
    Csv {
        /// Path of the file.
        csv: PathBuf,
        /// How the file is to be read.
        #[serde(default, skip_serializing_if = "RequestRules::is_default")]
        rules: Box<RequestRules>,
    },
    /// Requests that a model generates.
    Model {
        /// The model by which requests are drawn.
        model: RequestModel,
    },
}

/// A request for a VM, or several that come at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RequestSpec {
    /// When it comes, from the beginning.
    #[serde(default)]
    pub at: Span,
    /// The instance type.
    #[serde(rename = "type")]
    #[schemars(example = &"small")]
    pub kind: TypeName,
    /// `on-demand` for a normal request, `spot` for a preemptible one.
    pub market: Market,
    /// For how long its VM is wanted, from when it is ready.
    #[schemars(extend("least" = "1us"), example = "45m")]
    pub duration: Span,
    /// How many there are of these.
    #[serde(default = "one_request")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub count: u32,
}

const fn one_request() -> u32 {
    1
}

impl RequestSpec {
    /// Instant at which the request comes, and the request itself.
    #[must_use]
    pub fn request(&self) -> (Time, VmRequest) {
        let Self { at, kind, market, duration, .. } = self;
        (Time::ZERO + *at, VmRequest { kind: kind.clone(), market: *market, duration: *duration })
    }
}
