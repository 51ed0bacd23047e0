//! Man page and shell completions, from the definitions of the flags; licences of others' software.

use std::path::Path;
use std::process::ExitCode;

use lab::files::{self, Access};

use crate::args::{CompletionArguments, ManArguments};
use crate::completions::script;
use crate::failure::{Failure, print};
use crate::help;

/// The manual page of one command.
struct Page {
    /// `throng-names-records`.
    name: String,
    roff: Vec<u8>,
}

/// Prints the manual: the page of the command, then those of its subcommands. With `--output` each
/// page is a file of a folder instead.
pub(crate) fn man(arguments: &ManArguments) -> Result<ExitCode, Failure> {
    // The subcommands `help` have no page that others could refer to.
    let mut command = help::commands().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    render(&command, "throng", &mut pages)?;
    match &arguments.output {
        Some(folder) => write_pages(&pages, folder)?,
        None => {
            let all: Vec<u8> = pages.into_iter().flat_map(|page| page.roff).collect();
            print(&String::from_utf8_lossy(&all))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds the page of a command, then those of its subcommands, but for hidden ones.
fn render(command: &clap::Command, name: &str, pages: &mut Vec<Page>) -> Result<(), Failure> {
    let mut roff = Vec::new();
    clap_mangen::Man::new(command.clone().name(name.to_owned()))
        .render(&mut roff)
        .map_err(Failure::in_operation)?;
    pages.push(Page {
        name: name.to_owned(),
        roff,
    });
    for subcommand in command.get_subcommands() {
        if !subcommand.is_hide_set() {
            let name = format!("{name}-{}", subcommand.get_name());
            render(subcommand, &name, pages)?;
        }
    }
    Ok(())
}

fn write_pages(pages: &[Page], folder: &Path) -> Result<(), Failure> {
    for page in pages {
        let path = folder.join(format!("{}.1", page.name));
        let written = files::make_folders(folder)
            .and_then(|()| files::write(&path, Access::Umask, &page.roff));
        written.map_err(|error| {
            Failure::unwritable(
                format!("cannot write {}: {error}", path.display()),
                &error,
                "give --output a folder that can be written",
            )
        })?;
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
    print(&script(arguments))?;
    Ok(ExitCode::SUCCESS)
}
