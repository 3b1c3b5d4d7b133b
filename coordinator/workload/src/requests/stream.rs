//! Sources of requests for VMs, and the requests of a source as a stream.

use std::io;
use std::io::Read;
use std::iter::{FlatMap, RepeatN, repeat_n};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dormouse_cloud::Market;
use dormouse_model::VmRequest;
use dormouse_units::{Span, Time, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::{RequestFile, RequestFileError, RequestRules, RequestsRead};
use super::model::{DrawnRequests, RequestModel};
use super::offer::{Offer, OfferRefusal};
use crate::{COUNTED_AHEAD, WorkloadError};

/// Error of opening or reading requests.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The file can't be read.
    #[error(transparent)]
    File(#[from] RequestFileError),
    /// A request, or a setting of the model that draws requests, has a mistake.
    #[error("workload.{key}: {refusal}")]
    Written {
        /// The path of the key that is wrong.
        key: String,
        /// The problem with the key's value, and the remedy.
        refusal: OfferRefusal,
    },
}

/// The source of requests that is to be opened, with the settings to open it.
#[derive(Clone, Debug)]
pub struct RequestsWanted<'a> {
    /// Source of the requests.
    pub source: &'a RequestSource,
    /// Types that may be requested; `None`: unknown, so that any type may.
    pub offer: Option<Arc<Offer>>,
    /// Seed of all random draws.
    pub seed: u64,
    /// Opens a file for reading.
    pub open: fn(&Path) -> io::Result<Box<dyn Read + Send>>,
}

/// Requests in order of time. Requests of a model, or of a file in our own format, are drawn or read one at a time: the
/// memory needed does not grow with their number. A trace in another format needs 24 bytes a request.
#[derive(Debug)]
pub struct RequestStream(RequestInput);

/// Several identical requests at one time.
type Alike = RepeatN<(Time, VmRequest)>;

/// Input that a stream takes its requests from.
#[derive(Debug)]
enum RequestInput {
    Written(FlatMap<std::vec::IntoIter<RequestSpec>, Alike, fn(RequestSpec) -> Alike>),
    File(Box<RequestFile>),
    Model(Box<DrawnRequests>),
}

fn repeat_request(spec: RequestSpec) -> Alike {
    repeat_n(spec.request(), spec.count as usize)
}

impl RequestStream {
    /// Opens a source.
    ///
    /// # Errors
    ///
    /// The file can't be read; or the source is wrong, or requests VMs that are not offered.
    pub fn open(wanted: &RequestsWanted<'_>) -> Result<Self, WorkloadError> {
        let RequestsWanted { source, offer, seed, open } = wanted;
        if let Some(flaw) = source.flaws(offer.as_deref()).into_iter().next() {
            return Err(RequestError::Written { key: flaw.key, refusal: flaw.refusal }.into());
        }
        Ok(Self(match source {
            RequestSource::Written { request } => RequestInput::Written(
                request.clone().into_iter().flat_map(repeat_request as fn(RequestSpec) -> Alike),
            ),
            RequestSource::Csv { csv, rules } => {
                let file = RequestFile::open(csv, rules, offer.clone(), *open);
                RequestInput::File(Box::new(file.map_err(RequestError::from)?))
            }
            RequestSource::Model { model } => {
                RequestInput::Model(Box::new(DrawnRequests::new(model.clone(), *seed)))
            }
        }))
    }

    /// Lower bound of the number of remaining requests: the requests of a model are counted up to [`COUNTED_AHEAD`],
    /// the requests of a file not at all.
    #[must_use]
    pub fn at_least(&self) -> usize {
        match &self.0 {
            RequestInput::Written(list) => list.clone().take(COUNTED_AHEAD).count(),
            RequestInput::File(_) => 0,
            RequestInput::Model(drawn) => drawn.as_ref().clone().take(COUNTED_AHEAD).count(),
        }
    }

    /// Report on the file of requests as far as it was read; `None`: the requests are not from a file.
    #[must_use]
    pub fn read(&self) -> Option<&RequestsRead> {
        match &self.0 {
            RequestInput::File(file) => Some(file.read()),
            RequestInput::Written(_) | RequestInput::Model(_) => None,
        }
    }
}

impl Iterator for RequestStream {
    type Item = Result<(Time, VmRequest), WorkloadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            RequestInput::Written(list) => list.next().map(Ok),
            RequestInput::File(file) => {
                Some(file.next()?.map_err(|error| RequestError::from(error).into()))
            }
            RequestInput::Model(drawn) => drawn.next().map(Ok),
        }
    }
}

/// Source of requests for VMs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum RequestSource {
    /// Requests that are listed in the description itself.
    Written {
        /// The requests, in order of time.
        request: Vec<RequestSpec>,
    },
    /// Requests from a file: a CSV file in our own format, or a trace that others published.
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

/// A request for a VM, or for several identical VMs at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RequestSpec {
    /// Arrival time of the request, counted from the beginning of the run.
    #[serde(default)]
    pub at: Span,
    /// Instance type that is requested.
    #[serde(rename = "type")]
    #[schemars(example = &"small")]
    pub kind: TypeName,
    /// `on-demand` for a normal request, `spot` for a preemptible one.
    pub market: Market,
    /// For how long the request's VM is wanted, from when it is ready.
    #[schemars(extend("least" = "1us"), example = "45m")]
    pub duration: Span,
    /// Number of identical requests that arrive at this time.
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
