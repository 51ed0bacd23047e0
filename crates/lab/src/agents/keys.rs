//! The certificates of agents that dial their lead: an authority, of which the key is forgotten as
//! soon as it has signed two certificates, one for the lead and one for all agents. Each side
//! accepts the other's alone (TLS 1.3 with certificates on both sides, RFC 8446).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proto::tls::rustls::pki_types::ServerName;
use proto::tls::rustls::{ClientConfig, ServerConfig};
use proto::tls::{
    ClientCertificate, ClientCertificates, ClientTlsOptions, Roots, ServerTlsOptions, Tickets,
    TlsConfigError, TlsVersions, client_config, server_config_with,
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use crate::run::RunError;

/// The name in the lead's certificate, whatever its address is.
const LEAD: &str = "lead.throng.internal";
const AGENT: &str = "agent.throng.internal";
const AUTHORITY: &str = "ca.pem";
/// The last year that a certificate can name (RFC 5280, section 4.1.2.5).
const FOR_EVER: i32 = 9999;

/// The text of each file by its name, such as `agent.key`.
pub type KeyFiles = BTreeMap<String, String>;

/// Which side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It listens.
    Lead,
    /// It dials.
    Agent,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Side::Lead => "lead",
            Side::Agent => "agent",
        }
    }

    fn files(self) -> [String; 2] {
        ["pem", "key"].map(|end| format!("{}.{end}", self.name()))
    }
}

/// Makes keys for one lead and its agents. Their certificates do not expire: the clocks of agents
/// may be wrong, and the authority's key is gone.
///
/// # Errors
/// The system has no random numbers.
pub fn make_keys() -> Result<KeyFiles, RunError> {
    keys_until(FOR_EVER).map_err(|error| RunError::plain(format!("cannot make keys: {error}")))
}

/// Keys whose certificates are valid until the end of a year.
fn keys_until(year: i32) -> Result<KeyFiles, rcgen::Error> {
    let named = |name: &str| {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = date_time_ymd(1970, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        Ok::<_, rcgen::Error>(params)
    };
    let mut params = named("ca.throng.internal")?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?;
    let mut files = BTreeMap::from([(AUTHORITY.to_owned(), authority.pem())]);
    let issuer = Issuer::new(params, key);
    for (side, name, usage) in [
        (Side::Lead, LEAD, ExtendedKeyUsagePurpose::ServerAuth),
        (Side::Agent, AGENT, ExtendedKeyUsagePurpose::ClientAuth),
    ] {
        let mut params = named(name)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        files.extend(
            side.files()
                .into_iter()
                .zip([certificate.pem(), key.serialize_pem()]),
        );
    }
    Ok(files)
}

/// Reads what one side needs of the keys in a folder.
///
/// # Errors
/// A file cannot be read.
pub fn read_keys(folder: &Path, side: Side) -> Result<KeyFiles, RunError> {
    let names = side.files().into_iter().chain([AUTHORITY.to_owned()]);
    let read = |name: String| {
        let path = folder.join(&name);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            RunError::new(
                format!("cannot read {}: {error}", path.display()),
                "`throng fleet keys FOLDER` makes keys for a lead and its agents",
            )
        })?;
        Ok((name, text))
    };
    names.map(read).collect()
}

/// What one side has to show.
fn own(files: &KeyFiles, side: Side) -> ClientCertificate {
    let [chain_pem, key_pem] = side.files().map(|name| text(files, &name));
    ClientCertificate { chain_pem, key_pem }
}

/// A file that is missing is an empty one, which is no certificate and no key either.
fn text(files: &KeyFiles, name: &str) -> Vec<u8> {
    files.get(name).cloned().unwrap_or_default().into_bytes()
}

fn unusable(side: Side) -> impl Fn(TlsConfigError) -> RunError {
    move |error| {
        RunError::new(
            format!("the keys of the {} cannot be used: {error}", side.name()),
            "`throng fleet keys FOLDER` makes keys for a lead and its agents",
        )
    }
}

/// How the lead answers.
///
/// # Errors
/// A key cannot be used.
pub(super) fn of_lead(files: &KeyFiles) -> Result<Arc<ServerConfig>, RunError> {
    let own = own(files, Side::Lead);
    let options = ServerTlsOptions {
        versions: TlsVersions::Tls13,
        tickets: Tickets::None,
        client_certificates: ClientCertificates::Required(text(files, AUTHORITY)),
        stock_records: true,
        ..ServerTlsOptions::default()
    };
    server_config_with(&own.chain_pem, &own.key_pem, &options).map_err(unusable(Side::Lead))
}

/// How an agent dials.
///
/// # Errors
/// A key cannot be used.
pub(super) fn of_agent(files: &KeyFiles) -> Result<Arc<ClientConfig>, RunError> {
    let options = ClientTlsOptions {
        versions: TlsVersions::Tls13,
        roots: Roots::Pem(text(files, AUTHORITY)),
        certificate: Some(own(files, Side::Agent)),
        stock_records: true,
        ..ClientTlsOptions::default()
    };
    client_config(&options).map_err(unusable(Side::Agent))
}

/// The lead's name, for its agents.
pub(super) fn lead_name() -> ServerName<'static> {
    ServerName::try_from(LEAD).expect("it is a name")
}

#[cfg(test)]
mod tests {
    use proto::tls::rustls::{ClientConnection, Connection, ServerConnection};

    use super::*;

    /// A handshake in memory, after which each side has heard what the other thinks of it.
    fn shake_hands(lead: &KeyFiles, agent: &KeyFiles) -> Result<(), String> {
        let client = ClientConnection::new(of_agent(agent).unwrap(), lead_name()).unwrap();
        let server = ServerConnection::new(of_lead(lead).unwrap()).unwrap();
        let (mut client, mut server) = (Connection::from(client), Connection::from(server));
        for _ in 0..4 {
            pass(&mut client, &mut server)?;
            pass(&mut server, &mut client)?;
        }
        assert!(!client.is_handshaking() && !server.is_handshaking());
        Ok(())
    }

    fn pass(from: &mut Connection, to: &mut Connection) -> Result<(), String> {
        let mut octets = Vec::new();
        while from.wants_write() {
            from.write_tls(&mut octets).unwrap();
        }
        let mut left = octets.as_slice();
        while !left.is_empty() {
            to.read_tls(&mut left).unwrap();
            to.process_new_packets().map_err(|it| it.to_string())?;
        }
        Ok(())
    }

    #[test]
    fn only_keys_that_were_made_together_go_together() {
        let (own, other) = (make_keys().unwrap(), make_keys().unwrap());
        assert_eq!(shake_hands(&own, &own), Ok(()));
        shake_hands(&own, &other).unwrap_err();
        // An agent is no lead, and the key of another agent is not its certificate's.
        let mut swapped = own.clone();
        for end in ["pem", "key"] {
            swapped.insert(format!("lead.{end}"), own[&format!("agent.{end}")].clone());
        }
        let error = shake_hands(&swapped, &own).unwrap_err();
        assert!(error.contains("server authentication"), "{error}");
        for end in ["pem", "key"] {
            let text = other[&format!("agent.{end}")].clone();
            swapped = own.clone();
            swapped.insert(format!("agent.{end}"), text);
            of_agent(&swapped).unwrap_err();
        }
    }

    #[test]
    fn expired_keys_are_refused() {
        let expired = keys_until(2000).unwrap();
        let error = shake_hands(&expired, &expired).unwrap_err();
        assert!(error.contains("expired"), "{error}");
    }

    #[test]
    fn keys_that_are_missing_or_broken_are_named() {
        let mut files = make_keys().unwrap();
        files.insert("lead.key".to_owned(), "nothing".to_owned());
        let error = of_lead(&files).unwrap_err();
        assert!(error.what.contains("keys of the lead"), "{error:?}");
        files.remove("ca.pem");
        of_agent(&files).unwrap_err();
        let missing = read_keys(Path::new("/nonexistent"), Side::Agent).unwrap_err();
        assert!(missing.hint.unwrap().contains("throng fleet keys"));
    }
}
