//! `throng trace`: the way to a server, by queries that go one hop further each time.

use std::net::SocketAddr;
use std::process::ExitCode;

use lab::trace::{TraceRequest, Tracer};
use measure::Trace;
use measure::trace::{Hop, TraceEnd};

use super::{questions, reject_hidden};
use crate::args::DocumentFormat;
use crate::args::probe::TraceArguments;
use crate::failure::{Failure, print};
use crate::run;
use crate::signals;

/// Traces and prints.
pub(crate) fn execute(arguments: &TraceArguments) -> Result<ExitCode, Failure> {
    reject_hidden("trace", &arguments.probe.run)?;
    let questions = questions(&arguments.probe)?;
    let [question] = questions.as_slice() else {
        return Err(Failure::usage(
            "--type: a trace asks one question",
            "give one type",
        ));
    };
    let [server] = arguments.probe.run.server.as_slice() else {
        return Err(Failure::usage(
            "a trace goes to one server",
            "give --server HOST once",
        ));
    };
    let request = request(arguments, question, server)?;
    let interrupt = signals::watch(|| tell!("ending the trace"));
    let (address, hops_max) = (request.target.to_string(), request.hops_max);
    let tracer = Tracer::open(request)?;
    let is_text = arguments.form.format == DocumentFormat::Text;
    if is_text {
        let head = report::trace::headline(question, server, &address, hops_max);
        print(&head)?;
    }
    let mut printed = Ok(());
    let traced = tracer.run(
        || interrupt.has_come(),
        |hop: &Hop| {
            if is_text && printed.is_ok() {
                printed = print(&report::trace::hop(hop));
            }
        },
    )?;
    printed?;
    let trace = Trace {
        question: question.clone(),
        server: server.clone(),
        address,
        hops: traced.hops,
        ended: traced.ended,
        unexpected: traced.unexpected,
    };
    print(&match arguments.form.format {
        DocumentFormat::Text => report::trace::conclusion(&trace),
        DocumentFormat::Json => {
            let json = serde_json::to_string_pretty(&trace).map_err(Failure::in_operation)?;
            format!("{json}\n")
        }
    })?;
    Ok(match trace.ended {
        TraceEnd::Response => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn request(
    arguments: &TraceArguments,
    question: &str,
    server: &str,
) -> Result<TraceRequest, Failure> {
    let flags = &arguments.probe.run;
    if arguments.first_hop > arguments.max_hops {
        return Err(Failure::usage(
            "--first-hop is beyond --max-hops",
            "give a smaller one",
        ));
    }
    if flags.timeout.is_zero() {
        return Err(Failure::usage(
            "--timeout: must not be zero",
            "give a time such as 1s",
        ));
    }
    let asked = flags.settings()?;
    let options = run::message::query_options(&asked)?;
    let (questions, _) = run::names::named_questions(&format!("{question}\n"), &options)?;
    let template = questions.get(0);
    // No load that needs permission: the last hop's queries are all that reach the server.
    let (target, _) = run::address_of(server, &asked)?;
    let locals = load::plan::expand_local_addresses(&flags.local_address)?;
    Ok(TraceRequest {
        target,
        local: locals.first().map(|address| SocketAddr::new(*address, 0)),
        query: template.message.to_vec(),
        question_octets: template.question_octets,
        first: arguments.first_hop,
        hops_max: arguments.max_hops,
        probes: arguments.probes,
        timeout: flags.timeout,
    })
}
