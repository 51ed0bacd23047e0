//! Lua's patterns, with a bound on the work: matches like LuaJIT's `string.find`, but counts each
//! step. LuaJIT's functions are single instructions however long they backtrack.
//!
//! Described in the manual of Lua 5.1, section 5.4.1; `%f` and `%g` as LuaJIT has them. Classes are
//! those of ASCII.

/// Most captures of a pattern, as in Lua.
const CAPTURES_MAX: usize = 32;
/// Deepest nesting of a match, as in LuaJIT.
const DEPTH_MAX: u32 = 200;
/// Octets that are compared in the time of a step.
const OCTETS_PER_STEP: usize = 16;

/// Why a match could not be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The pattern is malformed, for this reason.
    Malformed(&'static str),
    /// All steps were taken.
    Exhausted,
}

/// A match, or a capture within it. Octets count from 0, and the end is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    /// A part of the subject.
    Part(usize, usize),
    /// `()`: a position in the subject.
    Place(usize),
    /// It was opened and not closed yet.
    Open(usize),
}

/// Where to look for a match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search<'a> {
    pub(crate) subject: &'a [u8],
    pub(crate) pattern: &'a [u8],
    /// The first octet that it may begin with.
    pub(crate) from: usize,
    /// `^` is an ordinary octet and not an anchor, as in `gmatch`.
    pub(crate) caret_is_plain: bool,
}

impl Search<'_> {
    /// The first match, then its captures; empty if there is none. Subtracts from `steps`.
    ///
    /// # Errors
    /// The evaluated part of the pattern is malformed, or no step is left.
    pub(crate) fn run(&self, steps: &mut u64) -> Result<Vec<Capture>, Fault> {
        let is_anchored = !self.caret_is_plain && self.pattern.first() == Some(&b'^');
        let mut matching = Matching {
            subject: self.subject,
            pattern: self.pattern,
            captures: Vec::new(),
            depth: 0,
            steps: *steps,
        };
        let first = usize::from(is_anchored);
        let mut start = self.from;
        let found = loop {
            matching.captures.clear();
            match matching.at(start, first) {
                Ok(Some(end)) => break Ok(Some(end)),
                Ok(None) if is_anchored || start >= self.subject.len() => break Ok(None),
                Ok(None) => start += 1,
                Err(fault) => break Err(fault),
            }
        };
        *steps = matching.steps;
        let Some(end) = found? else {
            return Ok(Vec::new());
        };
        if matching
            .captures
            .iter()
            .any(|it| matches!(it, Capture::Open(_)))
        {
            return Err(Fault::Malformed("unfinished capture"));
        }
        matching.captures.insert(0, Capture::Part(start, end));
        Ok(matching.captures)
    }
}

struct Matching<'a> {
    subject: &'a [u8],
    pattern: &'a [u8],
    captures: Vec<Capture>,
    depth: u32,
    steps: u64,
}

/// The result of an item that is not a repetition.
enum Next {
    /// The match continues at this position in the subject and in the pattern.
    Go(usize, usize),
    /// It has ended so.
    End(Option<usize>),
}

impl Matching<'_> {
    fn take(&mut self, steps: usize) -> Result<(), Fault> {
        match self.steps.checked_sub(steps as u64) {
            Some(left) => self.steps = left,
            None => return Err(Fault::Exhausted),
        }
        Ok(())
    }

    /// The end of the match of the pattern from `p` on with the subject from `s` on.
    fn at(&mut self, s: usize, p: usize) -> Result<Option<usize>, Fault> {
        if self.depth == DEPTH_MAX {
            return Err(Fault::Malformed("pattern too complex"));
        }
        self.depth += 1;
        let ended = self.items(s, p);
        self.depth -= 1;
        ended
    }

    fn items(&mut self, mut s: usize, mut p: usize) -> Result<Option<usize>, Fault> {
        loop {
            self.take(1)?;
            let Some(&item) = self.pattern.get(p) else {
                return Ok(Some(s));
            };
            let next = match (item, self.pattern.get(p + 1)) {
                (b'(', Some(b')')) => Next::End(self.capture(Capture::Place(s), (s, p + 2))?),
                (b'(', _) => Next::End(self.capture(Capture::Open(s), (s, p + 1))?),
                (b')', _) => Next::End(self.close(s, p + 1)?),
                (b'$', None) => Next::End((s == self.subject.len()).then_some(s)),
                (b'%', Some(b'b')) => self.balanced(s, p + 2)?,
                (b'%', Some(b'f')) => self.frontier(s, p + 2)?,
                (b'%', Some(digit @ b'0'..=b'9')) => self.again(s, (p + 2, *digit))?,
                _ => self.single(s, p)?,
            };
            match next {
                Next::Go(to_s, to_p) => (s, p) = (to_s, to_p),
                Next::End(ended) => return Ok(ended),
            }
        }
    }

    /// An item of one octet, repeated as its suffix requires.
    fn single(&mut self, s: usize, p: usize) -> Result<Next, Fault> {
        let end = self.class_end(p)?;
        let fits = self.fits(s, (p, end))?;
        Ok(match self.pattern.get(end) {
            Some(b'?') => {
                if fits && let Some(ended) = self.at(s + 1, end + 1)? {
                    return Ok(Next::End(Some(ended)));
                }
                Next::Go(s, end + 1)
            }
            Some(b'*') => Next::End(self.most(s, (p, end))?),
            Some(b'+') if fits => Next::End(self.most(s + 1, (p, end))?),
            Some(b'-') => Next::End(self.fewest(s, (p, end))?),
            Some(b'+') => Next::End(None),
            _ if fits => Next::Go(s + 1, end),
            _ => Next::End(None),
        })
    }

    fn most(&mut self, s: usize, (p, end): (usize, usize)) -> Result<Option<usize>, Fault> {
        let mut last = s;
        while self.fits(last, (p, end))? {
            last += 1;
        }
        for from in (s..=last).rev() {
            if let Some(ended) = self.at(from, end + 1)? {
                return Ok(Some(ended));
            }
        }
        Ok(None)
    }

    fn fewest(&mut self, mut s: usize, (p, end): (usize, usize)) -> Result<Option<usize>, Fault> {
        loop {
            if let Some(ended) = self.at(s, end + 1)? {
                return Ok(Some(ended));
            }
            if !self.fits(s, (p, end))? {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn capture(
        &mut self,
        capture: Capture,
        (s, p): (usize, usize),
    ) -> Result<Option<usize>, Fault> {
        if self.captures.len() == CAPTURES_MAX {
            return Err(Fault::Malformed("too many captures"));
        }
        let before = self.captures.len();
        self.captures.push(capture);
        let ended = self.at(s, p)?;
        if ended.is_none() {
            self.captures.truncate(before);
        }
        Ok(ended)
    }

    fn close(&mut self, s: usize, p: usize) -> Result<Option<usize>, Fault> {
        let mut open = self.captures.iter().enumerate().rev();
        let open = open.find_map(|(index, capture)| match capture {
            Capture::Open(start) => Some((index, *start)),
            _ => None,
        });
        let (index, start) = open.ok_or(Fault::Malformed("invalid pattern capture"))?;
        self.captures[index] = Capture::Part(start, s);
        let ended = self.at(s, p)?;
        if ended.is_none() {
            self.captures[index] = Capture::Open(start);
        }
        Ok(ended)
    }

    /// `%bxy`.
    fn balanced(&mut self, s: usize, p: usize) -> Result<Next, Fault> {
        let [opens, closes] = *self
            .pattern
            .get(p..p + 2)
            .and_then(|both| both.first_chunk())
            .ok_or(Fault::Malformed("unbalanced pattern"))?;
        if self.subject.get(s) != Some(&opens) {
            return Ok(Next::End(None));
        }
        let mut depth = 1;
        for at in s + 1..self.subject.len() {
            self.take(1)?;
            let octet = self.subject[at];
            if octet == closes {
                depth -= 1;
                if depth == 0 {
                    return Ok(Next::Go(at + 1, p + 2));
                }
            } else if octet == opens {
                depth += 1;
            }
        }
        Ok(Next::End(None))
    }

    /// `%f[set]`.
    fn frontier(&mut self, s: usize, p: usize) -> Result<Next, Fault> {
        if self.pattern.get(p) != Some(&b'[') {
            return Err(Fault::Malformed("missing '[' after '%f' in pattern"));
        }
        let end = self.class_end(p)?;
        self.take((end - p) / OCTETS_PER_STEP)?;
        let octet = |at: Option<usize>| at.and_then(|at| self.subject.get(at)).copied();
        let before = octet(s.checked_sub(1)).unwrap_or(0);
        let here = octet(Some(s)).unwrap_or(0);
        let set = &self.pattern[p..end];
        Ok(match !is_in_set(before, set) && is_in_set(here, set) {
            true => Next::Go(s, end),
            false => Next::End(None),
        })
    }

    /// `%1`: a back reference.
    fn again(&mut self, s: usize, (p, digit): (usize, u8)) -> Result<Next, Fault> {
        let index = usize::from(digit - b'0').checked_sub(1);
        let Some(Capture::Part(start, end)) = index.and_then(|it| self.captures.get(it)) else {
            return Err(Fault::Malformed("invalid capture index"));
        };
        let (start, end) = (*start, *end);
        self.take((end - start) / OCTETS_PER_STEP)?;
        Ok(
            match self.subject[s..].starts_with(&self.subject[start..end]) {
                true => Next::Go(s + end - start, p),
                false => Next::End(None),
            },
        )
    }

    /// Where the item ends that begins at `p` and stands for one octet.
    fn class_end(&self, p: usize) -> Result<usize, Fault> {
        let missing = Fault::Malformed("malformed pattern (missing ']')");
        match self.pattern[p] {
            b'%' if p + 1 == self.pattern.len() => {
                Err(Fault::Malformed("malformed pattern (ends with '%')"))
            }
            b'%' => Ok(p + 2),
            b'[' => {
                let mut at = p + 1;
                at += usize::from(self.pattern.get(at) == Some(&b'^'));
                // The first character belongs to the set, even a bracket.
                loop {
                    let octet = *self.pattern.get(at).ok_or(missing)?;
                    at += if octet == b'%' { 2 } else { 1 };
                    match self.pattern.get(at) {
                        Some(b']') => return Ok(at + 1),
                        Some(_) => {}
                        None => return Err(missing),
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// True if there is an octet at `s` that the item at `p..end` stands for.
    fn fits(&mut self, s: usize, (p, end): (usize, usize)) -> Result<bool, Fault> {
        self.take(1 + (end - p) / OCTETS_PER_STEP)?;
        let Some(&octet) = self.subject.get(s) else {
            return Ok(false);
        };
        Ok(match self.pattern[p] {
            b'.' => true,
            b'%' => is_of_class(octet, self.pattern[p + 1]),
            b'[' => is_in_set(octet, &self.pattern[p..end]),
            plain => plain == octet,
        })
    }
}

/// True if the class `%letter` has the octet.
fn is_of_class(octet: u8, letter: u8) -> bool {
    let is_in = match letter.to_ascii_lowercase() {
        b'a' => octet.is_ascii_alphabetic(),
        b'c' => octet.is_ascii_control(),
        b'd' => octet.is_ascii_digit(),
        b'g' => octet.is_ascii_graphic(),
        b'l' => octet.is_ascii_lowercase(),
        b'p' => octet.is_ascii_punctuation(),
        b's' => matches!(octet, b'\t'..=b'\r' | b' '),
        b'u' => octet.is_ascii_uppercase(),
        b'w' => octet.is_ascii_alphanumeric(),
        b'x' => octet.is_ascii_hexdigit(),
        b'z' => octet == 0,
        _ => return octet == letter,
    };
    is_in != letter.is_ascii_uppercase()
}

/// True if the set, with its brackets, has the octet.
fn is_in_set(octet: u8, set: &[u8]) -> bool {
    let mut inner = &set[1..set.len() - 1];
    let is_complement = inner.first() == Some(&b'^');
    if is_complement {
        inner = &inner[1..];
    }
    while let [first, rest @ ..] = inner {
        let is_in = match (first, rest) {
            (b'%', [letter, rest @ ..]) => {
                inner = rest;
                is_of_class(octet, *letter)
            }
            (low, [b'-', high, rest @ ..]) => {
                inner = rest;
                (*low..=*high).contains(&octet)
            }
            (plain, rest) => {
                inner = rest;
                *plain == octet
            }
        };
        if is_in {
            return !is_complement;
        }
    }
    is_complement
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(subject: &str, pattern: &str, steps: u64) -> Result<Vec<Capture>, Fault> {
        let search = Search {
            subject: subject.as_bytes(),
            pattern: pattern.as_bytes(),
            from: 0,
            caret_is_plain: false,
        };
        search.run(&mut { steps })
    }

    #[test]
    fn a_pattern_that_backtracks_takes_no_more_than_its_steps() {
        let subject = "a".repeat(60);
        let pattern = "a-".repeat(20) + "b";
        assert_eq!(run(&subject, &pattern, 100_000), Err(Fault::Exhausted));
        assert_eq!(run(&subject, "a*b", 100_000), Ok(Vec::new()));
        let optional = "a?".repeat(40) + "b";
        assert_eq!(run(&subject, &optional, 100_000), Err(Fault::Exhausted));
        let set = format!("[{}]*x", "b".repeat(1_000_000));
        assert_eq!(run(&subject, &set, 1_000), Err(Fault::Exhausted));
    }

    #[test]
    fn nothing_that_is_no_pattern_ends_in_a_panic() {
        for pattern in [
            "%", "[", "[^", "[%", "[]", "[a-", "(", ")", "%b", "%bx", "%f", "%1", "(%1)",
        ] {
            let ended = run("abc", pattern, 1_000);
            assert!(
                matches!(ended, Err(Fault::Malformed(_))),
                "{pattern}: {ended:?}"
            );
        }
        let deep = "(".repeat(31) + &"a?".repeat(300);
        let ended = run(&"a".repeat(400), &deep, 1_000_000);
        assert!(matches!(ended, Err(Fault::Malformed(_))), "{ended:?}");
    }
}
