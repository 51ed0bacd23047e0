//! `docs/ci.md`: the shell commands of its GitHub and GitLab jobs, run against two BINDs.
//!
//! Addresses, the number of runs and their length are replaced; installing Throng and starting the
//! servers are commands that do nothing. Needs BIND installed; `./test` sees to it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use lab::target::BindTarget;
use testing::folder::Folder;
use testing::program::Finished;

use crate::dnsperf::{bind, names_in};
use crate::process::THRONG;

/// What the job does, and a condition of it failed.
const CODES: [i32; 2] = [0, 3];

/// The shell commands of a job: those behind `run: ` and `run: |`, and the items below keys that
/// end in `script:`.
fn commands(yaml: &str) -> Vec<String> {
    let lines: Vec<&str> = yaml.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut commands = Vec::new();
    let mut script: Option<usize> = None;
    let mut position = 0;
    while let Some(line) = lines.get(position) {
        position += 1;
        if script.is_some_and(|of_key| indent(line) <= of_key) {
            script = None;
        }
        let bare = line.trim_start();
        if bare.ends_with("script:") {
            script = Some(indent(line));
            continue;
        }
        let item = script.and_then(|_| bare.strip_prefix("- "));
        let command = bare.strip_prefix("run: ").or(item);
        match command {
            Some("|") => {
                let block = lines[position..].iter();
                let block: Vec<&str> = block
                    .take_while(|it| indent(it) > indent(line))
                    .copied()
                    .collect();
                position += block.len();
                commands.push(block.join("\n"));
            }
            Some(command) => commands.push(command.to_owned()),
            None => {}
        }
    }
    commands
}

/// The YAML below a heading of the page.
fn job(page: &str, heading: &str) -> String {
    let section = page.split("\n## ").find(|it| it.starts_with(heading));
    let block = section.and_then(|it| it.split("```yaml\n").nth(1));
    let yaml = block.and_then(|it| it.split("```").next());
    yaml.unwrap_or_else(|| panic!("no YAML of {heading}"))
        .to_owned()
}

/// A folder with what the job of the page finds beside it.
fn furnish(folder: &Folder) {
    let bin = folder.folder().join("bin");
    fs::create_dir(&bin).unwrap();
    for path in [
        bin.join("sudo"),
        bin.join("apt-get"),
        folder.folder().join("start-server"),
    ] {
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::os::unix::fs::symlink(THRONG, bin.join("throng")).unwrap();
    names_in(folder);
}

/// Runs the commands of a job as its runner does: each in a shell that ends at the first failure.
fn run_job(heading: &str, servers: &[BindTarget; 2]) -> Folder {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ci.md");
    let yaml = job(&fs::read_to_string(page).unwrap(), heading);
    let folder = Folder::new(&format!("ci-{heading}"));
    furnish(&folder);
    let commands = commands(&yaml);
    assert!(commands.len() > 3, "{commands:?}");
    let [baseline, change] = servers;
    for command in &commands {
        let short = command
            .replace("--repeat 10", "--repeat 2")
            .replace("--duration 3s", "--duration 200ms")
            .replace("--duration 5s", "--duration 200ms");
        let mut shell = Command::new("bash");
        shell.args(["-e", "-o", "pipefail", "-c", &short]);
        shell.current_dir(folder.folder());
        let path = std::env::var("PATH").unwrap();
        let bin = folder.folder().join("bin");
        shell.env("PATH", format!("{}:{path}", bin.display()));
        shell.env("GITHUB_STEP_SUMMARY", "summary.md");
        let address = |of: &BindTarget| of.endpoints().do53().to_string();
        shell.env("BASELINE", address(baseline));
        shell.env("CHANGE", address(change));
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
fn jobs_of_the_page_compare_two_servers() {
    let servers = [bind(|it| it), bind(|it| it)];
    let folder = run_job("GitHub", &servers);
    assert!(read(&folder, "summary.md").starts_with("### "));
    let answers = read(&folder, "answers.xml");
    assert!(answers.contains("tests=\"2\""), "{answers}");
    let also = run_job("GitLab", &servers);
    for folder in [&folder, &also] {
        let compared = read(folder, "compare.xml");
        assert!(compared.contains("tests=\"2\""), "{compared}");
        for record in ["a/1.json", "a/2.json", "b/1.json", "b/2.json"] {
            let text = read(folder, &format!("records/{record}"));
            measure::RunRecord::from_json(&text).unwrap();
        }
    }
}

#[test]
fn commands_of_a_job_are_found() {
    let yaml = [
        "a:",
        "  steps:",
        "    - name: x",
        "      run: one",
        "    - name: y",
        "      run: |",
        "        two",
        "        three",
        "    - uses: four",
        "  script:",
        "    - five",
        "    - |",
        "      six",
        "  paths:",
        "    - seven",
    ];
    let found = commands(&yaml.join("\n"));
    assert_eq!(
        found,
        ["one", "        two\n        three", "five", "      six"]
    );
}
