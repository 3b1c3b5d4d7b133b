//! Commands as text that can be typed again.

/// The words as one line that a shell splits into the same words.
pub fn command_line<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let words: Vec<S> = words.into_iter().collect();
    let quoter = shlex::Quoter::new().allow_nul(true);
    // Only a NUL can't be quoted, and it is let through: no shell could have given it.
    quoter.join(words.iter().map(AsRef::as_ref)).unwrap_or_default()
}

/// Adds an option once for each of its values; without values it is left out.
pub fn option<V: ToString>(
    words: &mut Vec<String>,
    name: &str,
    values: impl IntoIterator<Item = V>,
) {
    words.extend(values.into_iter().flat_map(|value| [name.to_owned(), value.to_string()]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_words_that_were_written() {
        let words = ["run", "my file.toml", "it's", "\"x\"", "a=$HOME;`id`", "", "ä\nb", "~*?#!"];
        let line = command_line(words);
        let read = std::process::Command::new("sh")
            .args(["-c", &format!("printf '%s\\037' {line}")])
            .output()
            .expect("there is a shell");
        let read = String::from_utf8(read.stdout).expect("text");
        assert_eq!(read.split_terminator('\u{1f}').collect::<Vec<_>>(), words, "{line}");
    }
}
