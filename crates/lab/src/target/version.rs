//! Finds the version in a server's output.

/// The first number with a point in it, with its suffix.
pub(super) fn version_in(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".+~-".contains(c);
    text.split(|c: char| !is_part(c)).find_map(|word| {
        let start = word.find(|c: char| c.is_ascii_digit())?;
        let (before, version) = word.split_at(start);
        let (major, rest) = version.split_once('.')?;
        let is_number = |it: &str| it.starts_with(|c: char| c.is_ascii_digit());
        let is_alone = before.is_empty() || before.ends_with('-');
        let is_major = major.chars().all(|c| c.is_ascii_digit());
        (is_alone && is_major && is_number(rest)).then_some(version)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_servers_print() {
        for (printed, version) in [
            (
                "BIND 9.18.33-1~deb12u2-Debian (Extended Support Version) <id:>",
                "9.18.33-1~deb12u2-Debian",
            ),
            ("Version 1.17.1\n\nConfigure line: --build=x86_64", "1.17.1"),
            ("knotd (Knot DNS), version 3.2.6\n", "3.2.6"),
            ("CoreDNS-1.12.1\nlinux/amd64, go1.24.2, 707c7c1", "1.12.1"),
            ("dnsdist 1.7.3 (Lua 5.1.4 [LuaJIT 2.1.0])", "1.7.3"),
            (
                "HAProxy version 2.6.12-1+deb12u2 2025/04/28",
                "2.6.12-1+deb12u2",
            ),
            ("NSD version 4.6.1\nWritten by NLnet Labs.", "4.6.1"),
        ] {
            assert_eq!(version_in(printed), Some(version));
        }
        assert_eq!(version_in("x86_64 v7 of today."), None);
    }
}
