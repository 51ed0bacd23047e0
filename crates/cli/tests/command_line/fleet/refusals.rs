//! Who is not one of the fleet is told so, in a line, and nothing comes of it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use super::pieces::{Fleet, Heard, Made};
use crate::process::{THRONG, throng};

/// The fleet's keys made anew, so that there is another for an agent whose certificate has expired.
fn make_keys(folder: &str, expired: &str) {
    let mut params = CertificateParams::new(vec!["ca.throng.internal".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let sign = |folder: &str, side: &str, (usage, until): (ExtendedKeyUsagePurpose, i32)| {
        fs::create_dir_all(folder).unwrap();
        let name = format!("{side}.throng.internal");
        let mut params = CertificateParams::new(vec![name]).unwrap();
        params.extended_key_usages = vec![usage];
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &issuer).unwrap();
        for (file, text) in [
            ("ca.pem", authority.clone()),
            (&format!("{side}.pem"), signed.pem()),
            (&format!("{side}.key"), key.serialize_pem()),
        ] {
            fs::write(format!("{folder}/{file}"), text).unwrap();
        }
    };
    sign(folder, "lead", (ExtendedKeyUsagePurpose::ServerAuth, 2900));
    sign(folder, "agent", (ExtendedKeyUsagePurpose::ClientAuth, 2900));
    sign(
        expired,
        "agent",
        (ExtendedKeyUsagePurpose::ClientAuth, 2001),
    );
}

/// Checks that an agent ends with that code and one line of error.
fn refused(mut agent: Heard, code: i32, words: &str) {
    let (ended, stdout, stderr) = agent.ended();
    assert_eq!((ended, stdout.as_str()), (Some(code), ""), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("error: "), "{stderr}");
    assert!(stderr.contains(words), "no `{words}`: {stderr}");
}

#[test]
fn whoever_is_none_of_the_fleet_is_refused_in_a_line_and_the_lead_goes_on() {
    let made = Made {
        has_own_keys: Some(make_keys),
        ..Made::default()
    };
    let mut fleet = Fleet::with("refusals", &made);
    let (keys, expired) = (fleet.folder.path("keys"), fleet.folder.path("expired"));
    let foreign = fleet.folder.path("foreign");
    throng(&format!("fleet keys {foreign}")).succeeded();
    fleet.agents.push(fleet.agent(0));
    fleet.lead.wait_for("agent 1 is here");
    let no_lead = "is not this agent's lead: ";
    refused(fleet.agent_by(THRONG, &foreign, 1), 5, no_lead);
    fleet.lead.wait_for("refused 127.0.0.1");
    refused(fleet.agent_by(THRONG, &expired, 1), 5, no_lead);
    fleet.lead.wait_for("expired");
    let program = fleet.folder.path("throng");
    let octets = fs::read(THRONG).unwrap();
    fs::copy(THRONG, &program).unwrap();
    fs::write(&program, [octets.as_slice(), b"\0"].concat()).unwrap();
    let other = "its program (SHA-256) is";
    refused(fleet.agent_by(&program, &keys, 1), 5, other);
    fleet.lead.wait_for(other);
    refused(fleet.agent(0), 5, "agent 1 is there already: 1@");
    fleet.lead.wait_for("agent 1 is there already");
    refused(fleet.agent(7), 5, "it is agent 8, and there are 3");
    fleet.lead.wait_for("it is agent 8");
    without_certificate(&fleet);
    assert_eq!(fleet.received(), 0);
    for index in 1..3 {
        fleet.agents.push(fleet.agent(index));
    }
    let record = fleet.measured("--clients 6 --rate 300 --duration 1s --timeout 20s");
    assert_eq!(record.total.counts.responses, 300);
    refused(fleet.agent(1), 4, "the run has begun without it");
    fleet.lead.wait_for("the run has begun without it");
    assert_eq!(fleet.received(), 300);
    fleet.end();
}

/// Those that are no agents at all.
fn without_certificate(fleet: &Fleet) {
    let address = fleet.listens.to_string();
    let mut command = Command::new("openssl");
    command.args(["s_client", "-quiet", "-connect", &address]);
    let (_, _, stderr) = Heard::start(command).ended();
    fleet.lead.wait_for("peer sent no certificates");
    assert!(stderr.contains("alert"), "{stderr}");
    let mut plain = TcpStream::connect(fleet.listens).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // It is closed, in whichever way.
    let _ = plain.read_to_end(&mut answer);
    assert!(answer.len() < 10, "{answer:?}");
    fleet.lead.wait_until("plain TCP", |stderr| {
        stderr.contains("corrupt message") || stderr.contains("InvalidContentType")
    });
}
