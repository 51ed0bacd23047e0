//! Any other server, by its command line.

use anyhow::Context;

use crate::target::cell::{Cell, Factor};
use crate::target::place::Server;
use crate::target::process::Program;
use crate::target::start::Start;
use crate::target::{Product, RunningServer};

/// Any server that answers for the zone over UDP and TCP.
pub const CUSTOM: Product = Product {
    name: "custom",
    title: "A server of your own",
    factors: &[
        Factor::text(
            "command",
            "its command line; it must stay in the foreground. {address}, {port}, {origin}, \
             {folder} (zone.db is in it) and {configuration} are filled in",
        ),
        Factor::text(
            "configuration",
            "file with its configuration, in which the same are filled in",
        ),
    ],
    server: &SERVER,
    version_flag: "-c",
    reload: None,
    key_roll: None,
    gives_zone: false,
    start,
};

const SERVER: Server = Server {
    program: Program::Shell,
    services: &[],
    ready_line: None,
    fatal_lines: &[],
};

fn start(cell: &Cell) -> anyhow::Result<RunningServer> {
    let command = cell.text("command");
    anyhow::ensure!(
        !command.is_empty(),
        "there is no command to start\nhint: --set 'command=my-server --port {{port}}'"
    );
    let template = match cell.text("configuration") {
        "" => None,
        path => {
            let text = std::fs::read_to_string(path);
            Some(text.with_context(|| format!("cannot read the configuration `{path}`"))?)
        }
    };
    Start::of(cell).run(|place| {
        let mut command = command.to_owned();
        if let Some(template) = &template {
            let file = place
                .folder
                .write("configuration", &cell.fill(template, place))?;
            command = command.replace("{configuration}", &file.display().to_string());
        }
        let command = format!("exec {}", cell.fill(&command, place).trim_end());
        Ok(vec!["-c".into(), command.into()])
    })
}
