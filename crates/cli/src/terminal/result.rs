//! Colours of a result where standard output is a terminal: what limited it, and losses.

use super::{Look, RESET};

/// The result of a run with colours; any other text as it is.
pub(crate) fn colored(text: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let Some((verdict, look)) = verdict(first) else {
        return text.to_owned();
    };
    let mut colored = first.replacen(verdict, &painted(verdict, look), 1);
    let mut are_losses_seen = false;
    for line in rest.split('\n') {
        colored.push('\n');
        match lost(line).filter(|_| !are_losses_seen) {
            Some(number) => {
                are_losses_seen = true;
                colored.push_str(&line.replacen(number, &painted(number, Look::Warning), 1));
            }
            None => colored.push_str(line),
        }
    }
    colored
}

/// What the first line says of the limit, and whether the figures are those of the target.
fn verdict(line: &str) -> Option<(&str, Look)> {
    const LIMIT: &str = "Limit: ";
    const UNDECIDED: &str = "Undecided";
    // Before it are words such as `Interrupted.`
    let is_verdict = |it: &str| it.starts_with(LIMIT) || it.starts_with(UNDECIDED);
    let sentence = line.split(". ").find(|it| is_verdict(it))?;
    let Some(limit) = sentence.strip_prefix(LIMIT) else {
        return Some((UNDECIDED, Look::Warning));
    };
    let end = limit.find([',', '.', ';', ' ']).unwrap_or(limit.len());
    let look = match &limit[..end] {
        "server" | "rate" => Look::Good,
        _ => Look::Warning,
    };
    Some((&sentence[..LIMIT.len() + end], look))
}

/// The number of losses in the row that has them, if it is not 0.
fn lost(line: &str) -> Option<&str> {
    let number = line.strip_prefix("  lost ")?.split_whitespace().next()?;
    (number != "0").then_some(number)
}

fn painted(text: &str, look: Look) -> String {
    format!("{}{text}{RESET}", look.escape())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_and_losses_have_colors() {
        for (text, expected) in [
            (
                "Limit: server. 9 qps\n\n  lost       1,000\n  lost 5\n",
                "\x1b[32mLimit: server\x1b[0m. 9 qps\n\n  lost       \x1b[33m1,000\x1b[0m\n  \
                 lost 5\n",
            ),
            (
                "Self-test. Limit: rate, the server kept up\n  lost 0  0 %\n",
                "Self-test. \x1b[32mLimit: rate\x1b[0m, the server kept up\n  lost 0  0 %\n",
            ),
            (
                "Limit: generator, not the server\n",
                "\x1b[33mLimit: generator\x1b[0m, not the server\n",
            ),
            (
                "Target gone. Undecided: limit unknown\n  lost 1\n",
                "Target gone. \x1b[33mUndecided\x1b[0m: limit unknown\n  lost \x1b[33m1\x1b[0m\n",
            ),
        ] {
            assert_eq!(colored(text), expected);
        }
    }

    #[test]
    fn other_texts_have_none() {
        for text in [
            "",
            "{\n  \"limit\": \"Limit: server\"\n}\n",
            "index,start\n1,2\n",
            "throng 0.1.0: run of Limit: server\n  lost 5\n",
        ] {
            assert_eq!(colored(text), text);
        }
    }
}
