//! Errors as one line.

use std::error::Error;

/// An error with its causes, separated by colons. A cause whose text the line already has is left out: some errors say in
/// their own text why they happened.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let why = error.to_string();
        if !text.contains(&why) {
            text = format!("{text}: {why}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// An error that has its cause's text in its own, or has not.
    #[derive(Debug)]
    struct ReadError {
        text: String,
        source: io::Error,
    }

    impl std::fmt::Display for ReadError {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(&self.text)
        }
    }

    impl Error for ReadError {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.source)
        }
    }

    #[test]
    fn each_cause_stands_in_the_line_once() {
        let error = |text: &str| {
            chain(&ReadError {
                text: text.to_owned(),
                source: io::Error::other("permission denied"),
            })
        };
        let says_why = "run.toml: permission denied; read it as its owner";
        assert_eq!(error(says_why), says_why);
        assert_eq!(error("the run can't be read"), "the run can't be read: permission denied");
    }
}
