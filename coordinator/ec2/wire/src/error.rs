//! An error in EC2's form: a code that clients act on, and one line for people.

/// A refusal or a failure of a call.
///
/// The service model lists no codes; the codes used here are in AWS's "Error codes for the Amazon EC2 API".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// EC2's code, like `InvalidInstanceID.NotFound`.
    pub code: String,
    /// Description of the error, and the remedy.
    pub message: String,
}

/// Error codes of EC2 for failures or overload of the server, after which clients try again.
const STATUS_500: &[&str] = &[
    "InsufficientAddressCapacity",
    "InsufficientCapacity",
    "InsufficientHostCapacity",
    "InsufficientInstanceCapacity",
    "InsufficientReservedInstanceCapacity",
    "InternalError",
    "InternalFailure",
];
const STATUS_503: &[&str] = &["RequestLimitExceeded", "ServiceUnavailable", "Unavailable"];

impl ApiError {
    /// An error with this code of EC2.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }

    /// The HTTP status that goes with the code.
    pub fn status(&self) -> u16 {
        match self.code.as_str() {
            "AuthFailure" => 401,
            "UnauthorizedOperation" => 403,
            "DryRunOperation" => 412,
            code if STATUS_500.contains(&code) => 500,
            code if STATUS_503.contains(&code) => 503,
            _ => 400,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_retry_what_is_the_servers_fault_alone() {
        let status = |code: &str| ApiError::new(code, "").status();
        assert_eq!(status("InsufficientInstanceCapacity"), 500);
        assert_eq!(status("RequestLimitExceeded"), 503);
        assert_eq!(status("SpotMaxPriceTooLow"), 400);
        assert_eq!(status("DryRunOperation"), 412);
    }
}
