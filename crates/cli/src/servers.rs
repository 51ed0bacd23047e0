//! `throng lab`: real servers on this host, started, listed and ended.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::files;
use lab::groups::Rounds;
use lab::target::products;
use lab::target::{
    Cell, Data, Listed, NameLock, Network, Product, Resources, RunningServer, clear_leftovers, list,
};
use measure::internet::Internet;
use settings::Run;

use crate::args::lab::{LabArguments, LabCommand, UpArguments};
use crate::args::{DocumentFormat, Output};
use crate::cache;
use crate::child;
use crate::failure::{Failure, print};
use crate::run::group::Group;
use crate::signals::{self, Interrupt};

/// Name of the file with questions in a server's folder.
const NAMES: &str = "names";

/// Does what the arguments ask for.
pub(crate) fn execute(arguments: &LabArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        LabCommand::Up(arguments) => return up(arguments),
        LabCommand::List { format } => print(&listing(&list(), *format)?),
        LabCommand::Logs { name } => print(&named(name)?.log()?),
        LabCommand::Down { names, all } => {
            let ended = match all {
                true => list().into_iter().filter(|it| !is_owned(it)).collect(),
                false => with_companions(names)?,
            };
            // A server that is in a network ends with it.
            let internet = internet(&ended);
            for server in ended {
                let name = server.name.clone();
                let line = server.end()?;
                tell!("ended `{name}`");
                show(line.as_ref());
            }
            show_internet(&internet);
            Ok(())
        }
        LabCommand::Products => print(&products_text()),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn up(arguments: &UpArguments) -> Result<ExitCode, Failure> {
    let product = product(&arguments.product)?;
    let name = arguments.name.as_deref().unwrap_or(product.name);
    // A server beside a command is not listed by this name.
    let locked = match arguments.command.is_empty() {
        true => Some(lock(name)?),
        false => None,
    };
    clear()?;
    if list().iter().any(|it| it.name == name) {
        let what = format!("a server `{name}` runs already");
        let hint = format!("end it with `throng lab down {name}`, or give this one a --name");
        return Err(Failure::usage(what, hint));
    }
    let data = Data::parse(&arguments.data)?;
    let mut cell = Cell::new(product, data.zone);
    cell.path.clone_from(&arguments.program);
    cell.image.clone_from(&arguments.image);
    cell.user.clone_from(&arguments.server_user);
    cell.topology.clone_from(&arguments.topology);
    let limits = [&arguments.cpus, &arguments.quota, &arguments.memory];
    for (name, value) in Resources::NAMES.into_iter().zip(limits) {
        if let Some(value) = value {
            cell = cell.limit(name, value)?;
        }
    }
    for setting in &arguments.set {
        cell = cell.set(setting)?;
    }
    if let Some(services) = &arguments.transports {
        cell.services.clone_from(&services.0);
    }
    if arguments.command.is_empty() {
        cell.lasting = Some(name.to_owned());
    }
    let server = cell.start()?;
    let names = server.folder().join(NAMES);
    files::write_in_place(&names, &data.questions).map_err(Failure::in_operation)?;
    prepare_cache(&cell, &server, &data.questions)?;
    if !arguments.command.is_empty() {
        return beside(arguments, &server, names);
    }
    let text = announcement(&cell, &server, &names);
    server.keep()?;
    drop(locked);
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Reserves the name of a server until it is listed.
fn lock(name: &str) -> Result<NameLock, Failure> {
    NameLock::take(name)?.ok_or_else(|| {
        let what = format!("a server `{name}` is being started by another command");
        Failure::usage(what, "give this one another name with --name NAME")
    })
}

/// Empties or fills the cache of a resolver, over UDP.
fn prepare_cache(cell: &Cell, server: &RunningServer, questions: &str) -> Result<(), Failure> {
    let group = Group {
        name: String::new(),
        run: Run {
            servers: vec![server.endpoints().do53().to_string()],
            ..Run::default()
        },
        output: Output::default(),
        addresses: None,
        captured: None,
        rounds: Rounds::of_all(),
        place: None,
        runs: 1,
    };
    // A signal ends this process, and the server with it.
    let interrupt = Interrupt::default();
    server.near(|| cache::prepare(cell, server, (questions, &group), &interrupt))?
}

/// Removes what was killed has left behind, and says so.
pub(crate) fn clear() -> Result<(), Failure> {
    for left in clear_leftovers()? {
        tell!("removed what was left over of `{}`", left.name);
    }
    Ok(())
}

/// What a line did.
fn show(line: Option<&measure::line::Line>) {
    if let Some(line) = line {
        crate::terminal::text(&report::line::text(line));
    }
}

/// What the servers of a closed Internet among these did; one that does not tell says why.
fn internet(servers: &[Listed]) -> Internet {
    let mut internet = Internet::default();
    for server in servers.iter().filter(|it| it.is_running()) {
        match server.internet_server() {
            Ok(told) => internet.servers.extend(told),
            Err(error) => tell!("{error:#}"),
        }
    }
    internet
}

fn show_internet(internet: &Internet) {
    if !internet.servers.is_empty() {
        tell!("internet: {}", report::internet::text(internet));
    }
}

/// Runs a command beside the server, at the other end of its network.
fn beside(
    arguments: &UpArguments,
    server: &RunningServer,
    names: PathBuf,
) -> Result<ExitCode, Failure> {
    let signals = signals::receiver()?;
    let addresses = server.endpoints().addresses_by_transport().into_iter();
    let addresses = addresses.map(|(transport, address)| {
        let name = format!("THRONG_{}", transport.name().to_uppercase());
        (name, OsString::from(address.to_string()))
    });
    let names = ("THRONG_NAMES".to_owned(), names.into_os_string());
    let authority = server.ca_pem().map(|_| server.ca_file().into_os_string());
    let authority = authority.map(|path| ("THRONG_CA".to_owned(), path));
    let network = server.network();
    let there = network.map(Network::near_words);
    let there = there.iter().flatten().map(OsStr::new);
    let words = there.chain(arguments.command.iter().map(OsString::as_os_str));
    let words: Vec<&OsStr> = words.collect();
    let environment = addresses.chain([names]).chain(authority);
    let ended = child::run_beside(&words, environment, &signals);
    show(server.account().as_ref());
    show_internet(&server.internet()?.unwrap_or_default());
    ended
}

/// What was started, and how to send load to it.
fn announcement(cell: &Cell, server: &RunningServer, names: &Path) -> String {
    let name = cell.lasting.as_deref().unwrap_or_default();
    let mut text = format!(
        "`{name}` answers for {} (process {})\n",
        cell.zone.origin,
        server.process_id()
    );
    // Writing to a String does not fail.
    let names = format!("--names {}", names.display());
    let there = server.network().map(Network::near_words);
    let there = there.map_or_else(String::new, |words| words.join(" ") + " ");
    for (transport, address) in server.endpoints().addresses_by_transport() {
        let trust = match transport.has_tls() {
            true => format!(" --tls-ca {}", server.ca_file().display()),
            false => String::new(),
        };
        let transport = transport.name();
        let _ = writeln!(
            text,
            "  {there}throng run --server {address} --transport {transport}{trust} {names}"
        );
    }
    let _ = writeln!(text, "  throng lab logs {name}\n  throng lab down {name}");
    text
}

fn product(name: &str) -> Result<&'static Product, Failure> {
    let found = products::all().find(|product| product.name == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = products::all().map(|product| product.name).collect();
        let what = format!("there is no product `{name}`");
        Failure::usage(what, format!("give one of {}", known.join(", ")))
    })
}

fn named(name: &str) -> Result<Listed, Failure> {
    list()
        .into_iter()
        .find(|it| it.name == name)
        .ok_or_else(|| {
            let what = format!("no server `{name}` runs");
            Failure::usage(what, "`throng lab list` lists those that do")
        })
}

/// Those, and what stands behind a proxy among them.
fn with_companions(names: &[String]) -> Result<Vec<Listed>, Failure> {
    let mut all = Vec::new();
    for name in names {
        all.push(named(name)?);
        let behind = list().into_iter();
        all.extend(behind.filter(|it| it.front.as_deref() == Some(name)));
    }
    Ok(all)
}

/// True if a process that still runs has started it for itself.
fn is_owned(server: &Listed) -> bool {
    server.owner.is_some() && !server.is_left_over()
}

fn listing(servers: &[Listed], format: DocumentFormat) -> Result<String, Failure> {
    if format == DocumentFormat::Json {
        let json = serde_json::to_string_pretty(servers);
        return Ok(format!("{}\n", json.map_err(Failure::in_operation)?));
    }
    if servers.is_empty() {
        return Ok("no server runs\n".to_owned());
    }
    let mut text = String::new();
    for server in servers {
        let state = match (server.is_left_over(), server.process, server.owner) {
            (true, ..) => {
                let cause = server.kill_cause();
                let cause = cause.map_or_else(String::new, |cause| format!(", {cause}"));
                format!("left over{cause}: `throng lab down --all` removes it")
            }
            (false, _, Some(owner)) => format!("belongs to process {}", owner.id),
            (false, Some(process), None) => format!("process {}", process.id),
            (false, None, None) => "no process".to_owned(),
        };
        // Writing to a String does not fail.
        let _ = writeln!(text, "{} ({}): {state}", server.name, server.program);
        if let [near, far] = server.namespaces.as_slice() {
            let _ = writeln!(text, "  from {near} to {far}");
        }
        for (transport, address) in &server.addresses {
            let _ = writeln!(text, "  {:<5} {address}", transport.name());
        }
    }
    Ok(text)
}

fn products_text() -> String {
    let mut text = String::new();
    for product in products::all() {
        let version = match product.name == products::CUSTOM.name {
            true => String::new(),
            false => match product.version() {
                Ok(version) => format!(" {version}"),
                Err(error) => format!(" ({})", format!("{error:#}").replace("\nhint: ", "; ")),
            },
        };
        // Writing to a String does not fail.
        let _ = writeln!(text, "{}: {}{version}", product.name, product.title);
        for factor in product.factors {
            let default = match factor.default {
                "" => String::new(),
                default => format!(" [default: {default}]"),
            };
            let _ = writeln!(text, "  {}: {}{default}", factor.name, factor.meaning);
        }
    }
    text
}
