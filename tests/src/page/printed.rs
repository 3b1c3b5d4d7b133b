//! Comparison of the output of commands with the output on the page.

use snapbox::{Data, filter::NormalizeToExpected};

/// The printed text, with the wildcards of the expected text where they match: `...` for any lines, `[..]` for
/// anything within a line. If all matches, the result equals the expected text.
pub(super) fn like_expected(printed: &str, expected: &str) -> String {
    let lines = printed.lines().map(str::trim_end).filter(|line| !is_progress(line));
    let trimmed: Vec<&str> = lines.collect();
    // Empty lines before the first line and after the last one do not count.
    let printed = format!("{}\n", trimmed.join("\n").trim_matches('\n'));
    let data =
        NormalizeToExpected::new().redact().normalize(Data::text(printed), &Data::text(expected));
    let text = data.render().unwrap_or_default();
    if text.ends_with('\n') { text } else { text + "\n" }
}

/// Whether a line reports the progress of a run: such a line is printed on slow machines only.
fn is_progress(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(4).collect();
    let is_number = |word: &str| word.chars().all(|c| c.is_ascii_digit());
    matches!(words[..], ["dormouse:", done, "of", all] if is_number(done) && is_number(all))
}

/// The first difference of the texts: two lines before it, then at most twenty lines of each text, with - before
/// expected lines and + before printed ones.
pub(super) fn difference(expected: &str, printed: &str) -> String {
    let (expected, printed): (Vec<_>, Vec<_>) =
        (expected.lines().collect(), printed.lines().collect());
    let same = expected.iter().zip(&printed).take_while(|(a, b)| a == b).count();
    let shown = |sign: &str, lines: &[&str]| -> String {
        let lines = lines.iter().skip(same).take(20);
        lines.map(|line| format!("{sign} {line}\n")).collect()
    };
    let before: String =
        expected[same.saturating_sub(2)..same].iter().map(|line| format!("  {line}\n")).collect();
    [before, shown("-", &expected), shown("+", &printed)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_lines_and_parts_of_lines() {
        let expected = "a [..] s\n...\nlast\n";
        assert_eq!(like_expected("a 12 s\nb\nc\nlast   \n", expected), expected);
        assert_ne!(like_expected("a 12 ms\nb\nc\nlast\n", expected), expected);
        assert_ne!(like_expected("a 12 s\nb\nc\n", expected), expected);
        assert_ne!(like_expected("a 12 s\nlast\nmore\n", expected), expected);
    }

    #[test]
    fn progress_is_not_compared() {
        let printed = "dormouse: 3 of 40 runs, about 9 s left\na\n";
        assert_eq!(like_expected(printed, "a\n"), "a\n");
        let other = "dormouse: 3 of the runs\n";
        assert_eq!(like_expected(other, "a\n"), other);
    }

    #[test]
    fn what_fits_keeps_its_wildcards() {
        assert_eq!(like_expected("took 3 s\nnew\n", "took [..] s\nold\n"), "took [..] s\nnew\n");
    }

    #[test]
    fn a_difference_begins_where_the_first_line_differs() {
        let shown = difference("1\n2\n3\nx\n", "1\n2\n3\ny\nz\n");
        assert_eq!(shown, "  2\n  3\n- x\n+ y\n+ z\n");
    }
}
