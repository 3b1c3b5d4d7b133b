//! A client of a bucket, by what an experiment and the environment say.

use std::time::Duration;

use dormouse_coordinator::ObjectError;
use dormouse_model::{CheckpointStore, ServerAddress};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};

/// Longest time for connecting to the bucket's server.
const CONNECT: Duration = Duration::from_secs(5);
/// Pauses between two tries of a request: the first pause and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Greatest number of tries of a request before its time is over.
const TRIES: usize = 50;

/// A client of the bucket, and the bucket's place in words.
///
/// # Errors
///
/// The environment has no credentials, or an endpoint that is none.
pub(crate) fn client(
    store: &CheckpointStore,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(AmazonS3, String), ObjectError> {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty());
    let needed = |name: &str| {
        let why = format!(
            "{}: {name} is not set; put the bucket's credentials into the environment",
            store.url
        );
        set(name).ok_or(ObjectError::Refused(why))
    };
    let (key, secret) = (needed("AWS_ACCESS_KEY_ID")?, needed("AWS_SECRET_ACCESS_KEY")?);
    let endpoint = match &store.endpoint {
        Some(endpoint) => Some(endpoint.clone()),
        None => set("AWS_ENDPOINT_URL_S3")
            .or_else(|| set("AWS_ENDPOINT_URL"))
            .map(ServerAddress::try_from)
            .transpose()
            .map_err(|why| {
                ObjectError::Refused(format!("{}: AWS_ENDPOINT_URL: {why}", store.url))
            })?,
    };
    let region = store.region.clone().or_else(|| set("AWS_REGION"));
    let region = region.or_else(|| set("AWS_DEFAULT_REGION"));
    let timeout = Duration::from_micros(store.timeout.as_micros()).max(Duration::from_secs(1));
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(store.url.bucket())
        .with_region(region.unwrap_or_else(|| "us-east-1".to_owned()))
        .with_access_key_id(key)
        .with_secret_access_key(secret)
        // Not every server knows how to remove many objects at once.
        .with_disable_bulk_delete(true)
        .with_retry(RetryConfig {
            backoff: BackoffConfig {
                init_backoff: FIRST_PAUSE,
                max_backoff: LONGEST_PAUSE,
                base: 2.0,
            },
            max_retries: TRIES,
            retry_timeout: timeout,
        });
    if let Some(token) = set("AWS_SESSION_TOKEN") {
        builder = builder.with_token(token);
    }
    let mut options = ClientOptions::new()
        // A large object may take long, as long as it gets on.
        .with_timeout_disabled()
        .with_read_timeout(timeout)
        .with_connect_timeout(CONNECT.min(timeout));
    let mut place = store.url.to_string();
    if let Some(endpoint) = endpoint {
        options = options.with_allow_http(endpoint.is_in_clear());
        place = format!("{place} at {}", endpoint.as_str());
        builder = builder.with_endpoint(endpoint.as_str());
        // What TLS protects need not be hashed once more.
        builder = builder.with_unsigned_payload(!endpoint.is_in_clear());
    }
    let built = builder.with_client_options(options).build();
    built.map(|client| (client, place.clone())).map_err(|error| {
        ObjectError::Refused(format!("{place}: {error}; see live.checkpoint-store"))
    })
}
