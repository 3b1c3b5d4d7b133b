//! The part of YAML in which programs write their documents: nested blocks of `key: value` and `- entry`, plain and quoted
//! text, and lists and objects in brackets, each on one line or folded. Anchors, tags and block texts (`|`, `>`) are refused
//! with their line.

use std::path::Path;

use dormouse_documents::{InputError, Place};

/// Deepest nesting of a YAML document that is read.
const DEEPEST: usize = 64;

/// Greatest length of a list, object or text that extends over several lines, in bytes.
const LONGEST: usize = 64 << 10;

/// A value of a YAML document, with the line on which it begins.
#[derive(Clone, Debug)]
pub(super) struct YamlNode {
    line: usize,
    text: String,
    value: YamlValue,
}

#[derive(Clone, Debug)]
enum YamlValue {
    Scalar(String),
    List(Vec<YamlNode>),
    Map(Vec<(String, YamlNode)>),
}

impl YamlNode {
    /// The value of a key; `None`: this node is not an object, or lacks the key.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            YamlValue::Map(all) => all.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    pub(super) fn list(&self) -> Option<&[Self]> {
        match &self.value {
            YamlValue::List(all) => Some(all),
            _ => None,
        }
    }

    pub(super) fn scalar(&self) -> Option<String> {
        match &self.value {
            YamlValue::Scalar(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// The value of a key as text.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.scalar()
    }

    pub(super) fn place(&self, source: &str) -> Place {
        Place::line(Path::new(source), self.line, &self.text)
    }
}

/// A line that is not empty, joined with the further lines over which a list, object or text extends.
struct YamlLine {
    number: usize,
    indent: usize,
    text: String,
}

/// Parses a document.
///
/// # Errors
///
/// The first line that is not in the supported part of YAML.
pub(super) fn parse(source: &str, text: &str) -> Result<YamlNode, InputError> {
    let mut lines: Vec<YamlLine> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(text.lines()) {
        let text = without_comment(line).trim_end();
        let inside = text.trim_start_matches(' ');
        match lines.last_mut().filter(|_| is_open) {
            Some(before) => {
                before.text.push(' ');
                before.text.push_str(line.trim());
            }
            None if inside.is_empty() || matches!(text, "---" | "...") => continue,
            None => {
                let indent = text.len() - inside.len();
                lines.push(YamlLine { number, indent, text: inside.to_owned() });
            }
        }
        // What has grown beyond this is no list that somebody folded.
        is_open = lines.last().is_some_and(|it| it.text.len() < LONGEST && is_unclosed(&it.text));
    }
    lines.reverse();
    let mut reading = YamlReading { source, lines };
    let indent = reading.lines.last().map_or(0, |line| line.indent);
    let root = reading.block(indent, DEEPEST)?;
    match reading.lines.last() {
        Some(line) => Err(reading.wrong(line, "its indentation does not fit the lines above it")),
        None => Ok(root),
    }
}

/// State of reading a document: the document's lines that are left, the next one last.
struct YamlReading<'a> {
    source: &'a str,
    lines: Vec<YamlLine>,
}

impl YamlReading<'_> {
    fn wrong(&self, line: &YamlLine, what: &str) -> InputError {
        let place = Place::line(Path::new(self.source), line.number, &line.text);
        InputError::new(
            &place,
            what,
            "write lines `key: value` and `- entry`, indented by what they belong to",
        )
    }

    fn too_deep(&self, line: &YamlLine) -> InputError {
        let place = Place::line(Path::new(self.source), line.number, &line.text);
        InputError::new(
            &place,
            format!("it is nested more than {DEEPEST} deep"),
            "nest it less deeply",
        )
    }

    /// Reads the block whose lines have this indentation.
    fn block(&mut self, indent: usize, left: usize) -> Result<YamlNode, InputError> {
        let Some(first) = self.lines.last() else {
            return Ok(node(0, "", YamlValue::Scalar(String::new())));
        };
        let (number, text) = (first.number, first.text.clone());
        if left == 0 {
            return Err(self.too_deep(first));
        }
        if is_entry(&text) {
            let all = self.entries(indent, left)?;
            return Ok(node(number, &text, YamlValue::List(all)));
        }
        if split_key(&text).is_none() {
            self.lines.pop();
            return self.inline(number, &text, left - 1);
        }
        let mut all = Vec::new();
        while let Some(line) = self.lines.pop_if(|line| line.indent == indent) {
            let Some((key, value)) = split_key(&line.text) else {
                return Err(self.wrong(&line, "it is not a key with a value, such as name: value"));
            };
            let value = match value {
                "" => self.below(indent, &line, left)?,
                value => {
                    let value = self.folded(indent, value);
                    self.inline(line.number, &value, left - 1)?
                }
            };
            all.push((key, value));
        }
        Ok(node(number, &text, YamlValue::Map(all)))
    }

    /// Reads the entries of the list whose dashes have this indentation.
    fn entries(&mut self, indent: usize, left: usize) -> Result<Vec<YamlNode>, InputError> {
        let mut all = Vec::new();
        while let Some(line) =
            self.lines.pop_if(|line| line.indent == indent && is_entry(&line.text))
        {
            let inside = line.text[1..].trim_start();
            if inside.is_empty() {
                all.push(self.below(indent, &line, left)?);
            } else if split_key(inside).is_some() || is_entry(inside) {
                let within = indent + (line.text.len() - inside.len());
                let text = inside.to_owned();
                self.lines.push(YamlLine { number: line.number, indent: within, text });
                all.push(self.block(within, left - 1)?);
            } else {
                let value = self.folded(indent, inside);
                all.push(self.inline(line.number, &value, left - 1)?);
            }
        }
        Ok(all)
    }

    /// A plain text joined with the following lines that are indented further and have no key or dash.
    fn folded(&mut self, indent: usize, text: &str) -> String {
        let mut folded = text.to_owned();
        let goes_on = |line: &mut YamlLine| {
            line.indent > indent && split_key(&line.text).is_none() && !is_entry(&line.text)
        };
        while let Some(line) = self.lines.pop_if(goes_on) {
            folded.push(' ');
            folded.push_str(&line.text);
        }
        folded
    }

    /// Reads the block below the line of a key or a dash. The block is indented further; only a list may be indented as
    /// far as its key.
    fn below(&mut self, indent: usize, of: &YamlLine, left: usize) -> Result<YamlNode, InputError> {
        let is_list =
            |line: &YamlLine| line.indent == indent && is_entry(&line.text) && !is_entry(&of.text);
        match self.lines.last().filter(|line| line.indent > indent || is_list(line)) {
            Some(line) => {
                let inside = line.indent;
                self.block(inside, left - 1)
            }
            None => Ok(node(of.number, &of.text, YamlValue::Scalar(String::new()))),
        }
    }

    /// Parses a value that stands on the line of its key or dash.
    fn inline(&self, number: usize, text: &str, left: usize) -> Result<YamlNode, InputError> {
        let line = YamlLine { number, indent: 0, text: text.to_owned() };
        if left == 0 {
            return Err(self.too_deep(&line));
        }
        if text.starts_with(['&', '*', '!', '|', '>']) {
            return Err(self.wrong(&line, "anchors, tags and block texts are not read"));
        }
        let within = |open: char, close: char| text.strip_prefix(open)?.strip_suffix(close);
        if let Some(inside) = within('[', ']') {
            let entries = split_entries(inside).into_iter();
            let all = entries
                .map(|entry| self.inline(number, entry, left - 1))
                .collect::<Result<_, _>>()?;
            return Ok(node(number, text, YamlValue::List(all)));
        }
        if let Some(inside) = within('{', '}') {
            let mut all = Vec::new();
            for entry in split_entries(inside) {
                let Some((key, value)) = split_key(entry) else {
                    return Err(self.wrong(&line, "an object in { } has an entry without a key"));
                };
                all.push((key, self.inline(number, value, left - 1)?));
            }
            return Ok(node(number, text, YamlValue::Map(all)));
        }
        if text.starts_with(['[', '{']) {
            return Err(self.wrong(&line, "a list or object in brackets does not end"));
        }
        let is_open =
            |mark: char| text.starts_with(mark) && (text.len() < 2 || !text.ends_with(mark));
        if is_open('"') || is_open('\'') {
            return Err(self.wrong(&line, "a text in quotation marks does not end"));
        }
        Ok(node(number, text, YamlValue::Scalar(unquoted(text))))
    }
}

fn node(line: usize, text: &str, value: YamlValue) -> YamlNode {
    YamlNode { line, text: text.to_owned(), value }
}

/// True if a line is an entry of a list.
fn is_entry(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

/// True if the value on this line begins with a bracket or a quotation mark that is not closed yet.
fn is_unclosed(text: &str) -> bool {
    let mut value = text;
    while let Some(inside) = value.strip_prefix("- ") {
        value = inside.trim_start();
    }
    let value = split_key(value).map_or(value, |(_, value)| value);
    if let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        return value.len() < 2 || !value.ends_with(quote);
    }
    let (mut depth, mut quote, mut before) = (0_i64, None, ' ');
    for letter in value.chars().filter(|_| value.starts_with(['[', '{'])) {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if before.is_whitespace() || "[{,:".contains(before) => {
                quote = Some(letter);
            }
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            _ => {}
        }
        before = letter;
    }
    depth > 0
}

/// A line without the comment at its end.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            (None, '#') if before.is_whitespace() => return &line[..at],
            (None, '"' | '\'') if before.is_whitespace() || "[{,:".contains(before) => {
                quote = Some(letter);
            }
            (Some(open), letter) if letter == open => quote = None,
            _ => {}
        }
        before = letter;
    }
    line
}

/// Key and value of a line; `None`: it has no key.
fn split_key(text: &str) -> Option<(String, &str)> {
    if text.starts_with(['[', '{']) {
        return None;
    }
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let (key, rest) = text[1..].split_once(quote)?;
        let value = rest.strip_prefix(':')?;
        return Some((key.to_owned(), value.trim()));
    }
    match text.split_once(": ") {
        Some((key, value)) => Some((key.trim().to_owned(), value.trim())),
        None => text.strip_suffix(':').map(|key| (key.trim().to_owned(), "")),
    }
}

/// Entries of a list between commas; commas within brackets or quotation marks don't separate.
fn split_entries(text: &str) -> Vec<&str> {
    let (mut all, mut begin, mut depth, mut quote) = (Vec::new(), 0, 0_u32, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                all.push(text.get(begin..at).unwrap_or_default().trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    all.push(text.get(begin..).unwrap_or_default().trim());
    all.retain(|entry| !entry.is_empty());
    all
}

/// A text without the quotation marks around it.
fn unquoted(text: &str) -> String {
    let inside = |mark: char| text.strip_prefix(mark).and_then(|text| text.strip_suffix(mark));
    if let Some(text) = inside('\'') {
        return text.replace("''", "'");
    }
    match inside('"') {
        Some(text) => text.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lists_and_quoted_texts_are_read() {
        let text = "# made by a program\n---\nname: 'it''s'\nempty:\njobs:\n- id: a # the first\n  uses:\n    - {lfn: \"x, y\", type: input}\n  \
                    args: [-i, \"#3\", [1, 2]]\n-\n  id: b\n- plain text\nlast: \"a: b\"\n";
        let root = parse("some.yml", text).expect("it is right");
        assert_eq!(root.text("name").as_deref(), Some("it's"));
        assert_eq!(
            (root.text("empty").as_deref(), root.text("last").as_deref()),
            (Some(""), Some("a: b"))
        );
        let jobs = root.get("jobs").and_then(YamlNode::list).expect("a list");
        let ids: Vec<_> = jobs.iter().map(|job| job.text("id")).collect();
        assert_eq!(ids, [Some("a".to_owned()), Some("b".to_owned()), None]);
        let file = &jobs[0].get("uses").and_then(YamlNode::list).expect("a list")[0];
        assert_eq!(file.text("lfn").as_deref(), Some("x, y"));
        let args = jobs[0].get("args").and_then(YamlNode::list).expect("a list");
        assert_eq!(args[1].scalar().as_deref(), Some("#3"));
        assert_eq!(args[2].list().map(<[YamlNode]>::len), Some(2));
        assert_eq!(jobs[2].scalar().as_deref(), Some("plain text"));
    }

    /// Lists and texts that extend over several lines are read, as PyYAML writes what is longer than 80 columns.
    #[test]
    fn lists_and_texts_go_on_over_several_lines() {
        let text = "a: [1, 'x,\n    y', {b: c,\n  d: e}]\nf: a plain\n  text\n- g\n";
        assert!(parse("some.yml", text).is_err(), "an entry among keys");
        let text = text.replace("- g\n", "g: \"two\n  lines\"\nh:\n- one\n  more\n- two\n");
        let root = parse("some.yml", &text).expect("it is right");
        let list = root.get("a").and_then(YamlNode::list).expect("a list");
        assert_eq!(list[1].scalar().as_deref(), Some("x, y"));
        assert_eq!(list[2].text("d").as_deref(), Some("e"));
        assert_eq!(root.text("f").as_deref(), Some("a plain text"));
        assert_eq!(root.text("g").as_deref(), Some("two lines"));
        let last = root.get("h").and_then(YamlNode::list).expect("a list");
        assert_eq!(last[0].scalar().as_deref(), Some("one more"));
    }

    #[test]
    fn what_is_not_read_is_refused_with_its_line() {
        for (text, line, what) in [
            ("a: 1\nb: &x 2\n", 2, "anchors"),
            ("a: |\n  text\n", 1, "block texts"),
            ("a: 1\n   b: 2\n", 2, "indentation does not fit"),
            ("a: [1,\n 2\n", 1, "does not end"),
            ("a: \"x\n", 1, "quotation marks"),
            ("a: 1\nb\n", 2, "not a key with a value"),
        ] {
            let error = parse("some.yml", text).expect_err(what).to_string();
            assert!(
                error.contains(what) && error.contains(&format!(":{line}:")),
                "{text}: {error}"
            );
        }
        let brackets = format!("a: {}{}\n", "[".repeat(100_000), "]".repeat(100_000));
        assert!(parse("some.yml", &brackets).expect_err("too deep").to_string().contains("deeply"));
        let deep = (0..100).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>();
        assert!(
            parse("some.yml", &deep)
                .expect_err("too deep")
                .to_string()
                .contains("more than 64 deep")
        );
    }
}
