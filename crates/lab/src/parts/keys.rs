//! The certificates of one fleet: an authority whose key is forgotten as soon as it has signed two
//! others, one for the lead and one for all agents. Who has neither is not let in (RFC 8446, with
//! certificates on both sides).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// The name in the lead's certificate, whatever its address is.
const LEAD: &str = "lead.throng.internal";
const AUTHORITY: &str = "ca.pem";

/// Text of each file by its name, such as `agent.key`.
pub type KeyFiles = BTreeMap<String, String>;

/// Which of the two somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It is dialled.
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
}

/// Keys for one fleet. Their certificates are good at any time: clocks of agents may be wrong, and
/// nobody has the authority's key.
///
/// # Errors
/// The system has no random numbers.
pub fn make_keys() -> anyhow::Result<KeyFiles> {
    keys_until(9999)
}

/// Keys whose certificates are good until the end of a year.
pub(super) fn keys_until(year: i32) -> anyhow::Result<KeyFiles> {
    let named = |name: &str| {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = date_time_ymd(1970, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        anyhow::Ok(params)
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
        (
            Side::Agent,
            "agent.throng.internal",
            ExtendedKeyUsagePurpose::ClientAuth,
        ),
    ] {
        let mut params = named(name)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        files.insert(format!("{}.pem", side.name()), certificate.pem());
        files.insert(format!("{}.key", side.name()), key.serialize_pem());
    }
    Ok(files)
}

/// The keys in a folder that one side needs.
///
/// # Errors
/// A file is missing.
pub fn read_keys(folder: &Path, side: Side) -> anyhow::Result<KeyFiles> {
    let own = [
        format!("{}.pem", side.name()),
        format!("{}.key", side.name()),
    ];
    let names = own.into_iter().chain([AUTHORITY.to_owned()]);
    let read = |name: String| {
        let path = folder.join(&name);
        let text = fs::read_to_string(&path).with_context(|| {
            let folder = folder.display();
            format!(
                "cannot read {}\nhint: `throng fleet keys {folder}` makes keys for a fleet",
                path.display()
            )
        })?;
        Ok((name, text))
    };
    names.map(read).collect()
}

/// What one side shows, and whom it trusts.
struct Credentials {
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

fn credentials(files: &KeyFiles, side: Side) -> anyhow::Result<Credentials> {
    let file = |name: String| {
        let text = files.get(&name);
        text.with_context(|| format!("the keys have no {name}"))
    };
    let certificates = |name: String| {
        let text = file(name.clone())?;
        let read = CertificateDer::pem_slice_iter(text.as_bytes());
        let read = read.collect::<Result<Vec<_>, _>>();
        let read = read.with_context(|| format!("{name} is no certificate"))?;
        if read.is_empty() {
            bail!("{name} has no certificate");
        }
        Ok(read)
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(AUTHORITY.to_owned())? {
        roots.add(certificate)?;
    }
    let name = format!("{}.key", side.name());
    let key = PrivateKeyDer::from_pem_slice(file(name.clone())?.as_bytes());
    Ok(Credentials {
        roots: Arc::new(roots),
        chain: certificates(format!("{}.pem", side.name()))?,
        key: key.with_context(|| format!("{name} is no key"))?,
    })
}

/// How the lead answers.
///
/// # Errors
/// A key cannot be read.
pub(super) fn of_lead(files: &KeyFiles) -> anyhow::Result<Arc<ServerConfig>> {
    let own = credentials(files, Side::Lead)?;
    let provider = Arc::new(default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(own.roots, Arc::clone(&provider)).build()?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(own.chain, own.key)?;
    Ok(Arc::new(config))
}

/// How an agent dials.
///
/// # Errors
/// A key cannot be read.
pub(super) fn of_agent(files: &KeyFiles) -> anyhow::Result<Arc<ClientConfig>> {
    let own = credentials(files, Side::Agent)?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(own.roots)
        .with_client_auth_cert(own.chain, own.key)?;
    Ok(Arc::new(config))
}

/// Whom an agent asks for.
pub(super) fn lead_name() -> ServerName<'static> {
    ServerName::try_from(LEAD).expect("it is a name")
}
