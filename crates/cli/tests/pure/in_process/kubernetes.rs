//! `throng fleet` for Kubernetes, as far as no cluster is asked.

use cli::Call;
use testing::folder::Folder;

use crate::call::{call, throng};

const FLEET: &str = "fleet manifest --image throng:1 --agents 2";

#[test]
fn manifest_has_what_a_command_reads_and_where_its_agents_are() {
    let folder = Folder::new("kubernetes-manifest");
    let names = folder.write("names.txt", "a.example A\n");
    let run = format!("run --server server.example --names {names} --rate 100 --duration 1s");
    let flags = "--name load --namespace test --cpus 2 --host-network --toleration dns:NoSchedule";
    let yaml = throng(&format!("{FLEET} {flags} --node-selector zone=a -- {run}")).succeeded();
    assert_eq!(yaml.matches("---\n").count(), 6, "{yaml}");
    for part in [
        "name: \"load-lead\"",
        "name: \"load-agents\"",
        "namespace: \"test\"",
        "completions: 2",
        "hostNetwork: true",
        "zone: \"a\"",
        "readOnlyRootFilesystem: true",
        "automountServiceAccountToken: false",
        "- \"load-lead:7353\"",
        "- \"server.example\"",
        "- \"--listen\"",
        // The names, in Base64.
        "\"YS5leGFtcGxlIEEK\"",
    ] {
        assert!(yaml.contains(part), "{part}: {yaml}");
    }
    assert!(!yaml.contains("runAsUser"), "{yaml}");
    // Keys are of one manifest alone.
    let other = throng(&format!("{FLEET} -- {run}")).succeeded();
    assert!(!other.contains("name: \"load-lead\""));
}

#[test]
fn lead_declares_the_port_of_metrics_that_other_pods_reach() {
    let folder = Folder::new("kubernetes-metrics");
    let names = folder.write("names.txt", "a.example A\n");
    let capture = folder.write("query.log", crate::query_logs::log());
    let asks = format!("--server server.example --names {names}");
    let scenario = folder.write("s.toml", "metrics = '0.0.0.0:9350'\nrate = '10'\n");
    let side = format!("server = 'server.example'\nnames = '{names}'\nrate = '10'\n");
    let side = folder.write("side.toml", side);
    let sides = format!("compare --a={side} --b={side}");
    for (command, is_declared) in [
        (format!("run {asks} --rate 10 --metrics 0.0.0.0:9350"), true),
        (format!("run {scenario} --trust {scenario} {asks}"), true),
        (format!("capacity {asks} --metrics [::]:9350"), true),
        (format!("ramp {asks} --metrics 10.0.0.1:9350"), true),
        (
            format!("compare-transports {asks} --metrics 0.0.0.0:9350"),
            true,
        ),
        (
            format!("replay {capture} --server s.example --metrics 0.0.0.0:9350"),
            true,
        ),
        (format!("{sides} --serve-metrics 0.0.0.0:9350"), true),
        (format!("run {asks} --rate 10"), false),
        (
            format!("run {asks} --rate 10 --metrics 127.0.0.1:9350"),
            false,
        ),
        (format!("run {asks} --rate 10 --metrics [::1]:9350"), false),
        (format!("run {asks} --rate 10 --metrics 0.0.0.0:0"), false),
    ] {
        let yaml = throng(&format!("{FLEET} -- {command}")).succeeded();
        let declared = yaml.matches("containerPort: 9350\n").count();
        assert_eq!(declared, usize::from(is_declared), "{command}: {yaml}");
        let named = yaml.matches("name: \"metrics\"\n").count();
        assert_eq!(named, declared, "{command}: {yaml}");
    }
}

#[test]
fn what_has_no_agents_or_cannot_be_sent_is_refused() {
    let folder = Folder::new("kubernetes-refused");
    let names = folder.write("names.txt", "a.example A\n");
    let long = folder.write("long.txt", "www.a-long-name.example A\n".repeat(40_000));
    let run = format!("run --server 192.0.2.1 --names {names}");
    for (fleet, command, error, hint) in [
        ("", "run", "no server to query", "give --server"),
        (
            "",
            "run --driver sim",
            "no server to query",
            "give --server",
        ),
        ("", "doctor", "has no agents", "give run, replay"),
        (
            "",
            &format!("{run} --agents 3")[..],
            "--agents is decided by the fleet",
            "give it before `--`",
        ),
        ("", &format!("{run} --rate none"), "none", "write queries"),
        (
            "",
            "run --server 192.0.2.1 --names none.txt",
            "cannot read none.txt",
            "check",
        ),
        (
            "",
            &format!("run --server 192.0.2.1 --names {long}"),
            "a Secret",
            "random-labels",
        ),
        ("--name Load", &run, "`Load` is not a name", "a-z"),
        (
            "--min-agents 3",
            &run,
            "--min-agents 3 is more than --agents 2",
            "at most 2",
        ),
        (
            "",
            &format!("{run} --min-agents 1"),
            "--min-agents is decided by the fleet",
            "give it before `--`",
        ),
        (
            "",
            &format!("{run} --keys=keys"),
            "--keys is decided by the fleet",
            "leave it out",
        ),
        (
            "--node-selector zone",
            &run,
            "`zone` is not a label",
            "NAME=VALUE",
        ),
    ] {
        throng(&format!("{FLEET} {fleet} -- {command}")).refused_with(error, hint);
    }
    let run = format!("fleet run --image throng:1 --agents 2 -- {run}");
    let kubectl = |words: &str| run.replace("--image", &format!("--kubectl {words} --image"));
    throng(&kubectl("none-such")).refused_with("cannot run `none-such`", "install kubectl");
    throng(&kubectl("'")).refused_with("is not a valid command", "as in a shell");
}

#[test]
fn what_pods_cannot_read_or_write_is_refused() {
    let folder = Folder::new("kubernetes-files");
    let names = folder.write("names.txt", "a.example A\n");
    let run = format!("run --server 192.0.2.1 --names {names}");
    let scenario = folder.write("scenario.toml", "record = \"/records/a.json\"\n");
    let log = folder.write("query.log", crate::query_logs::log());
    for (command, error, hint) in [
        (
            format!("{run} --record ../record.json"),
            "--record ../record.json is not in the folder of the lead",
            "the folder by --output",
        ),
        (
            format!("{run} --junit=results/junit.xml"),
            "--junit results/junit.xml is not in the folder of the lead",
            "a name alone",
        ),
        (
            format!("capacity --server 192.0.2.1 --names {names} --records /records"),
            "--records /records is not in the folder of the lead",
            "a name alone",
        ),
        (
            format!("run {scenario} --trust {scenario} --server 192.0.2.1 --names {names}"),
            "--record /records/a.json is not in the folder of the lead",
            "the folder by --output",
        ),
        (
            format!("replay {log} --server 192.0.2.1 --record /record.json"),
            "--record /record.json is not in the folder of the lead",
            "the folder by --output",
        ),
        (
            format!("ramp --server 192.0.2.1 --names {names} --max-rate 9 --plot ../plot"),
            "--plot ../plot is not in the folder of the lead",
            "the folder by --output",
        ),
        (
            format!("{run} --driver xdp --interface eth0"),
            "--driver xdp needs capabilities, and pods have none",
            "leave out --driver",
        ),
        (
            format!("{run} --transport dot --tls-insecure --tls-name a --tls-keylog keys"),
            "--tls-keylog: each agent would write secrets to its pod",
            "leave it out",
        ),
        (
            format!("{run} --observe prometheus=http://192.0.2.1/,allow=up,token={names}"),
            "which no pod has",
            "observe from here",
        ),
        (
            format!("{run} --observe none=1"),
            "no profile `none`",
            "profiles are",
        ),
        (
            format!("{run} --observe coredns=htp://192.0.2.1/"),
            "`htp` is neither http nor https",
            "coredns=",
        ),
    ] {
        throng(&format!("{FLEET} -- {command}")).refused_with(error, hint);
    }
}

#[test]
fn every_command_that_has_agents_can_have_them_in_pods() {
    let folder = Folder::new("kubernetes-commands");
    let names = folder.write("names.txt", "a.example A\n");
    let capture = folder.write("query.log", crate::query_logs::log());
    let asks = format!("--server server.example --names {names}");
    let agents = "--listen 0.0.0.0:7353 --agents 2 --keys /keys";
    for command in [
        format!("run {asks} --rate 10"),
        format!("capacity {asks} --max 1000"),
        format!("ramp {asks} --max-rate 1000"),
        format!("compare-transports {asks} --transports udp,tcp"),
        format!("replay {capture} --server server.example"),
    ] {
        let yaml = throng(&format!("{FLEET} -- {command}")).succeeded();
        for word in agents.split(' ').chain(["server.example"]) {
            assert!(
                yaml.contains(&format!("- \"{word}\"\n")),
                "{command}: {yaml}"
            );
        }
    }
    let few = format!("{FLEET} --min-agents 1 --barrier-timeout 20s -- run {asks} --rate 10");
    let few = throng(&few).succeeded();
    for word in ["--min-agents", "--barrier-timeout", "20000ms"] {
        assert!(few.contains(&format!("- \"{word}\"\n")), "{few}");
    }
    assert!(few.contains("throng/min-agents: \"1\""), "{few}");
    let side = format!("run {asks} --rate 10");
    let words = [
        "fleet", "manifest", "--image", "throng:1", "--agents", "2", "--", "compare",
    ];
    let words = words.into_iter().map(str::to_owned);
    let sides = ["--a".to_owned(), side.clone(), format!("--b={side}")];
    let compared = call(Call {
        arguments: words.chain(sides).map(Into::into).collect(),
        ..Call::default()
    });
    let yaml = compared.succeeded();
    for side in [
        format!("\"{side} {agents}\""),
        format!("\"--b={side} {agents}\""),
    ] {
        assert!(yaml.contains(&side), "{side}: {yaml}");
    }
}
