//! The guides as a site: each page is there, no link within it is dead, and its search finds words
//! without a server.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use testing::folder::Folder;
use testing::program::execute;
use testing::{browser, prepared};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Makes the site; its folder.
fn build(folder: &Folder) -> PathBuf {
    let mdbook = prepared::path("mdbook/bin/mdbook");
    let site = folder.path("site");
    let line = format!("{} build --dest-dir {site} {ROOT}", mdbook.display());
    let built = execute(&line);
    let log = format!("{}{}", built.stdout, built.stderr);
    built.succeeded();
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
    site.into()
}

/// The names of the files in a folder that end so, without that ending.
fn names(folder: &Path, ending: &str) -> BTreeSet<String> {
    let files = fs::read_dir(folder).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let stem = |name: String| name.strip_suffix(ending).map(str::to_owned);
    names.filter_map(stem).collect()
}

/// The values of an attribute in a page.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    let rest = page.split(start.as_str()).skip(1);
    rest.filter_map(|it| it.split('"').next()).collect()
}

/// Links of the page in a site that lead nowhere in it.
fn dead_links(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let links = [values(&text, "href"), values(&text, "src")].concat();
    let inside = links
        .into_iter()
        .filter(|link| !link.contains("://") && !link.starts_with("data:"));
    let is_dead = |link: &&str| {
        let (path, fragment) = link.split_once('#').unwrap_or((*link, ""));
        let target = match path {
            "" => page.to_owned(),
            path => page.parent().unwrap().join(path),
        };
        let is_there = |text: &str| values(text, "id").contains(&fragment);
        match fragment {
            "" => !target.is_file(),
            _ => !fs::read_to_string(&target).is_ok_and(|text| is_there(&text)),
        }
    };
    inside.filter(is_dead).map(str::to_owned).collect()
}

#[test]
fn site_has_each_guide_no_dead_link_and_a_search() {
    let folder = Folder::new("site");
    let site = build(&folder);
    let mut guides = names(&Path::new(ROOT).join("docs"), ".md");
    assert!(guides.remove("SUMMARY") && guides.remove("README"));
    let pages = names(&site, ".html");
    // Of mdBook: the first page, the contents for browsers without scripts, all pages in one.
    guides.extend(["index", "toc", "print"].map(str::to_owned));
    assert_eq!(pages, guides);
    for page in &pages {
        let dead = dead_links(&site.join(format!("{page}.html")));
        assert!(dead.is_empty(), "{page}: {dead:?}");
    }
    let scripts = names(&site, ".js");
    let has_index = scripts.iter().any(|name| name.starts_with("searchindex"));
    assert!(has_index, "{scripts:?}");
    // Without a server: as in the folder of a package.
    let url = format!("file://{}/index.html?search=coordinated", site.display());
    let found = browser::elements(&folder, &url, 10_000);
    let link = "href=\"pitfalls.html?highlight=coordinated#coordinated-omission\"";
    assert!(found.contains(link), "{found}");
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let folder = Folder::with(
        "site-links",
        &[
            (
                "a.html",
                "<a href=\"b.html\"> <a href=\"b.html#there\"> <a id=\"here\" href=\"#here\"> \
                 <img src=\"https://example.org/x.png\">",
            ),
            ("b.html", "<h2 id=\"there\">x</h2>"),
            (
                "c.html",
                "<a href=\"d.html\"> <a href=\"b.html#gone\"> <a href=\"#gone\"> \
                 <img src=\"x.png\"> <a href=\"../README.md\">",
            ),
        ],
    );
    let dead = |name: &str| dead_links(&folder.folder().join(name));
    assert_eq!(dead("a.html"), [""; 0]);
    let all = ["d.html", "b.html#gone", "#gone", "../README.md", "x.png"];
    assert_eq!(dead("c.html"), all);
}
