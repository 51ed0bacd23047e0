//! The manual page, help and completions, which are all made from the definitions of the flags.

use std::collections::BTreeSet;

use crate::call::throng;

const COMMANDS: [&str; 15] = [
    "run",
    "compare-transports",
    "capacity",
    "responder",
    "line",
    "names",
    "names records",
    "names services",
    "names shuffle",
    "report",
    "doctor",
    "merge",
    "schema",
    "man",
    "completions",
];

/// The long flags that the help of a command describes.
fn flags_of(command: &str) -> BTreeSet<String> {
    let help = throng(&format!("{command} --help")).succeeded();
    // Lines that begin with a single dash describe values.
    let describes = |line: &&str| line.starts_with('-') && !line.starts_with("- ");
    let described = help.lines().map(str::trim_start).filter(describes);
    let words = described.flat_map(|line| line.split([' ', ',']));
    let flags = words.filter(|word| word.starts_with("--"));
    flags.map(str::to_owned).collect()
}

fn all_flags() -> BTreeSet<String> {
    let flags: BTreeSet<String> = COMMANDS
        .iter()
        .flat_map(|command| flags_of(command))
        .collect();
    assert!(flags.len() > 60, "{flags:?}");
    flags
}

#[test]
fn the_manual_page_has_every_command_and_flag() {
    let page = throng("man").succeeded();
    let pages: Vec<&str> = page.split(".TH ").skip(1).collect();
    let page_of = |command: &str| {
        let start = format!("throng-{} 1 ", command.replace(' ', "-"));
        let found = pages.iter().find(|page| page.starts_with(&start));
        found.unwrap_or_else(|| panic!("no page of `{command}`"))
    };
    assert!(pages[0].starts_with("throng 1 "), "{}", pages[0]);
    for section in [
        ".SH NAME\n",
        ".SH SYNOPSIS\n",
        ".SH DESCRIPTION\n",
        ".SH OPTIONS\n",
    ] {
        assert!(pages[0].contains(section), "{section}");
    }
    for command in COMMANDS {
        let page = page_of(command);
        for flag in flags_of(command) {
            let escaped = format!("\\fB{}\\fR", flag.replace('-', "\\-"));
            assert!(
                page.contains(&escaped),
                "`{flag}` of `{command}` in\n{page}"
            );
        }
    }
    assert!(page_of("dnsperf").contains("dnsperf"));
}

#[test]
fn the_manual_page_has_requests_of_roff_alone() {
    let page = throng("man").succeeded();
    let known = [
        "TH", "SH", "TP", "PP", "RS", "RE", "IP", "ie", "el", "br", "B", "I",
    ];
    for line in page.lines().filter(|line| line.starts_with('.')) {
        let request = line[1..].split(' ').next().unwrap();
        assert!(known.contains(&request), "{line}");
    }
}

#[test]
fn completions_know_values() {
    for shell in ["bash", "zsh", "fish"] {
        let script = throng(&format!("completions {shell}")).succeeded();
        for values in [
            ["dot", "doh3"],
            ["uring", "xdp"],
            ["markdown", "csv"],
            ["AAAA", "HTTPS"],
            ["exit-codes", "units"],
            ["unbound", "coredns"],
        ] {
            for value in values {
                assert!(script.contains(value), "{value} for {shell}");
            }
        }
    }
}

#[test]
fn completions_have_every_flag() {
    let flags = all_flags();
    for (shell, as_written) in [
        ("bash", "--"),
        ("zsh", "--"),
        ("fish", "-l "),
        ("elvish", "--"),
        ("powershell", "--"),
    ] {
        let script = throng(&format!("completions {shell}")).succeeded();
        for flag in &flags {
            let written = flag.replacen("--", as_written, 1);
            assert!(script.contains(&written), "{flag} for {shell}");
        }
        for command in ["run", "responder", "names", "dnsperf"] {
            assert!(script.contains(command), "{command} for {shell}");
        }
    }
}

#[test]
fn help_and_version_go_to_standard_output() {
    let version = throng("--version").succeeded();
    assert_eq!(version, format!("throng {}\n", env!("CARGO_PKG_VERSION")));
    for command in COMMANDS {
        let usage = format!("Usage: throng {command}");
        let short = throng(&format!("{command} -h"));
        assert_eq!(short.stderr, "");
        assert!(short.succeeded().contains(&usage), "{command}");
    }
    let help = throng("--help").succeeded();
    for command in COMMANDS.iter().filter(|command| !command.contains(' ')) {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
    }
}
