//! What every call to the coordinator carries.

use dormouse_proto::{HOST_KEY, SECRET_KEY, Secret};
use dormouse_units::HostId;
use tonic::service::{Interceptor, interceptor::InterceptedService};
use tonic::transport::Channel;
use tonic::{Request, Status};

/// A connection whose calls carry them.
pub(crate) type Trusted = InterceptedService<Channel, Credentials>;

/// The run's secret, and once the coordinator has said so, which host of the run this is.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    secret: Secret,
    host: Option<HostId>,
}

impl Credentials {
    pub(crate) const fn new(secret: Secret) -> Self {
        Self { secret, host: None }
    }

    pub(crate) fn of_host(&self, host: u32) -> Self {
        Self { secret: self.secret.clone(), host: Some(HostId::new(host)) }
    }
}

impl Interceptor for Credentials {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(secret) = self.secret.header() {
            request.metadata_mut().insert(SECRET_KEY, secret);
        }
        if let Some(host) = self.host {
            request.metadata_mut().insert(HOST_KEY, host.get().into());
        }
        Ok(request)
    }
}
