//! Logs of jobs in all formats: the jobs that are read, the report on the reading, and their schedule under EASY.

#![expect(clippy::disallowed_methods, reason = "the crate opens no file, its tests do")]

use std::convert::Infallible;
use std::io::{Cursor, Read};
use std::path::Path;

use dormouse_analysis::JobHistory;
use dormouse_analysis::jobs::simulate;
use dormouse_engine::jobs::JobSimulation;
use dormouse_model::Submission;
use dormouse_policies::batch::{Algorithm, Config};
use dormouse_units::{Span, Time};

use crate::{
    BatchWorkload, Estimates, ExtraFields, FollowUps, JobSource, Jobs, JobsFormat, Listed,
    LogRules, OnMalformed, PartialExecutions, RanOver, Skipped, SwfJob, SwfReader, SwfWriter,
    Trace, UsageKind, Wanted, scale_arrivals,
};

/// The jobs of a log and the report on skipped lines and jobs, or the error as text.
fn read(
    log: &[u8],
    machine: Option<u32>,
    rules: impl Into<LogRules>,
) -> Result<(Vec<Submission>, Skipped), String> {
    let file = Ok(Cursor::new(log.to_vec()));
    let trace = Trace::from_file(Path::new("some.log"), file, machine, rules);
    let mut trace = trace.map_err(|error| error.to_string())?;
    let jobs: Result<Vec<_>, _> = trace.by_ref().collect();
    Ok((jobs.map_err(|error| error.to_string())?, trace.skipped()))
}

fn skip() -> LogRules {
    LogRules { on_malformed: OnMalformed::Skip, ..LogRules::default() }
}

fn cut() -> LogRules {
    LogRules { ran_over: RanOver::Cut, ..LogRules::default() }
}

/// A workload with the jobs of the log at `path`, and the workload's name for messages.
fn jobs_of(
    path: &Path,
    processors: u32,
    rules: LogRules,
    load: Option<f64>,
) -> (BatchWorkload, String) {
    let source =
        JobSource::Swf { log: path.to_owned(), rules, estimates: Estimates::Given, first: None };
    let workload = BatchWorkload {
        source,
        processors,
        memory_per_processor: None,
        burstable: None,
        load,
        usage: UsageKind::Full,
    };
    (workload, path.display().to_string())
}

fn wanted(workload: &BatchWorkload) -> Wanted<'_> {
    let open = |path: &Path| {
        let file = std::fs::File::open(path)?;
        Ok(Box::new(file) as Box<dyn Read + Send>)
    };
    Wanted { workload, usage: false, memory: None, seed: 1, open }
}

/// Number, start, end (in seconds) of a job that has ended, and whether it was cut.
fn end_of(job: &JobHistory) -> (u64, u64, u64, bool) {
    let second = |time: Option<Time>| time.expect("it ended").as_micros() / 1_000_000;
    (job.job.number, second(job.started()), second(job.ended), job.job.is_cut)
}

/// Number, start, end (in seconds) of each job under EASY, and whether it was cut; in order of number.
fn easy(log: &[u8], processors: u32, rules: LogRules) -> Vec<(u64, u64, u64, bool)> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    std::fs::write(&path, log).expect("written");
    let (workload, name) = jobs_of(&path, processors, rules, None);
    let streamed = Jobs::open(&wanted(&workload), &name).expect("it opens");
    let listed = Listed::read(&wanted(&workload)).expect("it is read");
    let listed = Jobs::listed(&wanted(&workload), &name, &listed).expect("it is read");
    let [one, other] = [streamed, listed].map(|jobs| {
        let simulation = JobSimulation::new(Config::new(Algorithm::Easy, processors), 1);
        let mut ends = Vec::new();
        let jobs = jobs.map(|job| Ok::<_, Infallible>(job.expect("a job")));
        simulate(jobs, &simulation, |record, _| {
            ends.extend(record.closed().jobs.iter().map(end_of));
            Ok(())
        })
        .expect("it ends");
        ends.sort_unstable();
        ends
    });
    assert_eq!(one, other, "a list of jobs is the same as a stream of them");
    one
}

/// Lines for single bursts of a job that was swapped out are parts of the job, not further jobs.
#[test]
fn partial_executions_are_left_out_where_there_is_a_line_for_all() {
    let log = b"; Version: 2.2\n; Preemption: Double\n; MaxProcs: 8\n; UnixStartTime: 0\n\
        1 0 0 1000 8 -1 -1 8 2000 -1 1 1 1 -1 1 -1 -1 -1\n\
        1 0 0 400 8 -1 -1 8 2000 -1 2 1 1 -1 1 -1 -1 -1\n\
        1 0 200 600 8 -1 -1 8 2000 -1 3 1 1 -1 1 -1 -1 -1\n\
        2 10 0 500 8 -1 -1 8 600 -1 1 1 1 -1 1 -1 -1 -1\n";
    let ends = easy(log, 8, LogRules::default());
    assert_eq!(ends, [(1, 0, 1000, false), (2, 1000, 1500, false)]);
    let (jobs, skipped) = read(log, None, OnMalformed::Fail).expect("it is read");
    assert_eq!((jobs.len(), skipped.partial, skipped.malformed()), (2, 2, 0));
    assert!(skipped.to_string().contains("2 lines of partial executions left out"), "{skipped}");
    let kept = LogRules { partial_executions: PartialExecutions::Kept, ..LogRules::default() };
    let (jobs, skipped) = read(log, None, kept).expect("it is read");
    assert_eq!((jobs.len(), skipped.partial, skipped.odd.repeated), (4, 0, 2));
}

/// Partial executions of a job that never ran or was left out are left out too; without a line for the whole job, each
/// counts as a job.
#[test]
fn partial_executions_of_a_job_that_is_left_out_are_so_too() {
    let log = b"; MaxProcs: 8\n\
        1 0 -1 -1 8 -1 -1 8 60 -1 5 1 1 -1 1 -1 -1 -1\n\
        1 0 0 40 8 -1 -1 8 60 -1 4 1 1 -1 1 -1 -1 -1\n\
        2 10 0 50 9 -1 -1 9 60 -1 0 1 1 -1 1 -1 -1 -1\n\
        2 10 0 30 9 -1 -1 9 60 -1 3 1 1 -1 1 -1 -1 -1\n\
        3 20 0 50 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n";
    let (jobs, skipped) = read(log, None, OnMalformed::Skip).expect("it is read");
    assert_eq!((jobs.len(), skipped.partial, skipped.too_large, skipped.never_ran), (1, 2, 1, 1));
    let log = b"; MaxProcs: 8\n\
        7 0 0 40 8 -1 -1 8 60 -1 2 1 1 -1 1 -1 -1 -1\n\
        8 5 0 10 8 -1 -1 8 60 -1 4 1 1 -1 1 -1 -1 -1\n";
    let (jobs, skipped) = read(log, None, OnMalformed::Fail).expect("it is read");
    assert_eq!((jobs.len(), skipped.partial, skipped.odd.partial), (2, 0, 2));
    assert!(skipped.to_string().contains("2 were partial executions without"), "{skipped}");
}

#[test]
fn a_job_that_follows_another_is_submitted_after_its_end() {
    let log = b"; MaxProcs: 4\n\
        1 0 0 100 1 -1 -1 1 100 -1 1 1 1 -1 1 1 -1 -1\n\
        2 0 0 50 1 -1 -1 1 50 -1 1 1 1 -1 1 1 1 30\n";
    let ends = easy(log, 4, LogRules::default());
    assert_eq!(ends, [(1, 0, 100, false), (2, 130, 180, false)]);
    let ignored = LogRules { follow_ups: FollowUps::Ignored, ..LogRules::default() };
    assert_eq!(easy(log, 4, ignored), [(1, 0, 100, false), (2, 0, 50, false)]);
    let (_, skipped) = read(log, None, OnMalformed::Fail).expect("it is read");
    assert_eq!(skipped.odd.follow_ups, 1);
    assert!(skipped.is_worth_telling());
}

/// Jobs with several predecessors, in a chain, and submitted earlier than in the log; and jobs whose predecessor is
/// missing.
#[test]
fn jobs_follow_the_last_of_several_and_come_earlier_than_in_the_log_too() {
    let log = b"; MaxProcs: 4\n\
        1 0 0 100 1 -1 -1 1 100 -1 1 1 1 -1 1 1 -1 -1\n\
        2 0 0 40 1 -1 -1 1 50 -1 1 1 1 -1 1 1 -1 -1\n\
        3 50 0 60 1 -1 -1 1 50 -1 1 1 1 -1 1 1 -1 -1\n\
        4 5000 0 10 4 -1 -1 4 50 -1 1 1 1 -1 1 1 1&2&3 5\n\
        5 9000 0 10 4 -1 -1 4 50 -1 1 1 1 -1 1 1 4 0\n\
        6 9500 0 10 4 -1 -1 4 50 -1 1 1 1 -1 1 1 -1 -1\n";
    let ends = easy(log, 4, LogRules::default());
    let own =
        [(1, 0, 100), (2, 0, 40), (3, 50, 110), (4, 115, 125), (5, 125, 135), (6, 9500, 9510)];
    assert_eq!(ends, own.map(|(number, from, to)| (number, from, to, false)));
    let log = b"; MaxProcs: 4\n\
        1 0 0 100 9 -1 -1 9 100 -1 1 1 1 -1 1 1 -1 -1\n\
        2 10 0 40 1 -1 -1 1 50 -1 1 1 1 -1 1 1 1 5\n\
        3 20 0 40 1 -1 -1 1 50 -1 1 1 1 -1 1 1 4 5\n\
        4 30 0 40 1 -1 -1 1 50 -1 1 1 1 -1 1 1 4 5\n\
        5 40 0 40 1 -1 -1 1 50 -1 1 1 1 -1 1 1 0 5\n";
    let ends = easy(log, 4, skip());
    assert_eq!(
        ends,
        [(2, 10, 50, false), (3, 20, 60, false), (4, 30, 70, false), (5, 40, 80, false)]
    );
    let (_, skipped) = read(log, None, skip()).expect("it is read");
    assert_eq!((skipped.odd.follow_ups, skipped.odd.follow_none), (0, 3));
}

/// If all lines name the same preceding job, and that job names itself, field 17 is only a filler.
#[test]
fn a_field_that_is_only_filled_is_no_predecessor() {
    let line =
        |n: u32, at: u32| format!("{n} {at} 0 50 1 -1 -1 1 60 -1 1 1 1 -1 1 1 1 1 node q x\n");
    let log: String = (0..4).map(|n| line(n, n * 10)).collect();
    let (_, skipped) = read(log.as_bytes(), Some(4), OnMalformed::Fail).expect("it is read");
    assert_eq!((skipped.odd.follow_one, skipped.odd.follow_ups), (4, 0));
    let starts: Vec<_> = easy(log.as_bytes(), 4, LogRules::default()).iter().map(|e| e.1).collect();
    assert_eq!(starts, [0, 10, 20, 30]);
}

#[test]
fn further_fields_are_counted_or_malformed() {
    let log = b"; MaxProcs: 4\n\
        1 0 0 100 2 -1 -1 2 200 -1 1 1 1 -1 1 1 -1 -1 {7,7} q_short 1:ppn=2\n\
        2 5 0 50 1 -1 -1 1 60 -1 1 1 1 -1 1 1 -1 -1 {9} q_short 1:ppn=1:x86\n";
    let ends = easy(log, 4, LogRules::default());
    assert_eq!(ends, [(1, 0, 100, false), (2, 5, 55, false)]);
    let (_, skipped) = read(log, None, OnMalformed::Fail).expect("it is read");
    assert!(skipped.to_string().contains("2 had more than 18 fields"), "{skipped}");
    let none = LogRules { extra_fields: ExtraFields::Malformed, ..LogRules::default() };
    let error = read(log, None, none).expect_err("malformed");
    assert!(error.contains("line 2: it has more than 18 fields"), "{error}");
}

#[test]
fn sizes_have_thousands_separators_or_are_said_to_be_unreadable() {
    let log = |size: &str| {
        format!("; MaxProcs: {size}\n1 0 0 100 128 -1 -1 128 100 -1 1 1 1 -1 1 1 -1 -1\n")
    };
    let machine = |size: &str| {
        let file = Ok(Cursor::new(log(size).into_bytes()));
        let trace = Trace::from_file(Path::new("some.swf"), file, None, OnMalformed::Fail);
        trace.map(|trace| trace.machine()).map_err(|error| error.to_string())
    };
    assert_eq!(machine("93,312"), Ok(93_312));
    assert_eq!(machine("1,024,000"), Ok(1_024_000));
    let error = machine("93,31").expect_err("it is not a number");
    assert!(error.contains("can't read its 'MaxProcs: 93,31'"), "{error}");
}

/// Logs are read that have tabs, Windows line breaks and a heading; or semicolons, and names of users.
#[test]
fn tabs_semicolons_and_names_are_read() {
    let log = "id\tsubmit\twait\truntime\tcpus\tcpu\tmem\treq\twalltime\tmemreq\tstatus\tuser\tgroup\tapp\t\
        queue\tpart\tprec\tthink\r\n\
        1\t20\t0\t1200\t1\t-1\t1024\t1\t1200\t1024\t1\t1\t1\t1\t1\t1\t-1\t0\r\n\
        2\t20\t0\t900\t2\t-1\t1024\t2\t900\t1024\t1\t1\t1\t1\t1\t1\t-1\t0\r\n";
    let (jobs, skipped) = read(log.as_bytes(), Some(4), OnMalformed::Fail).expect("it is read");
    let sizes: Vec<_> = jobs.iter().map(|job| (job.number, job.processes)).collect();
    assert_eq!(sizes, [(1, 1), (2, 2)]);
    assert!(skipped.taken_for.heading && skipped.is_worth_telling());
    assert!(skipped.to_string().contains("its first line the names of its columns"), "{skipped}");
    let log = b"1001;0;-1;15;12;-1;-1;-1;420;-1;-1;userA;acctA;-1;normal;normal;;-1;\n\
        1002;49;-1;1201;1;-1;-1;-1;1800;-1;-1;userA;acctA;-1;normal;normal;;-1;\n\
        1003;60;-1;155;1;-1;500000;-1;960;-1;-1;userB;acctA;-1;normal;normal;;-1;\n";
    let (jobs, skipped) = read(log, Some(12), OnMalformed::Fail).expect("it is read");
    let told: Vec<_> = jobs.iter().map(|job| (job.number, job.processes, job.runtime)).collect();
    let s = Span::from_secs;
    assert_eq!(told, [(1001, 12, s(15)), (1002, 1, s(1201)), (1003, 1, s(155))]);
    assert_eq!((skipped.taken_for.names, skipped.odd.extra_fields), (5, 0));
    // Empty cells between tabs are not known, also where they are the last.
    let log = b"1\t0\t\t15\t2\t\t\t\t420\t\t\tann\t\t\t\t\t\t\n2\t9\t\t15\t2\t\t\t\t420\t\t\tbob\t\t\t\t\t\t\n";
    let log = [b"a\tb\tc\td\te\tf\tg\th\ti\tj\tk\tl\tm\tn\to\tp\tq\tr\n".as_slice(), log].concat();
    let (jobs, skipped) = read(&log, Some(4), OnMalformed::Fail).expect("it is read");
    assert_eq!(
        (jobs.len(), jobs[1].submitted, skipped.taken_for.names),
        (2, Time::from_secs(9), 2)
    );
    // A line of one word is no heading.
    let error = read(b"<html>\n", Some(4), OnMalformed::Fail).expect_err("no log");
    assert!(error.contains("line 1: its field 1 is not a number"), "{error}");
}

#[test]
fn packed_logs_are_read_as_they_are() {
    let xz: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21,
        0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x00, 0x3b, 0x00, 0x2c, 0x5d,
        0x00, 0x1d, 0x88, 0x06, 0x27, 0xaa, 0x5a, 0x5e, 0xce, 0x97, 0x61, 0x51, 0x95, 0xa4, 0xce,
        0xa5, 0xd8, 0xbe, 0x24, 0x99, 0xd9, 0xda, 0x58, 0x22, 0x30, 0xa4, 0x37, 0x64, 0x8c, 0x5d,
        0x8a, 0x69, 0x25, 0x46, 0xb7, 0x42, 0xae, 0x11, 0xe8, 0xbb, 0x58, 0x88, 0xb3, 0x20, 0x00,
        0x00, 0xcc, 0xde, 0xfb, 0xcf, 0x00, 0x01, 0xf0, 0xc2, 0x00, 0x01, 0x48, 0x3c, 0xa1, 0x0c,
        0x49, 0x37, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
    ];
    let log = b"; MaxProcs: 4\n1 0 0 100 2 -1 -1 2 200 -1 1 1 1 -1 1 1 -1 -1\n";
    let mut zip = Vec::new();
    let name = b"log.swf";
    let length = u32::try_from(log.len()).expect("short").to_le_bytes();
    // Version, flags, method (stored), time and date, CRC-32, both sizes, lengths of name and extra.
    let about = [
        &[0x14, 0, 0, 0, 0, 0, 0x9a, 0x1a, 0x79, 0x5d, 0x6d, 0x2b, 0x83, 0x2f][..],
        &length,
        &length,
        &[7, 0, 0, 0],
    ]
    .concat();
    for part in [b"PK\x03\x04".as_slice(), &about, name, log, b"PK\x01\x02\x14\x03", &about] {
        zip.extend_from_slice(part);
    }
    // Comment, disk, attributes, and where the file is; then the end of the table of contents.
    zip.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0xa4, 0x81, 0, 0, 0, 0]);
    zip.extend_from_slice(name);
    let begins = u32::try_from(30 + name.len() + log.len()).expect("short");
    let table = u32::try_from(zip.len()).expect("short") - begins;
    zip.extend_from_slice(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    zip.extend_from_slice(&table.to_le_bytes());
    zip.extend_from_slice(&begins.to_le_bytes());
    zip.extend_from_slice(&[0, 0]);
    for packed in [xz, &zip, log] {
        assert_eq!(easy(packed, 4, LogRules::default()), [(1, 0, 100, false)]);
        let format = JobsFormat::of_file(Cursor::new(packed.to_vec())).expect("it is read");
        assert_eq!(format, Some(JobsFormat::Swf));
    }
}

/// Jobs with a run time of zero or a time limit of zero are run; cancelled jobs and jobs without processors never ran.
#[test]
fn jobs_of_no_time_run_and_those_without_processors_never_ran() {
    let log = b"; MaxProcs: 4\n\
        1 0 0 0 4 -1 -1 4 0 -1 1 1 1 -1 1 1 -1 -1\n\
        2 0 0 10 4 -1 -1 4 0 -1 1 1 1 -1 1 1 -1 -1\n\
        3 0 -1 -1 -1 -1 -1 4 60 -1 5 1 1 -1 1 1 -1 -1\n\
        4 0 0 10 0 -1 -1 0 60 -1 5 1 1 -1 1 1 -1 -1\n\
        5 1 0 10 2 -1 -1 2 60 -1 0 1 1 -1 1 1 -1 -1\n";
    let ends = easy(log, 4, LogRules::default());
    assert_eq!(ends, [(1, 0, 0, false), (2, 0, 10, false), (5, 10, 20, false)]);
    let (_, skipped) = read(log, None, OnMalformed::Fail).expect("it is read");
    assert_eq!(skipped.never_ran, 2);
}

/// Job 1 runs for 4 s with a time limit of 3 s: it is cut if the rules say so.
#[test]
fn a_job_that_is_ended_at_its_time_limit_is_known_as_such() {
    let log = b"; MaxProcs: 3\n\
        1 0 0 4 3 -1 -1 3 3 -1 1 1 1 -1 1 1 -1 -1\n\
        2 0 0 4 3 -1 -1 3 4 -1 1 1 1 -1 1 1 -1 -1\n";
    assert_eq!(easy(log, 3, cut()), [(1, 0, 3, true), (2, 3, 7, false)]);
    assert_eq!(easy(log, 3, LogRules::default()), [(1, 0, 4, false), (2, 4, 8, false)]);
}

#[test]
fn workloads_of_batsim_are_read() {
    let log = br#"{"nb_res": 4, "jobs": [
 {"id": "a", "subtime": 0, "walltime": 100, "res": 4, "profile": "d50"},
 {"id": "b", "subtime": 10, "walltime": 20, "res": 2, "profile": "d50"},
 {"id": 3, "subtime": 10.5, "res": 1, "profile": "d50"}],
 "profiles": {"d50": {"type": "delay", "delay": 50}}}"#;
    assert_eq!(easy(log, 4, cut()), [(1, 0, 50, false), (2, 50, 70, true), (3, 50, 100, false)]);
    let (jobs, skipped) = read(log, None, OnMalformed::Fail).expect("it is read");
    assert_eq!(jobs[2].submitted, Time::from_micros(10_500_000));
    assert_eq!((skipped.odd.no_estimate, skipped.taken_for.numbered), (1, true));
    assert_eq!(skipped.taken_for.format, JobsFormat::Batsim);
}

/// Accounting files of PBS, LSF and Grid Engine (cases/logs-pbs-lsf-sge), each with a job that waited ten seconds and
/// ran for 600 seconds on 4 processors.
#[test]
fn accounting_files_of_batch_systems_are_read() {
    let pbs = "03/01/2024 10:00:00;Q;101.srv;queue=workq\n\
        03/01/2024 10:00:10;S;101.srv;user=ann group=g jobname=a queue=workq ctime=1709287200 qtime=1709287200 \
        start=1709287210 exec_host=n1/0*4 Resource_List.ncpus=4 Resource_List.walltime=01:00:00\n\
        03/01/2024 10:10:10;E;101.srv;user=ann group=g jobname=a queue=workq ctime=1709287200 qtime=1709287200 \
        etime=1709287200 start=1709287210 exec_host=n1/0*4 Resource_List.ncpus=4 Resource_List.walltime=01:00:00 \
        session=1 end=1709287810 Exit_status=0 resources_used.walltime=00:10:00 resources_used.ncpus=4\n";
    let lsf = "\"JOB_FINISH\" \"10.1\" 1709287810 101 1000 33619971 4 1709287200 0 0 1709287210 \"ann\" \"normal\" \
        \"\" \"\" \"\" \"login1\" \"/home/ann\" \"\" \"\" \"\" \"1709287200.101\" 0 1 \"n1\" 64 60.0 \"a\" \
        \"./a \"\"b\"\".out\" 1.0 0.1 0 0 -1 0 0 0 0 0 0 0 -1 0 0 0 -1 \"\" \"default\" 0 4 \"\" \"\" 0 0 0\n";
    let sge = "# Version: 8.1.9\n\
        all.q:n1:g:ann:a:101:sge:0:1709287200:1709287210:1709287810:0:0:600:1:1:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:\
        NONE:defaultdepartment:mpi:4:0:600.0:0.0:0.0:-l h_rt=3600 -pe mpi 4:0.0:NONE:0.0:0:0\n";
    for (text, format, limit) in [
        (pbs, JobsFormat::Pbs, 3600),
        // That file has no time limits.
        (lsf, JobsFormat::Lsf, -1),
        (sge, JobsFormat::Sge, 3600),
    ] {
        assert_eq!(JobsFormat::detect(text.as_bytes()), Some(format));
        let jobs = listed(text);
        let [job] = &jobs[..] else { panic!("{format:?}: {jobs:?}") };
        let said = (job.number, job.submitted, job.wait, job.run_time, job.requested, job.status);
        assert_eq!(said, (101, 1_709_287_200, 10, 600, 4, 1), "{format:?}");
        assert_eq!((job.allocated, job.requested_time, job.user), (4, limit, 1), "{format:?}");
        let (jobs, skipped) =
            read(text.as_bytes(), Some(8), OnMalformed::Fail).expect("it is read");
        assert_eq!((jobs.len(), skipped.taken_for.format), (1, format));
    }
}

/// Accounting files written by the manuals: jobs that were requeued, are unfinished, never ran, are in arrays or
/// failed, and Torque's keys.
#[test]
fn accounting_files_tell_of_more_than_ends() {
    let text = "05/01/2024 08:00:00;S;1.s;ctime=100 start=110 exec_host=n1/0-3\n\
        05/01/2024 08:00:00;R;1.s;ctime=100 start=110 end=140 exec_host=n1/0-3\n\
        05/01/2024 08:00:00;L;license;floating\n\
        05/01/2024 08:00:00;S;1.s;ctime=100 start=150 exec_host=n1/0-3\n\
        05/01/2024 08:00:00;E;1.s;user=bo group=\"a b\" ctime=100 start=150 end=170 exec_host=n1/0-3 \
        Resource_List.nodes=1:ppn=4 Resource_List.mem=8gb Exit_status=271\n\
        05/01/2024 08:00:00;Q;2.s;queue=q\n05/01/2024 08:00:00;D;2.s;requestor=bo\n\
        05/01/2024 08:00:00;S;3.s;ctime=120 start=130 exec_host=n1/0\n\
        05/01/2024 08:00:00;E;4.s;ctime=x start=1 end=2 exec_host=n1/0\n";
    let rules = skip();
    let (jobs, skipped) = read(text.as_bytes(), Some(8), rules).expect("it is read");
    let [job] = &jobs[..] else { panic!("{jobs:?}") };
    assert_eq!(
        (job.processes, job.runtime, job.estimate),
        (4, Span::from_secs(20), Span::from_secs(20))
    );
    assert_eq!((skipped.requeued, skipped.requeued_cpu_s), (1, 4 * 30));
    assert_eq!((skipped.unfinished, skipped.never_ran, skipped.unreadable), (1, 1, 1));
    let first = skipped.first.expect("a line was left out").to_string();
    assert!(first.contains("line 9: its ctime is 'x'"), "{first}");
    let lines = listed(text);
    assert_eq!((lines[0].status, lines[0].requested_memory), (0, 8 * 1024 * 1024 / 4));

    let array = "\"JOB_FINISH\" \"10.1\" 200 7 1 0 2 100 0 0 0 \"ann\" \"q\" \"\" \"\" \"\" \"h\" \"/\" \"\" \"\" \"\" \
        \"f\" 1 \"n9\" 0 32 1.0 \"a\" \"c\" 0 0 \"\" \"p\" 1 2 \"\" \"\" 3 0 0\n\
        \"JOB_FINISH\" \"10.1\" 300 7 1 0 2 100 0 0 150 \"ann\" \"q\" \"\" \"\" \"\" \"h\" \"/\" \"\" \"\" \"\" \
        \"f\" 0 1 \"4*n1\" 32 1.0 \"a\" \"c\" 0 0 \"\" \"p\" 1 2 \"\" \"\" 4 0 0\n\
        \"JOB_FINISH\" \"10.1\" 300 7 1 0 2 100 0 0 150 \"ann\" \"q\" \"\" \"\" \"\" \"h\" \"/\" \"\" \"\" \"\" \
        \"f\" 0 9 \"n1\" 32\n";
    let (jobs, skipped) = read(array.as_bytes(), Some(8), skip()).expect("it is read");
    assert_eq!((jobs.len(), skipped.never_ran, skipped.unreadable), (1, 1, 1));
    assert_eq!((jobs[0].processes, jobs[0].runtime), (2, Span::from_secs(150)));
    assert!(skipped.taken_for.numbered, "parts of an array share a number");
    assert_eq!(listed(array).iter().map(|job| job.status).collect::<Vec<_>>(), [5, 0]);
}

/// Jobs fail if their profile does (cases/batsim-ret); Batsim ends a sequence of profiles at the first one that fails.
#[test]
fn jobs_of_batsim_fail_as_their_profiles_say() {
    let log = br#"{"nb_res": 4, "jobs": [
 {"id": "a", "subtime": 0, "walltime": 100, "res": 4, "profile": "ok"},
 {"id": "b", "subtime": 0, "walltime": 100, "res": 4, "profile": "bad"},
 {"id": "c", "subtime": 0, "walltime": 5, "res": 4, "profile": "bad"},
 {"id": "d", "subtime": 0, "walltime": -1, "res": 4, "profile": "ok"},
 {"id": "e", "subtime": 0, "res": 4, "profile": "part"},
 {"id": "f", "subtime": 0, "res": 4, "profile": "last"}],
 "profiles": {"ok": {"type": "delay", "delay": 10}, "bad": {"type": "delay", "delay": 10, "ret": 1},
  "part": {"type": "composed", "repeat": 2, "seq": ["ok", "bad", "ok"]},
  "last": {"type": "composed", "repeat": 2, "seq": ["ok"], "ret": -1}}}"#;
    let (jobs, skipped) = read(log, None, cut()).expect("it is read");
    let ends: Vec<_> =
        jobs.iter().map(|job| (job.runtime.as_secs_f64(), job.is_cut, job.fails)).collect();
    let right = [
        (10.0, false, false),
        (10.0, false, true),
        // Ended at its limit, before it could say anything.
        (5.0, true, false),
        (10.0, false, false),
        (20.0, false, true),
        (20.0, false, true),
    ];
    assert_eq!(ends, right);
    assert_eq!(skipped.odd.fails, 3);
    assert!(skipped.to_string().contains("3 fail at their end"), "{skipped}");
}

/// Jobs out of order, times to the microsecond and sequences of delays are read; profiles without a duration are named
/// in the error.
#[test]
fn delays_of_batsim_are_exact_and_other_profiles_are_named() {
    let log = br#"{"jobs": [
 {"id": "w0!7", "subtime": 4.709164, "walltime": -1, "res": 1, "profile": "two"},
 {"id": "w0!3", "subtime": 1.5, "walltime": 9.25, "res": 1, "profile": "one", "extra_data": {}}],
 "profiles": {"one": {"type": "DelayProfile", "delay": 2.125},
  "two": {"type": "SequentialCompositionProfile", "repeat": 3, "seq": ["one", "one"]}}, "nb_res": 2}"#;
    let (jobs, skipped) = read(log, None, OnMalformed::Fail).expect("it is read");
    let us = |job: &Submission| {
        let estimate = job.estimate.as_micros();
        (job.number, job.submitted.as_micros(), job.runtime.as_micros(), estimate)
    };
    let told: Vec<_> = jobs.iter().map(us).collect();
    assert_eq!(
        told,
        [(2, 1_500_000, 2_125_000, 9_250_000), (1, 4_709_164, 12_750_000, 12_750_000)]
    );
    assert_eq!((skipped.taken_for.sorted, skipped.odd.fractions), (1, 0));
    let log = br#"{"nb_res": 2, "jobs": [{"id": 5, "subtime": 0, "res": 1, "profile": "d"},
 {"id": 6, "subtime": 1, "res": 1, "profile": "p"}, {"id": 7, "subtime": 1, "profile": "d"},
 {"id": 8, "subtime": 1, "res": 1, "profile": "s"}, {"id": 9, "subtime": 1, "res": 1, "profile": "l"}],
 "profiles": {"d": {"type": "delay", "delay": 1}, "p": {"type": "parallel_homogeneous", "cpu": 1},
  "s": {"type": "composed", "seq": ["d", "p"]}, "l": {"type": "composed", "seq": ["l"]}}}"#;
    let (jobs, skipped) = read(log, None, skip()).expect("it is read");
    assert_eq!((jobs.len(), jobs[0].number, skipped.unreadable), (1, 5, 4));
    let error = read(log, None, OnMalformed::Fail).expect_err("no time");
    let says =
        "line 2: its profile 'p' is of type parallel_homogeneous, which does not say how long";
    assert!(error.contains(says), "{error}");
    let error = read(b"{\"a\": 1}", None, OnMalformed::Fail).expect_err("no workload");
    assert!(error.contains("some.log: it is JSON, but not a workload of Batsim"), "{error}");
}

const SACCT: &str = "JobID|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|ReqCPUS|NNodes|State|ReqMem\n\
    12|ann|2024-01-01T00:00:10|2024-01-01T00:00:20|2024-01-01T00:01:20|60|10|4|4|1|COMPLETED|4000M\n\
    12.batch||2024-01-01T00:00:20|2024-01-01T00:00:20|2024-01-01T00:01:20|60||4|4|1|COMPLETED|\n\
    11|bob|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:02:00|120|UNLIMITED|2|2|1|TIMEOUT|100Mc\n\
    13|bob|2024-01-01T00:00:30|Unknown|Unknown|0|10|0|2|1|PENDING|16Gn\n\
    14|bob|2024-01-01T00:00:40|None|2024-01-01T00:00:50|0|10|0|2|1|CANCELLED by 17|16Gn\n\
    15|bob|2024-01-01T00:00:40|2024-01-01T00:00:50|Unknown|9|10|2|2|1|RUNNING|16Gn\n";

#[test]
fn the_output_of_sacct_is_read() {
    for text in [SACCT.to_owned(), SACCT.replace('\n', "|\n"), SACCT.replace('|', "\t")] {
        let (jobs, skipped) =
            read(text.as_bytes(), Some(4), OnMalformed::Fail).expect("it is read");
        let told: Vec<_> =
            jobs.iter().map(|job| (job.number, job.submitted, job.processes)).collect();
        // 2024-01-01 is day 19,723 of 1970.
        let at = |second: u64| Time::from_secs(19_723 * 86_400 + second);
        assert_eq!(told, [(11, at(0), 2), (12, at(10), 4)]);
        assert_eq!(
            (jobs[1].runtime, jobs[1].estimate),
            (Span::from_secs(60), Span::from_secs(600))
        );
        let counts =
            (skipped.steps, skipped.never_ran, skipped.unfinished, skipped.odd.no_estimate);
        assert_eq!(counts, (1, 2, 1, 1));
        assert_eq!(skipped.taken_for.format, JobsFormat::Sacct);
        let ends = easy(text.as_bytes(), 4, LogRules::default());
        // The clock of a run begins with its first job.
        assert_eq!(ends, [(11, 0, 120, false), (12, 120, 180, false)]);
    }
}

/// `sacct -D` has a row for each execution of a requeued job; executions before the last are left out, and their
/// processor time is counted.
#[test]
fn executions_that_were_requeued_are_left_out_and_counted() {
    let text = "JobID|Submit|Start|End|ElapsedRaw|TimelimitRaw|NCPUS|State\n\
        9|2024-03-01T10:00:00|2024-03-01T10:00:10|2024-03-01T11:04:59|3889|120|4|REQUEUED\n\
        9|2024-03-01T11:05:10|2024-03-01T11:05:20|2024-03-01T12:19:53|4473|120|4|REQUEUED\n\
        9|2024-03-01T12:20:00|2024-03-01T12:20:10|2024-03-01T13:20:10|3600|120|4|COMPLETED\n\
        8|2024-03-01T12:20:00|2024-03-01T12:20:10|Unknown|60|120|4|REQUEUED\n";
    let (jobs, skipped) = read(text.as_bytes(), Some(4), OnMalformed::Fail).expect("it is read");
    let told: Vec<_> = jobs.iter().map(|job| (job.number, job.runtime)).collect();
    assert_eq!(told, [(9, Span::from_secs(3_600))]);
    assert_eq!((skipped.requeued, skipped.requeued_cpu_s, skipped.unfinished), (2, 33_448, 1));
    let said = "2 executions of jobs that were requeued left out (33448 CPU s)";
    assert!(skipped.to_string().contains(said), "{skipped}");
}

/// Steps of jobs are recognised in output of `sacct` with the column `JobIDRaw` alone, or with both `JobID` and
/// `JobIDRaw`.
#[test]
fn steps_of_jobs_are_told_by_either_number() {
    for (text, job) in [
        (
            "JobIDRaw|Submit|ElapsedRaw|AllocCPUS|State\n\
             5|2024-01-01T00:00:10|60|2|COMPLETED\n5.batch|2024-01-01T00:00:10|60|2|COMPLETED\n\
             5.0|2024-01-01T00:00:10|60|2|COMPLETED\n",
            5,
        ),
        (
            "JobID|JobIDRaw|Submit|ElapsedRaw|AllocCPUS|State\n\
             6|6|2024-01-01T00:00:10|60|2|COMPLETED\n6|6.batch|2024-01-01T00:00:10|60|2|COMPLETED\n\
             6.0|6|2024-01-01T00:00:10|60|2|COMPLETED\n",
            6,
        ),
    ] {
        let (jobs, skipped) =
            read(text.as_bytes(), Some(4), OnMalformed::Fail).expect("it is read");
        assert_eq!((jobs.len(), jobs[0].number, skipped.steps), (1, job, 2), "{text}");
    }
}

/// Output of `sacct` with tasks of an array, with a bar inside a cell, and with columns instead of bars.
#[test]
fn rows_of_sacct_that_are_broken_are_counted_and_columns_have_widths() {
    let text = "JobID|JobName|Submit|Elapsed|Timelimit|NCPUS|State\n\
        7_1|a|2024-01-01T00:00:10|1-00:00:01|2-00:00:00|4|COMPLETED\n\
        7_2|a|b|2024-01-01T00:00:10|00:01:00|00:02:00|4|COMPLETED\n\
        7_3|two\nlines|2024-01-01T00:00:20|00:01:00|Partition_Limit|4|FAILED\n\
        7_4|c|2024-01-01T00:00:30|00:00:30||4|NODE_FAIL\n";
    let (jobs, skipped) = read(text.as_bytes(), Some(4), skip()).expect("it is read");
    let told: Vec<_> = jobs.iter().map(|job| (job.number, job.runtime)).collect();
    assert_eq!(told, [(1, Span::from_secs(86_401)), (5, Span::from_secs(30))]);
    assert_eq!((skipped.unreadable, skipped.taken_for.numbered), (3, true));
    let error = read(text.as_bytes(), Some(4), OnMalformed::Fail).expect_err("broken");
    assert!(error.contains("line 3: it has 8 cells, and its heading has 7"), "{error}");
    let text = "       JobID              Submit    Elapsed  AllocCPUS      State \n\
        ------------ ------------------- ---------- ---------- ---------- \n\
        28755594     2024-01-01T00:00:10   00:01:00          4  COMPLETED \n\
        28755594.ba+ 2024-01-01T00:00:10   00:01:00          4  COMPLETED \n\
        28755693     2024-01-01T00:00:20   00:00:00          4 CANCELLED+ \n\
        28755694     2024-01-01T00:00:30   00:00:10          2     FAILED\n";
    let (jobs, skipped) = read(text.as_bytes(), Some(4), OnMalformed::Fail).expect("it is read");
    let told: Vec<_> = jobs.iter().map(|job| (job.number, job.processes)).collect();
    assert_eq!(told, [(28_755_594, 4), (28_755_694, 2)]);
    assert_eq!((skipped.steps, skipped.never_ran), (1, 1));
    let error = read(b"JobID|Submit|State\n1|2|3\n", Some(4), skip()).expect_err("no times");
    assert!(error.contains("has no column ElapsedRaw; print it with: sacct -X -P"), "{error}");
}

/// To scale the load, the times between submissions are multiplied; the first submission is at time zero.
#[test]
fn scaling_begins_at_the_first_submission() {
    let log = b"; MaxProcs: 2\n\
        1 1726996147 0 100 2 -1 -1 2 100 -1 1 1 1 -1 1 1 -1 -1\n\
        2 1726996157 0 100 2 -1 -1 2 100 -1 1 1 1 -1 1 1 -1 -1\n";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.swf");
    std::fs::write(&path, log).expect("written");
    // Its load is 10: all of 2 processors for 100 s, twice, in 10 s times 2.
    for (load, second) in [(0.2, 1_000), (20.0, 10), (40.0, 5)] {
        let (workload, name) = jobs_of(&path, 2, LogRules::default(), Some(load));
        let listed = Listed::read(&wanted(&workload)).expect("it is read");
        let listed = Jobs::listed(&wanted(&workload), &name, &listed).expect("it has a load");
        let streamed = Jobs::open(&wanted(&workload), &name).expect("it has a load");
        for jobs in [listed, streamed] {
            let at = jobs.map(|job| job.expect("a job").submitted).collect::<Vec<_>>();
            assert_eq!(at, [0, second].map(Time::from_secs), "{load}");
        }
    }
    let (jobs, _) = read(log, None, OnMalformed::Fail).expect("it is read");
    let first = jobs[0].submitted;
    let error = scale_arrivals(jobs[1].clone(), first, 1e300).expect_err("too large").to_string();
    assert!(error.contains("job 2 was submitted 10s after the first"), "{error}");
    assert_eq!(scale_arrivals(jobs[0].clone(), first, 1e300), Ok(jobs[0].clone()));
}

/// The preceding jobs of a job are written to a log and read back.
#[test]
fn predecessors_are_written() {
    let log = b"1 0 0 100 1 -1 -1 1 100 -1 1 1 1 -1 1 1 -1 -1\n\
        2 0 0 50 1 -1 -1 1 50 -1 1 1 1 -1 1 1 -1 -1\n\
        3 0 0 50 1 -1 -1 1 50 -1 1 1 1 -1 1 1 1&2 30\n";
    let (jobs, _) = read(log, Some(4), OnMalformed::Fail).expect("it is read");
    let mut bytes = Vec::new();
    let mut writer = SwfWriter::new(&mut bytes, &Default::default()).expect("to memory");
    for job in &jobs {
        writer.write(&SwfJob::from(job)).expect("to memory");
    }
    writer.finish().expect("to memory");
    let (again, _) = read(&bytes, Some(4), OnMalformed::Fail).expect("it is read");
    assert_eq!(again, jobs);
}

/// A row with a bar inside its last but one cell and an empty last cell has a cell too many; it does not count as a row
/// that ends with a bar.
#[test]
fn a_bar_within_a_cell_of_sacct_moves_no_others() {
    let rows = "State|Submit|JobName|ElapsedRaw|TimelimitRaw|AllocCPUS|JobID|Comment\n\
                COMPLETED|2024-05-01T00:00:00|a|60|10|4|1|x\n\
                COMPLETED|2024-05-01T00:10:00|b|77|3600|120|4|2|\n";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("shifted");
    std::fs::write(&path, rows).expect("it is written");
    let open = || std::fs::File::open(&path);
    let trace = Trace::from_file(&path, open(), Some(8), OnMalformed::Skip).expect("a log");
    let jobs: Vec<_> = trace.map(|job| job.expect("a job")).collect();
    assert_eq!(jobs.iter().map(|job| job.processes).collect::<Vec<_>>(), [4]);
}

/// The jobs of a log with their fields as logged, without jobs that can't be read.
fn listed(text: &str) -> Vec<SwfJob> {
    let file = Ok(Cursor::new(text.as_bytes().to_vec()));
    let reader = SwfReader::from_file(Path::new("some.log"), file, skip()).expect("it is read");
    reader.filter_map(Result::ok).collect()
}
