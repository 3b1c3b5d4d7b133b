//! The metadata that a program on an emulated VM reads about the VM and its coming end, as clouds serve it at
//! 169.254.169.254.
//!
//! One [`MetadataService`] belongs to one VM. It gets the time and the provider's announcements from its caller, and
//! answers requests in three dialects of the same facts: EC2's, Google's and Azure's. The HTTP server in front of it is
//! part of the worker.

mod azure;
mod date;
mod ec2;
mod facts;
mod google;
mod notices;
mod place;
mod request;
mod response;
mod service;
mod token;
mod tree;

pub use date::UnixTime;
pub use facts::{
    EndpointSettings, InstanceAccess, InterruptionNotice, RoleCredentials, TakingAction, TokenRule,
    VmAnnouncement, VmFacts, VmMarket, address_of_vm,
};
pub use notices::{MaintenanceEvent, MaintenanceState};
pub use place::VmPlace;
pub use request::{HttpMethod, HttpRequest};
pub use response::{HttpResponse, ServiceAnswer};
pub use service::MetadataService;
pub use token::TokenSecret;
