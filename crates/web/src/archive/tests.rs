//! Pages of a folder of records: what they escape, refuse and survive.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use history::{Filter, PAGE_ROWS};
use measure::RunRecord;
use testing::example;
use testing::folder::Folder;

use super::pages::{Links, Made, content_security_policy};
use super::question::Question;
use super::store::Store;

fn record(started_at: &str, label: &str) -> RunRecord {
    let mut record = example::record(vec![example::interval(0, &[(1_000_000, 500)])]);
    record.self_test = false;
    record.started_at = started_at.to_owned();
    let labels = &mut record.scenario.labels;
    labels.insert("version".to_owned(), label.to_owned());
    record
}

/// Two runs; the second one is the newest.
fn furnished(test: &str) -> Folder {
    let folder = Folder::new(test);
    for (file, day) in [("a.json", "01"), ("b.json", "02")] {
        let started = format!("2026-02-{day}T09:00:00Z");
        folder.write(file, record(&started, "1.0").to_json());
    }
    folder
}

fn get_with(folder: &Folder, target: &str, links: &Links) -> Made {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let store = Store::open(folder.folder()).unwrap();
    match Question::parse(path, query) {
        Ok(question) => store.answer(&question, links),
        Err(wrong) => wrong.page(links),
    }
}

fn get(folder: &Folder, target: &str) -> Made {
    get_with(folder, target, &Links::default())
}

/// The numbers of the runs on a page, in its order.
fn ids(html: &str) -> Vec<i64> {
    let links = html.split("href=\"/record/").skip(1);
    let ids = links.map(|it| it.split(['"', '?']).next().unwrap().parse().unwrap());
    ids.collect()
}

/// What each page has, whatever it is about.
#[track_caller]
fn assert_is_page(html: &str) {
    for part in [
        "<html lang=\"en\">",
        "<main>",
        "<h1>",
        "<title>",
        "name=\"viewport\"",
    ] {
        assert_eq!(html.matches(part).count(), 1, "{part} {html}");
    }
    for wrong in [
        "<script",
        " style=",
        " onclick=",
        "src=",
        "http://",
        "https://",
    ] {
        assert!(!html.contains(wrong), "{wrong} {html}");
    }
    let heads = html.matches("<th>").count() + html.matches("<th ").count();
    assert_eq!(heads, html.matches("<th scope=").count(), "{html}");
    // Each field has its label.
    for name in html
        .split("<select id=\"")
        .skip(1)
        .chain(html.split("type=\"search\" id=\"").skip(1))
    {
        let name = name.split('"').next().unwrap();
        assert!(html.contains(&format!("<label for=\"{name}\">")), "{name}");
    }
}

#[test]
fn list_has_the_newest_run_first_and_links_to_reports() {
    let folder = furnished("archive-list");
    let page = get(&folder, "/");
    assert_eq!(page.status, 200);
    assert_is_page(&page.html);
    let both = ids(&page.html);
    assert_eq!(both.len(), 2);
    assert!(page.html.find("b.json").unwrap() < page.html.find("a.json").unwrap());
    assert!(page.html.contains("2 runs, the newest first"));
    assert!(page.html.contains(">version=1.0<"), "{}", page.html);
    let some = get(&folder, "/?text=a.json");
    assert_eq!(ids(&some.html), both[1..]);
    assert!(some.html.contains("1 run matches"), "{}", some.html);
    let none = get(&folder, "/?transport=doq");
    assert_eq!(ids(&none.html), [0; 0]);
    assert!(none.html.contains("<option value=\"doq\" selected>"));
}

#[test]
fn report_of_a_run_is_that_of_its_file() {
    let folder = furnished("archive-report");
    let newest = ids(&get(&folder, "/").html)[0];
    let page = get(&folder, &format!("/record/{newest}"));
    let file = folder.folder().join("b.json").display().to_string();
    let record = RunRecord::from_json(&fs::read_to_string(&file).unwrap()).unwrap();
    let collection = report::Collection::new(vec![report::Source::new(file, record)]).unwrap();
    let document = report::several::document(&collection);
    assert_eq!(page, Made::page(report::html::render(&document)));
}

#[test]
fn comparison_has_the_headline_of_the_command() {
    let folder = furnished("archive-compare");
    let both = ids(&get(&folder, "/").html);
    let page = get(&folder, &format!("/compare?a={}&b={}", both[1], both[0]));
    assert_eq!(page.status, 200);
    assert!(page.html.contains("a.json") && page.html.contains("b.json"));
    assert!(page.html.contains("<h2>Metrics</h2>"), "{}", page.html);
    assert_eq!(get(&folder, "/compare?a=77&b=78").status, 404);
}

#[test]
fn runs_of_different_scenarios_are_compared_only_on_request() {
    let folder = furnished("archive-refused");
    let mut other = record("2026-02-03T09:00:00Z", "1.0");
    other.scenario.timeout_ns += 1;
    folder.write("c.json", other.to_json());
    let all = ids(&get(&folder, "/").html);
    let target = format!("/compare?a={}&b={}", all[1], all[0]);
    let page = get(&folder, &target);
    assert_is_page(&page.html);
    assert!(page.html.contains("cannot be compared"), "{}", page.html);
    assert!(page.html.contains("timeout"), "{}", page.html);
    assert!(page.html.contains("&amp;force=1"), "{}", page.html);
    let forced = get(&folder, &format!("{target}&force=1"));
    assert!(forced.html.contains("<h2>Metrics</h2>"), "{}", forced.html);
}

#[test]
fn trend_has_a_chart_and_the_same_figures_in_tables() {
    let folder = furnished("archive-trend");
    let page = get(&folder, "/trend?metric=p99&by=version");
    assert_is_page(&page.html);
    assert!(page.html.contains("<svg class=\"chart\""));
    assert_eq!(ids(&page.html).len(), 2);
    let value = "<td class=\"n\">1.0";
    assert!(page.html.matches(value).count() >= 2, "{}", page.html);
    let by = get(&folder, "/trend?metric=qps&by=no+such+fact");
    assert_eq!(by.status, 200);
    assert!(by.html.contains("(none)"), "{}", by.html);
    let none = get(&folder, "/trend?metric=wire.p99");
    assert!(none.html.contains("No run that matches"), "{}", none.html);
    assert_is_page(&none.html);
}

#[test]
fn what_records_and_requests_say_is_escaped() {
    let folder = Folder::new("archive-escape");
    let evil = "<script>alert(1)</script>\"'&";
    let mut record = record("2026-02-01T09:00:00Z", evil);
    record.scenario.target = evil.to_owned();
    record
        .scenario
        .labels
        .insert(evil.to_owned(), evil.to_owned());
    folder.write("<b>&\".json", record.to_json());
    folder.write("<i>.json", "{");
    let encoded = "%3Cscript%3Ealert%281%29%3C%2Fscript%3E%22%27%26";
    for target in [
        "/".to_owned(),
        format!("/?text={encoded}"),
        format!("/?transport={encoded}&limit={encoded}"),
        format!("/trend?by={encoded}&text={encoded}"),
        "/trend?by=target".to_owned(),
        "/record/1".to_owned(),
        "/compare?a=1&b=1".to_owned(),
        format!("/{encoded}"),
    ] {
        let page = get(&folder, &target);
        for wrong in ["<script", "<b>", "<i>", "\"'&\""] {
            assert!(
                !page.html.contains(wrong),
                "{target} {wrong}: {}",
                page.html
            );
        }
    }
    assert!(get(&folder, "/").html.contains("&lt;script&gt;"));
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let folder = furnished("archive-traversal");
    let outside = Folder::new("archive-outside");
    let secret = record("2026-02-05T09:00:00Z", "secret").to_json();
    symlink(
        outside.write("secret.json", secret),
        folder.path("link.json"),
    )
    .unwrap();
    for target in [
        "/record/../a.json",
        "/record/a.json",
        "/record/%2e%2e%2fa.json",
        "/a.json",
        "/index.sqlite",
    ] {
        assert_eq!(get(&folder, target).status, 404, "{target}");
    }
    let newest = ids(&get(&folder, "/").html)[0];
    let page = get(&folder, &format!("/record/{newest}"));
    assert_eq!(page.status, 500);
    assert_is_page(&page.html);
    assert!(
        page.html.contains("leads out of the folder"),
        "{}",
        page.html
    );
}

#[test]
fn records_that_change_after_the_list_was_made_are_errors_on_their_pages() {
    let folder = furnished("archive-changed");
    let store = Store::open(folder.folder()).unwrap();
    let links = Links::default();
    let list = Question::List {
        filter: Filter::default(),
        page: 1,
    };
    let [b, a] = ids(&store.answer(&list, &links).html)[..] else {
        panic!("two runs");
    };
    // Within the time in which the folder is not read again.
    let whole = fs::read_to_string(folder.path("a.json")).unwrap();
    let record_of = |id| store.answer(&Question::Record { id }, &links);
    for (content, words) in [
        (&whole[..whole.len() / 2], "cannot be read"),
        ("", "cannot be read"),
        ("{}", "cannot be read"),
        (
            &whole.replace("\"sent\":500", "\"sent\":501"),
            "cannot be read",
        ),
    ] {
        folder.write("a.json", content);
        let page = record_of(a);
        // Where the host was so slow that the folder was read again, there is no such run.
        let is_gone = page.status == 404 && page.html.contains("no run");
        let is_named = page.status == 500 && page.html.contains(words);
        assert!(is_gone || is_named, "{content} {}", page.html);
        assert_is_page(&page.html);
    }
    fs::remove_file(folder.path("b.json")).unwrap();
    for page in [
        record_of(b),
        store.answer(
            &Question::Compare {
                a: b,
                b,
                is_forced: false,
            },
            &links,
        ),
    ] {
        assert_eq!(page.status, 404);
        assert_is_page(&page.html);
    }
}

#[test]
fn record_that_lies_or_is_cut_is_listed_as_no_record() {
    let folder = furnished("archive-lies");
    let whole = fs::read_to_string(folder.path("a.json")).unwrap();
    folder.write("cut.json", &whole[..whole.len() / 2]);
    let mut lying = record("2026-02-05T09:00:00Z", "liar");
    lying.total.counts.responses += 1;
    folder.write("lying.json", lying.to_json());
    let page = get(&folder, "/");
    assert_eq!(ids(&page.html).len(), 2);
    let (_, rest) = page.html.split_once("not run records: 2").unwrap();
    assert!(
        rest.contains("cut.json: ") && rest.contains("lying.json: "),
        "{rest}"
    );
}

#[test]
fn empty_folder_says_how_to_fill_it_and_gone_folder_is_an_error() {
    let folder = Folder::new("archive-empty");
    let page = get(&folder, "/");
    assert_is_page(&page.html);
    assert!(page.html.contains("no run records"), "{}", page.html);
    assert!(page.html.contains("--record"), "{}", page.html);
    assert_eq!(get(&folder, "/record/1").status, 404);
    fs::create_dir(folder.path("gone")).unwrap();
    let store = Store::open(&folder.folder().join("gone")).unwrap();
    fs::remove_file(folder.path("gone/index.sqlite")).unwrap();
    fs::remove_dir(folder.path("gone")).unwrap();
    let page = store.answer(&Question::Record { id: 1 }, &Links::default());
    assert_eq!(page.status, 500);
    assert!(
        page.html.contains("Cannot read the folder"),
        "{}",
        page.html
    );
    assert!(Store::open(Path::new(&folder.path("gone"))).is_err());
}

#[test]
fn pages_of_the_list_are_linked_with_their_filter() {
    let folder = Folder::new("archive-pages");
    let json = record("2026-02-01T09:00:00Z", "x").to_json();
    for number in 0..=PAGE_ROWS {
        folder.write(&format!("{number:03}.json"), &json);
    }
    let first = get(&folder, "/?text=json");
    assert!(first.html.contains("Page 1 of 2"));
    assert!(
        first
            .html
            .contains("href=\"/?text=json&amp;page=2\">Older runs")
    );
    assert!(!first.html.contains("Newer runs"));
    assert_eq!(ids(&first.html).len() as u64, PAGE_ROWS);
    let last = get(&folder, "/?page=9");
    assert!(last.html.contains("Page 2 of 2"));
    assert!(last.html.contains("href=\"/?page=1\">Newer runs"));
    assert!(!last.html.contains("Older runs"));
}

#[test]
fn links_and_forms_carry_the_token() {
    let folder = furnished("archive-links");
    let links = Links::with_token("0123abcd");
    for target in ["/", "/trend", "/record/99", "/none", "/?page=x"] {
        let page = get_with(&folder, target, &links);
        let hrefs = page.html.split("<a href=\"").skip(1);
        for href in hrefs.map(|it| it.split('"').next().unwrap()) {
            assert!(href.ends_with("token=0123abcd"), "{target} {href}");
        }
        let forms = page.html.matches("<form ").count();
        let hidden = "<input type=\"hidden\" name=\"token\" value=\"0123abcd\">";
        assert_eq!(page.html.matches(hidden).count(), forms, "{target}");
    }
    assert!(!get(&folder, "/").html.contains("token"));
}

#[test]
fn policy_allows_the_two_styles_and_no_script() {
    let folder = furnished("archive-policy");
    let policy = content_security_policy();
    for target in ["/", "/trend", "/none", "/record/1"] {
        let html = get(&folder, target).html;
        for style in html.split("<style>").skip(1) {
            let style = style.split("</style>").next().unwrap();
            let digest = <sha2::Sha256 as sha2::Digest>::digest(style.as_bytes());
            let hash = data_encoding::BASE64.encode(&digest);
            assert!(policy.contains(&format!("'sha256-{hash}'")), "{target}");
        }
    }
    assert!(policy.contains("default-src 'none'") && policy.contains("form-action 'self'"));
    assert!(
        !policy.contains("script-src") && !policy.contains("unsafe"),
        "{policy}"
    );
}

#[test]
fn pages_say_how_far_the_first_reading_of_many_records_is() {
    let folder = Folder::new("archive-reading");
    for number in 0..501 {
        folder.write(&format!("{number}.json"), "{}");
    }
    let store = Store::open(folder.folder()).unwrap();
    let question = || Question::parse("/", "").ok().unwrap();
    store
        .update(|read, _| {
            if read == 7 {
                let made = store.answer(&question(), &Links::default());
                assert_eq!(made.status, 503);
                assert!(
                    made.html.contains("7 of 501 new records are read"),
                    "{}",
                    made.html
                );
                assert_is_page(&made.html);
            }
        })
        .unwrap();
    assert_eq!(store.answer(&question(), &Links::default()).status, 200);
}
