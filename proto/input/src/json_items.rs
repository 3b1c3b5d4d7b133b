//! Streaming reader of the items of a JSON document; one item is in memory at a time.

use std::io::{self, BufRead};

use crate::{FileFlaw, FlawedRow, Source};

/// Greatest size of an item of a JSON document, in bytes.
const LARGEST_ITEM: usize = 16 << 20;
/// Remedy for a broken JSON document.
const MEND: &str = "correct the file, or download it again";

/// Location of the items in a JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemsAt {
    /// The items are in a list: the whole document is that list, or an object that has the list under this key.
    List(&'static str),
    /// The items are in a list as with [`Self::List`]; if there is no list, each document is an item, as in JSON lines.
    ListOrDocuments(&'static str),
    /// The items are the values of the document's keys; the document is an object.
    Values,
}

/// An item of a document.
#[derive(Clone, Copy, Debug)]
pub struct JsonItem<'a> {
    /// Line on which the item begins, from 1.
    pub line: u64,
    /// Key of the item in an object, as the file writes it, or the item's index in a list, after the list's key if
    /// there is one: `L.0`.
    pub key: &'a str,
    /// True if the item is a whole document; its key is then the document's index.
    pub is_document: bool,
    /// Bytes of the item, which may not be valid JSON.
    pub bytes: &'a [u8],
}

/// The list or object that contains the next item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemContext {
    /// The reader is before the next document.
    Nothing,
    /// The reader is in a list that is the whole document.
    List,
    /// The reader is in a list that is the value of a key of the document.
    ListOfKey,
    /// The reader is in the document, an object whose values are the items.
    Object,
    /// The reader has read a document that is itself an item.
    Document,
}

/// Reads the items of one or several concatenated documents.
///
/// Only the structure around the items is checked; the caller parses each item's bytes.
pub struct JsonItems {
    input: Box<dyn BufRead + Send>,
    at: ItemsAt,
    within: ItemContext,
    is_first: bool,
    line: u64,
    count: u64,
    has_list: bool,
    key: String,
    item: Vec<u8>,
    /// Bytes of a document up to its list; if there is no list, the document is the item.
    document: Vec<u8>,
    /// Line on which the document in `document` begins.
    document_line: u64,
}

impl std::fmt::Debug for JsonItems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JsonItems").field("line", &self.line).finish_non_exhaustive()
    }
}

impl JsonItems {
    /// Reads the items of a file, which may be packed.
    #[must_use]
    pub fn new(source: Source, at: ItemsAt) -> Self {
        Self {
            input: source.into_input(),
            at,
            within: ItemContext::Nothing,
            is_first: true,
            line: 1,
            count: 0,
            has_list: false,
            key: String::new(),
            item: Vec::new(),
            document: Vec::new(),
            document_line: 1,
        }
    }

    /// The next item; `None` at the end.
    ///
    /// # Errors
    ///
    /// The file can't be read or unpacked, ends too early, is not JSON around its items, or has no list of items.
    pub fn next_item(&mut self) -> Result<Option<JsonItem<'_>>, FileFlaw> {
        loop {
            let end = match self.within {
                ItemContext::Nothing => {
                    if !self.begin_document()? {
                        return Ok(None);
                    }
                    continue;
                }
                ItemContext::Document => {
                    self.enter_context(ItemContext::Nothing);
                    self.key = self.count.to_string();
                    self.count += 1;
                    let (line, bytes) = (self.document_line, &self.document[..]);
                    return Ok(Some(JsonItem { line, key: &self.key, is_document: true, bytes }));
                }
                ItemContext::Object => b'}',
                ItemContext::List | ItemContext::ListOfKey => b']',
            };
            if !self.is_over(end)? {
                match (self.within, self.at) {
                    (ItemContext::Object, _) => self.read_key()?,
                    (
                        ItemContext::ListOfKey,
                        ItemsAt::List(key) | ItemsAt::ListOrDocuments(key),
                    ) => {
                        self.key = format!("{key}.{}", self.count);
                    }
                    _ => self.key = self.count.to_string(),
                }
                return self.take_item().map(Some);
            }
            // The rest of the document after its list has no items, but must be complete.
            let is_again = match (self.within, self.at) {
                (ItemContext::ListOfKey, ItemsAt::List(key) | ItemsAt::ListOrDocuments(key)) => {
                    self.find_list(key, false, false)?
                }
                _ => false,
            };
            self.enter_context(if is_again {
                ItemContext::ListOfKey
            } else {
                ItemContext::Nothing
            });
        }
    }

    /// Begins the next document; returns false if the input has no more documents.
    fn begin_document(&mut self) -> Result<bool, FileFlaw> {
        let Some(letter) = self.peek_letter()? else { return Ok(false) };
        match (letter, self.at) {
            (b'[', ItemsAt::List(_) | ItemsAt::ListOrDocuments(_)) => {
                self.input.consume(1);
                self.has_list = true;
                self.enter_context(ItemContext::List);
            }
            (b'{', ItemsAt::Values) => {
                self.input.consume(1);
                self.enter_context(ItemContext::Object);
            }
            (b'{', ItemsAt::List(key)) => {
                self.input.consume(1);
                if self.find_list(key, true, false)? {
                    self.has_list = true;
                    self.enter_context(ItemContext::ListOfKey);
                } else if !self.has_list {
                    let what = format!("it is JSON without a list '{key}'");
                    let remedy = format!("give an object with a list '{key}', or the list itself");
                    return Err(FileFlaw::whole(what, remedy));
                }
            }
            (b'{', ItemsAt::ListOrDocuments(key)) => {
                self.input.consume(1);
                self.document_line = self.line;
                let has_list = self.find_list(key, true, true)?;
                self.enter_context(if has_list {
                    ItemContext::ListOfKey
                } else {
                    ItemContext::Document
                });
            }
            (b'[', ItemsAt::Values) => {
                let what = "it is a JSON list, and not an object of entries";
                return Err(FileFlaw::whole(what, "give an object, or rows of CSV"));
            }
            _ => return Err(self.unexpected_letter(letter)),
        }
        Ok(true)
    }

    fn enter_context(&mut self, within: ItemContext) {
        (self.within, self.is_first) = (within, true);
    }

    /// True if the list or object ends here, with the character `end`; else an item follows.
    fn is_over(&mut self, end: u8) -> Result<bool, FileFlaw> {
        let is_first = std::mem::take(&mut self.is_first);
        match self.expect_letter()? {
            letter if letter == end => {
                self.input.consume(1);
                Ok(true)
            }
            b',' if !is_first => {
                self.input.consume(1);
                Ok(false)
            }
            _ if is_first => Ok(false),
            letter => Err(self.unexpected_letter(letter)),
        }
    }

    /// Reads keys and values of an object up to a list under the key `wanted`, whose bracket is
    /// consumed; false if the object ends first. With `is_kept` the bytes are kept in `document`.
    fn find_list(&mut self, wanted: &str, is_first: bool, is_kept: bool) -> Result<bool, FileFlaw> {
        self.is_first = is_first;
        self.document.clear();
        self.document.push(b'{');
        while !self.is_over(b'}')? {
            self.read_key()?;
            if self.expect_letter()? == b'[' && self.key == wanted {
                self.input.consume(1);
                return Ok(true);
            }
            if is_kept {
                let comma = if self.document.len() > 1 { "," } else { "" };
                self.document.extend_from_slice(format!("{comma}\"{}\":", self.key).as_bytes());
            }
            self.read_value(is_kept)?;
            if is_kept {
                self.document.extend_from_slice(&self.item);
                if self.document.len() > LARGEST_ITEM {
                    return Err(self.too_long());
                }
            }
        }
        self.document.push(b'}');
        Ok(false)
    }

    /// Reads a key and the colon after it.
    fn read_key(&mut self) -> Result<(), FileFlaw> {
        match self.expect_letter()? {
            b'"' => self.read_value(true)?,
            letter => return Err(self.unexpected_letter(letter)),
        }
        let text = String::from_utf8_lossy(&self.item);
        self.key = text.trim_matches('"').to_owned();
        match self.expect_letter()? {
            b':' => self.input.consume(1),
            letter => return Err(self.unexpected_letter(letter)),
        }
        Ok(())
    }

    fn take_item(&mut self) -> Result<JsonItem<'_>, FileFlaw> {
        // An item begins on the line of its first letter, after the blanks before it.
        let letter = self.expect_letter()?;
        if b",:]}".contains(&letter) {
            return Err(self.unexpected_letter(letter));
        }
        let line = self.line;
        self.read_value(true)?;
        self.count += 1;
        Ok(JsonItem { line, key: &self.key, is_document: false, bytes: &self.item })
    }

    /// Reads a value to its end, and keeps its bytes if `is_kept`.
    fn read_value(&mut self, is_kept: bool) -> Result<(), FileFlaw> {
        self.item.clear();
        let (mut depth, mut is_text, mut is_escaped, mut is_begun) = (0_u32, false, false, false);
        loop {
            let buffer = fill_buffer(&mut *self.input)?;
            if buffer.is_empty() {
                return Err(self.ended_early());
            }
            let (mut used, mut is_over) = (buffer.len(), false);
            for (n, &letter) in buffer.iter().enumerate() {
                if is_text {
                    match letter {
                        _ if is_escaped => is_escaped = false,
                        b'\\' => is_escaped = true,
                        b'"' => {
                            is_text = false;
                            if depth == 0 {
                                (used, is_over) = (n + 1, true);
                                break;
                            }
                        }
                        b'\n' => self.line += 1,
                        _ => {}
                    }
                    continue;
                }
                match letter {
                    b'"' => is_text = true,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' if depth > 0 => {
                        depth -= 1;
                        if depth == 0 {
                            (used, is_over) = (n + 1, true);
                            break;
                        }
                    }
                    // A number or a word ends where something else begins.
                    b'}' | b']' | b',' | b':' if depth == 0 => {
                        (used, is_over) = (n, true);
                        break;
                    }
                    letter if letter.is_ascii_whitespace() && depth == 0 && is_begun => {
                        (used, is_over) = (n, true);
                        break;
                    }
                    b'\n' => self.line += 1,
                    _ => {}
                }
                is_begun = true;
            }
            if is_kept {
                self.item.extend_from_slice(&buffer[..used]);
            }
            self.input.consume(used);
            if is_over {
                return Ok(());
            }
            if self.item.len() > LARGEST_ITEM {
                return Err(self.too_long());
            }
        }
    }

    /// The next non-blank character, which is not consumed; an error at the end of the file.
    fn expect_letter(&mut self) -> Result<u8, FileFlaw> {
        match self.peek_letter()? {
            Some(letter) => Ok(letter),
            None => Err(self.ended_early()),
        }
    }

    /// The next non-blank character, which is not consumed; `None` at the end of the file.
    fn peek_letter(&mut self) -> Result<Option<u8>, FileFlaw> {
        loop {
            let buffer = fill_buffer(&mut *self.input)?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let found = buffer.iter().position(|letter| !letter.is_ascii_whitespace());
            let blanks = &buffer[..found.unwrap_or(buffer.len())];
            let breaks = blanks.iter().map(|letter| u64::from(*letter == b'\n')).sum::<u64>();
            let (used, letter) = (blanks.len(), found.map(|at| buffer[at]));
            self.line += breaks;
            self.input.consume(used);
            if letter.is_some() {
                return Ok(letter);
            }
        }
    }

    fn unexpected_letter(&self, letter: u8) -> FileFlaw {
        let what = format!("not valid JSON: '{}' is not expected here", letter.escape_ascii());
        self.flaw_here(what, MEND)
    }

    fn too_long(&self) -> FileFlaw {
        self.flaw_here("an entry is longer than 16 MiB", "give a file of entries")
    }

    fn ended_early(&self) -> FileFlaw {
        self.flaw_here("not valid JSON: it ends in the middle", MEND)
    }

    fn flaw_here(&self, what: impl Into<String>, remedy: &str) -> FileFlaw {
        let (what, remedy) = (what.into(), remedy.to_owned());
        FileFlaw::Row(FlawedRow { line: self.line, row: String::new(), what, remedy })
    }
}

/// The next buffered bytes; interrupted reads are repeated.
fn fill_buffer(input: &mut dyn BufRead) -> io::Result<&[u8]> {
    loop {
        match input.fill_buf() {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    input.fill_buf()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn items(text: &str, at: ItemsAt) -> Result<Vec<(u64, String, String)>, String> {
        let source = Source::new(Cursor::new(text.as_bytes().to_vec())).unwrap();
        let (mut items, mut all) = (JsonItems::new(source, at), Vec::new());
        while let Some(item) = items.next_item().map_err(|error| error.to_string())? {
            let bytes = String::from_utf8(item.bytes.to_vec()).unwrap();
            all.push((item.line, item.key.to_owned(), bytes));
        }
        Ok(all)
    }

    fn of_list(text: &str) -> Vec<String> {
        let all = items(text, ItemsAt::List("L")).unwrap();
        all.into_iter().map(|(_, _, bytes)| bytes).collect()
    }

    #[test]
    fn items_of_a_list_are_found_wherever_it_is() {
        let both = ["{\"a\": \"]}\\\"\"}", "2"];
        for text in [
            "[{\"a\": \"]}\\\"\"}, 2 ]",
            "{\"x\": [1, {\"L\": 3}], \"L\":\n[{\"a\": \"]}\\\"\"}\n,2\n], \"y\": null}\n",
            "{\"L\": [{\"a\": \"]}\\\"\"}]}\n{\"L\": [2]}",
        ] {
            assert_eq!(of_list(text), both, "{text}");
        }
        assert_eq!(of_list("{\"L\": []}"), Vec::<String>::new());
        assert_eq!(of_list(" "), Vec::<String>::new());
    }

    #[test]
    fn each_document_is_an_item_where_none_has_the_list() {
        let at = ItemsAt::ListOrDocuments("L");
        let lines = "{\"a\": 1, \"b\" : [2, \"}\"]}\n\n{ \"a\":3}\n";
        let item = |line: u64, key: &str, text: &str| (line, key.to_owned(), text.to_owned());
        let all = items(lines, at).unwrap();
        assert_eq!(all, [item(1, "0", "{\"a\":1,\"b\":[2, \"}\"]}"), item(3, "1", "{\"a\":3}")]);
        // Lists are found as before, and answers and lines may follow each other.
        for text in ["[1]", "{\"x\": 0, \"L\": [1], \"y\": 2}"] {
            assert_eq!(
                items(text, at).unwrap(),
                items(text, ItemsAt::List("L")).unwrap(),
                "{text}"
            );
        }
        let both = items("{\"L\": [1]}{\"a\": 2}", at).unwrap();
        assert_eq!(both, [item(1, "L.0", "1"), item(1, "1", "{\"a\":2}")]);
        assert_eq!(items("{}", at).unwrap(), [item(1, "0", "{}")]);
        let error = items("{\"a\": 1}\n{\"a\": ", at).unwrap_err();
        assert!(error.contains("line 2: not valid JSON: it ends in the middle"), "{error}");
    }

    #[test]
    fn values_of_an_object_have_their_keys_and_lines() {
        let all = items("{\"a\": {\"b\": 1},\n \"c\":\n 3.5}", ItemsAt::Values).unwrap();
        let item = |line: u64, key: &str, text: &str| (line, key.to_owned(), text.to_owned());
        assert_eq!(all, [item(1, "a", "{\"b\": 1}"), item(3, "c", "3.5")]);
    }

    #[test]
    fn broken_documents_are_refused_with_their_line() {
        for (text, words) in [
            ("{\"x\": 1}", "it is JSON without a list 'L'"),
            ("{\"L\": [1, 2", "line 1: not valid JSON: it ends in the middle"),
            ("{\"L\": [1]\n", "line 2: not valid JSON: it ends in the middle"),
            ("[1\n 2]", "line 2: not valid JSON: '2' is not expected here"),
            ("[1,]", "']' is not expected here"),
            ("[1] x", "'x' is not expected here"),
            ("{x: 1}", "'x' is not expected here"),
        ] {
            let error = items(text, ItemsAt::List("L")).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
