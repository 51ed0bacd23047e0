//! Files of a crate that know each other in a circle: none of them can be read or changed alone.
//!
//! A file knows another one if a path in it leads to something that the other one defines. What a
//! module only passes on (`pub use`) counts for the file that defines it, so that a circle cannot
//! hide behind it.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::{File, Offence, Repository};
use crate::source::{Source, without_tests};

/// The most files of a circle.
const FILES_MAX: usize = 5;
/// Names that are passed on so often are not followed any further.
const STEPS_MAX: usize = 8;

/// The place of a file among the modules of its crate; none for the root's.
type Module = Vec<String>;

/// A path of names, and the name under which it is used.
struct Import {
    path: Vec<String>,
    name: String,
    is_passed_on: bool,
}

/// The files of one crate without tests, and what each has in it.
#[derive(Default)]
struct Crate {
    files: BTreeMap<Module, Content>,
}

/// What of a file's text has to do with others.
struct Content {
    path: String,
    imports: Vec<Import>,
    /// Paths outside of imports.
    mentions: Vec<Vec<String>>,
}

/// No circle has more than [`FILES_MAX`] files.
pub(crate) fn circles(repository: &Repository) -> Vec<Offence> {
    let mut crates: BTreeMap<&str, Crate> = BTreeMap::new();
    for file in &repository.files {
        if let (Some(name), Some(module)) = (file.crate_name(), module_of(file)) {
            let files = &mut crates.entry(name).or_default().files;
            files.insert(module, content(file));
        }
    }
    crates.values().flat_map(Crate::offences).collect()
}

/// None for tests and for what is no source.
fn module_of(file: &File) -> Option<Module> {
    let (_, path) = file.path.split_once("/src/")?;
    let mut module: Module = path
        .strip_suffix(".rs")?
        .split('/')
        .map(str::to_owned)
        .collect();
    if module.iter().any(|name| name.starts_with("tests")) {
        return None;
    }
    if module == ["lib"] || module == ["main"] || module.last().is_some_and(|it| it == "mod") {
        module.pop();
    }
    Some(module)
}

fn content(file: &File) -> Content {
    let code = without_tests(&Source::of(&file.text).code);
    let mut reader = Reader {
        words: words(&code),
        at: 0,
    };
    let (mut imports, mut mentions, mut depth) = (Vec::new(), Vec::new(), 0);
    while let Some(word) = reader.next() {
        match word {
            "{" => depth += 1,
            "}" => depth -= 1,
            // `use<'a>` of a type imports nothing.
            "use" if !reader.is_before("<") => {
                let is_passed_on = reader.is_public();
                let mut all = reader.import(&[]);
                // Of a module within the file, `super` is the file itself.
                all.retain(|it| depth == 0 || it.path.first().is_none_or(|name| name != "super"));
                let all = all.into_iter();
                imports.extend(all.map(|it| Import { is_passed_on, ..it }));
            }
            word if is_name(word) => {
                let path = reader.path(word);
                if path.len() > 1 {
                    mentions.push(path);
                }
            }
            _ => {}
        }
    }
    Content {
        path: file.path.clone(),
        imports,
        mentions,
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}

/// Names, `::`, and every other sign by itself.
fn words(code: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let length = match is_part(first) {
            true => rest.find(|letter| !is_part(letter)).unwrap_or(rest.len()),
            false if rest.starts_with("::") => 2,
            false => first.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        words.push(word);
        rest = after.trim_start();
    }
    words
}

struct Reader<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word
    }

    fn is_before(&self, word: &str) -> bool {
        self.words.get(self.at) == Some(&word)
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_there = self.is_before(word);
        self.at += usize::from(is_there);
        is_there
    }

    /// True if the word that was read has `pub` or `pub(...)` before it.
    fn is_public(&self) -> bool {
        let before = &self.words[..self.at - 1];
        let before = match before.last() {
            Some(&")") => before.rsplit(|word| *word == "(").nth(1).unwrap_or(&[]),
            _ => before,
        };
        before.last() == Some(&"pub")
    }

    /// The rest of a path that begins with `first`.
    fn path(&mut self, first: &str) -> Vec<String> {
        let mut path = vec![first.to_owned()];
        while self.words.get(self.at) == Some(&"::") {
            match self.words.get(self.at + 1) {
                Some(name) if is_name(name) => path.push((*name).to_owned()),
                _ => break,
            }
            self.at += 2;
        }
        path
    }

    /// What stands between `use` and its semicolon, after `before`.
    fn import(&mut self, before: &[String]) -> Vec<Import> {
        let mut path = before.to_vec();
        let mut name = String::new();
        let mut all = Vec::new();
        while let Some(word) = self.next() {
            match word {
                "::" => {}
                "{" => {
                    while !self.takes("}") {
                        let before = self.at;
                        all.extend(self.import(&path));
                        self.takes(",");
                        // It is no list of an import, or has no end.
                        if self.at <= before || self.at >= self.words.len() {
                            break;
                        }
                    }
                    return all;
                }
                "as" => name = self.next().unwrap_or_default().to_owned(),
                "," | "}" | ";" => {
                    // A list goes on, or ends, where it began.
                    self.at -= 1;
                    break;
                }
                // In a list: what the list is of.
                "self" if !path.is_empty() => {}
                word => path.push(word.to_owned()),
            }
        }
        if name.is_empty() {
            name = path.last().cloned().unwrap_or_default();
        }
        all.push(Import {
            path,
            name,
            is_passed_on: false,
        });
        all
    }
}

impl Crate {
    fn offences(&self) -> Vec<Offence> {
        let known: BTreeMap<&Module, BTreeSet<Module>> = self
            .files
            .keys()
            .map(|module| (module, self.known_by(module)))
            .collect();
        let reached: BTreeMap<&Module, BTreeSet<Module>> = (self.files.keys())
            .map(|module| (module, reached(&known, module)))
            .collect();
        let mut told: BTreeSet<&Module> = BTreeSet::new();
        let mut offences = Vec::new();
        for module in self.files.keys() {
            let circle: Vec<&Module> = (self.files.keys())
                .filter(|other| {
                    reached[module].contains(*other) && reached[*other].contains(module)
                })
                .collect();
            if circle.len() > FILES_MAX && told.insert(circle[0]) {
                offences.push(self.offence(&circle, &known));
            }
        }
        offences
    }

    fn offence(&self, circle: &[&Module], known: &BTreeMap<&Module, BTreeSet<Module>>) -> Offence {
        let path = |module: &Module| self.files[module].path.as_str();
        let each = circle.iter().map(|module| {
            let of_circle = known[module].iter().filter(|it| circle.contains(it));
            let others: Vec<&str> = of_circle.map(path).collect();
            format!("\n    {} knows {}", path(module), others.join(", "))
        });
        Offence {
            path: path(circle[0]).to_owned(),
            line: 1,
            what: format!(
                "{} files know each other in a circle, at most {FILES_MAX}{}",
                circle.len(),
                each.collect::<String>()
            ),
            cure: "move what two of them need into a file that needs neither",
        }
    }

    /// The files whose definitions this one uses.
    fn known_by(&self, module: &Module) -> BTreeSet<Module> {
        let content = &self.files[module];
        let imports = content.imports.iter().filter(|it| !it.is_passed_on);
        let paths = imports.map(|it| &it.path).chain(&content.mentions);
        let mut known: BTreeSet<Module> = paths
            .filter_map(|path| self.defined(module, path, 0))
            .collect();
        known.remove(module);
        known
    }

    /// The file that defines what a path in `module` leads to; none outside of the crate.
    fn defined(&self, module: &Module, path: &[String], steps: usize) -> Option<Module> {
        let (mut at, mut rest) = self.begin(module, path)?;
        while let Some(name) = rest.first() {
            let inner = [&at[..], std::slice::from_ref(name)].concat();
            if !self.files.contains_key(&inner) {
                break;
            }
            (at, rest) = (inner, &rest[1..]);
        }
        let imports = self.files.get(&at).map(|content| &content.imports)?;
        let import = rest.first().and_then(|name| {
            let mut all = imports.iter();
            all.find(|it| it.name == *name)
        });
        match import {
            Some(import) if steps < STEPS_MAX => self.defined(&at, &import.path, steps + 1),
            _ => Some(at),
        }
    }

    /// Where a path begins, and what of it follows.
    fn begin<'a>(&self, module: &Module, path: &'a [String]) -> Option<(Module, &'a [String])> {
        let (first, rest) = path.split_first()?;
        let of_own = || [&module[..], std::slice::from_ref(first)].concat();
        match first.as_str() {
            "crate" => Some((Module::new(), rest)),
            "self" => Some((module.clone(), rest)),
            "super" => {
                let ups = path.iter().take_while(|name| *name == "super").count();
                let length = module.len().checked_sub(ups)?;
                Some((module[..length].to_vec(), &path[ups..]))
            }
            _ if self.files.contains_key(&of_own()) => Some((module.clone(), path)),
            _ => None,
        }
    }
}

/// All files that one leads to, itself only by way of others.
fn reached(known: &BTreeMap<&Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&Module> = known[from].iter().collect();
    while let Some(module) = waiting.pop() {
        if reached.insert(module.clone()) {
            waiting.extend(known.get(module).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate of these files, each with its text.
    fn found(files: &[(&str, &str)]) -> Vec<Offence> {
        let file = |(name, text): &(&str, &str)| File::new(format!("crates/x/src/{name}"), *text);
        let files = files.iter().map(file).collect();
        circles(&Repository { files })
    }

    /// Files `a`, `b`, ... of which each knows the next, and the last the first.
    fn ring(size: usize, knows: impl Fn(char) -> String) -> Vec<(String, String)> {
        let names: Vec<char> = ('a'..='z').take(size).collect();
        let next = |index: usize| names[(index + 1) % size];
        let file = |(index, name): (usize, &char)| (format!("{name}.rs"), knows(next(index)));
        names.iter().enumerate().map(file).collect()
    }

    fn offences(files: &[(String, String)]) -> Vec<Offence> {
        let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&a[..], &b[..])).collect();
        found(&files)
    }

    #[test]
    fn a_circle_of_five_files_is_allowed_and_one_of_six_is_not() {
        let uses = |next: char| format!("use crate::{next}::Of{next};\n");
        assert_eq!(offences(&ring(5, uses)), []);
        let six = offences(&ring(6, uses));
        assert_eq!(six.len(), 1);
        assert!(six[0].what.starts_with("6 files"), "{six:?}");
        let mentions = |next: char| format!("fn f() {{ crate::{next}::g(); }}\n");
        assert_eq!(offences(&ring(6, mentions)).len(), 1);
        let lists =
            |next: char| format!("use super::{{{next}::{{Of{next}, Other as It}}, std}};\n");
        assert_eq!(offences(&ring(6, lists)).len(), 1);
    }

    #[test]
    fn what_is_passed_on_counts_for_the_file_that_defines_it() {
        let mut files = ring(6, |next| format!("use crate::Of{next};\n"));
        let passed = ('a'..='f').map(|name| format!("pub use {name}::Thing as Of{name};\n"));
        files.push(("lib.rs".to_owned(), passed.collect()));
        let found = offences(&files);
        assert_eq!(found.len(), 1);
        assert!(found[0].what.starts_with("6 files"), "{found:?}");
    }

    #[test]
    fn comments_tests_and_other_crates_are_no_knowledge() {
        let comment = |next: char| format!("// use crate::{next}::Thing;\nuse serde::{next};\n");
        assert_eq!(offences(&ring(6, comment)), []);
        let test =
            |next: char| format!("#[cfg(test)]\nmod tests {{\n    use crate::{next}::Thing;\n}}\n");
        assert_eq!(offences(&ring(6, test)), []);
        // A chain is no circle.
        let mut chain = ring(7, |next| format!("use crate::{next}::Thing;\n"));
        chain.pop();
        assert_eq!(offences(&chain), []);
    }

    #[test]
    fn what_a_type_captures_is_no_import() {
        let captures = "fn f<'a>() -> impl Iterator<Item = u8> + use<'a> { crate::b::g(); }\n";
        let known = [("a.rs", captures), ("b.rs", "use { crate::a::f; }\n")];
        assert_eq!(found(&known), []);
    }
}
