//! `effectgate job`: the daemon's client.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::Path,
};

use anyhow::{Context, Result, anyhow};
use effectgate_core::{
    Outcome,
    input::{Coverage, Mode},
};
use serde_json::Value;

use super::{policy, print, print_json};
use crate::{
    cli::{Format, Job, JobCommand},
    exit::{self, Code, Failure, Outcomes},
    serve::protocol::{Answer, Request, Start},
};

pub fn job(args: Job, format: Format) -> Outcomes {
    let request = match args.command {
        JobCommand::Start { cgroup, name, policy, workspace, mode, min_coverage } => {
            let pinned = policy::load(&policy).code(exit::REFUSED)?;
            let workspace = policy::workspace(&pinned.policy, workspace.as_deref());
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).code(exit::REFUSED);
            Request::Start(Box::new(Start {
                cgroup,
                name,
                policy_file: pinned.policy.file.clone(),
                pinned: pinned.digest,
                policy: text(pinned.bytes)?,
                note: pinned.note.map(|(_, bytes)| text(bytes)).transpose()?,
                workspace: workspace.code(exit::REFUSED)?,
                mode: Mode::from(mode).name().to_owned(),
                min_coverage: Coverage::from(min_coverage).name().to_owned(),
            }))
        }
        JobCommand::Finish { job } => Request::Finish { job },
        JobCommand::Status { job } => Request::Status { job },
        JobCommand::List => Request::List {},
    };
    let value = match ask(&args.socket, &request).code(exit::OBSERVER)? {
        Answer::Ok(value) => value,
        Answer::Error { message, code } => return Err(Failure { code, error: anyhow!(message) }),
    };
    match (format, &request) {
        (Format::Json, Request::Finish { .. }) => print_json(&value["verdict"])?,
        (Format::Json, _) => print_json(&value)?,
        (Format::Text, _) => print(&text(&request, &value)),
    }
    Ok(match request {
        Request::Finish { .. } => exit::of_verdict(outcome(&value).code(exit::OBSERVER)?, None),
        _ => exit::HOLDS,
    })
}

fn ask(socket: &Path, request: &Request) -> Result<Answer> {
    let mut stream = UnixStream::connect(socket).with_context(|| {
        format!("no daemon answers on {}: is `effectgate daemon` running?", socket.display())
    })?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line).context("the daemon hung up")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).context("the daemon hung up")?;
    serde_json::from_str(&answer).context("the daemon's answer makes no sense")
}

fn outcome(answer: &Value) -> Result<Outcome> {
    let name = answer["verdict"]["verdict"].as_str().and_then(Outcome::from_name);
    name.context("the daemon's answer holds no verdict")
}

fn text(request: &Request, value: &Value) -> String {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let row = |job: &Value| {
        format!(
            "{}\t{}\t{}\t{} records\t{} violations\t{} lost\t{}\n",
            word(&job["id"]),
            word(&job["name"]),
            word(&job["policy"]),
            word(&job["records"]),
            word(&job["violations"]),
            word(&job["lost"]),
            word(&job["cgroup"]),
        )
    };
    match request {
        Request::Start(_) => format!("{}\n", word(&value["job"])),
        Request::Status { .. } => row(value),
        Request::List {} => value.as_array().into_iter().flatten().map(row).collect(),
        Request::Finish { .. } => value["text"].as_str().unwrap_or_default().to_owned(),
    }
}
