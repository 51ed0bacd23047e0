//! Words as a shell takes them.

/// One word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-._/:,+@%=".contains(&octet);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_spaces_and_quotes_survive_a_shell() {
        assert_eq!(quoted("/tmp/records.txt"), "/tmp/records.txt");
        assert_eq!(quoted("it's here"), r"'it'\''s here'");
        assert_eq!(quoted(""), "''");
    }
}
