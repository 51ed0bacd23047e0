//! `throng ping`: one server, a query each interval, a line for each response.

use std::net::IpAddr;
use std::process::ExitCode;

use engine::{Ending, Observations, Observed, observer};
use lab::run::RunRequest;
use measure::notation::latency;
use measure::{ProbeStatistics, RunRecord};
use proto::rr::rcode_to_text;
use serde_json::{Value, json};

use super::{questions, reject_hidden, run_of};
use crate::args::Output;
use crate::args::probe::{PingArguments, PingFormat};
use crate::failure::{Failure, print};
use crate::records::{Destination, hand_over};
use crate::run;
use crate::signals;

/// Bits of the header's octets three and four that are worth a word (RFC 1035, section 4.1.1; RFC
/// 4035, section 3.2).
const FLAGS: [(u16, &str); 6] = [
    (0x0400, "aa"),
    (0x0200, "TC"),
    (0x0100, "rd"),
    (0x0080, "ra"),
    (0x0020, "ad"),
    (0x0010, "cd"),
];

/// Asks and prints.
pub(crate) fn execute(arguments: &PingArguments) -> Result<ExitCode, Failure> {
    reject_hidden("ping", &arguments.probe.run)?;
    let questions = questions(&arguments.probe)?;
    let request = request(arguments, &questions)?;
    let destination = Destination::of_record(&Output::of(&arguments.probe.run))?;
    let interrupt = signals::watch_for_end(|| tell!("ending; waiting for open queries"));
    if request.preflight {
        lab::run::check_target(&request)?;
    }
    let shown = Shown {
        server: request.plan.target.to_string(),
        questions,
        format: arguments.form.format,
    };
    let (observer, observations) = observer();
    let mut request = request;
    (request.observer, request.preflight) = (Some(observer), false);
    shown.head(&request)?;
    let control = lab::run::control(std::slice::from_ref(&request));
    interrupt.stops(&control);
    let (record, printed) = std::thread::scope(|scope| {
        let printer = scope.spawn(|| shown.each(observations));
        let record = lab::run::run(&request, &control, |_| ());
        // The printer ends when nobody can tell it anything any more.
        drop(request);
        (record, printer.join())
    });
    let record = record?;
    let missed = printed.map_err(|_| Failure::in_operation("printing failed unexpectedly"))??;
    let statistics = statistics(&record);
    let words = |_: &RunRecord| shown.statistics(&statistics);
    let handed_over = hand_over(&record, destination.as_ref(), words);
    if missed > 0 {
        tell!("note: {missed} lines were left out: queries ended faster than they print");
    }
    handed_over.map(|_| match statistics.received {
        0 => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

fn request(arguments: &PingArguments, questions: &[String]) -> Result<RunRequest, Failure> {
    match arguments.probe.run.server.len() {
        1 => {}
        0 => {
            let name = &arguments.probe.name;
            let cure = match name.parse::<IpAddr>() {
                Ok(_) => format!("`{name}` is the name to query: give NAME --server {name}"),
                Err(_) => "give --server HOST, or start one with `throng responder`".to_owned(),
            };
            return Err(Failure::usage(
                "no server to query: --server is missing",
                cure,
            ));
        }
        _ => {
            return Err(Failure::usage(
                "--server is given more than once",
                "give one, or compare them with `throng eval`",
            ));
        }
    }
    let count = (arguments.count > 0).then_some(arguments.count);
    run::request(&run_of(&arguments.probe.run, questions, count)?)
}

/// What is printed, and how.
struct Shown {
    server: String,
    questions: Vec<String>,
    format: PingFormat,
}

impl Shown {
    fn head(&self, request: &RunRequest) -> Result<(), Failure> {
        if self.format == PingFormat::Json {
            return Ok(());
        }
        let name = request.asked.servers.join(", ");
        let of = match name == self.server {
            true => String::new(),
            false => format!(" ({})", self.server),
        };
        let (questions, transport) = (self.questions.join(", "), request.plan.transport);
        print(&format!("{questions} over {transport} from {name}{of}\n"))
    }

    /// A line for each query as it ends; returns how many were left out.
    fn each(&self, observations: Observations) -> Result<u64, Failure> {
        let mut number = 0;
        for observation in &observations {
            let line = match observation.event {
                Observed::Usable { set_up_ns } => self.connected(set_up_ns),
                Observed::Ended {
                    question,
                    sent_at,
                    how,
                    ..
                } => {
                    number += 1;
                    let time_ns = observation.at.nanos_since(sent_at);
                    self.ended((number, question), how, time_ns)
                }
            };
            print(&line)?;
        }
        Ok(observations.missed())
    }

    fn connected(&self, set_up_ns: u64) -> String {
        match self.format {
            PingFormat::Text => format!("connected in {}\n", latency(set_up_ns as f64)),
            PingFormat::Json => line(&json!({"event": "connected", "set_up_ns": set_up_ns})),
        }
    }

    /// A query that has ended: the `number`th, from 1.
    fn ended(&self, (number, question): (u64, u32), how: Ending, time_ns: u64) -> String {
        let asked = self.questions.get(question as usize);
        // Which of several questions it was is worth saying.
        let of = match (asked, self.questions.len()) {
            (Some(asked), 2..) => format!("{asked}: "),
            _ => String::new(),
        };
        match self.format {
            PingFormat::Text => format!("{number:>4}  {of}{}\n", self.words(how, time_ns)),
            PingFormat::Json => {
                let mut value = fields(how, time_ns);
                value["number"] = json!(number);
                value["question"] = json!(asked);
                value["server"] = json!(self.server);
                line(&value)
            }
        }
    }

    fn words(&self, how: Ending, time_ns: u64) -> String {
        match how {
            Ending::Response {
                octets,
                rcode,
                flags,
            } => {
                let (server, rcode) = (&self.server, rcode_to_text(rcode));
                let (time, flags) = (latency(time_ns as f64), words_of(flags));
                format!("{octets} bytes from {server}  {rcode}  {time}  {flags}")
            }
            Ending::TimedOut => "no response: timed out".to_owned(),
            Ending::Lost => "no response: the connection or its exchange ended".to_owned(),
            Ending::NotSent => "not sent".to_owned(),
        }
    }

    fn statistics(&self, statistics: &ProbeStatistics) -> String {
        match self.format {
            PingFormat::Text => format!("\n{}", report::probe::text(statistics)),
            PingFormat::Json => line(&json!({"event": "statistics", "statistics": statistics})),
        }
    }
}

fn statistics(record: &RunRecord) -> ProbeStatistics {
    let connections = record.connection_times();
    let mut total = record.total.clone();
    // Those set up before the first query are not in the total of the run.
    total.counts.connections = record.connections();
    ProbeStatistics::new(&total, &connections)
}

fn fields(how: Ending, time_ns: u64) -> Value {
    match how {
        Ending::Response {
            octets,
            rcode,
            flags,
        } => json!({
            "event": "response", "octets": octets, "rcode": rcode_to_text(rcode),
            "flags": words_of(flags), "truncated": flags & 0x0200 != 0, "time_ns": time_ns,
        }),
        Ending::TimedOut => json!({"event": "timed_out"}),
        Ending::Lost => json!({"event": "lost"}),
        Ending::NotSent => json!({"event": "not_sent"}),
    }
}

fn words_of(flags: u16) -> String {
    let set = FLAGS.iter().filter(|(bit, _)| flags & bit != 0);
    set.map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}
