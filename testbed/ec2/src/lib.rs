//! EC2's endpoint: the HTTP calls of boto3, terraform and other clients are answered by a cloud in virtual time, whose
//! clock follows the host's or stands until a request advances it.
//!
//! On the same port, by the service that a request is signed for: STS's `GetCallerIdentity`, seven calls of IAM as
//! inert records, SSM's `GetParameter` for names of images, five calls of SQS for queues of EC2's announcements about
//! instances, and three calls of FIS that interrupt spot instances. Any other call is answered with
//! `UnsupportedOperation` and its name.

mod api;
mod caller;
mod clock;
mod endpoint;
mod fault_injection;
mod identity_records;
mod image_names;
mod kept_records;
mod queue_records;
mod reply;
mod session;
mod signature;
mod site;
mod xml;

pub use clock::ClockMode;
pub use endpoint::{Ec2Endpoint, EndpointError, EndpointSetup};
pub use session::{AwaitedAnswer, CloudSession};
pub use signature::{AccessSecrets, SecretsError};
