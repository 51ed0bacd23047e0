//! What the user may do in a namespace, asked before anything is made.

use anyhow::Context;
use serde_json::{Value, json};

use super::kubectl::Namespace;
use super::state::text;

/// Of a kind: API group, resource, sub-resource, and what is done with it.
type Right = (
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

/// All that a fleet takes.
const RIGHTS: [Right; 6] = [
    ("batch", "jobs", "", &["create", "get", "delete"]),
    ("", "pods", "", &["get", "list", "watch"]),
    ("", "pods", "log", &["get"]),
    ("", "pods", "exec", &["create"]),
    ("", "secrets", "", &["create"]),
    ("", "services", "", &["create"]),
];

/// A Role with all of that. It may read events too, which say why there are no pods, and `get`
/// what it may `exec`, by which newer versions of `kubectl` begin.
const ROLE: &str = r#"apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: throng, namespace: @NAMESPACE@ }
rules:
  - { apiGroups: [batch], resources: [jobs], verbs: [create, get, delete] }
  - { apiGroups: [""], resources: [pods], verbs: [get, list, watch] }
  - { apiGroups: [""], resources: [pods/log], verbs: [get] }
  - { apiGroups: [""], resources: [pods/exec], verbs: [create, get] }
  - { apiGroups: [""], resources: [secrets, services], verbs: [create] }
  - { apiGroups: [""], resources: [events], verbs: [list] }
"#;

/// The Role that gives a user all rights that a fleet takes, as a manifest; no cluster rights.
pub fn role(namespace: &str) -> String {
    ROLE.replace("@NAMESPACE@", namespace)
}

/// Refuses where something may not be done.
pub(super) fn check(namespace: &Namespace) -> anyhow::Result<()> {
    let reviews: Vec<Value> = reviews(&namespace.name).collect();
    let answered = namespace.create(&reviews).with_context(|| {
        format!(
            "the cluster does not say what may be done in namespace `{}`",
            namespace.name
        )
    })?;
    check_answers(&namespace.name, &answered)
}

fn reviews(namespace: &str) -> impl Iterator<Item = Value> {
    let each = RIGHTS
        .iter()
        .flat_map(|(group, resource, subresource, verbs)| {
            verbs
                .iter()
                .map(move |verb| (group, resource, subresource, verb))
        });
    each.map(move |(group, resource, subresource, verb)| {
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "namespace": namespace,
                "group": group,
                "resource": resource,
                "subresource": subresource,
                "verb": verb,
            }},
        })
    })
}

fn check_answers(namespace: &str, answered: &[Value]) -> anyhow::Result<()> {
    let asked = RIGHTS.iter().map(|(.., verbs)| verbs.len()).sum::<usize>();
    anyhow::ensure!(
        answered.len() == asked,
        "the cluster answers {} of {asked} questions about rights in namespace `{namespace}`",
        answered.len()
    );
    let missing: Vec<String> = answered.iter().filter_map(refused).collect();
    anyhow::ensure!(
        missing.is_empty(),
        "you may not {} in namespace `{namespace}`\nhint: somebody who may has to apply this Role \
         there, and bind it to you:\n{}",
        missing.join(", "),
        role(namespace)
    );
    Ok(())
}

/// What an answer does not allow, such as `create pods/exec`.
fn refused(answer: &Value) -> Option<String> {
    if answer["status"]["allowed"] == true {
        return None;
    }
    let attributes = &answer["spec"]["resourceAttributes"];
    let of = |name: &str| text(&attributes[name]);
    let subresource = match of("subresource") {
        "" => String::new(),
        subresource => format!("/{subresource}"),
    };
    Some(format!("{} {}{subresource}", of("verb"), of("resource")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(refused: &[&str]) -> Vec<Value> {
        let answer = |mut review: Value| {
            let attributes = review["spec"]["resourceAttributes"].clone();
            let of = |name: &str| attributes[name].as_str().unwrap().to_owned();
            let name = format!("{} {}/{}", of("verb"), of("resource"), of("subresource"));
            let is_refused = refused.contains(&name.trim_end_matches('/'));
            review["status"] = json!({"allowed": !is_refused});
            review
        };
        reviews("load").map(answer).collect()
    }

    #[test]
    fn each_missing_right_is_named_with_the_role_that_gives_it() {
        check_answers("load", &answers(&[])).unwrap();
        let refused = ["create jobs", "create pods/exec"];
        let error = check_answers("load", &answers(&refused)).unwrap_err();
        let error = error.to_string();
        let says = "you may not create jobs, create pods/exec in namespace `load`\nhint: ";
        assert!(error.starts_with(says), "{error}");
        assert!(error.contains("metadata: { name: throng, namespace: load }"));
    }

    #[test]
    fn the_role_has_every_right_that_is_asked_for() {
        let role = role("load");
        for (group, resource, subresource, verbs) in RIGHTS {
            let name = match subresource {
                "" => resource.to_owned(),
                subresource => format!("{resource}/{subresource}"),
            };
            let of_group = match group {
                "" => "apiGroups: [\"\"]".to_owned(),
                group => format!("apiGroups: [{group}]"),
            };
            let is_rule = |line: &&str| {
                let (_, after) = line.split_once("resources: [").unwrap_or_default();
                let names = after.split(']').next().unwrap_or_default();
                names.split(", ").any(|it| it == name) && line.contains(&of_group)
            };
            let rule = role.lines().find(is_rule).unwrap();
            let (_, given) = rule.split_once("verbs: ").unwrap();
            for verb in verbs {
                assert!(given.contains(verb), "{verb} {name}");
            }
        }
        // All of it in one namespace.
        assert!(role.contains("kind: Role\n") && !role.contains("ClusterRole"));
    }

    #[test]
    fn questions_that_are_not_answered_are_no_rights() {
        let error = check_answers("load", &answers(&[])[1..]).unwrap_err();
        assert!(error.to_string().contains("9 of 10"), "{error}");
    }
}
