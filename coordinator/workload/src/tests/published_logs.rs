//! Histories of HTCondor and traces that operators published: samples made by hand from the documented columns, read
//! whole, and with each optional column missing in turn.

use std::io::Cursor;
use std::path::Path;

use crate::{
    BatsimWriter, CsvWriter, Header, JobsFormat, LogRules, OnMalformed, Skipped, SwfJob, SwfReader,
    SwfWriter, Trace,
};

const SKIP: OnMalformed = OnMalformed::Skip;

/// The jobs of a log with their fields as logged, and the report on skipped lines and jobs; or the error as text.
fn listed(text: &str) -> Result<(Vec<SwfJob>, Skipped), String> {
    let file = Ok(Cursor::new(text.as_bytes().to_vec()));
    let reader = SwfReader::from_file(Path::new("some.log"), file, LogRules::from(SKIP));
    let mut reader = reader.map_err(|error| error.to_string())?;
    let jobs = reader.by_ref().collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    Ok((jobs, reader.skipped()))
}

/// The report on skipped lines and jobs after all jobs of a log were read for a machine of 64 processors.
fn skipped(text: &str) -> Skipped {
    let file = Ok(Cursor::new(text.as_bytes().to_vec()));
    let trace = Trace::from_file(Path::new("some.log"), file, Some(64), SKIP);
    let mut trace = trace.expect("it is read");
    trace.by_ref().for_each(drop);
    trace.skipped()
}

/// HTCondor's record of a job that waited ten seconds and ran for 600 seconds on four processors, like the job of other
/// batch systems in cases/logs-pbs-lsf-sge.
const CONDOR: &str = "ClusterId = 101\nProcId = 0\nOwner = \"ann\"\nAcctGroup = \"g\"\nQDate = 1709287200\n\
    JobStartDate = 1709280000\nJobCurrentStartDate = 1709287210\nCompletionDate = 1709287810\n\
    RemoteWallClockTime = 900.0\nNumJobStarts = 3\nJobStatus = 4\nJobUniverse = 5\nRequestCpus = 4\n\
    RequestMemory = 8192\nAllowedExecuteDuration = 3600\nExitCode = 0\nExitBySignal = false\n\
    Args = \"-x \\\"a = b\\\"\"\nRequirements = (TARGET.Arch == \"X86_64\")\n";

#[test]
fn a_history_of_htcondor_is_read_in_each_form() {
    let fields = |ad: &str| {
        let field = |line: &str| {
            let (name, value) = line.split_once(" = ").expect("an attribute");
            let is_expression = value.starts_with('(');
            let value = if is_expression { "null" } else { value };
            format!("\"{name}\": {value}")
        };
        ad.lines().map(field).collect::<Vec<_>>().join(",\n  ")
    };
    let json = format!("{{\n  {}\n}}", fields(CONDOR));
    let banner =
        "*** Offset = 0 ClusterId = 101 ProcId = 0 Owner = \"ann\" CompletionDate = 1709287810\n";
    for text in [
        CONDOR.to_owned(),
        format!("\n{CONDOR}\n\n"),
        format!("{CONDOR}{banner}"),
        format!("[\n{json}\n]\n"),
        format!("{}\n", json.replace('\n', " ")),
    ] {
        assert_eq!(JobsFormat::detect(text.as_bytes()), Some(JobsFormat::Condor), "{text}");
        let (jobs, skipped) = listed(&text).expect("it is read");
        let [job] = &jobs[..] else { panic!("{text}: {jobs:?}") };
        let said = (job.number, job.submitted, job.wait, job.run_time, job.requested, job.status);
        assert_eq!(said, (101, 1_709_287_200, 10, 600, 4, 1), "{text}");
        assert_eq!((job.requested_time, job.requested_memory), (3_600, 8_192 * 1_024 / 4));
        assert_eq!((job.user, job.group), (1, 1));
        // Two executions before the one that ended well held four processors for 300 s in all.
        assert_eq!((skipped.requeued, skipped.requeued_cpu_s), (2, 1_200), "{text}");
        assert_eq!(skipped.taken_for.format, JobsFormat::Condor);
    }
    assert_eq!(JobsFormat::detect(b"kind = \"swf\"\nQDate = 3\n"), None, "an experiment's file");
}

/// A record of HTCondor is read without any one of its attributes; each test case has the effect on the job.
#[test]
fn each_attribute_of_htcondor_may_be_missing() {
    type Field = fn(&SwfJob) -> i64;
    let effects: [(&str, Option<(Field, i64)>); 15] = [
        ("ClusterId", Some((|job| job.number, 1))),
        ("ProcId", Some((|job| job.number, 101))),
        ("Owner", Some((|job| job.user, -1))),
        ("AcctGroup", Some((|job| job.group, -1))),
        // No place in the order of jobs.
        ("QDate", None),
        ("JobStartDate", Some((|job| job.wait, 10))),
        // The first start stands for the last.
        ("JobCurrentStartDate", Some((|job| job.run_time, 7_810))),
        // Nothing says when it ended.
        ("CompletionDate", None),
        ("RemoteWallClockTime", Some((|job| job.run_time, 600))),
        ("NumJobStarts", Some((|job| job.run_time, 600))),
        ("JobStatus", Some((|job| job.status, 1))),
        // HTCondor gives one processor to those that ask for none.
        ("RequestCpus", Some((|job| job.requested, 1))),
        ("RequestMemory", Some((|job| job.requested_memory, -1))),
        ("AllowedExecuteDuration", Some((|job| job.requested_time, -1))),
        ("ExitCode", Some((|job| job.status, 1))),
    ];
    for (name, effect) in effects {
        let begins = format!("{name} =");
        let text: Vec<&str> = CONDOR.lines().filter(|line| !line.starts_with(&begins)).collect();
        let (jobs, skipped) = listed(&text.join("\n")).expect("it is read");
        match effect {
            Some((field, value)) => {
                assert_eq!(jobs.iter().map(field).collect::<Vec<_>>(), [value], "{name}");
            }
            None => assert_eq!((jobs.len(), skipped.malformed()), (0, 1), "{name}"),
        }
    }
}

#[test]
fn jobs_of_htcondor_that_did_not_end_or_run_are_counted() {
    let with = |pairs: &[(&str, &str)]| {
        let mut text = CONDOR.to_owned();
        for (name, value) in pairs {
            let begins = format!("{name} =");
            let kept = text.lines().filter(|line| !line.starts_with(&begins)).collect::<Vec<_>>();
            text = format!("{}\n{name} = {value}\n", kept.join("\n"));
        }
        text + "\n"
    };
    let text = [
        with(&[]),
        // Running; removed before it ran, and a while after it had lost its machine; DAGMan itself; killed by a signal.
        with(&[("ClusterId", "102"), ("JobStatus", "2"), ("CompletionDate", "0")]),
        with(&[
            ("ClusterId", "103"),
            ("JobStatus", "3"),
            ("CompletionDate", "0"),
            ("JobStartDate", "0"),
            ("JobCurrentStartDate", "0"),
            ("NumJobStarts", "0"),
            ("EnteredCurrentStatus", "1709287900"),
        ]),
        with(&[
            ("ClusterId", "104"),
            ("JobStatus", "3"),
            ("CompletionDate", "0"),
            ("NumJobStarts", "1"),
            ("LastVacateTime", "1709287300"),
            ("EnteredCurrentStatus", "1709287900"),
        ]),
        with(&[("ClusterId", "105"), ("JobUniverse", "7")]),
        with(&[("ClusterId", "106"), ("ExitBySignal", "true"), ("NumJobStarts", "1")]),
        with(&[("ClusterId", "107"), ("QDate", "soon")]),
    ];
    let text = text.join("\n");
    let (jobs, _) = listed(&text).expect("it is read");
    let said = |job: &SwfJob| (job.number, job.run_time, job.status);
    assert_eq!(
        jobs.iter().map(said).collect::<Vec<_>>(),
        [(101, 600, 1), (103, -1, 5), (104, 90, 5), (106, 600, 0)]
    );
    let skipped = skipped(&text);
    assert_eq!((skipped.unfinished, skipped.never_ran, skipped.no_processor), (1, 1, 1));
    assert_eq!((skipped.requeued, skipped.malformed()), (2, 1));
    let said = skipped.to_string();
    assert!(said.contains("its QDate is 'soon': write seconds since 1970"), "{said}");
    assert!(said.contains("took none of the processors that are counted"), "{said}");
}

/// A job as in the description of Philly's traces, with an attempt of 74 s on 8 GPUs and a long one; and changed copies
/// of it: a job that was killed, one without GPUs, one that never ran and one without an end.
#[test]
fn the_job_log_of_philly_is_read() {
    let gpus = |n: usize| (0..n).map(|n| format!("\"gpu{n}\"")).collect::<Vec<_>>().join(", ");
    let attempt = |from: &str, to: &str, n: usize| {
        format!(
            "{{\"start_time\": {from}, \"end_time\": {to}, \"detail\": [{{\"ip\": \"m1\", \"gpus\": [{}]}}]}}",
            gpus(n)
        )
    };
    let job = |status: &str, id: u32, attempts: &[String], submitted: &str| {
        format!(
            "{{\"status\": \"{status}\", \"vc\": \"vc{}\", \"jobid\": \"application_{id}\", \"attempts\": [{}], \
             \"submitted_time\": {submitted}, \"user\": \"ce2f4c\"}}",
            id % 2,
            attempts.join(", ")
        )
    };
    let day = |clock: &str| format!("\"2017-10-07 {clock}\"");
    let (first, second) = (day("01:12:09"), day("01:13:23"));
    let all = [
        job(
            "Pass",
            1,
            &[attempt(&first, &second, 8), attempt(&second, &day("02:13:23"), 8)],
            &day("01:11:39"),
        ),
        job("Killed", 2, &[attempt(&first, &second, 1)], &day("01:11:40")),
        job("Failed", 3, &[attempt(&first, &second, 0)], &day("01:11:41")),
        job("Failed", 4, &[attempt("null", "null", 2)], &day("01:11:42")),
        job("Pass", 5, &[attempt(&first, "\"None\"", 2)], &day("01:11:43")),
        job("Pass", 6, &[attempt(&first, &second, 2)], "\"soon\""),
    ];
    let text = format!("[\n{}\n]\n", all.join(",\n"));
    assert_eq!(JobsFormat::detect(text.as_bytes()), Some(JobsFormat::Philly));
    let (jobs, _) = listed(&text).expect("it is read");
    let said = |job: &SwfJob| (job.number, job.wait, job.run_time, job.requested, job.status);
    assert_eq!(
        jobs.iter().map(said).collect::<Vec<_>>(),
        [(1, 104, 3_600, 8, 1), (2, 29, 74, 1, 5), (3, -1, -1, -1, 5)],
    );
    // 7 October 2017 is day 17,446 of 1970.
    assert_eq!(jobs[0].submitted, 17_446 * 86_400 + 4_299);
    assert_eq!(jobs.iter().map(|job| job.queue).collect::<Vec<_>>(), [1, 2, 2]);
    let skipped = skipped(&text);
    assert_eq!((skipped.requeued, skipped.requeued_cpu_s), (1, 8 * 74));
    assert_eq!((skipped.no_processor, skipped.never_ran, skipped.unfinished), (1, 1, 1));
    assert!(skipped.to_string().contains("line 7: its submitted_time is 'soon'"), "{skipped}");
    for key in ["status", "vc", "user"] {
        let text = text.replace(&format!("\"{key}\":"), "\"other\":");
        assert_eq!(listed(&text).expect("it is read").0.len(), 3, "{key}");
    }
}

const HELIOS: &str = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
    7,u1,vcA,8,32,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:10,2020-04-01 00:10:10,600,10\n\
    8,u1,vcA,0,4,1,COMPLETED,2020-04-01 00:00:05,2020-04-01 00:00:10,2020-04-01 00:10:10,600,5\n\
    9,u2,vcB,1,4,1,CANCELLED,2020-04-01 00:01:00,,,,\n\
    10,u2,vcB,16,64,2,RUNNING,2020-04-01 00:01:10,2020-04-01 00:02:00,,,50\n\
    11,u2,vcB,16,64,2,NODE_FAIL,2020-04-01 00:01:20,2020-04-01 00:02:00,2020-04-01 00:02:30,30,40\n\
    12,u2,vcB,many,64,2,FAILED,2020-04-01 00:01:30,2020-04-01 00:02:00,2020-04-01 00:02:30,30,40\n";

#[test]
fn a_job_log_of_helios_is_read() {
    assert_eq!(JobsFormat::detect(HELIOS.as_bytes()), Some(JobsFormat::Helios));
    let (jobs, _) = listed(HELIOS).expect("it is read");
    let said = |job: &SwfJob| (job.number, job.wait, job.run_time, job.requested, job.status);
    assert_eq!(
        jobs.iter().map(said).collect::<Vec<_>>(),
        [(7, 10, 600, 8, 1), (9, -1, -1, 1, 5), (11, 40, 30, 16, 0)]
    );
    // 1 April 2020 is day 18,353 of 1970.
    assert_eq!(jobs[0].submitted, 18_353 * 86_400);
    let skipped = skipped(HELIOS);
    assert_eq!((skipped.no_processor, skipped.never_ran, skipped.unfinished), (1, 1, 1));
    assert!(skipped.to_string().contains("line 7: its gpu_num is 'many'"), "{skipped}");
    assert_eq!(
        JobsFormat::Helios.columns_read(HELIOS.as_bytes()).len(),
        9,
        "all that are looked for are there"
    );
}

/// The text of a table without its `column`-th column.
fn without(table: &str, separator: char, column: usize) -> String {
    let cut = |line: &str| {
        let cells = line.split(separator).enumerate().filter(|(n, _)| *n != column);
        cells.map(|(_, cell)| cell).collect::<Vec<_>>().join(&separator.to_string())
    };
    table.lines().map(cut).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn each_optional_column_of_helios_may_be_missing() {
    for (column, name) in (0..).zip(HELIOS.lines().next().unwrap_or_default().split(',')) {
        for separator in [',', '\t', ';'] {
            let text = HELIOS.replace(',', &separator.to_string());
            let read = listed(&without(&text, separator, column));
            if ["gpu_num", "submit_time"].contains(&name) {
                assert!(read.map_or(true, |(jobs, _)| jobs.is_empty()), "{name} is needed");
                continue;
            }
            let (jobs, _) = read.expect(name);
            let job = &jobs[0];
            assert_eq!((job.run_time, job.requested), (600, 8), "{name}");
            assert_eq!(job.wait, if name == "start_time" { 0 } else { 10 }, "{name}");
            assert_eq!(job.number, if name == "job_id" { 1 } else { 7 }, "{name}");
            assert_eq!(job.user, if name == "user" { -1 } else { 1 }, "{name}");
            assert_eq!(job.queue, if name == "vc" { -1 } else { 1 }, "{name}");
        }
    }
}

const BATCH_TASKS: &str = "M1,10,j_1,1,Terminated,100,200,50.00,0.3\n\
    M2,1,j_1,1,Terminated,100,150,100.00,0.3\n\
    R3_2_1,4,j_1,1,Terminated,210,260,100.00,0.2\n\
    task_x,1,j_2,2,Running,120,,100.00,0.1\n\
    M1,2,j_3,1,Failed,130,140,,\n\
    M1,,j_4,1,Waiting,,,100.00,0.1\n\
    M2_1,1,j_3,1,Terminated,160,150,100.00,0.1\n";

/// The name of one of Alibaba's tasks gives the tasks of its job that must end before it.
#[test]
fn batch_tasks_of_alibaba_are_read_with_their_order() {
    assert_eq!(JobsFormat::detect(BATCH_TASKS.as_bytes()), Some(JobsFormat::Alibaba2018));
    let heading =
        "task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem\n";
    for text in [BATCH_TASKS.to_owned(), format!("{heading}{BATCH_TASKS}")] {
        let (jobs, _) = listed(&text).expect("it is read");
        let said = |job: &SwfJob| (job.number, job.submitted, job.run_time, job.requested);
        let right = [(6, -1, -1, -1), (1, 100, 100, 5), (2, 100, 50, 1), (5, 130, 10, 2)];
        assert_eq!(jobs[..4].iter().map(said).collect::<Vec<_>>(), right, "{text}");
        let last = &jobs[4];
        assert_eq!(said(last), (3, 210, 50, 4));
        assert_eq!(
            (last.preceding, &last.preceding_others[..], last.think_time),
            (2, &[1][..], 10)
        );
        let skipped = skipped(&text);
        assert_eq!((skipped.unfinished, skipped.never_ran, skipped.malformed()), (1, 1, 1));
        assert!(skipped.to_string().contains("write an end that is not before the start"));
        assert_eq!(skipped.odd.follow_ups, 1, "{skipped}");
    }
    let table = format!("{heading}{BATCH_TASKS}");
    for (column, name) in (0..).zip(heading.trim_end().split(',')) {
        let read = listed(&without(&table, ',', column));
        if ["task_name", "instance_num", "start_time", "end_time"].contains(&name) {
            assert!(read.map_or(true, |(jobs, _)| jobs.is_empty()), "{name} is needed");
            continue;
        }
        let (jobs, _) = read.expect(name);
        let last = jobs.iter().find(|job| job.submitted == 210).expect(name);
        assert_eq!(last.preceding, if name == "job_name" { -1 } else { 2 }, "{name}");
        // Without a plan an instance is a core.
        let first = jobs.iter().find(|job| job.submitted == 100).expect(name);
        assert_eq!(first.requested, if name == "plan_cpu" { 10 } else { 5 }, "{name}");
    }
}

const PAI_TASKS: &str = "j1,tensorflow,2,Terminated,1000.0,1600.0,600.0,29.3,50.0,T4\n\
    j2,worker,1,Failed,1010.0,1020.0,600.0,29.3,,\n\
    j3,ps,1,Running,1020.0,,600.0,29.3,100.0,P100\n\
    j4,worker,3,Failed,900.0,950.0,600.0,29.3,200.0,MISC\n\
    j5,worker,1,Waiting,,,600.0,29.3,100.0,T4\n";

#[test]
fn tasks_on_gpus_of_alibaba_are_read() {
    assert_eq!(JobsFormat::detect(PAI_TASKS.as_bytes()), Some(JobsFormat::Alibaba2020));
    let heading = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n";
    for text in [PAI_TASKS.to_owned(), format!("{heading}{PAI_TASKS}")] {
        let (jobs, _) = listed(&text).expect("it is read");
        let said = |job: &SwfJob| (job.submitted, job.run_time, job.requested, job.status);
        let right = [(-1, -1, -1, 5), (900, 50, 6, 0), (1_000, 600, 1, 1)];
        assert_eq!(jobs.iter().map(said).collect::<Vec<_>>(), right, "{text}");
        let skipped = skipped(&text);
        assert_eq!((skipped.no_processor, skipped.unfinished, skipped.never_ran), (1, 1, 1));
    }
    let table = format!("{heading}{PAI_TASKS}");
    for (column, name) in (0..).zip(heading.trim_end().split(',')) {
        let read = listed(&without(&table, ',', column));
        if ["inst_num", "start_time", "end_time", "plan_gpu"].contains(&name) {
            assert!(read.map_or(true, |(jobs, _)| jobs.is_empty()), "{name} is needed");
            continue;
        }
        let (jobs, _) = read.expect(name);
        assert!(jobs.iter().any(|job| job.run_time == 600 && job.requested == 1), "{name}");
    }
}

/// A record of LSF with all fields up to the run limit, with lists of one entry each before it, in the order of a
/// public record of a job with `bsub -W 1:00` (... 0 0 3600 16 460800 "select[...").
#[test]
fn the_run_limit_of_lsf_is_found_behind_its_lists() {
    let begin = "\"JOB_FINISH\" \"10.1\" 1709287810 101 1000 33619971 4 1709287200 0 0 1709287210 \"ann\" \"normal\" \
        \"\" \"\" \"\" \"login1\" \"/home/ann\" \"\" \"\" \"\" \"1709287200.101\" 0 1 \"n1\" 64 60.0 \"a\" \
        \"./a\" 1.0 0.1 0 0 -1 0 0 0 0 0 0 0 -1 0 0 0 -1 \"\" \"default\" 0 4 \"\" \"\" 0 0 0";
    let middle =
        " \"\" \"\" \"\" \"\" 0 \"\" 0 \"\" 0 \"\" \"\" \"\" \"\" 0 \"\" \"\" 0 \"\" 0 \"\" \"\"";
    let lists = " 1 \"k\" \"v\" 1 \"n1\" 10 20 5 6";
    for (end, limit) in [
        (format!("{middle}{lists} 3600 16 100 \"select[x]\" \"\" 0"), 3_600),
        (format!("{middle} 0 0 3600 16 100 \"select[x]\""), 3_600),
        // None; a version whose fields are others; one that ends before them.
        (format!("{middle}{lists} -1 64 100 \"select[x]\""), -1),
        (format!("{middle}{lists} 3600 16 \"x\" 5"), -1),
        (format!("{middle} 9 \"k\""), -1),
        (middle.to_owned(), -1),
        (String::new(), -1),
    ] {
        let (jobs, _) = listed(&format!("{begin}{end}\n")).expect("it is read");
        assert_eq!(jobs.iter().map(|job| job.requested_time).collect::<Vec<_>>(), [limit], "{end}");
    }
}

/// A log of any format is written in each output format, and the same jobs are read back.
#[test]
fn logs_are_written_in_other_formats_and_read_again() {
    for text in [CONDOR, HELIOS, BATCH_TASKS, PAI_TASKS] {
        let (jobs, _) = listed(text).expect("it is read");
        let (mut swf, mut csv, mut batsim) = (Vec::new(), Vec::new(), Vec::new());
        let mut to_swf = SwfWriter::new(&mut swf, &Header::default()).expect("to memory");
        let mut to_csv = CsvWriter::new(&mut csv).expect("to memory");
        let mut to_batsim = BatsimWriter::new(&mut batsim, 64).expect("to memory");
        let mut ran = Vec::new();
        for job in &jobs {
            to_swf.write(job).expect("to memory");
            to_csv.write(job).expect("to memory");
            if to_batsim.write(job).expect("to memory") {
                ran.push(job.clone());
            }
        }
        to_swf.finish().expect("to memory");
        to_csv.finish().expect("to memory");
        to_batsim.finish().expect("to memory");
        for written in [swf, csv] {
            let written = String::from_utf8(written).expect("text");
            assert_eq!(JobsFormat::detect(written.as_bytes()), Some(JobsFormat::Swf), "{written}");
            assert_eq!(listed(&written).expect("it is read").0, jobs, "{written}");
        }
        let batsim = String::from_utf8(batsim).expect("text");
        let (again, said) = listed(&batsim).expect("it is read");
        assert_eq!((said.taken_for.format, said.malformed()), (JobsFormat::Batsim, 0), "{batsim}");
        let first = ran.first().map_or(0, |job| job.submitted);
        let key = |job: &SwfJob, first: i64| {
            (job.number, job.submitted - first, job.run_time, job.requested, job.requested_time)
        };
        assert!(!ran.is_empty());
        assert_eq!(
            again.iter().map(|job| (key(job, 0), job.fails)).collect::<Vec<_>>(),
            ran.iter().map(|job| (key(job, first), job.status == 0)).collect::<Vec<_>>(),
            "{batsim}"
        );
    }
}
