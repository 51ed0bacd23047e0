//! How many events a second a script handles, without any network: each client's query is answered
//! at once.
//!
//! ```text
//! cargo run --release -p engine --example script_steps [FILE.lua] [CLIENTS]
//! ```

use proto::Instant;
use proto::response::ResponseFacts;
use script::{Action, Script, Settings};

const QUERIES: u64 = 10_000_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let text = match arguments.next() {
        Some(file) => std::fs::read_to_string(file).expect("the file can be read"),
        None => "function client(c) while true do c:query('example.test', 'A') end end".into(),
    };
    let clients = arguments
        .next()
        .map_or(200, |it| it.parse().expect("clients"));
    let settings = Settings {
        clients,
        ..Settings::default()
    };
    let mut script = Script::load(&text, "script.lua", settings).expect("it loads");
    let begun = std::time::Instant::now();
    for client in 0..clients {
        script.start(client, Instant::ZERO);
    }
    let response = ResponseFacts {
        answers: 1,
        ttl_min: Some(300),
        ..ResponseFacts::default()
    };
    let mut actions = Vec::new();
    let mut queries = 0;
    let mut now = 0;
    while queries < QUERIES && script.running() > 0 {
        while script.step(&mut actions) {}
        for action in actions.drain(..) {
            now += 1_000;
            let at = Instant::from_nanos(now);
            match action {
                Action::Query {
                    client, question, ..
                } => {
                    queries += 1;
                    script.respond(client, question, &response, 1_000, at);
                }
                Action::Sleep { client, until } => script.wake(client, until),
                _ => {}
            }
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{queries} queries in {seconds:.2} s: {:.2} million a second; {} bytes a client, {:?} \
         templates and records, {:?}",
        queries as f64 / seconds / 1e6,
        script.memory_bytes() / clients as usize,
        script.messages().held(),
        script.failures(),
    );
}
