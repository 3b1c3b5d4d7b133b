//! Requests for VMs as work, and the tenant that makes them.

mod customers;

pub use customers::Customers;
