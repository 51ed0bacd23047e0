//! What cannot be in the zones that servers under test serve.

use testing::folder::Folder;

use crate::call::throng;

#[test]
fn zones_that_a_server_cannot_have_are_refused_with_the_cure() {
    let folder = Folder::new("zones-refused");
    let plan = "repeat = 1\n[run]\nrate = 500\nqueries = 200\n[[server]]\nlabel = 'it'\n\
                product = 'bind'\ndata = 'zone:5,delegations=1'\n\
                [server.factors]\ninternet = '0ms/0ms/0ms'\n";
    let plan = folder.write("zones.toml", plan);
    let planned = throng(&format!("experiment plan {plan}"));
    assert_eq!(planned.code, Some(2), "{}", planned.stderr);
    assert!(
        planned.stderr.contains("closed Internet"),
        "{}",
        planned.stderr
    );
    let up = throng("lab up bind --data zone:5,sined");
    up.refused_with("no `sined`", "delegations=10 and signed");
}
