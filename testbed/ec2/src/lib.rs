//! EC2's endpoint: the calls that boto3, terraform and others make over HTTP are answered by a cloud
//! in virtual time, whose clock follows the host's or stands until somebody asks for it to go on.
//!
//! On the same port, by the service that a request is signed for: STS's `GetCallerIdentity`, seven
//! calls of IAM as inert records, SSM's `GetParameter` for names of images, five calls of SQS for queues of what
//! EC2 tells of instances, and three calls of FIS that interrupt spot instances. Everything else is `UnsupportedOperation` with its name.

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
pub use session::CloudSession;
pub use signature::{AccessSecrets, SecretsError};
