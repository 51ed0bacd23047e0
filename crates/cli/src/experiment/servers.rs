//! Servers that an experiment starts itself: `[[server]]`, with what of each is varied.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use lab::experiment;
use lab::files;
use lab::target::{
    Cache, Cell, Change, Data, Product, RunningServer, Service, Topology, Zone, products,
};
use settings::{Arrival, FileName, Names, Run};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::Level;
use crate::cache;
use crate::failure::Failure;
use crate::run::group::Group;
use crate::scenario::{Reader, beside, kind, nearest, scalar};
use crate::signals::Interrupt;

/// Keys of one of them.
pub(super) const OF_SERVER: [&str; 9] = [
    "label",
    "product",
    "data",
    "program",
    "image",
    "user",
    "change",
    "factors",
    "resources",
];
/// Stands for the address of a server that is not started.
pub(super) const NOT_STARTED: &str = "127.0.0.1";
/// Combinations of the factors and resources of one server.
const LEVELS_MAX: usize = 1_000;

/// A server with everything decided.
#[derive(Clone, Debug)]
pub(super) struct ServerCell {
    cell: Cell,
    questions: String,
}

impl ServerCell {
    pub(super) fn cell(&self) -> &Cell {
        &self.cell
    }

    pub(super) fn product(&self) -> &'static Product {
        self.cell.product
    }

    pub(super) fn zone(&self) -> &Zone {
        &self.cell.zone
    }

    /// CPUs that it is kept on, if it is.
    pub(super) fn cpus(&self) -> Option<&str> {
        self.cell.resources.cpus.as_deref()
    }

    /// Throng's own responder in its place, on the same CPUs. Other servers receive and send
    /// datagrams one by one, without UDP offload: so does the responder in their place.
    pub(super) fn responder(&self) -> Result<ServerCell, Failure> {
        let mut cell = Cell::new(&products::RESPONDER, self.cell.zone.clone());
        cell.families = self.cell.families;
        cell.resources.cpus.clone_from(&self.cell.resources.cpus);
        if self.cell.product.name != products::RESPONDER.name {
            cell = cell.set("options=--no-offload")?;
        }
        Ok(ServerCell {
            cell,
            questions: self.questions.clone(),
        })
    }

    /// Refuses what it cannot be over that topology.
    pub(super) fn check(&self, topology: &Topology) -> Result<(), Failure> {
        Ok(self.cell.check(topology)?)
    }

    /// Its profile and the port of its exposition, if it has one.
    fn exposition(&self, server: &RunningServer) -> Option<(&'static str, u16)> {
        let name = self.cell.product.name;
        let is_there = observe::profiles::by_name(name).is_some();
        let port = server.other_ports().first();
        port.filter(|_| is_there).map(|port| (name, *port))
    }

    /// Brings its cache into the state that is asked for; if that is full, tells until when it is.
    pub(super) fn prepare(
        &self,
        started: &RunningServer,
        groups: &[Group],
        interrupt: &Interrupt,
    ) -> Result<Option<Instant>, Failure> {
        let Some(first) = groups.first() else {
            return Ok(None);
        };
        let is_warm = self.cell.cache() == Cache::Warm;
        let ttl = is_warm.then(|| self.cell.zone.ttl_min()).transpose()?;
        let expires = ttl.map(|ttl| Instant::now() + ttl);
        cache::prepare(&self.cell, started, (&self.questions, first), interrupt)?;
        let all = groups.iter().map(|group| &group.run.limits);
        let longest = all.map(|limits| limits.warmup + limits.duration.unwrap_or_default());
        let ends = Instant::now() + longest.max().unwrap_or_default();
        match expires.is_some_and(|expires| ends > expires) {
            true => Err(expired()),
            false => Ok(expires),
        }
    }

    /// Starts it for runs of these groups, which it completes. It ends when it is dropped.
    pub(super) fn start(
        &self,
        topology: &Topology,
        groups: &mut [Group],
    ) -> Result<RunningServer, Failure> {
        let mut cell = self.cell.clone();
        cell.topology.clone_from(topology);
        // What is not asked takes part of what a server has, as Unbound's TCP clients of each port.
        let is_asked = |service: &Service| {
            let mut transports = groups.iter().map(|group| group.run.transport);
            transports.any(|transport| Service::of(transport) == Some(*service))
        };
        cell.services.retain(is_asked);
        let server = cell.start()?;
        let questions = server.folder().join("names");
        files::write_in_place(&questions, &self.questions).map_err(Failure::in_operation)?;
        for Group { run, .. } in groups {
            let transport = run.transport;
            let address = server.endpoints().address(transport).ok_or_else(|| {
                let title = self.cell.product.title;
                Failure::in_operation(format!("{title} has no {transport}"))
            })?;
            run.servers = vec![address.to_string()];
            if let Some(pods) = server.pods().filter(|_| run.observe.is_empty()) {
                run.observe = pods.observed(self.exposition(&server));
            }
            if run.observe.is_empty() {
                run.observe.push("auto".to_owned());
                let behind = server.behind().map(|it| it.endpoints().do53());
                // On loopback of the server's network it cannot be told from others.
                let is_known =
                    |at: &SocketAddr| server.network().is_none() || !at.ip().is_loopback();
                let behind = behind.filter(is_known);
                run.observe.extend(behind.map(|it| format!("auto={it}")));
            }
            if let Some(tls) = &mut run.tls {
                let own = || FileName::from(server.ca_file().to_owned());
                tls.authorities.get_or_insert_with(own);
            }
            if has_place_for_names(run) {
                let own = || Names::Text(FileName::from(questions.clone()));
                run.questions.names.get_or_insert_with(own);
            }
        }
        Ok(server)
    }
}

/// A run that outlasted what was in the cache.
pub(super) fn expired() -> Failure {
    Failure::usage(
        "cache=warm: names leave the cache before the run ends, for their TTL is over",
        "give data with a longer TTL, as in data = \"zone:1000,ttl=1h\", or make the run shorter",
    )
}

/// False if something else says what is asked.
fn has_place_for_names(run: &Run) -> bool {
    let are_made = run.questions.zone().is_some() && run.questions.repeats.is_none();
    let is_profile = matches!(run.arrival, Arrival::Profile { .. });
    !are_made && !is_profile
}

type Value<'a> = Spanned<DeValue<'a>>;

/// What is varied of a server, and its values.
type Axis = (String, Vec<String>);

/// Reads one of the tables: a level for each combination of its factors and resources.
pub(super) fn levels(reader: &Reader<'_>, value: &Value<'_>) -> Result<Vec<Level>, Failure> {
    let at = value.span().start;
    let fault = |at: usize, what: &str, hint: &str| reader.fault(at, what, hint);
    let DeValue::Table(table) = value.get_ref() else {
        return Err(fault(
            at,
            "it is not a table",
            "write [[server]], once for each",
        ));
    };
    has_known_keys(reader, table)?;
    let (factors, resources) = (
        axes(reader, table, "factors")?,
        axes(reader, table, "resources")?,
    );
    let of_both = combinations(&factors, &resources)
        .map_err(|what| fault(at, &what, "vary less at a time"))?;
    if let Some(changed) = text(reader, table, "change")? {
        return changes(reader, table, &changed, of_both);
    }
    let product = product(reader, table, at)?;
    let label = text(reader, table, "label")?.unwrap_or_else(|| product.name.to_owned());
    let data = text(reader, table, "data")?.unwrap_or_else(|| "zone:1000,ttl=1h".to_owned());
    let labels_of_all = [
        ("product".to_owned(), product.name.to_owned()),
        ("data".to_owned(), data.clone()),
    ];
    let data = data_of(reader, &data).map_err(|failure| reader.of(at, failure))?;
    let program = text(reader, table, "program")?;
    let program = program.map(|named| PathBuf::from(beside(reader.path(), &named)));
    let image = text(reader, table, "image")?;
    let user = text(reader, table, "user")?;
    let mut levels = Vec::new();
    for settings in of_both {
        let mut cell = Cell::new(product, data.zone.clone());
        cell.path.clone_from(&program);
        cell.image.clone_from(&image);
        cell.user.clone_from(&user);
        for setting in &settings {
            let Setting { name, value, .. } = setting;
            cell = match setting.is_factor {
                true => cell.set(&format!("{name}={value}")).map_err(Failure::from),
                false => cell.limit(name, value).map_err(Failure::from),
            }
            .map_err(|failure| reader.of(at, failure))?;
        }
        let words = [label.clone()].into_iter().chain(varied(&settings));
        let of_settings = settings.iter().map(Setting::label);
        levels.push(Level {
            label: words.collect::<Vec<_>>().join(" "),
            labels: labels_of_all.iter().cloned().chain(of_settings).collect(),
            server: Some(ServerCell {
                cell,
                questions: data.questions.clone(),
            }),
            ..Level::default()
        });
    }
    Ok(levels)
}

/// A factor or a resource, as it is in one of the combinations.
struct Setting<'a> {
    name: &'a str,
    value: &'a str,
    is_factor: bool,
    is_varied: bool,
}

impl Setting<'_> {
    fn label(&self) -> (String, String) {
        (self.name.to_owned(), self.value.to_owned())
    }
}

/// Those that are varied, for the name of a cell.
fn varied<'a>(settings: &'a [Setting<'_>]) -> impl Iterator<Item = String> + 'a {
    let varied = settings.iter().filter(|it| it.is_varied);
    varied.map(|it| format!("{}={}", it.name, it.value))
}

/// Every combination of the values.
fn combinations<'a>(
    factors: &'a [Axis],
    resources: &'a [Axis],
) -> Result<Vec<Vec<Setting<'a>>>, String> {
    let all: Vec<&Axis> = factors.iter().chain(resources).collect();
    let numbers: Vec<usize> = all.iter().map(|(_, values)| values.len()).collect();
    let combinations = experiment::combinations(&numbers, LEVELS_MAX);
    let combinations = combinations.map_err(|many| {
        format!(
            "{} combinations: there are at most {LEVELS_MAX}",
            many.number
        )
    })?;
    let settings = |combination: Vec<usize>| {
        let each = all.iter().zip(combination).enumerate();
        let each = each.map(|(number, ((name, values), position))| Setting {
            name,
            value: &values[position],
            is_factor: number < factors.len(),
            is_varied: values.len() > 1,
        });
        each.collect()
    };
    Ok(combinations.into_iter().map(settings).collect())
}

/// Levels that change what a cluster runs.
fn changes(
    reader: &Reader<'_>,
    table: &DeTable<'_>,
    changed: &str,
    of_both: Vec<Vec<Setting<'_>>>,
) -> Result<Vec<Level>, Failure> {
    let is_of_start = |name: &str| ["product", "data", "program", "image", "user"].contains(&name);
    let mut keys = table.keys();
    if let Some(key) = keys.find(|key| is_of_start(key.get_ref())) {
        let what = format!("`{}`: what is changed is there already", key.get_ref());
        let hint = "leave it out, or leave out `change`";
        return Err(reader.fault(key.span().start, &what, hint));
    }
    let at = table.get("change").map_or(0, |value| value.span().start);
    let label = text(reader, table, "label")?.unwrap_or_else(|| changed.to_owned());
    let level = |settings: Vec<Setting<'_>>| {
        let level = of_change(changed, &settings).map_err(|failure| reader.of(at, failure))?;
        let words = [label.clone()].into_iter().chain(varied(&settings));
        let label = words.collect::<Vec<_>>().join(" ");
        Ok(Level { label, ..level })
    };
    of_both.into_iter().map(level).collect()
}

/// A level that changes what a cluster runs.
fn of_change(changed: &str, settings: &[Setting<'_>]) -> Result<Level, Failure> {
    let mut change = Change::parse(changed)?;
    for Setting {
        name,
        value,
        is_factor,
        ..
    } in settings
    {
        match (*is_factor, *name) {
            (false, name) => change.resources.set(name, value)?,
            (true, "replicas") => {
                let number = value
                    .parse()
                    .ok()
                    .filter(|number| (1..=1_000).contains(number));
                change.replicas = Some(number.ok_or_else(|| {
                    let what = format!("replicas: `{value}`");
                    Failure::usage(what, "give a whole number from 1 to 1000")
                })?);
            }
            (true, name) => {
                let what = format!("a change has no factor `{name}`");
                return Err(Failure::usage(what, "set replicas"));
            }
        }
    }
    change.check()?;
    Ok(Level {
        labels: settings.iter().map(Setting::label).collect(),
        change: Some(change),
        ..Level::default()
    })
}

fn has_known_keys(reader: &Reader<'_>, table: &DeTable<'_>) -> Result<(), Failure> {
    for key in table.keys() {
        let name = key.get_ref().as_ref();
        if !OF_SERVER.contains(&name) {
            let hint = nearest(name, OF_SERVER.into_iter());
            let hint = hint.map_or_else(
                || format!("keys are {}", OF_SERVER.join(", ")),
                |it| format!("do you mean `{it}`?"),
            );
            let what = format!("unknown key `{name}`");
            return Err(reader.fault(key.span().start, &what, &hint));
        }
    }
    Ok(())
}

fn product(
    reader: &Reader<'_>,
    table: &DeTable<'_>,
    at: usize,
) -> Result<&'static Product, Failure> {
    let known: Vec<&str> = products::all().map(|product| product.name).collect();
    let hint = format!("write product = \"...\", one of {}", known.join(", "));
    let Some(name) = text(reader, table, "product")? else {
        return Err(reader.fault(at, "this server has no product", &hint));
    };
    let found = products::all().find(|product| product.name == name);
    let what = format!("there is no product `{name}`");
    found.ok_or_else(|| reader.fault(at, &what, &hint))
}

/// `file:PATH` is beside the experiment.
fn data_of(reader: &Reader<'_>, text: &str) -> Result<Data, Failure> {
    let text = match text.strip_prefix("file:") {
        Some(named) => format!("file:{}", beside(reader.path(), named)),
        None => text.to_owned(),
    };
    Ok(Data::parse(&text)?)
}

fn text(reader: &Reader<'_>, table: &DeTable<'_>, name: &str) -> Result<Option<String>, Failure> {
    let Some(value) = table.get(name) else {
        return Ok(None);
    };
    let read = scalar(value.get_ref());
    let what = format!("`{name}` is {}", kind(value.get_ref()));
    let read = read.ok_or_else(|| reader.fault(value.span().start, &what, "write one value"));
    read.map(Some)
}

/// Each key of a table with its value, or its values.
fn axes(reader: &Reader<'_>, table: &DeTable<'_>, name: &str) -> Result<Vec<Axis>, Failure> {
    let Some(value) = table.get(name) else {
        return Ok(Vec::new());
    };
    let DeValue::Table(table) = value.get_ref() else {
        let what = format!("`{name}` is {}", kind(value.get_ref()));
        let hint = format!("write [server.{name}] below its [[server]]");
        return Err(reader.fault(value.span().start, &what, &hint));
    };
    let read = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Value<'_>)| {
        let values: Option<Vec<String>> = match value.get_ref() {
            DeValue::Array(all) => all.iter().map(|one| scalar(one.get_ref())).collect(),
            one => scalar(one).map(|one| vec![one]),
        };
        let values = values.filter(|values| !values.is_empty());
        let what = format!("`{}` has no values", key.get_ref());
        let hint = "write a value, or a list of values";
        let values = values.ok_or_else(|| reader.fault(value.span().start, &what, hint))?;
        Ok((key.get_ref().to_string(), values))
    };
    table.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceiling_is_measured_without_offload_unless_the_server_has_it() {
        for (product, expected) in [("nsd", "--no-offload"), ("responder", "")] {
            let product = products::all().find(|it| it.name == product).unwrap();
            let server = ServerCell {
                cell: Cell::new(product, Data::parse("zone:5").unwrap().zone),
                questions: String::new(),
            };
            let responder = server.responder().unwrap().cell;
            assert_eq!(responder.product.name, products::RESPONDER.name);
            let mut settings = responder.settings();
            let (_, options) = settings.find(|(name, _)| *name == "options").unwrap();
            assert_eq!(options, expected, "{}", product.name);
        }
    }
}
