//! Requests for VMs as work: what is asked for, and the tenant that asks.

mod customers;

pub use customers::Customers;
