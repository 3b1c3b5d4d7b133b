//! Requests for VMs as work: what is asked for, and the tenant that asks.

mod customers;
mod request;

pub use customers::Customers;
pub use request::Request;
