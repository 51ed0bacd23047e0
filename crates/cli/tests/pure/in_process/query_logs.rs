//! A query log, and what is read from profiles that were fitted to one.

/// A query log of BIND over 12 s: ten clients, of which the first asks every other query.
pub(crate) fn log() -> String {
    let mut text = String::from("21-Nov-2026 10:00:00.000 general: info: running\n");
    for tick in 0..600 {
        let client = if tick % 2 == 0 { 1 } else { 2 + tick / 2 % 9 };
        let (second, ms) = (tick / 50, tick % 50 * 20);
        let qtype = if tick % 3 == 0 { "AAAA" } else { "A" };
        let name = format!("secret{}.example.com", tick % 5);
        let flags = if tick % 6 == 0 { "+E(0)T" } else { "+E(0)" };
        text += &format!(
            "21-Nov-2026 10:00:{second:02}.{ms:03} queries: info: client @0x7f \
             198.51.100.{client}#53{client} ({name}): query: {name} IN {qtype} {flags} \
             (192.0.2.53)\n"
        );
    }
    text
}

/// The number that a key of a profile has.
pub(crate) fn count(profile: &str, key: &str) -> u64 {
    let line = profile
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{key} = ")));
    line.unwrap_or_else(|| panic!("no {key} in {profile}"))
        .parse()
        .unwrap()
}
