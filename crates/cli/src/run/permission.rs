//! Load on a public address needs the permission of its owner, and `--allow-public` says that it
//! was given. A load as light as that of a single user needs none.

use std::net::IpAddr;

use lab::run::{RunRequest, TargetScope, target_scope};
use load::LoadMax;

use crate::failure::Failure;

/// Below that rate.
const RATE_QPS_LIGHT: f64 = 100.0;
/// Up to that number of queries in all.
const QUERIES_LIGHT: f64 = 1_000.0;

/// The runs of a command whose results decide how many it makes.
pub(crate) const MANY: u64 = u64::MAX;

/// Refuses runs that need permission and have none, of a command that makes them `runs` times.
pub(crate) fn check(requests: &[RunRequest], runs: u64) -> Result<(), Failure> {
    match needed(requests, runs) {
        None => Ok(()),
        Some(address) => Err(Failure::usage(
            format!("{address} is a public address"),
            hint("add --allow-public"),
        )),
    }
}

/// What the user can do about it: `cure` says that there is permission.
pub(crate) fn hint(cure: &str) -> String {
    format!(
        "load may only be sent where you have permission; if you have it, {cure} (not needed \
         below 100 queries a second and 1,000 in all)"
    )
}

/// The public address for which permission is needed and missing, if these runs are made at once,
/// and `runs` times.
pub(crate) fn needed(requests: &[RunRequest], runs: u64) -> Option<IpAddr> {
    let is_asked = |request: &&RunRequest| !request.asked.allows_public;
    let mut address = None;
    let mut all = Some(LoadMax::default());
    for request in requests.iter().filter(is_asked) {
        if let Some(public) = public_target(request) {
            address.get_or_insert(public);
            let load = request.plan.load_max();
            all = all.zip(load).map(|(all, load)| all.plus(load));
        }
    }
    address.filter(|_| !all.is_some_and(|load| is_light(load, runs)))
}

/// True if a load needs no permission.
fn is_light(load: LoadMax, runs: u64) -> bool {
    load.rate_qps < RATE_QPS_LIGHT && load.queries * runs as f64 <= QUERIES_LIGHT
}

/// True if load there needs permission.
fn is_public(address: IpAddr) -> bool {
    target_scope(address) == TargetScope::Public
}

fn public_target(request: &RunRequest) -> Option<IpAddr> {
    let plan = &request.plan;
    let of_stub = plan.stub.iter().flat_map(|stub| &stub.servers);
    let mut all = [&plan.target].into_iter().chain(of_stub);
    let public = all.find(|target| is_public(target.ip()));
    public.map(|target| target.ip())
}

#[cfg(test)]
mod tests {
    use testing::folder::Folder;

    use super::*;
    use crate::args::{Command, RunArguments};
    use crate::command_line;
    use crate::run::group::Group;
    use crate::run::request;

    fn flags(line: &str) -> RunArguments {
        let words = ["throng", "run"].into_iter().chain(line.split_whitespace());
        match command_line::parse(words.map(Into::into).collect()).map(|it| it.command) {
            Ok(Command::Run(command)) => command.run,
            other => panic!("{other:?}"),
        }
    }

    /// The request of a run of these flags.
    fn request_of(folder: &Folder, line: &str) -> RunRequest {
        let names = folder.write("names.txt", "a.example A\nb.example A\n");
        let group = Group::plain(&flags(&format!("--names {names} {line}"))).unwrap();
        request::against(&group).unwrap()
    }

    #[test]
    fn light_loads_on_public_addresses_need_no_permission() {
        let folder = Folder::new("permission-light");
        for (load, is_light) in [
            ("--rate 99", true),
            ("--rate 50 --warmup 5s", true),
            ("--max-rate 99", true),
            ("--per-client constant:5 --clients 19", true),
            (
                "--rate 99 --duration 5s --transport doq --tls-insecure",
                true,
            ),
            ("--rate 100", false),
            ("--rate 50 --duration 21s", false),
            ("--rate 50 --warmup 15s", false),
            ("--rate 50 --burst 100", false),
            ("--rate 50 --tcp-fallback --retry 1s,1s", false),
            ("--rate 20 --clients 200 --transport tcp", false),
            ("--queries 10", false),
            ("--queries 10 --rate 50", true),
            ("--loops 500 --rate 50", true),
            ("--loops 501 --rate 50", false),
        ] {
            for server in ["192.88.99.1", "2600::1", "::ffff:9.9.9.9"] {
                let public = request_of(&folder, &format!("--server {server} {load}"));
                let asked = needed(&[public], 1);
                let expected = (!is_light).then(|| server.parse().unwrap());
                assert_eq!(asked, expected, "{load}");
            }
            for flags in ["--server 192.0.2.1", "--server 9.9.9.9 --allow-public"] {
                let fine = request_of(&folder, &format!("{flags} {load}"));
                assert_eq!(needed(&[fine], MANY), None, "{load}");
            }
        }
    }

    #[test]
    fn all_runs_and_groups_and_servers_count() {
        let folder = Folder::new("permission-all");
        let light = request_of(&folder, "--server 9.9.9.9 --rate 40");
        assert!(check(std::slice::from_ref(&light), 2).is_ok());
        let refused = check(std::slice::from_ref(&light), 3).unwrap_err();
        assert_eq!(refused.what(), "9.9.9.9 is a public address");
        assert!(check(std::slice::from_ref(&light), MANY).is_err());
        assert!(check(&[light.clone(), light.clone()], 1).is_ok());
        assert!(check(&[light.clone(), light.clone(), light], 1).is_err());
        let second = request_of(&folder, "--server 127.0.0.1 --server 9.9.9.9 --rate 100");
        assert_eq!(needed(&[second], 1), "9.9.9.9".parse().ok());
    }
}
