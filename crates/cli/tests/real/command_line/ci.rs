//! The action for GitHub and the job for GitLab in `deploy/ci`, used as `docs/ci.md` does: their
//! shell commands, run against two BINDs.
//!
//! Addresses, the number of runs and their length are others; installing Throng is a command that
//! does nothing. Needs BIND and Python's yaml installed; `./test` sees to it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use lab::target::BindTarget;
use serde_json::{Map, Value};
use testing::folder::Folder;
use testing::program::Finished;
use testing::yaml;

use crate::dnsperf::{bind, names_in};
use crate::process::THRONG;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What the job does, and a condition of it failed.
const CODES: [i32; 2] = [0, 3];

/// Names and texts: inputs of an action, variables of a job or a step.
type Texts = BTreeMap<String, String>;

/// A command of the shell with its variables.
struct Step {
    command: String,
    variables: Texts,
}

fn read_file(path: &str) -> String {
    fs::read_to_string(format!("{ROOT}/{path}")).unwrap()
}

fn map(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("{value}"))
}

fn text(value: &Value) -> String {
    let text = value.as_str().unwrap_or_else(|| panic!("{value}"));
    text.to_owned()
}

fn texts(value: &Value) -> Texts {
    let entries = map(value).iter();
    entries
        .map(|(name, value)| (name.clone(), text(value)))
        .collect()
}

/// The job below a heading of the page.
fn job(heading: &str) -> Value {
    let page = read_file("docs/ci.md");
    let section = page.split("\n## ").find(|it| it.starts_with(heading));
    let block = section.and_then(|it| it.split("```yaml\n").nth(1));
    let block = block.and_then(|it| it.split("```").next());
    yaml::document(block.unwrap_or_else(|| panic!("no YAML of {heading}")))
}

/// The values of a test instead of those that the page gives, which must be there.
fn replace(given: &mut Texts, names: [&str; 2], servers: &[String; 2]) {
    for (name, server) in names.into_iter().zip(servers) {
        let page = given.insert(name.to_owned(), server.clone());
        assert!(page.is_some(), "the page does not give {name}");
    }
}

/// The commands of the action with the inputs of the page, and short runs against these servers.
fn github(servers: &[String; 2]) -> Vec<Step> {
    let job = job("GitHub");
    let steps = job["jobs"]["dns-performance"]["steps"].as_array().unwrap();
    let uses = |step: &&Value| step["uses"] == "./.github/actions/throng";
    let step = steps.iter().find(uses).unwrap();
    let mut given = texts(&step["with"]);
    replace(&mut given, ["baseline", "change"], servers);
    given.insert("flags".to_owned(), "--duration 200ms".to_owned());
    given.insert("repeat".to_owned(), "2".to_owned());

    let action = yaml::document(&read_file("deploy/ci/action.yml"));
    let inputs = map(&action["inputs"]);
    let unknown: Vec<_> = given
        .keys()
        .filter(|it| !inputs.contains_key(*it))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let value = |text: &str| {
        let name = text
            .strip_prefix("${{ inputs.")
            .and_then(|it| it.strip_suffix(" }}"));
        let name = name.unwrap_or_else(|| panic!("{text} is no input"));
        let default = || inputs[name]["default"].as_str().map(str::to_owned);
        let value = given.get(name).cloned().or_else(default);
        value.unwrap_or_else(|| panic!("{name} has no value"))
    };
    let steps = action["runs"]["steps"].as_array().unwrap().iter();
    let steps = steps.filter(|step| !step["run"].is_null());
    let steps = steps.map(|step| {
        assert_eq!(step["shell"], "bash", "{step}");
        let variables = texts(&step["env"]).into_iter();
        Step {
            command: text(&step["run"]),
            variables: variables.map(|(name, it)| (name, value(&it))).collect(),
        }
    });
    steps.collect()
}

/// The same of the job for GitLab.
fn gitlab(servers: &[String; 2]) -> Vec<Step> {
    let job = &job("GitLab")["dns-performance"];
    assert_eq!(job["extends"], ".throng");
    let mut given = texts(&job["variables"]);
    replace(&mut given, ["BASELINE", "CHANGE"], servers);
    given.insert("FLAGS".to_owned(), "--duration 200ms".to_owned());
    given.insert("REPEAT".to_owned(), "2".to_owned());

    let file = yaml::document(&read_file("deploy/ci/gitlab.yml"));
    let mut variables = texts(&file[".throng"]["variables"]);
    variables.extend(given);
    let commands = file[".throng"]["script"].as_array().unwrap().iter();
    let steps = commands.map(|command| Step {
        command: text(command),
        variables: variables.clone(),
    });
    steps.collect()
}

/// A folder with what the jobs find beside them.
fn furnish(folder: &Folder) {
    let bin = folder.folder().join("bin");
    fs::create_dir(&bin).unwrap();
    for path in [bin.join("sudo"), bin.join("apt-get")] {
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::os::unix::fs::symlink(THRONG, bin.join("throng")).unwrap();
    names_in(folder);
}

/// Runs the commands of a job as its runner does: each in a shell that ends at the first failure.
fn run_job(name: &str, steps: &[Step]) -> Folder {
    let folder = Folder::new(&format!("ci-{name}"));
    furnish(&folder);
    assert!(steps.len() > 2, "{}", steps.len());
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", folder.path("bin"));
    for Step { command, variables } in steps {
        let short = command.replace("--duration 5s", "--duration 200ms");
        let mut shell = Command::new("bash");
        shell.args(["-e", "-o", "pipefail", "-u", "-c", &short]);
        shell.current_dir(folder.folder());
        shell.env("PATH", &path);
        shell.env("GITHUB_STEP_SUMMARY", "summary.md");
        shell.envs(variables);
        let finished = Finished::new(&short, shell.output().unwrap());
        let code = finished.code.unwrap_or(-1);
        assert!(
            CODES.contains(&code),
            "{code}: {short}\n{}",
            finished.stderr
        );
    }
    folder
}

fn read(folder: &Folder, name: &str) -> String {
    fs::read_to_string(folder.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn action_and_job_compare_two_servers_as_the_page_uses_them() {
    let servers = [bind(|it| it), bind(|it| it)];
    let address = |of: &BindTarget| of.endpoints().do53().to_string();
    let addresses = servers.each_ref().map(address);
    let on_github = run_job("github", &github(&addresses));
    assert!(read(&on_github, "summary.md").starts_with("### "));
    let on_gitlab = run_job("gitlab", &gitlab(&addresses));
    for folder in [&on_github, &on_gitlab] {
        for file in ["answers.xml", "compare.xml"] {
            let conditions = read(folder, file);
            assert!(conditions.contains("tests=\"2\""), "{conditions}");
        }
        for record in ["a/1.json", "a/2.json", "b/1.json", "b/2.json"] {
            let text = read(folder, &format!("records/{record}"));
            measure::RunRecord::from_json(&text).unwrap();
        }
    }
}
