//! Shell completions: those that the parser's definitions give, with the values of flags that are
//! parsed from text.

use clap::builder::{PossibleValuesParser, Resettable, ValueParser};
use clap::{Arg, ArgAction, Command, CommandFactory};
use clap_complete::Shell;
use lab::target::products;

use crate::args::{Arguments, CompletionArguments};
use crate::help;

const TRANSPORTS: &[&str] = &["udp", "tcp", "dot", "doh2", "doh3", "doq"];
/// Types that people ask for; any other is taken too.
const TYPES: &[&str] = &[
    "A", "AAAA", "ANY", "CAA", "CNAME", "DNSKEY", "DS", "HTTPS", "MX", "NAPTR", "NS", "PTR", "SOA",
    "SRV", "SVCB", "TLSA", "TXT",
];
const CAPTURES: &[&str] = &["pcap", "pcapng", "dnstap", "bind", "unbound", "coredns"];

/// Values of flags that have no fixed set for the parser.
const VALUES: &[(&str, &[&str])] = &[
    ("transport", TRANSPORTS),
    ("transports", TRANSPORTS),
    ("only-transports", TRANSPORTS),
    ("type", TYPES),
    ("capture-format", CAPTURES),
    ("doh-method", &["get", "post"]),
    ("tls-version", &["1.2", "1.3"]),
];

/// The script for a shell.
pub(crate) fn script(arguments: &CompletionArguments) -> String {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut commands(), "throng", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if arguments.shell == Shell::Fish {
        script.push_str(&positionals_of_fish());
    }
    script
}

/// The generator for fish leaves out the values of words that are no flags.
fn positionals_of_fish() -> String {
    let using = "complete -c throng -n \"__fish_throng_using_subcommand";
    let products: Vec<&str> = products::all().map(|it| it.name).collect();
    format!(
        "{using} help\" -f -a \"{}\"\n\
         {using} lab; and __fish_seen_subcommand_from up\" -f -a \"{}\"\n",
        helped().join(" "),
        products.join(" ")
    )
}

/// The commands as the shells are to know them.
fn commands() -> Command {
    with_values(Arguments::command())
        .mut_subcommand("lab", |lab| {
            lab.mut_subcommand("up", |up| {
                let products: Vec<&str> = products::all().map(|it| it.name).collect();
                up.mut_args(|arg| match arg.get_id().as_str() {
                    "product" => one_of(arg, products.clone()),
                    _ => arg,
                })
            })
        })
        .disable_help_subcommand(true)
        .subcommand(help_command())
}

/// Commands and topics that `throng help` has.
fn helped() -> Vec<String> {
    let all = Arguments::command();
    let visible = all.get_subcommands().filter(|it| !it.is_hide_set());
    let mut words: Vec<String> = visible.map(|it| it.get_name().to_owned()).collect();
    words.extend(help::topics().into_iter().map(str::to_owned));
    words.sort();
    words.dedup();
    words
}

/// `throng help`, with a command or a topic.
fn help_command() -> Command {
    let topic = Arg::new("topic").action(ArgAction::Set);
    Command::new("help")
        .about("Print the help of a command or a topic")
        .arg(topic.value_parser(PossibleValuesParser::new(helped())))
}

fn with_values(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let row = arg.get_long().and_then(|long| {
            let mut rows = VALUES.iter();
            rows.find(|(name, _)| *name == long)
        });
        match row {
            Some((_, values)) if !arg.is_hide_set() => one_of(arg, values.to_vec()),
            _ => arg,
        }
    });
    command.mut_subcommands(with_values)
}

fn one_of(arg: Arg, values: Vec<&'static str>) -> Arg {
    // A default is of the type that the command parses, which is no matter here.
    arg.default_value(Resettable::Reset)
        .value_parser(ValueParser::from(PossibleValuesParser::new(values)))
}
