//! What servers and hosts tell of themselves beside a run: begun before its load, put into its
//! record after it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use driver::clock::Clock;
use engine::Control;
use measure::observation::{ObservationMode, ServerFacts};
use measure::record::EndedBy;
use measure::{Observation, RunRecord};
use observe::{Asked, AskedError, Credentials, Newest, Observer, Settings};
use proto::Transport;

use crate::run::{RunError, RunRequest};

/// What stands for whatever is found of the target.
const AUTO: &str = "auto";
/// Runs up to this long are short: there sources are asked each second.
const SHORT: Duration = Duration::from_secs(120);
const PERIOD_OF_SHORT: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_secs(5);
/// What the last scrapes of an interrupted run may take.
const PATIENCE_WHEN_INTERRUPTED: Duration = Duration::from_millis(500);

/// What is to be observed.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    asked: Vec<Asked>,
    is_auto: bool,
    /// Other servers than the target of which whatever is found is to be observed.
    others: Vec<SocketAddr>,
}

impl Sources {
    /// Reads what was typed: `auto`, `auto=ADDRESS` for a server beside the target, or
    /// `PROFILE=WHERE[,KEY=VALUE..]`.
    ///
    /// # Errors
    /// There is no such profile or key, or something is missing; with the cure.
    pub fn parse(texts: &[String]) -> Result<Sources, RunError> {
        let mut sources = Sources::default();
        for text in texts {
            if text == AUTO {
                sources.is_auto = true;
                continue;
            }
            if let Some(address) = text.strip_prefix("auto=") {
                let address = address.parse().map_err(|_| {
                    RunError::new(
                        format!("--observe {text}: `{address}` is not an address and port"),
                        "give that of a server behind the target, as in auto=127.0.0.1:5300",
                    )
                })?;
                sources.others.push(address);
                continue;
            }
            let asked = Asked::parse(text).map_err(refused(text))?;
            check_files(text, &asked.credentials)?;
            sources.asked.push(asked);
        }
        Ok(sources)
    }

    /// The files with credentials, which stay on this host.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let of_all = self.asked.iter().map(|it| &it.credentials);
        of_all.flat_map(files).map(PathBuf::as_path)
    }

    /// True if nothing is to be observed.
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty() && !self.is_auto && self.others.is_empty()
    }
}

fn files(credentials: &Credentials) -> impl Iterator<Item = &PathBuf> {
    let Credentials {
        token,
        authorities,
        certificate,
        key,
    } = credentials;
    [token, authorities, certificate, key].into_iter().flatten()
}

/// A file that is not there is no fault of the source's.
fn check_files(text: &str, credentials: &Credentials) -> Result<(), RunError> {
    for path in files(credentials) {
        std::fs::metadata(path).map_err(|error| {
            let what = format!("--observe {text}: `{}`: {error}", path.display());
            RunError::new(what, "give a file with the credential in it")
        })?;
    }
    Ok(())
}

/// Sources that are being asked.
pub(crate) struct Observing {
    observer: Observer,
    /// The origin of all instants, time since 1970.
    epoch: Duration,
    /// What the target says of itself over DNS.
    said: ServerFacts,
    /// What could not be found.
    notes: Vec<String>,
}

/// Begins to ask what the run of these groups is to observe; none if that is nothing. Sources have
/// been asked once when this returns.
///
/// # Errors
/// What was typed is wrong however a source behaves.
pub(crate) fn begin(
    groups: &[RunRequest],
    control: &Control,
) -> Result<Option<Observing>, RunError> {
    let Some(request) = groups.first().filter(|it| !it.observe.is_empty()) else {
        return Ok(None);
    };
    let mut asked = request.observe.asked.clone();
    let mut notes = Vec::new();
    if request.observe.is_auto {
        let found = found(request);
        add_new(&mut asked, found.asked);
        notes = found.notes;
    }
    for other in &request.observe.others {
        let found = observe::auto::find(*other);
        add_new(&mut asked, found.asked);
        notes.extend(found.notes);
    }
    let length = request.plan.duration.map(|it| it + request.plan.warmup);
    let settings = Settings {
        mode: ObservationMode::During,
        period: match length.is_some_and(|length| length > SHORT) {
            true => PERIOD,
            false => PERIOD_OF_SHORT,
        },
        thread_cpu_time: Clock::thread_cpu_time,
    };
    // Before the first scrape, so that it counts none of these questions as ours.
    let said = said_of_itself(request);
    let epoch = Clock::unix_time();
    let is_over = || control.is_stopped() || control.is_interrupted();
    let observer = Observer::start_unless(&asked, Instant::now(), settings, &is_over);
    Ok(Some(Observing {
        observer: observer
            .map_err(|error| RunError::new(format!("--observe: {}", error.what), error.hint))?,
        epoch,
        said,
        notes,
    }))
}

/// Version and identity, where the target answers over UDP, as those do that answer over TCP.
fn said_of_itself(request: &RunRequest) -> ServerFacts {
    let is_plain = matches!(request.plan.transport, Transport::Udp | Transport::Tcp);
    match is_plain && !request.asked.is_self_test() {
        true => observe::dns::facts(request.plan.target),
        false => ServerFacts::default(),
    }
}

/// Adds what the target answered over DNS to its program and to its statistics. Through a proxy
/// the answer is that of a server behind it: it is the product's own version and identity only if
/// [`observe::profiles::names_itself`], and `version.bind` in any case.
fn complete(observations: &mut [Observation], said: &ServerFacts) {
    let is_program = |it: &Observation| it.facts.process_id.is_some();
    let is_server = |it: &Observation| it.series("queries").is_some();
    let program = observations.iter().position(is_program);
    let server = observations.iter().position(is_server);
    if let Some((program, server)) = program.zip(server) {
        let of_server = observations[server].facts.clone();
        let of_program = &mut observations[program].facts;
        if of_program.product == of_server.product && of_program.version.is_none() {
            of_program.version = of_server.version;
        }
    }
    for place in [program, server].into_iter().flatten() {
        let facts = &mut observations[place].facts;
        let product = facts.product.as_deref();
        let answers_itself = product
            .is_some_and(|it| observe::profiles::names_itself(it, said.version_bind.as_deref()));
        facts.complete_with(ServerFacts {
            version: said.version_bind.clone().filter(|_| answers_itself),
            version_bind: said.version_bind.clone(),
            identity: said.identity.clone().filter(|_| answers_itself),
            ..ServerFacts::default()
        });
    }
}

/// What there is to observe of the targets of a run, each once.
fn found(request: &RunRequest) -> observe::auto::Found {
    if request.asked.is_self_test() {
        let note = "the target is the responder within this process: there is nothing to observe";
        return observe::auto::Found {
            asked: Vec::new(),
            notes: vec![note.to_owned()],
        };
    }
    let stub = request.plan.stub.as_ref();
    let targets: Vec<SocketAddr> = match stub {
        Some(stub) => stub.servers.clone(),
        None => vec![request.plan.target],
    };
    let mut all = observe::auto::Found::default();
    for target in targets {
        let found = observe::auto::find(target);
        add_new(&mut all.asked, found.asked);
        all.notes.extend(found.notes);
    }
    all
}

/// Adds the sources that are not there yet.
fn add_new(all: &mut Vec<Asked>, further: Vec<Asked>) {
    for asked in further {
        if !all.iter().any(|known| known.shown() == asked.shown()) {
            all.push(asked);
        }
    }
}

fn refused(what: &str) -> impl Fn(AskedError) -> RunError + '_ {
    move |error| {
        RunError::new(
            format!("--observe {what}: {}", error.what),
            error.hint.clone(),
        )
    }
}

impl Observing {
    /// The newest scrape of each source, by now and while the run goes on.
    pub(crate) fn newest(&self) -> Newest {
        self.observer.newest()
    }

    /// Asks once more, and puts what came of it into the record, whose verdict it may change.
    pub(crate) fn end(self, record: &mut RunRecord) {
        let began = record
            .agents
            .first()
            .map(|run| Duration::from_micros(run.began_us));
        let before_ns = |began: Duration| began.as_nanos() as i64 - self.epoch.as_nanos() as i64;
        // Without its identity nothing tells when a run began but that it had to be after.
        let phases = &record.phases;
        let first_ns = (phases.connect_ns + phases.warmup_ns) as i64;
        let by_ns = began.map_or(first_ns, before_ns);
        // Who interrupts a run waits for no server.
        let most = match record.ended_by {
            EndedBy::Interrupted => PATIENCE_WHEN_INTERRUPTED,
            _ => Duration::MAX,
        };
        for mut observation in self.observer.finish_within(most) {
            observation.move_origin(by_ns);
            record.observations.push(observation);
        }
        complete(&mut record.observations, &self.said);
        let notes = self.notes.into_iter();
        record
            .warnings
            .extend(notes.map(|note| format!("--observe auto: {note}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known of the program of a product, with the version of its statistics if it has any.
    fn completed(product: &str, version: Option<&str>, version_bind: &str) -> ServerFacts {
        let mut program = Observation::default();
        program.facts.product = Some(product.to_owned());
        program.facts.process_id = Some(7);
        program.facts.version = version.map(str::to_owned);
        let said = ServerFacts {
            version_bind: Some(version_bind.to_owned()),
            identity: Some("n1".to_owned()),
            ..ServerFacts::default()
        };
        let mut observations = [program];
        complete(&mut observations, &said);
        let [program] = observations;
        assert_eq!(program.facts.version_bind, said.version_bind);
        program.facts
    }

    #[test]
    fn answer_to_version_bind_is_no_version_of_a_product_that_forwards_it() {
        // NSD has no profile.
        for (product, said) in [
            ("BIND", "9.18.33"),
            ("Unbound", "dns"),
            ("nsd", "NSD 4.6.1"),
        ] {
            let facts = completed(product, None, said);
            assert_eq!(facts.version.as_deref(), Some(said), "{product}");
            assert_eq!(facts.identity.as_deref(), Some("n1"), "{product}");
        }
        for product in [
            "dnsdist",
            "HAProxy",
            "CoreDNS",
            "docker-proxy",
            "of-our-own",
        ] {
            let facts = completed(product, None, "9.18.33");
            assert_eq!((facts.version, facts.identity), (None, None), "{product}");
        }
        let facts = completed("dnsdist", Some("1.7.3"), "9.18.33");
        assert_eq!(facts.version.as_deref(), Some("1.7.3"));
    }

    #[test]
    fn another_server_is_looked_for_by_its_address_alone() {
        let sources = |text: &str| Sources::parse(&[text.to_owned()]);
        let other = sources("auto=127.0.0.1:5300").unwrap();
        assert!(!other.is_empty() && !other.is_auto);
        for wrong in ["auto=", "auto=named", "auto=127.0.0.1"] {
            let error = sources(wrong).unwrap_err();
            assert!(error.what.contains("not an address and port"), "{error}");
        }
    }
}
