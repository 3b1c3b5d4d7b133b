//! `dormouse identity` and `dormouse token`: keys and tokens that let workers and users connect to a run.

use std::time::Duration;

use dormouse_coordinator::{make_identity, make_token_for_one, refuse_token, renew_token};
use dormouse_identity::IdentityError;
use dormouse_units::Span;

use super::args::{IdentityArgs, TokenArgs};
use super::failure::Failure;
use super::print::print;

fn real(span: Span) -> Duration {
    Duration::from_micros(span.as_micros())
}

/// Makes an identity ahead of a run.
pub(crate) fn identity(args: &IdentityArgs) -> Result<(), Failure> {
    make_identity(&args.dir, real(args.valid))?;
    let dir = args.dir.display();
    print(&format!(
        "give the coordinator $DORMOUSE_IDENTITY={dir}, its workers the file {dir}/secret by --secret-file \
         or $DORMOUSE_SECRET_FILE; {dir}/secret.observer lets others read the run, {dir}/secret.operator act on it"
    ))
}

/// Prints a token of a run or an identity.
pub(crate) fn token(args: &TokenArgs) -> Result<(), Failure> {
    let TokenArgs { dir, role, renew, once, refuse, valid } = args;
    if !dir.join(role.file()).exists() {
        let why = match dir.is_dir() {
            true => "it has no token: give the folder of a live run, or of an identity",
            false => "there is no such folder: give that of a live run, or of an identity",
        };
        let dir = dir.display();
        return Err(Failure::BadInput(format!("{dir}: {why}; `dormouse identity DIR` makes one")));
    }
    if let Some(token) = refuse {
        refuse_token(dir, *token)?;
        return print(&format!(
            "token {token} is refused from now on, and the workers that joined with it leave"
        ));
    }
    let token = if *once {
        make_token_for_one(dir, real(*valid))?
    } else if *renew {
        renew_token(dir, *role, real(*valid))?
    } else {
        super::worker::read_token(&dir.join(role.file()), *role)?
    };
    print(token.line().trim())
}

impl From<IdentityError> for Failure {
    fn from(error: IdentityError) -> Self {
        Self::BadInput(dormouse_experiment::chain(&error))
    }
}
