//! Malformed logs: each gives one clear error with file and line, or its bad jobs are skipped and counted.

#![expect(clippy::disallowed_methods, reason = "the crate opens no file, its tests do")]

use std::fs::File;
use std::io::Cursor;
use std::path::Path;

use dormouse_model::Submission;
use dormouse_units::Bytes;
use proptest::prelude::*;

use crate::{
    Fractions, Header, JobSize, LogRules, NoEstimate, OddJobs, OnMalformed, RanOver, Repeated,
    SwfError, SwfJob, SwfReader, SwfWriter, Trace,
};

fn trace(text: &[u8], rules: impl Into<LogRules>) -> Result<Trace, SwfError> {
    let input = Box::new(Cursor::new(text.to_vec()));
    Trace::new(SwfReader::new(Path::new("some.swf"), input, rules)?, Some(100))
}

/// All jobs of a log and its trace, which counts the skipped jobs, or the first error as text.
fn read(text: &[u8], rules: impl Into<LogRules>) -> Result<(Vec<Submission>, Trace), String> {
    let mut trace = trace(text, rules).map_err(|e| e.to_string())?;
    let jobs: Result<Vec<_>, _> = trace.by_ref().collect();
    Ok((jobs.map_err(|e| e.to_string())?, trace))
}

fn line(number: i64, submitted: i64, runtime: i64, size: i64) -> String {
    format!("{number} {submitted} -1 {runtime} {size} -1 -1 {size} 60 -1 1 1 1 1 1 1 -1 -1\n")
}

#[test]
fn each_kind_of_bad_line_is_named_or_counted() {
    let good = line(1, 10, 5, 4);
    for (bad, says) in [
        ("2 20 -1 5\n".to_owned(), "it has 4 fields, not 18"),
        (line(2, 20, 5, 4).replace("60", "1h"), "field 9 is not a number"),
        (line(2, 20, -5, 4), "field 4 is -5"),
        (line(2, -1, 5, 4), "submission time is not known"),
        (line(2, 20, 5, 101), "wants 101 processors; the machine has 100"),
        (line(2, 9, 5, 4), "submitted at 9 s, before the job in the line above (10 s)"),
        (line(2, i64::MAX, 5, 4), "too large"),
        ("\u{0}\u{1}\u{7f}junk\n".to_owned(), "field 1 is not a number"),
        ("9".repeat(200_000) + "\n", "longer than"),
    ] {
        let text = format!("; MaxProcs: 100\n{good}{bad}{}", line(3, 30, 5, 4));
        let error = read(text.as_bytes(), OnMalformed::Fail).expect_err(says);
        assert!(error.contains("some.swf, line 3: ") && error.contains(says), "{error}");
        let (jobs, trace) = read(text.as_bytes(), OnMalformed::Skip).expect("skipped");
        assert_eq!(jobs.iter().map(|j| j.number).collect::<Vec<_>>(), [1, 3], "{says}");
        assert_eq!(trace.skipped().malformed(), 1, "{says}");
        let told = trace.skipped().to_string();
        assert!(told.starts_with("left out 1 malformed jobs (1 "), "{told}");
        assert!(told.contains("; the first on line 3: ") && told.contains(says), "{told}");
    }
    let (_, trace) = read(good.as_bytes(), OnMalformed::Skip).expect("it is read");
    assert_eq!(trace.skipped().to_string(), "left out no malformed jobs");
    let never = good.clone() + &line(2, 20, -1, 4);
    let (_, trace) = read(never.as_bytes(), OnMalformed::Skip).expect("it is read");
    assert_eq!(trace.skipped().to_string(), "left out 1 that never ran");
}

/// Each oddity of a job is counted and has a rule, by which the job is malformed or changed.
#[test]
fn what_is_odd_is_counted_and_has_a_rule() {
    let text = "1 0 -1 90 4 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1\n\
                2 1 -1 50 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n\
                3 2 -1 50 8 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1\n\
                3 3 -1 50 4 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1\n\
                5 4.5 -1 50 4 7.25 -1 4 60 -1 1 1 1 1 1 1 -1 -1\n\
                6 5 -1 50 4 7.25 -1 4 60.0 -1 1 1 1 1 1 1 -1 -1\n";
    let of = |rules: LogRules| {
        let (jobs, trace) = read(text.as_bytes(), rules).expect("it is read");
        let seconds = |span: dormouse_units::Span| span.as_micros() / 1_000_000;
        let jobs =
            jobs.iter().map(|j| (j.number, seconds(j.runtime), seconds(j.estimate), j.processes));
        (jobs.collect::<Vec<_>>(), trace.skipped())
    };
    let keep = LogRules { on_malformed: OnMalformed::Skip, ..LogRules::default() };
    let (jobs, found) = of(keep);
    let all = OddJobs {
        ran_over: 1,
        no_estimate: 1,
        other_size: 1,
        repeated: 1,
        fractions: 1,
        ..OddJobs::default()
    };
    assert_eq!((found.odd, found.malformed()), (all, 0));
    assert_eq!(jobs[..3], [(1, 90, 60, 4), (2, 50, 50, 4), (3, 50, 60, 4)]);
    assert!(found.to_string().contains("of those taken 1 ran longer than estimated, 1 had no"));
    assert_eq!(of(LogRules { ran_over: RanOver::Cut, ..keep }).0[0], (1, 60, 60, 4));
    assert_eq!(of(LogRules { ran_over: RanOver::Raise, ..keep }).0[0], (1, 90, 90, 4));
    assert_eq!(of(LogRules { size: JobSize::Allocated, ..keep }).0[2], (3, 50, 60, 8));
    for (rules, left_out) in [
        (LogRules { no_estimate: NoEstimate::Malformed, ..keep }, 1),
        (LogRules { repeated: Repeated::Malformed, ..keep }, 3),
        (LogRules { fractions: Fractions::Malformed, ..keep }, 4),
    ] {
        let (jobs, found) = of(rules);
        assert_eq!((jobs.len(), found.by_rule, found.malformed()), (5, 1, 1), "{rules:?}");
        let fails = LogRules { on_malformed: OnMalformed::Fail, ..rules };
        let error = read(text.as_bytes(), fails).expect_err("it is malformed");
        assert!(error.contains(&format!("line {}: ", left_out + 1)), "{error}");
    }
}

/// A log without a job that ever ran is not a workload.
#[test]
fn an_empty_log_is_refused() {
    for text in [String::new(), "; MaxProcs: 8\n".to_owned(), line(1, 10, -1, 4)] {
        let error = read(text.as_bytes(), OnMalformed::Skip).expect_err("nothing can be run");
        assert!(error.contains("some.swf has no job that can be run"), "{error}");
    }
}

/// Field 10 (memory per processor in kilobytes) is used if the machine's memory is known.
#[test]
fn jobs_that_want_more_memory_than_there_is_are_named_or_counted() {
    let asks = |number, kilobytes| {
        format!("{number} 10 -1 5 4 -1 999999 4 60 {kilobytes} 1 1 1 1 1 1 -1 -1\n")
    };
    let text = asks(1, 512) + &asks(2, 1536) + &asks(3, -1) + &asks(4, 1024);
    let of = |memory: Option<u64>, on_malformed| {
        let memory = memory.map(Bytes::new);
        let mut trace = trace(text.as_bytes(), on_malformed).expect("opens").with_memory(memory);
        let jobs: Result<Vec<_>, _> = trace.by_ref().collect();
        let memory = |job: &Submission| job.memory.get();
        jobs.map(|jobs| (jobs.iter().map(memory).collect::<Vec<_>>(), trace.skipped().too_large))
    };
    let skipped = of(Some(1 << 20), OnMalformed::Skip).expect("skipped");
    assert_eq!(skipped, (vec![512 << 10, 0, 1 << 20], 1));
    let error = of(Some(1 << 20), OnMalformed::Fail).expect_err("too large").to_string();
    let says = "some.swf, line 2: it wants 1.5 MiB for each process; a process can have 1 MiB";
    assert!(error.contains(says), "{error}");
    assert_eq!(of(None, OnMalformed::Fail).expect("nobody says"), (vec![0; 4], 0));
}

#[test]
fn cancelled_jobs_are_counted_and_are_no_error() {
    let text = line(1, 10, -1, 4) + &line(2, 11, 5, -1) + &line(3, 12, 0, 4);
    let (jobs, trace) = read(text.as_bytes(), OnMalformed::Fail).expect("no error");
    assert_eq!((jobs.len(), trace.skipped().never_ran), (1, 2));
}

#[test]
fn a_log_that_does_not_name_its_machine_needs_the_number() {
    let input = Box::new(Cursor::new(line(1, 10, 5, 4).into_bytes()));
    let reader = SwfReader::new(Path::new("some.swf"), input, OnMalformed::Fail).expect("opens");
    let error = Trace::new(reader, None).expect_err("no machine").to_string();
    assert!(error.contains("some.swf") && error.contains("MaxProcs"), "{error}");
}

#[test]
fn directives_are_honoured_wherever_blanks_are() {
    let text = "; Version: 2.2\n;MaxNodes: 128 (of 140)\n;\n  ; UnixStartTime:  843480031 \n";
    let input = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let reader = SwfReader::new(Path::new("some.swf"), input, OnMalformed::Fail).expect("opens");
    assert_eq!(reader.header().processors(), Some(128));
    assert_eq!(reader.header().unix_start(), Some(843_480_031));
    assert_eq!(reader.count(), 0);
}

#[test]
fn a_missing_file_and_a_cut_gzip_say_so() {
    let nowhere = Path::new("/nonexistent/x.swf");
    let error = Trace::from_file(nowhere, File::open(nowhere), None, OnMalformed::Fail)
        .expect_err("no file")
        .to_string();
    assert!(error.contains("/nonexistent/x.swf"), "{error}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cut.swf.gz");
    std::fs::write(&path, [0x1f, 0x8b, 8, 0, 0]).expect("written");
    let error = Trace::from_file(&path, File::open(&path), Some(4), OnMalformed::Skip)
        .expect_err("cut")
        .to_string();
    assert!(error.contains("cut.swf.gz"), "{error}");
}

/// True if a text is read as a log, or refused only because it has no job or has carriage returns.
fn is_read_or_empty(text: &[u8]) -> bool {
    let has_lone_cr = text.contains(&b'\r');
    read(text, OnMalformed::Skip).err().is_none_or(|error| {
        error.contains("no job that can be run")
            || has_lone_cr && error.contains("can't read some.swf")
    })
}

proptest! {
    /// Like the fuzz target, on fewer inputs: random bytes never make the reader panic, and a reader that skips
    /// malformed lines never fails.
    #[test]
    fn no_bytes_upset_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = read(&bytes, OnMalformed::Fail);
        prop_assert!(is_read_or_empty(&bytes));
    }

    #[test]
    fn no_digits_upset_the_reader(text in "[-0-9. ;:\n]{0,600}") {
        let _ = read(text.as_bytes(), OnMalformed::Fail);
        prop_assert!(is_read_or_empty(text.as_bytes()));
    }

    #[test]
    fn what_is_written_reads_back(
        fields in proptest::collection::vec(proptest::array::uniform18(-1_i64..1 << 40), 0..20),
    ) {
        let jobs: Vec<_> = fields.into_iter().map(SwfJob::from_fields).collect();
        let mut header = Header::default();
        header.set("MaxProcs", 77);
        let mut bytes = Vec::new();
        let mut writer = SwfWriter::new(&mut bytes, &header).expect("to memory");
        for job in &jobs {
            writer.write(job).expect("to memory");
        }
        writer.finish().expect("to memory");
        let input = Box::new(Cursor::new(bytes));
        let reader = SwfReader::new(Path::new("x"), input, OnMalformed::Fail).expect("opens");
        prop_assert_eq!(reader.header().processors(), Some(77));
        let back: Result<Vec<_>, _> = reader.collect();
        prop_assert_eq!(back.expect("well-formed"), jobs);
    }
}
