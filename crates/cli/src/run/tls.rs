//! From what is asked of TLS to TLS as it is spoken.

use std::path::Path;
use std::sync::Arc;

use engine::TlsSettings;
use lab::key_log::KeyLogFile;
use lab::run::TlsRequest;
use load::{Resume, TlsAsked};
use proto::Transport;
use proto::tls::rustls::KeyLog;
use proto::tls::rustls::pki_types::ServerName;
use proto::tls::{
    CipherSuite, ClientCertificate, ClientTlsOptions, Group, Roots, SpkiPin, TlsConfigError,
    TlsSetting, TlsVersions, UnknownName, client_config,
};

use settings::{FileName, Run, Tls};

use crate::failure::Failure;
use crate::inputs;
use crate::streams;

/// Early data that the responder takes on a connection: more than clients have to send at once.
pub(crate) const EARLY_DATA_OCTETS_MAX: u32 = 1 << 24;

/// TLS with a server that the user named.
///
/// All servers of a client are verified by one name.
pub(super) fn against(
    asked: &Tls,
    transport: Transport,
    hosts: &[String],
) -> Result<TlsRequest, Failure> {
    let roots = match &asked.authorities {
        Some(file) => Roots::Pem(read(
            "--tls-ca",
            file.as_path(),
            "give the PEM file of the CA, or skip verification with --tls-insecure",
        )?),
        None => Roots::WebPki,
    };
    // Pins by themselves know the server (RFC 7858, section 4.2).
    let verify = !asked.accepts_any && (asked.pins.is_empty() || asked.authorities.is_some());
    let host = hosts.first().map_or("", String::as_str);
    let name = asked.name.as_deref().unwrap_or(host);
    let has_one_name = asked.name.is_some() || hosts.iter().all(|other| other == host);
    if verify && !has_one_name {
        return Err(Failure::usage(
            format!(
                "the certificates of {} servers, and no one name for them",
                hosts.len()
            ),
            "give the name that all of them have with --tls-name, or skip verification with \
             --tls-insecure",
        ));
    }
    let options = ClientTlsOptions {
        roots,
        verify,
        pins: pins(&asked.pins)?,
        certificate: certificate(asked)?,
        ..options(asked, transport)?
    };
    request(options, name, asked)
}

/// TLS with the built-in responder, whose certificate is `authority`.
pub(super) fn self_test(
    asked: &Tls,
    transport: Transport,
    authority_pem: &str,
) -> Result<TlsRequest, Failure> {
    let options = ClientTlsOptions {
        roots: Roots::Pem(authority_pem.as_bytes().to_vec()),
        verify: !asked.accepts_any,
        ..options(asked, transport)?
    };
    request(options, "localhost", asked)
}

/// What does not depend on who the server is.
fn options(asked: &Tls, transport: Transport) -> Result<ClientTlsOptions, Failure> {
    let versions = versions(asked.version.as_deref())?;
    check_versions(versions, transport)?;
    let resume = resume(asked);
    check_early_data(asked, versions)?;
    let alpn = match asked.alpn.is_empty() {
        true => load::tls::default_alpn(transport),
        false => asked
            .alpn
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect(),
    };
    Ok(ClientTlsOptions {
        versions: match transport.is_quic() {
            true => TlsVersions::Tls13,
            false => versions,
        },
        cipher_suites: cipher_suites(&asked.cipher_suites)?,
        groups: groups(&asked.groups)?,
        alpn,
        sni: !asked.no_sni,
        resumption: !resume.is_never(),
        early_data: asked.early_data,
        stock_records: asked.stock_records,
        ..ClientTlsOptions::default()
    })
}

fn request(mut options: ClientTlsOptions, name: &str, asked: &Tls) -> Result<TlsRequest, Failure> {
    let key_log = key_log(asked.key_log.as_ref())?;
    options.key_log = key_log.clone().map(|file| file as Arc<dyn KeyLog>);
    let config = client_config(&options).map_err(|error| refused(&error))?;
    let server_name =
        ServerName::try_from(name.trim_end_matches('.').to_owned()).map_err(|_| {
            Failure::usage(
                format!("`{name}` is not a name that TLS can verify"),
                "give the name in the certificate with --tls-name",
            )
        })?;
    Ok(TlsRequest {
        settings: TlsSettings {
            config,
            name: server_name,
            resume: resume(asked),
        },
        verified: options.verify || !options.pins.is_empty(),
        name: name.to_owned(),
        asked: TlsAsked::of(&options, name, resume(asked)),
        key_log,
    })
}

/// Refuses choices that cannot be used or contradict each other, for any server.
pub(super) fn check(run: &Run) -> Result<(), Failure> {
    let Some(asked) = &run.tls else {
        return Ok(());
    };
    let options = options(asked, run.transport)?;
    client_config(&options)
        .map(drop)
        .map_err(|error| refused(&error))
}

/// Says that a key log is not whole.
pub(super) fn report_losses(request: Option<&TlsRequest>) {
    let key_log = request.and_then(|tls| tls.key_log.as_ref());
    if let Some(losses) = key_log.and_then(|file| file.losses()) {
        tell!("warning: the key log cannot decrypt all connections: {losses}");
    }
}

/// Names the flag at fault.
pub(crate) fn refused(error: &TlsConfigError) -> Failure {
    let (flag, hint) = match error.setting {
        TlsSetting::Roots => (
            "--tls-ca",
            "check the --tls-ca file: it must hold CA certificates in PEM format",
        ),
        TlsSetting::Certificate => ("--tls-cert", "give the certificate as a PEM file"),
        TlsSetting::Key | TlsSetting::CertificateAndKey => (
            "--tls-key",
            "give the PEM file of the certificate's own key",
        ),
        TlsSetting::CipherSuites => ("--tls-ciphers", "give each once, of a version offered"),
        TlsSetting::Groups => ("--tls-groups", "give each once, of a version offered"),
        TlsSetting::Alpn => ("--tls-alpn", "give registered names, such as dot,h2"),
        TlsSetting::EarlyData => ("--tls-early-data", "leave it out"),
        TlsSetting::Tickets => ("--tls-tickets", "leave it out"),
    };
    Failure::usage(format!("{flag}: {error}"), hint)
}

/// The versions that `--tls-version` stands for.
pub(crate) fn versions(text: Option<&str>) -> Result<TlsVersions, Failure> {
    match text {
        None => Ok(TlsVersions::All),
        Some("1.2") => Ok(TlsVersions::Tls12),
        Some("1.3") => Ok(TlsVersions::Tls13),
        Some(other) => Err(Failure::usage(
            format!("--tls-version: unknown version `{other}`"),
            "give 1.2 or 1.3, or leave it out to offer both",
        )),
    }
}

fn check_versions(versions: TlsVersions, transport: Transport) -> Result<(), Failure> {
    if versions == TlsVersions::Tls12 && transport.is_quic() {
        return Err(Failure::usage(
            format!("--tls-version 1.2: {transport} is QUIC, which has TLS 1.3 in it"),
            "leave out --tls-version",
        ));
    }
    Ok(())
}

fn check_early_data(asked: &Tls, versions: TlsVersions) -> Result<(), Failure> {
    if !asked.early_data {
        return Ok(());
    }
    if resume(asked).is_never() {
        return Err(Failure::usage(
            "--tls-early-data: only resumed sessions have early data",
            "add --tls-resume always, or a share of the connections",
        ));
    }
    if versions == TlsVersions::Tls12 {
        return Err(Failure::usage(
            "--tls-early-data: TLS 1.2 has none",
            "leave out --tls-version, or give 1.3",
        ));
    }
    Ok(())
}

/// The cipher suites of these names; all if there are none.
pub(crate) fn cipher_suites(names: &[String]) -> Result<Vec<CipherSuite>, Failure> {
    if names.is_empty() {
        return Ok(CipherSuite::all().to_vec());
    }
    let unknown =
        |error: UnknownName| Failure::usage(format!("--tls-ciphers: {}", error.what), error.known);
    names
        .iter()
        .map(|name| name.parse().map_err(unknown))
        .collect()
}

/// The groups of these names.
pub(crate) fn groups(names: &[String]) -> Result<Vec<Group>, Failure> {
    let unknown =
        |error: UnknownName| Failure::usage(format!("--tls-groups: {}", error.what), error.known);
    names
        .iter()
        .map(|name| name.parse().map_err(unknown))
        .collect()
}

/// The share of connections that resume.
fn resume(asked: &Tls) -> Resume {
    Resume::of_share(asked.resume_share)
}

fn pins(texts: &[String]) -> Result<Vec<SpkiPin>, Failure> {
    let malformed = |reason: String| {
        Failure::usage(
            format!("--tls-pin: {reason}"),
            "`openssl x509 -in FILE -pubkey -noout | openssl pkey -pubin -outform der | openssl \
             dgst -sha256 -binary | base64` gives the pin of a certificate's key",
        )
    };
    texts
        .iter()
        .map(|text| text.parse().map_err(malformed))
        .collect()
}

fn certificate(asked: &Tls) -> Result<Option<ClientCertificate>, Failure> {
    let (Some(certificate), Some(key)) = (&asked.certificate, &asked.key) else {
        return Ok(None);
    };
    Ok(Some(ClientCertificate {
        chain_pem: read(
            "--tls-cert",
            certificate.as_path(),
            "give the PEM file of the certificate",
        )?,
        key_pem: read(
            "--tls-key",
            key.as_path(),
            "give the PEM file of the certificate's own key",
        )?,
    }))
}

/// The contents of the file that `flag` names.
pub(crate) fn read(flag: &str, path: &Path, hint: &str) -> Result<Vec<u8>, Failure> {
    inputs::read(path).map_err(|error| {
        Failure::usage(
            format!("cannot read {flag} {}: {error}", path.display()),
            hint,
        )
    })
}

/// The key log that is asked for, or that the environment asks for.
fn key_log(asked: Option<&FileName>) -> Result<Option<Arc<KeyLogFile>>, Failure> {
    let by_environment = streams::variable("SSLKEYLOGFILE").filter(|path| !path.is_empty());
    let (path, source) = match (asked, by_environment) {
        (Some(file), _) => (file.as_path().to_owned(), "--tls-keylog"),
        (None, Some(path)) => (path.into(), "SSLKEYLOGFILE"),
        (None, None) => return Ok(None),
    };
    let file = KeyLogFile::open(&path).map_err(|error| {
        Failure::unwritable(
            format!("cannot write {source} {}: {error}", path.display()),
            &error,
            "name a file in a folder that exists and may be written, or leave it out",
        )
    })?;
    Ok(Some(Arc::new(file)))
}
