//! What a fleet asks of `kubectl`, where the API server is too busy to answer; a script takes the
//! place of `kubectl`.

use std::path::Path;

use serde_json::Value;
use testing::folder::Folder;
use testing::program::{Finished, execute};

use crate::process::throng;

/// Answers the commands by their number; `ANSWERS` has those of `create`. `made` is what there is,
/// as `get` prints it, `asked-N` what `create` was given.
const KUBECTL: &str = r#"#!/bin/bash
cd FOLDER
echo "$*" >>commands
input=$(cat)
# The first object of a list.
first=${input#'{"apiVersion":"v1","items":['}
first=${first%%'},{"apiVersion":"'*}}
first=${first%'],"kind":"List"}}'}
there() { printf '%s' "${1/'"metadata":{'/'"metadata":{"uid":"number-1",'}" >>made; }
fails() { echo "$1" >&2; exit 1; }
case $* in
  *' create '*)
    number=$(($(cat number 2>/dev/null) + 1))
    echo $number >number
    printf '%s' "$input" >asked-$number
    case $number in ANSWERS esac ;;
  *' get --filename'*) cat made 2>/dev/null || : ;;
  *' get jobs,pods '*) fails 'Error from server (Forbidden): pods is forbidden' ;;
esac
"#;

/// Runs a fleet with such a `kubectl`.
fn fleet(folder: &Folder, answers: &str) -> Finished {
    let script = KUBECTL.replace("ANSWERS", answers);
    let script = script.replace("FOLDER", &folder.path(""));
    let kubectl = folder.write("kubectl", script);
    execute(&format!("chmod +x {kubectl}")).succeeded();
    throng(&format!(
        "fleet run --kubectl {kubectl} --name busy --image throng:1 --agents 2 -- \
         run --server 192.0.2.1 --random-labels example --rate 10 --duration 1s"
    ))
}

/// The objects that an attempt was to make.
fn asked(folder: &Folder, number: u32) -> Vec<Value> {
    let list = std::fs::read(folder.path(&format!("asked-{number}"))).unwrap();
    let list: Value = serde_json::from_slice(&list).unwrap();
    list["items"].as_array().unwrap().clone()
}

fn names(objects: &[Value]) -> Vec<String> {
    let name = |it: &Value| format!("{}/{}", it["kind"], it["metadata"]["name"]).replace('"', "");
    objects.iter().map(name).collect()
}

fn marks(objects: &[Value]) -> Vec<&Value> {
    let marks = objects.iter().map(|it| &it["metadata"]["annotations"]);
    marks.collect()
}

#[test]
fn objects_are_made_once_where_answers_are_lost() {
    let folder = Folder::new("kubectl-busy");
    let answers = r#"
      1) fails 'Unable to connect to the server: net/http: TLS handshake timeout' ;;
      2) there "$first"; fails 'Error from server (Timeout): the server did not answer in time' ;;
      3) there "$first"; fails 'Error from server: etcdserver: request timed out' ;;
      *) printf '%s' "$input" ;;"#;
    let finished = fleet(&folder, answers);
    let said = &finished.stderr;
    assert!(said.contains("run busy: "), "{said}");
    assert!(said.contains("(Forbidden): pods is forbidden"), "{said}");
    let attempts: Vec<Vec<Value>> = (1..=4).map(|number| asked(&folder, number)).collect();
    assert_eq!(names(&attempts[0]), ["Job/busy-lead"]);
    assert_eq!(attempts[1], attempts[0]);
    // All others, then those that are missing, as they were.
    let [first, missing @ ..] = attempts[2].as_slice() else {
        panic!("{attempts:?}");
    };
    assert_eq!(attempts[3], missing);
    assert_eq!(missing.len(), 4, "{:?}", names(missing));
    assert!(!Path::new(&folder.path("asked-5")).exists());
    let mut all = marks(&attempts[2]);
    all.dedup();
    assert_eq!(all.len(), 1, "{all:?}");
    assert_ne!(all, marks(&attempts[0]));
    // The owner is the object that there was, though its making had no answer.
    let owner = &first["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["uid"], &owner["name"]),
        (&"number-1".into(), &"busy-lead".into())
    );
}

#[test]
fn objects_of_another_run_are_not_taken_for_lost_ones() {
    let folder = Folder::new("kubectl-other");
    let other = r#"{"kind":"Job","metadata":{"name":"busy-lead","annotations":{}}}"#;
    folder.write("made", other);
    let answers = r#"
      1) fails 'Error from server (ServiceUnavailable): the server cannot handle the request' ;;
      *) fails 'Error from server (AlreadyExists): jobs.batch "busy-lead" already exists' ;;"#;
    let finished = fleet(&folder, answers);
    let said = &finished.stderr;
    assert!(said.contains("AlreadyExists"), "{said}");
    assert_ne!(finished.code, Some(0));
    let commands = std::fs::read_to_string(folder.path("commands")).unwrap();
    assert_eq!(commands.matches(" create ").count(), 2, "{commands}");
    assert!(!commands.contains("delete"), "{commands}");
}

#[test]
fn what_is_refused_is_not_asked_again() {
    let folder = Folder::new("kubectl-refused");
    let answers = "*) fails 'Error from server (Forbidden): jobs.batch is forbidden' ;;";
    let finished = fleet(&folder, answers);
    assert_ne!(finished.code, Some(0));
    let commands = std::fs::read_to_string(folder.path("commands")).unwrap();
    assert_eq!(commands.lines().count(), 1, "{commands}");
}
