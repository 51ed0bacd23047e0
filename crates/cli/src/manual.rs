//! Man page and shell completions, from the definitions of the flags; licences of others' software.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Arguments, CompletionArguments};
use crate::failure::{Failure, print};

/// Prints the manual page: the command, then each of its subcommands.
pub(crate) fn man() -> Result<ExitCode, Failure> {
    let mut command = Arguments::command();
    command.build();
    let mut page = Vec::new();
    render(&command, "throng", &mut page)?;
    print(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command, then those of its subcommands.
fn render(command: &clap::Command, name: &str, page: &mut Vec<u8>) -> Result<(), Failure> {
    clap_mangen::Man::new(command.clone().name(name.to_owned()))
        .render(page)
        .map_err(Failure::in_operation)?;
    for subcommand in command.get_subcommands() {
        if subcommand.get_name() != "help" {
            let name = format!("{name}-{}", subcommand.get_name());
            render(subcommand, &name, page)?;
        }
    }
    Ok(())
}

/// The licences of what is linked into the binary, as `crates/cli/notices/collect` found them.
const THIRD_PARTY: &str = include_str!("../notices/third-party.txt");

/// Prints the licences of others' software.
pub(crate) fn licenses() -> Result<ExitCode, Failure> {
    print(THIRD_PARTY)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the completions for a shell.
pub(crate) fn completions(arguments: &CompletionArguments) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Arguments::command(),
        "throng",
        &mut script,
    );
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
