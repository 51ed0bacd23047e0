//! `throng ping`: one server, a query each interval, a line for each response.

use std::net::IpAddr;
use std::process::ExitCode;

use engine::{Ending, Observations, Observed, observer};
use lab::run::RunRequest;
use measure::notation::latency;
use measure::{ProbeStatistics, RunRecord};
use proto::rr::rcode_to_text;
use schemars::JsonSchema;
use serde::Serialize;

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
        // The printer ends when the last sender is dropped.
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
            PingFormat::Json => Line::Connected { set_up_ns }.text(),
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
                let query = Query {
                    number,
                    question: asked.map(String::as_str),
                    server: &self.server,
                };
                Line::ended(query, how, time_ns).text()
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
            PingFormat::Json => Line::Statistics { statistics }.text(),
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

/// A line of what `throng ping --format json` prints.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Line<'a> {
    /// A connection is usable.
    Connected {
        /// How long that took.
        set_up_ns: u64,
    },
    /// A response came.
    Response {
        /// The query.
        #[serde(flatten)]
        query: Query<'a>,
        /// Its bytes.
        octets: u32,
        /// Its RCODE.
        rcode: String,
        /// Its flags, such as `aa rd`; `TC` if it is truncated.
        flags: String,
        /// It is truncated.
        truncated: bool,
        /// Time since the query was sent.
        time_ns: u64,
    },
    /// No response came in time.
    TimedOut {
        /// The query.
        #[serde(flatten)]
        query: Query<'a>,
    },
    /// The connection or its exchange ended.
    Lost {
        /// The query.
        #[serde(flatten)]
        query: Query<'a>,
    },
    /// It was not sent.
    NotSent {
        /// The query.
        #[serde(flatten)]
        query: Query<'a>,
    },
    /// The last line.
    Statistics {
        /// Of all queries.
        statistics: &'a ProbeStatistics,
    },
}

/// A query that has ended.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Query<'a> {
    /// Its number, from 1.
    number: u64,
    /// Its name and type.
    question: Option<&'a str>,
    /// The server as it was given.
    server: &'a str,
}

impl<'a> Line<'a> {
    fn ended(query: Query<'a>, how: Ending, time_ns: u64) -> Line<'a> {
        match how {
            Ending::Response {
                octets,
                rcode,
                flags,
            } => Line::Response {
                query,
                octets,
                rcode: rcode_to_text(rcode),
                flags: words_of(flags),
                truncated: flags & 0x0200 != 0,
                time_ns,
            },
            Ending::TimedOut => Line::TimedOut { query },
            Ending::Lost => Line::Lost { query },
            Ending::NotSent => Line::NotSent { query },
        }
    }

    fn text(&self) -> String {
        // Serialized directly, keys would stand in another order than in the other documents.
        format!("{}\n", serde_json::to_value(self).unwrap_or_default())
    }
}

fn words_of(flags: u16) -> String {
    let set = FLAGS.iter().filter(|(bit, _)| flags & bit != 0);
    set.map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
}
