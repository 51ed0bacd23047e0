//! A cell: a product with its factors set, and the zone that it serves.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;

use super::control::HERE;
use super::internet::{EXTERNAL, Internet, Level};
use super::place::Place;
use super::{Families, Network, Product, Resources, RunningServer, Service, Topology, Zone};

/// Name of the factor for the state of the cache before a run.
pub(super) const CACHE: &str = "cache";
/// Name of the factor for signing the zone.
const SIGNING: &str = "signing";
/// Its values, beside none.
const CACHE_STATES: [&str; 2] = ["cold", "warm"];
/// Prefix of factors of the server behind a proxy.
const BEHIND: &str = "behind-";
/// The factor that names the server behind a proxy.
const BACKEND: &str = "backend";

/// How the cache of a product is changed.
#[derive(Clone, Copy, Debug)]
pub struct CacheControl {
    /// Empties it.
    pub(super) flush: fn(&RunningServer) -> anyhow::Result<()>,
    /// Removes names and their cached errors; none for a product that soon retries failed names by
    /// itself.
    pub(super) forget: Option<Forget>,
}

/// Removes names from the cache of a server.
pub(super) type Forget = fn(&RunningServer, &[&str]) -> anyhow::Result<()>;

/// A setting of a product.
#[derive(Clone, Copy, Debug)]
pub struct Factor {
    /// The name as it is typed.
    pub name: &'static str,
    /// Its default value; empty for the product's own default.
    pub default: &'static str,
    /// Its possible values.
    pub values: Values,
    /// Its meaning, one sentence without a full stop.
    pub meaning: &'static str,
}

/// The possible values of a factor.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// A whole number from one to the other.
    Numbers(u32, u32),
    /// One of these words.
    Words(&'static [&'static str]),
    /// Lines of the product's own configuration, or any other text.
    Lines,
    /// Delays and losses of a closed Internet.
    Internet,
    /// Delay and loss of the resolver behind it.
    Resolver,
    /// The state of its cache before a run, and how to change it.
    Cache(CacheControl),
    /// Any factor or resource of the server behind it, after a prefix; that server is one of these,
    /// the first unless the factor `backend` names another.
    OfBehind(&'static [&'static Product]),
}

impl Factor {
    /// A whole number from 1 on.
    pub(super) const fn number(
        name: &'static str,
        default: &'static str,
        max: u32,
        meaning: &'static str,
    ) -> Factor {
        Factor {
            name,
            default,
            values: Values::Numbers(1, max),
            meaning,
        }
    }

    /// One of these words, the first if none is set.
    pub(super) const fn word(
        name: &'static str,
        words: &'static [&'static str],
        meaning: &'static str,
    ) -> Factor {
        Factor {
            name,
            default: words[0],
            values: Values::Words(words),
            meaning,
        }
    }

    /// The closed Internet of a resolver.
    pub(super) const fn internet() -> Factor {
        Factor {
            name: "internet",
            default: "",
            values: Values::Internet,
            meaning: "resolves the zone from a root and a top-level domain of its own, which take \
                      DELAY[,LOSS] each, as in 0ms/50ms/10ms,1% with that of the zone; needs a \
                      topology with a network",
        }
    }

    /// The resolver for names outside the zone.
    pub(super) const fn external() -> Factor {
        Factor {
            name: EXTERNAL,
            default: "",
            values: Values::Resolver,
            meaning: "asks a resolver for names that are not of the zone, and keeps its answers; \
                      it has one for every name, and takes DELAY[,LOSS], as in 10ms,1%",
        }
    }

    /// The state of a resolver's cache, changed with `control`.
    pub(super) const fn cache(control: CacheControl) -> Factor {
        Factor {
            name: CACHE,
            default: "",
            values: Values::Cache(control),
            meaning: "before each run, cold: is emptied; warm: has been asked every name of the \
                      data",
        }
    }

    /// Whether a server signs the zone.
    pub(super) const fn signing() -> Factor {
        Factor::word(
            SIGNING,
            &["off", "on"],
            "signs the zone by itself, with two keys (ECDSA P-256)",
        )
    }

    /// Factors of the server behind it.
    pub(super) const fn of_behind(servers: &'static [&'static Product]) -> Factor {
        Factor {
            name: BEHIND,
            default: "",
            values: Values::OfBehind(servers),
            meaning: "a factor or resource of the server behind it, as in \
                      behind-tcp-clients=1000 or behind-cpus=1; it is on the same CPUs otherwise",
        }
    }

    /// The server behind it, by name.
    pub(super) const fn backend(names: &'static [&'static str]) -> Factor {
        Factor::word(BACKEND, names, "the server behind it")
    }

    /// Any text.
    pub(super) const fn text(name: &'static str, meaning: &'static str) -> Factor {
        Factor {
            name,
            default: "",
            values: Values::Lines,
            meaning,
        }
    }

    /// More lines of the configuration.
    pub(super) const fn lines(meaning: &'static str) -> Factor {
        Factor::text("options", meaning)
    }
}

impl Values {
    fn allow(self, value: &str) -> bool {
        match self {
            Values::Numbers(min, max) => {
                let number = value.parse();
                number.is_ok_and(|number| (min..=max).contains(&number))
            }
            Values::Words(words) => words.contains(&value),
            Values::Lines | Values::OfBehind(_) => true,
            Values::Cache(_) => value.is_empty() || CACHE_STATES.contains(&value),
            Values::Internet => value.is_empty() || Internet::parse(value).is_some(),
            Values::Resolver => value.is_empty() || Level::parse(value).is_some(),
        }
    }

    fn expected(self) -> String {
        match self {
            Values::Numbers(min, max) => format!("a whole number from {min} to {max}"),
            Values::Words(words) => words.join(" or "),
            Values::Cache(_) => CACHE_STATES.join(" or "),
            Values::Lines | Values::OfBehind(_) => "lines of its configuration".to_owned(),
            Values::Internet => "DELAY[,LOSS] of root, top-level domain and zone, as in \
                                 0ms/50ms/10ms,1%"
                .to_owned(),
            Values::Resolver => "DELAY[,LOSS], as in 10ms,1%".to_owned(),
        }
    }
}

/// A product with all settings of its start.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The product.
    pub product: &'static Product,
    /// The zone that it serves; the only one.
    pub zone: Zone,
    /// What it offers beside UDP and TCP.
    pub services: Vec<Service>,
    /// Where it listens.
    pub families: Families,
    /// What it may use.
    pub resources: Resources,
    /// The image of its container, in Kubernetes.
    pub image: Option<String>,
    /// Where its program is, if not where it is installed.
    pub path: Option<PathBuf>,
    /// The user that it and all beside it run as, by name or number. By default root starts servers
    /// as `nobody`, and other users start them as themselves.
    pub user: Option<String>,
    /// The name under which it keeps running after the thread that started it; none if it ends with
    /// that thread.
    pub lasting: Option<String>,
    /// The name of the proxy in front of it.
    pub front: Option<String>,
    /// What is between it and the generator.
    pub topology: Topology,
    /// The network that it is started in; none before the start, and on loopback.
    pub(super) network: Option<Arc<Network>>,
    values: BTreeMap<&'static str, String>,
    /// Settings of the server behind it.
    of_behind: Vec<String>,
}

impl Cell {
    /// Everything that the product offers, on 127.0.0.1 and any core, nothing set.
    pub fn new(product: &'static Product, zone: Zone) -> Cell {
        let defaults = product.factors.iter();
        let defaults = defaults.map(|factor| (factor.name, factor.default.to_owned()));
        Cell {
            product,
            zone,
            services: product.services().to_vec(),
            families: Families::V4,
            resources: Resources::default(),
            image: None,
            path: None,
            user: None,
            lasting: None,
            front: None,
            topology: Topology::Loopback,
            network: None,
            values: defaults.collect(),
            of_behind: Vec::new(),
        }
    }

    /// The same with a factor set, as in `tcp-clients=1000`.
    ///
    /// # Errors
    /// The product has no such factor, or the value is invalid.
    pub fn set(mut self, setting: &str) -> anyhow::Result<Cell> {
        let Some((name, value)) = setting.split_once('=') else {
            anyhow::bail!("`{setting}` sets nothing\nhint: write NAME=VALUE");
        };
        let (title, factors) = (self.product.title, self.product.factors);
        if let (Some(own), Some(_)) = (setting.strip_prefix(BEHIND), self.product_behind()) {
            self.of_behind.push(own.to_owned());
            self.behind()?;
            return Ok(self);
        }
        let Some(factor) = factors.iter().find(|it| it.name == name) else {
            let known: Vec<&str> = factors.iter().map(|it| it.name).collect();
            let known = known.join(", ");
            anyhow::bail!("{title} has no factor `{name}`\nhint: set one of {known}");
        };
        if !factor.values.allow(value) {
            let expected = factor.values.expected();
            anyhow::bail!("{title}, {name}: `{value}` is wrong\nhint: give {expected}");
        }
        self.values.insert(factor.name, value.to_owned());
        Ok(self)
    }

    /// The product behind it, if there is one.
    fn product_behind(&self) -> Option<&'static Product> {
        let servers = self.product.servers_behind();
        let named = self.values.get(BACKEND);
        let named = named.and_then(|name| servers.iter().find(|it| it.name == name));
        named.or(servers.first()).copied()
    }

    /// The server behind it, with its settings.
    ///
    /// # Errors
    /// It has no such factor or resource, or the value is invalid; or there is no server behind.
    pub(super) fn behind(&self) -> anyhow::Result<Cell> {
        let product = self.product_behind();
        let product = product.context("nothing stands behind it")?;
        let mut behind = Cell::new(product, self.zone.clone());
        behind.resources.cpus.clone_from(&self.resources.cpus);
        behind.user.clone_from(&self.user);
        for setting in &self.of_behind {
            behind = match setting.split_once('=') {
                Some((name, value)) if Resources::NAMES.contains(&name) => {
                    behind.limit(name, value)?
                }
                _ => behind.set(setting)?,
            };
        }
        behind.network.clone_from(&self.network);
        Ok(behind)
    }

    /// The same with a limit, as [`Resources::set`].
    ///
    /// # Errors
    /// There is no such resource, or the value is invalid.
    pub fn limit(mut self, name: &str, value: &str) -> anyhow::Result<Cell> {
        self.resources.set(name, value)?;
        Ok(self)
    }

    /// Every factor with its value; empty where the product decides.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
    }

    /// Starts the product and waits until it answers for the zone on all its ports.
    ///
    /// # Errors
    /// It is not installed (the message says how to get it), it rejects its configuration or the
    /// zone (the message has the end of its log), no free ports were found, or its network cannot
    /// be created on this host.
    pub fn start(&self) -> anyhow::Result<RunningServer> {
        self.check(&self.topology)?;
        let mut cell = self.clone();
        if cell.network.is_none() {
            let lasting = self.lasting.as_deref();
            let network = Network::make(&self.topology, self.families, lasting)?;
            cell.network = network.map(Arc::new);
        }
        (self.product.start)(&cell)
    }

    /// Refuses settings that are impossible over that topology.
    ///
    /// # Errors
    /// The state of its cache or its zone is not supported. In Kubernetes: it has no image, or a
    /// setting that needs a host. The error has the cure.
    pub fn check(&self, topology: &Topology) -> anyhow::Result<()> {
        self.check_cache()?;
        self.check_zone()?;
        if *topology != Topology::Kubernetes {
            return Ok(());
        }
        let title = self.product.title;
        anyhow::ensure!(
            self.image.is_some(),
            "there is no image of {title} for Kubernetes\nhint: name one that the nodes have or \
             can pull, with this program in it"
        );
        anyhow::ensure!(
            self.resources.cpus.is_none(),
            "a pod has no list of CPUs\nhint: set its quota, which becomes its request and limit"
        );
        anyhow::ensure!(
            self.user.is_none(),
            "the user of a pod is in its image\nhint: leave the user out, or take another image"
        );
        let is_two = self.product_behind().is_some() && self.text("behind") != "none";
        let asks = |factor: &str| !self.text(factor).is_empty();
        anyhow::ensure!(
            !is_two && !asks("internet") && !asks(EXTERNAL),
            "{title} alone can be in Kubernetes, without other servers\nhint: use the topology \
             veth for two of them"
        );
        Ok(())
    }

    fn check_zone(&self) -> anyhow::Result<()> {
        let resolves = !self.text("internet").is_empty();
        if !resolves && !self.signs() {
            return Ok(());
        }
        let title = self.product.title;
        anyhow::ensure!(
            !self.signs() || !resolves,
            "{title} has no zone to sign when it resolves\nhint: leave `signing` or `internet` out"
        );
        let is_signed = self.zone.is_signed()?;
        anyhow::ensure!(
            !self.signs() || !is_signed,
            "the zone is signed already, and {title} would sign it too\nhint: leave `signed` out \
             of `data`, or `signing` out"
        );
        anyhow::ensure!(
            !resolves || !is_signed && !self.zone.has_delegations()?,
            "the servers of the closed Internet have no signatures and no servers below theirs\n\
             hint: leave `signed` and `delegations` out of `data`"
        );
        Ok(())
    }

    /// True if the server signs its zone.
    pub fn signs(&self) -> bool {
        self.text(SIGNING) == "on"
    }

    /// A factor's value; empty where the product decides.
    pub(super) fn text(&self, factor: &str) -> &str {
        self.values.get(factor).map_or("", String::as_str)
    }

    /// A factor that is a number; none where the product decides.
    pub(super) fn number(&self, factor: &str) -> Option<u32> {
        self.text(factor).parse().ok()
    }

    /// Fills a template of a configuration.
    ///
    /// `{name}` is the factor of that name; `{origin}` the zone's; `{folder}` where `zone.db` is,
    /// `{here}` the same for sockets (see [`HERE`]); `{certificate}` what names of the
    /// certificate's files begin with; `{address}` and `{port}` for UDP and TCP, `{addresses}` all
    /// of them; `{dot.address}` and `{dot.port}` those of a service; `{other.port}` one beside
    /// them, at `{other.address}`. A line with an address is repeated for each address; a line with
    /// a missing value is left out.
    pub(super) fn fill(&self, template: &str, place: &Place<'_>) -> String {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut say = |name: &str, all: Vec<String>| {
            values.insert(name.to_owned(), all);
        };
        for (name, value) in self.settings() {
            let is_set = !value.is_empty();
            say(name, is_set.then(|| value.to_owned()).into_iter().collect());
        }
        let folder = place.folder.path().display();
        let has_tls = self.services.iter().any(|service| service.has_tls());
        let certificate = has_tls.then(|| format!("{folder}/server"));
        say("origin", vec![self.zone.origin.clone()]);
        say("folder", vec![folder.to_string()]);
        say("here", vec![HERE.to_owned()]);
        say("certificate", certificate.into_iter().collect());
        let endpoints = place.endpoints;
        let addresses = endpoints.addresses.iter().map(ToString::to_string);
        let addresses: Vec<String> = addresses.collect();
        say("addresses", vec![addresses.join(", ")]);
        say("address", addresses);
        say("port", vec![endpoints.do53_port.to_string()]);
        let other = place.extra_ports.iter().map(ToString::to_string);
        say("other.port", other.collect());
        say("other.address", vec![place.other_address.to_string()]);
        for service in self.product.services() {
            let at = endpoints.services_all().filter(|(it, _)| it == service);
            let addresses = at.map(|(_, address)| address.ip().to_string());
            let port = endpoints.service_port(*service);
            say(&format!("{}.address", service.word()), addresses.collect());
            let port = port.map(|port| port.to_string()).into_iter();
            say(&format!("{}.port", service.word()), port.collect());
        }
        template.lines().map(|line| filled(line, &values)).collect()
    }
}

/// A line of a template, repeated as needed, each time with its line end.
fn filled(line: &str, values: &BTreeMap<String, Vec<String>>) -> String {
    let has = |name: &String| line.contains(&format!("{{{name}}}"));
    let named: Vec<_> = values.iter().filter(|(name, _)| has(name)).collect();
    if named.iter().any(|(_, all)| all.is_empty()) {
        return String::new();
    }
    let times = named.iter().map(|(_, all)| all.len()).max().unwrap_or(1);
    let nth = |at: usize| {
        let mut text = line.to_owned();
        for (name, all) in &named {
            let value = &all[at.min(all.len() - 1)];
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text + "\n"
    };
    (0..times).map(nth).collect()
}

#[cfg(test)]
mod tests {
    use super::super::products::{ALL, BIND, HAPROXY, NSD};
    use super::*;

    fn cell(product: &'static Product) -> Cell {
        Cell::new(product, Zone::with_records(1, 1))
    }

    fn refused(product: &'static Product, setting: &str) -> String {
        cell(product).set(setting).unwrap_err().to_string()
    }

    #[test]
    fn names_are_used_once_and_each_default_is_allowed() {
        let mut names: Vec<&str> = ALL.iter().map(|product| product.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        for product in ALL {
            for factor in product.factors {
                let name = format!("{} {}", product.name, factor.name);
                let is_allowed = factor.default.is_empty() || factor.values.allow(factor.default);
                assert!(is_allowed, "{name}");
                assert!(!factor.meaning.is_empty(), "{name}");
                assert!(!factor.meaning.ends_with('.'), "{name}");
            }
        }
    }

    #[test]
    fn the_server_behind_a_proxy_has_factors_and_resources_of_its_own() {
        let proxy = cell(&HAPROXY).limit("cpus", "1").unwrap();
        let behind = proxy.behind().unwrap();
        assert_eq!(behind.resources.cpus.as_deref(), Some("1"));
        let set = |cell: Cell, setting: &str| cell.set(setting).unwrap();
        let proxy = set(set(proxy, "behind-tcp-clients=7"), "behind-cpus=0");
        let behind = proxy.behind().unwrap();
        assert_eq!(behind.number("tcp-clients"), Some(7));
        assert_eq!(behind.resources.cpus.as_deref(), Some("0"));
        let proxy = set(cell(&HAPROXY), "backend=unbound");
        let proxy = set(proxy, "behind-threads=2");
        let behind = proxy.behind().unwrap();
        assert_eq!(behind.product.name, "unbound");
        assert_eq!(behind.number("threads"), Some(2));
        let error = refused(&HAPROXY, "backend=nsd");
        assert!(error.contains("bind or unbound"), "{error}");
        let error = refused(&HAPROXY, "behind-speed=1");
        assert!(error.contains("BIND has no factor `speed`"), "{error}");
        let error = refused(&BIND, "behind-threads=1");
        assert!(error.contains("no factor `behind-threads`"), "{error}");
    }

    #[test]
    fn a_setting_that_a_product_does_not_have_is_an_error_with_what_it_has() {
        let error = refused(&BIND, "threads");
        assert!(error.contains("NAME=VALUE"), "{error}");
        let error = refused(&BIND, "tcp-client=10");
        assert!(
            error.contains("BIND") && error.contains("tcp-clients"),
            "{error}"
        );
        let error = refused(&NSD, "servers=0");
        assert!(error.contains("from 1 to"), "{error}");
    }

    #[test]
    fn what_was_set_last_counts_and_the_rest_is_as_it_was() {
        let cell = cell(&NSD).set("servers=2").unwrap();
        let cell = cell.set("tcp-clients=7").unwrap().set("servers=3").unwrap();
        assert_eq!(
            (cell.number("servers"), cell.number("tcp-clients")),
            (Some(3), Some(7))
        );
        assert_eq!(cell.text("options"), "");
        assert_eq!(cell.settings().count(), NSD.factors.len());
    }

    #[test]
    fn lines_stand_for_each_address_and_not_without_a_value() {
        let all =
            |values: &[&str]| -> Vec<String> { values.iter().map(|it| (*it).to_owned()).collect() };
        let values = [
            ("address", all(&["127.0.0.1", "::1"])),
            ("port", all(&["53"])),
            ("tcp", all(&[])),
        ];
        let values = values.map(|(name, all)| (name.to_owned(), all)).into();
        assert_eq!(
            filled("a: {address}@{port}", &values),
            "a: 127.0.0.1@53\na: ::1@53\n"
        );
        assert_eq!(filled("tcp: {tcp}", &values), "");
        assert_eq!(filled("plain {}", &values), "plain {}\n");
    }
}
