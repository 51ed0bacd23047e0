//! From a scenario file to groups of clients, each with all its flags.

use std::path::Path;

use lab::groups::{CountsError, Rounds, Wanted};
use proto::Transport;
use settings::arrival::OUTSTANDING;
use settings::number::parse_count;

use super::events;
use super::file::{ScenarioFile, Table};
use super::sweep::Point;
use super::totals::{ROUNDS, divide, is_replaced, is_total, share_out, states_arrival};
use crate::args::{Command, Given, RunArguments, endpoint, flags};
use crate::command_line;
use crate::failure::Failure;
use crate::run::group::Group;
use crate::run::profile::{self, clients_seen};

/// Clients of a group that says nothing of their number.
const CLIENTS: u32 = 10;
/// Connections opened a second.
const CONNECTS: &str = "connect-rate";

/// A part of a group while its flags are put together.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) place: String,
    /// Those of the file, then those of its table; the last one counts.
    pub(super) flags: Vec<Given>,
    pub(super) clients: u32,
    /// Its part of `loops`.
    pub(super) rounds: Rounds,
}

impl Part {
    /// Sets a flag, whatever it was.
    pub(super) fn set(&mut self, name: &str, value: String) {
        self.flags.retain(|given| given.name != name);
        self.flags.push(Given {
            name: name.to_owned(),
            values: vec![value],
        });
    }
}

/// The groups of one run; `command_line` goes before what the file says.
pub(super) fn compile(
    file: &ScenarioFile,
    point: &Point,
    command_line: &[Given],
) -> Result<Vec<Group>, Failure> {
    // What the command line or the sweep says holds for every group; of totals, for all together.
    let of_all: Vec<Given> = point.flags.iter().chain(command_line).cloned().collect();
    let file = &file.overridden(&of_all);
    let mut top = file.top.flags.clone();
    override_with(&mut top, &of_all);
    let parts = parts(file, &top)?;
    let parts = events::apply(&file.events, parts)?;
    let parts = over_targets(&file.targets, parts)?;
    let parts = over_transports(parts)?;
    let mut groups = Vec::new();
    for (number, mut part) in parts.into_iter().enumerate() {
        let of_each = of_all.iter().filter(|given| {
            let is_divided = ["clients", "profile-mix"].contains(&&*given.name);
            !is_divided && !is_total(&given.name)
        });
        let of_each: Vec<Given> = of_each.cloned().collect();
        override_with(&mut part.flags, &of_each);
        groups.push(group(part, number)?);
    }
    Ok(groups)
}

/// The later flags replace the earlier ones of the same names.
fn override_with(flags: &mut Vec<Given>, later: &[Given]) {
    flags.retain(|given| later.iter().all(|other| other.name != given.name));
    flags.extend_from_slice(later);
}

impl ScenarioFile {
    /// The file without what later flags replace in it: their totals, and loads of another kind.
    fn overridden(&self, later: &[Given]) -> ScenarioFile {
        const KINDS: [&str; 3] = ["rate", "outstanding", "per-client"];
        let states = |name: &str| later.iter().any(|given| given.name == name);
        let of_load = KINDS.into_iter().any(states);
        let holds = |given: &Given| {
            let name = given.name.as_str();
            !(of_load && KINDS.contains(&name) || is_total(name) && states(name))
        };
        let mut file = self.clone();
        let tables = file.clients.iter_mut().chain([&mut file.top]);
        tables.for_each(|table| table.flags.retain(holds));
        // An event that changed nothing else does not happen.
        file.events.retain_mut(|event| {
            let changed = !event.flags.is_empty();
            event.flags.retain(holds);
            !changed || !event.flags.is_empty()
        });
        file
    }
}

/// The groups as the file lists them, each with the flags of the top that mean something to it.
fn parts(file: &ScenarioFile, top: &[Given]) -> Result<Vec<Part>, Failure> {
    let top = &with_default_load(file, top);
    let total = value(top, "clients").map(|text| number(&file.top, "clients", text));
    let total = match (total.transpose()?, value(top, "profile")) {
        (Some(total), _) => Some(total),
        (None, Some(path)) => Some(clients_seen(&profile::read(Path::new(path))?.0)),
        (None, None) => None,
    };
    if file.clients.is_empty() {
        let part = Part {
            name: measure::experience::GroupRecord::PLAIN.to_owned(),
            place: file.top.place.clone(),
            flags: top.to_vec(),
            clients: total.unwrap_or(CLIENTS),
            rounds: Rounds::of_all(),
        };
        return Ok(vec![part]);
    }
    let counts = counts(&file.clients, total)?;
    let mut parts: Vec<Part> = Vec::new();
    let mut tables: Vec<&Table> = Vec::new();
    for (table, clients) in file.clients.iter().zip(counts) {
        let name = match table.own("name") {
            Some(name) => name.to_owned(),
            None => format!("group {}", parts.len() + 1),
        };
        if parts.iter().any(|part| part.name == name) {
            let what = format!("there is a group named `{name}` already");
            return Err(table.fault(what, "give each group a name of its own"));
        }
        if clients == 0 {
            // Its part of a small population.
            continue;
        }
        let mut flags: Vec<Given> = inherited(top, table);
        override_with(&mut flags, &table.flags);
        parts.push(Part {
            place: format!("{} `{name}`", table.place),
            rounds: match value(&table.flags, ROUNDS) {
                Some(_) => Rounds::of_group(&name),
                None => Rounds::of_all(),
            },
            name,
            flags,
            clients,
        });
        tables.push(table);
    }
    for total in top.iter().filter(|given| is_total(&given.name)) {
        over_groups(total, &mut parts, &tables)?;
    }
    Ok(parts)
}

/// The flags of the top, with the default load if none is stated.
fn with_default_load(file: &ScenarioFile, top: &[Given]) -> Vec<Given> {
    let mut top = top.to_vec();
    let is_divided = [&file.clients, &file.targets, &file.events];
    let is_divided = is_divided.into_iter().any(|tables| !tables.is_empty());
    let asks = value(&top, "queries-per-connection") != Some("0");
    if is_divided && asks && !states_arrival(&top) {
        top.push(Given {
            name: "outstanding".to_owned(),
            values: vec![OUTSTANDING.to_string()],
        });
    }
    top
}

/// Divides a total of the top among the groups that state none of their own: by their weights, or
/// by their numbers of clients if not all of them have a weight.
fn over_groups(total: &Given, parts: &mut [Part], tables: &[&Table]) -> Result<(), Failure> {
    let name = &total.name;
    let (mut heirs, mut of_tables) = (Vec::new(), Vec::new());
    for (part, table) in parts.iter_mut().zip(tables) {
        let is_own = table.flags.iter().any(|given| given.name == *name);
        if !is_own && value(&part.flags, name).is_some() {
            heirs.push(part);
            of_tables.push(*table);
        }
    }
    let weights = of_tables.iter().map(|table| table.own("weight"));
    let weights: Option<Vec<f64>> = weights.map(|text| text?.parse().ok()).collect();
    let weights = weights.unwrap_or_else(|| {
        let clients = heirs.iter().map(|part| f64::from(part.clients));
        clients.collect()
    });
    share_out(name, &mut heirs, &weights)
}

/// How many clients each group has: as many as it says, or its part of the population by weight.
fn counts(tables: &[Table], total: Option<u32>) -> Result<Vec<u32>, Failure> {
    let wanted = tables.iter().map(|table| {
        Ok(match (table.own("count"), table.own("weight")) {
            (Some(_), Some(_)) => {
                return Err(table.fault("both a count and a weight", "leave out one of them"));
            }
            (Some(text), None) => Wanted::Count(number(table, "count", text)?),
            (None, Some(text)) => Wanted::Weight(weight(table, text)?),
            (None, None) => Wanted::Count(CLIENTS),
        })
    });
    let wanted = wanted.collect::<Result<Vec<_>, Failure>>()?;
    lab::groups::counts(&wanted, total).map_err(|error| match error {
        CountsError::NoPopulation(position) => tables[position].fault(
            "a part of an unknown number of clients",
            "write population = 1000 at the top, or give it a count",
        ),
        CountsError::None => tables[0].fault("no group has a client", "give more clients"),
        CountsError::TooMany(sum) => tables[0].fault(format!("{sum} clients"), "give fewer"),
    })
}

/// Flags of the top for a group: without its number of clients, and without those that have no
/// meaning for its transport, for they are meant for other groups.
fn inherited(top: &[Given], table: &Table) -> Vec<Given> {
    let transport = value(&table.flags, "transport").or(value(top, "transport"));
    let server = value(&table.flags, "server").or(value(top, "server"));
    let of_server = server.and_then(endpoint::transport_of);
    let transport = transport.and_then(|text| text.parse().ok()).or(of_server);
    let transport: Transport = transport.unwrap_or(Transport::Udp);
    let asks_nothing = value(&table.flags, "queries-per-connection") == Some("0");
    let excludes = |name: &str| table.flags.iter().any(|given| given.name == name);
    let means_something = |given: &&Given| {
        let name = given.name.as_str();
        let replaced = is_replaced(name, &table.flags)
            || name == "outstanding" && asks_nothing
            || name == "profile-mix" && excludes("transport");
        name != "clients" && !replaced && suits(name, transport)
    };
    top.iter().filter(means_something).cloned().collect()
}

/// True if a flag means something for this transport.
pub(super) fn suits(name: &str, transport: Transport) -> bool {
    flags::find(name).is_none_or(|flag| flag.suits(transport))
}

/// Splits each group over the targets by their weights.
fn over_targets(targets: &[Table], parts: Vec<Part>) -> Result<Vec<Part>, Failure> {
    if targets.is_empty() {
        return Ok(parts);
    }
    let mut weights = Vec::new();
    for target in targets {
        let Some(server) = target.own("server") else {
            return Err(target.fault("no server", "write server = \"192.0.2.1\""));
        };
        let weight = target
            .own("weight")
            .map_or(Ok(1.0), |text| weight(target, text))?;
        weights.push((server.to_owned(), weight));
    }
    let (servers, weights): (Vec<String>, Vec<f64>) = weights.into_iter().unzip();
    let mut split = Vec::new();
    for part in parts {
        let each = divide(&part, &weights, is_total)?;
        for (one, server) in each.into_iter().zip(&servers) {
            if let Some(mut one) = one {
                one.set("server", server.clone());
                split.push(one);
            }
        }
    }
    Ok(split)
}

/// Splits each group that is to use the transports of its profile, by their shares.
fn over_transports(parts: Vec<Part>) -> Result<Vec<Part>, Failure> {
    let mut split = Vec::new();
    for mut part in parts {
        let profile = value(&part.flags, "profile").map(str::to_owned);
        let is_mixed = part.flags.iter().any(|given| given.name == "profile-mix");
        let Some(path) = profile.filter(|_| is_mixed) else {
            split.push(part);
            continue;
        };
        part.flags.retain(|given| given.name != "profile-mix");
        if value(&part.flags, "transport").is_some() {
            return Err(Failure::usage(
                "`profile-mix` spreads clients over transports, and `transport` gives one",
                "leave out one of them",
            )
            .of(&part.place));
        }
        let (profile, _) = profile::read(Path::new(&path))?;
        let shares = profile.transports.values();
        let shares: Vec<f64> = shares.map(|queries| *queries as f64).collect();
        if shares.iter().sum::<f64>() <= 0.0 {
            continue;
        }
        // A rate of connections is theirs that have some.
        let each = divide(&part, &shares, |name| is_total(name) && name != CONNECTS)?;
        let before = split.len();
        for (name, one) in profile.transports.keys().zip(each) {
            let transport: Transport = name.parse().map_err(|reason: String| {
                let hint = "fit it again from the capture, or undo what was changed by hand";
                Failure::usage(format!("{path}: {reason}"), hint)
            })?;
            let Some(mut one) = one else { continue };
            one.flags.retain(|given| suits(&given.name, transport));
            one.set("transport", name.clone());
            one.name = match part.name == measure::experience::GroupRecord::PLAIN {
                true => name.clone(),
                false => format!("{} over {name}", part.name),
            };
            split.push(one);
        }
        let connected = split.iter_mut().skip(before);
        let connected = connected.filter(|one| value(&one.flags, CONNECTS).is_some());
        let mut connected: Vec<&mut Part> = connected.collect();
        let clients = connected.iter().map(|one| f64::from(one.clients));
        let weights: Vec<f64> = clients.collect();
        share_out(CONNECTS, &mut connected, &weights)?;
    }
    match split.is_empty() {
        false => Ok(split),
        true => Err(Failure::usage(
            "the profile has no query over any transport",
            "leave out --profile-mix",
        )),
    }
}

/// Parses the flags of a part as those of a command line.
fn group(mut part: Part, number: usize) -> Result<Group, Failure> {
    part.set("clients", part.clients.to_string());
    // Groups share the threads of the run; few clients or few places keep few of them busy.
    let outstanding = value(&part.flags, "outstanding").and_then(parse_count);
    let most = u64::from(part.clients)
        .min(outstanding.unwrap_or(u64::MAX))
        .max(1);
    let workers = value(&part.flags, "workers").and_then(parse_count);
    if workers.is_some_and(|workers| workers > most) {
        part.set("workers", most.to_string());
    }
    let parsed = RunArguments::of_flags(&part.flags);
    let group = parsed.and_then(|flags| Group::plain(&flags));
    let mut group = group.map_err(|failure| failure.of(&part.place))?;
    // Groups must not ask in step.
    let seed = &mut group.run.generator.seed;
    *seed = seed.wrapping_add(number as u64);
    Ok(Group {
        addresses: None,
        name: part.name,
        rounds: part.rounds,
        place: Some(part.place),
        ..group
    })
}

impl RunArguments {
    /// Those of a run with these flags.
    ///
    /// # Errors
    /// As of a command line.
    pub(crate) fn of_flags(flags: &[Given]) -> Result<RunArguments, Failure> {
        let mut line = vec!["throng".into(), "run".into()];
        line.extend(flags.iter().flat_map(Given::arguments));
        let parsed =
            command_line::parse(line).map_err(|error| command_line::wrong(&error, "run"))?;
        match parsed.command {
            Command::Run(command) => Ok(command.run),
            _ => Err(Failure::plain("it is not a run")),
        }
    }
}

/// The value of a flag.
pub(super) fn value<'a>(flags: &'a [Given], name: &str) -> Option<&'a str> {
    let given = flags.iter().rfind(|given| given.name == name)?;
    given.values.first().map(String::as_str)
}

fn number(table: &Table, key: &str, text: &str) -> Result<u32, Failure> {
    let number = parse_count(text).and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| {
        let what = format!("{key} `{text}` is not a number of clients");
        table.fault(what, "write a whole number, such as 500 or \"10k\"")
    })
}

/// A weight among others.
fn weight(table: &Table, text: &str) -> Result<f64, Failure> {
    let weight = text.parse().ok();
    weight
        .filter(|weight: &f64| weight.is_finite() && *weight > 0.0)
        .ok_or_else(|| {
            let what = format!("weight `{text}` is not a number above zero");
            table.fault(what, "write weight = 2")
        })
}

/// A share from 0 to 1.
pub(super) fn share(table: &Table, text: &str) -> Result<f64, Failure> {
    let share = text.parse().ok();
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| {
            let what = format!("share `{text}` is not within 0 to 1");
            table.fault(what, "write share = 0.1 for a tenth")
        })
}
