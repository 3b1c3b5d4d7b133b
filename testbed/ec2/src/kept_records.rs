//! Records of the services beside EC2, kept in the run's log so that an endpoint that continues the run has them again.

use dormouse_ec2_wire::{ApiError, QueryPairs};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::CloudSession;

/// A record that a call has made, as a line of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "service", rename_all = "lowercase")]
pub(crate) enum KeptRecord {
    /// A call of IAM that made or changed a role or a profile.
    Iam {
        account: String,
        action: String,
        pairs: QueryPairs,
        /// Time of the call, in microseconds since 1970.
        date: i64,
    },
    /// A template or an experiment of FIS, with its client's token.
    Fis { account: String, region: String, kind: String, token: String, value: Value },
    /// A queue of SQS, with the index of its first announcement.
    Sqs {
        account: String,
        region: String,
        name: String,
        created: i64,
        visibility_s: i64,
        next: usize,
    },
}

impl KeptRecord {
    /// Keeps the record in the run's log; false if it could not be written.
    pub(crate) fn keep(&self, session: &mut dyn CloudSession) -> bool {
        serde_json::to_string(self).is_ok_and(|line| session.keep_record(&line))
    }
}

/// The error for a call whose record can't be written.
pub(crate) fn unwritten() -> ApiError {
    ApiError::new("InternalError", "The run's records can't be written.")
}
