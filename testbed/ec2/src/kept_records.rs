//! Records of the services beside EC2, kept in the run's log so that an endpoint that continues the run has them again.

use dormouse_ec2_wire::{ApiError, QueryPairs};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::CloudSession;

/// A record of a service beside EC2 that a client's call has created or changed; it is kept as a line in the run's
/// log.
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
    /// Writes this record of IAM, FIS or SQS into the run's log; false if it could not be written.
    pub(crate) fn keep(&self, session: &mut dyn CloudSession) -> bool {
        serde_json::to_string(self).is_ok_and(|line| session.keep_record(&line))
    }
}

/// The error for a call of IAM, FIS or SQS whose record can't be written into the run's log.
pub(crate) fn unwritten() -> ApiError {
    ApiError::new("InternalError", "The run's records can't be written.")
}
