//! From flags to what a run is asked for. This is the only place that reads them: what comes after
//! it, in this process or in another one, has the type.

use std::path::PathBuf;

use load::arrival::parse_rate;
use load::question_source::parse_label_octets;
use load::{PlanError, Resume, line_options};
use proto::query::{OPTION_KEEPALIVE, OPTION_NSID, OPTION_PADDING};
use settings::questions::{EdnsOption, LabelOctets};
use settings::{
    Arrival, ConnectionPolicy, Edns, FileName, Generator, Http, Labels, Limits, Message, Names,
    QuestionOrder, Questions, Repeats, Run, Tls, Tsig,
};

use super::unused;
use crate::args::doh::Server;
use crate::args::questions::QuestionOrder as Order;
use crate::args::{NamesFormat, RunArguments, TlsArguments};
use crate::conditions;
use crate::failure::Failure;
use crate::responder::behaviour;

impl RunArguments {
    /// What these flags ask for.
    ///
    /// # Errors
    /// A flag that cannot be read, or that has no effect on this run.
    pub(crate) fn settings(&self) -> Result<Run, Failure> {
        unused::reject_idle(self)?;
        let run = run(self)?;
        unused::reject(self, &run)?;
        Ok(run)
    }

    /// The same where a command decides the rate: flags that need one have it.
    pub(crate) fn settings_with_rate(&self, rate_qps: f64) -> Result<Run, Failure> {
        let mut flags = self.clone();
        flags.given.push(crate::args::Given {
            name: "rate".to_owned(),
            values: Vec::new(),
        });
        Ok(Run {
            arrival: Arrival::Open {
                rate_qps,
                process: self.arrival,
                burst: self.burst,
            },
            ..flags.settings()?
        })
    }
}

/// What the flags say, as far as it means something over the transport: the others are refused, or
/// are meant for other transports.
fn run(flags: &RunArguments) -> Result<Run, Failure> {
    let transport = flags.transport;
    let first = flags.server.first().map(|server| Server::parse(server));
    let is_plain_http = first.is_some_and(|server| server.is_plain_http());
    let has_tls = transport.has_tls() && !is_plain_http;
    Ok(Run {
        servers: flags.server.clone(),
        transport,
        allows_public: flags.allow_public,
        preflight: !flags.no_preflight,
        questions: questions(flags)?,
        message: message(flags)?,
        tcp_fallback: flags.tcp_fallback && !transport.has_connections(),
        arrival: arrival(flags)?,
        shape: flags.population.shape.clone(),
        clients: flags.clients,
        presence: flags.population.presence()?,
        connections: connections(flags)?,
        stub: settings::Stub {
            race_delay: flags.stub.race_delay.filter(|_| transport.is_stream()),
            ..flags.stub.asked()?
        },
        http: transport.is_doh().then(|| Http {
            method: flags.doh.doh_method.unwrap_or_default(),
            path: flags.doh.doh_path.clone(),
            authority: flags.doh.doh_authority.clone(),
            headers: flags.doh.doh_header.clone(),
        }),
        tls: has_tls.then(|| tls(flags, &flags.tls)).transpose()?,
        limits: Limits {
            duration: flags.duration,
            warmup: flags.warmup,
            queries: flags.queries,
            loops: flags.loops,
            timeout: flags.timeout,
            interval: flags.interval,
            abort_if: conditions::abort_if(&flags.abort_if)?,
        },
        generator: Generator {
            workers: flags.workers,
            agents: flags.agents,
            on_agent_loss: flags.on_agent_loss,
            hosts: file(&flags.hosts),
            ssh: flags.ssh.clone(),
            listen: flags.listen,
            keys: file(&flags.keys),
            barrier_timeout: flags.barrier_timeout,
            min_agents: flags.min_agents,
            cpus: flags.cpus.clone(),
            local_addresses: flags.local_address.clone(),
            local_port: flags.local_port,
            sockets: flags.sockets.asked(transport),
            seed: flags.seed,
            driver: flags.driver,
            interface: flags.interface,
        },
        goodput_rcodes: goodput(flags)?,
        labels: flags.label.iter().cloned().collect(),
        observe: flags.observe.clone(),
        responder: behaviour(&flags.behaviour.behaviour)?,
        simulation: flags.simulation.asked()?,
    })
}

fn file(path: &Option<PathBuf>) -> Option<FileName> {
    path.clone().map(FileName::from)
}

fn questions(flags: &RunArguments) -> Result<Questions, Failure> {
    let choice = &flags.choice;
    let names = match (&flags.lines, file(&flags.names), flags.names_format) {
        (Some(lines), ..) => Some(Names::Lines(lines.clone())),
        (None, Some(file), NamesFormat::Text) => Some(Names::Text(file)),
        (None, Some(file), NamesFormat::Stream) => Some(Names::Messages(file)),
        (None, None, _) => None,
    };
    let order = match (choice.zipf, choice.question_order) {
        (Some(exponent), _) => QuestionOrder::Zipf { exponent },
        (None, Order::InOrder) => QuestionOrder::InOrder,
        (None, Order::Uniform) => QuestionOrder::Uniform,
        (None, Order::Shuffled) => QuestionOrder::Shuffled,
    };
    Ok(Questions {
        names,
        order,
        qtypes: choice.qtypes.clone(),
        labels: labels(flags)?,
        repeats: choice.cache_hit_ratio.map(|share| Repeats {
            share,
            ttl: choice.cache_ttl,
            names_max: choice.hot_names,
        }),
    })
}

fn labels(flags: &RunArguments) -> Result<Option<Labels>, PlanError> {
    let choice = &flags.choice;
    let octets = choice.label_octets.as_deref().map(parse_label_octets);
    let octets = octets.transpose()?;
    let octets = octets.map(|(min, max)| LabelOctets { min, max });
    let seed = choice.label_seed;
    Ok(match (&choice.random_labels, &choice.walk) {
        (Some(zone), _) => Some(Labels::Random {
            zone: zone.clone(),
            octets,
            seed,
        }),
        (None, Some(zone)) => Some(Labels::Walk {
            zone: zone.clone(),
            octets,
        }),
        (None, None) => (choice.water_torture).then_some(Labels::WaterTorture { octets, seed }),
    })
}

fn message(flags: &RunArguments) -> Result<Message, Failure> {
    let key = flags.tsig.clone().map(Tsig::Key);
    Ok(Message {
        no_recursion: flags.no_recursion,
        edns: edns(flags)?,
        allows_plain_padding: flags.allow_plain_padding,
        tsig: key.or(file(&flags.tsig_file).map(Tsig::File)),
    })
}

fn edns(flags: &RunArguments) -> Result<Option<Edns>, Failure> {
    let mut edns = Edns {
        udp_payload_octets: flags.edns_size,
        dnssec_ok: flags.dnssec,
        options: Vec::new(),
        padding_octets: flags.edns_padding,
        keepalive: flags.edns_keepalive,
    };
    for option in &flags.edns_option {
        let parsed = line_options::parse_edns_option(option);
        let (code, data) =
            parsed.map_err(|reason| Failure::plain(format!("--edns-option {option}: {reason}")))?;
        edns.options.push(EdnsOption { code, data });
    }
    if flags.nsid && edns.options.iter().all(|it| it.code != OPTION_NSID) {
        let (code, data) = (OPTION_NSID, Vec::new());
        edns.options.push(EdnsOption { code, data });
    }
    // An option that a message has but once.
    let own = [
        ("--edns-keepalive", OPTION_KEEPALIVE, edns.keepalive),
        (
            "--edns-padding",
            OPTION_PADDING,
            edns.padding_octets.is_some(),
        ),
    ];
    for (flag, code, _) in own.into_iter().filter(|(.., is_given)| *is_given) {
        if edns.options.iter().any(|given| given.code == code) {
            return Err(Failure::usage(
                format!("{flag} contradicts --edns-option {code}"),
                "use one of them",
            ));
        }
    }
    Ok(Some(edns).filter(|edns| *edns != Edns::default()))
}

fn arrival(flags: &RunArguments) -> Result<Arrival, Failure> {
    if let Some(file) = file(&flags.profile.profile) {
        return Ok(Arrival::Profile {
            file,
            zone: flags.profile.profile_zone.clone(),
            rate_factor: flags.profile.rate_factor,
        });
    }
    if let Some(file) = file(&flags.population.script) {
        return Ok(Arrival::Script(file));
    }
    if let Some(each) = flags.population.arrival()? {
        return Ok(Arrival::Clients(each));
    }
    if let Some(rate) = &flags.rate {
        return Ok(Arrival::Open {
            rate_qps: parse_rate(rate)?,
            process: flags.arrival,
            burst: flags.burst,
        });
    }
    let rate_max = flags.max_rate.as_deref().map(parse_rate);
    Ok(Arrival::Closed {
        outstanding: flags.outstanding.unwrap_or(settings::arrival::OUTSTANDING),
        rate_qps_max: rate_max.transpose()?,
    })
}

fn connections(flags: &RunArguments) -> Result<ConnectionPolicy, Failure> {
    let (given, transport) = (flags.connections.policy()?, flags.transport);
    Ok(match transport.has_connections() {
        false => ConnectionPolicy::default(),
        true => ConnectionPolicy {
            tcp_fast_open: given.tcp_fast_open && transport.is_stream(),
            stop_sending_allowed: given.stop_sending_allowed && transport == proto::Transport::Doq,
            ..given
        },
    })
}

fn tls(flags: &RunArguments, given: &TlsArguments) -> Result<Tls, Failure> {
    let resume = given.tls_resume.parse::<Resume>().map_err(|reason| {
        Failure::usage(
            format!("--tls-resume: {reason}"),
            "give never, always, or a share of the connections from 0 to 1, such as 0.9",
        )
    })?;
    Ok(Tls {
        authorities: file(&given.tls_ca),
        name: given.tls_name.clone(),
        accepts_any: given.tls_insecure,
        pins: given.tls_pin.clone(),
        version: given.tls_version.clone(),
        cipher_suites: given.tls_ciphers.clone(),
        groups: given.tls_groups.clone(),
        resume_share: resume.share(),
        early_data: given.tls_early_data,
        certificate: file(&given.tls_cert),
        key: file(&given.tls_key),
        alpn: given.tls_alpn.clone(),
        no_sni: given.tls_no_sni,
        key_log: file(&given.tls_keylog),
        stock_records: given.tls_stock && !flags.transport.is_quic(),
    })
}

fn goodput(flags: &RunArguments) -> Result<Vec<u16>, Failure> {
    let rcode = |text: &String| {
        proto::rr::rcode_from_text(text).ok_or_else(|| {
            Failure::usage(
                format!("--goodput: unknown RCODE `{text}`"),
                "give RCODEs by name, such as NOERROR,NXDOMAIN",
            )
        })
    };
    flags.goodput.iter().map(rcode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Command;
    use crate::secrets;

    fn settings(line: &str) -> Result<Run, Failure> {
        let words = ["throng"].into_iter().chain(line.split_whitespace());
        match crate::command_line::parse(words.map(Into::into).collect())
            .unwrap()
            .command
        {
            Command::Run(command) => command.run.settings(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn run_without_flags_asks_for_the_default() {
        assert_eq!(settings("run").unwrap(), Run::default());
    }

    #[test]
    fn what_flags_ask_for_is_told_to_other_processes_as_it_is() {
        for line in [
            "run --rate 33333.3 --arrival poisson --burst 4 --label cpu=2 --goodput NOERROR",
            "run --server 192.0.2.1 --server 192.0.2.2 --names names.txt --retry glibc,timeout=1 \
             --server-order stay --failover-rcodes SERVFAIL --server-dead-for 30s",
            "run -t dot --tls-insecure --tls-version 1.3 --tls-resume 0.3 --tls-early-data",
            "run -t doh2 --doh-method get --doh-header user-agent:x --pipeline 7",
            "run --per-client closed:4,think=exp(1.5s) --clients 1000 --reset 9s=0.1",
            "run --script clients.lua --edns-size 1232 --edns-option 10:0102 --dnssec",
            "run --profile p.toml --profile-zone example. --rate-factor 0.1",
            "run --per-client poisson:1 --shape diurnal:24h=0.2..1 --leave-after 5s",
            "run --random-labels example. --label-octets 12..16 --cache-hit-ratio 0.9",
            "run --driver xdp --interface eth0 --server 192.0.2.1 --names n --cpus 1,3",
            "run --driver sim --queries 7 --zipf 1.1 --qtypes A=60,AAAA=30",
            "run --driver sim --sim-delay 5ms --sim-loss 0.1 --sim-service-time uniform:1us..9us \
             --sim-cache-ttl 60s --sim-miss-time exponential:30ms",
            "run --delay exponential:0.1ms --loss 0.1 --rcodes SERVFAIL=0.3 --truncate 0.07 \
             --stall at=3s,for=1s,every=10s --ceiling 37000,then=drop --end-after 7:error=0x3",
            "run --seed 18446744073709551615 --loops 7 --question-order shuffled",
        ] {
            let asked = settings(line).unwrap_or_else(|failure| panic!("{line}: {failure:?}"));
            let told = serde_json::to_string(&asked).unwrap();
            assert_eq!(serde_json::from_str::<Run>(&told).unwrap(), asked, "{line}");
            assert_ne!(asked, Run::default(), "{line}");
        }
    }

    #[test]
    fn what_may_be_a_secret_is_told_to_other_processes_and_left_out_of_records() {
        let line = "run -t doh2 --server https://u:secret@192.0.2.1/q?secret --names n \
                    --tsig key:secret --doh-header x-key:secret --doh-header user-agent:me";
        let asked = settings(line).unwrap();
        let told = serde_json::to_string(&asked).unwrap();
        assert_eq!(told.matches("secret").count(), 4, "{told}");
        let kept = serde_json::to_string(&secrets::left_out(&asked)).unwrap();
        assert!(
            !kept.contains("secret") && kept.contains("user-agent:me"),
            "{kept}"
        );
    }
}
